use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn row(check: &str, result: GateResult, gating: bool) -> GateRow {
    GateRow {
        check: check.to_owned(),
        result,
        oracle: "./verify.sh".to_owned(),
        rule_id: "C4-verify".to_owned(),
        gating,
        ..GateRow::none(Element::C4)
    }
}

/// `element result check` of each row, and the overall.
fn shown(report: &GateReport) -> String {
    let mut out = vec![report.overall.to_string()];
    for row in &report.rows {
        let (element, result) = (&row.element, row.result);
        out.push(format!("{element} {result} {} [{}]", row.check, row.reason()));
    }
    out.join("\n")
}

#[test]
fn all_eleven_elements_appear_in_order_whatever_is_configured() {
    let rows = vec![
        (Element::T2, row("T2 lint", GateResult::Pass, false)),
        (Element::C4, row("C4 verify", GateResult::Fail, true)),
        (Element::T2, row("T2 docs", GateResult::Deferred, true)),
    ];
    assert_snapshot!(shown(&GateReport::assemble("issue_1", rows, Provenance::default())), @r"
    fail
    C1 none C1 Spec [brief.md]
    C2 none C2 Reproduction (red pre-fix) [(no gate configured)]
    C3 none C3 Change [patch.diff]
    C4 fail C4 verify [./verify.sh]
    C5 none C5 Causal adequacy [reviewer + human sign-off]
    T1 none T1 Structure [(no gate configured)]
    T2 pass T2 lint [./verify.sh]
    T2 deferred T2 docs [./verify.sh]
    T3 none T3 Runtime [(no gate configured)]
    T4 none T4 Contribution [(no gate configured)]
    T5 none T5 Judgment [reviewer + human sign-off]
    V none Validation — fitness-to-purpose [human at sign-off]
    ");
}

#[test]
fn a_report_fails_if_and_only_if_a_gating_row_failed() {
    use GateResult::{Deferred, Fail, None, Pass, Unverifiable};
    for result in [Pass, Fail, Unverifiable, Deferred, None] {
        for gating in [false, true] {
            let rows = vec![(Element::C4, row("x", result, gating))];
            let report = GateReport::assemble("issue_1", rows, Provenance::default());
            let fails = gating && result == Fail;
            assert_eq!(report.overall == Overall::Fail, fails, "{result} {gating}");
        }
    }
}

#[test]
fn a_bundle_closed_without_a_change_has_nothing_to_verify() {
    let report = GateReport::for_close("issue_1");
    assert_eq!((report.overall, report.rows.len()), (Overall::Pass, 11));
    assert_eq!(report.rows[3].path_line, "N/A — close disposition (no patch to verify)");
    assert!(report.rows.iter().all(|row| row.result == GateResult::None));
}

#[test]
fn a_stub_says_in_each_name_that_nothing_was_checked() {
    let report = GateReport::stub("issue_1", Provenance::default());
    let passed: Vec<&str> = report
        .rows
        .iter()
        .filter(|row| row.result == GateResult::Pass)
        .map(|row| row.check.as_str())
        .collect();
    assert_snapshot!(passed.join("\n"), @r"
    C2 Reproduction (red pre-fix) (stub)
    C4 Verification (red→green) (stub)
    T1 Structure (stub)
    T2 Shape (stub)
    T3 Runtime (stub)
    T4 Contribution (stub)
    ");
}

#[test]
fn the_file_is_the_same_every_time() {
    let provenance = Provenance { patch_digest: Some("abc".to_owned()), base: None };
    let mut report = GateReport::assemble(
        "issue_1",
        vec![(Element::C4, row("C4 \"x\"\n", GateResult::Pass, true))],
        provenance,
    );
    report.rows.retain(|row| row.element == "C4");
    report.rows[0].flaky = true;
    report.rows[0].duration_ms = Some(5120);
    assert_snapshot!(report.to_json(), @r#"
    {
      "issue_dir": "issue_1",
      "overall": "pass",
      "patch_digest": "abc",
      "rows": [
        {
          "check": "C4 \"x\"\n",
          "result": "pass",
          "oracle": "./verify.sh",
          "rule_id": "C4-verify",
          "path_line": "",
          "gating": true,
          "element": "C4",
          "duration_ms": 5120,
          "flaky": true
        }
      ]
    }
    "#);
    assert!(report.to_json().ends_with("}\n"));
}

#[test]
fn the_table_holds_pipes_and_line_ends() {
    let mut report = GateReport::assemble(
        "issue_1",
        vec![(
            Element::C4,
            GateRow {
                path_line: "a | b\nc".to_owned(),
                log: Some("gate-logs/C4-verify.log".to_owned()),
                duration_ms: Some(12),
                fixed: true,
                ..row("C4 verify", GateResult::Pass, true)
            },
        )],
        Provenance::default(),
    );
    report.rows.retain(|row| row.element == "C4");
    assert_snapshot!(report.to_markdown(), @r"
    # Gates — issue_1

    Overall: **pass**

    | Check | Result | Gating | Evidence | Time |
    |---|---|---|---|---|
    | C4 verify | pass, fixed | yes | a \| b c | 12 ms |

    - C4 verify: `gate-logs/C4-verify.log`
    ");
}

#[test]
fn keys_nobody_knows_are_ignored_and_old_reports_are_read() {
    let report = GateReport::parse(
        br#"{"overall": "fail", "new": {"a": [1]}, "rows": [
            {"check": "x", "result": "fail", "gating": true, "duration_secs": 1.5, "attempts": ["fail"]},
            {"check": "y", "result": "none", "path_line": null, "element": "nine", "gating": false}]}"#,
    )
    .unwrap();
    assert_eq!(report.rows[0].duration_ms, Some(1500));
    assert_eq!(report.rows[0].element(), None);
    assert_eq!(report.rows[1].reason(), "no reason given");
    assert_eq!(report.failed_gating().count(), 1);
}

#[test]
fn a_malformed_report_grants_nothing() {
    let row = r#"{"check": "x", "result": "pass", "gating": true}"#;
    for text in [
        String::new(),
        "[]".to_owned(),
        "{".to_owned(),
        format!(r#"{{"overall": "pass", "rows": [{row}"#),
        format!(r#"{{"overall": "PASS", "rows": [{row}]}}"#),
        format!(r#"{{"overall": "passed", "rows": [{row}]}}"#),
        format!(r#"{{"overall": null, "rows": [{row}]}}"#),
        format!(r#"{{"rows": [{row}]}}"#),
        format!(r#"{{"overall": "pass", "overall": "pass", "rows": [{row}]}}"#),
        r#"{"overall": "pass"}"#.to_owned(),
        r#"{"overall": "pass", "rows": []}"#.to_owned(),
        r#"{"overall": "pass", "rows": [{"check": "x", "gating": true}]}"#.to_owned(),
        r#"{"overall": "pass", "rows": [{"check": "x", "result": "ok"}]}"#.to_owned(),
        r#"{"overall": "pass", "rows": [{"check": "x", "result": "pass", "gating": "yes"}]}"#
            .to_owned(),
        r#"{"overall": "pass", "rows": [{"check": "x", "result": "fail", "gating": true}]}"#
            .to_owned(),
        // A row that does not say whether it gates is read as one that does.
        r#"{"overall": "pass", "rows": [{"check": "x", "result": "fail"}]}"#.to_owned(),
        format!(r#"{{"overall": "pass", "rows": [{row}]}} trailing"#),
    ] {
        assert!(GateReport::parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(GateReport::parse(b"{\"overall\": \"\xff\"}").is_err());
}

#[test]
fn evidence_is_one_short_line() {
    assert_eq!(evidence(" a\n\tb\u{1b}c\u{2028}d "), "a b c d");
    let cut = evidence(&"é".repeat(200));
    assert_eq!(cut.chars().count(), EVIDENCE_MAX);
    assert!(cut.ends_with('…'));
    assert_eq!(evidence(&"é".repeat(120)), "é".repeat(120));
}

#[test]
fn every_element_is_found_by_its_name_and_no_other_name_is_one() {
    for (index, element) in Element::ALL.into_iter().enumerate() {
        assert_eq!(element.as_str().parse(), Ok(element));
        assert_eq!(element.index(), index);
    }
    for name in ["c4", "C6", "T0", "", "V ", "C44"] {
        assert!(name.parse::<Element>().is_err(), "{name}");
    }
}

fn any_row() -> impl Strategy<Value = (Element, GateRow)> {
    use GateResult::{Deferred, Fail, None, Pass, Unverifiable};
    (
        prop::sample::select(&Element::ALL[..]),
        any::<(String, String, String, bool, bool)>(),
        prop::sample::select(&[Pass, Fail, Unverifiable, Deferred, None][..]),
        any::<Option<u64>>(),
    )
        .prop_map(
            |(element, (check, oracle, path_line, gating, flaky), result, duration_ms)| {
                let row = GateRow {
                    check,
                    result,
                    oracle,
                    path_line,
                    gating,
                    duration_ms,
                    flaky,
                    ..GateRow::none(element)
                };
                (element, row)
            },
        )
}

proptest! {
    #[test]
    fn any_bytes_are_a_report_or_an_error(bytes in any::<Vec<u8>>()) {
        drop(GateReport::parse(&bytes));
    }

    #[test]
    fn what_is_written_is_read_back(rows in prop::collection::vec(any_row(), 0..6), digest in any::<Option<String>>()) {
        let provenance = Provenance { patch_digest: digest, base: Some("c0ffee".to_owned()) };
        let report = GateReport::assemble("issue_1", rows.clone(), provenance);
        prop_assert_eq!(GateReport::parse(report.to_json().as_bytes()).unwrap(), report.clone());
        for (element, row) in &rows {
            let kept = report.rows.iter().any(|kept| {
                kept.element == element.as_str() && kept.check == row.check && kept.result == row.result
            });
            prop_assert!(kept);
        }
        let order: Vec<Element> = report.rows.iter().filter_map(GateRow::element).collect();
        prop_assert!(order.is_sorted());
        for element in Element::ALL {
            prop_assert!(order.contains(&element));
        }
    }
}

#[test]
fn a_row_that_is_added_stands_with_its_element_and_counts() {
    let ids = |report: &GateReport| {
        let name = |row: &GateRow| {
            if row.rule_id.is_empty() { row.element.clone() } else { row.rule_id.clone() }
        };
        report.rows.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    let row = |rule_id: &str, result, gating| GateRow {
        result,
        gating,
        rule_id: rule_id.to_owned(),
        ..GateRow::none(Element::T1)
    };
    let empty = GateReport::assemble("issue_1", Vec::new(), Provenance::default());
    let warned = empty.clone().with_row(Element::T1, row("w", GateResult::Fail, false));
    assert_eq!(ids(&warned), "C1 C2 C3 C4 C5 w T2 T3 T4 T5 V");
    assert_eq!(warned.overall, Overall::Pass);
    let failed = warned.with_row(Element::T1, row("f", GateResult::Fail, true));
    assert_eq!(ids(&failed), "C1 C2 C3 C4 C5 w f T2 T3 T4 T5 V");
    assert_eq!(failed.overall, Overall::Fail);
    let last = empty.with_row(Element::V, row("v", GateResult::Pass, true));
    assert_eq!(ids(&last), "C1 C2 C3 C4 C5 T1 T2 T3 T4 T5 v");
    assert_eq!(GateReport::parse(failed.to_json().as_bytes()).unwrap(), failed);
}

#[test]
fn failing_tests_and_the_command_are_read_back_and_shown() {
    let red = GateRow {
        failing: vec!["a::b".to_owned(), "c|d".to_owned()],
        failing_more: 3,
        reproduce: Some("pdca gates 1 --row T1".to_owned()),
        ..row("T1 x", GateResult::Fail, true)
    };
    assert_eq!(red.failing_tests().as_deref(), Some("a::b, c|d and 3 more"));
    let report = GateReport::assemble("issue_1", vec![(Element::T1, red)], Provenance::default());
    assert_eq!(GateReport::parse(report.to_json().as_bytes()).unwrap(), report);
    let table = report.to_markdown();
    assert!(table.contains("\n- T1 x, failing: a::b, c\\|d and 3 more\n"), "{table}");
    assert!(table.contains("\n- T1 x, again: `pdca gates 1 --row T1`\n"), "{table}");
    let green = GateReport::assemble("issue_1", Vec::new(), Provenance::default()).to_json();
    assert!(!green.contains("failing") && !green.contains("reproduce"), "{green}");
}

#[test]
fn what_another_tool_means_by_the_same_keys_voids_no_report() {
    for (failing, names) in [("7", 0), ("\"x\"", 0), ("{\"a\": 1}", 0), ("[\"x\\ny\", 3, null]", 1)]
    {
        let text = format!(
            r#"{{"overall": "fail", "rows": [{{"check": "T1", "result": "fail",
                "failing": {failing}, "failing_more": "many", "reproduce": ["make"]}}]}}"#
        );
        let report = GateReport::parse(text.as_bytes()).expect("it is a report");
        assert_eq!(report.rows[0].failing.len(), names, "{failing}");
        assert!(report.rows[0].failing.iter().all(|name| name == "x y"));
        assert_eq!((report.rows[0].failing_more, &report.rows[0].reproduce), (0, &None));
    }
}
