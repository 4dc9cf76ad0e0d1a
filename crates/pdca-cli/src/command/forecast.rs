//! `pdca forecast`: predicts merge conflicts between pending changes.

use pdca_workspace::integration::forecast;

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;

/// Predict merge conflicts between pending changes
///
/// Shows which changes merge with each other, the order that lands most, and the groups of which only some can land.
///
/// Every pair is merged in the object store, without a checkout: accepted changes as sealed, others as
/// built; bundles without a patch are compared by their declared paths. Nothing is gated: two changes
/// that merge may still be red together, which `pdca integrate` finds out.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca forecast
  pdca forecast 12 15 20
  pdca forecast --json | jq '.forecasts[].order[]'
  pdca forecast --json | jq '.forecasts[].troubles[]'")]
pub(crate) struct Args {
    /// The bundles; all that have not landed if none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let open = cx.open()?;
    let ids = args.ids.iter().map(IdArg::parse).collect::<Result<Vec<_>, _>>()?;
    Ok(Response::done(forecast(&open, &ids)?))
}
