//! The labels a brief is known to have.

use super::Awaits;

/// A field this project gives a meaning to. Any other label is kept, and means nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    /// The short name; its absence makes a brief a template.
    Slug,
    /// What is wrong, or what is wanted.
    Defect,
    /// What is true when the work is done.
    SuccessCriterion,
    /// How the claim could turn out wrong.
    Falsifiability,
    /// What must hold again, stated for the whole class of defects.
    Invariant,
    /// `owner/repo @ branch`.
    RepoTarget,
    /// An existing branch to stack onto.
    OntoBranch,
    /// Bundles that come first.
    DependsOn,
    /// Bundles that may not run beside it.
    ConflictsWith,
    /// Globs of the files it changes.
    Touches,
    /// Why the order is as it is.
    OrderingNote,
    /// What kind of thing it shows on.
    Surfaces,
    /// `low`, `medium`, `high`.
    Difficulty,
    /// The builder asked for.
    DoModel,
    /// One logical fix, and what is out of it.
    Scope,
    /// How to see the defect.
    ReproInstruction,
    /// What a person must provide.
    ExternalDependencies,
    /// The test that ships with the change.
    TestFile,
    /// What must be cited.
    CitationsExpected,
    /// Who tried before.
    PriorArt,
    /// What will probably come of it.
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
        Label::Scope,
        Label::ReproInstruction,
        Label::ExternalDependencies,
        Label::TestFile,
        Label::CitationsExpected,
        Label::PriorArt,
        Label::DispositionHint,
    ];

    /// How the template writes it.
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
            Label::Scope => "Scope",
            Label::ReproInstruction => "Repro instruction",
            Label::ExternalDependencies => "External dependencies",
            Label::TestFile => "Test file",
            Label::CitationsExpected => "Citations expected",
            Label::PriorArt => "Prior-art check",
            Label::DispositionHint => "Disposition hint",
        }
    }

    /// The spellings it is found under, lower-case, the first that is filled wins.
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
            Label::Scope => &["scope"],
            Label::ReproInstruction => &["repro instruction"],
            Label::ExternalDependencies => &["external dependencies", "external deps"],
            Label::TestFile => &["test file", "test path", "test requirement"],
            Label::CitationsExpected => &["citations expected"],
            Label::PriorArt => &["prior-art check", "prior-art check (triage cycles)"],
            Label::DispositionHint => &["disposition hint", "disposition"],
        }
    }

    /// What a spelling of [`Label::DependsOn`] waits for: `Depends on (merged)` means the target
    /// branch, the others the sign-off.
    pub fn awaits(spelling: &str) -> Awaits {
        match spelling {
            "depends on (merged)" | "depends_on_merged" => Awaits::Landed,
            _ => Awaits::Accepted,
        }
    }
}
