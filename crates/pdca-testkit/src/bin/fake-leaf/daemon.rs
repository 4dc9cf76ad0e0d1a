//! A process that is left behind on purpose.

use std::{env, io, process, thread, time::Duration};

use fs_err as fs;
use process::{Command, Stdio};

/// Tells a process of this program that it is the one left behind.
pub(crate) const FLAG: &str = "--left-behind";

/// Starts a process that will lose its parent, and waits until it has written its pid.
pub(crate) fn leave(millis: &str, pid_file: &str, holding: bool) -> io::Result<()> {
    let stream = || {
        if holding { Stdio::inherit() } else { Stdio::null() }
    };
    let status = Command::new(env::current_exe()?)
        .args([FLAG, "middle", millis, pid_file])
        .stdin(Stdio::null())
        .stdout(stream())
        .stderr(stream())
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("the daemon did not start")) }
}

/// What the processes left behind do: the one in the middle starts a session and the last one, then goes.
#[expect(
    clippy::zombie_processes,
    reason = "the point is to lose the child: its parent is gone before it ends"
)]
pub(crate) fn live(args: &[String]) {
    let [_, which, millis, pid_file] = args else {
        return;
    };
    if which == "middle" {
        // Fails only where this process leads a group already, which a fresh child does not.
        rustix::process::setsid().expect("a fresh child can start a session");
        let exe = env::current_exe().expect("a running program knows its path");
        Command::new(exe)
            .args([FLAG, "last", millis, pid_file])
            .spawn()
            .expect("a child can be started");
        while !fs::exists(pid_file).unwrap_or(true) {
            thread::sleep(Duration::from_millis(1));
        }
    } else {
        let partial = format!("{pid_file}.new");
        fs::write(&partial, process::id().to_string()).expect("the pid can be written");
        fs::rename(&partial, pid_file).expect("the pid can be written");
        thread::sleep(Duration::from_millis(millis.parse().unwrap_or(0)));
    }
}
