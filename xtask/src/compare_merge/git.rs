//! The same merges by git's own commands, in a checkout.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{
    Acceptance, Fence, FoldFate, FoldPlan, MergeEngine, ObjectId, PlanEntry, Recorded,
    RefNamespace, ReflogEntry, SealError, Store, StoreError, Strategy, fold, seal,
};

use super::{MergeCase, Verdict};
use crate::{Stopped, program};

/// Settings that make git behave alike on every machine, without questions.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "user.name=compare",
    "user.email=compare@localhost",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "merge.renameLimit=7000",
    "core.autocrlf=false",
    "advice.mergeConflict=false",
    "rerere.enabled=false",
    "submodule.recurse=false",
];

/// Clones a repository without copying its objects, and without a checkout.
pub(super) fn borrow(path: &Utf8Path, place: &Utf8Path) -> Result<Utf8PathBuf, Stopped> {
    let args = ["clone", "--quiet", "--bare", "--shared", path.as_str(), place.as_str()];
    program::output("git", &args, path)?;
    Ok(place.to_owned())
}

/// Returns commits with one parent that has one parent.
pub(super) fn picks(repo: &Utf8Path, limit: usize) -> Result<Vec<MergeCase>, Stopped> {
    let mut cases = Vec::new();
    let log = git(repo, &["log", "--all", "--no-merges", "--format=%H %P"])?;
    let parents: std::collections::BTreeMap<&str, &str> =
        log.lines().filter_map(|line| line.split_once(' ')).collect();
    for line in log.lines() {
        let Some((commit, parent)) = line.split_once(' ') else { continue };
        if let Some(onto) = parents.get(parent).filter(|onto| !onto.is_empty()) {
            cases.push(MergeCase::Pick { commit: id(commit)?, onto: id(onto)? });
        }
        if cases.len() == limit {
            break;
        }
    }
    Ok(cases)
}

/// Returns merges of two parents.
pub(super) fn merges(repo: &Utf8Path, limit: usize) -> Result<Vec<MergeCase>, Stopped> {
    let most = format!("--max-count={limit}");
    let args = ["log", "--all", "--min-parents=2", "--max-parents=2", &most, "--format=%P"];
    let mut cases = Vec::new();
    for line in git(repo, &args)?.lines() {
        let (ours, theirs) = line.split_once(' ').ok_or("a merge without two parents")?;
        cases.push(MergeCase::Merge { ours: id(ours)?, theirs: id(theirs)? });
    }
    Ok(cases)
}

/// Compares our fold with git's own command, and describes a difference.
pub(super) fn differs(
    store: &Store,
    engine: &mut MergeEngine<'_>,
    case: MergeCase,
    merged: Verdict,
    checkout: &Utf8Path,
) -> Result<Option<String>, Stopped> {
    let expected = in_a_checkout(store.path(), case, checkout)?;
    let ours = match folded(store, engine, case)? {
        Folded::Made(made) => Some(made),
        Folded::Stopped => None,
        Folded::Unfit => {
            let tree = |made: Made| made.tree.split(' ').next().unwrap_or_default().to_owned();
            let (merged, expected) = (merged.map(|tree| tree.to_string()), expected.map(tree));
            return Ok((merged != expected).then(|| told(&merged, &expected)));
        }
    };
    Ok((ours != expected).then(|| told(&ours, &expected)))
}

fn told(ours: &impl std::fmt::Debug, gits: &impl std::fmt::Debug) -> String {
    format!("{ours:?}, and git has {gits:?}")
}

/// The result of a case as a sealed change.
enum Folded {
    Made(Made),
    /// It conflicts, or is empty.
    Stopped,
    /// It cannot be sealed or folded, and is compared by its tree only.
    Unfit,
}

/// The parts of a commit that must be equal.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    tree: String,
    author: String,
    message: String,
}

fn made(repo: &Utf8Path, commit: &str, case: MergeCase) -> Result<Made, Stopped> {
    let show = |format: &str| git(repo, &["log", "-1", "--date=raw", format, commit]);
    let message = show("--format=%B")?;
    let message = message.trim_end().trim_end_matches("Pdca-Sealed: compare").trim_end();
    Ok(match case {
        MergeCase::Pick { .. } => Made {
            tree: show("--format=%T")?.trim().to_owned(),
            author: show("--format=%an <%ae> %ad")?,
            message: message.to_owned(),
        },
        // Author and message of a merge are ours to choose.
        MergeCase::Merge { .. } => Made {
            tree: show("--format=%T %P")?.trim().to_owned(),
            author: String::new(),
            message: String::new(),
        },
    })
}

/// Runs `git cherry-pick` or `git merge`; returns `None` if it stops.
fn in_a_checkout(
    repo: &Utf8Path,
    case: MergeCase,
    place: &Utf8Path,
) -> Result<Option<Made>, Stopped> {
    if !place.exists() {
        git(repo, &["worktree", "add", "--quiet", "--detach", "--no-checkout", place.as_str()])?;
    }
    let (start, args) = match case {
        MergeCase::Pick { commit, onto } => {
            (onto, vec!["cherry-pick".to_owned(), "--allow-empty".to_owned(), commit.to_string()])
        }
        MergeCase::Merge { ours, theirs } => {
            let args = ["merge", "--quiet", "--no-ff", "--no-edit", &theirs.to_string()];
            (ours, args.map(str::to_owned).to_vec())
        }
    };
    git(place, &["reset", "--quiet", "--hard", &start.to_string()])?;
    git(place, &["clean", "-ffdxq"])?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if git(place, &args).is_err() {
        return Ok(None);
    }
    let head = git(place, &["rev-parse", "HEAD"])?;
    made(repo, head.trim(), case).map(Some)
}

/// Seals and folds the same change.
fn folded(store: &Store, engine: &mut MergeEngine<'_>, case: MergeCase) -> Result<Folded, Stopped> {
    let repo = store.path();
    let (onto, head, strategy) = match case {
        MergeCase::Pick { commit, onto } => (onto, commit, Strategy::RebaseFf),
        MergeCase::Merge { ours, theirs } => (ours, theirs, Strategy::MergeCommit),
    };
    let base = git(repo, &["rev-parse", &format!("{head}^")])?;
    // Each needs a run of its own, because an existing seal is not made again.
    let run: RefNamespace = format!("c{}", &head.to_string()[..20]).parse()?;
    let log = ReflogEntry { message: "compare", seconds: 0 };
    let fence = Fence::take(store, &run, 0)?;
    let digest = pdca_state::sha256_hex(b"");
    let accepted = Acceptance {
        run: &run,
        id: &"compare".parse()?,
        base: id(base.trim())?,
        head,
        patch: b"",
        reviewed_head: head,
        reviewed_patch: &digest,
        gate_digest: "none",
        completion_order: 0,
        tip: None,
        stands_on: &[],
        by: None,
        trailers: &[],
        brief: None,
        overrides: &[],
    };
    let sealed = match seal(store, &fence, &accepted, log) {
        Ok((sealed, _)) => sealed,
        Err(
            SealError::NotLinear { .. }
            | SealError::NoChange { .. }
            | SealError::Store(StoreError::Form { .. }),
        ) => return Ok(Folded::Unfit),
        Err(error) => return Err(error.into()),
    };
    let plan = FoldPlan::new(onto, strategy, [PlanEntry::new(sealed, [])])?;
    let folded = fold(engine, &plan, &Recorded::default(), &mut |_| Ok(()))?;
    match folded.bundles.first().map(|bundle| &bundle.fate) {
        Some(FoldFate::Applied { .. }) => {
            let commit = folded.candidate().commit().to_string();
            Ok(Folded::Made(made(repo, &commit, case)?))
        }
        // git stops if nothing is left to commit, and succeeds if nothing is to be merged.
        Some(FoldFate::AlreadyPresent { .. }) => Ok(match case {
            MergeCase::Pick { .. } => Folded::Stopped,
            MergeCase::Merge { .. } => Folded::Unfit,
        }),
        // A merge that follows a rename of the branch goes beyond the change.
        Some(
            FoldFate::Conflict { .. }
            | FoldFate::Held { .. }
            | FoldFate::Unsealed { .. }
            | FoldFate::Failed { .. },
        )
        | None => Ok(Folded::Stopped),
    }
}

fn git(dir: &Utf8Path, args: &[&str]) -> Result<String, Stopped> {
    let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
    let args: Vec<&str> = settings.chain(args.iter().copied()).collect();
    let output = program::command("git", &args, dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_EDITOR", "true")
        .env("LC_ALL", "C")
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn id(hex: &str) -> Result<ObjectId, Stopped> {
    Ok(ObjectId::from_hex(hex.as_bytes())?)
}
