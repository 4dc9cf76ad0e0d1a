//! Hydrates lanes when they are provisioned.

use pdca_driver::WorkspaceConfig;
use pdca_lanes::{ClaimError, Hydrate, Hydrated, Lane, LaneError, LaneKind, PrivateNames, Target};
use pdca_process::{Cancel, Env, Sandbox, Sign};

use super::provision::ProvisionProgress;
use super::{LanesError, WorkspaceLanes};
use crate::OperationError;

/// Hydrates a lane, unless it is in use or has changes: then the next user of the lane does.
pub(super) fn hydrate(
    place: &WorkspaceLanes<'_>,
    (slot, kind): (u32, LaneKind),
    target: &Target,
    config: &WorkspaceConfig,
    progress: &mut dyn FnMut(ProvisionProgress),
) -> Result<Option<Hydrated>, OperationError> {
    let lanes = &place.workspace.config.lanes;
    let lane = match place.lanes.clone().of_kind(kind).claim(slot, target) {
        Ok(lane) => lane,
        Err(ClaimError::Held { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let unchanged = || -> Result<bool, LaneError> {
        let Some(head) = lane.head()? else { return Ok(false) };
        Ok(lane.tree()? == lane.tree_of(&head)?)
    };
    // `Lane::hydrate` refuses a changed tree as an error, but here the work of a killed attempt is
    // nothing to report.
    if !unchanged()? {
        return Ok(None);
    }
    let private = lane.take_names(place.id(), lanes.ports).map_err(LanesError::Names)?;
    let hold = config.locks().children();
    // The lock file lies there, and the supervisor creates only the file.
    fs_err::create_dir_all(config.dirs.private())?;
    // As a driver does it: a lane that is warm is not hydrated again by the driver.
    let env = Env::default().withhold_credentials(true).pass(&config.gates_env_pass);
    let env = private.names().env().fold(env, |env, (name, value)| env.with(name, value));
    let env = env
        .with("PDCA_WORKSPACE", config.dirs.root.as_str())
        .with("PDCA_WORKTREE", lane.path().as_str())
        .with("PDCA_TARGET", target.name());
    let how = Hydrate::new(target, &lanes.hydrate)
        .with_env(env)
        .with_sandbox(sandbox(config, &lane, private.names()))
        // A driver that starts after this process was killed waits until the command is dead.
        .with_hold(&hold)
        .with_max_memory(config.limits.leaf_memory);
    let cancel = Cancel::new();
    progress(ProvisionProgress::HydrationBegins { cancel: cancel.clone() });
    let hydrated = lane.hydrate(&how, &cancel, &mut |phase, sign| {
        if let Sign::Started { .. } = sign {
            let target = target.name().to_owned();
            progress(ProvisionProgress::Hydrating { slot, target, phase });
        }
    });
    progress(ProvisionProgress::HydrationEnded);
    let hydrated = hydrated.map_err(LanesError::Hydrate)?;
    if let Hydrated::Fresh(placed) = &hydrated {
        for path in &placed.passed_over {
            let (target, path) = (target.name().to_owned(), path.clone());
            progress(ProvisionProgress::NotCopied { slot, target, path });
        }
    }
    Ok(Some(hydrated))
}

/// Returns the sandbox of the commands, which is that of gates.
fn sandbox(config: &WorkspaceConfig, lane: &Lane, names: &PrivateNames) -> Sandbox {
    config.gates_sandbox([lane.path().to_owned(), names.tmp().to_owned()])
}
