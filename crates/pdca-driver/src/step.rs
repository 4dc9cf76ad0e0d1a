//! The one decision of the driver: the next step, given the position of a bundle.
//!
//! [`step`] is pure and exhaustive: a new state does not compile until this module says
//! how the driver handles it. Everything the decision looks at is in [`Position`], which is
//! read from the bundle's files, so a driver that was killed makes the same decision again.

use pdca_state::State;

pub use pdca_journal::events::{Halt, Step};

/// The position of a bundle in the cycle, as far as the next step depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The state derived from the files present.
    pub state: State,
    /// Plan concluded that no fix is due, and the bundle was not reopened since.
    pub close: bool,
    /// The change under check is a close record rather than a patch.
    pub closing: bool,
    /// The gate report is about another patch or another brief than the current one, or about other declared paths. At
    /// sign-off the brief alone decides: a patch that a person edited there waits for that person.
    pub outdated: bool,
    pub review: ReviewTrace,
}

/// The trace that the reviewer left in the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewTrace {
    No,
    Yes,
    /// A review is there, and every finding is one that the builder may mend without a person.
    Mendable,
    /// The reviewer failed for good, or its review was void; the record of that is there.
    Failed,
}

/// Returns the next step for a bundle at `position`.
pub fn step(position: Position) -> Step {
    match position.state {
        State::Unplanned => Step::Halt(Halt::Unplanned),
        State::Resolved => Step::Halt(Halt::Resolved),
        State::Planned if position.close => Step::Close,
        State::Planned => Step::Build,
        State::Built => Step::Gate,
        // The patch or the brief was edited after the gates ran, so the report does not apply any more.
        State::Checked | State::AwaitingSignoff if position.outdated => Step::Gate,
        State::Checked => match position.review {
            // A close has no patch to review.
            _ if position.closing => Step::Assemble,
            ReviewTrace::No => Step::Review,
            ReviewTrace::Mendable => Step::SendBack,
            ReviewTrace::Yes | ReviewTrace::Failed => Step::Assemble,
        },
        State::AwaitingSignoff => Step::Halt(Halt::AwaitingSignoff),
        State::Complete => Step::Halt(Halt::Complete),
        State::Iterate(reentry) => Step::Archive(reentry),
        State::Discontinued => Step::Halt(Halt::Discontinued),
    }
}

#[cfg(test)]
mod tests {
    use pdca_state::Reentry;

    use super::*;

    /// Every position there is, in a fixed order.
    fn positions() -> impl Iterator<Item = Position> {
        State::ALL.into_iter().flat_map(|state| {
            [false, true].into_iter().flat_map(move |close| {
                [false, true].into_iter().flat_map(move |closing| {
                    [false, true].into_iter().flat_map(move |outdated| {
                        let reviews = [
                            ReviewTrace::No,
                            ReviewTrace::Yes,
                            ReviewTrace::Mendable,
                            ReviewTrace::Failed,
                        ];
                        reviews.map(|review| Position { state, close, closing, outdated, review })
                    })
                })
            })
        })
    }

    #[test]
    fn every_position_has_the_step_the_table_says() {
        for at in positions() {
            let expected = match (at.state.as_str(), at.close, at.closing, at.review) {
                ("CHECKED" | "AWAITING_SIGNOFF", ..) if at.outdated => Step::Gate,
                ("UNPLANNED", ..) => Step::Halt(Halt::Unplanned),
                ("RESOLVED", ..) => Step::Halt(Halt::Resolved),
                ("PLANNED", true, ..) => Step::Close,
                ("PLANNED", false, ..) => Step::Build,
                ("BUILT", ..) => Step::Gate,
                ("CHECKED", _, false, ReviewTrace::No) => Step::Review,
                ("CHECKED", _, false, ReviewTrace::Mendable) => Step::SendBack,
                ("CHECKED", ..) => Step::Assemble,
                ("AWAITING_SIGNOFF", ..) => Step::Halt(Halt::AwaitingSignoff),
                ("COMPLETE", ..) => Step::Halt(Halt::Complete),
                ("DISCONTINUED", ..) => Step::Halt(Halt::Discontinued),
                ("ITERATE_DO", ..) => Step::Archive(Reentry::Do),
                ("ITERATE_PLAN", ..) => Step::Archive(Reentry::Plan),
                (other, ..) => panic!("{other} is missing from the table"),
            };
            assert_eq!(step(at), expected, "{at:?}");
        }
    }

    #[test]
    fn a_bundle_that_a_person_holds_is_never_touched() {
        // A brief that was edited after Check is judged again; the person edited it.
        for at in positions().filter(|at| !at.outdated) {
            let frozen = matches!(
                at.state,
                State::Unplanned
                    | State::Resolved
                    | State::AwaitingSignoff
                    | State::Complete
                    | State::Discontinued
            );
            assert_eq!(matches!(step(at), Step::Halt(_)), frozen, "{at:?}");
        }
    }

    #[test]
    fn no_model_is_called_for_a_close() {
        for at in positions().filter(|at| at.close || at.closing) {
            if at.state == State::Planned && !at.close {
                continue;
            }
            if at.state == State::Checked && !at.closing {
                continue;
            }
            assert!(!matches!(step(at), Step::Build | Step::Review), "{at:?}");
        }
    }
}
