//! A call of a command: stage, start, judge, and again where that is allowed.
//!
//! # What is in the job directory
//!
//! `bundle/` is the staged view, `prompt.md` the prompt. `try-001/`, `try-002/`, … are the process
//! jobs, one per start. `before.json` is the baseline, the digests of bundle and fix before a try.
//!
//! # One try
//!
//! 1. Wait until the breaker lets the agent be called, so that a limit or a bad key is met once and
//!    not once per lane.
//! 2. Remove the marks `unchanged` and `stalled` of an earlier start, and put `before.json` on
//!    record. A driver that is killed from here on leaves the sign that a comparison is due.
//! 3. Lay the view out anew and let the driver reset the checkout, so that no attempt takes over
//!    what a failed one left.
//! 4. Run the program. The supervisor writes the verdict, so a killed driver loses no result.
//! 5. Compare. Where nothing changed, write the mark, then remove `before.json`: what the driver
//!    itself writes into the bundle after the call is never taken for the leaf's doing.
//! 6. Judge the try by its files alone. A try with a final verdict is never run again: the next
//!    driver judges it again, with the same result and the same count of attempts. A try without
//!    one is run again in its place. The last try that was run owns the view.

use std::io;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use fs_err as fs;
use pdca_process::{Cancel, ChildVerdict, Ending, Obstacle, RunError, Sign};
use tracing::debug;

use crate::{
    attempt::{Flaw, Judgment, judge, last_line},
    breaker::{CallAdmission, Scout},
    call::Call,
    class::{Diagnosis, FailureClass},
    command::{JobLayout, describe},
    error::{LeafError, changes},
    guard::{BaselineDifference, TryBaseline, WatchedPaths},
    outcome::{ErrorLog, Guard, LeafEvent, LeafOutcome, Produced},
    pause::{LongWait, Pauses, WaitDecision},
    protocol::Transcript,
    pulse::{Pulse, load_verdict, stall_mark},
    resume,
    role::Role,
    tail::OutputTail,
};

/// The pause between two looks at whether the first call has its answer.
const LOOK: Duration = Duration::from_millis(100);

/// The pause between two looks at whether a person decided to go on without the agent.
const LOOK_AT_DECISION: Duration = Duration::from_secs(1);

/// A call of a command, from its first try to its result.
pub(crate) struct LeafCall<'a> {
    call: &'a Call<'a>,
    role: Role,
    layout: JobLayout,
    /// The session of an earlier call, to go on in.
    session: Option<&'a str>,
    watched: WatchedPaths<'a>,
}

/// How far a call has come.
struct Progress {
    /// The attempt that is due, from 1.
    attempt: u32,
    of: u32,
    throttled: u32,
    /// The next try goes on in the session of an earlier call.
    resumes: bool,
    pauses: Pauses,
    log: ErrorLog,
}

/// One try that came to a final end.
struct Try {
    verdict: ChildVerdict,
    reused: bool,
    /// What changed while it ran.
    difference: BaselineDifference,
    /// It was the first call of its agent. Held until it was judged, so that nobody follows on a bad key.
    scout: Option<Scout>,
}

impl Try {
    /// Lets others follow: whatever came of this try, the model answered.
    fn is_answered(&self) {
        if let Some(scout) = &self.scout {
            scout.has_answer();
        }
    }
}

/// Who is told, and who may call it off.
struct Watch<'w> {
    report: &'w mut dyn FnMut(LeafEvent),
    cancel: &'w Cancel,
}

impl<'a> LeafCall<'a> {
    /// Opens the call; nothing is started yet.
    pub(crate) fn open(call: &'a Call<'a>) -> Self {
        let role = call.inputs.role();
        let layout = JobLayout::new(call.job);
        let session = call.session.filter(|session| resume::is_name(session));
        let fingerprint = call.fingerprint.filter(|_| role.is_independent());
        let watched = WatchedPaths { bundle: call.inputs.bundle(), fingerprint };
        Self { call, role, layout, session, watched }
    }

    /// Tries until there is a result or no further attempt.
    pub(crate) fn run(
        &self,
        report: &mut dyn FnMut(LeafEvent),
        cancel: &Cancel,
    ) -> Result<LeafOutcome, LeafError> {
        let mut watch = Watch { report, cancel };
        let mut progress = Progress {
            attempt: 1,
            of: attempts(self.call),
            throttled: 0,
            resumes: self.session.is_some(),
            pauses: Pauses::new(&self.call.config.throttled),
            log: ErrorLog::default(),
        };
        for number in 1.. {
            let tried = self.try_once(number, &progress, &mut watch)?;
            let job = self.layout.try_at(number);
            let Progress { attempt, of, .. } = progress;
            debug!(attempt, of, ending = %tried.verdict.ending, reused = tried.reused, "tried");
            let title = format!("{} {attempt} of {of}: {}", self.role, tried.verdict.ending);
            // The difference comes before the judgment: what an independent leaf wrote counts for
            // nothing once the bundle or the fix changed, however good it looks.
            if self.is_void(&tried.difference) {
                progress.log.note(&title, &job);
                let guard = Guard::Sandbox(tried.verdict.held);
                return Err(self.void(tried.difference, Some(guard), progress.log));
            }
            let (judgment, said) = judge(self.call, &self.layout.view(), &job, &tried.verdict)?;
            // Not an attempt and not a failure: `took_up` is asked before the judgment is acted
            // upon, because a lost session would otherwise spend an attempt (decision 036). No further
            // try resumes, whatever came of this one: `prepare` resets the checkout before it, so the
            // session would remember edits that are not there.
            let resumes = std::mem::take(&mut progress.resumes);
            if resumes && !resume::took_up(self.call, &tried.verdict, &judgment, &said) {
                // That the session is gone or has grown too long says nothing about the leaf.
                progress.log.note(&format!("{title}, the session was not resumed"), &job);
                let session = self.session.unwrap_or_default().to_owned();
                (watch.report)(LeafEvent::NotResumed { session });
                continue;
            }
            let flaw = match judgment {
                Judgment::Done(produced) => {
                    // The answer may have come after the last sign of the running leaf, as aider's
                    // count of tokens does.
                    tried.is_answered();
                    let done = self.done(produced, tried, progress);
                    return Ok(LeafOutcome { said: said.message, session: said.session, ..done });
                }
                Judgment::Throttled(found) => {
                    progress.throttled += 1;
                    progress.log.note(&format!("{title}, throttled"), &job);
                    // The pause that followed a reused try was waited for, or cut short, under the
                    // driver that made it. Waiting again would add up with every restart.
                    if !tried.reused {
                        self.pause(&mut progress, found, &mut watch)?;
                    }
                    continue;
                }
                Judgment::Diagnosed(found) => {
                    let Diagnosis { class, evidence, .. } = &found;
                    progress.log.note(&format!("{title}, {class}: {evidence}"), &job);
                    match class {
                        // Both are answers of the model, so the key works and the other lanes need
                        // not wait for a scout.
                        FailureClass::ContextTooLong | FailureClass::Refused => tried.is_answered(),
                        FailureClass::Throttled | FailureClass::Auth | FailureClass::Host => {}
                    }
                    let may_pass = matches!(class, FailureClass::Auth | FailureClass::Host);
                    if tried.reused && may_pass {
                        // That was under an earlier driver; by now it may be mended.
                        continue;
                    }
                    // `diagnosed` records a login that was not accepted while `tried` still holds
                    // the scout. Dropping the scout first would let a waiting lane start on the
                    // same bad key.
                    return Err(self.diagnosed(found, progress.log, &mut watch));
                }
                Judgment::Failed => {
                    progress.log.note(&title, &job);
                    None
                }
                Judgment::Nothing(flaw) => {
                    progress.log.note(&format!("{title}, but {flaw}"), &job);
                    Some(flaw)
                }
            };
            if attempt == of {
                let said = last_words(&said, &job);
                return Err(self.give_up(
                    attempt,
                    flaw,
                    (tried.verdict.ending, said),
                    progress.log,
                ));
            }
            progress.attempt += 1;
        }
        unreachable!("because a call ends long before it was tried four billion times")
    }

    /// Uses the final verdict of this try, or runs it.
    fn try_once(
        &self,
        number: u32,
        progress: &Progress,
        watch: &mut Watch<'_>,
    ) -> Result<Try, LeafError> {
        let tried = match self.load(number)? {
            Some(tried) => tried,
            None => self.start(number, progress, watch)?,
        };
        (watch.report)(LeafEvent::Ended {
            attempt: progress.attempt,
            ending: tried.verdict.ending.clone(),
            held: tried.verdict.held.clone(),
            reused: tried.reused,
        });
        Ok(tried)
    }

    /// A try that came to its end under an earlier driver, if it can be vouched for.
    fn load(&self, number: u32) -> Result<Option<Try>, LeafError> {
        let job = self.layout.try_at(number);
        // Verdicts that are not final, such as `Cancelled`, say nothing about the leaf: it did not
        // come to its own end (decision 003).
        let Some(verdict) = load_verdict(&job).filter(|verdict| verdict.ending.is_final()) else {
            return Ok(None);
        };
        let difference = if self.layout.mark(number).exists() {
            BaselineDifference::default()
        } else if let Some(baseline) = TryBaseline::load(self.call.job, &self.watched)? {
            // The driver died between the verdict and the comparison, which is made up for here.
            self.compare(number, &baseline)?
        } else {
            // Neither compared nor comparable any more: the result cannot be vouched for, so it is not
            // used although it is paid for.
            return Ok(None);
        };
        Ok(Some(Try { verdict, reused: true, difference, scout: None }))
    }

    /// Starts the leaf, watches it, and returns once nothing of it is alive.
    fn start(
        &self,
        number: u32,
        progress: &Progress,
        watch: &mut Watch<'_>,
    ) -> Result<Try, LeafError> {
        if watch.cancel.is_cancelled() {
            return Err(LeafError::Cancelled);
        }
        // For each try: with a session and without one the prompt may differ, and its file is what
        // this try reads. Before the wait, so that a wrong configuration is told at once.
        let session = self.session.filter(|_| progress.resumes);
        let mut spec = describe(self.call, &self.layout, session)?;
        // The baseline is taken after the wait, not before: the wait may take an hour, and a person
        // may edit the brief meanwhile.
        let scout = self.stand_by(progress, watch)?;
        let baseline = self.baseline(number, progress)?;
        (watch.report)(LeafEvent::Attempt { n: progress.attempt, of: progress.of });
        // Laid out for each try, so that an attempt does not take over what a failed one left in
        // the view.
        self.call.inputs.write_to(&self.layout.view())?;
        if let Some(prepare) = self.call.prepare {
            prepare(number).map_err(LeafError::Prepare)?;
        }
        spec.job = self.layout.try_at(number);
        let mut pulse = Pulse::of(self.call.config, &spec.job, watch.cancel);
        // A stall cancels a part of its own. Cancelling `watch.cancel` would end the other lanes
        // too.
        let cancel = pulse.as_ref().map_or(watch.cancel, Pulse::cancel).clone();
        let report = &mut watch.report;
        let mut heard =
            scout.as_ref().map(|_| OutputTail::of(self.call.config.protocol, &spec.job));
        let verdict = pdca_process::run(&spec, &cancel, &mut |sign| {
            if let (Some(scout), Some(tail)) = (&scout, &mut heard) {
                tail.read_on();
                // At the first answer, not at the end: a build takes an hour, and the other lanes
                // wait for this.
                if tail.reader.has_answered() {
                    scout.has_answer();
                    heard = None;
                }
            }
            if let Some(pulse) = &mut pulse {
                pulse.feel();
            }
            match sign {
                Sign::Started { pid } => report(LeafEvent::Started { pid }),
                Sign::Output { bytes, last_line } => report(LeafEvent::Output { bytes, last_line }),
                Sign::Tick => {}
            }
        });
        // A cancellation of the whole run wins over a stall at the same moment: `Stalled` is final
        // and would spend an attempt, `Cancelled` is tried again by the next driver.
        let verdict = match (verdict, pulse) {
            (Ok(verdict), Some(pulse)) if !watch.cancel.is_cancelled() => {
                Ok(pulse.judge(&spec.job, verdict).map_err(LeafError::Job)?)
            }
            (verdict, _) => verdict,
        };
        // Compared even where the run failed or was cancelled: a leaf that was ended half-way may
        // have written too. Where nothing changed, the baseline goes off the record here, so that
        // what the driver itself writes afterwards is not taken for the leaf's doing.
        let difference = self.compare(number, &baseline)?;
        let verdict = self.require_end(verdict)?;
        Ok(Try { verdict, reused: false, difference, scout })
    }

    /// The baseline of a try that is about to be started, on record. One that is on record already
    /// belongs to a try that an earlier driver did not see the end of.
    fn baseline(&self, number: u32, progress: &Progress) -> Result<TryBaseline, LeafError> {
        let baseline = match TryBaseline::load(self.call.job, &self.watched)? {
            Some(baseline) => {
                let difference = baseline.difference(&self.watched)?;
                if self.is_void(&difference) {
                    return Err(self.void(difference, None, progress.log.clone()));
                }
                baseline
            }
            None => TryBaseline::take(self.call.job, &self.watched)?,
        };
        fs::create_dir_all(self.layout.try_at(number)).map_err(LeafError::Job)?;
        // The marks of an earlier start in this place would speak for a run that they have not seen.
        // They go before the new baseline is on record, and all that before the leaf is started.
        remove(&self.layout.mark(number)).map_err(LeafError::Job)?;
        remove(&stall_mark(&self.layout.try_at(number))).map_err(LeafError::Job)?;
        baseline.keep()?;
        Ok(baseline)
    }

    /// Compares after the end of a try; where nothing changed, that is settled for good.
    fn compare(
        &self,
        number: u32,
        baseline: &TryBaseline,
    ) -> Result<BaselineDifference, LeafError> {
        let difference = baseline.difference(&self.watched)?;
        if difference.is_none() {
            // The mark before the removal: after a crash between the two the try still counts as
            // compared. The other order would leave a finished try with neither, and it would be
            // run and paid for again.
            fs::write(self.layout.mark(number), "").map_err(LeafError::Job)?;
            baseline.forget()?;
        }
        Ok(difference)
    }

    fn is_void(&self, difference: &BaselineDifference) -> bool {
        self.role.is_independent() && !difference.is_none()
    }

    /// The verdict of a leaf that came to an end of its own.
    fn require_end(
        &self,
        verdict: Result<ChildVerdict, RunError>,
    ) -> Result<ChildVerdict, LeafError> {
        let role = self.role;
        let verdict = verdict.map_err(|error| match error {
            RunError::NoSandbox { why } => LeafError::NoSandbox { role, why },
            error @ (RunError::NoProgram
            | RunError::NoSupervisor
            | RunError::Job { .. }
            | RunError::Supervisor { .. }) => LeafError::Run(error),
        })?;
        match &verdict.ending {
            Ending::Cancelled => Err(LeafError::Cancelled),
            Ending::NotStarted { kind: Obstacle::NotFound | Obstacle::NotExecutable, why } => {
                Err(LeafError::NotStarted { role, why: why.clone() })
            }
            ending if ending.is_host_fault() => {
                Err(LeafError::Host { role, ending: ending.clone() })
            }
            Ending::Exited(_)
            | Ending::Signaled(_)
            | Ending::TimedOut
            | Ending::OverMemory { .. }
            | Ending::Stalled
            | Ending::NotStarted { .. }
            | Ending::Infra { .. } => Ok(verdict),
        }
    }

    /// Waits while the agent is paused for everybody, or until the first call of it has an answer; refuses where its login is
    /// known not to be accepted.
    fn stand_by(
        &self,
        progress: &Progress,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Scout>, LeafError> {
        let Some(breaker) = self.call.breaker else { return Ok(None) };
        let agent = self.call.agent();
        loop {
            if let Some(said) = breaker.signed_out(agent) {
                let log = progress.log.clone();
                return Err(self.agent_error(FailureClass::Auth, said, log));
            }
            let wait = if let Some(left) = breaker.pause_of(agent) {
                self.require_wanted(progress)?;
                (watch.report)(LeafEvent::Throttled { wait: left });
                self.wait_out(left, progress, watch)?;
                continue;
            } else if self.call.config.protocol.is_text() {
                // Nothing tells whether it was let in.
                return Ok(None);
            } else {
                match breaker.admit(agent) {
                    CallAdmission::Free => return Ok(None),
                    CallAdmission::First(scout) => return Ok(Some(scout)),
                    CallAdmission::Later => LOOK,
                }
            };
            if !watch.cancel.wait(wait) {
                return Err(LeafError::Cancelled);
            }
        }
    }

    /// Waits for the end of a limit, unless a person decides meanwhile to go on without the agent.
    fn wait_out(
        &self,
        pause: Duration,
        progress: &Progress,
        watch: &Watch<'_>,
    ) -> Result<(), LeafError> {
        let mut left = pause;
        while !left.is_zero() {
            let part = left.min(LOOK_AT_DECISION);
            if !watch.cancel.wait(part) {
                return Err(LeafError::Cancelled);
            }
            left -= part;
            self.require_wanted(progress)?;
        }
        Ok(())
    }

    /// Returns an error if a person decided to go on without the agent.
    fn require_wanted(&self, progress: &Progress) -> Result<(), LeafError> {
        let said = self.call.breaker.and_then(|breaker| breaker.left_out(self.call.agent()));
        said.map_or(Ok(()), |said| Err(self.throttled(progress, Some(said))))
    }

    fn throttled(&self, progress: &Progress, said: Option<String>) -> LeafError {
        LeafError::Throttled {
            role: self.role,
            times: progress.throttled,
            waited: progress.pauses.waited(),
            said,
            log: progress.log.clone().into_text(),
        }
    }

    /// Asks a person about a limit that ends later than configured. None where nobody is to be asked.
    fn ask(&self, wait: Duration, said: Option<&String>) -> Option<WaitDecision> {
        let ask = self.call.ask_wait?;
        let agent = self.call.agent();
        if self.call.breaker.is_some_and(|breaker| !breaker.is_first_to_ask(agent, wait)) {
            // The person was asked by another lane; `wait_out` heeds the answer.
            return Some(WaitDecision::Wait);
        }
        let agent = agent.to_owned();
        Some(ask(&LongWait { role: self.role, agent, wait, said: said.cloned() }))
    }

    fn diagnosed(&self, found: Diagnosis, log: ErrorLog, watch: &mut Watch<'_>) -> LeafError {
        let Diagnosis { class, evidence, .. } = found;
        (watch.report)(LeafEvent::Diagnosed { class, evidence: evidence.clone() });
        if let (FailureClass::Auth, Some(breaker)) = (class, self.call.breaker) {
            breaker.sign_out(self.call.agent(), &evidence);
        }
        self.agent_error(class, evidence, log)
    }

    fn agent_error(&self, class: FailureClass, said: String, log: ErrorLog) -> LeafError {
        let agent = self.call.agent().to_owned();
        let mut log = log;
        if log.is_empty() {
            log.line(&format!("{} not started, {class}: {said}", self.role));
        }
        LeafError::Agent { role: self.role, agent, class, said, log: log.into_text() }
    }

    fn pause(
        &self,
        progress: &mut Progress,
        found: Option<Diagnosis>,
        watch: &mut Watch<'_>,
    ) -> Result<(), LeafError> {
        let told = found.as_ref().and_then(|found| found.wait?.as_pause(self.call.clock));
        let said = found.map(|found| found.evidence);
        if let Some(evidence) = said.clone() {
            // Before the pause is chosen: where the wait is longer than allowed the call ends
            // below, and `probe`, which waits for nothing, takes the class from this event.
            (watch.report)(LeafEvent::Diagnosed { class: FailureClass::Throttled, evidence });
        }
        let agent = self.call.agent();
        let since = Instant::now();
        let long = told.filter(|told| progress.pauses.is_long(*told));
        if let (Some(wait), Some(breaker), Some(_)) = (long, self.call.breaker, self.call.ask_wait)
        {
            // Before the question, which may be open for hours: the other lanes wait meanwhile.
            breaker.pause(agent, wait);
        }
        let pause = match long.and_then(|wait| Some((wait, self.ask(wait, said.as_ref())?))) {
            Some((wait, WaitDecision::Wait)) => Some(progress.pauses.agree(wait)),
            Some((_, WaitDecision::Stop)) => return Err(LeafError::Cancelled),
            Some((_, WaitDecision::LeaveOut)) => {
                if let Some(breaker) = self.call.breaker {
                    breaker.leave_out(agent, said.as_deref().unwrap_or("its limit is reached"));
                }
                return Err(self.throttled(progress, said));
            }
            None => progress.pauses.next(told),
        };
        let Some(pause) = pause else { return Err(self.throttled(progress, said)) };
        let pause = match long {
            // The question was open for a part of the pause.
            Some(_) => pause.saturating_sub(since.elapsed()).max(Duration::from_millis(1)),
            None => pause,
        };
        // For the other lanes, which then do not run into the same limit one by one.
        if let Some(breaker) = self.call.breaker {
            breaker.pause(agent, pause);
        }
        (watch.report)(LeafEvent::Throttled { wait: pause });
        self.wait_out(pause, progress, watch)
    }

    fn done(&self, produced: Vec<Produced>, tried: Try, progress: Progress) -> LeafOutcome {
        LeafOutcome {
            role: self.role,
            produced,
            guard: Guard::Sandbox(tried.verdict.held),
            attempts: progress.attempt,
            throttled: progress.throttled,
            duration: tried.verdict.duration,
            reused: tried.reused,
            bundle_changed: tried.difference.files,
            said: None,
            session: None,
            earlier_failures: progress.log.into_option(),
        }
    }

    fn give_up(
        &self,
        attempts: u32,
        flaw: Option<Flaw>,
        (ending, said): (Ending, Option<String>),
        log: ErrorLog,
    ) -> LeafError {
        let (role, log) = (self.role, log.into_text());
        match flaw {
            Some(flaw) => LeafError::NoArtifact { role, attempts, flaw, log },
            None => LeafError::Failed { role, attempts, ending, said, log },
        }
    }

    fn void(
        &self,
        difference: BaselineDifference,
        guard: Option<Guard>,
        mut log: ErrorLog,
    ) -> LeafError {
        let (changed, fix) = (difference.files, difference.fix);
        log.line(&format!("void: {} while it ran", changes(&changed, fix)));
        LeafError::Voided { role: self.role, changed, fix, guard, log: log.into_text() }
    }
}

/// Returns the agent's own last words: its last complaint, else the last line that it printed, else of its last message.
fn last_words(said: &Transcript, job: &Utf8Path) -> Option<String> {
    let one_line = |text: &str| {
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(pdca_process::printable(words.as_bytes()).chars().take(200).collect::<String>())
    };
    let complaint = said.complaints.last().and_then(|complaint| one_line(&complaint.text));
    let printed = || last_line(&pdca_process::read_log(job).ok()?);
    complaint.or_else(printed).or_else(|| one_line(said.message.as_deref()?))
}

/// Returns how many attempts there are. A person who ended a session is not asked again at once.
fn attempts(call: &Call<'_>) -> u32 {
    if call.config.interactive { 1 } else { call.config.retries.saturating_add(1) }
}

fn remove(file: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
