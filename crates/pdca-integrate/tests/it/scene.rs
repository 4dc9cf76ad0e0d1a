//! A target whose user has work in progress, and accepted changes.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{
    Acceptance, Drivers, Fence, FoldPlan, FoldStep, Folded, GateSetId, Gated, Light, MergeEngine,
    ObjectId, PlanEntry, Recorded, RefNamespace, ReflogEntry, Sealed, Store, Strategy, Verdict,
    fold, seal,
};
use pdca_state::{BundleId, sha256_hex};
use pdca_testkit::Repo;

pub(crate) const LOG: ReflogEntry<'static> =
    ReflogEntry { message: "pdca: test", seconds: 1_000_000_000 };

/// A repository with a branch `main` that is not checked out, and a user on `work` with uncommitted edits and an
/// unfinished merge.
pub(crate) struct Scene {
    pub(crate) repo: Repo,
    pub(crate) store: Store,
    pub(crate) fence: Fence,
    pub(crate) run: RefNamespace,
    pub(crate) base: ObjectId,
    home: tempfile::TempDir,
    as_left: BTreeMap<Utf8PathBuf, Vec<u8>>,
}

impl Scene {
    /// Creates a target with these files at its base.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let repo = Repo::new();
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.commit("base");
        Self::of(repo)
    }

    /// Creates a target from a repository whose HEAD becomes the base.
    pub(crate) fn of(repo: Repo) -> Self {
        let base = id(&repo.head());
        leave_in_the_middle(&repo);
        let home = tempfile::tempdir().unwrap();
        let room = Utf8Path::from_path(home.path()).unwrap().join("room");
        let store = Store::open(repo.path(), &room).unwrap();
        let run: RefNamespace = "run1".parse().unwrap();
        let fence = Fence::take(&store, &run, 0).unwrap();
        let as_left = checkout(&repo);
        Self { repo, store, fence, run, base, home, as_left }
    }

    pub(crate) fn room(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.home.path()).unwrap().join(name)
    }

    /// Creates a commit on `onto` in a separate checkout, without touching the user's.
    pub(crate) fn commit(
        &self,
        onto: ObjectId,
        message: &str,
        edit: impl FnOnce(&Repo),
    ) -> ObjectId {
        let path = self.room("lane");
        let text = path.as_str();
        self.repo.git(&["worktree", "add", "--quiet", "--detach", text, &onto.to_string()]);
        let lane = Repo::existing(&path);
        edit(&lane);
        let made = lane.commit(message);
        self.repo.git(&["worktree", "remove", "--force", text]);
        id(&made)
    }

    /// Returns the acceptance of a change, as a driver would fill it in.
    pub(crate) fn accept(&self, name: &str, order: u64, base: ObjectId, head: ObjectId) -> Sealed {
        let id: BundleId = name.parse().unwrap();
        let patch = self.patch(base, head);
        let digest = sha256_hex(&patch);
        let accepted = Acceptance {
            run: &self.run,
            id: &id,
            base,
            head,
            patch: &patch,
            reviewed_head: head,
            reviewed_patch: &digest,
            gate_digest: "gates1",
            completion_order: order,
            tip: None,
            stands_on: &[],
            by: None,
            trailers: &[],
            brief: None,
            overrides: &[],
        };
        seal(&self.store, &self.fence, &accepted, LOG).unwrap().0
    }

    pub(crate) fn patch(&self, base: ObjectId, head: ObjectId) -> Vec<u8> {
        self.repo.git_bytes(&["diff-tree", "-p", "--binary", &base.to_string(), &head.to_string()])
    }

    /// Seals a change of files on the base: `path = text`, or a removed `path` if there is no text.
    pub(crate) fn change(&self, name: &str, order: u64, files: &[(&str, Option<&str>)]) -> Sealed {
        let head = self.commit(self.base, &format!("change {name}"), |lane| {
            for (path, text) in files {
                match text {
                    Some(text) => lane.write(path, text),
                    None => std::fs::remove_file(lane.path().join(path)).unwrap(),
                }
            }
        });
        self.accept(name, order, self.base, head)
    }

    pub(crate) fn plan(&self, sealed: &[&Sealed], strategy: Strategy) -> FoldPlan {
        let entries = sealed.iter().map(|sealed| PlanEntry::new((*sealed).clone(), []));
        FoldPlan::new(self.base, strategy, entries).unwrap()
    }

    pub(crate) fn fold(&self, plan: &FoldPlan) -> Folded {
        self.fold_known(plan, &Recorded::default()).0
    }

    /// Folds with the steps of an earlier fold, and returns the new steps.
    pub(crate) fn fold_known(&self, plan: &FoldPlan, known: &Recorded) -> (Folded, Vec<FoldStep>) {
        let mut told = Vec::new();
        let mut engine = MergeEngine::new(&self.store, Drivers::default());
        let folded = fold(&mut engine, plan, known, &mut |step| {
            told.push(step.clone());
            Ok(())
        });
        (folded.unwrap(), told)
    }

    pub(crate) fn main(&self) -> ObjectId {
        self.store.commit_at("refs/heads/main").unwrap().unwrap()
    }

    pub(crate) fn tree(&self, commit: ObjectId) -> String {
        self.repo.git(&["rev-parse", &format!("{commit}^{{tree}}")]).trim().to_owned()
    }

    pub(crate) fn file(&self, commit: ObjectId, path: &str) -> String {
        self.repo.git(&["show", &format!("{commit}:{path}")])
    }
}

impl Drop for Scene {
    /// Asserts that the user's checkout is unchanged byte for byte.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(checkout(&self.repo) == self.as_left, "the user's checkout was changed");
        }
    }
}

/// Accepts a candidate as if the gates had passed it.
pub(crate) fn passed(folded: &Folded) -> Gated {
    let candidate = folded.candidate().clone();
    let verdict = Verdict::new(oracle().key(&candidate), Light::Green);
    Gated::new(candidate, &oracle(), verdict).unwrap()
}

pub(crate) fn oracle() -> GateSetId {
    GateSetId { gate_digest: "gates1".to_owned(), environment_digest: "env1".to_owned() }
}

pub(crate) fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.trim().as_bytes()).unwrap()
}

/// Puts the user on a branch of their own, with edits and an unfinished merge.
fn leave_in_the_middle(repo: &Repo) {
    repo.git(&["switch", "--quiet", "--create", "other"]);
    repo.write("users.txt", "theirs\n");
    repo.commit("on the other side");
    repo.git(&["switch", "--quiet", "--create", "work", "main"]);
    repo.write("users.txt", "mine\n");
    repo.commit("on my side");
    assert!(!repo.try_git(&["merge", "other"]).status.success(), "it conflicts");
    repo.write("notes.txt", "not committed\n");
}

/// Returns every byte of the user's checkout and of git's state about it: index, HEAD, the merge.
fn checkout(repo: &Repo) -> BTreeMap<Utf8PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let git = repo.path().join(".git");
    for name in ["HEAD", "index", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "config", "ORIG_HEAD"] {
        found.insert(git.join(name), std::fs::read(git.join(name)).unwrap_or_default());
    }
    for branch in ["work", "other"] {
        let path = git.join("refs/heads").join(branch);
        found.insert(path, repo.git_bytes(&["rev-parse", branch]));
    }
    walk(repo.path(), &git, &mut found);
    found
}

fn walk(dir: &Utf8Path, skip: &Utf8Path, found: &mut BTreeMap<Utf8PathBuf, Vec<u8>>) {
    for entry in dir.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let path = entry.path().to_owned();
        if path == skip {
            continue;
        }
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            walk(&path, skip, found);
        } else if kind.is_symlink() {
            let to = std::fs::read_link(&path).unwrap();
            found.insert(path, to.into_os_string().into_encoded_bytes());
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}
