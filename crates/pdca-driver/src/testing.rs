//! A workspace without targets and without processes, for tests of what the driver decides.

use std::sync::Mutex;

use camino::Utf8Path;
use pdca_gates::Checks;
use pdca_leaves::Leaves;
use pdca_process::{Cancel, SandboxMode, Supervisor};
use pdca_state::{Bundle, BundleRoot};
use pdca_testkit::Workspace;

use crate::authorship::Dates;
use crate::config::{LaneSettings, RunLimits, WorkspaceConfig, WorkspaceDirs};
use crate::event::Stream;
use crate::locks::Errand;
use crate::run_bundle::Driver;
use crate::schedule::Schedule;
use pdca_journal::{Effects, Point, When};

/// The configuration of a workspace in which stubs stand in for every leaf.
pub(crate) fn config(workspace: &Utf8Path) -> WorkspaceConfig {
    WorkspaceConfig {
        dirs: WorkspaceDirs {
            root: workspace.to_owned(),
            bundles: BundleRoot::new(workspace.join("results")),
        },
        rows: Checks::default(),
        gate_sandbox: SandboxMode::Auto,
        configuration: Vec::new(),
        gates_may_write: Vec::new(),
        gates_env_pass: Vec::new(),
        leaves: Leaves::default(),
        force_stubs: true,
        targets: Vec::new(),
        default_branch: None,
        lanes: LaneSettings::at(format!("{workspace}.lanes")),
        close_words: Vec::new(),
        schedule: Schedule::default(),
        integrate: crate::integrate::QueueSettings::default(),
        gate_base: crate::integrate::GateBase::Off,
        search_path: None,
        supervisor: Supervisor::default(),
        run: "r".into(),
        config_digest: String::new(),
        author: None,
        dates: Dates::Fixed(1_700_000_000),
        limits: RunLimits::default(),
        holder: "h".into(),
        clock: || 1_700_000_000,
        errand: Errand::Build,
    }
}

/// A workspace with one planned bundle, and the effects of every driver in it.
pub(crate) struct Scene {
    pub(crate) workspace: Workspace,
    pub(crate) config: WorkspaceConfig,
    pub(crate) cancel: Cancel,
    done: Mutex<Vec<&'static str>>,
    events: Stream,
}

impl Scene {
    pub(crate) fn planned() -> Self {
        let workspace = Workspace::new();
        workspace.brief("7", &[]);
        let config = config(workspace.path());
        let events = Stream::new(|| jiff::Timestamp::UNIX_EPOCH, drop);
        let (cancel, done) = (Cancel::new(), Mutex::default());
        Self { workspace, config, cancel, done, events }
    }

    pub(crate) fn bundle(&self) -> Bundle {
        self.config.dirs.bundles.bundle(&"7".parse().unwrap())
    }

    pub(crate) fn driver(&self) -> Driver<'_> {
        Driver {
            config: &self.config,
            effects: self,
            events: &self.events,
            scope: None,
            drifts: None,
            cancel: &self.cancel,
            lane_env: None,
            run: None,
            executor: None,
        }
    }

    /// The effects that were completed since the last call, in order.
    pub(crate) fn effects(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.done.lock().unwrap())
    }
}

impl Effects for Scene {
    fn reached(&self, point: Point) {
        if point.when == When::After {
            self.done.lock().unwrap().push(point.name);
        }
    }
}
