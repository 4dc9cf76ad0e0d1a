//! The `pdca` command line.
//!
//! Everything the command does can be done in-process, against two writers and an environment made of values, which is
//! how the tests run it:
//!
//! ```
//! use pdca_cli::{ProcessEnv, Exit, run};
//!
//! let env = ProcessEnv::read().expect("the current directory exists");
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let args = ["pdca", "--version"].into_iter().map(Into::into);
//! assert_eq!(run(args, &env, &mut out, &mut err), Exit::Done);
//! assert!(String::from_utf8_lossy(&out).starts_with("pdca "));
//! ```
//!
//! # Invariants
//! - This is the only crate that parses a command line and prints.
//! - It is the only crate that reads environment, working directory, terminal and clock (`process_env`), and the only one that
//!   gives an error its remedy and its exit code (`explain`, `failure`). `pdca_workspace::config` knows the remedies of its
//!   own rules.
//! - A JSON document has one envelope, `json`; a format is a variant of `report::Format`.
//! - Data goes to `out`, progress and errors go to `err`.
//! - A command that ends in [`Exit::Usage`] has changed nothing.

mod batch_report;
pub mod board;
mod columns;
mod command;
mod context;
mod cost;
mod editor;
mod exit;
mod explain;
mod failure;
mod faults;
mod flow_record;
mod globals;
mod json;
mod log;
mod notify;
mod process_env;
mod progress;
mod render;
mod report;
mod session;
mod sitting;
mod style;
mod words;

#[cfg(test)]
mod testing;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

pub use exit::Exit;
pub use json::SCHEMA;
pub use process_env::ProcessEnv;

use context::Context;
use failure::Failure;
use report::Format;
use style::{ColorWhen, Palette};

/// Returns the JSON Schema of each kind of document that `--json` prints, by kind.
#[cfg(feature = "schema")]
pub fn schemas() -> Vec<(&'static str, schemars::Schema)> {
    command::schemas()
}

/// Runs `main` with the real streams and environment, after the check for a supervisor.
pub fn main_with(args: impl Iterator<Item = OsString>) -> ExitCode {
    main_in(args, ProcessEnv::read())
}

/// The same for the tests' binary, which faults can be asked of.
// The feature has this function alone: a crate below with it would be built twice, and all above it (decision 027).
#[cfg(feature = "fault-injection")]
pub fn main_with_faults(args: impl Iterator<Item = OsString>) -> ExitCode {
    main_in(args, ProcessEnv::read().map(|env| ProcessEnv { may_inject_faults: true, ..env }))
}

fn main_in(args: impl Iterator<Item = OsString>, env: Result<ProcessEnv, Failure>) -> ExitCode {
    // Before the first program is looked for; `load_workspace` adds what the configuration opens.
    let openings = pdca_leaves::home_openings().into_iter();
    pdca_process::avoid_programs_in(openings.map(camino::Utf8PathBuf::into_std_path_buf));
    let mut out = BufWriter::new(io::stdout());
    let mut err = io::stderr();
    let args: Vec<OsString> = args.collect();
    match env {
        Ok(env) => {
            let log = |line: &command::CommandLine, err: &mut dyn Write| {
                log::install(&line.globals, &env, err)
            };
            understand(&args, &env, &mut out, &mut err, log).into()
        }
        Err(failure) => {
            let format = command::format_of(&args);
            finish(Err(failure), format, Palette::PLAIN, "".into(), &mut out, &mut err).into()
        }
    }
}

/// Runs one command line, the program's name first.
pub fn run(
    args: impl Iterator<Item = OsString>,
    env: &ProcessEnv,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    let args: Vec<OsString> = args.collect();
    understand(&args, env, out, err, |_, _| Ok(()))
}

/// Reads a command line and carries it out, `first` doing its part in between.
fn understand(
    args: &[OsString],
    env: &ProcessEnv,
    out: &mut dyn Write,
    err: &mut dyn Write,
    first: impl FnOnce(&command::CommandLine, &mut dyn Write) -> Result<(), Failure>,
) -> Exit {
    let palette = Palette::decide(ColorWhen::Auto, env, process_env::StandardStream::Err);
    // The exit code tells the result to a caller that does not read the words on standard error.
    let err: &mut dyn Write = &mut Unheard(err);
    match command::parse(args, env, out, err) {
        command::Parsed::Line(line) => {
            if let Err(failure) = first(&line, err) {
                let format = line.globals.format();
                return finish(Err(failure), format, palette, &env.cwd, out, err);
            }
            // A command that changes or judges something must finish even if its output is no longer read.
            if line.works() {
                answer(&line, env, &mut Unheard(out), err)
            } else {
                answer(&line, env, out, err)
            }
        }
        command::Parsed::Answered(result) => {
            finish(result, command::format_of(args), palette, &env.cwd, out, err)
        }
    }
}

/// Runs a command and renders its report.
fn answer(
    line: &command::CommandLine,
    env: &ProcessEnv,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    let cx = Context::new(env, line.globals.clone());
    let (result, format) = match command::dispatch(line, &cx, out, err) {
        Ok(response) => match report::render(&response, &cx, out) {
            // The report already contains the failure.
            Ok(()) => (response.failure.map_or(Ok(response.exit), Err), Format::Text),
            Err(failure) => (Err(failure), Format::Text),
        },
        Err(failure) => (Err(failure), cx.globals.format()),
    };
    finish(result, format, cx.err, &env.cwd, out, err)
}

/// A writer that ignores a closed pipe.
struct Unheard<'a>(&'a mut dyn Write);

impl Write for Unheard<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

/// Reports a failure: to people on `err`, with JSON also as the one document on `out`.
fn finish(
    result: Result<Exit, Failure>,
    format: Format,
    palette: Palette,
    base: &camino::Utf8Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    match result.and_then(|exit| Ok(out.flush().map(|()| exit)?)) {
        Ok(exit) => exit,
        Err(failure) => {
            // Errors of the streams are ignored, because the exit code still tells the failure.
            if format == Format::Json && !failure.is_silent() {
                drop(json::write_error(out, &failure.fault()));
            }
            // Output from before the failure comes first.
            drop(out.flush());
            drop(failure.render(palette, base, err));
            failure.exit
        }
    }
}
