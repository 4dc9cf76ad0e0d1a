//! Adds position and remedy to the errors of lanes.

use pdca_lanes::{
    ClaimError, HydrateError, InspectError, LaneError, PrivateError, ProvisionError, TreeSide,
};

use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use pdca_workspace::config::hydrate_hint;
use pdca_workspace::lanes::LanesError;

pub(crate) fn claim(error: &ClaimError) -> Failure {
    let usage = Failure::from_error(Exit::Usage, error);
    match error {
        ClaimError::InsideRepository { root, .. } => usage
            .at(FilePosition::file(&**root))
            .hint("[lanes] root in pdca.toml names another place, outside every repository"),
        ClaimError::Held { .. } => {
            usage.hint("wait until it is done, or stop it; `pdca lanes list` shows who works where")
        }
        ClaimError::Foreign { path, .. } => usage
            .at(FilePosition::file(&**path))
            .hint("move it away; `pdca lanes doctor` looks at every lane"),
        ClaimError::Copied { path, .. } => usage
            .at(FilePosition::file(&**path))
            .hint("move it away: a copied lane works on what it was copied from"),
        ClaimError::OtherPrimary { path, .. } => usage
            .at(FilePosition::file(&**path))
            .hint("put the repository back where it was, or move the lane away"),
        ClaimError::OtherKind { path, .. } => usage
            .at(FilePosition::file(&**path))
            .hint("set `kind` in [lanes] to what is there, or `pdca lanes remove` it first"),
        ClaimError::Newer { path, .. } => usage
            .at(FilePosition::file(&**path))
            .hint("use the newer pdca, or remove the lane with it"),
        ClaimError::Io { path, .. } => Failure::from_error(Exit::Unexpected, error)
            .at(FilePosition::file(&**path))
            .hint("make room and make the directory writable, then repeat the command"),
        ClaimError::Lane(error) => lane(error),
    }
}

pub(crate) fn lane(error: &LaneError) -> Failure {
    let failure = |exit| Failure::from_error(exit, error);
    match error {
        LaneError::Unsupported(feature) => failure(Exit::Usage).hint(feature.remedy()),
        LaneError::NoSuchCommit { .. } => {
            failure(Exit::Usage).hint("fetch it into the target's checkout, or name another branch")
        }
        LaneError::Damaged { path, .. } => failure(Exit::Unexpected)
            .at(FilePosition::file(&**path))
            .hint("`pdca lanes doctor` says what is wrong with each lane"),
        LaneError::Untrue { .. } => failure(Exit::Unexpected).hint(
            "the commits of this lane cannot be taken; `pdca lanes reset` keeps the files and makes the lane anew",
        ),
        LaneError::BranchTaken { .. } => {
            failure(Exit::Usage).hint("rename or remove that branch, then repeat the command")
        }
        LaneError::Path { .. }
        | LaneError::Name { .. }
        | LaneError::NotWritten { .. }
        | LaneError::NotEmpty { .. }
        | LaneError::Objects { .. }
        | LaneError::TooLarge { .. }
        | LaneError::Io { .. }
        | LaneError::Git(_)
        | LaneError::NoGit { .. } => failure(Exit::Unexpected)
            .hint("nothing was removed; `pdca lanes doctor` says what is wrong with each lane"),
    }
}

/// Explains why lanes were not made or hydrated.
pub(crate) fn operation(error: &LanesError) -> Failure {
    match error {
        LanesError::DriverAtWork { .. } => Failure::usage(error.to_string())
            .hint("it makes the lanes it needs; wait until it is done, or stop it"),
        LanesError::SeveralTargets { configured } => Failure::usage(error.to_string())
            .hint(format!("add `--target` with one of: {}", configured.join(", "))),
        LanesError::Provision(error) => provision(error),
        LanesError::Names(error) => private(error),
        LanesError::Hydrate(error) => hydrate(error),
        LanesError::Panicked => {
            Failure::unexpected(error.to_string()).hint("run it again; it completes what was begun")
        }
    }
}

fn provision(error: &ProvisionError) -> Failure {
    match error {
        ProvisionError::NoSlots => {
            Failure::from_error(Exit::Usage, error).hint("ask for one lane or more: `--lanes 1`")
        }
        ProvisionError::Claim { source, .. } => claim(source),
        ProvisionError::Fill { source, .. } => lane(source),
    }
}

pub(crate) fn inspect(error: &InspectError) -> Failure {
    Failure::from_error(Exit::Unexpected, error)
        .at(FilePosition::file(&*error.path))
        .hint("[lanes] root must be a readable directory; see `pdca config show lanes`")
}

fn private(error: &PrivateError) -> Failure {
    let failure = Failure::from_error(Exit::Unexpected, error);
    match error {
        PrivateError::Ports(_) => {
            failure.hint("stop what listens there, or set `ports` in [lanes] to another range")
        }
        PrivateError::Io { path, .. } => failure
            .at(FilePosition::file(&**path))
            .hint("make room and make the directory writable, then repeat the command"),
    }
}

pub(crate) fn hydrate(error: &HydrateError) -> Failure {
    let usage = Failure::from_error(Exit::Usage, error);
    let unexpected = Failure::from_error(Exit::Unexpected, error);
    match error {
        HydrateError::Config(problem) => usage.hint(hydrate_hint(&problem.fault)),
        HydrateError::Bare { .. } => usage.hint(
            "name a checkout as `path` of the target, or take `copy`, `symlink` and `seed` out",
        ),
        HydrateError::Missing { .. } => {
            usage.hint("make it in the target's checkout, or take it out of [lanes.hydrate]")
        }
        HydrateError::Tracked { .. } => {
            usage.hint("every lane has it already; take it out of [lanes.hydrate]")
        }
        HydrateError::NotIgnored { place: TreeSide::Primary, .. } => usage.hint(
            "add it to .gitignore, or it would become part of a patch; for a link the pattern has no `/` at its end",
        ),
        HydrateError::NotIgnored { place: TreeSide::Lane, .. } => usage.hint(
            "the branch the lane stands on does not ignore it: commit the .gitignore there; for a link the pattern has no `/` at its end",
        ),
        HydrateError::SharedMutable { .. } => usage.hint(
            "use `seed` for a private copy, or make it read-only: `chmod -R a-w` the directory",
        ),
        HydrateError::Unclean { .. } => usage.hint("`pdca lanes reset <slot>` rescues what is there, then repeat"),
        HydrateError::Command { log, last_lines, .. } => last_lines
            .iter()
            .fold(unexpected, |failure, line| failure.detail(format!("| {line}")))
            .at(FilePosition::file(&**log))
            .hint("mend the command in [lanes.hydrate]; the next attempt begins from a clean tree"),
        HydrateError::Cancelled => Failure::from_error(Exit::Interrupted, error)
            .hint("the same command begins it again from a clean tree"),
        HydrateError::Dirtied { .. } => unexpected.hint(
            "use a command that leaves tracked files alone (`npm ci`, `cargo fetch --locked`), or ignore what it makes",
        ),
        HydrateError::Run { .. } | HydrateError::Io { .. } => {
            unexpected.hint("the next attempt begins from a clean tree")
        }
        HydrateError::Lane(error) => lane(error),
    }
}
