//! The labels of a brief that have a meaning, and their spellings.

use super::Awaits;

/// A label of the brief template. Fields with other labels are parsed too, but have no meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    /// The short name of the work; without it a brief counts as a template.
    Slug,
    /// The defect to fix, or the goal to reach.
    Defect,
    /// The condition that is true when the work is done.
    SuccessCriterion,
    /// An observation that would prove the claim wrong.
    Falsifiability,
    /// The property to restore, stated for the whole class of defects.
    Invariant,
    /// The repository and branch, `owner/repo @ branch`.
    RepoTarget,
    /// An existing branch to stack the work onto.
    OntoBranch,
    /// The bundles that must be done first.
    DependsOn,
    /// The bundles that must not run at the same time.
    ConflictsWith,
    /// Globs of the files that the work changes.
    Touches,
    /// The reason for the order of bundles.
    OrderingNote,
    /// The parts of the product that the work shows on.
    Surfaces,
    /// The expected difficulty: `low`, `medium` or `high`.
    Difficulty,
    /// The name of the builder to use.
    DoModel,
    /// The effort that the builder is asked for.
    DoEffort,
    /// The one logical fix, and what is out of scope.
    Scope,
    /// The steps that reproduce the defect.
    ReproInstruction,
    /// The tools and services that a person must provide.
    ExternalDependencies,
    /// The test that ships with the change.
    TestFile,
    /// The sources that the work must cite.
    CitationsExpected,
    /// Earlier attempts at the same work.
    PriorArt,
    /// The expected outcome, such as `likely-fix` or `likely-close`.
    DispositionHint,
}

impl Label {
    /// Every known label, in the order of the template.
    pub const ALL: &[Label] = &[
        Label::Slug,
        Label::Defect,
        Label::SuccessCriterion,
        Label::Falsifiability,
        Label::Invariant,
        Label::RepoTarget,
        Label::OntoBranch,
        Label::DependsOn,
        Label::ConflictsWith,
        Label::Touches,
        Label::OrderingNote,
        Label::Surfaces,
        Label::Difficulty,
        Label::DoModel,
        Label::DoEffort,
        Label::Scope,
        Label::ReproInstruction,
        Label::ExternalDependencies,
        Label::TestFile,
        Label::CitationsExpected,
        Label::PriorArt,
        Label::DispositionHint,
    ];

    /// The spelling of the template.
    pub fn as_str(self) -> &'static str {
        match self {
            Label::Slug => "Slug",
            Label::Defect => "Defect",
            Label::SuccessCriterion => "Success criterion",
            Label::Falsifiability => "Falsifiability",
            Label::Invariant => "Invariant to restore",
            Label::RepoTarget => "Repo + branch target",
            Label::OntoBranch => "Onto branch",
            Label::DependsOn => "Depends on",
            Label::ConflictsWith => "Conflicts with",
            Label::Touches => "Touches",
            Label::OrderingNote => "Ordering note",
            Label::Surfaces => "Surfaces",
            Label::Difficulty => "Difficulty",
            Label::DoModel => "Do model",
            Label::DoEffort => "Do effort",
            Label::Scope => "Scope",
            Label::ReproInstruction => "Repro instruction",
            Label::ExternalDependencies => "External dependencies",
            Label::TestFile => "Test file",
            Label::CitationsExpected => "Citations expected",
            Label::PriorArt => "Prior-art check",
            Label::DispositionHint => "Disposition hint",
        }
    }

    /// The accepted spellings in lower case; the first one with a value wins.
    pub fn spellings(self) -> &'static [&'static str] {
        match self {
            Label::Slug => &["slug"],
            Label::Defect => &["defect", "goal", "defect (goal)", "defect / goal"],
            Label::SuccessCriterion => &["success criterion"],
            Label::Falsifiability => &["falsifiability"],
            Label::Invariant => &["invariant to restore", "invariant"],
            Label::RepoTarget => {
                &["repo + branch target", "repo + branch", "branch target", "target"]
            }
            Label::OntoBranch => &["onto branch", "onto_branch"],
            Label::DependsOn => &[
                "depends on",
                "depends_on",
                "depends on (merged)",
                "depends_on_merged",
                "stacks on",
                "stacks_on",
            ],
            Label::ConflictsWith => &["conflicts with", "conflicts_with"],
            Label::Touches => &["touches"],
            Label::OrderingNote => &["ordering note"],
            Label::Surfaces => &["surfaces"],
            Label::Difficulty => &["difficulty"],
            Label::DoModel => &["do model", "do_model", "builder model"],
            Label::DoEffort => &["do effort", "do_effort", "builder effort"],
            Label::Scope => &["scope"],
            Label::ReproInstruction => &["repro instruction"],
            Label::ExternalDependencies => &["external dependencies", "external deps"],
            Label::TestFile => &["test file", "test path", "test requirement"],
            Label::CitationsExpected => &["citations expected"],
            Label::PriorArt => &["prior-art check", "prior-art check (triage cycles)"],
            Label::DispositionHint => &["disposition hint", "disposition"],
        }
    }

    /// The progress that a spelling of [`Label::DependsOn`] waits for: `Depends on (merged)` waits
    /// for the landing, the others for the acceptance.
    pub fn awaits(spelling: &str) -> Awaits {
        match spelling {
            "depends on (merged)" | "depends_on_merged" => Awaits::Landed,
            _ => Awaits::Accepted,
        }
    }
}
