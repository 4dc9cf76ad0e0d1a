//! `pdca lanes provision`: creates missing lanes.

use std::io::Write;

use pdca_driver::LaneCount;
use pdca_lanes::LaneKind;
use pdca_workspace::lanes::{ProvisionRequest, provision_lanes};

use super::TargetArg;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{lanes, with_progress};
use crate::report::Response;

/// Create missing lanes, and hydrate them
///
/// Each is a private checkout of a target at its base commit. An existing lane is left as it is, so the
/// command can be repeated; an interrupted one is completed. Then `[lanes.hydrate]` runs in
/// every lane that is free and has no changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pdca lanes provision                 # as many as [driver] lanes says
  pdca lanes provision --lanes 4
  pdca lanes provision --lanes auto    # what processors, memory and disk allow
  pdca lanes provision --lanes 4 -n    # say what is missing")]
pub(crate) struct Args {
    /// The number of lanes, or `auto` for what the machine allows [default: `lanes` in [driver]]
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true)]
    lanes: Option<LaneCount>,

    /// The kind of new lanes [default: `kind` in [lanes]]
    #[arg(long, value_name = "KIND", value_enum)]
    kind: Option<KindArg>,

    /// Only create the checkouts
    #[arg(long)]
    no_hydrate: bool,

    #[command(flatten)]
    target: TargetArg,
}

/// The relation of a lane to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum KindArg {
    /// A repository of its own that borrows objects; the target is only read
    Reference,
    /// A linked worktree, registered in the target's repository
    Worktree,
}

impl From<KindArg> for LaneKind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Reference => LaneKind::Reference,
            KindArg::Worktree => LaneKind::Worktree,
        }
    }
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let open = cx.open()?;
    let request = ProvisionRequest {
        lanes: args.lanes,
        kind: args.kind.map(LaneKind::from),
        hydrate: !args.no_hydrate,
        target: args.target.name(),
    };
    let mut notes = lanes::ProvisionNotes::new(cx, err, args.lanes.is_some());
    let show = |progress| notes.show(progress);
    let done = with_progress(show, |progress| provision_lanes(&open, request, progress))?;
    Ok(lanes::provisioned(done))
}
