//! `pdca act`: patterns across finished cycles, and the log of what the process learns from them.
//!
//! Also spelled `act-index`, `act-log` and `act-diff`.

pub(super) mod diff;
pub(super) mod index;
pub(super) mod log;

use std::io::Write;

use pdca_act::{Baseline, RecordsError, Source};
use pdca_state::{Bundle, BundleId, RootError};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::report::Response;
use crate::workspace::{FILE, Workspace};

/// Review finished cycles, and record what the process learns
///
/// `index` shows recurring patterns, `log` starts a dated entry of the Act log, `diff` shows the changes in the
/// process since the last one. Which change follows from them is your decision.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act index               # what the cycles since the last review show
  pdca act log                 # the entry, to read
  pdca act log --record        # append it to process/act-log.md
  pdca act diff                # what changed in templates, gates, leaves and process since

The spellings `act-index`, `act-log` and `act-diff` work too.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Index(index::Args),
    Log(log::Args),
    Diff(diff::Args),
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    match &args.action {
        Action::Index(args) => index::run(args, cx),
        Action::Log(args) => log::run(args, cx, err),
        Action::Diff(args) => diff::run(args, cx),
    }
}

/// Returns every bundle, completed ones included.
fn bundles(workspace: &Workspace) -> Result<Vec<Bundle>, Failure> {
    let root = &workspace.bundle_root;
    let mut bundles = match root.list() {
        Err(RootError::Missing { .. }) => return Ok(Vec::new()),
        listed => listed?,
    };
    bundles.extend(root.list_completed()?);
    Ok(bundles)
}

/// Collects the parts of the process: the templates, the process directory, the prompts, and the tables of `pdca.toml` that
/// decide how cycles run. Comments and the order of keys do not count.
fn baseline(workspace: &Workspace) -> Result<(Baseline, Vec<String>), Failure> {
    let paths = &workspace.config.paths;
    let mut sources = vec![
        Source::Directory {
            name: paths.templates_dir.to_string(),
            path: workspace.templates_dir.clone(),
        },
        Source::Directory {
            name: paths.process_dir.to_string(),
            path: workspace.process_dir.clone(),
        },
    ];
    for prompt in prompts(workspace) {
        sources.push(Source::File { path: workspace.root.join(&prompt), name: prompt });
    }
    if let Some(file) = &workspace.file {
        let text = fs_err::read_to_string(file)?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            Failure::from_error(Exit::Usage, &error).at(Place::file(&**file))
        })?;
        for key in ["driver", "gates", "leaves"] {
            if let Some(value) = table.get(key) {
                sources.push(Source::Text {
                    name: format!("{FILE} [{key}]"),
                    text: value.to_string(),
                });
            }
        }
    }
    Ok(Baseline::collect(&sources))
}

/// Returns the prompt files of leaves, as configured.
fn prompts(workspace: &Workspace) -> Vec<String> {
    let leaves = &workspace.config.leaves;
    let all = leaves.all().map(|(_, _, leaf)| leaf).chain(&leaves.builder_variant);
    let mut files: Vec<String> =
        all.filter_map(|leaf| leaf.prompt_file.as_ref()).map(ToString::to_string).collect();
    files.sort_unstable();
    files.dedup();
    files
}

fn ids(ids: &[BundleId]) -> String {
    ids.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl From<RecordsError> for Failure {
    fn from(error: RecordsError) -> Self {
        match error {
            RecordsError::Read(error) => error.into(),
            RecordsError::Ledger { ref path, .. } => Failure::from_error(Exit::Usage, &error)
                .at(Place::file(&**path))
                .hint("mend the file, or move it away: then a new one is begun"),
            RecordsError::Write(_) => Failure::from_error(Exit::Unexpected, &error),
        }
    }
}
