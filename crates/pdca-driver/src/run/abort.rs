//! A run given up: what is unfinished in its lanes is kept first, and nothing of it lands.

use camino::Utf8PathBuf;
use pdca_journal::{AppendError, Cause, Effect, Record, Seq, WorkstreamStatus, write_status_files};
use pdca_lanes::{ClaimError, Saved, Target, TargetError};
use pdca_state::BundleId;

use super::{RecordError, Run};
use crate::config::WorkspaceConfig;
use crate::lane_owner::{LaneOwners, Unfinished};

/// Unfinished work that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    /// The bundle.
    pub bundle: BundleId,
    /// The lane.
    pub slot: u32,
    /// The target.
    pub target: String,
    /// The checkout, which is a repository that has the commit.
    pub checkout: Utf8PathBuf,
    /// The commit.
    pub commit: String,
}

/// Why a run was not given up. What was kept until then is kept.
#[derive(Debug, thiserror::Error)]
pub enum AbortError {
    /// Something of it was about to be done, and it is not known whether it is.
    #[error("it is not known what came of record {0}")]
    Open(Seq),
    /// A target cannot be used.
    #[error("the target `{name}` cannot be used")]
    Target {
        /// Its name.
        name: String,
        /// Why not.
        source: Box<TargetError>,
    },
    /// A lane cannot be taken.
    #[error("lane {slot} cannot be taken")]
    Claim {
        /// The lane.
        slot: u32,
        /// Why not.
        source: Box<ClaimError>,
    },
    /// What is in a lane cannot be kept.
    #[error("what is in lane {slot} cannot be kept")]
    Rescue {
        /// The lane.
        slot: u32,
        /// Why not.
        source: Box<ClaimError>,
    },
    /// It cannot be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl From<AppendError> for AbortError {
    fn from(error: AppendError) -> Self {
        AbortError::Record(error.into())
    }
}

impl Run {
    /// What giving the run up would have to keep, without the commits. Changes nothing.
    pub fn unfinished(config: &WorkspaceConfig, bundles: &[BundleId]) -> Vec<Salvage> {
        let found = LaneOwners::in_lanes_of(config).unfinished().into_iter();
        let ours = found.filter(|work| bundles.contains(&work.bundle));
        let of = |work: Unfinished| {
            let checkout = config.lanes.root.join(format!("lane-{}", work.slot)).join(&work.target);
            let Unfinished { bundle, slot, target, .. } = work;
            Salvage { bundle, slot, target, checkout, commit: String::new() }
        };
        ours.map(of).collect()
    }

    /// Gives the run up: keeps what is unfinished in its lanes, lets go of every bundle, and ends it.
    ///
    /// Nothing of it may be running. Repeated after a crash it goes on: what was kept is kept once.
    pub fn abort(&self, config: &WorkspaceConfig, why: &str) -> Result<Vec<Salvage>, AbortError> {
        let bundles: Vec<BundleId> = self.journal().state().bundles.keys().cloned().collect();
        self.settle_rescues()?;
        let mut kept = Vec::new();
        for work in LaneOwners::in_lanes_of(config)
            .unfinished()
            .into_iter()
            .filter(|work| bundles.contains(&work.bundle))
        {
            kept.extend(self.salvage(config, &work)?);
        }
        let mut journal = self.journal();
        let mut records = Vec::new();
        for (bundle, work) in &journal.state().bundles {
            match work.status {
                WorkstreamStatus::Ready
                | WorkstreamStatus::Interrupted
                | WorkstreamStatus::Blocked { .. } => {
                    let why = "the run was given up".to_owned();
                    records.push(Record::Abandoned { bundle: bundle.clone(), why });
                }
                WorkstreamStatus::Running
                | WorkstreamStatus::Sealed
                | WorkstreamStatus::Landed
                | WorkstreamStatus::Abandoned { .. }
                | WorkstreamStatus::Cleaned => {}
            }
        }
        records.push(Record::Aborted { why: why.to_owned() });
        journal.append((self.clock)(), records)?;
        write_status_files(&self.runs, &journal.run().clone(), journal.state())
            .map_err(|error| AbortError::Record(error.into()))?;
        Ok(kept)
    }

    /// A driver that died while it kept something left an intent. It is kept again below, under the
    /// same name where it is the same.
    fn settle_rescues(&self) -> Result<(), AbortError> {
        let mut journal = self.journal();
        for intent in journal.open_intents() {
            let Effect::Rescue { .. } = intent.effect() else {
                return Err(AbortError::Open(intent.seq()));
            };
            let again = "the driver died meanwhile; it is done again";
            intent.failed(&mut journal, (self.clock)(), Cause::Crash, again)?;
        }
        Ok(())
    }

    fn salvage(
        &self,
        config: &WorkspaceConfig,
        work: &Unfinished,
    ) -> Result<Option<Salvage>, AbortError> {
        let Some(spec) = config.targets.iter().find(|target| target.name == work.target) else {
            // Nobody can say what it was made on. The lane stays as it is.
            return Ok(None);
        };
        let target = Target::open(&spec.name, &spec.path).map_err(|source| AbortError::Target {
            name: spec.name.clone(),
            source: Box::new(source),
        })?;
        let slot = work.slot;
        let lane = config
            .lanes
            .lent()
            .claim(slot, &target)
            .map_err(|source| AbortError::Claim { slot, source: Box::new(source) })?;
        let mut journal = self.journal();
        let reference = format!("refs/pdca/rescue/{}", work.job);
        let effect = Effect::Rescue { bundle: work.bundle.clone(), reference };
        let intent = journal.intent((self.clock)(), effect)?;
        match lane.save(&work.job) {
            Ok(saved) => {
                intent.done(&mut journal, (self.clock)())?;
                let (bundle, checkout) = (work.bundle.clone(), lane.path().to_owned());
                let target = work.target.clone();
                // What was moved aside lies beside the lane, and is named by `lanes doctor`.
                let commit = match saved {
                    Saved::Commit(commit) => Some(commit),
                    Saved::Nothing | Saved::Aside { .. } => None,
                };
                Ok(commit.map(|commit| Salvage { bundle, slot, target, checkout, commit }))
            }
            Err(source) => {
                intent.failed(&mut journal, (self.clock)(), Cause::Git, source.to_string())?;
                Err(AbortError::Rescue { slot, source: Box::new(source) })
            }
        }
    }
}
