//! Act: what the finished cycles show, the entry of a review, the signals it watches, what changed since.
//!
//! `pdca-act` finds the patterns in the records it is given, and records reviews; this module knows where a workspace keeps
//! the parts of its process.
//!
//! # Invariants
//! - Text written by a leaf is recorded only after a person agreed: [`ActReview::finish`] is told so.

mod cadence;
mod diff;
mod entry;
mod resolve;
mod review;

pub use cadence::{ActCadence, cadence};
pub use diff::{BaselineDiff, RecordedReview, baseline_diff};
pub use entry::{ActEntry, act_entry};
pub use resolve::{ResolveRequest, WatchedSignals, resolve_signals};
pub use review::{ActReview, ReviewedEntry, begin_review};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_act::{ActRecords, Baseline, EntryError, Index, IndexScope, ProcessPart};
use pdca_driver::BeatError;

use crate::config::workspace::{FILE, Workspace};
use crate::{OpenWorkspace, OperationError};

/// The reasons why an operation of Act was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("`{given}` is not a date")]
    NotADate { given: String },
    /// A signal is to be closed, and there is none.
    #[error("no review watches a signal")]
    NoSignals { log: Utf8PathBuf },
    #[error("there is no signal {number}")]
    NoSignal { number: usize, count: usize },
    /// A signal is to be closed, and no name is known to close it in.
    #[error("no sign-off author")]
    NoAuthor,
    /// The draft of an entry cannot be recorded as it is.
    #[error(transparent)]
    Draft(DraftError),
    /// The act leaf failed.
    #[error(transparent)]
    Leaf(BeatError),
}

/// The draft of an entry is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct DraftError {
    pub path: Utf8PathBuf,
    pub source: EntryError,
}

/// Builds the index of the cycles since the last review, or of all.
pub fn index(open: &OpenWorkspace<'_>, scope: IndexScope) -> Result<Index, OperationError> {
    let records = ActRecords::load(&open.workspace.process_dir)?;
    Ok(pdca_act::index(&open.workspace.every_bundle()?, &records, scope))
}

/// Returns whether a cycle ended since the last entry of the log.
pub fn has_unreviewed_cycle(open: &OpenWorkspace<'_>) -> Result<bool, OperationError> {
    Ok(!index(open, IndexScope::SinceLastReview)?.cycles.is_empty())
}

/// Returns the date of an entry: the given one, or today.
fn date(given: Option<&str>, open: &OpenWorkspace<'_>) -> Result<String, OperationError> {
    let Some(given) = given else { return Ok(open.today().to_string()) };
    match given.parse::<jiff::civil::Date>() {
        Ok(date) => Ok(date.to_string()),
        Err(_) => Err(ActError::NotADate { given: given.to_owned() }.into()),
    }
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
fn sources(workspace: &Workspace) -> Vec<ProcessPart> {
    let paths = &workspace.config.paths;
    let directory = |name: &str, path: &Utf8Path| ProcessPart::Directory {
        name: name.to_owned(),
        path: path.to_owned(),
    };
    let mut sources = vec![
        directory(paths.templates_dir.as_str(), &workspace.templates_dir),
        directory(paths.process_dir.as_str(), &workspace.process_dir),
    ];
    let instructions = INSTRUCTIONS.into_iter().map(str::to_owned);
    for file in prompts(workspace).into_iter().chain(instructions) {
        sources.push(ProcessPart::File { path: workspace.root.join(&file), name: file });
    }
    sources.extend(rules(workspace));
    sources
        .extend(INSTRUCTION_DIRS.into_iter().map(|dir| directory(dir, &workspace.root.join(dir))));
    if let Some(file) = &workspace.file {
        sources.extend(["driver", "gates", "leaves"].map(|key| ProcessPart::Table {
            name: format!("{FILE} [{key}]"),
            path: file.clone(),
            key: key.to_owned(),
        }));
    }
    sources
}

/// The most directory entries that are looked at for `[act] rules`.
const MAX_ENTRIES: usize = 50_000;

/// Returns the files that `[act] rules` names, in the order of their names. Bundles and the driver's own directory are left out.
fn rules(workspace: &Workspace) -> Vec<ProcessPart> {
    // One that does not parse was refused when the configuration was loaded.
    let globs: Vec<_> = workspace
        .config
        .act
        .rules
        .iter()
        .filter_map(|glob| crate::config::cache_pattern(glob).ok())
        .collect();
    let mut found = Vec::new();
    let mut dirs = vec![workspace.root.clone()];
    let mut left = MAX_ENTRIES;
    while let Some(dir) = dirs.pop().filter(|_| !globs.is_empty()) {
        for entry in dir.read_dir_utf8().into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            let path = entry.into_path();
            let Ok(name) = path.strip_prefix(&workspace.root) else { continue };
            let is_own = path == workspace.bundle_root.path()
                || [".git", ".pdca"].contains(&name.file_name().unwrap_or_default());
            // A link is followed neither to a directory nor to a file: what it leads to is not the workspace's.
            let about = path.symlink_metadata().ok().filter(|_| !is_own && left > 0);
            match about {
                Some(about) if about.is_dir() => dirs.push(path),
                Some(about) if about.is_file() => {
                    if globs.iter().any(|glob| glob.covers(name.as_str())) {
                        found
                            .push(ProcessPart::File { name: name.to_string(), path: path.clone() });
                    }
                }
                Some(_) | None => {}
            }
        }
    }
    found.sort_by(|a, b| part_name(a).cmp(part_name(b)));
    found
}

fn part_name(part: &ProcessPart) -> &str {
    match part {
        ProcessPart::Directory { name, .. }
        | ProcessPart::File { name, .. }
        | ProcessPart::Table { name, .. } => name,
    }
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
