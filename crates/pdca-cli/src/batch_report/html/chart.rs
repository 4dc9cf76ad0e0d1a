//! The timeline: a row for each lane, with bundles above and their steps, leaves and gates below.

use std::collections::BTreeMap;

use jiff::Timestamp;
use maud::{Markup, html};

use crate::batch_report::words::span as duration;
use pdca_workspace::batch_report::Text;
use pdca_workspace::batch_report::WorkspaceReport;
use pdca_workspace::batch_report::{RunHistory, Span, SpanEnd, SpanKind, TimelineRow};

const WIDTH: u64 = 1000;
/// The room for the names of the rows.
const NAMES: u64 = 90;
const BAR: u64 = 16;
const ROW: u64 = 2 * BAR + 12;
const AXIS: u64 = 22;

/// The bars of a page. The shortest ones are left out; `--trace` has all.
const MOST: usize = 500;

/// The runs that are drawn.
const RUNS: usize = 10;

pub(super) fn section(report: &WorkspaceReport) -> Markup {
    let shown: Vec<&RunHistory> =
        report.runs.iter().filter(|run| !run.spans.is_empty()).take(RUNS).collect();
    let share = MOST / shown.len().max(1);
    html! {
        section #timeline aria-labelledby="h-timeline" {
            h2 #h-timeline { "Timeline" }
            @if shown.is_empty() { p { "No events are recorded." } }
            @for (place, run) in shown.iter().enumerate() { (chart(run, share, place == 0)) }
            @if report.runs.len() > RUNS { p.cut { "Older runs are left out; " code { "pdca report --run ID" } " shows one." } }
        }
    }
}

fn chart(run: &RunHistory, most: usize, is_open: bool) -> Markup {
    let Some((from, to)) = bounds(&run.spans) else { return html! {} };
    let scale = Scale { from, millis: millis(from, to).max(1) };
    let rows = rows(&run.spans);
    let bars = longest(&run.spans, most);
    let height = AXIS + ROW * rows.len() as u64;
    let label = format!(
        "{} {}, {} rows, {}",
        run.kind.as_str(),
        run.id,
        rows.len(),
        duration(scale.millis)
    );
    html! {
        details.run open[is_open] {
            summary { (run.kind.as_str()) " " code { (run.id) } @if let Some(host) = &run.host { " on " (Text::line(host, 60)) } " · " (duration(scale.millis)) }
            div.scroll tabindex="0" role="region" aria-label="timeline" {
                svg.chart role="img" aria-label=(label) viewBox=(format!("0 0 {} {height}", NAMES + WIDTH)) {
                    (axis(&scale, height))
                    @for (row, place) in &rows {
                        text.lane x="0" y=(AXIS + place * ROW + BAR) { (row) }
                        line.rule x1="0" x2=(NAMES + WIDTH) y1=(AXIS + place * ROW - 3) y2=(AXIS + place * ROW - 3) {}
                    }
                    @for bar in &bars { (rect(bar, &scale, rows.get(&bar.row).copied().unwrap_or(0))) }
                }
            }
            @if bars.len() < run.spans.len() { p.cut { (run.spans.len() - bars.len()) " shorter spans are left out; " code { "pdca report --trace FILE" } " has all." } }
            @if run.unreadable > 0 { p.cut { (run.unreadable) " lines of the record could not be read." } }
            (table(&run.spans))
        }
    }
}

/// Time to position.
struct Scale {
    from: Timestamp,
    millis: u64,
}

impl Scale {
    fn x(&self, at: Timestamp) -> u64 {
        NAMES + millis(self.from, at) * WIDTH / self.millis
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0)
}

fn bounds(spans: &[Span]) -> Option<(Timestamp, Timestamp)> {
    let from = spans.iter().map(|span| span.from).min()?;
    let to = spans.iter().map(|span| span.to).max()?;
    Some((from, to))
}

fn rows(spans: &[Span]) -> BTreeMap<TimelineRow, u64> {
    let rows: BTreeMap<TimelineRow, u64> = spans.iter().map(|span| (span.row, 0)).collect();
    rows.into_keys().zip(0..).collect()
}

/// Returns the longest spans in their order; bundles and combinations come first whatever they took.
fn longest(spans: &[Span], most: usize) -> Vec<&Span> {
    let mut places: Vec<usize> = (0..spans.len()).collect();
    places.sort_by_key(|place| {
        let span = &spans[*place];
        (span.kind > SpanKind::Combination, std::cmp::Reverse(millis(span.from, span.to)))
    });
    places.truncate(most);
    places.sort_unstable();
    places.into_iter().map(|place| &spans[place]).collect()
}

fn rect(bar: &Span, scale: &Scale, row: u64) -> Markup {
    let is_outer = bar.kind <= SpanKind::Combination;
    let x = scale.x(bar.from);
    let width = (scale.x(bar.to) - x).max(2);
    let y = AXIS + row * ROW + if is_outer { 0 } else { BAR + 2 };
    let took = duration(millis(bar.from, bar.to));
    // About seven units for a letter.
    let room = usize::try_from(width / 7).unwrap_or(0);
    let mark = match bar.end {
        SpanEnd::Failed => "✗ ",
        SpanEnd::Unfinished => "… ",
        SpanEnd::Undecided => "? ",
        SpanEnd::Done | SpanEnd::Passed => "",
    };
    let label = format!("{mark}{}", bar.name);
    html! {
        g {
            title { @if let Some(id) = &bar.bundle { (id) " " } (bar.kind.as_str()) " " (bar.name) ": " (bar.end.as_str()) ", " (took) }
            rect.bar.(bar.kind.as_str()).(bar.end.as_str()) x=(x) y=(y) width=(width) height=(BAR) rx="2" {}
            @if label.chars().count() <= room { text.label x=(x + 4) y=(y + 12) { (label) } }
        }
    }
}

fn axis(scale: &Scale, height: u64) -> Markup {
    let step = tick(scale.millis);
    let ticks = (0..=scale.millis / step).map(|number| number * step);
    html! {
        @for at in ticks {
            @let x = NAMES + at * WIDTH / scale.millis;
            line.tick x1=(x) x2=(x) y1="14" y2=(height) {}
            text.time x=(x + 2) y="11" { (duration(at)) }
        }
    }
}

/// Returns a round interval that gives at most ten ticks.
fn tick(millis: u64) -> u64 {
    const ROUND: [u64; 17] = [
        1, 10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000,
        1_800_000, 3_600_000, 14_400_000,
    ];
    ROUND.into_iter().find(|step| millis / step <= 9).unwrap_or_else(|| (millis / 9).max(1))
}

/// Lists the longest spans as text, for those who do not see the picture.
fn table(spans: &[Span]) -> Markup {
    let mut inner: Vec<&Span> = spans
        .iter()
        .filter(|span| span.kind > SpanKind::Step || span.kind == SpanKind::Combination)
        .collect();
    inner.sort_by_key(|span| std::cmp::Reverse(millis(span.from, span.to)));
    html! {
        @if !inner.is_empty() {
            details {
                summary { "The longest, as a table" }
                table {
                    thead { tr { th scope="col" { "where" } th scope="col" { "bundle" } th scope="col" { "what" } th scope="col" { "end" } th scope="col" { "time" } } }
                    tbody {
                        @for span in inner.iter().take(20) {
                            tr {
                                td { (span.row) }
                                td { @if let Some(id) = &span.bundle { (id) } }
                                td { (span.kind.as_str()) " " (span.name) }
                                td { (span.end.as_str()) }
                                td.num { (duration(millis(span.from, span.to))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tick;

    #[test]
    fn a_chart_has_at_most_ten_ticks_whatever_it_took() {
        for millis in [1, 9, 10, 11, 999, 60_000, 3_600_000, 86_400_000, u64::MAX / 2] {
            assert!(millis / tick(millis) <= 10, "{millis}");
        }
    }
}
