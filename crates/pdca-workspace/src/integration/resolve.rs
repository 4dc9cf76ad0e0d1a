//! Runs the resolver on changes that conflict with their branch.

use std::collections::BTreeSet;

use pdca_driver::integrate::{
    ChangeState, ConflictOutcome, ConflictReport, ConflictResolveError, QueueSettings,
    ResolveRequest, TargetBranch, TargetBranches,
};
use pdca_driver::{Batch, BundleLockError, Clock, WorkspaceConfig};
use pdca_integrate::dry_run_resolution;
use pdca_leaves::Role;
use pdca_state::BundleId;

use super::IntegrationError;
use super::host::{IntegrationHost, IntegrationProgress};
use super::report::{ResolveReport, ResolvedConflict};
use crate::config::{has_program as is_program, require_leaf, require_programs};
use crate::planning::PlanningError;
use crate::{OpenWorkspace, OperationError};

/// The outcomes of all conflicts.
#[derive(Debug)]
pub(super) struct Resolving<E> {
    pub(super) items: Vec<ResolvedConflict>,
    /// The reason why a resolved one is not at its sign-off.
    pub(super) failure: Option<E>,
}

impl<E> Default for Resolving<E> {
    fn default() -> Self {
        Self { items: Vec::new(), failure: None }
    }
}

/// Makes one attempt at each conflict that is due, of these bundles or of all. The failure is the reason why a resolved
/// one is not at its sign-off.
///
/// # Errors
/// When no resolver can be called, or a named bundle has no change that could conflict.
pub fn resolve<H: IntegrationHost>(
    open: &OpenWorkspace<'_>,
    ids: &[BundleId],
    clock: Clock,
    host: &mut H,
) -> Result<(ResolveReport, Option<H::Error>), H::Error> {
    let (config, named) = prepared(open, ids)?;
    let now = TargetBranches::load(&config.queue()).map_err(OperationError::from)?;
    // Resolutions that an earlier command adopted and did not bring to their sign-off. Their Check goes on here.
    let (now, begun) = begun(&config, now, &named)?;
    let settings = &open.workspace.config.integrate;
    let work = ConflictWork { open, config: &config, settings, now: &now, clock };
    let candidates = candidates(&now.branches, &named);
    let mut resolving = if open.dry_run {
        Resolving { items: work.dry_run(&candidates)?, failure: None }
    } else {
        work.resolve(&candidates, begun, host)?
    };
    // Without names every accepted change was looked at, and most have no conflict to report.
    if named.is_empty() {
        resolving.items.retain(|item| {
            !matches!(
                item.report.came,
                ConflictOutcome::Nothing { .. } | ConflictOutcome::Waits { .. }
            )
        });
    } else if resolving.failure.is_none() {
        let known = |id: &&BundleId| resolving.items.iter().any(|item| item.report.id == **id);
        if let Some(id) = named.iter().find(|id| !known(id)) {
            let error = IntegrationError::NotAccepted { id: id.clone() };
            return Err(OperationError::from(error).into());
        }
    }
    let Resolving { items, failure } = resolving;
    Ok((ResolveReport { dry_run: open.dry_run, conflicts: items }, failure))
}

fn prepared(
    open: &OpenWorkspace<'_>,
    ids: &[BundleId],
) -> Result<(WorkspaceConfig, BTreeSet<BundleId>), OperationError> {
    let workspace = open.workspace;
    require_leaf(workspace, Role::Resolver, open.environment, open.machine.has_terminal)?;
    let bundles = workspace.require_bundles(ids)?;
    let config = open.driver_config()?;
    if !has_program(open, &config) {
        let program = config.leaves.resolver.argv.first().cloned().unwrap_or_default();
        let place = workspace.sources.place("leaves.resolver.argv");
        return Err(IntegrationError::NoResolver { program, place }.into());
    }
    Ok((config, bundles.iter().map(|bundle| bundle.id().clone()).collect()))
}

/// Returns an error for a named bundle whose branch is unknown, and the resolutions that were begun.
fn begun(
    config: &WorkspaceConfig,
    mut now: TargetBranches,
    named: &BTreeSet<BundleId>,
) -> Result<(TargetBranches, Vec<ConflictReport>), OperationError> {
    let is_named = |ids: &[BundleId]| ids.iter().any(|id| named.contains(id));
    if let Some(at) = now.unplaceable.iter().position(|one| is_named(&one.ids)) {
        return Err(IntegrationError::Branches(now.unplaceable.swap_remove(at).error).into());
    }
    let begun = pdca_driver::integrate::resolving(config, named);
    Ok((now, begun.map_err(IntegrationError::Resolve)?))
}

/// Returns the sealed changes among those named, or all.
fn candidates(branches: &[TargetBranch], named: &BTreeSet<BundleId>) -> BTreeSet<BundleId> {
    let changes = branches.iter().flat_map(|branch| &branch.changes);
    let ids = changes.filter(|change| {
        if named.is_empty() {
            matches!(change.standing, ChangeState::Sealed(_))
        } else {
            named.contains(change.bundle.id())
        }
    });
    ids.map(|change| change.bundle.id().clone()).collect()
}

/// Returns whether the resolver's program exists, as far as known before it is started. A missing one counts as no
/// attempt.
pub(super) fn has_program(open: &OpenWorkspace<'_>, config: &WorkspaceConfig) -> bool {
    let program = config.leaves.resolver.argv.first();
    program.is_none_or(|program| is_program(open.environment, &config.dirs.root, program))
}

/// The context of resolving.
pub(super) struct ConflictWork<'a, 'o> {
    pub(super) open: &'a OpenWorkspace<'o>,
    pub(super) config: &'a WorkspaceConfig,
    pub(super) settings: &'a QueueSettings,
    /// The present branches.
    pub(super) now: &'a TargetBranches,
    pub(super) clock: Clock,
}

impl ConflictWork<'_, '_> {
    fn request(&self) -> ResolveRequest<'_> {
        ResolveRequest { settings: self.settings, open: &self.now.open, clock: self.clock }
    }

    /// Returns the branch of each bundle.
    fn places<'w>(&'w self, ids: &'w BTreeSet<BundleId>) -> Vec<(&'w TargetBranch, &'w BundleId)> {
        let of = |branch: &'w TargetBranch| {
            let changes = branch.changes.iter().map(|change| change.bundle.id());
            changes.filter(|id| ids.contains(*id)).map(move |id| (branch, id))
        };
        self.now.branches.iter().flat_map(of).collect()
    }

    fn dry_run(&self, ids: &BTreeSet<BundleId>) -> Result<Vec<ResolvedConflict>, OperationError> {
        let mut items = Vec::new();
        for (branch, id) in self.places(ids) {
            let report = dry_run_resolution(&self.config.queue(), branch, id, self.request())
                .map_err(|error| IntegrationError::Resolve(error.into()))?;
            items.push(ResolvedConflict { report, state: None });
        }
        Ok(items)
    }

    /// Makes one attempt at each conflict that is due, then checks the resolutions. The caller
    /// holds no lock, because a resolver may take long.
    pub(super) fn resolve<H: IntegrationHost>(
        &self,
        ids: &BTreeSet<BundleId>,
        begun: Vec<ConflictReport>,
        host: &mut H,
    ) -> Result<Resolving<H::Error>, H::Error> {
        let (places, request) = (self.places(ids), self.request());
        let (reports, failed) = host.drive(self.config, |driver| {
            let (mut reports, mut failed) = (begun, None);
            for (branch, id) in places {
                match pdca_driver::integrate::resolve(driver, branch, id, request) {
                    Ok(report) => reports.push(report),
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
            (reports, failed)
        })?;
        let items = reports.into_iter().map(|report| ResolvedConflict { report, state: None });
        let is_stopped = matches!(failed, Some(ConflictResolveError::Interrupted));
        let failure =
            failed.map(|error| OperationError::from(IntegrationError::Resolve(error)).into());
        let mut resolving = Resolving { items: items.collect(), failure };
        if !is_stopped && resolving.ready().next().is_some() {
            // Resolutions are reported even if their Check fails.
            if let Err(failure) = self.check(&mut resolving, host) {
                resolving.failure = Some(failure);
            }
        }
        Ok(resolving)
    }

    /// Archives the resolved attempts and checks the resolutions, in a run of its own.
    fn check<H: IntegrationHost>(
        &self,
        resolving: &mut Resolving<H::Error>,
        host: &mut H,
    ) -> Result<(), H::Error> {
        let config = self.config;
        let _admitted = match config.locks().admit() {
            // Nothing waits for another driver here: the resolution is on record, and the next command adopts
            // it (decision 016).
            Err(BundleLockError::Taken { holder, .. }) => {
                return host.tell(IntegrationProgress::NotChecked { holder: &holder });
            }
            admitted => admitted.map_err(OperationError::from)?,
        };
        // The resolution goes through Check, whose gates and reviewer are programs too.
        require_programs(self.open.workspace, config, self.open.environment)
            .map_err(OperationError::from)?;
        let ids: BTreeSet<BundleId> = resolving.ready().cloned().collect();
        let places = self.places(&ids);
        let adopted = host.drive(config, |driver| {
            places.iter().try_for_each(|(branch, id)| {
                pdca_driver::integrate::adopt(driver, branch, id).map(drop)
            })
        })?;
        adopted.map_err(|error| OperationError::from(IntegrationError::Resolve(error)))?;
        let batch = Batch::of(config, &ids).map_err(OperationError::from)?;
        let plan = batch.plan().map_err(|rejection| {
            OperationError::from(PlanningError::Rejected { rejection, lanes_file: None })
        })?;
        let failure = host.run_batch(config, &batch, &plan)?;
        for item in &mut resolving.items {
            if let Some(bundle) = batch.bundle(&item.report.id) {
                item.state = Some(bundle.load().map_err(OperationError::from)?.state);
            }
        }
        resolving.failure = resolving.failure.take().or(failure);
        Ok(())
    }
}

impl<E> Resolving<E> {
    /// Returns the resolved bundles that are not at their sign-off yet.
    fn ready(&self) -> impl Iterator<Item = &BundleId> {
        let is_ready =
            |item: &&ResolvedConflict| matches!(item.report.came, ConflictOutcome::Resolved { .. });
        self.items.iter().filter(is_ready).map(|item| &item.report.id)
    }
}
