//! `pdca lanes`: provisions, lists, resets and removes private checkouts.

pub(super) mod doctor;
pub(super) mod env;
mod hydration;
pub(super) mod list;
pub(super) mod provision;
pub(super) mod remove;
pub(super) mod reset;
#[cfg(test)]
mod tests;

use std::io::Write;

use pdca_driver::Held;
use pdca_lanes::{Lanes, PrivateNames, Target, WorkspaceId};

use crate::context::Context;
use crate::exit::Exit;
pub(super) use crate::explain::lanes as explain;
use crate::failure::{self, Failure, Problem};
use crate::report::Response;
use crate::session;
use crate::workspace::Workspace;

/// Provision, list, reset and remove private checkouts
///
/// A lane is a slot with a private checkout of each target, and private names: ports, a database, a temporary
/// directory. Bundles are built in lanes; your own checkout is only read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca lanes provision --lanes 4   # make what is not there yet
  pdca lanes list                  # -v: base, size, path
  eval \"$(pdca lanes env 0)\"       # the private names of lane 0, in this shell
  pdca lanes reset 0 --pristine    # what was in it is rescued first
  pdca lanes doctor
  pdca lanes remove 2 3            # -n: say what would be kept

`pdca sweep` removes lanes by age and for room on the disk.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Provision(provision::Args),
    List(list::Args),
    Env(env::Args),
    Reset(reset::Args),
    Doctor(doctor::Args),
    Remove(remove::Args),
}

/// `--target NAME`, for the commands that concern the lanes of one target or of all.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct TargetArg {
    /// Only the lanes of this target
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    match &args.action {
        Action::Provision(args) => provision::run(args, cx, err),
        Action::List(args) => list::run(args, cx),
        Action::Env(args) => env::run(args, cx, err),
        Action::Reset(args) => reset::run(args, cx),
        Action::Doctor(args) => doctor::run(args, cx),
        Action::Remove(args) => remove::run(args, cx),
    }
}

/// The lanes of the workspace, with their names.
pub(super) struct Place<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) lanes: Lanes,
    id: WorkspaceId,
}

impl<'a> Place<'a> {
    pub(super) fn of(cx: &'a Context<'_>) -> Result<Self, Failure> {
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
    pub(super) fn targets(&self, only: &TargetArg) -> Result<Vec<Target>, Failure> {
        let configured = &self.workspace.targets;
        let wanted = |name: &str| only.target.as_deref().is_none_or(|only| only == name);
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
                    let place = failure::Place::file(&*target.path);
                    let what = pdca_state::chain(&error);
                    problems.push(Problem::new(what).at(place).hint(hint));
                }
            }
        }
        if problems.is_empty() { Ok(targets) } else { Err(Failure::of(Exit::Usage, problems)) }
    }

    /// Explains that there is no such target, or none at all.
    fn no_target(&self, only: &TargetArg) -> Failure {
        let names: Vec<&str> = self.workspace.targets.iter().map(|target| &*target.name).collect();
        match &only.target {
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
                .at(failure::Place::file(target.path()))
                .hint("name a branch that exists as `branch` of its [[targets]]")
        })
    }
}

/// Locks drivers out while lanes are changed, or reports the running one.
pub(super) fn without_driver(cx: &Context<'_>) -> Result<(Held, Held), Failure> {
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

/// Quotes a text for a POSIX shell.
pub(super) fn sh_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    // A quote inside single quotes has to end the text, be escaped, and begin it again.
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Formats a size.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut tenths = u128::from(bytes) * 10;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    match (unit, tenths) {
        (0, _) => format!("{bytes} B"),
        (_, 0..100) => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        (_, _) => format!("{} {}", tenths / 10, UNITS[unit]),
    }
}

/// Formats a duration in one unit.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
