//! The plot of a simulation.

use std::cmp::Ordering;
use std::io::Write;

use pdca_dag::{Constraint, Simulation, Unit};

use crate::context::Context;
use crate::failure::Failure;
use crate::style::printable;
use crate::words;

/// The width of the longest bar.
const BAR: usize = 48;

/// Prints the plot.
pub(super) fn show(
    simulation: &Simulation,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let time = |time| said(time, simulation.unit);
    let what = match simulation.unit {
        Unit::Bundles => "every bundle as long as any other",
        Unit::Milliseconds => "durations as measured or declared",
    };
    writeln!(out, "\n{}  {}", cx.out.strong("simulation"), cx.out.faint(what))?;
    let longest = simulation.makespans.iter().map(|span| span.time).max().unwrap_or(0).max(1);
    let widest = simulation.makespans.iter().map(|span| time(span.time).chars().count()).max();
    let widest = widest.unwrap_or(0);
    for span in &simulation.makespans {
        let lanes = if span.lanes == 1 { "lane " } else { "lanes" };
        let row = format!("  {:>2} {lanes}  {:>widest$}", span.lanes, time(span.time));
        let bar = bar(span.time, longest);
        let bar = match span.lanes.cmp(&simulation.enough) {
            Ordering::Less => cx.out.accent(bar),
            Ordering::Equal => cx.out.good(bar),
            Ordering::Greater => cx.out.faint(bar),
        };
        writeln!(out, "{row}  {bar}")?;
    }
    let most = simulation.makespans.last().map_or(0, |span| span.lanes);
    let enough = match simulation.enough {
        one @ 1 => format!("{one} lane is as fast as {most}"),
        few if few < most => format!("{few} lanes are as fast as {most}"),
        all => format!("more than {all} lanes may help further"),
    };
    writeln!(out, "  {}", cx.out.strong(enough))?;
    writeln!(
        out,
        "  the work is {}, the longest chain {}: no number of lanes is faster",
        time(simulation.work),
        time(simulation.critical_path)
    )?;
    if let Some(costliest) = &simulation.costliest {
        let what = match &costliest.constraint {
            Constraint::Dependency(edge) => words::dependency(edge, cx),
            Constraint::Rivals(rivals) => {
                words::apart(&rivals.bundles.0, &rivals.bundles.1, &rivals.rivalry)
            }
        };
        writeln!(
            out,
            "  what costs most: {}; without it {} sooner",
            printable(&what),
            time(costliest.saves)
        )?;
    }
    Ok(())
}

/// Draws a bar of at least one block.
fn bar(time: u64, longest: u64) -> String {
    let share = u128::from(time) * BAR as u128 / u128::from(longest);
    "█".repeat(usize::try_from(share).unwrap_or(BAR).clamp(1, BAR))
}

/// Formats a time in its unit.
fn said(time: u64, unit: Unit) -> String {
    match unit {
        Unit::Bundles => time.to_string(),
        Unit::Milliseconds => words::duration(std::time::Duration::from_millis(time)),
    }
}
