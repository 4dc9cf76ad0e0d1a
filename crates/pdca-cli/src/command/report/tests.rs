use crate::exit::Exit;
use crate::testing::Desk;

#[test]
fn without_an_option_the_page_is_written_beside_the_records() {
    let desk = Desk::new();
    desk.awaiting("8", &["V Is it right?"], "fail");
    let run = desk.run(&["report"]);
    assert_eq!(run.exit, Exit::Done, "{run}");
    assert!(run.out.starts_with("wrote .pdca/report.html ("), "{run}");
    let page = desk.workspace.read(".pdca/report.html");
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("C4-verify"), "{page}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let desk = Desk::new();
    let run = desk.run(&["report", "-n", "--junit", "report.xml"]);
    assert_eq!(run.exit, Exit::Done, "{run}");
    assert!(run.out.starts_with("would write report.xml"), "{run}");
    assert!(!desk.workspace.has("report.xml"));
}

#[test]
fn red_gates_are_annotations_and_lines_of_the_summary() {
    let desk = Desk::new();
    desk.awaiting("8", &["V Is it right?"], "fail");
    let run = desk.run(&["report", "--annotations"]);
    assert_eq!(run.out, "::error title=8 C4 verified::1 test\n", "{run}");
    let run = desk.run(&["report", "--summary"]);
    assert!(run.out.contains("1 needs you"), "{run}");
    assert!(run.out.contains("### Needs you\n\n- ● needs you: **8** "), "{run}");
    assert!(run.out.contains("  - ✗ C4 verified: 1 test\n"), "{run}");
    assert!(!desk.workspace.has(".pdca/report.html"));
}

#[test]
fn a_removed_line_that_looks_like_a_header_is_counted() {
    let desk = Desk::new();
    desk.workspace.brief("8", &[]);
    let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n one\n--- two\n";
    desk.workspace.write("results/issue_8/patch.diff", patch);
    let run = desk.run(&["report", "--summary"]);
    assert!(run.out.contains("| +0 −1 |"), "{run}");
}

#[test]
fn a_run_that_is_not_known_is_named_with_the_remedy() {
    let desk = Desk::new();
    desk.workspace.brief("8", &[]);
    let run = desk.run(&["report", "--run", "01X"]);
    assert_eq!(run.exit, Exit::Usage, "{run}");
    assert!(run.err.contains("no run or integration is called `01X`"), "{run}");
    assert!(run.err.contains("`--run latest`"), "{run}");
    let run = desk.run(&["report", "--run", "latest"]);
    assert_eq!(run.exit, Exit::Usage, "{run}");
    assert!(run.err.contains("no run is recorded yet"), "{run}");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let desk = Desk::new();
    for file in ["missing/dir/x.html", "results"] {
        let run = desk.run(&["report", "--html", file]);
        assert_eq!(run.exit, Exit::Usage, "{run}");
        assert!(run.err.contains(file), "{run}");
        assert!(run.err.contains("hint: name a file"), "{run}");
    }
}
