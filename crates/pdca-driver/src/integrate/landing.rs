//! What was gated lands, is looked at again, and gets its certificate.

use std::collections::BTreeSet;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{
    Candidate, Certificate, Destination, Entry, Gated, LandError, Lookup, ObjectId, Onto, Plan,
    PushOutcome, Recorded, Run, Store, contains, fold, land, push, refs_below,
};
use pdca_journal::Cause;
use pdca_state::{BundleId, files};

use crate::effect::Effects;
use crate::site::Site;

use super::IntegrateError;
use super::settings::Land;
use super::standing::Front;
use super::work::{Round, Work};

/// How often a push that may work later is tried.
const PUSHES: u32 = 4;
/// How long to wait before the second try; twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(500);
/// A certificate is not larger than this.
const LARGEST: u64 = 64 << 20;
/// What the name of a certificate begins with whose landing is not certain yet.
const PENDING: &str = "landing-";

impl Work<'_> {
    /// Lands a candidate that was gated green, on top of what landed before.
    ///
    /// `rest` are all changes of the present plan that are neither landed nor held.
    pub(super) fn land(
        &mut self,
        whole: &Candidate,
        rest: &BTreeSet<BundleId>,
    ) -> Result<Round, IntegrateError> {
        let Some(candidate) = whole.after(self.at) else {
            // What landed before is not what this was folded onto.
            return Ok(Round::Moved);
        };
        if candidate.bundles().next().is_none() {
            return Ok(Round::Done);
        }
        let Lookup::Found(verdict) = self.cache.look_up(&self.oracle.key(&candidate))? else {
            return Ok(Round::Moved);
        };
        if self.order.settings.land != Land::Target
            && self.done.landed.is_empty()
            && self.front.store.commit_at(&self.front.reference)? != Some(candidate.base())
        {
            return Ok(Round::Moved);
        }
        let gated = Gated::new(candidate, &self.oracle, verdict)?;
        if self.order.settings.land == Land::Branch
            && let Some(branch) = self.staged_in(gated.candidate())?
        {
            // An earlier integration left exactly this for a person; a second branch would only confuse.
            self.chronicle.land(gated.candidate(), &branch, &self.oracle.gate_digest)?;
            self.chronicle.landed(Ok(gated.candidate().commit()), rest)?;
            self.arrived(&gated, branch);
            return Ok(Round::Done);
        }
        let onto = match self.order.settings.land {
            Land::Target => Onto::Target(&self.front.branch),
            Land::Branch | Land::Push => Onto::Branch(&self.run),
        };
        let reference = onto.reference();
        let pending = self.announce(&gated, &reference)?;
        let (effects, digest) = (self.driver.effects, &self.oracle.gate_digest);
        let intend = || self.chronicle.land(gated.candidate(), &reference, digest);
        effects.perform("land-intent", intend)?;
        let log = self.log("pdca: integrate");
        let landed =
            effects.perform("land", || land(&self.front.store, &self.fence, &gated, onto, log));
        let landed = match landed {
            Ok(landed) => landed,
            Err(error) => {
                let moved = matches!(error, LandError::BaseMoved { .. });
                let cause = if moved { Cause::Race } else { Cause::Git };
                self.chronicle.landed(Err((cause, pdca_state::chain(&error))), rest)?;
                remove(&pending)?;
                return if moved { Ok(Round::Moved) } else { Err(error.into()) };
            }
        };
        let path = certify(
            self.order.certificates,
            &self.run,
            &Certificate::new(&landed, &gated).to_json(),
            effects,
        )?;
        self.done.certificates.push(path);
        remove(&pending)?;
        effects.perform("land-outcome", || self.chronicle.landed(Ok(landed.commit()), rest))?;
        if self.order.settings.land == Land::Push {
            self.push(&gated)?;
        }
        self.arrived(&gated, reference);
        Ok(Round::Done)
    }

    /// The branch of an earlier integration that has a candidate in it.
    fn staged_in(&self, candidate: &Candidate) -> Result<Option<String>, IntegrateError> {
        let own = format!("refs/heads/{}", self.run.integration_branch());
        for (name, at) in refs_below(&self.front.store, "refs/heads/pdca/integration-")? {
            if name != own && contains(&self.front.store, at, candidate.commit())? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Takes note of what is there now.
    fn arrived(&mut self, gated: &Gated, reference: String) {
        self.at = gated.candidate().commit();
        self.done.tip = self.at;
        self.done.tree = gated.candidate().tree();
        for (id, commit) in gated.candidate().commits() {
            let short = commit.to_hex_with_len(12);
            let branch = reference.trim_start_matches("refs/heads/");
            self.tell(format!("{id} is in {branch} as {short}"));
            self.done.landed.push((id.clone(), commit));
        }
        if !self.done.references.contains(&reference) {
            self.done.references.push(reference);
        }
    }

    fn dir(&self) -> Utf8PathBuf {
        self.driver.site.private().join("integrations").join(self.run.as_str())
    }

    /// Where the rows of this integration leave their verdicts.
    pub(super) fn jobs(&self) -> Utf8PathBuf {
        self.dir().join("jobs")
    }

    /// Keeps the certificate of a landing that is about to be.
    fn announce(&self, gated: &Gated, reference: &str) -> Result<Utf8PathBuf, IntegrateError> {
        let name = format!("{PENDING}{}-{}", self.front.target.name, gated.candidate().commit());
        let path = self.dir().join(name);
        let text = Certificate::announced(gated, reference).to_json();
        let write = || files::replace(&path, &text);
        let written = self.driver.effects.perform("announce", write);
        written.map_err(|source| IntegrateError::Io { path: path.clone(), source })?;
        Ok(path)
    }

    /// Pushes what is in the branch of an integration that was cut short before the remote had it.
    pub(super) fn push_again(
        &mut self,
        entries: Vec<Entry>,
        at: ObjectId,
    ) -> Result<(), IntegrateError> {
        let plan = Plan::new(self.front.tip, self.order.settings.strategy, entries)?;
        let folded = fold(&mut self.engine, &plan, &Recorded::default(), &mut |_| Ok(()))?;
        let candidate = folded.candidate().clone();
        let verdict = self.cache.look_up(&self.oracle.key(&candidate))?;
        let (Lookup::Found(verdict), true) = (verdict, candidate.commit() == at) else {
            let rows = vec![format!("nothing is known any more about {at}, which was not pushed")];
            return Err(IntegrateError::Stuck { rows });
        };
        self.push(&Gated::new(candidate, &self.oracle, verdict)?)
    }

    fn push(&mut self, gated: &Gated) -> Result<(), IntegrateError> {
        let remote = self.order.settings.remote.clone();
        let branch = self.front.branch.clone();
        let to = Destination { remote: &remote, branch: &branch };
        let refused = |said: String| IntegrateError::Refused {
            remote: remote.clone(),
            branch: branch.clone(),
            said,
        };
        let mut pause = PAUSE;
        for attempt in 1..=PUSHES {
            let pushed = self
                .driver
                .effects
                .perform("push", || push(&self.front.store, &self.fence, gated, to))?;
            match pushed {
                PushOutcome::Pushed | PushOutcome::AlreadyThere => return Ok(()),
                PushOutcome::Race { at } => {
                    // It may have the first part of this from before we were cut short.
                    if let Some(rest) = gated.candidate().after(at)
                        && at != gated.candidate().base()
                        && let Lookup::Found(known) = self.cache.look_up(&self.oracle.key(&rest))?
                    {
                        return self.push(&Gated::new(rest, &self.oracle, known)?);
                    }
                    return Err(refused(format!("it is at {at}; fetch it and integrate again")));
                }
                PushOutcome::NoBranch => return Err(refused("it has no such branch".into())),
                PushOutcome::Permanent { said } => return Err(refused(said)),
                PushOutcome::Transient { said } if attempt == PUSHES => return Err(refused(said)),
                PushOutcome::Transient { said } => {
                    self.tell(format!("{remote} did not take it ({said}); trying again"));
                    std::thread::park_timeout(pause);
                    pause *= 2;
                }
            }
        }
        Ok(())
    }
}

impl Site {
    /// Finishes what drivers left that died between a landing and its certificate, and says which
    /// certificates came of that. Whoever calls this is admitted to the workspace.
    pub fn finish_certificates(
        &self,
        front: &Front,
        certificates: &Utf8Path,
        effects: &dyn Effects,
    ) -> Result<Vec<Utf8PathBuf>, IntegrateError> {
        let root = self.private().join("integrations");
        let failed = |source| IntegrateError::Io { path: root.clone(), source };
        let dirs = match root.read_dir_utf8() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            dirs => dirs.map_err(failed)?,
        };
        let prefix = format!("{PENDING}{}-", front.target.name);
        let mut finished = Vec::new();
        for dir in dirs {
            let dir = dir.map_err(failed)?;
            let Ok(run) = dir.file_name().parse::<Run>() else { continue };
            for file in dir.path().read_dir_utf8().map_err(failed)? {
                let file = file.map_err(failed)?;
                if !file.file_name().starts_with(&prefix) {
                    continue;
                }
                if let Some(text) = landed_text(&front.store, file.path())? {
                    finished.push(certify(certificates, &run, &text, effects)?);
                }
                remove(file.path())?;
            }
        }
        Ok(finished)
    }
}

/// Whether a certificate waits in the directory of an integration until its landing is known.
pub(crate) fn has_pending_certificate(dir: &Utf8Path) -> bool {
    let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().starts_with(PENDING))
}

/// The text of a kept certificate, if what it speaks of is there.
fn landed_text(store: &Store, path: &Utf8Path) -> Result<Option<Vec<u8>>, IntegrateError> {
    let Ok(Some(text)) = files::read_bounded(path, LARGEST) else { return Ok(None) };
    let Ok(said) = serde_json::from_slice::<serde_json::Value>(&text) else { return Ok(None) };
    let field = |name: &str| said["certificate"][name].as_str().unwrap_or_default();
    let Ok(commit) = ObjectId::from_hex(field("commit").as_bytes()) else { return Ok(None) };
    let Some(now) = store.commit_at(field("reference"))? else { return Ok(None) };
    Ok(contains(store, now, commit)?.then_some(text))
}

/// Keeps a certificate under a name of its own; the same one twice is one.
fn certify(
    dir: &Utf8Path,
    run: &Run,
    text: &[u8],
    effects: &dyn Effects,
) -> Result<Utf8PathBuf, IntegrateError> {
    let mut number = 1;
    loop {
        let name = if number == 1 { format!("{run}.json") } else { format!("{run}-{number}.json") };
        let path = dir.join(name);
        match files::read_bounded(&path, LARGEST) {
            Ok(Some(there)) if there == text => return Ok(path),
            Ok(None) => {
                let failed = |source| IntegrateError::Io { path: path.clone(), source };
                fs_err::create_dir_all(dir).map_err(failed)?;
                let write = || files::replace(&path, text);
                effects.perform("certificate", write).map_err(failed)?;
                return Ok(path);
            }
            Ok(Some(_)) | Err(_) => number += 1,
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
