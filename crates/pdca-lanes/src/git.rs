//! Everything that goes through the program `git`, and why.
//!
//! Always with an explicit repository, so that git never climbs to another one, with a
//! private index where one is needed, and with nothing of the user's configuration.

use std::{io, time::Duration};

use camino::Utf8Path;
use fs_err as fs;
use gix::bstr::{BString, ByteSlice as _};
use pdca_process::{Cancel, InstalledGit, Tool};

use crate::{
    failure::LaneError,
    room::Room,
    stage::{ATTRIBUTES, NEW_INDEX},
};

/// Longer than any of these takes on a large repository; a git that hangs must end.
const PATIENCE: Duration = Duration::from_secs(300);

/// What must hold whatever a configuration file says.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.quotePath=true",
    "core.safecrlf=false",
    "core.pager=cat",
    "index.version=2",
    "index.sparse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "diff.external=",
    "diff.orderFile=/dev/null",
    "diff.renames=true",
    "diff.suppressBlankEmpty=false",
    "diff.submodule=short",
    "apply.whitespace=nowarn",
    "apply.ignoreWhitespace=no",
    "advice.addEmbeddedRepo=false",
    "submodule.recurse=false",
];

/// Where git works and with which index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Git<'a> {
    pub(crate) room: &'a Room,
    pub(crate) index: &'a Utf8Path,
    /// Ends git when an end is asked for: what it was about is done again.
    pub(crate) cancel: Option<&'a Cancel>,
}

/// What git said.
#[derive(Debug)]
pub(crate) struct GitOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Git<'_> {
    /// Stages the whole working tree into the index.
    ///
    /// Through git because only git is the authority on what a file becomes on its way into a
    /// commit: line ends, modes, what is ignored, what replaces what.
    pub(crate) fn add_all(&self, nested: &[BString]) -> Result<(), LaneError> {
        let mut paths = b".\0".to_vec();
        for path in nested {
            paths.extend_from_slice(b":(top,exclude,literal)");
            paths.extend_from_slice(path);
            paths.push(0);
        }
        let args = ["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        self.must("stage the working tree", &args, paths).map(drop)
    }

    /// Compares files whose stat data is not known, and notes it for those that are the same.
    ///
    /// Through git because only git says what counts as the same, and because it refuses to
    /// apply a patch to a file that it has not compared.
    pub(crate) fn refresh(&self) -> Result<(), LaneError> {
        // Ends with an error when some file differs, which is for whoever comes next to judge.
        self.run(&["update-index", "-q", "--refresh"], Vec::new(), &[]).map(drop)
    }

    /// Writes the index as a tree. Through git because gix has no such call.
    pub(crate) fn write_tree(&self) -> Result<String, LaneError> {
        let said = self.must("write the tree", &["write-tree"], Vec::new())?;
        Ok(said.stdout.to_str_lossy().trim().to_owned())
    }

    /// Applies a patch to working tree and index, all of it or nothing.
    ///
    /// Through git because gix does not apply patches.
    pub(crate) fn apply(&self, patch: &[u8]) -> Result<GitOutput, LaneError> {
        self.run(
            &["apply", "--index", "--binary", "-p1", "--whitespace=nowarn", "-"],
            patch.to_vec(),
            &[],
        )
    }

    /// The paths in the index whose file differs, by content where the stat data does not tell.
    ///
    /// Through git for the same reason as staging: it decides what counts as different.
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

    /// The difference of two commits as a patch that git applies again, byte for byte the same.
    ///
    /// Through git because what people and tools expect of a patch is what git writes. The
    /// plumbing command, which listens to the least configuration; attributes come from the
    /// newer commit and not from whatever the working tree holds.
    pub(crate) fn diff(&self, base: &str, head: &str) -> Result<Vec<u8>, LaneError> {
        let args = [
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--find-renames=50%",
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
        ];
        let installed = InstalledGit::find().map_err(|source| LaneError::NoGit { source })?;
        let said = if installed.is_at_least(2, 41) {
            self.run(&args, Vec::new(), &[("GIT_ATTR_SOURCE", head)])?
        } else {
            self.with_attributes_of(head, &args)?
        };
        succeeded("make the patch", said).map(|said| said.stdout)
    }

    /// Runs git with the attributes of a commit, where it is too old to take them from there.
    ///
    /// Where a file is missing in the working tree, git takes its attributes from the index. So it
    /// gets an index of that commit, and a working tree in which everything is missing.
    fn with_attributes_of(&self, commit: &str, args: &[&str]) -> Result<GitOutput, LaneError> {
        let name = self.index.as_str();
        let dir = format!("{}{ATTRIBUTES}", name.strip_suffix(NEW_INDEX).unwrap_or(name));
        let dir = Utf8Path::new(&dir);
        let io = |source| LaneError::Io { doing: "lay out attributes", source };
        let clear = || match fs::remove_dir_all(dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        };
        clear().map_err(io)?;
        let (top, index) = (dir.join("top"), dir.join("index"));
        fs::create_dir_all(&top).map_err(io)?;
        let git_dir = self.room.git_dir();
        let (checkout, cancel) = (top.as_path(), self.cancel);
        let place = GitLocation { git_dir: &git_dir, checkout, index: &index, cancel };
        let read = place.run(self.room.muted(), &["read-tree", commit], Vec::new(), &[])?;
        succeeded("read the attributes", read)?;
        let said = place.run(self.room.muted(), args, Vec::new(), &[])?;
        clear().map_err(io)?;
        Ok(said)
    }

    /// Writes every ref but those of remotes, and HEAD, into a bundle at `path`, without the history
    /// of `have`, and says which refs it has; none, and no file, when all of it is there already.
    ///
    /// Through git because gix writes no bundles.
    pub(crate) fn bundle(
        &self,
        path: &Utf8Path,
        have: &[String],
    ) -> Result<Option<Vec<String>>, LaneError> {
        const OWN: [&str; 4] = ["--exclude=refs/remotes/*", "--all", "HEAD", "--stdin"];
        let mut without = String::new();
        for commit in have {
            without.extend(["^", commit, "\n"]);
        }
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
        succeeded(doing, self.run(args, stdin, &[])?)
    }

    fn run(
        &self,
        args: &[&str],
        stdin: Vec<u8>,
        env: &[(&str, &str)],
    ) -> Result<GitOutput, LaneError> {
        let git_dir = self.room.git_dir();
        let (checkout, index, cancel) = (self.room.checkout(), self.index, self.cancel);
        let place = GitLocation { git_dir: &git_dir, checkout, index, cancel };
        place.run(self.room.muted(), args, stdin, env)
    }
}

/// A repository by its parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GitLocation<'a> {
    pub(crate) git_dir: &'a Utf8Path,
    pub(crate) checkout: &'a Utf8Path,
    pub(crate) index: &'a Utf8Path,
    pub(crate) cancel: Option<&'a Cancel>,
}

impl GitLocation<'_> {
    /// The untracked files that the patterns in a file match, sorted; a repository among them ends
    /// in `/`.
    ///
    /// Through git because the patterns are git's, and so is what counts as untracked.
    pub(crate) fn matching(&self, patterns: &Utf8Path) -> Result<Vec<BString>, LaneError> {
        let from = format!("--exclude-from={patterns}");
        let args = ["ls-files", "--others", "--ignored", "-z", from.as_str()];
        let said = self.run(&[], &args, Vec::new(), &[])?;
        let said = succeeded("find the files to include", said)?;
        let paths = said.stdout.split_str("\0").filter(|path| !path.is_empty());
        Ok(paths.map(BString::from).collect())
    }

    fn run(
        &self,
        muted: &[String],
        args: &[&str],
        stdin: Vec<u8>,
        env: &[(&str, &str)],
    ) -> Result<GitOutput, LaneError> {
        let checkout = self.checkout;
        let fixed = [
            ("GIT_DIR", self.git_dir.as_str()),
            ("GIT_WORK_TREE", checkout.as_str()),
            ("GIT_INDEX_FILE", self.index.as_str()),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_PAGER", "cat"),
            ("LC_ALL", "C"),
        ];
        let muted = muted.iter().map(String::as_str);
        let settings = SETTINGS.iter().copied().chain(muted).flat_map(|setting| ["-c", setting]);
        let mut tool =
            Tool::new("git").args(settings).args(args).cwd(checkout).stdin(stdin).timeout(PATIENCE);
        for (name, value) in fixed.iter().chain(env) {
            tool = tool.env(name, value);
        }
        if let Some(cancel) = self.cancel {
            tool = tool.ended_by(cancel);
        }
        let output = tool.run().map_err(|source| LaneError::Tool { source })?;
        let stderr = output.stderr.to_str_lossy().into_owned();
        Ok(GitOutput { code: output.code, stdout: output.stdout, stderr })
    }
}

fn succeeded(doing: &'static str, said: GitOutput) -> Result<GitOutput, LaneError> {
    match said.code {
        0 => Ok(said),
        code => Err(LaneError::Git { doing, code, said: said.stderr.trim().to_owned() }),
    }
}
