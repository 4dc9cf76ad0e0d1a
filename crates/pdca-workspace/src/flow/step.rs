//! The one decision: what each track does next.
//!
//! | track | goes on while | in order |
//! |---|---|---|
//! | build | something can be built, the person keeps up, and the facts are not those that the last batch could do nothing with | |
//! | deliver | an accepted change is not delivered, and was not tried before | |
//! | person | there is a terminal | plan if the lanes are idle, sign off, plan, wait, look back |

use std::collections::BTreeSet;

use pdca_state::BundleId;
use serde::Serialize;

use crate::flow::pace::UnsignedWork;

/// The state of a workspace, as files say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowFacts {
    /// The bundles whose brief a person has to fill in.
    pub drafts: Vec<BundleId>,
    /// The bundles that a batch could continue now.
    pub buildable: Vec<BundleId>,
    /// The bundles that wait for sign-off.
    pub unsigned: Vec<BundleId>,
    /// The accepted bundles with which something is to be done.
    pub undelivered: Vec<BundleId>,
    /// The bundles that wait for others, or that a person has to look at.
    pub stuck: Vec<BundleId>,
    /// Cycles ended since the last entry of the Act log.
    pub act_due: bool,
    /// Whether lanes have to wait for the person.
    pub pace: UnsignedWork,
    /// Names the states of all bundles; equal for equal states.
    pub fingerprint: String,
}

/// What this process is doing and has done. Nothing of it is needed to continue after a kill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and the table of steps is over all of them"
)]
pub struct FlowStatus {
    /// A person sits at the terminal.
    pub has_terminal: bool,
    /// A planner is configured, and can be called.
    pub can_plan: bool,
    /// Someone asked for a look back at the end.
    pub act: bool,
    /// A batch runs.
    pub building: bool,
    /// Accepted changes are being delivered.
    pub delivering: bool,
    /// The fingerprint that the last batch began with, if it changed nothing: the same facts would have the same answer.
    pub built: Option<String>,
    /// Nothing may be built any more: the batch said why.
    pub build_stopped: bool,
    /// The accepted bundles whose delivery was tried.
    pub delivered: BTreeSet<BundleId>,
    /// The drafts that the person left as they are.
    pub left_drafts: BTreeSet<BundleId>,
    /// The bundles that the person looked at without a decision.
    pub left_unsigned: BTreeSet<BundleId>,
    /// The look back took place.
    pub acted: bool,
    /// An interrupt came: nothing new is begun.
    pub stopping: bool,
}

/// What the tracks do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves {
    /// Start a batch.
    pub build: bool,
    /// Deliver these accepted bundles; empty for nothing.
    pub deliver: Vec<BundleId>,
    /// The step of the person.
    pub person: FlowStep,
}

/// A step of the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "step", content = "ids", rename_all = "kebab-case")]
pub enum FlowStep {
    /// Plan these drafts in one session.
    Plan(Vec<BundleId>),
    /// Decide about these.
    SignOff(Vec<BundleId>),
    /// Look back over the cycles that ended.
    Act,
    /// Nothing yet: lanes build, or accepted changes are delivered.
    Wait,
    /// Nothing more.
    End(FlowEnd),
}

/// Why a flow ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum FlowEnd {
    /// Nothing is left that this flow could do or that waits for a person.
    Done,
    /// A person has to do these.
    NeedsYou {
        /// The drafts.
        drafts: Vec<BundleId>,
        /// The bundles that wait for sign-off.
        unsigned: Vec<BundleId>,
        /// The bundles that are stuck.
        stuck: Vec<BundleId>,
        /// A look back was asked for.
        act: bool,
    },
    /// An interrupt came.
    Interrupted,
}

/// Decides what each track does next.
pub fn next(facts: &FlowFacts, standing: &FlowStatus) -> Moves {
    let build = may_build(facts, standing);
    let deliver = if standing.stopping || standing.delivering {
        Vec::new()
    } else {
        without(&facts.undelivered, &standing.delivered)
    };
    let is_busy = standing.building || standing.delivering || build || !deliver.is_empty();
    let person = person(facts, standing, is_busy);
    Moves { build, deliver, person }
}

fn may_build(facts: &FlowFacts, standing: &FlowStatus) -> bool {
    !standing.stopping
        && !standing.building
        && !standing.build_stopped
        && !facts.pace.is_held()
        && !facts.buildable.is_empty()
        // A batch over the same states would do nothing again, for ever.
        && standing.built.as_ref() != Some(&facts.fingerprint)
}

fn person(facts: &FlowFacts, standing: &FlowStatus, is_busy: bool) -> FlowStep {
    if standing.stopping {
        return if is_busy { FlowStep::Wait } else { FlowStep::End(FlowEnd::Interrupted) };
    }
    let drafts = without(&facts.drafts, &standing.left_drafts);
    let unsigned = without(&facts.unsigned, &standing.left_unsigned);
    let may_plan = standing.can_plan && !drafts.is_empty();
    let may_sign = standing.has_terminal && !unsigned.is_empty();
    // Lanes that have nothing to build get it before they are waited for.
    let is_idle = !standing.building && facts.buildable.is_empty();
    if may_plan && (is_idle || !may_sign) {
        return FlowStep::Plan(drafts);
    }
    if may_sign {
        return FlowStep::SignOff(unsigned);
    }
    if is_busy {
        return FlowStep::Wait;
    }
    let wants_act = standing.act && !standing.acted && facts.act_due;
    if wants_act && standing.has_terminal {
        return FlowStep::Act;
    }
    let (drafts, unsigned) = (facts.drafts.clone(), facts.unsigned.clone());
    // What no batch could continue is not done.
    let stuck: BTreeSet<BundleId> = facts.stuck.iter().chain(&facts.buildable).cloned().collect();
    let (stuck, act) = (stuck.into_iter().collect::<Vec<_>>(), wants_act);
    let is_done = drafts.is_empty() && unsigned.is_empty() && stuck.is_empty() && !act;
    FlowStep::End(if is_done {
        FlowEnd::Done
    } else {
        FlowEnd::NeedsYou { drafts, unsigned, stuck, act }
    })
}

fn without(all: &[BundleId], left: &BTreeSet<BundleId>) -> Vec<BundleId> {
    all.iter().filter(|id| !left.contains(*id)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> BundleId {
        text.parse().unwrap()
    }

    /// Every combination of what decides: one bundle of each kind there or not, and each flag set or not.
    fn every() -> impl Iterator<Item = (FlowFacts, FlowStatus)> {
        (0u32..1 << 15).map(|bits| {
            let on = |bit: u32| bits & (1 << bit) != 0;
            let one = |bit: u32, name: &str| if on(bit) { vec![id(name)] } else { Vec::new() };
            let set = |bit: u32, name: &str| -> BTreeSet<BundleId> {
                one(bit, name).into_iter().collect()
            };
            let unsigned = one(2, "3");
            let held = on(5);
            let facts = FlowFacts {
                drafts: one(0, "1"),
                buildable: one(1, "2"),
                undelivered: one(3, "4"),
                stuck: Vec::new(),
                act_due: on(4),
                pace: UnsignedWork {
                    unsigned: u32::from(held),
                    max_unsigned: held.then_some(1),
                    per_hour: None,
                },
                fingerprint: "now".to_owned(),
                unsigned,
            };
            let standing = FlowStatus {
                has_terminal: on(6),
                can_plan: on(7),
                act: on(4),
                building: on(8),
                delivering: on(9),
                built: on(10).then(|| "now".to_owned()),
                build_stopped: on(11),
                delivered: set(12, "4"),
                left_drafts: set(13, "1"),
                left_unsigned: set(13, "3"),
                acted: on(13),
                stopping: on(14),
            };
            (facts, standing)
        })
    }

    #[test]
    fn nobody_is_asked_without_a_terminal_or_after_an_interrupt() {
        for (facts, standing) in every() {
            let Moves { person, build, deliver } = next(&facts, &standing);
            if !standing.has_terminal {
                assert!(
                    !matches!(person, FlowStep::SignOff(_) | FlowStep::Act),
                    "{facts:?} {standing:?}"
                );
            }
            if !standing.can_plan {
                assert!(!matches!(person, FlowStep::Plan(_)), "{facts:?} {standing:?}");
            }
            if standing.stopping {
                assert!(!build && deliver.is_empty(), "{facts:?} {standing:?}");
                assert!(matches!(person, FlowStep::Wait | FlowStep::End(FlowEnd::Interrupted)));
            }
        }
    }

    #[test]
    fn nothing_is_started_twice_and_nothing_is_asked_again_that_was_left() {
        for (facts, standing) in every() {
            let Moves { person, build, deliver } = next(&facts, &standing);
            assert!(!(build && standing.building), "{facts:?} {standing:?}");
            assert!(!(build && facts.pace.is_held()), "{facts:?} {standing:?}");
            assert!(!(build && standing.built.as_ref() == Some(&facts.fingerprint)));
            assert!(deliver.is_empty() || !standing.delivering, "{facts:?} {standing:?}");
            assert!(deliver.iter().all(|id| !standing.delivered.contains(id)));
            match person {
                FlowStep::Plan(ids) => {
                    assert!(
                        !ids.is_empty() && ids.iter().all(|id| !standing.left_drafts.contains(id))
                    );
                }
                FlowStep::SignOff(ids) => {
                    assert!(
                        !ids.is_empty()
                            && ids.iter().all(|id| !standing.left_unsigned.contains(id))
                    );
                }
                FlowStep::Act => assert!(!standing.acted && standing.act && facts.act_due),
                FlowStep::Wait | FlowStep::End(_) => {}
            }
        }
    }

    #[test]
    fn it_ends_only_if_no_track_goes_on_and_waits_only_if_one_does() {
        for (facts, standing) in every() {
            let Moves { person, build, deliver } = next(&facts, &standing);
            let is_busy = build || !deliver.is_empty() || standing.building || standing.delivering;
            match person {
                FlowStep::End(_) | FlowStep::Act => assert!(!is_busy, "{facts:?} {standing:?}"),
                FlowStep::Wait => assert!(is_busy, "{facts:?} {standing:?}"),
                FlowStep::Plan(_) | FlowStep::SignOff(_) => {}
            }
        }
    }

    #[test]
    fn done_means_that_nobody_is_needed() {
        for (facts, standing) in every() {
            let person = next(&facts, &standing).person;
            let needs = !facts.drafts.is_empty()
                || !facts.unsigned.is_empty()
                || !facts.buildable.is_empty();
            match person {
                FlowStep::End(FlowEnd::Done) => assert!(!needs, "{facts:?} {standing:?}"),
                FlowStep::End(FlowEnd::NeedsYou { .. }) => {
                    assert!(needs || standing.act && facts.act_due, "{facts:?} {standing:?}");
                }
                FlowStep::End(FlowEnd::Interrupted) => assert!(standing.stopping),
                FlowStep::Plan(_) | FlowStep::SignOff(_) | FlowStep::Act | FlowStep::Wait => {}
            }
        }
    }

    #[test]
    fn whatever_the_answers_it_comes_to_an_end() {
        for (mut facts, mut standing) in every() {
            let mut steps = 0;
            loop {
                let moves = next(&facts, &standing);
                // Each track that runs comes to its end; the person leaves everything as it is.
                if standing.building || moves.build {
                    standing.building = false;
                    standing.built = Some(facts.fingerprint.clone());
                }
                standing.delivered.extend(moves.deliver.iter().cloned());
                standing.delivering = false;
                match moves.person {
                    FlowStep::Plan(ids) => standing.left_drafts.extend(ids),
                    FlowStep::SignOff(ids) => standing.left_unsigned.extend(ids),
                    FlowStep::Act => {
                        standing.acted = true;
                        facts.act_due = false;
                    }
                    FlowStep::Wait => {}
                    FlowStep::End(_) => break,
                }
                steps += 1;
                assert!(steps < 10, "{facts:?} {standing:?}");
            }
        }
    }

    #[test]
    fn idle_lanes_get_work_before_anything_is_signed_and_busy_ones_are_signed_beside() {
        let facts =
            FlowFacts { drafts: vec![id("1")], unsigned: vec![id("3")], ..FlowFacts::default() };
        let standing = FlowStatus { has_terminal: true, can_plan: true, ..FlowStatus::default() };
        assert_eq!(next(&facts, &standing).person, FlowStep::Plan(vec![id("1")]));
        let busy = FlowStatus { building: true, ..standing.clone() };
        assert_eq!(next(&facts, &busy).person, FlowStep::SignOff(vec![id("3")]));
        // Lanes that are held have work: the person is what is missing.
        let held = FlowFacts {
            buildable: vec![id("2")],
            pace: UnsignedWork { unsigned: 1, max_unsigned: Some(1), per_hour: None },
            ..facts
        };
        assert_eq!(next(&held, &standing).person, FlowStep::SignOff(vec![id("3")]));
    }
}
