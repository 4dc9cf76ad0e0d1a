//! The tracks without a person: batches over the lanes, and the delivery of accepted changes.
//!
//! They print nothing to the terminal, which a session may have. What they say is collected, and written by the person's
//! thread between sessions.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::flow_record::FlowRecord;
use crate::notify;
use pdca_driver::{BeatError, PaceLimit, WorkspaceConfig};
use pdca_journal::events::FlowTask;
use pdca_process::Cancel;
use pdca_state::BundleId;
use pdca_workspace::flow::{FlowFacts, FlowHost, FlowStep, NoticeKind, Notification, Notifier};

use super::{Args, output};
use crate::command::run::{DriveArgs, drive_unasked};
use crate::command::subcommand;
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::explain::run::{first_failure, stopped};
use crate::failure::Failure;
use crate::process_env::{ProcessEnv, Terminal};
use crate::report::{Format, render};
use crate::session;
use crate::style::Palette;

/// The most that is kept of what tracks say during one session.
const MAX_KEPT: usize = 1 << 20;

/// The longest wait for a publication that follows an acceptance.
const PATIENCE: Duration = Duration::from_secs(120);

/// The tracks of a flow.
pub(super) struct Tracks<'a> {
    /// The environment without a terminal, which belongs to the person.
    env: ProcessEnv,
    globals: Globals,
    palettes: (Palette, Palette),
    /// For facts. Its configuration is that from the start, so that an edit in the middle does not end a flow.
    looking: Mutex<Context<'a>>,
    scope: Option<BTreeSet<BundleId>>,
    act: bool,
    drive: DriveArgs,
    pub(super) cancel: Cancel,
    /// Absent in a dry run.
    record: Option<FlowRecord>,
    said: Mutex<Vec<u8>>,
    pub(super) notifier: Notifier,
}

impl<'a> Tracks<'a> {
    pub(super) fn new(
        cx: &Context<'a>,
        scope: Option<BTreeSet<BundleId>>,
        args: &Args,
        record: Option<FlowRecord>,
    ) -> Self {
        let notify = cx.workspace().map(|workspace| workspace.config.notify.clone());
        Self {
            env: ProcessEnv {
                // The width stays: what the tracks say is shown on that terminal later.
                terminal: Terminal { width: cx.env.terminal.width, ..Terminal::default() },
                ..cx.env.clone()
            },
            globals: cx.globals.clone(),
            palettes: (cx.out, cx.err),
            looking: Mutex::new(Context::new(cx.env, cx.globals.clone())),
            scope,
            act: args.act,
            drive: args.drive.clone(),
            cancel: Cancel::new(),
            record,
            said: Mutex::default(),
            notifier: Notifier::new(notify.unwrap_or_default()),
        }
    }

    /// Does a step between its two events.
    pub(super) fn step<T>(
        &self,
        task: FlowTask,
        ids: &[BundleId],
        job: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match &self.record {
            Some(record) => record.step(task, ids, job),
            None => job(),
        }
    }

    /// Ends the record of the flow.
    pub(super) fn end(&self) -> Result<(), Failure> {
        self.record.as_ref().map_or(Ok(()), FlowRecord::end)
    }

    /// Takes what the tracks said since the last call.
    pub(super) fn take_said(&self) -> Vec<u8> {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells the command of `[notify]`, and the terminal where it knows how to show it.
    pub(super) fn tell(&self, notice: &Notification) {
        if !self.notifier.tell(notice) {
            return;
        }
        let looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = notify::on_terminal(&looking, notice) {
            self.say(shown.as_bytes());
        }
    }

    fn say(&self, bytes: &[u8]) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(bytes);
        let over = said.len().saturating_sub(MAX_KEPT);
        if over > 0 {
            said.drain(..over);
        }
    }

    /// Returns a context of a track, which has no terminal.
    fn context(&self) -> Context<'_> {
        let mut cx = Context::new(&self.env, self.globals.clone());
        (cx.out, cx.err) = self.palettes;
        cx
    }

    /// Returns the configuration of a batch: at the person's pace, and within what is left of the budget.
    fn site(&self, cx: &Context<'_>) -> Result<WorkspaceConfig, Failure> {
        let config = session::driver_config(cx)?;
        let snapshot = session::snapshot(cx)?;
        let settings = cx.workspace()?.config.flow;
        let pace = snapshot.pace(&settings);
        // The person signs those as well, so they count against the pace of this flow.
        let publish = &cx.workspace()?.config.publish;
        let elsewhere = self.scope.as_ref().map_or(0, |scope| {
            let facts = snapshot.flow_facts(None, &settings, publish);
            facts.unsigned.iter().filter(|id| !scope.contains(*id)).count()
        });
        let elsewhere = u32::try_from(elsewhere).unwrap_or(u32::MAX);
        let pace = pace.cap().map(|max_unsigned| PaceLimit { max_unsigned, elsewhere });
        Ok(WorkspaceConfig { pace, limits: crate::flow_record::left(&config), ..config })
    }

    /// Runs a command line as part of the flow. What it reports goes where progress goes.
    fn command(&self, words: &[&str]) -> Result<Exit, Failure> {
        let cx = self.context();
        let mut err = Saying(self);
        // In this process: after a kill of the flow, a driver in a child would go on unseen (decision 042).
        let response = subcommand(words, &cx, &mut io::sink(), &mut err)?;
        if cx.globals.format() == Format::Text && !cx.globals.quiet {
            render(&response, &cx, &mut err)?;
        }
        response.failure.map_or(Ok(response.exit), Err)
    }

    /// Waits until the sign-off has let these bundles go: what `[signoff] on_accept` names may still be under way.
    fn wait_for_sign_off(&self, ids: &[BundleId]) -> Result<(), Failure> {
        let config = session::driver_config(&self.context())?;
        for id in ids {
            // One that is held for longer is refused by the command, with the holder.
            drop(config.locks().take_within(id, PATIENCE));
        }
        Ok(())
    }

    /// Tells what an exit is worth telling.
    fn tell_exit(&self, exit: Exit, failure: Option<&Failure>, ids: &[BundleId]) {
        if let Some((kind, text)) = notify::of_exit(exit, failure) {
            self.tell(&self.notice(kind, text, ids, "pdca status"));
        }
    }

    fn notice(&self, kind: NoticeKind, text: String, ids: &[BundleId], next: &str) -> Notification {
        let looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        notify::notice(&looking, kind, text, ids, Some(next.to_owned()))
    }
}

/// Collects what a track says.
struct Saying<'t, 'a>(&'t Tracks<'a>);

impl Write for Saying<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.say(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FlowHost for Tracks<'_> {
    type Failure = Failure;

    fn facts(&self, is_building: bool) -> Result<FlowFacts, Failure> {
        let cx = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = cx.workspace()?.config.flow;
        let snapshot = session::snapshot_at_work(&cx)?;
        let publish = &cx.workspace()?.config.publish;
        let mut facts = snapshot.flow_facts(self.scope.as_ref(), &settings, publish);
        if is_building {
            facts.buildable.clear();
        }
        // What cannot be built or delivered is no reason to end without the look back.
        let is_quiet = facts.unsigned.is_empty() && facts.drafts.is_empty();
        // Reading all cycles takes long, and nobody looks back before the rest is done.
        facts.act_due = self.act
            && is_quiet
            && !is_building
            && pdca_workspace::act::has_unreviewed_cycle(&cx.open()?)?;
        Ok(facts)
    }

    fn build(&self) -> Result<(), Failure> {
        let cx = self.context();
        let mut err = Saying(self);
        let site = self.site(&cx)?;
        let scope: Vec<BundleId> = self.scope.iter().flatten().cloned().collect();
        let batched = self.step(FlowTask::Batch, &scope, || {
            drive_unasked(&site, self.scope.as_ref(), &self.drive, &cx, &mut err)
        })?;
        let is_capped = |result: &Result<_, BeatError>| {
            matches!(result, Err(BeatError::Capped { .. } | BeatError::Cost(_)))
        };
        let failure = match &batched.stopped {
            Some(stop) => Some(stopped(stop)),
            None if batched.driven.iter().any(|(_, result)| is_capped(result)) => {
                first_failure(batched)
            }
            None => None,
        };
        match failure {
            None => Ok(()),
            Some(failure) => {
                self.tell_exit(failure.exit, Some(&failure), &[]);
                Err(failure)
            }
        }
    }

    fn deliver(&self, ids: &[BundleId]) -> Result<(), Failure> {
        let after = self.context().workspace()?.config.flow.after_accept;
        let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let names = names.iter().map(String::as_str);
        let mut exits = Vec::new();
        if after.publishes() {
            self.wait_for_sign_off(ids)?;
            // What was accepted is no draft any more.
            let line = std::iter::once("publish").chain(names.clone()).chain(["--ready"]);
            let line: Vec<&str> = line.collect();
            exits.push(self.step(FlowTask::Publish, ids, || self.command(&line))?);
        }
        if after.integrates() {
            // Named changes alone could lack what they stand on; without a scope all that is accepted goes.
            let scoped = names.filter(|_| self.scope.is_some());
            let line = std::iter::once("integrate").chain(scoped);
            let line: Vec<&str> = line.collect();
            exits.push(self.step(FlowTask::Integrate, ids, || self.command(&line))?);
        }
        for exit in exits {
            self.tell_exit(exit, None, ids);
        }
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn needs_you(&self, step: &FlowStep) {
        let (text, ids, next) = output::needs(step);
        self.notifier.forget(NoticeKind::NeedsYou);
        self.tell(&self.notice(NoticeKind::NeedsYou, text, &ids, next));
    }

    fn stop(&self) {
        self.cancel.cancel();
        // Batches and deliveries listen for signals of their own.
        let _sent =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
    }

    fn panicked(&self, said: String) -> Failure {
        Failure::unexpected(format!("a track of the flow panicked: {said}"))
            .hint("what is on disk is whole; the same command goes on")
    }
}
