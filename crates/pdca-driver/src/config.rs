//! Everything a driver is given, read and checked before anything starts.

use std::ffi::OsString;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use pdca_dag::Pattern;
pub use pdca_exec::RunLimits;
use pdca_exec::Terms;
use pdca_gates::Checks;
pub use pdca_integrate::{TargetChoiceError, TargetSpec, WorkspaceDirs};
use pdca_lanes::{HydrateConfig, LaneKind, Lanes, PortRange, Reset};
use pdca_leaves::Leaves;
use pdca_process::{Sandbox, SandboxMode, Supervisor};
use pdca_state::{Brief, BundleRoot};

use crate::attempt::Attempts;
use crate::authorship::{Author, Dates};
use crate::batch::Pace;
use crate::job::Jobs;
use crate::locks::{Errand, WorkspaceLocks};
use crate::schedule::Schedule;

/// A workspace as the driver sees it.
#[derive(Clone, Debug)]
pub struct WorkspaceConfig {
    /// Where everything lies.
    pub dirs: WorkspaceDirs,
    /// Our own configuration outside the workspace, which no child writes: the user's directory, templates.
    pub configuration: Vec<Utf8PathBuf>,
    /// The configured gates.
    pub rows: Checks,
    /// Whether the kernel keeps gates from the bundles, the lanes and the primary checkouts.
    pub gate_sandbox: SandboxMode,
    /// What confined gates may write beside that, as configured.
    pub gates_may_write: Vec<String>,
    /// Credentials of the environment that gates get.
    pub gates_env_pass: Vec<String>,
    /// The configured leaves.
    pub leaves: Leaves,
    /// Whether stubs stand in for every leaf, whatever is configured.
    pub force_stubs: bool,
    /// The repositories under change.
    pub targets: Vec<TargetSpec>,
    /// The branch to build on where neither brief nor target names one.
    pub default_branch: Option<String>,
    /// The private checkouts.
    pub lanes: LaneSettings,
    /// The words of a disposition hint that mean "no fix".
    pub close_words: Vec<String>,
    /// How declarations become a plan.
    pub schedule: Schedule,
    /// How accepted changes come together, as configured.
    pub integrate: crate::integrate::QueueSettings,
    /// When the branch by itself is gated.
    pub gate_base: crate::integrate::GateBase,
    /// Where programs are looked for.
    pub search_path: Option<OsString>,
    /// Which program supervises children.
    pub supervisor: Supervisor,
    /// The name of this run, for `PDCA_RUN`.
    pub run: String,
    /// A digest of the configuration, for the record.
    pub config_digest: String,
    /// Who the commits that the driver makes are by; where nobody is configured, the user that git knows.
    pub author: Option<Author>,
    /// Where the dates of those commits come from.
    pub dates: Dates,
    /// What keeps a run within bounds.
    pub limits: RunLimits,
    /// Who drives, for the people who find a lock taken.
    pub holder: String,
    /// What time it is, in seconds since 1970.
    pub clock: fn() -> i64,
    /// What the driver is here for.
    pub errand: Errand,
}

/// The private checkouts, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneSettings {
    /// Where they are.
    pub root: Utf8PathBuf,
    /// What they are.
    pub kind: LaneKind,
    /// What is left in one when another bundle begins there.
    pub reset: Reset,
    /// What outlives a clean reset: caches that the project trusts.
    pub cache: Vec<Pattern>,
    /// What one needs beyond what git tracks.
    pub hydrate: HydrateConfig,
    /// The ports they may have.
    pub ports: PortRange,
}

impl LaneSettings {
    /// Lanes below `root`, all else as by default.
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

    /// The lanes, to be lent.
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
            leaves: Leaves::default(),
            force_stubs: false,
            targets: Vec::new(),
            default_branch: None,
            lanes: LaneSettings::at(format!("{workspace}.lanes")),
            close_words: Vec::new(),
            schedule: Schedule::default(),
            integrate: crate::integrate::QueueSettings::default(),
            gate_base: crate::integrate::GateBase::default(),
            search_path: None,
            supervisor: Supervisor::default(),
            holder: run.clone(),
            run,
            config_digest: String::new(),
            author: None,
            dates: Dates::Clock(clock),
            limits: RunLimits::default(),
            clock,
            errand: Errand::default(),
            dirs: WorkspaceDirs {
                bundles: BundleRoot::new(workspace.join("results")),
                root: workspace,
            },
        }
    }

    /// Returns what of the configuration decides results, wherever they are made.
    pub fn terms(&self) -> Terms {
        Terms {
            rows: self.rows.clone(),
            gate_sandbox: self.gate_sandbox,
            gates_may_write: self.gates_may_write.clone(),
            gates_env_pass: self.gates_env_pass.clone(),
            leaves: self.leaves.clone(),
            force_stubs: self.force_stubs,
            close_words: self.close_words.clone(),
            reset: self.lanes.reset,
            cache: self.lanes.cache.clone(),
            hydrate: self.lanes.hydrate.clone(),
            limits: self.limits,
        }
    }

    /// Returns this machine's configuration under the terms of a job.
    #[must_use]
    pub fn under(&self, terms: Terms) -> Self {
        let Terms {
            rows,
            gate_sandbox,
            gates_may_write,
            gates_env_pass,
            leaves,
            force_stubs,
            close_words,
            reset,
            cache,
            hydrate,
            limits,
        } = terms;
        let lanes = LaneSettings { reset, cache, hydrate, ..self.lanes.clone() };
        Self {
            rows,
            gate_sandbox,
            gates_may_write,
            gates_env_pass,
            leaves,
            force_stubs,
            lanes,
            close_words,
            limits,
            ..self.clone()
        }
    }

    /// Where jobs are.
    pub fn jobs(&self) -> Jobs {
        Jobs::new(self.dirs.private().join("jobs"))
    }

    /// How long bundles took here.
    pub(crate) fn pace(&self) -> Pace {
        Pace::new(self.dirs.private().join("pace"))
    }

    pub(crate) fn attempts(&self) -> Attempts {
        Attempts::new(self.dirs.private().join("attempts"))
    }

    /// Trees that no leaf writes, whatever its role: every target's whole repository, wherever its parts are, all lanes,
    /// and our own configuration outside the workspace. A leaf's own checkout lies among the lanes and is opened again
    /// for it.
    pub(crate) fn kept(&self) -> Vec<Utf8PathBuf> {
        let root = &self.lanes.root;
        let trees = |target: &TargetSpec| {
            let mut trees = pdca_lanes::repository_trees(&target.path, root);
            trees.push(target.path.clone());
            trees
        };
        let own = self.configuration.iter().filter(|path| path.exists()).cloned();
        self.targets.iter().flat_map(trees).chain([root.clone()]).chain(own).collect()
    }

    /// The sandbox of gates and hydration: they write `own`, the workspace but for what decides there, the directories for
    /// temporary files, caches in the home directory, and what the configuration adds. What is closed stays closed in
    /// what that opens.
    pub fn gates_sandbox(&self, own: impl IntoIterator<Item = Utf8PathBuf>) -> Sandbox {
        let more = self.gates_may_write.iter().map(|path| opened(&self.dirs, path));
        let more = more.filter(|path| !is_closed(self, path));
        let shared = [self.dirs.root.clone(), "/tmp".into(), "/var/tmp".into()];
        let write = own.into_iter().chain(shared).chain(pdca_leaves::home_caches()).chain(more);
        // Named as well, because it may lie in what is shared.
        let home = pdca_process::home().and_then(|home| Utf8PathBuf::from_path_buf(home).ok());
        let mut no_write: Vec<Utf8PathBuf> = vec!["/".into(), self.dirs.root.join("pdca.toml")];
        no_write.extend(home);
        no_write.extend(self.dirs.own().into_iter().chain(self.kept()));
        let write = write.collect();
        Sandbox { mode: self.gate_sandbox, no_write, write, ..Sandbox::default() }
    }

    /// The first path of `may_write` that lies in what stays closed to gates, whatever is configured.
    pub fn closed_to_gates(&self) -> Option<&str> {
        let mut named = self.gates_may_write.iter().map(String::as_str);
        named.find(|path| is_closed(self, &opened(&self.dirs, path)))
    }

    /// The locks of the workspace, taken in this driver's name.
    pub fn locks(&self) -> WorkspaceLocks<'_> {
        WorkspaceLocks { dirs: &self.dirs, holder: &self.holder, errand: self.errand }
    }

    /// The same workspace for a driver that integrates.
    #[must_use]
    pub fn for_integration(self) -> Self {
        Self { errand: Errand::Integrate, ..self }
    }

    /// The target a brief is about; `None` where no target is configured at all.
    pub fn target_of(&self, brief: &Brief) -> Result<Option<TargetSpec>, TargetChoiceError> {
        self.queue().target_of(brief)
    }

    /// The branch of a target that a brief is about; `None` where none is named.
    pub(crate) fn branch_of(&self, brief: &Brief, target: &TargetSpec) -> Option<String> {
        self.queue().branch_of(brief, target)
    }
}

/// The path that an entry of `may_write` names.
fn opened(dirs: &WorkspaceDirs, path: &str) -> Utf8PathBuf {
    dirs.root.join(pdca_leaves::expand_home(path))
}

/// Whether a path lies in what no configuration opens to gates.
fn is_closed(config: &WorkspaceConfig, path: &Utf8Path) -> bool {
    // Links and `..` lead where they lead.
    let real = |path: &Utf8Path| {
        let there =
            path.ancestors().find_map(|known| Some((known, known.canonicalize_utf8().ok()?)));
        let Some((known, found)) = there else { return path.to_owned() };
        found.join(path.strip_prefix(known).unwrap_or(path))
    };
    let path = real(path);
    // A `..` behind a name that is not there yet leads wherever somebody makes that name lead.
    path.components().any(|part| part == Utf8Component::ParentDir)
        || config
            .dirs
            .own()
            .iter()
            .chain([&config.lanes.root])
            .any(|closed| path.starts_with(real(closed)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_configuration_opens_the_record_to_gates() {
        let scene = crate::testing::Scene::planned();
        let named = |path: &str| {
            let mut config = scene.config.clone();
            config.gates_may_write = vec![path.to_owned()];
            config.closed_to_gates().map(str::to_owned)
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
