//! The attempt before this one, as the next builder gets to see it, and the record of attempts that no person sent
//! back.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::archive;
use crate::artifact::Artifact;
use crate::attempts::Attempts;
use crate::bundle;
use crate::contents::LoadError;
use crate::files::{self, FileReadError};
use crate::gates::{GateReport, GateResult};
use crate::returned;
use crate::state::Reentry;

/// The record that lies beside an attempt which was sent back without a person.
const RECORD: &str = "auto-iterate.json";
const RECORD_MAX: u64 = 1 << 20;
/// A longer log is left out: the report has its evidence, and the log stays in the archive.
const LOG_MAX: u64 = 4 << 20;

/// The artifacts of an attempt that the next builder may read.
const SHOWN: [Artifact; 5] = [
    Artifact::Patch,
    Artifact::BuildNotes,
    Artifact::GatesJson,
    Artifact::Review,
    Artifact::Summary,
];

/// The newest archived attempt of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its number, from 1.
    pub number: u32,
    /// The beat that the bundle went back to.
    pub reentry: Reentry,
    /// True if it was accepted and sent back before it landed.
    pub was_accepted: bool,
    /// Its change, reports and logs of failed gates, under their paths in the bundle (`iteration-v<N>/…`).
    pub files: Vec<(Utf8PathBuf, Vec<u8>)>,
}

impl LastAttempt {
    /// Returns its patch, unless it had none.
    pub fn patch(&self) -> Option<&[u8]> {
        let path = archive::dir_of(self.number).join(Artifact::Patch.file_name());
        let file = self.files.iter().find(|(name, _)| *name == path);
        file.map(|(_, bytes)| bytes.as_slice()).filter(|patch| !patch.is_empty())
    }
}

/// Why an attempt went back to Do without a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AutoIteration {
    findings: Vec<String>,
}

/// Returns the file that lies beside such an attempt.
pub(crate) fn auto_record(findings: &[String]) -> (String, Vec<u8>) {
    let record = AutoIteration { findings: findings.to_vec() };
    let json = serde_json::to_vec_pretty(&record).expect("because texts are always JSON");
    (RECORD.to_owned(), json)
}

impl Attempts<'_> {
    /// Reads the newest archived attempt; `None` where nothing was archived.
    pub fn last(&self) -> Result<Option<LastAttempt>, LoadError> {
        let Some(number) = self.numbers()?.last().copied() else { return Ok(None) };
        let dir = archive::dir_of(number);
        let mut found = Vec::new();
        for artifact in SHOWN {
            let bytes = self.read(number, artifact)?;
            found.extend(bytes.map(|bytes| (dir.join(artifact.file_name()), bytes)));
        }
        let gates = self.read(number, Artifact::GatesJson)?;
        let gates = gates.and_then(|json| GateReport::parse(&json).ok());
        let rows = gates.iter().flat_map(|gates| &gates.rows);
        for log in
            rows.filter(|row| row.result == GateResult::Fail).filter_map(|row| row.log.as_ref())
        {
            // The name is text of a report, which another tool may have written.
            let attempt = self.bundle.dir().join(&dir);
            let Some(log) = bundle::inside(&attempt, Utf8Path::new(log)) else { continue };
            let path = dir.join(log);
            match files::read_within(self.bundle.dir(), &path, LOG_MAX) {
                Ok(bytes) => found.extend(bytes.map(|bytes| (path, bytes))),
                // The report has its evidence. A log that cannot be shown must not keep the bundle
                // from being built again.
                Err(
                    FileReadError::TooLarge { .. }
                    | FileReadError::LeadsOut { .. }
                    | FileReadError::NotAFile { .. },
                ) => {}
                Err(error @ FileReadError::Io { .. }) => return Err(error.into()),
            }
        }
        // The brief goes into the archive on the way to Plan only.
        let has_brief = self.read(number, Artifact::Brief)?.is_some();
        let reentry = if has_brief { Reentry::Plan } else { Reentry::Do };
        let was_accepted = returned::was_returned(self.bundle, number)?;
        Ok(Some(LastAttempt { number, reentry, was_accepted, files: found }))
    }

    /// Counts the newest attempts that went back to Do one after the other without a person.
    pub fn auto_iterations(&self) -> Result<u32, LoadError> {
        let mut count = 0;
        for number in self.numbers()?.into_iter().rev() {
            let path = archive::dir_of(number).join(RECORD);
            let text = files::read_within(self.bundle.dir(), &path, RECORD_MAX)?;
            let record = text.and_then(|text| serde_json::from_slice::<AutoIteration>(&text).ok());
            // A person sent this one back, so the count of rounds without a person starts again.
            if record.is_none() {
                break;
            }
            count += 1;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Bundle;
    use crate::testing::{BRIEF, GATES, Scene};
    use crate::{State, archive_auto, archive_plan};

    fn checked(scene: &Scene) -> Bundle {
        let files = [
            ("brief.md", BRIEF),
            ("patch.diff", "the patch"),
            ("build-notes.md", "notes"),
            ("check-gates.json", GATES),
            ("check-review.md", "review"),
        ];
        scene.bundle("72", &files)
    }

    /// A failed row with this log.
    fn failed(log: &str) -> String {
        format!(
            r#"{{"check": "T3", "result": "fail", "oracle": "false", "rule_id": "T3", "path_line": "red",
                "gating": true, "element": "T3", "log": "{log}"}}"#
        )
    }

    fn names(last: &LastAttempt) -> Vec<&str> {
        last.files.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn an_attempt_that_goes_back_by_itself_is_archived_and_shown_to_the_next_builder() {
        let scene = Scene::new();
        let bundle = checked(&scene);
        assert_eq!(bundle.attempts().last().unwrap(), None);
        archive_auto(&bundle, &["T3 failed".to_owned()]).unwrap().apply().unwrap();
        assert_eq!(bundle.load().unwrap().state, State::Planned);
        let last = bundle.attempts().last().unwrap().unwrap();
        assert_eq!((last.number, last.reentry, last.was_accepted), (1, Reentry::Do, false));
        assert_eq!(last.patch(), Some(b"the patch".as_slice()));
        let expected = ["patch.diff", "build-notes.md", "check-gates.json", "check-review.md"];
        assert_eq!(names(&last), expected.map(|name| format!("iteration-v1/{name}")));
        let brief = String::from_utf8(bundle.read(Artifact::Brief).unwrap().unwrap()).unwrap();
        assert!(brief.contains("> - T3 failed\n"), "{brief}");
    }

    #[test]
    fn a_log_that_is_no_file_of_the_attempt_is_left_out() {
        let scene = Scene::new();
        fs_err::write(scene.path().join("outside.log"), "not yours").unwrap();
        let bundle = checked(&scene);
        let inside = bundle.path(Artifact::Brief);
        let logs =
            ["../../../outside.log", "../brief.md", inside.as_str(), "/dev/null", "gate-logs"];
        let rows: Vec<String> = logs.into_iter().chain(["gate-logs/T3.log"]).map(failed).collect();
        let gates = format!(
            r#"{{"issue_dir": "issue_72", "overall": "fail", "rows": [{}]}}"#,
            rows.join(",")
        );
        scene.write("issue_72/check-gates.json", gates);
        scene.write("issue_72/gate-logs/T3.log", "red");
        archive_auto(&bundle, &["T3 failed".to_owned()]).unwrap().apply().unwrap();
        let last = bundle.attempts().last().unwrap().unwrap();
        let expected = [
            "patch.diff",
            "build-notes.md",
            "check-gates.json",
            "check-review.md",
            "gate-logs/T3.log",
        ];
        assert_eq!(names(&last), expected.map(|name| format!("iteration-v1/{name}")));
    }

    #[test]
    fn only_attempts_since_the_last_decision_of_a_person_count() {
        let scene = Scene::new();
        let bundle = checked(&scene);
        let again = || bundle.publish(Artifact::Patch, b"again").unwrap();
        for expected in [1, 2] {
            archive_auto(&bundle, &["T3 failed".to_owned()]).unwrap().apply().unwrap();
            assert_eq!(bundle.attempts().auto_iterations().unwrap(), expected);
            again();
        }
        archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap();
        assert_eq!(bundle.attempts().auto_iterations().unwrap(), 0);
        again();
        archive_auto(&bundle, &[]).unwrap().apply().unwrap();
        assert_eq!(bundle.attempts().auto_iterations().unwrap(), 1);
    }
}
