//! Counts the failures in a row of a bundle's beat.
//!
//! A bundle whose builder failed has the same artifacts as one that never ran, apart from an error log.
//! The number of failures is no artifact, and a log is replaced by the next one,
//! so the driver keeps a record below `.pdca/`. No other file holds the count:
//! a journal covers one run, and the record of an attempt is removed with the attempt.
//!
//! A record counts only while brief, number of archived attempts and state of the bundle are
//! unchanged. So it becomes void when the beat succeeds, the bundle is sent back
//! or the brief is edited. Losing it loses the count; the log still shows the failure.

use std::collections::BTreeSet;
use std::io;

use camino::Utf8PathBuf;
use pdca_leaves::LeafError;
use pdca_state::{Artifact, Bundle, BundleId, Glance, State, chain, files, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::config::WorkspaceConfig;
use crate::leaf::speaks_of_the_leaf;
use crate::run_bundle::BeatError;

/// The beat of a bundle that is held because an external dependency is not there.
const DEPENDENCY: &str = "dependency";

/// A failure of a bundle's beat, with nothing changed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BeatFailure {
    /// `builder`, `reviewer`, `patch`, or `dependency` for a bundle that was held before its builder was called.
    pub beat: String,
    /// Failures in a row; 0 if only its agent's login or its host kept it from its work, which spends no attempt.
    pub times: u32,
    pub why: String,
    /// The error log in the bundle, if there is one.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub log: Option<Utf8PathBuf>,
}

/// The stored form, with the facts that make it void when they change.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    iterations: u32,
    brief: String,
    state: String,
    beat: String,
    times: u32,
    why: String,
    log: Option<Utf8PathBuf>,
}

/// The failures of the bundles of a workspace.
#[derive(Clone, Debug)]
pub struct BeatFailures {
    root: Utf8PathBuf,
    max_attempts: u32,
    /// The names of all records, if they were listed.
    listed: Option<BTreeSet<String>>,
}

impl BeatFailures {
    pub fn of(config: &WorkspaceConfig) -> Self {
        let root = config.dirs.private().join("failures");
        Self { root, max_attempts: config.limits.max_attempts, listed: None }
    }

    /// Like [`Self::of`], for a reader that asks about many bundles: the records are listed once.
    pub fn listed(config: &WorkspaceConfig) -> Self {
        let failures = Self::of(config);
        let entries = failures.root.read_dir_utf8().into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_owned()).collect();
        Self { listed: Some(names), ..failures }
    }

    fn path(&self, id: &BundleId) -> Utf8PathBuf {
        self.root.join(format!("{}.json", id.dir_name()))
    }

    /// Returns the failure of a bundle, if it still counts.
    pub fn find(&self, bundle: &Bundle, glance: &Glance) -> Option<BeatFailure> {
        if !may_fail(glance.state) {
            return None;
        }
        let Some(record) = self.record(bundle.id()) else {
            return failure_told_by_log(bundle, glance);
        };
        let is_same = record.iterations == glance.iterations
            && record.state == glance.state.as_str()
            && Some(record.brief) == brief_digest(bundle);
        let Record { beat, times, why, log, .. } = record;
        is_same.then_some(BeatFailure { beat, times, why, log })
    }

    /// Returns whether a bundle failed too often to be started again unasked.
    pub fn are_enough(&self, failure: &BeatFailure) -> bool {
        // A check costs nothing, so a batch looks every time whether the dependency is there now.
        self.max_attempts > 0 && failure.times >= self.max_attempts && failure.beat != DEPENDENCY
    }

    fn record(&self, id: &BundleId) -> Option<Record> {
        let path = self.path(id);
        let is_listed =
            |names: &BTreeSet<String>| path.file_name().is_some_and(|name| names.contains(name));
        if self.listed.as_ref().is_some_and(|names| !is_listed(names)) {
            return None;
        }
        // A record that cannot be read loses the count; the log in the bundle still tells of the
        // failure.
        let bytes = fs_err::read(path).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Counts a failure, if the error is one of a beat.
    pub(crate) fn note(&self, bundle: &Bundle, error: &BeatError) -> io::Result<()> {
        let (charged, found) = match blamed(error) {
            Some(found) => (1, found),
            None => match hindered(error) {
                Some(found) => (0, found),
                None => return Ok(()),
            },
        };
        let (beat, why, log) = found;
        let (Ok(glance), Some(brief)) = (bundle.glance(), brief_digest(bundle)) else {
            return Ok(());
        };
        // Another beat starts its own count: failures of a builder say nothing about the reviewer.
        let before = self
            .record(bundle.id())
            .filter(|_| self.find(bundle, &glance).is_some_and(|failure| failure.beat == beat));
        let record = Record {
            iterations: glance.iterations,
            brief,
            state: glance.state.as_str().to_owned(),
            beat: beat.to_owned(),
            times: before.map_or(0, |before| before.times).saturating_add(charged),
            why,
            log,
        };
        let path = self.path(bundle.id());
        fs_err::create_dir_all(path.parent().unwrap_or(&path))?;
        files::replace(path, &serde_json::to_vec_pretty(&record).map_err(io::Error::other)?)
    }

    /// Removes the record of a bundle that halted normally.
    pub(crate) fn forget(&self, id: &BundleId) -> io::Result<()> {
        match fs_err::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Returns whether the driver carries out a beat in this state.
fn may_fail(state: State) -> bool {
    match state {
        State::Planned | State::Built | State::Checked => true,
        State::Unplanned
        | State::Resolved
        | State::AwaitingSignoff
        | State::Complete
        | State::Iterate(_)
        | State::Discontinued => false,
    }
}

fn brief_digest(bundle: &Bundle) -> Option<String> {
    Some(sha256_hex(&bundle.read(Artifact::Brief).ok()??))
}

/// Derives a failure from the builder's log, if the record is missing.
fn failure_told_by_log(bundle: &Bundle, glance: &Glance) -> Option<BeatFailure> {
    let name = Artifact::error_log("builder");
    if glance.state != State::Planned || !glance.leftovers.iter().any(|left| left == name.as_str())
    {
        return None;
    }
    let log = bundle.dir().join(name);
    Some(BeatFailure {
        beat: "builder".to_owned(),
        times: 1,
        why: "see its log".to_owned(),
        log: Some(log),
    })
}

/// Returns the beat that caused an error, the reason and the log; `None` if the host, the lane, the
/// configuration or a person caused it, where only trying again helps.
pub(crate) fn blamed(error: &BeatError) -> Option<(&'static str, String, Option<Utf8PathBuf>)> {
    match error {
        BeatError::Leaf { role, log, source } if speaks_of_the_leaf(source) => {
            let why = if let LeafError::Failed { ending, said, .. } = &**source {
                said.as_ref().map_or_else(|| ending.to_string(), |said| format!("{ending}: {said}"))
            } else {
                chain(&**source)
            };
            Some((role, why, Some(log.clone())))
        }
        BeatError::NoChange { log } => {
            Some(("builder", "it changed nothing".to_owned(), Some(log.clone())))
        }
        BeatError::Nested { log, .. } => {
            Some(("builder", "it left a repository in the checkout".to_owned(), Some(log.clone())))
        }
        BeatError::Patch { log, source } => {
            let why = format!("its change cannot be taken: {}", chain(source));
            Some(("builder", why, Some(log.clone())))
        }
        BeatError::Breach { role, log, .. } => {
            Some((role, "files outside the checkout changed".to_owned(), Some(log.clone())))
        }
        BeatError::Dependency { unmet } => {
            let why: Vec<String> = unmet.iter().map(ToString::to_string).collect();
            Some((DEPENDENCY, why.join("; "), None))
        }
        BeatError::EmptyPatch => Some(("patch", "patch.diff changes nothing".to_owned(), None)),
        BeatError::Stale { base, .. } => {
            Some(("patch", format!("patch.diff does not apply to {base}"), None))
        }
        BeatError::Elsewhere(failure) => failure.blamed(),
        BeatError::Leaf { .. }
        | BeatError::Interrupted
        | BeatError::Admission(_)
        | BeatError::Base(_)
        | BeatError::Load(_)
        | BeatError::Write(_)
        | BeatError::Archive(_)
        | BeatError::Target(_)
        | BeatError::Checkout(_)
        | BeatError::Gates(_)
        | BeatError::Signed
        | BeatError::Place(_)
        | BeatError::StaleResult(_)
        | BeatError::NoProgress { .. }
        | BeatError::Record(_)
        | BeatError::Capped { .. }
        | BeatError::Cost(_)
        | BeatError::Blocked { .. }
        | BeatError::Panicked { .. }
        | BeatError::Own(_) => None,
    }
}

/// Returns the beat that could not do its work because of its agent's login or of the host, and the reason.
fn hindered(error: &BeatError) -> Option<(&'static str, String, Option<Utf8PathBuf>)> {
    let BeatError::Leaf { role, log, source } = error else { return None };
    match &**source {
        LeafError::Agent { .. } | LeafError::Throttled { .. } => {
            Some((role, chain(&**source), Some(log.clone())))
        }
        LeafError::Host { .. } | LeafError::NotStarted { .. } | LeafError::NoSandbox { .. } => {
            Some((role, chain(&**source), None))
        }
        LeafError::Failed { .. }
        | LeafError::NoArtifact { .. }
        | LeafError::Voided { .. }
        | LeafError::Stage(_)
        | LeafError::NoProgram { .. }
        | LeafError::Template(_)
        | LeafError::NoValue(_)
        | LeafError::Prompt { .. }
        | LeafError::Writable { .. }
        | LeafError::NoTerminal { .. }
        | LeafError::Prepare(_)
        | LeafError::Fingerprint(_)
        | LeafError::Digest(_)
        | LeafError::Sweep(_)
        | LeafError::Job(_)
        | LeafError::Log(_)
        | LeafError::Run(_)
        | LeafError::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_fault_of_the_bundle_never_counts() {
        let own = || io::Error::other("disk full");
        for error in [
            BeatError::Interrupted,
            BeatError::Own(own()),
            BeatError::Capped { called: 3 },
            BeatError::Panicked { said: "x".to_owned() },
            BeatError::Leaf {
                role: "builder",
                log: "x".into(),
                source: Box::new(LeafError::Cancelled),
            },
        ] {
            assert_eq!(blamed(&error), None, "{error}");
        }
        let no_change = BeatError::NoChange { log: "x".into() };
        assert_eq!(blamed(&no_change).map(|(beat, ..)| beat), Some("builder"));
    }

    #[test]
    fn failures_in_a_row_are_counted_until_the_brief_changes() {
        let scene = crate::testing::Scene::planned();
        let (config, bundle) = (&scene.config, scene.bundle());
        let failed = BeatError::NoChange { log: "x".into() };
        let of = || BeatFailures::of(config).find(&bundle, &bundle.glance().unwrap());
        assert_eq!(of(), None);
        for times in 1..=config.limits.max_attempts {
            BeatFailures::of(config).note(&bundle, &failed).unwrap();
            let failure = of().unwrap();
            assert_eq!((failure.beat.as_str(), failure.times), ("builder", times));
            assert_eq!(
                BeatFailures::of(config).are_enough(&failure),
                times == config.limits.max_attempts
            );
        }
        scene.workspace.brief("7", &[("Slug", "another-way")]);
        assert_eq!(of(), None);
    }

    #[test]
    fn an_interruption_is_not_counted() {
        let scene = crate::testing::Scene::planned();
        let (config, bundle) = (&scene.config, scene.bundle());
        BeatFailures::of(config).note(&bundle, &BeatError::Interrupted).unwrap();
        assert_eq!(BeatFailures::of(config).find(&bundle, &bundle.glance().unwrap()), None);
    }
}
