//! Every parser takes any bytes: it neither panics nor hangs, whatever a bundle holds.
//!
//! The large inputs are what a quadratic parser would drown in; each is a mebibyte, and a parser
//! that looks at each byte a bounded number of times is done with it at once.

use pdca_state::{
    Brief, BundleId, GateReport, Provenance, Review, Summary, SummaryInputs, assemble,
    declared_dependencies, parse_id_list,
};
use proptest::prelude::*;

const MEBIBYTE: usize = 1 << 20;

/// Everything this half of the crate can be asked of a text.
fn read_as_everything(text: &str) {
    let brief = Brief::parse(text);
    brief.depends_on();
    brief.conflicts_with();
    brief.touches();
    brief.repo_target();
    brief.onto_branch();
    brief.test_files();
    brief.external_dependencies();
    brief.is_placeholder();
    let widest = brief.fields().next().map(|field| field.whole());
    assert!(widest.is_none_or(|whole| whole.len() <= text.len()));
    parse_id_list(text);
    declared_dependencies(text);
    Review::parse(text);
    Summary::parse(text).unrecordable();
    drop(GateReport::parse(text.as_bytes()));

    let id: BundleId = "1".parse().expect("a number is an id");
    let gates = GateReport::assemble("issue_1", Vec::new(), Provenance::default());
    let mut inputs = SummaryInputs::new(&id, &brief, &gates);
    inputs.review = Some(text);
    inputs.build_notes = Some(text);
    let summary = assemble(&inputs);
    assert_eq!(Summary::parse(&summary).flaws(), []);
}

fn repeated(unit: &str, length: usize) -> String {
    unit.repeat(length / unit.len())
}

/// The unit over and over as the value of each field that is taken apart.
fn labelled(unit: &str, length: usize) -> String {
    let value = repeated(&unit.replace(['\n', '\r', '\u{2028}'], " "), length);
    ["Touches", "Test file", "External dependencies", "Depends on", "Repo + branch target"]
        .map(|label| format!("- **{label}:** {value}\n"))
        .concat()
}

#[test]
fn a_mebibyte_of_what_parsers_look_for_is_read() {
    for unit in ["\n", "|", "- a: b\n"] {
        read_as_everything(&repeated(unit, MEBIBYTE));
    }
    for unit in ["`a`(", "a.-", "1, "] {
        read_as_everything(&labelled(unit, MEBIBYTE / 5));
    }
}

#[test]
fn a_great_deal_of_anything_is_read() {
    const LENGTH: usize = 1 << 15;
    for unit in [
        "\r",
        "\t",
        "-",
        "*",
        "#",
        "`",
        "[",
        "]",
        "(",
        ")",
        "<",
        ">",
        ".",
        ",",
        "a",
        "é",
        "\u{2028}",
        "\\|",
        "  - a: b\n",
        "- **",
        "|\n",
        "- NEEDS-HUMAN\n  x\n",
        "TBD, ",
        "## 6. NEEDS-HUMAN\n- [ ] x\n",
        "<!--",
        "{\"a\":",
        "[[",
        "> - ",
        "NEEDS-HUMAN external dependency: ",
        "9. ",
    ] {
        read_as_everything(&repeated(unit, LENGTH));
        read_as_everything(&labelled(unit, LENGTH));
    }
}

#[test]
fn a_hundred_thousand_distinct_bullets_are_read() {
    let bullets: Vec<String> = (0..100_000).map(|n| format!("- {n}: x")).collect();
    let text = bullets.join("\n");
    assert_eq!(Brief::parse(&text).fields().count(), 100_000);
    let items: Vec<String> = (0..50_000).map(|n| format!("- NEEDS-HUMAN {n}")).collect();
    let review = items.join(
        "
",
    );
    assert_eq!(Review::parse(&review).items.len(), 50_000);
}

#[test]
fn fields_nested_as_deep_as_a_mebibyte_allows_are_read() {
    let mut text = String::new();
    let mut depth = 0;
    while text.len() < MEBIBYTE {
        text.push_str(&" ".repeat(depth));
        text.push_str("- ");
        text.push_str(&depth.to_string());
        text.push_str(": x\n");
        depth += 1;
    }
    let brief = Brief::parse(&text);
    assert_eq!(brief.fields().count(), depth);
    // Each value holds all deeper ones, so values are made when asked for and not before.
    assert!(brief.field("0").unwrap().whole().len() > MEBIBYTE / 2);
    assert_eq!(brief.field(&(depth - 1).to_string()).unwrap().whole(), "x");
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        drop(GateReport::parse(&bytes));
        read_as_everything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_text_made_of_our_own_marks_is_read(
        parts in prop::collection::vec(prop::sample::select(&[
            "- ", "**", ":", "|", "\n", "\r\n", "  ", "`", "<", ">", "## ", "9. Check sign-off", "6. NEEDS-HUMAN",
            "- Outcome:", "accepted", "- [ ] ", "- [x] ", "NEEDS-HUMAN", "\\", ",", "12", "TBD", "Slug", "Touches",
            "Depends on", "@", "/", ".", "\u{2028}", "\u{85}", "\u{b}", "\0", "{", "}", "\"", "rows", "overall",
        ][..]), 0..80),
    ) {
        read_as_everything(&parts.concat());
    }
}
