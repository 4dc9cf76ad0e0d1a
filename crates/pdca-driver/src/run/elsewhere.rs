//! Attempts of a run at other places.

use std::collections::BTreeMap;

use pdca_journal::{Generation, Record, RunState, Workstream, WorkstreamStatus, object_id};
use pdca_state::BundleId;

use super::{RecordError, Run, interrupted};

impl Run {
    /// Claims a bundle for a slot of a place, and returns the generation.
    ///
    /// An attempt that is under way there is kept, unless `anew`: asking under the same generation finds the same leg
    /// there. `None` for a bundle outside this run.
    pub(crate) fn claim_on(
        &self,
        id: &BundleId,
        (place, slot): (&str, u32),
        base: &str,
        anew: bool,
    ) -> Result<Option<Generation>, RecordError> {
        let mut journal = self.journal();
        let Some(work) = journal.state().bundles.get(id) else { return Ok(None) };
        let mut records = Vec::new();
        match (&work.status, &work.claim) {
            // Kept, so that a driver that takes over collects the leg instead of sending it again.
            // `anew` is set once the result was published: under its old name it would only bring the
            // same result.
            (WorkstreamStatus::Running, Some(claim)) => {
                if claim.host.as_deref() == Some(place) && !anew {
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
        let (bundle, host, base) = (id.clone(), Some(place.to_owned()), object_id::parse(base)?);
        records.push(Record::Claimed { bundle, generation, slot, host, base });
        let (bundle, process) = (id.clone(), self.me.clone());
        records.push(Record::Started { bundle, generation, process });
        journal.append((self.clock)(), records)?;
        Ok(Some(generation))
    }

    /// Returns the place, the slot and the generation of each attempt that is under way at another place.
    pub(crate) fn elsewhere(&self) -> BTreeMap<BundleId, (String, u32, Generation)> {
        let journal = self.journal();
        let claimed = |(id, work): (&BundleId, &Workstream)| {
            let claim = work.claim.as_ref().filter(|_| work.is_on_host())?;
            Some((id.clone(), (claim.host.clone()?, claim.slot, claim.generation)))
        };
        journal.state().bundles.iter().filter_map(claimed).collect()
    }
}

/// Returns the records that give up attempts at other places: their results no longer count.
pub(super) fn leave_elsewhere(state: &RunState) -> Vec<Record> {
    let left = |(id, work): (&BundleId, &Workstream)| {
        work.claim
            .as_ref()
            .filter(|_| work.is_on_host())
            .map(|claim| interrupted(id, claim.generation))
    };
    state.bundles.iter().filter_map(left).collect()
}
