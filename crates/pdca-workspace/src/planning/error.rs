//! The reasons for a batch not to be planned, or a brief not to be changed.

use std::io;

use camino::Utf8PathBuf;
use pdca_dag::{LanesFileError, PatternError, Rejection};
use pdca_driver::SplitError;
use pdca_state::{Bundle, BundleId, State, WideningError};

use super::lanes_file::FILE;
use crate::OperationError;

/// A batch was not planned, or a brief was not changed.
#[derive(Debug, thiserror::Error)]
pub enum PlanningError {
    /// The batch cannot be carried out.
    #[error("{rejection}")]
    Rejected {
        rejection: Rejection,
        /// The error of reading `lanes.json`, if that failed too.
        lanes_file: Option<Box<OperationError>>,
    },
    /// `lanes.json` is damaged or of another version.
    #[error("{FILE} cannot be used")]
    LanesFile {
        path: Utf8PathBuf,
        /// The line that the error is about.
        line: Option<usize>,
        source: LanesFileError,
    },
    /// `[schedule] lanes_json` requires the file.
    #[error("there is no {FILE}, and `[schedule] lanes_json` requires one")]
    NoLanesFile { path: Utf8PathBuf },
    /// The declarations have changed since the file was written.
    #[error("{FILE} is out of date: the briefs declare something else by now")]
    StaleLanesFile { path: Utf8PathBuf },
    /// A bundle of the file is not finished, and the request leaves it out.
    #[error("{FILE} has a group for {}, which would lose it", in_one_line(missing))]
    LeftOutOfLanesFile { path: Utf8PathBuf, missing: Vec<BundleId> },
    #[error("{FILE} cannot be written")]
    WriteLanesFile { path: Utf8PathBuf, source: io::Error },
    /// The globs that cannot be read, each with the reason.
    #[error("{}", globs_in_one_line(.0))]
    Globs(Vec<(String, PatternError)>),
    /// A brief is widened with a reason.
    #[error("the reason is empty")]
    NoReason,
    /// The bundle is frozen or was never built.
    #[error("{} is {state}{}", bundle.id().dir_name(), settled(*state))]
    Settled { bundle: Box<Bundle>, state: State },
    #[error("{} has no brief", bundle.id().dir_name())]
    NoBrief { bundle: Box<Bundle> },
    #[error("the brief is not UTF-8")]
    BriefNotUtf8 { path: Utf8PathBuf },
    #[error("the brief would be too long to be read")]
    BriefTooLong { path: Utf8PathBuf },
    #[error("cannot add the globs to the brief")]
    Widening { path: Utf8PathBuf, source: WideningError },
    /// A name of a new bundle is not one, or is there twice.
    #[error("`{name}` cannot name a part")]
    PartName { name: String },
    #[error("cannot split {}", bundle.id())]
    Split { bundle: Box<Bundle>, source: SplitError },
}

fn in_one_line(ids: &[BundleId]) -> String {
    ids.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ")
}

fn globs_in_one_line(globs: &[(String, PatternError)]) -> String {
    let one =
        |(glob, error): &(String, PatternError)| format!("`{}`: {error}", glob.escape_debug());
    globs.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn settled(state: State) -> &'static str {
    match state {
        State::Complete | State::Discontinued => ": what it touched is settled",
        State::Resolved
        | State::Unplanned
        | State::Planned
        | State::Built
        | State::Checked
        | State::AwaitingSignoff
        | State::Iterate(_) => "",
    }
}
