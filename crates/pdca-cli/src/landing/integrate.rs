//! `pdca integrate`: gates accepted changes together, and lands them.
//!
//! 1. *Admit* and *hold the landings*, in this order and before anything is read: no other integration runs, and no
//!    change that was read as accepted is sent back while it lands.
//! 2. *Seal*, with `--seal`, what older versions accepted without a seal. Only sealed changes land.
//! 3. *Finish certificates* that a driver which died had announced, so that no landing stays without one.
//! 4. *Integrate* each branch after those that it depends on. A branch that fails keeps no other from landing.
//! 5. *End* interrupted integrations with nothing left to do, so that `status` does not ask a person about them.
//! 6. *Release* both locks, and only then resolve conflicts and send culprits back: a resolver may take an hour
//!    (decision 016).

mod order;
pub(crate) mod output;

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroU32;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::integrate::{
    ChangeState, Hand, HeldChange, HeldReason, IntegrateError, Integrated, IntegrationRequest,
    Land, NextAction, QueueSettings, ReturnCulprits, Sealing, TargetBranch, TargetBranches,
    Unplaceable,
};
use pdca_driver::place::Places;
use pdca_driver::{Driver, LaneCount, WorkspaceConfig, integrations};
use pdca_integrate::{end_integration, finish_certificates};
use pdca_journal::events::WarningCode;
use pdca_process::InstalledGit;
use pdca_state::BundleId;
use pdca_workspace::review::ReturnedCulprit;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::explain::integrate as explain;
use crate::failure::Failure;
use crate::landing::resolve::{self, Resolving};
use crate::process_env;
use crate::report::Response;
use crate::session;
use crate::session::fleet::{HostChoice, HostWork, is_hosts_only};

use explain::{ending, unsealable};
use order::{Unlanded, arranged};
use output::{BranchReport, IntegrateReport, ReturnedRow};

/// A request to gate accepted changes together and to land them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IntegrateRequest<'a> {
    /// The bundles; all accepted ones if none is named.
    pub(crate) ids: &'a [IdArg],
    /// Only changes for this target, or for one branch of it: `NAME` or `NAME@BRANCH`.
    pub(crate) target: Option<&'a str>,
    /// The landing mode, if not that of `[integrate]`.
    pub(crate) land: Option<Land>,
    pub(crate) lanes: Option<LaneCount>,
    /// The hosts that gate combinations beside this machine.
    pub(crate) hosts: HostChoice<'a>,
    /// Seals changes that were accepted without a seal, if they are still what was checked.
    pub(crate) seal: bool,
    /// Uses no cached verdict, neither of an integration nor of Check.
    pub(crate) fresh: bool,
    /// Leaves conflicts open, even if a resolver is configured.
    pub(crate) no_resolve: bool,
    /// The file that gets the events.
    pub(crate) events: Option<&'a Utf8Path>,
}

/// Lands the changes that are green together, holds the others, and runs the resolver on conflicts.
///
/// # Errors
/// When nothing can be decided: a name that does not exist, a driver at work, a lock that cannot be taken. A branch that
/// fails does not keep the others from landing; its failure is in the response.
pub(crate) fn integrate(
    args: &IntegrateRequest<'_>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    // Before any lock is taken: a git that is too old is the first thing to mend (decision 020).
    InstalledGit::require()?;
    cx.workspace()?.require_all_distinct()?;
    let only: BTreeSet<BundleId> =
        cx.require_bundles(args.ids)?.iter().map(|bundle| bundle.id().clone()).collect();
    let building = session::driver_config(cx)?;
    // A batch may run meanwhile: it moves no branch, and has its own lanes and children.
    let site = building.clone().for_integration();
    let dry_run = cx.globals.dry_run;
    let admitted = if dry_run {
        None
    } else {
        // A dry run changes nothing, so it need not wait for another driver.
        Some(site.locks().admit().map_err(|error| session::refused(&error))?)
    };
    // Taken before the changes are read, so that none is sent back while it lands.
    let kept = if dry_run { None } else { Some(hold_landings(&site)?) };
    if !dry_run {
        // Before anything lands: what has landed by a seal is over, also if its accept was killed.
        let bundles = site.dirs.bundles.list()?;
        let effects = crate::faults::effects(cx)?;
        pdca_driver::integrate::finish_acceptances(&site, &bundles, effects.as_ref())?;
    }
    let unsealed =
        if args.seal && !dry_run { seal_old(cx, &site, &only, err)? } else { Vec::new() };
    let settings = settings(args, cx)?;
    let TargetBranches { branches: fronts, unplaceable, open } =
        TargetBranches::load(&site.queue())?;
    // Of all branches, before `--target` leaves some out: a change may wait for one of those.
    let unlanded = Unlanded::of(&fronts, &unplaceable, open);
    let fronts = of_target(args, cx, arranged(fronts))?;
    let certificates = cx.workspace()?.process_dir.join("certificates");
    let asked = Asked { args, cx, site: &site, settings: &settings, only: &only, certificates };
    let mut came =
        Came { ended: tell_unplaceable(cx, &unplaceable, &only, err)?, ..Came::default() };
    came.ended.extend(unsealed);
    if !dry_run {
        // Also for branches without work, whose integration does not do it.
        asked.finish_certificates(&fronts, err)?;
    }
    asked.integrate(&fronts, unlanded, &mut came, err)?;
    if !dry_run && !came.is_interrupted() {
        // From here on changes may have landed, so a failure is told beside them and not in their place.
        came.failures.extend(end_left(cx, &site, err).err());
    }
    // A resolver may take long, so others must not wait for it.
    drop((admitted, kept));
    let (mut resolving, mut returned) = (Resolving::default(), Vec::new());
    if !came.is_interrupted() {
        match resolve_conflicts(args, cx, &building, &settings, &came, err) {
            Ok(done) => resolving = done,
            Err(failure) => came.failures.push(failure),
        }
        if settings.return_culprits == ReturnCulprits::Auto {
            match send_back(cx, &site, &came, &resolving, err) {
                Ok(rows) => returned = rows,
                Err(failure) => came.failures.push(failure),
            }
        }
    }
    let exits: Vec<Exit> = came.integrated().map(|done| exit_of(done, &resolving, &only)).collect();
    let Came { branches, mut failures, mut ended } = came;
    ended.extend(exits);
    failures.extend(resolving.failure);
    let report =
        IntegrateReport { settings, dry_run, branches, resolved: resolving.items, returned };
    let failure = worst(failures);
    if failure.is_none() && ended.is_empty() {
        output::nothing(cx, &fronts, err)?;
        return Ok(Response::new(report, Exit::NothingToDo));
    }
    // One exit code for all branches: the one that most needs a person, in this order.
    let grave = [Exit::RecoveryBlocked, Exit::CombinationRed, Exit::MergeConflict, Exit::Waiting];
    let has_old_alone = failure.is_none() && ended.iter().all(|exit| *exit == Exit::NothingToDo);
    let usual = if has_old_alone { Exit::NothingToDo } else { Exit::Done };
    let exit = grave.into_iter().find(|exit| ended.contains(exit)).unwrap_or(usual);
    Ok(Response::new(report, exit).failed(failure))
}

/// The request, with everything it needs.
struct Asked<'a> {
    args: &'a IntegrateRequest<'a>,
    cx: &'a Context<'a>,
    site: &'a WorkspaceConfig,
    settings: &'a QueueSettings,
    only: &'a BTreeSet<BundleId>,
    certificates: Utf8PathBuf,
}

/// The results per branch.
#[derive(Default)]
struct Came {
    branches: Vec<BranchReport>,
    failures: Vec<Failure>,
    ended: Vec<Exit>,
}

impl Came {
    fn is_interrupted(&self) -> bool {
        self.failures.iter().any(|failure| failure.exit == Exit::Interrupted)
    }

    fn integrated(&self) -> impl Iterator<Item = &Integrated> {
        self.branches.iter().filter_map(BranchReport::integrated)
    }

    fn fail(&mut self, front: &TargetBranch, error: &IntegrateError) {
        self.branches.push(BranchReport::failed(front, error));
        self.failures.push(explain::failed(error, front));
    }
}

impl Asked<'_> {
    /// Completes certificates of drivers that died between a landing and its certificate.
    fn finish_certificates(
        &self,
        fronts: &[TargetBranch],
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        let Asked { cx, site, certificates, .. } = self;
        let effects = crate::faults::effects(cx)?;
        for front in fronts {
            let finished =
                // No remote was asked here, so what became of a push stays open.
                finish_certificates(&site.queue(), front, certificates, false, effects.as_ref());
            for path in finished.map_err(|error| explain::failed(&error, front))? {
                let path = cx.show(&path);
                cx.note(err, &format!("{path} was missing for a landing of an interrupted integration; written now"))?;
            }
        }
        Ok(())
    }

    /// Returns the number of combinations that are gated at once, and the hosts that do it beside the local lanes. A dry
    /// run asks no host.
    fn places(&self, err: &mut dyn Write) -> Result<(NonZeroU32, Option<Places>), Failure> {
        let Asked { args, cx, site, settings, .. } = self;
        let configured = ("integrate.lanes", settings.lanes);
        let asked = args.lanes.unwrap_or(settings.lanes);
        let (lanes, local) = if is_hosts_only(cx, asked, args.hosts)? {
            // Every combination goes to a host. One local lane stays the lower bound if the hosts offer no
            // slot.
            (NonZeroU32::MIN, 0)
        } else {
            let lanes = session::lanes(cx, site, args.lanes, configured, err)?;
            let lanes = session::told_fit(cx, &pdca_driver::fit_lanes(site, lanes), err)?;
            (lanes, lanes.get())
        };
        if cx.globals.dry_run {
            return Ok((lanes, None));
        }
        let work = HostWork::Combinations;
        let places = session::fleet::with_hosts(cx, site, args.hosts, local, work, err)?;
        let slots = places.as_ref().and_then(|places| NonZeroU32::new(places.slots()));
        Ok((slots.unwrap_or(lanes), places))
    }

    /// Integrates branch by branch. A failure of one does not keep the others from landing.
    fn integrate(
        &self,
        fronts: &[TargetBranch],
        mut unlanded: Unlanded,
        came: &mut Came,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        let Asked { args, cx, site, settings, only, certificates } = self;
        if !fronts.iter().any(|front| has_work(front, only)) {
            return Ok(());
        }
        let (lanes, places) = self.places(err)?;
        for front in fronts.iter().filter(|front| has_work(front, only)) {
            let elsewhere = unlanded.elsewhere(front);
            let order = IntegrationRequest {
                settings,
                only,
                elsewhere: &elsewhere,
                lanes,
                certificates,
                clock: process_env::moment,
                fresh: args.fresh,
            };
            // Only a person can go on here, by merging the staging branch.
            if waits(front, only, settings.land) {
                came.branches.push(BranchReport::waits(front));
                came.ended.push(Exit::Waiting);
                continue;
            }
            if cx.globals.dry_run {
                match pdca_driver::integrate::dry_run(site, front, &order) {
                    Ok(said) => {
                        // A change of a later branch that depends on one of these is predicted to land too.
                        unlanded.landed(said.landing.iter().map(|(id, _)| id));
                        came.branches.push(BranchReport::dry_run(front, said));
                        came.ended.push(Exit::Done);
                    }
                    Err(error) => came.fail(front, &error),
                }
                continue;
            }
            let done = session::work(cx, site, args.events, err, |driver| {
                Driver { places: places.as_ref(), ..*driver }.integrate(front, &order)
            })?;
            let done = match done {
                Ok(done) => done,
                Err(error) => {
                    came.fail(front, &error);
                    if came.is_interrupted() {
                        break;
                    }
                    continue;
                }
            };
            let there = done.present.iter().map(|(id, _)| id);
            // What is present counts as landed: a change that depends on it must not wait for ever.
            unlanded.landed(done.landed.iter().map(|(id, _)| id).chain(there));
            came.branches.push(BranchReport::done(cx, site, settings, front, done));
        }
        Ok(())
    }
}

/// The longest wait for a decision about an accepted change.
/// A decision writes a few files only.
const PATIENCE: Duration = Duration::from_secs(10);

/// Keeps other processes from sending back what is about to land.
fn hold_landings(site: &WorkspaceConfig) -> Result<pdca_driver::LockGuard, Failure> {
    site.locks().hold_landings(PATIENCE).map_err(|error| session::refused(&error))
}

/// Returns the branches of the requested target, or all.
fn of_target(
    args: &IntegrateRequest<'_>,
    cx: &Context<'_>,
    mut fronts: Vec<TargetBranch>,
) -> Result<Vec<TargetBranch>, Failure> {
    let Some(wanted) = args.target else { return Ok(fronts) };
    let names: Vec<&str> =
        cx.workspace()?.targets.iter().map(|target| target.name.as_str()).collect();
    // A target's name may contain an `@`.
    let (target, branch) = match wanted.split_once('@') {
        Some((target, branch)) if !names.contains(&wanted) => (target, Some(branch)),
        Some(_) | None => (wanted, None),
    };
    if !names.contains(&target) {
        return Err(Failure::usage(format!("no target is called `{target}`"))
            .hint(format!("configured: {}", names.join(", "))));
    }
    fronts.retain(|front| {
        front.target.name == target && branch.is_none_or(|branch| front.branch == branch)
    });
    Ok(fronts)
}

/// Sends red and conflicting changes back to Do. A conflict that a resolver still works on is left to it.
fn send_back(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    came: &Came,
    resolving: &Resolving,
    err: &mut dyn Write,
) -> Result<Vec<ReturnedRow>, Failure> {
    let is_left = |held: &&HeldChange| {
        held.reason != HeldReason::Conflict
            || !pdca_driver::integrate::has_resolver(site)
            || resolving.is_blocked(&held.id)
    };
    let held: Vec<&HeldChange> =
        came.integrated().flat_map(|done| &done.held).filter(is_left).collect();
    if held.is_empty() {
        return Ok(Vec::new());
    }
    // Taken again, because the locks of the integration were released for the resolver.
    let _kept = hold_landings(site)?;
    let (effects, date) = (crate::faults::effects(cx)?, cx.env.today());
    let culprits =
        pdca_workspace::review::return_culprits(site, effects.as_ref(), &date, held.into_iter())
            .map_err(|failed| {
                let (bundle, error) = *failed;
                crate::explain::decision::explain(error, &bundle)
            })?;
    let mut returned = Vec::new();
    for culprit in culprits {
        let why = match culprit {
            ReturnedCulprit::Returned { id, archived } => {
                let next = cx.typed(&format!("pdca run {id}"));
                returned.push(ReturnedRow { id, archived, next });
                continue;
            }
            ReturnedCulprit::InUse { id } => {
                format!("{id} stays held: it is in use by another command")
            }
            ReturnedCulprit::TooOften { id, times } => {
                format!("{id} stays held: it was sent back {times} times without a person")
            }
        };
        cx.note(err, &why)?;
    }
    Ok(returned)
}

/// Combines failures into one: an interruption first, then in order.
fn worst(mut failures: Vec<Failure>) -> Option<Failure> {
    // The exit code is that of the first, and the sort is stable.
    failures.sort_by_key(|failure| failure.exit != Exit::Interrupted);
    let mut failures = failures.into_iter();
    let mut first = failures.next()?;
    first.problems.extend(failures.flat_map(|failure| failure.problems));
    Some(first)
}

/// Ends integrations that were interrupted after the last of their changes had landed.
fn end_left(cx: &Context<'_>, site: &WorkspaceConfig, err: &mut dyn Write) -> Result<(), Failure> {
    if integrations(site)?.is_empty() {
        return Ok(());
    }
    // Loaded again, because this integration has moved branches since.
    let fronts = TargetBranches::load(&site.queue())?;
    for (sighting, follows) in pdca_driver::integrate::unfinished_integrations(site, &fronts)? {
        if follows == NextAction::End {
            let id = &sighting.id;
            end_integration(&site.queue(), id, &fronts, process_env::moment)
                .map_err(|error| ending(&error))?;
            cx.note(
                err,
                &format!("integration {id} was cut short with nothing left to do: ended"),
            )?;
        }
    }
    Ok(())
}

/// Runs the resolver on conflicts, if one is configured.
fn resolve_conflicts(
    args: &IntegrateRequest<'_>,
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    settings: &QueueSettings,
    came: &Came,
    err: &mut dyn Write,
) -> Result<Resolving, Failure> {
    let held = came.integrated().flat_map(|done| &done.held);
    let held = held.filter(|held| held.reason == HeldReason::Conflict);
    let ids: BTreeSet<BundleId> = held.map(|held| held.id.clone()).collect();
    if args.no_resolve || ids.is_empty() || !pdca_driver::integrate::has_resolver(site) {
        return Ok(Resolving::default());
    }
    if !resolve::has_program(cx, site) {
        // Changes have landed, so a missing resolver is only a warning.
        let text = "resolver program not found; conflicts stay open, see `pdca doctor`";
        cx.warn(err, WarningCode::NoResolver, text)?;
        return Ok(Resolving::default());
    }
    // Loaded again, because what just landed is the other side of a conflict.
    let now = TargetBranches::load(&site.queue())?;
    let work = resolve::ResolveContext { cx, site, settings, now: &now };
    work.carry_out(&ids, Vec::new(), args.events, err)
}

/// Reports changes without a known branch. They are an error only if they were asked for
/// by name.
fn tell_unplaceable(
    cx: &Context<'_>,
    unplaceable: &[Unplaceable],
    only: &BTreeSet<BundleId>,
    err: &mut dyn Write,
) -> Result<Vec<Exit>, Failure> {
    let mut ended = Vec::new();
    for Unplaceable { ids, error } in unplaceable {
        if ids.iter().any(|id| only.contains(id)) {
            return Err(explain::standing(error));
        }
        if only.is_empty() {
            let names: Vec<&str> = ids.iter().map(BundleId::as_str).collect();
            let why = pdca_state::chain(error);
            cx.note(err, &format!("{}: left out: {why}", names.join(" ")))?;
            ended.push(Exit::Waiting);
        }
    }
    Ok(ended)
}

fn settings(args: &IntegrateRequest<'_>, cx: &Context<'_>) -> Result<QueueSettings, Failure> {
    let mut settings = cx.workspace()?.config.integrate.clone();
    if let Some(land) = args.land {
        settings.land = land;
    }
    Ok(settings)
}

/// Returns whether an accepted change of the branch has not landed.
fn has_work(front: &TargetBranch, only: &BTreeSet<BundleId>) -> bool {
    wanted(front, only).any(|standing| !matches!(standing, ChangeState::Landed { .. }))
}

/// Returns whether everything that could land already waits in a staging branch.
fn waits(front: &TargetBranch, only: &BTreeSet<BundleId>, land: Land) -> bool {
    land.stages()
        && wanted(front, only)
            .filter(|standing| !matches!(standing, ChangeState::Landed { .. }))
            .all(|standing| matches!(standing, ChangeState::Staged { .. }))
}

fn wanted<'f>(
    front: &'f TargetBranch,
    only: &'f BTreeSet<BundleId>,
) -> impl Iterator<Item = &'f ChangeState> {
    let is_wanted = |id: &BundleId| only.is_empty() || only.contains(id);
    let changes = front.changes.iter().filter(move |change| is_wanted(change.bundle.id()));
    changes.map(|change| &change.standing)
}

fn exit_of(done: &Integrated, resolving: &Resolving, only: &BTreeSet<BundleId>) -> Exit {
    let is_settled =
        |held: &&HeldChange| held.reason == HeldReason::Conflict && resolving.has_settled(&held.id);
    let has = |reasons: &[HeldReason]| {
        let left = done.held.iter().filter(|held| !is_settled(held));
        left.into_iter().any(|held| reasons.contains(&held.reason))
    };
    // What was accepted without a seal is told, and is no reason to wait unless it was asked for: an older instance has
    // dozens of them.
    let is_old =
        |held: &HeldChange| held.reason == HeldReason::Unsealed && !only.contains(&held.id);
    let is_asked_for =
        |held: &HeldChange| held.reason == HeldReason::Unsealed && only.contains(&held.id);
    if has(&[HeldReason::Drift]) {
        Exit::RecoveryBlocked
    } else if has(&[HeldReason::Red, HeldReason::Undecidable]) {
        Exit::CombinationRed
    } else if has(&[HeldReason::Conflict]) {
        Exit::MergeConflict
    } else if has(&[HeldReason::Needs, HeldReason::Stale])
        || done.held.iter().any(|held| is_settled(&held) || is_asked_for(held))
    {
        Exit::Waiting
    } else if done.landed.is_empty() && done.held.iter().any(is_old) {
        Exit::NothingToDo
    } else {
        Exit::Done
    }
}

/// Seals changes that were accepted without a seal. A change that acceptance would refuse is reported and skipped;
/// returns the exit code of each.
fn seal_old(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    only: &BTreeSet<BundleId>,
    err: &mut dyn Write,
) -> Result<Vec<Exit>, Failure> {
    let effects = crate::faults::effects(cx)?;
    let mut ended = Vec::new();
    for front in TargetBranches::load(&site.queue())?.branches {
        for change in &front.changes {
            let id = change.bundle.id();
            let is_old = matches!(change.standing, ChangeState::Unsealed);
            if !is_old || !(only.is_empty() || only.contains(id)) {
                continue;
            }
            // No other command may change the bundle while it is sealed.
            let _taken = site.locks().take(id).map_err(|error| session::refused(&error))?;
            let snapshot = change.bundle.load()?;
            let text = snapshot.summary.as_ref().map_or("", pdca_state::Summary::text);
            let hand = Hand { summary: text };
            let sealed = match pdca_driver::integrate::seal(
                site,
                &change.bundle,
                &snapshot,
                hand,
                effects.as_ref(),
            ) {
                Ok(sealed) => sealed,
                Err(error) => {
                    let failure = unsealable(&error, &change.bundle);
                    // One old change that cannot be sealed must not keep the others from landing.
                    if only.contains(id) || failure.exit == Exit::Unexpected {
                        return Err(failure);
                    }
                    for problem in &failure.problems {
                        let parts = [&problem.what].into_iter().chain(&problem.details);
                        let parts: Vec<&str> =
                            parts.chain(&problem.hint).map(String::as_str).collect();
                        let text = parts.join("; ");
                        cx.warn(err, WarningCode::Unsealed, text)?;
                    }
                    ended.push(Exit::Waiting);
                    continue;
                }
            };
            match sealed {
                Sealing::Sealed { .. } => {
                    pdca_driver::integrate::accepted(site, id, effects.as_ref())?;
                    cx.note(err, &format!("{id} is sealed"))?;
                }
                Sealing::NotNeeded => {}
                Sealing::Unknown { what } => {
                    cx.note(
                        err,
                        &format!("{id} cannot be sealed: its report does not say {what}"),
                    )?;
                }
            }
        }
    }
    Ok(ended)
}
