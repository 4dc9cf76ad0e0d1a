//! Attempts of a run on other machines.

use std::collections::BTreeMap;

use pdca_journal::{Generation, Record, RunState, Workstream, WorkstreamStatus, object_id};
use pdca_state::BundleId;

use super::{RecordError, Run, interrupted};

impl Run {
    /// Claims a bundle for a slot of a host, and returns the generation.
    ///
    /// An attempt that is under way on this host is kept, unless `anew`: whoever asks under the same generation finds
    /// the same job there. `None` for a bundle outside this run.
    pub(crate) fn claim_on(
        &self,
        id: &BundleId,
        (host, slot): (&str, u32),
        base: &str,
        anew: bool,
    ) -> Result<Option<Generation>, RecordError> {
        let mut journal = self.journal();
        let Some(work) = journal.state().bundles.get(id) else { return Ok(None) };
        let mut records = Vec::new();
        match (&work.status, &work.claim) {
            // Kept, so that a driver that takes over collects the job instead of sending it again.
            // `anew` is set once the job was collected: under its old name it would only bring the
            // same result.
            (WorkstreamStatus::Running, Some(claim)) => {
                if claim.host.as_deref() == Some(host) && !anew {
                    return Ok(Some(claim.generation));
                }
                records.push(interrupted(id, claim.generation));
            }
            (WorkstreamStatus::Blocked { .. }, _) => {
                records.push(Record::Unblocked { bundle: Some(id.clone()) });
            }
            _ => {}
        }
        let Some(generation) = journal.state().next_generation(id) else { return Ok(None) };
        let (bundle, host, base) = (id.clone(), Some(host.to_owned()), object_id::parse(base)?);
        records.push(Record::Claimed { bundle, generation, slot, host, base });
        let (bundle, process) = (id.clone(), self.me.clone());
        records.push(Record::Started { bundle, generation, process });
        journal.append((self.clock)(), records)?;
        Ok(Some(generation))
    }

    /// Returns the host, the slot and the generation of each attempt that is under way on a host.
    pub(crate) fn on_hosts(&self) -> BTreeMap<BundleId, (String, u32, Generation)> {
        let journal = self.journal();
        let on_host = |(id, work): (&BundleId, &Workstream)| {
            let claim = work.claim.as_ref().filter(|_| work.is_on_host())?;
            Some((id.clone(), (claim.host.clone()?, claim.slot, claim.generation)))
        };
        journal.state().bundles.iter().filter_map(on_host).collect()
    }
}

/// Returns the records that give up attempts on hosts: their results no longer count.
pub(super) fn leave_hosts(state: &RunState) -> Vec<Record> {
    let left = |(id, work): (&BundleId, &Workstream)| {
        work.claim
            .as_ref()
            .filter(|_| work.is_on_host())
            .map(|claim| interrupted(id, claim.generation))
    };
    state.bundles.iter().filter_map(left).collect()
}
