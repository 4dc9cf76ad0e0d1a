//! Carries requests to a host: through the `ssh` program, or to a process of this machine.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_process::{Cancel, Tool, ToolError, ToolOutput};

/// The exit code with which `ssh` tells of its own failures.
const SSH_FAILED: i32 = 255;
/// The exit codes with which a shell tells that a program is missing or no program.
const NOT_FOUND: [i32; 2] = [126, 127];
/// The longest answer, in bytes: the files of a result and the pack of its commits. It is held in memory.
const MAX_ANSWER: usize = 2 << 30;

/// Carries the bytes of one request to a host and the bytes of its answer back.
pub trait Transport: std::fmt::Debug + Send + Sync {
    /// Sends a request, and returns the answer.
    fn send(
        &self,
        bytes: Vec<u8>,
        limit: Duration,
        cancel: Option<&Cancel>,
    ) -> Result<Vec<u8>, TransportError>;

    /// Puts a program where requests are answered.
    fn install(&self, program: Vec<u8>, limit: Duration) -> Result<(), TransportError>;
}

/// The reason why there is no answer. The request may have had its effect.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The host does not answer, or the link was cut.
    #[error("{said}")]
    Link { said: String },
    /// The host has no program that answers.
    #[error("no pdca is installed there: {said}")]
    NoProgram { said: String },
    /// The answer does not get shorter when it is asked for again.
    #[error("the answer has more than {limit} bytes")]
    TooLong { limit: usize },
    /// Another user of this machine could answer in the name of the host.
    #[error("the directory {dir} of control sockets {why}; remove it, or set XDG_RUNTIME_DIR")]
    NotPrivate { dir: Utf8PathBuf, why: &'static str },
    #[error("cancelled")]
    Cancelled,
}

impl TransportError {
    fn of_tool(error: &ToolError) -> Self {
        if matches!(error, ToolError::Cancelled { .. }) {
            return Self::Cancelled;
        }
        if let ToolError::TooMuchOutput { limit, .. } = error {
            return Self::TooLong { limit: *limit };
        }
        Self::Link { said: pdca_state::chain(error) }
    }
}

/// The `ssh` program, with the user's configuration, agent and known hosts.
///
/// One connection is kept open for all requests. The user's settings stand, but for these: nobody is asked for a
/// password, nothing is forwarded to the host (agent, display, ports), and a dead link is noticed.
#[derive(Debug, Clone)]
pub struct Ssh {
    host: String,
    /// The root as a word of a remote shell; `~` is the home there.
    root: String,
    /// The directory of the control socket.
    sockets: Utf8PathBuf,
    /// The seconds after which a silent link is dead.
    alive_secs: u64,
}

impl Ssh {
    /// `host` is a name of the user's `~/.ssh/config`; `root` must be [`is_plain_root`].
    pub fn new(host: &str, root: &str, sockets: Utf8PathBuf, alive_secs: u64) -> Self {
        let (host, root) = (host.to_owned(), root.to_owned());
        Self { host, root, sockets, alive_secs: alive_secs.max(2) }
    }

    fn tool(&self, command: &str) -> Tool {
        let third = (self.alive_secs / 3).max(1);
        let settings = [
            // A question for a password would wait for a person until the time of the request is
            // over.
            "BatchMode=yes".to_owned(),
            // A process on the host could use the keys of a forwarded agent.
            "ForwardAgent=no".to_owned(),
            "ForwardX11=no".to_owned(),
            // Forwarded ports of the user's configuration would be bound a second time by each
            // connection.
            "ClearAllForwardings=yes".to_owned(),
            "PermitLocalCommand=no".to_owned(),
            // One connection for all requests: each would otherwise pay for a key exchange
            // (decision 064).
            "ControlMaster=auto".to_owned(),
            "ControlPersist=120".to_owned(),
            // `%C` is a hash of a fixed length; the path of a socket has at most about a hundred
            // bytes.
            format!("ControlPath={}/%C", self.sockets),
            format!("ConnectTimeout={}", self.alive_secs.min(15)),
            // Three unanswered probes end the connection after `alive_secs`.
            format!("ServerAliveInterval={third}"),
            "ServerAliveCountMax=3".to_owned(),
        ];
        let settings = settings.iter().flat_map(|setting| ["-o", setting.as_str()]);
        // No terminal: it would change the bytes of the answer.
        Tool::new("ssh").args(settings).args(["-T", "--", self.host.as_str(), command])
    }
}

/// Reads how `ssh` ended.
fn answer(ran: Result<ToolOutput, ToolError>) -> Result<Vec<u8>, TransportError> {
    let output = ran.map_err(|error| TransportError::of_tool(&error))?;
    let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.code {
        0 => Ok(output.stdout),
        code if NOT_FOUND.contains(&code) => Err(TransportError::NoProgram { said: said() }),
        SSH_FAILED => Err(TransportError::Link { said: said() }),
        code => Err(TransportError::Link { said: format!("ended with {code}: {}", said()) }),
    }
}

impl Transport for Ssh {
    fn send(
        &self,
        bytes: Vec<u8>,
        limit: Duration,
        cancel: Option<&Cancel>,
    ) -> Result<Vec<u8>, TransportError> {
        make_private(&self.sockets)?;
        // Not quoted, because the remote shell has to expand `~`; `is_plain_root` allows no other
        // character that a shell treats.
        let command = format!("exec {0}/bin/pdca host-agent --root {0}", self.root);
        let tool = self.tool(&command).stdin(bytes).timeout(limit);
        let mut tool = tool.max_stdout(MAX_ANSWER);
        if let Some(cancel) = cancel {
            tool = tool.ended_by(cancel);
        }
        answer(tool.run())
    }

    fn install(&self, program: Vec<u8>, limit: Duration) -> Result<(), TransportError> {
        make_private(&self.sockets)?;
        // Renamed, so that a runner that uses the old program keeps it.
        let command = format!(
            "umask 077 && mkdir -p {0}/bin && cat > {0}/bin/pdca.new && chmod 700 {0}/bin/pdca.new && \
             mv -f {0}/bin/pdca.new {0}/bin/pdca",
            self.root
        );
        let tool = self.tool(&command).stdin(program).timeout(limit);
        answer(tool.run()).map(drop)
    }
}

/// Makes the directory of control sockets. Whoever can write there could answer in the name of a host.
fn make_private(dir: &camino::Utf8Path) -> Result<(), TransportError> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    let failed = |error: std::io::Error| TransportError::Link { said: format!("{dir}: {error}") };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    // Without XDG_RUNTIME_DIR it lies in /tmp, where another user may have made it first. The link
    // itself is looked at and not its target, which could be exchanged afterwards.
    let found = dir.symlink_metadata().map_err(failed)?;
    let why = if !found.is_dir() {
        "is not a directory"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "belongs to another user"
    } else if found.mode() & 0o077 != 0 {
        "is open to other users"
    } else {
        return Ok(());
    };
    Err(TransportError::NotPrivate { dir: dir.to_owned(), why })
}

/// Returns whether a root is safe as a word of any remote shell.
pub fn is_plain_root(root: &str) -> bool {
    let rest = root.strip_prefix("~/").or_else(|| root.strip_prefix('/'));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-+@".contains(c);
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && rest.chars().all(is_plain)
            && rest
                .split('/')
                .all(|part| !part.is_empty() && part != ".." && !part.starts_with('-'))
    })
}

/// Returns whether a name is safe as the destination of `ssh`.
pub fn is_plain_host(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    !name.is_empty() && !name.starts_with(['-', '.']) && name.chars().all(is_plain)
}

/// A process of this machine with a root of its own: the same bytes without a link, for `localhost` and for tests.
#[derive(Debug, Clone)]
pub struct LocalProcess {
    program: Utf8PathBuf,
    root: Utf8PathBuf,
}

impl LocalProcess {
    pub fn new(program: Utf8PathBuf, root: Utf8PathBuf) -> Self {
        Self { program, root }
    }
}

impl Transport for LocalProcess {
    fn send(
        &self,
        bytes: Vec<u8>,
        limit: Duration,
        cancel: Option<&Cancel>,
    ) -> Result<Vec<u8>, TransportError> {
        let args = ["host-agent", "--root", self.root.as_str()];
        let tool = Tool::new(self.program.as_os_str()).args(args).stdin(bytes).timeout(limit);
        let mut tool = tool.max_stdout(MAX_ANSWER);
        if let Some(cancel) = cancel {
            tool = tool.ended_by(cancel);
        }
        let output = tool.run().map_err(|error| TransportError::of_tool(&error))?;
        if output.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(TransportError::Link { said })
    }

    fn install(&self, _: Vec<u8>, _: Duration) -> Result<(), TransportError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_root_that_no_shell_can_read_otherwise_is_taken() {
        for good in ["~/.pdca-host", "/srv/pdca", "/a/b-c_d.e"] {
            assert!(is_plain_root(good), "{good}");
        }
        for bad in
            ["", "~", "/", "relative", "~/a b", "/a;b", "/a/../b", "/a/$HOME", "~/-x", "/a//b"]
        {
            assert!(!is_plain_root(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_directory_of_sockets_that_others_can_enter_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let top = tempfile::tempdir().unwrap();
        let top = camino::Utf8Path::from_path(top.path()).unwrap();
        let own = top.join("own");
        make_private(&own).unwrap();
        make_private(&own).unwrap();
        symlink(&own, top.join("link")).unwrap();
        let open = top.join("open");
        fs_err::create_dir(&open).unwrap();
        fs_err::set_permissions(&open, std::fs::Permissions::from_mode(0o770)).unwrap();
        for (dir, expected) in [(top.join("link"), "not a directory"), (open, "open to other")] {
            let error = make_private(&dir).unwrap_err();
            assert!(error.to_string().contains(dir.as_str()), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!crate::HostError::from(error).is_passing());
        }
    }

    #[test]
    fn an_answer_that_is_too_long_is_not_asked_for_again() {
        let flooded = ToolError::TooMuchOutput { program: "ssh".into(), limit: 5 };
        let error = TransportError::of_tool(&flooded);
        assert!(!crate::HostError::from(error).is_passing());
    }

    #[test]
    fn a_host_that_would_be_an_option_is_refused() {
        for bad in ["", "-oProxyCommand=x", "a b", "a;b", "a/b"] {
            assert!(!is_plain_host(bad), "{bad:?}");
        }
        assert!(is_plain_host("me@build1.example.org"));
    }
}
