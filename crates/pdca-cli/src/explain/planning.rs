//! Adds position and remedy to the errors of planning.

use pdca_dag::{LanesFileError, PatternError};
use pdca_driver::SplitError;
use pdca_state::{Artifact, Bundle, State, WideningError};
use pdca_workspace::OperationError;
use pdca_workspace::planning::PlanningError;

use super::{driver, rejection};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition, Problem};

/// Explains an error with the positions of all problems of a rejected batch.
pub(crate) fn explained_in(error: OperationError, cx: &Context<'_>) -> Failure {
    if let OperationError::Planning(PlanningError::Rejected { rejection, lanes_file }) = error {
        let mut failure = rejection::rejected(&rejection, cx);
        let of_file = lanes_file.map(|error| Failure::from(*error).problems);
        failure.problems.extend(of_file.into_iter().flatten());
        return failure;
    }
    error.into()
}

impl From<PlanningError> for Failure {
    fn from(error: PlanningError) -> Self {
        let usage = Failure::from_error(Exit::Usage, &error);
        match error {
            // Commands that plan a batch call `explained_in`, which knows the positions.
            PlanningError::Rejected { .. } => usage.hint("`pdca plan` shows the problems"),
            PlanningError::LanesFile { path, line, source } => {
                let place = FilePosition { line, ..FilePosition::file(path) };
                let mut failure = Failure::from_error(Exit::Usage, &source).at(place);
                for problem in &mut failure.problems {
                    problem.what = format!("lanes.json cannot be used: {}", problem.what);
                }
                failure.hint(lanes_file_remedy(&source))
            }
            PlanningError::NoLanesFile { path } => {
                usage.at(FilePosition::file(path)).hint("`pdca plan --write` writes it")
            }
            PlanningError::StaleLanesFile { path } => usage.at(FilePosition::file(path)).hint(
                "`pdca plan --write` plans again, no group gets another letter; without lanes.json there are no groups",
            ),
            PlanningError::LeftOutOfLanesFile { path, .. } => usage
                .at(FilePosition::file(path))
                .hint("name all bundles that are not finished, or none: `pdca plan --write`"),
            PlanningError::WriteLanesFile { path, source } => {
                Failure::new(Exit::Unexpected, "lanes.json cannot be written")
                    .cause(&source)
                    .at(FilePosition::file(path))
                    .hint("make room and make the directory writable, then repeat the command")
            }
            PlanningError::Globs(globs) => {
                let problem = |(glob, error): &(String, PatternError)| {
                    let what = format!("`{}`: {error}", glob.escape_debug());
                    Problem::new(what).hint(rejection::bad_glob(error.flaw))
                };
                Failure::of(Exit::Usage, globs.iter().map(problem).collect())
            }
            PlanningError::NoReason => {
                usage.hint("say in a few words why the work reaches further than planned")
            }
            PlanningError::Settled { bundle, state: State::Resolved } => {
                usage.hint(format!("`pdca why {}` says more", bundle.id()))
            }
            PlanningError::Settled { bundle, .. } => usage
                .at(FilePosition::file(bundle.path(Artifact::Brief)))
                .hint("a frozen record is not changed; plan what is left as a bundle of its own"),
            PlanningError::NoBrief { bundle } => usage
                .at(FilePosition::file(bundle.dir()))
                .hint(format!("`pdca new {}` makes one", bundle.id())),
            PlanningError::BriefNotUtf8 { path } => usage
                .at(FilePosition::file(path))
                .hint("save the file as UTF-8, e.g. `iconv -f latin1 -t utf-8`"),
            PlanningError::BriefTooLong { path } => {
                usage.at(FilePosition::file(path)).hint("name the directory instead of each file")
            }
            PlanningError::Widening { path, source } => {
                let usage = Failure::from_error(Exit::Usage, &source);
                match source {
                    WideningError::Unwritable { .. } => {
                        usage.hint("write `?` for the character that stands in the way")
                    }
                    WideningError::NoPlace { line } => usage
                        .at(FilePosition::line(path, line))
                        .hint("write `- **Touches:** a, b` on one line, then repeat the command"),
                }
            }
            PlanningError::PartName { .. } => {
                usage.hint("lower-case letters, digits and hyphens, each once: `--into api,docs`")
            }
            PlanningError::Split { bundle, source } => not_split(source, &bundle),
        }
    }
}

fn lanes_file_remedy(error: &LanesFileError) -> &'static str {
    match error {
        LanesFileError::Schema { .. } => {
            "another version of pdca wrote it: use that one, or remove the file to have groups made anew"
        }
        LanesFileError::Damaged { .. }
        | LanesFileError::DuplicateGroup { .. }
        | LanesFileError::EmptyGroup { .. }
        | LanesFileError::BundleTwice { .. }
        | LanesFileError::BadDependency { .. }
        | LanesFileError::NextInUse { .. } => {
            "restore it from version control, or remove the file to have groups made anew"
        }
    }
}

fn not_split(error: SplitError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let brief = bundle.path(Artifact::Brief);
    let usage = Failure::from_error(Exit::Usage, &error);
    match error {
        SplitError::State { .. } => {
            usage.at(FilePosition::file(bundle.dir())).hint(format!("`pdca why {id}` shows where it stands"))
        }
        SplitError::NoBrief { .. } => usage.hint(format!("`pdca new {id}`")),
        SplitError::NoParts { .. } => usage.at(FilePosition::file(brief)).hint(format!(
            "add `- **Part api:** …` lines to the brief, or `pdca split {id} --into api,docs` makes drafts"
        )),
        SplitError::One { .. } => {
            usage.at(FilePosition::file(brief)).hint("name two parts at least")
        }
        SplitError::NothingReady { waits, .. } => waits
            .into_iter()
            .fold(Failure::of(Exit::Waiting, usage.problems), Failure::detail)
            .at(FilePosition::file(brief))
            .hint("take `Waits for` out of a part once it can be started"),
        SplitError::Parts(error) => usage
            .at(FilePosition::line(brief, error.line()))
            .hint("a part is `- **Part api:** what`, with `After:` the ids of other parts"),
        SplitError::Id { .. } => usage.hint("use shorter names"),
        SplitError::Exists { .. } => usage
            .hint(format!("nothing was changed; name the part otherwise in the brief of {id}")),
        SplitError::Signoff(_) => {
            usage.at(FilePosition::file(bundle.path(Artifact::Summary))).hint("mend its headings")
        }
        SplitError::Root(error) => error.into(),
        SplitError::Load(error) => error.into(),
        SplitError::Create(error) => error.into(),
        SplitError::Write(error) => error.into(),
        SplitError::Admission(error) => driver::refused(&error),
    }
}
