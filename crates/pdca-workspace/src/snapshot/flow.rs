//! The facts that `pdca flow` decides by.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::time::UNIX_EPOCH;

use crate::flow::{AfterAccept, FlowFacts, FlowSettings, UnsignedWork, decisions_per_hour};
use pdca_forge::publish::{
    Adoption, BranchState, CommentState, Comments, ForgeKind, PublishRecord, PublishSettings,
};
use pdca_state::{Artifact, Bundle, BundleId, State, Summary, tracker_comment};

use crate::snapshot::{SnapshotEntry, WorkspaceSnapshot};

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
        publish: &PublishSettings,
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
            undelivered: ids(&|entry| self.is_undelivered(entry, settings.after_accept, publish)),
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
    fn is_undelivered(
        &self,
        entry: &SnapshotEntry,
        after: AfterAccept,
        publish: &PublishSettings,
    ) -> bool {
        if entry.state() != Some(State::Complete) {
            return false;
        }
        let Ok(bundle) = Bundle::at(&*entry.dir) else { return false };
        // What was accepted before there were seals is history.
        if !bundle.path(Artifact::Seal).exists() {
            return false;
        }
        after.integrates() && self.mark_of(entry) == Some("sealed")
            || after.publishes() && !is_published(&bundle, publish)
    }

    /// Names the state of an entry, as far as it decides what can be done with it.
    fn name_state(&self, entry: &SnapshotEntry) -> String {
        let state = entry.state().map_or(crate::snapshot::UNREADABLE, State::as_str);
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

/// Returns whether everything of a bundle is out that `[publish]` asks for. Publishing again finds what is there.
fn is_published(bundle: &Bundle, publish: &PublishSettings) -> bool {
    let record = bundle.read(Artifact::Publish).ok().flatten();
    let Some(record) = record.and_then(|bytes| PublishRecord::parse(&bytes).ok()) else {
        return false;
    };
    let is_offered = match publish.forge {
        ForgeKind::None => record.branch.is_some_and(|branch| branch.state == BranchState::Pushed),
        // Without a state it was only about to be opened.
        ForgeKind::Gh | ForgeKind::Command => record
            .pull_request
            .is_some_and(|pull| pull.state.is_some() && pull.adopted != Some(Adoption::Intended)),
    };
    // Only a comment that is due is missed: where there is none to post, the record never has one.
    let is_told = record.comment.is_some_and(|comment| comment.state == CommentState::Posted);
    is_offered && (is_told || !wants_comment(bundle, publish))
}

/// Returns whether publishing posts a comment on the issue of a bundle.
fn wants_comment(bundle: &Bundle, publish: &PublishSettings) -> bool {
    let id = bundle.id().as_str();
    let has_issue = match publish.comments() {
        Comments::Off => false,
        // `007` would parse as 7, which is another issue.
        Comments::Gh => id.parse::<NonZero<u64>>().is_ok_and(|issue| issue.to_string() == id),
        Comments::Command => true,
    };
    has_issue && !is_comment_declined(bundle)
}

/// Returns whether a person removed the draft of the comment from §8, and wrote none.
fn is_comment_declined(bundle: &Bundle) -> bool {
    let summary = bundle.read(Artifact::Summary).ok().flatten();
    let summary = summary.map(|bytes| Summary::parse(&String::from_utf8_lossy(&bytes)));
    let draft = summary.as_ref().and_then(tracker_comment);
    draft.is_some_and(|draft| draft.is_empty())
        && bundle.read(Artifact::TrackerComment).is_ok_and(|text| text.is_none())
}

#[cfg(test)]
mod tests {
    use pdca_forge::publish::{CommentRecord, PublishKey, PullRecord, PullState};
    use pdca_testkit::TestWorkspace;

    use super::*;

    /// A bundle whose branch and pull request are out, with a comment in this state.
    fn published(workspace: &TestWorkspace, id: &str, comment: Option<CommentState>) -> Bundle {
        let bundle = Bundle::at(workspace.brief(id, &[])).unwrap();
        let mut record = PublishRecord::new(&PublishKey::new("01JC", bundle.id(), b"{}"));
        record.intend("origin", "pdca/7", "c0ffee");
        record.branch.as_mut().unwrap().state = BranchState::Pushed;
        record.pull_request = Some(PullRecord {
            repo: "owner/app".to_owned(),
            number: Some(1),
            url: Some("https://forge/1".to_owned()),
            state: Some(PullState::Draft),
            adopted: None,
        });
        record.comment =
            comment.map(|state| CommentRecord { issue: id.to_owned(), url: None, state });
        bundle.publish(Artifact::Publish, &record.to_json()).unwrap();
        bundle
    }

    #[test]
    fn a_change_is_out_without_a_comment_where_none_is_posted() {
        let workspace = TestWorkspace::new();
        let gh = PublishSettings::default();
        let off = PublishSettings { comments: Comments::Off, ..gh.clone() };
        let none = PublishSettings { forge: ForgeKind::None, ..gh.clone() };
        let silent = published(&workspace, "7", None);
        assert!(!is_published(&silent, &gh), "the comment is due");
        assert!(is_published(&silent, &off));
        assert!(is_published(&silent, &none), "there is no forge to comment on");
        assert!(is_published(&published(&workspace, "PROJ-7", None), &gh), "it has no issue");
        let summary =
            "## 8. Ready-to-ship attachments\n\n### Tracker comment\n\n## 9. Check sign-off\n";
        silent.publish(Artifact::Summary, summary.as_bytes()).unwrap();
        assert!(is_published(&silent, &gh), "a person removed the draft");
        let posted = published(&workspace, "8", Some(CommentState::Posted));
        assert!(is_published(&posted, &gh));
        let intended = published(&workspace, "9", Some(CommentState::Intended));
        assert!(!is_published(&intended, &gh), "it may not have been posted");
    }
}
