//! Finds the instruction file of a role, where no leaf can have written it.
//!
//! 1. The tip of the branch that an attempt began at: `process/leaves/<role>.md`, then `.claude/agents/<role>.md`. Not the
//!    lane, not the patch, and not the base of a stacked attempt, which has changes in it that nobody merged yet.
//! 2. Where the workspace lies in another target, the tip of that target's branch.
//! 3. Where the workspace lies in no target, its own files: as trusted as `pdca.toml` beside them, and closed to every leaf.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_lanes::Target;
use pdca_leaves::{Instructions, LeafError, MAX_INSTRUCTIONS, ROLES, Role, instruction_paths};
use pdca_state::{BundleId, Snapshot, files};

use crate::attempt::Attempt;
use crate::checkout::Checkout;
use crate::config::{TargetSpec, WorkspaceConfig};

/// A commit of a target that instructions are read from.
struct Source<'s> {
    target: &'s Target,
    commit: &'s str,
    /// The place of the workspace in the target's checkout, if it lies there.
    prefix: Option<Utf8PathBuf>,
}

/// The instruction file of a role, as found for people.
#[derive(Debug)]
pub struct FoundInstructions {
    pub role: Role,
    pub found: Result<Option<Instructions>, LeafError>,
    /// A file of the working tree that would be the role's, and that differs from what is committed or is not committed.
    pub uncommitted: Option<Utf8PathBuf>,
    /// A file that an earlier `pdca init` wrote, which instructs no leaf.
    pub outdated: Option<Utf8PathBuf>,
}

/// Returns the instructions of a leaf that works on a change.
pub(crate) fn instructions_for(
    config: &WorkspaceConfig,
    role: Role,
    checkout: Option<&Checkout>,
) -> Result<Option<Instructions>, LeafError> {
    match checkout {
        Some(checkout) => at(config, role, Some((&checkout.target, tip_of(&checkout.attempt)))),
        None => at(config, role, None),
    }
}

/// Returns the instructions of a leaf without a checkout that is about a bundle.
pub(crate) fn instructions_about(
    config: &WorkspaceConfig,
    role: Role,
    id: &BundleId,
    snapshot: &Snapshot,
) -> Result<Option<Instructions>, LeafError> {
    let brief = snapshot.authored_brief();
    let spec = brief.and_then(|brief| config.target_of(brief).ok().flatten());
    let branch = spec.as_ref().zip(brief).and_then(|(spec, brief)| config.branch_of(brief, spec));
    let Some(spec) = spec else { return instructions_of_workspace(config, role) };
    // The attempt that a person decides about began at a tip of its own.
    let attempt = config.attempts().load(id).ok().flatten();
    let attempt = attempt.filter(|attempt| attempt.target == spec.name);
    match open(&spec, branch.as_deref()) {
        Some((target, tip)) => {
            let commit = attempt.as_ref().map_or(tip.as_str(), tip_of);
            at(config, role, Some((&target, commit)))
        }
        None => at(config, role, None),
    }
}

/// Returns the instructions of a leaf that is about no bundle, or about several.
pub(crate) fn instructions_of_workspace(
    config: &WorkspaceConfig,
    role: Role,
) -> Result<Option<Instructions>, LeafError> {
    let only = config.targets.first().filter(|_| config.targets.len() == 1);
    match only.and_then(|spec| open(spec, branch_of(config, spec))) {
        Some((target, commit)) => at(config, role, Some((&target, &commit))),
        None => at(config, role, None),
    }
}

/// Returns the instructions of every role that a leg elsewhere may call for an attempt.
pub(crate) fn instructions_to_send(
    config: &WorkspaceConfig,
    target: &Target,
    attempt: &Attempt,
) -> Result<BTreeMap<String, Instructions>, LeafError> {
    let mut all = BTreeMap::new();
    for role in [Role::Builder, Role::Reviewer, Role::Adviser] {
        if let Some(found) = at(config, role, Some((target, tip_of(attempt))))? {
            all.insert(role.as_str().to_owned(), found);
        }
    }
    Ok(all)
}

/// Finds the instructions of every role at the tip of a target's branch, or of the workspace where there is none.
pub fn find_instructions(
    config: &WorkspaceConfig,
    spec: Option<&TargetSpec>,
) -> Vec<FoundInstructions> {
    let opened = spec.and_then(|spec| open(spec, branch_of(config, spec)));
    let found = |role: Role| {
        let source = opened.as_ref().map(|(target, commit)| (target, commit.as_str()));
        let found = at(config, role, source);
        let on_disk = working_files(config, spec, role);
        let outdated = on_disk.iter().find(|(_, bytes)| Instructions::is_of_earlier_init(bytes));
        let outdated = outdated.map(|(path, _)| path.clone());
        let used = found.as_ref().ok().and_then(Option::as_ref).map(|found| found.digest.as_str());
        let first = on_disk.iter().find_map(|(path, bytes)| {
            let read = Instructions::parse(path.to_string(), None, bytes).ok().flatten()?;
            Some((path, read.digest))
        });
        let uncommitted = first
            .filter(|(_, digest)| opened.is_some() && used != Some(digest.as_str()))
            .map(|(path, _)| path.clone());
        FoundInstructions { role, found, uncommitted, outdated }
    };
    ROLES.iter().map(|spec| found(spec.role)).collect()
}

/// Reads the files of a role in a target's checkout, the first one before the others.
fn working_files(
    config: &WorkspaceConfig,
    spec: Option<&TargetSpec>,
    role: Role,
) -> Vec<(Utf8PathBuf, Vec<u8>)> {
    let inside = spec.and_then(|spec| place_in(config, &spec.path)).is_some();
    let tops = spec.map(|spec| &spec.path).into_iter();
    let workspace = (inside || spec.is_none()).then_some(&config.dirs.root);
    let tops: Vec<&Utf8PathBuf> = workspace.into_iter().chain(tops).collect();
    let paths = tops.iter().flat_map(|top| instruction_paths(role).map(|path| top.join(path)));
    let read = |path: Utf8PathBuf| {
        let bytes = files::read_bounded(&path, MAX_INSTRUCTIONS as u64).ok().flatten()?;
        Some((path, bytes))
    };
    paths.filter_map(read).collect()
}

/// The branch's tip that an attempt began at; the base, in records of earlier versions.
fn tip_of(attempt: &Attempt) -> &str {
    attempt.tip.as_deref().unwrap_or(&attempt.base)
}

fn branch_of<'c>(config: &'c WorkspaceConfig, spec: &'c TargetSpec) -> Option<&'c str> {
    spec.branch.as_deref().or(config.default_branch.as_deref())
}

/// Opens a target at a branch. One that cannot be opened has no instructions: nothing can be built there either, and Do and
/// `doctor` say why.
fn open(spec: &TargetSpec, branch: Option<&str>) -> Option<(Target, String)> {
    let target = Target::open(&spec.name, &spec.path).ok()?;
    let commit = target.resolve(branch).ok()?.commit;
    Some((target, commit))
}

/// The place of the workspace below a checkout.
fn place_in(config: &WorkspaceConfig, checkout: &Utf8Path) -> Option<Utf8PathBuf> {
    let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let place = real(&config.dirs.root).strip_prefix(real(checkout)).ok()?.to_owned();
    Some(place)
}

fn at(
    config: &WorkspaceConfig,
    role: Role,
    source: Option<(&Target, &str)>,
) -> Result<Option<Instructions>, LeafError> {
    if let Some(given) = &config.instructions {
        return Ok(given.get(role.as_str()).cloned());
    }
    if let Some((target, commit)) = source {
        let prefix = place_in(config, target.path());
        let is_inside = prefix.is_some();
        let found = Source { target, commit, prefix }.find(role)?;
        if found.is_some() || is_inside {
            return Ok(found);
        }
    }
    let Some(home) = config.targets.iter().find(|spec| place_in(config, &spec.path).is_some())
    else {
        return of_workspace(config, role);
    };
    match open(home, branch_of(config, home)) {
        Some((target, commit)) => {
            let prefix = place_in(config, target.path());
            Source { target: &target, commit: &commit, prefix }.find(role)
        }
        None => Ok(None),
    }
}

impl Source<'_> {
    fn find(&self, role: Role) -> Result<Option<Instructions>, LeafError> {
        let below = self.prefix.as_deref().filter(|prefix| !prefix.as_str().is_empty());
        let tops = below.into_iter().chain([Utf8Path::new("")]);
        for top in tops {
            for path in instruction_paths(role) {
                let path = top.join(path);
                let failed = |source| LeafError::Prompt { path: path.clone(), source };
                let read = self.target.file_at(self.commit, &path);
                let Some(bytes) = read.map_err(|source| failed(source.into()))? else { continue };
                let commit = Some(self.commit.to_owned());
                if Instructions::is_of_earlier_init(&bytes) {
                    continue;
                }
                // The first file counts, also an empty one: that is how a project says that a role has none.
                let found = Instructions::parse(path.to_string(), commit, &bytes);
                return found.map_err(|flaw| failed(flaw.into()));
            }
        }
        Ok(None)
    }
}

fn of_workspace(config: &WorkspaceConfig, role: Role) -> Result<Option<Instructions>, LeafError> {
    for path in instruction_paths(role) {
        let file = config.dirs.root.join(&path);
        let failed = |source| LeafError::Prompt { path: file.clone(), source };
        let read = files::read_bounded(&file, MAX_INSTRUCTIONS as u64);
        let Some(bytes) = read.map_err(|source| failed(source.into()))? else { continue };
        if Instructions::is_of_earlier_init(&bytes) {
            continue;
        }
        let found = Instructions::parse(path, None, &bytes);
        return found.map_err(|flaw| failed(flaw.into()));
    }
    Ok(None)
}
