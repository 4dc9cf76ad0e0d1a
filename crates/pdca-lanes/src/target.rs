//! The user's repository, looked at and never written.

use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::ByteSlice as _;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    alternates,
    claim::{LOCK, MARKER, OWNER, RESCUED},
    extra::EXTRA,
    feature::Feature,
    hydrate::HYDRATION,
    names::TMP,
    private::PORTS,
    remove::REMOVED,
    stage::{ATTRIBUTES, INDEX, NEW_INDEX},
};

/// A repository under change, checked once for everything that a lane cannot honour.
///
/// The path may be a checkout, a linked worktree, or a bare repository.
#[derive(Debug)]
pub struct Target {
    name: String,
    path: Utf8PathBuf,
    common_dir: Utf8PathBuf,
    identity: Identity,
    notes: Vec<String>,
    repo: gix::ThreadSafeRepository,
}

/// A commit to start from, and the branch that named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The commit, in full.
    pub commit: String,
    /// The branch without its `refs/heads/` or `refs/remotes/`.
    pub branch: String,
}

/// Which repository it is, whatever path led there: device and inode of its common directory.
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

/// Why a repository cannot be a target. Nothing was changed.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The name becomes a directory, so it must be one plain component.
    #[error("the target name {name:?} cannot be a directory name")]
    Name {
        /// What was given.
        name: String,
    },
    /// The name is one that lanes give to files of their own beside the checkouts.
    #[error("the target name {name:?} is reserved: lanes keep {what} under such a name")]
    Reserved {
        /// What was given.
        name: String,
        /// What would be in its place.
        what: &'static str,
    },
    /// There is no repository at the path itself.
    #[error("{path} is not a git repository")]
    NotARepository {
        /// What was given.
        path: Utf8PathBuf,
        /// What was found there.
        #[source]
        source: Box<gix::Error>,
    },
    /// There is no commit in any branch.
    #[error("{path} has no commit yet")]
    Empty {
        /// The repository.
        path: Utf8PathBuf,
    },
    /// The repository uses something that a private checkout would get wrong.
    #[error("{path} {feature}")]
    Unsupported {
        /// The repository.
        path: Utf8PathBuf,
        /// What it uses.
        feature: Feature,
    },
    /// The repository is there and could not be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The repository.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why no base could be named.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// No branch was asked for and HEAD is on none.
    #[error("HEAD is detached at {commit}, so a branch must be named")]
    Detached {
        /// Where HEAD is.
        commit: String,
    },
    /// No branch was asked for and HEAD's has no commit.
    #[error("branch {branch:?} has no commit yet")]
    Unborn {
        /// The branch that HEAD is on.
        branch: String,
    },
    /// There is no local branch and no remote branch of this name.
    #[error("no branch {branch:?}")]
    NoSuchBranch {
        /// What was asked for.
        branch: String,
        /// The refs that were looked up.
        tried: Vec<String>,
    },
    /// The branch is there, and the commit that it names cannot be read.
    #[error("cannot read the tip of {reference}")]
    Tip {
        /// The ref, in full.
        reference: String,
        /// Why not.
        #[source]
        source: Box<gix::Error>,
    },
    /// The repository could not be read.
    #[error("cannot read the refs")]
    Unreadable(#[source] Box<gix::Error>),
}

impl TargetError {
    /// What the repository uses that is not supported, where that is the reason.
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
    /// Looks at a repository and refuses what a lane cannot honour, before anything is made.
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
            repo: sync,
        })
    }

    /// The name it has in the configuration, and of its checkout in every lane.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path it was opened with.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The directory that all worktrees of the repository share, free of symbolic links.
    pub fn common_dir(&self) -> &Utf8Path {
        &self.common_dir
    }

    /// What a user may want to know: works, but not as in the primary.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Finds the commit that a branch names, or the one of HEAD's branch.
    ///
    /// A local branch comes first, then `origin`'s of that name, then `remote/branch`.
    pub fn resolve(&self, branch: Option<&str>) -> Result<Base, ResolveError> {
        let repo = self.repository();
        match branch {
            Some(branch) => resolve_branch(&repo, branch),
            None => resolve_head(&repo),
        }
    }

    /// How much a checkout of a commit takes on the disk, in bytes: what git tracks, each file in whole
    /// blocks as filesystems keep them.
    pub fn checkout_size(&self, commit: &str) -> gix::Result<u64> {
        const BLOCK: u64 = 4096;
        let repo = self.repository();
        let tree = repo.rev_parse_single(commit)?.object()?.peel_to_tree()?.id;
        let index = repo.index_from_tree(&tree)?;
        let mut size: u64 = 0;
        for entry in index.entries() {
            // A submodule is a commit of another repository; lanes leave its directory empty.
            if entry.mode != gix::index::entry::Mode::COMMIT {
                let file = repo.find_header(entry.id)?.size();
                size = size.saturating_add(file.max(1).next_multiple_of(BLOCK));
            }
        }
        Ok(size)
    }

    /// The name and address of the user, as git itself would take them for a commit in this repository:
    /// from its configuration, else from the user's own. None where neither has both.
    pub fn user(&self) -> Option<(String, String)> {
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

/// Every tree that belongs to the repository at `path` and is the user's: the path itself, the common directory, the
/// main checkout, every other linked worktree, and the object stores it borrows from, all free of symbolic links.
/// Registered worktrees below `except` are left out; of a path that is no repository there is only itself.
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

/// Where the linked worktrees of a repository are. The files are read as they are: a worktree that cannot be opened now
/// is the user's as well.
fn registered_worktrees(common: &Utf8Path) -> Vec<Utf8PathBuf> {
    let registered = common.join("worktrees").read_dir_utf8().into_iter().flatten().flatten();
    let checkout = |one: camino::Utf8DirEntry| {
        let text = fs::read_to_string(one.path().join("gitdir")).ok()?;
        // A relative path is relative to the registration.
        one.path().join(text.trim_end()).parent().map(Utf8Path::to_owned)
    };
    registered.filter_map(checkout).collect()
}

/// Opens exactly what is at `path`, without the configuration of the user or the environment.
pub(crate) fn open_repository(path: &Utf8Path) -> gix::Result<gix::ThreadSafeRepository> {
    let options = gix::open::Options::isolated().config_overrides([
        "core.useReplaceRefs=false",
        // Registering a worktree must not change the configuration of the repository.
        "worktree.useRelativePaths=false",
        // For the first line of the log of a worktree; nobody's name leaks into it.
        "committer.name=pdca",
        "committer.email=lane@pdca.invalid",
    ]);
    gix::ThreadSafeRepository::open_opts(path.as_std_path(), options)
}

fn is_plain_component(name: &str) -> bool {
    let odd = |letter: char| letter.is_control() || matches!(letter, '/' | '\\');
    !name.is_empty() && name.len() <= 100 && !name.starts_with(['.', '-']) && !name.contains(odd)
}

/// What lanes keep beside their checkouts under this name, on some filesystem.
fn reserved(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    if name == LOCK {
        return Some("the lock of a slot");
    }
    if name == RESCUED {
        return Some("what was rescued");
    }
    if name == PORTS {
        return Some("the ports of a slot");
    }
    let ends = [
        (MARKER, "whose a checkout is"),
        (OWNER, "who works in a checkout"),
        (INDEX, "what is known of a checkout"),
        (NEW_INDEX, "what is known of a checkout"),
        (ATTRIBUTES, "attributes of a checkout"),
        (EXTRA, "more checkouts of the same repository"),
        (".lock", "locks"),
        (TMP, "temporary files"),
        (HYDRATION, "the hydration of a checkout"),
        (REMOVED, "a checkout that is being removed"),
    ];
    ends.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, what)| what)
}

fn unsupported(path: &Utf8Path, feature: Feature) -> TargetError {
    TargetError::Unsupported { path: path.to_owned(), feature }
}

/// Reads the ref format of a repository that would not open, to say why it did not.
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

/// The remote that has objects which are missing here.
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

/// Looks at the attributes at the top of HEAD and of the repository itself.
///
/// Those deeper in the tree are met when a lane is reset to it, before it is touched.
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

/// Finds an attribute in the text of an attributes file that a lane cannot honour.
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
                    // Large files are kept elsewhere; without the program a checkout has stubs only.
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

fn resolve_head(repo: &gix::Repository) -> Result<Base, ResolveError> {
    let unreadable = |err| ResolveError::Unreadable(Box::new(err));
    let head = repo.head().map_err(unreadable)?;
    let Some(name) = head.referent_name() else {
        let commit = head.id().map(|id| id.to_string()).unwrap_or_default();
        return Err(ResolveError::Detached { commit });
    };
    let branch = name.shorten().to_string();
    if head.is_unborn() {
        return Err(ResolveError::Unborn { branch });
    }
    let commit = repo.head_commit().map_err(unreadable)?.id.to_string();
    Ok(Base { commit, branch })
}

fn resolve_branch(repo: &gix::Repository, branch: &str) -> Result<Base, ResolveError> {
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
            .map_err(|err| ResolveError::Unreadable(Box::new(err)))?;
        let Some(found) = found else { continue };
        if let Some(commit) = tip(repo, found)? {
            let branch = name.shorten().to_string();
            return Ok(Base { commit: commit.to_string(), branch });
        }
    }
    Err(ResolveError::NoSuchBranch { branch: branch.to_owned(), tried })
}

/// The commit that a ref leads to, or none where it leads to nothing or to something else.
///
/// An object that is named and cannot be read is an error: the branch is there.
fn tip(
    repo: &gix::Repository,
    mut found: gix::Reference<'_>,
) -> Result<Option<gix::ObjectId>, ResolveError> {
    let reference = found.name().to_string();
    let unreadable = |source| ResolveError::Tip { reference, source: Box::new(source) };
    // A symbolic ref may name a branch that is gone.
    let Ok(id) = found.follow_to_object() else { return Ok(None) };
    let object = repo.find_object(id).and_then(gix::Object::peel_tags_to_end);
    let object = object.map_err(unreadable)?;
    Ok((object.kind == gix::object::Kind::Commit).then_some(object.id))
}
