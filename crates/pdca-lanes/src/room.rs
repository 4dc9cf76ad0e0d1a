//! The repository of a private checkout: the files in its `.git` that decide how git behaves.
//!
//! Processes in a lane can write there, so git must not be influenced by what they leave: these files are restored
//! before every operation, and a symbolic link in place of a directory, through which an operation would write
//! elsewhere, makes it fail.

use std::{
    borrow::Cow,
    fs::FileType,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::ByteSlice as _;
use pdca_state::files;

use crate::{
    alternates,
    failure::LaneError,
    history,
    inherited::Inherited,
    provision::LaneKind,
    settings,
    target::{Target, open_repository},
    worktree,
};

/// The repository of a checkout: one that borrows its objects, or a worktree of the primary's.
#[derive(Debug)]
pub(crate) struct CheckoutRepository {
    checkout: Utf8PathBuf,
    /// The files of a borrowing repository with their required content; `None` means that the file must not exist.
    files: Files,
    /// Refs of the primary that a new repository starts with.
    refs: Inherited,
    /// The registration in the primary, for a worktree.
    linked: Option<Linked>,
    /// True if the primary's configuration or attributes convert content at checkout.
    converts: bool,
}

type Files = Vec<(&'static str, Option<Vec<u8>>)>;

/// The registration of a linked worktree.
#[derive(Debug)]
struct Linked {
    primary: gix::ThreadSafeRepository,
    common: Utf8PathBuf,
    /// The path of the checkout, free of symbolic links.
    real: Utf8PathBuf,
    /// The directory of the registration, once it exists. Renewing a lane replaces it.
    git_dir: Mutex<Option<Utf8PathBuf>>,
    /// Settings that disable the programs named by the primary's configuration.
    muted: Vec<String>,
}

/// The file that lists further object directories.
const ALTERNATES: &str = "objects/info/alternates";

/// Files of interrupted operations, which are meaningless after a reset.
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

impl CheckoutRepository {
    /// Describes the repository of `target` at `checkout`.
    pub(crate) fn describe(
        target: &Target,
        checkout: &Utf8Path,
        kind: LaneKind,
    ) -> Result<Self, LaneError> {
        let primary = target.repository();
        let lenders = alternates::resolve(&target.common_dir().join("objects"))?;
        let carried = |file: &str| match fs::read(target.common_dir().join(file)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LaneError::Io { doing: "read what the primary ignores", source }),
        };
        let unreadable = |source| LaneError::objects("read the configuration", source);
        let (mut config, converts) = settings::of(&primary).map_err(unreadable)?;
        config.extend(settings::remotes(target).map_err(unreadable)?);
        let attributes = carried("info/attributes")?;
        let converts = converts || attributes.is_some();
        let files = vec![
            ("config", Some(config)),
            (ALTERNATES, Some(alternates::lines(&lenders)?)),
            ("info/exclude", carried("info/exclude")?),
            ("info/attributes", attributes),
            // These could change the history, the files or the repository that git sees.
            ("info/grafts", None),
            ("info/sparse-checkout", None),
            ("config.worktree", None),
            ("commondir", None),
            ("shallow", None),
        ];
        let linked = match kind {
            LaneKind::Reference => None,
            LaneKind::Worktree => Some(Linked::of(target, checkout)?),
        };
        let refs = Inherited::of(target);
        Ok(Self { checkout: checkout.to_owned(), files, refs, linked, converts })
    }

    /// Describes a repository at `checkout` that borrows from this one and from the same directories as this one.
    pub(crate) fn borrowed_by(&self, checkout: &Utf8Path) -> Result<Self, LaneError> {
        let mut files = self.files.clone();
        if self.linked.is_none() {
            let own = alternates::lines(&[self.git_dir().join("objects")])?;
            for (_, content) in files.iter_mut().filter(|(file, _)| *file == ALTERNATES) {
                content.get_or_insert_default().splice(..0, own.iter().copied());
            }
        }
        let checkout = checkout.to_owned();
        let refs = Inherited::none();
        Ok(Self { checkout, files, refs, linked: None, converts: self.converts })
    }

    /// Returns the relation of the checkout to the primary.
    pub(crate) fn kind(&self) -> LaneKind {
        if self.linked.is_some() { LaneKind::Worktree } else { LaneKind::Reference }
    }

    /// Returns the settings that keep git from starting programs named by the primary's configuration.
    pub(crate) fn muted(&self) -> &[String] {
        self.linked.as_ref().map_or(&[], |linked| &linked.muted)
    }

    pub(crate) fn checkout(&self) -> &Utf8Path {
        &self.checkout
    }

    /// Returns the directory with HEAD and the index of the checkout.
    pub(crate) fn git_dir(&self) -> Utf8PathBuf {
        let registered = self.linked.as_ref().and_then(|linked| linked.registered().clone());
        registered.unwrap_or_else(|| self.checkout.join(".git"))
    }

    /// Returns the directory with the refs and objects of the checkout, and the registrations of its worktrees.
    pub(crate) fn common_dir(&self) -> Utf8PathBuf {
        let common = self.linked.as_ref().map(|linked| linked.common.clone());
        common.unwrap_or_else(|| self.git_dir())
    }

    /// Returns true if the configuration or `info/attributes` converts content at checkout.
    pub(crate) fn converts(&self) -> bool {
        self.converts
    }

    /// Creates the repository, with nothing checked out and no commit.
    pub(crate) fn create(&self) -> Result<(), LaneError> {
        if let Some(linked) = &self.linked {
            let registered = worktree::register(&linked.common, &linked.real)?;
            *linked.registered() = Some(registered);
            return Ok(());
        }
        self.refs
            .with(|refs| self.create_own(refs))
            .map_err(|source| LaneError::Io { doing: "make a repository", source })
    }

    fn create_own(&self, refs: &[(Utf8PathBuf, Vec<u8>)]) -> io::Result<()> {
        let git_dir = self.git_dir();
        for dir in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            fs::create_dir_all(git_dir.join(dir))?;
        }
        for (file, content) in &self.files {
            if let Some(content) = content {
                fs::write(git_dir.join(file), content)?;
            }
        }
        for (file, content) in refs {
            let path = git_dir.join(file);
            fs::create_dir_all(path.parent().expect("every file is in the repository"))?;
            fs::write(path, content)?;
        }
        // HEAD comes last: without it git does not take the directory for a repository.
        files::replace_unsynced(git_dir.join("HEAD"), b"ref: refs/heads/pdca\n")
    }

    /// Removes the registration in the primary. The commit of HEAD, unless it is `base`, is kept by a rescue ref.
    pub(crate) fn forget(&self, base: Option<&str>) -> Result<(), LaneError> {
        let Some(linked) = &self.linked else { return Ok(()) };
        let Some(git_dir) = linked.registered().take() else { return Ok(()) };
        let primary = linked.primary.to_thread_local();
        // The checkout may be gone, so HEAD is read from the registration. Only a ref keeps its
        // commit from git's next prune.
        let head = fs::read(git_dir.join("HEAD")).unwrap_or_default();
        if let Ok(commit) = gix::ObjectId::from_hex(head.trim())
            && base.is_none_or(|base| base.as_bytes() != head.trim())
            && primary.try_find_header(commit).is_ok_and(|found| found.is_some())
        {
            let name = git_dir.file_name().unwrap_or_default();
            history::keep_rescue(&primary, &history::ref_component(name), commit)?;
        }
        worktree::forget(&git_dir)
            .map_err(|source| LaneError::Io { doing: "forget a worktree", source })
    }

    /// Restores every file that decides how git behaves, and opens the repository.
    pub(crate) fn enter(&self) -> Result<gix::Repository, LaneError> {
        // Before the files are restored: writing them through a link would change a file elsewhere.
        self.refuse_links()?;
        self.restore()
            .map_err(|source| LaneError::Io { doing: "put the configuration back", source })?;
        let repo = open_repository(&self.checkout)
            .map_err(|source| LaneError::objects("open the checkout", source))?;
        Ok(repo.to_thread_local())
    }

    /// Removes the state of interrupted merges, rebases and the like.
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

    /// Returns true if the repository can be entered and was not replaced by something else.
    pub(crate) fn is_whole(&self) -> Result<bool, LaneError> {
        match self.refuse_links() {
            Ok(()) => {}
            Err(LaneError::Damaged { .. }) => return Ok(false),
            Err(err) => return Err(err),
        }
        // git recognises a repository by these.
        let is_dir = |part: &str| self.git_dir().join(part).is_dir();
        let head = self.git_dir().join("HEAD");
        let is_repository = self.linked.is_some() || is_dir("objects") && is_dir("refs");
        if !head.is_file() || !is_repository {
            return Ok(false);
        }
        let head = fs::read(head)
            .map_err(|source| LaneError::Io { doing: "read HEAD of the lane", source })?;
        let head = head.trim_end();
        let names_something =
            head.starts_with(b"ref: refs/") || gix::ObjectId::from_hex(head).is_ok();
        Ok(names_something && self.has_its_commit()?)
    }

    /// Returns true if the tree that is checked out still exists, in the primary or in the lane.
    ///
    /// The user may have rewound a branch of the primary and pruned its commits.
    fn has_its_commit(&self) -> Result<bool, LaneError> {
        let repo = self.enter()?;
        let Ok(head) = history::head(&repo) else { return Ok(false) };
        let is_there = |id| repo.try_find_header(id).is_ok_and(|found| found.is_some());
        Ok(head.is_none_or(|head| history::tree_of(&repo, head).is_ok_and(is_there)))
    }

    /// Fails for a repository in which writing would lead out of it.
    fn refuse_links(&self) -> Result<(), LaneError> {
        for dir in [self.checkout.clone(), self.git_dir()] {
            let kind = fs::symlink_metadata(&dir).map(|found| found.file_type());
            if !kind.is_ok_and(|kind| kind.is_dir()) {
                return Err(LaneError::Damaged { path: dir, why: "is not a directory" });
            }
        }
        if self.linked.is_some() {
            let path = self.checkout.join(".git");
            if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
                return Err(LaneError::Damaged { path, why: "is not a file" });
            }
        }
        self.scan("", &["", "objects", "objects/info", "info"])
    }

    /// Checks a directory of the repository: `refs` and `logs` recursively, elsewhere only the directories in `within`.
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
            if !kind.is_file() && !kind.is_dir() {
                // Reading from a FIFO would block for ever.
                return Err(LaneError::Damaged {
                    path: entry.into_path(),
                    why: "is neither a file nor a directory",
                });
            }
            let refs = name.starts_with("refs") || name.starts_with("logs");
            if kind.is_dir() && (refs || within.contains(&name.as_str())) {
                self.scan(&name, within)?;
            } else if kind.is_file()
                && (refs || dir.is_empty())
                && entry.path().extension() == Some("lock")
            {
                // We hold the lane and no process runs in it, so the owner of the lock file is dead.
                fs::remove_file(entry.path()).map_err(unreadable)?;
            }
        }
        Ok(())
    }

    /// Returns the files that decide how git behaves here, with their required content.
    fn fixed(&self) -> Vec<(Utf8PathBuf, Option<Cow<'_, [u8]>>)> {
        let git_dir = self.git_dir();
        let Some(linked) = &self.linked else {
            let all = self.files.iter();
            let fixed = all.map(|(file, content)| (git_dir.join(file), content.as_deref()));
            return fixed.map(|(path, content)| (path, content.map(Cow::Borrowed))).collect();
        };
        let mut lock = worktree::REASON.as_bytes().to_vec();
        lock.push(b'\n');
        vec![
            (self.checkout.join(".git"), Some(Cow::Owned(worktree::forth(&git_dir)))),
            (git_dir.join("gitdir"), Some(Cow::Owned(worktree::back(&linked.real)))),
            (git_dir.join("commondir"), Some(Cow::Borrowed(b"../..\n"))),
            (git_dir.join("locked"), Some(Cow::Owned(lock))),
            (git_dir.join("config.worktree"), None),
            (git_dir.join("info/sparse-checkout"), None),
        ]
    }

    fn restore(&self) -> io::Result<()> {
        for (path, content) in self.fixed() {
            let found = match fs::read(&path) {
                Ok(found) => Some(found),
                Err(err) if err.kind() == io::ErrorKind::NotFound => None,
                Err(err) => return Err(err),
            };
            match content {
                // Written only if it differs: each operation enters the repository.
                Some(content) if found.as_deref() != Some(&content) => {
                    fs::create_dir_all(path.parent().expect("every file is in the repository"))?;
                    files::replace_unsynced(path, &content)?;
                }
                None if found.is_some() => fs::remove_file(path)?,
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}

impl Linked {
    fn of(target: &Target, checkout: &Utf8Path) -> Result<Self, LaneError> {
        let failed = |source| LaneError::Io { doing: "find the worktree in the primary", source };
        let slot = checkout.parent().unwrap_or(checkout).canonicalize_utf8().map_err(failed)?;
        let real = slot.join(target.name());
        Ok(Self {
            primary: target.repository().into_sync(),
            common: target.common_dir().to_owned(),
            git_dir: Mutex::new(worktree::find(target.common_dir(), &real).map_err(failed)?),
            real,
            muted: settings::muted(&target.repository()),
        })
    }

    fn registered(&self) -> MutexGuard<'_, Option<Utf8PathBuf>> {
        self.git_dir.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
