//! Sends an accepted change that has not landed back into the cycle.
//!
//! # Protocol
//! 1. The caller holds the bundle and the lock of the landings, which an integration holds from
//!    before it reads the bundles until its end: a change cannot land between the steps below.
//! 2. The state of the change is read from git. A landed change stays.
//! 3. The archive begins, by one rename, with the record of the return in it. Before it the bundle is
//!    accepted; after it the bundle is sent back, and the next driver finishes the archive.
//!
//! The seal is archived with the attempt, so the old acceptance cannot land any more. Its
//! ref stays as a record. The next integration does not continue from a staging branch that contains the
//! change.

use pdca_journal::Effects;
use pdca_state::{
    ArchiveError, Artifact, Bundle, BundleId, Label, LoadError, Reentry, Returned, RootError,
    State, archive_returned,
};

use crate::queue::reproduce::{portable, relative};
use crate::{
    AcceptedChange, ChangeState, HeldBack, HeldChange, HeldReason, ObjectId, QueueWorkspace,
    StoreError, TargetBranchError, TargetBranches, conflict_record, failing, place, present_in,
};

/// The number of times that a bundle is sent back without a person.
pub const MOST_AUTOMATIC_RETURNS: usize = 2;
/// The most characters of a partner's goal that are quoted.
const GOAL: usize = 200;

/// An accepted change that has not landed, with the facts about it.
#[derive(Debug)]
pub struct Withdrawal {
    /// The reason the last integration held it, if it did.
    pub held: Option<HeldChange>,
    /// The staging branches that contain it, without `refs/heads/`, each with the commit that brought it.
    pub staged: Vec<(String, ObjectId)>,
    /// The facts for the next attempt, one sentence each.
    pub facts: Vec<String>,
    /// The changes that it conflicted or failed with.
    partners: Vec<(BundleId, Vec<u8>)>,
}

/// The decision to send a change back.
#[derive(Debug, Clone, Copy)]
pub struct Return<'a> {
    /// The beat to continue with.
    pub reentry: Reentry,
    pub by: &'a str,
    /// In the form of the summary.
    pub date: &'a str,
    /// May be missing if an integration gave the reason.
    pub note: Option<&'a str>,
    /// Decided by the driver, not by a person.
    pub automatic: bool,
}

/// The reason a change was not sent back. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReturnError {
    #[error("{id} is {state}, so there is nothing to take back")]
    NotAccepted { id: BundleId, state: State },
    #[error("{id} has landed in {branch} as {commit:.12}")]
    Landed { id: BundleId, branch: String, commit: String },
    #[error("the pull request of {id} was merged: {url}")]
    Merged { id: BundleId, url: String },
    /// Neither an integration nor the person gives a reason.
    #[error("{id} was not held, so it needs a note")]
    NoReason { id: BundleId },
    /// The target branch cannot be determined.
    #[error(transparent)]
    TargetBranch(#[from] TargetBranchError),
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Checks that an accepted change may go back, and collects the facts about it. The caller holds
/// the bundle and the landings.
///
/// `merged_pull` is the address of its pull request, if that was merged: the change has landed even if the branch here does
/// not have it.
pub fn withdrawal(
    workspace: &QueueWorkspace,
    bundle: &Bundle,
    merged_pull: Option<String>,
) -> Result<Withdrawal, ReturnError> {
    let id = bundle.id();
    let state = bundle.load()?.state;
    if state != State::Complete {
        return Err(ReturnError::NotAccepted { id: id.clone(), state });
    }
    // Before git is asked: after a merge on the forge the branch here may not have been fetched
    // yet.
    if let Some(url) = merged_pull {
        return Err(ReturnError::Merged { id: id.clone(), url });
    }
    let TargetBranches { branches, unplaceable, .. } =
        TargetBranches::load_some(workspace, |other| other == id)?;
    if let Some(unplaceable) = unplaceable.into_iter().next() {
        return Err(unplaceable.error.into());
    }
    let found = branches.iter().find_map(|branch| {
        let change = branch.changes.iter().find(|change| change.bundle.dir() == bundle.dir())?;
        Some((branch, change))
    });
    let mut withdrawal =
        Withdrawal { held: None, staged: Vec::new(), facts: Vec::new(), partners: Vec::new() };
    // A close has no change, and without a target nothing lands: both may go back.
    let Some((branch, change)) = found else { return Ok(withdrawal) };
    if let ChangeState::Landed { commit, .. } = &change.standing {
        let (branch, commit) = (branch.branch.clone(), commit.to_string());
        return Err(ReturnError::Landed { id: id.clone(), branch, commit });
    }
    withdrawal.held = held_of(workspace, change);
    if let (Some(sealed), Some(at)) = (change.sealed(), branch.staging.at) {
        let there = present_in(&branch.store, at, &[sealed.record()])?;
        if let Some(presence) = there.get(&sealed.digest()) {
            withdrawal.staged.push((branch.staging.branch.clone(), presence.commit));
        }
    }
    say(workspace, change, &mut withdrawal);
    Ok(withdrawal)
}

/// Returns the recorded reason why a change was held, or derives it from its state.
fn held_of(workspace: &QueueWorkspace, change: &AcceptedChange) -> Option<HeldChange> {
    let id = change.bundle.id();
    let head = change.sealed().map(|sealed| sealed.record().head.to_string());
    let known = || HeldBack::load(workspace).of(id, head.as_deref()).cloned();
    match &change.standing {
        ChangeState::Sealed(_) => known(),
        ChangeState::Drifted { why } => {
            let detail = Some(why.clone());
            Some(HeldChange { detail, ..HeldChange::blank(id, HeldReason::Drift) })
        }
        ChangeState::Unsealed => Some(HeldChange::blank(id, HeldReason::Unsealed)),
        ChangeState::Reverted { by, .. } => {
            let detail = Some(by.to_hex_with_len(12).to_string());
            Some(HeldChange { detail, ..HeldChange::blank(id, HeldReason::Reverted) })
        }
        ChangeState::Staged { .. } | ChangeState::Landed { .. } => None,
    }
}

/// Adds the facts for the next attempt, and the changes of the partners.
fn say(workspace: &QueueWorkspace, change: &AcceptedChange, to: &mut Withdrawal) {
    for (branch, _) in &to.staged {
        to.facts.push(format!("it was gated green with others and waited in {branch}"));
    }
    let Some(held) = &to.held else { return };
    to.facts.push(held.sentence());
    for partner in &held.partners {
        let bundle = bundle_of(workspace, partner);
        let patch = bundle.read(Artifact::Patch).ok().flatten();
        let named = if patch.is_some() {
            format!("; its change is in `partner-{partner}.diff`")
        } else {
            String::new()
        };
        to.facts.push(format!("{partner}{}{named}", titled(&bundle)));
        to.partners.extend(patch.map(|patch| (partner.clone(), patch)));
    }
    to.facts.extend(held.evidence.iter().map(|said| format!("red: {said}")));
    let failing = failing(&held.red, usize::MAX);
    to.facts.extend(failing.map(|tests| format!("failing: {tests}")));
    let logs = held.logs.iter().map(|log| format!("log: {}", relative(workspace, log)));
    to.facts.extend(logs);
    let commands = held.red.iter().filter_map(|row| row.reproduce.as_ref());
    let portable = |command: &String| portable(workspace, command);
    to.facts.extend(commands.map(portable).map(|command| format!("reproduce: {command}")));
    to.facts.extend(held.conflicts.iter().map(|one| format!("conflict: {}", place(one))));
    if let Some(sealed) = change.sealed() {
        let commit = sealed.record().head.to_string();
        let case = conflict_record(workspace, change.bundle.id(), &commit);
        for failure in case.iter().flat_map(|case| &case.failures) {
            let (attempt, what) = (failure.attempt, &failure.what);
            let log = relative(workspace, &failure.log);
            to.facts.push(format!("resolver, attempt {attempt}: {what}; log: {log}"));
        }
    }
}

/// Returns a bundle, also a completed one.
fn bundle_of(workspace: &QueueWorkspace, id: &BundleId) -> Bundle {
    let bundle = workspace.dirs.bundles.bundle(id);
    if bundle.exists() { bundle } else { workspace.dirs.bundles.completed().bundle(id) }
}

/// Sends an accepted change back, and returns the number of its archive.
pub fn send_back(
    bundle: &Bundle,
    withdrawal: &Withdrawal,
    how: Return<'_>,
    effects: &dyn Effects,
) -> Result<u32, ReturnError> {
    let note = how.note.map(str::trim).filter(|note| !note.is_empty());
    if note.is_none() && withdrawal.held.is_none() {
        return Err(ReturnError::NoReason { id: bundle.id().clone() });
    }
    let record = Returned {
        by: how.by.to_owned(),
        date: how.date.to_owned(),
        automatic: how.automatic,
        note: note.map(str::to_owned),
        facts: withdrawal.facts.clone(),
        staged: withdrawal.staged.iter().map(|(_, commit)| commit.to_string()).collect(),
    };
    let plan = archive_returned(bundle, how.reentry, &record, &withdrawal.partners)?;
    for step in &plan.steps {
        effects.perform(step.name(), || step.apply())?;
    }
    Ok(plan.number)
}

/// Returns whether a bundle may be sent back once more without a person.
pub fn may_return_by_itself(bundle: &Bundle) -> Result<bool, LoadError> {
    let returns = bundle.attempts().returns()?;
    Ok(returns.iter().filter(|one| one.automatic).count() < MOST_AUTOMATIC_RETURNS)
}

/// Returns slug and goal of a bundle, to follow its id.
fn titled(bundle: &Bundle) -> String {
    let Ok(snapshot) = bundle.load() else { return String::new() };
    let Some(brief) = snapshot.brief.as_ref() else { return String::new() };
    let goal = brief.known(Label::Defect).map(|field| field.whole());
    let parts: Vec<String> = [brief.slug(), goal].into_iter().flatten().collect();
    if parts.is_empty() {
        return String::new();
    }
    let text: String = parts.join(", ").chars().take(GOAL).collect();
    format!(": {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdca_journal::Unwatched;
    use pdca_state::{Brief, GateReport, SignoffAction, SignoffDecision, SummaryInputs, assemble};
    use pdca_testkit::TestWorkspace;

    fn nothing_known() -> Withdrawal {
        Withdrawal { held: None, staged: Vec::new(), facts: Vec::new(), partners: Vec::new() }
    }

    fn sent(automatic: bool, note: Option<&str>) -> Return<'_> {
        Return { reentry: Reentry::Do, by: "ada", date: "2026-01-02", note, automatic }
    }

    /// A workspace with one bundle.
    struct Scene {
        _dir: TestWorkspace,
        workspace: QueueWorkspace,
    }

    impl Scene {
        fn bundle(&self) -> Bundle {
            self.workspace.dirs.bundles.bundle(&"7".parse().unwrap())
        }

        /// Publishes what a bundle has at its sign-off.
        fn check(&self) {
            let bundle = self.bundle();
            let gates = r#"{"overall": "pass", "rows": [{"check": "tests", "result": "pass"}]}"#;
            let gates = GateReport::parse(gates.as_bytes()).unwrap();
            let brief = bundle.read(Artifact::Brief).unwrap().unwrap();
            let brief = Brief::parse(&String::from_utf8(brief).unwrap());
            let summary = assemble(&SummaryInputs::new(bundle.id(), &brief, &gates));
            bundle.publish(Artifact::Patch, b"diff --git a/x b/x\n").unwrap();
            bundle.publish(Artifact::GatesJson, gates.to_json().as_bytes()).unwrap();
            bundle.publish(Artifact::Summary, summary.as_bytes()).unwrap();
            assert_eq!(bundle.load().unwrap().state, State::AwaitingSignoff);
        }
    }

    /// A bundle at its sign-off.
    fn checked() -> Scene {
        let dir = TestWorkspace::new();
        dir.brief("7", &[]);
        let scene = Scene { workspace: QueueWorkspace::at(dir.path()), _dir: dir };
        scene.check();
        scene
    }

    #[test]
    fn a_bundle_that_is_not_accepted_cannot_be_taken_back() {
        let scene = checked();
        let refused = withdrawal(&scene.workspace, &scene.bundle(), None);
        assert!(
            matches!(refused, Err(ReturnError::NotAccepted { state: State::AwaitingSignoff, .. })),
            "{refused:?}"
        );
    }

    #[test]
    fn without_a_note_only_a_change_that_an_integration_held_goes_back() {
        let scene = checked();
        let bundle = scene.bundle();
        for note in [None, Some("  ")] {
            let refused = send_back(&bundle, &nothing_known(), sent(false, note), &Unwatched);
            assert!(matches!(refused, Err(ReturnError::NoReason { .. })), "{refused:?}");
        }
        assert_eq!(bundle.load().unwrap().state, State::AwaitingSignoff, "nothing was changed");
        let held = Some(HeldChange::blank(bundle.id(), HeldReason::Red));
        let known = Withdrawal { held, ..nothing_known() };
        assert_eq!(send_back(&bundle, &known, sent(false, None), &Unwatched).unwrap(), 1);
    }

    #[test]
    fn only_returns_without_a_person_count_against_the_limit() {
        let scene = checked();
        let bundle = scene.bundle();
        for automatic in [true, false, false, true] {
            assert!(may_return_by_itself(&bundle).unwrap());
            send_back(&bundle, &nothing_known(), sent(automatic, Some("why")), &Unwatched).unwrap();
            scene.check();
        }
        assert!(!may_return_by_itself(&bundle).unwrap());
    }

    #[test]
    fn an_accepted_change_without_a_target_may_go_back_unless_its_pull_request_was_merged() {
        let scene = checked();
        let bundle = scene.bundle();
        let snapshot = bundle.load().unwrap();
        let mut summary =
            String::from_utf8(bundle.read(Artifact::Summary).unwrap().unwrap()).unwrap();
        summary = summary.replace("- [ ]", "- [x]");
        let decision = SignoffDecision {
            action: SignoffAction::Accept,
            by: "ada".into(),
            date: "2026-01-02".into(),
            note: None,
            overrides: Vec::new(),
        };
        let text = pdca_state::record(&summary, snapshot.gates.as_ref(), &decision).unwrap();
        bundle.publish(Artifact::Summary, text.as_bytes()).unwrap();
        let found = withdrawal(&scene.workspace, &bundle, None).unwrap();
        assert!(found.held.is_none() && found.staged.is_empty(), "{found:?}");
        let merged = withdrawal(&scene.workspace, &bundle, Some("https://forge/1".to_owned()));
        assert!(matches!(merged, Err(ReturnError::Merged { .. })), "{merged:?}");
    }
}
