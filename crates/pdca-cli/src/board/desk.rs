//! The workspace behind a board, and the person's programs beside it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::failure::{Failure, Problem};
use crate::process_env::Terminal;
use crate::sitting::PageKind;
use crate::{ProcessEnv, faults, process_env, session};
use pdca_driver::{Effects, WorkspaceConfig};
use pdca_state::{Awaits, Bundle, BundleId, BundleRoot, chain};
use pdca_workspace::review::{
    Card, CardSource, DecideError, Decision, DecisionOutcome, Signing, UNDO_WINDOW, decide,
};
use pdca_workspace::snapshot::{SnapshotSource, WorkspaceSnapshot};

use crate::board::data::BoardData;
use crate::board::input::BoardKey;
use crate::board::run::{Desk, Ended, Recorded, Tools, run};
use crate::board::view::Theme;

/// Shows the board of the workspace until the person leaves; `by` is the person who signs.
pub(crate) fn show_board(cx: &Context<'_>, by: String) -> Result<(), Failure> {
    let desk = WorkspaceDesk::open(cx, by)?;
    let tools = PersonalTools { cx, desk: &desk };
    let theme = Theme { colours: cx.out.has_colours() };
    let undo_window = faults::undo_window(cx.env, UNDO_WINDOW);
    match run(&desk, &tools, theme, undo_window)
        .map_err(|error| Failure::from_error(Exit::Unexpected, &error))?
    {
        Ended::Left { refused, unpublished } => {
            let refused = refused
                .into_iter()
                .map(|why| Problem::new(why).hint("`pdca board` shows its card again"));
            let problems: Vec<Problem> =
                refused.chain(unpublished.into_iter().map(Problem::new)).collect();
            if problems.is_empty() { Ok(()) } else { Err(Failure::of(Exit::Unexpected, problems)) }
        }
        Ended::Interrupted(pending) => Err(crate::sitting::interrupted(cx, &pending, "pdca board")),
    }
}

/// A workspace with a person who signs. It holds values only, so that the worker's thread can use it.
struct WorkspaceDesk {
    project: String,
    config: WorkspaceConfig,
    bundles: BundleRoot,
    awaits: Awaits,
    env: ProcessEnv,
    /// The name that §9 records.
    by: String,
    globals: Globals,
    /// Something follows an acceptance.
    publishes: bool,
    effects: Box<dyn Effects + Send>,
    /// The last reading. A card that is looked at a moment later needs no other one.
    last: Mutex<Option<Arc<WorkspaceSnapshot>>>,
}

impl WorkspaceDesk {
    /// Reads the configuration; `by` is the person who signs.
    fn open(cx: &Context<'_>, by: String) -> Result<Self, Failure> {
        let workspace = cx.workspace()?;
        let name = workspace.config.project.name.as_deref();
        Ok(Self {
            project: name.or(workspace.root.file_name()).unwrap_or("pdca").to_owned(),
            config: session::driver_config(cx)?,
            bundles: workspace.bundle_root.clone(),
            awaits: workspace.config.schedule.dependants.into(),
            env: cx.env.clone(),
            by,
            globals: cx.globals.clone(),
            publishes: !workspace.config.signoff.on_accept.is_empty(),
            effects: faults::effects(cx)?,
            last: Mutex::new(None),
        })
    }

    fn snapshot(&self) -> Result<Arc<WorkspaceSnapshot>, String> {
        let (bundles, awaits) = (&self.bundles, self.awaits);
        let source = SnapshotSource { bundles, awaits, config: Some(&self.config) };
        let read = WorkspaceSnapshot::load_at_work(source).map_err(|error| chain(&error))?;
        let read = Arc::new(read);
        // A poisoned lock is no reason to stop: the value is replaced whole, so it is never half-written.
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&read));
        Ok(read)
    }

    fn bundle(&self, id: &BundleId) -> Bundle {
        self.bundles.bundle(id)
    }
}

impl Desk for WorkspaceDesk {
    fn data(&self) -> Result<BoardData, String> {
        let snapshot = self.snapshot()?;
        let now = process_env::moment().wall;
        Ok(BoardData::load(&self.project, &snapshot, Some(&self.config), &self.env.cwd, now))
    }

    fn card(&self, id: &BundleId) -> Result<Card, String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = last.map_or_else(|| self.snapshot(), Ok)?;
        let source = CardSource { snapshot: &snapshot, config: Some(&self.config) };
        Card::load(source, &self.bundle(id)).map_err(|error| chain(&error))
    }

    fn record(&self, decision: &Decision) -> Result<Recorded, String> {
        let signing = Signing {
            config: &self.config,
            effects: self.effects.as_ref(),
            by: &self.by,
            date: &self.env.today(),
            dry_run: false,
            is_confirmed: false,
        };
        match decide(&signing, &self.bundle(&decision.id), decision) {
            Ok(outcome) => {
                let message = match &outcome {
                    DecisionOutcome::Decided(done) => format!("recorded: {}", done.command),
                    DecisionOutcome::Cleared(done) => {
                        format!("ticked {} of {}", done.cleared.len(), done.id)
                    }
                };
                Ok(Recorded { message, is_accepted: outcome.is_acceptance() })
            }
            Err(error @ DecideError::Unconfirmed { .. }) => Err(format!(
                "{} was not recorded: {}; `{} -y` does it",
                decision.id,
                chain(&error),
                decision.command_line()
            )),
            Err(error) => Err(format!("{} was not recorded: {}", decision.id, chain(&error))),
        }
    }

    fn publish(&self, id: &BundleId) -> Option<Result<String, String>> {
        if !self.publishes {
            return None;
        }
        // The board has the terminal; nothing is asked or drawn beside it.
        let env = ProcessEnv { terminal: Terminal::default(), ..self.env.clone() };
        let cx = Context::new(&env, self.globals.clone());
        match crate::sitting::publish_accepted(&[self.bundle(id)], &cx, &mut io::sink()) {
            Ok(report) => report.map(|report| report.line_of(id)),
            Err(failure) => {
                Some(Err(format!("{id} is accepted, and not published: {}", said(&failure))))
            }
        }
    }
}

/// The programs of the person at the terminal, as in `pdca review`.
struct PersonalTools<'a> {
    cx: &'a Context<'a>,
    desk: &'a WorkspaceDesk,
}

impl PersonalTools<'_> {
    fn page(&self, kind: PageKind, text: &str) -> Result<(), String> {
        crate::sitting::page_and_wait(self.cx, kind, text, &mut io::stdout())
            .map_err(|error| chain(&error))
    }
}

impl Tools for PersonalTools<'_> {
    fn diff(&self, id: &BundleId) -> Result<(), String> {
        let text = crate::sitting::change_text(self.cx, &self.desk.bundle(id))
            .map_err(|failure| said(&failure))?;
        self.page(PageKind::Diff, &text)
    }

    fn log(&self, id: &BundleId) -> Result<(), String> {
        let text =
            crate::sitting::log_text(&self.desk.card(id)?).map_err(|failure| said(&failure))?;
        self.page(PageKind::Plain, &text)
    }

    fn whole(&self, id: &BundleId) -> Result<(), String> {
        let width = ratatui::crossterm::terminal::size().map_or(80, |(columns, _)| columns);
        let card = self.desk.card(id)?;
        self.page(PageKind::Plain, &crate::sitting::card_text(self.cx, &card, width.into()))
    }

    fn shell(&self, id: &BundleId) -> Result<(), String> {
        let (config, bundle) = (&self.desk.config, self.desk.bundle(id));
        crate::sitting::open_shell(self.cx, config, &bundle, &mut io::stdout())
            .map_err(|failure| said(&failure))
    }

    fn edit_note(&self, id: &BundleId, note: &str) -> Result<String, String> {
        crate::sitting::edit_note(self.cx, id, note).map_err(|failure| said(&failure))
    }

    fn key(&self, key: BoardKey) {
        if let BoardKey::Char(key) = key {
            faults::panic_at_key(self.cx.env, key);
        }
    }
}

/// Returns a failure in the one line that the board has for it.
fn said(failure: &Failure) -> String {
    let fault = failure.fault();
    std::iter::once(fault.message).chain(fault.hints).collect::<Vec<_>>().join("; ")
}
