//! Legs: the pieces of work that a [`Place`](crate::place::Place) runs.
//!
//! A leg is Build, Gate and Review of one attempt at a bundle, or the gates over one tree. Everything else is done on
//! the driver's machine: it archives, folds, writes the summary, and integrates.
//!
//! On the driver's machine an attempt is carried out in the bundle itself. A place that has another disk goes through
//! four steps:
//!
//! 1. [`Driver::claim_leg`] fixes the base of the attempt and claims the bundle for the place under a generation. The
//!    journal has the claim before anything is sent, so the next driver knows where to look.
//! 2. The place sends the files of the leg ([`ClaimedLeg::files`]) and a [`SentLeg`], which has the configuration that
//!    decides the result.
//! 3. There, [`Driver::run_leg`] carries the steps out with the beats that a local lane has.
//! 4. [`ClaimedLeg::publish`] checks the [`LegResult`] that came back, and publishes it in the order of the cycle.
//!
//! ```
//! use pdca_driver::Terms;
//! use pdca_driver::leg::{LegWork, SentLeg};
//!
//! let work = LegWork::Attempt { bundle: "7".parse()? };
//! let leg = SentLeg { name: "pdca-01JD-7-g1".parse()?, work, terms: Terms::default() };
//! let sent = serde_json::to_string(&leg)?;
//! assert_eq!(serde_json::from_str::<SentLeg>(&sent)?, leg);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - What travels is a value: it can be serialized, sent and read back without loss, and is validated on arrival like
//!   configuration that a person wrote.
//! - A result counts only under the name that was asked for. A name has a generation, so a late result of an abandoned
//!   attempt is refused.
//! - A leg contains no credential.

mod claim;
mod failure;
mod files;
mod grant;
mod name;
mod publish;

use std::collections::BTreeMap;

use camino::Utf8Path;
use pdca_journal::Generation;
use pdca_state::{Bundle, BundleId, GateReport, Snapshot};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::config::TargetSpec;
use crate::run_bundle::{BeatError, Driver};
use crate::step::Step;
use crate::terms::Terms;

pub use claim::{Claim, ClaimedLeg, LegBase};
pub use failure::{FailureClass, LegFailure};
pub use files::{AttemptCommits, FileEntry, LegFile, attempt_commits, files_below, result_files};
pub use grant::CallGrant;
pub use name::{LegName, LegNameError};
pub use publish::unpack;

/// A leg to run.
#[derive(Debug, Clone, Copy)]
pub enum Leg<'a> {
    Attempt(AttemptLeg<'a>),
    Gates(GatesLeg<'a>),
}

/// Build, Gate and Review of one attempt at a bundle, from wherever its files stand.
#[derive(Debug, Clone, Copy)]
pub struct AttemptLeg<'a> {
    pub bundle: &'a Bundle,
    /// The bundle's files when the leg begins.
    pub snapshot: &'a Snapshot,
    /// The step that is due: Build, Gate or Review.
    pub next: Step,
    /// The generation whose result was published before. A further leg of the bundle needs a later one.
    pub published: Option<Generation>,
}

/// The gates over one tree that combines changes.
#[derive(Debug, Clone, Copy)]
pub struct GatesLeg<'a> {
    pub name: &'a LegName,
    pub target: &'a TargetSpec,
    /// The branch that the combination is to land on.
    pub branch: &'a str,
    /// The commit to check out.
    pub commit: &'a str,
    /// The commit's tree, which the verdict is about.
    pub tree: &'a str,
    /// The lane of the checkout on the machine where the gates run.
    pub slot: u32,
    /// The directory for the verdicts of the rows. A repeated run has another one.
    pub dir: &'a Utf8Path,
}

/// The end of a leg.
#[derive(Debug)]
pub enum LegEnd {
    /// One step was carried out in the bundle, and the driver tells of it.
    Step,
    /// The result of several steps was published in the bundle, and their events were told.
    Published { generation: Generation, steps: u32 },
    /// The gates ran to their end.
    Gated { report: GateReport },
}

/// A leg as it is sent to another machine. Directories, programs and credentials come from there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentLeg {
    /// A result counts only if it carries this name.
    pub name: LegName,
    pub work: LegWork,
    /// The configuration to run under.
    pub terms: Terms,
}

/// The kinds of legs.
// The names on the wire are those of its first version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LegWork {
    #[serde(rename = "band")]
    Attempt { bundle: BundleId },
    #[serde(rename = "combination")]
    Gates {
        /// The target repository, by its configured name.
        target: String,
        branch: String,
        commit: String,
        tree: String,
    },
}

/// The result of a leg as it came from another machine.
#[derive(Debug, Clone)]
pub struct LegResult {
    pub name: LegName,
    /// A [`LegOutcome`] that was not read yet.
    pub outcome: serde_json::Value,
    /// The files that the result consists of, relative to the workspace.
    pub files: Vec<FileEntry>,
    /// The contents of files by digest: those that came back, and those that were sent.
    pub contents: BTreeMap<String, Vec<u8>>,
    /// The head of the new commits, which are in the pack.
    pub head: Option<String>,
    pub pack: Option<Vec<u8>>,
}

/// The outcome of a leg, as the machine that ran it tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LegOutcome {
    /// The steps were carried out until one that is not of a leg.
    #[serde(rename = "band")]
    Steps {
        steps: u32,
        calls: u64,
    },
    Failed {
        failure: LegFailure,
        steps: u32,
        calls: u64,
    },
    /// The rows over a tree. Logs are named relative to the workspace of the leg.
    Gated {
        outcome: GatedTree,
    },
    /// The leg was told to end.
    Interrupted,
}

/// The report over a tree, as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "gated")]
pub struct GatedTree {
    #[serde(deserialize_with = "validated")]
    pub report: GateReport,
}

/// The result belongs to another attempt than the requested one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("stale result: expected {expected}, got {given}")]
pub struct StaleResult {
    pub given: LegName,
    pub expected: LegName,
}

/// Deserializes a report through the parser of `check-gates.json`, which rejects reports that contradict themselves.
fn validated<'de, D: Deserializer<'de>>(from: D) -> Result<GateReport, D::Error> {
    // One parser for both, so that another machine cannot send a report that a file could not hold.
    let value = serde_json::Value::deserialize(from)?;
    GateReport::parse(value.to_string().as_bytes()).map_err(D::Error::custom)
}

/// Returns the name of a leg of a run.
pub(crate) fn leg_name(run: &str, unit: &str, generation: u32) -> Result<LegName, BeatError> {
    // Outside a recorded run the name has a hyphen, which separates the parts of a leg's name.
    let generation = Generation::new(generation).unwrap_or(Generation::FIRST);
    let name = LegName::new(&run.replace('-', "."), unit, generation);
    name.map_err(|error| BeatError::Place(error.into()))
}

impl Driver<'_> {
    /// Returns the name of an attempt in this run.
    pub(crate) fn leg_name(
        &self,
        unit: &str,
        generation: Generation,
    ) -> Result<LegName, BeatError> {
        leg_name(&self.config.run, unit, generation.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn the_outcome_of_a_leg_is_read_back_as_it_was() {
        let report = GateReport::for_close("combined".to_owned());
        let outcome = GatedTree { report };
        for sent in [LegOutcome::Steps { steps: 4, calls: 2 }, LegOutcome::Gated { outcome }] {
            let text = serde_json::to_string(&sent).unwrap();
            assert_eq!(serde_json::from_str::<LegOutcome>(&text).unwrap(), sent);
        }
    }

    #[test]
    fn legs_and_outcomes_have_the_names_of_the_first_version_on_the_wire() {
        let work = LegWork::Attempt { bundle: "7".parse().unwrap() };
        assert_eq!(serde_json::to_string(&work).unwrap(), r#"{"kind":"band","bundle":"7"}"#);
        let steps = LegOutcome::Steps { steps: 1, calls: 2 };
        let steps = serde_json::to_string(&steps).unwrap();
        assert_eq!(steps, r#"{"kind":"band","steps":1,"calls":2}"#);
        let outcome = GatedTree { report: GateReport::for_close("combined".to_owned()) };
        let gated = serde_json::to_value(LegOutcome::Gated { outcome }).unwrap();
        assert_eq!((&gated["kind"], &gated["outcome"]["kind"]), (&"gated".into(), &"gated".into()));
        assert!(gated["outcome"]["report"]["rows"].is_array(), "{gated}");
    }

    #[test]
    fn a_report_that_says_two_things_does_not_arrive() {
        let outcome = GatedTree { report: GateReport::for_close("combined".to_owned()) };
        let mut sent = serde_json::to_value(LegOutcome::Gated { outcome }).unwrap();
        let row = &mut sent["outcome"]["report"]["rows"][0];
        (row["result"], row["gating"]) = ("fail".into(), true.into());
        let error = serde_json::from_value::<LegOutcome>(sent).unwrap_err().to_string();
        assert!(error.contains("overall is pass, but gating row"), "{error}");
    }

    #[test]
    fn the_name_of_a_leg_keeps_its_parts_apart_whatever_the_run_is_called() {
        let mut scene = Scene::planned();
        scene.config.run = "by-hand-1".into();
        let name = scene.driver().leg_name("7", Generation::new(3).unwrap()).unwrap();
        assert_eq!(name.to_string(), "pdca-by.hand.1-7-g3");
    }
}
