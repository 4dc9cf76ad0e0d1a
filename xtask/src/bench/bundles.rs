//! Generated bundles in every state of the cycle, with realistic lengths.

use std::io;

use camino::Utf8Path;
use pdca_state::{Artifact, Reentry, State};

/// The mix of a large instance: most bundles are done, some wait, few are in progress.
const MIX: [State; 12] = [
    State::Complete,
    State::Complete,
    State::Complete,
    State::Complete,
    State::AwaitingSignoff,
    State::Planned,
    State::Unplanned,
    State::Resolved,
    State::Built,
    State::Checked,
    State::Discontinued,
    State::Iterate(Reentry::Do),
];

/// Returns the state of the bundle with this number.
pub(super) fn state_of(number: u32) -> State {
    MIX[number as usize % MIX.len()]
}

/// Writes `count` bundles of mixed states below `root`.
pub(super) fn write_mixed(root: &Utf8Path, count: u32) -> io::Result<()> {
    for number in 0..count {
        write_bundle(root, number, state_of(number))?;
    }
    Ok(())
}

/// Writes `count` planned bundles.
pub(super) fn write_planned(root: &Utf8Path, count: u32) -> io::Result<()> {
    for number in 0..count {
        write_bundle(root, number, State::Planned)?;
    }
    Ok(())
}

/// Writes the bundle of a sealed change.
pub(super) fn write_sealed(
    root: &Utf8Path,
    number: u32,
    sealed: &pdca_integrate::Sealed,
    patch: &str,
) -> io::Result<()> {
    let directory = root.join(sealed.id().dir_name());
    fs_err::create_dir_all(&directory)?;
    for (artifact, text) in texts(number, State::Complete) {
        let text = if artifact == Artifact::Patch { patch.to_owned() } else { text };
        fs_err::write(directory.join(artifact.file_name()), text)?;
    }
    fs_err::write(directory.join(Artifact::Seal.file_name()), sealed.to_json())
}

fn write_bundle(root: &Utf8Path, number: u32, state: State) -> io::Result<()> {
    let directory = root.join(format!("issue_{}", 10_000 + number));
    fs_err::create_dir_all(&directory)?;
    for (artifact, text) in texts(number, state) {
        fs_err::write(directory.join(artifact.file_name()), text)?;
    }
    Ok(())
}

/// Returns the files of a state.
fn texts(number: u32, state: State) -> Vec<(Artifact, String)> {
    let notes = |resolved: &str| (Artifact::Notes, format!("{{\"thread\": []{resolved}}}\n"));
    let outcome = match state {
        State::Unplanned => return vec![notes("")],
        State::Resolved => return vec![notes(", \"resolved\": {\"by\": \"the tracker\"}")],
        State::Planned | State::Built | State::Checked => None,
        State::AwaitingSignoff => Some(""),
        State::Complete => Some("merged-wider"),
        State::Iterate(Reentry::Do) => Some("iterated-to-Do"),
        State::Iterate(Reentry::Plan) => Some("iterated-to-Plan"),
        State::Discontinued => Some("discontinued"),
    };
    let mut texts = vec![(Artifact::Brief, brief(number))];
    if state == State::Planned {
        return texts;
    }
    texts.push((Artifact::Patch, patch(number)));
    if state == State::Built {
        return texts;
    }
    texts.push((Artifact::GatesJson, gates(number)));
    texts.push((Artifact::Review, review()));
    if let Some(outcome) = outcome {
        texts.push((Artifact::Summary, summary(number, outcome)));
    }
    texts
}

fn filler(lines: usize) -> String {
    "A sentence that stands for what a person or a model has written about this issue.\n"
        .repeat(lines)
}

fn brief(number: u32) -> String {
    format!(
        "# Brief\n\n- **Slug:** bench-{number}\n- **Defect (Goal):** number {number}\n\
         - **Success criterion:** it is measured\n- **Depends on:** none\n\
         - **Touches:** src/part_{}.rs\n- **Disposition hint:** fix\n\n## Background\n\n{}",
        number % 97,
        filler(80)
    )
}

fn patch(number: u32) -> String {
    format!("--- a/part.rs\n+++ b/part.rs\n@@ -1 +1 @@\n-0\n+{number}\n")
}

fn gates(number: u32) -> String {
    let elements = ["C1", "C2", "C3", "C4", "C5", "T1", "T2", "T3", "T4", "T5", "V"];
    let rows: Vec<_> = elements
        .iter()
        .map(|element| {
            serde_json::json!({
                "check": format!("{element} of the check matrix"),
                "result": "pass",
                "oracle": "true",
                "rule_id": format!("{element}-bench"),
                "path_line": "nothing was measured here but the reading of it",
                "gating": false,
                "element": element,
            })
        })
        .collect();
    let issue = format!("issue_{}", 10_000 + number);
    serde_json::json!({"issue_dir": issue, "overall": "pass", "rows": rows}).to_string()
}

fn review() -> String {
    format!("| Item | Verdict | Basis |\n|---|---|---|\n| C4 | PASS | it ran |\n\n{}", filler(40))
}

fn summary(number: u32, outcome: &str) -> String {
    let titles = [
        "1. Spec (from brief.md)",
        "2. Disposition claimed",
        "3. Correctness (Check — chain)",
        "4. Conformance (Check — stack)",
        "5. Advisory review (artifact-only, decorrelated)",
        "6. NEEDS-HUMAN — items the human must clear before sign-off",
        "7. Proven / not proven",
        "8. Ready-to-ship attachments",
        "9. Check sign-off",
        "10. Act candidates (hints for the next Act review)",
    ];
    let mut parts = vec![format!("# Result — issue {} / bench-{number}\n", 10_000 + number)];
    parts.extend(titles.map(|title| {
        let body = match title.as_bytes()[0] {
            b'6' => "- [ ] decide whether this is enough\n".to_owned(),
            b'9' => format!(
                "- Disposition confirmed / overridden: fix\n- Outcome: {outcome}\n\
                 - Iteration delta (if iterating):\n- By / date:\n"
            ),
            _ => filler(12),
        };
        format!("\n## {title}\n\n{body}")
    }));
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bundle_is_in_the_state_it_was_written_for() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        write_mixed(root, 12).unwrap();
        let states: Vec<State> = pdca_state::survey(&pdca_state::BundleRoot::new(root.to_owned()))
            .unwrap()
            .into_iter()
            .map(|row| row.result.unwrap().state)
            .collect();
        assert_eq!(states, MIX);
    }
}
