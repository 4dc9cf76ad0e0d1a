//! Findings from before Check for the person who signs off.
//!
//! `plan-advisory-<id>.md` is an adviser's review of the brief; `deferred-findings.json` has what rounds without a person of an
//! older driver passed over. Neither may be lost: what cannot be read becomes a question of its own.
//!
//! A review ends with a line that names the brief it is about. So a planner who writes another brief has it reviewed anew,
//! and a driver that was killed asks no adviser twice.

use camino::Utf8PathBuf;
use serde::Deserialize;

use crate::artifact::Artifact;
use crate::bundle::{Bundle, WriteError};
use crate::files;
use crate::review::Review;
use crate::sha256_hex;

/// The name of the list of deferred findings.
const DEFERRED: &str = "deferred-findings.json";

#[derive(Deserialize)]
#[serde(untagged)]
enum Deferred {
    Ledger { items: Vec<String> },
    List(Vec<String>),
}

/// The reviews of a bundle's brief.
#[derive(Debug, Clone, Copy)]
pub struct PlanAdvice<'b>(&'b Bundle);

impl PlanAdvice<'_> {
    /// Returns the names of the reviews, in order.
    pub fn names(self) -> Vec<Utf8PathBuf> {
        let Ok(contents) = self.0.contents() else { return Vec::new() };
        contents.plan_advisories.into_iter().map(Utf8PathBuf::from).collect()
    }

    /// Returns whether an adviser reviewed this brief.
    pub fn is_about(self, adviser: &str, brief: &[u8]) -> bool {
        let max = Artifact::Review.max_len();
        let text = files::read_within(self.0.dir(), &Artifact::plan_advisory(adviser), max);
        let text = text.ok().flatten().unwrap_or_default();
        String::from_utf8_lossy(&text).trim_end().ends_with(&about(brief))
    }

    /// Publishes an adviser's review of this brief, in place of one of an earlier brief.
    pub fn publish(self, adviser: &str, brief: &[u8], advice: &[u8]) -> Result<(), WriteError> {
        let mut text = advice.trim_ascii_end().to_vec();
        text.extend_from_slice(format!("\n\n{}\n", about(brief)).as_bytes());
        self.0.publish_file(&Artifact::plan_advisory(adviser), &text)
    }
}

/// Returns the line at the end of a review that names the brief it is about.
fn about(brief: &[u8]) -> String {
    format!("<!-- about the brief {} -->", &sha256_hex(brief)[..16])
}

impl Bundle {
    /// Returns the reviews of the brief.
    pub fn plan_advice(&self) -> PlanAdvice<'_> {
        PlanAdvice(self)
    }
}

/// Returns the findings of earlier rounds and of reviews of the brief, for §6.
pub fn carried_items(bundle: &Bundle) -> Vec<String> {
    let mut items = plan_advice(bundle);
    match deferred(bundle) {
        Ok(deferred) => items.extend(deferred),
        Err(why) => items.push(format!(
            "{DEFERRED} cannot be read ({why}); findings of earlier rounds may be lost"
        )),
    }
    items
}

fn deferred(bundle: &Bundle) -> Result<Vec<String>, String> {
    let max = Artifact::Review.max_len();
    let bytes = files::read_within(bundle.dir(), DEFERRED.into(), max);
    let Some(bytes) = bytes.map_err(|error| error.to_string())? else { return Ok(Vec::new()) };
    match serde_json::from_slice(&bytes) {
        Ok(Deferred::Ledger { items } | Deferred::List(items)) => Ok(items),
        Err(error) if error.is_data() => Err("it has no list of texts".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn plan_advice(bundle: &Bundle) -> Vec<String> {
    let mut items = Vec::new();
    for name in bundle.plan_advice().names() {
        let max = Artifact::Review.max_len();
        match files::read_within(bundle.dir(), &name, max) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
                items.extend(Review::parse(&text).items);
            }
            Err(error) => items.push(format!("{name} cannot be read ({error})")),
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(files: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("issue_7")).unwrap();
        fs_err::create_dir(&path).unwrap();
        for (name, text) in files {
            fs_err::write(path.join(name), text).unwrap();
        }
        carried_items(&Bundle::at(path).unwrap())
    }

    #[test]
    fn deferred_findings_come_back_whole() {
        let ledger = r#"{"items": ["C1 Spec — decide", "T2 — odd"], "through_round": 2}"#;
        assert_eq!(carried(&[(DEFERRED, ledger)]), ["C1 Spec — decide", "T2 — odd"]);
        assert_eq!(carried(&[(DEFERRED, "[\"x\"]")]), ["x"]);
        assert_eq!(carried(&[(DEFERRED, "{\"items\": []}")]), Vec::<String>::new());
        assert_eq!(carried(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_list_that_cannot_be_read_is_a_question_and_not_silence() {
        for broken in ["", "{", "{\"items\": [1]}", "{\"items\": \"x\"}", "7", "{}"] {
            let items = carried(&[(DEFERRED, broken)]);
            assert_eq!(items.len(), 1, "{broken:?}");
            assert!(items[0].contains("may be lost"), "{items:?}");
        }
    }

    #[test]
    fn a_review_counts_for_the_brief_it_is_about_and_its_mark_is_no_finding() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("issue_7")).unwrap();
        fs_err::create_dir(&path).unwrap();
        let bundle = Bundle::at(path).unwrap();
        let advice = bundle.plan_advice();
        assert!(!advice.is_about("x", b"one"));
        advice.publish("x", b"one", "- NEEDS-HUMAN — thin".as_bytes()).unwrap();
        assert_eq!(advice.names(), ["plan-advisory-x.md"]);
        for (adviser, brief, expected) in
            [("x", "one", true), ("x", "two", false), ("y", "one", false)]
        {
            assert_eq!(advice.is_about(adviser, brief.as_bytes()), expected, "{adviser} {brief}");
        }
        assert_eq!(carried_items(&bundle), ["thin"]);
    }

    #[test]
    fn the_findings_of_a_review_of_the_brief_are_read_like_an_adviser_s() {
        let files = [
            ("plan-advisory-b.md", "- NEEDS-HUMAN — second\n"),
            ("plan-advisory-a.md", "Well.\n\n- NEEDS-HUMAN — first\n"),
            ("plan-advisory-benefit.json", "{\"findings\": 2}"),
        ];
        assert_eq!(carried(&files), ["first", "second"]);
    }
}
