//! The context of a command: environment, global flags, workspace.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::events::WarningCode;
use pdca_state::{Bundle, BundleId};
use pdca_workspace::OpenWorkspace;
use pdca_workspace::config::Machine;
use pdca_workspace::config::workspace::{self, LoadOptions, Workspace};

use crate::columns;
use crate::failure::Failure;
use crate::process_env::{self, ProcessEnv, StandardStream};
use crate::report::Format;
use crate::style::{ColorWhen, Palette, printable, shell};

/// The options that every command takes.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Globals {
    /// Works there, as if the program had been started there.
    pub(crate) directory: Option<Utf8PathBuf>,
    /// Changes nothing, and says what would be done.
    pub(crate) dry_run: bool,
    /// Answers yes to all questions.
    pub(crate) yes: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: u8,
    pub(crate) color: ColorWhen,
    pub(crate) format: Format,
    /// Reads the workspace of an older instance: unknown keys are warnings.
    pub(crate) compat: bool,
    pub(crate) trust_user_config: bool,
    /// Values of `pdca.toml` for this run, as `KEY=VALUE`.
    pub(crate) config: Vec<String>,
    /// The effect at which this process is killed, `@k` or `name[:n]`.
    pub(crate) crash_at: Option<String>,
}

impl Globals {
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Returns the directory to work in: the current one, or `-C DIR`.
    pub(crate) fn start_dir(&self, env: &ProcessEnv) -> Result<Utf8PathBuf, Failure> {
        Ok(workspace::start_dir(self.directory.as_deref(), &env.cwd)?)
    }

    /// Loads the workspace around that directory.
    pub(crate) fn load_workspace(&self, env: &ProcessEnv) -> Result<Workspace, Failure> {
        let options = LoadOptions {
            directory: self.directory.as_deref(),
            compat: self.compat,
            trust_user_config: self.trust_user_config,
            flags: &self.config,
        };
        let workspace = Workspace::load(options, env.environment())?;
        pdca_process::avoid_programs_in(workspace.openings());
        Ok(workspace)
    }
}

/// A bundle id as typed: `36`, `#36`, `issue_36`, `PROJ-12`.
///
/// Parsed by the command, not by the command line parser, so that an invalid id is reported like every
/// other error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdArg(OsString);

impl From<OsString> for IdArg {
    fn from(text: OsString) -> Self {
        IdArg(text)
    }
}

impl IdArg {
    pub(crate) fn parse(&self) -> Result<BundleId, Failure> {
        const HINT: &str = "ids look like 36, #36, issue_36 or PROJ-12";
        let Some(text) = self.0.to_str() else {
            let shown = self.0.to_string_lossy().into_owned();
            return Err(Failure::usage(format!(
                "`{}` is not an id: it is not UTF-8",
                printable(&shown)
            ))
            .hint(HINT));
        };
        text.parse::<BundleId>().map_err(Failure::from)
    }
}

/// The context of a command.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    /// Environment, directory, terminal, clock.
    pub(crate) env: &'a ProcessEnv,
    pub(crate) globals: Globals,
    /// Colours of standard output.
    pub(crate) out: Palette,
    /// Colours of standard error.
    pub(crate) err: Palette,
    workspace: OnceCell<Result<Workspace, Failure>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(env: &'a ProcessEnv, globals: Globals) -> Self {
        Context {
            out: Palette::decide(globals.color, env, StandardStream::Out),
            err: Palette::decide(globals.color, env, StandardStream::Err),
            env,
            globals,
            workspace: OnceCell::new(),
        }
    }

    /// Returns the workspace around the current directory, loaded on first use.
    pub(crate) fn workspace(&self) -> Result<&Workspace, Failure> {
        let loaded = self.workspace.get_or_init(|| self.globals.load_workspace(self.env));
        loaded.as_ref().map_err(Clone::clone)
    }

    /// Returns the workspace as the operations of `pdca-workspace` take it.
    pub(crate) fn open(&self) -> Result<OpenWorkspace<'_>, Failure> {
        let fixed_date = match self.env.clock {
            process_env::Clock::System => None,
            process_env::Clock::Fixed(seconds) => Some(seconds),
        };
        let machine = Machine {
            pid: std::process::id(),
            program: self.env.program.clone(),
            now: self.env.now(),
            clock: || process_env::moment().wall.as_second(),
            moment: process_env::moment,
            fixed_date,
            utc_offset: process_env::utc_offset,
            has_terminal: self.may_ask(),
        };
        Ok(OpenWorkspace {
            workspace: self.workspace()?,
            environment: self.env.environment(),
            machine,
            dry_run: self.globals.dry_run,
        })
    }

    /// Returns the bundle with this id, which must exist.
    pub(crate) fn require_bundle(&self, id: &IdArg) -> Result<Bundle, Failure> {
        let id = id.parse()?;
        Ok(self.workspace()?.require_bundle(&id)?)
    }

    /// Returns the bundles with these ids, in that order, each once; all of them must exist.
    pub(crate) fn require_bundles(&self, ids: &[IdArg]) -> Result<Vec<Bundle>, Failure> {
        let ids = ids.iter().map(IdArg::parse).collect::<Result<Vec<_>, _>>()?;
        Ok(self.workspace()?.require_bundles(&ids)?)
    }

    /// Shows a path relative to the current directory if it is below.
    pub(crate) fn show<'p>(&self, path: &'p Utf8Path) -> &'p str {
        match path.strip_prefix(&self.env.cwd) {
            Ok(below) if below.as_str().is_empty() => ".",
            Ok(below) => below.as_str(),
            Err(_) => path.as_str(),
        }
    }

    /// Renders a command for the user to type, with the same `-C`.
    pub(crate) fn typed(&self, command: &str) -> String {
        match (&self.globals.directory, command.strip_prefix("pdca ")) {
            (Some(directory), Some(rest)) => {
                format!("pdca -C {} {rest}", shell(directory.as_str()))
            }
            (Some(_) | None, _) => command.to_owned(),
        }
    }

    /// Returns the width of the terminal, or 100 without one.
    pub(crate) fn width(&self) -> usize {
        self.env.terminal.width.map_or(100, |width| usize::from(width).max(40))
    }

    /// Writes a text with an indent, wrapped to the terminal. A script gets it on one line.
    pub(crate) fn write_wrapped(
        &self,
        text: &str,
        indent: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let room = self.env.terminal.width.map_or(usize::MAX, |width| usize::from(width).max(40));
        for line in columns::wrap(text, room.saturating_sub(indent.len()), "  ") {
            writeln!(out, "{indent}{line}")?;
        }
        Ok(())
    }

    /// Returns whether a person is at a terminal that a program can draw on.
    pub(crate) fn can_draw(&self) -> bool {
        let is_dumb =
            self.env.var_text("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        self.env.terminal.stdin && self.env.terminal.stdout && !is_dumb
    }

    /// Returns whether a person can be asked on the terminal.
    pub(crate) fn may_ask(&self) -> bool {
        // Questions are written to standard error, so standard output may be a file.
        self.env.terminal.stdin && self.env.terminal.stderr
    }

    /// Asks a yes-or-no question on the terminal; a bare Enter is yes.
    pub(crate) fn ask(&self, question: &str, err: &mut dyn Write) -> Result<bool, Failure> {
        write!(err, "{} [Y/n] ", self.err.strong(question))?;
        err.flush()?;
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer)?;
        // The end of the input is no answer, and must not count as consent.
        Ok(read > 0 && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
    }

    /// Asks a yes-or-no question about something that cannot be undone; a bare Enter is no.
    pub(crate) fn confirm(&self, question: &str, err: &mut dyn Write) -> Result<bool, Failure> {
        let answer = Self::line_of(&format!("{} [y/N] ", self.err.strong(question)), err)?;
        Ok(answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")))
    }

    /// Asks for one line of text on the terminal; `None` at the end of the input.
    pub(crate) fn line_of(prompt: &str, err: &mut dyn Write) -> Result<Option<String>, Failure> {
        write!(err, "{prompt}")?;
        err.flush()?;
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer)?;
        Ok((read > 0).then(|| answer.trim().to_owned()))
    }

    /// Writes a warning to standard error, unless `--quiet`. It is for commands without an event stream, so its
    /// code is part of the line: a program that reads nothing else can tell warnings apart.
    pub(crate) fn warn(
        &self,
        err: &mut dyn Write,
        code: WarningCode,
        text: impl Display,
    ) -> Result<(), Failure> {
        let code = self.err.faint(format!("[{code}]"));
        self.note(err, &format!("{} {text} {code}", self.err.warn("warning:")))
    }

    /// Writes a note to standard error, unless `--quiet`.
    pub(crate) fn note(&self, err: &mut dyn Write, text: &str) -> Result<(), Failure> {
        if !self.globals.quiet {
            writeln!(err, "{text}")?;
        }
        Ok(())
    }
}
