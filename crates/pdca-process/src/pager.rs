//! Programs that the person at the terminal works with: a pager, an editor, a shell.
//!
//! They are in the process group of `pdca`, so Ctrl-C reaches both. It is theirs: `less` ends its search, and `pdca` waits
//! until the person leaves them, as git does.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::Utf8Path;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGQUIT};

use crate::programs::{find_program, trusted_path};

/// The start of a script whose shell, too, waits for its program at Ctrl-C. A program gets back what it had, unlike with a
/// signal that is ignored.
const WAITS: &str = "trap : INT QUIT; ";

/// Gives `text` to the pager, as a shell starts it, and waits until the person leaves it; `less` are the options of
/// `less`, should it be that. `Ok(false)` means that it could not be started or failed, and nothing may have been shown.
pub fn page(pager: &OsStr, less: impl AsRef<OsStr>, text: &[u8]) -> io::Result<bool> {
    let keys = InterruptKeys::leave()?;
    // As git does: `$PAGER` may have arguments, and `less` has its options in the environment.
    let mut script = OsString::from(WAITS);
    script.push(pager);
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut command = Command::new(find_program("sh").map_err(io::Error::other)?);
    command.arg("-c").arg(script).env("LESS", less).stdin(Stdio::piped());
    command.env("PATH", trusted_path());
    let mut child = command.spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text));
    let status = child.wait()?;
    // A pager that ends at Ctrl-C was seen.
    let is_shown = status.success() || keys.were_pressed();
    match written {
        // The person left before the end.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(is_shown),
        written => written.map(|()| is_shown),
    }
}

/// Runs a program that has the terminal, as a shell starts it: `command` may have arguments, and `arguments` follow as they
/// are. Waits until the person leaves it; `Ok(false)` means that it failed or could not be started.
pub fn attend(command: &OsStr, arguments: &[&OsStr], cwd: &Utf8Path) -> io::Result<bool> {
    let _keys = InterruptKeys::leave()?;
    let mut script = OsString::from(WAITS);
    script.push(command);
    script.push(" \"$@\"");
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut shell = Command::new(find_program("sh").map_err(io::Error::other)?);
    shell.arg("-c").arg(script).arg(command).args(arguments).current_dir(cwd);
    Ok(shell.env("PATH", trusted_path()).status()?.success())
}

/// Ctrl-C and Ctrl-\, while they are keys of another program.
struct InterruptKeys {
    pressed: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl InterruptKeys {
    fn leave() -> io::Result<Self> {
        let mut keys = Self { pressed: Arc::default(), handlers: Vec::new() };
        // Handled and not ignored: a program that is started gets the default back only for those.
        for signal in [SIGINT, SIGQUIT] {
            let pressed = Arc::clone(&keys.pressed);
            keys.handlers.push(signal_hook::flag::register(signal, pressed)?);
        }
        Ok(keys)
    }

    fn were_pressed(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }
}

impl Drop for InterruptKeys {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
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

    #[test]
    fn ctrl_c_is_the_pager_s_and_nothing_ends_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("left");
        // The terminal sends the signal to this process, the shell and the pager.
        let pager = format!(
            "sh -c 'trap : INT; kill -INT '$PPID' '$$' $$; cat > /dev/null; echo > \"{}\"'",
            file.display()
        );
        assert!(page(OsStr::new(&pager), "FRX", b"words").unwrap());
        assert!(file.exists());
        let editor = "f() { kill -INT $PPID $$; : ; }; f";
        assert!(attend(OsStr::new(editor), &[], Utf8Path::new("/")).unwrap());
    }

    #[test]
    fn ctrl_c_is_noticed_while_it_is_a_key_of_another_program() {
        let keys = InterruptKeys::leave().unwrap();
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::INT).unwrap();
        while !keys.were_pressed() {
            std::thread::yield_now();
        }
    }
}
