//! The pager of the person at the terminal.

use std::ffi::OsStr;

use crate::context::Context;

/// Shows a diff in `delta` where it is installed, else in `$PAGER`. Returns whether it was shown.
pub(crate) fn page_diff(cx: &Context<'_>, text: &[u8]) -> bool {
    match cx.env.find_program("delta") {
        Some(_) if cx.env.terminal.stdout => run(OsStr::new("delta --paging=always"), text),
        Some(_) | None => page(cx, text),
    }
}

/// Shows text in `$PAGER`, on a terminal. Returns whether it was shown.
pub(crate) fn page(cx: &Context<'_>, text: &[u8]) -> bool {
    let pager = cx.env.var("PAGER").filter(|pager| !pager.is_empty());
    pager.is_some_and(|pager| cx.env.terminal.stdout && run(pager, text))
}

/// A pager that does not work must not hide the text.
fn run(pager: &OsStr, text: &[u8]) -> bool {
    pdca_process::page(pager, text).unwrap_or(false)
}
