//! The repository of a private checkout: what is in its `.git` that decides how git behaves.
//!
//! Whoever works in a lane can write there, so nothing that git or we would obey is taken
//! from it: these files are put back to what they were before every operation, and a link in
//! the place of a directory, through which we would write elsewhere, stops it.

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
pub(crate) struct Room {
    checkout: Utf8PathBuf,
    /// Each file of a repository that borrows, and what it must hold; none means that it must not
    /// be there.
    files: Files,
    /// Refs of the primary that a new repository starts with.
    refs: Inherited,
    /// How the primary knows of the checkout, where it does.
    linked: Option<Linked>,
    /// Whether the primary's configuration or attributes change content at checkout.
    converts: bool,
}

type Files = Vec<(&'static str, Option<Vec<u8>>)>;

/// A linked worktree.
#[derive(Debug)]
struct Linked {
    primary: gix::ThreadSafeRepository,
    common: Utf8PathBuf,
    /// The checkout, free of symbolic links.
    real: Utf8PathBuf,
    /// The registration, once there is one. A lane that is replaced while it is held gets another.
    git_dir: Mutex<Option<Utf8PathBuf>>,
    /// Programs named by the primary's configuration that no command of ours may start.
    muted: Vec<String>,
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
    /// Describes the repository at `checkout`, which is what `kind` says to `target`.
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

    /// Describes one at `checkout` that borrows from this one, and from whom this one borrows.
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

    /// What the checkout is to the primary.
    pub(crate) fn kind(&self) -> LaneKind {
        if self.linked.is_some() { LaneKind::Worktree } else { LaneKind::Reference }
    }

    /// Settings without which git would start programs that the primary's configuration names.
    pub(crate) fn muted(&self) -> &[String] {
        self.linked.as_ref().map_or(&[], |linked| &linked.muted)
    }

    pub(crate) fn checkout(&self) -> &Utf8Path {
        &self.checkout
    }

    /// Where HEAD and the index of the checkout are.
    pub(crate) fn git_dir(&self) -> Utf8PathBuf {
        let registered = self.linked.as_ref().and_then(|linked| linked.registered().clone());
        registered.unwrap_or_else(|| self.checkout.join(".git"))
    }

    /// Where refs and objects of the checkout are, and worktrees that are made of it.
    pub(crate) fn common_dir(&self) -> Utf8PathBuf {
        let common = self.linked.as_ref().map(|linked| linked.common.clone());
        common.unwrap_or_else(|| self.git_dir())
    }

    /// Whether something outside the tree itself changes content at checkout.
    pub(crate) fn converts(&self) -> bool {
        self.converts
    }

    /// Makes the repository, with nothing checked out and no commit.
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
        // Last, because without it git sees no repository here.
        files::replace_unsynced(git_dir.join("HEAD"), b"ref: refs/heads/pdca\n")
    }

    /// Forgets how the primary knows of the checkout; what HEAD was at, if it is not `base`, is
    /// kept by a ref.
    pub(crate) fn forget(&self, base: Option<&str>) -> Result<(), LaneError> {
        let Some(linked) = &self.linked else { return Ok(()) };
        let Some(git_dir) = linked.registered().take() else { return Ok(()) };
        let primary = linked.primary.to_thread_local();
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

    /// Whether what is checked out is still in the primary, or in the lane itself.
    ///
    /// Someone may have rewound a branch of the primary and pruned what was on it.
    fn has_its_commit(&self) -> Result<bool, LaneError> {
        let repo = self.enter()?;
        let Ok(head) = history::head(&repo) else { return Ok(false) };
        let is_there = |id| repo.try_find_header(id).is_ok_and(|found| found.is_some());
        Ok(head.is_none_or(|head| history::tree_of(&repo, head).is_ok_and(is_there)))
    }

    /// Refuses a repository in which writing would lead out of it.
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
            if !kind.is_file() && !kind.is_dir() {
                // To read from a pipe would be to wait for ever.
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
                // We hold the lane, and nothing of it runs while we are here: the holder is gone.
                fs::remove_file(entry.path()).map_err(unreadable)?;
            }
        }
        Ok(())
    }

    /// Each file that decides how git behaves here, and what it must hold.
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
