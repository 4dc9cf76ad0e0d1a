//! Reports measurements: a table for people, JSON for scripts, without a verdict.

use serde::Serialize;

/// One measurement beside the one it is compared with.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BenchLine {
    pub(super) what: String,
    pub(super) unit: BenchUnit,
    pub(super) measured: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<Against>,
    /// The aim of the project, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) aim: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Against {
    pub(super) what: String,
    pub(super) measured: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) enum BenchUnit {
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "MiB")]
    Mebibytes,
    #[serde(rename = "count")]
    Count,
}

impl BenchUnit {
    fn as_str(self) -> &'static str {
        match self {
            BenchUnit::Milliseconds => "ms",
            BenchUnit::Mebibytes => "MiB",
            BenchUnit::Count => "",
        }
    }
}

impl BenchLine {
    fn ratio(&self) -> Option<f64> {
        let against = self.against.as_ref()?.measured;
        (against > 0.0).then(|| self.measured / against)
    }

    fn word(&self) -> &'static str {
        match self.aim {
            Some(aim) if self.measured <= aim => "within",
            Some(_) => "beyond",
            None => "",
        }
    }
}

/// Renders aligned columns, one row per measurement.
pub(super) fn table(lines: &[BenchLine]) -> String {
    let header = ["what", "measured", "against", "ratio", "aim", ""].map(str::to_owned);
    let mut rows = vec![header];
    rows.extend(lines.iter().map(row));
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    rows.iter()
        .map(|row| {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            cells.join("  ").trim_end().to_owned() + "\n"
        })
        .collect()
}

fn row(line: &BenchLine) -> [String; 6] {
    let unit = line.unit.as_str();
    [
        line.what.clone(),
        format!("{:.2} {unit}", line.measured),
        line.against.as_ref().map_or_else(String::new, |against| {
            format!("{:.2} {unit} ({})", against.measured, against.what)
        }),
        line.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        line.aim.map_or_else(String::new, |aim| format!("≤ {aim:.2} {unit}")),
        line.word().to_owned(),
    ]
}

/// Renders the same numbers as JSON.
pub(super) fn json(lines: &[BenchLine]) -> serde_json::Value {
    let with_ratio = |line: &BenchLine| {
        let mut value = serde_json::json!(line);
        value["ratio"] = serde_json::json!(line.ratio());
        value
    };
    let lines: Vec<_> = lines.iter().map(with_ratio).collect();
    serde_json::json!({"schema": 1, "kind": "bench", "lines": lines})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> [BenchLine; 2] {
        [
            BenchLine {
                what: "status".to_owned(),
                unit: BenchUnit::Milliseconds,
                measured: 30.0,
                against: Some(Against { what: "walk".to_owned(), measured: 20.0 }),
                aim: Some(60.0),
            },
            BenchLine {
                what: "memory".to_owned(),
                unit: BenchUnit::Mebibytes,
                measured: 65.0,
                against: None,
                aim: Some(64.0),
            },
        ]
    }

    #[test]
    fn the_table_shows_ratio_and_aim() {
        assert_eq!(
            table(&lines()),
            "what    measured   against          ratio  aim\n\
             status  30.00 ms   20.00 ms (walk)  1.50   ≤ 60.00 ms   within\n\
             memory  65.00 MiB                          ≤ 64.00 MiB  beyond\n"
        );
    }

    #[test]
    fn a_comparison_with_nothing_has_no_ratio() {
        let mut line = lines()[0].clone();
        line.against = Some(Against { what: "nothing".to_owned(), measured: 0.0 });
        assert_eq!(line.ratio(), None);
    }

    #[test]
    fn json_carries_the_same_numbers() {
        let json = json(&lines());
        assert_eq!(json["kind"], "bench");
        assert_eq!(json["lines"][0]["against"]["measured"], 20.0);
        assert_eq!(json["lines"][0]["ratio"], 1.5);
        assert_eq!(json["lines"][1]["ratio"], serde_json::Value::Null);
        assert_eq!(json["lines"][1]["unit"], "MiB");
        assert_eq!(json["lines"][1].get("against"), None);
    }
}
