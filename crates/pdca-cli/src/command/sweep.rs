//! `pdca sweep`: removes lanes by age and for free disk space.

use pdca_workspace::lanes::{SweepRequest, sweep};

use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

/// Remove lanes by age or for free disk space, oldest first
///
/// Uses `max_age_days` and `min_free_gb` of `[lanes]`. A lane in use stays. Work that the target does not have is
/// kept in a git bundle, as by `pdca lanes remove`. `-n` shows exactly what it would do.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca sweep -n
  pdca sweep --older-than 14
  pdca sweep --min-free-gb 20 --json")]
pub(crate) struct Args {
    /// Remove lanes that were not used for this many days; `[lanes] max_age_days` if not given
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u64>,

    /// Remove lanes until this much is free; `[lanes] min_free_gb` if not given
    #[arg(long, value_name = "GB")]
    min_free_gb: Option<u64>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let request = SweepRequest { older_than: args.older_than, min_free_gb: args.min_free_gb };
    Ok(render::lanes::swept(sweep(&cx.open()?, request)?))
}
