//! The program that supervises a child: by default the current one, started again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first argument by which [`maybe_supervise`](crate::maybe_supervise) recognises a supervisor.
pub(crate) const ARGUMENT: &str = "::pdca-supervise::";

/// Set by `maybe_supervise`: only a program that calls it may be started again as a supervisor.
static ARMED: AtomicBool = AtomicBool::new(false);

/// The supervisor to use in place of [`Supervisor::current_exe`] when `maybe_supervise` was never called.
static STAND_IN: OnceLock<Supervisor> = OnceLock::new();

/// The program that is started between the driver and the child.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Supervisor(Program);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Program {
    #[default]
    CurrentExe,
    At(PathBuf),
    Harness,
}

#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
}

impl Supervisor {
    /// The current program, started again; its `main` begins with [`maybe_supervise`](crate::maybe_supervise).
    pub fn current_exe() -> Self {
        Self(Program::CurrentExe)
    }

    /// Another program, whose `main` begins with [`maybe_supervise`](crate::maybe_supervise) of the same version of
    /// this crate.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(Program::At(path.into()))
    }

    /// The current test harness, started again; see [`testing`](crate::testing).
    pub(crate) fn harness() -> Self {
        Self(Program::Harness)
    }

    /// Returns the program and arguments to start. `None` if the current program cannot supervise: starting it again
    /// would run its `main` a second time.
    pub(crate) fn invocation(&self) -> Option<Invocation> {
        match &self.0 {
            Program::At(program) => {
                Some(Invocation { program: program.clone(), args: vec![ARGUMENT.into()] })
            }
            Program::Harness => Some(Invocation {
                program: own_program()?,
                args: crate::testing::harness_arguments(),
            }),
            Program::CurrentExe if ARMED.load(Ordering::SeqCst) => {
                Some(Invocation { program: own_program()?, args: vec![ARGUMENT.into()] })
            }
            Program::CurrentExe => STAND_IN.get()?.invocation(),
        }
    }
}

/// Records that the current program may be started again as a supervisor.
pub(crate) fn arm() {
    ARMED.store(true, Ordering::SeqCst);
}

/// Sets the supervisor of a program that does not call `maybe_supervise`.
pub(crate) fn stand_in(supervisor: Supervisor) {
    STAND_IN.get_or_init(|| supervisor);
}

/// Returns the executable of this process, even if its path was replaced by another file meanwhile.
pub(crate) fn own_program() -> Option<PathBuf> {
    if cfg!(target_os = "linux") {
        Some(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe().ok()
    }
}
