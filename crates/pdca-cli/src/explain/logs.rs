//! Adds remedies to the errors of logs.

use pdca_workspace::logs::LogError;

use crate::exit::Exit;
use crate::failure::Failure;

/// Explains why there is no log; `typed` renders a command for the user to type.
pub(crate) fn explain(error: &LogError, typed: impl Fn(&str) -> String) -> Failure {
    let nothing = Failure::new(Exit::NothingToDo, error.to_string());
    match error {
        LogError::NoAttempt { id, newest, .. } => {
            let newest_log = typed(&format!("pdca log {id} --attempt {newest}"));
            Failure::usage(error.to_string())
                .hint(format!("it has {newest}; `{newest_log}` shows the newest"))
        }
        LogError::NoLog { id, leaves, .. } if leaves.is_empty() => {
            let why = typed(&format!("pdca why {id}"));
            nothing.hint(format!(
                "nothing was called yet, or it was by a version that kept no logs; `{why}` says what it waits for"
            ))
        }
        LogError::NoLog { id, leaves, .. } => {
            let newest = typed(&format!("pdca log {id}"));
            nothing.hint(format!(
                "there are logs of {}; `{newest}` shows the newest",
                leaves.join(", ")
            ))
        }
        LogError::NoRun(_) => Failure::usage(error.to_string())
            .hint("`pdca replay` alone takes the last one; Tab completes the others"),
    }
}
