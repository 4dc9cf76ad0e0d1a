//! What was expected of an agent, and what was seen.

use super::Agent;

/// One cell of the table.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) agent: Agent,
    /// A role, a fault or an attack.
    pub(super) what: String,
    pub(super) wall: &'static str,
    pub(super) expected: &'static str,
    pub(super) observed: String,
    /// How many requests the model got.
    pub(super) requests: usize,
    pub(super) seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellVerdict {
    AsExpected,
    Differs,
}

impl Cell {
    pub(super) fn verdict(&self) -> CellVerdict {
        if self.observed == self.expected { CellVerdict::AsExpected } else { CellVerdict::Differs }
    }
}

/// A row for each cell, in the order in which they were tried.
pub(super) fn table(cells: &[Cell]) -> String {
    let mut lines = vec![
        "| agent | role, fault or attack | wall | expected | observed | requests | seconds |"
            .to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(cells.iter().map(|cell| {
        let observed = cell.observed.replace(['\n', '|'], " ");
        let observed = match cell.verdict() {
            CellVerdict::AsExpected => observed,
            CellVerdict::Differs => format!("**{observed}**"),
        };
        format!(
            "| {} {} | {} | {} | {} | {observed} | {} | {} |",
            cell.agent.name(),
            cell.agent.version(),
            cell.what,
            cell.wall,
            cell.expected,
            cell.requests,
            cell.seconds
        )
    }));
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_differs_stands_out() {
        let cell = |observed: &str| Cell {
            agent: Agent::Codex,
            what: "401".to_owned(),
            wall: "bwrap",
            expected: "auth",
            observed: observed.to_owned(),
            requests: 6,
            seconds: 9,
        };
        let text = table(&[cell("auth"), cell("crashed | exit status 1")]);
        assert!(text.contains("| codex 0.166.0 | 401 | bwrap | auth | auth | 6 | 9 |\n"), "{text}");
        assert!(text.contains("| **crashed   exit status 1** |"), "{text}");
    }
}
