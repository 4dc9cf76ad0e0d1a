//! The roles, and what each may see and must leave.
//!
//! The lists are code, not configuration: that the reviewer does not see the builder's notes is
//! a property of the program, which no setting can take away.

use std::fmt;

use pdca_state::Artifact;
use serde::Serialize;

/// What a leaf is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Fills the brief.
    Planner,
    /// Judges the brief before anything is built from it.
    PlanAdviser,
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

/// When a role is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Called {
    /// Once for each brief that a planner left.
    AfterPlan,
    /// For every bundle that is driven: without it a run comes to nothing.
    InEveryCycle,
    /// Where a person or a command asks for it by name.
    OnDemand,
}

impl Called {
    /// Whether it is called without a person who asked for it, so that its calls count against a budget.
    pub fn is_unattended(self) -> bool {
        match self {
            Self::AfterPlan | Self::InEveryCycle => true,
            Self::OnDemand => false,
        }
    }
}

/// One role as data: everything that does not differ from call to call.
#[derive(Debug)]
pub struct RoleSpec {
    /// The role.
    pub role: Role,
    /// The name, as in `[leaves.<name>]` and `PDCA_ROLE`.
    pub name: &'static str,
    /// The key of the list of tables, `[[leaves.<list>]]`, of a role that several leaves may have.
    pub list: Option<&'static str>,
    /// The artifacts it may see of the bundle.
    pub inputs: &'static [Artifact],
    /// What it may leave, the one named by `PDCA_OUTPUT` first.
    pub outputs: &'static [Output],
    /// Whether it changes files of a checkout. Its hands are guarded then, and its answer is the change.
    pub edits_checkout: bool,
    /// Whether its word counts only if it saw nothing but its inputs and changed nothing. No person sits at the
    /// terminal of such a role.
    pub is_independent: bool,
    /// Whether a later call may go on in the session of an earlier one.
    ///
    /// Roles that judge never do: the state of an agent lies where a builder may write, so a
    /// builder could put words into the reviewer's memory (decision 036). Act and the resolver have
    /// another matter before them each time.
    pub may_resume: bool,
    /// When it is called.
    pub called: Called,
    /// The built-in prompt.
    pub(crate) prompt: &'static str,
    /// The built-in prompt of an agent that only edits files, where that is another one.
    pub(crate) prompt_for_edits: Option<&'static str>,
}

/// All roles, in the order of the cycle and of [`Role`].
///
/// Configuration, preflight, `doctor`, `act` and `init` iterate this table. A new role is a variant of [`Role`], a row here, its prompt, and its table in
/// [`Leaves`](crate::Leaves).
pub static ROLES: [RoleSpec; 9] = [
    RoleSpec {
        role: Role::Planner,
        name: "planner",
        list: None,
        inputs: &[Artifact::Brief, Artifact::Notes, Artifact::CarryForward],
        outputs: &[Output::Artifact(Artifact::Brief)],
        edits_checkout: false,
        is_independent: false,
        may_resume: true,
        called: Called::OnDemand,
        prompt: include_str!("../prompts/planner.md"),
        prompt_for_edits: None,
    },
    RoleSpec {
        role: Role::PlanAdviser,
        name: "plan_adviser",
        list: Some("plan_advisory"),
        inputs: &[Artifact::Brief, Artifact::Notes, Artifact::CarryForward],
        outputs: &[Output::Advice],
        edits_checkout: false,
        is_independent: false,
        may_resume: false,
        called: Called::AfterPlan,
        prompt: include_str!("../prompts/plan-adviser.md"),
        prompt_for_edits: None,
    },
    RoleSpec {
        role: Role::Builder,
        name: "builder",
        list: None,
        // The attempt before this one comes on top, as a directory; see `Inputs::gather`.
        inputs: &[Artifact::Brief],
        outputs: &[Output::Artifact(Artifact::BuildNotes), Output::Artifact(Artifact::Patch)],
        edits_checkout: true,
        is_independent: false,
        may_resume: true,
        called: Called::InEveryCycle,
        prompt: include_str!("../prompts/builder.md"),
        prompt_for_edits: Some(include_str!("../prompts/builder-edits.md")),
    },
    RoleSpec {
        role: Role::Reviewer,
        name: "reviewer",
        list: None,
        inputs: REVIEWED,
        outputs: &[Output::Artifact(Artifact::Review)],
        edits_checkout: false,
        is_independent: true,
        may_resume: false,
        called: Called::InEveryCycle,
        prompt: include_str!("../prompts/reviewer.md"),
        prompt_for_edits: None,
    },
    RoleSpec {
        role: Role::Adviser,
        name: "adviser",
        list: Some("advisory"),
        inputs: REVIEWED,
        outputs: &[Output::Advice],
        edits_checkout: false,
        is_independent: true,
        may_resume: false,
        called: Called::InEveryCycle,
        prompt: include_str!("../prompts/adviser.md"),
        prompt_for_edits: None,
    },
    RoleSpec {
        role: Role::Signoff,
        name: "signoff",
        list: None,
        inputs: &[
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
        outputs: &[Output::Proposal],
        edits_checkout: false,
        is_independent: false,
        may_resume: true,
        called: Called::OnDemand,
        prompt: include_str!("../prompts/signoff.md"),
        prompt_for_edits: None,
    },
    RoleSpec {
        role: Role::Publisher,
        name: "publisher",
        list: None,
        inputs: &[
            Artifact::Brief,
            Artifact::Patch,
            Artifact::BuildNotes,
            Artifact::CloseDisposition,
            Artifact::GatesJson,
            Artifact::Summary,
            Artifact::Notes,
        ],
        outputs: &[
            Output::Artifact(Artifact::CommitMessage),
            Output::Artifact(Artifact::PrDescription),
            Output::Artifact(Artifact::TrackerComment),
        ],
        edits_checkout: false,
        is_independent: false,
        may_resume: true,
        called: Called::OnDemand,
        prompt: include_str!("../prompts/publisher.md"),
        prompt_for_edits: None,
    },
    RoleSpec {
        role: Role::Act,
        name: "act",
        list: None,
        inputs: &[],
        outputs: &[Output::ActEntry],
        edits_checkout: false,
        is_independent: false,
        may_resume: false,
        called: Called::OnDemand,
        prompt: include_str!("../prompts/act.md"),
        prompt_for_edits: None,
    },
    RoleSpec {
        role: Role::Resolver,
        name: "resolver",
        list: None,
        inputs: &[Artifact::Brief, Artifact::Patch],
        outputs: &[Output::Artifact(Artifact::BuildNotes)],
        edits_checkout: true,
        is_independent: false,
        may_resume: false,
        called: Called::OnDemand,
        prompt: include_str!("../prompts/resolver.md"),
        prompt_for_edits: Some(include_str!("../prompts/resolver-edits.md")),
    },
];

impl RoleSpec {
    /// Returns the name of the table in the configuration: `leaves.builder`, or `leaves.advisory[2]` of a list.
    pub fn table(&self, place: usize) -> String {
        match self.list {
            Some(list) => format!("leaves.{list}[{place}]"),
            None => format!("leaves.{}", self.name),
        }
    }
}

/// What those see who judge the change: nothing that its builder or another reviewer thought.
const REVIEWED: &[Artifact] = &[Artifact::Brief, Artifact::Patch, Artifact::GatesJson];

impl Role {
    /// The row of the role.
    pub fn spec(self) -> &'static RoleSpec {
        // The rows stand in the order of the variants; a test holds that.
        &ROLES[self as usize]
    }

    /// The name, as in `[leaves.<name>]` and `PDCA_ROLE`.
    pub fn as_str(self) -> &'static str {
        self.spec().name
    }

    /// Whether its word counts only if it saw nothing but its inputs and changed nothing.
    pub fn is_independent(self) -> bool {
        self.spec().is_independent
    }

    /// Whether a later call may go on in the session of an earlier one.
    pub fn may_resume(self) -> bool {
        self.spec().may_resume
    }

    /// What it may leave, the one named by `PDCA_OUTPUT` first.
    pub fn outputs(self) -> &'static [Output] {
        self.spec().outputs
    }

    /// The first of [`Role::outputs`], named by `PDCA_OUTPUT`. It need not be what the role must
    /// leave: of a builder without a checkout that is the patch.
    pub fn output(self) -> Output {
        self.outputs()[0]
    }

    /// The built-in prompt.
    pub(crate) fn prompt(self) -> &'static str {
        self.spec().prompt
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
    role.spec().inputs
}

/// Something a leaf leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// A file of the bundle.
    Artifact(Artifact),
    /// An adviser's review, of the change or of the brief; its place in the bundle carries the adviser's name.
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
    fn no_role_sees_the_logs_of_calls() {
        for spec in &ROLES {
            assert!(!spec.inputs.contains(&Artifact::Logs), "{}", spec.name);
        }
    }

    #[test]
    fn every_role_has_its_own_row() {
        for (place, spec) in ROLES.iter().enumerate() {
            assert_eq!(spec.role as usize, place, "{}", spec.name);
            assert_eq!(spec.role.spec().name, spec.name);
        }
        assert_eq!(Role::Resolver as usize + 1, ROLES.len(), "the last role has the last row");
    }

    #[test]
    fn no_independent_role_sees_what_the_builder_or_another_reviewer_thought() {
        let mut looked_at = 0;
        for role in ROLES.iter().map(|spec| spec.role).filter(|role| role.is_independent()) {
            for forbidden in [Artifact::BuildNotes, Artifact::Review, Artifact::Summary] {
                assert!(!inputs(role).contains(&forbidden), "{role} sees {forbidden:?}");
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
        for RoleSpec { role, inputs, outputs, .. } in &ROLES {
            let seen = outputs
                .iter()
                .any(|output| matches!(output, Output::Artifact(own) if inputs.contains(own)));
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
        for spec in &ROLES {
            assert!(spec.prompt.contains("{output}"), "{}", spec.name);
        }
    }
}
