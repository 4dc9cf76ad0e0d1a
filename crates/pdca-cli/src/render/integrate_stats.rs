//! Statistics about integrations as text and as a table.

use std::io::Write;

use pdca_driver::integrate::Stats;
use pdca_workspace::integration::StatsReport;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response, Table};

/// The most blocking bundles that are listed.
const SHOWN: usize = 20;

/// Makes the response: without a record there is nothing to show.
pub(crate) fn stats(report: StatsReport) -> Response {
    let exit = if report.records.is_empty() { Exit::NothingToDo } else { Exit::Done };
    Response::new(report, exit)
}

impl Report for StatsReport {
    const KIND: &'static str = "integrate";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        print(cx, &self.stats, out)
    }

    fn table(&self, _: &Context<'_>) -> Option<Table> {
        let mut table =
            Table::new(&["target", "branch", "changes", "landed", "held", "runs", "reused"]);
        for record in &self.records {
            table.row([
                record.target.clone(),
                record.branch.clone(),
                record.changes.to_string(),
                record.landed.to_string(),
                record.held.len().to_string(),
                (record.green + record.red + record.undecided).to_string(),
                record.reused.to_string(),
            ]);
        }
        Some(table)
    }
}

fn print(cx: &Context<'_>, stats: &Stats, out: &mut dyn Write) -> Result<(), Failure> {
    if stats.integrations == 0 {
        writeln!(out, "no integration is on record yet")?;
        return Ok(());
    }
    let percent = |rate: f64| format!("{:.1} %", rate * 100.0);
    let mut row = |name: &str, value: String| writeln!(out, "{name:<18} {value}");
    let cut = match stats.cut_short {
        0 => String::new(),
        count => format!(", {count} cut short"),
    };
    row("integrations", format!("{}{cut}", stats.integrations))?;
    let (landed, held) = (stats.landed, stats.held);
    row("changes", format!("{}: {landed} landed, {held} held", stats.changes))?;
    row("gate runs", stats.runs.to_string())?;
    row("red rate", stats.red_rate.map_or_else(|| "-".to_owned(), percent))?;
    row("no verdict", stats.undecided.to_string())?;
    row("verdicts reused", stats.reused.to_string())?;
    row("runs saved", format!("{} against one by one", stats.saved))?;
    let rows: Vec<String> =
        stats.flaky_rows.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let rows = if rows.is_empty() { String::new() } else { format!(" ({})", rows.join(", ")) };
    row("flakes", format!("{}{rows}", stats.flakes))?;
    let times = stats.median_secs_to_green.zip(stats.longest_secs_to_green);
    let times = times.map(|(median, longest)| {
        format!("{} in the median, {} at the longest", span(median), span(longest))
    });
    row("time to green", times.unwrap_or_else(|| "-".to_owned()))?;
    if !stats.blocks.is_empty() {
        writeln!(out, "{}", cx.out.strong("who blocks whom"))?;
    }
    for pair in stats.blocks.iter().take(SHOWN) {
        let by = if pair.by.is_empty() { "by itself".to_owned() } else { pair.by.join(" ") };
        let rows = if pair.rows.is_empty() {
            pair.reason.as_str().to_owned()
        } else {
            pair.rows.join(", ")
        };
        writeln!(out, "  {:<12} {by:<20} {rows}  {}x", pair.held, pair.times)?;
    }
    if let Some(more) = stats.blocks.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        writeln!(out, "  and {more} more; `--json` has all")?;
    }
    Ok(())
}

/// Formats a duration in its largest unit.
fn span(secs: i64) -> String {
    match secs {
        ..120 => format!("{secs} s"),
        120..7200 => format!("{} min", secs / 60),
        7200.. => format!("{} h", secs / 3600),
    }
}
