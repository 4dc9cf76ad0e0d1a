use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::gates::{Element, GateResult, GateRow, Provenance};

const SUMMARY: &str = "\
## 6. NEEDS-HUMAN — items the human must clear before sign-off
- [x] cleared

## 9. Check sign-off
- Disposition confirmed / overridden:
- Outcome:
- Iteration delta (if iterating):
- By / date:

## 10. Act candidates (hints for the next Act review)
- By / date: not this one
";

fn green() -> GateReport {
    GateReport::assemble("issue_1", Vec::new(), Provenance::default())
}

fn red() -> GateReport {
    let row = GateRow {
        check: "C4 verify".to_owned(),
        result: GateResult::Fail,
        gating: true,
        ..GateRow::none(Element::C4)
    };
    GateReport::assemble("issue_1", vec![(Element::C4, row)], Provenance::default())
}

fn decision(action: SignoffAction, note: &str) -> SignoffDecision {
    SignoffDecision {
        action,
        by: "A. Person".to_owned(),
        date: "2026-11-16".to_owned(),
        note: (!note.is_empty()).then(|| note.to_owned()),
        overrides: Vec::new(),
    }
}

fn refusal(summary: &str, gates: Option<&GateReport>, decision: &SignoffDecision) -> SignoffError {
    record(summary, gates, decision).unwrap_err()
}

#[test]
fn an_acceptance_is_written_into_section_nine() {
    let signed =
        record(SUMMARY, Some(&green()), &decision(SignoffAction::Accept, "looks right")).unwrap();
    assert_snapshot!(signed, @r"
    ## 6. NEEDS-HUMAN — items the human must clear before sign-off
    - [x] cleared

    ## 9. Check sign-off
    - Disposition confirmed / overridden: looks right
    - Outcome: merged-wider
    - Iteration delta (if iterating):
    - By / date: A. Person / 2026-11-16

    ## 10. Act candidates (hints for the next Act review)
    - By / date: not this one
    ");
}

/// A report with one gating row without a verdict.
fn undecided() -> GateReport {
    let row = GateRow {
        check: "C4 verify".to_owned(),
        result: GateResult::Unverifiable,
        path_line: "killed from outside by SIGKILL".to_owned(),
        gating: true,
        ..GateRow::none(Element::C4)
    };
    GateReport::assemble("issue_1", vec![(Element::C4, row)], Provenance::default())
}

#[test]
fn a_row_without_a_verdict_is_accepted_only_with_a_reason_on_record() {
    let item = "C4 verify unverifiable — killed from outside by SIGKILL";
    let ticked = |text: &str| SUMMARY.replace("cleared", text);
    let accept = |text: &str, note: &str| {
        let signed =
            record(&ticked(text), Some(&undecided()), &decision(SignoffAction::Accept, note))?;
        require_accepted(&signed, Some(&undecided()))
    };
    let refused = SignoffError::Undecided { rows: vec!["C4 verify".to_owned()] };
    for text in
        [item, "cleared", "C4 verify", "other unverifiable — said so", "x C4 verify unverifiable y"]
    {
        assert_eq!(accept(text, "").unwrap_err(), refused, "{text}");
        assert_eq!(accept(text, "  ").unwrap_err(), refused, "{text}");
        assert!(accept(text, "the machine was out of memory").is_ok(), "{text}");
    }
    assert!(accept(&format!("{item} — the machine was out of memory"), "").is_ok());
    let by_hand = ticked(item).replace("- Outcome:", "- Outcome: merged-wider");
    let by_hand = by_hand.replacen("- By / date:", "- By / date: Eve / 2026-11-16", 1);
    assert_eq!(require_accepted(&by_hand, Some(&undecided())).unwrap_err(), refused);
}

// holds: S002-61
#[test]
fn the_reason_of_an_iteration_is_its_delta() {
    let signed = record(SUMMARY, None, &decision(SignoffAction::IterateDo, "wrong layer")).unwrap();
    let summary = Summary::parse(&signed);
    assert_eq!(summary.outcome(), Some(SignoffOutcome::IteratedToDo));
    assert_eq!(summary.iteration_delta(), "wrong layer");
    assert_eq!(summary.disposition(), "");
}

// holds: S002-56
#[test]
fn an_acceptance_is_refused_while_anything_is_open() {
    let accept = decision(SignoffAction::Accept, "");
    let open = SUMMARY.replace("[x]", "[ ]");
    assert_eq!(
        refusal(&open, Some(&red()), &accept),
        SignoffError::NotAcceptable {
            open: vec!["- [ ] cleared".to_owned()],
            failed: vec!["C4 verify".to_owned()],
        }
    );
    assert!(matches!(refusal(SUMMARY, Some(&red()), &accept), SignoffError::NotAcceptable { .. }));
    assert_eq!(refusal(SUMMARY, None, &accept), SignoffError::NoGateReport);
    let without_six = SUMMARY.replace("## 6. NEEDS-HUMAN", "### 6. NEEDS-HUMAN");
    assert_eq!(refusal(&without_six, Some(&green()), &accept), SignoffError::NoNeedsHuman);
}

// holds: S002-23
#[test]
fn what_does_not_accept_is_not_held_up_by_open_boxes() {
    let open = SUMMARY.replace("[x]", "[ ]");
    for action in [SignoffAction::IterateDo, SignoffAction::IteratePlan, SignoffAction::Discontinue]
    {
        let signed = record(&open, Some(&red()), &decision(action, "because")).unwrap();
        assert_eq!(Summary::parse(&signed).outcome(), Some(action.outcome()));
    }
}

#[test]
fn all_but_an_acceptance_needs_a_reason() {
    for action in [SignoffAction::IterateDo, SignoffAction::IteratePlan, SignoffAction::Discontinue]
    {
        for note in ["", " \n "] {
            assert_eq!(
                refusal(SUMMARY, None, &decision(action, note)),
                SignoffError::NoteRequired { action }
            );
        }
    }
}

#[test]
fn a_decision_is_made_once_and_by_somebody() {
    let signed = record(SUMMARY, None, &decision(SignoffAction::IteratePlan, "why")).unwrap();
    assert_eq!(
        refusal(&signed, Some(&green()), &decision(SignoffAction::Accept, "")),
        SignoffError::AlreadyDecided { outcome: SignoffOutcome::IteratedToPlan }
    );
    let nobody = SignoffDecision { by: " \n".to_owned(), ..decision(SignoffAction::IterateDo, "") };
    assert_eq!(refusal(SUMMARY, None, &nobody), SignoffError::NoSigner);
}

#[test]
fn a_summary_without_one_clear_place_to_sign_is_refused() {
    let iterate = decision(SignoffAction::IterateDo, "");
    for broken in [
        SUMMARY.replace("## 9.", "### 9."),
        SUMMARY.replace("- Outcome:", "Outcome:"),
        SUMMARY.replace("- Outcome:", "- Outcome:\n- Outcome:"),
    ] {
        let broken = broken.replace("- By / date: not this one", "");
        assert!(
            matches!(refusal(&broken, None, &iterate), SignoffError::Unrecordable { .. }),
            "{broken}"
        );
    }
}

#[test]
fn a_field_that_is_missing_is_added_below_the_outcome() {
    let text = "## 9. Check sign-off\r\n- Outcome: <token>\r\nmore";
    let signed = record(text, None, &decision(SignoffAction::IterateDo, "why")).unwrap();
    assert_eq!(
        signed,
        "## 9. Check sign-off\r\n- Outcome: iterated-to-Do\r\n- By / date: A. Person / 2026-11-16\r\n- Iteration delta (if iterating): why\r\nmore"
    );
    let last = record(
        "## 9. Check sign-off\n- Outcome:",
        None,
        &decision(SignoffAction::Discontinue, "x"),
    )
    .unwrap();
    assert!(
        last.contains("- Outcome: discontinued\n- By / date: A. Person / 2026-11-16"),
        "{last}"
    );
}

#[test]
fn an_iteration_without_a_new_reason_keeps_the_one_that_is_there() {
    let text = SUMMARY.replace("iterating):", "iterating): written by hand");
    let signed = record(&text, None, &decision(SignoffAction::IterateDo, "")).unwrap();
    assert_eq!(Summary::parse(&signed).iteration_delta(), "written by hand");
}

#[test]
fn every_token_reads_back_and_nothing_else_does() {
    for outcome in SignoffOutcome::ALL {
        assert_eq!(outcome.as_str().parse(), Ok(outcome));
    }
    assert_eq!("Accepted".parse::<SignoffOutcome>(), Err(UnknownOutcome));
    for action in SignoffAction::ALL {
        assert!(SignoffOutcome::ALL.contains(&action.outcome()));
    }
}

proptest! {
    #[test]
    fn a_recorded_decision_reads_back_and_changes_nothing_outside_section_nine(
        action in prop::sample::select(&SignoffAction::ALL[..]),
        by in "(\\PC|\n|\r|\u{2028})*[a-z]",
        note in "(\\PC|\n|## |- Outcome: |\\\\1|\\$1|- \\[ \\] ){1,12}",
        windows in any::<bool>(),
    ) {
        let text = if windows { SUMMARY.replace('\n', "\r\n") } else { SUMMARY.to_owned() };
        let note = format!("n{note}");
        let decision = SignoffDecision { action, by: by.clone(), date: "2026-11-16".to_owned(), note: Some(note.clone()), overrides: Vec::new() };
        let signed = record(&text, Some(&green()), &decision).unwrap();
        let before = Summary::parse(&text);
        let after = Summary::parse(&signed);
        let read = after.signoff().unwrap();
        prop_assert_eq!(read.outcome, action.outcome());
        prop_assert_eq!(read.by, folded(&by));
        prop_assert_eq!(read.date, "2026-11-16");
        prop_assert_eq!(read.note.unwrap(), folded(&note));
        prop_assert_eq!(after.flaws(), &[]);
        prop_assert_eq!(before.open_items(), after.open_items());
        for number in [6, 10] {
            prop_assert_eq!(before.section(number), after.section(number));
        }
        prop_assert_eq!(text.split("## 9.").next(), signed.split("## 9.").next());
        prop_assert_eq!(text.matches('\r').count(), signed.matches('\r').count());
    }

    #[test]
    fn any_further_line_in_section_six_is_in_the_way_of_an_acceptance(
        line in "(- |\\* |\\[ \\]|\\[\\]|> |1\\. |\\PC){1,12}",
    ) {
        let line = line.trim();
        prop_assume!(!line.is_empty() && !line.starts_with("## "));
        prop_assume!(crate::lines::lines(line).count() == 1);
        let is_ticked = ["- [x]", "- [X]", "* [x]", "* [X]"].iter().any(|mark| line.starts_with(mark));
        prop_assume!(!is_ticked && line != "- (none)");
        for text in [
            SUMMARY.replace("- [x] cleared\n", &format!("- [x] cleared\n{line}\n")),
            SUMMARY.replace("- [x] cleared\n", &format!("{line}\n- [x] cleared\n")),
        ] {
            let error = refusal(&text, Some(&green()), &decision(SignoffAction::Accept, ""));
            prop_assert_eq!(error, SignoffError::NotAcceptable { open: vec![line.to_owned()], failed: vec![] });
        }
    }

    #[test]
    fn recording_into_any_text_gives_a_signed_summary_or_a_reason(
        text in "(## |6. NEEDS-HUMAN|9. Check sign-off|- Outcome:|- By / date:|accepted|- \\[ \\]|\n|\r|\u{2028}|\\PC)*",
        action in prop::sample::select(&SignoffAction::ALL[..]),
    ) {
        if let Ok(signed) = record(&text, Some(&green()), &decision(action, "why")) {
            let summary = Summary::parse(&signed);
            prop_assert_eq!(summary.outcome(), Some(action.outcome()));
            let before = Summary::parse(&text);
            prop_assert_eq!(summary.open_items(), before.open_items());
        }
    }
}

#[test]
fn an_acceptance_that_is_overruled_gives_its_place_and_stays_in_the_note() {
    let accepted =
        record(SUMMARY, Some(&green()), &decision(SignoffAction::Accept, "fine")).unwrap();
    let by = SignoffDecision {
        by: "Eve".to_owned(),
        ..decision(SignoffAction::Discontinue, "red with 71")
    };
    assert_snapshot!(overrule(&accepted, &by).unwrap(), @r"
    ## 6. NEEDS-HUMAN — items the human must clear before sign-off
    - [x] cleared

    ## 9. Check sign-off
    - Disposition confirmed / overridden: red with 71 (accepted before, by A. Person / 2026-11-16)
    - Outcome: discontinued
    - Iteration delta (if iterating):
    - By / date: Eve / 2026-11-16

    ## 10. Act candidates (hints for the next Act review)
    - By / date: not this one
    ");
}

#[test]
fn only_an_acceptance_can_be_overruled_and_only_with_a_reason() {
    let accepted = record(SUMMARY, Some(&green()), &decision(SignoffAction::Accept, "")).unwrap();
    let refused = |text: &str, action, note| overrule(text, &decision(action, note)).unwrap_err();
    assert_eq!(
        refused(&accepted, SignoffAction::Discontinue, " "),
        SignoffError::NoteRequired { action: SignoffAction::Discontinue }
    );
    assert_eq!(
        refused(&accepted, SignoffAction::Accept, "again"),
        SignoffError::AlreadyDecided { outcome: SignoffOutcome::MergedWider }
    );
    let given_up = record(SUMMARY, None, &decision(SignoffAction::Discontinue, "no")).unwrap();
    assert_eq!(
        refused(&given_up, SignoffAction::Discontinue, "again"),
        SignoffError::AlreadyDecided { outcome: SignoffOutcome::Discontinued }
    );
}

/// An override of one row, with a reason.
fn overriding(row: &str, reason: &str) -> SignoffDecision {
    let overrides = vec![Override { row: row.to_owned(), reason: reason.to_owned() }];
    SignoffDecision { overrides, ..decision(SignoffAction::Accept, "") }
}

#[test]
fn a_failed_row_is_accepted_only_with_a_recorded_reason() {
    let red = red();
    assert!(matches!(
        refusal(SUMMARY, Some(&red), &decision(SignoffAction::Accept, "")),
        SignoffError::NotAcceptable { .. }
    ));
    assert_eq!(
        refusal(SUMMARY, Some(&red), &overriding("C4 verify", " \n")),
        SignoffError::ReasonRequired { row: "C4 verify".to_owned() }
    );
    let failed = named_overrides(Some(&red), &overriding("C4 verify", "x").overrides).unwrap();
    let failed = vec![failed[0].row.clone()];
    assert_eq!(
        refusal(SUMMARY, Some(&red), &overriding("T3", "x")),
        SignoffError::NothingToOverride { row: "T3".to_owned(), failed: failed.clone() }
    );
    assert!(matches!(
        refusal(SUMMARY, Some(&green()), &overriding("C4 verify", "x")),
        SignoffError::NothingToOverride { .. }
    ));
    let signed = record(SUMMARY, Some(&red), &overriding("C4 verify", "no\nbrowser")).unwrap();
    let line = format!("\n- Gate overridden: {} — no browser\n", failed[0]);
    assert!(signed.contains(&line), "{signed}");
    let accepted = require_accepted(&signed, Some(&red)).unwrap();
    let expected = Override { row: failed[0].clone(), reason: "no browser".to_owned() };
    assert_eq!((accepted.by.as_str(), accepted.overrides), ("A. Person", vec![expected]));
}

#[test]
fn nothing_but_what_accept_would_have_recorded_counts_as_accepted() {
    let signed = record(SUMMARY, Some(&green()), &decision(SignoffAction::Accept, "")).unwrap();
    assert!(require_accepted(&signed, Some(&green())).is_ok());
    let refused = |text: &str, gates: Option<&GateReport>| require_accepted(text, gates).is_err();
    assert!(refused(SUMMARY, Some(&green())), "nothing was decided");
    assert!(refused(&signed, None), "no report");
    assert!(refused(&signed, Some(&red())), "a red report");
    for (from, to) in [
        ("- [x] cleared", "- [ ] open"),
        ("- [x] cleared", "- [x] cleared\n- a finding without a box"),
        ("- By / date: A. Person / 2026-11-16", "- By / date:"),
        ("- By / date: A. Person / 2026-11-16", "- By / date: / 2026-11-16"),
        ("merged-wider", "iterated-to-Do"),
        ("merged-wider", "discontinued"),
        ("## 6. NEEDS-HUMAN", "## 6 NEEDS-HUMAN"),
        ("- Outcome: merged-wider", "- Outcome: merged-wider\n- Outcome: discontinued"),
    ] {
        assert!(signed.contains(from), "{from}");
        assert!(refused(&signed.replacen(from, to, 1), Some(&green())), "{from} -> {to}");
    }
}

#[test]
fn an_override_counts_only_in_section_nine_and_for_its_row() {
    let red = red();
    let signed = record(SUMMARY, Some(&red), &overriding("C4 verify", "x")).unwrap();
    let line = signed.lines().find(|line| line.starts_with(OVERRIDE)).unwrap().to_owned() + "\n";
    let row = line.trim_end().strip_prefix(OVERRIDE).unwrap().strip_suffix(" — x").unwrap();
    for (text, named) in [
        (signed.replace(&line, ""), "gone"),
        (signed.replace(&line, "") + &line, "in another section"),
        (signed.replace(" — x\n", " — \n"), "no reason"),
        (signed.replace(&format!("{row} — x"), " other — x"), "another row"),
    ] {
        assert!(require_accepted(&text, Some(&red)).is_err(), "{named}");
    }
}
