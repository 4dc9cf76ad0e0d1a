//! Supervision inside a test harness.
//!
//! A test binary has no `main` of its own that could call [`maybe_supervise`](crate::maybe_supervise). Instead one of
//! its tests is the entry point: each test binary that calls [`run`](crate::run) contains, once and anywhere,
//!
//! ```
//! pdca_process::supervisor_entry!();
//! ```
//!
//! and every test that needs it calls [`use_harness`] first. The harness is then started again with a filter that
//! selects only that test, which becomes the supervisor. Run normally, the test passes at once. So the supervisor
//! always is the code under test, and no other binary has to be built.

use std::ffi::OsString;

use crate::supervisor;
use crate::supervisor::Supervisor;

/// The name of the test that [`supervisor_entry!`](crate::supervisor_entry) defines.
const ENTRY: &str = "pdca_supervisor_entry";
/// A filter that skips no test; its presence tells the entry test that it was started to supervise.
const MARK: &str = "--skip=::pdca-supervise::";

/// Makes [`run`](crate::run) in this process use this test harness as the supervisor.
pub fn use_harness() {
    supervisor::stand_in(Supervisor::harness());
}

/// The body of the test that [`supervisor_entry!`](crate::supervisor_entry) defines.
pub fn entry() {
    if std::env::args_os().any(|argument| argument == MARK) {
        crate::supervise::supervise_and_exit();
    }
}

pub(crate) fn harness_arguments() -> Vec<OsString> {
    [ENTRY, MARK, "--test-threads=1", "--nocapture"].map(OsString::from).to_vec()
}

/// Defines the test through which a test harness can be started as a supervisor; see
/// [`testing`](crate::testing).
#[macro_export]
macro_rules! supervisor_entry {
    () => {
        #[test]
        fn pdca_supervisor_entry() {
            $crate::testing::entry();
        }
    };
}
