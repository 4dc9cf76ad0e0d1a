//! `pdca signoff … accept --publish`, and `accept` where `[signoff] on_accept` says so: the acceptance, and what it promises.

use std::io::Write;

use pdca_review::{Decided, Decision, DecisionOutcome};
use pdca_state::{Artifact, Bundle, SignoffAction, State};
use serde::Serialize;

use super::line::Verb;
use super::{Args, Decisions, decided_line, decision, record_all};
use crate::command::publish::{AcceptSteps, How, PublishReport, publish};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};

/// The acceptances that were recorded, and the publication that followed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct AcceptReport {
    dry_run: bool,
    /// Those that were recorded by this call, or would be.
    decided: Vec<Decided>,
    published: PublishReport,
}

impl Report for AcceptReport {
    const KIND: &'static str = "accept";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for decided in &self.decided {
            decided_line(cx, decided, out)?;
        }
        self.published.text(cx, out)
    }
}

/// Accepts bundles and publishes them, marked as ready. What was accepted before is published all the same, so after a
/// crash the same command goes on.
pub(super) fn run(
    args: &Args,
    cx: &Context<'_>,
    verb: &Verb,
    bundles: &[Bundle],
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let choice = match verb {
        Verb::Decide(choice) if choice.action() == Some(SignoffAction::Accept) => choice,
        Verb::Decide(_) | Verb::Ask | Verb::Show => {
            return Err(Failure::usage("only `accept` publishes").hint(
                "`pdca signoff <id> accept --publish`; or `pdca publish <id> --ready` later",
            ));
        }
    };
    let mut open: Vec<(Bundle, Decision)> = Vec::new();
    for bundle in bundles {
        // A call that was killed after the acceptance goes on with the publication.
        if bundle.glance()?.state != State::Complete {
            let decision = decision(bundle.id(), choice.clone(), args.note.as_deref());
            open.push((bundle.clone(), decision));
        }
    }
    let (Decisions { dry_run, done, refused }, failure) = record_all(args, cx, &open, err)?;
    // A bundle whose seal failed takes no acceptance of another one back, and does not keep it from being published.
    let failure = match failure {
        Some(failure) if done.is_empty() => return Err(failure),
        failure => failure,
    };
    let is_accepted = |bundle: &&Bundle| refused.iter().all(|one| one.id != *bundle.id());
    let mut changes = Vec::new();
    for bundle in bundles.iter().filter(|_| !dry_run).filter(is_accepted) {
        if bundle.load()?.artifacts.contains(Artifact::Patch) {
            changes.push(bundle.clone());
        } else {
            let id = bundle.id();
            cx.note(err, &format!("{id} was closed without a change: nothing is published"))?;
        }
    }
    // `--publish` does what [publish] says, whatever follows an acceptance otherwise.
    let on_accept = AcceptSteps::of(&cx.workspace()?.config.signoff).filter(|_| !args.publish);
    let ready = on_accept.is_none_or(|steps| steps.ready);
    let how = How { ready, include_base: false, on_accept };
    let published = publish(&changes, how, None, cx, err)?;
    let exit = published.exit();
    let is_done = exit == Exit::NothingToDo && !done.is_empty();
    let exit = if is_done { Exit::Done } else { exit };
    let decided = |outcome| match outcome {
        DecisionOutcome::Decided(decided) => Some(*decided),
        DecisionOutcome::Cleared(_) => None,
    };
    let decided = done.into_iter().filter_map(decided).collect();
    Ok(Response::new(AcceptReport { dry_run, decided, published }, exit).failed(failure))
}
