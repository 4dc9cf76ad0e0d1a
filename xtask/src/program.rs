//! Starts a program whose output belongs to the developer.
//!
//! `pdca_process` supervises children of bundles: it captures, limits and cleans up. A build step
//! needs the opposite, the terminal itself and the developer's own Ctrl-C, so it is started plainly.

use std::process::{Command, Stdio};

use camino::Utf8Path;

/// A program that could not be started, or whose output could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("cannot start `{program}`")]
    Start { program: String, source: std::io::Error },
    #[error("`{line}` failed: {stderr}")]
    Failed { line: String, stderr: String },
}

/// Makes a command in `dir`, without input. The caller decides about its output.
#[expect(
    clippy::disallowed_methods,
    reason = "a build step inherits the terminal, which a supervised child never does"
)]
pub(crate) fn command(program: &str, args: &[&str], dir: &Utf8Path) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).stdin(Stdio::null());
    command
}

/// Runs a program with the terminal's own output, and returns whether it succeeded.
pub(crate) fn succeeds(
    program: &str,
    args: &[&str],
    env: &[(&str, &str)],
    dir: &Utf8Path,
) -> Result<bool, ProgramError> {
    let status = command(program, args, dir)
        .envs(env.iter().copied())
        .status()
        .map_err(|source| ProgramError::Start { program: program.to_owned(), source })?;
    Ok(status.success())
}

/// Runs a program that must succeed, and returns its standard output.
pub(crate) fn output(
    program: &str,
    args: &[&str],
    dir: &Utf8Path,
) -> Result<Vec<u8>, ProgramError> {
    let output = command(program, args, dir)
        .output()
        .map_err(|source| ProgramError::Start { program: program.to_owned(), source })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(ProgramError::Failed {
        line: format!("{program} {}", args.join(" ")),
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_exit_is_success_and_another_is_not() {
        let here = Utf8Path::new(".");
        assert!(succeeds("true", &[], &[], here).unwrap());
        assert!(!succeeds("false", &[], &[], here).unwrap());
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output("no-such-program-here", &[], Utf8Path::new(".")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `no-such-program-here`");
    }

    #[test]
    fn a_failed_program_gives_its_command_line_and_its_complaint() {
        let script = "echo broken >&2; exit 3";
        let error = output("sh", &["-c", script], Utf8Path::new(".")).unwrap_err();
        assert_eq!(error.to_string(), format!("`sh -c {script}` failed: broken"));
    }
}
