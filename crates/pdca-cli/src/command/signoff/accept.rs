//! `pdca signoff … accept --publish`, and `accept` where `[signoff] on_accept` says so: the acceptance, and what it promises.

use std::io::Write;

use pdca_state::{Bundle, SignoffAction};
use pdca_workspace::publish::PublicationRequest;
use pdca_workspace::review::{Decided, DecisionOutcome, acceptances};

use super::line::Verb;
use super::{Args, record_all};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::signoff::AcceptReport;
use crate::report::Response;
use crate::sitting::{publish, publish_accepted};

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
    let open = acceptances(bundles, choice, args.note.as_deref())?;
    let (report, failure) = record_all(args, cx, &open, err)?;
    let (dry_run, done) = (report.batch.dry_run, report.batch.done);
    // A bundle whose seal failed takes no acceptance of another one back, and does not keep it from being published.
    let failure = match failure {
        Some(failure) if done.is_empty() => return Err(failure),
        failure => failure,
    };
    let is_accepted = |bundle: &&Bundle| report.refused.iter().all(|one| one.id != *bundle.id());
    let accepted: Vec<Bundle> =
        bundles.iter().filter(|_| !dry_run).filter(is_accepted).cloned().collect();
    // `--publish` does what [publish] says, whatever follows an acceptance otherwise.
    let on_accept = if args.publish { None } else { publish_accepted(&accepted, cx, err)? };
    let published = if let Some(published) = on_accept {
        published
    } else {
        publish(&PublicationRequest::of_accepted(cx.workspace()?, &accepted)?, None, cx, err)?
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
        return Ok(Response::done(decided));
    };
    let exit = published.exit_after_decisions();
    let report = AcceptReport { dry_run: false, decided: vec![decided], published };
    Ok(Response::new(report, exit))
}
