//! Explains why a batch is rejected: every problem with position and remedy.

use pdca_dag::{ItemState, PatternFlaw, PlanProblem, Rejection, SourceLocation};

use pdca_state::BundleId;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{self, Failure};

/// The most edges of a cycle that are listed.
const SHOWN: usize = 40;

/// Returns everything that keeps a batch from being carried out. Nothing was built or written.
pub(crate) fn rejected(rejection: &Rejection, cx: &Context<'_>) -> Failure {
    let problems = rejection.problems.iter().map(|problem| explained(problem, cx)).collect();
    Failure::of(Exit::Usage, problems)
}

/// Adds the remedy to one problem.
pub(crate) fn explained(problem: &PlanProblem, cx: &Context<'_>) -> failure::Problem {
    let told = failure::Problem::new(headline(problem)).at(place(problem.place(), cx));
    let told = match problem {
        PlanProblem::Cycle { edges, tangled } => {
            let facts = edges.iter().take(SHOWN).map(|edge| {
                let at = place(&edge.place, cx).show(&cx.env.cwd);
                format!("{} depends on {}  ({at})", edge.dependant, edge.prerequisite)
            });
            let mut told = facts.fold(told, failure::Problem::detail);
            if edges.len() > SHOWN {
                told = told.detail(format!("and {} more", edges.len() - SHOWN));
            }
            if *tangled > edges.len() {
                told = told.detail(format!(
                    "{tangled} bundles wait for each other; this is one way round"
                ));
            }
            told
        }
        PlanProblem::DuplicateId { first, .. } => {
            told.detail(format!("and in {}", place(first, cx).show(&cx.env.cwd)))
        }
        PlanProblem::DependsOnItself { .. }
        | PlanProblem::NoSuchPrerequisite { .. }
        | PlanProblem::NoSuchRival { .. }
        | PlanProblem::PrerequisiteNotComplete { .. }
        | PlanProblem::Unreadable { .. }
        | PlanProblem::Misspelled { .. }
        | PlanProblem::Behind { .. }
        | PlanProblem::BadGlob { .. } => told,
    };
    told.hint(remedy(problem))
}

/// Converts the position of a declaration.
pub(crate) fn place(place: &SourceLocation, cx: &Context<'_>) -> failure::FilePosition {
    // Positions are relative to the workspace, which is loaded if there is one.
    let file = match cx.workspace() {
        Ok(workspace) => workspace.root.join(&place.file),
        Err(_) => place.file.clone(),
    };
    failure::FilePosition::line(file, place.line)
}

fn headline(problem: &PlanProblem) -> String {
    match problem {
        PlanProblem::Cycle { edges, .. } => {
            let ids = edges.iter().map(|edge| edge.dependant.as_str());
            let mut way: Vec<&str> = ids.take(SHOWN).collect();
            if edges.len() > SHOWN {
                way.push("…");
            }
            way.extend(edges.first().map(|edge| edge.dependant.as_str()));
            format!("dependency cycle: {}", way.join(" → "))
        }
        PlanProblem::BadGlob { source, .. } => format!("{problem}: {source}"),
        PlanProblem::DuplicateId { id, .. } => format!("{id} is in the batch twice"),
        PlanProblem::DependsOnItself { .. }
        | PlanProblem::NoSuchPrerequisite { .. }
        | PlanProblem::NoSuchRival { .. }
        | PlanProblem::Unreadable { .. }
        | PlanProblem::Misspelled { .. }
        | PlanProblem::Behind { .. }
        | PlanProblem::PrerequisiteNotComplete { .. } => problem.to_string(),
    }
}

fn remedy(problem: &PlanProblem) -> String {
    match problem {
        PlanProblem::DuplicateId { .. } => "rename one of the two directories".to_owned(),
        PlanProblem::DependsOnItself { id, .. } => format!("take {id} out of that line"),
        PlanProblem::Cycle { .. } => "remove one of these `Depends on`".to_owned(),
        PlanProblem::NoSuchPrerequisite { on, near, .. } => {
            did_you_mean(near).unwrap_or_else(|| {
                format!(
                    "`pdca new {on}` makes it; or write `none`, or put the reason behind the ids"
                )
            })
        }
        PlanProblem::NoSuchRival { near, .. } => did_you_mean(near).unwrap_or_else(|| {
            "take it out of `Conflicts with`; or write `none`, or put the reason behind the ids"
                .to_owned()
        }),
        PlanProblem::Unreadable { id, .. } => {
            format!("save its files as UTF-8 text; `pdca status {id}` shows what cannot be read")
        }
        PlanProblem::Misspelled { id, place, .. } => format!(
            "edit line {} of the brief, then `pdca plan {id}`; text that is no field needs other words before the colon",
            place.line
        ),
        PlanProblem::Behind { on, .. } => format!("`pdca why {on}` says what keeps that one"),
        PlanProblem::PrerequisiteNotComplete { on, standing, .. } => match standing {
            ItemState::Ended => {
                format!("{on} will never be complete: take it out of `Depends on`")
            }
            ItemState::Active => {
                format!("name {on} too, or have it built and signed off first: `pdca why {on}`")
            }
            ItemState::Complete => {
                format!("have it landed first: `pdca integrate`; `pdca why {on}` says where it is")
            }
            ItemState::Waiting | ItemState::Built | ItemState::Red | ItemState::Landed => {
                format!("name {on} too, or sign it off first: `pdca why {on}`")
            }
        },
        PlanProblem::BadGlob { source, .. } => bad_glob(source.flaw).to_owned(),
    }
}

fn did_you_mean(near: &[BundleId]) -> Option<String> {
    let near: Vec<String> = near.iter().map(|id| format!("`{id}`")).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

/// Returns the remedy for an invalid glob.
pub(crate) fn bad_glob(flaw: PatternFlaw) -> &'static str {
    match flaw {
        PatternFlaw::LeavesTree => "paths are relative to the root of the repository",
        PatternFlaw::Empty => "name a file, a directory or a glob such as `src/net/**`",
        PatternFlaw::Negation => "name what is touched; nothing can be taken out of it again",
        PatternFlaw::BraceRange => "write the words out: `{1,2,3}`",
        PatternFlaw::TooManyAlternatives | PatternFlaw::TooLarge | PatternFlaw::TooNested => {
            "name the directory instead of each file"
        }
        PatternFlaw::TooLong(_)
        | PatternFlaw::OpenClass
        | PatternFlaw::EmptyClass
        | PatternFlaw::BackwardRange
        | PatternFlaw::SlashInClass
        | PatternFlaw::NamedClass
        | PatternFlaw::OpenBrace
        | PatternFlaw::UnopenedBrace
        | PatternFlaw::LoneEscape
        | PatternFlaw::Character(_) => {
            "globs know `*`, `**`, `?`, `[a-z]`, `{a,b}`; a `\\` takes the meaning of the next character"
        }
    }
}
