//! Starting a confined child from a process that shares no memory with the supervisor.
//!
//! If a thread of the supervisor confined itself and started the child, that thread would be in the child's Landlock
//! domain. The child could trace it and, through the memory it shares, take over the supervisor. Therefore:
//!
//! 1. The supervisor starts itself again with a socket as standard input, and sends the opening `C` with the child's
//!    three streams and a pipe for the answer, then the order. The new process has no other descriptor of the
//!    supervisor.
//! 2. The new process restricts itself, reports the sandbox that holds, and executes the child's program. That closes
//!    the pipe, by which the supervisor knows that the child runs.
//! 3. If it cannot execute the program, it reports the error and exits.
//!
//! The supervisor itself is never in a domain, is not dumpable, and, where the kernel has Landlock scopes, cannot be
//! signalled by its descendants.

use std::io;
use std::io::{BufRead as _, BufReader, PipeReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::bwrap;
use crate::ending::SandboxKind;
use crate::fixed_limits::FixedLimits;
use crate::launch::{self, LaunchRefusal, Launched, Streams};
use crate::programs::find_program;
use crate::protocol::{Order, byte, read_frame, send_opening, write_frame};
use crate::rights::{OVERRIDE, drop_capabilities, has_capability, refuse_calls};
use crate::sandbox::{bwrap_support, needs_override, restrict_thread, rules, scope_thread};
use crate::spec::{Network, Sandbox, SandboxMode, Spec, Stdin};
use crate::supervisor;

/// The messages of the new process before it becomes the child.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// This sandbox holds, and the program is about to be executed.
    Held(SandboxKind),
    /// The sandbox is required and missing.
    NoSandbox(String),
    /// The program could not be executed.
    Failed { errno: Option<i32>, why: String },
}

pub(crate) fn start(spec: &Spec, streams: Streams) -> Result<Launched, LaunchRefusal> {
    let infra = |error: io::Error| LaunchRefusal::Infra {
        why: format!("the process that confines the child failed: {error}"),
    };
    let (ours, theirs) = UnixStream::pair().map_err(infra)?;
    let streams = streams.opened().map_err(infra)?;
    // `bwrap` keeps the socket open as its standard input, so its end would not come. The new process alone holds this
    // pipe.
    let (answers, answer) = io::pipe().map_err(infra)?;
    let borrowed = [streams[0].as_fd(), streams[1].as_fd(), streams[2].as_fd(), answer.as_fd()];
    send_opening(&ours, byte::CONFINED, &borrowed).map_err(infra)?;
    let is_walled = wants_bwrap(spec);
    let mut command = again(theirs, spec)?;
    let mut child = command.spawn().map_err(infra)?;
    // Our copies of the new process's descriptors: as long as one of them is open here, `answers`
    // does not end, and the child's pipes do not either.
    drop((command, streams, answer));
    let pid = rustix::process::Pid::from_child(&child).as_raw_pid();
    match converse(spec, ours, answers) {
        Ok((Some(held), None)) => Ok(Launched { pid, held }),
        ended => {
            // It exits by itself. It is collected here, so that the event loop does not take it for the child.
            let _status = child.wait();
            Err(match ended {
                Ok((held, Some(Answer::Failed { errno: Some(errno), .. }))) => {
                    let error = io::Error::from_raw_os_error(errno);
                    launch::refused_start(spec, &error, held.unwrap_or(SandboxKind::Off))
                }
                Ok((_, Some(Answer::NoSandbox(why)))) => LaunchRefusal::NoSandbox { why },
                Ok((_, Some(Answer::Failed { why, .. }))) => LaunchRefusal::Infra { why },
                Ok((None, None)) if is_walled => LaunchRefusal::NoSandbox {
                    why: bwrap_support().err().unwrap_or_else(|| "bwrap ended early".to_owned()),
                },
                Ok((_, Some(Answer::Held(_)) | None)) => infra(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => infra(error),
            })
        }
    }
}

fn wants_bwrap(spec: &Spec) -> bool {
    spec.sandbox.as_ref().is_some_and(|sandbox| sandbox.mode == SandboxMode::Bwrap)
}

/// Returns the command of this program with the arguments by which it became a supervisor, inside `bwrap` if that is
/// wanted.
fn again(socket: UnixStream, spec: &Spec) -> Result<Command, LaunchRefusal> {
    let lost = || LaunchRefusal::Infra { why: "this program cannot be started again".to_owned() };
    let own = supervisor::own_program().ok_or_else(lost)?;
    let new = |program: &std::path::Path| {
        #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
        Command::new(program)
    };
    let mut command = match &spec.sandbox {
        Some(sandbox) if wants_bwrap(spec) => {
            let no_wall = |why: &str| LaunchRefusal::NoSandbox { why: why.to_owned() };
            let program = find_program("bwrap").map_err(|error| no_wall(&error.to_string()))?;
            // Inside the namespaces /proc/self/exe is `bwrap`, so the program is started by its path.
            let own = own
                .canonicalize()
                .map_err(|_| no_wall("the running program was replaced on disk"))?;
            let mut command = new(&program);
            command.args(bwrap::arguments(spec, sandbox, &own)).arg(own);
            command
        }
        _ => {
            let mut command = new(&own);
            command.arg0("pdca-confine");
            command
        }
    };
    command
        // A test harness becomes a supervisor through other arguments than a program does.
        .args(std::env::args_os().skip(1))
        .stdin(OwnedFd::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !spec.interactive {
        // As for an unconfined child: a signal for the supervisor's group must not skip the child's
        // grace.
        command.process_group(0);
    }
    Ok(command)
}

/// Sends the order and reads answers until the pipe closes. Returns the sandbox that holds, and the reason if there is
/// no child.
fn converse(
    spec: &Spec,
    mut socket: UnixStream,
    answers: PipeReader,
) -> io::Result<(Option<SandboxKind>, Option<Answer>)> {
    let mut spec = spec.clone();
    // The supervisor feeds these bytes to the child itself.
    if let Stdin::Bytes(bytes) = &mut spec.stdin {
        bytes.clear();
    }
    // If the process died early, reading the answers finds its end.
    let _written = write_frame(&mut socket, &serde_json::to_vec(&Order::new(spec))?);
    let mut held = None;
    let mut reason = None;
    for line in BufReader::new(answers).lines() {
        match serde_json::from_str(&line?)? {
            Answer::Held(holds) => held = Some(holds),
            other @ (Answer::NoSandbox(_) | Answer::Failed { .. }) => reason = Some(other),
        }
    }
    Ok((held, reason))
}

/// Runs in the new process: becomes the child, or reports the reason and returns.
pub(crate) fn become_child(mut socket: UnixStream, mut streams: Vec<OwnedFd>) -> io::Result<()> {
    // The pipe for the answers is the last of the descriptors; the other three are the child's
    // streams. It came with close-on-exec, so `exec` closes it.
    let mut answers = streams.pop().map(std::fs::File::from).ok_or(io::ErrorKind::InvalidData)?;
    let order: Order = serde_json::from_slice(&read_frame(&mut socket)?)?;
    let spec = order.accept()?;
    if spec.fixed_limits {
        FixedLimits::apply();
    }
    let answer = match prepared(&spec, streams) {
        Err(answer) => answer,
        Ok((mut command, held)) => {
            // Said before `exec`, after which no code of ours runs. If `exec` fails, a second
            // answer follows.
            say(&mut answers, &Answer::Held(held))?;
            let error = command.exec();
            Answer::Failed { errno: error.raw_os_error(), why: error.to_string() }
        }
    };
    say(&mut answers, &answer)
}

/// Restricts this thread, on which the child is executed, and builds the command.
fn prepared(spec: &Spec, streams: Vec<OwnedFd>) -> Result<(Command, SandboxKind), Answer> {
    let command = launch::command(spec, Streams::from_opened(streams));
    let sandbox = spec.sandbox.as_ref();
    // Refused also in the mode `auto`: a caller that takes the network away must not get a child
    // that has it.
    if sandbox.is_some_and(|one| one.network == Network::Off && one.mode != SandboxMode::Bwrap) {
        return Err(Answer::NoSandbox("only bwrap can take the network away".to_owned()));
    }
    let held = sandbox.map_or(SandboxKind::Off, |sandbox| restrict(sandbox, spec));
    let mode = sandbox.map(|sandbox| sandbox.mode);
    match (&held, mode) {
        (
            SandboxKind::NotAvailable { why },
            Some(SandboxMode::Require | SandboxMode::Landlock | SandboxMode::Bwrap),
        ) => Err(Answer::NoSandbox(why.clone())),
        _ => Ok((command, held)),
    }
}

fn restrict(sandbox: &Sandbox, spec: &Spec) -> SandboxKind {
    let missing = |why| SandboxKind::NotAvailable { why };
    if sandbox.mode == SandboxMode::Bwrap {
        // The mounts already protect the files, more exactly than Landlock would.
        // Abstract sockets belong to the network namespace, which is the host's unless the network
        // is off.
        let scoped = scope_thread();
        drop_capabilities(has_capability(OVERRIDE));
        return refuse_calls().map_or_else(missing, |()| SandboxKind::Bwrap { scoped });
    }
    // Asked before the rules: afterwards some of the paths cannot be looked at.
    let keep = needs_override(spec, &rules(sandbox, &spec.job));
    let held = restrict_thread(sandbox, &spec.job);
    if let Ok(held @ SandboxKind::Landlock { .. }) = held {
        // Root could otherwise read the environment of its supervisor and of the driver in `/proc`,
        // and undo the rules (decision 023).
        drop_capabilities(keep);
        return refuse_calls().map_or_else(missing, |()| held);
    }
    held.unwrap_or_else(missing)
}

fn say(answers: &mut std::fs::File, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    answers.write_all(&line)
}
