//! `pdca act`: patterns across finished cycles, and the log of what the process learns from them.
//!
//! Also spelled `act-index`, `act-log` and `act-diff`.

pub(super) mod diff;
pub(super) mod index;
pub(super) mod log;
pub(super) mod resolve;
pub(super) mod review;

use std::io::Write;

use camino::Utf8Path;
use pdca_act::{Baseline, Source};
use pdca_state::{Bundle, BundleId, RootError};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;
use crate::workspace::{FILE, Workspace};

/// Review finished cycles, and record what the process learns
///
/// `index` shows recurring patterns, `log` starts a dated entry of the Act log, `review` has the program of
/// `[leaves.act]` fill it in, `resolve` closes a watched signal, `diff` shows the changes in the process since the last
/// entry. Which change follows from them is your decision.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act index               # what the cycles since the last review show
  pdca act log                 # the entry, to read
  pdca act log --record        # append it to process/act-log.md
  pdca act review              # have the act leaf fill it in; --record appends it
  pdca act resolve 2           # close the second watched signal
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
    Review(review::Args),
    Resolve(resolve::Args),
    Diff(diff::Args),
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    match &args.action {
        Action::Index(args) => index::run(args, cx),
        Action::Log(args) => log::run(args, cx, err),
        Action::Review(args) => review::run(args, cx, err),
        Action::Resolve(args) => resolve::run(args, cx),
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

/// Files and directories by which agents are instructed, and rules of scanners, as far as a workspace has them.
const INSTRUCTIONS: [&str; 6] =
    ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".aider.conf.yml", "opencode.json", ".semgrep.yml"];
const INSTRUCTION_DIRS: [&str; 6] = [
    ".claude/agents",
    ".claude/commands",
    ".codex",
    ".gemini/commands",
    ".opencode/agent",
    ".semgrep",
];

/// Returns the parts of the process: the templates, the process directory, prompts and agent files, and the tables of
/// `pdca.toml` that decide how cycles run.
fn sources(workspace: &Workspace) -> Vec<Source> {
    let paths = &workspace.config.paths;
    let directory = |name: &str, path: &Utf8Path| Source::Directory {
        name: name.to_owned(),
        path: path.to_owned(),
    };
    let mut sources = vec![
        directory(paths.templates_dir.as_str(), &workspace.templates_dir),
        directory(paths.process_dir.as_str(), &workspace.process_dir),
    ];
    let instructions = INSTRUCTIONS.into_iter().map(str::to_owned);
    for file in prompts(workspace).into_iter().chain(instructions) {
        sources.push(Source::File { path: workspace.root.join(&file), name: file });
    }
    sources
        .extend(INSTRUCTION_DIRS.into_iter().map(|dir| directory(dir, &workspace.root.join(dir))));
    if let Some(file) = &workspace.file {
        sources.extend(["driver", "gates", "leaves"].map(|key| Source::Table {
            name: format!("{FILE} [{key}]"),
            path: file.clone(),
            key: key.to_owned(),
        }));
    }
    sources
}

/// Digests the parts of the process. The second value lists what could not be read.
fn baseline(workspace: &Workspace) -> (Baseline, Vec<String>) {
    Baseline::collect(&sources(workspace))
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
