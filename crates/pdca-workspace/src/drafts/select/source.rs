//! The sources of records: a CSV export, `gh`, a command.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_forge::publish::Gh;
use pdca_forge::select::{Pool, PoolError, Selector};
use pdca_process::{Cancel, Tool, ToolError};
use pdca_state::BundleId;

use super::SelectError;
use crate::config::FilePosition;
use crate::config::workspace::Workspace;
use crate::{OpenWorkspace, OperationError};

/// The most issues that are read from a forge.
pub(super) const MOST_ISSUES: u32 = 5000;
/// The longest output of a command, in bytes.
const MOST_OUTPUT: usize = 256 << 20;

/// The place that records are read from.
pub enum ExportSource<'a> {
    /// A CSV file.
    Csv { path: &'a Utf8Path, separator: Option<&'a str> },
    /// CSV that can be read once only.
    StandardInput { input: &'a mut dyn Read, separator: Option<&'a str> },
    /// The open issues of a repository, through `gh`.
    Gh(&'a str),
    /// The output of `[select] cmd`.
    Configured,
}

impl fmt::Debug for ExportSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Csv { path, .. } => f.debug_tuple("Csv").field(path).finish(),
            Self::StandardInput { .. } => f.write_str("StandardInput"),
            Self::Gh(repo) => f.debug_tuple("Gh").field(repo).finish(),
            Self::Configured => f.write_str("Configured"),
        }
    }
}

#[derive(Debug)]
pub(super) enum IssueSource {
    Csv {
        /// The path as typed, or `standard input`.
        name: String,
        place: Utf8PathBuf,
        /// Opened once, so that both passes read the same file.
        file: File,
        separator: Option<u8>,
    },
    Gh {
        repo: String,
    },
    Command {
        command: String,
    },
}

impl IssueSource {
    pub(super) fn open(
        source: ExportSource<'_>,
        open: &OpenWorkspace<'_>,
    ) -> Result<Self, OperationError> {
        match source {
            ExportSource::Csv { path, separator } => {
                Ok(Self::open_csv(path, separator, open.environment.cwd)?)
            }
            ExportSource::StandardInput { input, separator } => {
                let separator = separator.map(separator_of).transpose()?;
                let name = "standard input".to_owned();
                let file = spool(input)?;
                Ok(Self::Csv { place: name.clone().into(), name, file, separator })
            }
            ExportSource::Gh(repo) => Ok(Self::open_gh(repo)?),
            ExportSource::Configured => match &open.workspace.config.select.cmd {
                Some(command) => Ok(Self::Command { command: command.clone() }),
                None => Err(SelectError::NoExport.into()),
            },
        }
    }

    fn open_csv(
        path: &Utf8Path,
        given: Option<&str>,
        cwd: &Utf8Path,
    ) -> Result<Self, OperationError> {
        let separator = given.map(separator_of).transpose()?;
        let place = cwd.join(path);
        let failed = |source| SelectError::Export { path: place.clone(), source };
        let mut file = File::open(&place).map_err(|error| {
            let kind = error.kind();
            failed(if kind == io::ErrorKind::NotFound {
                io::Error::new(kind, "there is no such file")
            } else {
                io::Error::new(kind, error.to_string())
            })
        })?;
        let meta = file.metadata().map_err(failed)?;
        if meta.is_dir() {
            return Err(failed(io::Error::other("this is a directory")).into());
        }
        if !meta.is_file() {
            // A pipe can be read once only.
            file = spool(&mut file)?;
        }
        Ok(Self::Csv { name: path.to_string(), place, file, separator })
    }

    fn open_gh(repo: &str) -> Result<Self, SelectError> {
        let parts: Vec<&str> = repo.split('/').collect();
        // A part that begins with a dash would reach `gh` as an option.
        let is_plain = |part: &&str| {
            let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !part.is_empty() && !part.starts_with('-') && part.chars().all(legal)
        };
        if !(2..=3).contains(&parts.len()) || !parts.iter().all(is_plain) {
            return Err(SelectError::NotARepository { given: repo.to_owned() });
        }
        Ok(Self::Gh { repo: repo.to_owned() })
    }

    /// Returns the name of the source for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Csv { name, .. } => name.clone(),
            Self::Gh { repo } => format!("the issues of {repo}"),
            Self::Command { .. } => "[select] cmd".to_owned(),
        }
    }

    pub(super) fn place(&self) -> FilePosition {
        match self {
            Self::Csv { place, .. } => FilePosition::file(&**place),
            Self::Gh { .. } | Self::Command { .. } => FilePosition::file(self.name()),
        }
    }

    pub(super) fn read(
        &self,
        selector: &Selector,
        workspace: &Workspace,
        cancel: &Cancel,
    ) -> Result<Pool, OperationError> {
        let pool = match self {
            Self::Csv { file, separator, .. } => {
                rewind(file)?;
                selector.read_csv(file, *separator)
            }
            Self::Gh { repo } => {
                let issues = gh(workspace, repo, cancel).issues(MOST_ISSUES);
                selector.read_json(&issues.map_err(SelectError::from)?)
            }
            Self::Command { command } => {
                let seconds = workspace.config.select.timeout_secs;
                let tool = Tool::new("sh")
                    .args(["-c", command])
                    .cwd(&workspace.root)
                    .timeout(Duration::from_secs(seconds))
                    .ended_by(cancel)
                    .max_stdout(MOST_OUTPUT);
                selector.read_json(&output(&tool, "[select] cmd")?)
            }
        };
        Ok(pool.map_err(|error| self.invalid(error))?)
    }

    fn invalid(&self, source: PoolError) -> SelectError {
        SelectError::Pool { place: self.place(), source: Box::new(source) }
    }

    /// Reads the descriptions of some records from the export, where it has any.
    pub(super) fn descriptions(
        &self,
        selector: &Selector,
        ids: &HashSet<BundleId>,
    ) -> Result<HashMap<BundleId, String>, OperationError> {
        let Self::Csv { file, separator, .. } = self else { return Ok(HashMap::new()) };
        rewind(file)?;
        let found = selector.descriptions(file, *separator, ids);
        Ok(found.map_err(|error| self.invalid(error))?)
    }
}

fn rewind(mut file: &File) -> io::Result<()> {
    file.rewind()
}

/// Copies an input that can be read once only into a temporary file without a name.
fn spool(input: &mut dyn Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(input, &mut file)?;
    Ok(file)
}

fn separator_of(text: &str) -> Result<u8, SelectError> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii_punctuation() && *byte != b'"' || matches!(text, "\t" | " ") => {
            Ok(text.as_bytes()[0])
        }
        _ => Err(SelectError::NotASeparator { given: text.to_owned() }),
    }
}

/// Makes the client of a forge.
pub(super) fn gh<'a>(workspace: &'a Workspace, repo: &'a str, cancel: &'a Cancel) -> Gh<'a> {
    let publish = &workspace.config.publish;
    Gh {
        command: None,
        program: &publish.gh,
        repo,
        cwd: &workspace.root,
        timeout: Duration::from_secs(publish.timeout_secs),
        cancel,
    }
}

/// Runs a command of the configuration and returns its output.
pub(super) fn output(tool: &Tool, name: &str) -> Result<Vec<u8>, SelectError> {
    let output = match tool.run() {
        Ok(output) => output,
        Err(ToolError::Cancelled { .. }) => return Err(SelectError::Interrupted),
        Err(source) => return Err(SelectError::Command { name: name.to_owned(), source }),
    };
    if output.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last_line = text.trim().lines().last().map(|line| line.chars().take(300).collect());
    Err(SelectError::CommandFailed { name: name.to_owned(), code: output.code, last_line })
}
