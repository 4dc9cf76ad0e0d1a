//! The Act log of a workspace: what the cycles show, the entry of a review, the signals it watches, what changed since.
//!
//! `pdca-act` finds the patterns in what it is given; this module knows where a workspace keeps the parts of its process, and
//! writes the log.
//!
//! # Invariants
//! - One recorder at a time: the process directory is locked while the log is read, appended to and replaced.
//! - An interrupted record is finished before another is begun, so no entry is lost or written twice.
//! - What a leaf wrote is recorded only after a person agreed.

mod cadence;
pub(crate) mod diff;
pub(crate) mod index;
pub(crate) mod log;
pub(crate) mod resolve;
pub(crate) mod review;

pub(crate) use cadence::{ActCadence, cadence};
pub(crate) use diff::diff;
pub(crate) use index::index;
pub(crate) use log::entry;
pub(crate) use resolve::{Resolve, resolve};
pub(crate) use review::{ActReviewRequest, review};

use camino::Utf8Path;
use pdca_act::{Baseline, ProcessPart};
use pdca_state::{Bundle, BundleId, RootError};
use pdca_workspace::config::workspace::{FILE, Workspace};

use crate::failure::Failure;

/// Returns whether a cycle ended since the last entry of the log.
pub(crate) fn is_due(workspace: &Workspace) -> Result<bool, Failure> {
    let records = pdca_act::ActRecords::load(&workspace.process_dir)?;
    let scope = pdca_act::IndexScope::SinceLastReview;
    Ok(!pdca_act::index(&bundles(workspace)?, &records, scope).cycles.is_empty())
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
        .filter_map(|glob| pdca_workspace::config::cache_pattern(glob).ok())
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

fn ids(ids: &[BundleId]) -> String {
    ids.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
