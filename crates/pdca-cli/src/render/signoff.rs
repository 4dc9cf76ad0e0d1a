//! Decisions as text: what was recorded, what was refused, what the leaf proposes, and the items of §6.

use std::io::Write;

use pdca_journal::events::WarningCode;
use pdca_state::{Bundle, BundleId};
use pdca_workspace::review::{
    Checklist, Cleared, Decided, DecidedBatch, DecisionOutcome, DecisionRemark, ProposedDecision,
};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::explain::decision::explain;
use crate::failure::Failure;
use crate::render::paint;
use crate::render::publish::PublishReport;
use crate::report::Report;
use crate::style::printable;

impl Report for Decided {
    const KIND: &'static str = "signoff";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        decided_line(cx, self, out)?;
        let Some(back) = &self.taken_back else { return Ok(()) };
        for fact in back.facts.iter().filter(|_| self.dry_run) {
            writeln!(out, "  {}", printable(fact))?;
        }
        if let Some(next) = &back.next {
            writeln!(out, "next: {}", cx.out.accent(next))?;
        }
        Ok(())
    }
}

/// Writes the decision, or that it would be recorded.
fn decided_line(cx: &Context<'_>, decided: &Decided, out: &mut dyn Write) -> Result<(), Failure> {
    let Decided { id, outcome, by, date, .. } = decided;
    if decided.dry_run {
        writeln!(out, "would record {outcome} by {by} / {date} for {id}")?;
    } else {
        let state = paint(cx.out, Some(decided.state), decided.state);
        writeln!(out, "{} is {state}", cx.out.strong(id))?;
    }
    Ok(())
}

/// Makes the commands of a decision work where they are typed.
pub(crate) fn to_be_typed(cx: &Context<'_>, mut decided: Decided) -> Decided {
    decided.command = cx.typed(&decided.command);
    if let Some(next) = decided.taken_back.as_mut().and_then(|back| back.next.as_mut()) {
        *next = cx.typed(next);
    }
    decided
}

/// Prints what a person should know about a decision besides.
pub(crate) fn remark(
    cx: &Context<'_>,
    bundle: &Bundle,
    decided: &Decided,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(archived) = &decided.archived {
        let what = match decided.taken_back {
            Some(_) => "the accepted attempt and its seal are in",
            None => "the attempt is in",
        };
        cx.note(err, &format!("{what} {}", cx.show(&bundle.dir().join(archived))))?;
    }
    for remark in &decided.remarks {
        let (code, text) = match remark {
            DecisionRemark::Unsealed { what } => (
                WarningCode::Unsealed,
                format!(
                    "{} is accepted without a seal: its report does not say {what}; it cannot be integrated",
                    bundle.id()
                ),
            ),
            DecisionRemark::DependencyGivenUp { waiting } => {
                let ids: Vec<&str> = waiting.iter().map(AsRef::as_ref).collect();
                let text = format!(
                    "{} waits for it in vain: change `Depends on` there, or give it up too",
                    ids.join(", ")
                );
                (WarningCode::DependencyGivenUp, text)
            }
            DecisionRemark::BriefEdited { file } => (
                WarningCode::BriefEdited,
                format!(
                    "{} is accepted with a brief that was edited after Check: {}",
                    bundle.id(),
                    cx.show(file.as_str().into())
                ),
            ),
            DecisionRemark::StillStaged { branch } => (
                WarningCode::StillStaged,
                format!("{branch} still has it; the next `pdca integrate` leaves it out"),
            ),
        };
        cx.warn(err, code, text)?;
    }
    Ok(())
}

/// What came of decisions about several bundles, with the words for what was refused.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DecisionsReport {
    #[serde(flatten)]
    pub(crate) batch: DecidedBatch,
    /// Those that were not recorded, each with the reason.
    pub(crate) refused: Vec<RefusedDecision>,
}

/// A decision that was not recorded.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RefusedDecision {
    pub(crate) id: BundleId,
    why: String,
}

impl DecisionsReport {
    /// Prints the remarks about decisions, and returns them with the failure about those that were refused.
    pub(crate) fn of(
        mut batch: DecidedBatch,
        bundles: &[Bundle],
        cx: &Context<'_>,
        err: &mut dyn Write,
    ) -> Result<(Self, Option<Failure>), Failure> {
        let bundle = |id: &BundleId| bundles.iter().find(|bundle| bundle.id() == id);
        let mut done = Vec::new();
        for outcome in std::mem::take(&mut batch.done) {
            done.push(match outcome {
                DecisionOutcome::Decided(decided) => {
                    let decided = to_be_typed(cx, *decided);
                    if let Some(bundle) = bundle(&decided.id) {
                        remark(cx, bundle, &decided, err)?;
                    }
                    DecisionOutcome::Decided(Box::new(decided))
                }
                DecisionOutcome::Cleared(cleared) => DecisionOutcome::Cleared(cleared),
            });
        }
        batch.done = done;
        let mut refused = Vec::new();
        let mut worst: Option<Failure> = None;
        for (id, error) in std::mem::take(&mut batch.failed) {
            let Some(bundle) = bundle(&id) else { continue };
            let failure = explain(error, bundle);
            refused.push(RefusedDecision { id, why: failure.fault().message });
            worst = Some(match worst {
                None => failure,
                Some(before) => {
                    let problems = [before.problems, failure.problems].concat();
                    Failure::of(before.exit, problems)
                }
            });
        }
        // Exit code 2 says that nothing was changed.
        if let Some(failure) = worst.as_mut().filter(|_| !batch.done.is_empty()) {
            failure.exit = Exit::Unexpected;
        }
        Ok((Self { batch, refused }, worst))
    }
}

impl Report for DecisionsReport {
    const KIND: &'static str = "signoff-many";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for outcome in &self.batch.done {
            match outcome {
                DecisionOutcome::Decided(decided) => decided_line(cx, decided, out)?,
                DecisionOutcome::Cleared(cleared) => {
                    let verb = if cleared.dry_run { "would clear" } else { "cleared" };
                    let (count, id) = (cleared.cleared.len(), cx.out.strong(&cleared.id));
                    writeln!(out, "{id}: {verb} {count}, {} still open in §6", cleared.left)?;
                }
            }
        }
        Ok(())
    }
}

/// The acceptances that were recorded, and the publication that followed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AcceptReport {
    pub(crate) dry_run: bool,
    /// Those that were recorded by this call, or would be.
    pub(crate) decided: Vec<Decided>,
    pub(crate) published: PublishReport,
}

impl Report for AcceptReport {
    const KIND: &'static str = "accept";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for decided in &self.decided {
            decided_line(cx, decided, out)?;
        }
        self.published.text(cx, out)
    }
}

/// A proposal that waits for a person.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ProposalReport {
    pub(crate) id: BundleId,
    #[serde(flatten)]
    pub(crate) proposed: ProposedDecision,
    /// The file in which it waits.
    pub(crate) draft: String,
    pub(crate) recorded: bool,
}

impl Report for ProposalReport {
    const KIND: &'static str = "signoff-proposal";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "{} waits for you: nothing was recorded", cx.out.strong(&self.id))?;
        proposed(&self.proposed, cx, out)
    }
}

/// Writes what is proposed, and the command that makes it a decision.
pub(crate) fn proposed(
    proposed: &ProposedDecision,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    writeln!(out, "the sign-off leaf proposes: {}", cx.out.strong(proposed.action))?;
    if let Some(note) = &proposed.note {
        cx.write_wrapped(&printable(note), "  ", out)?;
    }
    writeln!(out, "next: {}", cx.out.accent(cx.typed(&proposed.command)))?;
    Ok(())
}

impl Report for Checklist {
    const KIND: &'static str = "signoff-show";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for item in &self.items {
            let (number, text) = (item.number, printable(&item.text));
            let mark = if item.standing && item.open { "(asked every time) " } else { "" };
            if item.open {
                writeln!(out, "{number:>3} [ ] {}{text}", cx.out.faint(mark))?;
            } else {
                writeln!(out, "{}", cx.out.faint(format!("{number:>3} [x] {text}")))?;
            }
        }
        if self.open.is_empty() {
            writeln!(out, "nothing is open in §6")?;
        }
        Ok(())
    }
}

impl Report for Cleared {
    const KIND: &'static str = "signoff-clear";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let verb = if self.dry_run { "would clear" } else { "cleared" };
        for item in &self.cleared {
            writeln!(out, "{verb}: {}", printable(item))?;
        }
        match (self.dry_run, self.left) {
            (true, _) => {}
            (false, 0) => {
                let next = cx.typed(&format!("pdca signoff {} accept", self.id));
                writeln!(out, "next: {}", cx.out.accent(next))?;
            }
            (false, left) => writeln!(out, "{left} still open in §6")?,
        }
        Ok(())
    }
}
