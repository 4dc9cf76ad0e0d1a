//! The gates that judge a change, as leaves are told of them.

use pdca_gates::{Check, CheckScope, Cwd};
use pdca_state::Brief;

use crate::config::WorkspaceConfig;

/// Returns one line for each gate that applies to a brief, with its command; `None` if there is none.
pub(crate) fn gate_lines(config: &WorkspaceConfig, brief: Option<&Brief>) -> Option<String> {
    let rows = config.rows.as_slice().iter().filter(|row| row.applies_to(brief));
    let lines: Vec<String> = rows.map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn line(row: &Check) -> String {
    let weight = if row.gating { "" } else { ", advisory" };
    let place = match (row.scope, row.cwd) {
        (CheckScope::Bundle, _) => " (it looks at the bundle; the driver runs it)",
        (CheckScope::Repo, Cwd::Workspace) => " (in `$PDCA_WORKSPACE`)",
        (CheckScope::Repo, Cwd::Auto | Cwd::Worktree) => "",
    };
    let (id, tier) = (&row.id, row.tier.title());
    format!("- `{id}` ({tier}{weight}): `{}`{place}", row.command.shown())
}

#[cfg(test)]
mod tests {
    use pdca_gates::GatesConfig;

    use super::*;

    #[test]
    fn each_gate_that_applies_is_named_with_its_command() {
        let argv = ["ruff", "check", "a b"];
        let gates: GatesConfig = serde_json::from_value(serde_json::json!({ "checks": [
            { "id": "T3-tests", "tier": "T3", "cmd": "cargo test" },
            { "id": "T2-lint", "tier": "T2", "argv": argv, "gating": false, "cwd": "workspace" },
            { "id": "T1-gui", "tier": "T1", "cmd": "gui", "when": "Surfaces: gui" },
            { "id": "T4-message", "tier": "T4", "cmd": "check-message", "scope": "bundle" },
        ] }))
        .unwrap();
        let mut config = WorkspaceConfig::new("/ws", "run", || 0);
        assert_eq!(gate_lines(&config, None), None);
        config.rows = gates.checks().unwrap();
        let brief = Brief::parse("- **Slug:** x\n- **Surfaces:** cli\n");
        let lines = gate_lines(&config, Some(&brief)).unwrap();
        let expected = "- `T3-tests` (T3 Runtime): `cargo test`\n\
             - `T2-lint` (T2 Shape, advisory): `ruff check 'a b'` (in `$PDCA_WORKSPACE`)\n\
             - `T4-message` (T4 Contribution): `check-message` (it looks at the bundle; the driver runs it)";
        assert_eq!(lines, expected);
        assert!(gate_lines(&config, None).unwrap().contains("T1-gui"));
    }
}
