//! One child process to one ending.
//!
//! A program describes a child with a [`Spec`] and gets back a [`ChildVerdict`], whose [`Ending`] says in
//! one word what became of it. Between the two stands a *supervisor*: the same program, started
//! again, which starts the child, watches it, ends its whole tree and stores the verdict in a file,
//! so that nothing is lost or left running when the driver dies.
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
//!   trusted helper.
//! - When [`run`] returns, nothing of the child's tree is alive. When the driver dies instead, the
//!   same holds a moment later.
//! - The ending is taken when the child exits, not when its output ends, and the output is drained
//!   to its end, however long it is.
//! - A verdict file is whole or absent, and written by the supervisor alone.
//! - Time is running time of the machine: no wall clock is read.
//! - Nothing is printed.
//!
//! # What is weaker elsewhere than on Linux
//! There, descendants are found through the process table and handed to the supervisor by the
//! kernel, and Landlock is the sandbox. On another Unix only the child's own process group is
//! ended, processes are not counted, and there is no sandbox, which the verdict says.

#![warn(missing_docs)]

mod bwrap;
mod cancel;
mod capture;
mod client;
mod confine;
mod control;
mod ending;
mod environment;
mod git;
mod launch;
mod limit;
mod line_markers;
mod liveness_lock;
mod log;
mod memory;
mod orphan;
mod os_serde;
mod poll;
mod protocol;
mod run;
mod sandbox;
mod spec;
mod supervise;
mod supervise_loop;
mod supervisor;
pub mod testing;
mod tool;
mod tree;
mod verdict;

pub use cancel::Cancel;
pub use ending::{Ending, Obstacle, SandboxKind};
pub use git::{GitError, GitVersion, InstalledGit, OLDEST_GIT};
pub use liveness_lock::{LivenessLockError, lock_alone, wait_until_free};
pub use log::{Log, LogError, log_path, printable, read_log, read_printed};
pub use memory::memory_support;
pub use run::{RunError, Sign, run};
pub use sandbox::{bwrap_support, home, sandbox_support, wall_support};
pub use spec::{Env, Network, OutputCap, Sandbox, SandboxMode, Spec, Stall, Stdin};
pub use supervise::maybe_supervise;
pub use supervisor::Supervisor;
pub use tool::{Tool, ToolError, ToolOutput};
pub use verdict::{ChildVerdict, OutputSummary, VerdictError, load_verdict};

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;

/// Has this process stand still, as it does before a disk that does not answer, until somebody continues it.
///
/// A signal to oneself is taken by any thread, and this one may run on for a moment; so it goes on only
/// when the process was continued.
pub fn stop_self() {
    let continued = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&continued);
    let heard = signal_hook::flag::register(signal_hook::consts::SIGCONT, flag);
    let _sent =
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    while heard.is_ok() && !continued.load(std::sync::atomic::Ordering::SeqCst) {
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
}

/// Ends this process as a crash would: at once, and with nothing cleared up.
pub fn end_self_with_sigkill() -> ! {
    let _sent =
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}
