//! Merge queue: seal, fold, gate together, bisect, land, certify.
//!
//! ```text
//! accept ─► WorkspaceConfig::seal ─► seal.json and refs/pdca/<run>/seal/<id>
//! WorkspaceConfig::target_branches ─► TargetBranch: one branch of one target and the state of each accepted change
//! Driver::integrate ─► plan ─ fold ─► bisect over the integration checkouts ─► land ─► certificate
//! Driver::resolve ─► a conflict with the branch, in a checkout ─► Driver::adopt ─► Check
//! ```
//!
//! The contents of a branch are read from git each time. A driver that follows one that died folds to the
//! same ids, finds the verdicts that were paid for, and lands nothing twice.

mod age;
mod base;
mod bisect;
mod conflict;
mod culprits;
mod dry_run;
mod evidence;
mod flakes;
mod forecast;
pub(crate) mod gate;
mod gc_refs;
mod held;
mod integration;
mod journal;
mod landing;
mod landing_base;
mod patch_scope;
mod reopen;
mod sealing;
mod settings;
mod shared;
mod stats;
mod target_branch;
mod unfinished;

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{
    Drivers, Engine, EngineError, FoldError, LandError, NotGated, ObjectId, PlanError, PushError,
    RefError, RowHistory, StoreError, UnknownTest, holders,
};
use pdca_state::BundleId;

use crate::config::WorkspaceConfig;
use crate::event::{Scope, What};
use crate::run::Clock;
use crate::run_bundle::{BeatError, Driver};

use landing_base::LandingBase;

pub use age::{MaxAge, MaxAgeError};
pub use base::{Base, BaseVerdict, GateBase};
pub use conflict::attempts::{ConflictEnd, ConflictRecord, Due, FailedAttempt, MOST_ATTEMPTS};
pub use conflict::resolve::{ConflictOutcome, ConflictReport, ResolveError, ResolveRequest};
pub use dry_run::DryRun;
pub use evidence::RedRow;
pub use flakes::Quarantined;
pub use forecast::{BranchForecast, PairForecast};
pub use gate::FIRST_SLOT;
pub use gc_refs::{GcRef, GcRefError, KeepReason};
pub use held::{Held, HeldBack, Reason};
pub use journal::JournalError;
pub(crate) use landing::has_pending_certificate;
pub use reopen::{MOST_AUTOMATIC_RETURNS, Return, ReturnError, Withdrawal};
pub use sealing::{Hand, Sealing, SealingError};
pub use settings::{GateSteps, Land, ReturnCulprits, Settings};
pub(crate) use shared::Shared;
pub use stats::{Blocked, Pair, Stats, Tally};
pub use target_branch::{
    Accepted, ChangeState, Staging, TargetBranch, TargetBranchError, TargetBranches, Unplaceable,
};
pub use unfinished::NextAction;

/// What is asked of an integration.
pub struct IntegrationRequest<'a> {
    /// What `[integrate]` says.
    pub settings: &'a Settings,
    /// The bundles that may take part; all where none is named.
    pub only: &'a BTreeSet<BundleId>,
    /// Changes of other branches and targets that have not landed, and those that are not finished.
    pub elsewhere: &'a BTreeSet<BundleId>,
    /// In how many checkouts combinations are gated at once.
    pub lanes: NonZeroU32,
    /// Where certificates are kept.
    pub certificates: &'a Utf8Path,
    /// The clock.
    pub clock: Clock,
    /// Whether no verdict counts that was given before it began.
    pub fresh: bool,
}

/// What came of an integration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrated {
    /// Where the branch was.
    pub base: ObjectId,
    /// The commit that everything that landed is in.
    pub tip: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// The order in which the changes were tried.
    pub order: Vec<BundleId>,
    /// What landed, in order, each with its last commit.
    pub landed: Vec<(BundleId, ObjectId)>,
    /// What did not, and why.
    pub held: Vec<Held>,
    /// Changes whose effect was there already.
    pub present: Vec<(BundleId, Option<BundleId>)>,
    /// The refs that moved.
    pub references: Vec<String>,
    /// How often the gates ran.
    pub gate_runs: u32,
    /// How often an earlier verdict did.
    pub cached: u32,
    /// How often a red was not red again.
    pub flakes: u32,
    /// Rows that are known to have failed by mistake, with what is known of them.
    pub flaky: Vec<(String, RowHistory)>,
    /// Rows that were red and did not count, with the trees.
    pub quarantined: Vec<Quarantined>,
    /// The certificates, one for each landing.
    pub certificates: Vec<Utf8PathBuf>,
}

/// Why an integration did not come to its end. What landed before has landed.
#[derive(Debug, thiserror::Error)]
pub enum IntegrateError {
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// No gate says anything about a combination.
    #[error("no gating check is about the repository, so no combination can be gated")]
    NoGate,
    /// The changes are meant for a branch that is not here.
    #[error("{reference} is the branch of a remote, and does not move here")]
    NotLocal {
        /// The ref.
        reference: String,
    },
    /// The staging branch has commits that somebody else made, which folding it anew would lose.
    #[error("{branch} has commits that no sealed change brought: {}", short(commits))]
    StagingForeign {
        /// The staging branch.
        branch: String,
        /// Those commits.
        commits: Vec<ObjectId>,
    },
    /// The branch is red without any of the changes.
    #[error("{branch} is red by itself at {base}: {}", rows.join(", "))]
    BaseRed {
        /// The branch.
        branch: String,
        /// Where it is.
        base: ObjectId,
        /// The red rows.
        rows: Vec<String>,
        /// What they left.
        red: Vec<RedRow>,
    },
    /// The gates could not be run, again and again.
    #[error("the gates came to no verdict: {}", rows.join("; "))]
    Stuck {
        /// The rows without a verdict.
        rows: Vec<String>,
    },
    /// The branch went somewhere where it cannot be followed without a person.
    #[error("{reference} {how} while the changes were being integrated")]
    Drifted {
        /// The ref.
        reference: String,
        /// How.
        how: String,
    },
    /// git could not fold a change.
    #[error("{id} cannot be folded: {why}")]
    Unfoldable {
        /// The bundle.
        id: BundleId,
        /// What git said.
        why: String,
    },
    /// The changes have no order.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A fold stopped.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// Merge drivers cannot be declared.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What was to land was not gated as what it is.
    #[error(transparent)]
    NotGated(#[from] NotGated),
    /// It did not land.
    #[error(transparent)]
    Land(#[from] LandError),
    /// It was not pushed.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The remote has no such branch. Nothing was done.
    #[error("{remote} has no branch {branch}")]
    RemoteLacks {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// The remote gives no answer.
    #[error("{remote} does not answer: {said}")]
    Unreachable {
        /// The remote.
        remote: String,
        /// What git said.
        said: String,
    },
    /// The remote will not take it.
    #[error("{remote} does not take {branch}: {said}")]
    Refused {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// What came of it.
        said: String,
    },
    /// A ref could not be moved.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The gates could not be run.
    #[error(transparent)]
    Beat(Box<BeatError>),
    /// It could not be recorded.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record could not be written.
    #[error("cannot write {path}")]
    Io {
        /// What.
        path: Utf8PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A defect: the search was told what it did not ask.
    #[error(transparent)]
    Search(#[from] UnknownTest),
}

fn short(commits: &[ObjectId]) -> String {
    let few = commits.iter().take(5).map(|commit| commit.to_hex_with_len(12).to_string());
    few.collect::<Vec<_>>().join(", ")
}

impl From<BeatError> for IntegrateError {
    fn from(error: BeatError) -> Self {
        if matches!(error, BeatError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Beat(Box::new(error))
    }
}

/// Refuses what could not land in the end, before any gate is paid for.
fn require_movable(front: &TargetBranch, land: Land) -> Result<(), IntegrateError> {
    let branch = match land {
        Land::Target => &front.branch,
        Land::Branch => &front.staging.branch,
        Land::Push => return Ok(()),
    };
    if land == Land::Branch && !front.staging.foreign.is_empty() {
        let (branch, commits) = (front.staging.branch.clone(), front.staging.foreign.clone());
        return Err(IntegrateError::StagingForeign { branch, commits });
    }
    let holders = holders(&front.store, &format!("refs/heads/{branch}"))?;
    match holders.into_iter().next() {
        Some(holder) => Err(LandError::CheckedOut { branch: branch.clone(), holder }.into()),
        None => Ok(()),
    }
}

impl WorkspaceConfig {
    /// Refuses what can be known before any gate is paid for: nothing that gates, or nothing that may move.
    fn require_landable(&self, front: &TargetBranch, land: Land) -> Result<(), IntegrateError> {
        if !self.has_combined_gate() {
            return Err(IntegrateError::NoGate);
        }
        if land != Land::Branch && !front.reference.starts_with("refs/heads/") {
            return Err(IntegrateError::NotLocal { reference: front.reference.clone() });
        }
        require_movable(front, land)
    }
}

impl Driver<'_> {
    /// Integrates what is sealed for a branch. Whoever calls this is admitted to the workspace.
    pub fn integrate(
        &self,
        front: &TargetBranch,
        order: &IntegrationRequest<'_>,
    ) -> Result<Integrated, IntegrateError> {
        self.config.require_landable(front, order.settings.land)?;
        let (target, branch) = (front.target.name.clone(), front.branch.clone());
        let scope = Scope::Integration { target, branch };
        let driver = Driver { scope: Some(&scope), ..*self };
        let said = |text| driver.tell(&integration::told(self.config), What::integration(text));
        let tip = LandingBase::to_land_on(front, order.settings, self.cancel, &said)?;
        let skipped = self.config.skipped(front, tip.at)?;
        let chosen = integration::choose(front, order, &tip, &skipped)?;
        let drivers: Drivers = order.settings.drivers()?;
        let engine = Engine::new(&front.store, drivers);
        let mut work =
            integration::Integration::begin(driver, front, order, engine, &chosen.entries, tip)?;
        work.done.present = order.wanted(skipped);
        let ended = work.run(chosen);
        let kept = work.keep(&ended);
        // What went wrong first is what a person must know.
        let done = ended?;
        kept?;
        Ok(done)
    }
}
