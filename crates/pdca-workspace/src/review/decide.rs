//! Records a decision.
//!
//! 1. The bundle is taken, so that no driver changes it meanwhile.
//! 2. State, patch, items, gates and note are checked. Up to here nothing was changed; a dry run ends here.
//! 3. An acceptance is sealed. After a crash between this and the next step, accepting again finds the same seal.
//! 4. The summary with §9 is published, by one rename: from now on the decision counts.
//! 5. An attempt that is sent back is archived. If that is interrupted, the next driver finishes it.

use std::time::Duration;

use crate::snapshot::{SnapshotSource, WorkspaceSnapshot};
use camino::Utf8PathBuf;
use pdca_driver::integrate::{Hand, Sealing, SealingError};
use pdca_driver::{BundleLockError, Effects, LockGuard, WorkspaceConfig};
use pdca_integrate::ReturnError;
use pdca_state::{
    ArchiveError, Artifact, Bundle, BundleId, Coverage, LoadError, Reentry, SignoffAction,
    SignoffDecision, SignoffError, SignoffOutcome, Snapshot, State, Summary, SummaryItem,
    WriteError, archive_plan, given_up, record, sha256_hex,
};
use serde::Serialize;

use crate::review::checklist::{ChecklistError, tick};
use crate::review::decision::{Choice, Decision, Ticks};
use crate::review::take_back::{TakenBack, take_back};

/// The time that a driver gets to release a bundle that became ready for sign-off.
const PATIENCE: Duration = Duration::from_secs(5);

/// The person who decides, and the workspace to record it in.
#[derive(Clone, Copy)]
pub struct Signing<'a> {
    pub config: &'a WorkspaceConfig,
    pub effects: &'a dyn Effects,
    /// The name that §9 records. [`Choice::Clear`] needs none.
    pub by: &'a str,
    /// The date that §9 records, such as `2026-11-16`.
    pub date: &'a str,
    /// Checks everything and changes nothing.
    pub dry_run: bool,
    /// The person knows what else an acceptance that is taken back concerns.
    pub is_confirmed: bool,
}

/// The error of a decision. Nothing was recorded, unless a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// Another process holds the bundle, or the landings.
    #[error(transparent)]
    Admission(#[from] BundleLockError),
    /// The bundle is in a state in which this cannot be decided.
    #[error("{id} is {state}, so there is nothing to sign")]
    NotAwaiting { id: BundleId, dir: Utf8PathBuf, state: State },
    /// The patch is not the one that the gates saw.
    #[error("patch edited after Check: what was gated is not what is there")]
    PatchEdited {
        id: BundleId,
        file: Utf8PathBuf,
        /// The digest that the gate report names.
        gated: String,
        /// The present digest; `None` if there is no patch.
        now: Option<String>,
    },
    /// The brief is not the one that Check began with, and the decision gives no reason.
    #[error("brief edited after Check: what was checked is not what it asks for now")]
    BriefEdited {
        id: BundleId,
        file: Utf8PathBuf,
        /// The digest that the gate report names.
        checked: String,
        /// The present digest; `None` if there is no brief.
        now: Option<String>,
    },
    /// The summary was replaced by something that is not text.
    #[error("the summary is not UTF-8")]
    NotUtf8 { file: Utf8PathBuf },
    /// Items could not be ticked.
    #[error(transparent)]
    Checklist(#[from] ChecklistError),
    /// The rules of sign-off forbid it.
    #[error(transparent)]
    Signoff(#[from] SignoffError),
    /// An acceptance could not be sealed.
    #[error(transparent)]
    Sealing(#[from] SealingError),
    /// Others are based on the accepted change, or its pull request is out, and nobody confirmed that it is taken back.
    #[error("{}", concerns(id, based, pull_request.as_deref()))]
    Unconfirmed { id: BundleId, based: Vec<BundleId>, pull_request: Option<String> },
    /// An acceptance could not be taken back.
    #[error(transparent)]
    Return(#[from] ReturnError),
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Publishing failed, after the seal of an acceptance was made; deciding again finds that seal.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The acceptance is recorded and sealed, and the record of the attempt does not say so.
    #[error("it is accepted, but the record of its attempt cannot be written")]
    Attempt(#[source] std::io::Error),
    /// The decision is recorded, and the attempt is not archived yet; the next driver does that.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Returns what else is concerned if an acceptance is taken back.
fn concerns(id: &BundleId, based: &[BundleId], pull_request: Option<&str>) -> String {
    let names: Vec<&str> = based.iter().map(AsRef::as_ref).collect();
    let mut parts = Vec::new();
    match names.as_slice() {
        [] => {}
        [one] => parts.push(format!("{one} is based on it")),
        many => parts.push(format!("{} are based on it", many.join(", "))),
    }
    parts.extend(pull_request.map(|url| format!("its pull request is out: {url}")));
    format!("{id} is accepted, and {}", parts.join("; "))
}

/// What came of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DecisionOutcome {
    Decided(Box<Decided>),
    Cleared(Cleared),
}

impl DecisionOutcome {
    pub fn id(&self) -> &BundleId {
        match self {
            Self::Decided(decided) => &decided.id,
            Self::Cleared(cleared) => &cleared.id,
        }
    }

    /// Returns whether an acceptance was recorded.
    pub fn is_acceptance(&self) -> bool {
        match self {
            Self::Decided(decided) => decided.action == SignoffAction::Accept && !decided.dry_run,
            Self::Cleared(_) => false,
        }
    }
}

/// A decision, recorded or to be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decided {
    pub dry_run: bool,
    pub id: BundleId,
    pub action: SignoffAction,
    pub outcome: SignoffOutcome,
    pub by: String,
    pub date: String,
    /// The state of the bundle now.
    pub state: State,
    /// The directory of the attempt that was sent back, in the bundle.
    pub archived: Option<String>,
    /// The items of §6 that were ticked with it.
    pub cleared: Vec<String>,
    /// The command that records the same.
    pub command: String,
    /// Set if an acceptance was taken back.
    #[serde(flatten)]
    pub taken_back: Option<TakenBack>,
    /// What a person should know besides.
    pub remarks: Vec<DecisionRemark>,
}

/// A consequence of a decision that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DecisionRemark {
    /// It was accepted without a seal, because its report does not say `what`; it cannot be integrated.
    Unsealed { what: String },
    /// These bundles wait for a bundle that was discontinued.
    DependencyGivenUp { waiting: Vec<BundleId> },
    /// It was accepted although its brief was edited after Check; the note is the reason.
    BriefEdited { file: String },
    /// A staging branch still contains a change that was taken back.
    StillStaged { branch: String },
}

/// Items that were ticked, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cleared {
    pub dry_run: bool,
    pub id: BundleId,
    pub cleared: Vec<String>,
    /// The number of items still open.
    pub left: usize,
}

/// A bundle that is taken: no other process writes it while this lives.
#[derive(Debug)]
pub struct TakenBundle<'b> {
    bundle: &'b Bundle,
    _held: LockGuard,
}

/// Takes the bundle and records the decision. See the module for the order of steps.
pub fn decide(
    signing: &Signing<'_>,
    bundle: &Bundle,
    decision: &Decision,
) -> Result<DecisionOutcome, DecideError> {
    signing.take(bundle)?.decide(signing, decision)
}

/// What came of many decisions.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecidedBatch {
    pub dry_run: bool,
    /// The decisions that were recorded, or would be, in the order in which they were.
    pub done: Vec<DecisionOutcome>,
    /// The decisions that were not, in the given order.
    #[serde(skip)]
    pub failed: Vec<(BundleId, DecideError)>,
}

/// Returns the acceptances to record for these bundles. A bundle that was accepted before is left out, so that a call that
/// was killed between an acceptance and its publication can be repeated.
pub fn acceptances(
    bundles: &[Bundle],
    choice: &Choice,
    note: Option<&str>,
) -> Result<Vec<(Bundle, Decision)>, LoadError> {
    let mut open = Vec::new();
    for bundle in bundles {
        if bundle.glance()?.state != State::Complete {
            let (id, choice) = (bundle.id().clone(), choice.clone());
            open.push((bundle.clone(), Decision { id, choice, note: note.map(str::to_owned) }));
        }
    }
    Ok(open)
}

/// Records many decisions. All bundles are taken and all rules checked before the first one is recorded: if any is
/// refused, none is recorded. Afterwards only sealing and the disk can fail; the others are recorded all the same.
///
/// A result that stands on another one of the batch is accepted after it.
pub fn decide_all(signing: &Signing<'_>, decisions: &[(Bundle, Decision)]) -> DecidedBatch {
    let dry_run = signing.dry_run;
    let mut batch = DecidedBatch { dry_run, done: Vec::new(), failed: Vec::new() };
    let mut taken = Vec::new();
    let rehearsed = Signing { dry_run: true, ..*signing };
    for (bundle, decision) in decisions {
        // All are kept until the last is recorded, so a rule that was checked cannot be broken in between.
        let held = signing.take(bundle).map_err(DecideError::from);
        match held.and_then(|held| held.decide(&rehearsed, decision).map(|tried| (held, tried))) {
            Ok((held, tried)) => taken.push((held, decision, tried)),
            Err(error) => batch.failed.push((decision.id.clone(), error)),
        }
    }
    if !batch.failed.is_empty() {
        return batch;
    }
    if signing.dry_run {
        batch.done = taken.into_iter().map(|(_, _, tried)| tried).collect();
        return batch;
    }
    let mut left: Vec<(TakenBundle<'_>, &Decision)> =
        taken.into_iter().map(|(held, decision, _)| (held, decision)).collect();
    // Each round accepts what stands on nothing that is left, so it ends after as many rounds as there are bundles.
    while !left.is_empty() {
        let (before, mut later) = (left.len(), Vec::new());
        let ids: Vec<BundleId> = left.iter().map(|(_, decision)| decision.id.clone()).collect();
        for (held, decision) in std::mem::take(&mut left) {
            match held.decide(signing, decision) {
                Ok(done) => batch.done.push(done),
                // Another round helps only if all of them are still to be decided: one that is not of the batch, or
                // that failed in a round before, will not be accepted by this call.
                Err(DecideError::Sealing(SealingError::AcceptFirst { on }))
                    if on.iter().all(|id| ids.contains(id)) =>
                {
                    later.push((held, decision, SealingError::AcceptFirst { on }));
                }
                Err(error) => batch.failed.push((decision.id.clone(), error)),
            }
        }
        // Nothing was recorded, so every further round would be the same.
        if later.len() == before {
            let failed = later.into_iter();
            batch.failed.extend(failed.map(|(_, decision, why)| (decision.id.clone(), why.into())));
            break;
        }
        left = later.into_iter().map(|(held, decision, _)| (held, decision)).collect();
    }
    batch
}

impl Signing<'_> {
    /// Takes a bundle. One that waits for sign-off may still be held by the driver that made it so.
    pub fn take<'b>(&self, bundle: &'b Bundle) -> Result<TakenBundle<'b>, BundleLockError> {
        // In any other state a driver works on it for longer than a person waits.
        let is_due = bundle.glance().is_ok_and(|seen| seen.state == State::AwaitingSignoff);
        let patience = if is_due { PATIENCE } else { Duration::ZERO };
        let held = self.config.locks().take_within(bundle.id(), patience)?;
        Ok(TakenBundle { bundle, _held: held })
    }

    pub(crate) fn signoff(&self, action: SignoffAction, decision: &Decision) -> SignoffDecision {
        SignoffDecision {
            action,
            by: self.by.to_owned(),
            date: self.date.to_owned(),
            note: decision.note.clone(),
            overrides: decision.choice.overrides(),
        }
    }
}

impl TakenBundle<'_> {
    pub fn bundle(&self) -> &Bundle {
        self.bundle
    }

    /// Records the decision.
    pub fn decide(
        &self,
        signing: &Signing<'_>,
        decision: &Decision,
    ) -> Result<DecisionOutcome, DecideError> {
        // Loaded under the lock: what the caller saw before may be of an attempt that is gone.
        let snapshot = self.bundle.load()?;
        match decision.choice.action() {
            None => self.clear(signing, decision, &snapshot),
            Some(action) => self
                .sign(signing, decision, action, &snapshot)
                .map(Box::new)
                .map(DecisionOutcome::Decided),
        }
    }

    /// Takes the acceptance of a change back that has not landed, whatever the choice says about other states.
    pub fn take_back(
        &self,
        signing: &Signing<'_>,
        decision: &Decision,
    ) -> Result<Decided, DecideError> {
        let action = decision.choice.action().unwrap_or(SignoffAction::IterateDo);
        take_back(signing, self.bundle, decision, action)
    }

    /// Ticks items of §6.
    fn clear(
        &self,
        signing: &Signing<'_>,
        decision: &Decision,
        snapshot: &Snapshot,
    ) -> Result<DecisionOutcome, DecideError> {
        let bundle = self.bundle;
        require_awaiting(bundle, snapshot)?;
        let Choice::Clear(ticks) = &decision.choice else {
            return Err(ChecklistError::NothingNamed.into());
        };
        let summary = Summary::parse(&summary_text(bundle, snapshot)?);
        let (text, items) = tick(&summary, ticks, decision.note.as_deref())?;
        if !signing.dry_run {
            bundle.publish(Artifact::Summary, text.as_bytes())?;
        }
        Ok(DecisionOutcome::Cleared(Cleared {
            dry_run: signing.dry_run,
            id: bundle.id().clone(),
            left: summary.open_items().len() - items.len(),
            cleared: texts(items),
        }))
    }

    /// Records a decision in §9, and archives the attempt if it is sent back.
    fn sign(
        &self,
        signing: &Signing<'_>,
        decision: &Decision,
        action: SignoffAction,
        snapshot: &Snapshot,
    ) -> Result<Decided, DecideError> {
        let bundle = self.bundle;
        if snapshot.state == State::Complete && action != SignoffAction::Accept {
            // Already decided, but the decision may change until the change has landed.
            return take_back(signing, bundle, decision, action);
        }
        if action == SignoffAction::Discontinue {
            require_unfinished(bundle, snapshot)?;
        } else {
            require_awaiting(bundle, snapshot)?;
        }
        let mut is_brief_edited = false;
        // Before the summary is published: a change that cannot be sealed must not count as accepted. The seal
        // takes the signer from the summary as it will be.
        if action == SignoffAction::Accept {
            require_same_patch(bundle, snapshot)?;
            is_brief_edited = require_same_brief(bundle, snapshot, decision.note.as_deref())?;
        }
        let (text, cleared) = ticked(&summary_text(bundle, snapshot)?, decision)?;
        let signed = record(&text, snapshot.gates.as_ref(), &signing.signoff(action, decision))?;
        let mut remarks = Vec::new();
        if is_brief_edited {
            remarks.push(DecisionRemark::BriefEdited { file: bundle.path(Artifact::Brief).into() });
        }
        let decided = Decided { cleared, ..Decided::of(signing, decision, action, snapshot.state) };
        if signing.dry_run {
            return Ok(Decided { remarks, ..decided });
        }
        let effects = signing.effects;
        if action == SignoffAction::Accept {
            remarks.extend(seal(signing, bundle, snapshot, &signed)?);
        }
        // Archived first, or the decision would go into the archive with the attempt.
        if let State::Iterate(reentry) = snapshot.state {
            archive(bundle, reentry, effects)?;
        }
        if snapshot.state != State::AwaitingSignoff {
            // An existing summary is about something else, and is kept.
            effects.perform("set-aside", || bundle.set_aside(Artifact::Summary))?;
        }
        effects.perform("sign-off", || bundle.publish(Artifact::Summary, signed.as_bytes()))?;
        if action == SignoffAction::Accept {
            pdca_driver::integrate::accepted(signing.config, bundle.id(), effects)
                .map_err(DecideError::Attempt)?;
        }
        let archived = match action {
            SignoffAction::Accept | SignoffAction::Discontinue => None,
            SignoffAction::IterateDo => Some(archive(bundle, Reentry::Do, effects)?),
            SignoffAction::IteratePlan => Some(archive(bundle, Reentry::Plan, effects)?),
        };
        if action == SignoffAction::Discontinue {
            remarks.extend(given_up_dependency(signing.config, bundle.id()));
        }
        Ok(Decided { archived, remarks, state: bundle.load()?.state, ..decided })
    }
}

impl Decided {
    pub(crate) fn of(
        signing: &Signing<'_>,
        decision: &Decision,
        action: SignoffAction,
        state: State,
    ) -> Self {
        Self {
            dry_run: signing.dry_run,
            id: decision.id.clone(),
            action,
            outcome: action.outcome(),
            by: signing.by.to_owned(),
            date: signing.date.to_owned(),
            state,
            archived: None,
            cleared: Vec::new(),
            command: decision.command_line(),
            taken_back: None,
            remarks: Vec::new(),
        }
    }
}

/// Seals the reviewed commit. The decision is recorded only after that.
fn seal(
    signing: &Signing<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    signed: &str,
) -> Result<Option<DecisionRemark>, SealingError> {
    let hand = Hand { summary: signed };
    let sealed =
        pdca_driver::integrate::seal(signing.config, bundle, snapshot, hand, signing.effects)?;
    Ok(match sealed {
        Sealing::Unknown { what } => Some(DecisionRemark::Unsealed { what: what.to_owned() }),
        Sealing::NotNeeded | Sealing::Sealed { .. } => None,
    })
}

/// Returns the summary with the items ticked that the decision names, and these items.
fn ticked(text: &str, decision: &Decision) -> Result<(String, Vec<String>), ChecklistError> {
    let unchanged = || Ok((text.to_owned(), Vec::new()));
    let Choice::Accept { clear, .. } = &decision.choice else { return unchanged() };
    if *clear == Ticks::Nothing {
        return unchanged();
    }
    match tick(&Summary::parse(text), clear, decision.note.as_deref()) {
        Ok((text, items)) => Ok((text, texts(items))),
        // There is nothing to tick, so all of it is ticked.
        Err(ChecklistError::NothingOpen) if *clear == Ticks::All => unchanged(),
        Err(error) => Err(error),
    }
}

fn texts(items: Vec<SummaryItem>) -> Vec<String> {
    items.into_iter().map(|item| item.text).collect()
}

fn require_awaiting(bundle: &Bundle, snapshot: &Snapshot) -> Result<(), DecideError> {
    if snapshot.state == State::AwaitingSignoff {
        return Ok(());
    }
    let (id, dir) = (bundle.id().clone(), bundle.dir().to_owned());
    Err(DecideError::NotAwaiting { id, dir, state: snapshot.state })
}

/// Returns an error for a bundle with a final decision; any other can be discontinued.
fn require_unfinished(bundle: &Bundle, snapshot: &Snapshot) -> Result<(), DecideError> {
    match snapshot.state {
        State::Unplanned
        | State::Planned
        | State::Built
        | State::Checked
        | State::AwaitingSignoff
        | State::Iterate(_) => Ok(()),
        State::Resolved | State::Complete | State::Discontinued => {
            require_awaiting(bundle, snapshot)
        }
    }
}

/// Returns an error if the patch was edited after Check.
fn require_same_patch(bundle: &Bundle, snapshot: &Snapshot) -> Result<(), DecideError> {
    if snapshot.coverage()? != Coverage::Changed {
        return Ok(());
    }
    let gated = snapshot.gates.as_ref().and_then(|gates| gates.patch_digest.as_deref());
    Err(DecideError::PatchEdited {
        id: bundle.id().clone(),
        file: bundle.path(Artifact::Patch),
        gated: gated.unwrap_or_default().trim_start_matches("sha256:").to_owned(),
        now: bundle.read(Artifact::Patch)?.map(|patch| sha256_hex(&patch)),
    })
}

/// Returns whether the brief was edited after Check, or an error if no note says why that does not matter.
fn require_same_brief(
    bundle: &Bundle,
    snapshot: &Snapshot,
    note: Option<&str>,
) -> Result<bool, DecideError> {
    if !snapshot.is_brief_edited()? {
        return Ok(false);
    }
    if note.is_some_and(|note| !note.trim().is_empty()) {
        return Ok(true);
    }
    let checked = snapshot.gates.as_ref().and_then(|gates| gates.brief_digest.as_deref());
    Err(DecideError::BriefEdited {
        id: bundle.id().clone(),
        file: bundle.path(Artifact::Brief),
        checked: checked.unwrap_or_default().trim_start_matches("sha256:").to_owned(),
        now: bundle.read(Artifact::Brief)?.map(|brief| sha256_hex(&brief)),
    })
}

/// Returns the summary to sign; a bundle that is discontinued before it has one gets one that claims nothing.
pub(crate) fn summary_text(bundle: &Bundle, snapshot: &Snapshot) -> Result<String, DecideError> {
    let is_of_attempt = matches!(snapshot.state, State::AwaitingSignoff | State::Complete);
    let bytes = bundle.read(Artifact::Summary)?.filter(|_| is_of_attempt);
    let Some(bytes) = bytes else {
        return Ok(given_up(bundle.id(), snapshot.authored_brief(), snapshot.state));
    };
    // `load` has read it as text, so it must have been edited in between.
    String::from_utf8(bytes)
        .map_err(|_| DecideError::NotUtf8 { file: bundle.path(Artifact::Summary) })
}

fn archive(
    bundle: &Bundle,
    reentry: Reentry,
    effects: &dyn Effects,
) -> Result<String, ArchiveError> {
    let plan = archive_plan(bundle, reentry)?;
    for step in &plan.steps {
        effects.perform(step.name(), || step.apply())?;
    }
    Ok(format!("iteration-v{}", plan.number))
}

/// Returns the bundles whose dependency can no longer be met.
fn given_up_dependency(config: &WorkspaceConfig, id: &BundleId) -> Option<DecisionRemark> {
    let awaits = config.schedule.dependants.into();
    let source = SnapshotSource { bundles: &config.dirs.bundles, awaits, config: Some(config) };
    // The decision is on record by now. A remark that cannot be made must not turn it into an error.
    let overview = WorkspaceSnapshot::load(source).ok()?;
    let needs =
        |entry: &&crate::snapshot::SnapshotEntry| entry.blocked_by.iter().any(|by| by.id == *id);
    let waiting: Vec<BundleId> =
        overview.entries.iter().filter(needs).map(|entry| entry.id.clone()).collect();
    (!waiting.is_empty()).then_some(DecisionRemark::DependencyGivenUp { waiting })
}
