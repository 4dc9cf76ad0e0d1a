//! What conflicts with its branch is given to a resolver, and what comes of it goes through Check.
//!
//! # Protocol
//! 1. *Look*: the sealed change is merged with the branch as it is, in the object store. Only what
//!    conflicts with the branch itself can be resolved; what conflicts with a change that waits somewhere
//!    else waits too.
//! 2. *Attempt*, with no lock but the bundle's and the checkout's: counted in the case before the resolver
//!    starts, and closed after it. One attempt for each time somebody asks; nobody sleeps until the next
//!    is due.
//! 3. *Resolved*: the change and the notes lie beside the case, synced, before the case says so. Until
//!    then the bundle is untouched.
//! 4. *Adopt*, admitted to the workspace: the accepted attempt is archived, and Do takes what the resolver
//!    left in place of calling the builder ([`super::apply_resolution`]). From there it is an attempt as any other.
//!
//! Whoever dies in 2 finds the case open and goes on under the same number; in 3 and 4 everything is
//! written before it is relied on, and done again with the same result.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_integrate::{EngineError, StoreError};
use pdca_process::wait_until_free;
use pdca_state::{Artifact, BundleId, LoadError, RootError};

use crate::admission::AdmissionError;
use crate::event::What;
use crate::guard::relieve_guard;
use crate::run::Clock;
use crate::run_bundle::{BeatError, Driver};

use super::attempts::{ConflictDir, ConflictEnd, ConflictRecord, Due, Stamp};
use super::resolver::{Ask, Attempted};
use super::state::{ConflictState, find, is_as_it_was, told};
use crate::integrate::IntegrateError;
use crate::integrate::landing_base::LandingBase;
use crate::integrate::settings::Settings;
use crate::integrate::target_branch::TargetBranch;

/// How long what an earlier resolver left behind may take to die. Its supervisor gives it less.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is asked of whoever resolves.
#[derive(Debug, Clone, Copy)]
pub struct ResolveRequest<'a> {
    /// What `[integrate]` says.
    pub settings: &'a Settings,
    /// The bundles that are not finished.
    pub open: &'a BTreeSet<BundleId>,
    /// The clock.
    pub clock: Clock,
}

/// What came of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictReport {
    /// The bundle.
    pub id: BundleId,
    /// What conflicts with what, where it does.
    pub said: Option<String>,
    /// How often the resolver was asked by now.
    pub attempts: u32,
    /// What came of it.
    pub came: ConflictOutcome,
}

/// What came of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictOutcome {
    /// The resolver may be asked now. Only where nothing is done.
    Due,
    /// It is resolved: the change is ready to be checked.
    Resolved {
        /// Who did it.
        by: String,
    },
    /// The resolver left nothing of the change: its effect is in the branch already.
    Skipped {
        /// In words.
        why: String,
    },
    /// The attempt failed.
    Failed {
        /// In words.
        what: String,
        /// What there is to read about it.
        log: Utf8PathBuf,
        /// When the next one may be.
        due: Due,
    },
    /// It was tried enough: `blocked_conflict`.
    Blocked {
        /// What a person should see.
        evidence: String,
        /// Whether it came to that just now.
        new: bool,
    },
    /// The next attempt is not due yet.
    Later {
        /// When it is, as people write it.
        at: String,
    },
    /// There is no conflict.
    Nothing {
        /// How so.
        why: String,
    },
    /// There is nothing that a resolver could do now.
    Waits {
        /// Why.
        why: String,
    },
    /// Somebody else is at it.
    Busy {
        /// Who, by their own word.
        holder: String,
    },
}

/// Why a conflict was not looked at to its end. What was counted is counted.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// There is no such accepted change for the branch.
    #[error("{id} is not accepted for this branch")]
    Unknown {
        /// The bundle.
        id: BundleId,
    },
    /// It is not known where the branch is.
    #[error(transparent)]
    LandingBase(Box<IntegrateError>),
    /// git could not merge.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bundles cannot be listed.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The bundle cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A lock cannot be used.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The resolver could not be run. That is no attempt.
    #[error(transparent)]
    Beat(Box<BeatError>),
    /// The case cannot be read or written.
    #[error("the record of the conflict in {dir} cannot be used")]
    ConflictRecord {
        /// Where it is.
        dir: Utf8PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl From<IntegrateError> for ResolveError {
    fn from(error: IntegrateError) -> Self {
        if matches!(error, IntegrateError::Interrupted) {
            return Self::Interrupted;
        }
        Self::LandingBase(Box::new(error))
    }
}

impl From<BeatError> for ResolveError {
    fn from(error: BeatError) -> Self {
        if matches!(error, BeatError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Beat(Box::new(error))
    }
}

impl Driver<'_> {
    /// Has the resolver make one attempt at the conflict of an accepted change with its branch, if one is
    /// due. Whoever calls this holds no lock.
    pub fn resolve(
        &self,
        front: &TargetBranch,
        id: &BundleId,
        task: ResolveRequest<'_>,
    ) -> Result<ConflictReport, ResolveError> {
        let (change, sealed) = match find(front, id)? {
            Ok(found) => found,
            Err(told) => return Ok(told),
        };
        // A remote may take its time, so it is asked before anything is locked.
        let warn = |text| self.warn(&change.bundle, text);
        let tip = LandingBase::find(front, task.settings, self.cancel, &warn)?.at;
        let _taken = match self.config.take(id) {
            Err(AdmissionError::Taken { holder, .. }) => {
                return Ok(told(id, ConflictOutcome::Busy { holder }));
            }
            taken => taken?,
        };
        // A driver before this one may have died while the resolver ran: compare before anything is derived
        // from the bundle.
        let planted = relieve_guard(self, &change.bundle)?;
        for one in &planted {
            self.warn(&change.bundle, format!("written into the bundle by a resolver: {one}"));
        }
        if !is_as_it_was(change, sealed)? {
            let why = "somebody went on with it meanwhile".to_owned();
            return Ok(told(id, ConflictOutcome::Waits { why }));
        }
        let matter = self.config.look(front, (change, sealed), tip, task)?;
        let ConflictState { file, mut case, sides: Some(sides), known: None } = matter else {
            return Ok(matter.told(id, matter.known.clone().unwrap_or(ConflictOutcome::Due)));
        };
        wait_until_free(&file.hold(), PATIENCE).map_err(AdmissionError::from)?;
        let stamp = || Stamp::take(task.clock).map_err(|source| unusable(&file, source));
        let pause = task.settings.resolve_pause();
        if case.due(pause, &stamp()?) == Due::Never {
            case.exhaust();
            self.keep_conflict(&file, &case, "conflict-block")?;
            return Ok(settled(id, &case, true));
        }
        case.begin(&tip.to_string());
        self.keep_conflict(&file, &case, "conflict-attempt")?;
        let text = format!("{}: the resolver is asked, {}", case.said, case.progress());
        self.tell(&change.bundle, What::integration(text));
        let ask = Ask {
            front,
            bundle: &change.bundle,
            sides: &sides,
            file: &file,
            attempt: case.attempts,
        };
        let attempted = if planted.is_empty() {
            self.attempt_resolution(&ask)?
        } else {
            let what = "the resolver wrote into the bundle".to_owned();
            Attempted::Failed { what, log: format!("- {}\n", planted.join("\n- ")) }
        };
        self.conclude(&file, &mut case, attempted, &stamp()?)?;
        let mut came = settled(id, &case, true);
        if let ConflictOutcome::Failed { due, .. } = &mut came.came {
            *due = case.due(pause, &stamp()?);
        }
        Ok(came)
    }

    /// Writes down what an attempt came to: first what there is to keep, then that it is so.
    fn conclude(
        &self,
        file: &ConflictDir,
        case: &mut ConflictRecord,
        attempted: Attempted,
        now: &Stamp,
    ) -> Result<(), ResolveError> {
        let write = |name: &str, bytes: &[u8]| {
            let written = self.effects.perform("resolution", || file.write(name, bytes));
            written.map_err(|source| unusable(file, source))
        };
        match attempted {
            Attempted::Failed { what, log } => {
                let name = format!("attempt-{}.log", case.failures.len() + 1);
                write(&name, format!("{what}\n\n{log}").as_bytes())?;
                case.fail(what, file.dir().join(name), now);
            }
            Attempted::Empty => {
                case.close(now);
                let why = format!(
                    "{}; the resolver left nothing of it: {} has its effect",
                    case.said, case.branch
                );
                case.end = Some(ConflictEnd::Skipped { why, tip: case.tip.clone() });
            }
            Attempted::Resolved { patch, notes } => {
                case.close(now);
                write(Artifact::Patch.file_name(), &patch)?;
                let name = Artifact::BuildNotes.file_name();
                match notes {
                    Some(notes) => write(name, &notes)?,
                    // An attempt that died at this point may have left some.
                    None => file.remove(name).map_err(|source| unusable(file, source))?,
                }
                case.end = Some(ConflictEnd::Resolved {
                    attempt: case.attempts,
                    base: case.tip.clone(),
                    by: self.resolver_name(),
                    iteration: None,
                });
            }
        }
        self.keep_conflict(file, case, "conflict-outcome")?;
        let cleared = self.effects.perform("job-done", || file.clear_jobs());
        cleared.map_err(|source| unusable(file, source))
    }

    pub(in crate::integrate) fn keep_conflict(
        &self,
        file: &ConflictDir,
        case: &ConflictRecord,
        name: &'static str,
    ) -> Result<(), ResolveError> {
        let kept = self.effects.perform(name, || file.store(case));
        kept.map_err(|source| unusable(file, source))
    }

    /// Who resolves, for people.
    fn resolver_name(&self) -> String {
        let config = &self.config.leaves.resolver;
        let known = [&config.agent, &config.family, &config.model];
        let known: Vec<&str> = known.into_iter().flatten().map(String::as_str).collect();
        if known.is_empty() {
            return "the resolver".to_owned();
        }
        format!("the resolver ({})", known.join(", "))
    }
}

pub(in crate::integrate) fn unusable(file: &ConflictDir, source: io::Error) -> ResolveError {
    ResolveError::ConflictRecord { dir: file.dir().to_owned(), source }
}

/// What a case says about itself.
fn settled(id: &BundleId, case: &ConflictRecord, new: bool) -> ConflictReport {
    let end = match (&case.end, case.failures.last()) {
        (Some(ConflictEnd::Resolved { by, .. }), _) => ConflictOutcome::Resolved { by: by.clone() },
        (Some(ConflictEnd::Skipped { why, .. }), _) => {
            ConflictOutcome::Skipped { why: why.clone() }
        }
        (Some(ConflictEnd::Blocked { evidence }), _) => {
            ConflictOutcome::Blocked { evidence: evidence.clone(), new }
        }
        (None, Some(last)) => {
            let (what, log) = (last.what.clone(), last.log.clone());
            ConflictOutcome::Failed { what, log, due: Due::Now }
        }
        (None, None) => ConflictOutcome::Due,
    };
    ConflictReport {
        id: id.clone(),
        said: Some(case.said.clone()),
        attempts: case.attempts,
        came: end,
    }
}
