//! A scene for one child, and the check that none of its processes is left alive.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{Cancel, ChildLog, ChildVerdict, Sign, Spec, read_log, run, testing};

/// The variable that every process of a scene carries.
const TOKEN: &str = "SCENE_TOKEN";
/// The variable that makes `driver_entry` drive.
pub(crate) const DRIVER_SPEC: &str = "SCENE_DRIVER_SPEC";
/// The variable that makes the driver never read what the supervisor says after the start.
pub(crate) const DRIVER_DEAF: &str = "SCENE_DRIVER_DEAF";

/// A private directory, and a token of digits that all processes of the scene carry.
pub(crate) struct Scene {
    directory: tempfile::TempDir,
    pub(crate) token: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        testing::use_harness();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            directory: tempfile::tempdir().unwrap(),
            token: format!("{:07}{count:03}7", std::process::id()),
        }
    }

    pub(crate) fn path(&self) -> Utf8PathBuf {
        let real = self.directory.path().canonicalize().unwrap();
        Utf8PathBuf::from_path_buf(real).unwrap()
    }

    pub(crate) fn job(&self) -> Utf8PathBuf {
        self.path().join("job")
    }

    /// A shell script as the child.
    pub(crate) fn script(&self, script: &str) -> Spec {
        self.argv(&["sh", "-c", script])
    }

    pub(crate) fn argv(&self, argv: &[&str]) -> Spec {
        let mut spec = Spec::new(argv, self.path(), self.job());
        spec.env = spec.env.with(TOKEN, &self.token);
        spec.timeout = Some(Duration::from_secs(100));
        spec.grace = Duration::from_secs(10);
        spec
    }

    /// Runs the child, and checks that none of its processes is alive afterwards.
    pub(crate) fn run(&self, spec: &Spec) -> ChildVerdict {
        self.run_watched(spec, &Cancel::new(), &mut |_| {})
    }

    pub(crate) fn run_watched(
        &self,
        spec: &Spec,
        cancel: &Cancel,
        watch: &mut dyn FnMut(Sign),
    ) -> ChildVerdict {
        let verdict = run(spec, cancel, watch).unwrap();
        assert_eq!(self.alive(), Vec::<i32>::new(), "alive after {verdict:?}");
        verdict
    }

    pub(crate) fn log(&self) -> ChildLog {
        read_log(&self.job()).unwrap()
    }

    pub(crate) fn output(&self) -> String {
        self.log().to_text()
    }

    /// Returns the processes that carry the token in their environment or on their command line.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let own = std::process::id().cast_signed();
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| *pid != own && self.carries(*pid))
            .collect()
    }

    fn carries(&self, pid: i32) -> bool {
        ["environ", "cmdline"].iter().any(|file| {
            std::fs::read(format!("/proc/{pid}/{file}"))
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&self.token))
        })
    }

    /// A driver in a process of its own, which can be killed.
    pub(crate) fn driver(&self, spec: &Spec) -> Driver {
        self.driver_with(spec, |_| {})
    }

    pub(crate) fn driver_with(&self, spec: &Spec, change: impl FnOnce(&mut Command)) -> Driver {
        let order = self.path().join("spec.json");
        std::fs::write(&order, serde_json::to_vec(spec).unwrap()).unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "the driver under test must be a process of its own"
        )]
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["driver_entry", "--test-threads=1", "--nocapture"])
            .env(TOKEN, &self.token)
            .env(DRIVER_SPEC, order)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        change(&mut command);
        Driver(command.spawn().unwrap())
    }
}

/// A process that is killed when this is dropped.
pub(crate) struct Driver(pub(crate) Child);

impl Driver {
    pub(crate) fn signal(&self, signal: i32) {
        send(self.0.id().cast_signed(), signal);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _collected = self.0.wait();
    }
}

pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::vars_os().find_map(|(found, value)| (found == name).then_some(value))
}

pub(crate) fn send(pid: i32, signal: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let signal = match signal {
        1 => rustix::process::Signal::HUP,
        2 => rustix::process::Signal::INT,
        9 => rustix::process::Signal::KILL,
        15 => rustix::process::Signal::TERM,
        other => panic!("no test sends signal {other}"),
    };
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Returns the parent of a process: for a child, its supervisor.
pub(crate) fn parent(pid: i32) -> i32 {
    stat_field(pid, 4)
}

/// Returns one numeric field of a process, numbered as in the manual page of `/proc`.
pub(crate) fn stat_field(pid: i32, field: usize) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    let value = after.split_whitespace().nth(field - 3).unwrap();
    value.parse().unwrap()
}

/// Waits for a condition that must come true soon.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(300);
    while !happened() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn exists(path: impl AsRef<Utf8Path>) -> bool {
    path.as_ref().exists()
}
