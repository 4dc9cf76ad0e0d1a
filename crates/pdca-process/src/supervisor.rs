//! Which program supervises a child: normally this very one, started again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first argument that makes [`maybe_supervise`](crate::maybe_supervise) supervise.
pub(crate) const ARGUMENT: &str = "::pdca-supervise::";

/// Set by `maybe_supervise`: only a program that calls it may be started again as a supervisor.
static ARMED: AtomicBool = AtomicBool::new(false);

/// What [`Supervisor::default`] stands for when this program itself cannot be the supervisor.
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

/// A program to start, with its arguments.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
}

impl Supervisor {
    /// This program, started again; its `main` begins with
    /// [`maybe_supervise`](crate::maybe_supervise).
    pub fn current_exe() -> Self {
        Self(Program::CurrentExe)
    }

    /// Another program whose `main` begins with [`maybe_supervise`](crate::maybe_supervise) of the
    /// same version of this crate.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(Program::At(path.into()))
    }

    /// This test harness, started again; see [`testing`](crate::testing).
    pub(crate) fn harness() -> Self {
        Self(Program::Harness)
    }

    /// The program and arguments to start, or `None` if this program cannot supervise: starting it
    /// again would run its `main` a second time.
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

/// Remembers that this program may be started again as a supervisor.
pub(crate) fn arm() {
    ARMED.store(true, Ordering::SeqCst);
}

/// Names the supervisor of a program that is none itself.
pub(crate) fn stand_in(supervisor: Supervisor) {
    STAND_IN.get_or_init(|| supervisor);
}

/// The file this program was started from, even if another one lies at its path by now.
pub(crate) fn own_program() -> Option<PathBuf> {
    if cfg!(target_os = "linux") {
        Some(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe().ok()
    }
}
