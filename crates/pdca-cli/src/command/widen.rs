//! `pdca widen`: adds globs to `Touches` of a brief, with a reason.

#[cfg(test)]
mod tests;

use pdca_workspace::planning::{WidenRequest, widen};

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;

use super::signoff::signer;

/// Add globs to the declared paths of a brief, with a reason
///
/// The globs are added to `Touches` of brief.md, and a dated line under `## Widened` records who added them and why; the rest
/// of the brief stays byte for byte. A bundle in flight or frozen is refused. If the gate report says that the change
/// writes undeclared paths, the next run has the gates judge it again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca widen 36 'src/net/**' --reason \"the retry lives in the transport\"
  pdca widen 36 Cargo.lock docs/net.md --reason \"new dependency\" --dry-run

Who widens: --by, then [project] author or PDCA_AUTHOR, then $USER.")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: IdArg,

    /// Files, directories or globs to add, relative to the root of the repository
    #[arg(value_name = "GLOB", required = true)]
    globs: Vec<String>,

    /// The reason; it is kept in the brief
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Name of the person who widens
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let open = cx.open()?;
    let by = signer(args.by.as_deref(), cx)?;
    let request = WidenRequest {
        id: &args.id.parse()?,
        globs: &args.globs,
        reason: &args.reason,
        by: &by,
        date: &cx.env.today(),
    };
    Ok(Response::done(widen(&open, &request)?))
}
