//! Has a resolver work on a change that conflicts with its branch, and sends the resolution through Check.
//!
//! # Protocol
//! 1. *Look*: merge the sealed change with the present branch and what is staged on top of it, in the object store. Only
//!    a conflict with these can be resolved; a conflict with another pending change waits for that one.
//! 2. *Attempt*, holding only the locks of bundle and checkout: counted in the record before the resolver
//!    starts, and closed after it. One attempt per call; a call never sleeps until the next
//!    attempt is due.
//! 3. *Resolved*: change and notes are written beside the record and synced, before the record says so. Until
//!    then the bundle is untouched.
//! 4. *Adopt*, admitted to the workspace: the accepted attempt is archived, and Do takes the
//!    resolution in place of calling the builder ([`super::apply_resolution`]). From there it is an attempt like any other.
//!
//! A driver that dies in 2 leaves the record open, and the next one continues under the same number. In 3 and 4 everything is
//! written before it is relied on, and repeating it gives the same result.

use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_integrate::{
    BootMoment, ConflictDir, ConflictError, ConflictOutcome, ConflictReport, ConflictState, Due,
    EngineError, IntegrateError, ResolveRequest, ResolverOutcome, StoreError, TargetBranch,
    conclude_attempt, find_base, find_sealed, is_as_it_was, keep_conflict, report, report_of,
};
use pdca_journal::events::WarningCode;
use pdca_leaves::LeafMode;
use pdca_process::wait_until_free;
use pdca_state::{Bundle, BundleId, LoadError, RootError};

use crate::admission::BundleLockError;
use crate::config::WorkspaceConfig;
use crate::guard::relieve_guard;
use crate::integrate::conflict::resolver::attempt_resolution;
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::EventKind;

use super::resolver::Ask;

/// The time that children of an earlier resolver get to die. Their supervisor kills them sooner.
const PATIENCE: Duration = Duration::from_secs(20);

/// The reason an attempt ended early. Counted attempts stay counted.
#[derive(Debug, thiserror::Error)]
pub enum ConflictResolveError {
    /// Cancellation was requested.
    #[error("interrupted")]
    Interrupted,
    #[error("{id} is not accepted for this branch")]
    Unknown { id: BundleId },
    /// The tip of the branch is unknown.
    #[error(transparent)]
    LandingBase(Box<IntegrateError>),
    /// git could not merge.
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Admission(#[from] BundleLockError),
    /// The resolver could not be run, which does not count as an attempt.
    #[error(transparent)]
    Beat(Box<BeatError>),
    #[error("the record of the conflict in {dir} cannot be used")]
    ConflictRecord { dir: Utf8PathBuf, source: io::Error },
}

impl From<IntegrateError> for ConflictResolveError {
    fn from(error: IntegrateError) -> Self {
        if matches!(error, IntegrateError::Interrupted) {
            return Self::Interrupted;
        }
        Self::LandingBase(Box::new(error))
    }
}

impl From<ConflictError> for ConflictResolveError {
    fn from(error: ConflictError) -> Self {
        match error {
            ConflictError::Unknown { id } => Self::Unknown { id },
            ConflictError::LandingBase(error) => (*error).into(),
            ConflictError::Engine(error) => Self::Engine(error),
            ConflictError::Store(error) => Self::Store(error),
            ConflictError::Root(error) => Self::Root(error),
            ConflictError::Load(error) => Self::Load(error),
            ConflictError::Record { dir, source } => Self::ConflictRecord { dir, source },
        }
    }
}

impl From<BeatError> for ConflictResolveError {
    fn from(error: BeatError) -> Self {
        if matches!(error, BeatError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Beat(Box::new(error))
    }
}

/// Returns whether a resolver is configured.
pub fn has_resolver(config: &WorkspaceConfig) -> bool {
    !config.force_stubs && config.leaves.resolver.mode == LeafMode::Command
}

/// Has the resolver make one attempt at the conflict of an accepted change with its branch, if one is
/// due. The caller holds no lock.
pub fn resolve(
    cx: &Driver<'_>,
    front: &TargetBranch,
    id: &BundleId,
    task: ResolveRequest<'_>,
) -> Result<ConflictReport, ConflictResolveError> {
    let (change, sealed) = match find_sealed(front, id)? {
        Ok(found) => found,
        Err(report) => return Ok(report),
    };
    // A remote may be slow, so it is asked before anything is locked.
    let warn = |text| cx.warn(&change.bundle, WarningCode::RemoteRetried, text);
    let tip = find_base(front, task.settings, cx.cancel, &warn)?;
    let _taken = match cx.config.locks().take(id) {
        Err(BundleLockError::Taken { holder, .. }) => {
            return Ok(report(id, ConflictOutcome::Busy { holder }));
        }
        taken => taken?,
    };
    let queue = cx.config.queue();
    let file = ConflictDir::of(&queue, id, &sealed.record().head.to_string());
    // An earlier driver may have died while the resolver ran: compare before anything is derived
    // from the bundle.
    let planted = planted_by_the_dead(cx, &change.bundle, &file)?;
    for one in &planted {
        cx.warn(
            &change.bundle,
            WarningCode::BundleWritten,
            format!("written into the bundle by a resolver: {one}"),
        );
    }
    if !is_as_it_was(change, sealed)? {
        let why = "the bundle was continued meanwhile".to_owned();
        return Ok(report(id, ConflictOutcome::Waits { why }));
    }
    let state = ConflictState::look(&queue, front, (change, sealed), tip, task)?;
    let ConflictState { dir: _, mut record, sides: Some(sides), known: None } = state else {
        return Ok(state.report(id, state.known.clone().unwrap_or(ConflictOutcome::Due)));
    };
    let stamp = || BootMoment::take(task.clock).map_err(|source| unusable(&file, source));
    let pause = task.settings.resolve_pause();
    if record.due(pause, &stamp()?) == Due::Never {
        record.exhaust();
        keep_conflict(cx.effects, &file, &record, "conflict-block")?;
        return Ok(report_of(id, &record));
    }
    // Counted before it starts, and a driver that finds it open goes on under the same number, so a
    // crash neither loses nor adds an attempt (decision 016).
    record.begin(&tip.to_string());
    keep_conflict(cx.effects, &file, &record, "conflict-attempt")?;
    let text = format!("{}: the resolver is asked, {}", record.said, record.progress());
    cx.tell(&change.bundle, EventKind::integration(text));
    let ask =
        Ask { front, bundle: &change.bundle, sides: &sides, file: &file, attempt: record.attempts };
    // The resolver of a driver that died wrote into the bundle, which fails the attempt as if that
    // driver had found it.
    let outcome = if planted.is_empty() {
        attempt_resolution(cx, &ask)?
    } else {
        let what = "the resolver wrote into the bundle".to_owned();
        ResolverOutcome::Failed { what, log: format!("- {}\n", planted.join("\n- ")) }
    };
    let by = resolver_name(cx);
    conclude_attempt(cx.effects, &file, &mut record, outcome, &by, &stamp()?)?;
    let mut report = report_of(id, &record);
    if let ConflictOutcome::Failed { due, .. } = &mut report.came {
        *due = record.due(pause, &stamp()?);
    }
    Ok(report)
}

/// Sets aside what the resolver of a driver that died wrote into the bundle, and returns the names.
fn planted_by_the_dead(
    cx: &Driver<'_>,
    bundle: &Bundle,
    file: &ConflictDir,
) -> Result<Vec<String>, ConflictResolveError> {
    // Its children outlive the driver for a moment, and what they write after the comparison would count.
    wait_until_free(&file.hold(), PATIENCE).map_err(BundleLockError::from)?;
    Ok(relieve_guard(cx, bundle)?)
}

/// Returns the name of the resolver, for people.
fn resolver_name(cx: &Driver<'_>) -> String {
    let config = &cx.config.leaves.resolver;
    let known = [&config.agent, &config.family, &config.model];
    let known: Vec<&str> = known.into_iter().flatten().map(String::as_str).collect();
    if known.is_empty() {
        return "the resolver".to_owned();
    }
    format!("the resolver ({})", known.join(", "))
}

pub(super) fn unusable(file: &ConflictDir, source: io::Error) -> ConflictResolveError {
    ConflictResolveError::ConflictRecord { dir: file.dir().to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use pdca_state::Artifact;

    use crate::guard::stand_guard;
    use crate::testing::Scene;

    #[test]
    fn what_a_child_of_a_dead_resolver_writes_at_its_end_is_found() {
        let scene = Scene::planned();
        let (driver, bundle) = (scene.driver(), scene.bundle());
        let file = ConflictDir::of(&scene.config.queue(), bundle.id(), "head");
        fs_err::create_dir_all(file.dir()).unwrap();
        stand_guard(&driver, &bundle).unwrap();
        let begun = Barrier::new(2);
        let planted = std::thread::scope(|scope| {
            scope.spawn(|| {
                let hold = pdca_process::hold_as_child(&file.hold()).unwrap();
                begun.wait();
                fs_err::write(bundle.path(Artifact::Review), "all is well\n").unwrap();
                drop(hold);
            });
            begun.wait();
            planted_by_the_dead(&driver, &bundle, &file).unwrap()
        });
        assert_eq!(planted.len(), 1, "{planted:?}");
    }
}
