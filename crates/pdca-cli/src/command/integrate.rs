//! `pdca integrate`: what was accepted meets, is gated together, and lands.

mod explain;
mod order;
mod told;

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroU32;

use pdca_driver::integrate::{
    Astray, ChronicleError, Follows, Front, Fronts, Hand, Held, IntegrateError, Integrated, Land,
    Order, Reason, Sealing, Settings, Standing,
};
use pdca_driver::{Site, integrations};
use pdca_integrate::Run;
use pdca_journal::RunId;
use pdca_state::BundleId;

use super::resolve::{self, Resolving};
use crate::ambient;
use crate::config::MAX_LANES;
use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session;

pub(crate) use explain::{standing as unknown, unsealable};
use order::{Unlanded, arranged};

/// Gate accepted changes together and land what is green
///
/// Everything accepted and not yet landed is put onto the tip of its branch, in the order of `Depends on` and then of
/// acceptance, and gated as one tree. Where that is red, the smallest guilty set is found and named, and everything else
/// lands. Your checkout, index and branch are not written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca integrate                 # all that is accepted
  pdca integrate 12 15           # only these
  pdca integrate --dry-run       # the order, the commits, what is known already
  pdca integrate --land target   # move the branch itself, where no checkout has it
  pdca integrate --seal          # first seal what was accepted without a seal

`land` in [integrate] says what moves: `branch` leaves pdca/integration-<run> for you to merge, `target` moves the branch,
`push` pushes. What conflicts with the branch goes to [leaves.resolver], where one is configured. Exit codes: 0 all landed, 101 something is red only together or by itself, 102 a conflict, 104 the branch
or a seal is not what it was.")]
pub(crate) struct Args {
    /// The bundles; all that are accepted where none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,

    /// What moves, if not what [integrate] says
    #[arg(long, value_name = "WHAT", value_enum)]
    land: Option<LandArg>,

    /// In how many checkouts to gate at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LANES)))]
    lanes: Option<u32>,

    /// Seal what was accepted without a seal, if it is still what was checked
    #[arg(long)]
    seal: bool,

    /// Leave conflicts to `pdca resolve`, also where a resolver is configured
    #[arg(long)]
    no_resolve: bool,

    #[command(flatten)]
    events: session::EventsArg,
}

/// What moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LandArg {
    /// The branch
    Target,
    /// A branch of the integration's own
    Branch,
    /// The branch of the remote
    Push,
}

impl From<LandArg> for Land {
    fn from(arg: LandArg) -> Self {
        match arg {
            LandArg::Target => Land::Target,
            LandArg::Branch => Land::Branch,
            LandArg::Push => Land::Push,
        }
    }
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let only: BTreeSet<BundleId> =
        cx.require_bundles(&args.ids)?.iter().map(|bundle| bundle.id().clone()).collect();
    let site = session::site(cx)?;
    let dry_run = cx.globals.dry_run;
    let admitted =
        if dry_run { None } else { Some(site.admit().map_err(|error| session::refused(&error))?) };
    if args.seal && !dry_run {
        seal_old(cx, &site, &only, &new_run()?, err)?;
    }
    let settings = settings(args, cx)?;
    let Fronts { fronts, astray, open } = site.fronts()?;
    let mut unlanded = Unlanded::of(&fronts, &astray, open);
    let fronts = arranged(fronts);
    let mut ended = tell_astray(cx, &astray, &only, err)?;
    let certificates = cx.workspace()?.process_dir.join("certificates");
    if !dry_run {
        let effects = session::effects(cx)?;
        for front in &fronts {
            let finished = site.finish_certificates(front, &certificates, false, effects.as_ref());
            for path in finished.map_err(|error| explain::failed(&error, front))? {
                let path = cx.show(&path);
                cx.note(err, &format!("{path} is of a landing that nobody had heard of"))?;
            }
        }
    }
    let mut landed: Vec<(&Front, Integrated)> = Vec::new();
    for front in fronts.iter().filter(|front| has_work(front, &only)) {
        let elsewhere = unlanded.elsewhere(front);
        let order = Order {
            settings: &settings,
            only: &only,
            elsewhere: &elsewhere,
            lanes: NonZeroU32::new(args.lanes.unwrap_or(settings.lanes)).unwrap_or(NonZeroU32::MIN),
            certificates: &certificates,
            clock: ambient::moment,
        };
        if waits(front, &only, settings.land) {
            told::waits(cx, front, out)?;
            ended.push(Exit::Waiting);
            continue;
        }
        if dry_run {
            let rehearsed = site.rehearse(front, &order);
            let rehearsed = rehearsed.map_err(|error| explain::failed(&error, front))?;
            told::rehearsed(cx, front, &rehearsed, out)?;
            unlanded.landed(rehearsed.landing.iter().map(|(id, _)| id));
            ended.push(Exit::Done);
            continue;
        }
        let events = args.events.path(cx);
        let done = session::work(cx, &site, events.as_deref(), err, |driver| {
            driver.integrate(front, &order)
        })?;
        let done = done.map_err(|error| explain::failed(&error, front))?;
        if !cx.globals.json {
            told::told(cx, front, &settings, &done, &[], out)?;
        }
        let there = done.present.iter().map(|(id, _)| id);
        unlanded.landed(done.landed.iter().map(|(id, _)| id).chain(there));
        landed.push((front, done));
    }
    if !dry_run {
        end_left(cx, &site, err)?;
    }
    // Nobody is kept waiting while a resolver works.
    drop(admitted);
    let resolving = resolve_conflicts(args, cx, &site, &settings, &landed, err)?;
    for (front, done) in &landed {
        if cx.globals.json {
            told::told(cx, front, &settings, done, &resolving.items, out)?;
        }
        ended.push(exit_of(done, &resolving));
    }
    if !cx.globals.json {
        resolve::lines(cx, &resolving.items, out)?;
    }
    if let Some(failure) = resolving.failure {
        return Err(failure);
    }
    if ended.is_empty() {
        told::nothing(cx, &fronts, out, err)?;
        return Ok(Exit::NothingToDo);
    }
    let grave = [Exit::RecoveryBlocked, Exit::CombinationRed, Exit::MergeConflict, Exit::Waiting];
    Ok(grave.into_iter().find(|exit| ended.contains(exit)).unwrap_or(Exit::Done))
}

/// Ends integrations that were cut short after the last of their changes had landed.
fn end_left(cx: &Context<'_>, site: &Site, err: &mut dyn Write) -> Result<(), Failure> {
    if integrations(site)?.is_empty() {
        return Ok(());
    }
    let fronts = site.fronts()?;
    for (sighting, follows) in site.left_integrations(&fronts)? {
        if follows == Follows::End {
            let id = &sighting.id;
            site.end_integration(id, &fronts, ambient::moment).map_err(|error| ending(&error))?;
            cx.note(
                err,
                &format!("integration {id} was cut short with nothing left to do: ended"),
            )?;
        }
    }
    Ok(())
}

/// Why an integration that was left could not be ended.
pub(crate) fn ending(error: &ChronicleError) -> Failure {
    Failure::from_error(Exit::RecoveryBlocked, error)
        .hint("`pdca doctor` says more; nothing was landed or lost")
}

/// Has the resolver work on what conflicts, where one is configured.
fn resolve_conflicts(
    args: &Args,
    cx: &Context<'_>,
    site: &Site,
    settings: &Settings,
    landed: &[(&Front, Integrated)],
    err: &mut dyn Write,
) -> Result<Resolving, Failure> {
    let held = landed.iter().flat_map(|(_, done)| &done.held);
    let held = held.filter(|held| held.reason == Reason::Conflict);
    let ids: BTreeSet<BundleId> = held.map(|held| held.id.clone()).collect();
    if args.no_resolve || ids.is_empty() || !site.has_resolver() {
        return Ok(Resolving::default());
    }
    if !resolve::has_program(cx, site) {
        // What landed has landed: this is no reason to end as if nothing had been done.
        let text = "the resolver's program is not there, so conflicts are left; see `pdca doctor`";
        cx.note(err, &format!("{} {text}", cx.err.warn("warning:")))?;
        return Ok(Resolving::default());
    }
    // The branches are where they are now: what landed just now is the other side.
    let now = site.fronts()?;
    let work = resolve::Work { cx, site, settings, now: &now };
    work.carry_out(&ids, Vec::new(), args.events.path(cx).as_deref(), err)
}

/// Tells about changes that nobody knows where to put. They stop the others only where they were asked
/// for by name.
fn tell_astray(
    cx: &Context<'_>,
    astray: &[Astray],
    only: &BTreeSet<BundleId>,
    err: &mut dyn Write,
) -> Result<Vec<Exit>, Failure> {
    let mut ended = Vec::new();
    for Astray { ids, error } in astray {
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

/// A name that no other integration or acceptance has.
pub(crate) fn new_run() -> Result<Run, Failure> {
    let id = RunId::generate(ambient::moment().wall)?;
    id.as_str().parse().map_err(|error| Failure::from_error(Exit::Unexpected, &error))
}

fn settings(args: &Args, cx: &Context<'_>) -> Result<Settings, Failure> {
    let mut settings = cx.workspace()?.config.integrate.clone();
    if let Some(land) = args.land {
        settings.land = land.into();
    }
    Ok(settings)
}

/// Whether something accepted for the branch has not landed.
fn has_work(front: &Front, only: &BTreeSet<BundleId>) -> bool {
    wanted(front, only).any(|standing| !matches!(standing, Standing::Landed { .. }))
}

/// Whether all that could land waits in a branch for a person already.
fn waits(front: &Front, only: &BTreeSet<BundleId>, land: Land) -> bool {
    land == Land::Branch
        && wanted(front, only)
            .filter(|standing| !matches!(standing, Standing::Landed { .. }))
            .all(|standing| matches!(standing, Standing::Staged { .. }))
}

fn wanted<'f>(
    front: &'f Front,
    only: &'f BTreeSet<BundleId>,
) -> impl Iterator<Item = &'f Standing> {
    let is_wanted = |id: &BundleId| only.is_empty() || only.contains(id);
    let changes = front.changes.iter().filter(move |change| is_wanted(change.bundle.id()));
    changes.map(|change| &change.standing)
}

fn exit_of(done: &Integrated, resolving: &Resolving) -> Exit {
    let is_settled =
        |held: &&Held| held.reason == Reason::Conflict && resolving.has_settled(&held.id);
    let has = |reasons: &[Reason]| {
        let left = done.held.iter().filter(|held| !is_settled(held));
        left.into_iter().any(|held| reasons.contains(&held.reason))
    };
    if has(&[Reason::Drift]) {
        Exit::RecoveryBlocked
    } else if has(&[Reason::Red]) {
        Exit::CombinationRed
    } else if has(&[Reason::Conflict]) {
        Exit::MergeConflict
    } else if has(&[Reason::Needs, Reason::Unsealed])
        || done.held.iter().any(|held| is_settled(&held))
    {
        Exit::Waiting
    } else {
        Exit::Done
    }
}

/// Seals what was accepted without a seal.
fn seal_old(
    cx: &Context<'_>,
    site: &Site,
    only: &BTreeSet<BundleId>,
    run: &Run,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let effects = session::effects(cx)?;
    for front in site.fronts()?.fronts {
        for change in &front.changes {
            let id = change.bundle.id();
            let is_old = matches!(change.standing, Standing::Unsealed);
            if !is_old || !(only.is_empty() || only.contains(id)) {
                continue;
            }
            let _taken = site.take(id).map_err(|error| session::refused(&error))?;
            let snapshot = change.bundle.load()?;
            let hand = Hand { run, seconds: cx.ambient.now() };
            let sealed = site.seal(&change.bundle, &snapshot, hand, effects.as_ref());
            match sealed.map_err(|error| unsealable(&error, &change.bundle))? {
                Sealing::Sealed { .. } => cx.note(err, &format!("{id} is sealed"))?,
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
    Ok(())
}

/// Why an integration did not come to its end, in one word for scripts.
fn word(error: &IntegrateError) -> Exit {
    match error {
        IntegrateError::Interrupted => Exit::Interrupted,
        IntegrateError::NoGate
        | IntegrateError::NotLocal { .. }
        | IntegrateError::RemoteLacks { .. } => Exit::Usage,
        IntegrateError::BaseRed { .. } => Exit::GateRed,
        IntegrateError::Land(pdca_integrate::LandError::CheckedOut { .. }) => Exit::Waiting,
        IntegrateError::Stuck { .. }
        | IntegrateError::Breached { .. }
        | IntegrateError::Drifted { .. }
        | IntegrateError::Chronicle(_)
        | IntegrateError::Unreachable { .. }
        | IntegrateError::Refused { .. }
        | IntegrateError::Land(_)
        | IntegrateError::NotGated(_)
        | IntegrateError::Ref(_)
        | IntegrateError::Push(pdca_integrate::PushError::Refused(_)) => Exit::RecoveryBlocked,
        IntegrateError::Unfoldable { .. }
        | IntegrateError::Plan(_)
        | IntegrateError::Fold(_)
        | IntegrateError::Engine(_)
        | IntegrateError::Push(_)
        | IntegrateError::Store(_)
        | IntegrateError::Drive(_)
        | IntegrateError::Io { .. }
        | IntegrateError::Search(_) => Exit::Unexpected,
    }
}
