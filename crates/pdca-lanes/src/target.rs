//! The user's repository, which is read and never written.

use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::ByteSlice as _;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    alternates,
    claim::{LOCK, MARKER, OWNER, RESCUED},
    feature::Feature,
    hydrate::HYDRATION,
    names::TMP,
    private::PORTS,
    remove::REMOVED,
    room::{LENT, REPOSITORY},
    stage::{ATTRIBUTES, INDEX, NEW_INDEX},
};

/// A repository under change, checked once for features that a lane does not support.
///
/// The path may be a checkout, a linked worktree, or a bare repository.
#[derive(Debug)]
pub struct Target {
    name: String,
    path: Utf8PathBuf,
    common_dir: Utf8PathBuf,
    identity: Identity,
    notes: Vec<String>,
    author: Option<(String, String)>,
    repo: gix::ThreadSafeRepository,
}

/// A commit to start from, and the branch it was resolved from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Base {
    /// The full commit id.
    pub commit: String,
    /// The branch without `refs/heads/` or `refs/remotes/`.
    pub branch: String,
}

/// The identity of a repository, whatever path leads to it: device and inode of its common directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    dev: u64,
    ino: u64,
}

impl Identity {
    pub(crate) fn of(common_dir: &std::fs::Metadata) -> Self {
        Self { dev: common_dir.dev(), ino: common_dir.ino() }
    }
}

/// Failure to open a repository as a target. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The name is not a single plain path component, and becomes a directory.
    #[error("the target name {name:?} cannot be a directory name")]
    Name {
        /// The name as given.
        name: String,
    },
    /// Lanes use the name for files of their own beside the checkouts.
    #[error("the target name {name:?} is reserved for {what}")]
    Reserved {
        /// The name as given.
        name: String,
        /// The file that has this name.
        what: &'static str,
    },
    /// There is no repository at the path itself.
    #[error("{path} is not a git repository")]
    NotARepository {
        /// The path as given.
        path: Utf8PathBuf,
        /// The error of opening it.
        #[source]
        source: Box<gix::Error>,
    },
    /// No branch has a commit.
    #[error("{path} has no commit yet")]
    Empty {
        /// The repository.
        path: Utf8PathBuf,
    },
    /// The repository uses a feature that a private checkout would get wrong.
    #[error("{path} {feature}")]
    Unsupported {
        /// The repository.
        path: Utf8PathBuf,
        /// The unsupported feature.
        feature: Feature,
    },
    /// The repository exists but cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The repository.
        path: Utf8PathBuf,
        /// The underlying error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Failure to resolve a base.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResolveBaseError {
    /// No branch was given and HEAD is detached.
    #[error("HEAD is detached at {commit}, so a branch must be named")]
    Detached {
        /// The commit that HEAD is at.
        commit: String,
    },
    /// No branch was given and the branch of HEAD has no commit.
    #[error("branch {branch:?} has no commit yet")]
    Unborn {
        /// The branch of HEAD.
        branch: String,
    },
    /// There is no local branch and no remote branch of this name.
    #[error("no branch {branch:?}")]
    NoSuchBranch {
        /// The branch as given.
        branch: String,
        /// The refs that were looked up.
        tried: Vec<String>,
    },
    /// The branch exists, but its commit cannot be read.
    #[error("cannot read the tip of {reference}")]
    Tip {
        /// The full name of the ref.
        reference: String,
        /// The error of reading it.
        #[source]
        source: Box<gix::Error>,
    },
    /// The refs cannot be read.
    #[error("cannot read the refs")]
    Unreadable(#[source] Box<gix::Error>),
}

impl TargetError {
    /// Returns the unsupported feature, if that is the reason.
    pub fn feature(&self) -> Option<&Feature> {
        match self {
            Self::Unsupported { feature, .. } => Some(feature),
            Self::Name { .. }
            | Self::Reserved { .. }
            | Self::NotARepository { .. }
            | Self::Empty { .. }
            | Self::Unreadable { .. } => None,
        }
    }
}

impl Target {
    /// Opens a repository and fails if it uses a feature that a lane does not support. Writes nothing.
    pub fn open(name: &str, path: &Utf8Path) -> Result<Self, TargetError> {
        if !is_plain_component(name) {
            return Err(TargetError::Name { name: name.to_owned() });
        }
        if let Some(what) = reserved(name) {
            return Err(TargetError::Reserved { name: name.to_owned(), what });
        }
        let sync = open_repository(path).map_err(|source| match ref_storage_on_disk(path) {
            Some(format) => unsupported(path, Feature::RefStorage { format }),
            None => TargetError::NotARepository { path: path.to_owned(), source: Box::new(source) },
        })?;
        let repo = sync.to_thread_local();
        let unreadable = |source| TargetError::Unreadable { path: path.to_owned(), source };
        // Refused here and not at the first reset: a batch should not start for a repository in
        // which no lane works.
        refuse_by_config(path, &repo)?;
        if repo.is_shallow().map_err(|err| unreadable(Box::new(err)))? {
            return Err(unsupported(path, Feature::Shallow));
        }
        if !has_commit(&repo).map_err(|err| unreadable(Box::new(err)))? {
            return Err(TargetError::Empty { path: path.to_owned() });
        }
        refuse_by_attributes(path, &repo)?;
        let common_dir =
            fs::canonicalize(repo.common_dir()).map_err(|err| unreadable(Box::new(err)))?;
        let found = fs::metadata(&common_dir).map_err(|err| unreadable(Box::new(err)))?;
        let common_dir = Utf8PathBuf::from_path_buf(common_dir)
            .map_err(|path| unreadable(format!("{} is not UTF-8", path.display()).into()))?;
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            common_dir,
            identity: Identity::of(&found),
            notes: notes(&repo),
            author: None,
            repo: sync,
        })
    }

    /// Sets the name and address of commits that a process makes in a checkout without naming an author.
    #[must_use]
    pub fn with_author(self, name: &str, email: &str) -> Self {
        Self { author: Some((name.to_owned(), email.to_owned())), ..self }
    }

    pub(crate) fn author(&self) -> Option<(&str, &str)> {
        self.author.as_ref().map(|(name, email)| (name.as_str(), email.as_str()))
    }

    /// Returns the name in the configuration, which is also the directory name of its checkout in every lane.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path it was opened with.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Returns the directory that all worktrees of the repository share, free of symbolic links.
    pub fn common_dir(&self) -> &Utf8Path {
        &self.common_dir
    }

    /// Returns remarks for the user: features that work, but not as in the primary.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Finds the commit of a branch, or of HEAD's branch if none is given.
    ///
    /// A local branch takes precedence over `origin`'s of that name, and that over `remote/branch`.
    pub fn resolve(&self, branch: Option<&str>) -> Result<Base, ResolveBaseError> {
        let repo = self.repository();
        match branch {
            Some(branch) => resolve_branch(&repo, branch),
            None => resolve_head(&repo),
        }
    }

    /// Returns the disk space of a checkout of a commit, in bytes: each tracked file rounded up to whole blocks.
    pub fn checkout_size(&self, commit: &str) -> gix::Result<u64> {
        const BLOCK: u64 = 4096;
        let repo = self.repository();
        let tree = repo.rev_parse_single(commit)?.object()?.peel_to_tree()?.id;
        let index = repo.index_from_tree(&tree)?;
        let mut size: u64 = 0;
        for entry in index.entries() {
            // A submodule is a commit of another repository; its directory stays empty in a lane.
            if entry.mode != gix::index::entry::Mode::COMMIT {
                let file = repo.find_header(entry.id)?.size();
                size = size.saturating_add(file.max(1).next_multiple_of(BLOCK));
            }
        }
        Ok(size)
    }

    /// Returns the name and address that git would use for a commit in this repository, from its configuration or the
    /// user's own; `None` unless both are set.
    pub fn user(&self) -> Option<(String, String)> {
        // Not the isolated repository of this target: the name is usually in the user's own
        // configuration.
        let repo = gix::open_opts(self.path.as_std_path(), gix::open::Options::default()).ok()?;
        let config = repo.config_snapshot();
        let value = |key: &str| {
            let value = config.string(key)?.to_str_lossy().trim().to_owned();
            Some(value).filter(|value| !value.is_empty() && !value.contains(['<', '>', '\n']))
        };
        Some((value("user.name")?, value("user.email")?))
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    pub(crate) fn repository(&self) -> gix::Repository {
        self.repo.to_thread_local()
    }
}

/// Returns every tree that belongs to the repository at `path` and is the user's: the path itself, the common
/// directory, the main checkout, every other linked worktree, and the object stores it borrows from, all free of
/// symbolic links. Registered worktrees below `except` are left out. If `path` is no repository, returns only `path`.
pub fn repository_trees(path: &Utf8Path, except: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut trees = vec![path.to_owned()];
    if let Ok(repo) = open_repository(path) {
        let repo = repo.to_thread_local();
        let main = repo.main_repo().ok();
        let workdirs = main.iter().chain([&repo]).filter_map(|repo| repo.workdir());
        let git_dirs = [repo.git_dir(), repo.common_dir()];
        let paths = workdirs.chain(git_dirs).map(std::path::Path::to_owned);
        trees.extend(paths.filter_map(|path| Utf8PathBuf::from_path_buf(path).ok()));
        let common = Utf8PathBuf::from_path_buf(repo.common_dir().to_owned()).unwrap_or_default();
        trees.extend(registered_worktrees(&common));
        trees.extend(alternates::resolve(&common.join("objects")).unwrap_or_default());
    }
    let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let except = real(except);
    let mut trees: Vec<Utf8PathBuf> = trees.iter().map(|path| real(path)).collect();
    trees.retain(|path| !path.starts_with(&except));
    trees.sort_unstable();
    trees.dedup();
    trees
}

/// Returns the paths of the linked worktrees of a repository. Reads the registration files themselves, because a
/// worktree that cannot be opened now is the user's as well.
fn registered_worktrees(common: &Utf8Path) -> Vec<Utf8PathBuf> {
    let registered = common.join("worktrees").read_dir_utf8().into_iter().flatten().flatten();
    let checkout = |one: camino::Utf8DirEntry| {
        let text = fs::read_to_string(one.path().join("gitdir")).ok()?;
        // A relative path is relative to the registration directory.
        one.path().join(text.trim_end()).parent().map(Utf8Path::to_owned)
    };
    registered.filter_map(checkout).collect()
}

/// Opens the repository at exactly `path`, ignoring the configuration of the user and the environment.
pub(crate) fn open_repository(path: &Utf8Path) -> gix::Result<gix::ThreadSafeRepository> {
    let options = gix::open::Options::isolated().config_overrides([
        // Replaced objects are local to the primary: the same commit would have another tree
        // elsewhere.
        "core.useReplaceRefs=false",
        // Otherwise registering a worktree would set this in the configuration of the repository.
        "worktree.useRelativePaths=false",
        // gix needs a committer for the reflog of a worktree; the user's name must not appear in it.
        "committer.name=pdca",
        "committer.email=lane@pdca.invalid",
    ]);
    gix::ThreadSafeRepository::open_opts(path.as_std_path(), options)
}

fn is_plain_component(name: &str) -> bool {
    let odd = |letter: char| letter.is_control() || matches!(letter, '/' | '\\');
    !name.is_empty() && name.len() <= 100 && !name.starts_with(['.', '-']) && !name.contains(odd)
}

/// Returns the file that lanes keep beside their checkouts under this name, if any. Ignores case, because some
/// filesystems do.
fn reserved(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    if name == LOCK {
        return Some("the lock of a slot");
    }
    if name == RESCUED {
        return Some("rescued work");
    }
    if name == PORTS {
        return Some("the ports of a slot");
    }
    let ends = [
        (MARKER, "the marker of a checkout"),
        (OWNER, "the owner note of a checkout"),
        (INDEX, "the index of a checkout"),
        (NEW_INDEX, "the index of a checkout"),
        (ATTRIBUTES, "the attributes of a checkout"),
        (REPOSITORY, "the driver's repository of a checkout"),
        (LENT, "the repository of a checkout"),
        (".lock", "lock files"),
        (TMP, "temporary files"),
        (HYDRATION, "the hydration of a checkout"),
        (REMOVED, "a checkout that is being removed"),
    ];
    ends.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, what)| what)
}

fn unsupported(path: &Utf8Path, feature: Feature) -> TargetError {
    TargetError::Unsupported { path: path.to_owned(), feature }
}

/// Reads the ref format of a repository that could not be opened, to explain the failure.
fn ref_storage_on_disk(path: &Utf8Path) -> Option<String> {
    let places = [path.join(".git/config"), path.join("config")];
    let text = places.iter().find_map(|place| fs::read(place).ok())?;
    let config = gix::config::File::try_from(text.to_str().ok()?).ok()?;
    Some(config.string("extensions.refStorage")?.to_string())
}

fn refuse_by_config(path: &Utf8Path, repo: &gix::Repository) -> Result<(), TargetError> {
    let config = repo.config_snapshot();
    if let Some(format) = config.string("extensions.refStorage")
        && format.as_bstr() != "files"
    {
        return Err(unsupported(path, Feature::RefStorage { format: format.to_string() }));
    }
    if config.boolean("core.sparseCheckout") == Some(true) {
        return Err(unsupported(path, Feature::Sparse));
    }
    if let Some(remote) = promisor(&config) {
        return Err(unsupported(path, Feature::Partial { remote }));
    }
    Ok(())
}

/// Returns the remote that has the objects that are missing in a partial clone.
fn promisor(config: &gix::config::Snapshot<'_>) -> Option<String> {
    if let Some(remote) = config.string("extensions.partialClone") {
        return Some(remote.to_string());
    }
    config.plumbing().sections_by_name("remote")?.find_map(|section| {
        let promises = section.value("promisor").is_some_and(|value| value.as_bstr() != "false");
        let filters = section.value("partialCloneFilter").is_some();
        let name = section.header().subsection_name()?;
        (promises || filters).then(|| name.to_string())
    })
}

fn has_commit(repo: &gix::Repository) -> gix::Result<bool> {
    if !repo.head()?.is_unborn() {
        return Ok(true);
    }
    let refs = repo.references()?;
    Ok(refs.local_branches()?.next().is_some() || refs.remote_branches()?.next().is_some())
}

/// Checks the attributes at the top of HEAD and in the repository's `info/attributes`.
///
/// Those deeper in the tree are checked when a lane is reset to it, before any file is touched.
fn refuse_by_attributes(path: &Utf8Path, repo: &gix::Repository) -> Result<(), TargetError> {
    let private = fs::read(repo.common_dir().join("info/attributes")).unwrap_or_default();
    let tracked = tracked_attributes(repo).unwrap_or_default();
    for (file, text) in [("info/attributes", private), (".gitattributes", tracked)] {
        if let Some(feature) = unfit_attribute(repo, file, &text) {
            return Err(unsupported(path, feature));
        }
    }
    Ok(())
}

fn tracked_attributes(repo: &gix::Repository) -> Option<Vec<u8>> {
    let tree = repo.head_tree().ok()?;
    let entry = tree.lookup_entry_by_path(".gitattributes").ok()??;
    Some(entry.object().ok()?.detach().data)
}

/// Returns the first attribute in an attributes file that a lane does not support.
pub(crate) fn unfit_attribute(repo: &gix::Repository, file: &str, text: &[u8]) -> Option<Feature> {
    let config = repo.config_snapshot();
    for line in text.lines().map(<[u8]>::trim).filter(|line| !line.starts_with(b"#")) {
        for word in line.fields().skip(1) {
            let (attribute, value) = word.split_once_str("=").unwrap_or((word, b""));
            match attribute {
                b"filter" => {
                    let filter = value.to_str_lossy().into_owned();
                    let known = ["clean", "smudge", "process"].iter().any(|kind| {
                        config.string(format!("filter.{filter}.{kind}").as_str()).is_some()
                    });
                    // LFS keeps the content elsewhere; without its program a checkout would hold pointer files.
                    if filter == "lfs" || known {
                        return Some(Feature::Filter { filter, file: file.to_owned() });
                    }
                }
                b"ident" | b"working-tree-encoding" => {
                    let attribute = attribute.to_str_lossy().into_owned();
                    return Some(Feature::Attribute { attribute, file: file.to_owned() });
                }
                _ => {}
            }
        }
    }
    None
}

fn notes(repo: &gix::Repository) -> Vec<String> {
    let has_submodules = repo
        .head_tree()
        .and_then(|tree| tree.lookup_entry_by_path(".gitmodules"))
        .is_ok_and(|found| found.is_some());
    let note = "submodules are left empty in a lane";
    has_submodules.then(|| note.to_owned()).into_iter().collect()
}

fn resolve_head(repo: &gix::Repository) -> Result<Base, ResolveBaseError> {
    let unreadable = |err| ResolveBaseError::Unreadable(Box::new(err));
    let head = repo.head().map_err(unreadable)?;
    let Some(name) = head.referent_name() else {
        let commit = head.id().map(|id| id.to_string()).unwrap_or_default();
        return Err(ResolveBaseError::Detached { commit });
    };
    let branch = name.shorten().to_string();
    if head.is_unborn() {
        return Err(ResolveBaseError::Unborn { branch });
    }
    let commit = repo.head_commit().map_err(unreadable)?.id.to_string();
    Ok(Base { commit, branch })
}

fn resolve_branch(repo: &gix::Repository, branch: &str) -> Result<Base, ResolveBaseError> {
    let tried = if branch.starts_with("refs/") {
        vec![branch.to_owned()]
    } else {
        ["refs/heads/", "refs/remotes/origin/", "refs/remotes/"]
            .map(|prefix| format!("{prefix}{branch}"))
            .to_vec()
    };
    for name in &tried {
        let Ok(name) = gix::refs::FullName::try_from(name.as_str()) else {
            continue;
        };
        let found = repo
            .try_find_reference(name.as_ref())
            .map_err(|err| ResolveBaseError::Unreadable(Box::new(err)))?;
        let Some(found) = found else { continue };
        if let Some(commit) = tip(repo, found)? {
            let branch = name.shorten().to_string();
            return Ok(Base { commit: commit.to_string(), branch });
        }
    }
    Err(ResolveBaseError::NoSuchBranch { branch: branch.to_owned(), tried })
}

/// Returns the commit that a ref leads to; `None` if it leads nowhere or to another kind of object.
///
/// An object that is named but cannot be read is an error, because the branch exists.
fn tip(
    repo: &gix::Repository,
    mut found: gix::Reference<'_>,
) -> Result<Option<gix::ObjectId>, ResolveBaseError> {
    let reference = found.name().to_string();
    let unreadable = |source| ResolveBaseError::Tip { reference, source: Box::new(source) };
    // A symbolic ref may name a branch that was deleted.
    let Ok(id) = found.follow_to_object() else { return Ok(None) };
    let object = repo.find_object(id).and_then(gix::Object::peel_tags_to_end);
    let object = object.map_err(unreadable)?;
    Ok((object.kind == gix::object::Kind::Commit).then_some(object.id))
}
