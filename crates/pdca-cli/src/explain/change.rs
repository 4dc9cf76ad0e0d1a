//! Adds position and remedy to the errors of reading a change.

use pdca_workspace::review::ChangeError;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};

/// Explains why a change cannot be read.
pub(crate) fn change(error: ChangeError, cx: &Context<'_>) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        ChangeError::NoAttempt { id, newest, .. } => {
            let newest_one = cx.typed(&format!("pdca diff {id} --attempt {newest}"));
            failure.hint(format!("it has {newest}; `{newest_one}` shows the newest"))
        }
        ChangeError::NoAttemptBefore { id } => {
            failure.hint(cx.typed(&format!("`pdca diff {id}` shows the whole change")))
        }
        ChangeError::NoChange { id, file, .. } => Failure::of(Exit::NothingToDo, failure.problems)
            .at(FilePosition::file(file))
            .hint(cx.typed(&format!("`pdca why {id}` says what comes next"))),
        ChangeError::Load(error) => error.into(),
    }
}
