//! A cleanup as text, and as the rows of its document.

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_driver::RecordOf;
use pdca_workspace::cleanup::{
    Cleanup, CleanupDecision, CleanupStep, Leftover, RemovalReason, RetentionReason,
};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CleanupReport {
    dry_run: bool,
    steps: Vec<StepRow>,
}

/// One removal, or the reason against it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StepRow {
    /// `end-run`, `end-integration`, `checkout`, `anchor`, `record` or `evidence`.
    what: &'static str,
    name: String,
    decision: Decision,
    reason: String,
    /// It was done; never with `--dry-run`.
    done: bool,
    /// The file with the rescued contents of a checkout.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    kept: Option<Utf8PathBuf>,
    /// The command that fetches them.
    fetch: Option<String>,
    /// The reason it could not be done.
    error: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Decision {
    End,
    Remove,
    Keep,
}

/// Returns the response to a cleanup.
pub(crate) fn cleaned_up(cleanup: Cleanup, cx: &Context<'_>) -> Response {
    let failed = cleanup.steps.iter().any(|step| step.error.is_some());
    let exit = match (failed, cleanup.has_work()) {
        (true, _) => Exit::Unexpected,
        (false, false) => Exit::NothingToDo,
        (false, true) => Exit::Done,
    };
    let steps = cleanup.steps.into_iter().map(|step| StepRow::of(step, cx)).collect();
    Response::new(CleanupReport { dry_run: cleanup.dry_run, steps }, exit)
}

impl StepRow {
    fn of(step: CleanupStep, cx: &Context<'_>) -> Self {
        let CleanupStep { leftover, decision, done, kept, fetch, error } = step;
        let (what, name) = match leftover {
            Leftover::Run(id) => ("end-run", format!("run {id}")),
            Leftover::Integration(id) => ("end-integration", format!("integration {id}")),
            Leftover::Checkout { slot, target } => ("checkout", format!("lane {slot} of {target}")),
            Leftover::Ref { name, target } => ("anchor", format!("{name} of {target}")),
            Leftover::Record { of: RecordOf::Run, run } => ("record", format!("run {run}")),
            Leftover::Record { of: RecordOf::Integration, run } => {
                ("record", format!("integration {run}"))
            }
            Leftover::PartialRecord { name } => ("record", name),
            Leftover::Evidence { dir } => ("evidence", format!("evidence {}", cx.show(&dir))),
        };
        let (decision, reason) = match decision {
            CleanupDecision::End => (Decision::End, "nothing is left to do in it".to_owned()),
            CleanupDecision::Remove(why) => (Decision::Remove, removal_reason(why)),
            CleanupDecision::Keep(why) => (Decision::Keep, retention_reason(why)),
        };
        Self { what, name, decision, reason, done, kept, fetch, error }
    }

    /// Writes the same line with and without `--dry-run`, except for the tense.
    fn write(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let outcome = match (self.decision, self.done, &self.error) {
            (Decision::Keep, ..) if cx.globals.verbose == 0 => return Ok(()),
            (Decision::Keep, ..) => "stays",
            (Decision::End | Decision::Remove, _, Some(_)) => "could not be removed",
            (Decision::End, true, None) => "ended",
            (Decision::End, false, None) => "would be ended",
            (Decision::Remove, true, None) => "removed",
            (Decision::Remove, false, None) => "would be removed",
        };
        writeln!(out, "{}: {outcome} ({})", self.name, self.reason)?;
        if let Some(error) = &self.error {
            writeln!(out, "  {}", cx.out.bad(error))?;
        }
        if let Some(kept) = &self.kept {
            writeln!(out, "  kept: {}", cx.show(kept))?;
        }
        if let Some(fetch) = &self.fetch {
            writeln!(out, "  {} {fetch}", cx.out.accent("get it back:"))?;
        }
        Ok(())
    }
}

fn removal_reason(why: RemovalReason) -> String {
    match why {
        RemovalReason::NothingUnfinished => "nothing unfinished lies in it".to_owned(),
        RemovalReason::RefNotNeeded(why) => why,
        RemovalReason::Old { phase, days } => format!("it is {phase} for more than {days} days"),
        RemovalReason::Crash => "a crash left it".to_owned(),
        RemovalReason::Unnamed => "no held change and no open brief names it".to_owned(),
    }
}

fn retention_reason(why: RetentionReason) -> String {
    match why {
        RetentionReason::InUse => "it is in use".to_owned(),
        RetentionReason::RunActive(run) => format!("run {run} is not over"),
        RetentionReason::OtherWorkspace => "work of another workspace lies in it".to_owned(),
        RetentionReason::Unfinished { id, state } => format!("{id} is {}", state.as_str()),
        RetentionReason::Unreadable { id } => format!("{id} is not readable"),
        RetentionReason::UnknownTarget => "its target is not configured".to_owned(),
        RetentionReason::Ref(why) => why.as_str().to_owned(),
        RetentionReason::IntegrationActive(run) => format!("integration {run} was not over"),
    }
}

impl Report for CleanupReport {
    const KIND: &'static str = "cleanup";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for step in &self.steps {
            step.write(cx, out)?;
        }
        if !self.steps.iter().any(|step| step.decision != Decision::Keep) {
            writeln!(out, "nothing has to go")?;
        }
        Ok(())
    }
}
