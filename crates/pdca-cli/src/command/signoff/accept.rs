//! `pdca signoff … accept --publish`, and `accept` where `[signoff] on_accept` says so: the acceptance, and what it promises.

use std::io::Write;

use crate::sitting::{PublishOptions, PublishReport, only_changes, publish, publish_accepted};
use pdca_state::{Bundle, SignoffAction, State};
use pdca_workspace::review::{Decided, Decision, DecisionOutcome};
use serde::Serialize;

use super::line::Verb;
use super::{Args, DecidedReport, Decisions, decided_line, decision, record_all};
use crate::context::Context;
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
    let accepted: Vec<Bundle> =
        bundles.iter().filter(|_| !dry_run).filter(is_accepted).cloned().collect();
    // `--publish` does what [publish] says, whatever follows an acceptance otherwise.
    let on_accept = if args.publish { None } else { publish_accepted(&accepted, cx, err)? };
    let published = if let Some(published) = on_accept {
        published
    } else {
        let options = PublishOptions { ready: true, include_base: false };
        publish(&only_changes(&accepted, cx, err)?, options, None, cx, err)?
    };
    let exit = match done.as_slice() {
        [] => published.exit(),
        _ => published.exit_after_decisions(),
    };
    let decided = |outcome| match outcome {
        DecisionOutcome::Decided(decided) => Some(*decided),
        DecisionOutcome::Cleared(_) => None,
    };
    let decided = done.into_iter().filter_map(decided).collect();
    Ok(Response::new(AcceptReport { dry_run, decided, published }, exit).failed(failure))
}

/// Reports an acceptance that was recorded, after what `[signoff] on_accept` says; just the acceptance if it says nothing.
pub(super) fn respond(
    cx: &Context<'_>,
    bundle: &Bundle,
    decided: Decided,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let accepted = std::slice::from_ref(bundle);
    let Some(published) = publish_accepted(accepted, cx, err)? else {
        return Ok(Response::done(DecidedReport(decided)));
    };
    let exit = published.exit_after_decisions();
    let report = AcceptReport { dry_run: false, decided: vec![decided], published };
    Ok(Response::new(report, exit))
}
