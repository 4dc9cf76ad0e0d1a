//! What a summary claims of a check, and what it asks because of it.

use pdca_state::{
    Brief, BundleId, Element, GateReport, GateResult, GateRow, NeedsHuman, Provenance, Summary,
    SummaryInputs, assemble,
};

const NOT_RAISED: &str = "Validation — fitness-to-purpose — the review did not raise it; is this what the people who use it want?";
const NO_VERDICT: &str = "the review has no verdict that could be read";

fn with_inputs<T>(gates: &GateReport, then: impl FnOnce(SummaryInputs<'_>) -> T) -> T {
    let id: BundleId = "36".parse().expect("a number is an id");
    let brief = Brief::parse("- **Slug:** x\n");
    then(SummaryInputs::new(&id, &brief, gates))
}

fn asked(review: &str, close: Option<&str>) -> NeedsHuman {
    let gates = GateReport::stub("issue_36", Provenance::default());
    with_inputs(&gates, |inputs| {
        SummaryInputs { review: Some(review), close_disposition: close, ..inputs }.needs_human()
    })
}

/// §7 of the summary over this report.
fn proof(gates: &GateReport) -> String {
    let text = with_inputs(gates, |inputs| assemble(&inputs));
    Summary::parse(&text).section(7).expect("assembled with §7").trim().to_owned()
}

#[test]
fn a_review_without_a_verdict_is_a_finding() {
    let items = asked("All is well, trust me.", None);
    assert_eq!(items.findings, [NO_VERDICT]);
    assert_eq!(items.standing.as_deref(), Some(NOT_RAISED));
}

#[test]
fn the_standing_question_is_asked_whether_the_review_raises_it_or_not() {
    let matrix = "| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | ok |\n";
    for (row, standing) in [
        ("", Some(NOT_RAISED)),
        ("| V | PASS | it is fit |\n", Some(NOT_RAISED)),
        ("| V | NEEDS-HUMAN | fit? |\n", Some("Validation — fitness-to-purpose — fit?")),
        ("| V Validation | NEEDS-HUMAN | |\n", Some("Validation — fitness-to-purpose")),
    ] {
        let items = asked(&format!("{matrix}{row}"), None);
        assert_eq!(items.standing.as_deref(), standing, "{row}");
        assert_eq!(items.findings, [""; 0], "{row}");
    }
    // Raised as a finding: asked once, and not twice.
    let items = asked("- NEEDS-HUMAN — Validation — fitness-to-purpose — wrong\n", None);
    assert_eq!(items.standing, None);
    assert_eq!(items.findings, ["Finding: Validation — fitness-to-purpose — wrong"]);
    // Closed without a change: there is nothing to be fit.
    assert_eq!(asked(matrix, Some("wontfix")), NeedsHuman::default());
}

#[test]
fn a_stub_row_proves_nothing() {
    insta::assert_snapshot!(proof(&GateReport::stub("issue_36", Provenance::default())), @"
    - Gates overall: pass
    - Proven by a gate: nothing (a stub row proves nothing: nothing real was checked)
    - Disproven by a gate: nothing
    - Not proven: no gate: C2, C4, T1, T2, T3, T4 (and whatever §6 lists)
    - Together with other changes: not proven here; `pdca integrate` gates the combination
    ");
}

#[test]
fn what_no_gate_has_shown_is_not_proven() {
    let row = |element, check: &str, result| {
        (element, GateRow { check: check.to_owned(), result, ..GateRow::none(element) })
    };
    let rows = vec![
        row(Element::C4, "C4 verify", GateResult::Pass),
        row(Element::C4, "C4 again", GateResult::Fail),
        row(Element::T1, "T1 lint", GateResult::Unverifiable),
        row(Element::T4, "T4 ci", GateResult::Deferred),
    ];
    let gates = GateReport::assemble("issue_36", rows, Provenance::default());
    insta::assert_snapshot!(proof(&gates), @"
    - Gates overall: pass
    - Proven by a gate: C4 verify
    - Disproven by a gate: C4 again
    - Not proven: failed: C4 again; unverifiable: T1 lint; deferred: T4 ci; no gate: C2, T2, T3 (and whatever §6 lists)
    - Together with other changes: not proven here; `pdca integrate` gates the combination
    ");
    let all = Element::ALL.map(|element| row(element, element.title(), GateResult::Pass));
    let gates = GateReport::assemble("issue_36", all.to_vec(), Provenance::default());
    assert!(proof(&gates).contains("\n- Not proven: nothing (and whatever §6 lists)\n"));
}
