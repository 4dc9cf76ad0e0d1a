//! Provisions, lists, resets and removes private checkouts.

pub(crate) mod doctor;
pub(crate) mod env;
mod hydration;
pub(crate) mod list;
pub(crate) mod provision;
pub(crate) mod remove;
pub(crate) mod reset;

use pdca_driver::LockGuard;
use pdca_lanes::{Lanes, PrivateNames, Target, WorkspaceId};
use pdca_workspace::config::workspace::Workspace;

use crate::context::Context;
use crate::exit::Exit;
use crate::explain::lanes as explain;
use crate::failure::{self, Failure, Problem};
use crate::session;

/// The lanes of the workspace, with their names.
pub(crate) struct WorkspaceLanes<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) lanes: Lanes,
    id: WorkspaceId,
}

impl<'a> WorkspaceLanes<'a> {
    pub(crate) fn of(cx: &'a Context<'_>) -> Result<Self, Failure> {
        let workspace = cx.workspace()?;
        let root = workspace.root.canonicalize_utf8()?;
        let lanes = Lanes::new(&workspace.lanes_root).of_kind(workspace.config.lanes.kind);
        Ok(Self { workspace, lanes, id: WorkspaceId::of(&root) })
    }

    /// Returns the private names of a slot for a target.
    fn names(&self, target: &str, slot: u32) -> PrivateNames {
        self.lanes.names(&self.id, target, slot, self.workspace.config.lanes.ports)
    }

    /// Opens the configured targets, or the named one.
    pub(crate) fn targets(&self, only: Option<&str>) -> Result<Vec<Target>, Failure> {
        let configured = &self.workspace.targets;
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        let chosen: Vec<_> = configured.iter().filter(|target| wanted(&target.name)).collect();
        if chosen.is_empty() {
            return Err(self.no_target(only));
        }
        let mut problems = Vec::new();
        let mut targets = Vec::new();
        for target in chosen {
            match Target::open(&target.name, &target.path) {
                Ok(target) => targets.push(target),
                Err(error) => {
                    let known =
                        "mend `path` of its [[targets]] in pdca.toml; `pdca doctor` looks at all";
                    let hint = error.feature().map_or(known, |feature| feature.remedy());
                    let place = failure::FilePosition::file(&*target.path);
                    let what = pdca_state::chain(&error);
                    problems.push(Problem::new(what).at(place).hint(hint));
                }
            }
        }
        if problems.is_empty() { Ok(targets) } else { Err(Failure::of(Exit::Usage, problems)) }
    }

    /// Explains that there is no such target, or none at all.
    fn no_target(&self, only: Option<&str>) -> Failure {
        let names: Vec<&str> = self.workspace.targets.iter().map(|target| &*target.name).collect();
        match only {
            Some(name) if !names.is_empty() => {
                Failure::usage(format!("there is no target `{name}`"))
                    .hint(format!("one of: {}", names.join(", ")))
            }
            Some(_) | None => Failure::usage("no target is configured, so there are no lanes")
                .hint("add a [[targets]] with a `path` to pdca.toml"),
        }
    }

    /// Returns the base commit of a target's lanes.
    fn base(&self, target: &Target) -> Result<pdca_lanes::Base, Failure> {
        let entry = self.workspace.targets.iter().find(|entry| entry.name == target.name());
        let branch = entry.and_then(|entry| entry.branch.as_deref());
        let branch = branch.or(self.workspace.config.project.default_branch.as_deref());
        target.resolve(branch).map_err(|error| {
            Failure::from_error(Exit::Usage, &error)
                .at(failure::FilePosition::file(target.path()))
                .hint("name a branch that exists as `branch` of its [[targets]]")
        })
    }
}

/// Locks drivers out while lanes are changed, or reports the running one.
pub(crate) fn without_driver(cx: &Context<'_>) -> Result<(LockGuard, LockGuard), Failure> {
    session::driver_config(cx)?.locks().admit_alone().map_err(|error| session::refused(&error))
}

/// Returns an error while a driver is running, which creates and claims lanes itself.
fn refuse_driver(cx: &Context<'_>) -> Result<(), Failure> {
    let site = session::driver_config(cx)?;
    let at_work = site
        .locks()
        .driver_at_work()
        .and_then(|driver| Ok(driver.or(site.locks().integration_at_work()?)));
    match at_work {
        Ok(None) => Ok(()),
        Ok(Some(holder)) => Err(Failure::usage(format!("{holder} is at work here"))
            .hint("it makes the lanes it needs; wait until it is done, or stop it")),
        Err(error) => Err(session::refused(&error)),
    }
}

/// Returns the named slots, sorted and unique; each must have a lane of one of the targets.
fn require_slots(slots: &[u32], there: &[pdca_lanes::LaneReport]) -> Result<Vec<u32>, Failure> {
    let mut wanted: Vec<u32> = slots.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    for slot in &wanted {
        if !there.iter().any(|lane| lane.slot == *slot) {
            return Err(no_lane(*slot, there));
        }
    }
    Ok(wanted)
}

fn no_lane(slot: u32, there: &[pdca_lanes::LaneReport]) -> Failure {
    let mut slots: Vec<String> = there.iter().map(|lane| lane.slot.to_string()).collect();
    slots.dedup();
    let failure = Failure::usage(format!("there is no lane {slot}"));
    if slots.is_empty() {
        failure.hint("`pdca lanes provision` makes lanes")
    } else {
        failure.hint(format!("lanes: {}; `pdca lanes provision` makes more", slots.join(", ")))
    }
}
