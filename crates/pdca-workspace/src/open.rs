//! A loaded workspace together with the facts about the process that its operations need.

use pdca_driver::WorkspaceConfig;
use pdca_state::RootError;

use crate::OperationError;
use crate::config::{ConfigError, Environment, Machine, Workspace, driver_config};
use crate::snapshot::{SnapshotSource, WorkspaceSnapshot};

/// A workspace to operate on.
///
/// Each operation is a function that takes it and a request, and returns a value. With `dry_run` an operation changes
/// nothing, and its value says what would happen.
#[derive(Debug, Clone)]
pub struct OpenWorkspace<'a> {
    pub workspace: &'a Workspace,
    pub environment: Environment<'a>,
    pub machine: Machine,
    pub dry_run: bool,
}

impl OpenWorkspace<'_> {
    /// Builds the driver's configuration.
    pub fn driver_config(&self) -> Result<WorkspaceConfig, ConfigError> {
        driver_config(self.workspace, self.environment, self.machine.clone())
    }

    /// Reads every bundle.
    pub fn snapshot(&self) -> Result<WorkspaceSnapshot, RootError> {
        self.read_snapshot(WorkspaceSnapshot::load)
    }

    /// Like [`Self::snapshot`], with running drivers, accepted changes and blocks.
    pub fn snapshot_at_work(&self) -> Result<WorkspaceSnapshot, RootError> {
        self.read_snapshot(WorkspaceSnapshot::load_at_work)
    }

    fn read_snapshot(
        &self,
        read: fn(SnapshotSource<'_>) -> Result<WorkspaceSnapshot, RootError>,
    ) -> Result<WorkspaceSnapshot, RootError> {
        // An invalid configuration leaves out what only the driver's configuration leads to.
        let config = self.driver_config().ok();
        let awaits = self.workspace.config.schedule.dependants.into();
        let bundles = &self.workspace.bundle_root;
        read(SnapshotSource { bundles, awaits, config: config.as_ref() })
    }

    /// Returns the name of the person who decides: as given, as configured, or the user who is logged in.
    pub fn signer(&self, by: Option<&str>) -> Option<String> {
        let configured = self.workspace.config.project.author.as_deref();
        let user = self.environment.text("USER").or_else(|| self.environment.text("LOGNAME"));
        let by = by.or(configured).or(user).map(str::trim).filter(|by| !by.is_empty());
        by.map(str::to_owned)
    }

    /// Returns the time at the start of the command, in seconds since the epoch.
    pub fn now(&self) -> u64 {
        u64::try_from(self.machine.now).unwrap_or(0)
    }

    /// Returns today's local date. With a fixed clock it is the date in UTC.
    pub fn today(&self) -> jiff::civil::Date {
        let machine = &self.machine;
        let offset = if machine.fixed_date.is_some() { 0 } else { (machine.utc_offset)() };
        let offset = jiff::tz::Offset::from_seconds(offset).unwrap_or(jiff::tz::Offset::UTC);
        let now = jiff::Timestamp::from_second(machine.now).unwrap_or_default();
        offset.to_datetime(now).date()
    }

    /// Locks drivers out until the guards are dropped, or reports the running one. A dry run needs no lock.
    pub(crate) fn without_driver(
        &self,
    ) -> Result<Option<(pdca_driver::LockGuard, pdca_driver::LockGuard)>, OperationError> {
        if self.dry_run {
            return Ok(None);
        }
        Ok(Some(self.driver_config()?.locks().admit_alone()?))
    }
}
