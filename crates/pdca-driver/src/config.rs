//! The resolved configuration of a driver, checked before anything starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use pdca_dag::Pattern;
use pdca_gates::Checks;
pub use pdca_integrate::{TargetChoiceError, TargetSpec, WorkspaceDirs};
use pdca_lanes::{HydrateConfig, LaneKind, Lanes, PortRange, Products, Reset};
use pdca_leaves::{Breaker, Leaves};
use pdca_process::{Sandbox, SandboxMode, Supervisor};
use pdca_state::{Brief, BundleId};

use crate::allowed_refs::is_ref;
use crate::attempt::AttemptRecords;
use crate::authorship::{Author, Dates};
use crate::batch::DurationHistory;
use crate::calls::CostMeter;
use crate::job::Jobs;
use crate::locks::{Errand, WorkspaceLocks};
use crate::schedule::Schedule;
use crate::terms::Terms;
pub use crate::terms::{IterateFrom, RunLimits};

/// How far lanes may run ahead of the person who signs off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceLimit {
    /// No new bundle is started while so many wait for sign-off or are in flight.
    pub max_unsigned: u32,
    /// The bundles outside the batch that wait for sign-off.
    pub elsewhere: u32,
}

/// The resolved configuration of a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceConfig {
    pub dirs: WorkspaceDirs,
    /// Paths that no child may write: the configuration of user and workspace, the programs and prompts that it names,
    /// templates, and certificates. Some of them need not exist.
    pub configuration: Vec<Utf8PathBuf>,
    pub rows: Checks,
    /// Keeps gates from writing bundles, lanes and primary checkouts.
    pub gate_sandbox: SandboxMode,
    /// Paths that gates may write in addition, as configured.
    pub gates_may_write: Vec<String>,
    /// Names of variables of the environment that gates receive.
    pub gates_env_pass: Vec<String>,
    /// Caches that gates may read and leaves may not write, as configured.
    pub gates_caches: Vec<String>,
    pub leaves: Leaves,
    /// The instructions of roles that the driver of a leg sent; `None` where they are read here.
    pub instructions: Option<BTreeMap<String, pdca_leaves::Instructions>>,
    /// Replaces every leaf by a stub.
    pub force_stubs: bool,
    /// A person can be talked with at the terminal; without one an interactive leaf is refused.
    pub has_terminal: bool,
    /// How far lanes may run ahead of the person; `None` without a limit.
    pub pace: Option<PaceLimit>,
    /// The repositories under change.
    pub targets: Vec<TargetSpec>,
    /// The branch to build on if neither brief nor target names one.
    pub default_branch: Option<String>,
    pub lanes: LaneSettings,
    /// The words of a disposition hint that mean "no fix".
    pub close_words: Vec<String>,
    pub schedule: Schedule,
    pub integrate: crate::integrate::QueueSettings,
    /// The checks of external dependencies.
    pub doctor: crate::dependencies::DoctorSettings,
    /// The remote and the pattern of the branches that builders may push; `None` if they may push nothing.
    pub builder_push: Option<BuilderPush>,
    /// The size above which a change asks a person.
    pub check: crate::size::CheckSettings,
    /// The condition under which the branch alone is gated.
    pub gate_base: crate::integrate::GateBase,
    /// The `PATH` for programs.
    pub search_path: Option<OsString>,
    pub supervisor: Supervisor,
    /// What calls of leaves learned about agents, for all lanes of the run.
    pub breaker: Breaker,
    /// What the calls of the run cost so far, for all lanes.
    pub meter: CostMeter,
    /// How far local time is ahead of UTC, in seconds.
    pub utc_offset: fn() -> i32,
    /// This program, for hooks of agents that ask it; where it is not known, the `pdca` on `PATH`.
    pub program: Option<Utf8PathBuf>,
    /// The name of this run, for `PDCA_RUN`.
    pub run: String,
    /// A digest of the configuration, for the journal.
    pub config_digest: String,
    /// The author of the driver's own commits; `None` for git's user.
    pub author: Option<Author>,
    /// The source of the dates of those commits.
    pub dates: Dates,
    /// Where a builder starts that tries again.
    pub iterate_from: IterateFrom,
    /// The names of build products, which are left out of a change unless they were asked for.
    pub products: Products,
    pub limits: RunLimits,
    /// The name of this process in lock files, for people.
    pub holder: String,
    /// Returns seconds since 1970.
    pub clock: fn() -> i64,
    pub errand: Errand,
}

/// Names the branch of a bundle, without `refs/heads/`; `None` if the name would not be valid.
pub type BranchNaming = Arc<dyn Fn(&BundleId, Option<&Brief>) -> Option<String> + Send + Sync>;

/// The branches that builders may push.
#[derive(Clone)]
pub struct BuilderPush {
    pub remote: String,
    pub branch: BranchNaming,
}

impl std::fmt::Debug for BuilderPush {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuilderPush").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl BuilderPush {
    /// Returns the remote and the refspec for a bundle, as arguments of `git push`.
    pub(crate) fn arguments(&self, id: &BundleId, brief: Option<&Brief>) -> Option<String> {
        let branch = (self.branch)(id, brief)?;
        Some(format!("{} HEAD:refs/heads/{branch}", self.remote))
    }
}

/// The configuration of private checkouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneSettings {
    pub root: Utf8PathBuf,
    pub kind: LaneKind,
    /// The files that stay when another bundle starts in a lane.
    pub reset: Reset,
    /// Paths that survive a clean reset: caches that the project trusts.
    pub cache: Vec<Pattern>,
    /// The files a lane needs in addition to tracked ones.
    pub hydrate: HydrateConfig,
    pub ports: PortRange,
}

impl LaneSettings {
    /// Makes default settings for lanes below `root`.
    pub fn at(root: impl Into<Utf8PathBuf>) -> Self {
        Self {
            root: root.into(),
            kind: LaneKind::default(),
            reset: Reset::default(),
            cache: Vec::new(),
            hydrate: HydrateConfig::default(),
            ports: PortRange::default(),
        }
    }

    /// Returns the lanes with their kind and caches.
    pub(crate) fn lent(&self) -> Lanes {
        Lanes::new(&self.root).of_kind(self.kind).with_cache(self.cache.iter().cloned())
    }
}

impl WorkspaceConfig {
    /// Returns the configuration of a workspace without gates, leaves and targets: bundles below `results/`,
    /// lanes in the directory beside it, stubs for every leaf.
    ///
    /// `run` names what is done with it, and `clock` gives seconds since 1970.
    pub fn new(
        workspace: impl Into<Utf8PathBuf>,
        run: impl Into<String>,
        clock: fn() -> i64,
    ) -> Self {
        let (workspace, run) = (workspace.into(), run.into());
        Self {
            configuration: Vec::new(),
            rows: Checks::default(),
            gate_sandbox: SandboxMode::default(),
            gates_may_write: Vec::new(),
            gates_env_pass: Vec::new(),
            gates_caches: Vec::new(),
            leaves: Leaves::default(),
            instructions: None,
            force_stubs: false,
            has_terminal: true,
            pace: None,
            targets: Vec::new(),
            default_branch: None,
            lanes: LaneSettings::at(format!("{workspace}.lanes")),
            close_words: Vec::new(),
            schedule: Schedule::default(),
            integrate: crate::integrate::QueueSettings::default(),
            doctor: crate::dependencies::DoctorSettings::default(),
            builder_push: None,
            check: crate::size::CheckSettings::default(),
            gate_base: crate::integrate::GateBase::default(),
            search_path: None,
            supervisor: Supervisor::default(),
            holder: run.clone(),
            program: None,
            breaker: Breaker::default(),
            meter: CostMeter::default(),
            utc_offset: || 0,
            run,
            config_digest: String::new(),
            author: None,
            dates: Dates::Clock(clock),
            iterate_from: IterateFrom::default(),
            products: Products::default(),
            limits: RunLimits::default(),
            clock,
            errand: Errand::default(),
            dirs: WorkspaceDirs::at(workspace),
        }
    }

    /// Returns the part of the configuration that decides results, on any machine.
    pub fn terms(&self) -> Terms {
        Terms {
            rows: self.rows.clone(),
            gate_sandbox: self.gate_sandbox,
            gates_may_write: self.gates_may_write.clone(),
            gates_env_pass: self.gates_env_pass.clone(),
            gates_caches: self.gates_caches.clone(),
            leaves: self.leaves.clone(),
            force_stubs: self.force_stubs,
            close_words: self.close_words.clone(),
            reset: self.lanes.reset,
            cache: self.lanes.cache.clone(),
            hydrate: self.lanes.hydrate.clone(),
            iterate_from: self.iterate_from,
            products: self.products.clone(),
            limits: self.limits,
        }
    }

    /// Returns this machine's configuration under the terms of a leg.
    #[must_use]
    pub fn under(self, terms: Terms) -> Self {
        let Terms {
            rows,
            gate_sandbox,
            gates_may_write,
            gates_env_pass,
            gates_caches,
            leaves,
            force_stubs,
            close_words,
            reset,
            cache,
            hydrate,
            iterate_from,
            products,
            limits,
        } = terms;
        let lanes = LaneSettings { reset, cache, hydrate, ..self.lanes };
        Self {
            rows,
            gate_sandbox,
            gates_may_write,
            gates_env_pass,
            gates_caches,
            leaves,
            force_stubs,
            lanes,
            close_words,
            iterate_from,
            products,
            limits,
            ..self
        }
    }

    pub fn jobs(&self) -> Jobs {
        Jobs::new(self.dirs.private().join("jobs"))
    }

    pub(crate) fn pace(&self) -> DurationHistory {
        DurationHistory::new(self.dirs.private().join("pace"))
    }

    pub(crate) fn attempts(&self) -> AttemptRecords {
        AttemptRecords::new(self.dirs.private().join("attempts"))
    }

    /// Returns trees that no leaf may write, in any role: every target's whole repository with all its parts, all lanes,
    /// and our own configuration outside the workspace. A leaf's own checkout is among the lanes and is opened
    /// for it again.
    pub(crate) fn kept(&self) -> Vec<Utf8PathBuf> {
        let root = &self.lanes.root;
        let trees = |target: &TargetSpec| {
            let mut trees = pdca_lanes::repository_trees(&target.path, root);
            trees.push(target.path.clone());
            trees
        };
        let own = self.configuration.iter().cloned().chain(self.caches());
        let own = own.chain(self.programs_in_caches());
        self.targets.iter().flat_map(trees).chain([root.clone()]).chain(own).collect()
    }

    /// Returns the sandbox of hydration, and what that of gates is made of. They may write `own`, which is the checkout and the temporary
    /// directory, caches in the home directory, and configured paths; nothing else of the workspace or of a target.
    /// Closed trees stay closed inside opened ones.
    pub fn gates_sandbox(&self, own: impl IntoIterator<Item = Utf8PathBuf>) -> Sandbox {
        let write = pdca_leaves::home_caches().into_iter().chain(self.rows_may_write());
        // None of these is opened by an opening above it, such as a cache.
        let home = pdca_process::home().and_then(|home| Utf8PathBuf::from_path_buf(home).ok());
        let apart = home.into_iter().chain([self.dirs.root.clone()]).chain(self.target_checkouts());
        Sandbox::new(self.gate_sandbox)
            .no_write(self.closed_to_rows())
            .write(write)
            .own(own)
            .apart(apart)
    }

    /// Returns the paths that all rows may write in addition to their places.
    pub(crate) fn rows_may_write(&self) -> Vec<Utf8PathBuf> {
        self.openings(self.gates_may_write.iter()).collect()
    }

    /// Returns the paths that single rows may write in addition, by the id of the row.
    pub fn row_openings(&self) -> BTreeMap<String, Vec<Utf8PathBuf>> {
        let rows = self.rows.as_slice().iter().filter(|row| !row.may_write.is_empty());
        rows.map(|row| (row.id.clone(), self.openings(row.may_write.iter()).collect())).collect()
    }

    /// Resolves the paths of a `may_write` that can be opened.
    fn openings<'s>(
        &'s self,
        entries: impl Iterator<Item = &'s String> + 's,
    ) -> impl Iterator<Item = Utf8PathBuf> + 's {
        let paths = entries.filter(|entry| !is_ref(entry)).map(|path| opened(&self.dirs, path));
        paths.filter(|path| !self.is_closed(path))
    }

    /// Returns the trees that no `may_write` opens: those of [`Self::kept`] but for a target's checkout in which a
    /// directory is named, whose repository stays closed.
    fn closed_to_rows(&self) -> Vec<Utf8PathBuf> {
        let checkouts = self.target_checkouts();
        let all = self.gates_may_write.iter();
        let all = all.chain(self.rows.as_slice().iter().flat_map(|row| &row.may_write));
        let named: Vec<Utf8PathBuf> = self.openings(all).map(|path| real(&path)).collect();
        let is_opened = |tree: &Utf8PathBuf| {
            let tree = real(tree);
            checkouts.iter().any(|checkout| real(checkout) == tree)
                && named.iter().any(|path| path.starts_with(&tree))
        };
        let mut closed = self.kept();
        closed.retain(|tree| !is_opened(tree));
        closed.extend(self.dirs.own());
        closed.extend(checkouts.iter().map(|checkout| checkout.join(".git")));
        closed
    }

    fn target_checkouts(&self) -> Vec<Utf8PathBuf> {
        self.targets.iter().map(|target| target.path.clone()).collect()
    }

    /// Returns the paths of `may_write` that do not exist and so cannot be opened, each with the table that names it.
    pub fn absent_openings(&self) -> Vec<(String, Utf8PathBuf)> {
        let shared = self.gates_may_write.iter().map(|path| ("[gates]".to_owned(), path));
        let rows = self.rows.as_slice().iter();
        let of_rows =
            rows.flat_map(|row| row.may_write.iter().map(|path| (format!("row {}", row.id), path)));
        let named = shared.chain(of_rows).filter(|(_, entry)| !is_ref(entry));
        let resolved = named.map(|(owner, path)| (owner, opened(&self.dirs, path)));
        resolved.filter(|(_, path)| !path.exists()).collect()
    }

    /// Returns the first path of a `may_write` that is closed to gates in any configuration, and the row that names it.
    pub fn closed_to_gates(&self) -> Option<(Option<&str>, &str)> {
        let shared = self.gates_may_write.iter().map(|path| (None, path.as_str()));
        let rows = self.rows.as_slice().iter();
        let of_rows = rows.flat_map(|row| {
            row.may_write.iter().map(|path| (Some(row.id.as_str()), path.as_str()))
        });
        let mut named = shared.chain(of_rows).filter(|(_, entry)| !is_ref(entry));
        named.find(|(_, path)| self.is_closed(&opened(&self.dirs, path)))
    }

    /// Returns whether a path is inside a tree that no configuration opens to gates. A checkout of a target cannot be
    /// opened as a whole; a directory in it can.
    fn is_closed(&self, path: &Utf8Path) -> bool {
        let path = real(path);
        let checkouts: Vec<Utf8PathBuf> =
            self.target_checkouts().iter().map(|checkout| real(checkout)).collect();
        let inside = |tree: &Utf8PathBuf| {
            let tree = real(tree);
            path.starts_with(&tree) && !(checkouts.contains(&tree) && path != tree)
        };
        // A `..` after a name that does not exist yet can be pointed anywhere later.
        path.components().any(|part| part == Utf8Component::ParentDir)
            || self.dirs.own().iter().chain(&self.kept()).any(inside)
            || checkouts.iter().any(|checkout| path.starts_with(checkout.join(".git")))
    }

    /// Returns the locks of the workspace, to be taken in this driver's name.
    pub fn locks(&self) -> WorkspaceLocks<'_> {
        WorkspaceLocks { dirs: &self.dirs, holder: &self.holder, errand: self.errand }
    }

    /// Returns the configuration for a driver that integrates.
    #[must_use]
    pub fn for_integration(self) -> Self {
        Self { errand: Errand::Integrate, ..self }
    }

    /// Returns the target of a brief; `None` if no target is configured.
    pub fn target_of(&self, brief: &Brief) -> Result<Option<TargetSpec>, TargetChoiceError> {
        self.queue().target_of(brief)
    }

    /// Returns the branch that a brief or its target names; `None` if none is named.
    pub(crate) fn branch_of(&self, brief: &Brief, target: &TargetSpec) -> Option<String> {
        self.queue().branch_of(brief, target)
    }
}

/// Resolves an entry of `may_write`.
fn opened(dirs: &WorkspaceDirs, path: &str) -> Utf8PathBuf {
    dirs.root.join(pdca_leaves::expand_home(path))
}

/// Resolves links and `..`, also of a path that does not exist yet.
pub(crate) fn real(path: &Utf8Path) -> Utf8PathBuf {
    let there = path.ancestors().find_map(|known| Some((known, known.canonicalize_utf8().ok()?)));
    let Some((known, found)) = there else { return path.to_owned() };
    found.join(path.strip_prefix(known).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_configuration_opens_the_record_to_gates() {
        let scene = crate::testing::Scene::planned();
        let named = |path: &str| {
            let mut config = scene.config.clone();
            config.gates_may_write = vec![path.to_owned()];
            config.closed_to_gates().map(|(_, path)| path.to_owned())
        };
        assert_eq!(named("target"), None);
        for closed in [
            ".pdca/jobs",
            "results",
            "results/../.pdca",
            "results/issue_7/x",
            "sub/../.pdca",
            "sub/../out",
        ] {
            assert_eq!(named(closed).as_deref(), Some(closed));
        }
    }
}
