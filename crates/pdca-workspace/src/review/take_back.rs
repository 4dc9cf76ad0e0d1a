//! Takes an acceptance back: the change goes back to Do or Plan, or is discontinued.

use std::time::Duration;

use pdca_driver::{BundleLockError, Effects, WorkspaceConfig};
use pdca_forge::publish::{merged_pull_request, open_pull_request};
use pdca_integrate::{HeldChange, HeldReason, MOST_AUTOMATIC_RETURNS, Return, ReturnError};
use pdca_state::{
    Artifact, Bundle, BundleId, Reentry, SignoffAction, SignoffError, SignoffOutcome, overrule,
};
use serde::Serialize;

use crate::review::decide::{DecideError, Decided, DecisionRemark, Signing, summary_text};
use crate::review::decision::Decision;

/// The longest wait for another decision about accepted changes. An integration takes longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The name of the decision maker if an integration sends a culprit back.
const BY_ITSELF: &str = "pdca";

/// The facts about an acceptance that was taken back, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TakenBack {
    /// The reason an integration held it.
    pub held: Option<HeldReason>,
    pub partners: Vec<BundleId>,
    /// The staging branches that still contain it.
    pub staged: Vec<String>,
    /// The facts for the next attempt.
    pub facts: Vec<String>,
    pub next: Option<String>,
}

/// Takes back the acceptance of a change that has not landed. The caller holds the bundle.
pub(crate) fn take_back(
    signing: &Signing<'_>,
    bundle: &Bundle,
    decision: &Decision,
    action: SignoffAction,
) -> Result<Decided, DecideError> {
    let Signing { config, effects, by, date, dry_run, is_confirmed } = *signing;
    // Held from the question whether it has landed until it is sent back: no integration lands it in between.
    let _kept = config.locks().hold_landings(PATIENCE)?;
    let merged = merged_pull_request(bundle).map_err(ReturnError::from)?;
    let withdrawal = pdca_integrate::withdrawal(&config.queue(), bundle, merged)?;
    let id = bundle.id();
    let reentry = match action {
        SignoffAction::IterateDo => Some(Reentry::Do),
        SignoffAction::IteratePlan => Some(Reentry::Plan),
        SignoffAction::Discontinue => None,
        SignoffAction::Accept => {
            let outcome = SignoffOutcome::MergedWider;
            return Err(SignoffError::AlreadyDecided { outcome }.into());
        }
    };
    if by.trim().is_empty() {
        return Err(SignoffError::NoSigner.into());
    }
    let note = decision.note.as_deref();
    let has_note = note.is_some_and(|note| !note.trim().is_empty());
    // An integration that held it has written down why; that is the reason for the next attempt.
    if reentry.is_some() && !has_note && withdrawal.held.is_none() {
        return Err(ReturnError::NoReason { id: id.clone() }.into());
    }
    if !is_confirmed && !dry_run {
        let based = pdca_driver::based_on(config, id);
        let pull_request = open_pull_request(bundle)?;
        if !based.is_empty() || pull_request.is_some() {
            return Err(DecideError::Unconfirmed { id: id.clone(), based, pull_request });
        }
    }
    if !dry_run {
        pdca_driver::integrate::finish_acceptances(config, [bundle], effects)
            .map_err(DecideError::Attempt)?;
    }
    let mut archived = None;
    match reentry {
        Some(_) if dry_run => {}
        Some(reentry) => {
            let how = Return { reentry, by, date, note, automatic: false };
            let number = pdca_integrate::send_back(bundle, &withdrawal, how, effects)?;
            archived = Some(format!("iteration-v{number}"));
        }
        None => {
            let snapshot = bundle.load()?;
            let text = summary_text(bundle, &snapshot)?;
            let text = overrule(&text, &signing.signoff(action, decision))?;
            if !dry_run {
                let publish = || bundle.publish(Artifact::Summary, text.as_bytes());
                effects.perform("sign-off", publish)?;
            }
        }
    }
    let state = bundle.load()?.state;
    let next = match (reentry, dry_run) {
        (_, true) | (None, false) => None,
        (Some(Reentry::Do), false) => Some(format!("pdca run {id}")),
        (Some(Reentry::Plan), false) => Some(format!("pdca new {id}")),
    };
    let staged: Vec<String> = withdrawal.staged.iter().map(|(name, _)| name.clone()).collect();
    let still_staged = |branch: &String| DecisionRemark::StillStaged { branch: branch.clone() };
    let remarks = staged.iter().filter(|_| !dry_run).map(still_staged).collect();
    let held = withdrawal.held.as_ref();
    let taken_back = TakenBack {
        held: held.map(|held| held.reason),
        partners: held.iter().flat_map(|held| &held.partners).cloned().collect(),
        staged,
        facts: withdrawal.facts,
        next,
    };
    let decided = Decided::of(signing, decision, action, state);
    Ok(Decided { archived, remarks, taken_back: Some(taken_back), ..decided })
}

/// A culprit that an integration sent back, or left held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReturnedCulprit {
    /// It is in Do again; its attempt is in the directory of this name.
    Returned { id: BundleId, archived: String },
    /// Another process holds it.
    InUse { id: BundleId },
    /// It was sent back this often without a person.
    TooOften { id: BundleId, times: usize },
}

/// Sends back changes that an integration held because they are red or conflict. A change that was sent back too often
/// stays held, and so does one that another process holds. The caller holds the landings.
///
/// Stops at the first error, which names its bundle.
pub fn return_culprits<'h>(
    config: &WorkspaceConfig,
    effects: &dyn Effects,
    date: &str,
    held: impl Iterator<Item = &'h HeldChange>,
) -> Result<Vec<ReturnedCulprit>, Box<(Bundle, DecideError)>> {
    let mut returned = Vec::new();
    for held in held.filter(|held| matches!(held.reason, HeldReason::Red | HeldReason::Conflict)) {
        let bundle = config.dirs.bundles.bundle(&held.id);
        match return_culprit(config, effects, date, &bundle) {
            Ok(Some(one)) => returned.push(one),
            // The bundle was continued meanwhile.
            Ok(None) => {}
            Err(error) => return Err(Box::new((bundle, error))),
        }
    }
    Ok(returned)
}

fn return_culprit(
    config: &WorkspaceConfig,
    effects: &dyn Effects,
    date: &str,
    bundle: &Bundle,
) -> Result<Option<ReturnedCulprit>, DecideError> {
    let id = bundle.id().clone();
    // Without patience: the caller holds the landings, and a sign-off that holds this bundle may wait for them.
    let _taken = match config.locks().take(&id) {
        Ok(taken) => taken,
        Err(BundleLockError::Taken { .. } | BundleLockError::StillRunning(_)) => {
            return Ok(Some(ReturnedCulprit::InUse { id }));
        }
        // Waiting does not help here, which `InUse` would suggest.
        Err(error @ BundleLockError::Unusable { .. }) => return Err(error.into()),
    };
    if !pdca_integrate::may_return_by_itself(bundle)? {
        return Ok(Some(ReturnedCulprit::TooOften { id, times: MOST_AUTOMATIC_RETURNS }));
    }
    let how = Return { reentry: Reentry::Do, by: BY_ITSELF, date, note: None, automatic: true };
    let merged = merged_pull_request(bundle).map_err(ReturnError::from)?;
    let sent = pdca_integrate::withdrawal(&config.queue(), bundle, merged)
        .and_then(|withdrawal| pdca_integrate::send_back(bundle, &withdrawal, how, effects));
    match sent {
        Ok(number) => {
            Ok(Some(ReturnedCulprit::Returned { id, archived: format!("iteration-v{number}") }))
        }
        Err(ReturnError::NotAccepted { .. } | ReturnError::Landed { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
