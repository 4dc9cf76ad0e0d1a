//! `cargo xtask compare-merge`: three ways to merge, over the history of a real repository.
//!
//! Every commit is picked onto the parent of its parent, and every merge is repeated: by the
//! merge that `pdca` uses (git's, in the object store), by gix's, and, for some of them, by
//! `git cherry-pick` and `git merge` themselves in a checkout. The first and the last must be
//! identical, commit for commit and tree for tree; differences of gix are only counted. Nothing is
//! written to the repository: everything happens in a clone that borrows its objects.

mod git;
mod gix_merge;

use std::fmt;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{Drivers, EngineError, MergeEngine, Merged, ObjectId, Store};

use crate::{Outcome, Stopped};

/// Compare git's merge with gix's, and our fold with git's own commands
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The repository; only read
    path: Utf8PathBuf,
    /// Compare this many picks and this many merges, newest first
    #[arg(long, default_value_t = 1000)]
    limit: usize,
    /// Also make this many of each with `git cherry-pick` and `git merge` in a checkout
    #[arg(long, default_value_t = 50)]
    checked: usize,
}

/// One merge to compare.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MergeCase {
    /// The change of `commit`, on the parent of its parent.
    Pick { commit: ObjectId, onto: ObjectId },
    /// The two parents of a merge.
    Merge { ours: ObjectId, theirs: ObjectId },
}

impl fmt::Display for MergeCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pick { commit, onto } => write!(f, "pick {commit} onto {onto}"),
            Self::Merge { ours, theirs } => write!(f, "merge {theirs} into {ours}"),
        }
    }
}

/// The resulting tree, or `None` after a conflict.
type Verdict = Option<ObjectId>;

#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    clean: usize,
    gix_other_verdict: usize,
    gix_other_tree: usize,
    gix_failed: usize,
    git_time: Duration,
    gix_time: Duration,
    gix_slowest: Duration,
    checked: usize,
    unlike_git: usize,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Stopped> {
    let home = tempfile::tempdir()?;
    let home = Utf8Path::from_path(home.path()).ok_or("the temporary directory is not UTF-8")?;
    let clone = git::borrow(&args.path.canonicalize_utf8()?, &home.join("clone"))?;
    let store = Store::open(&clone, &home.join("room"))?;
    eprintln!("{}", store.git_version());
    let (mut sound, mut compared) = (true, 0);
    for (name, cases) in
        [("picks", git::picks(&clone, args.limit)?), ("merges", git::merges(&clone, args.limit)?)]
    {
        let tally = compare(&store, &cases, &home.join("checkout"), args.checked)?;
        print!("{}", tally.report(name));
        sound &= tally.unlike_git == 0;
        compared += tally.cases;
    }
    if compared == 0 {
        return Err(
            "the history has nothing to compare: no merge, and no three commits in a row".into()
        );
    }
    Ok(if sound { Outcome::Passed } else { Outcome::Failed })
}

fn compare(
    store: &Store,
    cases: &[MergeCase],
    checkout: &Utf8Path,
    checked: usize,
) -> Result<Tally, Stopped> {
    let mut engine = MergeEngine::new(store, Drivers::default());
    let mut gix = gix_merge::Gix::open(store.path())?;
    let mut tally = Tally::default();
    // Spread over the whole history, not only its newest part.
    let every = cases.len().div_ceil(checked.max(1)).max(1);
    for (number, case) in cases.iter().enumerate() {
        let start = Instant::now();
        let ours = verdict(&mut engine, *case)?;
        tally.git_time += start.elapsed();
        tally.cases += 1;
        tally.clean += usize::from(ours.is_some());
        let start = Instant::now();
        match gix.merge(*case) {
            Ok(theirs) if theirs == ours => {}
            Ok(theirs) if theirs.is_some() == ours.is_some() => {
                tally.gix_other_tree += 1;
                println!("other tree by gix: {case}");
            }
            Ok(_) => {
                tally.gix_other_verdict += 1;
                println!("other verdict by gix: {case}");
            }
            Err(error) => {
                tally.gix_failed += 1;
                println!("gix failed: {case}: {error}");
            }
        }
        let took = start.elapsed();
        tally.gix_time += took;
        tally.gix_slowest = tally.gix_slowest.max(took);
        if checked > 0 && number % every == 0 {
            tally.checked += 1;
            if let Some(difference) = git::differs(store, &mut engine, *case, ours, checkout)? {
                tally.unlike_git += 1;
                println!("UNLIKE GIT: {case}: {difference}");
            }
        }
    }
    Ok(tally)
}

fn verdict(engine: &mut MergeEngine<'_>, case: MergeCase) -> Result<Verdict, Stopped> {
    let merged = match case {
        MergeCase::Pick { commit, onto } => engine.pick(commit, onto),
        MergeCase::Merge { ours, theirs } => engine.merge(ours, theirs),
    };
    match merged {
        Ok(Merged::Clean { tree }) => Ok(Some(tree)),
        Ok(Merged::Conflicted { .. }) | Err(EngineError::NoAnswer { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Tally {
    fn report(&self, name: &str) -> String {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let each =
            |time: Duration| ms(time) / f64::from(u32::try_from(self.cases.max(1)).unwrap_or(1));
        format!(
            "{name}: {} compared, {} clean\n\
             \x20 gix: {} with another verdict, {} with another tree, {} failed; \
             {:.1} ms each against {:.1} ms, slowest {:.0} ms\n\
             \x20 git in a checkout: {} compared, {} differ\n",
            self.cases,
            self.clean,
            self.gix_other_verdict,
            self.gix_other_tree,
            self.gix_failed,
            each(self.gix_time),
            each(self.git_time),
            ms(self.gix_slowest),
            self.checked,
            self.unlike_git,
        )
    }
}
