use crate::testing::Desk;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.workspace.config("[driver]\nlanes = 1\n[leaves.act]\nprompt_file = \"agents/act.md\"\n");
    desk.workspace.write("agents/act.md", "look back\n");
    desk.workspace.write("templates/brief.md.tpl", "- **Slug:** <slug>\n");
    desk.workspace.write("process/rules.md", "be kind\n");
    desk
}

#[test]
fn before_the_first_review_the_present_process_is_shown() {
    insta::assert_snapshot!(desk().run(&["act", "diff"]), @"
    no review has recorded a baseline yet
      f93b8e55  agents/act.md
      5da5e4af  pdca.toml [driver]
      ffb5627f  pdca.toml [leaves]
      9933b688  process/rules.md
      d6b55651  templates/brief.md.tpl
    next: pdca act log --record
    ");
}

#[test]
fn what_changed_since_the_last_review_is_told_with_the_history() {
    let desk = desk();
    desk.complete("36");
    desk.run(&["act", "log", "--record", "--date", "2026-11-01"]);
    desk.workspace.write("process/rules.md", "be kind and quick\n");
    desk.complete("41");
    desk.run(&["act", "log", "--record"]);
    desk.workspace.config("# a comment is no change\n[driver]\nlanes = 2\n");
    desk.workspace.write("templates/more.md", "x\n");
    insta::assert_snapshot!(desk.run(&["act-diff", "--names"]), @"
    since the review of 2026-11-16: 1 changed, 1 added, 2 removed
      changed  pdca.toml [driver]  5da5e4af → 5cbebaf3
      added    templates/more.md  73cb3858
      removed  agents/act.md  f93b8e55
      removed  pdca.toml [leaves]  ffb5627f
    history
      2026-11-01  cycles 36: first baseline, 5 parts
      2026-11-16  cycles 41: 1 changed
    ");
}

#[test]
fn a_part_is_shown_as_a_diff_against_its_text_of_the_review() {
    let desk = desk();
    let repo = pdca_testkit::Repo::at(desk.workspace.path());
    repo.commit("the process");
    desk.complete("36");
    desk.run(&["act", "log", "--record", "--date", "2026-11-01"]);
    desk.workspace.write("process/rules.md", "be kind\nbe quick\n");
    repo.commit("quicker");
    desk.workspace.write("AGENTS.md", "ask first\n");
    desk.workspace.config(
        "# a comment\n[driver]\nlanes = 3\n[leaves.act]\nprompt_file = \"agents/act.md\"\n",
    );
    insta::assert_snapshot!(desk.run(&["act", "diff"]), @"
    since the review of 2026-11-01: 2 changed, 1 added
      changed  pdca.toml [driver]  5da5e4af → a1f6659e
      changed  process/rules.md  9933b688 → 8c9355a7
      added    AGENTS.md  cbdd501b

    pdca.toml [driver] (not committed)
      @@ -1,2 +1,2 @@
       [driver]
      -lanes = 1
      +lanes = 3

    process/rules.md
      @@ -1 +1,2 @@
       be kind
      +be quick

    AGENTS.md (not committed)
      @@ -0,0 +1 @@
      +ask first

    history
      2026-11-01  cycles 36: first baseline, 5 parts
    ");
}

#[test]
fn a_text_that_was_never_committed_is_said_to_be_unknown() {
    let desk = desk();
    let repo = pdca_testkit::Repo::at(desk.workspace.path());
    repo.commit("the process");
    desk.workspace.write("process/rules.md", "a draft\n");
    desk.complete("36");
    desk.run(&["act", "log", "--record"]);
    desk.workspace.write("process/rules.md", "be kind\n");
    let run = desk.run(&["act", "diff"]);
    let part = "\nprocess/rules.md\n  its text at the review is not in the git history";
    assert!(run.out.contains(part), "{run}");
}

#[test]
fn scripts_get_the_digests() {
    let desk = desk();
    desk.complete("36");
    desk.run(&["act", "log", "--record"]);
    desk.workspace.write("process/rules.md", "other\n");
    let json: serde_json::Value =
        serde_json::from_str(&desk.run(&["act", "diff", "--json"]).out).unwrap();
    assert_eq!(json["kind"], "act-diff");
    let changed = &json["since_last_review"]["changed"];
    assert_eq!(changed[0]["file"], "process/rules.md");
    assert_ne!(changed[0]["before"], changed[0]["after"]);
    assert_eq!(json["last_review"]["cycles"], serde_json::json!(["36"]));
}

#[test]
fn a_ledger_that_is_none_is_said_and_counts_as_empty() {
    let desk = desk();
    desk.workspace.write("process/act-ledger.json", "[{");
    let run = desk.run(&["act", "diff"]);
    assert!(
        run.out.starts_with("warning: the ledger counts as empty: not JSON (line 1, column 2)\n"),
        "{run}"
    );
}

#[test]
fn templates_rules_gates_and_agent_files_are_parts_of_the_process() {
    let desk = desk();
    desk.workspace.config("[[gates.checks]]\nid = \"T1\"\ntier = \"T1\"\ncmd = \"true\"\n");
    let files = [".claude/agents/builder.md", ".semgrep.yml", "AGENTS.md"];
    for file in files {
        desk.workspace.write(file, "x\n");
    }
    let shown = desk.run(&["act", "diff"]).out;
    let own = ["pdca.toml [gates]", "process/rules.md", "templates/brief.md.tpl"];
    for part in files.into_iter().chain(own) {
        assert!(shown.lines().any(|line| line.ends_with(&format!("  {part}"))), "{part}: {shown}");
    }
}
