//! Hydrates lanes when they are provisioned.

use std::io::Write;

use pdca_driver::WorkspaceConfig;
use pdca_lanes::{Hydrate, HydratePhase, Hydrated, Lane, LaneKind, PrivateNames, Target};
use pdca_process::{Cancel, Env, Sandbox, Sign};

use super::explain;
use crate::context::Context;
use crate::failure::Failure;
use crate::session::{self, Interrupts};
use crate::style::printable;
use pdca_workspace::lanes::WorkspaceLanes;

/// Returns the sandbox of the commands, which is that of gates.
fn confined(site: &WorkspaceConfig, lane: &Lane, names: &PrivateNames) -> Sandbox {
    site.gates_sandbox([lane.path().to_owned(), names.tmp().to_owned()])
}

/// Hydrates a lane, unless it is in use or has changes: then the next user of the lane does.
pub(crate) fn hydrate(
    place: &WorkspaceLanes<'_>,
    slot: u32,
    kind: LaneKind,
    target: &Target,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Option<Hydrated>, Failure> {
    let config = &place.workspace.config.lanes;
    let claimed = place.lanes.clone().of_kind(kind).claim(slot, target);
    let lane = match claimed {
        Ok(lane) => lane,
        Err(pdca_lanes::ClaimError::Held { .. }) => return Ok(None),
        Err(error) => return Err(explain::claim(&error)),
    };
    let unchanged = || -> Result<bool, pdca_lanes::LaneError> {
        let Some(head) = lane.head()? else { return Ok(false) };
        Ok(lane.tree()? == lane.tree_of(&head)?)
    };
    // `Lane::hydrate` refuses a changed tree as an error, but here the work of a killed attempt is
    // nothing to report.
    if !unchanged().map_err(|error| explain::lane(&error))? {
        return Ok(None);
    }
    let private =
        lane.take_names(place.id(), config.ports).map_err(|error| explain::private(&error))?;
    let site = session::driver_config(cx)?;
    let hold = site.locks().children();
    // The lock file lies there, and the supervisor creates only the file.
    fs_err::create_dir_all(site.dirs.private())?;
    // As a driver does it: a lane that is warm is not hydrated again by the driver.
    let env = Env::default().withhold_credentials(true).pass(&site.gates_env_pass);
    let env = private.names().env().fold(env, |env, (name, value)| env.with(name, value));
    let env = env
        .with("PDCA_WORKSPACE", site.dirs.root.as_str())
        .with("PDCA_WORKTREE", lane.path().as_str())
        .with("PDCA_TARGET", target.name());
    let how = Hydrate::new(target, &config.hydrate)
        .with_env(env)
        .with_sandbox(confined(&site, &lane, private.names()))
        // A driver that starts after this process was killed waits until the command is dead.
        .with_hold(&hold)
        .with_max_memory(site.limits.leaf_memory);
    let cancel = Cancel::new();
    let signals = Interrupts::listen(&cancel)?;
    let mut told = Ok(());
    let done = lane.hydrate(&how, &cancel, &mut |phase, sign| {
        if let (Sign::Started { .. }, Ok(())) = (&sign, &told) {
            let word = match phase {
                HydratePhase::Install => "installing",
                HydratePhase::Verify => "verifying",
            };
            told = cx.note(err, &format!("lane {slot} of {}: {word}", target.name()));
        }
    });
    signals.close();
    told?;
    let done = done.map_err(|error| explain::hydrate(&error))?;
    if let Hydrated::Fresh(placed) = &done {
        for path in &placed.passed_over {
            let text = format!("lane {slot} of {}: {path} was not copied", target.name());
            cx.note(err, &format!("{} {}", cx.err.warn("warning:"), printable(&text)))?;
        }
    }
    Ok(Some(done))
}
