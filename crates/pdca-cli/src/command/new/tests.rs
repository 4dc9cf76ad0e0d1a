use crate::exit::Exit;
use crate::testing::Desk;

#[test]
fn a_new_bundle_has_a_brief_that_is_not_planned_yet() {
    let desk = Desk::new();
    let run = desk.run(&["new", "#36", "--title", "The list {id} crashes"]);
    insta::assert_snapshot!(run, @"
    wrote results/issue_36/brief.md
    next: fill it in, then pdca run 36
    ");
    let brief = desk.workspace.read("results/issue_36/brief.md");
    assert!(brief.starts_with("# Brief: issue 36 — The list {id} crashes\n"), "{brief}");
    assert!(brief.contains("- **Slug:** <the-list-id-crashes>\n"), "{brief}");
    assert!(desk.run(&["status"]).out.contains("UNPLANNED"));
}

#[test]
fn a_brief_that_is_there_is_never_overwritten() {
    let desk = Desk::new();
    desk.workspace.brief("36", &[]);
    let before = desk.workspace.read("results/issue_36/brief.md");
    let run = desk.run(&["new", "36"]);
    insta::assert_snapshot!(run, @"
    --- stderr
    error: issue_36 has a brief already
      --> results/issue_36/brief.md
    hint: `pdca status` shows its state; edit the file to change it
    --- exit 2
    ");
    assert_eq!(desk.workspace.read("results/issue_36/brief.md"), before);
}

#[test]
fn what_the_attempt_before_handed_on_is_in_the_new_brief() {
    let desk = Desk::new();
    desk.workspace.write("results/issue_36/carry-forward.md", "## Iteration 1 — carry-forward\n");
    assert_eq!(desk.run(&["new", "36"]).exit, Exit::Done);
    let brief = desk.workspace.read("results/issue_36/brief.md");
    assert!(brief.ends_with("\n\n## Iteration 1 — carry-forward\n"), "{brief}");
}

#[test]
fn the_workspace_s_own_template_is_used() {
    let desk = Desk::new();
    desk.workspace.write("templates/brief.md.tpl", "- **Slug:** <{slug}>\n{id}{title}\n");
    desk.run(&["new", "PROJ-12", "--title", "Über alles"]);
    assert_eq!(
        desk.workspace.read("results/issue_PROJ-12/brief.md"),
        "- **Slug:** <ber-alles>\nPROJ-12 — Über alles\n"
    );
}

#[test]
fn a_dry_run_writes_nothing() {
    let desk = Desk::new();
    let run = desk.run(&["new", "36", "--dry-run"]);
    assert_eq!(
        (run.exit, run.out.as_str()),
        (Exit::Done, "would write results/issue_36/brief.md\n")
    );
    assert!(!desk.workspace.has("results/issue_36"));
}

#[test]
fn an_archived_id_is_not_used_again() {
    let desk = Desk::new();
    desk.workspace.write("results/completed/issue_36/brief.md", "- **Slug:** done\n");
    assert_eq!(desk.run(&["new", "36"]).exit, Exit::Usage);
    assert!(!desk.workspace.has("results/issue_36"));
}
