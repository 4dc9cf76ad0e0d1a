//! Takes an acceptance back: the change goes back to Do or Plan, or is discontinued.

use std::io::Write;
use std::time::Duration;

use pdca_driver::integrate::{Held, HeldReason, MOST_AUTOMATIC_RETURNS, Return, ReturnError};
use pdca_driver::{Effects, WorkspaceConfig};
use pdca_events::WarningCode;
use pdca_state::{
    Artifact, Bundle, BundleId, Reentry, SignoffAction, SignoffDecision, State, overrule,
};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::report::{Report, Response};
use crate::session;

use super::super::integrate::unknown;
use super::{Decided, refusal, summary_text};

/// The longest wait for another decision about accepted changes. An integration takes longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The name of the decision maker if an integration sends a culprit back.
const BY_ITSELF: &str = "pdca";

/// Takes back the acceptance of a change that has not landed. The caller holds the bundle.
pub(crate) fn take_back(
    cx: &Context<'_>,
    bundle: &Bundle,
    decision: &SignoffDecision,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let _kept = site.locks().hold_landings(PATIENCE).map_err(|error| session::refused(&error))?;
    let withdrawal = pdca_driver::integrate::withdrawal(&site, bundle)
        .map_err(|error| explain(&error, bundle))?;
    let id = bundle.id();
    let reentry = match decision.action {
        SignoffAction::IterateDo => Some(Reentry::Do),
        SignoffAction::IteratePlan => Some(Reentry::Plan),
        SignoffAction::Accept | SignoffAction::Discontinue => None,
    };
    let has_note = decision.note.as_ref().is_some_and(|note| !note.trim().is_empty());
    if reentry.is_some() && !has_note && withdrawal.held.is_none() {
        return Err(explain(&ReturnError::NoReason { id: id.clone() }, bundle));
    }
    let effects = crate::faults::effects(cx)?;
    let effects: &dyn Effects = effects.as_ref();
    let mut archived = None;
    match reentry {
        Some(reentry) if !cx.globals.dry_run => {
            let how = Return {
                reentry,
                by: &decision.by,
                date: &decision.date,
                note: decision.note.as_deref(),
                automatic: false,
            };
            let number = pdca_driver::integrate::send_back(bundle, &withdrawal, how, effects)
                .map_err(|error| explain(&error, bundle))?;
            archived = Some(format!("iteration-v{number}"));
        }
        Some(_) => {}
        None => {
            let snapshot = bundle.load()?;
            let text = overrule(&summary_text(bundle, &snapshot)?, decision)
                .map_err(|error| refusal(&error, bundle, &snapshot))?;
            if !cx.globals.dry_run {
                let publish = || bundle.publish(Artifact::Summary, text.as_bytes());
                effects.perform("sign-off", publish)?;
            }
        }
    }
    let state = bundle.load()?.state;
    let next = match (reentry, cx.globals.dry_run) {
        (_, true) | (None, false) => None,
        (Some(Reentry::Do), false) => Some(cx.typed(&format!("pdca run {id}"))),
        (Some(Reentry::Plan), false) => Some(cx.typed(&format!("pdca new {id}"))),
    };
    let staged: Vec<String> = withdrawal.staged.iter().map(|(name, _)| name.clone()).collect();
    if !cx.globals.dry_run {
        if let Some(archived) = &archived {
            let dir = bundle.dir().join(archived);
            cx.note(err, &format!("the accepted attempt and its seal are in {}", cx.show(&dir)))?;
        }
        for branch in &staged {
            let text = format!("{branch} still has it; the next `pdca integrate` leaves it out");
            cx.warn(err, WarningCode::StillStaged, text)?;
        }
    }
    let held = withdrawal.held.as_ref();
    Ok(Response::done(TakenBack {
        decided: Decided { archived, ..Decided::of(cx, bundle, decision, state) },
        held: held.map(|held| held.reason.as_str()),
        partners: held.iter().flat_map(|held| &held.partners).cloned().collect(),
        staged,
        facts: withdrawal.facts,
        next,
    }))
}

/// An acceptance that was taken back, or would be.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct TakenBack {
    #[serde(flatten)]
    decided: Decided,
    /// The reason an integration held it.
    held: Option<&'static str>,
    partners: Vec<BundleId>,
    /// The staging branches that still contain it.
    staged: Vec<String>,
    /// The facts for the next attempt.
    facts: Vec<String>,
    next: Option<String>,
}

impl Report for TakenBack {
    const KIND: &'static str = "signoff";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        self.decided.line(cx, out)?;
        for fact in self.facts.iter().filter(|_| self.decided.dry_run) {
            writeln!(out, "  {}", crate::style::printable(fact))?;
        }
        if let Some(next) = &self.next {
            writeln!(out, "next: {}", cx.out.accent(next))?;
        }
        Ok(())
    }
}

/// A culprit that an integration sent back.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReturnedRow {
    pub(crate) id: BundleId,
    pub(crate) archived: String,
    pub(crate) next: String,
}

/// Sends back changes that an integration held because they are red or conflict. A change that was sent back too often
/// stays held, and so does one that another process holds. The caller holds the landings.
pub(crate) fn return_culprits<'h>(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    held: impl Iterator<Item = &'h Held>,
    err: &mut dyn Write,
) -> Result<Vec<ReturnedRow>, Failure> {
    let effects = crate::faults::effects(cx)?;
    let mut returned = Vec::new();
    for held in held.filter(|held| matches!(held.reason, HeldReason::Red | HeldReason::Conflict)) {
        let id = &held.id;
        let bundle = site.dirs.bundles.bundle(id);
        let Ok(_taken) = site.locks().take(id) else {
            cx.note(err, &format!("{id} stays held: it is in use by another command"))?;
            continue;
        };
        if !pdca_driver::integrate::may_return_by_itself(&bundle)? {
            let text = format!(
                "{id} stays held: it was sent back {MOST_AUTOMATIC_RETURNS} times without a person"
            );
            cx.note(err, &text)?;
            continue;
        }
        let date = cx.env.today();
        let how = Return {
            reentry: Reentry::Do,
            by: BY_ITSELF,
            date: &date,
            note: None,
            automatic: true,
        };
        let sent = pdca_driver::integrate::withdrawal(site, &bundle).and_then(|withdrawal| {
            pdca_driver::integrate::send_back(&bundle, &withdrawal, how, effects.as_ref())
        });
        match sent {
            Ok(number) => returned.push(ReturnedRow {
                id: id.clone(),
                archived: format!("iteration-v{number}"),
                next: cx.typed(&format!("pdca run {id}")),
            }),
            // The bundle was continued meanwhile.
            Err(ReturnError::NotAccepted { .. } | ReturnError::Landed { .. }) => {}
            Err(error) => return Err(explain(&error, &bundle)),
        }
    }
    Ok(returned)
}

/// Explains why an acceptance was not taken back.
fn explain(error: &ReturnError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let failure = Failure::from_error(Exit::Usage, error).at(Place::file(bundle.dir()));
    match error {
        ReturnError::NotAccepted { state, .. } => failure.hint(match state {
            State::AwaitingSignoff => {
                format!("`pdca signoff {id} iterate-do --note \"…\"` sends it back")
            }
            State::Unplanned
            | State::Resolved
            | State::Planned
            | State::Built
            | State::Checked
            | State::Complete
            | State::Iterate(_)
            | State::Discontinued => format!("`pdca why {id}` says where it stands"),
        }),
        ReturnError::Landed { .. } | ReturnError::Merged { .. } => failure.hint(format!(
            "what has landed is mended by another bundle: `pdca new {id}-follow-up --title \"…\"`"
        )),
        ReturnError::NoReason { .. } => failure.hint("add `--note \"why\"`"),
        ReturnError::TargetBranch(error) => unknown(error),
        ReturnError::Root(_)
        | ReturnError::Load(_)
        | ReturnError::Store(_)
        | ReturnError::Archive(_) => failure.hint(format!(
            "`pdca doctor` says more; the same command finishes it, or `pdca run {id}`"
        )),
    }
}
