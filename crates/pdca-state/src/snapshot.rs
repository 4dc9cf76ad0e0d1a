//! Reading and parsing all artifacts of a bundle at once.

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use crate::archive::Pending;
use crate::artifact::{ADVISORY, Artifact, Artifacts, CHECK, ERROR_LOG};
use crate::brief::Brief;
use crate::bundle::Bundle;
use crate::contents::{self, Contents, LoadError};
use crate::digest::sha256_within;
use crate::failure::chain;
use crate::files::{self, FileReadError};
use crate::gates::GateReport;
use crate::id::BundleId;
use crate::notes;
use crate::review::Review;
use crate::state::{BriefFact, State, StateFacts};
use crate::summary::Summary;

/// The parsed contents of a bundle at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The id of the bundle.
    pub id: BundleId,
    /// The directory of the bundle.
    pub dir: Utf8PathBuf,
    /// The state derived from the other fields.
    pub state: State,
    /// The artifacts that exist by name, readable or not.
    pub artifacts: Artifacts,
    /// The brief, even if it is an unfilled template; see [`Snapshot::authored_brief`].
    pub brief: Option<Brief>,
    /// The gate report, if it is valid.
    pub gates: Option<GateReport>,
    /// The reviewer's advice, with bytes that are not UTF-8 replaced.
    pub review: Option<Review>,
    /// The id of each adviser and the text of its review, sorted by file name.
    pub advisories: Vec<(String, String)>,
    /// File names of failed leaves' logs and of files that were set aside, sorted.
    pub leftovers: Vec<String>,
    /// The result document with the sign-off.
    pub summary: Option<Summary>,
    /// The content of `close-disposition`: the reason nothing was built.
    pub close_disposition: Option<String>,
    /// The number of the newest archived attempt; 0 if there is none.
    pub iterations: u32,
    /// True if the newest archived attempt was a close that a person sent back to Do. The brief's
    /// hint to close no longer holds then.
    pub reopened: bool,
    /// The archive that was begun and not finished.
    pub pending: Option<Pending>,
    /// Files that were ignored or only partly usable.
    pub problems: Vec<SnapshotProblem>,
    verdicts: Vec<Utf8PathBuf>,
}

/// A file of a bundle that was ignored or only partly usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{file}: {what}")]
pub struct SnapshotProblem {
    /// The path of the file.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
    /// The artifact, if the file is one.
    #[serde(skip)]
    pub artifact: Option<Artifact>,
    /// The problem and its consequence, for people.
    pub what: String,
}

/// The relation between the gate report and the current patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// There is no gate report, or it does not name the patch that it is about.
    Unknown,
    /// The report is about the current patch.
    Same,
    /// The report is about another patch or about none, or the patch is gone. The report must not be
    /// relied on to accept the bundle.
    Changed,
}

impl Bundle {
    /// Reads and parses every artifact except the patch.
    ///
    /// A brief or summary that cannot be read is an error, because the state depends on it. Any other
    /// unreadable file is reported in [`Snapshot::problems`] and counts as absent.
    pub fn load(&self) -> Result<Snapshot, LoadError> {
        let contents = self.contents()?;
        // A directory called `patch.diff` would otherwise make the bundle BUILT, with nothing to
        // check.
        contents.require_change_is_a_file()?;
        let mut reader = ArtifactReader { bundle: self, contents: &contents, problems: Vec::new() };
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
        for remark in brief.iter().filter(|brief| !brief.is_placeholder()).flat_map(Brief::remarks)
        {
            if remark.is_lost {
                let what = format!("line {}: {remark}; nothing is built before", remark.line);
                reader.problem(Artifact::Brief.file_name(), what);
            }
        }
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
    /// Compares the current patch with the one that the gate report is about. Reads the patch.
    pub fn coverage(&self) -> Result<Coverage, LoadError> {
        let has_patch = self.artifacts.contains(Artifact::Patch);
        self.gates
            .as_ref()
            .map_or(Ok(Coverage::Unknown), |gates| coverage(&self.dir, has_patch, gates))
    }

    /// Returns whether the brief is another one than Check began with. Reads the brief.
    pub fn is_brief_edited(&self) -> Result<bool, LoadError> {
        self.gates.as_ref().map_or(Ok(false), |gates| is_brief_edited(&self.dir, gates))
    }

    /// The files that judge the change, relative to the bundle. Set them aside in this order when the
    /// change is replaced.
    ///
    /// The result document is first, so that it cannot be signed off any more. The gate report is
    /// last: until then its digest shows that the remaining files are about another change.
    pub fn verdict_files(&self) -> Vec<Utf8PathBuf> {
        self.verdicts.clone()
    }

    /// Returns true if the bundle has the [error log](Artifact::error_log) of this leaf.
    pub fn has_error_log(&self, leaf: &str) -> bool {
        let name = Artifact::error_log(leaf);
        self.leftovers.iter().any(|leftover| *leftover == name)
    }

    /// The brief, unless it is an unfilled template.
    pub fn authored_brief(&self) -> Option<&Brief> {
        self.brief.as_ref().filter(|brief| brief_fact(Some(brief)) == BriefFact::Authored)
    }
}

/// Compares the current patch with the one that the gate report is about.
pub(crate) fn coverage(
    dir: &Utf8Path,
    has_patch: bool,
    gates: &GateReport,
) -> Result<Coverage, LoadError> {
    let Some(seen) = gates.patch_digest.as_deref() else {
        // The report of a close is older than the patch, so no gate has checked the patch.
        let unseen = has_patch && gates.checked_nothing();
        return Ok(if unseen { Coverage::Changed } else { Coverage::Unknown });
    };
    let now = sha256_within(dir, Artifact::Patch.file_name())?;
    let same = now.is_some_and(|now| now.eq_ignore_ascii_case(seen.trim_start_matches("sha256:")));
    Ok(if same { Coverage::Same } else { Coverage::Changed })
}

/// Returns whether the brief is another one than the gate report names.
pub(crate) fn is_brief_edited(dir: &Utf8Path, gates: &GateReport) -> Result<bool, LoadError> {
    let Some(seen) = gates.brief_digest.as_deref() else { return Ok(false) };
    let now = sha256_within(dir, Artifact::Brief.file_name())?;
    Ok(now.is_none_or(|now| !now.eq_ignore_ascii_case(seen.trim_start_matches("sha256:"))))
}

/// The value of [`Snapshot::verdict_files`].
fn verdicts(contents: &Contents<'_>) -> Vec<Utf8PathBuf> {
    let artifact = |artifact: Artifact| {
        contents.artifacts.contains(artifact).then(|| artifact.file_name().into())
    };
    let logs = contents
        .leftovers
        .iter()
        .filter(|name| name.starts_with(CHECK) && name.ends_with(ERROR_LOG));
    [Artifact::Summary, Artifact::Proposal, Artifact::Review]
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

/// Reads artifacts and collects the problems of those that may be missing.
struct ArtifactReader<'a> {
    bundle: &'a Bundle,
    contents: &'a Contents<'a>,
    problems: Vec<SnapshotProblem>,
}

impl ArtifactReader<'_> {
    /// Reads an artifact that must be UTF-8 if it exists.
    fn text(&self, artifact: Artifact) -> Result<Option<String>, LoadError> {
        let mut bytes = Vec::new();
        if !self.contents.read(artifact, &mut bytes)? {
            return Ok(None);
        }
        contents::text(self.bundle.dir(), artifact, &bytes)?;
        Ok(String::from_utf8(bytes).ok())
    }

    /// Reads an artifact; one that cannot be read is a problem and counts as absent.
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
            self.problem(Artifact::Notes.file_name(), format!("counts as absent: {error}"));
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

fn unreadable(error: &FileReadError) -> String {
    format!("counts as absent: {}", chain(error))
}

#[cfg(test)]
mod tests;
