//! The pager of the person at the terminal.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

use rustix::stdio::stdin;

use crate::context::Context;

/// The pager of a person who has set none.
const USUAL: &str = "less";

/// What `less` is told: to end by itself if all fits the screen, and to leave the text there.
const ON_A_LINE: &str = "FRX";
/// The same where the screen is drawn again afterwards: to stay until the person leaves.
const ON_A_SCREEN: &str = "R";

/// Shows a diff in `delta` where it is installed, else in `$PAGER`. Returns whether it was shown.
pub(crate) fn page_diff(cx: &Context<'_>, text: &[u8]) -> bool {
    cx.env.terminal.stdout && diff_pager(cx).is_some_and(|pager| run(&pager, ON_A_LINE, text))
}

/// Shows text in `$PAGER`, on a terminal. Returns whether it was shown.
pub(crate) fn page(cx: &Context<'_>, text: &[u8]) -> bool {
    cx.env.terminal.stdout && pager(cx).is_some_and(|pager| run(&pager, ON_A_LINE, text))
}

/// A text that covers the screen of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    Plain,
    Diff,
}

/// Shows a text until the person has left it. Without a pager that waits by itself, Enter goes back.
pub(crate) fn page_and_wait(
    cx: &Context<'_>,
    kind: PageKind,
    text: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let pager = match kind {
        PageKind::Plain => pager(cx),
        PageKind::Diff => diff_pager(cx),
    };
    let is_shown = pager.as_deref().is_some_and(|pager| run(pager, ON_A_SCREEN, text.as_bytes()));
    if !is_shown {
        out.write_all(text.as_bytes())?;
    }
    if is_shown && pager.as_deref().is_some_and(waits) {
        return Ok(());
    }
    write!(out, "── Enter goes back ")?;
    out.flush()?;
    wait_for_enter()
}

/// Returns `$PAGER`, or `less` where it is installed and the terminal is one that it can draw on.
fn pager(cx: &Context<'_>) -> Option<OsString> {
    let set = cx.env.var("PAGER").filter(|pager| !pager.is_empty());
    let usual = || cx.env.find_program(USUAL).filter(|_| cx.can_draw()).map(|_| USUAL.into());
    set.map(OsStr::to_owned).or_else(usual)
}

fn diff_pager(cx: &Context<'_>) -> Option<OsString> {
    match cx.env.find_program("delta") {
        Some(_) => Some("delta --paging=always".into()),
        None => pager(cx),
    }
}

/// Returns whether a pager stays until the person leaves it.
fn waits(pager: &OsStr) -> bool {
    let program = pager.to_string_lossy();
    let program = program.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    matches!(name, "less" | "most" | "moar" | "ov" | "vim" | "nvim" | "view" | "delta")
}

/// Runs a pager. Returns whether it showed the text; if not, the caller prints it.
fn run(pager: &OsStr, less: &str, text: &[u8]) -> bool {
    pdca_process::page(pager, less, text).unwrap_or(false)
}

fn wait_for_enter() -> io::Result<()> {
    let mut bytes = [0; 256];
    loop {
        match rustix::io::read(stdin(), &mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) if bytes[..count].contains(&b'\n') => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pager_that_stays_is_known_by_its_name() {
        for (pager, expected) in
            [("less -S", true), ("/usr/bin/less", true), ("cat", false), ("head -5 | less", false)]
        {
            assert_eq!(waits(OsStr::new(pager)), expected, "{pager}");
        }
    }
}
