//! `pdca publish`: publishes accepted changes on a forge.

use std::io::Write;

use pdca_workspace::publish::{PublicationRequest, PublishOptions};

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;
use crate::sitting::publish;

/// Push accepted changes, with a draft pull request and a comment for each
///
/// Branch, pull request and comment are looked up by key before they are created, so repeating the command creates nothing
/// twice, however the last call ended. The commit is made in the object store and gates run in a lane: your checkout, index
/// and branch are not touched. `commit-msg.txt`, `pr-description.md` and `tracker-comment.md` of the bundle are used as they
/// are; missing ones are written by [leaves.publisher], or derived from the brief and the summary. The comment is the draft in §8 of
/// SUMMARY.md. A change that stands on another published one gets a pull request onto that one's branch.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca publish 36                # branch, draft pull request, comment
  pdca publish 36 37 --dry-run   # what would be done
  pdca publish 36 --ready        # and mark the pull request as ready; merge it where `merge = true` in [publish]
  pdca publish 36 --include-base # also push commits of the branch that the remote lacks
  pdca publish 36 --json

[publish] in pdca.toml names the remote, the pattern of branches and the tracker; `repo` in [[targets]] the repository.
`gh` must be there and logged in (`gh auth login`); with `forge = \"none\"` only the branch is pushed. Exit codes: 0 published, 3
not accepted yet, not merged yet or a person must decide,
4 everything was out already, 100 a gate with `at_publish` is red, 104 the branch or the pull request is somebody else's.")]
pub(crate) struct Args {
    /// The bundles
    #[arg(value_name = "ID", required = true)]
    ids: Vec<IdArg>,

    /// Also mark the pull request as ready for review, and merge it where [publish] says so
    #[arg(long)]
    ready: bool,

    /// Also push commits below the change that the remote lacks
    #[arg(long)]
    include_base: bool,

    #[command(flatten)]
    events: crate::globals::EventsArg,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let bundles = cx.require_bundles(&args.ids)?;
    let options = PublishOptions { ready: args.ready, include_base: args.include_base };
    let request = PublicationRequest::new(cx.workspace()?, &bundles, options);
    let events = args.events.path(cx);
    let report = publish(&request, events.as_deref(), cx, err)?;
    let exit = report.exit();
    Ok(Response::new(report, exit))
}
