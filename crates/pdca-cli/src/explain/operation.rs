//! Adds position, remedy and exit code to the errors of operations.

use pdca_workspace::OperationError;
use pdca_workspace::act::{ActError, DraftError};
use pdca_workspace::batch_report::ReportError;
use pdca_workspace::drafts::{NewBundleError, TemplateNotUtf8};

use super::{driver, hosts, lanes, logs, recovery, select};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition, Problem};

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::NoTarget { name: Some(_), ref configured } if !configured.is_empty() => {
                Failure::usage(error.to_string())
                    .hint(format!("one of: {}", configured.join(", ")))
            }
            OperationError::NoTarget { .. } => Failure::usage(error.to_string())
                .hint("add a [[targets]] with a `path` to pdca.toml"),
            OperationError::Targets(ref closed) => {
                let known = "mend `path` of its [[targets]] in pdca.toml; `pdca doctor` looks at all";
                let problems = closed.iter().map(|(path, error)| {
                    Problem::new(pdca_state::chain(error))
                        .at(FilePosition::file(&**path))
                        .hint(error.feature().map_or(known, |feature| feature.remedy()))
                });
                Failure::of(Exit::Usage, problems.collect())
            }
            OperationError::Branch { ref checkout, ref source } => {
                Failure::from_error(Exit::Usage, source)
                    .at(FilePosition::file(&**checkout))
                    .hint("name a branch that exists as `branch` of its [[targets]]")
            }
            OperationError::NoLane { ref slots, .. } => {
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
            OperationError::Lock(error) => driver::refused(&error),
            OperationError::Claim(error) => lanes::claim(&error),
            OperationError::Lane(error) => lanes::lane(&error),
            OperationError::Inspect(error) => lanes::inspect(&error),
            OperationError::Act(error) => act(&error),
            OperationError::Config(error) => error.into(),
            OperationError::Integration(error) => error.into(),
            OperationError::Planning(error) => error.into(),
            OperationError::Root(error) => error.into(),
            OperationError::Vanished(_) => Failure::unexpected(error.to_string()),
            OperationError::Read(error) => error.into(),
            OperationError::Load(error) => error.into(),
            OperationError::Write(error) => error.into(),
            OperationError::Create(error) => error.into(),
            OperationError::Beat { bundle, source } => driver::explain(&bundle, *source),
            OperationError::NewBundle(error) => new_bundle(&error),
            OperationError::TemplateNotUtf8(TemplateNotUtf8 { ref path, line }) => {
                Failure::usage(error.to_string())
                    .at(FilePosition::line(&**path, line))
                    .hint("save it as UTF-8")
            }
            OperationError::Select(error) => select::explain(&error),
            OperationError::Records(error) => error.into(),
            OperationError::Report(ReportError::NoSuchRun { wanted }) if wanted == "latest" => {
                Failure::usage("no run is recorded yet").hint("`pdca run` or `pdca batch` makes one")
            }
            OperationError::Report(error) => {
                let failure = Failure::from_error(Exit::Usage, &error);
                match error {
                    ReportError::NoSuchRun { .. } => failure
                        .hint("`--run latest` takes the last one; Tab completes the others"),
                    ReportError::Runs(_) => failure,
                }
            }
            OperationError::Io(error) => error.into(),
            OperationError::Refs(error) => Failure::from_error(Exit::Unexpected, &error)
                .hint("`pdca doctor` looks at the targets; nothing of an integration was removed"),
            OperationError::Recovery(error) => recovery::explain(&error),
            OperationError::Lanes(error) => lanes::operation(&error),
            OperationError::Hosts(error) => hosts::explain(&error),
            OperationError::Log(error) => logs::explain(&error, str::to_owned),
        }
    }
}

fn act(error: &ActError) -> Failure {
    let usage = Failure::from_error(Exit::Usage, error);
    match error {
        ActError::NotADate { .. } => usage.hint("dates look like 2026-11-16"),
        ActError::NoSignals { log } => usage
            .at(FilePosition::file(&**log))
            .hint("`pdca act log` starts an entry; its last section names signals"),
        ActError::NoSignal { count, .. } => {
            usage.hint(format!("`pdca act resolve` lists them: 1 to {count}"))
        }
        ActError::NoAuthor => usage.hint("pass `--by NAME` or set `author` in [project]"),
        ActError::Draft(DraftError { path, source }) => Failure::from_error(Exit::Usage, source)
            .at(FilePosition::file(&**path))
            .hint("mend the draft, then `pdca act review --record`; or `pdca act review --fresh`"),
        ActError::Leaf(_) => Failure::from_error(Exit::Unexpected, error)
            .hint("`pdca act review` asks again; `pdca act log --record` does without the leaf"),
    }
}

fn new_bundle(error: &NewBundleError) -> Failure {
    let usage = Failure::from_error(Exit::Usage, error);
    match error {
        NewBundleError::Ended { dir, .. } => usage
            .at(FilePosition::file(&**dir))
            .hint("a decision is final: use another id for what is to follow"),
        NewBundleError::Archived { dir, .. } => usage
            .at(FilePosition::file(&**dir))
            .hint("move it back to the bundle root, or use another id"),
        NewBundleError::HasBrief { file, filled, .. } => {
            usage.at(FilePosition::file(&**file)).hint(if *filled {
                "`pdca status` shows its state; edit the file to change it"
            } else {
                "edit that file"
            })
        }
        NewBundleError::NoFile { path } => {
            usage.at(FilePosition::file(&**path)).hint("name a brief")
        }
    }
}
