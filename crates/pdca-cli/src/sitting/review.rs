//! `pdca review`: one card after the other, one key per decision.

use std::io::Write;
use std::time::Duration;

use pdca_state::{Bundle, BundleId};
use pdca_workspace::review::{
    Card, CardSource, Decision, DecisionOutcome, KEYS, Prompt, ReviewSession, SessionStep, Signing,
    UNDO_WINDOW, decide, waiting,
};
use pdca_workspace::snapshot::WorkspaceSnapshot;
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::explain::decision::explain;
use crate::failure::Failure;
use crate::render;
use crate::render::card::short_lines;
use crate::render::publish::PublishReport;
use crate::report::{Format, Nothing, Report, Response};
use crate::sitting::keyboard::{self, Keyboard, Pressed};
use crate::sitting::publication::publish_accepted;
use crate::sitting::signing::{SignoffSignature, with_signing};
use crate::sitting::{aside, pager};
use crate::style::printable;
use crate::{faults, session};

/// The longest wait for a key while nothing is pending.
const IDLE: Duration = Duration::from_secs(3600);
/// The lines of a terminal that does not tell.
const LINES: usize = 24;

/// What is to be reviewed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SittingRequest<'a> {
    /// The bundles; all that wait if empty.
    pub(crate) ids: &'a [IdArg],
    /// The name of the person who decides.
    pub(crate) by: Option<&'a str>,
}

/// The end of a sitting.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SittingReport {
    /// What was recorded, in order.
    recorded: Vec<DecisionOutcome>,
    /// The number of bundles that still wait for sign-off.
    left: usize,
    next: Option<String>,
    /// What followed the acceptances, where `[signoff] on_accept` says so.
    published: Option<PublishReport>,
}

impl Report for SittingReport {
    const KIND: &'static str = "review";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(published) = &self.published {
            published.text(cx, out)?;
        }
        writeln!(out, "{} decided, {} left", self.recorded.len(), self.left)?;
        if let Some(next) = &self.next {
            writeln!(out, "next: {}", cx.out.accent(next))?;
        }
        Ok(())
    }
}

/// Goes through the bundles with the person at the terminal.
pub(crate) fn review(
    request: SittingRequest<'_>,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    require_terminal(cx)?;
    let named = cx.require_bundles(request.ids)?;
    let snapshot = session::snapshot_at_work(cx)?;
    let ids: Vec<BundleId> = if named.is_empty() {
        waiting(&snapshot).iter().map(|entry| entry.id.clone()).collect()
    } else {
        named.iter().map(|bundle| bundle.id().clone()).collect()
    };
    if ids.is_empty() {
        return Nothing::to_do("nothing waits for sign-off", err);
    }
    let signature = SignoffSignature::of(request.by, cx)?;
    let recorded = with_signing(cx, &signature, |signing| {
        let sitting = Sitting {
            keyboard: Keyboard::open()?,
            session: ReviewSession::new(ids, faults::undo_window(cx.env, UNDO_WINDOW)),
            cx,
            signing,
            snapshot,
            out,
            card: None,
            recorded: Vec::new(),
            is_ending: false,
        };
        sitting.run()
    })?;
    concluded(recorded, cx, err)
}

/// Reports the end of a sitting. What follows its acceptances is done now: the person decided without waiting for a forge.
fn concluded(
    recorded: Vec<DecisionOutcome>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let root = &cx.workspace()?.bundle_root;
    let accepted = recorded.iter().filter(|outcome| outcome.is_acceptance());
    let accepted: Vec<Bundle> = accepted.map(|outcome| root.bundle(outcome.id())).collect();
    let published = if accepted.is_empty() { None } else { publish_accepted(&accepted, cx, err)? };
    // What is published is merged on the forge.
    let is_integrated = !accepted.is_empty() && published.is_none();
    let next = is_integrated.then(|| cx.typed("pdca integrate"));
    let exit = published.as_ref().map_or(Exit::Done, PublishReport::exit_after_decisions);
    let left = waiting(&session::snapshot(cx)?).len();
    Ok(Response::new(SittingReport { recorded, left, next, published }, exit))
}

/// A review needs a person: what a script can do instead is named.
fn require_terminal(cx: &Context<'_>) -> Result<(), Failure> {
    let terminal = &cx.env.terminal;
    if terminal.stdin && terminal.stdout && cx.globals.format() != Format::Json {
        return Ok(());
    }
    Err(Failure::usage("a review needs a terminal").hint(
        "without one: `pdca queue` lists what waits, `pdca show <id>` shows it, and \
         `pdca signoff <id>… accept | iterate-do | iterate-plan | discontinue --note \"…\"` decides",
    ))
}

/// One sitting.
struct Sitting<'a> {
    // First, so that the terminal is put back before anything else is dropped.
    keyboard: Keyboard,
    session: ReviewSession,
    cx: &'a Context<'a>,
    signing: &'a Signing<'a>,
    snapshot: WorkspaceSnapshot,
    out: &'a mut dyn Write,
    /// The card that is shown.
    card: Option<Card>,
    recorded: Vec<DecisionOutcome>,
    /// The person wants to quit, and something is pending.
    is_ending: bool,
}

impl Sitting<'_> {
    /// Returns what was recorded. The terminal is in its usual mode by then.
    fn run(mut self) -> Result<Vec<DecisionOutcome>, Failure> {
        self.show()?;
        loop {
            self.record_due()?;
            let is_over = self.is_ending || self.session.current().is_none();
            let due = self.session.next_due();
            if is_over && due.is_none() {
                break;
            }
            // A millisecond more than is left, so that the decision is due when the wait is over.
            let patience = due.map_or(IDLE, |due| {
                due.saturating_sub(self.keyboard.now()) + Duration::from_millis(1)
            });
            match self.keyboard.key(patience)? {
                Pressed::Nothing => {}
                Pressed::End => return Err(self.interrupted()),
                Pressed::Enter if is_over => {
                    for decision in self.session.confirm() {
                        self.record(&decision)?;
                    }
                }
                Pressed::Continued | Pressed::Enter => self.show()?,
                Pressed::Escape => self.press('\u{1b}')?,
                Pressed::Key(key) => self.press(key)?,
            }
        }
        Ok(self.recorded)
    }

    fn press(&mut self, key: char) -> Result<(), Failure> {
        faults::panic_at_key(self.cx.env, key);
        let now = self.keyboard.now();
        let step = self.session.press(key, self.card.as_ref(), now);
        self.carry_out(step)
    }

    fn carry_out(&mut self, step: SessionStep) -> Result<(), Failure> {
        match step {
            SessionStep::Show => self.show(),
            SessionStep::Say(text) => self.say(&text),
            SessionStep::AskItem(number) => self.ask_item(number),
            SessionStep::AskLine(prompt) => self.ask_line(prompt),
            SessionStep::Diff => self.diff(),
            SessionStep::Log => self.log(),
            SessionStep::Shell => self.shell(),
            SessionStep::EditNote => self.edit_note(),
            SessionStep::Whole => self.whole(),
            SessionStep::Help => self.help(),
            SessionStep::Decided(decision) => {
                let command = self.cx.typed(&decision.command_line());
                let undo = self.cx.out.faint("  # `u` undoes it for 5 s");
                writeln!(self.out, "{}{undo}", self.cx.out.accent(printable(&command)))?;
                self.show()
            }
            SessionStep::Undone(decision) => {
                // There is a card to decide again, so `q` no longer holds.
                self.is_ending = false;
                self.say(&format!("undone, nothing was recorded: {}", decision.command_line()))?;
                self.show()
            }
            SessionStep::Quit => {
                self.is_ending = true;
                self.show_end()
            }
        }
    }

    /// Shows the present card, or what is still pending at the end.
    fn show(&mut self) -> Result<(), Failure> {
        let Some(id) = self.session.current().cloned() else {
            self.card = None;
            return self.show_end();
        };
        let (config, snapshot) = (Some(self.signing.config), &self.snapshot);
        let card = Card::load(CardSource { snapshot, config }, &self.bundle(&id));
        let card = match card {
            Ok(card) => card,
            Err(error) => {
                self.complain(&error.into())?;
                self.session.skip();
                return self.show();
            }
        };
        let (place, all) = self.session.place();
        let width = self.width();
        let rule = format!("── {place} of {all} ");
        let rule = format!("{rule}{}", "─".repeat(width.saturating_sub(rule.chars().count())));
        writeln!(self.out, "{}", self.cx.out.faint(rule))?;
        let most = keyboard::height().unwrap_or(LINES).saturating_sub(3).max(8);
        for line in short_lines(&card, self.cx.out, width, most) {
            writeln!(self.out, "{line}")?;
        }
        let note = if self.session.note().is_some() { " [note]" } else { "" };
        let keys = "a accept  i iterate  p plan  x discontinue  d diff  l logs  t try  ? keys";
        writeln!(self.out, "{}{note}", self.cx.out.faint(keys))?;
        self.out.flush()?;
        self.card = Some(card);
        Ok(())
    }

    /// Shows what is pending, where nothing else is to be decided.
    fn show_end(&mut self) -> Result<(), Failure> {
        let pending = self.session.pending().count();
        if pending > 0 {
            let decisions = if pending == 1 { "decision is" } else { "decisions are" };
            self.say(&format!(
                "{pending} {decisions} recorded in 5 s; Enter records at once, `u` undoes the last"
            ))?;
        }
        Ok(())
    }

    fn ask_item(&mut self, number: usize) -> Result<(), Failure> {
        let items = self.card.iter().flat_map(|card| &card.items);
        let text = items.filter(|item| item.number == number).map(|item| item.text.clone()).next();
        let text =
            crate::style::one_line(&text.unwrap_or_default(), self.width().saturating_sub(28));
        let keys = self.cx.out.faint("y ticks it, n leaves it");
        writeln!(self.out, " {number} [ ] {text}  {keys}")?;
        Ok(self.out.flush()?)
    }

    fn ask_line(&mut self, prompt: Prompt) -> Result<(), Failure> {
        let question = match &prompt {
            Prompt::Note { choice, needed: true } => format!("{}: why? ", choice.word()),
            Prompt::Note { choice, needed: false } => {
                format!("{}: note for the next attempt (Enter: none): ", choice.word())
            }
            Prompt::Override { rows } => {
                format!(
                    "red: {}. Reason to accept it nevertheless (Enter: do not): ",
                    rows.join(", ")
                )
            }
        };
        write!(self.out, "{}", printable(&question))?;
        self.out.flush()?;
        let Some(line) = self.keyboard.line()? else {
            // Ctrl-D leaves the line and nothing else. If the terminal is gone this cannot be shown, and the next look for
            // a key ends the sitting with what is pending.
            drop(writeln!(self.out, "\nnothing was decided").and_then(|()| self.out.flush()));
            return Ok(());
        };
        let Some(card) = self.card.clone() else { return Ok(()) };
        let now = self.keyboard.now();
        let step = self.session.answer(prompt, &line, &card, now);
        self.carry_out(step)
    }

    fn diff(&mut self) -> Result<(), Failure> {
        let Some(bundle) = self.shown() else { return Ok(()) };
        let change = match render::change::present(self.cx, &bundle) {
            Ok(change) => change,
            Err(failure) => return self.complain(&failure),
        };
        let cx = self.cx;
        if !self.keyboard.lend(|| Ok(render::change::page(&change, cx)))? {
            self.out.write_all(render::change::coloured(&change, cx.out).as_bytes())?;
        }
        Ok(self.out.flush()?)
    }

    fn log(&mut self) -> Result<(), Failure> {
        let Some(card) = &self.card else { return Ok(()) };
        match aside::log_text(card) {
            Ok(text) => self.page(&text),
            Err(failure) => self.complain(&failure),
        }
    }

    fn whole(&mut self) -> Result<(), Failure> {
        let Some(card) = &self.card else { return Ok(()) };
        let text = aside::card_text(self.cx, card, self.width());
        self.page(&text)
    }

    fn page(&mut self, text: &str) -> Result<(), Failure> {
        let cx = self.cx;
        if !self.keyboard.lend(|| Ok(pager::page(cx, text.as_bytes())))? {
            self.out.write_all(text.as_bytes())?;
        }
        Ok(self.out.flush()?)
    }

    fn shell(&mut self) -> Result<(), Failure> {
        let Some(bundle) = self.shown() else { return Ok(()) };
        let (cx, config, out) = (self.cx, self.signing.config, &mut *self.out);
        match self.keyboard.lend(|| Ok(aside::open_shell(cx, config, &bundle, out)))? {
            Ok(()) => self.show(),
            Err(failure) => self.complain(&failure),
        }
    }

    fn edit_note(&mut self) -> Result<(), Failure> {
        let Some(id) = self.card.as_ref().map(|card| card.id.clone()) else { return Ok(()) };
        let note = self.session.note().unwrap_or_default().to_owned();
        let cx = self.cx;
        match self.keyboard.lend(|| Ok(aside::edit_note(cx, &id, &note)))? {
            Ok(note) => {
                self.session.set_note(&note);
                self.show()
            }
            Err(failure) => self.complain(&failure),
        }
    }

    fn help(&mut self) -> Result<(), Failure> {
        for (key, what) in KEYS {
            writeln!(self.out, "  {:<6} {what}", self.cx.out.strong(key))?;
        }
        Ok(self.out.flush()?)
    }

    fn record_due(&mut self) -> Result<(), Failure> {
        for decision in self.session.due(self.keyboard.now()) {
            self.record(&decision)?;
        }
        Ok(())
    }

    /// Records a decision. One that is refused is said, and its card comes again.
    fn record(&mut self, decision: &Decision) -> Result<(), Failure> {
        let bundle = self.bundle(&decision.id);
        match decide(self.signing, &bundle, decision) {
            Ok(outcome) => {
                let state = match &outcome {
                    DecisionOutcome::Decided(decided) => decided.state.as_str(),
                    DecisionOutcome::Cleared(_) => "cleared",
                };
                self.recorded.push(outcome);
                self.say(&format!("recorded: {} is {state}", decision.id))
            }
            Err(error) => {
                self.complain(&explain(error, &bundle))?;
                self.session.put_back(&decision.id);
                self.say(&format!("not recorded: {}; its card comes again", decision.id))?;
                // There is a card to decide again, so `q` no longer holds.
                let was_ending = std::mem::take(&mut self.is_ending);
                // At the end of the list no card is shown, and the one that was put back is the next.
                if was_ending || self.card.is_none() { self.show() } else { Ok(()) }
            }
        }
    }

    fn interrupted(&self) -> Failure {
        let failure = aside::interrupted(self.cx, self.session.pending(), "pdca review");
        let accepted = self.recorded.iter().filter(|outcome| outcome.is_acceptance());
        let ids: Vec<&str> = accepted.map(|outcome| outcome.id().as_ref()).collect();
        let config = self.cx.workspace().map(|workspace| &workspace.config.signoff);
        if ids.is_empty() || config.map_or(true, |signoff| signoff.on_accept.is_empty()) {
            return failure;
        }
        // Nothing more is begun after a signal.
        let command = self.cx.typed(&format!("pdca signoff {} accept", ids.join(" ")));
        failure.detail(format!("accepted, and not published yet: `{command}`"))
    }

    fn bundle(&self, id: &BundleId) -> Bundle {
        self.signing.config.dirs.bundles.bundle(id)
    }

    fn shown(&self) -> Option<Bundle> {
        self.card.as_ref().map(|card| self.bundle(&card.id))
    }

    fn width(&self) -> usize {
        // A terminal may tell the width 0.
        self.cx.env.terminal.width.map_or(80, usize::from).clamp(40, 200)
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.out, "{}", printable(text))?;
        Ok(self.out.flush()?)
    }

    fn complain(&mut self, failure: &Failure) -> Result<(), Failure> {
        failure.render(self.cx.out, &self.cx.env.cwd, &mut self.out)?;
        Ok(self.out.flush()?)
    }
}
