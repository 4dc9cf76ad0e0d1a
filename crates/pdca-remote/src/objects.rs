//! Git objects that travel: thin packs between the driver's repository and a host's.

use camino::Utf8Path;
use pdca_process::{GitCall, GitCallError};

/// The namespace of refs that keep what was brought to a host.
const BASES: &str = "refs/pdca/bases/";

/// Returns a pack of everything that `wanted` reaches and `have` does not. Commits of `have` that are not here are left
/// out of the question.
pub(crate) fn pack(
    git_dir: &Utf8Path,
    wanted: &[String],
    have: &[String],
) -> Result<Vec<u8>, GitCallError> {
    // git fails for a commit that it does not have.
    let have = present(git_dir, have)?;
    let lines = wanted.iter().cloned().chain(have.iter().map(|commit| format!("^{commit}")));
    let input: String = lines.map(|line| line + "\n").collect();
    let args = ["pack-objects", "--revs", "--thin", "--stdout", "--delta-base-offset", "--quiet"];
    let call = GitCall::isolated(git_dir).settings(["pack.threads=1"]).args(args);
    // Not bounded here: a history may have any size, and a host names the size of a request that is
    // too long for it.
    let call = call.stdin(input).max_stdout(usize::MAX);
    Ok(call.run()?.require("pack the commits")?.stdout)
}

/// Returns those of the commits that are in a repository.
pub(crate) fn present(git_dir: &Utf8Path, commits: &[String]) -> Result<Vec<String>, GitCallError> {
    if commits.is_empty() {
        return Ok(Vec::new());
    }
    let asked = commits.iter().flat_map(|commit| [commit.as_str(), "^{commit}\n"]);
    let input: String = asked.collect();
    let args = ["cat-file", "--batch-check=%(objectname)"];
    let output = GitCall::isolated(git_dir).args(args).stdin(input).run()?;
    let said = output.require("look for commits")?.text();
    let is_there = |(commit, line): (&String, &str)| (line == commit).then(|| commit.clone());
    Ok(commits.iter().zip(said.lines()).filter_map(is_there).collect())
}

/// Returns the commits whose parents are missing because a repository was cloned without its whole history.
pub(crate) fn shallow_commits(common_dir: &Utf8Path) -> Vec<String> {
    let text = fs_err::read_to_string(common_dir.join("shallow")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Makes a bare repository unless it is there, and adds commits whose parents are missing.
pub(crate) fn require_repository(
    git_dir: &Utf8Path,
    format: &str,
    shallow: &[String],
) -> Result<(), GitCallError> {
    if !git_dir.join("HEAD").exists() {
        let parent = git_dir.parent().unwrap_or(git_dir);
        let args = ["init", "--quiet", "--bare", "--template=", "--initial-branch=main"];
        // Not isolated: such a call names a repository, and there is none yet. `--template=` keeps
        // out the hooks of the host's user.
        let call = GitCall::as_user(parent).args(args);
        let format = format!("--object-format={format}");
        call.args([format.as_str(), git_dir.as_str()]).run()?.require("make a repository")?;
    }
    if !shallow.is_empty() {
        let mut all = shallow_commits(git_dir);
        all.extend(
            shallow.iter().filter(|commit| !shallow_commits(git_dir).contains(commit)).cloned(),
        );
        let text: String = all.iter().flat_map(|commit| [commit.as_str(), "\n"]).collect();
        // The pack behind it is refused if this is lost.
        drop(pdca_state::files::replace(git_dir.join("shallow"), text.as_bytes()));
    }
    Ok(())
}

/// Keeps commits with their history, and tells later drivers that they are here.
pub(crate) fn keep(git_dir: &Utf8Path, commits: &[String]) -> Result<(), GitCallError> {
    for commit in commits {
        let name = format!("{BASES}{commit}");
        let args = ["update-ref", name.as_str(), commit.as_str()];
        GitCall::isolated(git_dir).args(args).run()?.require("keep a commit")?;
    }
    // A repository counts as one only if its HEAD leads to a commit; which one, matters to nobody.
    if let Some(commit) = commits.first() {
        let args = ["update-ref", "HEAD", commit.as_str()];
        GitCall::isolated(git_dir).args(args).run()?.require("set HEAD")?;
    }
    Ok(())
}

/// Returns whether all of the commits are kept with their history.
pub(crate) fn keeps_all(git_dir: &Utf8Path, commits: &[String]) -> Result<bool, GitCallError> {
    // Asked by name: the answer of `kept` is bounded and leaves out older commits.
    let names = commits.iter().map(|commit| format!("{BASES}{commit}"));
    let call = GitCall::isolated(git_dir).args(["for-each-ref", "--format=%(objectname)"]);
    let said = call.args(names).run()?.require("look for kept commits")?.text();
    Ok(commits.iter().all(|commit| said.lines().any(|line| line == commit)))
}

/// Returns the newest commits that are kept with their history.
pub(crate) fn kept(git_dir: &Utf8Path) -> Result<Vec<String>, GitCallError> {
    if !git_dir.join("HEAD").exists() {
        return Ok(Vec::new());
    }
    let args =
        ["for-each-ref", "--sort=-committerdate", "--count=64", "--format=%(objectname)", BASES];
    let output = GitCall::isolated(git_dir).args(args).run()?;
    Ok(output.require("list commits")?.text().lines().map(str::to_owned).collect())
}
