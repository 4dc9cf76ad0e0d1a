//! A process that outlives whoever starts it.

use std::io;
use std::process::Command;

use camino::Utf8Path;

use crate::environment;
use crate::spec::Env;

/// Starts a program that goes on when this process and its session end: nothing is read from it, and its output goes
/// to a file.
///
/// The program has to leave the session by itself (`setsid`), which only a process that leads no group can do; so it is
/// started in the group of this one. It is not waited for here.
pub fn detach(argv: &[String], cwd: &Utf8Path, output: &Utf8Path) -> io::Result<()> {
    let (program, rest) =
        argv.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
    let output = fs_err::OpenOptions::new().create(true).append(true).open(output)?;
    let (output, _) = output.into_parts();
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut command = Command::new(program);
    command
        .args(rest)
        .current_dir(cwd)
        .stdin(std::process::Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    environment::cleanse(&mut command, &Env::default());
    // They belong to the login. A forwarded agent socket would let the job use the keys of the user
    // who logged in, and it ends with the connection.
    for name in ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "SSH_AUTH_SOCK", "SSH_ORIGINAL_COMMAND"]
    {
        command.env_remove(name);
    }
    // The handle is dropped: the process is not ours to wait for.
    command.spawn().map(drop)
}
