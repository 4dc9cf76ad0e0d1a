//! Programs that the person at the terminal works with: a pager, an editor, a shell.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use camino::Utf8Path;

use crate::programs::{find_program, trusted_path};

/// Gives `text` to the pager, as a shell starts it, and waits until the person leaves it; `less` are the options of
/// `less`, should it be that. `Ok(false)` means that it could not be started or failed, and nothing may have been shown.
pub fn page(pager: &OsStr, less: &str, text: &[u8]) -> io::Result<bool> {
    // As git does: `$PAGER` may have arguments, and `less` has its options in the environment.
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut command = Command::new(find_program("sh").map_err(io::Error::other)?);
    command.arg("-c").arg(pager).env("LESS", less).stdin(Stdio::piped());
    command.env("PATH", trusted_path());
    let mut child = command.spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text));
    let status = child.wait()?;
    match written {
        // The person left before the end.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(status.success()),
        written => written.map(|()| status.success()),
    }
}

/// Runs a program that has the terminal, as a shell starts it: `command` may have arguments, and `arguments` follow as they
/// are. Waits until the person leaves it; `Ok(false)` means that it failed or could not be started.
pub fn attend(command: &OsStr, arguments: &[&OsStr], cwd: &Utf8Path) -> io::Result<bool> {
    let mut script = command.to_owned();
    script.push(" \"$@\"");
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut shell = Command::new(find_program("sh").map_err(io::Error::other)?);
    shell.arg("-c").arg(script).arg(command).args(arguments).current_dir(cwd);
    Ok(shell.env("PATH", trusted_path()).status()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pager_gets_the_text_and_may_have_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("shown");
        let pager = format!("cat > '{}'", file.display());
        assert!(page(OsStr::new(&pager), "FRX", b"words").unwrap());
        assert_eq!(std::fs::read(file).unwrap(), b"words");
    }

    #[test]
    fn an_editor_gets_its_file_whatever_its_name_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap();
        let file = OsStr::new("a $(file) 'name'");
        assert!(attend(OsStr::new("f() { echo words > \"$1\"; }; f"), &[file], path).unwrap());
        assert_eq!(std::fs::read(dir.path().join(file)).unwrap(), b"words\n");
        assert!(!attend(OsStr::new("no-such-editor-here 2>&-"), &[file], path).unwrap());
    }

    #[test]
    fn a_pager_that_is_left_early_is_no_error_and_one_that_fails_is_told() {
        let long = vec![b'x'; 1 << 20];
        assert!(page(OsStr::new("true"), "FRX", &long).unwrap());
        assert!(!page(OsStr::new("exit 3"), "FRX", b"words").unwrap());
    }
}
