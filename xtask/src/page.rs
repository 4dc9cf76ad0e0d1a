//! Pages of the documentation that are made from something else, and must say what that says.

use camino::Utf8Path;

use crate::{Outcome, Stopped};

/// Whether the page is written or only compared.
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

/// A page, as it has to be.
pub(crate) struct Page<'a> {
    /// Where it is, from the root.
    pub(crate) path: &'a str,
    /// What it is made from, in words.
    pub(crate) source: &'a str,
    /// The command of xtask that makes it.
    pub(crate) command: &'a str,
    pub(crate) text: String,
    /// What there is to say about it.
    pub(crate) sum: String,
}

impl Page<'_> {
    /// Writes the page, or fails where what is there says something else.
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
