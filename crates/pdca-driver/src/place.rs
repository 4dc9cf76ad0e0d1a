//! Places: the machines that legs run on.
//!
//! The step loop is the driver's. For Build, Gate and Review, and for the gates over a combination, it asks a
//! [`Place`]: [`Here`] carries them out in the lanes beside the workspace, and other machines implement the same trait.
//!
//! ```
//! use pdca_driver::leg::{Leg, LegEnd};
//! use pdca_driver::place::{Here, Place};
//! use pdca_driver::{BeatError, Driver};
//! use pdca_state::GateReport;
//!
//! /// Passes every combination, for a dry run.
//! #[derive(Debug)]
//! struct AlwaysGreen;
//!
//! impl Place for AlwaysGreen {
//!     fn run<'a>(&self, cx: &Driver<'a>, leg: &Leg<'a>) -> Result<LegEnd, BeatError> {
//!         match leg {
//!             Leg::Attempt(_) => Here::default().run(cx, leg),
//!             Leg::Gates(_) => {
//!                 Ok(LegEnd::Gated { report: GateReport::for_close("combined".to_owned()) })
//!             }
//!         }
//!     }
//!
//!     fn name(&self) -> Option<&str> {
//!         Some("green")
//!     }
//!
//!     fn slots(&self) -> u32 {
//!         1
//!     }
//! }
//! ```

mod places;

use std::fmt;

use crate::integrate::{CombinationCheckout, gate_rows};
use crate::leg::{Leg, LegEnd, LegName, LegNameError};
use crate::run_bundle::{BeatError, Driver, begin_step};

pub use places::{Places, Reserved};

/// Runs legs on some machine. Called from several threads at once.
pub trait Place: fmt::Debug + Send + Sync {
    /// Runs a leg to its end, or until the driver is cancelled.
    ///
    /// When this returns, the result of an attempt is published in the bundle. A second call for the same attempt
    /// resumes the first: a leaf or a gate that finished is neither run nor paid for twice.
    fn run<'a>(&self, cx: &Driver<'a>, leg: &Leg<'a>) -> Result<LegEnd, BeatError>;

    /// Returns the name that the journal has for the place; `None` for the driver's own machine.
    fn name(&self) -> Option<&str>;

    /// Returns the number of legs that run there at once.
    fn slots(&self) -> u32;

    /// Returns whether the place was lost. It gets no further leg in this run.
    fn is_lost(&self) -> bool {
        false
    }

    /// Returns whether a checkout is there already, so that a leg starts fast.
    fn is_warm(&self) -> bool {
        true
    }

    /// Returns a digest of the environment of its gates, if it is not the one of the driver's machine.
    fn gates_environment(&self) -> Option<&str> {
        None
    }

    /// Ends and removes, as far as it can now, the legs that are older than the current ones of their bundles, and all
    /// legs of a run that is over.
    fn reap(&self, _current: &[LegName], _over: Option<&str>) {}
}

/// One slot of a place.
#[derive(Debug, Clone, Copy)]
pub struct PlaceSlot<'p> {
    pub place: &'p dyn Place,
    /// The number of the slot among those of the place.
    pub slot: u32,
}

impl PlaceSlot<'static> {
    /// The driver's own machine, where the driver says in which lane it works.
    pub const HERE: Self = Self { place: &Here { lanes: 1 }, slot: 0 };
}

/// The reason for a place to end a leg without a result. The leg is not at fault.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The place was lost. No attempt is charged.
    #[error("{place} was lost: {said}")]
    Lost {
        place: String,
        /// The last message from it.
        said: String,
    },
    /// The place cannot run such legs. No attempt is charged.
    #[error("{place} is not fit for it: {said}")]
    Unfit { place: String, said: String },
    /// The leg cannot be named.
    #[error(transparent)]
    Name(#[from] LegNameError),
    /// The place answered with the end of another kind of leg.
    #[error("the place answered {leg} with the end of another kind of leg")]
    OtherKind { leg: String },
}

/// The lanes beside the workspace. Legs of bundles are carried out in the bundles themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    /// The number of lanes, which may be none.
    pub lanes: u32,
}

impl Default for Here {
    fn default() -> Self {
        Self { lanes: 1 }
    }
}

impl Place for Here {
    /// Carries out one step of an attempt. The driver looks at the bundle between two steps, because its rivals depend on
    /// what a change writes.
    fn run<'a>(&self, cx: &Driver<'a>, leg: &Leg<'a>) -> Result<LegEnd, BeatError> {
        match leg {
            Leg::Attempt(leg) => {
                begin_step(cx, leg.next, leg.bundle, leg.snapshot)?;
                Ok(LegEnd::Step)
            }
            Leg::Gates(leg) => {
                let at = CombinationCheckout {
                    target: leg.target,
                    branch: leg.branch,
                    commit: leg.commit,
                    tree: leg.tree,
                    slot: leg.slot,
                    dir: leg.dir,
                };
                Ok(LegEnd::Gated { report: gate_rows(cx, &at)? })
            }
        }
    }

    fn name(&self) -> Option<&str> {
        None
    }

    fn slots(&self) -> u32 {
        self.lanes
    }
}

#[cfg(test)]
mod tests {
    use pdca_journal::Generation;
    use pdca_state::{Artifact, GateReport};

    use super::*;
    use crate::config::WorkspaceConfig;
    use crate::leg::{LegWork, SentLeg};
    use crate::terms::Terms;
    use crate::testing::Scene;

    /// Sends every leg as bytes, to a machine that knows no terms.
    #[derive(Debug)]
    struct Travelling {
        machine: WorkspaceConfig,
    }

    impl Place for Travelling {
        fn run<'a>(&self, cx: &Driver<'a>, leg: &Leg<'a>) -> Result<LegEnd, BeatError> {
            let Leg::Attempt(attempt) = leg else { return Here::default().run(cx, leg) };
            let name = LegName::new("r", "7", Generation::FIRST).unwrap();
            let work = LegWork::Attempt { bundle: attempt.bundle.id().clone() };
            let sent = SentLeg { name, work, terms: cx.config.terms() };
            let sent = serde_json::to_vec(&sent).unwrap();
            let arrived: SentLeg = serde_json::from_slice(&sent).unwrap();
            let config = self.machine.clone().under(arrived.terms);
            Here::default().run(&Driver { config: &config, ..*cx }, leg)
        }

        fn name(&self) -> Option<&str> {
            Some("there")
        }

        fn slots(&self) -> u32 {
            1
        }
    }

    /// Is lost, or answers with the end of another kind of leg.
    #[derive(Debug)]
    struct Odd {
        is_lost: bool,
    }

    impl Place for Odd {
        fn run<'a>(&self, _: &Driver<'a>, _: &Leg<'a>) -> Result<LegEnd, BeatError> {
            if self.is_lost {
                let (place, said) = ("build1".into(), "no route".into());
                return Err(PlaceError::Lost { place, said }.into());
            }
            Ok(LegEnd::Gated { report: GateReport::for_close("combined".to_owned()) })
        }

        fn name(&self) -> Option<&str> {
            Some("odd")
        }

        fn slots(&self) -> u32 {
            1
        }
    }

    fn scene() -> Scene {
        let mut scene = Scene::planned();
        let rows =
            r#"{"checks": [{"id": "a", "tier": "T1", "cmd": "false", "when": "Surfaces: gui"}]}"#;
        scene.config.rows = serde_json::from_str(rows).unwrap();
        scene
    }

    #[test]
    fn a_leg_that_travels_gives_the_same_bundle_on_a_machine_that_knows_no_terms() {
        let (near, far) = (scene(), scene());
        let place = &Travelling { machine: far.config.clone().under(Terms::default()) };
        let driver = Driver { place: PlaceSlot { place, slot: 0 }, ..far.driver() };
        let here = near.driver().run_bundle(&near.bundle()).unwrap();
        assert_eq!(driver.run_bundle(&far.bundle()).unwrap(), here);
        for artifact in [Artifact::Patch, Artifact::GatesJson, Artifact::Summary] {
            let bytes = |scene: &Scene| scene.bundle().read(artifact).unwrap().unwrap();
            assert_eq!(bytes(&far), bytes(&near), "{artifact:?}");
        }
        let report = far.bundle().load().unwrap().gates.unwrap();
        assert!(report.rows.iter().any(|row| row.rule_id == "a"), "{report:?}");
        assert_eq!(far.effects(), near.effects());
    }

    #[test]
    fn the_end_of_another_kind_of_leg_does_not_count() {
        let scene = scene();
        let place = PlaceSlot { place: &Odd { is_lost: false }, slot: 0 };
        let answer = Driver { place, ..scene.driver() }.run_bundle(&scene.bundle());
        let is_refused = matches!(answer, Err(BeatError::Place(PlaceError::OtherKind { .. })));
        assert!(is_refused, "{answer:?}");
    }

    #[test]
    fn a_place_that_was_lost_is_told_and_is_no_failure_of_the_bundle() {
        let scene = scene();
        let place = PlaceSlot { place: &Odd { is_lost: true }, slot: 0 };
        let answer = Driver { place, ..scene.driver() }.run_bundle(&scene.bundle());
        let error = answer.unwrap_err();
        assert_eq!(error.to_string(), "build1 was lost: no route");
        let bundle = scene.bundle();
        assert_eq!(
            crate::BeatFailures::of(&scene.config).find(&bundle, &bundle.glance().unwrap()),
            None
        );
    }
}
