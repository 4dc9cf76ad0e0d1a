//! What a mature implementation of these formats got wrong, and this one must not.

use pdca_state::{
    Advisory, Brief, BundleId, Element, GateReport, GateResult, GateRow, Overall, Provenance,
    Review, SignoffAction, SignoffDecision, SignoffOutcome, Summary, SummaryInputs, assemble,
    record,
};
use proptest::prelude::*;

/// What was put into a summary besides the fixed parts of it.
#[derive(Debug, Clone, Default)]
struct Quoted {
    slug: String,
    field: String,
    hint: String,
    review: String,
    advisory_id: String,
    advisory: String,
    check: String,
    evidence: String,
    close: String,
    attachment: String,
    candidate: String,
    conflict: String,
    notes: String,
}

/// The summary of a bundle whose every text is another's.
fn summary_of(quoted: &Quoted) -> String {
    let id: BundleId = "36".parse().expect("a number is an id");
    // Lines of a value are indented below its label, whatever they say.
    let field = quoted.field.replace(['\n', '\r'], "\n  ");
    let brief = Brief::parse(&format!(
        "- **Slug:** s {}\n- **Goal:** g {field}\n- **Scope:**\n  {field}\n- **Disposition hint:** h {}\n",
        quoted.slug, quoted.hint
    ));
    let row = GateRow {
        check: quoted.check.clone(),
        result: GateResult::Pass,
        path_line: quoted.evidence.clone(),
        gating: true,
        ..GateRow::none(Element::C4)
    };
    let gates = GateReport::assemble("issue_36", vec![(Element::C4, row)], Provenance::default());
    let review = format!("| C1 Spec | PASS | ok |\n\nThe review.\n{}", quoted.review);
    let advisories = [Advisory { id: &quoted.advisory_id, text: &quoted.advisory }];
    let attachments = [quoted.attachment.clone()];
    let candidates = [quoted.candidate.clone()];
    let conflicts = [format!("conflict: {}", quoted.conflict)];
    assemble(&SummaryInputs {
        review: Some(&review),
        advisories: &advisories,
        build_notes: Some(&quoted.notes),
        close_disposition: Some(&quoted.close),
        attachments: &attachments,
        act_candidates: &candidates,
        forecast_conflicts: &conflicts,
        ..SummaryInputs::new(&id, &brief, &gates)
    })
}

/// A reader as careless as any that might be pointed at a summary: it trims, it takes off quote
/// and list marks, it ends lines wherever a library might, and it does not care for sections.
fn careless(text: &str) -> (usize, usize, usize) {
    let is_end = |c: char| "\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}".contains(c);
    let (mut headings, mut boxes, mut outcomes) = (0, 0, 0);
    for line in text.split(is_end) {
        let bare = line.trim_start_matches(|c: char| c.is_whitespace() || ">-*+_".contains(c));
        let after_hashes = bare.trim_start_matches('#');
        let hashes = bare.len() - after_hashes.len();
        headings += usize::from(hashes == 2);
        boxes += usize::from(bare.starts_with("[ ]") || bare.to_lowercase().starts_with("[x]"));
        let label: String = bare.chars().filter(|c| !"*_ \t".contains(*c)).take(8).collect();
        outcomes += usize::from(label.eq_ignore_ascii_case("outcome:"));
    }
    (headings, boxes, outcomes)
}

/// What every summary must say, whatever was quoted into it.
fn assert_only_ours(text: &str, expected_boxes: usize) {
    let summary = Summary::parse(text);
    let numbers: Vec<Option<usize>> = summary.headings().map(|(number, _)| number).collect();
    assert_eq!(numbers, (1..=10).map(Some).collect::<Vec<_>>(), "{text}");
    assert_eq!(summary.outcome(), None, "{text}");
    assert_eq!(summary.outcome_token(), "", "{text}");
    assert_eq!(summary.flaws(), [], "{text}");
    assert_eq!(summary.open_items().len(), expected_boxes, "{text}");
    assert_eq!(summary.cleared_items().len(), 0, "{text}");
    assert_eq!(careless(text), (10, expected_boxes, 1), "{text}");
}

const HOSTILE: &str = "x\n## 6. NEEDS-HUMAN\n- [x] nothing is open\n\n## 9. Check sign-off\n- Outcome: accepted\n- By / date: x / y\n  ## 9. Check sign-off\n- **Outcome**: accepted\n9. Check sign-off\n---\n- Outcome: accepted\n```\n<!--\n\u{2028}## 9. Check sign-off\u{85}- Outcome: accepted\r- Outcome: discontinued";

fn hostile_everywhere(text: &str) -> Quoted {
    let text = || text.to_owned();
    Quoted {
        slug: text(),
        field: text(),
        hint: text(),
        review: text(),
        advisory_id: text(),
        advisory: text(),
        check: text(),
        evidence: text(),
        close: text(),
        attachment: text(),
        candidate: text(),
        conflict: text(),
        notes: text(),
    }
}

#[test]
fn lesson_01_a_review_that_quotes_a_sign_off_signs_nothing() {
    assert_only_ours(&summary_of(&hostile_everywhere(HOSTILE)), 1);
}

#[test]
fn lesson_01_headings_of_a_review_are_kept_readable() {
    let quoted = Quoted { review: "## Findings\nnone\n".to_owned(), ..Quoted::default() };
    let text = summary_of(&quoted);
    assert!(text.contains("\n> The review.\n> \\#\\# Findings\n> none\n"), "{text}");
}

#[test]
fn lesson_01_an_older_summary_with_a_second_sign_off_is_not_granted() {
    let text = "## 5. Advisory review\n## 9. Check sign-off\n- Outcome: accepted\n## 6. NEEDS-HUMAN\n- [ ] real\n## 9. Check sign-off\n- Outcome:\n";
    let summary = Summary::parse(text);
    assert_eq!(summary.outcome(), None);
    assert!(summary.unrecordable().is_some());
    assert_eq!(summary.open_items(), ["- [ ] real"]);
}

#[test]
fn lesson_01_a_quoted_section_six_does_not_hide_the_real_one() {
    let text = "## 5. Advisory review\n## 6. NEEDS-HUMAN\n- [x] all clear\n## 6. NEEDS-HUMAN\n- [ ] real\n## 9. Check sign-off\n- Outcome:\n";
    assert_eq!(Summary::parse(text).open_items(), ["- [ ] real"]);
}

#[test]
fn lesson_05_a_report_cut_anywhere_is_no_report() {
    let row = GateRow {
        check: "C4 verify — é".to_owned(),
        result: GateResult::Pass,
        ..GateRow::none(Element::C4)
    };
    let whole =
        GateReport::assemble("issue_36", vec![(Element::C4, row)], Provenance::default()).to_json();
    let whole = whole.trim_end().as_bytes();
    assert!(GateReport::parse(whole).is_ok());
    for length in 0..whole.len() {
        assert!(GateReport::parse(&whole[..length]).is_err(), "{length}");
    }
}

#[test]
fn lesson_15_the_text_of_a_person_is_literal() {
    let text = "## 6. NEEDS-HUMAN\n- (none)\n\n## 9. Check sign-off\n- Disposition confirmed / overridden:\n- Outcome:\n- Iteration delta (if iterating):\n- By / date:\n";
    let note = r"C:\new\1 \g<1> $1 ${x} \\ %s {0} & ## 9. Check sign-off";
    let decision = SignoffDecision {
        action: SignoffAction::IterateDo,
        by: r"A \1 Person".to_owned(),
        date: "2026-11-16".to_owned(),
        note: Some(note.to_owned()),
        overrides: Vec::new(),
    };
    let signed = record(text, None, &decision).unwrap();
    let read = Summary::parse(&signed).signoff().unwrap();
    assert_eq!(
        (read.outcome, read.by, read.note),
        (SignoffOutcome::IteratedToDo, decision.by, Some(note.to_owned()))
    );
}

const MATRIX: &str = "| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | ok |\n| C5 Causal adequacy | NEEDS-HUMAN | is it the cause? |\n| Validation — fitness-to-purpose | NEEDS-HUMAN | is it fit? |\n";

#[test]
fn lesson_16_the_standing_row_is_shown_and_counted_apart() {
    let quoted = Quoted {
        review: MATRIX.to_owned(),
        advisory: "- NEEDS-HUMAN — Validation — fitness-to-purpose — it is not".to_owned(),
        ..Quoted::default()
    };
    let text = summary_of(&quoted);
    let summary = Summary::parse(&text);
    assert_eq!(
        summary.open_items(),
        [
            "- [ ] C5 Causal adequacy — is it the cause?",
            "- [ ] Finding: Validation — fitness-to-purpose — it is not",
            "- [ ] conflict:",
            "- [ ] Validation — fitness-to-purpose — is it fit?",
        ]
    );
    assert_eq!(summary.open_standing(), 1);
    assert!(
        text.contains("\n\nAsked of every bundle, whatever the review found:\n\n- [ ] Validation"),
        "{text}"
    );
    let review = Review::parse(MATRIX);
    assert_eq!((review.items.len(), review.findings().count()), (2, 1));
}

#[test]
fn lesson_17_no_configured_row_is_ever_left_out_of_the_report() {
    for element in Element::ALL {
        let row = GateRow {
            check: "mine".to_owned(),
            result: GateResult::Fail,
            gating: true,
            ..GateRow::none(Element::C1)
        };
        let report = GateReport::assemble("issue_36", vec![(element, row)], Provenance::default());
        assert_eq!(report.overall, Overall::Fail);
        let row = report.failed_gating().next().unwrap();
        assert_eq!((row.check.as_str(), row.element()), ("mine", Some(element)));
    }
    for mistyped in ["C6", "c4", "T", "V1", "C4 "] {
        assert!(mistyped.parse::<Element>().is_err(), "{mistyped}");
    }
}

/// Text made of what a reader could be fooled by.
fn hostile_text() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(
        &[
            "\n",
            "\r",
            "\r\n",
            "\u{b}",
            "\u{c}",
            "\u{1c}",
            "\u{85}",
            "\u{2028}",
            "\u{2029}",
            " ",
            "\t",
            "\u{a0}",
            "  ",
            "#",
            "##",
            "## ",
            "### ",
            "9. Check sign-off",
            "6. NEEDS-HUMAN",
            "- ",
            "* ",
            "+ ",
            "1. ",
            "> ",
            "-",
            "[ ] ",
            "[x] ",
            "[X]",
            "[",
            "]",
            "- [ ] ",
            "- Outcome: ",
            "Outcome",
            "**Outcome:** ",
            "**",
            "_",
            ":",
            "accepted",
            "merged-wider",
            "- By / date: ",
            "Iteration delta (if iterating):",
            "---",
            "===",
            "```",
            "~~~",
            "<!--",
            "-->",
            "<h2>",
            "</h2>",
            "|",
            "\\",
            "`",
            "a",
            "é",
            "\0",
            "\u{1b}",
            "\u{feff}",
            "\u{200b}",
            "\u{202e}",
            "§9",
        ][..],
    );
    prop_oneof![
        3 => prop::collection::vec(parts, 0..24).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ]
}

/// What of a text is an item of its own in §6, so that it does not count as fooled.
fn declares_nothing(text: &str) -> bool {
    !text.to_lowercase().contains("needs-human") && !text.contains('`')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn lesson_01_no_quoted_text_opens_a_section_ticks_a_box_or_signs(texts in prop::collection::vec(hostile_text().prop_filter("has items of its own", |text| declares_nothing(text)), 13)) {
        let mut texts = texts.into_iter();
        let mut next = || texts.next().expect("thirteen texts were made");
        let quoted = Quoted {
            slug: next(), field: next(), hint: next(), review: next(), advisory_id: next(), advisory: next(), check: next(),
            evidence: next(), close: next(), attachment: next(), candidate: next(), conflict: next(), notes: next(),
        };
        // One box: the forecast conflict.
        assert_only_ours(&summary_of(&quoted), 1);
    }

    #[test]
    fn lesson_01_an_item_of_a_review_is_one_box_and_nothing_more(item in hostile_text()) {
        let quoted = Quoted { review: format!("- NEEDS-HUMAN — x {item}"), ..Quoted::default() };
        let boxes = Review::parse(&format!("The review.\n{}", quoted.review)).items.len();
        let text = summary_of(&quoted);
        assert_only_ours(&text, boxes + 1);
        // Every line that is in the way can be ticked away.
        let unsettled = Summary::parse(&text).unsettled();
        prop_assert_eq!(unsettled.len(), boxes + 1);
        let ticked = Summary::parse(&text.replace("\n- [ ] ", "\n- [x] "));
        prop_assert_eq!(ticked.unsettled(), [""; 0]);
    }
}
