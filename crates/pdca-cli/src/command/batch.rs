//! `pdca batch`: like `run`, over all unfinished bundles.

use std::io::Write;

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;
use crate::session;

use super::run::{DriveArgs, drive_all};

/// Run all unfinished bundles
///
/// Without ids: every bundle of the workspace that is neither complete nor discontinued nor resolved. The failure of one
/// bundle does not stop the others. A bundle with an unmet `Depends on` is reported and not started, unless its dependency
/// is signed off while the others run. `pdca plan` shows the order and the reasons beforehand.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca batch                 # everything that can go on
  pdca batch --lanes 4       # four at once, as far as the briefs allow
  pdca batch --lanes auto    # as many as processors, memory and disk allow
  pdca batch 12 15 --json
  pdca flow 12 15            # the whole cycle: planning, sign-off and landing too")]
pub(crate) struct Args {
    /// The bundles; all unfinished ones if none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,
    #[command(flatten)]
    drive: DriveArgs,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let named = if args.ids.is_empty() { None } else { Some(cx.require_bundles(&args.ids)?) };
    drive_all(&site, named.as_deref(), &args.drive, cx, err)
}
