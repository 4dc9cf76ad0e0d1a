//! `pdca publish`: publishes accepted changes on a forge.

mod explain;
pub(super) mod output;

use std::io::Write;

use camino::Utf8Path;
use pdca_config::{OnAccept, SignoffSettings};
use pdca_driver::publish::{
    MergeOutcome, PublishDryRun, PublishError, PublishRequest, PublishedBundle,
};
use pdca_publish::Comments;
use pdca_state::{Bundle, BundleId};

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::Response;
use crate::session;

pub(in crate::command) use output::PublishReport;

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

/// The result of one bundle.
struct Ended {
    id: BundleId,
    came: Came,
}

enum Came {
    Out(PublishedBundle),
    Would(PublishDryRun),
    Failed(Failure),
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let bundles = cx.require_bundles(&args.ids)?;
    let how = How { ready: args.ready, include_base: args.include_base, on_accept: None };
    let events = args.events.path(cx);
    let report = publish(&bundles, how, events.as_deref(), cx, err)?;
    let exit = report.exit();
    Ok(Response::new(report, exit))
}

/// The options of a publication.
#[derive(Debug, Clone, Copy)]
pub(in crate::command) struct How {
    pub(in crate::command) ready: bool,
    pub(in crate::command) include_base: bool,
    /// The steps that an acceptance brings with it; those of `[publish]` if none.
    pub(in crate::command) on_accept: Option<AcceptSteps>,
}

/// The steps of `[signoff] on_accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command) struct AcceptSteps {
    pub(in crate::command) ready: bool,
    pub(in crate::command) comment: bool,
    pub(in crate::command) merge: bool,
}

impl AcceptSteps {
    /// Returns the configured steps; `None` if an acceptance brings nothing with it.
    pub(in crate::command) fn of(settings: &SignoffSettings) -> Option<Self> {
        let has = |step: OnAccept| settings.on_accept.contains(&step);
        let merge = has(OnAccept::Merge);
        (!settings.on_accept.is_empty()).then(|| Self {
            // A draft cannot be merged.
            ready: has(OnAccept::Ready) || merge,
            comment: has(OnAccept::Comment),
            merge,
        })
    }
}

/// Publishes bundles, those that others stand on first. Failures are printed on `err` and are part of the report.
pub(in crate::command) fn publish(
    bundles: &[Bundle],
    how: How,
    events: Option<&Utf8Path>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<PublishReport, Failure> {
    let site = session::driver_config(cx)?;
    let mut settings = cx.workspace()?.config.publish.clone();
    let How { ready, include_base, on_accept } = how;
    if let Some(steps) = on_accept {
        settings.merge = steps.merge;
        if !steps.comment {
            settings.comments = Comments::Off;
        }
    }
    let settings = &settings;
    let request = PublishRequest { settings, ready, include_base };
    let dry_run = cx.globals.dry_run;
    let bundles = pdca_driver::publish::in_stack_order(bundles);
    let ended = session::work(cx, &site, events, err, |driver| {
        let mut ended = Vec::new();
        for bundle in &bundles {
            let failed = |error: PublishError| {
                let is_last = matches!(error, PublishError::Interrupted);
                (Came::Failed(explain::failed(error, bundle)), is_last)
            };
            let (came, is_last) = if dry_run {
                let said = pdca_driver::publish::dry_run_publishing(driver, bundle, &request);
                said.map_or_else(failed, |said| (Came::Would(said), false))
            } else {
                let done = pdca_driver::publish::publish_accepted(driver, bundle, &request);
                done.map_or_else(failed, |done| (Came::Out(done), false))
            };
            ended.push(Ended { id: bundle.id().clone(), came });
            // After an interruption the rest is not tried. Any other failure is about one bundle alone.
            if is_last {
                break;
            }
        }
        ended
    })?;
    for one in &ended {
        if let Came::Failed(failure) = &one.came {
            failure.render(cx.err, &cx.env.cwd, err)?;
        }
    }
    Ok(PublishReport { dry_run, ended })
}

impl PublishReport {
    /// Returns the most severe exit code.
    pub(in crate::command) fn exit(&self) -> Exit {
        exit_of(&self.ended)
    }
}

fn is_merged_as_asked(merge: &MergeOutcome) -> bool {
    matches!(merge, MergeOutcome::NotAsked | MergeOutcome::Merged)
}

/// Returns the most severe exit code.
fn exit_of(ended: &[Ended]) -> Exit {
    let exits: Vec<Exit> = ended
        .iter()
        .map(|one| match &one.came {
            Came::Failed(failure) => failure.exit,
            Came::Would(said) if said.would.is_empty() => Exit::NothingToDo,
            // Nothing is lost, but a merge was asked for and is still to come.
            Came::Out(done) if !is_merged_as_asked(&done.merge) => Exit::Waiting,
            Came::Out(done) if done.news.is_empty() => Exit::NothingToDo,
            Came::Would(_) | Came::Out(_) => Exit::Done,
        })
        .collect();
    let grave = [
        Exit::Interrupted,
        Exit::RecoveryBlocked,
        Exit::GateRed,
        Exit::Unexpected,
        Exit::Usage,
        Exit::Waiting,
        Exit::Done,
    ];
    grave.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::NothingToDo)
}
