//! `pdca queue`: bundles that wait for sign-off, cheapest first.

use std::io::Write;

use pdca_state::{Bundle, BundleId, Coverage, LoadError, Overall, Snapshot, State, Summary};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Report, Response, Table};
use crate::style::one_line;

/// List bundles that wait for sign-off, cheapest first
///
/// Ordered as `pdca review` shows them: red ones last, then by the number of open items in §6, then by id. The standing
/// question, whether the result is fit for its purpose, is asked for every bundle and counted separately from the
/// findings.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca queue
  pdca queue --json | jq -r '.items[] | select(.cheap) | .id'")]
pub(crate) struct Args {}

/// One waiting bundle.
#[expect(clippy::struct_excessive_bools, reason = "each is a documented field of the JSON")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Item {
    id: BundleId,
    /// Nothing is open and no gating check is red, so one look is enough.
    cheap: bool,
    /// The number of open decisions, the standing question included.
    needs_human: usize,
    disposition: Option<String>,
    overall: Option<Overall>,
    /// 1 if the standing question is open.
    standing: usize,
    /// It closes without a change.
    closes: bool,
    patch_changed: bool,
    /// The brief was edited after Check.
    brief_changed: bool,
    open_items: Vec<String>,
    slug: Option<String>,
    /// The bundles that its change conflicts with.
    forecast_conflicts: Vec<BundleId>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Queue {
    items: Vec<Item>,
}

pub(crate) fn run(_: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let overview = crate::session::snapshot_at_work(cx)?;
    // `status` reports a bundle that became unreadable since the survey.
    let mut items: Vec<Item> = pdca_workspace::review::waiting(&overview)
        .into_iter()
        .filter_map(|entry| item(&Bundle::at(&*entry.dir).ok()?).ok().flatten())
        .collect();
    for item in &mut items {
        item.forecast_conflicts = overview.landing.conflicts(&item.id).to_vec();
    }
    Ok(Response::done(Queue { items }))
}

impl Report for Queue {
    const KIND: &'static str = "queue";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        show(cx, &self.items, out)
    }

    fn table(&self, _: &Context<'_>) -> Option<Table> {
        let mut table = Table::new(&["id", "gates", "open", "conflicts", "slug"]);
        for item in &self.items {
            let gates = item.overall.map_or("none", Overall::as_str);
            let others: Vec<&str> = item.forecast_conflicts.iter().map(AsRef::as_ref).collect();
            table.row([
                item.id.to_string(),
                gates.to_owned(),
                item.needs_human.to_string(),
                others.join(" "),
                item.slug.clone().unwrap_or_default(),
            ]);
        }
        Some(table)
    }
}

fn item(bundle: &Bundle) -> Result<Option<Item>, LoadError> {
    let snapshot = bundle.load()?;
    let coverage = snapshot.coverage()?;
    let brief_changed = snapshot.is_brief_edited()?;
    let Snapshot { id, summary, gates, brief, close_disposition, state, .. } = snapshot;
    if state != State::AwaitingSignoff {
        return Ok(None);
    }
    let summary = summary.unwrap_or_default();
    let open = summary.open_items().len();
    let overall = gates.map(|gates| gates.overall);
    let hint = brief.as_ref().and_then(|brief| brief.disposition_hint()).map(str::to_owned);
    Ok(Some(Item {
        id,
        cheap: open == 0 && overall != Some(Overall::Fail),
        needs_human: open,
        closes: close_disposition.is_some(),
        disposition: close_disposition
            .and_then(|text| text.lines().next().map(str::to_owned))
            .or(hint),
        overall,
        standing: summary.open_standing(),
        patch_changed: coverage == Coverage::Changed,
        brief_changed,
        open_items: open_texts(&summary),
        slug: brief.and_then(|brief| brief.slug()),
        forecast_conflicts: Vec::new(),
    }))
}

/// Returns the open items without their checkboxes.
pub(super) fn open_texts(summary: &Summary) -> Vec<String> {
    let open = summary.items().iter().filter(|item| item.open);
    open.map(|item| item.text.clone()).collect()
}

fn show(cx: &Context<'_>, items: &[Item], out: &mut dyn Write) -> Result<(), Failure> {
    if items.is_empty() {
        writeln!(out, "nothing waits for sign-off")?;
        return Ok(());
    }
    let has_finding =
        |item: &&Item| item.needs_human > item.standing || item.overall == Some(Overall::Fail);
    let findings = items.iter().filter(has_finding).count();
    let (all, confirm) = (items.len(), items.len() - findings);
    writeln!(out, "{all} wait for sign-off: {confirm} to confirm, {findings} to decide")?;
    let ids = items.iter().map(|item| item.id.as_ref().len()).max().unwrap_or(0).min(24);
    let width = cx.env.terminal.width.map(|width| usize::from(width).max(40));
    for item in items {
        let verdict = match item.overall {
            Some(Overall::Pass) => cx.out.good("gates pass"),
            Some(Overall::Fail) => cx.out.bad("gates FAIL"),
            None => cx.out.warn("no gates  "),
        };
        let what = match (item.needs_human - item.standing, item.standing) {
            (0, 0) if item.closes => "confirm the close".to_owned(),
            (0, 0) => "confirm".to_owned(),
            (0, _) => "1 to confirm: fitness for purpose".to_owned(),
            (1, 0) => "1 finding".to_owned(),
            (1, _) => "1 finding, fitness for purpose".to_owned(),
            (count, 0) => format!("{count} findings"),
            (count, _) => format!("{count} findings, fitness for purpose"),
        };
        // 54 columns are taken by the verdict, by what is to be done, and by the space between.
        let room = width.map_or(36, |width| width.saturating_sub(54 + ids).clamp(8, 36));
        let slug = one_line(item.slug.as_deref().unwrap_or("-"), room);
        let mut extra = String::new();
        if item.patch_changed {
            extra.push_str(" [patch edited after Check]");
        }
        let others: Vec<&str> = item.forecast_conflicts.iter().map(AsRef::as_ref).collect();
        if !others.is_empty() {
            extra = format!("{extra} [will conflict: {}]", others.join(", "));
        }
        let used = 54 + ids + slug.chars().count() + extra.chars().count();
        let is_long = width.is_some_and(|width| used > width) && !extra.is_empty();
        let extra = width.map_or_else(|| extra.clone(), |width| one_line(&extra, width - 5));
        let extra = if is_long {
            format!("\n    {}", cx.out.warn(extra.trim()))
        } else if extra.is_empty() {
            extra
        } else {
            format!(" {}", cx.out.warn(extra.trim()))
        };
        writeln!(out, "  {:<ids$}  {verdict}  {what:<36}  {slug}{extra}", item.id)?;
    }
    if let Some(first) = items.first() {
        let next = format!("pdca show {}", first.id);
        let next =
            if cx.env.terminal.stdin && cx.env.terminal.stdout { "pdca review" } else { &next };
        writeln!(out, "next: {}", cx.out.accent(cx.typed(next)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Desk;

    const STANDING: &str = "Validation — fitness-to-purpose — does it serve the user?";

    fn desk() -> Desk {
        let desk = Desk::new();
        desk.awaiting("10", &["T5 — naming", STANDING], "pass");
        desk.awaiting("9", &[], "pass");
        desk.awaiting("8", &["a", "b", "c"], "fail");
        desk.awaiting("11", &[STANDING], "pass");
        desk.awaiting("7", &[], "pass");
        fs_err::remove_file(desk.workspace.bundle("7").join("patch.diff")).unwrap();
        desk.workspace.write("results/issue_7/close-disposition", "duplicate\n");
        let gates = desk.workspace.read("results/issue_7/check-gates.json");
        desk.workspace
            .write("results/issue_7/check-gates.json", gates.replace("patch_digest", "other"));
        desk.workspace.brief("12", &[]);
        desk
    }

    #[test]
    fn the_cheapest_comes_first_and_the_standing_question_is_counted_apart() {
        insta::assert_snapshot!(desk().run(&["queue"]), @"
        5 wait for sign-off: 3 to confirm, 2 to decide
          7   gates pass  confirm the close                     a-small-thing
          9   gates pass  confirm                               a-small-thing
          11  gates pass  1 to confirm: fitness for purpose     a-small-thing
          10  gates pass  1 finding, fitness for purpose        a-small-thing
          8   gates FAIL  3 findings                            a-small-thing
        next: pdca show 7
        ");
    }

    #[test]
    fn scripts_get_the_items_in_order() {
        let run = desk().run(&["queue", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        let ids: Vec<&str> = json["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["7", "9", "11", "10", "8"]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&json["items"][3]).unwrap(), @r#"
        {
          "brief_changed": false,
          "cheap": false,
          "closes": false,
          "disposition": "fix",
          "forecast_conflicts": [],
          "id": "10",
          "needs_human": 2,
          "open_items": [
            "T5 — naming",
            "Validation — fitness-to-purpose — does it serve the user?"
          ],
          "overall": "pass",
          "patch_changed": false,
          "slug": "a-small-thing",
          "standing": 1
        }
        "#);
    }

    #[test]
    fn a_red_bundle_comes_last_and_is_not_cheap_although_nothing_is_open() {
        let desk = Desk::new();
        desk.awaiting("1", &[], "fail");
        desk.awaiting("2", &["a"], "pass");
        let run = desk.run(&["queue", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!((&json["items"][0]["id"], &json["items"][1]["id"]), (&"2".into(), &"1".into()));
        assert_eq!(json["items"][1]["cheap"], false);
    }

    #[test]
    fn an_empty_queue_is_said() {
        assert_eq!(Desk::new().run(&["queue"]).to_string(), "nothing waits for sign-off\n");
    }
}
