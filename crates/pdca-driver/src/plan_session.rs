//! One planning session over several issues: each brief counts by itself.
//!
//! 1. The digests of the briefs are recorded before the planner starts, so that a brief that a person edits meanwhile is
//!    not overwritten.
//! 2. When the planner has ended, in whatever way, the record says so. A driver that dies from here on costs no second
//!    session: the next one publishes the rest.
//! 3. Each brief is published by itself. What cannot be taken is named and kept beside the session. Advisers on briefs are
//!    asked about each that is complete; see [`advise_on_brief`].
//! 4. The session is removed, or closed where it lies if the planner failed, since its error names files there. One that was
//!    cut short before step 2 may have half a sentence in a brief, so nothing of it is published; the next session starts
//!    from it.
//!
//! What the session cost is recorded in its bundles, each with its part.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_leaves::{
    BoxError, Call, CallFacts, Inputs, LeafError, LeafEvent, LeafMode, Role, WallClock, call,
    left_briefs,
};
use pdca_state::{Artifact, Brief, Bundle, BundleId, files, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::calls::{SharedCalls, keep_shared_calls};
use crate::config::WorkspaceConfig;
use crate::gate_lines::gate_lines;
use crate::guard::{relieve_guard, stand_guard};
use crate::instructions::instructions_of_workspace;
use crate::interactive::{leaf_failure, own_places};
use crate::plan_advice::advise_on_brief;
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::{EventKind, WarningCode};
use pdca_journal::{EffectSide, Point};

const MAX_RECORD: u64 = 1 << 20;

/// The result of a planning session.
#[derive(Debug)]
pub struct PlanSession {
    /// What became of each brief, in the order of the session.
    pub briefs: Vec<PlannedBrief>,
    /// The issues that started from what a session left that was cut short.
    pub resumed: Vec<BundleId>,
    /// The failure of the planner, which does not void the briefs that it left.
    pub failure: Option<BeatError>,
}

/// A brief after a planning session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedBrief {
    pub id: BundleId,
    #[serde(flatten)]
    pub end: BriefEnd,
}

/// What became of a brief.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "brief", rename_all = "kebab-case")]
pub enum BriefEnd {
    /// Published, and complete.
    Planned,
    /// Published, and still a draft: these labels are not filled in.
    Draft { missing: Vec<&'static str> },
    /// The planner left it as it was.
    Unchanged,
    /// Not published.
    Refused { why: String },
}

/// The record of a session, in its job directory.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SessionRecord {
    /// The digests of the briefs of the bundles when it began.
    given: BTreeMap<BundleId, String>,
    ended: bool,
    /// Its briefs are published; it is kept to be read.
    #[serde(default)]
    closed: bool,
}

impl SessionRecord {
    fn path(job: &Utf8Path) -> Utf8PathBuf {
        job.join("session.json")
    }

    /// Returns the record of a session that was left; one that cannot be read, or that is closed, is none.
    fn load(job: &Utf8Path) -> Option<Self> {
        let bytes = files::read_bounded(Self::path(job), MAX_RECORD).ok().flatten()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &Self| !record.closed)
    }

    fn store(&self, job: &Utf8Path) -> std::io::Result<()> {
        fs_err::create_dir_all(job)?;
        let json = serde_json::to_vec(self).map_err(std::io::Error::other)?;
        files::replace(Self::path(job), &json)
    }
}

fn job_dir(config: &WorkspaceConfig) -> Utf8PathBuf {
    config.dirs.private().join("plan")
}

/// Publishes the briefs of a session that ended under a driver that died. Takes the bundles itself.
pub fn finish_plan_session(cx: &Driver<'_>) -> Result<Vec<PlannedBrief>, BeatError> {
    let job = job_dir(cx.config);
    let Some(record) = SessionRecord::load(&job).filter(|record| record.ended) else {
        return Ok(Vec::new());
    };
    let mut briefs = Vec::new();
    for id in record.given.keys() {
        let Ok(_taken) = cx.config.locks().take(id) else {
            let end = BriefEnd::Refused { why: "another process holds the bundle".to_owned() };
            briefs.push(PlannedBrief { id: id.clone(), end });
            continue;
        };
        briefs.extend(publish(cx, &record, &job, std::slice::from_ref(id))?);
        advise_on_brief(cx, &cx.config.dirs.bundles.bundle(id))?;
    }
    keep_left_calls(cx, &job, &record);
    close(cx, &job, record, &briefs, false)?;
    briefs.retain(|brief| brief.end != BriefEnd::Unchanged);
    Ok(briefs)
}

/// Has the planner fill in the briefs of these bundles in one session. The caller must hold the bundles, and must have
/// finished an earlier session.
///
/// `templates` are laid out beside the issues.
pub fn plan_session(
    cx: &Driver<'_>,
    bundles: &[Bundle],
    templates: Vec<(Utf8PathBuf, Vec<u8>)>,
) -> Result<PlanSession, BeatError> {
    let job = job_dir(cx.config);
    let role = Role::Planner;
    let failed = |source: LeafError| leaf_failure(role, &job, source);
    let leaf = cx.config.leaves.of(role).filter(|leaf| leaf.mode == LeafMode::Command);
    let leaf = leaf.ok_or_else(|| failed(LeafError::NoProgram { role }))?;
    let mut record = SessionRecord::default();
    for bundle in bundles {
        let brief = bundle.read(Artifact::Brief)?.unwrap_or_default();
        record.given.insert(bundle.id().clone(), sha256_hex(&brief));
    }
    // Before `make_room` removes the job that holds their cost.
    if let Some(before) = SessionRecord::load(&job) {
        keep_left_calls(cx, &job, &before);
    }
    let drafts = interrupted(&job, &record);
    let resumed = drafts.keys().cloned().collect();
    let mut inputs =
        Inputs::for_planning(bundles, templates).map_err(|error| failed(error.into()))?;
    inputs = inputs.instructed(instructions_of_workspace(cx.config, role).map_err(failed)?);
    for (id, draft) in drafts {
        let name = Utf8PathBuf::from(id.dir_name()).join(Artifact::Brief.file_name());
        inputs.replace(&name, draft);
    }
    // After its drafts are read into the inputs: from here on the earlier session is gone.
    make_room(cx, &job).map_err(BeatError::Own)?;
    cx.effects.perform("plan-session", || record.store(&job)).map_err(BeatError::Own)?;
    for bundle in bundles {
        stand_guard(cx, bundle)?;
    }
    let answer = converse(cx, bundles, leaf, &inputs, &job);
    for bundle in bundles {
        tell_of_planted(cx, bundle)?;
    }
    if matches!(answer, Err(LeafError::Cancelled)) || cx.cancel.is_cancelled() {
        return Err(BeatError::Interrupted);
    }
    // Before any brief is published: a driver that dies from here on must not ask the person again.
    record.ended = true;
    cx.effects.perform("plan-ended", || record.store(&job)).map_err(BeatError::Own)?;
    let ids: Vec<BundleId> = bundles.iter().map(|bundle| bundle.id().clone()).collect();
    let briefs = publish(cx, &record, &job, &ids)?;
    for bundle in bundles {
        advise_on_brief(cx, bundle)?;
    }
    close(cx, &job, record, &briefs, answer.is_err())?;
    Ok(PlanSession { briefs, resumed, failure: answer.err().map(failed) })
}

/// Sets aside what was written into a bundle during the session, with a warning: the briefs count all the same.
fn tell_of_planted(cx: &Driver<'_>, bundle: &Bundle) -> Result<(), BeatError> {
    for one in relieve_guard(cx, bundle)? {
        let text = format!("written into the bundle during the session; it does not count: {one}");
        cx.warn(bundle, WarningCode::BundleWritten, text);
    }
    Ok(())
}

/// Removes what an earlier session left; one that was closed to be read is kept under another name.
fn make_room(cx: &Driver<'_>, job: &Utf8Path) -> std::io::Result<()> {
    let jobs = cx.config.jobs();
    if SessionRecord::load(job).is_none() && SessionRecord::path(job).exists() {
        let aside = aside(cx.config);
        jobs.remove(&aside)?;
        return fs_err::rename(job, aside);
    }
    jobs.remove(job)
}

/// Calls the planner, and tells of each bundle that it is being planned.
fn converse(
    cx: &Driver<'_>,
    bundles: &[Bundle],
    leaf: &pdca_leaves::LeafConfig,
    inputs: &Inputs,
    job: &Utf8Path,
) -> Result<(), LeafError> {
    let kept = cx.config.kept();
    let children = cx.config.locks().children();
    let gates = gate_lines(cx.config, None);
    let targets = &cx.config.targets;
    let primary = targets.first().filter(|_| targets.len() == 1).map(|only| only.path.clone());
    let places = own_places(cx, &kept);
    let request = Call {
        facts: CallFacts { gates: gates.as_deref(), ..cx.facts(None) },
        has_terminal: cx.config.has_terminal,
        hold: Some(&children),
        max_memory: cx.config.limits.leaf_memory,
        breaker: Some(&cx.config.breaker),
        clock: Some(WallClock { now: cx.config.clock, offset: cx.config.utc_offset }),
        ..Call::new(
            leaf,
            inputs,
            job,
            pdca_leaves::CallPaths { primary: primary.as_deref(), ..places },
        )
    };
    let calls = SharedCalls::new(cx, bundles, &request);
    let prepare = |tried: u32| -> Result<(), BoxError> { Ok(calls.begin(tried)?) };
    let request = Call { prepare: Some(&prepare), ..request };
    let role = Role::Planner.as_str().to_owned();
    let mut tell = |event| {
        if let LeafEvent::Ended { .. } = event {
            calls.keep();
        }
        if let LeafEvent::Started { .. } = event {
            cx.effects.announce(Point { name: "leaf-started", when: EffectSide::After });
        }
        let kind = match event {
            LeafEvent::Attempt { n, of: _ } => {
                EventKind::LeafBegan { role: role.clone(), attempt: n }
            }
            LeafEvent::Ended { ending, held, reused, .. } => EventKind::LeafEnded {
                role: role.clone(),
                ending: ending.to_string(),
                guard: held.to_string(),
                reused,
            },
            LeafEvent::Started { .. }
            | LeafEvent::Output { .. }
            | LeafEvent::Throttled { .. }
            | LeafEvent::Diagnosed { .. }
            | LeafEvent::NotResumed { .. } => return,
        };
        for bundle in bundles {
            cx.tell(bundle, kind.clone());
        }
    };
    let answer = call(&request, &mut tell, cx.cancel).map(drop);
    // One that was cancelled has no end that is told.
    calls.keep();
    answer
}

/// Records the calls of a session whose driver died.
fn keep_left_calls(cx: &Driver<'_>, job: &Utf8Path, record: &SessionRecord) {
    let bundles: Vec<Bundle> =
        record.given.keys().map(|id| cx.config.dirs.bundles.bundle(id)).collect();
    keep_shared_calls(cx, &bundles, job);
}

/// Returns the briefs that a session left which was cut short, where nobody changed the bundle since.
fn interrupted(job: &Utf8Path, now: &SessionRecord) -> BTreeMap<BundleId, Vec<u8>> {
    let Some(before) = SessionRecord::load(job) else { return BTreeMap::new() };
    let ids: Vec<BundleId> = before.given.keys().cloned().collect();
    let mut drafts = BTreeMap::new();
    for (id, draft) in left_briefs(&ids, job) {
        let is_same = now.given.get(&id).is_some_and(|digest| before.given[&id] == *digest);
        if let Ok(draft) = draft
            && is_same
            && sha256_hex(&draft) != before.given[&id]
        {
            drafts.insert(id, draft);
        }
    }
    drafts
}

/// Publishes the briefs of these bundles, which the caller holds.
fn publish(
    cx: &Driver<'_>,
    record: &SessionRecord,
    job: &Utf8Path,
    ids: &[BundleId],
) -> Result<Vec<PlannedBrief>, BeatError> {
    let mut left: BTreeMap<BundleId, _> = left_briefs(ids, job).into_iter().collect();
    let mut briefs = Vec::new();
    for id in ids {
        let bundle = cx.config.dirs.bundles.bundle(id);
        let present = bundle.read(Artifact::Brief)?.unwrap_or_default();
        let refused = |why: String| BriefEnd::Refused { why };
        let end = match left.remove(id) {
            None if present.is_empty() => BriefEnd::Unchanged,
            None => refused("its brief.md was removed".to_owned()),
            Some(Err(flaw)) => refused(flaw.to_string()),
            // Before the comparison with `given`: a driver that publishes the rest finds its own
            // work here.
            Some(Ok(brief)) if brief == present => BriefEnd::Unchanged,
            Some(Ok(_)) if record.given.get(id) != Some(&sha256_hex(&present)) => {
                refused("its brief was edited during the session".to_owned())
            }
            Some(Ok(brief)) => match std::str::from_utf8(&brief) {
                Err(_) => refused("it is not UTF-8".to_owned()),
                Ok(text) => {
                    let missing = Brief::parse(text).missing();
                    cx.publish(&bundle, Artifact::Brief, &brief)?;
                    if missing.is_empty() { BriefEnd::Planned } else { BriefEnd::Draft { missing } }
                }
            },
        };
        briefs.push(PlannedBrief { id: id.clone(), end });
    }
    Ok(briefs)
}

/// Removes the session; one with a brief that was refused is kept under another name, and one that failed where it is.
fn close(
    cx: &Driver<'_>,
    job: &Utf8Path,
    record: SessionRecord,
    briefs: &[PlannedBrief],
    has_failed: bool,
) -> Result<(), BeatError> {
    if has_failed {
        return SessionRecord { closed: true, ..record }.store(job).map_err(BeatError::Own);
    }
    let jobs = cx.config.jobs();
    if briefs.iter().any(|brief| matches!(brief.end, BriefEnd::Refused { .. })) {
        let aside = aside(cx.config);
        jobs.remove(&aside).map_err(BeatError::Own)?;
        return fs_err::rename(job, aside).map_err(BeatError::Own);
    }
    jobs.remove(job).map_err(BeatError::Own)
}

/// Returns the directory that keeps the last session with a brief that was refused.
pub fn refused_session(config: &WorkspaceConfig) -> Utf8PathBuf {
    let job = job_dir(config);
    // A session that also failed is where its error says.
    if job.exists() { job } else { aside(config) }
}

fn aside(config: &WorkspaceConfig) -> Utf8PathBuf {
    config.dirs.private().join("plan.refused")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use pdca_journal::events::{Event, EventStream};

    use super::*;
    use crate::testing::Scene;

    #[test]
    fn what_was_written_into_a_bundle_during_a_session_is_told() {
        let scene = Scene::planned();
        let bundle = scene.bundle();
        let told: Arc<Mutex<Vec<Event>>> = Arc::default();
        let heard = Arc::clone(&told);
        let listener = move |event| heard.lock().unwrap().push(event);
        let events = EventStream::new(|| jiff::Timestamp::UNIX_EPOCH, listener);
        let driver = Driver { events: &events, ..scene.driver() };
        stand_guard(&driver, &bundle).unwrap();
        fs_err::write(bundle.path(Artifact::Review), "all is well\n").unwrap();
        tell_of_planted(&driver, &bundle).unwrap();
        let told = told.lock().unwrap();
        let text = format!("{:?}", told.last().unwrap().kind);
        assert!(text.contains(Artifact::Review.file_name()), "{text}");
    }
}
