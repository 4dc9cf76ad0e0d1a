//! `pdca board`: decide, watch lanes and the integration, on one screen.

use std::io::Write;

use super::{signoff, status};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Format, Response, TextPage};

/// Decide, watch lanes and the integration, on one screen
///
/// Three views. Decide: what waits for sign-off, cheapest first, with the evidence beside it; a key decides, and is recorded
/// five seconds later, until when `u` undoes it. Work: what each lane does, and why the rest waits. Together: what
/// was gated together, what landed, what was held. It only reads: kill it at any time. Without a
/// terminal, or on a dumb one, it is `pdca status --watch`.
///
/// Exit codes: 0 left, 1 the terminal failed, or a decision that was confirmed on leaving was refused.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pdca board
  pdca board --by \"Ada\"

Keys:
  1 2 3, Tab    the views              a accept, `y` for each open item
  ↑ ↓, j k      select or scroll       i build it again, p plan it again, x discontinue
  Enter, Esc    to the card and back   u undo, for five seconds
  /             filter                 d diff, l logs, v whole card
  ?             all keys               t a shell with the change, e the note in $EDITOR
  q             quit, Ctrl-Z suspend

80 columns and 24 rows are enough. NO_COLOR and `--color never` are respected: nothing is said by colour alone.")]
pub(crate) struct Args {
    /// Name of the person who decides
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    if cx.globals.format() == Format::Json {
        return Err(Failure::usage("a board is no document")
            .hint("`pdca status --json` has the same facts"));
    }
    if !cx.can_draw() {
        return status::run(&status::Args::watching(), cx, out, err);
    }
    // The board draws on standard output itself. What is buffered here would appear in the middle of it.
    out.flush()?;
    crate::board::show_board(cx, signoff::signer(args.by.as_deref(), cx)?)?;
    Ok(Response::done(TextPage { text: String::new() }))
}
