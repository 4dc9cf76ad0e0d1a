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

/// The labels with their spelling in the template and the accepted ones, in [`normal`] form.
pub(super) const TABLE: &[(Label, &str, &[&str])] = &[
    (Label::Slug, "Slug", &["slug"]),
    (Label::Defect, "Defect", &["defect", "goal", "defect (goal)", "defect / goal"]),
    (Label::SuccessCriterion, "Success criterion", &["success criterion", "success criteria"]),
    (Label::Falsifiability, "Falsifiability", &["falsifiability"]),
    (Label::Invariant, "Invariant to restore", &["invariant to restore", "invariant"]),
    (
        Label::RepoTarget,
        "Repo + branch target",
        &["repo + branch target", "repo + branch", "branch target", "target"],
    ),
    (Label::OntoBranch, "Onto branch", &["onto branch"]),
    (
        Label::DependsOn,
        "Depends on",
        &[
            "depends on",
            "depends",
            "depends upon",
            "depends on (merged)",
            "depends on merged",
            "stacks on",
        ],
    ),
    (Label::ConflictsWith, "Conflicts with", &["conflicts with", "conflicts"]),
    (Label::Touches, "Touches", &["touches"]),
    (Label::OrderingNote, "Ordering note", &["ordering note"]),
    (Label::Surfaces, "Surfaces", &["surfaces"]),
    (Label::Difficulty, "Difficulty", &["difficulty"]),
    (Label::DoModel, "Do model", &["do model", "builder model"]),
    (Label::DoEffort, "Do effort", &["do effort", "builder effort"]),
    (Label::Scope, "Scope", &["scope"]),
    (Label::ReproInstruction, "Repro instruction", &["repro instruction", "repro instructions"]),
    (
        Label::ExternalDependencies,
        "External dependencies",
        &["external dependencies", "external deps"],
    ),
    (Label::TestFile, "Test file", &["test file", "test path", "test requirement"]),
    (Label::CitationsExpected, "Citations expected", &["citations expected"]),
    (Label::PriorArt, "Prior-art check", &["prior art check", "prior art check (triage cycles)"]),
    (Label::DispositionHint, "Disposition hint", &["disposition hint", "disposition"]),
];

/// Returns a label in lower case, with one space for each run of spaces, underscores and hyphens.
pub(super) fn normal(label: &str) -> String {
    let mut normal = String::with_capacity(label.len());
    for word in label.split(|c: char| c.is_whitespace() || matches!(c, '_' | '-')) {
        if word.is_empty() {
            continue;
        }
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.extend(word.chars().flat_map(char::to_lowercase));
    }
    normal
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
        self.row().1
    }

    /// The accepted spellings as normal forms; the first one with a value wins.
    pub fn spellings(self) -> &'static [&'static str] {
        self.row().2
    }

    fn row(self) -> &'static (Label, &'static str, &'static [&'static str]) {
        TABLE.iter().find(|row| row.0 == self).expect("every label has a row")
    }

    /// Returns the label with this spelling: letters of any case, words separated by spaces, underscores or hyphens.
    pub fn of(written: &str) -> Option<Self> {
        let normal = normal(written);
        TABLE.iter().find(|row| row.2.contains(&normal.as_str())).map(|row| row.0)
    }

    /// Returns true for labels that the driver acts on. The other fields are text for people and models, who read it
    /// under any label.
    pub fn is_acted_on(self) -> bool {
        matches!(
            self,
            Label::RepoTarget
                | Label::OntoBranch
                | Label::DependsOn
                | Label::ConflictsWith
                | Label::Touches
                | Label::DoModel
                | Label::DoEffort
                | Label::DispositionHint
                | Label::ExternalDependencies
        )
    }

    /// The progress that a spelling of [`Label::DependsOn`] waits for: `Depends on (merged)` waits
    /// for the landing, the others for the acceptance.
    pub fn awaits(spelling: &str) -> Awaits {
        match normal(spelling).as_str() {
            "depends on (merged)" | "depends on merged" => Awaits::Landed,
            _ => Awaits::Accepted,
        }
    }
}
