//! One attempt of the resolver: the conflicted tree in a private checkout, and the outcome.
//!
//! Only the locks of the bundle and of the checkout are held meanwhile. So the user, other
//! integrations and runs of other bundles are not blocked.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{
    ConflictDir, FIRST_SLOT, Ingredients, ResolverOutcome, Sides, StoreError, TargetBranch,
};
use pdca_journal::events::WarningCode;
use pdca_lanes::{ClaimError, CommitSignature, OwnerNote, WorkbenchError};
use pdca_leaves::{
    BoxError, Call, CallFacts, CallPaths, Inputs, LeafError, LeafOutcome, Output, Role,
};
use pdca_state::{Artifact, Bundle, Snapshot, chain};

use crate::attempt_notes::listed;
use crate::checkout::{Checkout, CheckoutError};
use crate::gate_lines::gate_lines;
use crate::instructions::instructions_for;
use crate::lane_env::LaneEnv;
use crate::leaf::{Guarded, leaf_key, speaks_of_the_leaf, without_checkout};
use crate::products::set_aside_products;
use crate::run_bundle::{BeatError, Driver};

/// The signer of commits that never leave the resolver's checkout. Fixed, so that a driver that takes over makes
/// identical commits.
const SCRATCH: CommitSignature<'static> =
    CommitSignature { name: "pdca", email: "scratch@pdca.invalid", seconds: 0 };
/// The first slot for resolvers, above those for combinations.
const FIRST_RESOLVER_SLOT: u32 = 2 * FIRST_SLOT;
/// Larger files are not searched for markers.
const LARGEST: u64 = 64 << 20;
/// The most resolvers at the same time.
const SLOTS: u32 = 64;

/// The conflict that the resolver is asked about.
pub(super) struct Ask<'a> {
    pub(super) front: &'a TargetBranch,
    pub(super) bundle: &'a Bundle,
    pub(super) sides: &'a Sides,
    pub(super) file: &'a ConflictDir,
    /// The number of this attempt, from 1.
    pub(super) attempt: u32,
}

/// A checkout with the conflict in it, and the resolver's job.
struct Bench<'b> {
    checkout: &'b Checkout,
    /// The commit with conflict markers in its files.
    marked: String,
    job: Utf8PathBuf,
    owner: String,
}

/// Runs the resolver on a conflict, and inspects the result.
///
/// An error is not the resolver's fault: the attempt stays open, and is continued the next time.
pub(super) fn attempt_resolution(
    cx: &Driver<'_>,
    ask: &Ask<'_>,
) -> Result<ResolverOutcome, BeatError> {
    let document = ask.sides.document(&ask.front.branch).into_bytes();
    let inputs = match Inputs::for_resolver(ask.bundle, document) {
        Ok(inputs) => inputs,
        Err(error) => return unanswered(cx, ask, error.into()),
    };
    let checkout = resolver_checkout(cx, ask)?;
    let inputs = match instructions_for(cx.config, Role::Resolver, Some(&checkout)) {
        Ok(instructions) => inputs.instructed(instructions),
        Err(error) => return unanswered(cx, ask, error),
    };
    let kept = cx.config.kept();
    let hold = ask.file.hold();
    // A lock file of its own: every driver that is admitted waits for the workspace's children, and
    // a resolver may take an hour (decision 016).
    let request = Call { hold: Some(&hold), ..resolver_request(cx, &checkout, &inputs, &kept) };
    let snapshot = ask.bundle.load().ok();
    let brief = snapshot.as_ref().and_then(Snapshot::authored_brief);
    let gates = gate_lines(cx.config, brief);
    let number = snapshot.as_ref().map_or(1, |snapshot| snapshot.iterations + 1);
    let git_common_dir = Some(checkout.target.common_dir().as_str());
    let facts =
        CallFacts { attempt: number, gates: gates.as_deref(), git_common_dir, ..request.facts };
    let request = Call { facts, ..request };
    let attempt = ask.attempt.to_string();
    let (tip, head) = (ask.sides.tip.to_string(), ask.sides.sealed.record().head.to_string());
    let parts = [("attempt", attempt.as_str()), ("tip", &tip), ("head", &head)];
    let key = match leaf_key(&request, &parts) {
        Ok(key) => key,
        Err(error) => return unanswered(cx, ask, error),
    };
    let job = ask.file.job(&key.to_string());
    let owner = checkout.work_name(ask.bundle, Role::Resolver, &key);
    if !checkout.is_owned_by(&owner).map_err(CheckoutError::from)? {
        // The recorded end of a resolver counts only while its work is still in the checkout.
        // The job is about to go, and with it the only record of what its calls cost.
        cx.keep_calls(ask.bundle, &job);
        cx.config.jobs().remove(&job).map_err(BeatError::Own)?;
    }
    let marked = mark(ask).map_err(CheckoutError::Objects)?;
    let bench = Bench { checkout: &checkout, marked, job, owner };
    work_on(cx, ask, &request, &bench)
}

/// Describes the call, without its job directory.
fn resolver_request<'a>(
    cx: &'a Driver<'_>,
    checkout: &'a Checkout,
    inputs: &'a Inputs,
    kept: &'a [Utf8PathBuf],
) -> Call<'a> {
    let places = CallPaths {
        workspace: &cx.config.dirs.root,
        bundle_root: cx.config.dirs.bundles.path(),
        worktree: Some(checkout.lane.path()),
        tmp: cx.lane_env_of(Some(checkout)).and_then(LaneEnv::tmp),
        fix: None,
        primary: Some(checkout.target.path()),
        kept,
        hidden: &[],
    };
    let config = &cx.config.leaves.resolver;
    Call { facts: cx.facts(Some(checkout)), ..Call::new(config, inputs, Utf8Path::new(""), places) }
}

/// Claims a free checkout at the tip of the branch.
fn resolver_checkout(cx: &Driver<'_>, ask: &Ask<'_>) -> Result<Checkout, CheckoutError> {
    let (target, branch) = (&ask.front.target, &ask.front.branch);
    let tip = ask.sides.tip.to_string();
    let mut slot = FIRST_RESOLVER_SLOT;
    loop {
        match cx.claim_for_combination(target, branch, &tip, slot) {
            Err(CheckoutError::Workbench(WorkbenchError::Claim {
                source: ClaimError::Held { .. },
                ..
            })) if slot < FIRST_RESOLVER_SLOT + SLOTS => {
                slot += 1;
            }
            answer => return answer,
        }
    }
}

fn work_on(
    cx: &Driver<'_>,
    ask: &Ask<'_>,
    request: &Call<'_>,
    bench: &Bench<'_>,
) -> Result<ResolverOutcome, BeatError> {
    let prepare = |_try: u32| -> Result<(), BoxError> {
        cx.clear(ask.bundle, bench.checkout, &bench.owner)?;
        Ok(lay_out(cx, bench)?)
    };
    let request = Call { job: &bench.job, prepare: Some(&prepare), ..*request };
    let wire = cx.watch_from(bench.checkout, &bench.job)?;
    let Guarded { answer, planted } = cx.guarded(ask.bundle, &request)?;
    let outcome = match answer {
        Ok(outcome) => outcome,
        Err(error) => {
            for one in wire.breaches().iter().chain(&planted) {
                let text = format!("while the resolver ran, this changed: {one}");
                cx.warn(ask.bundle, WarningCode::ChangedMeanwhile, text);
            }
            return unanswered(cx, ask, error);
        }
    };
    if !outcome.guard.is_enforced() {
        let inside = outcome.bundle_changed.iter();
        let inside = inside.map(|path| ask.bundle.dir().join(path).into_string());
        let outside = breaches(cx, ask, wire.breaches());
        let written: Vec<String> = outside.into_iter().chain(inside).chain(planted).collect();
        if !written.is_empty() {
            let what = "the resolver wrote outside its checkout".to_owned();
            let log = format!("Written outside the checkout:\n- {}\n", written.join("\n- "));
            return Ok(ResolverOutcome::Failed { what, log });
        }
    }
    take_resolution_of(cx, ask, bench, &outcome)
}

/// Puts the merged tree into the checkout, uncommitted, with its markers.
fn lay_out(cx: &Driver<'_>, bench: &Bench<'_>) -> Result<(), CheckoutError> {
    let lane = &bench.checkout.lane;
    // Applied to the working tree and not checked out, so that HEAD stays at the branch and the
    // result is one change on it.
    let patch = lane.diff(&bench.checkout.attempt.base, &bench.marked)?;
    if patch.is_empty() {
        return Ok(());
    }
    cx.effects.perform("conflict-tree", || lane.apply(&patch)).map_err(CheckoutError::Conflicted)
}

/// Filters the writes outside the checkout. The target branch and the branches of integrations may move meanwhile,
/// because nothing is locked; a landing compares before it moves them.
fn breaches(cx: &Driver<'_>, ask: &Ask<'_>, found: Vec<String>) -> Vec<String> {
    let branch = format!("ref {} ", ask.front.reference);
    let (moved, written): (Vec<String>, Vec<String>) = found
        .into_iter()
        .partition(|one| one.starts_with(&branch) || one.starts_with("ref refs/heads/pdca/"));
    for one in moved {
        cx.warn(
            ask.bundle,
            WarningCode::ChangedMeanwhile,
            format!("while the resolver ran, this moved: {one}"),
        );
    }
    written
}

/// Commits the resolver's work, and classifies it.
fn take_resolution_of(
    cx: &Driver<'_>,
    ask: &Ask<'_>,
    bench: &Bench<'_>,
    outcome: &LeafOutcome,
) -> Result<ResolverOutcome, BeatError> {
    let failed = |what: &str, log: String| {
        Ok(ResolverOutcome::Failed { what: format!("the resolver {what}"), log })
    };
    let lane = &bench.checkout.lane;
    let name = format!("products-{}-resolver", ask.bundle.id());
    let left = set_aside_products(cx, ask.bundle, bench.checkout, &name, &|_| Ok(()))?;
    if !left.is_empty() {
        let (paths, place) = (listed(&left), lane.aside(&name));
        let text = format!(
            "build products are left out of the resolution: {paths}; they are kept in {place}"
        );
        cx.warn(ask.bundle, WarningCode::ProductsLeftOut, text);
    }
    let nested = lane.nested().map_err(CheckoutError::from)?;
    if !nested.is_empty() {
        let names: Vec<&str> = nested.iter().map(|path| path.as_str()).collect();
        let log = format!("No patch can hold:\n- {}\n", names.join("\n- "));
        return failed("left a repository inside the checkout", log);
    }
    let commit = || lane.commit_all("pdca: a resolution\n", &SCRATCH);
    cx.effects.perform("commit", commit).map_err(CheckoutError::from)?;
    let head = bench.checkout.head()?;
    let patch = lane.diff(&bench.checkout.attempt.base, &head).map_err(CheckoutError::from)?;
    let tree_of = |commit: &str| lane.tree_of(commit).map_err(CheckoutError::from);
    let tree = tree_of(&head)?;
    let given = ask.sides.tree.to_string();
    // Checked before the markers: a conflict without text, such as a deleted file, leaves none.
    if tree == given {
        let log = "The checkout is as git left it.\n".to_owned();
        return failed("changed nothing", log);
    }
    if tree == tree_of(&bench.checkout.attempt.base)? {
        settle(cx, bench, head)?;
        return Ok(ResolverOutcome::Empty);
    }
    let left = markers_left(ask, bench, &patch);
    if !left.is_empty() {
        let log = format!("Markers are left:\n- {}\n", left.join("\n- "));
        return failed("left conflict markers", log);
    }
    settle(cx, bench, head)?;
    let notes = outcome.get(Output::Artifact(Artifact::BuildNotes)).map(<[u8]>::to_vec);
    Ok(ResolverOutcome::Resolved { patch, notes })
}

/// Records that a commit holds all work in the checkout, so that it needs no rescue.
fn settle(cx: &Driver<'_>, bench: &Bench<'_>, head: String) -> Result<(), CheckoutError> {
    let owner = OwnerNote { job: bench.owner.clone(), head: Some(head) };
    cx.set_owner(bench.checkout, &owner)
}

/// Classifies a call without an answer: a failed attempt, or an error that is not the resolver's.
fn unanswered(
    cx: &Driver<'_>,
    ask: &Ask<'_>,
    error: LeafError,
) -> Result<ResolverOutcome, BeatError> {
    // A failure during cancellation is a consequence of it.
    if matches!(error, LeafError::Cancelled) || cx.cancel.is_cancelled() {
        return Err(BeatError::Interrupted);
    }
    let error = match without_checkout(error) {
        Ok(checkout) => return Err(BeatError::Checkout(checkout)),
        Err(error) => *error,
    };
    if speaks_of_the_leaf(&error) {
        let log = error.error_log().map_or_else(String::new, str::to_owned);
        let what = if let LeafError::Failed { ending, .. } = &error {
            format!("the resolver failed: {ending}")
        } else {
            chain(&error)
        };
        return Ok(ResolverOutcome::Failed { what, log });
    }
    let (role, log) = (Role::Resolver.as_str(), ask.file.dir().to_owned());
    Err(BeatError::Leaf { role, log, source: Box::new(error) })
}

/// Returns the markers of this conflict that are left, in the conflicting files and in the rest of the
/// patch.
fn markers_left(ask: &Ask<'_>, bench: &Bench<'_>, patch: &[u8]) -> Vec<String> {
    let sides = (ask.sides.tip.to_string(), ask.sides.sealed.record().head.to_string());
    let mut left = Vec::new();
    for conflict in &ask.sides.conflicts {
        let file = conflict.path.to_string();
        // A file that is gone, or not a plain file, has no markers.
        let root = bench.checkout.lane.path();
        let text = pdca_state::files::read_within(root, Utf8Path::new(&file), LARGEST);
        let text = text.ok().flatten().unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n').zip(1_usize..);
        let found = lines.filter(|(line, _)| is_marker(line, &sides));
        left.extend(found.map(|(_, number)| format!("{file}:{number}")));
    }
    // The resolver may have moved the text into another file.
    if left.is_empty() {
        let lines = patch.split(|byte| *byte == b'\n').zip(1_usize..);
        let added = lines.filter_map(|(line, number)| Some((line.strip_prefix(b"+")?, number)));
        let found = added.filter(|(line, _)| is_marker(line, &sides));
        left.extend(found.map(|(_, number)| format!("line {number} of the patch")));
    }
    left
}

/// Returns whether a line is a marker of this conflict: any number of angle brackets, and the id of a side.
fn is_marker(line: &[u8], (ours, theirs): &(String, String)) -> bool {
    let of = |letter: u8, side: &str| {
        let width = line.iter().take_while(|byte| **byte == letter).count();
        let rest = line.get(width..).and_then(|rest| rest.strip_prefix(b" "));
        width > 0 && rest.is_some_and(|rest| rest.starts_with(side.as_bytes()))
    };
    of(b'<', ours) || of(b'>', theirs)
}

/// Makes a commit of the tree with markers, so that a checkout can be reset to it. Nothing refers to
/// it; it is made again if it is missing.
fn mark(ask: &Ask<'_>) -> Result<String, StoreError> {
    let made = ask.front.store.commit_tree(
        &Ingredients {
            base: ask.sides.tip,
            patch: b"",
            message: "pdca: a conflict\n",
            name: SCRATCH.name,
            email: SCRATCH.email,
            seconds: SCRATCH.seconds,
        },
        ask.sides.tree,
    )?;
    Ok(made.to_string())
}

#[cfg(test)]
mod tests {
    use super::is_marker;

    #[test]
    fn a_marker_is_known_by_the_id_that_it_carries() {
        let sides = ("aaaa".to_owned(), "bbbb".to_owned());
        for (line, expected) in [
            ("<<<<<<< aaaa", true),
            ("<<<<<<<<<< aaaa:old/name", true),
            (">>>>>>> bbbb\r", true),
            (">>>>>>> aaaa", false),
            ("<<<<<<< HEAD", false),
            (" <<<<<<< aaaa", false),
            ("=======", false),
            (" aaaa", false),
        ] {
            assert_eq!(is_marker(line.as_bytes(), &sides), expected, "{line}");
        }
    }
}
