//! One bundle in full.

use std::io::Write;

use pdca_forge::publish::PullState;
use pdca_state::{
    Artifact, Brief, Coverage, GateReport, GateResult, Label, Overall, Snapshot, State, Summary,
};
use pdca_workspace::issue::Issue;
use pdca_workspace::snapshot::ago;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::paint;
use crate::render::status::held_by;
use crate::report::Report;
use crate::style::{one_line, printable};
use crate::words;

impl Report for Issue {
    const KIND: &'static str = "bundle";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let Issue { row, published, snapshot, .. } = self;
        heading(cx, self, out)?;
        if let Some(published) = published {
            let state = published.state.map_or("not seen yet", PullState::as_str);
            let url = published.url.as_deref().or(published.branch.as_deref()).unwrap_or_default();
            writeln!(out, "  published  {}", printable(&format!("{url} ({state})")))?;
        }
        if let Some(cost) = row.cost.as_ref().and_then(crate::cost::total) {
            let show = cx.typed(&format!("pdca log {}", snapshot.id));
            writeln!(out, "  cost       {cost}  {}", cx.out.faint(show))?;
        }
        if let Some(brief) = &snapshot.brief {
            fields(cx, brief, out)?;
        }
        if let Some(report) = &snapshot.gates {
            gates(cx, report, out)?;
        }
        if let Some(summary) = &snapshot.summary {
            needs_human(cx, summary, out)?;
        }
        problems(cx, snapshot, out)?;
        if snapshot.state == State::AwaitingSignoff {
            decisions(cx, snapshot, out)?;
        } else if snapshot.state == State::Complete
            && let Some(next) = row.next.as_deref()
        {
            writeln!(out, "next: {}", cx.out.accent(next))?;
        }
        Ok(())
    }
}

fn heading(cx: &Context<'_>, issue: &Issue, out: &mut dyn Write) -> Result<(), Failure> {
    let Issue { snapshot, workspace, .. } = issue;
    let state = paint(cx.out, Some(snapshot.state), snapshot.state);
    writeln!(out, "{}  {state}", cx.out.strong(snapshot.id.dir_name()))?;
    writeln!(out, "  directory  {}", cx.show(&snapshot.dir))?;
    if let Some(url) = &issue.url {
        writeln!(out, "  issue      {}", printable(url))?;
    }
    if snapshot.iterations > 0 {
        writeln!(out, "  attempt    {}", snapshot.iterations + 1)?;
    }
    if let Some(text) = &snapshot.close_disposition {
        writeln!(out, "  closes     {}", one_line(text, 80))?;
    }
    if let Some(at) = workspace.work.on(&snapshot.id) {
        let long = at.since.map(|since| words::duration(ago(since, cx.env.now())));
        let long = long.map_or_else(String::new, |long| format!(" for {long}"));
        writeln!(out, "  in work    {}{long}", printable(&at.holder))?;
    }
    for by in workspace.work.holding(&snapshot.id) {
        writeln!(out, "  {}    {}", cx.out.warn("held-by"), held_by(by))?;
    }
    for blocker in issue.entry().iter().flat_map(|entry| &entry.blocked_by) {
        writeln!(out, "  {} {} ({})", cx.out.warn("blocked-by"), blocker.id, blocker.standing)?;
    }
    if let Some(mark) = workspace.landing.mark(&snapshot.id) {
        let text = mark.text.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        writeln!(out, "  together   {}{}", mark.word, printable(&text))?;
    }
    if let Some(signoff) = &issue.signoff {
        let note = signoff.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        writeln!(
            out,
            "  sign-off   {}",
            printable(&format!("{} by {} / {}{note}", signoff.outcome, signoff.by, signoff.date))
        )?;
    }
    Ok(())
}

fn fields(cx: &Context<'_>, brief: &Brief, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{}", cx.out.strong("Brief"))?;
    if brief.is_placeholder() {
        if brief.has_triage() {
            let missing = brief.missing().join(", ");
            writeln!(out, "  a draft; a person has to fill in: {missing}")?;
            return Ok(());
        }
        writeln!(out, "  a template that is not filled in yet")?;
        return Ok(());
    }
    let room = cx.width().saturating_sub(28).max(20);
    for field in Label::ALL.iter().filter_map(|label| brief.known(*label)) {
        let value = field.whole();
        let more = if value.lines().count() > 1 { " …" } else { "" };
        let label = one_line(field.label, 22);
        writeln!(out, "  {label:<22}  {}{more}", one_line(&value, room))?;
    }
    Ok(())
}

fn gates(cx: &Context<'_>, report: &GateReport, out: &mut dyn Write) -> Result<(), Failure> {
    let overall = match report.overall {
        Overall::Pass => cx.out.good("pass"),
        Overall::Fail => cx.out.bad("fail"),
    };
    writeln!(out, "{} {overall}", cx.out.strong("Gates"))?;
    let shown =
        report.rows.iter().filter(|row| cx.globals.verbose > 0 || row.result != GateResult::None);
    for row in shown {
        let word = match row.result {
            GateResult::Pass => cx.out.good("pass        "),
            GateResult::Fail => cx.out.bad("fail        "),
            GateResult::Unverifiable => cx.out.warn("unverifiable"),
            GateResult::Deferred => cx.out.faint("deferred    "),
            GateResult::None => cx.out.faint("none        "),
        };
        let weight = if row.gating { "" } else { " (advisory)" };
        let plain = row.element().map(|element| format!(" \"{}\"", element.plain()));
        let name = format!("{}{}{weight}", one_line(&row.check, 40), plain.unwrap_or_default());
        // The word takes 16 columns, with the space around it.
        let room = cx.width().saturating_sub(18 + name.chars().count()).max(10);
        let line = format!("  {word}  {name}  {}", one_line(&row.path_line, room));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Prints findings first, and the standing question separately.
fn needs_human(cx: &Context<'_>, summary: &Summary, out: &mut dyn Write) -> Result<(), Failure> {
    let (open, cleared) = (summary.open_items().len(), summary.cleared_items().len());
    writeln!(out, "{} {open} open, {cleared} cleared", cx.out.strong("§6 NEEDS-HUMAN"))?;
    let open = || summary.items().iter().filter(|item| item.open);
    for item in open().filter(|item| !item.standing) {
        let text = format!("{:>2} [ ] {}", item.number, printable(&item.text));
        cx.write_wrapped(&text, "  ", out)?;
    }
    for item in open().filter(|item| item.standing) {
        let (number, text) = (item.number, printable(&item.text));
        cx.write_wrapped(&format!("{number:>2} [ ] (asked every time) {text}"), "  ", out)?;
    }
    Ok(())
}

fn problems(cx: &Context<'_>, snapshot: &Snapshot, out: &mut dyn Write) -> Result<(), Failure> {
    let changed = snapshot.coverage()? == Coverage::Changed;
    let is_judged = matches!(snapshot.state, State::Checked | State::AwaitingSignoff);
    let edited = is_judged && snapshot.is_brief_edited()?;
    if snapshot.problems.is_empty() && snapshot.leftovers.is_empty() && !changed && !edited {
        return Ok(());
    }
    writeln!(out, "{}", cx.out.strong("Problems"))?;
    if changed {
        writeln!(
            out,
            "  patch.diff was edited after Check: the gates' verdict is about another patch"
        )?;
    }
    if edited {
        let id = &snapshot.id;
        writeln!(
            out,
            "  brief.md was edited after Check: {} has it checked again",
            cx.out.accent(cx.typed(&format!("pdca run {id}")))
        )?;
    }
    for problem in &snapshot.problems {
        writeln!(out, "  {}: {}", cx.show(&problem.file), printable(&problem.what))?;
    }
    for name in &snapshot.leftovers {
        writeln!(out, "  left by an earlier step: {}", printable(name))?;
    }
    Ok(())
}

/// Prints the commands for a decision.
fn decisions(cx: &Context<'_>, snapshot: &Snapshot, out: &mut dyn Write) -> Result<(), Failure> {
    let id = &snapshot.id;
    let open = snapshot.summary.as_ref().is_some_and(|summary| !summary.open_items().is_empty());
    writeln!(
        out,
        "next: read {}, then",
        cx.show(&snapshot.dir.join(Artifact::Summary.file_name()))
    )?;
    if open {
        writeln!(
            out,
            "  {}",
            cx.out.accent(format!("pdca signoff {id} clear <n>… --note \"why\""))
        )?;
    }
    writeln!(
        out,
        "  {}",
        cx.out.accent(format!(
            "pdca signoff {id} accept | iterate-do | iterate-plan | discontinue --note \"why\""
        ))
    )?;
    Ok(())
}
