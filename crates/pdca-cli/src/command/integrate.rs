//! `pdca integrate`: gates accepted changes together, and lands them.

use std::io::Write;

use pdca_driver::LaneCount;
use pdca_driver::integrate::Land;

use pdca_workspace::integration::{IntegrateRequest, integrate, integration_stats};

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::process_env;
use crate::render;
use crate::report::Response;
use crate::session::integration::IntegrationTerminal;

/// Gate accepted changes together and land the green ones
///
/// Accepted changes that have not landed are folded onto the tip of their branch, in the order of `Depends on` and then of
/// acceptance, and gated as one tree. If that is red, the smallest set of culprits is found and held, and everything else
/// lands. Your checkout and index are not written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca integrate                 # all that is accepted
  pdca integrate 12 15           # only these
  pdca integrate --target app    # only what is meant for this target
  pdca integrate --dry-run       # the order, the commits, what is known already
  pdca integrate --land target   # move the branch itself, where no checkout has it
  pdca integrate --seal          # first seal what was accepted without a seal
  pdca integrate --fresh         # gate everything anew, whatever is known already
  pdca integrate --stats         # what integrations cost so far; nothing is done

`land` in [integrate] says what moves: `branch` leaves pdca/staging/<branch> for you to merge, `target` moves the branch,
`push` pushes. What conflicts with the branch goes to [leaves.resolver], where one is configured. Exit codes: 0 all landed, 101 something is red only together or by itself, 102 a conflict, 104 the branch
or a seal is not what it was. A change that is held goes on with `pdca reopen <id>`; `return_culprits = \"auto\"` does that by
itself for what is red or conflicts.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// The bundles; all accepted ones if none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,

    /// Only changes for this target, or for one branch of it
    #[arg(long, value_name = "NAME[@BRANCH]")]
    target: Option<String>,

    /// The landing mode, if not that of [integrate]
    #[arg(long, value_name = "WHAT", value_enum)]
    land: Option<LandArg>,

    /// Gate in this many checkouts at once, or `auto` for what the machine allows
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true)]
    lanes: Option<LaneCount>,

    /// Seal changes that were accepted without a seal, if they are still what was checked
    #[arg(long)]
    seal: bool,

    /// Use no cached verdict, neither of an integration nor of Check
    #[arg(long)]
    fresh: bool,

    /// Show statistics about past integrations, and do nothing else
    #[arg(long, conflicts_with_all = ["ids", "land", "lanes", "hosts", "local", "seal", "fresh", "no_resolve"])]
    stats: bool,

    /// Leave conflicts to `pdca resolve`, even if a resolver is configured
    #[arg(long)]
    no_resolve: bool,

    #[command(flatten)]
    hosts: crate::globals::HostArgs,

    #[command(flatten)]
    events: crate::globals::EventsArg,
}

impl Args {
    /// Returns whether anything but statistics is asked for.
    pub(crate) fn works(&self) -> bool {
        !self.stats
    }
}

/// The landing mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LandArg {
    /// Move the target branch
    Target,
    /// Move a staging branch, for you to merge
    Branch,
    /// Push to the branch of the remote
    Push,
}

impl From<LandArg> for Land {
    fn from(arg: LandArg) -> Self {
        match arg {
            LandArg::Target => Land::Target,
            LandArg::Branch => Land::Branch,
            LandArg::Push => Land::Push,
        }
    }
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    if args.stats {
        let report = integration_stats(&cx.open()?, args.target.as_deref())?;
        return Ok(render::integrate_stats::stats(report));
    }
    let open = cx.open()?;
    let ids = args.ids.iter().map(IdArg::parse).collect::<Result<Vec<_>, _>>()?;
    let (effects, events) = (crate::faults::effects(cx)?, args.events.path(cx));
    let request = IntegrateRequest {
        ids: &ids,
        target: args.target.as_deref(),
        land: args.land.map(Land::from),
        seal: args.seal,
        fresh: args.fresh,
        no_resolve: args.no_resolve,
        date: &cx.env.today(),
        clock: process_env::moment,
        effects: effects.as_ref(),
    };
    let end = integrate(
        &open,
        &request,
        &mut IntegrationTerminal {
            cx,
            err: &mut *err,
            events: events.as_deref(),
            lanes: args.lanes,
            hosts: args.hosts.choice(),
        },
    )?;
    render::integrate::integrated(end, &ids.into_iter().collect(), cx, err)
}
