//! One call of the program git.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use camino::Utf8Path;

use crate::cancel::Cancel;
use crate::tool::{Tool, ToolError};

/// The time limit of a call on local files: even large repositories need less, and a git that hangs must end.
const LOCAL: Duration = Duration::from_secs(300);
/// The time limit of a call that may talk to a remote.
const REMOTE: Duration = Duration::from_secs(600);
/// The bytes of standard error that an error keeps, counted from the end.
const TAIL: usize = 8 << 10;

/// Settings of every call: git starts no hook of the repository or the user, and no maintenance,
/// which would go on in the background after the call.
const QUIET: [&str; 3] = ["core.hooksPath=/dev/null", "gc.auto=0", "maintenance.auto=false"];
/// Settings of an isolated call. They name files that no variable switches off, and fix a default that depends on
/// the version.
const ISOLATED: [&str; 3] =
    ["core.attributesFile=/dev/null", "core.excludesFile=/dev/null", "diff.renames=true"];

/// Variables of every call: no prompt, no replaced objects, messages in English.
const PLAIN: [(&str, &str); 3] =
    [("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_REPLACE_OBJECTS", "1"), ("LC_ALL", "C")];
/// Variables of an isolated call: no configuration but that of the repository, no network, no opportunistic locks.
const ALONE: [(&str, &str); 8] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_COUNT", "0"),
    // The form in which an outer `git -c` passes its settings on, for example if we run below a git
    // alias or hook.
    ("GIT_CONFIG_PARAMETERS", ""),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // `git status` would otherwise refresh the index, for which it takes the lock that another git
    // may need.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // No protocol has this name, so not even a missing object of a partial clone is fetched.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PAGER", "cat"),
];
/// Variables of a call in the user's name: a program that asks for a password would wait forever.
// Empty and not unset: where `GIT_ASKPASS` is unset, git uses `core.askPass` and then
// `SSH_ASKPASS`.
const UNASKED: [(&str, &str); 2] = [("GIT_ASKPASS", ""), ("SSH_ASKPASS", "")];

/// One call of git, built up with chained calls and started with [`run`](Self::run).
///
/// ```
/// use camino::Utf8Path;
/// use pdca_process::GitCall;
///
/// let output = GitCall::as_user(Utf8Path::new("/")).args(["--version"]).run()?;
/// assert!(output.require("ask git for its version")?.text().starts_with("git version"));
/// # Ok::<(), pdca_process::GitCallError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is run"]
pub struct GitCall {
    tool: Tool,
    settings: Vec<String>,
    args: Vec<OsString>,
}

/// The output of a git that ended by itself, with any exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitOutput {
    /// The exit code.
    pub code: i32,
    /// The whole standard output.
    pub stdout: Vec<u8>,
    /// The standard error, without the line end.
    pub stderr: String,
    args: Vec<String>,
}

/// Failure of a git call.
#[derive(Debug, thiserror::Error)]
pub enum GitCallError {
    /// git exited with an error.
    #[error("cannot {doing}: git ended with {code}: {said}")]
    Failed {
        /// The operation, as a verb.
        doing: &'static str,
        /// The arguments after the settings.
        args: Vec<String>,
        /// The exit code.
        code: i32,
        /// The end of its standard error.
        said: String,
    },
    /// git could not be run to its end.
    #[error("cannot run git")]
    Tool {
        /// The arguments after the settings.
        args: Vec<String>,
        /// The error of the run.
        #[source]
        source: ToolError,
    },
}

impl GitCall {
    /// Describes a call for exactly this repository, started in its directory.
    ///
    /// git reads no configuration but that of the repository, talks to no remote and searches no parent directory.
    pub fn isolated(git_dir: &Utf8Path) -> Self {
        Self::new(&QUIET, &PLAIN)
            .settings(ISOLATED)
            .envs(&ALONE)
            .repository(git_dir)
            .cwd(git_dir)
            .timeout(LOCAL)
    }

    /// Describes a call with the configuration of the user, such as remotes and their credentials.
    ///
    /// git searches its repository from `cwd` unless [`repository`](Self::repository) names one.
    pub fn as_user(cwd: &Utf8Path) -> Self {
        Self::new(&QUIET, &PLAIN).envs(&UNASKED).cwd(cwd).timeout(REMOTE)
    }

    fn new(settings: &[&str], env: &[(&str, &str)]) -> Self {
        let call = Self { tool: Tool::new("git"), settings: Vec::new(), args: Vec::new() };
        call.settings(settings).envs(env)
    }

    /// Uses this program instead of the first `git` on `PATH`.
    pub fn program(mut self, program: &OsStr) -> Self {
        self.tool = self.tool.program(program);
        self
    }

    /// Adds settings of the form `name=value`, which override every configuration file.
    pub fn settings<S: AsRef<str>>(mut self, settings: impl IntoIterator<Item = S>) -> Self {
        self.settings.extend(settings.into_iter().map(|setting| setting.as_ref().to_owned()));
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Names the repository, so that git does not search for one.
    pub fn repository(self, git_dir: &Utf8Path) -> Self {
        self.env("GIT_DIR", git_dir.as_str())
    }

    /// Sets the working tree, and starts git there.
    pub fn work_tree(self, top: &Utf8Path) -> Self {
        self.env("GIT_WORK_TREE", top.as_str()).cwd(top)
    }

    /// Uses this index instead of the repository's own.
    pub fn index(self, path: &Utf8Path) -> Self {
        self.env("GIT_INDEX_FILE", path.as_str())
    }

    /// Uses this object directory instead of the repository's own.
    pub fn objects(self, dir: &Utf8Path) -> Self {
        self.env("GIT_OBJECT_DIRECTORY", dir.as_str())
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.tool = self.tool.env(name, value);
        self
    }

    fn envs(self, env: &[(&str, &str)]) -> Self {
        env.iter().fold(self, |call, (name, value)| call.env(name, *value))
    }

    fn cwd(mut self, cwd: &Utf8Path) -> Self {
        self.tool = self.tool.cwd(cwd);
        self
    }

    fn timeout(mut self, timeout: Duration) -> Self {
        self.tool = self.tool.timeout(timeout);
        self
    }

    /// Sets the standard input; the default is empty.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.tool = self.tool.stdin(bytes);
        self
    }

    /// Sets the longest standard output; a git that writes more is killed.
    pub fn max_stdout(mut self, bytes: usize) -> Self {
        self.tool = self.tool.max_stdout(bytes);
        self
    }

    /// Kills git on any cancellation; its work can be repeated.
    pub fn ended_by(mut self, cancel: Option<&Cancel>) -> Self {
        if let Some(cancel) = cancel {
            self.tool = self.tool.ended_by(cancel);
        }
        self
    }

    /// Runs git to its end. An exit code other than zero is not an error.
    pub fn run(self) -> Result<GitOutput, GitCallError> {
        let args: Vec<String> =
            self.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        // git takes `-c` only before its subcommand.
        let settings = self.settings.iter().flat_map(|setting| ["-c", setting]);
        match self.tool.args(settings).args(&self.args).run() {
            Ok(output) => {
                let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Ok(GitOutput { code: output.code, stdout: output.stdout, stderr, args })
            }
            Err(source) => Err(GitCallError::Tool { args, source }),
        }
    }
}

impl GitOutput {
    /// Returns true if the exit code is zero.
    pub fn success(&self) -> bool {
        self.code == 0
    }

    /// Returns the output if the exit code is zero; `doing` says in an error what was tried, as a verb.
    pub fn require(self, doing: &'static str) -> Result<Self, GitCallError> {
        match self.code {
            0 => Ok(self),
            code => {
                let mut from = self.stderr.len().saturating_sub(TAIL);
                while !self.stderr.is_char_boundary(from) {
                    from += 1;
                }
                let said = self.stderr[from..].to_owned();
                Err(GitCallError::Failed { doing, args: self.args, code, said })
            }
        }
    }

    /// Returns the standard output as text, without the line end.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn repository() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let top = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let made = GitCall::as_user(&top).args(["init", "--quiet"]).run().unwrap();
        assert!(made.success(), "{made:?}");
        (dir, top)
    }

    #[test]
    fn a_failure_names_the_operation_the_arguments_and_the_end_of_what_git_said() {
        let (_dir, top) = repository();
        let output = GitCall::isolated(&top.join(".git")).args(["cat-file", "-p", "no"]).run();
        let error = output.unwrap().require("read it").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read it: git ended with 128: fatal: Not a valid object name no"
        );
        let GitCallError::Failed { args, .. } = error else { panic!("{error:?}") };
        assert_eq!(args, ["cat-file", "-p", "no"]);
    }

    #[test]
    fn only_the_end_of_a_long_message_is_kept() {
        let stderr = format!("{}é{}", "x".repeat(100), "y".repeat(TAIL - 1));
        let output = GitOutput { code: 1, stdout: Vec::new(), stderr, args: Vec::new() };
        let GitCallError::Failed { said, .. } = output.require("try").unwrap_err() else {
            panic!("it was started")
        };
        assert_eq!(said, "y".repeat(TAIL - 1));
    }

    #[test]
    fn an_isolated_call_sees_the_settings_of_the_repository_and_of_the_call_alone() {
        let (_dir, top) = repository();
        let call = || GitCall::isolated(&top.join(".git"));
        let set = call().args(["config", "pdca.kept", "here"]).run().unwrap();
        assert!(set.success(), "{set:?}");
        let listed = |call: GitCall| {
            let output = call.args(["config", "--list", "--show-origin"]).run().unwrap().text();
            output.lines().filter(|line| !line.contains("core.")).map(str::to_owned).collect()
        };
        let seen: Vec<String> = listed(call().settings(["pdca.added=too"]));
        assert!(seen.iter().any(|line| line.ends_with("pdca.kept=here")), "{seen:?}");
        assert!(seen.iter().any(|line| line.ends_with("pdca.added=too")), "{seen:?}");
        let is_known = |line: &String| line.contains(".git/config") || line.starts_with("command");
        assert!(seen.iter().all(is_known), "{seen:?}");
    }

    #[test]
    fn a_hook_of_the_repository_does_not_run() {
        let (_dir, top) = repository();
        let hook = top.join(".git/hooks/post-index-change");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {top}/ran\n")).unwrap();
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        std::fs::write(top.join("file"), "text").unwrap();
        let isolated = GitCall::isolated(&top.join(".git")).work_tree(&top);
        for call in [isolated, GitCall::as_user(&top)] {
            let added = call.args(["add", "--all"]).run().unwrap();
            assert!(added.success(), "{added:?}");
        }
        assert!(!top.join("ran").exists());
    }

    #[test]
    fn a_program_that_is_missing_is_no_exit_code() {
        let missing = GitCall::as_user(Utf8Path::new("/")).program(OsStr::new("/nowhere/git"));
        let error = missing.args(["status"]).run().unwrap_err();
        assert!(matches!(error, GitCallError::Tool { .. }), "{error:?}");
    }
}
