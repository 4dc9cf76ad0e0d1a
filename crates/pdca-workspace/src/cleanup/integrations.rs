//! Leftovers of integrations: interrupted ones with nothing to do, refs, and evidence.

use std::time::Duration;

use pdca_driver::integrate::{Evidence, NextAction, TargetBranches, unfinished_integrations};
use pdca_driver::{Effects, WorkspaceConfig};
use pdca_integrate::{drop_gc_ref, end_integration, gc_refs};
use pdca_journal::{Clock, RunId};

use super::{CleanupDecision, CleanupStep, Leftover, RemovalReason, RetentionReason};
use crate::{OpenWorkspace, OperationError};

/// Ends integrations in which nothing is left to do, and returns their ids.
pub(super) fn end(
    config: &WorkspaceConfig,
    clock: Clock,
    effects: Option<&dyn Effects>,
) -> Result<(Vec<CleanupStep>, Vec<RunId>), OperationError> {
    if pdca_driver::integrations(config)?.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let branches = TargetBranches::load(&config.queue())?;
    let (mut steps, mut ending) = (Vec::new(), Vec::new());
    for (status, next) in unfinished_integrations(config, &branches)? {
        if next != NextAction::End {
            continue;
        }
        let step = CleanupStep::new(Leftover::Integration(status.id.clone()), CleanupDecision::End);
        let end = || end_integration(&config.queue(), &status.id, &branches, clock);
        steps.push(step.perform(effects, "end-integration", end));
        ending.push(status.id);
    }
    Ok((steps, ending))
}

/// Removes refs that protected gated commits and are no longer needed.
pub(super) fn refs(
    open: &OpenWorkspace<'_>,
    config: &WorkspaceConfig,
    keep: Duration,
    ending: &[RunId],
    effects: Option<&dyn Effects>,
) -> Result<Vec<CleanupStep>, OperationError> {
    let mut steps = Vec::new();
    for found in gc_refs(&config.queue(), (open.machine.moment)(), keep, ending)? {
        let (name, target) = (found.name.clone(), found.target.clone());
        let leftover = Leftover::Ref { name, target };
        steps.push(match &found.fate {
            Err(why) => CleanupStep::keep(leftover, RetentionReason::Ref(*why)),
            Ok(why) => {
                let why = RemovalReason::RefNotNeeded(why.clone());
                let remove = || drop_gc_ref(&config.queue(), &found, open.machine.now);
                CleanupStep::remove(leftover, why).perform(effects, "anchor", remove)
            }
        });
    }
    Ok(steps)
}

/// Removes logs of red combinations that nothing refers to.
pub(super) fn evidence(
    config: &WorkspaceConfig,
    ending: &[RunId],
    effects: Option<&dyn Effects>,
) -> Result<Vec<CleanupStep>, OperationError> {
    let unfinished = pdca_driver::integrations(config)?;
    // An integration that ends only now is left to the next call, as a dry run announces it.
    let unfinished = unfinished.first().map(|status| &status.id).or(ending.first());
    let evidence = Evidence::of(&config.queue());
    let mut steps = Vec::new();
    for dir in evidence.unnamed(&config.queue())? {
        let leftover = Leftover::Evidence { dir: dir.clone() };
        // A continued integration needs the evidence of cached verdicts.
        steps.push(match unfinished {
            Some(run) => {
                CleanupStep::keep(leftover, RetentionReason::IntegrationActive(run.clone()))
            }
            None => CleanupStep::remove(leftover, RemovalReason::Unnamed).perform(
                effects,
                "evidence",
                || evidence.remove(&dir),
            ),
        });
    }
    Ok(steps)
}
