//! Runs one child process to one ending, under a supervisor that outlives its caller.
//!
//! A program (the *driver*) describes a child with a [`Spec`] and gets back a [`ChildVerdict`], whose
//! [`Ending`] names the one way in which it ended. Between the two runs a *supervisor*: the same program,
//! started again. It starts the child, watches it, ends its whole process tree and stores the verdict in
//! a file. If the driver dies, the supervisor still ends the tree and stores the verdict.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use pdca_process::{Cancel, Ending, Spec};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     pdca_process::maybe_supervise();
//!
//!     let mut spec = Spec::new(["cargo", "test"], "checkout", "jobs/test");
//!     spec.timeout = Some(Duration::from_secs(600));
//!     let verdict = pdca_process::run(&spec, &Cancel::new(), &mut |_sign| {})?;
//!     assert_eq!(verdict.ending, Ending::Exited(0));
//!     Ok(())
//! }
//! ```
//!
//! ```text
//! driver ── socket ── supervisor ── child ── whatever the child starts
//!    ▲   (lifeline)       │  ▲  pipe  │                 │
//!    │                    │  └────────┴─────────────────┘
//!    └─ verdict ──────────┴─► job/verdict.json, job/log
//! ```
//!
//! # Invariants
//! - This is the only crate that starts a child: with [`run`], or with [`Tool`] for a short and
//!   trusted helper. Every call of git is a [`GitCall`].
//! - A program that is started outside a sandbox is found once, by absolute path, where no sandboxed child can write
//!   ([`find_program`]).
//! - What a [`Sandbox`] means for a path is one function; `bwrap` and Landlock close at least what it closes.
//! - When [`run`] returns, no process of the child's tree is alive. When the driver dies instead, the
//!   same holds a moment later.
//! - The ending is taken when the child exits, not when its output ends. The output is drained to its
//!   end, however long it is.
//! - A verdict file is whole or absent, and only the supervisor writes it.
//! - Limits count the running time of the machine; no wall clock is read.
//! - Nothing is printed.
//!
//! # Stability
//! Option structs and most errors are `#[non_exhaustive]`; build the former with their `new` or default and set or
//! chain the rest. [`Ending`], and errors that a caller maps variant by variant, stay exhaustive: a new variant is a
//! breaking change.
//!
//! # Other systems than Linux
//! On Linux, descendants are found through the process table and reparented to the supervisor by the
//! kernel, and Landlock or `bwrap` is the sandbox. On another Unix only the child's own process group is
//! ended, processes are not counted, and there is no sandbox; [`ChildVerdict::held`] records that.

#![warn(missing_docs)]

mod access;
mod backoff;
mod bwrap;
mod cancel;
mod capture;
mod client;
mod confine;
mod control;
mod credentials;
mod detach;
mod ending;
mod environment;
mod file_lock;
mod fixed_limits;
mod git;
mod launch;
mod limit;
mod line_markers;
mod liveness_lock;
mod log;
mod memory;
mod orphan;
mod os_serde;
mod pager;
mod poll;
mod programs;
mod protocol;
mod replaced;
mod rights;
mod run;
mod sandbox;
mod spec;
mod supervise;
mod supervise_loop;
mod supervisor;
mod terminal;
pub mod testing;
mod tool;
mod tree;
mod verdict;

pub use backoff::Backoff;
pub use cancel::Cancel;
pub use credentials::{
    CREDENTIAL_FILES, CREDENTIAL_VARIABLES, CredentialFile, CredentialVariable, HiddenWhen,
    is_credential, is_credential_value,
};
pub use detach::detach;
pub use ending::{Ending, Obstacle, SandboxKind};
pub use file_lock::{FileLock, FileLockError};
pub use fixed_limits::FixedLimits;
pub use git::{GitCall, GitCallError, GitError, GitOutput, GitVersion, InstalledGit, OLDEST_GIT};
pub use liveness_lock::{ChildHold, LivenessLockError, hold_as_child, wait_until_free};
pub use log::{ChildLog, LogError, log_path, printable, printed_path, read_log, read_printed};
pub use memory::{available_memory, memory_support};
pub use pager::{attend, page};
pub use programs::{ProgramError, avoid_programs_in, find_program};
pub use run::{RunError, Sign, run};
pub use sandbox::{bwrap_support, home, inherited, sandbox_support, wall_support};
pub use spec::{Env, Network, OutputCap, Replaced, Sandbox, SandboxMode, Spec, Stall, Stdin};
pub use supervise::maybe_supervise;
pub use supervisor::Supervisor;
pub use tool::{Tool, ToolError, ToolOutput};
pub use verdict::{ChildVerdict, OutputSummary, VerdictError, load_verdict};

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;

/// Stops this process with `SIGSTOP` until `SIGCONT` arrives, for tests of a process that hangs in the kernel.
pub fn stop_self() {
    let continued = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&continued);
    let heard = signal_hook::flag::register(signal_hook::consts::SIGCONT, flag);
    // The stop signal may be taken by another thread, so this one may run on for a moment. It therefore
    // waits for the continue signal instead of returning.
    let _sent =
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    while heard.is_ok() && !continued.load(std::sync::atomic::Ordering::SeqCst) {
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
}

/// Kills this process with `SIGKILL`, as a crash would: no destructor runs and nothing is cleaned up.
pub fn end_self_with_sigkill() -> ! {
    let _sent =
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}
