//! Publishes the result of a leg that ran on another machine.
//!
//! 1. The result has to be of the attempt that the journal names: a late one is refused.
//! 2. The commits come into the target's object store, under a ref that keeps them.
//! 3. The record of the attempt names them.
//! 4. Files that decide no state, then those that do, in the order of the cycle: a driver that dies in between leaves
//!    a bundle as a beat would have left it, and the next one publishes the same files again.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::Evidence;
use pdca_lanes::patch_between;
use pdca_process::{GitCall, GitCallError};
use pdca_state::{Artifact, Bundle, GateReport, sha256_hex};
use serde::Deserialize as _;

use super::files::{bundle_dir, record_path};
use super::{
    ClaimedLeg, FailureClass, FileEntry, GatedTree, GatesLeg, LegFailure, LegName, LegOutcome,
    LegResult, StaleResult,
};
use crate::attempt::Attempt;
use crate::check::verdict;
use crate::checkout::CheckoutError;
use crate::commits::{commit_id, keep_ref};
use crate::run_bundle::{BeatError, Driver};

/// The word of the journal, in place of a role, for a call that another machine counted.
const CALLED_ELSEWHERE: &str = "far";

/// The artifacts that move the state, in the order in which beats publish them.
const MOVING: [Artifact; 3] = [Artifact::Patch, Artifact::GatesJson, Artifact::Review];

/// The most leaf calls that a result may count. No leg makes as many, however often it repeats them.
const MOST_CALLS: u64 = 1_000;

/// The files of a bundle that no step of a leg writes.
const CLOSED: [&str; 3] = ["brief.md", "SUMMARY.md", "seal.json"];

/// Stores the objects of a pack in a repository, completed from the objects that are there.
pub fn unpack(git_dir: &Utf8Path, pack: Vec<u8>) -> Result<(), GitCallError> {
    // `--strict` checks the objects, which come from another machine.
    let args = ["index-pack", "--stdin", "--fix-thin", "--strict"];
    let call = GitCall::isolated(git_dir).args(args).stdin(pack);
    call.run()?.require("store the commits").map(drop)
}

impl ClaimedLeg<'_> {
    /// Publishes a result for which the files `sent` were sent, and returns the number of steps that it stands for.
    pub fn publish(
        self,
        cx: &Driver<'_>,
        sent: &[FileEntry],
        result: LegResult,
    ) -> Result<u32, BeatError> {
        let (bundle, id) = (self.bundle, self.bundle.id());
        self.require_current(cx, &result.name)?;
        let outcome = result.outcome()?;
        let (steps, calls) = match &outcome {
            LegOutcome::Steps { steps, calls } | LegOutcome::Failed { steps, calls, .. } => {
                (*steps, *calls)
            }
            LegOutcome::Gated { .. } => return Err(unusable("it is of a combination")),
            LegOutcome::Interrupted => return Err(BeatError::Interrupted),
        };
        require_plausible(calls)?;
        // Paths come from another machine and are checked before the first effect: `../x` is never
        // written.
        let LegResult { files, contents, head, pack, .. } = result;
        let files = ResultFiles { leg: &self, sent, files: by_path(files)?, contents };
        require_own(&bundle_dir(id), sent, &files.files)?;
        // Commits and record before the patch: a driver that finds a patch looks for its commits.
        files.keep_commits(cx, head.as_deref(), pack)?;
        for _ in 0..calls {
            // Without a limit: they were made.
            cx.run.map_or(Ok(()), |run| run.leaf_called(id, CALLED_ELSEWHERE, None))?;
        }
        files.publish(cx)?;
        // The ledger of the bundle came with the files, past the sum that is kept in memory.
        cx.config.meter.forget();
        if let (Some(run), Some(report)) = (cx.run, bundle.load()?.gates) {
            run.judged(id, report.rows.iter().filter_map(verdict))?;
        }
        // The calls that were set aside are given back with `self`: those that were made are on record by now, and would be
        // counted twice.
        match outcome {
            LegOutcome::Failed { failure, .. } => Err(failed(cx, bundle, failure)),
            LegOutcome::Steps { .. } | LegOutcome::Gated { .. } | LegOutcome::Interrupted => {
                Ok(steps)
            }
        }
    }

    /// Refuses a result of an attempt that is not the journal's, and any result once another driver has the run.
    fn require_current(&self, cx: &Driver<'_>, given: &LegName) -> Result<(), BeatError> {
        let stale = |given: &LegName, expected: &LegName| {
            Err(BeatError::StaleResult(StaleResult {
                given: given.clone(),
                expected: expected.clone(),
            }))
        };
        if *given != self.name {
            return stale(given, &self.name);
        }
        let Some(run) = cx.run else { return Ok(()) };
        run.require_ours()?;
        match run.generation_of(self.bundle.id()) {
            Some(current) if current != self.name.generation() => {
                stale(&self.name, &cx.leg_name(self.bundle.id().as_str(), current)?)
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl LegResult {
    fn outcome(&self) -> Result<LegOutcome, BeatError> {
        let outcome = LegOutcome::deserialize(&self.outcome);
        outcome.map_err(|error| unusable(&format!("its outcome cannot be read: {error}")))
    }

    /// Returns the report over a tree, and keeps the logs of its red rows where those of local gates are.
    pub fn gated(self, cx: &Driver<'_>, leg: &GatesLeg<'_>) -> Result<GateReport, BeatError> {
        if self.name != *leg.name {
            let (given, expected) = (self.name, leg.name.clone());
            return Err(BeatError::StaleResult(StaleResult { given, expected }));
        }
        let mut report = match self.outcome()? {
            LegOutcome::Gated { outcome: GatedTree { report } } => report,
            LegOutcome::Failed { failure, .. } => {
                return Err(BeatError::Elsewhere(Box::new(failure)));
            }
            LegOutcome::Steps { .. } | LegOutcome::Interrupted => {
                return Err(unusable("it is of no combination"));
            }
        };
        let dir = Evidence::of(&cx.config.queue()).of_tree(leg.tree);
        for row in &mut report.rows {
            let Some(log) = row.log.take() else { continue };
            let path = Utf8Path::new(&log);
            let entry = self.files.iter().find(|entry| entry.path == path);
            let bytes = entry.and_then(|entry| self.contents.get(&entry.digest));
            let (Some(bytes), Some(name)) = (bytes, path.file_name()) else { continue };
            let to = dir.join(name);
            let kept = fs_err::create_dir_all(&dir)
                .and_then(|()| pdca_state::files::replace_unsynced(&to, bytes));
            kept.map_err(BeatError::Own)?;
            row.log = Some(to.into_string());
        }
        Ok(report)
    }
}

fn unusable(what: &str) -> BeatError {
    BeatError::Elsewhere(Box::new(LegFailure::unusable(what)))
}

/// Refuses a count of calls that no leg can have made: each is a record that is synced, so a wrong one would keep the
/// driver writing.
// Not compared with the grant of this driver: the leg may have got more from the driver that sent it.
fn require_plausible(calls: u64) -> Result<(), BeatError> {
    if calls > MOST_CALLS {
        return Err(unusable(&format!("it counts {calls} leaf calls")));
    }
    Ok(())
}

/// Gives a failure of another machine the form that it would have had here.
fn failed(cx: &Driver<'_>, bundle: &Bundle, failure: LegFailure) -> BeatError {
    let log = failure.log.as_ref().map(|log| bundle.dir().join(log));
    match (failure.class, log) {
        (FailureClass::NoChange, Some(log)) => BeatError::NoChange { log },
        (FailureClass::IssueCost, log) => match cx.run_cost_reached() {
            Some(reached) => BeatError::Cost(reached),
            None => BeatError::Elsewhere(Box::new(LegFailure { log, ..failure })),
        },
        (_, log) => BeatError::Elsewhere(Box::new(LegFailure { log, ..failure })),
    }
}

fn by_path(files: Vec<FileEntry>) -> Result<BTreeMap<Utf8PathBuf, FileEntry>, BeatError> {
    let mut found = BTreeMap::new();
    for entry in files {
        let is_plain = |part| matches!(part, camino::Utf8Component::Normal(_));
        let is_inside = !entry.path.as_str().is_empty() && entry.path.components().all(is_plain);
        if !is_inside {
            return Err(unusable(&format!("{:?} leads out of the bundle", entry.path)));
        }
        found.insert(entry.path.clone(), entry);
    }
    Ok(found)
}

/// Refuses a result that changes what only this side writes: a brief, a summary with its sign-off, a seal.
fn require_own(
    root: &Utf8Path,
    sent: &[FileEntry],
    came: &BTreeMap<Utf8PathBuf, FileEntry>,
) -> Result<(), BeatError> {
    for name in CLOSED {
        let path = root.join(name);
        let sent = sent.iter().find(|entry| entry.path == path).map(|entry| &entry.digest);
        if sent != came.get(&path).map(|entry| &entry.digest) {
            return Err(unusable(&format!("it changes {path}, which no leg writes")));
        }
    }
    Ok(())
}

/// The files of a result.
struct ResultFiles<'r> {
    leg: &'r ClaimedLeg<'r>,
    sent: &'r [FileEntry],
    files: BTreeMap<Utf8PathBuf, FileEntry>,
    contents: BTreeMap<String, Vec<u8>>,
}

impl ResultFiles<'_> {
    fn record_path(&self, of: &str) -> Utf8PathBuf {
        record_path(of, self.leg.bundle.id())
    }

    /// Returns a file of the result; what did not travel back is what was sent.
    fn content(&self, path: &Utf8Path) -> Result<Option<&[u8]>, BeatError> {
        let Some(entry) = self.files.get(path) else { return Ok(None) };
        // The digest is a claim of the other machine, so the bytes are hashed again here.
        let found = self.contents.get(&entry.digest);
        let found = found.filter(|bytes| sha256_hex(bytes) == entry.digest);
        let missing = || unusable(&format!("{path} is not part of it"));
        found.map(|bytes| Some(bytes.as_slice())).ok_or_else(missing)
    }

    /// Returns the record of the attempt, which must be of the base that was sent.
    fn attempt(&self) -> Result<Option<Attempt>, BeatError> {
        let Some(bytes) = self.content(&self.record_path("attempts"))? else { return Ok(None) };
        let attempt = serde_json::from_slice(bytes);
        attempt.map(Some).map_err(|error| unusable(&format!("its attempt cannot be read: {error}")))
    }

    fn publish(&self, cx: &Driver<'_>) -> Result<(), BeatError> {
        let bundle = self.leg.bundle;
        let root = bundle_dir(bundle.id());
        let of_bundle = |path: &Utf8Path| path.strip_prefix(&root).map(ToOwned::to_owned).ok();
        let moving = |path: &Utf8Path| {
            MOVING.iter().position(|artifact| artifact.file_name() == path.as_str())
        };
        // Verdicts over an earlier patch go first: under another name they are part of the result.
        for sent in self.sent {
            let Some(path) = of_bundle(&sent.path) else { continue };
            if !self.files.contains_key(&sent.path) {
                let remove = || remove(&bundle.dir().join(&path));
                cx.effects.perform("leg-removed", remove).map_err(BeatError::Own)?;
            }
        }
        let mut ordered: Vec<(Option<usize>, Utf8PathBuf, &FileEntry)> = Vec::new();
        for (path, entry) in &self.files {
            let Some(path) = of_bundle(path) else { continue };
            ordered.push((moving(&path), path, entry));
        }
        // `None` sorts before `Some`, so files that move no state come first.
        ordered.sort_by_key(|(moves, path, _)| (*moves, path.clone()));
        for (moves, path, entry) in ordered {
            let Some(bytes) = self.content(&entry.path)? else { continue };
            // Publishing it again would change its times and announce an effect that did nothing.
            if is_there(&bundle.dir().join(&path), &entry.digest) {
                continue;
            }
            if let Some(at) = moves {
                cx.publish(bundle, MOVING[at], bytes)?;
            } else {
                let write = || bundle.publish_file(&path, bytes);
                cx.effects.perform("leg-file", write)?;
            }
        }
        let notes = self.record_path("attempt-notes");
        if let Some(bytes) = self.content(&notes)? {
            let to = cx.config.dirs.root.join(&notes);
            let write = || {
                fs_err::create_dir_all(to.parent().unwrap_or(&to))?;
                pdca_state::files::replace(&to, bytes)
            };
            cx.effects.perform("session", write).map_err(BeatError::Own)?;
        }
        Ok(())
    }

    /// Takes the commits of a result into the target's object store and records them.
    fn keep_commits(
        &self,
        cx: &Driver<'_>,
        head: Option<&str>,
        pack: Option<Vec<u8>>,
    ) -> Result<(), BeatError> {
        let id = self.leg.bundle.id();
        let attempts = cx.config.attempts();
        let known = attempts.load(id).map_err(CheckoutError::Record)?;
        let Some(came) = self.attempt()? else {
            // The builder failed for good, and its next attempt begins at the tip of the branch.
            return Ok(attempts.remove(id).map_err(CheckoutError::Record)?);
        };
        let Some(known) = known else {
            return Err(unusable("no attempt is under way here"));
        };
        let same = |attempt: &Attempt| {
            (
                attempt.base.clone(),
                attempt.target.clone(),
                attempt.branch.clone(),
                attempt.iterations,
            )
        };
        // A record of another base would have the patch judged on a commit that the driver never chose.
        if same(&came) != same(&known) {
            return Err(unusable("it is of another base"));
        }
        if let (Some(head), Some(pack), Some(base)) = (head, pack, self.leg.base()) {
            let dir = base.common_dir();
            let take = || unpack(dir, pack);
            let taken = cx.effects.perform("take-in", take);
            taken.map_err(|error| unusable(&pdca_state::chain(&error)))?;
            // Computed here, from objects whose ids were computed here: that a patch is the difference of its commits is a
            // claim of the other machine, and the patch is what a person is shown.
            let empty = cx.config.dirs.private().join("empty");
            for change in came.changes.iter().filter(|change| !known.changes.contains(change)) {
                let made = patch_between(dir, &empty, (&known.base, &change.head));
                let made = made.map_err(|error| unusable(&pdca_state::chain(&error)))?;
                if sha256_hex(&made) != change.patch {
                    let head = &change.head;
                    return Err(unusable(&format!(
                        "its patch is not the difference of {head} to the base"
                    )));
                }
            }
            let store = cx.config.store_of(&known.target)?;
            keep_ref(cx, &store, id, (commit_id(&known.base)?, commit_id(head)?))?;
        }
        let note = || attempts.store(id, &came);
        Ok(cx.effects.perform("attempt", note).map_err(CheckoutError::Record)?)
    }
}

fn is_there(path: &Utf8Path, digest: &str) -> bool {
    fs_err::read(path).is_ok_and(|bytes| sha256_hex(&bytes) == digest)
}

fn remove(path: &Utf8Path) -> std::io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, digest: &str) -> FileEntry {
        let path = Utf8Path::new("results/issue_7").join(name);
        FileEntry { path, digest: digest.to_owned(), executable: false }
    }

    #[test]
    fn h31_a_result_that_changes_a_brief_a_summary_or_a_seal_is_refused() {
        let sent = [entry("brief.md", "b")];
        let came = |files: &[FileEntry]| {
            let files = by_path(files.to_vec()).unwrap();
            require_own("results/issue_7".into(), &sent, &files)
        };
        let patch = entry("patch.diff", "p");
        assert!(came(&[sent[0].clone(), patch.clone()]).is_ok());
        for bad in [
            vec![patch.clone()],
            vec![entry("brief.md", "another"), patch.clone()],
            vec![sent[0].clone(), entry("SUMMARY.md", "s")],
            vec![sent[0].clone(), entry("seal.json", "s")],
        ] {
            assert!(matches!(came(&bad), Err(BeatError::Elsewhere(_))), "{bad:?}");
        }
        assert!(by_path(vec![entry("../issue_8/brief.md", "x")]).is_err());
    }

    #[test]
    fn a_result_that_counts_more_calls_than_a_leg_can_make_is_refused() {
        assert!(require_plausible(MOST_CALLS).is_ok());
        assert!(matches!(require_plausible(u64::MAX), Err(BeatError::Elsewhere(_))));
    }
}
