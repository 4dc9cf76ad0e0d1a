//! Starting the child from its [`Spec`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::confine;
use crate::ending::{Obstacle, SandboxKind};
use crate::environment;
use crate::fixed_limits::FixedLimits;
use crate::sandbox::temporary;
use crate::spec::{SandboxMode, Spec};

/// The three standard streams of a child; `None` means `/dev/null`.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pid: i32,
    pub(crate) held: SandboxKind,
}

/// The reason why no child runs.
#[derive(Debug)]
pub(crate) enum LaunchRefusal {
    /// The program could not be started.
    Obstacle { kind: Obstacle, why: String, held: SandboxKind },
    /// The sandbox is required and missing.
    NoSandbox { why: String },
    /// The supervisor failed.
    Infra { why: String },
}

impl Streams {
    /// Returns all three streams, with `/dev/null` in place of `None`.
    pub(crate) fn opened(self) -> io::Result<[OwnedFd; 3]> {
        let or_null = |stream: Option<OwnedFd>, write: bool| match stream {
            Some(stream) => Ok(stream),
            None => fs::OpenOptions::new()
                .read(!write)
                .write(write)
                .open("/dev/null")
                .map(|null| null.into_parts().0.into()),
        };
        Ok([or_null(self.stdin, false)?, or_null(self.stdout, true)?, or_null(self.stderr, true)?])
    }

    /// Reverses [`opened`](Self::opened).
    pub(crate) fn from_opened(streams: Vec<OwnedFd>) -> Self {
        let mut streams = streams.into_iter();
        Self { stdin: streams.next(), stdout: streams.next(), stderr: streams.next() }
    }
}

pub(crate) fn launch(spec: &Spec, streams: Streams) -> Result<Launched, LaunchRefusal> {
    let confined = spec.sandbox.as_ref().is_some_and(|sandbox| sandbox.mode != SandboxMode::Off);
    if !confined {
        if spec.fixed_limits {
            // This process supervises nothing else, and its own files are made already.
            FixedLimits::apply();
        }
        let mut command = match found(spec) {
            Some(file) => command_of(spec, streams, &file),
            None => command(spec, streams),
        };
        return start(spec, &mut command, SandboxKind::Off);
    }
    std::path::absolute(temporary(&spec.job))
        // Made before the rules: Landlock and `bwrap` can only open a directory that exists.
        .and_then(fs::create_dir_all)
        .map_err(|error| LaunchRefusal::Infra { why: error.to_string() })?;
    confine::start(spec, streams)
}

fn start(spec: &Spec, command: &mut Command, held: SandboxKind) -> Result<Launched, LaunchRefusal> {
    match command.spawn() {
        // The handle is dropped: it only offers to wait, and the supervisor collects all its children alike.
        Ok(child) => {
            Ok(Launched { pid: rustix::process::Pid::from_child(&child).as_raw_pid(), held })
        }
        Err(error) => Err(refused_start(spec, &error, held)),
    }
}

/// Classifies the error of a failed start.
pub(crate) fn refused_start(spec: &Spec, error: &io::Error, held: SandboxKind) -> LaunchRefusal {
    let (kind, why) = obstacle(spec, error);
    LaunchRefusal::Obstacle { kind, why, held }
}

/// Builds the child's command: working directory, streams, process group and environment.
pub(crate) fn command(spec: &Spec, streams: Streams) -> Command {
    command_of(spec, streams, &program(spec))
}

fn command_of(spec: &Spec, streams: Streams, program: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut command = Command::new(program);
    // A program that was looked up is still told the name that it was called by: `sh` prints it.
    if let Some(name) = spec.argv.first().filter(|name| !is_path(name)) {
        command.arg0(name);
    }
    command
        .args(spec.argv.iter().skip(1))
        .current_dir(&spec.cwd)
        .stdin(stream(streams.stdin))
        .stdout(stream(streams.stdout))
        .stderr(stream(streams.stderr));
    if !spec.interactive {
        // Ctrl-C at the driver's terminal reaches the child through its supervisor alone, which gives it its grace.
        command.process_group(0);
    }
    environment::cleanse(&mut command, &spec.env);
    for name in &spec.env.remove {
        command.env_remove(name);
    }
    // Before `set`, so that the caller can override it.
    if spec.sandbox.as_ref().is_some_and(|sandbox| sandbox.mode != SandboxMode::Off)
        && let Ok(tmp) = std::path::absolute(temporary(&spec.job))
    {
        command.env("TMPDIR", tmp);
    }
    command.envs(&spec.env.set);
    command
}

/// Returns the program to execute; a relative path is resolved from the child's working directory.
fn program(spec: &Spec) -> PathBuf {
    let named = PathBuf::from(spec.argv.first().cloned().unwrap_or_default());
    if is_path(named.as_os_str()) { spec.cwd.as_std_path().join(named) } else { named }
}

fn is_path(name: &OsStr) -> bool {
    name.as_bytes().contains(&b'/')
}

/// Returns the file that a search for the program will find; `None` if only the search itself can tell.
///
/// The search tries to execute a file in each directory of `PATH`, and a failed attempt costs a multiple of a look.
/// A confined child is left to it: which file it may execute is known to the kernel only.
fn found(spec: &Spec) -> Option<PathBuf> {
    let name = spec.argv.first().filter(|name| !name.is_empty() && !is_path(name))?;
    for dir in std::env::split_paths(&search_path(spec)?) {
        // Such a directory counts from the child's working directory.
        if !dir.is_absolute() {
            return None;
        }
        let file = dir.join(name);
        match std::fs::metadata(&file) {
            Ok(found) => {
                let runs = found.is_file() && access(&file, Access::EXEC_OK).is_ok();
                return runs.then_some(file);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // The search goes on after some errors and gives up after others, so it is left to it.
            Err(_) => return None,
        }
    }
    None
}

/// Returns the child's `PATH`, where it has one.
fn search_path(spec: &Spec) -> Option<OsString> {
    let name = OsStr::new("PATH");
    let inherited = || std::env::vars_os().find_map(|(one, value)| (one == name).then_some(value));
    match spec.env.set.get(name) {
        Some(given) => Some(given.clone()),
        None if spec.env.remove.contains(name) => None,
        None => inherited(),
    }
}

fn stream(descriptor: Option<OwnedFd>) -> Stdio {
    descriptor.map_or_else(Stdio::null, Stdio::from)
}

fn obstacle(spec: &Spec, error: &io::Error) -> (Obstacle, String) {
    let program = program(spec);
    let name = program.display();
    // `spawn` reports a missing working directory and a missing program with the same error.
    if !spec.cwd.is_dir() {
        let why = format!("the working directory {} does not exist", spec.cwd);
        return (Obstacle::Other, why);
    }
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        // The kernel reports a missing interpreter of a script as if the script were missing.
        Some(Errno::NOENT) if program.is_absolute() && program.exists() => {
            (Obstacle::NotFound, format!("the interpreter of {name} does not exist"))
        }
        Some(Errno::NOENT | Errno::NOTDIR) => {
            (Obstacle::NotFound, format!("{name} does not exist"))
        }
        // A directory of `PATH` that we may not enter gives the same error as a program that is not executable.
        Some(Errno::ACCESS) if !is_in_sight(spec, &program) => {
            (Obstacle::NotFound, format!("{name} does not exist"))
        }
        Some(Errno::ACCESS | Errno::PERM | Errno::ISDIR) => {
            (Obstacle::NotExecutable, format!("{name} is not executable"))
        }
        Some(Errno::NOEXEC) => (Obstacle::NotExecutable, format!("{name} is not a program")),
        _ => (Obstacle::Other, format!("{name} cannot be started: {error}")),
    }
}

/// Returns true if a file of this name exists where the program was searched for.
fn is_in_sight(spec: &Spec, program: &Path) -> bool {
    if program.is_absolute() {
        return true;
    }
    let search = search_path(spec).unwrap_or_default();
    std::env::split_paths(&search).any(|dir| dir.join(program).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child that is called `tool`, and finds programs in `dirs`.
    fn looked_up(dirs: &[&Path]) -> Spec {
        let mut spec = Spec::new(["tool"], "/", "/job");
        let path = std::env::join_paths(dirs).unwrap();
        spec.env.set.insert("PATH".into(), path);
        spec
    }

    fn put_tool(dir: &Path, mode: u32) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let file = dir.join("tool");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_program_is_found_in_the_first_directory_that_has_it() {
        let [none, first, second] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let file = put_tool(first.path(), 0o755);
        put_tool(second.path(), 0o755);
        let spec = looked_up(&[none.path(), first.path(), second.path()]);
        assert_eq!(found(&spec), Some(file));
    }

    #[test]
    fn what_only_the_search_can_tell_is_left_to_it() {
        let [plain, good] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        put_tool(plain.path(), 0o644);
        put_tool(good.path(), 0o755);
        // A file that cannot be executed is passed over by the search, and a relative directory depends on the child.
        for first in [plain.path(), Path::new("bin")] {
            assert_eq!(found(&looked_up(&[first, good.path()])), None);
        }
        let mut spec = looked_up(&[]);
        spec.env.set.clear();
        spec.env.remove.insert("PATH".into());
        assert_eq!(found(&spec), None);
        assert_eq!(found(&Spec::new(["./tool"], "/", "/job")), None);
    }

    #[test]
    fn b22_a_host_without_room_for_a_process_is_no_fault_of_the_program() {
        let spec = Spec::new(["true"], "/", "/job");
        let (kind, why) = obstacle(&spec, &Errno::AGAIN.into());
        assert_eq!(kind, Obstacle::Other);
        assert!(why.starts_with("true cannot be started"), "{why}");
    }
}
