//! `pdca resolve`: runs the resolver on changes that conflict with their branch.

pub(crate) mod output;

use std::collections::BTreeSet;
use std::io::Write;

use camino::Utf8Path;
use pdca_driver::integrate::{
    ChangeState, ConflictOutcome, ConflictReport, ConflictResolveError, QueueSettings,
    ResolveRequest, TargetBranch, TargetBranches, Unplaceable,
};
use pdca_driver::{Batch, BundleLockError, WorkspaceConfig};
use pdca_integrate::dry_run_resolution;
use pdca_leaves::Role;
use pdca_state::{BundleId, State};

pub(crate) use output::{ConflictRow, lines, rows};

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::explain::integrate::standing as unknown;
use crate::explain::rejection::rejected;
use crate::explain::run;
use crate::failure::{Failure, Problem};
use crate::process_env;
use crate::report::Response;
use crate::session;

/// The outcome of one conflict.
#[derive(Debug)]
pub(crate) struct ResolvedItem {
    pub(crate) told: ConflictReport,
    /// The state of the bundle after Check, if it got that far.
    pub(crate) state: Option<State>,
}

/// The outcomes of all conflicts.
#[derive(Debug, Default)]
pub(crate) struct Resolving {
    pub(crate) items: Vec<ResolvedItem>,
    /// The reason why a resolved one is not at its sign-off.
    pub(crate) failure: Option<Failure>,
}

/// Makes one attempt at each conflict that is due, of these bundles or of all.
///
/// # Errors
/// When no resolver can be called, or a named bundle has no change that could conflict.
pub(crate) fn resolve(
    ids: &[IdArg],
    events: Option<&Utf8Path>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    session::require_leaf(cx, Role::Resolver)?;
    let named: BTreeSet<BundleId> =
        cx.require_bundles(ids)?.iter().map(|bundle| bundle.id().clone()).collect();
    let site = session::driver_config(cx)?;
    require_program(cx, &site)?;
    let settings = cx.workspace()?.config.integrate.clone();
    let now = TargetBranches::load(&site.queue())?;
    tell_unplaceable(&now.unplaceable, &named)?;
    // Resolutions that an earlier command adopted and did not bring to their sign-off. Their Check goes on here.
    let begun =
        pdca_driver::integrate::resolving(&site, &named).map_err(|error| explain(&error))?;
    let work = ResolveContext { cx, site: &site, settings: &settings, now: &now };
    let open = candidates(&now.branches, &named);
    let mut resolving = if cx.globals.dry_run {
        work.dry_run(&open)?
    } else {
        work.carry_out(&open, begun, events, err)?
    };
    // Without names every accepted change was looked at, and most have no conflict to report.
    if named.is_empty() {
        let is_nothing = |came: &ConflictOutcome| {
            matches!(came, ConflictOutcome::Nothing { .. } | ConflictOutcome::Waits { .. })
        };
        resolving.items.retain(|item| !is_nothing(&item.told.came));
    } else if resolving.failure.is_none() {
        let known = |id: &&BundleId| resolving.items.iter().any(|item| item.told.id == **id);
        if let Some(id) = named.iter().find(|id| !known(id)) {
            return Err(Failure::usage(format!(
                "{id} is not accepted, so it conflicts with nothing"
            ))
            .hint(format!("`pdca why {id}` says where it stands")));
        }
    }
    let Resolving { items, failure } = resolving;
    if items.is_empty() {
        cx.note(err, "nothing that is accepted conflicts with its branch")?;
    }
    let exit = output::exit(&items);
    let report = output::ResolveReport { dry_run: cx.globals.dry_run, items };
    Ok(Response::new(report, exit).failed(failure))
}

/// Returns an error for a named bundle whose branch is unknown.
fn tell_unplaceable(
    unplaceable: &[Unplaceable],
    named: &BTreeSet<BundleId>,
) -> Result<(), Failure> {
    let found =
        unplaceable.iter().find(|unplaceable| unplaceable.ids.iter().any(|id| named.contains(id)));
    found.map_or(Ok(()), |unplaceable| Err(unknown(&unplaceable.error)))
}

/// Returns the sealed changes among those named, or all.
fn candidates(fronts: &[TargetBranch], named: &BTreeSet<BundleId>) -> BTreeSet<BundleId> {
    let changes = fronts.iter().flat_map(|front| &front.changes);
    let ids = changes.filter(|change| {
        if named.is_empty() {
            matches!(change.standing, ChangeState::Sealed(_))
        } else {
            named.contains(change.bundle.id())
        }
    });
    ids.map(|change| change.bundle.id().clone()).collect()
}

/// Returns whether the resolver's program exists, as far as known before it is started.
pub(crate) fn has_program(cx: &Context<'_>, site: &WorkspaceConfig) -> bool {
    let program = site.leaves.resolver.argv.first();
    program.is_none_or(|program| session::has_program(cx, &site.dirs.root, program))
}

/// Returns an error if the resolver's program is missing, because that would count as no attempt.
fn require_program(cx: &Context<'_>, site: &WorkspaceConfig) -> Result<(), Failure> {
    if has_program(cx, site) {
        return Ok(());
    }
    let program = site.leaves.resolver.argv.first().map_or("", String::as_str);
    let problem = Problem::new(format!("resolver program `{program}` not found on PATH"))
        .hint("install it, or mend its `argv`");
    let place = cx.workspace()?.sources.place("leaves.resolver.argv");
    let problem = match place {
        Some(place) => problem.at(place),
        None => problem,
    };
    Err(Failure::of(Exit::Usage, vec![problem]))
}

/// The context of resolving.
pub(crate) struct ResolveContext<'a> {
    pub(crate) cx: &'a Context<'a>,
    pub(crate) site: &'a WorkspaceConfig,
    pub(crate) settings: &'a QueueSettings,
    /// The present branches.
    pub(crate) now: &'a TargetBranches,
}

impl ResolveContext<'_> {
    fn task(&self) -> ResolveRequest<'_> {
        ResolveRequest { settings: self.settings, open: &self.now.open, clock: process_env::moment }
    }

    /// Returns the branch of each bundle.
    fn places<'w>(&'w self, ids: &'w BTreeSet<BundleId>) -> Vec<(&'w TargetBranch, &'w BundleId)> {
        let of = |front: &'w TargetBranch| {
            let changes = front.changes.iter().map(|change| change.bundle.id());
            changes.filter(|id| ids.contains(*id)).map(move |id| (front, id))
        };
        self.now.branches.iter().flat_map(of).collect()
    }

    fn dry_run(&self, ids: &BTreeSet<BundleId>) -> Result<Resolving, Failure> {
        let mut items = Vec::new();
        for (front, id) in self.places(ids) {
            let told = dry_run_resolution(&self.site.queue(), front, id, self.task());
            let told = told.map_err(ConflictResolveError::from);
            items.push(ResolvedItem { told: told.map_err(|error| explain(&error))?, state: None });
        }
        Ok(Resolving { items, failure: None })
    }

    /// Makes one attempt at each conflict that is due, then checks the resolutions. The caller
    /// holds no lock, because a resolver may take long.
    pub(crate) fn carry_out(
        &self,
        ids: &BTreeSet<BundleId>,
        begun: Vec<ConflictReport>,
        events: Option<&Utf8Path>,
        err: &mut dyn Write,
    ) -> Result<Resolving, Failure> {
        let (places, task) = (self.places(ids), self.task());
        let (told, failed) = session::work(self.cx, self.site, events, err, |driver| {
            let (mut told, mut failed) = (begun, None);
            for (front, id) in places {
                match pdca_driver::integrate::resolve(driver, front, id, task) {
                    Ok(one) => told.push(one),
                    Err(error) => {
                        // Any other failure is about one bundle, so the next one is tried.
                        let stops = matches!(error, ConflictResolveError::Interrupted);
                        failed = failed.or(Some(error));
                        if stops {
                            break;
                        }
                    }
                }
            }
            (told, failed)
        })?;
        let items = told.into_iter().map(|told| ResolvedItem { told, state: None }).collect();
        let failure = failed.as_ref().map(explain);
        let mut resolving = Resolving { items, failure };
        let stopped = matches!(failed, Some(ConflictResolveError::Interrupted));
        if !stopped && resolving.ready().next().is_some() {
            // Resolutions are reported even if their Check fails.
            if let Err(failure) = self.check(&mut resolving, events, err) {
                resolving.failure = Some(failure);
            }
        }
        Ok(resolving)
    }

    /// Archives the resolved attempts and checks the resolutions, in a run of its own.
    fn check(
        &self,
        resolving: &mut Resolving,
        events: Option<&Utf8Path>,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        let (cx, site) = (self.cx, self.site);
        let _admitted = match site.locks().admit() {
            // Nothing waits for another driver here: the resolution is on record, and the next command adopts
            // it (decision 016).
            Err(BundleLockError::Taken { holder, .. }) => {
                let text = format!("resolved, and not checked yet: {holder} is at work");
                cx.note(err, &format!("{text}; `pdca resolve` goes on when it is done"))?;
                return Ok(());
            }
            admitted => admitted.map_err(|error| session::refused(&error))?,
        };
        // The resolution goes through Check, whose gates and reviewer are programs too.
        session::require_programs(cx, site)?;
        let ids: BTreeSet<BundleId> = resolving.ready().cloned().collect();
        let places = self.places(&ids);
        let adopted = session::work(cx, site, events, err, |driver| {
            places.iter().try_for_each(|(front, id)| {
                pdca_driver::integrate::adopt(driver, front, id).map(drop)
            })
        })?;
        adopted.map_err(|error| explain(&error))?;
        let batch = Batch::of(site, &ids)?;
        let plan = batch.plan().map_err(|rejection| rejected(&rejection, cx))?;
        let lanes = session::driver_lanes(cx, site, None, err)?;
        let batched = {
            let todo =
                session::Todo { batch: &batch, plan: &plan, groups: &[], lanes, places: None };
            session::run_bundles(cx, site, &todo, events, err)?
        };
        for item in &mut resolving.items {
            if let Some(bundle) = batch.bundle(&item.told.id) {
                item.state = Some(bundle.load()?.state);
            }
        }
        let stopped = batched.stopped.as_ref().map(run::stopped);
        let failure = stopped.or_else(|| run::first_failure(batched));
        resolving.failure = resolving.failure.take().or(failure);
        Ok(())
    }
}

impl Resolving {
    /// Returns the resolved bundles that are not at their sign-off yet.
    fn ready(&self) -> impl Iterator<Item = &BundleId> {
        let is_ready =
            |item: &&ResolvedItem| matches!(item.told.came, ConflictOutcome::Resolved { .. });
        self.items.iter().filter(is_ready).map(|item| &item.told.id)
    }

    /// Returns whether the attempts at a bundle's conflict are used up.
    pub(crate) fn is_blocked(&self, id: &BundleId) -> bool {
        let is_it = |item: &ResolvedItem| {
            item.told.id == *id && matches!(item.told.came, ConflictOutcome::Blocked { .. })
        };
        self.items.iter().any(is_it)
    }

    /// Returns whether the conflict of a bundle is settled.
    pub(crate) fn has_settled(&self, id: &BundleId) -> bool {
        let of_it = |item: &&ResolvedItem| item.told.id == *id;
        self.items.iter().filter(of_it).any(|item| match item.told.came {
            ConflictOutcome::Resolved { .. } | ConflictOutcome::Skipped { .. } => true,
            ConflictOutcome::Due
            | ConflictOutcome::Failed { .. }
            | ConflictOutcome::Blocked { .. }
            | ConflictOutcome::Later { .. }
            | ConflictOutcome::Nothing { .. }
            | ConflictOutcome::Waits { .. }
            | ConflictOutcome::Busy { .. } => false,
        })
    }
}

/// Explains why an attempt ended early.
pub(crate) fn explain(error: &ConflictResolveError) -> Failure {
    let exit = match error {
        ConflictResolveError::Interrupted => Exit::Interrupted,
        ConflictResolveError::Unknown { .. } => Exit::Usage,
        ConflictResolveError::Admission(_) => Exit::Waiting,
        ConflictResolveError::LandingBase(_)
        | ConflictResolveError::Engine(_)
        | ConflictResolveError::Store(_)
        | ConflictResolveError::Root(_)
        | ConflictResolveError::Load(_)
        | ConflictResolveError::Beat(_)
        | ConflictResolveError::ConflictRecord { .. } => Exit::Unexpected,
    };
    let failure = Failure::from_error(exit, error);
    match error {
        ConflictResolveError::Interrupted => failure.hint("`pdca resolve` goes on from here"),
        ConflictResolveError::Unknown { id } => failure.hint(format!("`pdca why {id}` says where it stands")),
        ConflictResolveError::Admission(_) => failure.hint("it is waited for; try again in a moment"),
        ConflictResolveError::LandingBase(_) => {
            failure.hint("no attempt was made; does the remote answer, and has it the branch?")
        }
        ConflictResolveError::Beat(_) => failure
            .detail("no attempt was counted")
            .hint("`pdca doctor` looks at programs and checkouts; `pdca resolve` goes on from here"),
        ConflictResolveError::ConflictRecord { dir, .. } => {
            failure.hint(format!("attempts are counted in {dir}; restore its case.json, or move the directory away to count anew"))
        }
        ConflictResolveError::Engine(_)
        | ConflictResolveError::Store(_)
        | ConflictResolveError::Root(_)
        | ConflictResolveError::Load(_) => {
            failure.hint("nothing was changed; `pdca doctor` looks at the repositories")
        }
    }
}
