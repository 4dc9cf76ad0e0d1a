//! A bundle, read whole.

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};

use crate::archive::Pending;
use crate::artifact::{ADVISORY, Artifact, Artifacts, CHECK, ERROR_LOG};
use crate::brief::Brief;
use crate::bundle::Bundle;
use crate::contents::{self, Contents, LoadError};
use crate::digest::sha256_within;
use crate::failure::chain;
use crate::files::{self, ReadError};
use crate::gates::GateReport;
use crate::id::BundleId;
use crate::notes;
use crate::review::Review;
use crate::state::{BriefFact, State, StateFacts};
use crate::summary::Summary;

/// What a bundle held at one moment, parsed.
#[derive(Debug)]
pub struct Snapshot {
    /// Its id.
    pub id: BundleId,
    /// Its directory.
    pub dir: Utf8PathBuf,
    /// The state that follows from the rest.
    pub state: State,
    /// The artifacts whose names are taken, readable or not.
    pub artifacts: Artifacts,
    /// The brief, a mere template included.
    pub brief: Option<Brief>,
    /// The gate report, if it is there and can be read.
    pub gates: Option<GateReport>,
    /// The review.
    pub review: Option<Review>,
    /// Advisers' reviews by the adviser's id, sorted.
    pub advisories: Vec<(String, String)>,
    /// File names of failed leaves' logs and of files that were set aside, sorted.
    pub leftovers: Vec<String>,
    /// The result document.
    pub summary: Option<Summary>,
    /// Why nothing was built, as the artifact says.
    pub close_disposition: Option<String>,
    /// The number of the newest archived attempt; 0 where there is none.
    pub iterations: u32,
    /// The newest attempt was closed without a fix, and a person sent it back to Do: the brief's
    /// word that no fix is due no longer holds.
    pub reopened: bool,
    /// The archive that was begun and not finished.
    pub pending: Option<Pending>,
    /// What could not be used, and did not keep the bundle from being read.
    pub problems: Vec<SnapshotProblem>,
    /// What judges the change, in the order in which it is to be set aside.
    verdicts: Vec<Utf8PathBuf>,
}

/// Something in a bundle that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct SnapshotProblem {
    /// The file.
    pub file: Utf8PathBuf,
    /// The artifact, where it has a fixed name.
    pub artifact: Option<Artifact>,
    /// What is wrong with it.
    pub what: String,
}

/// Whether the gates saw the patch that is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// There is no gate report, or it does not say which patch it saw.
    Unknown,
    /// They saw this patch.
    Same,
    /// They saw another one, or there was none, or it is gone: it cannot be accepted on their word.
    Changed,
}

impl Bundle {
    /// Reads everything but the patch.
    ///
    /// A brief or a summary that cannot be read is an error: the state hangs on them, and only
    /// what is read strictly may grant. Everything else is a [`SnapshotProblem`] and counts as absent.
    pub fn load(&self) -> Result<Snapshot, LoadError> {
        let contents = self.contents()?;
        contents.require_change_is_a_file()?;
        let mut reader = Reader { bundle: self, contents: &contents, problems: Vec::new() };
        let brief = reader.text(Artifact::Brief)?.map(|text| Brief::parse(&text));
        let summary = reader.text(Artifact::Summary)?.map(|text| Summary::parse(&text));
        let gates = reader.gates();
        let pending = contents.pending()?;
        let facts = StateFacts {
            gates: gates.is_some(),
            summary: summary.is_some(),
            outcome: summary.as_ref().and_then(Summary::outcome),
            resolved: reader.is_resolved(),
            pending: pending.as_ref().map(|pending| pending.reentry),
            ..contents.facts(brief_fact(brief.as_ref()))
        };
        let review = reader.lossy(Artifact::Review).map(|text| Review::parse(&text));
        let advisories = reader.advisories();
        let close_disposition =
            reader.lossy(Artifact::CloseDisposition).map(|text| text.trim().to_owned());
        let problems = reader.problems;
        Ok(Snapshot {
            id: self.id().clone(),
            dir: self.dir().into(),
            state: State::of(&facts),
            artifacts: contents.artifacts,
            brief,
            gates,
            review,
            advisories,
            summary,
            close_disposition,
            iterations: contents.iterations.last().copied().unwrap_or(0),
            reopened: contents.was_reopened(),
            pending,
            problems,
            verdicts: verdicts(&contents),
            leftovers: contents.leftovers,
        })
    }
}

impl Snapshot {
    /// Compares the patch that is there with the one the gates saw. Reads the patch.
    pub fn coverage(&self) -> Result<Coverage, LoadError> {
        let has_patch = self.artifacts.contains(Artifact::Patch);
        self.gates
            .as_ref()
            .map_or(Ok(Coverage::Unknown), |gates| coverage(&self.dir, has_patch, gates))
    }

    /// The files that say something about the change, relative to the bundle: to be set aside, in
    /// this order, when the change is replaced.
    ///
    /// The result document comes first, so that nobody signs it off. The gate report comes last:
    /// while it is there, it shows that what is left was about another change.
    pub fn verdict_files(&self) -> Vec<Utf8PathBuf> {
        self.verdicts.clone()
    }

    /// Whether the log of a failed leaf lies in the bundle; named as for [`Bundle::error_log`].
    pub fn has_error_log(&self, leaf: &str) -> bool {
        let name = Bundle::error_log(leaf);
        self.leftovers.iter().any(|leftover| *leftover == name)
    }

    /// The brief, if someone wrote it: a template is none.
    pub fn authored_brief(&self) -> Option<&Brief> {
        self.brief.as_ref().filter(|brief| brief_fact(Some(brief)) == BriefFact::Authored)
    }
}

/// Compares the patch of a bundle with the one that its gate report is about.
pub(crate) fn coverage(
    dir: &Utf8Path,
    has_patch: bool,
    gates: &GateReport,
) -> Result<Coverage, LoadError> {
    let Some(seen) = gates.patch_digest.as_deref() else {
        // The report of a close: it came before the patch, and no gate ever saw that.
        let unseen = has_patch && gates.checked_nothing();
        return Ok(if unseen { Coverage::Changed } else { Coverage::Unknown });
    };
    let now = sha256_within(dir, Artifact::Patch.file_name())?;
    let same = now.is_some_and(|now| now.eq_ignore_ascii_case(seen.trim_start_matches("sha256:")));
    Ok(if same { Coverage::Same } else { Coverage::Changed })
}

/// What in a bundle judges the change, in the order in which it is to be set aside.
fn verdicts(contents: &Contents<'_>) -> Vec<Utf8PathBuf> {
    let artifact = |artifact: Artifact| {
        contents.artifacts.contains(artifact).then(|| artifact.file_name().into())
    };
    let logs = contents
        .leftovers
        .iter()
        .filter(|name| name.starts_with(CHECK) && name.ends_with(ERROR_LOG));
    [Artifact::Summary, Artifact::Review]
        .into_iter()
        .filter_map(artifact)
        .chain(contents.advisories.iter().chain(logs).map(Utf8PathBuf::from))
        .chain(artifact(Artifact::GatesJson))
        .collect()
}

pub(crate) fn brief_fact(brief: Option<&Brief>) -> BriefFact {
    match brief {
        None => BriefFact::Absent,
        Some(brief) if brief.is_placeholder() => BriefFact::Placeholder,
        Some(_) => BriefFact::Authored,
    }
}

/// Reads artifacts and keeps what is wrong with those the bundle can do without.
struct Reader<'a> {
    bundle: &'a Bundle,
    contents: &'a Contents<'a>,
    problems: Vec<SnapshotProblem>,
}

impl Reader<'_> {
    /// An artifact that must be readable text where it is there.
    fn text(&self, artifact: Artifact) -> Result<Option<String>, LoadError> {
        let mut bytes = Vec::new();
        if !self.contents.read(artifact, &mut bytes)? {
            return Ok(None);
        }
        contents::text(self.bundle.dir(), artifact, &bytes)?;
        Ok(String::from_utf8(bytes).ok())
    }

    /// An artifact that counts as absent where it cannot be read.
    fn bytes(&mut self, artifact: Artifact) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        match self.contents.read(artifact, &mut bytes) {
            Ok(there) => there.then_some(bytes),
            Err(error) => {
                self.problem(artifact.file_name(), unreadable(&error));
                None
            }
        }
    }

    fn lossy(&mut self, artifact: Artifact) -> Option<String> {
        let bytes = self.bytes(artifact)?;
        Some(self.replace_bad_bytes(artifact.file_name(), &bytes))
    }

    fn gates(&mut self) -> Option<GateReport> {
        let bytes = self.bytes(Artifact::GatesJson)?;
        match GateReport::parse(&bytes) {
            Ok(report) => Some(report),
            Err(error) => {
                self.problem(
                    Artifact::GatesJson.file_name(),
                    format!("counts as absent: {}", chain(&error)),
                );
                None
            }
        }
    }

    fn is_resolved(&mut self) -> bool {
        let Some(bytes) = self.bytes(Artifact::Notes) else {
            return false;
        };
        notes::is_resolved(&bytes).unwrap_or_else(|error| {
            self.problem(Artifact::Notes.file_name(), format!("says nothing: {error}"));
            false
        })
    }

    fn advisories(&mut self) -> Vec<(String, String)> {
        let mut advisories = Vec::new();
        for name in &self.contents.advisories {
            match files::read_within(
                self.bundle.dir(),
                name.as_str().into(),
                Artifact::Review.max_len(),
            ) {
                Ok(bytes) => {
                    let text = self.replace_bad_bytes(name, &bytes.unwrap_or_default());
                    let id = name
                        .strip_prefix(ADVISORY.0)
                        .and_then(|rest| rest.strip_suffix(ADVISORY.1));
                    advisories.push((id.unwrap_or(name).to_owned(), text));
                }
                Err(error) => self.problem(name, unreadable(&error)),
            }
        }
        advisories
    }

    fn replace_bad_bytes(&mut self, name: &str, bytes: &[u8]) -> String {
        match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => {
                let good =
                    std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
                let line = contents::line_after(&bytes[..good]);
                self.problem(
                    name,
                    format!("line {line} is not UTF-8; what could not be read was replaced"),
                );
                text
            }
        }
    }

    fn problem(&mut self, name: &str, what: String) {
        let artifact = Artifact::from_file_name(name);
        self.problems.push(SnapshotProblem { file: self.bundle.dir().join(name), artifact, what });
    }
}

fn unreadable(error: &ReadError) -> String {
    format!("counts as absent: {}", chain(error))
}

#[cfg(test)]
mod tests;
