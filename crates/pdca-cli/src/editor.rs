//! The editor of the person at the terminal.

use std::ffi::{OsStr, OsString};

use camino::Utf8Path;

use crate::context::Context;

/// Returns the editor, `$VISUAL` or `$EDITOR`; `None` if neither is set.
pub(crate) fn editor(cx: &Context<'_>) -> Option<OsString> {
    let set = |name| cx.env.var(name).filter(|value| !value.is_empty());
    set("VISUAL").or_else(|| set("EDITOR")).map(OsStr::to_owned)
}

/// Opens a file in the editor and waits until the person leaves it. Returns whether it was edited: false without an
/// editor, without a terminal, or if the editor failed.
pub(crate) fn edit(cx: &Context<'_>, file: &Utf8Path) -> bool {
    let terminal = &cx.env.terminal;
    let Some(editor) = editor(cx).filter(|_| terminal.stdin && terminal.stdout) else {
        return false;
    };
    pdca_process::attend(&editor, &[file.as_os_str()], &cx.env.cwd).unwrap_or(false)
}
