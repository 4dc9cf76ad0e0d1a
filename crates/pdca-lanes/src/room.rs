//! The repositories of a private checkout: the driver's, and the one that processes in the lane see.
//!
//! A lane of kind *reference* has two. The *driver's repository* lies beside the checkout, out of reach of the processes
//! in it: every operation of the driver works there, with the checkout as its working tree. The *lent repository* is the
//! `.git` of the checkout. It is written by the driver from nothing at each reset, belongs to the processes in the lane
//! from then on, and is never opened: [`import`](crate::import) takes the commits that HEAD names out of it.
//!
//! A *worktree* of the primary has no repository of its own, and processes in it cannot write the primary's.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs::FileType,
    io,
    os::unix::fs::MetadataExt as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{bstr::ByteSlice as _, refs::transaction::PreviousValue};
use pdca_state::files;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{
    alternates, dir,
    failure::LaneError,
    history,
    import::{Import, Untrusted},
    inherited::Inherited,
    provision::LaneKind,
    settings,
    target::{Target, open_repository},
    worktree,
};

/// The suffix of the driver's repository of a lane.
pub(crate) const REPOSITORY: &str = ".repository";
/// The suffix of a lent repository that is being written, or was replaced and is being removed.
pub(crate) const LENT: &str = ".lent";

/// The repository of a checkout: one that borrows its objects, or a worktree of the primary's.
#[derive(Debug)]
pub(crate) struct CheckoutRepository {
    checkout: Utf8PathBuf,
    /// The driver's repository, for a lane that has one. Without it the driver works in the checkout's `.git`.
    own: Option<Utf8PathBuf>,
    /// The files of a borrowing repository with their required content; `None` means that the file must not exist.
    files: Files,
    /// The files of the lent repository.
    lent: Files,
    /// Refs of the primary that a new repository starts with.
    refs: Inherited,
    /// The registration in the primary, for a worktree.
    linked: Option<Linked>,
    /// True if the primary's configuration or attributes convert content at checkout.
    converts: bool,
    /// The driver's repository, once it was entered. No process in the lane can change its files, and no other driver
    /// does while this one holds the lane, so it is put right and opened once.
    opened: Mutex<Option<gix::ThreadSafeRepository>>,
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
        let lenders = alternates::resolve(&target.common_dir().join("objects"))?;
        let carried = |file: &str| match fs::read(target.common_dir().join(file)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LaneError::Io { doing: "read what the primary ignores", source }),
        };
        let unreadable = |source| LaneError::objects("read the configuration", source);
        let (mut config, converts) = settings::of(target).map_err(unreadable)?;
        config.extend(settings::remotes(target).map_err(unreadable)?);
        let attributes = carried("info/attributes")?;
        let converts = converts || attributes.is_some();
        let exclude = carried("info/exclude")?;
        let files = |config: Vec<u8>, lenders: &[Utf8PathBuf]| -> Result<Files, LaneError> {
            Ok(vec![
                ("config", Some(config)),
                (ALTERNATES, Some(alternates::lines(lenders)?)),
                ("info/exclude", exclude.clone()),
                ("info/attributes", attributes.clone()),
                // These could change the history, the files or the repository that git sees.
                ("info/grafts", None),
                ("info/sparse-checkout", None),
                ("config.worktree", None),
                ("commondir", None),
                ("shallow", None),
            ])
        };
        let (linked, own) = match kind {
            LaneKind::Reference => {
                (None, Some(Utf8PathBuf::from(format!("{checkout}{REPOSITORY}"))))
            }
            LaneKind::Worktree => (Some(Linked::of(target, checkout)?), None),
        };
        let mut lent_from = lenders.clone();
        if let Some(own) = &own {
            lent_from.insert(0, own.join("objects"));
        }
        let lent = files(config.clone(), &lent_from)?;
        config.extend(settings::work_tree(checkout)?);
        let (files, refs) = (files(config, &lenders)?, Inherited::of(target));
        let (checkout, opened) = (checkout.to_owned(), Mutex::default());
        Ok(Self { checkout, own, files, lent, refs, linked, converts, opened })
    }

    /// Describes a repository at `checkout` that borrows from this one and from the same directories as this one.
    pub(crate) fn borrowed_by(&self, checkout: &Utf8Path) -> Self {
        // Those of the lent repository borrow from the driver's as well. A worktree's objects are all in the primary.
        let files = if self.linked.is_none() { self.lent.clone() } else { self.files.clone() };
        let (checkout, lent) = (checkout.to_owned(), Vec::new());
        let (refs, converts, opened) = (Inherited::none(), self.converts, Mutex::default());
        Self { checkout, own: None, files, lent, refs, linked: None, converts, opened }
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

    /// Returns the directory with HEAD, refs and objects that the driver works with.
    pub(crate) fn git_dir(&self) -> Utf8PathBuf {
        self.own.clone().unwrap_or_else(|| self.lent_dir())
    }

    /// Returns the directory with HEAD and the index that processes in the checkout see.
    fn lent_dir(&self) -> Utf8PathBuf {
        let registered = self.linked.as_ref().and_then(|linked| linked.registered().clone());
        registered.unwrap_or_else(|| self.checkout.join(".git"))
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
        let failed = |source| LaneError::Io { doing: "make a repository", source };
        *self.opened() = None;
        let git_dir = self.git_dir();
        // The driver's repository outlives the checkout: it has the rescued work of earlier ones. Its branches were those
        // of the checkout that is gone.
        if let Some(refs) =
            self.own.as_ref().map(|own| own.join("refs")).filter(|refs| refs.is_dir())
        {
            dir::remove_at(&refs.join("heads")).map_err(failed)?;
        }
        self.refs
            .with(|refs| write_repository(&git_dir, &self.files, refs, worktree::NOTHING))
            .map_err(failed)?;
        if self.own.is_some() {
            fs::create_dir_all(&self.checkout).map_err(failed)?;
            self.lend(None)?;
        }
        Ok(())
    }

    /// Writes the `.git` of the checkout from nothing, with HEAD as in the driver's repository and with this index.
    ///
    /// Whatever processes left there is gone: refs, hooks, configuration, objects, `info/`. If only files differ, they are
    /// put right one by one, by content. Otherwise a new directory is completed before it takes the place of the old
    /// one, in one step where the file system has it.
    pub(crate) fn lend(&self, index: Option<&[u8]>) -> Result<(), LaneError> {
        let Some(own) = &self.own else { return Ok(()) };
        let lent = || -> io::Result<()> {
            let mut refs = Vec::new();
            let mut copy = |name: &str| -> io::Result<()> {
                match fs::read(own.join(name)) {
                    Ok(content) => refs.push((Utf8PathBuf::from(name), content)),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                Ok(())
            };
            // Refs of the primary, and of the driver's only the branch that HEAD is on: rescued work of other bundles
            // is none of this job's business.
            copy("packed-refs")?;
            for name in symbolic_remotes(own)? {
                copy(&name)?;
            }
            let head = fs::read(own.join("HEAD"))?;
            if let Some(branch) = head.trim_end().strip_prefix(b"ref: ") {
                copy(&branch.to_str_lossy())?;
            }
            let place = self.checkout.join(".git");
            let content = LentContent { files: &self.lent, refs: &refs, head: &head, index };
            // A process may have closed a directory; writing the repository anew reports what really cannot be done.
            if content.put_right(&place).unwrap_or(false) {
                return Ok(());
            }
            let new = Utf8PathBuf::from(format!("{}{LENT}", self.checkout));
            dir::remove_at(&new)?;
            write_repository(&new, &self.lent, &refs, &head)?;
            if let Some(index) = index {
                fs::write(new.join("index"), index)?;
            }
            exchange(&new, &place)?;
            dir::remove_at(&new).map(drop)
        };
        lent().map_err(|source| LaneError::Io { doing: "write the repository of the lane", source })
    }

    /// Returns true if the `.git` of the checkout is [written anew](Self::lend) by the driver.
    pub(crate) fn is_lent(&self) -> bool {
        self.own.is_some()
    }

    /// Removes the lock files that a killed driver left in its repository. The caller holds the lane.
    pub(crate) fn clear_locks(&self) -> Result<(), LaneError> {
        let Some(own) = &self.own else { return Ok(()) };
        let cleared = || -> io::Result<()> {
            let mut open = vec![own.clone()];
            while let Some(dir) = open.pop() {
                let entries = match dir.read_dir_utf8() {
                    Ok(entries) => entries,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                };
                for entry in entries {
                    let entry = entry?;
                    if entry.file_type()?.is_dir() {
                        // Only refs are below a directory and are locked.
                        if dir != *own || entry.file_name() == "refs" {
                            open.push(entry.into_path());
                        }
                    } else if entry.path().extension() == Some("lock") {
                        fs::remove_file(entry.path())?;
                    }
                }
            }
            Ok(())
        };
        cleared()
            .map_err(|source| LaneError::Io { doing: "clear locks of a killed driver", source })
    }

    /// Makes the driver's repository of a lane that has none: of an earlier version, whose rescued work is taken over.
    pub(crate) fn adopt(&self) -> Result<(), LaneError> {
        let Some(own) = self.own.as_ref().filter(|own| !own.join("HEAD").is_file()) else {
            return Ok(());
        };
        let made =
            self.refs.with(|refs| write_repository(own, &self.files, refs, worktree::NOTHING));
        made.map_err(|source| LaneError::Io { doing: "make a repository", source })?;
        self.keep_tips()
    }

    /// Keeps what refs and stashes of the checkout name under rescue refs of the driver's repository.
    pub(crate) fn keep_tips(&self) -> Result<(), LaneError> {
        for (name, id) in self.import_tips()? {
            let name = name.strip_prefix("refs/").unwrap_or(&name);
            let name = name.strip_prefix("pdca/rescue/").unwrap_or(name);
            history::keep_rescue(&self.enter()?, &history::ref_component(name), id)?;
        }
        Ok(())
    }

    /// Writes the index that processes in the checkout see.
    pub(crate) fn put_index(&self, bytes: &[u8]) -> io::Result<()> {
        let dir = self.lent_dir();
        // A link that a process left in its place would lead out of the lane.
        if !fs::symlink_metadata(&dir)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        files::replace_unsynced(dir.join("index"), bytes)
    }

    /// Returns the bytes of the index that processes in the checkout left; `None` if there is none that can be read.
    pub(crate) fn left_index(&self) -> Option<Vec<u8>> {
        files::read_bounded(self.lent_dir().join("index"), LARGEST_INDEX).ok().flatten()
    }

    /// Parses the index that processes in the checkout left.
    pub(crate) fn parsed_index(&self, hash: gix::hash::Kind) -> Option<gix::index::File> {
        let path = self.lent_dir().join("index");
        let found = fs::symlink_metadata(&path).ok()?;
        if !found.is_file() || found.len() > LARGEST_INDEX {
            return None;
        }
        let options = gix::index::decode::Options::default();
        gix::index::File::at(path.as_std_path(), hash, false, options).ok()
    }

    /// Takes the commit that HEAD of the checkout names into the driver's repository, and puts the driver's HEAD on it.
    pub(crate) fn import(&self) -> Result<gix::Repository, LaneError> {
        let repo = self.enter()?;
        let Some(own) = &self.own else { return Ok(repo) };
        let from = self.lent_dir();
        let from = Untrusted(&from);
        let Some(head) = from.head()? else { return Ok(repo) };
        if history::head(&repo)? != Some(head) {
            Import::new(&repo, own, from).take(head)?;
            let head = history::find_commit(&repo, &head.to_string())?;
            history::move_ref(&repo, "HEAD", head, PreviousValue::Any, true)?;
        }
        Ok(repo)
    }

    /// Takes every commit into the driver's repository that a ref or a stash of the checkout names and a reset would
    /// lose. Returns them with the names of their refs. One that cannot be taken is passed over.
    pub(crate) fn import_tips(&self) -> Result<Vec<(String, gix::ObjectId)>, LaneError> {
        let Some(own) = &self.own else { return Ok(Vec::new()) };
        let read = |name: &str| match fs::read(own.join(name)) {
            Ok(content) => Ok(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(LaneError::Io { doing: "read refs", source }),
        };
        let from = self.lent_dir();
        let from = Untrusted(&from);
        // The branch of an attempt belongs to HEAD, which has rules of its own.
        let head = read("HEAD")?;
        let head = head.trim_end().strip_prefix(b"ref: ").unwrap_or_default();
        let mut tips = from.tips(&read("packed-refs")?)?;
        tips.retain(|(name, _)| name.as_bytes() != head);
        // Usually there are none, and no repository has to be opened.
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let repo = self.enter()?;
        tips.retain(|(_, id)| !repo.has_object(*id));
        let mut import = Import::new(&repo, own, from);
        let mut taken = Vec::new();
        for (name, id) in tips.into_iter().take(MOST_TIPS) {
            match import.take(id) {
                Ok(()) => taken.push((name, id)),
                // Nobody can do anything with a ref to an object that is not there, or is not what it says.
                Err(LaneError::Untrue { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// Returns the commit that HEAD of the checkout names, as processes in it left it. Nothing else is known about it.
    pub(crate) fn left_head(&self) -> Result<Option<gix::ObjectId>, LaneError> {
        let left = if self.is_lent() { Untrusted(&self.lent_dir()).head()? } else { None };
        left.map_or_else(|| history::head(&self.enter()?), |left| Ok(Some(left)))
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
        let mut opened = self.opened();
        if let Some(repo) = &*opened {
            return Ok(repo.to_thread_local());
        }
        self.restore()
            .map_err(|source| LaneError::Io { doing: "put the configuration back", source })?;
        let path = self.own.as_ref().unwrap_or(&self.checkout);
        let repo = open_repository(path);
        let repo = repo.map_err(|source| LaneError::objects("open the checkout", source))?;
        let entered = repo.to_thread_local();
        // Of another kind of checkout, processes can write the files at any time.
        if self.own.is_some() {
            *opened = Some(repo);
        }
        Ok(entered)
    }

    fn opened(&self) -> MutexGuard<'_, Option<gix::ThreadSafeRepository>> {
        // A thread that panicked left either nothing or a whole value.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the state of interrupted merges, rebases and the like.
    pub(crate) fn forget_unfinished(&self) -> io::Result<()> {
        for name in UNFINISHED {
            // Those of a lent repository are gone with it.
            let path = self.git_dir().join(name);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => files::remove_tree(path)?,
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
        let is_dir = |part: &str| self.lent_dir().join(part).is_dir();
        let head = self.lent_dir().join("HEAD");
        let is_repository = self.linked.is_some() || is_dir("objects") && is_dir("refs");
        if !head.is_file() || !is_repository {
            return Ok(false);
        }
        let head = fs::read(head)
            .map_err(|source| LaneError::Io { doing: "read HEAD of the lane", source })?;
        let head = head.trim_end();
        let names_something =
            head.starts_with(b"ref: refs/") || gix::ObjectId::from_hex(head).is_ok();
        Ok(names_something && self.has_its_commit())
    }

    /// Returns true if the tree that is checked out still exists, in the primary or in the lane.
    ///
    /// The user may have rewound a branch of the primary and pruned its commits.
    fn has_its_commit(&self) -> bool {
        let Ok(repo) = self.import() else { return false };
        let Ok(head) = history::head(&repo) else { return false };
        let is_there = |id| repo.try_find_header(id).is_ok_and(|found| found.is_some());
        head.is_none_or(|head| history::tree_of(&repo, head).is_ok_and(is_there))
    }

    /// Fails for a repository in which writing would lead out of it.
    fn refuse_links(&self) -> Result<(), LaneError> {
        for dir in [self.checkout.clone(), self.lent_dir()] {
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
    fn scan(&self, below: &str, within: &[&str]) -> Result<(), LaneError> {
        let unreadable =
            |source| LaneError::Io { doing: "look at the repository of the lane", source };
        dir::require_shallow(below.as_bytes())?;
        for entry in self.lent_dir().join(below).read_dir_utf8().map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind: FileType = entry.file_type().map_err(unreadable)?;
            let name = if below.is_empty() {
                entry.file_name().to_owned()
            } else {
                format!("{below}/{}", entry.file_name())
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
                && (refs || below.is_empty())
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

/// The largest index and the most tips that are read from a lent repository.
const LARGEST_INDEX: u64 = 256 << 20;
const MOST_TIPS: usize = 256;

/// The directories of a repository without objects.
const DIRECTORIES: [&str; 8] =
    ["", "info", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"];

/// Everything that a lent repository consists of.
struct LentContent<'a> {
    files: &'a Files,
    refs: &'a [(Utf8PathBuf, Vec<u8>)],
    head: &'a [u8],
    index: Option<&'a [u8]>,
}

impl LentContent<'_> {
    /// Makes the files of an existing repository equal to this content. Returns false if anything but ordinary files in
    /// the usual directories is there; then the repository has to be written anew.
    fn put_right(&self, git_dir: &Utf8Path) -> io::Result<bool> {
        let mut wanted: BTreeMap<&Utf8Path, &[u8]> = BTreeMap::new();
        for (file, content) in self.files {
            wanted.extend(content.as_deref().map(|content| (Utf8Path::new(file), content)));
        }
        wanted.extend(self.refs.iter().map(|(file, content)| (file.as_path(), content.as_slice())));
        wanted.extend(self.index.map(|index| (Utf8Path::new("index"), index)));
        wanted.insert(Utf8Path::new("HEAD"), self.head);
        let above = wanted.keys().flat_map(|file| file.ancestors().skip(1));
        let dirs: BTreeSet<&Utf8Path> = above.chain(DIRECTORIES.map(Utf8Path::new)).collect();
        let Some((found, there)) = ordinary_files(git_dir, &dirs)? else { return Ok(false) };
        // All directories of a repository are there unless a process removed one.
        if !DIRECTORIES.iter().all(|dir| found.contains(Utf8Path::new(dir))) {
            return Ok(false);
        }
        for file in there.iter().filter(|file| !wanted.contains_key(file.as_path())) {
            fs::remove_file(git_dir.join(file))?;
        }
        for (file, content) in wanted {
            let place = git_dir.join(file);
            if there.contains(file) && is_equal(&place, content)? {
                continue;
            }
            fs::create_dir_all(place.parent().expect("every file is in the repository"))?;
            files::replace_unsynced(place, content)?;
        }
        Ok(true)
    }
}

/// Lists the directories and files of a repository; `None` if there is a directory other than these, or anything that is
/// neither a directory nor an ordinary file with one name.
fn ordinary_files(
    git_dir: &Utf8Path,
    dirs: &BTreeSet<&Utf8Path>,
) -> io::Result<Option<(BTreeSet<Utf8PathBuf>, BTreeSet<Utf8PathBuf>)>> {
    let (mut found, mut there) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![Utf8PathBuf::new()];
    while let Some(dir) = open.pop() {
        let place = git_dir.join(&dir);
        let is_dir = fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir());
        let Ok(entries) = place.read_dir_utf8() else { return Ok(None) };
        if !is_dir || !dirs.contains(dir.as_path()) {
            return Ok(None);
        }
        for entry in entries {
            // A name that is not UTF-8 is none of ours.
            let Ok(entry) = entry else { return Ok(None) };
            let path = dir.join(entry.file_name());
            let meta = fs::symlink_metadata(entry.path())?;
            if meta.is_dir() {
                open.push(path);
            } else if meta.is_file() && meta.nlink() == 1 {
                there.insert(path);
            } else {
                return Ok(None);
            }
        }
        found.insert(dir);
    }
    Ok(Some((found, there)))
}

fn is_equal(path: &Utf8Path, content: &[u8]) -> io::Result<bool> {
    // A file of another size is not read: a process can make one of any length.
    let is_as_long = fs::symlink_metadata(path)?.len() == content.len() as u64;
    Ok(is_as_long && fs::read(path).is_ok_and(|found| found == content))
}

fn write_repository(
    git_dir: &Utf8Path,
    files: &Files,
    refs: &[(Utf8PathBuf, Vec<u8>)],
    head: &[u8],
) -> io::Result<()> {
    for dir in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
        fs::create_dir_all(git_dir.join(dir))?;
    }
    for (file, content) in files {
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
    files::replace_unsynced(git_dir.join("HEAD"), head)
}

/// Lists the symbolic refs of remotes, which no packed file can hold.
fn symbolic_remotes(git_dir: &Utf8Path) -> io::Result<Vec<String>> {
    let remotes = match git_dir.join("refs/remotes").read_dir_utf8() {
        Ok(remotes) => remotes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for remote in remotes {
        names.push(format!("refs/remotes/{}/HEAD", remote?.file_name()));
    }
    Ok(names)
}

/// Puts a directory in the place of another one, which takes its former place if there is one.
fn exchange(new: &Utf8Path, place: &Utf8Path) -> io::Result<()> {
    if fs::symlink_metadata(place).is_err() {
        return fs::rename(new, place);
    }
    let swap = |flags| renameat_with(CWD, new.as_std_path(), CWD, place.as_std_path(), flags);
    match swap(RenameFlags::EXCHANGE) {
        // The file system has no such step.
        Err(Errno::INVAL | Errno::NOSYS) => {
            dir::remove_at(place)?;
            fs::rename(new, place)
        }
        swapped => Ok(swapped?),
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
