//! The reasons why a selection is not carried out, or not to its end.

use std::io;

use camino::Utf8PathBuf;
use pdca_forge::publish::ForgeError;
use pdca_forge::select::PoolError;
use pdca_process::ToolError;
use pdca_state::BundleId;

use crate::config::FilePosition;

#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    #[error("no export is named")]
    NoExport,
    #[error("`{given}` is no repository")]
    NotARepository { given: String },
    #[error("`{given}` is no separator")]
    NotASeparator { given: String },
    #[error("`{given}` cannot be the name of a batch")]
    NotABatchName { given: String },
    /// The export cannot be opened.
    #[error("{source}")]
    Export { path: Utf8PathBuf, source: io::Error },
    /// The settings or the records are invalid.
    #[error("{source}")]
    Pool { place: FilePosition, source: Box<PoolError> },
    #[error("this is the wrong export: {} not in it", listed(missing))]
    WrongExport { missing: Vec<BundleId>, records: usize, place: FilePosition },
    /// Records that were named are not in the export.
    #[error("{} not in the export", listed(missing))]
    NotInExport { missing: Vec<BundleId>, place: FilePosition },
    #[error("there is no bucket `{name}`")]
    NoBucket { name: String, known: Vec<String> },
    /// A person has to choose among so many records.
    #[error("{count} records would become drafts")]
    Undecided { count: usize },
    /// Another selection holds the lock of the batches.
    #[error("another `pdca select` is at work")]
    Busy { dir: Utf8PathBuf },
    /// The index of the batch, or its directory, cannot be written.
    #[error("{source}")]
    Write { path: Utf8PathBuf, source: io::Error },
    #[error("the index of the batch is not UTF-8")]
    IndexNotUtf8 { file: Utf8PathBuf },
    #[error(transparent)]
    Forge(ForgeError),
    /// A command of the configuration could not be run.
    #[error("{source}")]
    Command { name: String, source: ToolError },
    /// A command of the configuration failed.
    #[error("{name} ended with exit code {code}")]
    CommandFailed { name: String, code: i32, last_line: Option<String> },
    /// The output of `notes_cmd` is invalid.
    #[error("{name} did not print a JSON object")]
    NotAnObject { name: String, place: Option<FilePosition>, source: serde_json::Error },
    #[error("`{id}` is no number of an issue")]
    NotANumber { id: BundleId },
    #[error("the thread of {id} is larger than 16 MiB")]
    ThreadTooLarge { id: BundleId },
    #[error("interrupted")]
    Interrupted,
}

impl From<ForgeError> for SelectError {
    fn from(error: ForgeError) -> Self {
        match error {
            ForgeError::Interrupted => Self::Interrupted,
            error @ (ForgeError::Missing { .. }
            | ForgeError::NotLoggedIn { .. }
            | ForgeError::Passing { .. }
            | ForgeError::Refused { .. }
            | ForgeError::Run { .. }
            | ForgeError::Answer { .. }
            | ForgeError::Unseen { .. }) => Self::Forge(error),
        }
    }
}

fn listed(ids: &[BundleId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
