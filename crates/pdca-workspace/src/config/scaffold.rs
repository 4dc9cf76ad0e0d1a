//! The files of a new workspace: what a directory and `PATH` offer, and the configuration made of it.

mod agents;
mod detect;
mod guard;
mod init;
mod instructions;

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_leaves::ROLES;
use pdca_state::files;
use serde::Serialize;

pub use agents::{AgentPair, Chosen, parse_builder, parse_reviewer};
pub use detect::{DetectedTools, ProposedCheck, detect};
pub use init::{InitRequest, NewWorkspace, plan_workspace};
pub use instructions::{AgentsFiles, instruction_texts, instructions};

use crate::config::workspace::FILE;
use crate::config::{ConfigError, FilePosition, Problem};

/// The brief that `new` fills in if the workspace has no template.
pub const BRIEF_TEMPLATE: &str = include_str!("scaffold/brief.md.tpl");
const CONFIG_TEMPLATE: &str = include_str!("scaffold/pdca.toml.tpl");
const ACT_LOG: &str = include_str!("scaffold/act-log.md");
const WORKFLOW: &str = include_str!("scaffold/workflow.yml");
/// The workflow, relative to the workspace.
pub const WORKFLOW_FILE: &str = ".github/workflows/pdca.yml";

/// One file to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewFile {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    #[serde(skip)]
    pub text: String,
    /// The file exists and gets another line.
    pub appends: bool,
}

/// A workspace that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error("{path} cannot be written")]
    Write { path: Utf8PathBuf, source: std::io::Error },
}

impl NewFile {
    /// Writes the file, with the directories above it.
    fn write(&self, workspace: &Utf8Path) -> Result<(), ScaffoldError> {
        let path = workspace.join(&self.path);
        let written = path
            .parent()
            .map_or(Ok(()), fs_err::create_dir_all)
            .and_then(|()| files::rewrite(&path, self.text.as_bytes()));
        written.map_err(|source| ScaffoldError::Write { path, source })
    }
}

/// Returns the files that do not exist yet.
fn plan(
    dir: &Utf8Path,
    found: &DetectedTools,
    pair: AgentPair,
    guarded: &BTreeSet<&str>,
    source: Option<&PdcaSource>,
    notes: &mut Vec<String>,
) -> Result<Vec<NewFile>, ScaffoldError> {
    for config in [dir.join(FILE), dir.join(".config").join(FILE)] {
        if exists(&config) && !config.is_file() {
            let problem = Problem::new("there is something else where the config belongs");
            let problem = problem.at(FilePosition::file(config));
            let problem = problem.hint("move it away; `pdca init` writes a file there");
            return Err(ConfigError::from(problem).into());
        }
    }
    let mut files = vec![
        ("templates/brief.md.tpl", BRIEF_TEMPLATE.to_owned()),
        ("process/act-log.md", ACT_LOG.to_owned()),
    ];
    // The config may also be in .config.
    if !exists(&dir.join(".config").join(FILE)) {
        files.insert(0, (FILE, config_text(dir, found, pair)));
    }
    if found.repository.as_deref() == Some(Utf8Path::new(".")) {
        if source.is_none() {
            let what = "the workflow does not say where pdca is built from";
            notes.push(format!(
                "{what}; `--pdca-source URL@REV` writes it, or edit {WORKFLOW_FILE}"
            ));
        }
        files.push((WORKFLOW_FILE, workflow(source)));
    }
    let mut items: Vec<NewFile> = files
        .into_iter()
        .map(|(path, text)| NewFile { path: dir.join(path), text, appends: false })
        .filter(|item| !exists(&item.path))
        .collect();
    items.extend(guard::items(dir, guarded, notes)?);
    // Beside its target the workspace may be in no repository; then the file does no harm.
    if found.repository.is_some() {
        items.extend(ignore_item(&dir.join(".gitignore"))?);
    }
    Ok(items)
}

/// Where CI builds this program from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdcaSource {
    /// A repository that cargo can clone.
    pub url: String,
    /// A tag or a commit; the newest commit if unset.
    pub rev: Option<String>,
}

impl PdcaSource {
    /// Returns the source that was known when this program was built: `repository` of its manifest.
    pub fn built_in() -> Option<Self> {
        let url = env!("CARGO_PKG_REPOSITORY");
        (!url.is_empty()).then(|| Self { url: url.to_owned(), rev: None })
    }
}

impl std::str::FromStr for PdcaSource {
    type Err = String;

    /// Parses `URL` or `URL@REV`. An `@` before the last `/` or `:` is part of the address.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |part: &str| {
            !part.is_empty()
                && !part.starts_with('-')
                && part.chars().all(|c| c.is_ascii_graphic() && !"'\"\\$`".contains(c))
        };
        let (url, rev) = match text.rsplit_once('@') {
            Some((url, rev))
                if !url.is_empty() && !rev.contains([':']) && url.contains(['/', ':']) =>
            {
                (url, Some(rev))
            }
            _ => (text, None),
        };
        if !is_plain(url) || !url.contains(['/', ':']) || rev.is_some_and(|rev| !is_plain(rev)) {
            return Err("expected the address of a git repository, as URL or URL@REV".to_owned());
        }
        Ok(Self { url: url.to_owned(), rev: rev.map(str::to_owned) })
    }
}

/// Returns the workflow for a source; without one, it has an empty place for it.
pub fn workflow(source: Option<&PdcaSource>) -> String {
    let url = source.map_or("", |source| &source.url);
    let rev = source.and_then(|source| source.rev.as_deref()).unwrap_or_default();
    WORKFLOW.replace("{source}", &quoted(url)).replace("{rev}", &quoted(rev))
}

/// Returns whether a workflow has an empty place where it should say where `pdca` is built from.
pub fn lacks_source(workflow: &str) -> bool {
    workflow.lines().any(|line| line.trim() == "PDCA_SOURCE: \"\"")
}

fn exists(path: &Utf8Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns the `.gitignore` with `.pdca/`, which holds the driver's own files.
fn ignore_item(path: &Utf8Path) -> std::io::Result<Option<NewFile>> {
    const LINE: &str = ".pdca/";
    if !exists(path) {
        return Ok(Some(NewFile {
            path: path.to_owned(),
            text: format!("{LINE}\n"),
            appends: false,
        }));
    }
    let bytes = fs_err::read(path)?;
    let Ok(mut text) = String::from_utf8(bytes) else { return Ok(None) };
    if text.lines().any(|line| matches!(line.trim(), ".pdca" | ".pdca/" | "/.pdca" | "/.pdca/")) {
        return Ok(None);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(LINE);
    text.push('\n');
    Ok(Some(NewFile { path: path.to_owned(), text, appends: true }))
}

fn config_text(dir: &Utf8Path, found: &DetectedTools, pair: AgentPair) -> String {
    let name = dir.file_name().unwrap_or("workspace");
    // The directory's name comes last, because it is the only text here that could contain a placeholder.
    CONFIG_TEMPLATE
        .replace("{targets}\n", &targets_text(found.repository.as_deref()))
        .replace("{gates}\n", &gates_text(&found.gates))
        .replace("{leaves}\n", &pair.config_text())
        .replace("{cache}\n", &cache_text(&found.caches))
        .replace("{roles}", &roles_text())
        .replace("{lanes}", &quoted(&format!("../{name}.lanes")))
        .replace("{name}", &quoted(name))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn targets_text(repository: Option<&Utf8Path>) -> String {
    let (mark, path) = match repository {
        Some(path) => ("", path),
        None => ("#", Utf8Path::new("../repo")),
    };
    format!(
        "{mark}[[targets]]\n{mark}path = {}\n#name = \"repo\"\n#repo = \"owner/repo\"\n#branch = \"main\"\n\n",
        quoted(path.as_str())
    )
}

fn gates_text(rows: &[ProposedCheck]) -> String {
    let row = |row: &ProposedCheck| {
        format!(
            "\n[[gates.checks]]\nid = {}\ntier = {}\nlabel = {}\ncmd = {}\nscope = \"repo\"\ngating = {}\nneeds = []\n",
            quoted(row.id),
            quoted(row.tier),
            quoted(row.label),
            quoted(row.cmd),
            row.gating
        )
    };
    rows.iter().map(row).collect::<String>() + "\n"
}

/// Renders the proposed caches; a comment if there are none.
fn cache_text(caches: &[&str]) -> String {
    let list: Vec<String> = caches.iter().map(|cache| quoted(cache)).collect();
    let comment = if caches.is_empty() { "#" } else { "" };
    format!("{comment}cache = [{}]\n", list.join(", "))
}

/// Lists the roles that have a table of their own.
fn roles_text() -> String {
    let single = ROLES.iter().filter(|spec| spec.list.is_none());
    single.map(|spec| spec.name).collect::<Vec<_>>().join(", ")
}

/// Returns the path of a target as `pdca.toml` names it, and refuses one that is no repository.
fn target_path(
    dir: &Utf8Path,
    given: &Utf8Path,
    cwd: &Utf8Path,
) -> Result<Utf8PathBuf, ConfigError> {
    let full = cwd.join(given);
    if !exists(&full.join(".git")) {
        return Err(Problem::new(format!("`{given}` is no git repository with a checkout"))
            .at(FilePosition::file(full))
            .hint("`--target` names the top directory of a repository")
            .into());
    }
    // A relative path in the file is relative to the workspace.
    if given.is_absolute() || dir == cwd { Ok(given.to_owned()) } else { Ok(full) }
}

/// Returns the lines of a configuration that say something.
fn settings(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let mut shown: Vec<&str> = Vec::new();
    for line in lines {
        // A table in which nothing is set says nothing.
        if line.starts_with('[') && shown.last().is_some_and(|last| last.starts_with('[')) {
            shown.pop();
        }
        shown.push(line);
    }
    if shown.last().is_some_and(|last| last.starts_with('[')) {
        shown.pop();
    }
    shown.join("\n")
}
