//! `pdca doctor`: checks host and workspace, with the remedy for each problem.

#[cfg(test)]
mod tests;

use pdca_workspace::doctor::{examine_machine, examine_workspace};

use crate::context::Context;
use crate::render;
use crate::report::Response;

/// Check the host and the workspace, with a remedy for each problem
///
/// Changes nothing. With `--probe` each configured leaf is called once with a harmless prompt, in a throwaway checkout behind its wall:
/// that costs what its provider asks for a few words. Exit codes: 0 nothing is broken, 2 something is.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca doctor
  pdca doctor --probe
  pdca doctor --json")]
pub(crate) struct Args {
    /// Call each configured leaf once for real, and say what came back; this costs money where the agent does
    #[arg(long)]
    probe: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Response {
    let mut findings = examine_machine(&cx.env.cwd);
    let failure = match cx.open() {
        Ok(open) => {
            findings.extend(examine_workspace(&open, args.probe));
            None
        }
        Err(failure) => Some(failure),
    };
    render::doctor::examined(findings, failure.as_ref(), cx)
}
