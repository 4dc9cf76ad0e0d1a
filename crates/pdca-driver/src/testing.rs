//! A workspace without targets and without processes, for tests of what the driver decides.

use std::sync::Mutex;

use camino::Utf8Path;
use pdca_process::Cancel;
use pdca_state::Bundle;
use pdca_testkit::Workspace;

use crate::authorship::Dates;
use crate::config::WorkspaceConfig;
use crate::event::Stream;
use crate::run_bundle::Driver;
use pdca_journal::{Effects, Point, When};

/// The configuration of a workspace in which stubs stand in for every leaf.
pub(crate) fn config(workspace: &Utf8Path) -> WorkspaceConfig {
    WorkspaceConfig {
        force_stubs: true,
        gate_base: crate::integrate::GateBase::Off,
        dates: Dates::Fixed(1_700_000_000),
        holder: "h".into(),
        ..WorkspaceConfig::new(workspace, "r", || 1_700_000_000)
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
        Driver { effects: self, ..Driver::new(&self.config, &self.events, &self.cancel) }
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
