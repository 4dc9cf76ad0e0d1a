//! Compares the paths that a change writes with the paths that its brief declares.

use pdca_dag::{Case, Pattern};
use pdca_gates::{DRIFT_ROW, GatesOutcome, harmless};
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, Element, GateResult, GateRow, LoadError, PatchError,
    Snapshot, State, footprint,
};

use crate::config::WorkspaceConfig;
use crate::run_bundle::Driver;
use crate::schedule::DriftPolicy;
use pdca_journal::events::{EventKind, RedEvidence};

/// The most paths that the note of a row names.
const NAMED: usize = 20;

/// A bundle whose change writes more than its brief declares, with the undeclared paths.
pub type Drifted = (BundleId, Vec<String>);

/// Emits the undeclared paths of a change, if any. Returns whether the bundle has
/// a change under check; an attempt that is about to be archived has none.
pub(crate) fn tell_drift(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<bool, LoadError> {
    let is_checked = match snapshot.state {
        State::Built | State::Checked => snapshot.artifacts.contains(Artifact::Patch),
        State::Unplanned
        | State::Resolved
        | State::Planned
        | State::AwaitingSignoff
        | State::Complete
        | State::Iterate(_)
        | State::Discontinued => false,
    };
    if is_checked
        && let Some(brief) = declared(cx.config, snapshot)
        && let Some(patch) = bundle.read(Artifact::Patch)?
    {
        tell_outside(cx, bundle, brief, &patch);
    }
    Ok(is_checked)
}

/// Adds a row about undeclared paths to the report, and emits it.
pub(crate) fn with_drift(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    outcome: GatesOutcome,
    patch: &[u8],
) -> GatesOutcome {
    let Some(brief) = declared(cx.config, snapshot) else { return outcome };
    if !outcome.fixes.is_empty() {
        // A fix may have written more than the builder, which is known only now.
        tell_outside(cx, bundle, brief, patch);
    }
    let Some(row) = row(brief, patch, cx.config.schedule.drift) else { return outcome };
    cx.tell(
        bundle,
        EventKind::GateEnded {
            rule_id: row.rule_id.clone(),
            result: row.result.as_str().to_owned(),
            evidence: row.path_line.clone(),
            proof: RedEvidence::default(),
            gating: row.gating,
            reused: false,
            duration_ms: 0,
        },
    );
    GatesOutcome { report: outcome.report.with_row(Element::T1, row), ..outcome }
}

fn tell_outside(cx: &Driver<'_>, bundle: &Bundle, brief: &Brief, patch: &[u8]) {
    // An unreadable patch gets a row of its own.
    if let Ok(outside) = undeclared_paths(brief, patch)
        && !outside.is_empty()
    {
        if let Some(drifts) = cx.drifts {
            // Sending fails only after the pool has ended.
            drop(drifts.send((bundle.id().clone(), outside.clone())));
        }
        cx.tell(bundle, EventKind::Drifted { outside });
    }
}

/// Returns whether the drift row of the gate report differs from what it would be now,
/// because the declaration or the setting changed since. Reads the patch.
pub fn is_drift_outdated(config: &WorkspaceConfig, snapshot: &Snapshot) -> Result<bool, LoadError> {
    let Some(gates) = &snapshot.gates else { return Ok(false) };
    let said = gates.rows.iter().find(|row| row.rule_id == DRIFT_ROW);
    let Some(brief) = declared(config, snapshot) else { return Ok(said.is_some()) };
    let Ok(bundle) = Bundle::at(&*snapshot.dir) else { return Ok(false) };
    let Some(patch) = bundle.read(Artifact::Patch)? else { return Ok(false) };
    let now = row(brief, &patch, config.schedule.drift);
    let result = |row: &GateRow| (row.result, row.gating, row.note.clone());
    Ok(said.map(result) != now.as_ref().map(result))
}

/// Returns the brief if it declares touched paths and drift is not turned off.
fn declared<'s>(config: &WorkspaceConfig, snapshot: &'s Snapshot) -> Option<&'s Brief> {
    let brief = snapshot.authored_brief()?;
    let counts = match config.schedule.drift {
        DriftPolicy::Warn | DriftPolicy::Fail => !brief.touches().is_empty(),
        DriftPolicy::Off => false,
    };
    counts.then_some(brief)
}

/// Returns the written paths that no `Touches` glob of the brief covers, sorted.
///
/// Globs carry no target prefix here: a change is of one repository.
pub fn undeclared_paths(brief: &Brief, patch: &[u8]) -> Result<Vec<String>, PatchError> {
    // An invalid glob covers nothing, so it excuses no path.
    let parse = |glob: &String| Pattern::parse(glob, Case::Sensitive).ok();
    let touches: Vec<Pattern> = brief.touches().iter().filter_map(parse).collect();
    let mut paths = footprint(patch)?;
    paths.retain(|path| !touches.iter().any(|touch| touch.covers(path)));
    Ok(paths)
}

/// Returns the row about undeclared paths; `None` if all are declared.
fn row(brief: &Brief, patch: &[u8], drift: DriftPolicy) -> Option<GateRow> {
    let gating = match drift {
        DriftPolicy::Warn => false,
        DriftPolicy::Fail => true,
        DriftPolicy::Off => return None,
    };
    let (result, evidence, note) = match undeclared_paths(brief, patch) {
        Ok(outside) if outside.is_empty() => return None,
        Ok(outside) => {
            let shown: Vec<String> =
                outside.iter().take(NAMED).map(|path| path.escape_debug().to_string()).collect();
            let more = match outside.len() - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let evidence = format!("{} outside `Touches`: {}", outside.len(), shown.join(", "));
            (GateResult::Fail, evidence, format!("not declared: {}{more}", shown.join(", ")))
        }
        Err(error) => {
            let why = format!("what is touched cannot be told: {error}");
            (GateResult::Unverifiable, why.clone(), why)
        }
    };
    Some(GateRow {
        check: "T1 declared `Touches`".to_owned(),
        result,
        oracle: "patch.diff against `Touches` of brief.md".to_owned(),
        rule_id: DRIFT_ROW.to_owned(),
        path_line: harmless(evidence.as_bytes()),
        gating,
        note: Some(note),
        ..GateRow::none(Element::T1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/src/a.rs b/src/a.rs
--- a/src/a.rs
+++ b/src/a.rs
@@ -1 +1 @@
-x
+y
diff --git a/docs/old.md b/src/new.md
rename from docs/old.md
rename to src/new.md
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
";

    fn of(touches: &str) -> Brief {
        Brief::parse(&format!("- **Slug:** x\n- **Touches:** {touches}\n"))
    }

    fn said(touches: &str, drift: DriftPolicy) -> Option<(GateResult, bool, String)> {
        row(&of(touches), PATCH.as_bytes(), drift)
            .map(|row| (row.result, row.gating, row.path_line))
    }

    #[test]
    fn moved_removed_and_mode_only_files_are_touched() {
        let outside =
            |touches: &str| undeclared_paths(&of(touches), PATCH.as_bytes()).unwrap().join(" ");
        assert_eq!(outside("src"), "docs/old.md gone run.sh");
        assert_eq!(outside("src, docs/*.md, gone, run.sh"), "");
        assert_eq!(outside("src/[b-a].rs"), "docs/old.md gone run.sh src/a.rs src/new.md");
    }

    #[test]
    fn the_config_decides_whether_it_blocks() {
        let evidence = "3 outside `Touches`: docs/old.md, gone, run.sh".to_owned();
        assert_eq!(
            said("src", DriftPolicy::Warn),
            Some((GateResult::Fail, false, evidence.clone()))
        );
        assert_eq!(said("src", DriftPolicy::Fail), Some((GateResult::Fail, true, evidence)));
        assert_eq!(said("src", DriftPolicy::Off), None);
        assert_eq!(said("**", DriftPolicy::Fail), None);
    }

    #[test]
    fn a_patch_that_cannot_be_read_is_a_question_for_a_person() {
        let row = row(&of("src"), b"words\n", DriftPolicy::Fail).unwrap();
        assert_eq!(row.result, GateResult::Unverifiable);
        assert!(row.path_line.contains("there is no change in it"), "{row:?}");
    }

    #[test]
    fn a_name_with_a_line_end_stays_on_its_line() {
        let patch = b"diff --git \"a/x\\ny\" \"b/x\\ny\"\nold mode 100644\nnew mode 100755\n";
        let row = row(&of("src"), patch, DriftPolicy::Warn).unwrap();
        assert_eq!(row.note.as_deref(), Some(r"not declared: x\ny"));
    }

    /// A bundle with a gate report about a patch that touches paths.
    fn gated(touches: &str) -> crate::testing::Scene {
        let mut scene = crate::testing::Scene::planned();
        scene.workspace.brief("7", &[("Touches", touches)]);
        scene.stop_after("check-gates.json");
        scene
    }

    #[test]
    fn a_report_is_outdated_once_the_declaration_covers_less_than_before() {
        let scene = gated("**");
        let snapshot = || scene.bundle().load().unwrap();
        assert!(!is_drift_outdated(&scene.config, &snapshot()).unwrap());
        scene.workspace.brief("7", &[("Touches", "nowhere")]);
        assert!(is_drift_outdated(&scene.config, &snapshot()).unwrap());
    }

    #[test]
    fn a_report_with_a_finding_is_outdated_once_drift_is_turned_off() {
        let mut scene = gated("nowhere");
        let snapshot = scene.bundle().load().unwrap();
        assert!(!is_drift_outdated(&scene.config, &snapshot).unwrap());
        scene.config.schedule.drift = DriftPolicy::Fail;
        assert!(is_drift_outdated(&scene.config, &snapshot).unwrap(), "it blocks now");
    }
}
