//! `pdca act index`: the cycles since the last review, one by one and together.

use std::io::Write;

use pdca_act::{Cycle, GateCost, Index, IndexScope, Records, Touches};
use pdca_state::BundleId;
use serde::Serialize;

use super::{bundles, counted, ids};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::{one_line, printable};

/// Show the patterns in the cycles since the last review
///
/// Of each bundle that was frozen or discontinued: §6, §7, §9 and §10, how often it was sent back, what its gates
/// cost, and which files changed against those its brief declared. Of all together: texts that recur, NEEDS-HUMAN by
/// class, fields of the brief that were blamed, and whether a signal came back that an earlier review was to end.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act index
  pdca act index --all         # those of earlier reviews too
  pdca act index -v            # long texts whole
  pdca act index --json | jq -r '.patterns[] | .text'")]
pub(crate) struct Args {
    /// Include cycles of earlier reviews
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let records = Records::load(&workspace.process_dir)?;
    let scope = if args.all { IndexScope::All } else { IndexScope::SinceLastReview };
    let index = pdca_act::index(&bundles(workspace)?, &records, scope);
    Ok(Response::done(ActIndex { index, scope }))
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct ActIndex {
    #[serde(flatten)]
    index: Index,
    #[serde(skip)]
    scope: IndexScope,
}

impl Report for ActIndex {
    const KIND: &'static str = "act-index";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let ActIndex { index, scope } = self;
        let mut page = Page { cx, out };
        page.head(index, *scope)?;
        for cycle in &index.cycles {
            page.cycle(cycle)?;
        }
        for row in &index.unreadable {
            writeln!(page.out, "\n{} {}", cx.out.bad("UNREADABLE"), cx.out.strong(&row.id))?;
            page.line("  ", &row.why)?;
        }
        page.together(index)?;
        if !index.cycles.is_empty() && *scope == IndexScope::SinceLastReview {
            writeln!(page.out, "\nnext: {}", cx.out.accent("pdca act log"))?;
        }
        Ok(())
    }
}

/// Writes the index for people.
struct Page<'a, 'c> {
    cx: &'a Context<'c>,
    out: &'a mut dyn Write,
}

impl Page<'_, '_> {
    fn head(&mut self, index: &Index, scope: IndexScope) -> Result<(), Failure> {
        let cycles = counted(index.cycles.len(), "cycle", "cycles");
        let since = match (scope, &index.last_review) {
            (IndexScope::All, _) => "in all".to_owned(),
            (IndexScope::SinceLastReview, Some(date)) => format!("since the review of {date}"),
            (IndexScope::SinceLastReview, None) => "ended, none was reviewed before".to_owned(),
        };
        writeln!(self.out, "{cycles} {}", printable(&since))?;
        Ok(())
    }

    fn cycle(&mut self, cycle: &Cycle) -> Result<(), Failure> {
        let slug = one_line(cycle.slug.as_deref().unwrap_or("-"), 60);
        let (id, state) = (self.cx.out.strong(&cycle.id), self.cx.out.good(cycle.state.as_str()));
        writeln!(self.out, "\n{id}  {state}  {slug}")?;
        let attempts = match cycle.iterations {
            0 => "one attempt".to_owned(),
            iterations => format!("{} attempts", u64::from(iterations) + 1),
        };
        self.line("  ", &format!("{attempts}, {}", cost(cycle.gates)))?;
        if let Some(cost) = crate::cost::total(&cycle.cost) {
            self.line("  cost     ", &cost)?;
        }
        self.line("  touches  ", &touches(&cycle.touches))?;
        for item in &cycle.needs_human {
            let mark = if item.open { "  §6  [ ] " } else { "  §6  [x] " };
            self.line(mark, &item.text)?;
        }
        for text in &cycle.proven {
            self.line("  §7  ", text)?;
        }
        for text in &cycle.deltas {
            self.line("  §9  sent back: ", text)?;
        }
        self.line("  §9  ", &signed(cycle))?;
        for text in &cycle.candidates {
            self.line("  §10 ", text)?;
        }
        for problem in &cycle.problems {
            self.line("  problem: ", problem)?;
        }
        Ok(())
    }

    fn together(&mut self, index: &Index) -> Result<(), Failure> {
        if let Some(cost) = crate::cost::total(&index.cost) {
            let each = index.cost_per_accepted_usd_micros;
            let each = each.map_or_else(String::new, |each| format!(", {each} per accepted issue"));
            writeln!(self.out, "\ncost: {cost}{each}")?;
        }
        self.title("recurring", index.patterns.len())?;
        for pattern in &index.patterns {
            let cycles = self.some(&pattern.cycles);
            self.line(&format!("  {}× ({cycles})  ", pattern.cycles.len()), &pattern.example)?;
        }
        self.title("needs-human by class", index.needs_human.len())?;
        for class in &index.needs_human {
            let cycles = counted(class.cycles.len(), "cycle", "cycles");
            let mut parts = vec![format!("{} in {cycles}", class.class)];
            if class.standing > 0 {
                parts.push("asked of every bundle".to_owned());
            }
            if class.open > 0 {
                parts.push(format!("{} never ticked", class.open));
            }
            self.line(&format!("  {}× ", class.items), &parts.join(", "))?;
        }
        self.title("brief fields blamed", index.blamed_fields.len())?;
        for field in &index.blamed_fields {
            let cycles = self.some(&field.cycles);
            self.line("  ", &format!("{} in {cycles}", field.field))?;
        }
        let signals = if index.cycles.is_empty() { &[][..] } else { &index.signals };
        self.title("signals of earlier reviews", signals.len())?;
        for judged in signals {
            let fate = super::resolve::fate(judged);
            let text = format!("{fate}: {} ({})", judged.signal.text, judged.signal.since);
            self.line("  ", &text)?;
        }
        Ok(())
    }

    fn title(&mut self, title: &str, count: usize) -> Result<(), Failure> {
        if count > 0 {
            writeln!(self.out, "\n{}", self.cx.out.strong(title))?;
        }
        Ok(())
    }

    /// Writes one line, cut to the width unless `-v`.
    fn line(&mut self, before: &str, text: &str) -> Result<(), Failure> {
        let room = self.cx.width().saturating_sub(before.chars().count()).max(20);
        let shown = if self.cx.globals.verbose > 0 {
            printable(text).into_owned()
        } else {
            one_line(text, room)
        };
        writeln!(self.out, "{before}{shown}")?;
        Ok(())
    }

    /// Lists the ids, or the first of many.
    fn some(&self, all: &[BundleId]) -> String {
        const SHOWN: usize = 6;
        if all.len() <= SHOWN || self.cx.globals.verbose > 0 {
            return ids(all);
        }
        format!("{}, …", ids(&all[..SHOWN]))
    }
}

fn cost(gates: GateCost) -> String {
    let tenths = gates.ms / 100;
    match gates.timed {
        0 if gates.rows == 0 => "no gate ran".to_owned(),
        0 => format!("{}, not timed", counted(gates.rows, "gate row", "gate rows")),
        timed => {
            let rows = counted(gates.rows, "row", "rows");
            format!("gates took {}.{} s ({timed} of {rows} timed)", tenths / 10, tenths % 10)
        }
    }
}

fn touches(touches: &Touches) -> String {
    let Touches { declared, actual, undeclared, untouched } = touches;
    let mut parts = vec![match declared.len() {
        0 => "nothing declared".to_owned(),
        count => format!("{count} declared"),
    }];
    parts.push(match actual.len() {
        0 => "the patch names no file".to_owned(),
        count => format!("{} changed", counted(count, "file", "files")),
    });
    if !undeclared.is_empty() {
        parts.push(format!("undeclared: {}", undeclared.join(" ")));
    }
    if !untouched.is_empty() {
        parts.push(format!("not touched: {}", untouched.join(" ")));
    }
    parts.join(", ")
}

fn signed(cycle: &Cycle) -> String {
    let signoff = &cycle.signoff;
    let outcome = signoff.outcome.map_or_else(|| "-".to_owned(), |outcome| outcome.to_string());
    let mut parts =
        vec![format!("{outcome} by {} on {}", or_dash(&signoff.by), or_dash(&signoff.date))];
    if !signoff.disposition.is_empty() {
        parts.push(format!("disposition {}", signoff.disposition));
    }
    parts.extend(signoff.note.clone());
    parts.join(": ")
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    /// What an earlier review promised.
    const LOG: &str = "# Act log\n\n# Act review — 2026-11-01 — cycles considered: 1\n\n\
        ## How effectiveness will be judged\n\n- Signal: the network was out of reach (seen in 1)\n\
        - Signal: the moon is green\n- Watch the next cycles.\n";

    /// Two cycles that ended with the same complaint, one of them put away since, and one that goes on.
    fn desk() -> Desk {
        let desk = Desk::new();
        desk.workspace.write("process/act-log.md", LOG);
        for id in ["36", "41"] {
            desk.complete(id);
            let file = format!("results/issue_{id}/SUMMARY.md");
            let item =
                format!("- [x] T5 Judgment — the network was out of reach of run {id}\n\n## 9.");
            let text = desk.workspace.read(&file).replace("## 9.", &item);
            desk.workspace.write(&file, format!("{text}\n- give the reviewer `gh`\n"));
        }
        desk.workspace.brief("36", &[("Touches", "docs, src/**")]);
        let patch = "--- a/src/a.rs\n+++ b/src/a.rs\n--- a/x\n+++ b/x\n";
        desk.workspace.write("results/issue_36/patch.diff", patch);
        let put_away = desk.workspace.path().join("results/completed/issue_41");
        fs_err::create_dir_all(put_away.parent().unwrap()).unwrap();
        fs_err::rename(desk.workspace.bundle("41"), put_away).unwrap();
        desk.awaiting("50", &[], "pass");
        desk
    }

    #[test]
    fn each_cycle_is_shown_and_then_what_they_share() {
        insta::assert_snapshot!(desk().run(&["act", "index"]), @"
        2 cycles since the review of 2026-11-01

        36  COMPLETE  a-small-thing
          one attempt, 1 gate row, not timed
          touches  2 declared, 2 files changed, undeclared: x, not touched: docs
          §6  [x] T5 Judgment — the network was out of reach of run 36
          §9  merged-wider by Ada on 2026-11-15
          §10 give the reviewer `gh`

        41  COMPLETE  a-small-thing
          one attempt, 1 gate row, not timed
          touches  nothing declared, 1 file changed
          §6  [x] T5 Judgment — the network was out of reach of run 41
          §9  merged-wider by Ada on 2026-11-15
          §10 give the reviewer `gh`

        recurring
          2× (36, 41)  give the reviewer `gh`
          2× (36, 41)  T5 Judgment — the network was out of reach of run 36

        needs-human by class
          2× T5 Judgment in 2 cycles

        signals of earlier reviews
          BACK in 36, 41 (2 of 2 cycles): the network was out of reach (2026-11-01)
          not seen in 2 cycles: the moon is green (2026-11-01)
          judge it yourself: Watch the next cycles. (2026-11-01)

        next: pdca act log
        ");
    }

    #[test]
    fn the_older_spelling_prints_the_same() {
        let desk = desk();
        assert_eq!(desk.run(&["act-index"]).to_string(), desk.run(&["act", "index"]).to_string());
    }

    #[test]
    fn what_was_reviewed_is_left_out_unless_all_is_asked_for() {
        let desk = desk();
        desk.workspace.write("process/.act-reviewed", "issue_36\n");
        assert!(
            desk.run(&["act", "index"]).out.starts_with("1 cycle since the review of 2026-11-01\n")
        );
        assert!(desk.run(&["act", "index", "--all"]).out.starts_with("2 cycles in all\n"));
    }

    #[test]
    fn scripts_get_everything() {
        let run = desk().run(&["act", "index", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(json["kind"], "act-index");
        let cycle = &json["cycles"][0];
        assert_eq!((&cycle["id"], &cycle["state"]), (&"36".into(), &"COMPLETE".into()));
        assert_eq!(cycle["touches"]["undeclared"], serde_json::json!(["x"]));
        insta::assert_snapshot!(serde_json::to_string_pretty(&json["patterns"][1]).unwrap(), @r#"
        {
          "cycles": [
            "36",
            "41"
          ],
          "example": "T5 Judgment — the network was out of reach of run 36",
          "sources": [
            "§6"
          ],
          "text": "t5 judgment the network was out of reach of run n"
        }
        "#);
        insta::assert_snapshot!(serde_json::to_string(&json["signals"]).unwrap(), @r#"[{"considered":2,"cycles":["36","41"],"fate":"back","number":1,"since":"2026-11-01","text":"the network was out of reach"},{"considered":2,"fate":"not-seen","number":2,"since":"2026-11-01","text":"the moon is green"},{"considered":2,"fate":"unclear","number":3,"since":"2026-11-01","text":"Watch the next cycles."}]"#);
    }

    #[test]
    fn a_bundle_that_cannot_be_read_is_one_bad_row() {
        let desk = desk();
        desk.workspace.write("results/issue_7/brief.md", b"caf\xe9");
        let run = desk.run(&["act", "index"]);
        assert_eq!(run.exit, Exit::Done);
        assert!(run.out.contains("UNREADABLE 7\n") && run.out.starts_with("2 cycles"), "{run}");
    }

    #[test]
    fn with_nothing_to_look_at_it_says_so() {
        insta::assert_snapshot!(Desk::new().run(&["act", "index"]), @"0 cycles ended, none was reviewed before");
    }
}
