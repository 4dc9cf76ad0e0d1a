//! Starting the child, in its sandbox.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;
use rustix::io::Errno;

use crate::ending::{Held, Obstacle};
use crate::environment;
use crate::sandbox::{restrict_thread, temporary};
use crate::spec::{Sandbox, SandboxMode, Spec};

/// The three descriptors a child starts with; `None` is nothing to read and nowhere to write.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// A child that runs.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pid: i32,
    pub(crate) held: Held,
}

/// Why no child runs.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The program could not be started.
    Obstacle { kind: Obstacle, why: String, held: Held },
    /// The sandbox is required and there is none.
    NoSandbox { why: String },
    /// The supervisor could not do its part.
    Infra { why: String },
}

/// Starts the child that `spec` describes.
pub(crate) fn launch(spec: &Spec, streams: Streams) -> Result<Launched, Refusal> {
    let wanted = spec.sandbox.clone().filter(|sandbox| sandbox.mode != SandboxMode::Off);
    let mut command = command(spec, streams);
    let Some(sandbox) = wanted else {
        return start(spec, &mut command, Held::Off);
    };
    let tmp = std::path::absolute(temporary(&spec.job))
        .and_then(|tmp| fs::create_dir_all(&tmp).map(|()| tmp))
        .map_err(|error| Refusal::Infra { why: error.to_string() })?;
    if !spec.env.set.contains_key(OsStr::new("TMPDIR")) {
        command.env("TMPDIR", tmp);
    }
    start_restricted(spec, command, &sandbox)
}

/// Restricts a thread and starts the child from it, so that the supervisor itself stays free.
fn start_restricted(
    spec: &Spec,
    mut command: Command,
    sandbox: &Sandbox,
) -> Result<Launched, Refusal> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            let held = restrict_thread(sandbox, &spec.job)
                .unwrap_or_else(|why| Held::NotAvailable { why });
            match (&held, sandbox.mode) {
                (Held::NotAvailable { why }, SandboxMode::Require) => {
                    Err(Refusal::NoSandbox { why: why.clone() })
                }
                (
                    Held::NotAvailable { .. } | Held::Landlock { .. } | Held::Off,
                    SandboxMode::Require | SandboxMode::Auto | SandboxMode::Off,
                ) => start(spec, &mut command, held),
            }
        });
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(launched)) => launched,
            Ok(Err(_)) => {
                Err(Refusal::Infra { why: "the thread that starts the child failed".to_owned() })
            }
            Err(error) => {
                Err(Refusal::Infra { why: format!("no thread to start the child from: {error}") })
            }
        }
    })
}

fn start(spec: &Spec, command: &mut Command, held: Held) -> Result<Launched, Refusal> {
    match command.spawn() {
        // The handle only offers to wait, and the supervisor waits for all its children alike.
        Ok(child) => {
            Ok(Launched { pid: rustix::process::Pid::from_child(&child).as_raw_pid(), held })
        }
        Err(error) => {
            let (kind, why) = obstacle(spec, &error);
            Err(Refusal::Obstacle { kind, why, held })
        }
    }
}

fn command(spec: &Spec, streams: Streams) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut command = Command::new(program(spec));
    command
        .args(spec.argv.iter().skip(1))
        .current_dir(&spec.cwd)
        .stdin(stream(streams.stdin))
        .stdout(stream(streams.stdout))
        .stderr(stream(streams.stderr));
    if !spec.interactive {
        command.process_group(0);
    }
    environment::cleanse(&mut command);
    for name in &spec.env.remove {
        command.env_remove(name);
    }
    command.envs(&spec.env.set);
    command
}

/// The program as the system is to look for it: a relative path starts at the child's directory.
fn program(spec: &Spec) -> PathBuf {
    let named = PathBuf::from(spec.argv.first().cloned().unwrap_or_default());
    if named.as_os_str().as_bytes().contains(&b'/') {
        spec.cwd.as_std_path().join(named)
    } else {
        named
    }
}

fn stream(descriptor: Option<OwnedFd>) -> Stdio {
    descriptor.map_or_else(Stdio::null, Stdio::from)
}

fn obstacle(spec: &Spec, error: &io::Error) -> (Obstacle, String) {
    let program = program(spec);
    let name = program.display();
    if !spec.cwd.is_dir() {
        let why = format!("the working directory {} does not exist", spec.cwd);
        return (Obstacle::Other, why);
    }
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) if program.is_absolute() && program.exists() => {
            (Obstacle::NotFound, format!("the interpreter of {name} does not exist"))
        }
        Some(Errno::NOENT | Errno::NOTDIR) => {
            (Obstacle::NotFound, format!("{name} does not exist"))
        }
        // A directory of the search path that is closed to us is reported like a closed program.
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

/// Whether there is a file of this name where the program was looked for.
fn is_in_sight(spec: &Spec, program: &Path) -> bool {
    if program.is_absolute() {
        return true;
    }
    let given = spec.env.set.get(OsStr::new("PATH")).cloned();
    let search: Option<OsString> = given.or_else(|| {
        std::env::vars_os().find_map(|(name, value)| (name == "PATH").then_some(value))
    });
    std::env::split_paths(&search.unwrap_or_default()).any(|dir| dir.join(program).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b22_a_host_without_room_for_a_process_is_no_fault_of_the_program() {
        let spec = Spec::new(["true"], "/", "/job");
        let (kind, why) = obstacle(&spec, &Errno::AGAIN.into());
        assert_eq!(kind, Obstacle::Other);
        assert!(why.starts_with("true cannot be started"), "{why}");
    }
}
