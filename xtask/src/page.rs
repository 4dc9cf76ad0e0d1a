//! Generated pages of the documentation.

use camino::Utf8Path;

use crate::{Outcome, Stopped};

/// Write the page, or only compare it.
// The commands that flatten this have a group `Args` of their own.
#[derive(clap::Args, Debug, Default)]
#[group(skip)]
pub(crate) struct Args {
    /// Write the page
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Only compare; this is the default
    #[arg(long)]
    check: bool,
}

/// A page with its required contents.
pub(crate) struct Page<'a> {
    /// Relative to the root.
    pub(crate) path: &'a str,
    /// The source of the page, in words.
    pub(crate) source: &'a str,
    /// The xtask command that generates it.
    pub(crate) command: &'a str,
    pub(crate) text: String,
    /// A summary for the output.
    pub(crate) sum: String,
}

impl Page<'_> {
    /// Writes the page, or fails if the present one differs.
    pub(crate) fn settle(&self, args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
        let Self { path, source, command, text, sum } = self;
        let file = root.join(path);
        if args.write {
            fs_err::write(&file, text)?;
            println!("{path} is written: {sum}");
        } else if fs_err::read_to_string(&file).unwrap_or_default() == *text {
            println!("{path} is current: {sum}");
        } else {
            println!("error: {path} is not what {source} says; `cargo xtask {command} --write`");
            return Ok(Outcome::Failed);
        }
        Ok(Outcome::Passed)
    }
}
