//! The nine states of a bundle, and how they follow from the files present.

use std::fmt;

use crate::signoff::SignoffOutcome;

/// The position of a bundle in the cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub enum State {
    /// There is no authored brief; a person has to plan.
    Unplanned,
    /// The tracker says that the issue is resolved, and no cycle ran here.
    Resolved,
    /// There is a brief and no change yet.
    Planned,
    /// There is a patch or a close disposition, and no valid gate report.
    Built,
    /// There is a gate report and no result document.
    Checked,
    /// The result document waits for a person's decision.
    AwaitingSignoff,
    /// Accepted and frozen.
    Complete,
    /// Sent back at sign-off; the attempt has to be archived next.
    Iterate(Reentry),
    /// Given up; terminal.
    Discontinued,
}

/// The beat at which a bundle that was sent back enters the cycle again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Reentry {
    /// The brief stays and is built again.
    Do,
    /// The brief is archived with the attempt and a person plans again.
    Plan,
}

/// The state of `brief.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BriefFact {
    /// There is no brief.
    #[default]
    Absent,
    /// The brief is an unfilled template, see [`Brief::is_placeholder`](crate::Brief::is_placeholder).
    Placeholder,
    /// The brief has a slug.
    Authored,
}

/// The input of [`State::of`]. The default is an empty bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of them yes or no")]
pub struct StateFacts {
    /// The state of the brief.
    pub brief: BriefFact,
    /// True if there is a patch or a close disposition.
    pub change: bool,
    /// True if there is a valid gate report; a torn or malformed one does not count.
    pub gates: bool,
    /// True if there is a result document.
    pub summary: bool,
    /// The outcome in §9 of the result document, if it is a known one.
    pub outcome: Option<SignoffOutcome>,
    /// True if the tracker's thread says that the issue is resolved.
    pub resolved: bool,
    /// True if any file proves that a cycle ran.
    pub cycle_ran: bool,
    /// The destination of an archive that was begun and not finished.
    pub pending: Option<Reentry>,
}

impl State {
    /// Every state, in the order of the cycle.
    pub const ALL: [State; 10] = [
        State::Unplanned,
        State::Resolved,
        State::Planned,
        State::Built,
        State::Checked,
        State::AwaitingSignoff,
        State::Complete,
        State::Iterate(Reentry::Do),
        State::Iterate(Reentry::Plan),
        State::Discontinued,
    ];

    /// Derives the state from the facts. Pure and total.
    pub fn of(facts: &StateFacts) -> State {
        // First, because a half-done archive has moved some of the files that the rest looks at.
        if let Some(reentry) = facts.pending {
            return State::Iterate(reentry);
        }
        // A person may give up a bundle in any state, so this does not require a change or gates.
        if facts.summary && facts.outcome == Some(SignoffOutcome::Discontinued) {
            return State::Discontinued;
        }
        match facts.brief {
            BriefFact::Absent | BriefFact::Placeholder if facts.resolved && !facts.cycle_ran => {
                State::Resolved
            }
            BriefFact::Absent | BriefFact::Placeholder => State::Unplanned,
            BriefFact::Authored if !facts.change => State::Planned,
            // Also with a summary: a gate report that a crash cut is made again before that counts.
            BriefFact::Authored if !facts.gates => State::Built,
            BriefFact::Authored if !facts.summary => State::Checked,
            BriefFact::Authored => match facts.outcome {
                None => State::AwaitingSignoff,
                Some(SignoffOutcome::MergedWider | SignoffOutcome::Accepted) => State::Complete,
                Some(SignoffOutcome::IteratedToDo) => State::Iterate(Reentry::Do),
                Some(SignoffOutcome::IteratedToPlan) => State::Iterate(Reentry::Plan),
                Some(SignoffOutcome::Discontinued) => State::Discontinued,
            },
        }
    }

    /// The name in output and in JSON, such as `AWAITING_SIGNOFF`.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Unplanned => "UNPLANNED",
            State::Resolved => "RESOLVED",
            State::Planned => "PLANNED",
            State::Built => "BUILT",
            State::Checked => "CHECKED",
            State::AwaitingSignoff => "AWAITING_SIGNOFF",
            State::Complete => "COMPLETE",
            State::Iterate(Reentry::Do) => "ITERATE_DO",
            State::Iterate(Reentry::Plan) => "ITERATE_PLAN",
            State::Discontinued => "DISCONTINUED",
        }
    }

    /// Returns true if the cycle or a person still has work to do on the bundle.
    pub fn is_open(self) -> bool {
        match self {
            State::Unplanned
            | State::Planned
            | State::Built
            | State::Checked
            | State::AwaitingSignoff
            | State::Iterate(_) => true,
            State::Resolved | State::Complete | State::Discontinued => false,
        }
    }

    /// Returns true if the bundle is frozen: accepted or given up.
    pub fn is_terminal(self) -> bool {
        matches!(self, State::Complete | State::Discontinued)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl serde::Serialize for State {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for State {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = State::ALL.into_iter().find(|state| state.as_str() == name);
        found.ok_or_else(|| serde::de::Error::custom(format_args!("no state is called `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTCOMES: [Option<SignoffOutcome>; 6] = [
        None,
        Some(SignoffOutcome::MergedWider),
        Some(SignoffOutcome::Accepted),
        Some(SignoffOutcome::IteratedToDo),
        Some(SignoffOutcome::IteratedToPlan),
        Some(SignoffOutcome::Discontinued),
    ];

    /// Every combination of facts.
    fn all() -> Vec<StateFacts> {
        let bools = [false, true];
        let mut all = Vec::new();
        for brief in [BriefFact::Absent, BriefFact::Placeholder, BriefFact::Authored] {
            for flags in 0..32_u8 {
                let [change, gates, summary, resolved, cycle_ran] =
                    [0, 1, 2, 3, 4].map(|bit| bools[usize::from(flags >> bit & 1)]);
                for outcome in OUTCOMES {
                    for pending in [None, Some(Reentry::Do), Some(Reentry::Plan)] {
                        all.push(StateFacts {
                            brief,
                            change,
                            gates,
                            summary,
                            outcome,
                            resolved,
                            cycle_ran,
                            pending,
                        });
                    }
                }
            }
        }
        all
    }

    /// The position of a state in the cycle.
    fn rank(state: State) -> u8 {
        match state {
            State::Unplanned | State::Resolved => 0,
            State::Planned => 1,
            State::Built => 2,
            State::Checked => 3,
            State::AwaitingSignoff => 4,
            State::Complete | State::Iterate(_) | State::Discontinued => 5,
        }
    }

    #[test]
    fn each_row_of_the_table_in_order() {
        let authored =
            StateFacts { brief: BriefFact::Authored, cycle_ran: true, ..StateFacts::default() };
        let built = StateFacts { change: true, ..authored };
        let checked = StateFacts { gates: true, ..built };
        let summed = StateFacts { summary: true, ..checked };
        let decided = |outcome| StateFacts { outcome: Some(outcome), ..summed };
        for (facts, state) in [
            (StateFacts::default(), "UNPLANNED"),
            (StateFacts { resolved: true, ..StateFacts::default() }, "RESOLVED"),
            (StateFacts { resolved: true, cycle_ran: true, ..StateFacts::default() }, "UNPLANNED"),
            (StateFacts { brief: BriefFact::Placeholder, ..summed }, "UNPLANNED"),
            (
                StateFacts {
                    brief: BriefFact::Placeholder,
                    resolved: true,
                    ..StateFacts::default()
                },
                "RESOLVED",
            ),
            (StateFacts { resolved: true, ..authored }, "PLANNED"),
            (authored, "PLANNED"),
            (built, "BUILT"),
            (checked, "CHECKED"),
            (summed, "AWAITING_SIGNOFF"),
            (decided(SignoffOutcome::MergedWider), "COMPLETE"),
            (decided(SignoffOutcome::Accepted), "COMPLETE"),
            (decided(SignoffOutcome::IteratedToDo), "ITERATE_DO"),
            (decided(SignoffOutcome::IteratedToPlan), "ITERATE_PLAN"),
            (decided(SignoffOutcome::Discontinued), "DISCONTINUED"),
            (
                StateFacts {
                    summary: true,
                    outcome: Some(SignoffOutcome::Discontinued),
                    ..authored
                },
                "DISCONTINUED",
            ),
            (
                StateFacts {
                    summary: true,
                    outcome: Some(SignoffOutcome::Discontinued),
                    ..StateFacts::default()
                },
                "DISCONTINUED",
            ),
            (
                StateFacts { summary: true, outcome: Some(SignoffOutcome::MergedWider), ..built },
                "BUILT",
            ),
            (StateFacts { pending: Some(Reentry::Plan), ..StateFacts::default() }, "ITERATE_PLAN"),
            (StateFacts { pending: Some(Reentry::Do), ..authored }, "ITERATE_DO"),
        ] {
            assert_eq!(State::of(&facts).to_string(), state, "{facts:?}");
        }
    }

    #[test]
    fn the_next_artifact_of_the_cycle_never_moves_any_bundle_backwards() {
        for facts in all() {
            let before = rank(State::of(&facts));
            let mut steps = vec![
                StateFacts { brief: BriefFact::Authored, cycle_ran: true, ..facts },
                StateFacts { change: true, cycle_ran: true, ..facts },
                StateFacts { gates: true, cycle_ran: true, ..facts },
                StateFacts { summary: true, cycle_ran: true, ..facts },
            ];
            if facts.outcome.is_none() {
                steps.extend(OUTCOMES.map(|outcome| StateFacts { outcome, ..facts }));
            }
            for next in steps {
                assert!(rank(State::of(&next)) >= before, "{facts:?} -> {next:?}");
            }
        }
    }

    #[test]
    fn a_half_done_archive_decides_alone() {
        for facts in all() {
            if let Some(reentry) = facts.pending {
                assert_eq!(State::of(&facts), State::Iterate(reentry));
            }
        }
    }

    #[test]
    fn nothing_but_an_acceptance_over_all_artifacts_completes_and_giving_up_needs_a_summary_only() {
        for facts in all() {
            let whole =
                facts.brief == BriefFact::Authored && facts.change && facts.gates && facts.summary;
            match State::of(&facts) {
                State::Complete => {
                    let accepted = matches!(
                        facts.outcome,
                        Some(SignoffOutcome::MergedWider | SignoffOutcome::Accepted)
                    );
                    assert!(whole && accepted && facts.pending.is_none(), "{facts:?}");
                }
                State::Discontinued => {
                    let given_up = facts.outcome == Some(SignoffOutcome::Discontinued);
                    assert!(facts.summary && given_up && facts.pending.is_none(), "{facts:?}");
                }
                State::Unplanned
                | State::Resolved
                | State::Planned
                | State::Built
                | State::Checked
                | State::AwaitingSignoff
                | State::Iterate(_) => {}
            }
        }
    }
}
