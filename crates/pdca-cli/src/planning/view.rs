//! Prints a plan.

use std::io::Write;

use pdca_dag::{Awaits, GroupId, ItemState, JoinRule, PlanNotice};
use pdca_state::BundleId;

use crate::context::Context;
use crate::failure::Failure;
use crate::style::printable;

use crate::explain::rejection::{explained, place};
use crate::planning::lanes_file::{self, Currency};
use crate::planning::plan::{LanesFileFate, Shown};
use crate::planning::simulation;
use crate::words;

/// The most pairs that are listed without `-v`.
const SHOWN: usize = 24;

/// The indentation of a section.
const INDENT: usize = 6;

pub(crate) fn show(shown: &Shown, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let page = Page { shown, cx };
    page.headline(out)?;
    if !shown.batch.items.is_empty() {
        page.waves(out)?;
        page.groups(out)?;
        page.edges(out)?;
        page.rivals(out)?;
        page.foundations(out)?;
        page.splits(out)?;
    }
    if let Some(streams) = &shown.workstreams {
        page.workstreams(streams, out)?;
    }
    page.left_alone(out)?;
    page.notices(out)?;
    if let Some(found) = shown.simulation.as_ref().filter(|found| found.work > 0) {
        simulation::show(found, cx, out)?;
    }
    page.file(out)
}

struct Page<'a> {
    shown: &'a Shown,
    cx: &'a Context<'a>,
}

impl Page<'_> {
    fn headline(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Shown { batch, plan, file, .. } = self.shown;
        let waits = |standing| match standing {
            ItemState::Waiting | ItemState::Built | ItemState::Red => true,
            ItemState::Active | ItemState::Complete | ItemState::Landed | ItemState::Ended => false,
        };
        let waiting = batch.items.iter().filter(|item| waits(item.standing)).count();
        let order = plan.order();
        let mut said = match order.len() {
            0 => "nothing to build".to_owned(),
            1 => "1 bundle to build".to_owned(),
            many => format!("{many} bundles to build, in {} waves", plan.waves().len()),
        };
        if waiting > 0 {
            let wait = if waiting == 1 { "1 waits" } else { &format!("{waiting} wait") };
            said = format!("{said}; {wait} for a person");
        }
        writeln!(out, "{}", self.cx.out.strong(said))?;
        self.list("order", &order, "  ", out)?;
        if file.critical_path.len() > 1 {
            self.list("longest chain", &file.critical_path.iter().collect::<Vec<_>>(), " → ", out)?;
        }
        Ok(())
    }

    /// Prints a label with ids.
    fn list(
        &self,
        label: &str,
        ids: &[&BundleId],
        separator: &str,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        const LABEL: usize = 15;
        let ids = ids.iter().map(|id| id.as_str());
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
        ids: &[&BundleId],
        aside: &str,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let room = self.cx.width().saturating_sub(INDENT + 2);
        let mut lines = words::wrapped(ids.iter().map(|id| id.as_str()), "  ", room);
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
        let waves = self.shown.plan.waves();
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
        let file = &self.shown.file;
        if file.groups.is_empty() {
            return Ok(());
        }
        let aside =
            format!("what may not run side by side; {} deep, {} wide", file.depth, file.width);
        self.section("groups", &aside, out)?;
        for group in &file.groups {
            let before: Vec<&str> = group.depends_on.iter().map(GroupId::as_str).collect();
            let aside = match before.as_slice() {
                [] => String::new(),
                [..] => format!("after {}", before.join(", ")),
            };
            let ids: Vec<&BundleId> = group.bundles.iter().collect();
            self.row(group.id.as_str(), &ids, &aside, out)?;
        }
        // Files and conflicts are listed as pairs that never run side by side; a surface joins two bundles and no more.
        for join in file.collapse_report.iter().filter(|join| join.rule == JoinRule::Surface) {
            let (a, b) = &join.bundles;
            let said = format!("{a} and {b} share a group: {}", join.reason);
            writeln!(out, "  {}", self.cx.out.faint(printable(&said)))?;
        }
        for join in &file.apart {
            let (a, b) = &join.bundles;
            let said = format!("{a} and {b} should share a group, but both were begun: ");
            let said = format!("{said}{}", join.evidence);
            writeln!(out, "  {} {}", self.cx.out.warn("note:"), printable(&said))?;
        }
        Ok(())
    }

    fn edges(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let edges = self.shown.plan.edges();
        if edges.is_empty() {
            return Ok(());
        }
        self.section("dependencies", "", out)?;
        let said = edges.iter().map(|edge| {
            let at = place(&edge.place, self.cx).show(&self.cx.env.cwd);
            let until = match edge.awaits {
                Awaits::Built => " is green",
                Awaits::Accepted => "",
                Awaits::Landed => " has landed",
            };
            (format!("{} after {}{until}", edge.dependant, edge.prerequisite), at)
        });
        self.pairs(said, out)
    }

    fn rivals(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut rivals = self.shown.plan.rivals().peekable();
        if rivals.peek().is_none() {
            return Ok(());
        }
        let aside = match self.cx.workspace()?.config.schedule.rivals {
            pdca_driver::RivalsPolicy::Built => "",
            pdca_driver::RivalsPolicy::Accepted => "one after the sign-off of the other",
            pdca_driver::RivalsPolicy::Landed => "one after the landing of the other",
        };
        self.section("never side by side", aside, out)?;
        let said = rivals.map(|rivals| {
            let (a, b) = &rivals.bundles;
            (words::apart(a, b, &rivals.rivalry), words::evidence(&rivals.rivalry, self.cx))
        });
        self.pairs(said, out)
    }

    fn splits(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.shown.splits.is_empty() {
            return Ok(());
        }
        self.section("split first", "by the next `run`, `batch` or `flow`", out)?;
        for split in &self.shown.splits {
            writeln!(out, "  {}", words::due_split(split))?;
        }
        Ok(())
    }

    fn foundations(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.shown.stands_on.is_empty() {
            return Ok(());
        }
        self.section("built on", "beyond the branch, if it started now", out)?;
        for (id, on) in &self.shown.stands_on {
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
        for (said, evidence) in &rows {
            let fits = said.chars().count() <= left && left + 4 + evidence.chars().count() <= room;
            let evidence = self.cx.out.faint(evidence);
            if fits {
                writeln!(out, "  {said:<left$}  {evidence}")?;
            } else {
                writeln!(out, "  {said}\n      {evidence}")?;
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
            self.row(&(at + 1).to_string(), &stream.iter().collect::<Vec<_>>(), "", out)?;
        }
        Ok(())
    }

    /// Prints the bundles that a batch does not start, with the remedies.
    fn left_alone(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let left = self.shown.plan.left_alone();
        let exhausted = &self.shown.batch.exhausted;
        if left.is_empty() && exhausted.is_empty() {
            return Ok(());
        }
        self.section("left alone", "the rest starts without them", out)?;
        for problem in left {
            let told = explained(problem, self.cx);
            let at = place(problem.place(), self.cx).show(&self.cx.env.cwd);
            let said = format!("{}  ({at})", told.what);
            writeln!(out, "  {}", printable(&said))?;
            if let Some(hint) = &told.hint {
                writeln!(out, "      {}", self.cx.out.faint(printable(hint)))?;
            }
        }
        for one in exhausted {
            let said = format!("{}: {}", one.id, words::failed(one));
            writeln!(out, "  {}", printable(&said))?;
            let hint = format!("`pdca run {}` tries again", one.id);
            writeln!(out, "      {}", self.cx.out.faint(hint))?;
        }
        Ok(())
    }

    /// Prints remarks for the authors of briefs. Bundles without a declaration are in one
    /// list, because often they are all bundles.
    fn notices(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut undeclared: Vec<&BundleId> = Vec::new();
        let mut others: Vec<(String, String)> = Vec::new();
        for notice in self.shown.plan.notices() {
            let (at, near) = match notice {
                PlanNotice::NothingDeclared { id, .. } => {
                    undeclared.push(id);
                    continue;
                }
                PlanNotice::NoSuchRival { place, near, .. } => (place, near.as_slice()),
                PlanNotice::ConflictsWithItself { place, .. } => (place, &[][..]),
            };
            let mut text = notice.to_string();
            if let Some(near) = near.first() {
                text = format!("{text}; did you mean {near}?");
            }
            others.push((text, place(at, self.cx).show(&self.cx.env.cwd)));
        }
        for remark in &self.shown.batch.remarks {
            let at = place(&remark.place, self.cx).show(&self.cx.env.cwd);
            others.push((remark.text.clone(), at));
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
        let path = lanes_file::path(self.cx)?;
        let path = self.cx.show(&path);
        let p = self.cx.out;
        let said = match self.shown.fate {
            LanesFileFate::Is(Currency::Absent) => return Ok(()),
            LanesFileFate::Is(Currency::Current) => format!("{path} is {}", p.good("current")),
            LanesFileFate::Is(Currency::Stale) => format!(
                "{path} is {}: `pdca plan --write` plans again, no group gets another letter",
                p.warn("out of date")
            ),
            LanesFileFate::Would(Currency::Absent) => format!("{path} would be written"),
            LanesFileFate::Would(Currency::Current | Currency::Stale) => {
                format!("{path} would be replaced")
            }
            LanesFileFate::Written => format!("{path} {}", p.good("written")),
        };
        writeln!(out, "\n{said}")?;
        Ok(())
    }
}
