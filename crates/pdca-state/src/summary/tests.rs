use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

const SIGNED: &str = "\
# Result — issue 1 / x

## 5. Advisory review (artifact-only, decorrelated)
- [ ] a box in a review is none of §6
- Outcome: accepted

## Findings
text

## 6. NEEDS-HUMAN — items the human must clear before sign-off
- [ ] first
  - [ ] nested
- [x] done
- [X] done too
- (none)
- [ ] Validation — fitness-to-purpose — is it fit?

## 9. Check sign-off                     ← human completes Check here
- Disposition confirmed / overridden:
- Outcome: merged-wider
- Iteration delta (if iterating):   why \\1
- By / date: A / B / 2026-01-02

## 10. Act candidates (hints for the next Act review)
- Outcome: discontinued
";

#[test]
fn boxes_and_sign_off_are_read_from_their_sections_only() {
    let summary = Summary::parse(SIGNED);
    assert_snapshot!(summary.open_items().join("\n"), @r"
    - [ ] first
    - [ ] nested
    - [ ] Validation — fitness-to-purpose — is it fit?
    ");
    assert_eq!(summary.cleared_items(), ["- [x] done", "- [X] done too"]);
    assert_eq!(summary.items().len(), 5);
    assert_eq!(summary.open_standing(), 1);
    assert_eq!(summary.outcome(), Some(SignoffOutcome::MergedWider));
    assert_eq!(summary.iteration_delta(), "why \\1");
    assert_eq!(summary.flaws(), []);
    assert_eq!(
        summary.signoff(),
        Some(RecordedSignoff {
            outcome: SignoffOutcome::MergedWider,
            by: "A / B".to_owned(),
            date: "2026-01-02".to_owned(),
            note: None,
        })
    );
}

#[test]
fn sections_are_known_by_their_canonical_start() {
    let headings: Vec<Option<usize>> =
        Summary::parse(SIGNED).headings().map(|(number, _)| number).collect();
    assert_eq!(headings, [Some(5), None, Some(6), Some(9), Some(10)]);
    assert_eq!(Summary::parse(SIGNED).section(10), Some("- Outcome: discontinued\n"));
    assert_eq!(Summary::parse(SIGNED).section(1), None);
}

#[test]
fn only_the_canonical_heading_opens_the_sign_off() {
    for (heading, is_nine) in [
        ("## 9. Check sign-off", true),
        ("## 9. Check sign-off ", true),
        ("##   9. Check sign-off\t(by a human)", true),
        ("## 9. Check sign-off-notes", false),
        ("## 9. Check sign-offs", false),
        ("## 19. Check sign-off", false),
        ("## Notes about 9. Check sign-off", false),
        ("### 9. Check sign-off", false),
        ("# 9. Check sign-off", false),
        (" ## 9. Check sign-off", false),
        ("##9. Check sign-off", false),
        ("## 9. check sign-off", false),
    ] {
        let summary = Summary::parse(&format!("{heading}\n- Outcome: accepted\n"));
        assert_eq!(summary.outcome().is_some(), is_nine, "{heading}");
        assert_eq!(summary.unrecordable().is_none(), is_nine, "{heading}");
    }
}

#[test]
fn an_outcome_counts_only_as_a_known_token_on_a_line_of_its_own() {
    for (line, outcome) in [
        ("- Outcome: accepted", Some(SignoffOutcome::Accepted)),
        ("- Outcome:\taccepted \t", Some(SignoffOutcome::Accepted)),
        ("- Outcome:merged-wider", Some(SignoffOutcome::MergedWider)),
        ("- Outcome: iterated-to-Do", Some(SignoffOutcome::IteratedToDo)),
        ("- Outcome: iterated-to-Plan", Some(SignoffOutcome::IteratedToPlan)),
        ("- Outcome: discontinued", Some(SignoffOutcome::Discontinued)),
        ("- Outcome:\naccepted", None),
        ("- Outcome: Accepted", None),
        ("- Outcome: accepted by me", None),
        ("- Outcome: `accepted`", None),
        ("- Outcome: <merged-wider | discontinued>", None),
        (" - Outcome: accepted", None),
        ("- **Outcome:** accepted", None),
        ("- outcome: accepted", None),
        ("> - Outcome: accepted", None),
        ("Outcome: accepted", None),
    ] {
        let summary = Summary::parse(&format!("## 9. Check sign-off\n{line}\n"));
        assert_eq!(summary.outcome(), outcome, "{line}");
    }
}

#[test]
fn a_summary_that_says_two_things_grants_nothing() {
    let nine = |outcome: &str| format!("## 9. Check sign-off\n- Outcome: {outcome}\n");
    for (text, flaw) in [
        (nine("accepted") + &nine(""), "there are 2 `- Outcome:` lines that could be the sign-off"),
        (
            nine("accepted") + &nine("discontinued"),
            "there are 2 `- Outcome:` lines that could be the sign-off",
        ),
        (
            nine("accepted") + "- Outcome: accepted\n",
            "there are 2 `- Outcome:` lines that could be the sign-off",
        ),
        (
            nine("accepted").replace("- Outcome", "* Outcome"),
            "`## 9. Check sign-off` has no `- Outcome:` line",
        ),
        ("- Outcome: accepted\n".to_owned(), "no `## 9. Check sign-off` section"),
    ] {
        let summary = Summary::parse(&text);
        assert_eq!(summary.outcome(), None, "{text}");
        assert_eq!(summary.outcome_token(), "", "{text}");
        assert_eq!(
            summary.unrecordable().map(ToString::to_string).as_deref(),
            Some(flaw),
            "{text}"
        );
    }
    let agreeing = Summary::parse(&(nine("accepted") + &nine("accepted")));
    assert_eq!(agreeing.outcome(), Some(SignoffOutcome::Accepted));
}

#[test]
fn boxes_of_every_section_six_count_and_without_one_every_box_does() {
    let twice = "## 6. NEEDS-HUMAN\n- [x] quoted\n## 6. NEEDS-HUMAN — items\n- [ ] real\n";
    assert_eq!(Summary::parse(twice).open_items(), ["- [ ] real"]);
    let none =
        Summary::parse("## 6. NEEDS-HUMANS\n- [ ] a\n- [x] b\n## 5. Advisory review\n- [ ] c\n");
    assert_eq!(none.open_items(), ["- [ ] a", "- [ ] c"]);
    assert_eq!(none.cleared_items(), [""; 0]);
    assert!(!none.has_needs_human());
}

#[test]
fn two_boxes_that_look_standing_are_both_findings() {
    let text = "## 6. NEEDS-HUMAN\n- [ ] Validation — fitness-to-purpose — a\n- [ ] Validation — fitness-to-purpose\n";
    assert_eq!(Summary::parse(text).open_standing(), 0);
}

#[test]
fn a_summary_of_windows_reads_the_same() {
    let summary = Summary::parse(&SIGNED.replace('\n', "\r\n"));
    assert_eq!(summary.open_items(), Summary::parse(SIGNED).open_items());
    assert_eq!(summary.signoff(), Summary::parse(SIGNED).signoff());
}

/// A summary whose §6 holds these lines.
fn with_six(lines: &str) -> Summary {
    Summary::parse(&format!(
        "## 6. NEEDS-HUMAN — items\n{lines}\n\n## 9. Check sign-off\n- Outcome:\n"
    ))
}

#[test]
fn a_line_of_section_six_is_unsettled_in_every_spelling_but_a_ticked_one() {
    for line in [
        "- [ ] V",
        "* [ ] V",
        "+ [ ] V",
        "-  [ ] V",
        "-\t[ ] V",
        "- [] V",
        "- [  ] V",
        "- [\t] V",
        "1. [ ] V",
        "1) [ ] V",
        "- [-] V",
        "- [?] V",
        "- [\u{a0}] V",
        "> - [ ] V",
        "> - [x] V",
        "- V",
        "* V",
        "V",
        "[ ] V",
        "[x] V",
        "-[x] V",
        "- [x](link)",
        "- [xx] V",
        "- [х] V",
        "- \\[x] V",
        "- [x] - [ ] V",
        "- [x] [ ] V",
        "### V",
        "| [x] | V |",
        "```",
        "<!-- [x] -->",
        "- none",
        "- (none) but V",
        "\u{200b}",
        "• [x] V",
        "Asked of every bundle:",
    ] {
        assert_eq!(with_six(line).unsettled(), [line.trim()], "{line:?} alone");
        let below = format!("- [x] done\n{line}");
        assert_eq!(with_six(&below).unsettled(), [line.trim()], "{line:?} below a ticked box");
    }
    for line in [
        "",
        " \t",
        "- [x] V",
        "- [X] V",
        "* [x] V",
        "+ [X] V",
        "-  [x] V",
        "-\t[x] V",
        "  - [x] V",
        "- [x]",
        "- (none)",
        "- [x] done\n  and why",
        "- [x] done\n\n  and why",
        "- [x] done\n\tand **why**",
        "- [x] done\n  - [x] nested\n    and why",
        "Asked of every bundle, whatever the review found:\n\n- [x] Validation",
    ] {
        assert_eq!(with_six(line).unsettled(), [""; 0], "{line:?}");
    }
}

#[test]
fn only_what_is_indented_below_a_ticked_box_and_is_no_item_goes_on_with_it() {
    for (lines, unsettled) in [
        ("- [x] a\nb", "b"),
        ("- [x] a\n b", "b"),
        ("  - [x] a\n  b", "b"),
        ("- [x] a\n  - [ ] b", "- [ ] b"),
        ("- [x] a\n  - b", "- b"),
        ("- [x] a\n  * b", "* b"),
        ("- [x] a\n  1. b", "1. b"),
        ("- [x] a\n  [ ] b", "[ ] b"),
        ("- [x] a\n  > - [ ] b", "> - [ ] b"),
        ("- [x] a\n  ## b", "## b"),
        ("- [ ] a\n  b", "- [ ] a|b"),
        ("- [x] a\n- (none)\n  b", "b"),
    ] {
        assert_eq!(with_six(lines).unsettled().join("|"), unsettled, "{lines:?}");
    }
    let twice = "## 6. NEEDS-HUMAN\n- [x] a\n## 6. NEEDS-HUMAN\n* [ ] b\n";
    assert_eq!(Summary::parse(twice).unsettled(), ["* [ ] b"]);
    assert_eq!(Summary::parse("- [ ] a\nno six\n").unsettled(), ["- [ ] a"]);
}

proptest! {
    #[test]
    fn any_text_is_a_summary(text in "(## |6. NEEDS-HUMAN|9. Check sign-off|- Outcome:|accepted|- \\[ \\]|- \\[x\\]|\n|\r|\u{2028}|\\PC)*") {
        let summary = Summary::parse(&text);
        if summary.outcome().is_some() {
            prop_assert!(summary.unrecordable().is_none());
        }
        for number in 0..12 {
            summary.section(number);
        }
        prop_assert_eq!(summary.items().len(), summary.open_items().len() + summary.cleared_items().len());
    }
}

#[test]
fn a_resolved_conflict_is_said_and_has_to_be_cleared() {
    let id: crate::BundleId = "7".parse().unwrap();
    let brief = crate::Brief::parse(crate::testing::BRIEF);
    let gates = crate::GateReport::parse(crate::testing::GATES.as_bytes()).unwrap();
    let said = "7 conflicts with 3 in f:1\n- [x] nothing\n## 9. Check sign-off";
    let inputs =
        SummaryInputs { resolution: Some(said), ..SummaryInputs::new(&id, &brief, &gates) };
    let text = assemble(&inputs);
    assert!(text.contains("- Resolved conflict: 7 conflicts with 3 in f:1 "), "{text}");
    let summary = Summary::parse(&text);
    assert!(summary.open_items()[0].starts_with("- [ ] resolved conflict: 7 conflicts with 3"));
    assert_eq!(summary.cleared_items().len(), 0);
    assert_eq!(summary.flaws(), []);
}

#[test]
fn a_bundle_given_up_before_there_is_a_summary_gets_one_that_can_be_signed_and_claims_nothing() {
    use crate::{Brief, SignoffAction, SignoffDecision, SignoffOutcome, State, given_up, record};
    let brief = Brief::parse("- **Slug:** s\n- **Defect:** ## 9. Check sign-off\n");
    for brief in [None, Some(&brief)] {
        let text = given_up(&"7".parse().unwrap(), brief, State::Planned);
        let parsed = Summary::parse(&text);
        assert_eq!((parsed.unrecordable(), parsed.outcome()), (None, None), "{text}");
        assert_eq!(parsed.open_items().len(), 0);
        let decision = |action| SignoffDecision {
            action,
            by: "Eve".to_owned(),
            date: "2026-11-16".to_owned(),
            note: Some("it cannot be done".to_owned()),
            overrides: Vec::new(),
        };
        let signed = record(&text, None, &decision(SignoffAction::Discontinue)).unwrap();
        assert_eq!(Summary::parse(&signed).outcome(), Some(SignoffOutcome::Discontinued));
        assert!(
            record(&text, None, &decision(SignoffAction::Accept)).is_err(),
            "it grants nothing"
        );
    }
}
