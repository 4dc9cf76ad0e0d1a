//! `pdca plan`, also known as `pdca waves`: shows the order in which bundles may be built.

#[cfg(test)]
mod tests;

use pdca_workspace::planning::{PlanRequest, plan};

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

/// Show the order in which bundles may be built, and why
///
/// Builds nothing. The order follows from the declarations in the briefs: `Depends on`, `Conflicts with`, `Touches`. Waves
/// are only a view: a pool starts each bundle as soon as it may. A batch that cannot be carried out is rejected with all its
/// problems at once, and exit code 2.
///
/// `--write` stores the groups in `lanes.json` beside `pdca.toml`. When planned again, groups keep their letters and
/// started bundles their groups. While the file exists, drivers follow it: the bundles of a group run one after the other
/// in one lane; a damaged or outdated file is an error with exit code 2. `--check` tells whether it is current: exit
/// code 0 if it is or if there is none, 3 if it is outdated.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca plan
  pdca plan 12 15 20             # these only; what they depend on must be COMPLETE or named too
  pdca plan --simulate           # how long with 1 to 16 lanes, and what costs most
  pdca plan --write              # keep the groups in lanes.json
  pdca waves --json | jq -c '.waves[]'")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// The bundles; all unfinished ones if none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,

    /// Store the groups in lanes.json
    #[arg(long)]
    write: bool,

    /// Tell whether lanes.json is current, and write nothing
    #[arg(long, visible_alias = "validate-only", conflicts_with_all = ["write", "ids"])]
    check: bool,

    /// Predict the duration with 1 to 16 lanes
    #[arg(long)]
    simulate: bool,

    /// Show which bundles depend on or exclude each other
    #[arg(long)]
    workstreams: bool,

    /// Put a bundle into the group of its dependencies
    #[arg(long)]
    join_dependencies: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let open = cx.open()?;
    let ids = args.ids.iter().map(IdArg::parse).collect::<Result<Vec<_>, _>>()?;
    let request = PlanRequest {
        ids: &ids,
        write: args.write,
        simulate: args.simulate,
        workstreams: args.workstreams,
        join_dependencies: args.join_dependencies,
    };
    render::plan::planned(plan(&open, &request), args.check, cx)
}
