//! The facts that `pdca flow` decides by.

use std::collections::BTreeSet;
use std::time::UNIX_EPOCH;

use pdca_flow::{AfterAccept, FlowFacts, FlowSettings, UnsignedWork, decisions_per_hour};
use pdca_publish::PublishRecord;
use pdca_state::{Artifact, Bundle, BundleId, State};

use crate::{SnapshotEntry, WorkspaceSnapshot};

/// The states of an accepted change in which a person has to do something about it.
const HELD: [&str; 4] = ["held", "blocked_conflict", "drifted", "reverted"];

impl WorkspaceSnapshot {
    /// Returns how much unsigned work there is, and how much there may be.
    pub fn pace(&self, settings: &FlowSettings) -> UnsignedWork {
        let waits = |entry: &&SnapshotEntry| entry.state() == Some(State::AwaitingSignoff);
        let unsigned = self.entries.iter().filter(waits).count();
        UnsignedWork {
            unsigned: u32::try_from(unsigned).unwrap_or(u32::MAX),
            max_unsigned: (settings.max_unsigned > 0).then_some(settings.max_unsigned),
            per_hour: decisions_per_hour(&self.decision_times()),
        }
    }

    /// Returns the facts about the bundles of `scope`, or about all. Whether a look back is due is not among them.
    ///
    /// It must have been loaded with [`Self::load_at_work`].
    pub fn flow_facts(
        &self,
        scope: Option<&BTreeSet<BundleId>>,
        settings: &FlowSettings,
    ) -> FlowFacts {
        let is_in = |entry: &&SnapshotEntry| scope.is_none_or(|scope| scope.contains(&entry.id));
        let entries: Vec<&SnapshotEntry> = self.entries.iter().filter(is_in).collect();
        let ids = |is: &dyn Fn(&SnapshotEntry) -> bool| -> Vec<BundleId> {
            let mut ids: Vec<BundleId> =
                entries.iter().filter(|entry| is(entry)).map(|entry| entry.id.clone()).collect();
            ids.sort();
            ids
        };
        let in_state = |state: State| move |entry: &SnapshotEntry| entry.state() == Some(state);
        let mut facts = FlowFacts {
            drafts: ids(&in_state(State::Unplanned)),
            buildable: ids(&|entry| entry.can_go_on() || self.is_stale(entry)),
            unsigned: ids(&in_state(State::AwaitingSignoff)),
            undelivered: ids(&|entry| self.is_undelivered(entry, settings.after_accept)),
            stuck: ids(&|entry| self.is_stuck(entry)),
            act_due: false,
            pace: self.pace(settings),
            fingerprint: entries.iter().map(|entry| self.name_state(entry)).collect(),
        };
        if facts.drafts.is_empty() && facts.unsigned.is_empty() {
            // Nobody will decide what they wait for.
            facts.stuck.extend(ids(&|entry| entry.has_work() && !entry.blocked_by.is_empty()));
            facts.stuck.sort();
            facts.stuck.dedup();
        }
        facts
    }

    fn mark_of(&self, entry: &SnapshotEntry) -> Option<&'static str> {
        self.landing.mark(&entry.id).map(|mark| mark.word)
    }

    fn is_stale(&self, entry: &SnapshotEntry) -> bool {
        self.landing.stale(&entry.id).is_some_and(|stale| stale.waits_for.is_none())
    }

    fn is_stuck(&self, entry: &SnapshotEntry) -> bool {
        entry.glance.is_err()
            || entry.has_work() && entry.failed.is_some()
            || self.mark_of(entry).is_some_and(|mark| HELD.contains(&mark))
    }

    /// Returns true for an accepted change that is neither landed nor staged, or of which something is not out.
    fn is_undelivered(&self, entry: &SnapshotEntry, after: AfterAccept) -> bool {
        if entry.state() != Some(State::Complete) {
            return false;
        }
        let Ok(bundle) = Bundle::at(&*entry.dir) else { return false };
        // What was accepted before there were seals is history.
        if !bundle.path(Artifact::Seal).exists() {
            return false;
        }
        after.integrates() && self.mark_of(entry) == Some("sealed")
            || after.publishes() && !is_published(&bundle)
    }

    /// Names the state of an entry, as far as it decides what can be done with it.
    fn name_state(&self, entry: &SnapshotEntry) -> String {
        let state = entry.state().map_or(crate::UNREADABLE, State::as_str);
        let iterations = entry.glance.as_ref().map_or(0, |glance| glance.iterations);
        let mark = self.mark_of(entry).unwrap_or_default();
        let blocked = entry.blocked_by.len();
        let freshness = if self.is_stale(entry) { "stale" } else { "" };
        format!("{} {state} {iterations} {mark} {blocked} {freshness};", entry.id)
    }

    /// Returns when people decided, in seconds: a summary is not written again after its decision.
    fn decision_times(&self) -> Vec<i64> {
        let is_decided = |entry: &&SnapshotEntry| {
            matches!(entry.state(), Some(State::Complete | State::Discontinued))
        };
        let time = |entry: &SnapshotEntry| {
            let bundle = Bundle::at(&*entry.dir).ok()?;
            let found = fs_err::metadata(bundle.path(Artifact::Summary)).ok()?;
            let since = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            i64::try_from(since.as_secs()).ok()
        };
        self.entries.iter().filter(is_decided).filter_map(time).collect()
    }
}

/// Returns whether everything of a bundle is out that may be out. Publishing again finds what is there.
fn is_published(bundle: &Bundle) -> bool {
    let record = bundle.read(Artifact::Publish).ok().flatten();
    let record = record.and_then(|bytes| PublishRecord::parse(&bytes).ok());
    record.is_some_and(|record| record.pull_request.is_some() && record.comment.is_some())
}
