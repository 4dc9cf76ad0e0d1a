//! Every call of the program `git`, each with the reason why gix does not do it.
//!
//! git always gets an explicit repository, so that it never searches the parent directories for another one, a private
//! index where it needs one, and nothing of the user's configuration.

use camino::Utf8Path;
use fs_err as fs;
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
};
use pdca_process::{Cancel, GitCall, GitCallError, GitOutput};

use crate::{
    failure::LaneError,
    room::CheckoutRepository,
    stage::{ATTRIBUTES, NEW_INDEX},
};

/// Settings that override every configuration file, beside those of every isolated call.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.quotePath=true",
    "core.safecrlf=false",
    "core.pager=cat",
    "index.version=2",
    "index.sparse=false",
    "commit.gpgSign=false",
    "diff.external=",
    "diff.orderFile=/dev/null",
    "diff.suppressBlankEmpty=false",
    "diff.submodule=short",
    "apply.whitespace=nowarn",
    "apply.ignoreWhitespace=no",
    "advice.addEmbeddedRepo=false",
    "submodule.recurse=false",
];

/// A repository and the index that git works with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneGit<'a> {
    pub(crate) room: &'a CheckoutRepository,
    pub(crate) index: &'a Utf8Path,
    /// Ends git on cancellation; its work is repeated later.
    pub(crate) cancel: Option<&'a Cancel>,
}

impl LaneGit<'_> {
    /// Stages the whole working tree into the index.
    ///
    /// Done by git because git is the authority on how a file enters a commit: line ends, modes, ignore rules, and
    /// files that replace directories.
    pub(crate) fn add_all(&self, nested: &[BString]) -> Result<(), LaneError> {
        // On standard input: the paths of many nested repositories could exceed the longest command
        // line.
        let mut paths = b".\0".to_vec();
        for path in nested {
            // git would add a repository inside the checkout as a submodule without its content.
            paths.extend_from_slice(b":(top,exclude,literal)");
            paths.extend_from_slice(path);
            paths.push(0);
        }
        let args = ["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        self.must("stage the working tree", &args, paths).map(drop)
    }

    /// Compares the files without known stat data, and records it for those that are unchanged.
    ///
    /// Done by git because it decides whether a file is unchanged, and because it refuses to apply a patch to a file
    /// that it has not compared.
    pub(crate) fn refresh(&self) -> Result<(), LaneError> {
        // Exits with an error if some file differs; the caller finds that out by itself.
        Ok(self.call(&["update-index", "-q", "--refresh"]).run().map(drop)?)
    }

    /// Writes the index as a tree. Done by git because gix has no such function.
    pub(crate) fn write_tree(&self) -> Result<ObjectId, LaneError> {
        let (doing, args) = ("write the tree", ["write-tree"]);
        let said = self.must(doing, &args, Vec::new())?.text();
        ObjectId::from_hex(said.as_bytes()).map_err(|_| {
            let args = args.map(str::to_owned).to_vec();
            GitCallError::Failed { doing, args, code: 0, said }.into()
        })
    }

    /// Applies a patch to working tree and index, all of it or nothing.
    ///
    /// Done by git because gix does not apply patches.
    pub(crate) fn apply(&self, patch: &[u8]) -> Result<GitOutput, LaneError> {
        let args = ["apply", "--index", "--binary", "-p1", "--whitespace=nowarn", "-"];
        Ok(self.call(&args).stdin(patch).run()?)
    }

    /// Returns the paths in the index whose file differs, by content if the stat data is not enough.
    ///
    /// Done by git for the same reason as staging: it decides whether a file differs.
    pub(crate) fn changed(&self) -> Result<Vec<BString>, LaneError> {
        let args = [
            "diff",
            "--name-only",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=all",
        ];
        let said = self.must("compare the working tree", &args, Vec::new())?;
        let paths = said.stdout.split_str("\0").filter(|path| !path.is_empty());
        Ok(paths.map(BString::from).collect())
    }

    /// Returns the difference of two commits as a patch; see [`patch_between`].
    pub(crate) fn diff(&self, base: &str, head: &str) -> Result<Vec<u8>, LaneError> {
        let name = self.index.as_str();
        let empty = format!("{}{ATTRIBUTES}", name.strip_suffix(NEW_INDEX).unwrap_or(name));
        let (git_dir, empty) = (self.room.git_dir(), Utf8Path::new(&empty));
        let call = diff_call(&git_dir, empty, (base, head), self.cancel)?;
        Ok(call.settings(self.room.muted()).run()?.require("make the patch")?.stdout)
    }

    /// Writes HEAD and every ref except those of remotes into a bundle at `path`, without the history of `have`.
    /// Returns the refs in it; `None`, without creating a file, if `have` already contains everything.
    ///
    /// Done by git because gix writes no bundles.
    pub(crate) fn bundle(
        &self,
        path: &Utf8Path,
        have: &[String],
    ) -> Result<Option<Vec<String>>, LaneError> {
        // Remote-tracking refs were copied from the primary and are not work of the lane.
        const OWN: [&str; 4] = ["--exclude=refs/remotes/*", "--all", "HEAD", "--stdin"];
        let mut without = String::new();
        // On standard input: a primary may have more refs than a command line holds.
        for commit in have {
            without.extend(["^", commit, "\n"]);
        }
        // Asked first, because git fails to create an empty bundle.
        let list = [&["rev-list", "--max-count=1"], &OWN[..]].concat();
        let more = self.must("look for work to keep", &list, without.clone().into_bytes())?;
        if more.stdout.is_empty() {
            return Ok(None);
        }
        let create = [&["bundle", "create", "--quiet", path.as_str()], &OWN[..]].concat();
        self.must("write a bundle", &create, without.into_bytes())?;
        let heads =
            self.must("read the bundle", &["bundle", "list-heads", path.as_str()], Vec::new())?;
        Ok(Some(heads.stdout.lines().map(|line| line.to_str_lossy().into_owned()).collect()))
    }

    fn must(
        &self,
        doing: &'static str,
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<GitOutput, LaneError> {
        Ok(self.call(args).stdin(stdin).run()?.require(doing)?)
    }

    fn call(&self, args: &[&str]) -> GitCall {
        let git_dir = self.room.git_dir();
        let (checkout, index, cancel) = (self.room.checkout(), self.index, self.cancel);
        let place = GitLocation { git_dir: &git_dir, checkout, index, cancel };
        place.call(args).settings(self.room.muted())
    }
}

/// Returns the difference of two commits of a repository as a patch that git can apply, always with the same bytes.
///
/// No attributes take part, neither of the commits nor of a working tree: whether a file is text follows from its
/// content, so that a change cannot decide how it is shown. `empty` names a directory that is made and stays empty.
pub fn patch_between(
    git_dir: &Utf8Path,
    empty: &Utf8Path,
    commits: (&str, &str),
) -> Result<Vec<u8>, LaneError> {
    let said = diff_call(git_dir, empty, commits, None)?.run()?;
    Ok(said.require("make the patch")?.stdout)
}

/// Done by git because people and tools expect the patch that git writes. Uses the plumbing command, which depends on
/// the least configuration.
fn diff_call(
    git_dir: &Utf8Path,
    empty: &Utf8Path,
    (base, head): (&str, &str),
    cancel: Option<&Cancel>,
) -> Result<GitCall, LaneError> {
    fs::create_dir_all(empty)
        .map_err(|source| LaneError::Io { doing: "make an empty directory", source })?;
    // git reads attributes from the working tree, and from the index where a file is missing there. Both are empty.
    let index = empty.join("index");
    let place = GitLocation { git_dir, checkout: empty, index: &index, cancel };
    Ok(place.call(&[
        "diff-tree",
        "-r",
        "-p",
        "--binary",
        "--full-index",
        "--find-renames=50%",
        // Fixed, because above this limit renames are not looked for, and its default has changed between versions of
        // git.
        "-l1000",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--no-relative",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--unified=3",
        "--inter-hunk-context=0",
        "--diff-algorithm=myers",
        "--indent-heuristic",
        "--submodule=short",
        "--ignore-submodules=none",
        "--end-of-options",
        base,
        head,
    ]))
}

/// The paths of a repository, for a git that must not search for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GitLocation<'a> {
    pub(crate) git_dir: &'a Utf8Path,
    pub(crate) checkout: &'a Utf8Path,
    pub(crate) index: &'a Utf8Path,
    pub(crate) cancel: Option<&'a Cancel>,
}

impl GitLocation<'_> {
    /// Returns the untracked files that the patterns in a file match, sorted; a repository among them ends in `/`.
    ///
    /// Done by git because the patterns, and the meaning of untracked, are git's.
    pub(crate) fn matching(&self, patterns: &Utf8Path) -> Result<Vec<BString>, LaneError> {
        let from = format!("--exclude-from={patterns}");
        let args = ["ls-files", "--others", "--ignored", "-z", from.as_str()];
        let said = self.call(&args).run()?.require("find the files to include")?;
        let paths = said.stdout.split_str("\0").filter(|path| !path.is_empty());
        Ok(paths.map(BString::from).collect())
    }

    fn call(&self, args: &[&str]) -> GitCall {
        GitCall::isolated(self.git_dir)
            .settings(SETTINGS)
            .args(args)
            .work_tree(self.checkout)
            .index(self.index)
            .ended_by(self.cancel)
    }
}
