//! `pdca signoff … accept --publish`: the acceptance, and what it promises.

use std::io::Write;

use pdca_review::{Decided, DecidedBatch, Decision, DecisionOutcome};
use pdca_state::{Artifact, Bundle, SignoffAction, State};
use serde::Serialize;

use super::line::Verb;
use super::{Args, decided_line, decision, explain, remark, signed, to_be_typed, with_signing};
use crate::command::publish::{How, PublishReport, publish};
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
    let decided = accept(args, cx, &open, err)?;
    let dry_run = cx.globals.dry_run;
    let mut changes = Vec::new();
    for bundle in bundles.iter().filter(|_| !dry_run) {
        if bundle.load()?.artifacts.contains(Artifact::Patch) {
            changes.push(bundle.clone());
        } else {
            let id = bundle.id();
            cx.note(err, &format!("{id} was closed without a change: nothing is published"))?;
        }
    }
    let how = How { ready: true, include_base: false };
    let published = publish(&changes, how, None, cx, err)?;
    let exit = published.exit();
    let is_done = exit == Exit::NothingToDo && !decided.is_empty();
    let exit = if is_done { Exit::Done } else { exit };
    Ok(Response::new(AcceptReport { dry_run, decided, published }, exit))
}

/// Records the acceptances, all or none.
fn accept(
    args: &Args,
    cx: &Context<'_>,
    open: &[(Bundle, Decision)],
    err: &mut dyn Write,
) -> Result<Vec<Decided>, Failure> {
    let Some((_, first)) = open.first() else { return Ok(Vec::new()) };
    let DecidedBatch { done, failed } = with_signing(cx, &signed(args, cx, first)?, |signing| {
        Ok(pdca_review::decide_all(signing, open))
    })?;
    let of = |id: &pdca_state::BundleId| open.iter().map(|(one, _)| one).find(|one| one.id() == id);
    let mut decided = Vec::new();
    for outcome in done {
        if let DecisionOutcome::Decided(one) = outcome {
            let one = to_be_typed(cx, *one);
            if let Some(bundle) = of(&one.id) {
                remark(cx, bundle, &one, err)?;
            }
            decided.push(one);
        }
    }
    let mut worst: Option<Failure> = None;
    for (id, error) in failed {
        let Some(bundle) = of(&id) else { continue };
        let failure = explain(error, bundle);
        worst = Some(match worst {
            None => failure,
            Some(before) => Failure::of(before.exit, [before.problems, failure.problems].concat()),
        });
    }
    worst.map_or(Ok(decided), Err)
}
