//! The outcome of an attempt to resolve a conflict, and the resolutions that are on record.

use std::collections::BTreeSet;
use std::io;

use pdca_journal::Effects;
use pdca_state::{Artifact, BundleId, State};

use crate::QueueWorkspace;

use super::attempts::{BootMoment, ConflictDir, ConflictEnd, ConflictRecord, Due};
use super::state::{ConflictError, ConflictOutcome, ConflictReport};

/// The outcome of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum ResolverOutcome {
    Resolved {
        /// The change on the new base.
        patch: Vec<u8>,
        /// The resolver's notes.
        notes: Option<Vec<u8>>,
    },
    /// Nothing is left of the change: the branch has its effect.
    Empty,
    /// It failed, and counts as an attempt.
    Failed {
        /// One sentence.
        what: String,
        log: String,
    },
}

/// Records the outcome of an attempt of the resolver `by`: its files first, then the record that relies on them.
pub fn conclude_attempt(
    effects: &dyn Effects,
    file: &ConflictDir,
    record: &mut ConflictRecord,
    outcome: ResolverOutcome,
    by: &str,
    now: &BootMoment,
) -> Result<(), ConflictError> {
    let write = |name: &str, bytes: &[u8]| {
        let written = effects.perform("resolution", || file.write(name, bytes));
        written.map_err(|source| unusable(file, source))
    };
    match outcome {
        ResolverOutcome::Failed { what, log } => {
            let name = format!("attempt-{}.log", record.failures.len() + 1);
            write(&name, format!("{what}\n\n{log}").as_bytes())?;
            record.fail(what, file.dir().join(name), now);
        }
        ResolverOutcome::Empty => {
            record.close(now);
            let why = format!(
                "{}; the resolver left nothing of it: {} has its effect",
                record.said, record.branch
            );
            record.end = Some(ConflictEnd::Skipped { why, tip: record.tip.clone() });
        }
        ResolverOutcome::Resolved { patch, notes } => {
            record.close(now);
            write(Artifact::Patch.file_name(), &patch)?;
            let name = Artifact::BuildNotes.file_name();
            match notes {
                Some(notes) => write(name, &notes)?,
                // An attempt that died at this point may have left notes.
                None => file.remove(name).map_err(|source| unusable(file, source))?,
            }
            record.end = Some(ConflictEnd::Resolved {
                attempt: record.attempts,
                base: record.tip.clone(),
                by: by.to_owned(),
                iteration: None,
            });
        }
    }
    keep_conflict(effects, file, record, "conflict-outcome")?;
    // Last: the record needs the job no more, and before it the job is the only copy of the answer.
    let cleared = effects.perform("job-done", || file.clear_jobs());
    cleared.map_err(|source| unusable(file, source))
}

/// Stores the record of a conflict as the effect `name`.
pub fn keep_conflict(
    effects: &dyn Effects,
    file: &ConflictDir,
    record: &ConflictRecord,
    name: &'static str,
) -> Result<(), ConflictError> {
    let kept = effects.perform(name, || file.store(record));
    kept.map_err(|source| unusable(file, source))
}

fn unusable(file: &ConflictDir, source: io::Error) -> ConflictError {
    ConflictError::Record { dir: file.dir().to_owned(), source }
}

/// Returns the report of a record whose last attempt has just ended.
pub fn report_of(id: &BundleId, record: &ConflictRecord) -> ConflictReport {
    let end = match (&record.end, record.failures.last()) {
        (Some(ConflictEnd::Resolved { by, .. }), _) => ConflictOutcome::Resolved { by: by.clone() },
        (Some(ConflictEnd::Skipped { why, .. }), _) => {
            ConflictOutcome::Skipped { why: why.clone() }
        }
        (Some(ConflictEnd::Blocked { evidence }), _) => {
            ConflictOutcome::Blocked { evidence: evidence.clone(), new: true }
        }
        (None, Some(last)) => {
            let (what, log) = (last.what.clone(), last.log.clone());
            ConflictOutcome::Failed { what, log, due: Due::Now }
        }
        (None, None) => ConflictOutcome::Due,
    };
    ConflictReport {
        id: id.clone(),
        said: Some(record.said.clone()),
        attempts: record.attempts,
        came: end,
    }
}

/// Finds the resolution that is the attempt after this many archived ones.
pub fn resolution_for(
    workspace: &QueueWorkspace,
    id: &BundleId,
    iterations: u32,
) -> io::Result<Option<(ConflictDir, ConflictRecord)>> {
    let is_it = |case: &ConflictRecord| match &case.end {
        Some(ConflictEnd::Resolved { iteration, .. }) => *iteration == Some(iterations),
        Some(ConflictEnd::Skipped { .. } | ConflictEnd::Blocked { .. }) | None => false,
    };
    Ok(ConflictDir::all(workspace, id)?.into_iter().find(|(_, case)| is_it(case)))
}

/// Describes the conflict that the attempt after this many archived ones resolved, for the person who signs off.
pub fn resolution_sentence(
    workspace: &QueueWorkspace,
    id: &BundleId,
    iterations: u32,
) -> io::Result<Option<String>> {
    let found = resolution_for(workspace, id, iterations)?;
    Ok(found.and_then(|(_, case)| case.resolution()))
}

/// Returns the bundles, of those named or of all, whose resolution is adopted and not at its sign-off yet. One
/// that is named may be there already.
pub fn pending_resolutions(
    workspace: &QueueWorkspace,
    named: &BTreeSet<BundleId>,
) -> Result<Vec<ConflictReport>, ConflictError> {
    let mut found = Vec::new();
    let conflicts = workspace.dirs.private().join("conflicts");
    for bundle in workspace.dirs.bundles.list()? {
        let id = bundle.id();
        let has_case = conflicts.join(id.dir_name()).is_dir();
        if !has_case || !(named.is_empty() || named.contains(id)) {
            continue;
        }
        let snapshot = bundle.load()?;
        let is_under_way = match snapshot.state {
            State::Iterate(_) | State::Planned | State::Built | State::Checked => true,
            State::AwaitingSignoff => !named.is_empty(),
            State::Unplanned | State::Resolved | State::Complete | State::Discontinued => false,
        };
        let failed = |source| ConflictError::Record { dir: conflicts.join(id.dir_name()), source };
        let case = resolution_for(workspace, id, snapshot.iterations).map_err(failed)?;
        if let (true, Some((_, case))) = (is_under_way, case)
            && let Some(ConflictEnd::Resolved { by, .. }) = case.end
        {
            let (said, attempts) = (Some(case.said), case.attempts);
            found.push(ConflictReport {
                id: id.clone(),
                said,
                attempts,
                came: ConflictOutcome::Resolved { by },
            });
        }
    }
    Ok(found)
}

impl ConflictRecord {
    /// Returns the commit that the resolution is based on, if there is one.
    pub fn resolved_on(&self) -> Option<&str> {
        match &self.end {
            Some(ConflictEnd::Resolved { base, .. }) => Some(base),
            Some(ConflictEnd::Skipped { .. } | ConflictEnd::Blocked { .. }) | None => None,
        }
    }

    /// Describes the conflict and its resolution, if there is one.
    pub fn resolution(&self) -> Option<String> {
        let Some(ConflictEnd::Resolved { attempt, base, by, .. }) = &self.end else { return None };
        let (said, branch) = (&self.said, &self.branch);
        Some(format!("{said}; resolved on {branch} at {base:.12} by {by}, attempt {attempt}"))
    }
}
