//! Aborts a run: rescues unfinished work in its lanes first, and lands nothing.

use camino::Utf8PathBuf;
use pdca_journal::{
    AppendError, Cause, Effect, InboxRequest, Record, Seq, WorkstreamStatus, write_status_files,
};
use pdca_lanes::{ClaimError, Saved, Target, TargetError};
use pdca_state::BundleId;

use super::{RecordError, Run};
use crate::config::WorkspaceConfig;
use crate::lane_owner::{LaneOwners, Unfinished};

/// Rescued unfinished work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    pub bundle: BundleId,
    pub slot: u32,
    pub target: String,
    /// The repository that has the commit.
    pub checkout: Utf8PathBuf,
    pub commit: String,
}

/// The reason a run was not aborted. Work that was already rescued stays rescued.
#[derive(Debug, thiserror::Error)]
pub enum AbortError {
    /// The outcome of an intent is unknown.
    #[error("the outcome of record {0} is unknown")]
    Open(Seq),
    #[error("the target `{name}` cannot be used")]
    Target { name: String, source: Box<TargetError> },
    #[error("lane {slot} cannot be claimed")]
    Claim { slot: u32, source: Box<ClaimError> },
    #[error("the work in lane {slot} cannot be rescued")]
    Rescue { slot: u32, source: Box<ClaimError> },
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl From<AppendError> for AbortError {
    fn from(error: AppendError) -> Self {
        AbortError::Record(error.into())
    }
}

/// Returns the work that an abort would rescue, without commits. Changes nothing.
pub fn unfinished_work(config: &WorkspaceConfig, bundles: &[BundleId]) -> Vec<Salvage> {
    let found = LaneOwners::in_lanes_of(config).unfinished().into_iter();
    let ours = found.filter(|work| bundles.contains(&work.bundle));
    let of = |work: Unfinished| {
        let slot = config.lanes.root.join(format!("lane-{}", work.slot));
        let checkout = pdca_lanes::repository_in(&slot, &work.target, config.lanes.kind);
        let Unfinished { bundle, slot, target, .. } = work;
        Salvage { bundle, slot, target, checkout, commit: String::new() }
    };
    ours.map(of).collect()
}

impl Run {
    /// Aborts the run: rescues unfinished work in its lanes, abandons every bundle, and ends it.
    ///
    /// Nothing of the run may be running. After a crash it can be repeated; work is rescued once.
    pub fn abort(&self, config: &WorkspaceConfig, why: &str) -> Result<Vec<Salvage>, AbortError> {
        let bundles: Vec<BundleId> = self.journal().state().bundles.keys().cloned().collect();
        let rescue = Rescue { run: self, config };
        // A rescue cut short leaves an open intent, and the journal admits no second one for the
        // bundle.
        rescue.settle()?;
        let mut kept = Vec::new();
        for work in LaneOwners::in_lanes_of(config)
            .unfinished()
            .into_iter()
            .filter(|work| bundles.contains(&work.bundle))
        {
            kept.extend(rescue.salvage(&work)?);
        }
        let mut journal = self.journal();
        // `Ended` of attempts at other places comes first: a running bundle cannot be abandoned.
        let mut records = super::elsewhere::leave_elsewhere(journal.state());
        for (bundle, work) in &journal.state().bundles {
            match work.status {
                // The state was read before `leave_elsewhere` ended these attempts in the same append.
                WorkstreamStatus::Running if work.is_on_host() => {
                    let why = "the run was given up".to_owned();
                    records.push(Record::Abandoned { bundle: bundle.clone(), why });
                }
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
        // In the same append: the request is answered exactly if the run is over.
        for (id, request) in &journal.state().requests {
            if let InboxRequest::Abort { .. } = request {
                records.push(Record::Answered { id: id.clone(), refusal: None });
            }
        }
        records.push(Record::Aborted { why: why.to_owned() });
        journal.append((self.clock)(), records)?;
        write_status_files(&self.runs, &journal.run().clone(), journal.state())
            .map_err(|error| AbortError::Record(error.into()))?;
        Ok(kept)
    }
}

/// The rescue of unfinished work before a run is aborted: one lane after the other, each under an intent.
struct Rescue<'r> {
    run: &'r Run,
    config: &'r WorkspaceConfig,
}

impl Rescue<'_> {
    /// Closes the intents of a driver that died during a rescue. The rescue is repeated afterwards, under the
    /// same name if the work is the same.
    fn settle(&self) -> Result<(), AbortError> {
        let mut journal = self.run.journal();
        for intent in journal.open_intents() {
            let Effect::Rescue { .. } = intent.effect() else {
                return Err(AbortError::Open(intent.seq()));
            };
            let again = "the driver died meanwhile; it is done again";
            intent.failed(&mut journal, (self.run.clock)(), Cause::Crash, again)?;
        }
        Ok(())
    }

    fn salvage(&self, work: &Unfinished) -> Result<Option<Salvage>, AbortError> {
        let Some(spec) = self.config.targets.iter().find(|target| target.name == work.target)
        else {
            // Without the target its base is unknown. The lane stays as it is.
            return Ok(None);
        };
        let target = Target::open(&spec.name, &spec.path).map_err(|source| AbortError::Target {
            name: spec.name.clone(),
            source: Box::new(source),
        })?;
        let slot = work.slot;
        let lane = self
            .config
            .lanes
            .lent()
            .claim(slot, &target)
            .map_err(|source| AbortError::Claim { slot, source: Box::new(source) })?;
        let mut journal = self.run.journal();
        let reference = format!("refs/pdca/rescue/{}", work.job);
        let effect = Effect::Rescue { bundle: work.bundle.clone(), reference };
        // The intent before the commit: a driver that dies in between finds it open and rescues
        // again.
        let intent = journal.intent((self.run.clock)(), effect)?;
        match lane.save(&work.job) {
            Ok(saved) => {
                intent.done(&mut journal, (self.run.clock)())?;
                let (bundle, checkout) = (work.bundle.clone(), lane.repository());
                let target = work.target.clone();
                // A lane that was moved aside stays beside the lanes, and `lanes doctor` names it.
                let commit = match saved {
                    Saved::Commit(commit) => Some(commit),
                    Saved::Nothing | Saved::Aside { .. } => None,
                };
                Ok(commit.map(|commit| Salvage { bundle, slot, target, checkout, commit }))
            }
            Err(source) => {
                intent.failed(&mut journal, (self.run.clock)(), Cause::Git, source.to_string())?;
                Err(AbortError::Rescue { slot, source: Box::new(source) })
            }
        }
    }
}
