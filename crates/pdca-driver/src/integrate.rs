//! Merge queue: seal, fold, gate together, bisect, land, certify.
//!
//! ```text
//! accept ─► seal ─► seal.json and refs/pdca/<run>/seal/<id>
//! TargetBranches::load ─► TargetBranch: one branch of one target and the state of each accepted change
//! Driver::integrate ─► plan ─ fold ─► bisect over the integration checkouts ─► land ─► certificate
//! resolve ─► a conflict with the branch, in a checkout ─► adopt ─► Check
//! ```
//!
//! The contents of a branch are read from git each time. A driver that follows one that died folds to the
//! same ids, reuses the cached verdicts, and lands nothing twice.

mod base;
mod conflict;
mod forecast;
pub(crate) mod gate;
mod sealing;
mod shared;

use std::collections::BTreeSet;

use pdca_integrate::{IntegrationNotice, QueueContext, integrate};
use pdca_state::{Bundle, BundleId, BundleRoot};

use crate::config::WorkspaceConfig;
use crate::run::{RunStatus, integrations};
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::{EventKind, Scope};

use gate::QueueGate;
pub(crate) use gate::{
    CombinationCheckout, CombinationTree, common_scene, gate_rows, with_quarantine,
};

pub use base::{BaseVerdict, GateBase, GatedBase};
pub(crate) use base::{gate_bases, leave_red_bases};
pub use conflict::apply_resolution::adopt;
pub(crate) use conflict::apply_resolution::take_resolution;
pub use conflict::resolve::{ConflictResolveError, has_resolver, resolve};
pub use forecast::{forecast, forecast_of, known_forecast};
pub use gate::GateIdentity;
pub use pdca_integrate::{
    AcceptedChange, Blocked, BlockedPair, BranchForecast, ChangeState, ConflictEnd,
    ConflictOutcome, ConflictRecord, ConflictReport, DryRun, Due, Evidence, FIRST_SLOT,
    FailedAttempt, GateSteps, HeldBack, HeldChange, HeldReason, IntegrateError, Integrated,
    IntegrationRequest, IntegrationTally, JournalError, Land, MOST_ATTEMPTS, MaxAge, MaxAgeError,
    NextAction, PairForecast, Quarantined, QueueSettings, QueueWorkspace, RedRow, ResolveRequest,
    ReturnCulprits, Staging, Stats, TargetBranch, TargetBranchError, TargetBranches, Unplaceable,
};
pub use sealing::{Hand, Sealing, SealingError, accepted, finish_acceptances, seal};
pub(crate) use shared::{Shared, share, shared};

/// The id that stands for all bundles together in events. It cannot be an id that a person gives.
const SCOPE: &str = "integrate+";

/// Returns a bundle that stands for a combination or a base in events.
fn stand_in(bundles: &BundleRoot, name: &str) -> Bundle {
    let id = name.parse().expect("because it is letters and a sign that ids may have");
    bundles.bundle(&id)
}

impl WorkspaceConfig {
    /// Returns the part of the workspace that the merge queue works on.
    pub fn queue(&self) -> QueueWorkspace {
        QueueWorkspace {
            dirs: self.dirs.clone(),
            targets: self.targets.clone(),
            default_branch: self.default_branch.clone(),
        }
    }
}

/// Returns the bundles, of those named or of all, whose resolution is adopted and not at its sign-off yet.
pub fn resolving(
    config: &WorkspaceConfig,
    named: &BTreeSet<BundleId>,
) -> Result<Vec<ConflictReport>, ConflictResolveError> {
    Ok(pdca_integrate::pending_resolutions(&config.queue(), named)?)
}

/// Predicts an integration of this branch. Changes nothing.
pub fn dry_run(
    config: &WorkspaceConfig,
    branch: &TargetBranch,
    request: &IntegrationRequest<'_>,
) -> Result<DryRun, IntegrateError> {
    pdca_integrate::dry_run(
        &config.queue(),
        &config.gates().of_combinations(),
        branch,
        request,
        config.now(),
    )
}

/// Returns the active integrations, the newest first, each with the next action.
pub fn unfinished_integrations(
    config: &WorkspaceConfig,
    branches: &TargetBranches,
) -> std::io::Result<Vec<(RunStatus, NextAction)>> {
    let with = |sighting: RunStatus| {
        let state = sighting.state.as_deref().ok();
        let next = NextAction::of(state, sighting.driver, branches);
        (sighting, next)
    };
    Ok(integrations(config)?.into_iter().map(with).collect())
}

impl Driver<'_> {
    /// Integrates the sealed changes of a branch. The caller must be admitted to the workspace.
    pub fn integrate(
        &self,
        branch: &TargetBranch,
        request: &IntegrationRequest<'_>,
    ) -> Result<Integrated, IntegrateError> {
        let workspace = self.config.queue();
        let all = stand_in(&self.config.dirs.bundles, SCOPE);
        let scope = Scope::Integration {
            target: branch.target.name.clone(),
            branch: branch.branch.clone(),
        };
        let driver = Driver { scope: Some(&scope), ..*self };
        let notify = |notice| match notice {
            IntegrationNotice::Begun { run, dir } => driver.events.record(&run, &dir),
            IntegrationNotice::Progress { text, step } => {
                driver.tell(&all, EventKind::Integration { text, step });
            }
            IntegrationNotice::Warning { code, text } => {
                driver.tell(&all, EventKind::warning(code, text));
            }
        };
        let mut gates = self.config.gates().of_combinations();
        if let Some(places) = self.places {
            // A verdict counts for the environments that it may come from.
            let joint = places.gates_environment(&gates.id.environment_digest);
            gates.id.environment_digest = joint;
        }
        let cx = QueueContext {
            workspace: &workspace,
            gates: &gates,
            gate: &QueueGate { driver, all: &all, several: request.lanes.get() > 1 },
            effects: self.effects,
            notify: &notify,
            cancel: self.cancel,
            now: self.config.clock,
        };
        integrate(cx, branch, request)
    }
}

impl From<BeatError> for pdca_integrate::GateRunError {
    fn from(error: BeatError) -> Self {
        if matches!(error, BeatError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Failed(Box::new(error))
    }
}
