//! A temporary git repository, made by the real git.

use std::{
    ffi::OsString,
    fs::Permissions,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use tempfile::TempDir;

/// A repository on branch `main`, with a fixed identity and fixed dates.
///
/// The same writes and commits give the same ids on every machine and in every run.
#[derive(Debug)]
pub struct Repo {
    path: Utf8PathBuf,
    /// Removes the directory when the value is dropped; none when the caller chose the place.
    _home: Option<TempDir>,
}

impl Repo {
    /// An empty repository in a directory of its own, with an unborn `main`.
    pub fn new() -> Self {
        let home = TempDir::new().expect("a temporary directory can be made");
        let path = utf8(home.path()).join("repo");
        Self { _home: Some(home), ..Self::at(&path) }
    }

    /// An empty repository at `path`, which the caller keeps alive.
    pub fn at(path: &Utf8Path) -> Self {
        fs::create_dir_all(path).expect("the place of a repository can be made");
        let path = utf8(path.as_std_path());
        run(&path, &["init", "--quiet", "--initial-branch=main"]);
        Self { path, _home: None }
    }

    /// A repository with one commit of one file, `README.md`.
    pub fn with_first_commit() -> Self {
        let repo = Self::new();
        repo.write("README.md", "hello\n");
        repo.commit("first");
        repo
    }

    /// Looks at a repository that something else made, as the caller's own `Repo`.
    pub fn existing(path: &Utf8Path) -> Self {
        Self { path: utf8(path.as_std_path()), _home: None }
    }

    /// The working tree.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Writes a file, with the directories above it.
    pub fn write(&self, file: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path.as_std_path().join(file);
        let parent = path.parent().expect("a file has a directory above it");
        fs::create_dir_all(parent).expect("directories can be made");
        fs::write(path, bytes).expect("a file can be written");
    }

    /// Writes an executable file, with the directories above it.
    pub fn write_executable(&self, file: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        self.write(&file, bytes);
        let path = self.path.as_std_path().join(file);
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode can be set");
    }

    /// Reads a file of the working tree.
    pub fn read(&self, file: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.path.as_std_path().join(file)).expect("a file can be read")
    }

    /// Commits everything that is there, ignored files apart, and says which commit it became.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    /// The commit that HEAD names.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Runs git here and gives what it printed, which must be UTF-8; panics when it fails.
    pub fn git(&self, args: &[&str]) -> String {
        String::from_utf8(self.git_bytes(args)).expect("git printed UTF-8")
    }

    /// Runs git here and gives the bytes it printed; panics when it fails.
    pub fn git_bytes(&self, args: &[&str]) -> Vec<u8> {
        run(&self.path, args)
    }

    /// Runs git here, whatever comes of it.
    pub fn try_git(&self, args: &[&str]) -> Output {
        start(&self.path, args)
    }

    /// What `git status` says, in the form that does not change between versions.
    ///
    /// Takes no lock and refreshes no index, so that looking changes nothing.
    pub fn status(&self) -> String {
        let all = ["status", "--porcelain=v2", "--branch", "--untracked-files=all"];
        String::from_utf8_lossy(&self.git_bytes(&all)).into_owned()
    }
}

impl Default for Repo {
    fn default() -> Self {
        Self::new()
    }
}

/// Turns a path of the machine into one that is UTF-8 and free of symbolic links.
pub(crate) fn utf8(path: &Path) -> Utf8PathBuf {
    let real = fs::canonicalize(path).expect("the directory exists");
    Utf8PathBuf::from_path_buf(real).expect("temporary directories have UTF-8 names")
}

fn run(path: &Utf8Path, args: &[&str]) -> Vec<u8> {
    let output = start(path, args);
    assert!(
        output.status.success(),
        "git {args:?} in {path} ended with {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    output.stdout
}

fn start(path: &Utf8Path, args: &[&str]) -> Output {
    isolated_git()
        .current_dir(path)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("git is installed")
}

/// git as it is on every machine: no configuration of the user, fixed identity and dates.
#[expect(
    clippy::disallowed_methods,
    reason = "a fixture is made by git itself, with nothing of ours between"
)]
fn isolated_git() -> Command {
    let mut git = Command::new("git");
    // Also those that git sets for its hooks and aliases, which may run the tests, and the settings of an outer `git -c`.
    for name in of_git(std::env::vars_os().map(|(name, _)| name)) {
        git.env_remove(name);
    }
    git.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("LC_ALL", "C")
        // A collection in the background would change files while a test compares them.
        .args(["-c", "init.defaultBranch=main", "-c", "gc.auto=0", "-c", "commit.gpgSign=false"])
        // Since 2.38.1 git refuses submodules from a local path otherwise.
        .args(["-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false"]);
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "A Tester")
            .env(format!("GIT_{role}_EMAIL"), "tester@example.com")
            .env(format!("GIT_{role}_DATE"), "2001-02-03T04:05:06+00:00");
    }
    git
}

/// Returns the variables that change what git does.
fn of_git(names: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    names.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{Repo, of_git};

    #[test]
    fn every_variable_of_git_is_removed_also_settings_of_an_outer_call() {
        let set = ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_NAMESPACE", "PATH", "DIGIT_X"];
        let removed: Vec<_> = of_git(set.into_iter().map(OsString::from)).collect();
        assert_eq!(removed, ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_NAMESPACE"]);
    }

    #[test]
    fn the_same_steps_give_the_same_commit() {
        let make = || Repo::with_first_commit().head();
        assert_eq!(make(), make());
    }

    #[test]
    fn a_new_repository_is_on_an_unborn_main() {
        let repo = Repo::new();
        assert_eq!(repo.git(&["symbolic-ref", "HEAD"]).trim(), "refs/heads/main");
        assert!(!repo.try_git(&["rev-parse", "--verify", "HEAD"]).status.success());
    }

    #[test]
    #[should_panic(expected = "bad revision")]
    fn a_failed_step_panics_with_what_git_said() {
        Repo::new().git(&["log", "no-such-branch", "--"]);
    }
}
