//! Publishes accepted changes on a forge, and carries out `[signoff] on_accept`.
//!
//! [`publish`] is `pdca publish`. [`publish_accepted`] follows each recorded acceptance, wherever a person or a rule made it:
//! `signoff`, `signoff ask`, `review`, the board, `flow`. It runs after the lock of the bundle is free again, finds what an
//! earlier call did, and takes no acceptance back if it fails; `pdca signoff <id> accept` then goes on.

mod explain;
pub(crate) mod output;

use std::io::Write;
use std::time::Duration;

use camino::Utf8Path;
use pdca_forge::publish::{MergeOutcome, PublishRequest};
use pdca_state::{Artifact, Bundle, BundleId, SignoffAction};
use pdca_workspace::publish::{AcceptSteps, BundlePublication, PublishOutcome, publish_bundles};
use pdca_workspace::review::DecisionOutcome;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session;

pub(crate) use output::PublishReport;

/// The longest wait for another publication of the same bundle: a flow delivers what a person has just accepted.
const PATIENCE: Duration = Duration::from_secs(120);

/// The options of a publication.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PublishOptions {
    /// Marks the pull request as ready, and merges it where `[publish]` says so.
    pub(crate) ready: bool,
    /// Pushes commits below the change, too, that the remote lacks.
    pub(crate) include_base: bool,
}

/// The command that repeats a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// `pdca publish`
    Publish,
    /// `pdca signoff … accept`, which does what `[signoff] on_accept` says.
    Accept,
}

impl Repeat {
    fn command(self, id: &BundleId) -> String {
        match self {
            Self::Publish => format!("pdca publish {id}"),
            Self::Accept => format!("pdca signoff {id} accept"),
        }
    }

    /// Returns the command that merges.
    fn merging_command(self, id: &BundleId) -> String {
        match self {
            Self::Publish => format!("pdca publish {id} --ready"),
            Self::Accept => self.command(id),
        }
    }
}

/// The result of one bundle.
struct Ended {
    id: BundleId,
    outcome: Result<PublishOutcome, Failure>,
}

/// Publishes bundles, those that others stand on first. Failures are printed on `err` and are part of the report.
pub(crate) fn publish(
    bundles: &[Bundle],
    options: PublishOptions,
    events: Option<&Utf8Path>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<PublishReport, Failure> {
    publish_with_steps(bundles, options, None, events, cx, err)
}

/// Carries out `[signoff] on_accept` for accepted bundles; `None` if nothing follows an acceptance. A bundle that was closed
/// without a change is left out.
pub(crate) fn publish_accepted(
    bundles: &[Bundle],
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Option<PublishReport>, Failure> {
    let steps = AcceptSteps::of(&cx.workspace()?.config.signoff);
    let Some(steps) = steps else { return Ok(None) };
    let changes = only_changes(bundles, cx, err)?;
    let options = PublishOptions { ready: steps.ready, include_base: false };
    publish_with_steps(&changes, options, Some(steps), None, cx, err).map(Some)
}

/// Returns the bundles that have a change, and notes the others on `err`.
pub(crate) fn only_changes(
    bundles: &[Bundle],
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Vec<Bundle>, Failure> {
    let mut changes = Vec::new();
    for bundle in bundles {
        if bundle.load()?.artifacts.contains(Artifact::Patch) {
            changes.push(bundle.clone());
        } else {
            let id = bundle.id();
            cx.note(err, &format!("{id} was closed without a change: nothing is published"))?;
        }
    }
    Ok(changes)
}

/// Returns whether an acceptance was recorded.
pub(crate) fn is_accepted(outcome: &DecisionOutcome) -> bool {
    match outcome {
        DecisionOutcome::Decided(decided) => {
            decided.action == SignoffAction::Accept.as_str() && !decided.dry_run
        }
        DecisionOutcome::Cleared(_) => false,
    }
}

fn publish_with_steps(
    bundles: &[Bundle],
    options: PublishOptions,
    steps: Option<AcceptSteps>,
    events: Option<&Utf8Path>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<PublishReport, Failure> {
    let site = session::driver_config(cx)?;
    let settings = &cx.workspace()?.config.publish;
    let settings = &steps.map_or_else(|| settings.clone(), |steps| steps.applied_to(settings));
    let (repeat, patience) = match steps {
        Some(_) => (Repeat::Accept, PATIENCE),
        None => (Repeat::Publish, Duration::ZERO),
    };
    let PublishOptions { ready, include_base } = options;
    let request = PublishRequest { settings, ready, include_base };
    let dry_run = cx.globals.dry_run;
    let ended = session::work(cx, &site, events, err, |driver| {
        publish_bundles(driver, bundles, request, patience, dry_run)
    })?;
    let ended = ended.into_iter().map(|BundlePublication { bundle, outcome }| Ended {
        id: bundle.id().clone(),
        outcome: outcome.map_err(|error| explain::failed(error, &bundle, repeat)),
    });
    let ended: Vec<Ended> = ended.collect();
    for one in &ended {
        if let Err(failure) = &one.outcome {
            failure.render(cx.err, &cx.env.cwd, err)?;
        }
    }
    Ok(PublishReport { dry_run, ended, repeat })
}

impl PublishReport {
    /// Returns the most severe exit code.
    pub(crate) fn exit(&self) -> Exit {
        exit_of(&self.ended)
    }

    /// Returns the exit code of decisions that this publication followed: they were made, whatever was out already.
    pub(crate) fn exit_after_decisions(&self) -> Exit {
        let exit = self.exit();
        if exit == Exit::NothingToDo { Exit::Done } else { exit }
    }
}

fn is_merged_as_asked(merge: &MergeOutcome) -> bool {
    matches!(merge, MergeOutcome::NotAsked | MergeOutcome::Merged)
}

/// Returns the most severe exit code.
fn exit_of(ended: &[Ended]) -> Exit {
    let exits: Vec<Exit> = ended
        .iter()
        .map(|one| match &one.outcome {
            Err(failure) => failure.exit,
            Ok(PublishOutcome::Would(said)) if said.would.is_empty() => Exit::NothingToDo,
            // Nothing is lost, but a merge was asked for and is still to come.
            Ok(PublishOutcome::Published(done)) if !is_merged_as_asked(&done.merge) => {
                Exit::Waiting
            }
            Ok(PublishOutcome::Published(done)) if done.news.is_empty() => Exit::NothingToDo,
            Ok(_) => Exit::Done,
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
