//! The pager of the person at the terminal.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

use pdca_process::find_program;
use rustix::stdio::stdin;

use crate::context::Context;

/// The pager of a person who has set none.
const USUAL: &str = "less";

/// The options of `less`, unless the person has set some: to end by itself if all fits the screen, and to leave the text
/// there.
const ON_A_LINE: &str = "FRX";
/// The options where the screen is drawn again afterwards, added to those of the person: to stay until the person leaves.
const ON_A_SCREEN: &str = "-+F -R";

/// Shows a diff in `delta` where it is installed, else in `$PAGER`. Returns whether it was shown.
pub(crate) fn page_diff(cx: &Context<'_>, text: &[u8]) -> bool {
    cx.env.terminal.stdout
        && diff_pager(cx).is_some_and(|pager| run(&pager, &less_options(cx), text))
}

/// Shows text in `$PAGER`, on a terminal. Returns whether it was shown.
pub(crate) fn page(cx: &Context<'_>, text: &[u8]) -> bool {
    cx.env.terminal.stdout && pager(cx).is_some_and(|pager| run(&pager, &less_options(cx), text))
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
    let less = on_a_screen(cx.env.var("LESS"));
    let is_shown = pager.as_deref().is_some_and(|pager| run(pager, &less, text.as_bytes()));
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

/// Returns the options of `less` that the person has set, or the usual ones.
pub(crate) fn less_options(cx: &Context<'_>) -> OsString {
    cx.env.var("LESS").map_or_else(|| ON_A_LINE.into(), OsStr::to_owned)
}

fn on_a_screen(set: Option<&OsStr>) -> OsString {
    let mut options = set.unwrap_or_default().to_owned();
    if !options.is_empty() {
        options.push(" ");
    }
    options.push(ON_A_SCREEN);
    options
}

/// Returns `$PAGER`, or `less` where it is installed and the terminal is one that it can draw on.
fn pager(cx: &Context<'_>) -> Option<OsString> {
    let set = cx.env.var("PAGER").filter(|pager| !pager.is_empty());
    // Looked for where it is started from, which is not the whole `PATH`.
    let is_there = || find_program(USUAL).is_ok() && cx.can_draw();
    let usual = || is_there().then(|| USUAL.into());
    set.map(OsStr::to_owned).or_else(usual)
}

fn diff_pager(cx: &Context<'_>) -> Option<OsString> {
    match find_program("delta") {
        Ok(_) => Some("delta --paging=always".into()),
        Err(_) => pager(cx),
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
fn run(pager: &OsStr, less: &OsStr, text: &[u8]) -> bool {
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
    fn the_options_of_less_that_are_set_are_kept() {
        let desk = crate::testing::Desk::new().with_env("LESS", "-Si");
        let cx = Context::new(&desk.env, crate::context::Globals::default());
        assert_eq!(less_options(&cx), "-Si");
        assert_eq!(on_a_screen(cx.env.var("LESS")), "-Si -+F -R");
        assert_eq!(on_a_screen(None), "-+F -R");
    }

    #[test]
    fn a_pager_that_stays_is_known_by_its_name() {
        for (pager, expected) in
            [("less -S", true), ("/usr/bin/less", true), ("cat", false), ("head -5 | less", false)]
        {
            assert_eq!(waits(OsStr::new(pager)), expected, "{pager}");
        }
    }
}
