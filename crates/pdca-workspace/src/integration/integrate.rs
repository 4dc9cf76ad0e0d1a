//! Gates accepted changes together, and lands them.
//!
//! 1. *Admit* and *hold the landings*, in this order and before anything is read: no other integration runs, and no
//!    change that was read as accepted is sent back while it lands.
//! 2. *Seal*, with `seal`, the changes that older versions accepted without a seal. Only sealed changes land.
//! 3. *Finish certificates* that a driver which died had announced, so that no landing stays without one.
//! 4. *Integrate* each branch after those that it depends on. A branch that fails keeps no other from landing.
//! 5. *End* interrupted integrations with nothing left to do, so that `status` does not ask a person about them.
//! 6. *Release* both locks, and only then resolve conflicts and send culprits back: a resolver may take an hour
//!    (decision 016).

use std::collections::BTreeSet;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_driver::integrate::{
    ChangeState, Hand, HeldChange, HeldReason, IntegrateError, IntegrationRequest, Land,
    NextAction, QueueSettings, ReturnCulprits, Sealing, SealingError, TargetBranch, TargetBranches,
    Unplaceable,
};
use pdca_driver::{Clock, Driver, Effects, LockGuard, WorkspaceConfig, integrations};
use pdca_integrate::{end_integration, finish_certificates};
use pdca_process::InstalledGit;
use pdca_state::{BundleId, Summary};

use super::IntegrationError;
use super::host::{IntegrationHost, IntegrationProgress};
use super::order::{Unlanded, arranged};
use super::report::{BranchIntegration, BranchOutcome, Integration, ReturnedChange};
use super::resolve::{ConflictWork, Resolving, has_program};
use crate::review::{ReturnedCulprit, return_culprits};
use crate::{OpenWorkspace, OperationError};

/// The longest wait for a decision about an accepted change. A decision writes a few files only.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request to gate accepted changes together and to land them.
#[derive(Clone, Copy)]
pub struct IntegrateRequest<'a> {
    /// The bundles; all accepted ones if none is named.
    pub ids: &'a [BundleId],
    /// Only changes for this target, or for one branch of it: `NAME` or `NAME@BRANCH`.
    pub target: Option<&'a str>,
    /// The landing mode, if not that of `[integrate]`.
    pub land: Option<Land>,
    /// Seals changes that were accepted without a seal, if they are still what was checked.
    pub seal: bool,
    /// Uses no cached verdict, neither of an integration nor of Check.
    pub fresh: bool,
    /// Leaves conflicts open, even if a resolver is configured.
    pub no_resolve: bool,
    /// The date of decisions about culprits.
    pub date: &'a str,
    pub clock: Clock,
    /// Called around every durable change.
    pub effects: &'a dyn Effects,
}

/// An integration, and the failures that did not keep other branches from landing.
#[derive(Debug)]
pub struct IntegrationEnd<E> {
    pub integration: Integration,
    /// In the order in which they happened.
    pub failures: Vec<E>,
    /// It was stopped by a signal.
    pub is_interrupted: bool,
}

/// Lands the changes that are green together, holds the others, and runs the resolver on conflicts.
///
/// # Errors
/// When nothing can be decided: a name that does not exist, a driver at work, a lock that cannot be taken. A branch that
/// fails does not keep the others from landing; its failure is in the result.
pub fn integrate<H: IntegrationHost>(
    open: &OpenWorkspace<'_>,
    request: &IntegrateRequest<'_>,
    host: &mut H,
) -> Result<IntegrationEnd<H::Error>, H::Error> {
    let (building, settings, only) = prepared(open, request)?;
    // A batch may run meanwhile: it moves no branch, and has its own lanes and children.
    let config = building.clone().for_integration();
    let mut work = Work {
        open,
        request,
        host,
        config: &config,
        settings: &settings,
        only: &only,
        certificates: open.workspace.process_dir.join("certificates"),
        end: IntegrationEnd {
            integration: Integration::new(&settings, open.dry_run),
            failures: Vec::new(),
            is_interrupted: false,
        },
    };
    let locks = work.lock()?;
    work.land()?;
    // A resolver may take long, so others must not wait for it.
    drop(locks);
    if !work.end.is_interrupted {
        work.follow_up(&building);
    }
    Ok(work.end)
}

fn prepared(
    open: &OpenWorkspace<'_>,
    request: &IntegrateRequest<'_>,
) -> Result<(WorkspaceConfig, QueueSettings, BTreeSet<BundleId>), OperationError> {
    // Before any lock is taken: a git that is too old is the first thing to mend (decision 020).
    InstalledGit::require().map_err(IntegrationError::Git)?;
    open.workspace.require_all_distinct()?;
    let bundles = open.workspace.require_bundles(request.ids)?;
    let mut settings = open.workspace.config.integrate.clone();
    if let Some(land) = request.land {
        settings.land = land;
    }
    let only = bundles.iter().map(|bundle| bundle.id().clone()).collect();
    Ok((open.driver_config()?, settings, only))
}

/// An integration at work.
struct Work<'a, 'o, H: IntegrationHost> {
    open: &'a OpenWorkspace<'o>,
    request: &'a IntegrateRequest<'a>,
    host: &'a mut H,
    config: &'a WorkspaceConfig,
    settings: &'a QueueSettings,
    only: &'a BTreeSet<BundleId>,
    certificates: Utf8PathBuf,
    end: IntegrationEnd<H::Error>,
}

impl<H: IntegrationHost> Work<'_, '_, H> {
    /// Keeps other integrations out, and changes from being sent back. A dry run changes nothing, so it need not wait for
    /// another driver.
    fn lock(&self) -> Result<Option<(LockGuard, LockGuard)>, OperationError> {
        if self.open.dry_run {
            return Ok(None);
        }
        let admitted = self.config.locks().admit()?;
        // Taken before the changes are read, so that none is sent back while it lands.
        Ok(Some((admitted, self.config.locks().hold_landings(PATIENCE)?)))
    }

    fn land(&mut self) -> Result<(), H::Error> {
        let is_real = !self.open.dry_run;
        if is_real {
            self.finish_acceptances()?;
            if self.request.seal {
                self.seal_unsealed()?;
            }
        }
        let TargetBranches { branches, unplaceable, open } =
            TargetBranches::load(&self.config.queue()).map_err(OperationError::from)?;
        // Of all branches, before `target` leaves some out: a change may wait for one of those.
        let unlanded = Unlanded::of(&branches, &unplaceable, open);
        let branches = self.of_target(arranged(branches))?;
        self.leave_out(unplaceable)?;
        if is_real {
            // Also for branches without work, whose integration does not do it.
            self.finish_certificates(&branches)?;
        }
        self.end.integration.changes = branches.iter().flat_map(|branch| &branch.changes).count();
        self.integrate(&branches, unlanded)?;
        if is_real && !self.end.is_interrupted {
            // From here on changes may have landed, so a failure is told beside them and not in their place.
            let ended = self.end_interrupted();
            self.end.failures.extend(ended.err());
        }
        Ok(())
    }

    /// Records acceptances that were killed half-way: a change that has landed by its seal is over.
    fn finish_acceptances(&self) -> Result<(), OperationError> {
        let bundles = self.config.dirs.bundles.list()?;
        Ok(pdca_driver::integrate::finish_acceptances(self.config, &bundles, self.request.effects)?)
    }

    /// Completes certificates of drivers that died between a landing and its certificate.
    fn finish_certificates(&mut self, branches: &[TargetBranch]) -> Result<(), H::Error> {
        for branch in branches {
            let written = finish_certificates(
                &self.config.queue(),
                branch,
                &self.certificates,
                // No remote was asked here, so the fate of a push stays open.
                false,
                self.request.effects,
            );
            for path in written.map_err(|error| failed(branch, error))? {
                self.host.tell(IntegrationProgress::CertificateWritten { path })?;
            }
        }
        Ok(())
    }

    /// Reports changes without a known branch. They are an error only if they were asked for by name.
    fn leave_out(&mut self, unplaceable: Vec<Unplaceable>) -> Result<(), H::Error> {
        for Unplaceable { ids, error } in unplaceable {
            if ids.iter().any(|id| self.only.contains(id)) {
                return Err(OperationError::from(IntegrationError::Branches(error)).into());
            }
            if self.only.is_empty() {
                self.host.tell(IntegrationProgress::LeftOut { ids: &ids, error: &error })?;
                self.end.integration.has_left_out = true;
            }
        }
        Ok(())
    }

    /// Returns the branches of the requested target, or all.
    fn of_target(
        &self,
        mut branches: Vec<TargetBranch>,
    ) -> Result<Vec<TargetBranch>, OperationError> {
        let Some(wanted) = self.request.target else { return Ok(branches) };
        let names: Vec<&str> =
            self.open.workspace.targets.iter().map(|target| target.name.as_str()).collect();
        // A target's name may contain an `@`.
        let (target, branch) = match wanted.split_once('@') {
            Some((target, branch)) if !names.contains(&wanted) => (target, Some(branch)),
            Some(_) | None => (wanted, None),
        };
        if !names.contains(&target) {
            let configured = names.iter().map(ToString::to_string).collect();
            let name = target.to_owned();
            return Err(IntegrationError::UnknownTarget { name, configured }.into());
        }
        branches.retain(|one| {
            one.target.name == target && branch.is_none_or(|branch| one.branch == branch)
        });
        Ok(branches)
    }

    /// Integrates branch by branch. A failure of one does not keep the others from landing.
    fn integrate(
        &mut self,
        branches: &[TargetBranch],
        mut unlanded: Unlanded,
    ) -> Result<(), H::Error> {
        if !branches.iter().any(|branch| has_work(branch, self.only)) {
            return Ok(());
        }
        let (lanes, places) = self.host.places(self.config)?;
        for branch in branches.iter().filter(|branch| has_work(branch, self.only)) {
            let elsewhere = unlanded.elsewhere(branch);
            let order = IntegrationRequest {
                settings: self.settings,
                only: self.only,
                elsewhere: &elsewhere,
                lanes,
                certificates: &self.certificates,
                clock: self.request.clock,
                fresh: self.request.fresh,
            };
            // Only a person can go on here, by merging the staging branch.
            if waits(branch, self.only, self.settings.land) {
                self.add(BranchIntegration::waiting(branch));
                continue;
            }
            if self.open.dry_run {
                match pdca_driver::integrate::dry_run(self.config, branch, &order) {
                    Ok(predicted) => {
                        // A change of a later branch that depends on one of these is predicted to land too.
                        unlanded.landed(predicted.landing.iter().map(|(id, _)| id));
                        self.add(BranchIntegration::new(branch, BranchOutcome::DryRun(predicted)));
                    }
                    Err(error) => self.fail(branch, error),
                }
                continue;
            }
            let done = self.host.drive(self.config, |driver| {
                Driver { places: places.as_ref(), ..*driver }.integrate(branch, &order)
            })?;
            match done {
                Ok(done) => {
                    let present = done.present.iter().map(|(id, _)| id);
                    // A change that is present counts as landed: one that depends on it must not wait for ever.
                    unlanded.landed(done.landed.iter().map(|(id, _)| id).chain(present));
                    self.add(BranchIntegration::done(self.config, self.settings, branch, done));
                }
                Err(error) => {
                    self.fail(branch, error);
                    if self.end.is_interrupted {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, branch: BranchIntegration) {
        self.end.integration.branches.push(branch);
    }

    fn fail(&mut self, branch: &TargetBranch, error: IntegrateError) {
        self.end.is_interrupted |= matches!(error, IntegrateError::Interrupted);
        let text = pdca_state::chain(&error);
        self.add(BranchIntegration::new(branch, BranchOutcome::Failed(text)));
        self.end.failures.push(failed(branch, error).into());
    }

    /// Ends integrations that were interrupted after the last of their changes had landed.
    fn end_interrupted(&mut self) -> Result<(), H::Error> {
        if integrations(self.config).map_err(OperationError::from)?.is_empty() {
            return Ok(());
        }
        let queue = self.config.queue();
        // Loaded again, because this integration has moved branches since.
        let branches = TargetBranches::load(&queue).map_err(OperationError::from)?;
        let unfinished = pdca_driver::integrate::unfinished_integrations(self.config, &branches);
        for (status, next) in unfinished.map_err(OperationError::from)? {
            if next == NextAction::End {
                end_integration(&queue, &status.id, &branches, self.request.clock)
                    .map_err(|error| OperationError::from(IntegrationError::End(error)))?;
                self.host.tell(IntegrationProgress::Ended { integration: status.id.as_str() })?;
            }
        }
        Ok(())
    }

    /// Resolves conflicts, and sends culprits back.
    fn follow_up(&mut self, building: &WorkspaceConfig) {
        let mut resolving = match self.resolve_conflicts(building) {
            Ok(resolving) => resolving,
            Err(failure) => {
                self.end.failures.push(failure);
                Resolving::default()
            }
        };
        let failure = resolving.failure.take();
        self.end.integration.resolved = resolving.items;
        if self.settings.return_culprits == ReturnCulprits::Auto {
            let returned = self.send_back();
            self.end.failures.extend(returned.err());
        }
        self.end.failures.extend(failure);
    }

    /// Runs the resolver on conflicts, if one is configured.
    fn resolve_conflicts(
        &mut self,
        config: &WorkspaceConfig,
    ) -> Result<Resolving<H::Error>, H::Error> {
        let held = self.end.integration.integrated().flat_map(|done| &done.held);
        let held = held.filter(|held| held.reason == HeldReason::Conflict);
        let ids: BTreeSet<BundleId> = held.map(|held| held.id.clone()).collect();
        if self.request.no_resolve
            || ids.is_empty()
            || !pdca_driver::integrate::has_resolver(config)
        {
            return Ok(Resolving::default());
        }
        if !has_program(self.open, config) {
            // Changes have landed, so a missing resolver is only a warning.
            self.host.tell(IntegrationProgress::NoResolver)?;
            return Ok(Resolving::default());
        }
        // Loaded again, because what just landed is the other side of a conflict.
        let now = TargetBranches::load(&config.queue()).map_err(OperationError::from)?;
        let work = ConflictWork {
            open: self.open,
            config,
            settings: self.settings,
            now: &now,
            clock: self.request.clock,
        };
        work.resolve(&ids, Vec::new(), self.host)
    }

    /// Sends red and conflicting changes back to Do. A conflict that a resolver still works on is left to it.
    fn send_back(&mut self) -> Result<(), H::Error> {
        let integration = &self.end.integration;
        let is_left = |held: &&HeldChange| {
            held.reason != HeldReason::Conflict
                || !pdca_driver::integrate::has_resolver(self.config)
                || integration.is_blocked(&held.id)
        };
        let held: Vec<HeldChange> =
            integration.integrated().flat_map(|done| &done.held).filter(is_left).cloned().collect();
        if held.is_empty() {
            return Ok(());
        }
        for culprit in self.return_culprits(&held)? {
            match culprit {
                ReturnedCulprit::Returned { id, archived } => {
                    let next = format!("pdca run {id}");
                    self.end.integration.returned.push(ReturnedChange { id, archived, next });
                }
                ReturnedCulprit::InUse { id } => {
                    self.host.tell(IntegrationProgress::InUse { id: &id })?;
                }
                ReturnedCulprit::TooOften { id, times } => {
                    self.host.tell(IntegrationProgress::ReturnedTooOften { id: &id, times })?;
                }
            }
        }
        Ok(())
    }

    fn return_culprits(&self, held: &[HeldChange]) -> Result<Vec<ReturnedCulprit>, OperationError> {
        // Taken again, because the locks of the integration were released for the resolver.
        let _held = self.config.locks().hold_landings(PATIENCE)?;
        let IntegrateRequest { effects, date, .. } = *self.request;
        let returned = return_culprits(self.config, effects, date, held.iter());
        Ok(returned.map_err(IntegrationError::Return)?)
    }

    /// Seals changes that were accepted without a seal. A change that acceptance would refuse is reported and skipped.
    fn seal_unsealed(&mut self) -> Result<(), H::Error> {
        let branches =
            TargetBranches::load(&self.config.queue()).map_err(OperationError::from)?.branches;
        for change in branches.iter().flat_map(|branch| &branch.changes) {
            let (bundle, id) = (&change.bundle, change.bundle.id());
            let is_old = matches!(change.standing, ChangeState::Unsealed);
            if !is_old || !(self.only.is_empty() || self.only.contains(id)) {
                continue;
            }
            // No other command may change the bundle while it is sealed.
            let _taken = self.config.locks().take(id).map_err(OperationError::from)?;
            let snapshot = bundle.load().map_err(OperationError::from)?;
            let hand = Hand { summary: snapshot.summary.as_ref().map_or("", Summary::text) };
            let effects = self.request.effects;
            match pdca_driver::integrate::seal(self.config, bundle, &snapshot, hand, effects) {
                Ok(Sealing::Sealed { .. }) => {
                    pdca_driver::integrate::accepted(self.config, id, effects)
                        .map_err(OperationError::from)?;
                    self.host.tell(IntegrationProgress::Sealed { id })?;
                }
                Ok(Sealing::NotNeeded) => {}
                Ok(Sealing::Unknown { what }) => {
                    self.host.tell(IntegrationProgress::NotSealable { id, what })?;
                }
                // One old change that cannot be sealed must not keep the others from landing.
                Err(error) if self.only.contains(id) || is_of_the_machine(&error) => {
                    let bundle = Box::new(bundle.clone());
                    let error = IntegrationError::Seal { bundle, source: error };
                    return Err(OperationError::from(error).into());
                }
                Err(error) => {
                    self.host.tell(IntegrationProgress::SealRefused { bundle, error: &error })?;
                    self.end.integration.has_left_out = true;
                }
            }
        }
        Ok(())
    }
}

fn failed(branch: &TargetBranch, source: IntegrateError) -> OperationError {
    IntegrationError::Integrate { branch: branch.branch.clone(), source: Box::new(source) }.into()
}

/// Returns whether an error is about this machine, and not about the change.
fn is_of_the_machine(error: &SealingError) -> bool {
    match error {
        SealingError::Store(_)
        | SealingError::Admission(_)
        | SealingError::Foundation(_)
        | SealingError::Load(_)
        | SealingError::Write(_) => true,
        SealingError::Target(_)
        | SealingError::NotAccepted(_)
        | SealingError::Protected { .. }
        | SealingError::PatchChanged { .. }
        | SealingError::BriefChanged
        | SealingError::Base { .. }
        | SealingError::OtherCommit { .. }
        | SealingError::AcceptFirst { .. }
        | SealingError::Stale { .. }
        | SealingError::Rebuild(_)
        | SealingError::Seal(_) => false,
    }
}

/// Returns whether an accepted change of the branch has not landed.
fn has_work(branch: &TargetBranch, only: &BTreeSet<BundleId>) -> bool {
    wanted(branch, only).any(|state| !matches!(state, ChangeState::Landed { .. }))
}

/// Returns whether everything that could land already waits in a staging branch.
fn waits(branch: &TargetBranch, only: &BTreeSet<BundleId>, land: Land) -> bool {
    land.stages()
        && wanted(branch, only)
            .filter(|state| !matches!(state, ChangeState::Landed { .. }))
            .all(|state| matches!(state, ChangeState::Staged { .. }))
}

fn wanted<'b>(
    branch: &'b TargetBranch,
    only: &'b BTreeSet<BundleId>,
) -> impl Iterator<Item = &'b ChangeState> {
    let is_wanted = |id: &BundleId| only.is_empty() || only.contains(id);
    let changes = branch.changes.iter().filter(move |change| is_wanted(change.bundle.id()));
    changes.map(|change| &change.standing)
}
