//! Predicts the duration of a plan with different numbers of lanes.

use std::cmp::Ordering;
use std::io::Write;

use pdca_dag::{Constraint, Simulation, Unit};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::style::printable;

use crate::planning::document::EdgeRow;
use crate::words;

/// The width of the longest bar.
const BAR: usize = 48;

/// The JSON of `plan --simulate`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Prediction {
    /// `bundles` if no duration is known, else `milliseconds`.
    unit: &'static str,
    work: u64,
    critical_path: u64,
    /// The smallest number of lanes that is as fast as any larger one.
    enough: usize,
    makespans: Vec<Span>,
    costliest: Option<Cost>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Span {
    lanes: usize,
    time: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Cost {
    saves: u64,
    rule: &'static str,
    bundles: (String, String),
    #[serde(skip_serializing_if = "Option::is_none")]
    edge: Option<EdgeRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<String>,
}

impl Prediction {
    pub(crate) fn of(simulation: &Simulation) -> Self {
        let spans = simulation.makespans.iter();
        Self {
            unit: match simulation.unit {
                Unit::Bundles => "bundles",
                Unit::Milliseconds => "milliseconds",
            },
            work: simulation.work,
            critical_path: simulation.critical_path,
            enough: simulation.enough,
            makespans: spans.map(|span| Span { lanes: span.lanes, time: span.time }).collect(),
            costliest: simulation
                .costliest
                .as_ref()
                .map(|costliest| Cost::of(costliest.saves, &costliest.constraint)),
        }
    }
}

impl Cost {
    fn of(saves: u64, constraint: &Constraint) -> Self {
        match constraint {
            Constraint::Dependency(edge) => Self {
                saves,
                rule: "depends_on",
                bundles: (edge.prerequisite.to_string(), edge.dependant.to_string()),
                edge: Some(EdgeRow::of(edge)),
                witness: None,
            },
            Constraint::Rivals(rivals) => {
                let (rule, witness) = match &rivals.rivalry {
                    pdca_dag::Rivalry::Conflict { .. } => ("conflict", None),
                    pdca_dag::Rivalry::Overlap { witness, .. } => {
                        ("overlap", Some(witness.clone()))
                    }
                };
                let bundles = (rivals.bundles.0.to_string(), rivals.bundles.1.to_string());
                Self { saves, rule, bundles, edge: None, witness }
            }
        }
    }
}

/// Prints the plot.
pub(crate) fn show(
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
