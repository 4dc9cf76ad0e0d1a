//! The workspace behind a board.

use std::ffi::OsString;
use std::fmt::Write as _;

use camino::Utf8PathBuf;
use pdca_driver::{Effects, WorkspaceConfig};
use pdca_front::context::Context;
use pdca_front::failure::Failure;
use pdca_front::{ProcessEnv, faults, process_env, session};
use pdca_review::{Card, CardSource, Decision, Outcome, Signing, decide};
use pdca_snapshot::{Source, WorkspaceSnapshot};
use pdca_state::text::printable;
use pdca_state::{Artifact, Awaits, Bundle, BundleId, BundleRoot, chain, files};

use crate::data::BoardData;
use crate::input::Key;
use crate::run::Desk;

/// The largest log that is shown, in bytes.
const LARGEST_LOG: u64 = 16 << 20;

/// The pager of those who have set none.
const PAGER: &str = "less";

/// A workspace with a person who signs. It holds values only, so that the worker's thread can use it.
pub struct WorkspaceDesk {
    project: String,
    config: WorkspaceConfig,
    bundles: BundleRoot,
    awaits: Awaits,
    env: ProcessEnv,
    /// The name that §9 records.
    by: String,
    effects: Box<dyn Effects + Send>,
    /// The key that makes the tests' binary panic.
    panic_key: Option<char>,
}

impl WorkspaceDesk {
    /// Reads the configuration; `by` is the person who signs.
    pub fn open(cx: &Context<'_>, by: String) -> Result<Self, Failure> {
        let workspace = cx.workspace()?;
        let name = workspace.config.project.name.as_deref();
        let is_tested = cfg!(feature = "fault-injection");
        let panic_key = cx.env.var_text("PDCA_PANIC_KEY").filter(|_| is_tested);
        Ok(Self {
            project: name.or(workspace.root.file_name()).unwrap_or("pdca").to_owned(),
            config: session::driver_config(cx)?,
            bundles: workspace.bundle_root.clone(),
            awaits: workspace.config.schedule.dependants.into(),
            env: cx.env.clone(),
            by,
            effects: faults::effects(cx)?,
            panic_key: panic_key.and_then(|text| text.chars().next()),
        })
    }

    fn snapshot(&self) -> Result<WorkspaceSnapshot, String> {
        let (bundles, awaits) = (&self.bundles, self.awaits);
        let source = Source { bundles, awaits, config: Some(&self.config) };
        WorkspaceSnapshot::load_at_work(source).map_err(|error| chain(&error))
    }

    fn page(&self, text: &str) -> Result<(), String> {
        let pager = self.env.var("PAGER").filter(|pager| !pager.is_empty());
        let pager: OsString = pager.map_or_else(|| PAGER.into(), ToOwned::to_owned);
        match pdca_process::page(&pager, text.as_bytes()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("the pager `{}` failed; set PAGER", pager.to_string_lossy())),
            Err(error) => Err(format!("no pager: {error}")),
        }
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
        let snapshot = self.snapshot()?;
        let source = CardSource { snapshot: &snapshot, config: Some(&self.config) };
        Card::load(source, &self.bundle(id)).map_err(|error| chain(&error))
    }

    fn record(&self, decision: &Decision) -> Result<String, String> {
        let signing = Signing {
            config: &self.config,
            effects: self.effects.as_ref(),
            by: &self.by,
            date: &self.env.today(),
            dry_run: false,
        };
        match decide(&signing, &self.bundle(&decision.id), decision) {
            Ok(Outcome::Decided(done)) => Ok(format!("recorded: {}", done.command)),
            Ok(Outcome::Cleared(done)) => {
                Ok(format!("ticked {} of {}", done.cleared.len(), done.id))
            }
            Err(error) => Err(format!("{} was not recorded: {}", decision.id, chain(&error))),
        }
    }

    fn diff(&self, id: &BundleId) -> Result<(), String> {
        match self.bundle(id).read(Artifact::Patch) {
            Ok(Some(patch)) => self.page(&printable(&String::from_utf8_lossy(&patch))),
            Ok(None) => Err(format!("{id} has no change")),
            Err(error) => Err(chain(&error)),
        }
    }

    fn log(&self, id: &BundleId) -> Result<(), String> {
        let bundle = self.bundle(id);
        let card = self.card(id)?;
        let mut text = String::new();
        for gate in &card.gates {
            let Some(log) = &gate.log else { continue };
            let path: Utf8PathBuf = bundle.dir().join(log);
            let bytes = files::read_bounded(&path, LARGEST_LOG).ok().flatten().unwrap_or_default();
            let shown = String::from_utf8_lossy(&bytes);
            writeln!(text, "== {} {} ({log})\n{}", gate.rule, gate.result, printable(&shown))
                .expect("because a string takes any text");
        }
        if text.is_empty() { Err(format!("{id} has no logs of gates")) } else { self.page(&text) }
    }

    fn whole(&self, id: &BundleId) -> Result<(), String> {
        let card = self.card(id)?;
        let mut text = format!("{} {}\n", card.id, printable(&card.title));
        for section in card.sections() {
            writeln!(text, "\n{}", section.title).expect("because a string takes any text");
            for line in section.lines {
                writeln!(text, "  {}", line.text).expect("because a string takes any text");
            }
        }
        self.page(&text)
    }

    fn shell(&self, id: &BundleId) -> Result<(), String> {
        Err(format!("`pdca review {id}` opens a shell with its change"))
    }

    fn edit_note(&self, id: &BundleId, _note: &str) -> Result<String, String> {
        Err(format!("type the note after `i`, `p` or `x`; `pdca review {id}` opens your editor"))
    }

    fn key(&self, key: Key) {
        assert!(self.panic_key.is_none_or(|fatal| key != Key::Char(fatal)), "a key for tests");
    }
}
