//! The person's track: planning sessions, sign-off, the look back. One at a time, with the terminal.

use std::io::Write;

use crate::notify;
use camino::Utf8PathBuf;
use pdca_driver::{BeatError, BriefEnd, PlannedBrief, finish_plan_session, plan_session};
use pdca_journal::events::FlowTask;
use pdca_leaves::{LeafError, Role};
use pdca_state::{Bundle, BundleId, Overall, SignoffAction, SignoffProposal, State};
use pdca_workspace::flow::{Person, Visit};

use super::host::Tracks;
use crate::command::subcommand;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Format, render};
use crate::session;
use crate::style::printable;

/// The person at the terminal.
pub(super) struct AtTerminal<'p, 'c, 'a> {
    pub(super) cx: &'p Context<'c>,
    pub(super) err: &'p mut dyn Write,
    pub(super) tracks: &'p Tracks<'a>,
    /// The documents for the planner, by their path in a session.
    pub(super) documents: Vec<(Utf8PathBuf, Vec<u8>)>,
    /// What became of briefs.
    pub(super) planned: Vec<PlannedBrief>,
    /// A notification that failed was told.
    pub(super) is_warned: bool,
}

impl AtTerminal<'_, '_, '_> {
    /// Writes what the tracks said meanwhile.
    pub(super) fn flush(&mut self) {
        let said = self.tracks.take_said();
        // With the terminal gone nothing can be shown; the exit code still tells the result.
        let _shown = self.err.write_all(&said).and_then(|()| self.err.flush());
        if !self.is_warned {
            let told = notify::tell_failures(self.cx, &self.tracks.notifier, self.err);
            self.is_warned = told.unwrap_or(true);
        }
    }

    /// Publishes the briefs of a planning session whose driver died after it.
    pub(super) fn finish_planning(&mut self) -> Result<(), Failure> {
        let site = session::driver_config(self.cx)?;
        let finished = session::work(self.cx, &site, None, self.err, finish_plan_session)?;
        let briefs = finished.map_err(|error| unplanned(&error))?;
        self.tell_briefs(&briefs)?;
        self.planned.extend(briefs);
        Ok(())
    }

    fn tell_briefs(&mut self, briefs: &[PlannedBrief]) -> Result<(), Failure> {
        for PlannedBrief { id, end } in briefs {
            let text = match end {
                BriefEnd::Planned => format!("{} is planned", id.dir_name()),
                BriefEnd::Draft { missing } => {
                    let missing = missing.join(", ");
                    format!("{} is still a draft: {missing} not filled in", id.dir_name())
                }
                BriefEnd::Unchanged => format!("{} was left as it was", id.dir_name()),
                BriefEnd::Refused { why } => {
                    let kept = pdca_driver::refused_session(&session::driver_config(self.cx)?);
                    let why = printable(why);
                    let kept = self.cx.show(&kept).to_owned();
                    format!("the brief of {id} was not taken: {why}; it is kept in {kept}")
                }
            };
            self.cx.note(self.err, &text)?;
        }
        Ok(())
    }

    /// Runs a command line of this program, and shows what it reports.
    fn command(&mut self, words: &[&str]) -> Result<Exit, Failure> {
        // Cards and prompts go to the terminal; standard output has the document of the flow alone.
        let response = subcommand(words, self.cx, &mut std::io::stderr(), self.err)?;
        if self.cx.globals.format() == Format::Text {
            render(&response, self.cx, self.err)?;
        }
        match response.failure {
            Some(failure) => Err(failure),
            None => Ok(response.exit),
        }
    }

    /// Asks the sign-off leaf about one bundle. A leaf ticks nothing: what is open is asked here, one by one.
    fn ask_about(&mut self, id: &BundleId) -> Result<(), Failure> {
        let refused = match self.command(&["signoff", id.as_ref(), "ask"]) {
            Ok(_) => return Ok(()),
            Err(failure) if failure.exit == Exit::Usage => failure,
            Err(failure) => return Err(failure),
        };
        let proposed = self.cx.workspace()?.require_bundle(id)?.proposal()?;
        let accepts = proposed.filter(|proposed| proposed.action == SignoffAction::Accept);
        let open = self.open_items(id)?;
        let Some(SignoffProposal { note, .. }) = accepts.filter(|_| !open.is_empty()) else {
            // A proposal that the rules refuse is shown, and the bundle waits on.
            return Ok(refused.render(self.cx.err, &self.cx.env.cwd, self.err)?);
        };
        for item in &open {
            let question = format!("{id}: {} — decided?", printable(item));
            if !self.cx.ask(&question, self.err)? {
                return Ok(());
            }
        }
        self.command(&["signoff", id.as_ref(), "clear", "all"])?;
        if let Some(note) = &note {
            let text = format!("the sign-off leaf proposes to accept {id}: {}", printable(note));
            self.cx.note(self.err, &text)?;
        }
        let mut words = vec!["signoff", id.as_ref(), "accept"];
        words.extend(note.iter().flat_map(|note| ["--note", note.as_str()]));
        let question = format!("Accept {id}, as the sign-off leaf proposes?");
        if self.cx.confirm(&question, self.err)? { self.command(&words).map(drop) } else { Ok(()) }
    }

    /// Returns what is open in §6, if nothing but that is in the way of an acceptance.
    fn open_items(&self, id: &BundleId) -> Result<Vec<String>, Failure> {
        let snapshot = self.cx.workspace()?.require_bundle(id)?.load()?;
        let is_green = snapshot.gates.as_ref().is_none_or(|gates| gates.overall == Overall::Pass);
        let summary = snapshot.summary.as_ref().filter(|_| is_green);
        Ok(summary.map(pdca_state::Summary::open_texts).unwrap_or_default())
    }

    fn review(&mut self, ids: &[BundleId]) -> Result<(), Failure> {
        let words: Vec<&str> =
            std::iter::once("review").chain(ids.iter().map(AsRef::as_ref)).collect();
        self.command(&words).map(drop)
    }

    /// Returns the undecided bundles for which an agent without a terminal proposed nothing, or the person dropped what it
    /// proposed. With an agent at the terminal the person has talked already.
    fn without_proposal(&self, ids: &[BundleId]) -> Result<Vec<BundleId>, Failure> {
        let workspace = self.cx.workspace()?;
        let leaf = workspace.config.leaves.of(Role::Signoff);
        if leaf.is_none_or(|leaf| leaf.interactive) {
            return Ok(Vec::new());
        }
        let mut silent = Vec::new();
        for id in self.undecided(ids)? {
            if workspace.require_bundle(&id)?.proposal()?.is_none() {
                silent.push(id);
            }
        }
        Ok(silent)
    }

    /// Returns the bundles of `ids` that still wait for sign-off.
    fn undecided(&self, ids: &[BundleId]) -> Result<Vec<BundleId>, Failure> {
        let workspace = self.cx.workspace()?;
        let mut left = Vec::new();
        for id in ids {
            let state = workspace.require_bundle(id)?.glance()?.state;
            if state == State::AwaitingSignoff {
                left.push(id.clone());
            }
        }
        Ok(left)
    }
}

impl AtTerminal<'_, '_, '_> {
    fn hold_planning(&mut self, ids: &[BundleId]) -> Result<Visit, Failure> {
        session::require_leaf(self.cx, Role::Planner)?;
        let workspace = self.cx.workspace()?;
        let site = session::driver_config(self.cx)?;
        let mut taken = Vec::new();
        let mut bundles: Vec<Bundle> = Vec::new();
        for id in ids {
            let bundle = workspace.require_bundle(id)?;
            // One that another process holds is being edited there.
            let Ok(held) = site.locks().take(id) else { continue };
            if bundle.glance().is_ok_and(|seen| seen.state == State::Unplanned) {
                taken.push(held);
                bundles.push(bundle);
            }
        }
        if bundles.is_empty() {
            // A planner that is asked about nothing costs a call, and room is made for it by removing a session that was
            // cut short.
            self.cx.note(self.err, "no planning session: the drafts are in use elsewhere")?;
            return Ok(Visit { left: ids.to_vec() });
        }
        let names: Vec<&str> = bundles.iter().map(|bundle| bundle.id().as_ref()).collect();
        self.cx.note(self.err, &format!("planning session: {}", names.join(", ")))?;
        let template = (
            "templates/brief.md.tpl".into(),
            pdca_workspace::drafts::brief_template(workspace)?.into_bytes(),
        );
        let mut files = vec![template];
        files.extend(self.documents.iter().cloned());
        let session = session::work(self.cx, &site, None, self.err, |driver| {
            plan_session(driver, &bundles, files)
        })?;
        let session = session.map_err(|error| unplanned(&error))?;
        // From here on the lanes may start what is planned.
        drop(taken);
        for id in &session.resumed {
            let text = format!("{} went on from a session that was cut short", id.dir_name());
            self.cx.note(self.err, &text)?;
        }
        self.tell_briefs(&session.briefs)?;
        let is_left = |id: &&BundleId| {
            let brief = session.briefs.iter().find(|brief| brief.id == **id);
            brief.is_none_or(|brief| brief.end != BriefEnd::Planned)
        };
        let left = ids.iter().filter(is_left).cloned().collect();
        self.planned.extend(session.briefs);
        match session.failure {
            Some(error) => {
                unplanned(&error).render(self.cx.err, &self.cx.env.cwd, self.err)?;
                Ok(Visit { left })
            }
            None => Ok(Visit { left }),
        }
    }

    fn hold_sign_off(&mut self, ids: &[BundleId]) -> Result<Visit, Failure> {
        let workspace = self.cx.workspace()?;
        let environment = self.cx.env.environment();
        if pdca_workspace::config::has_leaf(workspace, Role::Signoff, environment)? {
            session::require_leaf(self.cx, Role::Signoff)?;
            for id in ids {
                self.flush();
                self.ask_about(id)?;
            }
            let silent = self.without_proposal(ids)?;
            if !silent.is_empty() {
                self.review(&silent)?;
            }
        } else {
            self.review(ids)?;
        }
        Ok(Visit { left: self.undecided(ids)? })
    }

    fn look_back(&mut self) -> Result<(), Failure> {
        let workspace = self.cx.workspace()?;
        let environment = self.cx.env.environment();
        if pdca_workspace::config::has_leaf(workspace, Role::Act, environment)? {
            session::require_leaf(self.cx, Role::Act)?;
            self.command(&["act", "review"]).map(drop)
        } else {
            self.command(&["act", "log"])?;
            if self.cx.globals.yes || self.cx.ask("Append this to the Act log?", self.err)? {
                self.command(&["act", "log", "--record"])?;
            }
            Ok(())
        }
    }
}

impl Person<Failure> for AtTerminal<'_, '_, '_> {
    fn plan(&mut self, ids: &[BundleId]) -> Result<Visit, Failure> {
        self.tracks.step(FlowTask::Plan, ids, || self.hold_planning(ids))
    }

    fn sign_off(&mut self, ids: &[BundleId]) -> Result<Visit, Failure> {
        self.tracks.step(FlowTask::SignOff, ids, || self.hold_sign_off(ids))
    }

    fn act(&mut self) -> Result<(), Failure> {
        self.tracks.step(FlowTask::Act, &[], || self.look_back())
    }

    fn idle(&mut self) {
        self.flush();
    }
}

/// Explains why there was no planning session.
#[expect(clippy::wildcard_enum_match_arm, reason = "only two of them are no surprise here")]
fn unplanned(error: &BeatError) -> Failure {
    let exit = match error {
        BeatError::Interrupted => Exit::Interrupted,
        BeatError::Leaf { source, .. } if matches!(**source, LeafError::NoTerminal { .. }) => {
            Exit::Usage
        }
        _ => Exit::Unexpected,
    };
    Failure::from_error(exit, error)
        .hint("what it left is kept for the next session; `pdca flow` goes on")
}
