//! Checks the active runs.

use pdca_driver::{RunStatus, WorkspaceConfig, has_work, integrations, run_statuses};
use pdca_journal::{Liveness, Reason, RunState};
use pdca_workspace::snapshot::RunRow;

use crate::doctor::Row;

/// Returns a row for each active run, or one that says that there is none.
pub(super) fn rows(site: &WorkspaceConfig) -> Vec<Row> {
    let mut rows = batches(site);
    let seen = integrations(site).unwrap_or_default();
    rows.extend(seen.iter().map(|sighting| integration(sighting, site)));
    rows
}

/// Checks an active integration.
fn integration(sighting: &RunStatus, site: &WorkspaceConfig) -> Row {
    let what = format!("integration {}", sighting.id);
    let state = match &sighting.state {
        Ok(state) => state,
        Err(error) => {
            let dir = site.dirs.integrations().dir(&sighting.id);
            let remedy = format!("restore {dir}/journal, or move the directory away");
            return Row::broken(what, pdca_state::chain(error), remedy);
        }
    };
    let (since, driver) = (state.since.at.wall, &state.driver);
    if let Some(block) = &state.block {
        let found = format!("{} since {since}: {}", state.phase, block.evidence);
        return Row::warning(what, found, "mend it, and `pdca integrate` goes on");
    }
    match sighting.driver {
        Liveness::Alive => Row::ok(what, format!("{} since {since}, by {driver}", state.phase)),
        Liveness::Unknown => Row::warning(
            what,
            format!("{} since {since}; whether {driver} lives cannot be told", state.phase),
            "look at it where it was started; nothing is touched until it is known to be dead",
        ),
        Liveness::Dead => Row::warning(
            what,
            format!("{} since {since}, left by {driver}, which is dead", state.phase),
            "`pdca integrate` goes on with it; `pdca recover -n` says with what",
        ),
    }
}

fn batches(site: &WorkspaceConfig) -> Vec<Row> {
    match run_statuses(site) {
        Err(error) => vec![Row::broken(
            "runs",
            error.to_string(),
            "the workspace's `.pdca/runs` must be a readable directory",
        )],
        Ok(seen) if seen.is_empty() => vec![Row::ok("runs", "none is active")],
        Ok(seen) => seen.iter().map(|sighting| row(sighting, site)).collect(),
    }
}

fn row(sighting: &RunStatus, site: &WorkspaceConfig) -> Row {
    let what = format!("run {}", sighting.id);
    match &sighting.state {
        Err(error) => Row::broken(
            what,
            pdca_state::chain(error),
            format!(
                "restore {}/journal from a backup, or move the directory away: nothing was cut or changed",
                site.dirs.runs().dir(&sighting.id)
            ),
        ),
        Ok(state) => readable(what, sighting, state, site),
    }
}

fn readable(what: String, sighting: &RunStatus, state: &RunState, site: &WorkspaceConfig) -> Row {
    let told = RunRow::of(sighting, site);
    let since = state.since.at.wall;
    if let Some(block) = &told.block {
        let found = format!("{} since {since}: {}", state.phase, block.evidence);
        return Row::warning(what, found, "mend it and `pdca unblock`, or `pdca abort`");
    }
    if let Some(block) = told.blocked.iter().find(|block| block.reason == Reason::Recovery) {
        let id = block.bundle.as_deref().unwrap_or_default();
        let found = format!("{id} is blocked since {}: {}", block.since, block.evidence);
        return Row::warning(what, found, format!("mend it and `pdca unblock {id}`"));
    }
    let driver = &state.driver;
    match sighting.driver {
        Liveness::Alive => Row::ok(what, format!("{} since {since}, by {driver}", state.phase)),
        Liveness::Unknown => Row::warning(
            what,
            format!(
                "{} since {since}; whether {driver} lives cannot be told from here",
                state.phase
            ),
            "look at it where it was started; nothing is touched until it is known to be dead",
        ),
        Liveness::Dead if has_work(site, state) => Row::warning(
            what,
            format!("{} since {since}, left by {driver}, which is dead", state.phase),
            "`pdca batch` goes on with it; `pdca recover` sets it right and shows more",
        ),
        Liveness::Dead => Row::warning(
            what,
            format!("nothing is left to do in it, and {driver} did not end it"),
            "`pdca recover` ends it",
        ),
    }
}
