//! Bands on other machines: what travels beside the job, and what comes back.
//!
//! The driver fixes the base of an attempt, claims the bundle for a host under a generation, and sends one *leg*: the
//! steps Build, Gate and Review of one attempt. The host's runner carries them out with the same beats as a local lane,
//! in a workspace made of the files that were sent. The driver fetches the files and commits, and publishes them here in
//! the order of the cycle. Everything between two legs (archiving, folding, the summary) is carried out here.
//!
//! Killed anywhere, the next driver finds the claim in its journal and the job under its name on the host.

mod apply;
mod combination;
mod executor;
mod fleet;
mod follow;
mod runner;
mod stage;

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_exec::JobOutcome;
use pdca_journal::{BeatEnding, Cause};
use pdca_leaves::Instructions;
use pdca_state::files;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

use crate::authorship::Author;
use crate::calls::{CostCap, CostReached};
use crate::failures::blamed;
use crate::run_bundle::BeatError;
use crate::schedule::Schedule;

pub(crate) use combination::{HostGate, joint_environment};
pub use executor::HostExecutor;
pub(crate) use fleet::PoolSlot;
pub use fleet::{Fleet, FleetHost};
pub use runner::{HostMachine, run_job};
pub use stage::repository_name;

/// The part of the driver's configuration that a job on a host needs beside its terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FarSettings {
    /// Distinguishes the driver's workspace from others on the host.
    pub(crate) workspace: String,
    pub(crate) run: String,
    pub(crate) target: Option<FarTarget>,
    pub(crate) default_branch: Option<String>,
    pub(crate) author: Option<Author>,
    /// The date of commits, where it does not come from a clock.
    pub(crate) fixed_date: Option<i64>,
    /// The driver's clock when the job was staged, in seconds since 1970.
    pub(crate) sent_at: i64,
    pub(crate) schedule: Schedule,
    /// The number of leaf calls that the job may make.
    pub(crate) calls: Option<u64>,
    /// Those that the run made before.
    pub(crate) called: u64,
    /// The instructions of the roles that the job may call.
    #[serde(default)]
    pub(crate) instructions: BTreeMap<String, Instructions>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarTarget {
    pub(crate) name: String,
    pub(crate) repo: Option<String>,
    pub(crate) branch: Option<String>,
    /// The repository on the host.
    pub(crate) repository: String,
}

/// The outcome of a leg, as the runner publishes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum FarOutcome {
    /// The steps were carried out until one that is not the host's.
    Band {
        steps: u32,
        calls: u64,
    },
    Failed {
        failure: FarFailure,
        steps: u32,
        calls: u64,
    },
    /// The rows over a combination. Logs are named relative to the workspace of the job.
    Gated {
        outcome: JobOutcome,
    },
    /// The runner was told to end.
    Interrupted,
}

fn unusable(what: &str) -> BeatError {
    let said = format!("the result of a host cannot be used: {what}");
    BeatError::Far(Box::new(FarFailure { said, class: FarClass::Host, beat: None, log: None }))
}

/// The failure of a job on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{said}")]
pub struct FarFailure {
    pub said: String,
    pub class: FarClass,
    /// The beat that is to blame, and its reason.
    pub(crate) beat: Option<(String, String)>,
    /// The error log in the bundle. Relative on its way, absolute here.
    pub log: Option<Utf8PathBuf>,
}

/// The class of a failure, which decides what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FarClass {
    /// The bundle, its leaves or its gates failed.
    Bundle,
    NoChange,
    /// The host failed, which is charged to nobody.
    Host,
    /// The host's disk is full, which is charged to nobody.
    Full,
    /// An agent is not signed in on the host, which is charged to nobody.
    SignedOut,
    /// A limit on time or memory, of the host's engine.
    Cap,
    Calls,
    IssueCost,
}

/// Returns whether a leaf failed and its last words, or the error itself, are those of a full disk. Another machine may have
/// room, so its attempt is not spent; the words alone change nothing where a leaf came to its end.
fn met_full_disk(error: &pdca_leaves::LeafError) -> bool {
    const FULL: &str = "No space left on device";
    let log = error.error_log().unwrap_or_default();
    let last = log.lines().rev().take(20).any(|line| line.contains(FULL));
    last || pdca_state::chain(error).contains(FULL)
}

impl FarFailure {
    /// Describes an error of a beat for its way back.
    pub(crate) fn of(error: &BeatError, bundle_dir: &camino::Utf8Path) -> Self {
        let found = blamed(error);
        let mut log = found.as_ref().and_then(|(_, _, log)| log.clone());
        if let BeatError::Leaf { log: of_leaf, .. } = error {
            log.get_or_insert_with(|| of_leaf.clone());
        }
        let class = match error {
            BeatError::NoChange { .. } => FarClass::NoChange,
            // The workspace is one of the host's own, so a file that cannot be written there is its disk.
            BeatError::Checkout(_)
            | BeatError::Own(_)
            | BeatError::Admission(_)
            | BeatError::Write(_)
            | BeatError::Archive(_)
            | BeatError::Record(_)
            | BeatError::Executor(_)
            | BeatError::StaleResult(_)
            | BeatError::Panicked { .. } => FarClass::Host,
            BeatError::Leaf { source, .. } if source.is_signed_out() => FarClass::SignedOut,
            BeatError::Leaf { source, .. } if met_full_disk(source) => FarClass::Full,
            BeatError::Capped { .. } => FarClass::Calls,
            BeatError::Cost(CostReached { cap: CostCap::Issue, .. }) => FarClass::IssueCost,
            BeatError::Interrupted
            | BeatError::Load(_)
            | BeatError::Target(_)
            | BeatError::Dependency { .. }
            | BeatError::Base(_)
            | BeatError::Gates(_)
            | BeatError::Leaf { .. }
            | BeatError::Nested { .. }
            | BeatError::Patch { .. }
            | BeatError::Breach { .. }
            | BeatError::EmptyPatch
            | BeatError::Stale { .. }
            | BeatError::Signed
            | BeatError::NoProgress { .. }
            | BeatError::Cost(CostReached { cap: CostCap::Run, .. })
            | BeatError::Blocked { .. }
            | BeatError::Far(_) => FarClass::Bundle,
        };
        let relative = |log: Utf8PathBuf| log.strip_prefix(bundle_dir).map(ToOwned::to_owned).ok();
        Self {
            said: pdca_state::chain(error),
            class,
            beat: found.map(|(beat, why, _)| (beat.to_owned(), why)),
            log: log.and_then(relative),
        }
    }

    pub(crate) fn ending(&self) -> BeatEnding {
        match self.class {
            FarClass::NoChange => BeatEnding::NoChange,
            FarClass::Host | FarClass::Full | FarClass::SignedOut => {
                BeatEnding::Interrupted { cause: Cause::Host }
            }
            FarClass::Bundle | FarClass::Cap | FarClass::Calls | FarClass::IssueCost => {
                BeatEnding::Failed { what: self.said.clone() }
            }
        }
    }

    /// Returns the beat to blame, the reason and the log.
    pub(crate) fn blamed(&self) -> Option<(&'static str, String, Option<Utf8PathBuf>)> {
        let (beat, why) = self.beat.as_ref()?;
        // The word comes from another machine, so only known ones are taken over.
        let known = ["builder", "reviewer", "patch"].into_iter().find(|known| known == beat);
        Some((known.unwrap_or("leaf"), why.clone(), self.log.clone()))
    }
}

/// The leaf calls that a job on a host may make, counted by the job itself.
///
/// The count is on disk before a call starts, so that a runner that takes over a job goes on with it.
#[derive(Debug)]
pub struct CallGrant {
    /// The number of calls that the run made before.
    before: u64,
    limit: Option<u64>,
    called: Mutex<u64>,
    file: Utf8PathBuf,
}

impl CallGrant {
    /// Goes on from the count in `file`, which may not exist.
    pub(crate) fn open(
        before: u64,
        limit: Option<u64>,
        file: Utf8PathBuf,
    ) -> std::io::Result<Self> {
        let called = match files::read_bounded(&file, 64).map_err(std::io::Error::other)? {
            None => 0,
            Some(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let bad = |error| std::io::Error::other(format!("{file} is no count: {error}"));
                text.trim().parse().map_err(bad)?
            }
        };
        Ok(Self { before, limit, called: Mutex::new(called), file })
    }

    /// Takes one call.
    pub(crate) fn take(&self) -> Result<(), BeatError> {
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        if self.limit.is_some_and(|limit| *called >= limit) {
            return Err(BeatError::Capped { called: self.before + *called });
        }
        let next = *called + 1;
        // On disk before the call starts: a runner that takes over must not get the calls a second
        // time.
        files::replace(&self.file, format!("{next}\n").as_bytes()).map_err(BeatError::Own)?;
        *called = next;
        Ok(())
    }

    pub(crate) fn called(&self) -> u64 {
        *self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_used_up_call_by_call_also_over_restarts_and_a_refused_call_is_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let file = Utf8PathBuf::from_path_buf(dir.path().join("calls")).unwrap();
        let open = |limit| CallGrant::open(5, limit, file.clone()).unwrap();
        assert!(open(Some(2)).take().is_ok());
        let grant = open(Some(2));
        assert!(grant.take().is_ok());
        for grant in [grant, open(Some(2))] {
            assert!(matches!(grant.take(), Err(BeatError::Capped { called: 7 })));
            assert_eq!(grant.called(), 2);
        }
        assert!(open(None).take().is_ok());
        fs_err::write(&file, "torn").unwrap();
        assert!(CallGrant::open(5, None, file).is_err());
    }

    #[test]
    fn a_failure_means_the_same_after_its_way_back() {
        let dir = camino::Utf8Path::new("/far/results/issue_7");
        let io = || std::io::Error::other("x");
        let log = dir.join("errors/builder.log");
        let table = [
            (BeatError::NoChange { log: log.clone() }, BeatEnding::NoChange, Some("builder")),
            (BeatError::Own(io()), BeatEnding::Interrupted { cause: Cause::Host }, None),
            (
                BeatError::EmptyPatch,
                BeatEnding::Failed { what: "patch.diff changes nothing".to_owned() },
                Some("patch"),
            ),
        ];
        for (error, ending, beat) in table {
            let failure = FarFailure::of(&error, dir);
            let sent = serde_json::to_string(&failure).unwrap();
            let failure: FarFailure = serde_json::from_str(&sent).unwrap();
            assert_eq!(failure.ending(), ending, "{error}");
            assert_eq!(failure.blamed().map(|(beat, ..)| beat), beat, "{error}");
        }
        let failure = FarFailure::of(&BeatError::NoChange { log }, dir);
        assert_eq!(failure.log.as_deref(), Some("errors/builder.log".into()));
    }
}
