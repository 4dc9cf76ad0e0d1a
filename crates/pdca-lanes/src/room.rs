//! The repository of a private checkout: what is in its `.git` that decides how git behaves.
//!
//! Whoever works in a lane can write there, so nothing that git or we would obey is taken
//! from it: these files are put back to what they were before every operation, and a link in
//! the place of a directory, through which we would write elsewhere, stops it.

use std::{fmt::Write as _, fs::FileType, io};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::ByteSlice as _;
use pdca_state::files;

use crate::{
    failure::LaneError,
    target::{Target, open_repository},
};

/// A repository that borrows its objects.
#[derive(Debug)]
pub(crate) struct Room {
    checkout: Utf8PathBuf,
    /// Each file, and what it must hold; none means that it must not be there.
    files: Vec<(&'static str, Option<Vec<u8>>)>,
    /// Whether the primary's configuration or attributes change content at checkout.
    converts: bool,
}

/// Where git looks for more objects.
const ALTERNATES: &str = "objects/info/alternates";

/// Left by an operation that was interrupted; meaningless once the files are reset.
const UNFINISHED: &[&str] = &[
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "MERGE_RR",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

impl Room {
    /// Describes the repository at `checkout` that borrows from `target`.
    pub(crate) fn describe(target: &Target, checkout: &Utf8Path) -> Result<Self, LaneError> {
        let primary = target.repository();
        let alternates = alternate(&target.common_dir().join("objects"))?;
        let carried = |file: &str| match fs::read(target.common_dir().join(file)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LaneError::Io { doing: "read what the primary ignores", source }),
        };
        let (config, converts) = config(&primary)
            .map_err(|source| LaneError::objects("read the configuration", source))?;
        let attributes = carried("info/attributes")?;
        let converts = converts || attributes.is_some();
        let files = vec![
            ("config", Some(config.into_bytes())),
            (ALTERNATES, Some(alternates.into_bytes())),
            ("info/exclude", carried("info/exclude")?),
            ("info/attributes", attributes),
            ("info/grafts", None),
            ("info/sparse-checkout", None),
            ("config.worktree", None),
            ("commondir", None),
            ("shallow", None),
        ];
        Ok(Self { checkout: checkout.to_owned(), files, converts })
    }

    /// Describes one at `checkout` that borrows from this one, and from whom this one borrows.
    pub(crate) fn borrowed_by(&self, checkout: &Utf8Path) -> Result<Self, LaneError> {
        let own = alternate(&self.git_dir().join("objects"))?;
        let mut files = self.files.clone();
        for (_, content) in files.iter_mut().filter(|(file, _)| *file == ALTERNATES) {
            content.get_or_insert_default().splice(..0, own.bytes());
        }
        Ok(Self { checkout: checkout.to_owned(), files, converts: self.converts })
    }

    pub(crate) fn checkout(&self) -> &Utf8Path {
        &self.checkout
    }

    pub(crate) fn git_dir(&self) -> Utf8PathBuf {
        self.checkout.join(".git")
    }

    /// Whether something outside the tree itself changes content at checkout.
    pub(crate) fn converts(&self) -> bool {
        self.converts
    }

    /// Makes the repository, with nothing checked out and no commit.
    pub(crate) fn create(&self) -> io::Result<()> {
        let git_dir = self.git_dir();
        for dir in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            fs::create_dir_all(git_dir.join(dir))?;
        }
        for (file, content) in &self.files {
            if let Some(content) = content {
                fs::write(git_dir.join(file), content)?;
            }
        }
        // Last, because without it git sees no repository here.
        files::replace_unsynced(git_dir.join("HEAD"), b"ref: refs/heads/pdca\n")
    }

    /// Puts everything back that decides how git behaves, and opens the repository.
    pub(crate) fn enter(&self) -> Result<gix::Repository, LaneError> {
        self.refuse_links()?;
        self.restore()
            .map_err(|source| LaneError::Io { doing: "put the configuration back", source })?;
        let repo = open_repository(&self.checkout)
            .map_err(|source| LaneError::objects("open the checkout", source))?;
        Ok(repo.to_thread_local())
    }

    /// Forgets merges, rebases and the like that were left half-way.
    pub(crate) fn forget_unfinished(&self) -> io::Result<()> {
        for name in UNFINISHED {
            let path = self.git_dir().join(name);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(path)?,
                Ok(_) => fs::remove_file(path)?,
                Err(err) if err.kind() == io::ErrorKind::NotFound => {}
                Err(err) => return Err(err),
            }
        }
        Ok(())
    }

    /// Whether there is a repository that can be entered, and not something put in its place.
    pub(crate) fn is_whole(&self) -> Result<bool, LaneError> {
        match self.refuse_links() {
            Ok(()) => {}
            Err(LaneError::Damaged { .. }) => return Ok(false),
            Err(err) => return Err(err),
        }
        // By these git tells a repository from any other directory.
        let is_dir = |part: &str| self.git_dir().join(part).is_dir();
        let head = self.git_dir().join("HEAD");
        if !head.is_file() || !is_dir("objects") || !is_dir("refs") {
            return Ok(false);
        }
        let head = fs::read(head)
            .map_err(|source| LaneError::Io { doing: "read HEAD of the lane", source })?;
        let head = head.trim_end();
        Ok(head.starts_with(b"ref: refs/") || gix::ObjectId::from_hex(head).is_ok())
    }

    /// Refuses a repository in which writing would lead out of it.
    fn refuse_links(&self) -> Result<(), LaneError> {
        for dir in [self.checkout.clone(), self.git_dir()] {
            let kind = fs::symlink_metadata(&dir).map(|found| found.file_type());
            if !kind.is_ok_and(|kind| kind.is_dir()) {
                return Err(LaneError::Damaged { path: dir, why: "is not a directory" });
            }
        }
        self.scan("", &["", "objects", "objects/info", "info"])
    }

    /// Looks at a directory of the repository; all of `refs` and `logs`, elsewhere only `within`.
    fn scan(&self, dir: &str, within: &[&str]) -> Result<(), LaneError> {
        let unreadable =
            |source| LaneError::Io { doing: "look at the repository of the lane", source };
        for entry in self.git_dir().join(dir).read_dir_utf8().map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind: FileType = entry.file_type().map_err(unreadable)?;
            let name = if dir.is_empty() {
                entry.file_name().to_owned()
            } else {
                format!("{dir}/{}", entry.file_name())
            };
            if kind.is_symlink() {
                return Err(LaneError::Damaged {
                    path: entry.into_path(),
                    why: "is a link out of the repository",
                });
            }
            let refs = name.starts_with("refs") || name.starts_with("logs");
            if kind.is_dir() && (refs || within.contains(&name.as_str())) {
                self.scan(&name, within)?;
            } else if kind.is_file()
                && (refs || dir.is_empty())
                && entry.path().extension() == Some("lock")
            {
                // We hold the lane, and nothing of it runs while we are here: the holder is gone.
                fs::remove_file(entry.path()).map_err(unreadable)?;
            }
        }
        Ok(())
    }

    fn restore(&self) -> io::Result<()> {
        let git_dir = self.git_dir();
        for (file, content) in &self.files {
            let path = git_dir.join(file);
            let found = match fs::read(&path) {
                Ok(found) => Some(found),
                Err(err) if err.kind() == io::ErrorKind::NotFound => None,
                Err(err) => return Err(err),
            };
            match content {
                Some(content) if found.as_ref() != Some(content) => {
                    fs::create_dir_all(path.parent().expect("every file is in the repository"))?;
                    files::replace_unsynced(path, content)?;
                }
                None if found.is_some() => fs::remove_file(path)?,
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}

/// A line of the file that says where else objects are.
fn alternate(objects: &Utf8Path) -> Result<String, LaneError> {
    if objects.as_str().contains('\n') {
        return Err(LaneError::Path { path: objects.to_owned() });
    }
    Ok(format!("{objects}\n"))
}

/// The configuration of a private checkout, and whether it converts content.
fn config(primary: &gix::Repository) -> gix::Result<(String, bool)> {
    let able = primary.filesystem_options()?;
    let sha256 = primary.object_hash() != gix::hash::Kind::Sha1;
    let mut text = format!(
        "[core]\n\trepositoryformatversion = {}\n\tbare = false\n\tlogallrefupdates = true\n\tfilemode = {}\n\tsymlinks = {}\n\
         \tignorecase = {}\n\tprecomposeunicode = {}\n\thooksPath = /dev/null\n\texcludesFile = /dev/null\n\
         \tattributesFile = /dev/null\n\tfsmonitor = false\n\tuntrackedCache = false\n\tsafecrlf = false\n",
        u8::from(sha256),
        able.executable_bit,
        able.symlink,
        able.ignore_case,
        able.precompose_unicode,
    );
    let local = primary.config_snapshot();
    let mut converts = false;
    for key in ["autocrlf", "eol"] {
        let value = local
            .string(format!("core.{key}").as_str())
            .map(|value| value.to_str_lossy().to_lowercase());
        if let Some(value) = value
            .filter(|value| matches!(value.as_str(), "true" | "input" | "lf" | "crlf" | "native"))
        {
            writeln!(text, "\t{key} = {value}").expect("a string takes any text");
            converts = true;
        }
    }
    // Nobody's name leaks into a lane, and a commit in it needs no further set-up.
    text.push_str("[user]\n\tname = pdca lane\n\temail = lane@pdca.invalid\n[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n");
    // Loose objects of a lane may be all that holds a result; nothing here may prune or repack.
    text.push_str("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n");
    if sha256 {
        writeln!(text, "[extensions]\n\tobjectFormat = {}", primary.object_hash())
            .expect("a string takes any text");
    }
    Ok((text, converts))
}
