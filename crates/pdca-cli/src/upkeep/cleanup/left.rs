//! Leftovers of integrations: interrupted ones with nothing to do, refs, and evidence.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_driver::integrate::{Evidence, NextAction, TargetBranches};
use pdca_driver::{Effects, WorkspaceConfig};
use pdca_integrate::end_integration;
use pdca_journal::RunId;

use super::Step;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env;

/// Ends integrations in which nothing is left to do, and returns their ids.
pub(super) fn integrations(
    site: &WorkspaceConfig,
    effects: Option<&dyn Effects>,
) -> Result<(Vec<Step>, Vec<RunId>), Failure> {
    if pdca_driver::integrations(site)?.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let fronts = TargetBranches::load(&site.queue())?;
    let (mut steps, mut ending) = (Vec::new(), Vec::new());
    for (sighting, follows) in pdca_driver::integrate::unfinished_integrations(site, &fronts)? {
        if follows != NextAction::End {
            continue;
        }
        let name = format!("integration {}", sighting.id);
        let step = Step::new("end-integration", name, "end", "nothing is left to do in it");
        let end = || end_integration(&site.queue(), &sighting.id, &fronts, process_env::moment);
        steps.push(carried_out(step, effects, "end-integration", end));
        ending.push(sighting.id);
    }
    Ok((steps, ending))
}

/// Removes refs that protected gated commits and are no longer needed.
pub(super) fn anchors(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    keep: Duration,
    ending: &[RunId],
    effects: Option<&dyn Effects>,
) -> Result<Vec<Step>, Failure> {
    let found = pdca_driver::integrate::gc_refs(site, process_env::moment(), keep, ending)
        .map_err(|error| {
            Failure::from_error(Exit::Unexpected, &error)
                .hint("`pdca doctor` looks at the targets; nothing of an integration was removed")
        })?;
    let mut steps = Vec::new();
    for anchor in found {
        let name = format!("{} of {}", anchor.name, anchor.target);
        steps.push(match &anchor.fate {
            Err(stay) => Step::new("anchor", name, "keep", stay.as_str()),
            Ok(why) => {
                let step = Step::new("anchor", name, "remove", why.as_str());
                let drop = || pdca_driver::integrate::drop_gc_ref(site, &anchor, cx.env.now());
                carried_out(step, effects, "anchor", drop)
            }
        });
    }
    Ok(steps)
}

/// Removes logs of red combinations that nothing refers to.
pub(super) fn evidence(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    ending: &[RunId],
    effects: Option<&dyn Effects>,
) -> Result<Vec<Step>, Failure> {
    let unfinished = pdca_driver::integrations(site)?;
    // An integration that ends only now is left to the next call, as `-n` announces it.
    let unfinished = unfinished.first().map(|one| &one.id).or(ending.first());
    let found = Evidence::of(&site.queue()).unnamed(&site.queue())?;
    let step = |dir: Utf8PathBuf| {
        let name = format!("evidence {}", cx.show(&dir));
        // A continued integration needs the evidence of cached verdicts.
        if let Some(one) = unfinished {
            let why = format!("integration {one} was not over");
            return Step::new("evidence", name, "keep", why);
        }
        let why = "no held change and no open brief names it";
        let step = Step::new("evidence", name, "remove", why);
        carried_out(step, effects, "evidence", || Evidence::of(&site.queue()).remove(&dir))
    };
    Ok(found.into_iter().map(step).collect())
}

/// Carries a step out, except in a dry run.
fn carried_out<E: std::error::Error>(
    step: Step,
    effects: Option<&dyn Effects>,
    name: &'static str,
    carry_out: impl FnOnce() -> Result<(), E>,
) -> Step {
    match effects.map(|effects| effects.perform(name, carry_out)) {
        None => step,
        Some(Ok(())) => Step { done: true, ..step },
        Some(Err(error)) => Step { error: Some(pdca_state::chain(&error)), ..step },
    }
}
