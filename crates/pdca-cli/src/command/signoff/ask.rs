//! `pdca signoff … ask`: the sign-off leaf proposes, a person decides.
//!
//! 1. The leaf is called, unless a proposal of an earlier call waits. It cannot tick or sign anything.
//! 2. The proposal is kept in the bundle, before anybody is asked: a terminal that goes away costs no second call.
//! 3. The rules of sign-off are tried. A proposal that they refuse is told with the refusal.
//! 4. A person confirms it, at the terminal or with `-y`. Without a person it is recorded only if `[signoff]
//!    leaf_may_record` names exactly this outcome of this disposition, and then in the name of the leaf.

use std::io::Write;

use pdca_leaves::Role;
use pdca_state::{Artifact, Bundle, SignoffProposal, Snapshot, State};
use pdca_workspace::review::{
    Choice, Decision, DecisionOutcome, KeepProposalError, ProposedDecision, Signing, TakenBundle,
    leaf_signature,
};

use super::{Args, SignoffSignature, confirmed, date, decision, respond, signer, with_signing};
use crate::context::Context;
use crate::exit::Exit;
use crate::explain::decision::{explain, not_awaiting};
use crate::failure::Failure;
use crate::render::signoff::{ProposalReport, proposed};
use crate::report::{Nothing, Response};
use crate::session;
use crate::style::printable;

/// What became of a proposal.
enum Asked {
    Nothing,
    Waits(Box<ProposalReport>),
    Dropped,
    Decided(DecisionOutcome),
}

/// Has the leaf propose a decision, and records it if a person makes it.
pub(super) fn run(
    args: &Args,
    cx: &Context<'_>,
    bundle: &Bundle,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let signature = SignoffSignature { by: signer(args.by.as_deref(), cx)?, date: date(args, cx)? };
    let asked = with_signing(cx, &signature, |signing| {
        // A driver that holds the bundle must not see it change.
        let taken = signing.take(bundle).map_err(|error| session::refused(&error))?;
        let snapshot = bundle.load()?;
        if snapshot.state != State::AwaitingSignoff {
            return Err(not_awaiting(snapshot.state, bundle));
        }
        let Some(proposal) = proposal(args, cx, signing, &taken, err)? else {
            return Ok(Asked::Nothing);
        };
        settle(args, cx, signing, &taken, (&snapshot, proposal), err)
    })?;
    let nothing = |message: &str, err: &mut dyn Write| {
        cx.note(err, message)?;
        Ok(Response::new(Nothing { message: message.to_owned() }, Exit::Waiting))
    };
    match asked {
        Asked::Nothing => nothing("no decision was made", err),
        Asked::Dropped => nothing("the proposal was dropped; nothing was recorded", err),
        Asked::Waits(report) => Ok(Response::new(*report, Exit::Waiting)),
        Asked::Decided(outcome) => respond(cx, bundle, outcome, err),
    }
}

/// Returns the proposal that waits, or has the leaf make one and keeps it.
fn proposal(
    args: &Args,
    cx: &Context<'_>,
    signing: &Signing<'_>,
    taken: &TakenBundle<'_>,
    err: &mut dyn Write,
) -> Result<Option<SignoffProposal>, Failure> {
    let bundle = taken.bundle();
    if let Some(waits) = bundle.proposal()? {
        return Ok(Some(waits));
    }
    session::require_leaf(cx, Role::Signoff)?;
    let proposed = session::work(cx, signing.config, None, err, |driver| {
        pdca_driver::propose(driver, bundle)
    })?;
    let Some(proposed) = proposed.map_err(|error| session::explain(bundle, error))? else {
        return Ok(None);
    };
    match taken.keep_proposal(signing, &proposed, args.note.as_deref()) {
        Ok(proposal) => Ok(Some(proposal)),
        Err(KeepProposalError::Write(error)) => Err(error.into()),
        Err(KeepProposalError::Unreadable(error)) => {
            let hint = format!(
                "nothing was recorded; decide yourself with `pdca signoff {} …`",
                bundle.id()
            );
            Err(Failure::from_error(Exit::Usage, &error).hint(hint))
        }
    }
}

/// Records the proposal, or leaves it for a person.
fn settle(
    args: &Args,
    cx: &Context<'_>,
    signing: &Signing<'_>,
    taken: &TakenBundle<'_>,
    (snapshot, proposal): (&Snapshot, SignoffProposal),
    err: &mut dyn Write,
) -> Result<Asked, Failure> {
    let bundle = taken.bundle();
    let choice = args.choice(proposal.action)?;
    let decision = decision(bundle.id(), choice, proposal.note.as_deref());
    let waits = |proposal: SignoffProposal| {
        Asked::Waits(Box::new(ProposalReport {
            id: bundle.id().clone(),
            proposed: ProposedDecision::of(bundle.id(), proposal),
            draft: bundle.path(Artifact::Proposal).into_string(),
            recorded: false,
        }))
    };
    let record = |signing: &Signing<'_>, decision: &Decision, err: &mut dyn Write| {
        confirmed(cx, signing, bundle, err, |signing| taken.decide(signing, decision))
            .map(Asked::Decided)
    };
    if cx.globals.dry_run || cx.globals.yes {
        return record(signing, &decision, err);
    }
    let rehearsed = Signing { dry_run: true, ..*signing };
    // The proposal waits all the same: what is in its way may be settled.
    taken.decide(&rehearsed, &decision).map_err(|refused| explain(refused, bundle))?;
    if cx.may_ask() {
        proposed(&ProposedDecision::of(bundle.id(), proposal), cx, err)?;
        let question = format!("Is this your decision, {}?", printable(signing.by));
        if cx.confirm(&question, err)? {
            return record(signing, &decision, err);
        }
        bundle.set_aside(Artifact::Proposal)?;
        return Ok(Asked::Dropped);
    }
    let rules = &cx.workspace()?.config.signoff;
    let Some(by) = leaf_signature(rules, snapshot, proposal.action) else {
        return Ok(waits(proposal));
    };
    let signing = Signing { by: &by, ..*signing };
    record(&signing, &Decision { choice: Choice::of(proposal.action), ..decision }, err)
}
