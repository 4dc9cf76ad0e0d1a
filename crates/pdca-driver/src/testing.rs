//! A workspace without targets and without processes, for tests of what the driver decides.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use camino::Utf8Path;
use pdca_process::Cancel;
use pdca_state::{Bundle, BundleId};
use pdca_testkit::TestWorkspace;

use crate::authorship::Dates;
use crate::config::WorkspaceConfig;
use crate::run::{Begun, Run};
use crate::run_bundle::Driver;
use pdca_journal::events::EventStream;
use pdca_journal::{EffectSide, Effects, Moment, Point};

/// A clock that is one millisecond later at each call, so that later runs have later names.
pub(crate) fn clock() -> Moment {
    static CALLS: AtomicI64 = AtomicI64::new(1_700_000_000_000);
    let millis = CALLS.fetch_add(1, Ordering::Relaxed);
    Moment {
        wall: jiff::Timestamp::from_millisecond(millis).unwrap(),
        uptime: Duration::from_millis(millis.unsigned_abs()),
    }
}

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
    pub(crate) workspace: TestWorkspace,
    pub(crate) config: WorkspaceConfig,
    pub(crate) cancel: Cancel,
    /// Cancels the driver once this effect is completed.
    pub(crate) stop_after: Option<&'static str>,
    done: Mutex<Vec<&'static str>>,
    events: EventStream,
}

impl Scene {
    pub(crate) fn planned() -> Self {
        let workspace = TestWorkspace::new();
        workspace.brief("7", &[]);
        let config = config(workspace.path());
        let events = EventStream::new(|| jiff::Timestamp::UNIX_EPOCH, drop);
        let (cancel, done) = (Cancel::new(), Mutex::default());
        Self { workspace, config, cancel, stop_after: None, done, events }
    }

    pub(crate) fn bundle(&self) -> Bundle {
        self.config.dirs.bundles.bundle(&"7".parse().unwrap())
    }

    pub(crate) fn driver(&self) -> Driver<'_> {
        Driver { effects: self, ..Driver::new(&self.config, &self.events, &self.cancel) }
    }

    /// Begins or resumes a run over these bundles.
    pub(crate) fn begin(&self, ids: &[&str]) -> Begun {
        let ids: Vec<BundleId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        Run::begin(&self.config, &ids, 2, clock).unwrap()
    }

    /// Drives the bundle until the effect `last` is completed, and gives it a driver that may go on.
    pub(crate) fn stop_after(&mut self, last: &'static str) {
        self.stop_after = Some(last);
        let stopped = self.driver().run_bundle(&self.bundle());
        assert!(matches!(stopped, Err(crate::BeatError::Interrupted)), "{stopped:?}");
        self.stop_after = None;
        self.cancel = Cancel::new();
    }

    /// The effects that were completed since the last call, in order.
    pub(crate) fn effects(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.done.lock().unwrap())
    }
}

impl Effects for Scene {
    fn reached(&self, point: Point) {
        if point.when == EffectSide::After {
            self.done.lock().unwrap().push(point.name);
            if self.stop_after == Some(point.name) {
                self.cancel.cancel();
            }
        }
    }
}
