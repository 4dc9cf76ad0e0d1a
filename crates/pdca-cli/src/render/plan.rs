//! A plan as text and as a table.

mod problems;
mod simulation;

use std::io::Write;

use pdca_dag::{Awaits, GroupId, ItemState, JoinRule, Plan, Rejection, SourceLocation};
use pdca_driver::Batch;
use pdca_state::BundleId;
use pdca_workspace::OperationError;
use pdca_workspace::planning::{
    LanesFileReport, LanesFileState, PlanRemarkKind, PlanView, PlannedBatch, PlanningError,
};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::explain::planning::explained_in;
use crate::explain::rejection::{explained, place};
use crate::failure::Failure;
use crate::report::{Report, Response, Table};
use crate::style::printable;
use crate::words;
use problems::ProblemRow;

/// The most pairs that are listed without `-v`.
const SHOWN: usize = 24;

/// The indentation of a section.
const INDENT: usize = 6;

/// A plan, or the reasons against it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlanDocument {
    #[serde(flatten)]
    view: PlanView,
    problems: Vec<ProblemRow>,
    /// The bundles that a batch over everything leaves out, with the reasons.
    left_alone: Vec<ProblemRow>,
    #[serde(skip)]
    planned: Option<(Plan, Batch)>,
}

/// Makes the response of `plan`. With `check`, a stale `lanes.json` is an answer, and no failure.
pub(crate) fn planned(
    result: Result<PlannedBatch, OperationError>,
    check: bool,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let planned = match result {
        Ok(planned) => planned,
        Err(OperationError::Planning(PlanningError::Rejected { rejection, lanes_file })) => {
            let document = PlanDocument::rejected(&rejection, cx);
            let error = PlanningError::Rejected { rejection, lanes_file };
            return Ok(Response::done(document).failed(explained_in(error.into(), cx)));
        }
        Err(error) => return Err(error.into()),
    };
    let document = PlanDocument::of(planned, cx);
    Ok(match &document.view.lanes_file {
        Some(file) if file.was == Some(LanesFileState::Stale) && !file.would_write => {
            if check {
                return Ok(Response::new(document, Exit::Waiting));
            }
            // The plan shown is the present one, but drivers do not follow it before it is written.
            let failure: Failure = PlanningError::StaleLanesFile { path: file.path.clone() }.into();
            Response::done(document).failed(failure)
        }
        Some(_) | None => Response::done(document),
    })
}

impl PlanDocument {
    fn of(planned: PlannedBatch, cx: &Context<'_>) -> Self {
        let PlannedBatch { view, plan, batch } = planned;
        let left = plan.left_alone().iter().map(|one| ProblemRow::of(one, cx));
        let left_alone = left.chain(batch.exhausted.iter().map(ProblemRow::of_failed)).collect();
        Self { view, problems: Vec::new(), left_alone, planned: Some((plan, batch)) }
    }

    fn rejected(rejection: &Rejection, cx: &Context<'_>) -> Self {
        let problems = rejection.problems.iter().map(|problem| ProblemRow::of(problem, cx));
        Self {
            view: PlanView::default(),
            problems: problems.collect(),
            left_alone: Vec::new(),
            planned: None,
        }
    }
}

impl Report for PlanDocument {
    const KIND: &'static str = "plan";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let Some((plan, batch)) = &self.planned else { return Ok(()) };
        let page = Page { view: &self.view, plan, batch, cx };
        page.headline(out)?;
        if !batch.items.is_empty() {
            page.waves(out)?;
            page.groups(out)?;
            page.edges(out)?;
            page.rivals(out)?;
            page.bases(out)?;
            page.splits(out)?;
        }
        if let Some(streams) = &self.view.workstreams {
            page.workstreams(streams, out)?;
        }
        page.left_alone(out)?;
        page.notices(out)?;
        if let Some(found) = self.view.simulation.as_ref().filter(|found| found.work > 0) {
            simulation::show(found, cx, out)?;
        }
        page.file(out)
    }

    fn table(&self, _: &Context<'_>) -> Option<Table> {
        let (plan, _) = self.planned.as_ref()?;
        let view = &self.view;
        let mut table = Table::new(&["wave", "id", "group", "after", "not beside"]);
        let joined = |ids: Vec<&BundleId>| -> String {
            ids.into_iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")
        };
        for (wave, ids) in view.waves.iter().enumerate() {
            for id in ids {
                let group = view.groups.iter().find(|group| group.bundles.contains(id));
                let after = view.edges.iter().filter(|edge| edge.dependant == *id);
                let rivals = plan.rivals_of(id).into_iter().map(|(other, _)| other);
                table.row([
                    (wave + 1).to_string(),
                    id.to_string(),
                    group.map_or_else(String::new, |group| group.id.to_string()),
                    joined(after.map(|edge| &edge.prerequisite).collect()),
                    joined(rivals.collect()),
                ]);
            }
        }
        Some(table)
    }
}

struct Page<'a> {
    view: &'a PlanView,
    plan: &'a Plan,
    batch: &'a Batch,
    cx: &'a Context<'a>,
}

impl Page<'_> {
    fn headline(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let waits = |standing| match standing {
            ItemState::Waiting | ItemState::Built | ItemState::Red => true,
            ItemState::Active | ItemState::Complete | ItemState::Landed | ItemState::Ended => false,
        };
        let waiting = self.batch.items.iter().filter(|item| waits(item.standing)).count();
        let PlanView { order, waves, critical_path, .. } = self.view;
        let mut headline = match order.len() {
            0 => "nothing to build".to_owned(),
            1 => "1 bundle to build".to_owned(),
            many => format!("{many} bundles to build, in {} waves", waves.len()),
        };
        if waiting > 0 {
            let wait = if waiting == 1 { "1 waits" } else { &format!("{waiting} wait") };
            headline = format!("{headline}; {wait} for a person");
        }
        writeln!(out, "{}", self.cx.out.strong(headline))?;
        self.list("order", order, "  ", out)?;
        if critical_path.len() > 1 {
            self.list("longest chain", critical_path, " → ", out)?;
        }
        Ok(())
    }

    /// Prints a label with ids.
    fn list(
        &self,
        label: &str,
        ids: &[BundleId],
        separator: &str,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        const LABEL: usize = 15;
        let ids = ids.iter().map(BundleId::as_str);
        for (at, line) in words::wrapped(ids, separator, self.cx.width() - LABEL).iter().enumerate()
        {
            let label = if at == 0 { label } else { "" };
            writeln!(out, "{label:<LABEL$}{line}")?;
        }
        Ok(())
    }

    fn section(&self, title: &str, aside: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let line = format!("{}  {}", self.cx.out.strong(title), self.cx.out.faint(aside));
        writeln!(out, "\n{}", line.trim_end())?;
        Ok(())
    }

    /// Prints one row of a section: a name, ids, and a remark.
    fn row(
        &self,
        name: &str,
        ids: &[BundleId],
        aside: &str,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let room = self.cx.width().saturating_sub(INDENT + 2);
        let mut lines = words::wrapped(ids.iter().map(BundleId::as_str), "  ", room);
        if !aside.is_empty() {
            let aside = format!("({aside})");
            match lines.last_mut() {
                Some(last) if last.chars().count() + 3 + aside.chars().count() <= room => {
                    last.push_str("   ");
                    last.push_str(&self.cx.out.faint(aside).to_string());
                }
                Some(_) | None => lines.push(self.cx.out.faint(aside).to_string()),
            }
        }
        for (at, line) in lines.iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            writeln!(out, "  {name:<4}  {line}")?;
        }
        Ok(())
    }

    fn waves(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let waves = &self.view.waves;
        if waves.is_empty() {
            return Ok(());
        }
        self.section("waves", "a view: each bundle starts as soon as it may", out)?;
        for (at, wave) in waves.iter().enumerate() {
            self.row(&(at + 1).to_string(), wave, "", out)?;
        }
        Ok(())
    }

    fn groups(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let PlanView { groups, depth, width, collapse_report, apart, .. } = self.view;
        if groups.is_empty() {
            return Ok(());
        }
        let aside = format!("what may not run side by side; {depth} deep, {width} wide");
        self.section("groups", &aside, out)?;
        for group in groups {
            let before: Vec<&str> = group.depends_on.iter().map(GroupId::as_str).collect();
            let aside = match before.as_slice() {
                [] => String::new(),
                [..] => format!("after {}", before.join(", ")),
            };
            self.row(group.id.as_str(), &group.bundles, &aside, out)?;
        }
        // Files and conflicts are listed as pairs that never run side by side; a surface joins two bundles and no more.
        for join in collapse_report.iter().filter(|join| join.rule == JoinRule::Surface) {
            let (a, b) = &join.bundles;
            let line = format!("{a} and {b} share a group: {}", join.reason);
            writeln!(out, "  {}", self.cx.out.faint(printable(&line)))?;
        }
        for join in apart {
            let (a, b) = &join.bundles;
            let line = format!("{a} and {b} should share a group, but both were begun: ");
            let line = format!("{line}{}", join.evidence);
            writeln!(out, "  {} {}", self.cx.out.warn("note:"), printable(&line))?;
        }
        Ok(())
    }

    fn edges(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let edges = &self.view.edges;
        if edges.is_empty() {
            return Ok(());
        }
        self.section("dependencies", "", out)?;
        let pairs = edges.iter().map(|edge| {
            let at = self.place(&edge.place);
            let until = match edge.awaits {
                Awaits::Built => " is green",
                Awaits::Accepted => "",
                Awaits::Landed => " has landed",
            };
            (format!("{} after {}{until}", edge.dependant, edge.prerequisite), at)
        });
        self.pairs(pairs, out)
    }

    fn rivals(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut rivals = self.plan.rivals().peekable();
        if rivals.peek().is_none() {
            return Ok(());
        }
        let aside = match self.cx.workspace()?.config.schedule.rivals {
            pdca_driver::RivalsPolicy::Built => "",
            pdca_driver::RivalsPolicy::Accepted => "one after the sign-off of the other",
            pdca_driver::RivalsPolicy::Landed => "one after the landing of the other",
        };
        self.section("never side by side", aside, out)?;
        let pairs = rivals.map(|rivals| {
            let (a, b) = &rivals.bundles;
            (words::apart(a, b, &rivals.rivalry), words::evidence(&rivals.rivalry, self.cx))
        });
        self.pairs(pairs, out)
    }

    fn splits(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.view.splits.is_empty() {
            return Ok(());
        }
        self.section("split first", "by the next `run`, `batch` or `flow`", out)?;
        for split in &self.view.splits {
            writeln!(out, "  {}", words::due_split(split))?;
        }
        Ok(())
    }

    fn bases(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.view.stands_on.is_empty() {
            return Ok(());
        }
        self.section("built on", "beyond the branch, if it started now", out)?;
        for (id, on) in &self.view.stands_on {
            let on: Vec<&str> = on.iter().map(BundleId::as_str).collect();
            for (at, line) in words::wrapped(on, "  ", self.cx.width() / 2).iter().enumerate() {
                let name = if at == 0 { format!("{id} on") } else { String::new() };
                writeln!(out, "  {name:<10}  {line}")?;
            }
        }
        Ok(())
    }

    /// Prints two aligned columns, cut to [`SHOWN`] rows without `-v`.
    fn pairs(
        &self,
        pairs: impl Iterator<Item = (String, String)>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let most = if self.cx.globals.verbose > 0 { usize::MAX } else { SHOWN };
        let mut pairs =
            pairs.map(|(a, b)| (printable(&a).into_owned(), printable(&b).into_owned()));
        let rows: Vec<(String, String)> = pairs.by_ref().take(most).collect();
        let room = self.cx.width();
        let longest = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or(0);
        let left = longest.min(room * 3 / 5);
        for (text, evidence) in &rows {
            let fits = text.chars().count() <= left && left + 4 + evidence.chars().count() <= room;
            let evidence = self.cx.out.faint(evidence);
            if fits {
                writeln!(out, "  {text:<left$}  {evidence}")?;
            } else {
                writeln!(out, "  {text}\n      {evidence}")?;
            }
        }
        if pairs.next().is_some() {
            writeln!(out, "  {}", self.cx.out.faint("and more: `-v` shows all"))?;
        }
        Ok(())
    }

    fn workstreams(&self, streams: &[Vec<BundleId>], out: &mut dyn Write) -> Result<(), Failure> {
        self.section("workstreams", "what has anything to do with each other", out)?;
        for (at, stream) in streams.iter().enumerate() {
            self.row(&(at + 1).to_string(), stream, "", out)?;
        }
        Ok(())
    }

    /// Prints the bundles that a batch does not start, with the remedies.
    fn left_alone(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let left = self.plan.left_alone();
        let exhausted = &self.batch.exhausted;
        if left.is_empty() && exhausted.is_empty() {
            return Ok(());
        }
        self.section("left alone", "the rest starts without them", out)?;
        for problem in left {
            let told = explained(problem, self.cx);
            let line = format!("{}  ({})", told.what, self.place(problem.place()));
            writeln!(out, "  {}", printable(&line))?;
            if let Some(hint) = &told.hint {
                writeln!(out, "      {}", self.cx.out.faint(printable(hint)))?;
            }
        }
        for one in exhausted {
            let line = format!("{}: {}", one.id, words::failed(one));
            writeln!(out, "  {}", printable(&line))?;
            let hint = format!("`pdca run {}` tries again", one.id);
            writeln!(out, "      {}", self.cx.out.faint(hint))?;
        }
        Ok(())
    }

    /// Prints remarks for the authors of briefs. Bundles without a declaration are in one
    /// list, because often they are all bundles.
    fn notices(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut undeclared: Vec<BundleId> = Vec::new();
        let mut others: Vec<(String, String)> = Vec::new();
        for remark in &self.view.notices {
            if let (PlanRemarkKind::NothingDeclared, Some(id)) = (remark.kind, &remark.id) {
                undeclared.push(id.clone());
            } else {
                let near = remark.near.first();
                let near = near.map_or_else(String::new, |id| format!("; did you mean {id}?"));
                others.push((format!("{}{near}", remark.text), self.place(&remark.place)));
            }
        }
        if undeclared.is_empty() && others.is_empty() {
            return Ok(());
        }
        self.section("to look at", "", out)?;
        if !undeclared.is_empty() {
            let claim = match self.cx.workspace()?.config.schedule.untouched {
                pdca_dag::Untouched::Free => "they claim nothing",
                pdca_dag::Untouched::Exclusive => "each runs alone",
            };
            writeln!(out, "  no `Touches`, so {claim}:")?;
            self.row("", &undeclared, "", out)?;
        }
        self.pairs(others.into_iter(), out)
    }

    fn file(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(LanesFileReport { path, was, would_write, .. }) = &self.view.lanes_file else {
            return Ok(());
        };
        let path = self.cx.show(path);
        let p = self.cx.out;
        let line = match (was, would_write) {
            (None, _) => format!("{path} {}", p.good("written")),
            (Some(LanesFileState::Absent), false) => return Ok(()),
            (Some(LanesFileState::Current), false) => format!("{path} is {}", p.good("current")),
            (Some(LanesFileState::Stale), false) => format!(
                "{path} is {}: `pdca plan --write` plans again, no group gets another letter",
                p.warn("out of date")
            ),
            (Some(LanesFileState::Absent), true) => format!("{path} would be written"),
            (Some(LanesFileState::Current | LanesFileState::Stale), true) => {
                format!("{path} would be replaced")
            }
        };
        writeln!(out, "\n{line}")?;
        Ok(())
    }

    /// Shows the position of a declaration.
    fn place(&self, at: &SourceLocation) -> String {
        place(at, self.cx).show(&self.cx.env.cwd)
    }
}
