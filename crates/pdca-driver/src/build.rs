//! Do: the builder changes the code in a private checkout, and the patch is what came of it.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_lanes::ApplyError;
use pdca_leaves::{BoxError, Call, Inputs, LeafError, LeafOutcome, Output, Places, Role};
use pdca_state::{Artifact, Bundle, Snapshot, chain};

use crate::attempt::Tenancy;
use crate::drive::{DriveError, Driver};
use crate::event::What;
use crate::ground::{Ground, GroundError, message};
use crate::leaf::Guarded;
use crate::seat::Seat;

/// The name of the builder's error log.
const LOG: &str = "builder";

/// Where a builder's call lies, and whose the checkout is meanwhile.
struct BuilderJob {
    dir: Utf8PathBuf,
    owner: String,
}

impl Driver<'_> {
    pub(crate) fn build(&self, bundle: &Bundle, snapshot: &Snapshot) -> Result<(), DriveError> {
        if self.take_resolution(bundle, snapshot)? {
            return Ok(());
        }
        let ground = self.ground(bundle, snapshot, true)?;
        if ground.is_none() {
            let text = "no target is configured: the builder has no checkout".to_owned();
            self.tell(bundle, What::Notice { text });
        }
        let ground = ground.as_ref();
        let inputs = match Inputs::gather(Role::Builder, bundle) {
            Ok(inputs) => inputs,
            Err(error) => {
                return Err(self.leaf_failed(bundle, LOG, Role::Builder, error.into())?);
            }
        };
        let kept = self.site.kept();
        let request = self.builder_request(snapshot, ground, &inputs, &kept);
        let job = match self.builder_job(bundle, snapshot, ground, &request)? {
            Ok(job) => job,
            Err(error) => return Err(self.leaf_failed(bundle, LOG, Role::Builder, error)?),
        };
        let done = || self.site.jobs().remove(&job.dir);
        let built = self
            .call_builder(bundle, ground, &request, &job)
            .and_then(|outcome| Ok((self.take_patch(bundle, ground, &outcome)?, outcome)));
        let ((patch, head), outcome) = match built {
            Ok(built) => built,
            Err(error) => {
                if !matches!(error, DriveError::Interrupted) {
                    // It failed for good, so the next run asks afresh, and from the branch's tip.
                    done().map_err(DriveError::Own)?;
                    self.site.attempts().remove(bundle.id()).map_err(DriveError::Own)?;
                }
                return Err(error);
            }
        };
        self.publish_change(bundle, snapshot, &outcome, &patch)?;
        if let (Some(ground), Some(head)) = (ground, head) {
            // The checkout stands at base + patch already: Check need not build that again.
            let job = ground.change_name(bundle, &patch);
            self.occupy(ground, &Tenancy { job, head: Some(head) })?;
        }
        self.effects.perform("job-done", done).map_err(DriveError::Own)
    }

    /// The call, all but where it lies.
    fn builder_request<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        ground: Option<&'a Ground>,
        inputs: &'a Inputs,
        kept: &'a [Utf8PathBuf],
    ) -> Call<'a> {
        let places = Places {
            workspace: &self.site.workspace,
            bundle_root: self.site.bundles.path(),
            worktree: ground.map(|ground| ground.lane.path()),
            tmp: self.seat_of(ground).and_then(Seat::tmp),
            fix: None,
            primary: ground.map(|ground| ground.target.path()),
            kept,
            hidden: &[],
        };
        Call {
            facts: self.facts(ground),
            force_stub: self.site.force_stubs,
            model: snapshot.brief.as_ref().and_then(|brief| brief.do_model()),
            ..Call::new(&self.site.leaves.builder, inputs, Utf8Path::new(""), places)
        }
    }

    fn builder_job(
        &self,
        bundle: &Bundle,
        snapshot: &Snapshot,
        ground: Option<&Ground>,
        request: &Call<'_>,
    ) -> Result<Result<BuilderJob, LeafError>, DriveError> {
        let attempt = snapshot.iterations.to_string();
        let key = match Self::leaf_key(request, &[("attempt", &attempt)]) {
            Ok(key) => key,
            Err(error) => return Ok(Err(error)),
        };
        let jobs = self.site.jobs();
        let dir = jobs.path(bundle.id(), Role::Builder.as_str(), &key);
        let owner =
            ground.map_or(String::new(), |ground| ground.work_name(bundle, Role::Builder, &key));
        if let Some(ground) = ground
            && !ground.is_of(&owner)?
        {
            // The end of a builder whose work is no longer in the checkout is worth nothing.
            jobs.remove(&dir).map_err(DriveError::Own)?;
        }
        Ok(Ok(BuilderJob { dir, owner }))
    }

    /// Has the builder work, and rejects what it did if it wrote anywhere else.
    fn call_builder(
        &self,
        bundle: &Bundle,
        ground: Option<&Ground>,
        request: &Call<'_>,
        job: &BuilderJob,
    ) -> Result<LeafOutcome, DriveError> {
        let prepare = |_try: u32| -> Result<(), BoxError> {
            Ok(ground.map_or(Ok(()), |ground| self.clear(bundle, ground, &job.owner))?)
        };
        let request = Call { job: &job.dir, prepare: Some(&prepare), ..*request };
        if let (true, Some(ground)) = (request.is_stub(), ground) {
            self.clear(bundle, ground, &job.owner)?;
        }
        let watch = |ground| self.watch_from(ground, &job.dir);
        let wire = ground.map(watch).transpose()?;
        let Guarded { answer, planted } = self.guarded(bundle, &request)?;
        let mut written = wire.map(|wire| wire.breaches()).unwrap_or_default();
        let outcome = match answer {
            Ok(outcome) => outcome,
            Err(error) => {
                for one in written.iter().chain(&planted) {
                    self.warn(bundle, format!("while the builder ran, this changed: {one}"));
                }
                return Err(self.leaf_failed(bundle, LOG, Role::Builder, error)?);
            }
        };
        if outcome.guard.is_enforced() {
            // The kernel kept the builder out, so it was somebody else: a person who works on.
            for one in &planted {
                let text = format!("somebody wrote into the bundle, and it does not count: {one}");
                self.warn(bundle, text);
            }
            return Ok(outcome);
        }
        let inside =
            outcome.bundle_changed.iter().map(|path| bundle.dir().join(path).into_string());
        written.extend(inside.chain(planted));
        if written.is_empty() {
            return Ok(outcome);
        }
        let text = format!(
            "The builder's attempt is rejected. Written outside its checkout:\n- {}\n",
            written.join("\n- ")
        );
        let log = self.keep_log(bundle, LOG, &text)?;
        Err(DriveError::Breach { role: Role::Builder.as_str(), log, written })
    }

    /// Puts the result of Do in place; the patch comes last, because it is what moves the state.
    fn publish_change(
        &self,
        bundle: &Bundle,
        snapshot: &Snapshot,
        outcome: &LeafOutcome,
        patch: &[u8],
    ) -> Result<(), DriveError> {
        if let Some(earlier) = &outcome.earlier_failures {
            self.keep_log(bundle, LOG, earlier)?;
        }
        if let Some(notes) = outcome.get(Output::Artifact(Artifact::BuildNotes)) {
            self.publish(bundle, Artifact::BuildNotes, notes)?;
        }
        // A verdict from before this patch must not count for it.
        self.set_aside_verdicts(bundle, snapshot)?;
        self.publish(bundle, Artifact::Patch, patch)
    }

    /// The patch and the commit it makes: what the builder wrote down as one, or what it did to the
    /// checkout.
    fn take_patch(
        &self,
        bundle: &Bundle,
        ground: Option<&Ground>,
        outcome: &LeafOutcome,
    ) -> Result<(Vec<u8>, Option<String>), DriveError> {
        let written = outcome.get(Output::Artifact(Artifact::Patch));
        let (patch, head) = match (written, ground) {
            (Some(written), None) => (written.to_vec(), None),
            (None, None) => (Vec::new(), None),
            (None, Some(ground)) => self.harvest(bundle, ground)?,
            (Some(written), Some(ground)) => {
                // The patch is what counts; whatever else was done in the checkout is kept all the same.
                let name = format!("beside-the-patch-of-{}", bundle.id());
                let rescue = || ground.lane.rescue(&name);
                let kept = self.effects.perform("rescue", rescue).map_err(GroundError::from)?;
                if let Some(commit) = kept {
                    let checkout = ground.lane.path().to_owned();
                    self.tell(bundle, What::Rescued { commit, checkout });
                }
                let reset = || ground.lane.reset(&ground.attempt.base);
                self.effects.perform("reset", reset).map_err(GroundError::from)?;
                match self.effects.perform("apply", || ground.lane.apply(written)) {
                    Ok(()) => self.harvest(bundle, ground)?,
                    Err(ApplyError::Lane(source)) => return Err(GroundError::from(source).into()),
                    Err(source) => {
                        let text =
                            format!("The builder's patch cannot be taken: {}\n", chain(&source));
                        let log = self.keep_log(bundle, LOG, &text)?;
                        return Err(DriveError::Patch { log, source });
                    }
                }
            }
        };
        if patch.is_empty() {
            let text = "The builder ended well and changed nothing.\n";
            return Err(DriveError::NoChange { log: self.keep_log(bundle, LOG, text)? });
        }
        Ok((patch, head))
    }

    fn harvest(
        &self,
        bundle: &Bundle,
        ground: &Ground,
    ) -> Result<(Vec<u8>, Option<String>), DriveError> {
        let nested = ground.lane.nested().map_err(GroundError::from)?;
        if !nested.is_empty() {
            let names: Vec<&str> = nested.iter().map(|path| path.as_str()).collect();
            let text = format!(
                "The builder left repositories inside the checkout, which no patch can hold:\n- {}\n",
                names.join("\n- ")
            );
            return Err(DriveError::Nested { log: self.keep_log(bundle, LOG, &text)?, nested });
        }
        let (patch, head) = self.effects.perform("commit", || ground.harvest(&message(bundle)))?;
        Ok((patch, Some(head)))
    }
}
