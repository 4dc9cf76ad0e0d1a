//! `pdca act review`: an entry of the Act log, filled in by the act leaf and recorded by a person.

use std::io::Write;

use pdca_workspace::act::begin_review;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Nothing, Response};
use crate::style::printable;
use crate::{render, session};

/// Have the act leaf fill in an entry of the Act log
///
/// Calls the program of `[leaves.act]` with the index of the cycles since the last review. Its entry is kept as a draft
/// that you can edit, and is appended to the log once you agree: on the terminal, or with `--record`. The draft is
/// used again as long as it is about the same cycles; `--fresh` asks anew.
///
/// Exit codes: 0 recorded, 3 the draft waits for you, 4 no cycle ended since the last review.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act review
  pdca act review --record     # append the draft to process/act-log.md")]
pub(crate) struct Args {
    /// Append the entry to the log without asking (so does the global `--yes`)
    #[arg(long)]
    record: bool,

    /// Call the leaf even if a draft waits
    #[arg(long)]
    fresh: bool,

    /// The date of the entry, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let open = cx.open()?;
    let review = begin_review(&open, args.date.as_deref())?;
    render::act::begun(&review, cx, err)?;
    if review.cycles.is_empty() {
        return Nothing::to_do("no cycle ended since the last review", err);
    }
    let kept = if args.fresh { None } else { review.kept_draft()? };
    let draft = if let Some(draft) = kept {
        draft
    } else {
        review.require_leaf()?;
        if cx.globals.dry_run {
            return Nothing::to_do("would call the act leaf; nothing was done", err);
        }
        let count = render::act::counted(review.cycles.len(), "cycle", "cycles");
        cx.note(err, &format!("act leaf reviews {count}"))?;
        let site = session::driver_config(cx)?;
        session::work(cx, &site, None, err, |driver| review.write_draft(driver))??
    };
    let entry = review.entry_of(&draft)?;
    let mut agreed = args.record || cx.globals.yes;
    if !agreed && cx.may_ask() && !cx.globals.dry_run {
        err.write_all(printable(&entry).as_bytes())?;
        agreed = cx.ask("Append this to the Act log?", err)?;
    }
    Ok(render::act::reviewed(review.finish(draft, entry, agreed)?))
}
