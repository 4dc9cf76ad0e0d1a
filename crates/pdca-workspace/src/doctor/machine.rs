//! Checks the machine.

use std::time::Duration;

use camino::Utf8Path;
use pdca_process::{Cancel, Ending, InstalledGit, SandboxKind, Spec, bwrap_support, wall_support};

use super::{Fact, Finding};

/// The reason that children cannot be supervised.
#[derive(Debug)]
pub enum SupervisionFault {
    NoTemporaryDirectory,
    TemporaryDirectoryNotUtf8,
    /// The child ended in another way than it should.
    Ended(Ending),
    /// The child could not be run; the error with its causes.
    Failed(String),
}

/// Examines the machine. A child is started in `cwd`.
pub fn examine_machine(cwd: &Utf8Path) -> Vec<Finding> {
    vec![git(), sandbox(), supervision(cwd)]
}

fn git() -> Finding {
    match InstalledGit::require() {
        Ok(git) => Finding::ok(Fact::Git(Ok(git.said))),
        Err(error) => Finding::broken(Fact::Git(Err(error))),
    }
}

fn sandbox() -> Finding {
    match wall_support() {
        SandboxKind::Landlock { abi } => {
            // What only the stronger sandbox confines depends on why it is missing.
            let bwrap = bwrap_support().err().unwrap_or_default();
            Finding::ok(Fact::Landlock { abi, bwrap })
        }
        held @ SandboxKind::Bwrap { .. } => Finding::ok(Fact::Sandbox(held)),
        none @ (SandboxKind::NotAvailable { .. } | SandboxKind::Off) => {
            Finding::warning(Fact::Sandbox(none))
        }
    }
}

/// Starts a program the way gates and leaves are started.
fn supervision(cwd: &Utf8Path) -> Finding {
    match supervise(cwd) {
        Ok(()) => Finding::ok(Fact::Supervision(Ok(()))),
        Err(fault) => Finding::broken(Fact::Supervision(Err(fault))),
    }
}

fn supervise(cwd: &Utf8Path) -> Result<(), SupervisionFault> {
    let dir = tempfile::tempdir().map_err(|_| SupervisionFault::NoTemporaryDirectory)?;
    let job = Utf8Path::from_path(dir.path()).ok_or(SupervisionFault::TemporaryDirectoryNotUtf8)?;
    let mut spec = Spec::new(["true"], cwd, job.join("job"));
    spec.timeout = Some(Duration::from_secs(10));
    match pdca_process::run(&spec, &Cancel::new(), &mut |_| {}) {
        Ok(verdict) if verdict.ending == Ending::Exited(0) => Ok(()),
        Ok(verdict) => Err(SupervisionFault::Ended(verdict.ending)),
        Err(error) => Err(SupervisionFault::Failed(pdca_state::chain(&error))),
    }
}
