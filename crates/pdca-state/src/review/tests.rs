use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// The items, the standing one starred.
fn items(text: &str) -> String {
    let review = Review::parse(text);
    let starred = |item: &String| {
        let star = if review.standing() == Some(item) { "* " } else { "" };
        format!("{star}{item}")
    };
    let items: Vec<String> = review.items.iter().map(starred).collect();
    items.join("\n")
}

const MATRIX: &str = "\
| Item | Verdict | Basis |
|------|:-------:|-------|
| C1 Spec | PASS | says NEEDS-HUMAN only in passing |
| C4 Verification (red→green) | NEEDS-HUMAN | `a \\| b` cannot be run |
| T5 Judgment | **needs-human** | |
| Validation — fitness-to-purpose | NEEDS-HUMAN | is it fit? |
";

#[test]
fn each_needs_human_row_is_an_item_with_its_basis() {
    assert_snapshot!(items(MATRIX), @r"
    C4 Verification (red→green) — `a | b` cannot be run
    T5 Judgment
    * Validation — fitness-to-purpose — is it fit?
    ");
}

#[test]
fn rows_are_kept_with_their_verdicts_and_lines() {
    let review = Review::parse(MATRIX);
    let rows: Vec<String> = review
        .rows
        .iter()
        .map(|row| format!("{} {}: {}", row.line, row.item, row.verdict))
        .collect();
    assert_snapshot!(rows.join("\n"), @r"
    3 C1 Spec: PASS
    4 C4 Verification (red→green): NEEDS-HUMAN
    5 T5 Judgment: **needs-human**
    6 Validation — fitness-to-purpose: NEEDS-HUMAN
    ");
}

#[test]
fn bullets_count_too_with_the_lines_that_go_on() {
    let text = "\
- NEEDS-HUMAN — first,
  goes on
  and on
- NEEDS-HUMAN: second
  - NEEDS-HUMAN third, nested
- **NEEDS-HUMAN** — fourth
  | no | table |
- **NEEDS-HUMAN:** fifth

  after a blank line nothing goes on
- NEEDS-HUMAN — First, goes on and on
- NEEDS-HUMAN
- this needs-human, but says it in prose
";
    assert_snapshot!(items(text), @r"
    first, goes on and on
    second
    third, nested
    fourth
    fifth
    ");
}

#[test]
fn columns_are_found_by_their_names() {
    let text = "\
| # | Item | Severity | Verdict | Basis |
|---|---|---|---|---|
| 1 | the thing | NEEDS-HUMAN | PASS | fine |
| 2 | other thing | low | NEEDS-HUMAN | why |
";
    assert_snapshot!(items(text), @"other thing — why");
}

#[test]
fn a_table_without_a_header_is_read_by_its_verdicts() {
    assert_snapshot!(items("| a | NEEDS-HUMAN | b |\n| c | PASS | NEEDS-HUMAN in passing |\n"), @"a — b");
}

#[test]
fn the_validation_row_is_standing_only_in_the_matrix_and_only_once() {
    // The same title in a table of its own is a finding.
    assert_snapshot!(items("| Item | Verdict | Basis |\n|---|---|---|\n| Validation — fitness-to-purpose | NEEDS-HUMAN | wrong layer |\n"), @"Validation — fitness-to-purpose — wrong layer");
    // So is a bullet.
    assert_snapshot!(items("- NEEDS-HUMAN — Validation — fitness-to-purpose — wrong layer\n"), @"Validation — fitness-to-purpose — wrong layer");
    // Two in two matrices: nobody can say which is the standing one.
    let second = MATRIX.replace("is it fit?", "it is not");
    assert_snapshot!(items(&format!("{MATRIX}\n{second}")), @r"
    C4 Verification (red→green) — `a | b` cannot be run
    T5 Judgment
    Validation — fitness-to-purpose — is it fit?
    Validation — fitness-to-purpose — it is not
    ");
}

#[test]
fn a_review_of_windows_reads_the_same() {
    assert_eq!(items(&MATRIX.replace('\n', "\r\n")), items(MATRIX));
}

#[test]
fn a_missing_review_has_its_own_item() {
    let texts = [MissingReview::NotRun, MissingReview::Failed, MissingReview::Empty]
        .map(MissingReview::item);
    assert_snapshot!(texts.join("\n"), @r"
    no review exists: the reviewer was not run to its end
    no review exists: the reviewer ran and failed
    no review exists: the reviewer left an empty file
    ");
    assert!(Review::is_blank(" \n\t\r\n"));
}

#[test]
fn dependencies_a_builder_declared_are_found_in_its_notes() {
    let notes = "\
Built it. NEEDS-HUMAN external dependency: not at the start of a line
- NEEDS-HUMAN external dependency: protoc — blocks the build
* needs-human external dependency: a database
NEEDS-HUMAN — external dependency: PROTOC — blocks the build
NEEDS-HUMAN: something else
";
    assert_snapshot!(declared_dependencies(notes).join("\n"), @r"
    external dependency: protoc — blocks the build
    external dependency: a database
    ");
}

#[test]
fn the_validation_row_is_known_in_each_of_its_spellings() {
    for item in [
        "V",
        "v",
        "V Validation",
        "Validation",
        "VALIDATION",
        "**V**",
        "Validation — fitness-to-purpose",
        "V — Validation",
        "**Validation — fitness-to-purpose**",
        "validation - fitness to purpose",
        "V Validation (fitness-to-purpose)",
    ] {
        for basis in ["is it fit?", ""] {
            let text = format!(
                "| Item | Verdict | Basis |\n|---|---|---|\n| C1 | PASS | ok |\n| {item} | NEEDS-HUMAN | {basis} |\n"
            );
            let review = Review::parse(&text);
            assert!(review.standing().is_some_and(is_standing_text), "{text}");
            assert!(review.raises_validation(), "{text}");
            assert_eq!(review.findings().count(), 0, "{text}");
        }
    }
    for item in [
        "Validation of input",
        "V2",
        "Vector",
        "Input validation",
        "Validation — fitness-to-purpose of it",
    ] {
        let text = format!(
            "| Item | Verdict | Basis |\n|---|---|---|\n| C1 | PASS | ok |\n| C2 | PASS | ok |\n| {item} | NEEDS-HUMAN | why |\n"
        );
        assert_eq!(Review::parse(&text).standing(), None, "{text}");
    }
}

#[test]
fn a_review_has_a_verdict_only_where_one_can_be_read() {
    for (text, has) in [
        ("Looks good to me.", false),
        ("| Item | Verdict | Basis |\n|---|---|---|\n", false),
        ("| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | | ok |\n", false),
        ("| a | b |\n| c | d |\n", false),
        ("- NEEDS-HUMAN\n", false),
        ("all PASS", false),
        ("| Item | Verdict |\n|---|---|\n| C1 Spec | ✅ **pass** |\n", true),
        ("| C1 Spec | FAIL |\n", true),
        ("\u{feff}| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | Passed | |\n", true),
        ("- NEEDS-HUMAN — why\n", true),
    ] {
        assert_eq!(Review::parse(text).has_verdict(), has, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_review(text in "(\\||- |NEEDS-HUMAN|V |\n|\r|\\\\|  |\\*|\\PC|\\x00)*") {
        let review = Review::parse(&text);
        for item in &review.items {
            prop_assert!(!item.is_empty() && !item.contains('\n'));
        }
        let findings = review.findings().count();
        prop_assert_eq!(findings + usize::from(review.standing().is_some()), review.items.len());
        declared_dependencies(&text);
    }

    #[test]
    fn a_cell_holds_any_pipe_that_is_escaped(basis in "[a-z|]{0,20}") {
        let text = format!("| Item | Verdict | Basis |\n|---|---|---|\n| x | NEEDS-HUMAN | {} |\n", basis.replace('|', "\\|"));
        let row = &Review::parse(&text).rows[0];
        prop_assert_eq!(&row.basis, &basis);
    }
}

#[test]
fn each_fail_is_an_item_with_its_basis_and_a_pass_is_none() {
    let table = |rows: &str| format!("| Item | Verdict | Basis |\n|---|---|---|\n{rows}");
    for (rows, expected) in [
        ("| C5 Causal | FAIL | one early |\n", "C5 Causal FAIL — one early"),
        ("| C5 Causal | **FAILED** | |\n", "C5 Causal FAIL, says the review"),
        ("| C5 Causal | ❌ FAIL | x |\n", "C5 Causal FAIL — x"),
        ("| C5 | PASS | would FAIL without it |\n| C6 | PASS (no failures) | |\n", ""),
        ("| C5 | PASS, does not fail | |\n", ""),
    ] {
        assert_eq!(items(&table(rows)), expected, "{rows}");
    }
    assert_eq!(items("- FAIL — the loop\n"), "FAIL — the loop");
    assert_eq!(items("- FAIL when it is empty is expected\n"), "");
}

#[test]
fn a_row_that_asks_for_a_person_counts_however_its_cells_are_cut() {
    let table = |rows: &str| format!("| Item | Verdict | Basis |\n|---|---|---|\n{rows}");
    for (rows, expected) in [
        ("| C5 `a|b` | NEEDS-HUMAN | both? |\n", "C5 `a|b` — both?"),
        ("| NEEDS-HUMAN | C5 Causal | both? |\n", "C5 Causal — both?"),
        ("| C5 `a|PASS` | NEEDS-HUMAN | both? |\n", "C5 `a|PASS` — both?"),
        ("| C5 `a||b|c` | FAIL | no |\n", "C5 `a||b|c` FAIL — no"),
        ("| FAIL | C5 Causal | x | y |\n", "C5 Causal FAIL — x|y"),
        ("| C5 `a|b` | PASS | fine |\n", ""),
    ] {
        assert_eq!(items(&table(rows)), expected, "{rows}");
    }
    assert_eq!(items("Item | Verdict | Basis\n---|---|---\nC5 | FAIL | x\n"), "C5 FAIL — x");
    assert_eq!(items("| NEEDS-HUMAN | C5 | x |\n"), "C5 — x");
    let reversed = "| Verdict | Item | Basis |\n|---|---|---|\n| FAIL | C5 | x |\n";
    assert_eq!(items(reversed), "C5 FAIL — x");
    assert_eq!(items("a shell `x | y || z` is run\n"), "");
}

#[test]
fn a_fail_is_the_builders_and_everything_else_is_a_persons() {
    let table = |rows: &str| format!("| Item | Verdict | Basis |\n|---|---|---|\n{rows}");
    for (rows, failures, asks) in [
        ("| C5 Causal | FAIL | a |\n| T3 Runtime | FAIL | b |\n", 2, false),
        ("| C5 Causal | FAIL | a |\n| T4 | NEEDS-HUMAN | b |\n", 1, true),
        ("| C5 | PASS | a |\n| Validation — fitness-to-purpose | NEEDS-HUMAN | b |\n", 0, false),
        ("| C5 | PASS | a |\n| Validation — fitness-to-purpose | FAIL | b |\n", 0, true),
        ("| my own row | FAIL | a |\n", 0, true),
        ("| C5 Causal | FAIL | a |\n| C5 Causal | FAIL | a |\n", 1, false),
    ] {
        let review = Review::parse(&table(rows));
        assert_eq!((review.failures().count(), review.asks_a_person()), (failures, asks), "{rows}");
    }
    assert!(Review::parse("- FAIL — the loop\n").asks_a_person());
}
