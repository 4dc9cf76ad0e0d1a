//! The reasons for an operation not to be carried out.

use std::io;

use camino::Utf8PathBuf;
use pdca_act::RecordsError;
use pdca_driver::{BeatError, BundleLockError};
use pdca_integrate::GcRefError;
use pdca_lanes::{ClaimError, InspectError, LaneError, ResolveBaseError, TargetError};
use pdca_state::files::FileReadError;
use pdca_state::{Bundle, BundleId, CreateError, LoadError, RootError, WriteError};

use crate::act::ActError;
use crate::batch_report::ReportError;
use crate::config::ConfigError;
use crate::drafts::{NewBundleError, SelectError, TemplateNotUtf8};
use crate::hosts::HostsError;
use crate::integration::IntegrationError;
use crate::lanes::LanesError;
use crate::logs::LogError;
use crate::planning::PlanningError;
use crate::recovery::RecoveryError;

/// An operation was not carried out.
///
/// A variant exists where a caller decides on it: a command line picks the remedy and the exit code by the variant.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another process holds a lock that the operation needs.
    #[error(transparent)]
    Lock(#[from] BundleLockError),
    /// The directory of a bundle was removed while it was read.
    #[error("{} vanished while it was read", .0.dir_name())]
    Vanished(BundleId),
    /// No target is configured, or none has this name.
    #[error("{}", no_target(name.as_deref(), configured))]
    NoTarget { name: Option<String>, configured: Vec<String> },
    /// Targets that cannot be opened, each with its path.
    #[error("{}", in_one_line(.0))]
    Targets(Vec<(Utf8PathBuf, TargetError)>),
    /// The branch of a target cannot be resolved.
    #[error("cannot resolve the branch of {checkout}")]
    Branch { checkout: Utf8PathBuf, source: ResolveBaseError },
    /// There is no lane in this slot.
    #[error("there is no lane {slot}")]
    NoLane { slot: u32, slots: Vec<u32> },
    /// Neither the request nor the configuration has a limit for a sweep.
    #[error("nothing says which lanes are to go")]
    NoSweepLimit,
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Lane(#[from] LaneError),
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The bundles cannot be listed.
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Read(#[from] FileReadError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A beat of a bundle failed.
    #[error("{source}")]
    Beat { bundle: Bundle, source: Box<BeatError> },
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error(transparent)]
    NewBundle(#[from] NewBundleError),
    #[error(transparent)]
    TemplateNotUtf8(#[from] TemplateNotUtf8),
    #[error(transparent)]
    Select(#[from] SelectError),
    #[error(transparent)]
    Act(#[from] ActError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error(transparent)]
    Lanes(#[from] LanesError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The refs of integrations cannot be judged or removed.
    #[error(transparent)]
    Refs(#[from] GcRefError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Integration(#[from] IntegrationError),
    #[error(transparent)]
    Planning(#[from] PlanningError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn no_target(name: Option<&str>, configured: &[String]) -> String {
    match name {
        Some(name) if !configured.is_empty() => format!("there is no target `{name}`"),
        Some(_) | None => "no target is configured, so there are no lanes".to_owned(),
    }
}

fn in_one_line(closed: &[(Utf8PathBuf, TargetError)]) -> String {
    closed.iter().map(|(_, error)| error.to_string()).collect::<Vec<_>>().join("; ")
}
