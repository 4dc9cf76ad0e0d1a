//! What a flow says at its end.

use std::collections::BTreeSet;
use std::io::Write;

use pdca_driver::PlannedBrief;
use pdca_state::{BundleId, State};
use pdca_workspace::flow::{
    AfterAccept, FlowEnd, FlowFacts, FlowReport, FlowSettings, FlowStep, Moves, NoticeKind,
    Notification, UnsignedWork,
};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;
use crate::session;

/// The result of a flow.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct FlowDocument {
    /// `done`, `needs-you` or `interrupted`.
    end: &'static str,
    /// The batches, deliveries and sessions that it began.
    steps: u32,
    /// The briefs that planning sessions changed.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<serde_json::Value>"))]
    planned: Vec<PlannedBrief>,
    /// The bundles that wait for a brief.
    drafts: Vec<BundleId>,
    /// The bundles that wait for sign-off.
    unsigned: Vec<BundleId>,
    /// The bundles that cannot go on by themselves.
    stuck: Vec<BundleId>,
    /// The accepted bundles.
    accepted: Vec<BundleId>,
    /// The bundles that landed in their branch.
    landed: Vec<BundleId>,
    /// The bundles that are staged and not merged yet.
    staged: Vec<BundleId>,
    /// A look back was asked for and is due.
    act_due: bool,
    pace: UnsignedWork,
    /// The command that goes on.
    next: Option<String>,
}

impl FlowDocument {
    pub(super) fn of(
        cx: &Context<'_>,
        report: &FlowReport<Failure>,
        planned: Vec<PlannedBrief>,
        scope: Option<&BTreeSet<BundleId>>,
    ) -> Result<Self, Failure> {
        let snapshot = session::snapshot_at_work(cx)?;
        let settings = cx.workspace()?.config.flow;
        let (mut accepted, mut landed, mut staged) = (Vec::new(), Vec::new(), Vec::new());
        let is_in_scope = |id: &BundleId| scope.is_none_or(|scope| scope.contains(id));
        for entry in snapshot.entries.iter().filter(|entry| is_in_scope(&entry.id)) {
            if entry.state() == Some(State::Complete) {
                accepted.push(entry.id.clone());
                let mark = snapshot.landing.mark(&entry.id).map(|mark| mark.word);
                match mark {
                    Some("landed") => landed.push(entry.id.clone()),
                    Some("staged") => staged.push(entry.id.clone()),
                    Some(_) | None => {}
                }
            }
        }
        let (end, drafts, unsigned, stuck, act_due) = match &report.end {
            FlowEnd::Done => ("done", Vec::new(), Vec::new(), Vec::new(), false),
            FlowEnd::Interrupted => ("interrupted", Vec::new(), Vec::new(), Vec::new(), false),
            FlowEnd::NeedsYou { drafts, unsigned, stuck, act } => {
                ("needs-you", drafts.clone(), unsigned.clone(), stuck.clone(), *act)
            }
        };
        let next = match &report.end {
            FlowEnd::Done => None,
            FlowEnd::Interrupted => Some("pdca flow".to_owned()),
            FlowEnd::NeedsYou { .. } => Some(next_command(&drafts, &unsigned, &stuck)),
        };
        Ok(Self {
            end,
            steps: report.steps,
            planned,
            drafts,
            unsigned,
            stuck,
            accepted,
            landed,
            staged,
            act_due,
            pace: snapshot.pace(&settings),
            next: next.map(|next| cx.typed(&next)),
        })
    }

    /// Makes the notification about the end.
    pub(super) fn notice(&self, kind: NoticeKind, cx: &Context<'_>) -> Notification {
        let text = match self.end {
            "done" => "the flow ended: everything is done".to_owned(),
            "interrupted" => "the flow was interrupted".to_owned(),
            _ => format!("the flow ended: {}", self.waiting()),
        };
        crate::notify::notice(cx, kind, text, &[], self.next.clone())
    }

    /// Says what waits for a person.
    fn waiting(&self) -> String {
        let counts = [
            (self.unsigned.len(), "for sign-off"),
            (self.drafts.len(), "for a brief"),
            (self.stuck.len(), "for a look"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<String> =
            counts.map(|(count, what)| format!("{count} {what}")).collect();
        if self.act_due {
            parts.push("the look back".to_owned());
        }
        format!("waiting for you: {}", parts.join(", "))
    }
}

/// Returns the command for what waits: decisions first, then briefs.
fn next_command(drafts: &[BundleId], unsigned: &[BundleId], stuck: &[BundleId]) -> String {
    if let [one] = unsigned {
        return format!("pdca status {one}");
    }
    if !unsigned.is_empty() {
        return "pdca queue".to_owned();
    }
    if !drafts.is_empty() {
        return "pdca status".to_owned();
    }
    stuck.first().map_or_else(|| "pdca act review".to_owned(), |id| format!("pdca why {id}"))
}

impl Report for FlowDocument {
    const KIND: &'static str = "flow";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        match self.end {
            "done" => writeln!(out, "{}", cx.out.good("everything is done"))?,
            "interrupted" => writeln!(out, "{}", cx.out.warn("interrupted"))?,
            _ => writeln!(out, "{}", cx.out.warn(self.waiting()))?,
        }
        for (what, ids) in [
            ("sign-off", &self.unsigned),
            ("brief", &self.drafts),
            ("look", &self.stuck),
            ("staged, not merged yet", &self.staged),
            ("landed", &self.landed),
        ] {
            if !ids.is_empty() {
                writeln!(out, "{what}: {}", listed(ids))?;
            }
        }
        if let Some(reason) = self.pace.reason() {
            writeln!(out, "{}", cx.out.warn(format!("builds are held back: {reason}")))?;
        }
        if let Some(next) = &self.next {
            writeln!(out, "next: {}", cx.out.accent(next))?;
        }
        Ok(())
    }
}

/// What would come next.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct FlowDryRun {
    /// The bundles that a batch would continue.
    build: Vec<BundleId>,
    /// The accepted bundles that would be delivered.
    deliver: Vec<BundleId>,
    /// `integrate`, `publish`, `both` or `nothing`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    after_accept: AfterAccept,
    /// `plan`, `sign-off`, `act`, `wait` or `end`.
    person: &'static str,
    /// The bundles of that step.
    ids: Vec<BundleId>,
    pace: UnsignedWork,
}

impl FlowDryRun {
    pub(super) fn of(facts: FlowFacts, moves: Moves, settings: FlowSettings) -> Self {
        let (person, ids) = match moves.person {
            FlowStep::Plan(ids) => ("plan", ids),
            FlowStep::SignOff(ids) => ("sign-off", ids),
            FlowStep::Act => ("act", Vec::new()),
            FlowStep::Wait => ("wait", Vec::new()),
            FlowStep::End(_) => ("end", Vec::new()),
        };
        Self {
            build: if moves.build { facts.buildable } else { Vec::new() },
            deliver: moves.deliver,
            after_accept: settings.after_accept,
            person,
            ids,
            pace: facts.pace,
        }
    }
}

impl Report for FlowDryRun {
    const KIND: &'static str = "flow-plan";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if !self.build.is_empty() {
            writeln!(out, "would build: {}", listed(&self.build))?;
        }
        if !self.deliver.is_empty() {
            let how = match self.after_accept {
                AfterAccept::Integrate => "integrate",
                AfterAccept::Publish => "publish",
                AfterAccept::Both => "publish and integrate",
                AfterAccept::Nothing => "leave",
            };
            writeln!(out, "would {how}: {}", listed(&self.deliver))?;
        }
        match self.person {
            "plan" => writeln!(out, "would plan with you: {}", listed(&self.ids))?,
            "sign-off" => writeln!(out, "would ask for your sign-off: {}", listed(&self.ids))?,
            "act" => writeln!(out, "would look back with you")?,
            "end" if self.build.is_empty() => writeln!(out, "nothing to do without you")?,
            _ => {}
        }
        if let Some(reason) = self.pace.reason() {
            writeln!(out, "builds are held back: {reason}")?;
        }
        Ok(())
    }
}

/// Says what a person is needed for, with the command for it.
pub(super) fn needs(step: &FlowStep) -> (String, Vec<BundleId>, &'static str) {
    let count = |ids: &[BundleId], what: &str| format!("{} {what}", ids.len());
    match step {
        FlowStep::Plan(ids) => (count(ids, "to plan"), ids.clone(), "pdca flow"),
        FlowStep::SignOff(ids) => (count(ids, "wait for your sign-off"), ids.clone(), "pdca queue"),
        FlowStep::Act => ("the look back is due".to_owned(), Vec::new(), "pdca act review"),
        FlowStep::End(FlowEnd::NeedsYou { drafts, unsigned, stuck, .. }) => {
            let ids: Vec<BundleId> = unsigned.iter().chain(drafts).chain(stuck).cloned().collect();
            (count(&ids, "wait for you"), ids, "pdca status")
        }
        FlowStep::Wait | FlowStep::End(FlowEnd::Done | FlowEnd::Interrupted) => {
            (String::new(), Vec::new(), "pdca status")
        }
    }
}

fn listed(ids: &[BundleId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
