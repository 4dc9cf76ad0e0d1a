//! The private checkout in which a bundle is built and checked, at base or at base + patch.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_gates::{Change, RowCheckout, Tree, TreeFault};
use pdca_integrate::{RefError, StoreError};
use pdca_journal::events::WarningCode;
use pdca_journal::{EffectSide, Point};
use pdca_lanes::{
    ApplyError, Hydrate, LaneError, Observer, OwnerNote, Reset, ResolveBaseError, Setup, Target,
    TargetError, Tripwire, Workbench, WorkbenchError, WorkbenchEvent, WorkspaceId,
};
use pdca_leaves::Role;
use pdca_process::Env;
use pdca_state::{Artifact, Brief, Bundle, Snapshot, asked_digest, sha256_hex};

use crate::attempt::Attempt;
use crate::authorship::Author;
use crate::base::{TargetTip, base_of};
use crate::check::gate_sandbox;
use crate::commits::{author_for, commit_id, keep_change, keep_ref, maker, message_for, signature};
use crate::config::TargetSpec;
use crate::further_checkouts::FurtherCheckouts;
use crate::guard::{relieve_guard, stand_guard};
use crate::integrate::FIRST_SLOT;
use crate::job::JobKey;
use crate::lane_env::LaneEnv;
use crate::lane_owner::LaneOwners;
use crate::products::set_aside_products;
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::EventKind;

/// The number of slots tried for a combination, and the distance between them.
// Three may run side by side, see `claim_for_combination`. The step keeps the spares of one slot
// apart from the slots of the others.
const SPARES: u32 = 4;
const SPARE_STEP: u32 = FIRST_SLOT / SPARES;

/// The message of a commit that holds what the fixes of gate rows changed.
const FIXES: &str = "Apply automatic fixes\n";

/// A workbench and the attempt it is claimed for.
#[derive(Debug)]
pub(crate) struct Checkout {
    pub(crate) bench: Workbench,
    pub(crate) attempt: Attempt,
    /// Claimed for a combination of bundles: a verdict reached here may land.
    pub(crate) is_common: bool,
    /// The names of the lane; `None` with a single lane.
    pub(crate) lane_env: Option<LaneEnv>,
    /// Distinguishes this workspace from others that share the lanes.
    pub(crate) workspace: String,
}

impl std::ops::Deref for Checkout {
    type Target = Workbench;

    fn deref(&self) -> &Workbench {
        &self.bench
    }
}

/// The reason there is no usable checkout. None of these is the bundle's fault.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    #[error("the target `{name}` cannot be used")]
    Target { name: String, source: TargetError },
    #[error("the target `{name}` has no base to build on")]
    Base { name: String, source: ResolveBaseError },
    #[error(transparent)]
    Workbench(#[from] WorkbenchError),
    /// A git operation in the checkout failed.
    #[error("an operation in the private checkout failed")]
    Lane(#[from] LaneError),
    /// The checkout was removed while in use. Uncommitted work in it is lost.
    #[error("the private checkout {path} was removed while in use")]
    Lost { path: Utf8PathBuf },
    #[error("the target's objects cannot be used")]
    Objects(#[source] StoreError),
    #[error("the ref that keeps the work cannot be moved")]
    Ref(#[source] RefError),
    /// The record of the attempt names a target that is no longer configured.
    #[error("the target `{name}` is no longer configured")]
    Unconfigured { name: String },
    /// The record of the attempt names something that is no commit id.
    #[error("the record of the attempt names {given:?}, which is no commit id")]
    NoCommit { given: String },
    /// The patch of the attempt before cannot be put into the checkout.
    #[error("the patch of the attempt before cannot be put into the checkout")]
    Last(#[source] ApplyError),
    #[error("the merged tree cannot be put into the checkout")]
    Conflicted(#[source] ApplyError),
    #[error("the record of the checkout cannot be written")]
    Record(#[source] io::Error),
}

impl Driver<'_> {
    /// Claims a checkout in a slot that no bundle uses, for a commit that combines several bundles.
    pub(crate) fn claim_for_combination(
        &self,
        spec: &TargetSpec,
        branch: &str,
        commit: &str,
        slot: u32,
    ) -> Result<Checkout, CheckoutError> {
        let name = || spec.name.clone();
        let target = Target::open(&spec.name, &spec.path)
            .map_err(|source| CheckoutError::Target { name: name(), source })?;
        // A batch that gates a branch, an integration and a publication may run side by side.
        let spares = (0..SPARES).map(|spare| slot + spare * SPARE_STEP);
        let lanes = self.config.lanes.lent().ended_by(self.cancel);
        let mut bench = Workbench::claim(&lanes, spares, target)?;
        let lane_env = Some(take_names(self, &mut bench)?);
        let attempt = Attempt {
            iterations: 0,
            brief: String::new(),
            target: name(),
            branch: branch.to_owned(),
            base: commit.to_owned(),
            tip: None,
            stands_on: Vec::new(),
            made: None,
            changes: Vec::new(),
            asked: None,
            refolded: None,
            acceptance: None,
        };
        let workspace = self.config.dirs.mark();
        Ok(Checkout { bench, attempt, is_common: true, lane_env, workspace })
    }

    /// Resets the checkout to the base and makes `job` its owner. Unfinished work of an earlier attempt
    /// is kept under a ref first.
    pub(crate) fn clear(
        &self,
        bundle: &Bundle,
        checkout: &Checkout,
        job: &str,
    ) -> Result<(), CheckoutError> {
        clear_at(self, bundle, checkout, job, &checkout.attempt.base)
    }

    /// Keeps what changed in a lane while no driver used it, and tells of it.
    pub(crate) fn keep_idle_changes(
        &self,
        bundle: &Bundle,
        checkout: &Checkout,
        goes_on: bool,
    ) -> Result<(), CheckoutError> {
        let reset = if checkout.is_common { Reset::Clean } else { self.config.lanes.reset };
        let observed = Observed { driver: self, bundle, checkout };
        Ok(checkout.bench.keep_idle_changes(reset, goes_on, &observed)?)
    }

    /// Records the owner of the work in the checkout.
    pub(crate) fn set_owner(
        &self,
        checkout: &Checkout,
        owner: &OwnerNote,
    ) -> Result<(), CheckoutError> {
        Ok(self.effects.perform("occupy", || checkout.bench.set_owner(owner))?)
    }

    /// Arms the tripwire on the primary checkout while gates run.
    pub(crate) fn watch(&self, checkout: &Checkout) -> Result<Tripwire, CheckoutError> {
        Ok(checkout.arm(&self.config.dirs.own())?)
    }

    /// Arms the tripwire while a leaf runs. Its baseline is kept in the job directory, so that a later driver compares too.
    pub(crate) fn watch_from(
        &self,
        checkout: &Checkout,
        job: &Utf8Path,
    ) -> Result<Tripwire, CheckoutError> {
        Ok(checkout.arm_for(&self.config.dirs.own(), job)?)
    }
}

/// Claims the checkout for a bundle; `None` where no target is configured.
///
/// `fresh` begins an attempt: unless one with the same brief is under way, the base is computed
/// from the branch's tip. Otherwise the recorded base is used.
pub(crate) fn claim_checkout(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    fresh: bool,
) -> Result<Option<Checkout>, BeatError> {
    let Some((target, attempt)) = attempt_for(cx, bundle, snapshot, fresh)? else {
        return Ok(None);
    };
    let slot = slot_for(cx, bundle);
    let lanes = cx.config.lanes.lent().ended_by(cx.cancel);
    // The lane's lock before the record: the journal never names a slot that another process holds.
    let mut bench = Workbench::claim(&lanes, [slot], target).map_err(CheckoutError::from)?;
    if let Some(run) = cx.run {
        let claim = || run.claim(bundle.id(), slot, &attempt.base);
        cx.effects.perform("claim", claim)?;
    }
    if let Some(aside) = bench.lane.moved_aside() {
        cx.warn(
            bundle,
            WarningCode::CheckoutReplaced,
            format!("the checkout was no longer a repository; it is kept as {aside}"),
        );
    }
    // A single lane shares its names with nothing.
    let lane_env = cx.slot().map(|_| take_names(cx, &mut bench)).transpose()?;
    let path = bench.lane.path().to_owned();
    cx.tell(bundle, EventKind::Checkout { path, base: attempt.base.clone() });
    let workspace = cx.config.dirs.mark();
    let checkout = Checkout { bench, attempt, is_common: false, lane_env, workspace };
    cx.keep_idle_changes(bundle, &checkout, !fresh)?;
    Ok(Some(checkout))
}

/// Returns the target of a bundle and the attempt under way there, or begins one; `None` where no target is configured.
pub(crate) fn attempt_for(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    fresh: bool,
) -> Result<Option<(Target, Attempt)>, BeatError> {
    let Some(brief) = snapshot.authored_brief() else {
        return Ok(None);
    };
    let Some(spec) = cx.config.target_of(brief)? else {
        return Ok(None);
    };
    let name = || spec.name.clone();
    let target = Target::open(&spec.name, &spec.path)
        .map_err(|source| CheckoutError::Target { name: name(), source })?;
    // Do alone keeps commits of others. The gates see no person's name.
    let target = if fresh {
        let Author { name, email } = author_for(cx.config, &target);
        target.with_author(&name, &email)
    } else {
        target
    };
    let digest = sha256_hex(&bundle.read(Artifact::Brief)?.unwrap_or_default());
    let known = cx.config.attempts().load(bundle.id()).map_err(CheckoutError::Record)?;
    let known = known.filter(|known| {
        known.iterations == snapshot.iterations
            && known.target == spec.name
            // A bundle that was archived and is done again begins at the tip, whatever became of the first one.
            && (!known.is_accepted() || snapshot.state.is_terminal())
            // Another brief asks for another change, so it begins at the tip again. Of a refolded
            // attempt the brief always differs: archiving appended the reason to it after the
            // attempt was recorded.
            && (!fresh || known.brief == digest || known.refolded.is_some())
    });
    let attempt = if let Some(known) = known {
        known
    } else {
        let branch = cx.config.branch_of(brief, &spec);
        let found = target
            .resolve(branch.as_deref())
            .map_err(|source| CheckoutError::Base { name: name(), source })?;
        begin_attempt(cx, bundle, snapshot.iterations, digest, &spec, &found)?
    };
    Ok(Some((target, attempt)))
}

/// Computes and records the base of a new attempt, after a ref protects it from gc.
fn begin_attempt(
    cx: &Driver<'_>,
    bundle: &Bundle,
    iterations: u32,
    brief_digest: String,
    spec: &TargetSpec,
    found: &pdca_lanes::Base,
) -> Result<Attempt, BeatError> {
    let store = cx.config.store(spec).map_err(CheckoutError::Objects)?;
    let brief = bundle.read(Artifact::Brief)?.unwrap_or_default();
    let brief = String::from_utf8_lossy(&brief);
    let asked = asked_digest(&brief);
    let brief = Brief::parse(&brief);
    let tip = commit_id(&found.commit)?;
    let at = TargetTip { spec, branch: &found.branch, tip };
    let base = base_of(cx.config, &store, bundle, &brief, at)?;
    // The ref before the record, so that a recorded base cannot be collected by a gc in the target.
    keep_ref(cx, &store, bundle.id(), (tip, base.commit))?;
    let attempt = Attempt {
        iterations,
        brief: brief_digest,
        target: spec.name.clone(),
        branch: found.branch.clone(),
        base: base.commit.to_string(),
        tip: Some(base.tip.to_string()),
        stands_on: base.stands_on,
        made: None,
        changes: Vec::new(),
        asked: Some(asked),
        refolded: None,
        acceptance: None,
    };
    let store = || cx.config.attempts().store(bundle.id(), &attempt);
    cx.effects.perform("attempt", store).map_err(CheckoutError::Record)?;
    Ok(attempt)
}

/// Takes the lane's names (ports, database, temporary directory) for as long as it is claimed.
pub(crate) fn take_names(cx: &Driver<'_>, bench: &mut Workbench) -> Result<LaneEnv, CheckoutError> {
    // The names must not depend on the path through which the workspace is reached.
    let real = cx.config.dirs.root.canonicalize_utf8();
    let workspace = WorkspaceId::of(&real.unwrap_or_else(|_| cx.config.dirs.root.clone()));
    Ok(LaneEnv::named(bench.take_names(&workspace, cx.config.lanes.ports)?))
}

/// Returns the slot to work in: the driver's own; without one, the slot where an earlier run with
/// several lanes left the bundle's work, or the first.
fn slot_for(cx: &Driver<'_>, bundle: &Bundle) -> u32 {
    cx.slot().unwrap_or_else(|| {
        LaneOwners::in_lanes_of(cx.config).homes().get(bundle.id()).copied().unwrap_or(0)
    })
}

/// Like [`Driver::clear`], but at a commit that descends from the base.
fn clear_at(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    job: &str,
    commit: &str,
) -> Result<(), CheckoutError> {
    let branch = cx.run.and_then(|run| run.branch(bundle.id()));
    clear_on(cx, bundle, checkout, job, commit, branch.as_deref())
}

/// Resets the checkout to a commit, on a branch if one is given.
pub(crate) fn clear_on(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    job: &str,
    commit: &str,
    branch: Option<&str>,
) -> Result<(), CheckoutError> {
    let reset = match cx.config.lanes.reset {
        // A verdict that may land must not depend on files that another tree left behind.
        Reset::Tracked if checkout.is_common => Reset::Clean,
        configured @ (Reset::Clean | Reset::Tracked | Reset::Pristine) => configured,
    };
    let children = cx.config.locks().children();
    let hydrate = hydration(cx, checkout, &children);
    let setup = Setup::new(job, commit, hydrate).with_branch(branch).with_reset(reset);
    Ok(checkout.prepare(&setup, cx.cancel, &Observed { driver: cx, bundle, checkout })?)
}

/// Rescues uncommitted work in the checkout under a ref.
pub(crate) fn save(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    name: &str,
) -> Result<(), CheckoutError> {
    Ok(checkout.bench.save(name, &Observed { driver: cx, bundle, checkout })?)
}

fn hydration<'h>(
    cx: &'h Driver<'_>,
    checkout: &'h Checkout,
    children: &'h Utf8Path,
) -> Hydrate<'h> {
    let own = checkout.lane_env.iter().flat_map(|lane_env| &lane_env.variables);
    let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
    let places = [
        ("PDCA_WORKSPACE", cx.config.dirs.root.as_str()),
        ("PDCA_WORKTREE", checkout.lane.path().as_str()),
        ("PDCA_TARGET", checkout.attempt.target.as_str()),
    ];
    // Installing runs scripts of the change, as a gate does.
    let env = Env::default().withhold_credentials(true).pass(&cx.config.gates_env_pass);
    let env = own.chain(places).fold(env, |env, (name, value)| env.with(name, value));
    Hydrate::new(&checkout.target, &cx.config.lanes.hydrate)
        .with_env(env)
        .with_sandbox(gate_sandbox(cx, checkout))
        .with_hold(children)
        .with_max_memory(cx.config.limits.leaf_memory)
        .with_supervisor(cx.config.supervisor.clone())
}

/// Lists the first paths, and the number of the others.
fn listed(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = paths.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Forwards the effects and events of a workbench as the driver's own.
struct Observed<'a> {
    driver: &'a Driver<'a>,
    bundle: &'a Bundle,
    checkout: &'a Checkout,
}

impl Observer for Observed<'_> {
    fn reached(&self, name: &'static str, done: bool) {
        let when = if done { EffectSide::After } else { EffectSide::Before };
        self.driver.effects.announce(Point { name, when });
    }

    fn event(&self, event: WorkbenchEvent) {
        let what = match event {
            WorkbenchEvent::Rescued { commit } => {
                EventKind::Rescued { commit, checkout: self.checkout.lane.repository() }
            }
            WorkbenchEvent::Replaced { aside, why } => {
                let kept = aside.map(|aside| format!("; the old one is kept as {aside}"));
                let (why, kept) = (pdca_state::chain(&why), kept.unwrap_or_default());
                let text = format!("the lane was replaced: {why}{kept}");
                EventKind::warning(WarningCode::CheckoutReplaced, text)
            }
            WorkbenchEvent::FoundInIdle { paths, aside } => {
                let text = format!(
                    "files changed in the lane while no driver used it; they are kept in {aside}: {}",
                    listed(&paths)
                );
                EventKind::warning(WarningCode::LaneChanged, text)
            }
            WorkbenchEvent::Hydrating { phase, line } => {
                EventKind::Alive { what: phase.to_string(), line }
            }
            WorkbenchEvent::Hydrated { files } => EventKind::Hydrated { files },
        };
        self.driver.tell(self.bundle, what);
    }
}

impl Checkout {
    /// Returns whether the checkout differs from the base of the attempt.
    pub(crate) fn has_work(&self) -> bool {
        self.differs_from(&self.attempt.base)
    }

    /// Names the work of a leaf, as the owner note of the checkout records it.
    pub(crate) fn work_name(&self, bundle: &Bundle, role: Role, key: &JobKey) -> String {
        format!("{}-{}-{role}-{key}", self.workspace, bundle.id())
    }

    /// Returns the commit that is checked out; the base if the checkout was never reset.
    pub(crate) fn head(&self) -> Result<String, CheckoutError> {
        Ok(self.lane.head()?.unwrap_or_else(|| self.attempt.base.clone()))
    }

    /// Names a change in the owner note, so that a later driver that finds it need not build it again.
    pub(crate) fn change_name(&self, bundle: &Bundle, patch: &[u8]) -> String {
        let patch = &sha256_hex(patch)[..16];
        format!("{}-{}-{}-{patch}", self.workspace, bundle.id(), self.attempt.base)
    }
}

/// The checkout of a bundle at base + patch, as the gate runner drives it.
pub(crate) struct Patched<'d> {
    driver: &'d Driver<'d>,
    bundle: &'d Bundle,
    checkout: &'d Checkout,
    /// The commit of base + expected patch.
    head: String,
    change: Change,
    patch: Vec<u8>,
    /// The checkout is untouched since an earlier driver left it at this change.
    as_left: bool,
    /// The head, change and patch to return to if the proposed fix is withdrawn.
    before: Option<(String, Change, Vec<u8>)>,
    further: FurtherCheckouts<'d>,
}

impl<'d> Patched<'d> {
    /// Resets the checkout to base + patch, unless it already is there.
    ///
    /// A checkout that is already at the change is left as it is: a gate may have run there when the
    /// previous driver was killed, and its traces must be seen.
    pub(crate) fn stand(
        driver: &'d Driver<'d>,
        bundle: &'d Bundle,
        checkout: &'d Checkout,
        patch: Vec<u8>,
    ) -> Result<Self, BeatError> {
        let name = checkout.change_name(bundle, &patch);
        let stands = checkout
            .owner()
            .map_err(CheckoutError::from)?
            .filter(|owner| owner.job == name)
            .and_then(|owner| owner.head);
        let (head, as_left) = match stands {
            Some(head) if checkout.head()? == head => (head, true),
            Some(_) | None => (Self::build(driver, bundle, checkout, &patch, &name)?, false),
        };
        let tree = checkout.lane.tree_of(&head).map_err(CheckoutError::from)?;
        let change = Change { tree, patch_digest: Some(sha256_hex(&patch)) };
        let further = FurtherCheckouts::of(driver, bundle, checkout);
        Ok(Self { driver, bundle, checkout, head, change, patch, as_left, before: None, further })
    }

    fn build(
        driver: &Driver<'_>,
        bundle: &Bundle,
        checkout: &Checkout,
        patch: &[u8],
        name: &str,
    ) -> Result<String, BeatError> {
        let known = driver.config.attempts().load(bundle.id()).map_err(CheckoutError::Record)?;
        let known = known.as_ref().and_then(|known| known.head_of(&sha256_hex(patch)));
        // Prefer the commits that Do left; without them the patch becomes one commit.
        // The lane borrows the target's objects, so it sees commits that another lane brought
        // there.
        if let Some(head) = known.filter(|head| checkout.lane.tree_of(head).is_ok()) {
            clear_at(driver, bundle, checkout, name, head)?;
            let owner = OwnerNote { job: name.to_owned(), head: Some(head.to_owned()) };
            driver.set_owner(checkout, &owner)?;
            return Ok(head.to_owned());
        }
        driver.clear(bundle, checkout, name)?;
        if !patch.is_empty() {
            let stale = |source| match source {
                ApplyError::Lane(source) => BeatError::Checkout(source.into()),
                ApplyError::Refused(_) | ApplyError::DoesNotApply { .. } => {
                    BeatError::Stale { base: checkout.attempt.base.clone(), source }
                }
            };
            driver.effects.perform("apply", || checkout.lane.apply(patch)).map_err(stale)?;
        }
        let message = message_for(bundle);
        let made = maker(driver, bundle, checkout)?;
        let commit = || checkout.lane.commit_all(&message, &signature(&made));
        driver.effects.perform("commit", commit).map_err(CheckoutError::from)?;
        let head = keep_change(driver, bundle, checkout, &checkout.head()?, patch, &message)?;
        driver
            // Last: the note says that the checkout stands at the change, and a later driver
            // believes it.
            .set_owner(checkout, &OwnerNote { job: name.to_owned(), head: Some(head.clone()) })?;
        Ok(head)
    }

    /// Returns the current patch, including accepted fixes.
    pub(crate) fn into_patch(self) -> Vec<u8> {
        self.patch
    }

    pub(crate) fn tree(&self) -> &str {
        &self.change.tree
    }
}

impl Tree for Patched<'_> {
    fn expected(&self) -> Change {
        self.change.clone()
    }

    fn is_as_left(&self) -> bool {
        self.as_left
    }

    fn prepare(&mut self) -> Result<String, TreeFault> {
        self.as_left = false;
        let stood = self.checkout.lane.reset(&self.head).and_then(|()| self.checkout.lane.tree());
        match stood {
            // The previous row broke the checkout, and that was already reported for that row.
            Err(error) if error.is_of_the_lane() => self.prepare_anew(),
            stood => Ok(stood?),
        }
    }

    fn prepare_anew(&mut self) -> Result<String, TreeFault> {
        self.as_left = false;
        let name = self.checkout.change_name(self.bundle, &self.patch);
        clear_at(self.driver, self.bundle, self.checkout, &name, &self.head)?;
        let head = Some(self.head.clone());
        self.driver.set_owner(self.checkout, &OwnerNote { job: name, head })?;
        Ok(self.checkout.lane.tree()?)
    }

    fn changed(&mut self) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        Ok(self.checkout.lane.changed_tracked()?)
    }

    fn further(&mut self, number: usize) -> Vec<RowCheckout> {
        self.further.stand(&self.head, number)
    }

    fn changed_in(&mut self, further: usize) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        self.further.changed(further)
    }

    fn propose(&mut self) -> Result<Change, TreeFault> {
        let made = maker(self.driver, self.bundle, self.checkout)?;
        // What a gate or its fix leaves behind is no more part of the change than what the builder left.
        let name = format!("products-{}-gates", self.bundle.id());
        set_aside_products(self.driver, self.bundle, self.checkout, &name, &|_| Ok(()))?;
        self.checkout.lane.commit_all(FIXES, &signature(&made))?;
        let head = self.checkout.head()?;
        let patch = self.checkout.lane.diff(&self.checkout.attempt.base, &head)?;
        let change = Change {
            tree: self.checkout.lane.tree_of(&head)?,
            patch_digest: Some(sha256_hex(&patch)),
        };
        self.before = Some((
            std::mem::replace(&mut self.head, head),
            std::mem::replace(&mut self.change, change.clone()),
            std::mem::replace(&mut self.patch, patch),
        ));
        Ok(change)
    }

    fn accept(&mut self) -> Result<(), TreeFault> {
        self.before = None;
        // The guard must not take the driver's own change of the patch for a breach.
        let planted = relieve_guard(self.driver, self.bundle)?;
        if !planted.is_empty() {
            return Err(
                format!("written into the bundle while gates ran: {}", planted.join(", ")).into()
            );
        }
        // Recorded before the patch is published: a driver that finds the patch must find its commits.
        keep_change(self.driver, self.bundle, self.checkout, &self.head, &self.patch, FIXES)?;
        self.driver.publish(self.bundle, Artifact::Patch, &self.patch)?;
        stand_guard(self.driver, self.bundle)?;
        let name = self.checkout.change_name(self.bundle, &self.patch);
        let head = Some(self.head.clone());
        Ok(self.driver.set_owner(self.checkout, &OwnerNote { job: name, head })?)
    }

    fn withdraw(&mut self) -> Result<(), TreeFault> {
        if let Some((head, change, patch)) = self.before.take() {
            (self.head, self.change, self.patch) = (head, change, patch);
        }
        Ok(self.checkout.lane.reset(&self.head)?)
    }
}
