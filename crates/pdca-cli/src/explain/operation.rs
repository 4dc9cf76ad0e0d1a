//! Adds position, remedy and exit code to the errors of operations.

use pdca_workspace::OperationError;

use super::{driver, lanes};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition, Problem};

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        match &error {
            OperationError::NoTarget { name: Some(_), configured } if !configured.is_empty() => {
                Failure::usage(error.to_string())
                    .hint(format!("one of: {}", configured.join(", ")))
            }
            OperationError::NoTarget { .. } => Failure::usage(error.to_string())
                .hint("add a [[targets]] with a `path` to pdca.toml"),
            OperationError::Targets(closed) => {
                let known = "mend `path` of its [[targets]] in pdca.toml; `pdca doctor` looks at all";
                let problems = closed.iter().map(|(path, error)| {
                    Problem::new(pdca_state::chain(error))
                        .at(FilePosition::file(&**path))
                        .hint(error.feature().map_or(known, |feature| feature.remedy()))
                });
                Failure::of(Exit::Usage, problems.collect())
            }
            OperationError::Branch { checkout, source } => {
                Failure::from_error(Exit::Usage, source)
                    .at(FilePosition::file(&**checkout))
                    .hint("name a branch that exists as `branch` of its [[targets]]")
            }
            OperationError::NoLane { slots, .. } => {
                let slots: Vec<String> = slots.iter().map(ToString::to_string).collect();
                let make = if slots.is_empty() {
                    "`pdca lanes provision` makes lanes".to_owned()
                } else {
                    format!("lanes: {}; `pdca lanes provision` makes more", slots.join(", "))
                };
                Failure::usage(error.to_string()).hint(make)
            }
            OperationError::NoSweepLimit => Failure::usage(error.to_string()).hint(
                "give `--older-than DAYS` or `--min-free-gb GB`, or set `max_age_days` or `min_free_gb` in [lanes]",
            ),
            OperationError::Lock(error) => driver::refused(error),
            OperationError::Claim(error) => lanes::claim(error),
            OperationError::Lane(error) => lanes::lane(error),
            OperationError::Inspect(error) => lanes::inspect(error),
            OperationError::Config(_) | OperationError::Io(_) => by_value(error),
        }
    }
}

/// Converts the errors whose problems or source are taken over whole.
fn by_value(error: OperationError) -> Failure {
    match error {
        OperationError::Config(error) => error.into(),
        OperationError::Io(error) => error.into(),
        other => Failure::from_error(Exit::Unexpected, &other),
    }
}
