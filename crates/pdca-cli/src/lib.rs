//! The `pdca` command: words in, words out.
//!
//! Everything the command does can be done in-process, against two writers and surroundings made of values, which is
//! how the tests run it:
//!
//! ```
//! use pdca_cli::{Ambient, Exit, run};
//!
//! let ambient = Ambient::read().expect("the current directory exists");
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let args = ["pdca", "--version"].into_iter().map(Into::into);
//! assert_eq!(run(args, &ambient, &mut out, &mut err), Exit::Done);
//! assert!(String::from_utf8_lossy(&out).starts_with("pdca "));
//! ```
//!
//! # Invariants
//! - This is the only crate that prints, reads config files, the environment and the clock, and picks exit codes.
//! - Data goes to `out`, progress and errors go to `err`.
//! - A command that ends in [`Exit::Usage`] has changed nothing.

pub mod ambient;
mod command;
pub mod config;
pub mod context;
pub mod exit;
pub mod failure;
mod faults;
pub mod json;
pub mod meeting;
pub mod overview;
mod progress;
mod session;
pub mod style;
pub mod workspace;

#[cfg(test)]
mod testing;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

pub use ambient::Ambient;
pub use exit::Exit;

use failure::Failure;
use style::{ColorWhen, Palette};

/// The whole of `main`, after the supervisor had its chance: the real streams, the real surroundings.
pub fn main_with(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut out = BufWriter::new(io::stdout());
    let mut err = io::stderr();
    match Ambient::read() {
        Ok(ambient) => run(args, &ambient, &mut out, &mut err).into(),
        Err(failure) => report(&failure, Palette::PLAIN, "".into(), &mut err).into(),
    }
}

/// Runs one command line, the program's name first.
pub fn run(
    args: impl Iterator<Item = OsString>,
    ambient: &Ambient,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    let args: Vec<OsString> = args.collect();
    let (result, palette) = match command::parse(&args, ambient, out, err) {
        command::Parsed::Line(line) => {
            let palette = Palette::decide(line.globals.color, ambient, ambient::Stream::Err);
            if line.works() {
                // What it does counts, and how it ended, whether anybody still listens or not.
                let (out, err) = (&mut Unheard(out), &mut Unheard(err));
                let result = command::dispatch(*line, ambient, out, err);
                return finish(result, palette, ambient, out, err);
            }
            (command::dispatch(*line, ambient, out, err), palette)
        }
        command::Parsed::Answered(result) => {
            (result, Palette::decide(ColorWhen::Auto, ambient, ambient::Stream::Err))
        }
    };
    finish(result, palette, ambient, out, err)
}

/// A writer whose reader may go away: what is written after that goes nowhere.
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

fn finish(
    result: Result<Exit, Failure>,
    palette: Palette,
    ambient: &Ambient,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    match result.and_then(|exit| Ok(out.flush().map(|()| exit)?)) {
        Ok(exit) => exit,
        Err(failure) => {
            // What was printed before the failure comes first; if that is lost, so is its reader.
            let flushed = out.flush();
            drop(flushed);
            report(&failure, palette, &ambient.cwd, err)
        }
    }
}

fn report(
    failure: &Failure,
    palette: Palette,
    base: &camino::Utf8Path,
    err: &mut dyn Write,
) -> Exit {
    // Where nobody can be told, the exit code still says it.
    drop(failure.render(palette, base, err));
    failure.exit
}
