//! Findings that other tools left in a bundle for the person who signs off.
//!
//! `deferred-findings.json` has what rounds without a person passed over; `plan-advisory-<id>.md` is a review of the brief. Neither
//! is written here, and neither may be lost: what cannot be read becomes a question of its own.

use serde::Deserialize;

use crate::artifact::Artifact;
use crate::bundle::Bundle;
use crate::files;
use crate::review::Review;

/// The name of the list of deferred findings.
const DEFERRED: &str = "deferred-findings.json";
/// Prefix and suffix of the file name of a review of the brief.
pub(crate) const PLAN_ADVISORY: (&str, &str) = ("plan-advisory-", ".md");

#[derive(Deserialize)]
#[serde(untagged)]
enum Deferred {
    Ledger { items: Vec<String> },
    List(Vec<String>),
}

impl Bundle {
    /// Returns the findings of earlier rounds and of reviews of the brief, for §6.
    pub fn carried_items(&self) -> Vec<String> {
        let mut items = plan_advice(self);
        match deferred(self) {
            Ok(deferred) => items.extend(deferred),
            Err(why) => items.push(format!(
                "{DEFERRED} cannot be read ({why}); findings of earlier rounds may be lost"
            )),
        }
        items
    }
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
    let Ok(contents) = bundle.contents() else { return Vec::new() };
    let mut items = Vec::new();
    for name in &contents.plan_advisories {
        let max = Artifact::Review.max_len();
        match files::read_within(bundle.dir(), name.as_str().into(), max) {
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
    use camino::Utf8PathBuf;

    use super::*;

    fn carried(files: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("issue_7")).unwrap();
        fs_err::create_dir(&path).unwrap();
        for (name, text) in files {
            fs_err::write(path.join(name), text).unwrap();
        }
        Bundle::at(path).unwrap().carried_items()
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
    fn the_findings_of_a_review_of_the_brief_are_read_like_an_adviser_s() {
        let files = [
            ("plan-advisory-b.md", "- NEEDS-HUMAN — second\n"),
            ("plan-advisory-a.md", "Well.\n\n- NEEDS-HUMAN — first\n"),
            ("plan-advisory-benefit.json", "{\"findings\": 2}"),
        ];
        assert_eq!(carried(&files), ["first", "second"]);
    }
}
