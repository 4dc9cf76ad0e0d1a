//! `pdca review`: sign-off at the terminal, one card after the other.

use std::io::Write;

use crate::sitting::SittingRequest;

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;

/// Go through what waits for sign-off, one key per decision
///
/// Shows a card per bundle, cheapest first: the claim, the proof, open items, gates, review, the change, the attempt before it. A key decides; the
/// command that it stands for is shown, and is recorded five seconds later or when you confirm it at the end. Until then `u`
/// undoes it. If the review is killed or interrupted meanwhile, nothing of that is recorded.
///
/// Exit codes: 0 done, 2 there is no terminal, 4 nothing waits, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Keys:
  a accept, `y` for each open item     d the diff, in delta or $PAGER
  i build it again, with a note        l the logs of its gates
  p plan it again, with a note         t a shell in a throwaway checkout
  x discontinue it, with a note        v the whole card
  e write the note in $EDITOR          n next, b back, q quit
  u undo, for five seconds             ? these keys

Examples:
  pdca review              # everything that waits
  pdca review 12 15        # these
  pdca signoff             # the same, at a terminal")]
pub(crate) struct Args {
    /// The bundles; all that wait if none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,

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
    let request = SittingRequest { ids: &args.ids, by: args.by.as_deref() };
    crate::sitting::review(request, cx, out, err)
}
