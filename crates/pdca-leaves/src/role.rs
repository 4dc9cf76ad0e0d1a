//! The roles, and what each may see and must leave.
//!
//! The lists are code, not configuration: that the reviewer does not see the builder's notes is
//! a property of the program, which no setting can take away.

use std::fmt;

use pdca_state::Artifact;
use serde::Serialize;

/// What a leaf is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Fills the brief.
    Planner,
    /// Changes the code.
    Builder,
    /// Judges the change without knowing what its builder thought.
    Reviewer,
    /// Judges one aspect of the change, under the same rules as the reviewer.
    Adviser,
    /// Helps a person decide.
    Signoff,
    /// Writes what accompanies the change.
    Publisher,
    /// Looks for patterns across finished cycles.
    Act,
    /// Makes an accepted change and what landed since fit together.
    Resolver,
}

impl Role {
    /// All of them, in the order of the cycle.
    pub const ALL: &'static [Self] = &[
        Self::Planner,
        Self::Builder,
        Self::Reviewer,
        Self::Adviser,
        Self::Signoff,
        Self::Publisher,
        Self::Act,
        Self::Resolver,
    ];

    /// The name, as in `[leaves.<name>]` and `PDCA_ROLE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Builder => "builder",
            Self::Reviewer => "reviewer",
            Self::Adviser => "adviser",
            Self::Signoff => "signoff",
            Self::Publisher => "publisher",
            Self::Act => "act",
            Self::Resolver => "resolver",
        }
    }

    /// Whether its word counts only if it saw nothing but its inputs and changed nothing.
    pub fn is_independent(self) -> bool {
        match self {
            Self::Reviewer | Self::Adviser => true,
            Self::Planner
            | Self::Builder
            | Self::Signoff
            | Self::Publisher
            | Self::Act
            | Self::Resolver => false,
        }
    }

    /// What it may leave, the one named by `PDCA_OUTPUT` first.
    pub fn outputs(self) -> &'static [Output] {
        match self {
            Self::Planner => &[Output::Artifact(Artifact::Brief)],
            Self::Builder => {
                &[Output::Artifact(Artifact::BuildNotes), Output::Artifact(Artifact::Patch)]
            }
            Self::Reviewer => &[Output::Artifact(Artifact::Review)],
            Self::Adviser => &[Output::Advice],
            Self::Signoff => &[Output::Proposal],
            Self::Publisher => &[
                Output::Artifact(Artifact::CommitMessage),
                Output::Artifact(Artifact::PrDescription),
                Output::Artifact(Artifact::TrackerComment),
            ],
            Self::Act => &[Output::ActEntry],
            Self::Resolver => &[Output::Artifact(Artifact::BuildNotes)],
        }
    }

    /// The one it must leave.
    pub fn output(self) -> Output {
        self.outputs()[0]
    }

    /// The built-in prompt.
    pub(crate) fn prompt(self) -> &'static str {
        match self {
            Self::Planner => include_str!("../prompts/planner.md"),
            Self::Builder => include_str!("../prompts/builder.md"),
            Self::Reviewer => include_str!("../prompts/reviewer.md"),
            Self::Adviser => include_str!("../prompts/adviser.md"),
            Self::Signoff => include_str!("../prompts/signoff.md"),
            Self::Publisher => include_str!("../prompts/publisher.md"),
            Self::Act => include_str!("../prompts/act.md"),
            Self::Resolver => include_str!("../prompts/resolver.md"),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The file in a resolver's view that names both sides of the conflict. Never part of a bundle.
pub const CONFLICT: &str = "conflict.md";

/// What a role may see of the bundle. The shipped test comes on top, and the checkout.
///
/// A builder also sees the changes that earlier, accepted attempts did not go together with. Act looks at
/// many bundles: what it sees is what the driver puts together for it. A resolver also sees [`CONFLICT`],
/// in which the driver names both sides.
pub fn inputs(role: Role) -> &'static [Artifact] {
    match role {
        Role::Planner => &[Artifact::Brief, Artifact::Notes, Artifact::CarryForward],
        Role::Builder => &[Artifact::Brief],
        Role::Reviewer | Role::Adviser => &[Artifact::Brief, Artifact::Patch, Artifact::GatesJson],
        Role::Signoff => &[
            Artifact::Brief,
            Artifact::Patch,
            Artifact::BuildNotes,
            Artifact::CloseDisposition,
            Artifact::GatesJson,
            Artifact::GatesMarkdown,
            Artifact::Review,
            Artifact::Summary,
            Artifact::ManualVerification,
        ],
        Role::Publisher => &[
            Artifact::Brief,
            Artifact::Patch,
            Artifact::BuildNotes,
            Artifact::CloseDisposition,
            Artifact::GatesJson,
            Artifact::Summary,
            Artifact::Notes,
        ],
        Role::Act => &[],
        Role::Resolver => &[Artifact::Brief, Artifact::Patch],
    }
}

/// Something a leaf leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// A file of the bundle.
    Artifact(Artifact),
    /// An adviser's review; its place in the bundle carries the adviser's name.
    Advice,
    /// What the sign-off leaf proposes; see [`Proposal`](crate::Proposal). Never part of a bundle.
    Proposal,
    /// An entry for the Act log. Never part of a bundle.
    ActEntry,
}

impl Output {
    /// The name under which it is expected in the staged view.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Artifact(artifact) => artifact.file_name(),
            // The view belongs to one adviser alone, so its review needs no name of its own.
            Self::Advice => Artifact::Review.file_name(),
            Self::Proposal => "proposal.json",
            Self::ActEntry => "act-entry.md",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_independent_role_sees_what_the_builder_or_another_reviewer_thought() {
        let mut looked_at = 0;
        for role in Role::ALL.iter().filter(|role| role.is_independent()) {
            for forbidden in [Artifact::BuildNotes, Artifact::Review, Artifact::Summary] {
                assert!(!inputs(*role).contains(&forbidden), "{role} sees {forbidden:?}");
            }
            looked_at += 1;
        }
        assert_eq!(looked_at, 2, "the reviewer and the advisers");
    }

    #[test]
    fn the_reviewer_sees_exactly_what_the_format_lists() {
        let listed = [Artifact::Brief, Artifact::Patch, Artifact::GatesJson];
        assert_eq!(inputs(Role::Reviewer), listed);
        assert_eq!(inputs(Role::Adviser), listed);
    }

    #[test]
    fn only_the_planner_gets_to_see_what_it_is_to_fill() {
        for role in Role::ALL {
            let seen = role.outputs().iter().any(
                |output| matches!(output, Output::Artifact(own) if inputs(*role).contains(own)),
            );
            assert_eq!(seen, *role == Role::Planner, "{role}");
        }
    }

    #[test]
    fn the_reviewer_is_asked_for_every_element_by_its_title() {
        for element in pdca_state::Element::ALL {
            let row = format!("| {} | | |", element.title());
            assert!(Role::Reviewer.prompt().contains(&row), "{row}");
        }
    }

    #[test]
    fn every_prompt_says_where_the_result_goes() {
        for role in Role::ALL {
            assert!(role.prompt().contains("{output}"), "{role}");
        }
    }
}
