//! The outputs in `fixtures/` were printed by the real programs; only backtraces were taken out.

use super::*;
use proptest::prelude::*;

/// The names in an output, one a line.
fn names(output: &str) -> String {
    let found = digest_output(output.as_bytes()).failing;
    assert_eq!(found.more, 0);
    found.names.join("\n")
}

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("fixtures/", $name))
    };
}

#[test]
fn cargo_test_names_each_failing_test_once_whatever_its_options() {
    let all = "tests::deep::inner\ntests::must_panic\ntests::half_up";
    let with_others = format!("{all}\nwhole\nsrc/lib.rs - add (line 1)");
    assert_eq!(names(fixture!("cargo.txt")), with_others);
    assert_eq!(names(fixture!("cargo-quiet.txt")), with_others);
    let mut found: Vec<_> = fixture_names(fixture!("cargo-nocapture.txt"));
    found.sort_unstable();
    assert_eq!(found, ["tests::deep::inner", "tests::half_up", "tests::must_panic"]);
}

fn fixture_names(output: &str) -> Vec<String> {
    digest_output(output.as_bytes()).failing.names
}

#[test]
fn nextest_names_crate_and_test_and_counts_a_try_only_if_it_was_the_last() {
    insta::assert_snapshot!(names(fixture!("nextest.txt")), @r"
    money tests::deep::inner
    money tests::must_panic
    money tests::half_up
    money::all whole
    ");
    insta::assert_snapshot!(names(fixture!("nextest-retries-colour.txt")), @r"
    money tests::deep::inner
    money tests::must_panic
    money::all whole
    money tests::half_up
    ");
    let flaky = "  TRY 1 FAIL [   0.005s] (───) a b::c\n     Summary [   0.9s] 1 test run: 1 passed (1 flaky)\n   FLAKY 2/2 [   0.005s] (1/1) a b::c\n";
    assert_eq!(names(flaky), "");
    assert_eq!(names("     SIGSEGV [   0.1s] a b::c\n     TIMEOUT [>  9.0s] a d\n"), "a b::c\na d");
}

#[test]
fn pytest_names_node_ids_without_their_reasons() {
    let all = "test_money.py::test_half_up\ntest_money.py::test_par[x - y]\ntest_money.py::test_par[b c]\n\
               test_money.py::TestC::test_in\ntest_broken.py\ntest_money.py::test_fx";
    assert_eq!(names(fixture!("pytest.txt")), all);
    let sorted = |text: &str| {
        let mut names = fixture_names(text);
        names.sort_unstable();
        names
    };
    let mut wanted: Vec<_> = all.lines().collect();
    wanted.sort_unstable();
    assert_eq!(sorted(fixture!("pytest-verbose-colour.txt")), wanted);
    assert_eq!(sorted(fixture!("pytest-xdist.txt")), wanted);
}

#[test]
fn unittest_names_what_its_command_line_takes() {
    insta::assert_snapshot!(names(fixture!("unittest.txt")), @r"
    tests.test_broken
    tests.test_money.Rounding.test_raises
    tests.test_money.Setup.setUpClass
    tests.test_money.Rounding.test_half_up
    tests.test_money.Rounding.test_parts (i=2)
    tests.test_money.Rounding.test_surprise
    ");
    // Before Python 3.11 the class alone stood in brackets.
    assert_eq!(names("FAIL: test_a (m.Case)\n"), "m.Case.test_a");
    assert_eq!(names("ERROR: the disk is on fire\n"), "");
}

#[test]
fn go_test_names_the_innermost_part_and_packages_that_do_not_build() {
    insta::assert_snapshot!(names(fixture!("go.txt")), @r"
    example.com/money/bad [build failed]
    TestHalfUp
    TestTable/two_words
    ");
    insta::assert_snapshot!(names(fixture!("go-json.txt")), @r"
    example.com/money/bad [build failed]
    example.com/money/pkg TestHalfUp
    example.com/money/pkg TestTable/two_words
    ");
}

#[test]
fn runners_of_javascript_name_suite_and_test() {
    let jest =
        "rounding › half up\nrounding › deep › of › cents\n./b.test.js: Test suite failed to run";
    assert_eq!(names(fixture!("jest.txt")), jest);
    let mut found = fixture_names(fixture!("jest-verbose-colour.txt"));
    found.sort_unstable();
    let mut wanted: Vec<_> = jest.lines().collect();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    insta::assert_snapshot!(names(fixture!("vitest.txt")), @r"
    vt/a.test.mjs > rounding > half up
    vt/a.test.mjs > rounding > deep > of › cents
    ");
    insta::assert_snapshot!(names(fixture!("mocha.txt")), @r"
    rounding › half up
    rounding › deep › of › cents
    ");
    insta::assert_snapshot!(names(fixture!("node-spec.txt")), @r"
    half up
    deep
    ");
}

#[test]
fn tap_names_subtests_under_their_parents_and_excuses_todo_and_skip() {
    insta::assert_snapshot!(names(fixture!("node-tap.txt")), @r"
    half up
    rounding > deep
    ");
    for (output, wanted) in [
        ("not ok 3\n", "test 3"),
        ("not ok 3 - a # b\n", "a # b"),
        ("not ok 3 - a # time=2ms\n", "a"),
        ("not ok - a\n", "a"),
        ("not ok 1 - a # todo later\nnot ok 2 # SKIP\nok 3 - b\n", ""),
        ("    not ok 1 - part\nok 1 - whole # TODO\n", ""),
        ("not okay at all\nnot ok, she said\n", ""),
        ("Bail out! no database\n", "Bail out! no database"),
    ] {
        assert_eq!(names(output), wanted, "{output}");
    }
}

#[test]
fn other_runners_and_plain_scripts_name_what_failed() {
    for (output, wanted) in [
        ("FAIL: tests/cp.sh\n# FAIL: 1\n", "tests/cp.sh"),
        ("[  FAILED  ] Money.Half (2 ms)\n[  FAILED  ] 1 test, listed below:\n", "Money.Half"),
        (
            "The following tests FAILED:\n\t  3 - rounding (Failed)\n\t 12 - io (Timeout)\nErrors while running CTest\n",
            "rounding\nio",
        ),
        ("FAILED rounding_of_cents: 3 is not 4\nok 1, and quiet\n", "rounding_of_cents"),
        ("FAILED (failures=2)\nFAILED 3 tests\nFAILED\n", ""),
        ("all tests passed\n", ""),
    ] {
        assert_eq!(names(output), wanted, "{output}");
    }
}

#[test]
fn a_gate_of_several_runners_names_the_tests_of_all() {
    let both = format!("{}{}", fixture!("go.txt"), fixture!("unittest.txt"));
    let names = names(&both);
    assert!(names.contains("TestHalfUp") && names.contains("Rounding.test_half_up"), "{names}");
}

#[test]
fn a_junit_report_names_class_and_test_of_failures_and_errors() {
    let of = |xml: &str| read_junit(xml.as_bytes()).names.join("\n");
    insta::assert_snapshot!(of(fixture!("pytest.xml")), @r"
    test_broken
    test_money.test_half_up
    test_money.test_par[x - y]
    test_money.test_par[b c]
    test_money.TestC.test_in
    test_money.test_fx
    ");
    insta::assert_snapshot!(of(fixture!("node-junit.xml")), @r"
    half up
    deep
    ");
    for (xml, wanted) in [
        (
            r#"<testcase name="a &lt;b&gt; &#x41;&#10;c" classname='x > "y"'><error/></testcase>"#,
            "x > \"y\".a <b> A c",
        ),
        (r#"<testcase name="a"><!-- <failure/> --><![CDATA[<failure/>]]></testcase>"#, ""),
        (r#"<testcase name="a"/><failure/>"#, ""),
        (r#"<testcase name="a"><rerunFailure/></testcase>"#, ""),
        (r#"<testcase name="cut"><failure message="#, ""),
        (r#"<testcase name="cut"><failure>and th"#, "cut"),
        (r#"<!DOCTYPE x [<!ENTITY a "aaaa">]><testcase name="&a;b"><failure/></testcase>"#, "b"),
    ] {
        assert_eq!(of(xml), wanted, "{xml}");
    }
}

#[test]
fn of_very_many_failures_some_are_named_and_all_are_counted() {
    let mut scanner = Scanner::default();
    for number in 0..50_000 {
        scanner.feed(format!("test t{number} ... FAILED\n").as_bytes());
        scanner.feed(format!("test t{} ... FAILED\n", number / 2).as_bytes());
    }
    let failing = scanner.finish().failing;
    assert_eq!((failing.names.len(), failing.count()), (MOST_NAMES, 50_000));
    assert!(failing.to_string().ends_with("t19 and 49980 more"), "{failing}");
}

#[test]
fn a_line_of_megabytes_takes_no_memory_and_hides_nothing_after_it() {
    let mut scanner = Scanner::default();
    for _ in 0..64 {
        scanner.feed(&vec![b'x'; 1 << 16]);
    }
    scanner.feed(b"\nFAIL: after\n");
    assert!(scanner.lines.capacity() < 1 << 14);
    assert_eq!(scanner.finish().failing.names, ["after"]);
    let long = format!("FAIL: {}\n", "y".repeat(1 << 20));
    assert_eq!(digest_output(long.as_bytes()).failing.names[0].chars().count(), 120);
}

#[test]
fn colours_and_control_characters_hide_no_name_and_reach_none() {
    let painted = "\u{1b}[31mFAIL:\u{1b}[0m te\u{7}st_\u{1b}]0;title\u{7}a\u{202e}b\r\n";
    assert_eq!(names(painted), "test_ab");
}

#[test]
fn without_names_the_error_that_is_told_is_not_what_tools_say_after_it() {
    let broken = digest_output(fixture!("cargo-does-not-compile.txt").as_bytes());
    assert!(broken.failing.is_empty());
    let complaint = broken.complaint.as_deref();
    assert_eq!(complaint, Some("error: this file contains an unclosed delimiter"));
    let quiet = digest_output(b"one\ntwo\n=====\n\n  }\nthree\n---\n");
    assert_eq!((quiet.complaint, quiet.last), (None, vec!["two".to_owned(), "three".to_owned()]));
}

/// Bytes that look like outputs of test runners, torn and put together anew.
fn torn() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(fixture!("pytest-xdist.txt")),
        Just(fixture!("node-tap.txt")),
        Just(fixture!("go-json.txt")),
        Just(fixture!("vitest.txt")),
        Just(fixture!("node-junit.xml")),
        Just("\u{1b}[31m"),
        Just("not ok 1 - \u{1b}"),
        Just("    not ok 2 - a # T"),
        Just("1) a\n"),
        Just("3 failing\n"),
        Just("<testcase name='&"),
    ];
    let noise = proptest::collection::vec(any::<u8>(), 0..40);
    let part =
        (piece, any::<usize>(), any::<usize>(), noise).prop_map(|(text, from, to, noise)| {
            let bytes = text.as_bytes();
            let (from, to) = (from % bytes.len(), to % (bytes.len() + 1));
            let mut part = bytes[from.min(to)..from.max(to)].to_vec();
            part.extend(noise);
            part
        });
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_output_gives_few_short_harmless_names_however_it_is_cut(bytes in torn(), cut in any::<usize>()) {
        let whole = digest_output(&bytes);
        let mut scanner = Scanner::default();
        let (a, b) = bytes.split_at(cut % (bytes.len() + 1));
        scanner.feed(a);
        scanner.feed(b);
        let pieces = scanner.finish();
        prop_assert_eq!(&pieces.failing, &whole.failing);
        for failing in [whole.failing, read_junit(&bytes)] {
            prop_assert!(failing.names.len() <= MOST_NAMES);
            for name in &failing.names {
                prop_assert!(!name.is_empty() && name.chars().count() <= 120);
                prop_assert!(!name.contains(char::is_control));
            }
        }
        for line in whole.last.iter().chain(&whole.complaint) {
            prop_assert!(!line.contains(char::is_control) && line.chars().count() <= 120);
        }
    }
}
