//! The failure of a leg on another machine, and what follows from it here.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::{BeatEnding, Cause};
use serde::{Deserialize, Serialize};

use crate::calls::{CostCap, CostReached};
use crate::failures::blamed;
use crate::run_bundle::BeatError;

/// The failure of a leg on another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{said}")]
pub struct LegFailure {
    pub said: String,
    pub class: FailureClass,
    /// The beat that is to blame, and its reason.
    pub(crate) beat: Option<(String, String)>,
    /// The error log in the bundle. Relative on its way, absolute here.
    pub log: Option<Utf8PathBuf>,
}

/// The class of a failure, which decides what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// The bundle, its leaves or its gates failed.
    Bundle,
    NoChange,
    /// The machine failed. No attempt is charged.
    #[serde(rename = "host")]
    Machine,
    /// The machine's disk is full. No attempt is charged.
    Full,
    /// An agent is not signed in on the machine. No attempt is charged.
    SignedOut,
    /// A limit on time or memory that the machine sets.
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

impl LegFailure {
    /// Makes a failure that no beat is to blame for.
    pub fn new(class: FailureClass, said: impl Into<String>) -> Self {
        Self { said: said.into(), class, beat: None, log: None }
    }

    /// Makes the failure of a result that cannot be used.
    pub(super) fn unusable(what: &str) -> Self {
        Self::new(FailureClass::Machine, format!("the result of a leg cannot be used: {what}"))
    }

    /// Describes an error of a beat for its way back.
    pub fn of(error: &BeatError, bundle_dir: &Utf8Path) -> Self {
        let found = blamed(error);
        let mut log = found.as_ref().and_then(|(_, _, log)| log.clone());
        if let BeatError::Leaf { log: of_leaf, .. } = error {
            log.get_or_insert_with(|| of_leaf.clone());
        }
        let class = match error {
            BeatError::NoChange { .. } => FailureClass::NoChange,
            // The workspace is one of the machine's own, so a file that cannot be written there is its disk.
            BeatError::Checkout(_)
            | BeatError::Own(_)
            | BeatError::Admission(_)
            | BeatError::Write(_)
            | BeatError::Archive(_)
            | BeatError::Record(_)
            | BeatError::Place(_)
            | BeatError::StaleResult(_)
            | BeatError::Panicked { .. } => FailureClass::Machine,
            BeatError::Leaf { source, .. } if source.is_signed_out() => FailureClass::SignedOut,
            BeatError::Leaf { source, .. } if met_full_disk(source) => FailureClass::Full,
            BeatError::Capped { .. } => FailureClass::Calls,
            BeatError::Cost(CostReached { cap: CostCap::Issue, .. }) => FailureClass::IssueCost,
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
            | BeatError::Elsewhere(_) => FailureClass::Bundle,
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
            FailureClass::NoChange => BeatEnding::NoChange,
            FailureClass::Machine | FailureClass::Full | FailureClass::SignedOut => {
                BeatEnding::Interrupted { cause: Cause::Host }
            }
            FailureClass::Bundle
            | FailureClass::Cap
            | FailureClass::Calls
            | FailureClass::IssueCost => BeatEnding::Failed { what: self.said.clone() },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_means_the_same_after_its_way_back() {
        let dir = Utf8Path::new("/there/results/issue_7");
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
            let failure = LegFailure::of(&error, dir);
            let sent = serde_json::to_string(&failure).unwrap();
            let failure: LegFailure = serde_json::from_str(&sent).unwrap();
            assert_eq!(failure.ending(), ending, "{error}");
            assert_eq!(failure.blamed().map(|(beat, ..)| beat), beat, "{error}");
        }
        let failure = LegFailure::of(&BeatError::NoChange { log }, dir);
        assert_eq!(failure.log.as_deref(), Some("errors/builder.log".into()));
    }
}
