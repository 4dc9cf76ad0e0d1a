//! Shows the progress of a run: one line per event, and on a terminal one live line per lane.
//!
//! The driver works on its own thread and sends events; this thread owns the writer, so the output of
//! several lanes never mixes. Off a terminal there is no live line and no escape sequence.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use pdca_journal::RecoveryAction;
use pdca_journal::events::{
    ActivityChange, Event, EventKind, Halt, Hold, Scope, Step, WarningCode,
};
use pdca_state::{BundleId, CallRecord, CostBasis, Reentry};

use crate::columns;
use crate::session::waits::{WaitQuestions, moment_after};
use crate::style::{Palette, one_line, printable};

/// The interval at which live lines are redrawn.
const REDRAW: Duration = Duration::from_millis(200);

/// A pause from this length on is told with the moment at which it ends.
const NAMED_MOMENT: Duration = Duration::from_secs(10 * 60);

/// The requested amount of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Failures and warnings only.
    Quiet,
    /// One line per step and gate.
    Usual,
    /// Also the output of leaves and gates while they run.
    More,
}

/// Renders events for a person.
#[derive(Debug)]
pub(crate) struct ProgressRenderer {
    palette: Palette,
    detail: Detail,
    live: Option<Screen>,
    width: usize,
    /// The roles whose leaves talk with a person.
    talking: Vec<String>,
    /// One of them has the terminal.
    is_lent: bool,
    /// Questions of leaves to the person at the terminal.
    questions: Option<WaitQuestions>,
}

/// The live lines on a terminal, one per lane in use.
#[derive(Debug, Default)]
struct Screen {
    lines: BTreeMap<(Option<u32>, String), Live>,
    drawn: usize,
}

/// The present activity of one bundle.
#[derive(Debug)]
struct Live {
    text: String,
    sign: String,
    since: Instant,
}

impl ProgressRenderer {
    /// `terminal` allows live lines.
    pub(crate) fn new(palette: Palette, detail: Detail, terminal: bool, width: usize) -> Self {
        let live = terminal && detail != Detail::Quiet;
        let live = live.then(Screen::default);
        Self { palette, detail, live, width, talking: Vec::new(), is_lent: false, questions: None }
    }

    /// Draws nothing while a leaf of one of these roles has the terminal.
    #[must_use]
    pub(crate) fn lending_to(self, talking: Vec<String>) -> Self {
        Self { talking, ..self }
    }

    /// Asks the person at the terminal what leaves want to know.
    #[must_use]
    pub(crate) fn asking(self, questions: WaitQuestions) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Shows the question that is due, and takes the answer to an open one.
    fn converse(&mut self, err: &mut dyn Write) -> io::Result<()> {
        let is_lent = self.is_lent;
        let Some(questions) = self.questions.as_mut().filter(|_| !is_lent) else { return Ok(()) };
        let Some(said) = questions.look(self.palette) else { return Ok(()) };
        self.wipe(err)?;
        err.write_all(said.as_bytes())?;
        err.flush()
    }

    /// Shows events until all senders are gone; `record` sees each of them first.
    pub(crate) fn follow(
        &mut self,
        events: &Receiver<Event>,
        err: &mut dyn Write,
        record: &mut dyn FnMut(&Event) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut is_recorded, mut shown) = (true, Ok(()));
        loop {
            match events.recv_timeout(REDRAW) {
                Ok(event) => {
                    // After a partly written line the file is unreadable, so stop recording.
                    let failed = if is_recorded { record(&event).err() } else { None };
                    is_recorded &= failed.is_none();
                    // A terminal that is gone ends the showing. The events are still taken and recorded.
                    shown = shown.and_then(|()| self.show_recorded(&event, failed.as_ref(), err));
                }
                Err(RecvTimeoutError::Timeout) => shown = shown.and_then(|()| self.draw(err)),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            shown = shown.and_then(|()| self.converse(err));
        }
        shown?;
        self.wipe(err)?;
        err.flush()
    }

    fn show_recorded(
        &mut self,
        event: &Event,
        failed: Option<&io::Error>,
        err: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some(error) = failed {
            self.wipe(err)?;
            let warning = self.palette.warn("warning:");
            let code = self.palette.faint(format!("[{}]", WarningCode::EventsNotStored));
            writeln!(err, "{warning} what happens is no longer recorded: {error} {code}")?;
        }
        self.show(event, err)
    }

    fn show(&mut self, event: &Event, err: &mut dyn Write) -> io::Result<()> {
        self.note(event);
        if let Some(line) = self.line(event) {
            self.wipe(err)?;
            // In one piece: standard error has no buffer, and others may write to the same terminal.
            err.write_all(format!("{line}\n").as_bytes())?;
        }
        self.draw(err)
    }

    /// Updates the live lines.
    fn note(&mut self, event: &Event) {
        if let EventKind::LeafBegan { role, .. } | EventKind::LeafEnded { role, .. } = &event.kind
            && self.talking.contains(role)
        {
            // Live lines would be drawn into the middle of what the leaf shows.
            self.is_lent = matches!(event.kind, EventKind::LeafBegan { .. });
        }
        let Some(screen) = &mut self.live else { return };
        let at = (event.lane, name(&event.scope));
        match ActivityChange::of(&event.kind) {
            ActivityChange::Begins(text) => {
                let live = Live { text, sign: String::new(), since: Instant::now() };
                screen.lines.insert(at, live);
            }
            ActivityChange::Shows(line) => {
                if let Some(live) = screen.lines.get_mut(&at) {
                    live.sign.clone_from(line);
                }
            }
            ActivityChange::Ends => drop(screen.lines.remove(&at)),
            ActivityChange::GoesOn => {}
        }
    }

    /// Returns the permanent line for an event, if it gets one.
    pub(crate) fn line(&self, event: &Event) -> Option<String> {
        let p = self.palette;
        if let EventKind::Notice { text, repeated, .. } = &event.kind {
            return (!repeated).then(|| format!("{} {}", p.warn("warning:"), shown(text)));
        }
        let said = self.words(event)?;
        let name = p.accent(name(&event.scope));
        Some(match event.lane {
            Some(lane) => format!("{}  {name}  {said}", p.faint(format_args!("lane {lane}"))),
            None => format!("{name}  {said}"),
        })
    }

    /// Returns the text for an event, if it gets a line.
    fn words(&self, event: &Event) -> Option<String> {
        if self.detail == Detail::Quiet && !is_grave(&event.kind) {
            return None;
        }
        let p = self.palette;
        Some(match &event.kind {
            EventKind::Warning { text, .. } => format!("{} {}", p.warn("warning"), shown(text)),
            EventKind::Failed { error } => format!("{} {}", p.bad("failed"), shown(error)),
            EventKind::Drifted { outside } => {
                let paths = drifted(outside);
                format!("{} changes {paths}, which `Touches` does not name", p.warn("drifts"))
            }
            EventKind::Rescued { commit, checkout } => {
                format!("{} unfinished work is kept as {commit} in {checkout}", p.warn("rescued"))
            }
            EventKind::Integration { text, step: _ } => shown(text),
            EventKind::FlowBegan { .. } | EventKind::FlowEnded { .. } => {
                return self.flow_step(&event.kind);
            }
            EventKind::Dispatched { .. } if event.lane.is_none() && self.detail != Detail::More => {
                return None;
            }
            EventKind::Dispatched { resumed: true, .. } => "resumed".to_owned(),
            EventKind::Dispatched { chain: 0 | 1, .. } => "starts".to_owned(),
            EventKind::Dispatched { chain, .. } => {
                format!("{:<9} {}", "starts", p.faint(format_args!("first of a chain of {chain}")))
            }
            EventKind::OnHost { host, job, resumed } => on_host(p, host, job, *resumed),
            EventKind::Held { by } => held(p, by),
            EventKind::Recovered { was, action } => {
                format!("{} {}", p.warn("recovered"), found(was, action))
            }
            EventKind::Freed { by } => format!("{} {by} is complete", p.good("freed    ")),
            EventKind::Reopened => format!("{} a person sent it back to Do", p.warn("reopened ")),
            EventKind::Finished { step, duration_ms, .. } => match step {
                // Each row has a line of its own.
                Step::Gate | Step::Halt(_) => return None,
                Step::Close
                | Step::Build
                | Step::Review
                | Step::Assemble
                | Step::SendBack
                | Step::Archive(_) => {
                    let done = format!("{:<9}", done_word(*step));
                    format!("{} {}", p.good(done), took(*duration_ms))
                }
            },
            EventKind::GateEnded {
                rule_id,
                result,
                evidence,
                gating,
                reused,
                duration_ms,
                proof: _,
            } => {
                let result = self.result(result, *gating);
                let kept = if *reused { ", verdict kept from before" } else { "" };
                let evidence = one_line(evidence, 60);
                let gap = if evidence.is_empty() { "" } else { "  " };
                format!("gate      {rule_id}  {result}{gap}{evidence} {}{kept}", took(*duration_ms))
            }
            EventKind::LeafEnded { role, ending, guard, reused } => {
                let kept = if *reused { ", kept from before" } else { "" };
                format!("{role:<9} {ending} · {guard}{kept}")
            }
            EventKind::LeafRecorded { facts } => return recorded(facts),
            EventKind::LeafThrottled { role, wait_ms } => {
                let wait = Duration::from_millis(*wait_ms);
                let moment = if wait < NAMED_MOMENT {
                    String::new()
                } else {
                    format!(", at {}", moment_after(event.at, wait))
                };
                format!("{} {role} again in {}{moment}", p.warn("throttled"), span(wait))
            }
            EventKind::LeafBegan { role, attempt } if *attempt > 1 => {
                format!("{role:<9} attempt {attempt}")
            }
            EventKind::Halted { halt } => self.halted(*halt),
            EventKind::Checkout { path, base } if self.detail == Detail::More => {
                format!("{:<9} {path} at {base}", "checkout")
            }
            EventKind::Hydrated { files } if self.detail == Detail::More => {
                format!("{:<9} {files} files", "hydrated")
            }
            EventKind::Alive { what, line }
                if self.detail == Detail::More && self.live.is_none() =>
            {
                format!("{} {what}: {line}", p.faint("…"))
            }
            EventKind::Began { .. }
            | EventKind::Checkout { .. }
            | EventKind::Hydrated { .. }
            | EventKind::GateBegan { .. }
            | EventKind::LeafBegan { .. }
            | EventKind::Alive { .. }
            | EventKind::Notice { .. } => return None,
        })
    }

    fn result(&self, result: &str, gating: bool) -> String {
        match (result, gating) {
            ("pass", _) => self.palette.good("✓ pass").to_string(),
            ("fail", true) => self.palette.bad("✗ fail").to_string(),
            ("fail", false) => self.palette.warn("✗ fail (advisory)").to_string(),
            (other, _) => self.palette.warn(format_args!("? {other}")).to_string(),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the caller has the steps of a flow only")]
    fn flow_step(&self, kind: &EventKind) -> Option<String> {
        Some(match kind {
            EventKind::FlowBegan { task, bundles } => {
                format!("{} begins{}", task.words(), listed(bundles))
            }
            EventKind::FlowEnded { task, error: None, duration_ms, .. } => {
                format!("{} ended {}", task.words(), took(*duration_ms))
            }
            EventKind::FlowEnded { task, error: Some(error), .. } => {
                format!("{} {}: {}", task.words(), self.palette.bad("failed"), shown(error))
            }
            _ => return None,
        })
    }

    fn halted(&self, halt: Halt) -> String {
        let p = self.palette;
        match halt {
            Halt::AwaitingSignoff => p.strong("waits for sign-off").to_string(),
            Halt::Unplanned => p.warn("waits for a brief").to_string(),
            Halt::Complete => p.good("complete").to_string(),
            Halt::Resolved => p.faint("resolved in the tracker").to_string(),
            Halt::Discontinued => p.faint("discontinued").to_string(),
        }
    }

    fn draw(&mut self, err: &mut dyn Write) -> io::Result<()> {
        self.wipe(err)?;
        // A line that is drawn again would tear what a person types.
        let is_open = self.questions.as_ref().is_some_and(WaitQuestions::is_open);
        let is_lent = self.is_lent || is_open;
        let Some(screen) = self.live.as_mut().filter(|_| !is_lent) else { return Ok(()) };
        for ((lane, name), live) in &screen.lines {
            let passed = span(live.since.elapsed());
            let lane = lane.map_or_else(String::new, |lane| format!("lane {lane}  "));
            let now = format!("{lane}{name}  {}  {passed}  {}", live.text, live.sign);
            // A line as wide as the terminal may wrap, and then `wipe` would go up too few rows.
            let now = columns::cut(&one_line(&now, usize::MAX), self.width.saturating_sub(1));
            writeln!(err, "{now}")?;
        }
        screen.drawn = screen.lines.len();
        err.flush()
    }

    fn wipe(&mut self, err: &mut dyn Write) -> io::Result<()> {
        let Some(screen) = &mut self.live else { return Ok(()) };
        for _ in 0..std::mem::take(&mut screen.drawn) {
            write!(err, "\x1b[1A\x1b[2K")?;
        }
        Ok(())
    }
}

fn held(p: Palette, by: &[Hold]) -> String {
    let by: Vec<String> = by.iter().map(|hold| format!("{} ({})", hold.id, hold.why)).collect();
    format!("{} {}", p.warn("held by  "), by.join(", "))
}

fn on_host(p: Palette, host: &str, job: &str, resumed: bool) -> String {
    let how = if resumed { "found on" } else { "on" };
    format!("{how:<9} {host} {}", p.faint(job))
}

/// Returns the text for the record of a call: its tokens and its cost, as far as they are known.
fn recorded(facts: &CallRecord) -> Option<String> {
    let used = facts.usage.and_then(crate::cost::usage);
    let cost = facts.cost.map(|cost| match facts.cost_basis {
        Some(CostBasis::Price | CostBasis::PerCall) => format!("about {cost}"),
        Some(CostBasis::Told) | None => cost.to_string(),
    });
    let known: Vec<String> = [used, cost].into_iter().flatten().collect();
    (!known.is_empty()).then(|| format!("{:<9} {}", facts.role, known.join(" · ")))
}

/// Returns the text for what a driver before left.
fn found(was: &str, action: &str) -> String {
    // Only a driver that died leaves a bundle in this phase.
    let ended = if was == "running" { "died" } else { "stopped" };
    let action = known_action(action).map_or(action, |action| decided(action));
    format!("was {was} when its driver {ended}: {action}")
}

fn listed(bundles: &[BundleId]) -> String {
    let ids: Vec<&str> = bundles.iter().map(BundleId::as_str).collect();
    if ids.is_empty() { String::new() } else { format!(": {}", ids.join(", ")) }
}

/// Returns the name at the beginning of a line.
fn name(scope: &Scope) -> String {
    match scope {
        Scope::Workspace => "workspace".to_owned(),
        Scope::Bundle(id) => id.dir_name(),
        Scope::Integration { .. } => "integrate".to_owned(),
        Scope::Base { .. } => "base".to_owned(),
    }
}

/// Returns whether an event is shown even with `--quiet`.
fn is_grave(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Warning { .. }
            | EventKind::Failed { .. }
            | EventKind::Drifted { .. }
            | EventKind::Rescued { .. }
    )
}

/// Escapes a text from outside onto one line, because a file name could contain a line that looks like ours.
fn shown(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Lists the first undeclared paths of a change.
fn drifted(outside: &[String]) -> String {
    let first: Vec<String> = outside.iter().take(3).map(|path| shown(path)).collect();
    let more = outside.len().saturating_sub(first.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

fn done_word(step: Step) -> &'static str {
    match step {
        Step::Halt(_) => "halted",
        Step::Close => "closed",
        Step::Build => "built",
        Step::Gate => "gated",
        Step::Review => "reviewed",
        Step::Assemble => "assembled",
        Step::SendBack => "sent back to Do by itself",
        Step::Archive(Reentry::Do) => "archived, back to Do",
        Step::Archive(Reentry::Plan) => "archived, back to Plan",
    }
}

/// Makes the event for a bundle that was taken over from a driver that ended.
pub(crate) fn recovered(was: &str, action: RecoveryAction) -> EventKind {
    let action = serde_json::to_value(action).unwrap_or_default();
    let action = action.as_str().unwrap_or_default().to_owned();
    EventKind::Recovered { was: was.to_owned(), action }
}

/// Parses the action of a recorded event; `None` if a newer version wrote it.
fn known_action(name: &str) -> Option<RecoveryAction> {
    serde_json::from_value(name.into()).ok()
}

/// Describes the action for a bundle whose driver died.
pub(crate) fn decided(action: RecoveryAction) -> &'static str {
    match action {
        RecoveryAction::Noop => "nothing to do",
        RecoveryAction::Launch => "it is started",
        RecoveryAction::Reclaim => "it is started again",
        RecoveryAction::MarkInterrupted => "the attempt was cut short, and goes again",
        RecoveryAction::AwaitRunner => "what still runs in its lane is ended first",
        RecoveryAction::BlockRecovery => "a person has to look at it",
        RecoveryAction::MarkAbandoned => "the run gives it up",
        RecoveryAction::MarkCleaned => "the run is done with it",
        RecoveryAction::AwaitHuman => "it waits for a person",
        RecoveryAction::AlertNoop => "it is not certain that nothing runs, so nothing is touched",
    }
}

fn took(millis: u64) -> String {
    format!("({})", span(Duration::from_millis(millis)))
}

/// Formats a duration.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdca_journal::events::{EventStream, RedEvidence};

    fn shown(detail: Detail, terminal: bool, events: Vec<EventKind>) -> String {
        let (to, from) = crossbeam_channel::unbounded();
        let stream = EventStream::new(jiff::Timestamp::now, move |event| to.send(event).unwrap());
        for kind in events {
            stream.emit(Scope::Bundle("7".parse().unwrap()), None, kind);
        }
        drop(stream);
        let mut err = Vec::new();
        let mut seen = 0;
        ProgressRenderer::new(Palette::PLAIN, detail, terminal, 80)
            .follow(&from, &mut err, &mut |_| {
                seen += 1;
                Ok(())
            })
            .unwrap();
        String::from_utf8(err).unwrap()
    }

    fn gate(result: &str, gating: bool) -> EventKind {
        EventKind::GateEnded {
            rule_id: "T3-tests".into(),
            result: result.into(),
            evidence: "12 passed".into(),
            proof: RedEvidence::default(),
            gating,
            reused: false,
            duration_ms: 1500,
        }
    }

    #[test]
    fn no_name_of_a_file_forges_a_line_or_drives_the_terminal() {
        let forged = "a\nissue_8  landed\u{1b}[2J".to_owned();
        let text = shown(
            Detail::Usual,
            false,
            vec![
                EventKind::Drifted { outside: vec![forged.clone()] },
                EventKind::warning(WarningCode::Other, forged.clone()),
                EventKind::notice(WarningCode::Other, forged.clone()),
                EventKind::Failed { error: forged },
            ],
        );
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains("\nissue_8"), "{text}");
    }

    #[test]
    fn a_record_that_fails_is_told_once_and_the_rest_is_shown() {
        let (to, from) = crossbeam_channel::unbounded();
        let stream = EventStream::new(jiff::Timestamp::now, move |event| to.send(event).unwrap());
        for _ in 0..3 {
            let gate = gate("pass", true);
            stream.emit(Scope::Bundle("7".parse().unwrap()), None, gate);
        }
        drop(stream);
        let mut err = Vec::new();
        let mut broken = |_: &Event| Err(io::ErrorKind::BrokenPipe.into());
        let mut progress = ProgressRenderer::new(Palette::PLAIN, Detail::Usual, false, 80);
        progress.follow(&from, &mut err, &mut broken).unwrap();
        let text = String::from_utf8(err).unwrap();
        assert_eq!(text.matches("no longer recorded: broken pipe").count(), 1, "{text}");
        assert_eq!(text.matches("T3-tests").count(), 3, "{text}");
    }

    #[test]
    fn after_a_record_failed_nothing_is_added_to_it_and_without_a_terminal_all_is_recorded() {
        /// A terminal that is gone.
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let followed = |err: &mut dyn Write, fails: bool| {
            let (to, from) = crossbeam_channel::unbounded();
            let stream =
                EventStream::new(jiff::Timestamp::now, move |event| to.send(event).unwrap());
            for _ in 0..3 {
                stream.emit(Scope::Bundle("7".parse().unwrap()), None, gate("pass", true));
            }
            drop(stream);
            let mut asked = 0;
            let mut record = |_: &Event| {
                asked += 1;
                if fails { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            };
            let mut progress = ProgressRenderer::new(Palette::PLAIN, Detail::Usual, false, 80);
            let ended = progress.follow(&from, err, &mut record).is_ok();
            (asked, ended)
        };
        assert_eq!(followed(&mut Vec::new(), true), (1, true));
        assert_eq!(followed(&mut Gone, false), (3, false));
    }

    #[test]
    fn off_a_terminal_each_fact_is_a_plain_line() {
        let text = shown(
            Detail::Usual,
            false,
            vec![
                EventKind::Began { step: Step::Gate, from: pdca_state::State::Built },
                EventKind::GateBegan { rule_id: "T3-tests".into(), k: 1, n: 2 },
                gate("pass", true),
                gate("fail", false),
                EventKind::Halted { halt: Halt::AwaitingSignoff },
            ],
        );
        insta::assert_snapshot!(text, @r"
        issue_7  gate      T3-tests  ✓ pass  12 passed (1.5 s)
        issue_7  gate      T3-tests  ✗ fail (advisory)  12 passed (1.5 s)
        issue_7  waits for sign-off
        ");
    }

    #[test]
    fn quiet_still_tells_what_went_wrong() {
        let text = shown(
            Detail::Quiet,
            true,
            vec![
                gate("pass", true),
                EventKind::warning(WarningCode::NoGate, "nothing real was checked"),
                EventKind::Failed { error: "the builder failed".into() },
            ],
        );
        insta::assert_snapshot!(text, @r"
        issue_7  warning nothing real was checked
        issue_7  failed the builder failed
        ");
    }

    #[test]
    fn what_is_true_of_the_whole_workspace_is_said_once() {
        let notice = || EventKind::notice(WarningCode::NoGate, "no gate is configured");
        let text = shown(Detail::Usual, false, vec![notice(), notice()]);
        assert_eq!(text, "warning: no gate is configured\n");
    }

    #[test]
    fn a_terminal_gets_a_live_line_that_is_wiped_before_a_line_that_stays() {
        let text = shown(
            Detail::Usual,
            true,
            vec![
                EventKind::GateBegan { rule_id: "T3-tests".into(), k: 1, n: 2 },
                gate("pass", true),
                EventKind::Halted { halt: Halt::AwaitingSignoff },
            ],
        );
        assert!(text.starts_with("issue_7  gate 1/2 T3-tests  "), "{text:?}");
        let (_, after) = text.split_once('\n').expect("the live line ends");
        assert!(after.starts_with("\u{1b}[1A\u{1b}[2K"), "{text:?}");
        assert!(text.ends_with("issue_7  waits for sign-off\n"), "{text:?}");
    }

    #[test]
    fn a_live_line_of_letters_with_two_columns_fits_into_the_terminal() {
        let text = shown(
            Detail::Usual,
            true,
            vec![EventKind::GateBegan { rule_id: "検".repeat(60), k: 1, n: 2 }],
        );
        let live = text.lines().find(|line| line.contains('検')).expect("it is drawn");
        assert!(columns::width(live) < 80, "{live}");
    }

    #[test]
    fn spans_are_short_at_every_size() {
        let shown: Vec<String> =
            [0, 900, 1_500, 61_000, 3_725_000].map(|ms| span(Duration::from_millis(ms))).into();
        assert_eq!(shown, ["0 ms", "900 ms", "1.5 s", "1 min 01 s", "1 h 02 min"]);
    }
}
