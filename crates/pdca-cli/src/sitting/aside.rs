//! What a person looks at beside the cards: the change, logs, a shell with the change, the note in an editor.
//!
//! `pdca review` and the board call the same functions; both have given the terminal back before.

use std::fmt::Write as _;
use std::io::Write;

use camino::Utf8Path;
use pdca_driver::WorkspaceConfig;
use pdca_state::text::printable;
use pdca_state::{Bundle, BundleId, files};
use pdca_workspace::review::{Card, Decision};

use crate::context::Context;
use crate::editor;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;
use crate::sitting::checkout::Throwaway;

/// The largest part of a log that is shown, in bytes.
const LARGEST_LOG: u64 = 16 << 20;

/// Returns the change of the present attempt, with colours.
pub(crate) fn change_text(cx: &Context<'_>, bundle: &Bundle) -> Result<String, Failure> {
    Ok(render::change::coloured(&render::change::present(cx, bundle)?, cx.out))
}

/// Returns the whole card, wrapped to the width of the terminal.
pub(crate) fn card_text(cx: &Context<'_>, card: &Card, width: usize) -> String {
    render::card::lines(card, cx.out, width).join("\n") + "\n"
}

/// Returns the logs of the gates, failed ones first.
pub(crate) fn log_text(card: &Card) -> Result<String, Failure> {
    let mut text = String::new();
    for gate in &card.gates {
        let Some(log) = &gate.log else { continue };
        // A log that cannot be read must not hide the others.
        let bytes = files::read_bounded(card.dir.join(log), LARGEST_LOG).ok().flatten();
        writeln!(text, "── gate {} {} ({log})", printable(&gate.rule), gate.result)
            .expect("because a string takes any text");
        for line in String::from_utf8_lossy(&bytes.unwrap_or_default()).lines() {
            text.push_str(&printable(line));
            text.push('\n');
        }
    }
    if text.is_empty() {
        let id = &card.id;
        return Err(Failure::new(Exit::NothingToDo, format!("no gate of {id} left a log"))
            .hint(format!("`pdca log {id}` shows the leaves")));
    }
    Ok(text)
}

/// Opens a shell in a throwaway checkout with the change, and returns when the person leaves it.
pub(crate) fn open_shell(
    cx: &Context<'_>,
    config: &WorkspaceConfig,
    bundle: &Bundle,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let checkout = Throwaway::make(config, bundle)?;
    let id = bundle.id();
    writeln!(out, "a throwaway checkout with the change of {id}; `exit` brings you back")?;
    out.flush()?;
    let shell = cx.env.var("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.map_or_else(|| "sh".into(), std::ffi::OsStr::to_owned);
    // How the person's last command there ended says nothing about the change.
    pdca_process::attend(&shell, &[], checkout.path())?;
    Ok(())
}

/// Lets the person edit the note for a bundle, and returns it.
pub(crate) fn edit_note(cx: &Context<'_>, id: &BundleId, note: &str) -> Result<String, Failure> {
    if editor::editor(cx).is_none() {
        return Err(
            Failure::usage("no editor").hint("set $EDITOR, or type the note after `i`, `p` or `x`")
        );
    }
    let file = tempfile::Builder::new().prefix("pdca-note-").suffix(".md").tempfile()?;
    let text = format!("{note}\n\n# The note for {id}. Lines with `#` are left out.\n");
    fs_err::write(file.path(), text)?;
    let path = Utf8Path::from_path(file.path()).ok_or_else(|| {
        Failure::usage("the temporary directory is not UTF-8").hint("set $TMPDIR")
    })?;
    if !editor::edit(cx, path) {
        return Err(Failure::new(Exit::Unexpected, "the editor failed; the note is as it was"));
    }
    // By path and not through `file`: many editors replace the file instead of writing into it.
    let written = fs_err::read_to_string(path)?;
    let kept: Vec<&str> = written.lines().filter(|line| !line.starts_with('#')).collect();
    Ok(kept.join("\n").trim().to_owned())
}

/// Returns the failure of a sitting that is cut short, with the commands of what was not recorded.
pub(crate) fn interrupted<'d>(
    cx: &Context<'_>,
    pending: impl IntoIterator<Item = &'d Decision>,
    go_on: &str,
) -> Failure {
    let pending: Vec<String> =
        pending.into_iter().map(|one| cx.typed(&one.command_line())).collect();
    let failure = match pending.len() {
        0 => Failure::new(Exit::Interrupted, "interrupted; nothing was pending"),
        count => Failure::new(
            Exit::Interrupted,
            format!("interrupted; not recorded, because it could still be undone: {count}"),
        ),
    };
    let failure = pending.into_iter().fold(failure, Failure::detail);
    failure.hint(format!("`{go_on}` goes on"))
}
