//! Landing of a gated candidate: move the ref, verify, certify.
//!
//! # Protocol
//! 1. *Require* a stored green verdict about exactly this tree by exactly these gates. Without one there is no
//!    [`Gated`], so nothing lands that was only said to be green.
//! 2. *Announce*: write the certificate to `landing-<target>-<commit>` in the integration's directory. Otherwise a
//!    crash after step 5 would leave a landing without certificate.
//! 3. *Intent*: journal which commit goes to which ref, so that the next driver can tell from the ref whether it did.
//! 4. *Deliver*: in mode `push`, push from exactly the gated base. A race sends the rest of the batch back to
//!    planning. If the answer is lost the announcement stays until the remote was asked.
//! 5. *Move* the local ref from exactly the gated base, under the fence. A branch that moved is not overwritten,
//!    and a driver that lost the fence cannot move it. If it fails although the ref may have moved, the announcement
//!    stays.
//! 6. *Certify*: write the certificate to its final place, and only then remove the announcement.
//! 7. *Outcome*: journal the landing together with the plan for the rest, so that a resumed integration continues
//!    on the new tip.
//!
//! [`finish_certificates`] completes step 6 for a driver that died: git knows whether the announced landing happened.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::{Cause, Effects, RunId, object_id};
use pdca_state::{BundleId, files};

use pdca_journal::events::IntegrationStep;

use crate::{Candidate, Certificate, Destination, Gated, LandError, Landed, Store, contains, land};

use super::IntegrateError;
use super::integration::{Integration, Round};
use super::landing_mode::Delivery;
use super::target_branch::TargetBranch;
use super::workspace::QueueWorkspace;

/// The maximum size of a certificate, in bytes.
const LARGEST: u64 = 64 << 20;
/// The prefix of announced certificates.
pub(super) const PENDING: &str = "landing-";

impl Integration<'_> {
    /// Lands a candidate that was gated green, on top of earlier landings.
    ///
    /// `rest` holds all changes of the current plan that are neither landed nor held.
    pub(super) fn land(
        &mut self,
        whole: &Candidate,
        rest: &BTreeSet<BundleId>,
    ) -> Result<Round, IntegrateError> {
        let Some(candidate) = whole.after(self.at) else {
            // An earlier landing of this integration is not what the candidate was folded onto.
            return Ok(Round::Moved);
        };
        if candidate.bundles().next().is_none() {
            return Ok(Round::Done);
        }
        // The file may have been removed since the search asked. The next round gates the tree again.
        let Some(verdict) = self.verdicts.to_land(&candidate)? else {
            return Ok(Round::Moved);
        };
        let settings = self.request.settings;
        let mode = settings.land.mode();
        // Later landings go onto the first one, wherever the branch is by then.
        if !self.has_landing() && mode.has_moved(self, candidate.base())? {
            return Ok(Round::Moved);
        }
        let gated = Gated::new(candidate, self.verdicts.gates(), verdict)?;
        let reference = mode.reference(settings, self.branch);
        let target = &self.branch.target.name;
        // Announced before the intent and before any ref moves: from here on a crash leaves a trace from which
        // the certificate is made.
        let pending = self.dir.announce(&self.cx, target, &gated, &reference)?;
        let (effects, digest) = (self.cx.effects, &self.verdicts.gates().gate_digest);
        let intend = || self.journal.land(gated.candidate(), &reference, digest);
        effects.perform("land-intent", intend)?;
        match mode.deliver(self, &gated) {
            Ok(Delivery::There) => {}
            Ok(Delivery::Moved) => {
                let why = "the branch moved before the push".to_owned();
                self.journal.landed(Err((Cause::Race, why)), rest)?;
                // The remote is at a commit that does not contain ours, so the announced landing did not
                // happen.
                remove(&pending)?;
                return Ok(Round::Moved);
            }
            Err(error) => {
                // The remote may have taken the push although its answer was lost, so the announcement stays:
                // the next driver asks the remote.
                self.journal.landed(Err((Cause::Git, pdca_state::chain(&error))), rest)?;
                return Err(error);
            }
        }
        let landed = match self.put(&gated, &reference) {
            Ok(landed) => landed,
            Err(error) => {
                let moved = matches!(error, LandError::BaseMoved { .. });
                let cause = if moved { Cause::Race } else { Cause::Git };
                self.journal.landed(Err((cause, pdca_state::chain(&error))), rest)?;
                let is_disproved = matches!(error, LandError::Disproved { .. });
                // The remote has a pushed commit already, whatever became of the local ref.
                let was_pushed = Destination::is_sighting(&reference) && !is_disproved;
                // A landing that may have happened keeps its announcement: git tells the next driver.
                if !error.may_have_moved() && !was_pushed {
                    remove(&pending)?;
                }
                return if moved { Ok(Round::Moved) } else { Err(error.into()) };
            }
        };
        let path = certify(
            self.request.certificates,
            &self.run,
            &Certificate::new(&landed, &gated).to_json(),
            effects,
        )?;
        self.done.certificates.push(path);
        // Only after the certificate is at its place. A crash in between writes the same certificate once more.
        remove(&pending)?;
        effects.perform("land-outcome", || self.journal.landed(Ok(landed.commit()), rest))?;
        self.arrived(&gated, reference);
        // Last: the landing has its certificate and its outcome, and a failure here is only told.
        mode.after(self, &gated);
        Ok(Round::Done)
    }

    /// Moves the local ref from the gated base to the gated commit, and reads it back.
    fn put(&self, gated: &Gated, reference: &str) -> Result<Landed, LandError> {
        let onto = self.request.settings.land.mode().onto(self, reference);
        let log = self.log("pdca: integrate");
        let put = || land(&self.branch.store, &self.fence, gated, onto, log);
        self.cx.effects.perform("land", put)
    }

    /// Updates the result and emits one event for each landed change.
    fn arrived(&mut self, gated: &Gated, reference: String) {
        self.at = gated.candidate().commit();
        self.done.tip = self.at;
        self.done.tree = gated.candidate().tree();
        for (id, commit) in gated.candidate().commits() {
            let short = commit.to_hex_with_len(12);
            let branch = self.request.settings.shown(&reference);
            let text = format!("{id} is in {branch} as {short}");
            let (bundle, commit_id) = (id.clone(), commit.to_string());
            let landed = IntegrationStep::Landed { bundle, onto: branch, commit: commit_id };
            self.cx.emit(text, landed);
            self.done.landed.push((id.clone(), commit));
        }
        if !self.done.references.contains(&reference) {
            self.done.references.push(reference);
        }
    }
}

/// Publishes or removes the certificates that were announced by drivers that died before they could, and returns the
/// published ones. The caller must hold the admission to the workspace.
///
/// Without `remote_was_asked`, the outcome of a push stays unknown and its announcement stays.
pub fn finish_certificates(
    workspace: &QueueWorkspace,
    branch: &TargetBranch,
    certificates: &Utf8Path,
    remote_was_asked: bool,
    effects: &dyn Effects,
) -> Result<Vec<Utf8PathBuf>, IntegrateError> {
    let root = workspace.dirs.private().join("integrations");
    let failed = |source| IntegrateError::Io { path: root.clone(), source };
    let dirs = match root.read_dir_utf8() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        dirs => dirs.map_err(failed)?,
    };
    let prefix = format!("{PENDING}{}-", branch.target.name);
    let mut finished = Vec::new();
    // Announcements of every integration, because the one that died need not be the one that is resumed.
    for dir in dirs {
        let dir = dir.map_err(failed)?;
        let Ok(run) = dir.file_name().parse::<RunId>() else { continue };
        for file in dir.path().read_dir_utf8().map_err(failed)? {
            let file = file.map_err(failed)?;
            if !file.file_name().starts_with(&prefix) {
                continue;
            }
            match become_of(&branch.store, file.path(), remote_was_asked)? {
                Became::Landed(text) => {
                    finished.push(certify(certificates, &run, &text, effects)?);
                }
                Became::Nothing => {}
                Became::Unknown => continue,
            }
            remove(file.path())?;
        }
    }
    Ok(finished)
}

/// Returns true if an announced certificate waits in the directory of an integration.
pub fn has_pending_certificate(dir: &Utf8Path) -> bool {
    let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().starts_with(PENDING))
}

/// The outcome of an announced landing.
enum Became {
    /// The landing happened; this is its certificate.
    Landed(Vec<u8>),
    /// The landing did not happen.
    Nothing,
    /// Only the remote or a person can tell.
    Unknown,
}

fn become_of(
    store: &Store,
    path: &Utf8Path,
    remote_was_asked: bool,
) -> Result<Became, IntegrateError> {
    // An unreadable announcement is kept: it may be the only trace of a landing.
    let Ok(Some(text)) = files::read_bounded(path, LARGEST) else { return Ok(Became::Unknown) };
    let Ok(said) = serde_json::from_slice::<serde_json::Value>(&text) else {
        return Ok(Became::Unknown);
    };
    let field = |name: &str| said["certificate"][name].as_str().unwrap_or_default();
    let Ok(commit) = object_id::parse(field("commit")) else {
        // Readable but without a commit: it never announced a landing.
        return Ok(Became::Nothing);
    };
    let reference = field("reference");
    let now = store.commit_at(reference)?;
    let is_there = match now {
        Some(now) => contains(store, now, commit)?,
        None => false,
    };
    Ok(if is_there {
        Became::Landed(text)
    } else if Destination::is_sighting(reference) && !remote_was_asked {
        Became::Unknown
    } else {
        Became::Nothing
    })
}

/// Writes a certificate under an unused name, unless the same certificate is there already.
fn certify(
    dir: &Utf8Path,
    run: &RunId,
    text: &[u8],
    effects: &dyn Effects,
) -> Result<Utf8PathBuf, IntegrateError> {
    let mut number = 1;
    loop {
        let name = if number == 1 { format!("{run}.json") } else { format!("{run}-{number}.json") };
        let path = dir.join(name);
        match files::read_bounded(&path, LARGEST) {
            // Written by the driver that died after this step.
            Ok(Some(there)) if there == text => return Ok(path),
            Ok(None) => {
                let failed = |source| IntegrateError::Io { path: path.clone(), source };
                fs_err::create_dir_all(dir).map_err(failed)?;
                let write = || files::replace(&path, text);
                effects.perform("certificate", write).map_err(failed)?;
                return Ok(path);
            }
            Ok(Some(_)) => number += 1,
            // Not another number: in a directory that cannot be read no name is free, and this would not end.
            Err(error) => {
                let source = std::io::Error::other(error);
                return Err(IntegrateError::Io { path, source });
            }
        }
    }
}

fn remove(path: &Utf8Path) -> Result<(), IntegrateError> {
    match fs_err::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(IntegrateError::Io { path: path.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
