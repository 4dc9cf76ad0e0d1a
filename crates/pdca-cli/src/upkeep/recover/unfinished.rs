//! Interrupted integrations, for `pdca recover`.

use std::io::Write;

use pdca_driver::integrate::{NextAction, TargetBranches};
use pdca_driver::{RunStatus, WorkspaceConfig, integrations};
use pdca_integrate::end_integration;
use pdca_journal::Liveness;
use pdca_state::BundleId;
use pdca_workspace::snapshot::RunRow;

use super::Recovery;
use crate::context::Context;
use crate::explain::integrate::ending;
use crate::failure::Failure;
use crate::process_env;
use crate::session;
use crate::style::printable;

/// Shows every active integration, and ends those with nothing left to do.
pub(super) fn recover(site: &WorkspaceConfig, cx: &Context<'_>) -> Result<Vec<Recovery>, Failure> {
    let seen = integrations(site)?;
    if seen.is_empty() {
        return Ok(Vec::new());
    }
    // An error is shown in the rows and hides neither them nor the runs before them.
    let fronts = match TargetBranches::load(&site.queue()) {
        Ok(fronts) => fronts,
        Err(error) => {
            let why = pdca_state::chain(&error);
            return Ok(seen.iter().map(|sighting| untold(sighting, site, &why)).collect());
        }
    };
    let mut shown = Vec::new();
    for sighting in &seen {
        let follows = NextAction::of(sighting.state.as_deref().ok(), sighting.driver, &fronts);
        let mut recovery = foreseen(sighting, site, &follows);
        if follows == NextAction::End && !cx.globals.dry_run {
            // An integration has locks of its own, beside those of a run.
            let integrating = site.clone().for_integration();
            let _admitted =
                integrating.locks().admit().map_err(|error| session::refused(&error))?;
            let ended = end_integration(&site.queue(), &sighting.id, &fronts, process_env::moment);
            ended.map_err(|error| ending(&error))?;
            (recovery.done, recovery.over) = (true, true);
        }
        shown.push(recovery);
    }
    Ok(shown)
}

/// Makes the row of an integration whose changes cannot be read.
fn untold(sighting: &RunStatus, site: &WorkspaceConfig, why: &str) -> Recovery {
    let decide = vec![format!("where its changes stand cannot be told: {}", printable(why))];
    Recovery { decide, ..foreseen(sighting, site, &NextAction::Wait) }
}

fn foreseen(sighting: &RunStatus, site: &WorkspaceConfig, follows: &NextAction) -> Recovery {
    let run = RunRow::of_integration(sighting, site);
    let mut decide = Vec::new();
    let action = match follows {
        NextAction::Wait => {
            if let (Ok(state), Liveness::Unknown) = (&sighting.state, sighting.driver) {
                let driver = &state.driver;
                decide.push(format!("whether {driver} lives cannot be told from here: look there"));
            }
            "leave"
        }
        NextAction::Look => {
            let dir = site.dirs.integrations().dir(&sighting.id);
            decide.push(format!("restore {dir}/journal, or move the directory away"));
            "leave"
        }
        NextAction::End => "end",
        NextAction::GoOn { .. } => {
            if let Some(block) = &run.block {
                let evidence = printable(&block.evidence);
                decide.push(format!("{evidence}: mend it, and `pdca integrate` goes on"));
            }
            "integrate"
        }
    };
    let (bundles, done, over) = (Vec::new(), false, false);
    Recovery { run, bundles, action, follows: sentence(follows), done, over, decide }
}

/// Describes the next step of `pdca integrate`.
fn sentence(follows: &NextAction) -> Option<String> {
    let list = |ids: &[BundleId]| {
        let names: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        names.join(", ")
    };
    match follows {
        NextAction::Wait | NextAction::Look => None,
        NextAction::End => Some("`pdca integrate` ends it: nothing is left to do".to_owned()),
        NextAction::GoOn { landed, left } if landed.is_empty() => {
            Some(format!("`pdca integrate` goes on with {}; nothing has landed", list(left)))
        }
        NextAction::GoOn { landed, left } => Some(format!(
            "`pdca integrate` goes on with {}; {} landed and will not land again",
            list(left),
            list(landed)
        )),
    }
}

/// Mentions active integrations to a person who asked about runs while none is active.
pub(crate) fn mention(site: &WorkspaceConfig, err: &mut dyn Write) -> Result<(), Failure> {
    for sighting in integrations(site)? {
        let id = &sighting.id;
        let waits = sighting.state.as_ref().ok().and_then(|state| state.block.as_ref());
        let why = match waits {
            Some(block) => format!("waits for a person ({})", printable(&block.evidence)),
            None => "is not over".to_owned(),
        };
        writeln!(
            err,
            "integration {id} {why}: `pdca integrate` goes on with it, `pdca recover -n` says how"
        )?;
    }
    Ok(())
}
