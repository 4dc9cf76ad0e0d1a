//! A new workspace as text.

use std::io::Write;

use pdca_workspace::config::scaffold::NewWorkspace;
use pdca_workspace::config::workspace::FILE;
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};

/// A new workspace, and whether a person has seen its plan.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct InitReport {
    #[serde(flatten)]
    new: NewWorkspace,
    /// The plan was already shown with the question.
    #[serde(skip)]
    is_proposed: bool,
}

/// Makes the response of a plan that was not shown yet.
pub(crate) fn planned(new: NewWorkspace) -> Response {
    let exit = if new.files.is_empty() { Exit::NothingToDo } else { Exit::Done };
    Response::new(InitReport { new, is_proposed: false }, exit)
}

/// Makes the response of a plan that a person was asked about.
pub(crate) fn asked(new: NewWorkspace) -> Response {
    Response::done(InitReport { new, is_proposed: true })
}

/// Writes the plan for people, before they are asked.
pub(crate) fn proposal(
    new: &NewWorkspace,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let list =
        |words: &[&str]| if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    writeln!(out, "workspace: {}", cx.show(&new.workspace))?;
    writeln!(out, "build tools found: {}", list(&new.tools))?;
    writeln!(out, "gate rows proposed: {}", list(&new.gates))?;
    writeln!(out, "agents on PATH: {}", list(&new.agents))?;
    let target = match &new.target {
        Some(path) => format!("the repository at `{path}`"),
        None => format!("none (no git repository here); add a [[targets]] to {FILE}"),
    };
    writeln!(out, "target: {target}")?;
    writeln!(out, "builder: {}", new.builder.unwrap_or("none, a stub stands in"))?;
    writeln!(out, "reviewer: {}", new.reviewer.unwrap_or("none, a stub stands in"))?;
    for file in &new.files {
        let verb = if file.appends { "append to" } else { "write" };
        writeln!(out, "  {} {}", cx.out.accent(verb), file.path)?;
    }
    if let Some(config) = &new.config {
        writeln!(out, "\n{FILE}, without its comments:\n")?;
        for line in config.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

impl Report for InitReport {
    const KIND: &'static str = "init";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let new = &self.new;
        let dir = cx.show(&new.workspace);
        if new.files.is_empty() {
            writeln!(out, "{dir} is a workspace already; nothing to write")?;
            return Ok(());
        }
        if !self.is_proposed {
            proposal(new, cx, out)?;
        }
        if new.written {
            writeln!(out)?;
            writeln!(out, "{} a workspace in {dir}", cx.out.good("done:"))?;
            let next = match (new.builder, new.reviewer) {
                (None, None) => "pdca new <id> --title \"…\"",
                (Some(_), _) | (_, Some(_)) => "pdca doctor",
            };
            writeln!(out, "next: {}", cx.out.accent(next))?;
        } else if self.is_proposed {
            writeln!(out, "nothing was written")?;
        }
        Ok(())
    }
}
