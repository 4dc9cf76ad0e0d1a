//! What was gated lands, is looked at again, and gets its certificate.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_integrate::{
    Candidate, Certificate, Destination, Gated, LandError, Lookup, Onto, PushOutcome, land, push,
};
use pdca_state::files;

use super::IntegrateError;
use super::settings::Land;
use super::work::{Round, Work};

/// How often a push that may work later is tried.
const PUSHES: u32 = 4;
/// How long to wait before the second try; twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(500);
/// A certificate is not larger than this.
const LARGEST: u64 = 64 << 20;

impl Work<'_> {
    /// Lands a candidate that was gated green, on top of what landed before.
    pub(super) fn land(&mut self, whole: Candidate) -> Result<Round, IntegrateError> {
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
        let onto = match self.order.settings.land {
            Land::Target => Onto::Target(&self.front.branch),
            Land::Branch | Land::Push => Onto::Branch(self.order.run),
        };
        let log = self.log("pdca: integrate");
        let landed = self
            .driver
            .effects
            .perform("land", || land(&self.front.store, &self.fence, &gated, onto, log));
        let landed = match landed {
            Err(LandError::BaseMoved { .. }) => return Ok(Round::Moved),
            other => other?,
        };
        let certificate = Certificate::new(&landed, &gated).to_json();
        self.certify(&certificate)?;
        if self.order.settings.land == Land::Push {
            self.push(&gated)?;
        }
        self.at = landed.commit();
        self.done.tip = landed.commit();
        self.done.tree = gated.candidate().tree();
        self.done.references.push(landed.reference().to_owned());
        self.done.references.dedup();
        for (id, commit) in gated.candidate().commits() {
            self.tell(format!("{id} landed as {commit:.10}"));
            self.done.landed.push((id.clone(), commit));
        }
        Ok(Round::Done)
    }

    /// Where the rows of this integration leave their verdicts.
    pub(super) fn jobs(&self) -> Utf8PathBuf {
        self.driver.site.private().join("integrations").join(self.order.run.as_str()).join("jobs")
    }

    /// Keeps a certificate under a name of its own; the same one twice is one.
    fn certify(&mut self, text: &[u8]) -> Result<(), IntegrateError> {
        let run = self.order.run;
        let dir = self.order.certificates;
        let mut number = 1;
        let path = loop {
            let name =
                if number == 1 { format!("{run}.json") } else { format!("{run}-{number}.json") };
            let path = dir.join(name);
            match files::read_bounded(&path, LARGEST) {
                Ok(Some(there)) if there == text => break path,
                Ok(None) => {
                    let failed = |source| IntegrateError::Io { path: path.clone(), source };
                    fs_err::create_dir_all(dir).map_err(failed)?;
                    let write = || files::replace(&path, text);
                    self.driver.effects.perform("certificate", write).map_err(failed)?;
                    break path;
                }
                Ok(Some(_)) | Err(_) => number += 1,
            }
        };
        self.done.certificates.push(path);
        Ok(())
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
