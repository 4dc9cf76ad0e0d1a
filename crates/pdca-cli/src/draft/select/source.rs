//! The sources of records: a CSV export, `gh`, a command.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_forge::publish::Gh;
use pdca_forge::select::{Pool, Selector};
use pdca_process::{Cancel, Tool, ToolError};
use pdca_state::BundleId;

use super::{Export, explain};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};

/// The most issues that are read from a forge.
const MOST_ISSUES: u32 = 5000;
/// The longest output of a command, in bytes.
const MOST_OUTPUT: usize = 256 << 20;

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
    pub(super) fn open(from: Export<'_>, cx: &Context<'_>) -> Result<Self, Failure> {
        match from {
            Export::Csv { path, separator } => Self::open_csv(path, separator, cx),
            Export::Gh(repo) => Self::open_gh(repo),
            Export::Configured => match &cx.workspace()?.config.select.cmd {
                Some(command) => Ok(Self::Command { command: command.clone() }),
                None => Err(Failure::usage("no export is named").hint(
                    "`pdca select --from-csv FILE`, `--from-gh OWNER/REPO`, or set `cmd` in [select]",
                )),
            },
        }
    }

    fn open_csv(path: &Utf8Path, given: Option<&str>, cx: &Context<'_>) -> Result<Self, Failure> {
        let separator = given.map(separator).transpose()?;
        if path == "-" {
            let name = "standard input".to_owned();
            let file = spool(&mut io::stdin().lock())?;
            return Ok(Self::Csv { place: name.clone().into(), name, file, separator });
        }
        let place = cx.env.cwd.join(path);
        let failed = |error: &io::Error| {
            Failure::from_error(Exit::Usage, error)
                .at(FilePosition::file(&*place))
                .hint("name a CSV file that can be read; `-` is standard input")
        };
        let mut file = File::open(&place).map_err(|error| {
            let what = if error.kind() == io::ErrorKind::NotFound {
                "there is no such file".to_owned()
            } else {
                error.to_string()
            };
            failed(&io::Error::new(error.kind(), what))
        })?;
        let meta = file.metadata().map_err(|error| failed(&error))?;
        if meta.is_dir() {
            return Err(failed(&io::Error::other("this is a directory")));
        }
        if !meta.is_file() {
            // A pipe can be read once only.
            file = spool(&mut file)?;
        }
        Ok(Self::Csv { name: path.to_string(), place, file, separator })
    }

    fn open_gh(repo: &str) -> Result<Self, Failure> {
        let parts: Vec<&str> = repo.split('/').collect();
        // A part that begins with a dash would reach `gh` as an option.
        let is_plain = |part: &&str| {
            let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !part.is_empty() && !part.starts_with('-') && part.chars().all(legal)
        };
        if !(2..=3).contains(&parts.len()) || !parts.iter().all(is_plain) {
            return Err(Failure::usage(format!("`{repo}` is no repository"))
                .hint("write it as `--from-gh owner/repo`"));
        }
        Ok(Self::Gh { repo: repo.to_owned() })
    }

    /// The source as people are told it.
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
        cx: &Context<'_>,
        cancel: &Cancel,
    ) -> Result<Pool, Failure> {
        let explain = |error| explain::pool(&error, &self.place());
        match self {
            Self::Csv { file, separator, .. } => {
                rewind(file)?;
                selector.read_csv(file, *separator).map_err(explain)
            }
            Self::Gh { repo } => {
                let said = gh(cx, repo, cancel)?
                    .issues(MOST_ISSUES)
                    .map_err(|error| explain::forge(&error))?;
                selector.read_json(&said).map_err(explain)
            }
            Self::Command { command } => {
                let workspace = cx.workspace()?;
                let seconds = workspace.config.select.timeout_secs;
                let tool = Tool::new("sh")
                    .args(["-c", command])
                    .cwd(&workspace.root)
                    .timeout(Duration::from_secs(seconds))
                    .ended_by(cancel)
                    .max_stdout(MOST_OUTPUT);
                let said = output(&tool, "[select] cmd")?;
                selector.read_json(&said).map_err(explain)
            }
        }
    }

    /// Warns if a forge has more issues than were asked for.
    pub(super) fn note_limit(
        &self,
        pool: &Pool,
        cx: &Context<'_>,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        let is_cut = u32::try_from(pool.records.len()).is_ok_and(|count| count >= MOST_ISSUES);
        if matches!(self, Self::Gh { .. }) && is_cut {
            let text = format!("only the newest {MOST_ISSUES} open issues were read");
            cx.note(err, &format!("{} {text}", cx.err.warn("warning:")))?;
        }
        Ok(())
    }

    /// Reads the descriptions of some records from the export, where it has any.
    pub(super) fn descriptions(
        &self,
        selector: &Selector,
        ids: &HashSet<BundleId>,
    ) -> Result<HashMap<BundleId, String>, Failure> {
        let Self::Csv { file, separator, .. } = self else { return Ok(HashMap::new()) };
        rewind(file)?;
        let found = selector.descriptions(file, *separator, ids);
        found.map_err(|error| explain::pool(&error, &self.place()))
    }
}

fn rewind(mut file: &File) -> Result<(), Failure> {
    file.rewind()?;
    Ok(())
}

/// Copies an input that can be read once only into a temporary file without a name.
fn spool(input: &mut dyn io::Read) -> Result<File, Failure> {
    let mut file = tempfile::tempfile()?;
    io::copy(input, &mut file)?;
    Ok(file)
}

fn separator(text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii_punctuation() && *byte != b'"' || matches!(text, "\t" | " ") => {
            Ok(text.as_bytes()[0])
        }
        _ => Err(Failure::usage(format!("`{text}` is no separator"))
            .hint("write one character, such as `--separator ';'`, or `--separator tab`")),
    }
}

/// Makes the client of a forge.
pub(super) fn gh<'a>(
    cx: &'a Context<'_>,
    repo: &'a str,
    cancel: &'a Cancel,
) -> Result<Gh<'a>, Failure> {
    let workspace = cx.workspace()?;
    let publish = &workspace.config.publish;
    Ok(Gh {
        command: None,
        program: &publish.gh,
        repo,
        cwd: &workspace.root,
        timeout: Duration::from_secs(publish.timeout_secs),
        cancel,
    })
}

/// Runs a command of the configuration and returns what it printed.
pub(super) fn output(tool: &Tool, name: &str) -> Result<Vec<u8>, Failure> {
    let said = match tool.run() {
        Ok(said) => said,
        Err(ToolError::Cancelled { .. }) => return Err(interrupted()),
        Err(error) => {
            return Err(Failure::from_error(Exit::Unexpected, &error)
                .detail(format!("while {name} ran"))
                .hint("run the command by hand; then repeat"));
        }
    };
    if said.success() {
        return Ok(said.stdout);
    }
    let text = String::from_utf8_lossy(&said.stderr);
    let failure =
        Failure::new(Exit::Unexpected, format!("{name} ended with exit code {}", said.code));
    let failure = match text.trim().lines().last() {
        Some(line) => failure.detail(line.chars().take(300).collect::<String>()),
        None => failure,
    };
    Err(failure.hint("run the command by hand; then repeat, which goes on from here"))
}

pub(super) fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted")
        .hint("repeat the command: it goes on from here, and what is written stays")
}
