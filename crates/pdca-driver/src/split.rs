//! Splits a bundle into several.
//!
//! 1. *Decide*: the new bundles follow from the brief and the request alone, and everything that stands in the way is
//!    an error before anything is changed.
//! 2. *Create* the new bundles. Each says which one it was split from, so after a crash it is recognized and kept.
//! 3. *Re-point* bundles that name the old one and have not been started. A bundle that was started keeps its brief, and is
//!    reported.
//! 4. *Note* in the old brief what it became.
//! 5. *Discontinue* the old bundle. This comes last: until then the same command goes on where a crash stopped it.

use pdca_journal::Effects;
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, CreateError, IdError, LoadError, Part, PartsError,
    RootError, SPLIT_FROM, SPLIT_INTO, SignoffAction, SignoffDecision, SignoffError, Snapshot,
    SplitOff, Splitting, State, WriteError, given_up, note_split, parts, record, repoint,
};
use serde::Serialize;

use crate::admission::BundleLockError;
use crate::config::WorkspaceConfig;

/// The way a bundle is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitInto {
    /// One bundle for each part of the brief.
    Parts,
    /// One bundle for each part that can be started, and one that keeps the others.
    Ready,
    /// One draft for each name.
    Names(Vec<String>),
}

/// The new bundles, and the effect on others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Split {
    pub into: Vec<SplitBundle>,
    /// The bundles whose briefs name the new ones now.
    pub repointed: Vec<BundleId>,
    /// The bundles that still name the old one.
    pub unchanged: Vec<UnchangedReference>,
}

/// A bundle that still names the old one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnchangedReference {
    pub id: BundleId,
    pub why: String,
}

/// A bundle that was split off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SplitBundle {
    pub id: BundleId,
    /// The ids of the parts in it.
    pub parts: Vec<String>,
    /// A person has to fill something in before it can be built.
    #[serde(rename = "draft")]
    pub is_draft: bool,
    /// An earlier call made it.
    pub was_there: bool,
}

/// The reasons why a bundle is not split.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    #[error("{id} is {state}, and only an unfinished bundle is split")]
    State { id: BundleId, state: State },
    #[error("{id} has no brief")]
    NoBrief { id: BundleId },
    #[error("the brief of {id} has no parts")]
    NoParts { id: BundleId },
    #[error("{id} would become one bundle")]
    One { id: BundleId },
    /// Every part waits for something.
    #[error("no part of {id} is ready")]
    NothingReady {
        id: BundleId,
        /// The parts, each with what it waits for.
        waits: Vec<String>,
    },
    #[error(transparent)]
    Parts(#[from] PartsError),
    #[error("`{part}` makes no id of a bundle")]
    Id { part: String, source: IdError },
    /// A bundle of that id exists and is not a part of this one.
    #[error("{id} is there already, and was not split from {from}")]
    Exists { id: BundleId, from: BundleId },
    #[error(transparent)]
    Signoff(#[from] SignoffError),
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Admission(#[from] BundleLockError),
}

/// The person who splits a bundle, and the date.
#[derive(Debug, Clone, Copy)]
pub struct SplitBy<'a> {
    pub by: &'a str,
    pub date: &'a str,
}

/// Returns what [`split_bundle`] would do. Changes nothing.
pub fn would_split(
    config: &WorkspaceConfig,
    bundle: &Bundle,
    into: &SplitInto,
) -> Result<Split, SplitError> {
    let plan = Plan::of(config, bundle, into)?;
    let mut split =
        Split { into: plan.new_bundles(), repointed: Vec::new(), unchanged: Vec::new() };
    for (other, change) in plan.references(config, bundle)? {
        match change {
            Ok(_) => split.repointed.push(other.id().clone()),
            Err(why) => {
                split.unchanged.push(UnchangedReference { id: other.id().clone(), why });
            }
        }
    }
    Ok(split)
}

/// Splits a bundle, which the caller holds.
pub fn split_bundle(
    config: &WorkspaceConfig,
    bundle: &Bundle,
    into: &SplitInto,
    signer: SplitBy<'_>,
    effects: &dyn Effects,
) -> Result<Split, SplitError> {
    let plan = Plan::of(config, bundle, into)?;
    // Made before the first effect, because a sign-off that the rules refuse must leave nothing
    // behind.
    let summary = plan.signed(bundle, signer)?;
    for (one, was_there) in &plan.all {
        if !was_there {
            let create = || config.dirs.bundles.create(&one.id, &one.brief);
            effects.perform("split-off", create)?;
        }
    }
    let mut split =
        Split { into: plan.new_bundles(), repointed: Vec::new(), unchanged: Vec::new() };
    for (other, change) in plan.references(config, bundle)? {
        let id = other.id().clone();
        match change {
            Err(why) => split.unchanged.push(UnchangedReference { id, why }),
            Ok(_) => match config.locks().take(&id) {
                Err(error) => {
                    let why = pdca_state::chain(&error);
                    split.unchanged.push(UnchangedReference { id, why });
                }
                // Made again under the lock: the brief may have been edited, or the bundle started, since it was listed.
                Ok(_taken) => match plan.reference(bundle, &other) {
                    None => {}
                    Some(Err(why)) => split.unchanged.push(UnchangedReference { id, why }),
                    Some(Ok(text)) => {
                        let publish = || other.publish(Artifact::Brief, text.as_bytes());
                        effects.perform(Artifact::Brief.file_name(), publish)?;
                        split.repointed.push(id);
                    }
                },
            },
        }
    }
    let ids: Vec<BundleId> = plan.all.iter().map(|(one, _)| one.id.clone()).collect();
    let noted = note_split(&plan.text, &ids);
    if noted != plan.text {
        let publish = || bundle.publish(Artifact::Brief, noted.as_bytes());
        effects.perform(Artifact::Brief.file_name(), publish)?;
    }
    // A summary that is there is of an earlier state and must not be taken for the sign-off.
    if plan.snapshot.state != State::AwaitingSignoff {
        effects.perform("set-aside", || bundle.set_aside(Artifact::Summary))?;
    }
    effects.perform("sign-off", || bundle.publish(Artifact::Summary, summary.as_bytes()))?;
    Ok(split)
}

/// A bundle that names the old one, with its new brief or the reason why its brief stays.
type Reference = (Bundle, Result<String, String>);

/// Everything that is known before anything is changed.
struct Plan {
    snapshot: Snapshot,
    /// The brief as written.
    text: String,
    /// The new bundles, and whether an earlier call made them.
    all: Vec<(SplitOff, bool)>,
}

impl Plan {
    fn of(config: &WorkspaceConfig, bundle: &Bundle, into: &SplitInto) -> Result<Self, SplitError> {
        let (id, snapshot) = (bundle.id(), bundle.load()?);
        match snapshot.state {
            State::Unplanned
            | State::Planned
            | State::Built
            | State::Checked
            | State::AwaitingSignoff => {}
            state @ (State::Iterate(_)
            | State::Complete
            | State::Discontinued
            | State::Resolved) => return Err(SplitError::State { id: id.clone(), state }),
        }
        let bytes = bundle.read(Artifact::Brief)?;
        let bytes = bytes.ok_or_else(|| SplitError::NoBrief { id: id.clone() })?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let brief = Brief::parse(&text);
        let root = &config.dirs.bundles;
        let exists = |other: &BundleId| {
            root.bundle(other).dir().exists() || root.completed().bundle(other).dir().exists()
        };
        let all = new_bundles(id, &text, &brief, into, &exists)?;
        let mut known = Vec::new();
        for one in all {
            let was_there = is_made(config, &one.id, id)?;
            known.push((one, was_there));
        }
        Ok(Self { snapshot, text, all: known })
    }

    fn new_bundles(&self) -> Vec<SplitBundle> {
        let new = |(one, was_there): &(SplitOff, bool)| SplitBundle {
            id: one.id.clone(),
            parts: one.parts.clone(),
            is_draft: one.is_draft,
            was_there: *was_there,
        };
        self.all.iter().map(new).collect()
    }

    /// Returns the summary that discontinues the old bundle.
    fn signed(&self, bundle: &Bundle, signer: SplitBy<'_>) -> Result<String, SplitError> {
        let ids: Vec<String> = self.all.iter().map(|(one, _)| one.id.to_string()).collect();
        let decision = SignoffDecision {
            action: SignoffAction::Discontinue,
            by: signer.by.to_owned(),
            date: signer.date.to_owned(),
            note: Some(format!("split into {}", ids.join(", "))),
            overrides: Vec::new(),
        };
        let text = match (&self.snapshot.summary, self.snapshot.state) {
            (Some(summary), State::AwaitingSignoff) => summary.text().to_owned(),
            (_, state) => given_up(bundle.id(), self.snapshot.authored_brief(), state),
        };
        Ok(record(&text, self.snapshot.gates.as_ref(), &decision)?)
    }

    /// Returns the bundles that name the old one, with their new brief or the reason why it stays.
    fn references(
        &self,
        config: &WorkspaceConfig,
        old: &Bundle,
    ) -> Result<Vec<Reference>, SplitError> {
        let mut found = Vec::new();
        for other in config.dirs.bundles.list()? {
            if let Some(change) = self.reference(old, &other) {
                found.push((other, change));
            }
        }
        Ok(found)
    }

    /// Returns the new brief of a bundle that names the old one, or the reason why it stays; `None` if it does not name
    /// it, or is finished.
    fn reference(&self, old: &Bundle, other: &Bundle) -> Option<Result<String, String>> {
        let ids: Vec<BundleId> = self.all.iter().map(|(one, _)| one.id.clone()).collect();
        if other.id() == old.id() || ids.contains(other.id()) {
            return None;
        }
        // A bundle that cannot be read is reported wherever it is used.
        let state = other.glance().ok()?.state;
        let text = String::from_utf8(other.read(Artifact::Brief).ok()??).ok()?;
        match repoint(&text, old.id(), &ids) {
            Ok(None) => None,
            Ok(Some(_)) if !state.is_open() => None,
            Ok(Some(_)) if !matches!(state, State::Unplanned | State::Planned) => {
                Some(Err(format!("it is {state}, so its brief stays")))
            }
            Ok(Some(text)) => Some(Ok(text)),
            Err(line) => Some(Err(format!("line {line} of its brief cannot be edited safely"))),
        }
    }
}

fn new_bundles(
    id: &BundleId,
    text: &str,
    brief: &Brief,
    into: &SplitInto,
    exists: &dyn Fn(&BundleId) -> bool,
) -> Result<Vec<SplitOff>, SplitError> {
    let of_brief = || -> Result<Vec<Part>, SplitError> {
        let mut parts = parts(brief)?;
        for part in &mut parts {
            part.keep_blockers(exists);
        }
        if parts.is_empty() { Err(SplitError::NoParts { id: id.clone() }) } else { Ok(parts) }
    };
    let splitting = Splitting::of(id, text, brief);
    let bad = |source| SplitError::Id { part: id.to_string(), source };
    let all = match into {
        SplitInto::Parts => splitting.into_parts(&of_brief()?).map_err(bad)?,
        SplitInto::Names(names) => splitting.into_names(names).map_err(bad)?,
        SplitInto::Ready => {
            let parts = of_brief()?;
            let waits = |part: &Part| {
                part.waits_for.as_ref().map(|why| format!("{} waits for {why}", part.id))
            };
            let all = splitting.into_ready(&parts).map_err(bad)?;
            // Alone, the bundle that keeps the rest would be the old one under another name.
            if all.len() == 1 && parts.iter().any(|part| part.waits_for.is_some()) {
                let waits = parts.iter().filter_map(waits).collect();
                return Err(SplitError::NothingReady { id: id.clone(), waits });
            }
            all
        }
    };
    if all.len() < 2 { Err(SplitError::One { id: id.clone() }) } else { Ok(all) }
}

/// Returns whether a bundle was split from another one before; `Exists` if it is something else.
fn is_made(config: &WorkspaceConfig, id: &BundleId, from: &BundleId) -> Result<bool, SplitError> {
    let root = &config.dirs.bundles;
    for bundle in [root.bundle(id), root.completed().bundle(id)] {
        if bundle.dir().symlink_metadata().is_err() {
            continue;
        }
        let brief = bundle.read(Artifact::Brief)?.unwrap_or_default();
        let brief = Brief::parse(&String::from_utf8_lossy(&brief));
        if !brief.ids_of(SPLIT_FROM).ids().contains(from) {
            return Err(SplitError::Exists { id: id.clone(), from: from.clone() });
        }
        return Ok(true);
    }
    Ok(false)
}

/// Returns the bundles that a brief says it was split into.
pub fn split_into(brief: &Brief) -> Vec<BundleId> {
    brief.ids_of(SPLIT_INTO).ids()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use pdca_journal::{EffectSide, Point};

    use super::*;
    use crate::testing::Scene;

    /// A person who adds a line to a brief once, after another brief was changed.
    struct Editor {
        bundle: Bundle,
        is_done: AtomicBool,
    }

    impl Effects for Editor {
        fn reached(&self, point: Point) {
            let changed =
                Point { name: Artifact::Brief.file_name(), when: EffectSide::After } == point;
            if changed && !self.is_done.swap(true, Ordering::SeqCst) {
                let path = self.bundle.path(Artifact::Brief);
                let text = fs_err::read_to_string(&path).unwrap();
                fs_err::write(path, format!("{text}- **Notes:** edited\n")).unwrap();
            }
        }
    }

    #[test]
    fn a_brief_that_is_edited_while_another_one_is_repointed_keeps_the_edit() {
        let scene = Scene::planned();
        for id in ["8", "9"] {
            scene.workspace.brief(id, &[("Depends on", "7")]);
        }
        let last = scene.config.dirs.bundles.bundle(&"9".parse().unwrap());
        let into = SplitInto::Names(vec!["a".to_owned(), "b".to_owned()]);
        let signer = SplitBy { by: "Ada", date: "2026-01-02" };
        let editor = Editor { bundle: last.clone(), is_done: AtomicBool::new(false) };
        let split = split_bundle(&scene.config, &scene.bundle(), &into, signer, &editor).unwrap();
        assert_eq!(split.repointed.len(), 2, "{split:?}");
        let text = last.read(Artifact::Brief).unwrap().unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("edited"), "{text}");
        assert!(!Brief::parse(&text).depends_on().ids().contains(scene.bundle().id()), "{text}");
    }
}
