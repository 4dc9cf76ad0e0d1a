//! Records of accepted attempts that were sent back before they landed.
//!
//! The archive of such an attempt holds `returned.json` with the reason, and one `partner-<id>.diff`
//! per change that failed together with it. The next builder reads the partners' patches; the records
//! count how often a bundle was sent back.

use serde::{Deserialize, Serialize};

use crate::archive;
use crate::artifact::Artifact;
use crate::attempts::Attempts;
use crate::bundle::Bundle;
use crate::contents::LoadError;
use crate::files;
use crate::id::BundleId;

const RECORD: &str = "returned.json";
/// Prefix and suffix of the file name of a partner's patch.
const PARTNER: (&str, &str) = ("partner-", ".diff");
const RECORD_MAX: u64 = 1 << 20;

/// The content of `returned.json`: the reason an accepted attempt was sent back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Returned {
    /// The name of the person, or of the integration, that sent it back.
    pub by: String,
    /// The date in the format of the summary.
    pub date: String,
    /// True if an integration sent back its culprit without a person.
    #[serde(default)]
    pub automatic: bool,
    /// The person's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Findings of the integration, one sentence each.
    #[serde(default)]
    pub facts: Vec<String>,
    /// The commits that brought the attempt into a staging branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged: Vec<String>,
}

/// The names and contents of the files that are archived with the attempt.
pub(crate) fn files(record: &Returned, partners: &[(BundleId, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    let json = serde_json::to_vec_pretty(record).expect("because texts are always JSON");
    let partner = |(id, patch): &(BundleId, Vec<u8>)| {
        (format!("{}{id}{}", PARTNER.0, PARTNER.1), patch.clone())
    };
    partners.iter().map(partner).chain([(RECORD.to_owned(), json)]).collect()
}

/// Returns whether an archived attempt was accepted and sent back.
pub(crate) fn was_returned(bundle: &Bundle, number: u32) -> Result<bool, LoadError> {
    let path = archive::dir_of(number).join(RECORD);
    Ok(files::read_within(bundle.dir(), &path, RECORD_MAX)?.is_some())
}

impl Attempts<'_> {
    /// Reads the records of accepted attempts that were sent back, oldest first. A record that cannot
    /// be read is skipped.
    pub fn returns(&self) -> Result<Vec<Returned>, LoadError> {
        let mut found = Vec::new();
        for number in self.numbers()? {
            let relative = archive::dir_of(number).join(RECORD);
            // The records are counted and shown; one that is damaged must not stop the bundle.
            let text = files::read_within(self.bundle.dir(), &relative, RECORD_MAX).ok().flatten();
            found.extend(text.and_then(|text| serde_json::from_slice(&text).ok()));
        }
        Ok(found)
    }

    /// Reads the patches that earlier attempts failed together with, sorted by file name. Of two from
    /// the same bundle, the newer one is returned.
    pub fn partner_patches(&self) -> Result<Vec<(String, Vec<u8>)>, LoadError> {
        let mut found: Vec<(String, Vec<u8>)> = Vec::new();
        // Newest first: of a partner that failed with several attempts, the latest patch counts.
        for number in self.numbers()?.into_iter().rev() {
            let dir = archive::dir_of(number);
            let Ok(entries) = self.bundle.dir().join(&dir).read_dir_utf8() else { continue };
            let mut names: Vec<String> =
                entries.flatten().map(|entry| entry.file_name().to_owned()).collect();
            names.retain(|name| name.starts_with(PARTNER.0) && name.ends_with(PARTNER.1));
            names.sort_unstable();
            for name in names {
                if found.iter().any(|(known, _)| *known == name) {
                    continue;
                }
                let max = Artifact::Patch.max_len();
                if let Some(patch) = files::read_within(self.bundle.dir(), &dir.join(&name), max)? {
                    found.push((name, patch));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BRIEF, Scene, summary};
    use crate::{Reentry, State, archive_returned, resume_archive};

    fn accepted(scene: &Scene) -> Bundle {
        let summary = summary("merged-wider");
        let files = [
            ("brief.md", BRIEF),
            ("patch.diff", "the patch"),
            ("check-gates.json", crate::testing::GATES),
            ("SUMMARY.md", &summary),
            ("seal.json", "{}"),
        ];
        scene.bundle("72", &files)
    }

    fn record(note: &str) -> Returned {
        Returned { by: "Eve".to_owned(), note: Some(note.to_owned()), ..Returned::default() }
    }

    #[test]
    fn an_accepted_attempt_that_is_sent_back_takes_its_seal_along_and_leaves_its_partners_behind() {
        let scene = Scene::new();
        let bundle = accepted(&scene);
        assert_eq!(bundle.load().unwrap().state, State::Complete);
        let partners = [("71".parse().unwrap(), b"their change".to_vec())];
        archive_returned(&bundle, Reentry::Do, &record("why"), &partners).unwrap().apply().unwrap();
        assert_eq!(bundle.load().unwrap().state, State::Planned);
        assert!(bundle.attempts().last().unwrap().unwrap().was_accepted);
        assert!(!bundle.path(Artifact::Seal).exists());
        assert!(bundle.dir().join("iteration-v1/seal.json").is_file());
        assert_eq!(bundle.attempts().returns().unwrap(), [record("why")]);
        let patches = bundle.attempts().partner_patches().unwrap();
        assert_eq!(patches, [("partner-71.diff".to_owned(), b"their change".to_vec())]);
    }

    #[test]
    fn a_return_that_was_cut_short_after_any_step_is_finished_with_the_same_files() {
        let scene = Scene::new();
        let partners = [("71".parse().unwrap(), b"their change".to_vec())];
        let mut done = 0;
        for cut in 1.. {
            let bundle = accepted(&scene);
            let plan = archive_returned(&bundle, Reentry::Plan, &record("why"), &partners).unwrap();
            if cut > plan.steps.len() {
                break;
            }
            for step in &plan.steps[..cut] {
                step.apply().unwrap();
            }
            if let Some(rest) = resume_archive(&bundle).unwrap() {
                rest.apply().unwrap();
            }
            assert_eq!(bundle.load().unwrap().state, State::Unplanned, "after {cut}");
            assert_eq!(bundle.attempts().returns().unwrap(), [record("why")], "after {cut}");
            assert_eq!(bundle.attempts().partner_patches().unwrap().len(), 1, "after {cut}");
            fs_err::remove_dir_all(bundle.dir()).unwrap();
            done += 1;
        }
        assert!(done > 5, "{done}");
    }

    #[test]
    fn of_two_changes_of_one_partner_the_newer_counts_and_every_return_is_told() {
        let scene = Scene::new();
        let bundle = accepted(&scene);
        for (note, patch) in [("first", "old"), ("second", "new")] {
            let partners = [("71".parse().unwrap(), patch.as_bytes().to_vec())];
            let plan = archive_returned(&bundle, Reentry::Do, &record(note), &partners).unwrap();
            plan.apply().unwrap();
        }
        assert_eq!(bundle.attempts().returns().unwrap(), [record("first"), record("second")]);
        let patches = bundle.attempts().partner_patches().unwrap();
        assert_eq!(patches, [("partner-71.diff".to_owned(), b"new".to_vec())]);
    }
}
