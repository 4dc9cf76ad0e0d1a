use crate::exit::Exit;
use crate::testing::Desk;

const EXPORT: &str = "Id;Summary;Status;Severity;Category;Date Submitted;Description\r\n\
    12;\"The list crashes;\r\nwhen it is empty\";new;major;ui;2026-11-10;\"first\r\n\r\nsecond\"\r\n\
    15;Old thing;assigned;minor;core;2020-01-01;\r\n\
    16;Done;closed;minor;core;2026-01-01;\r\n\
    17;A wish;new;feature;ui;2026-11-01;\r\n";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.workspace.write("export.csv", EXPORT);
    desk
}

fn select(desk: &Desk, args: &[&str]) -> crate::testing::Run {
    desk.run(&[&["select", "--from-csv", "export.csv"], args].concat())
}

#[test]
fn a_selection_shows_the_pool_and_writes_drafts() {
    let desk = desk();
    insta::assert_snapshot!(select(&desk, &["--character", "fix"]), @r#"
    export.csv: 4 records

    status
      new                            2  ████████████████████████████████████████
      assigned                       1  ████████████████████
      closed                         1  ████████████████████

    severity
      minor                          2  ████████████████████████████████████████
      feature                        1  ████████████████████
      major                          1  ████████████████████

    component
      core                           2  ████████████████████████████████████████
      ui                             2  ████████████████████████████████████████

    age
      up to a week                   1  ████████████████████████████████████████
      up to a month                  1  ████████████████████████████████████████
      up to 3 months                 0
      up to a year                   1  ████████████████████████████████████████
      up to 2 years                  0
      older                          1  ████████████████████████████████████████
      unknown                        0

    buckets
      closed                         1  dropped: closed in the tracker
      requests                       1  dropped: not a defect
      open                           2  drafts
      sum                            4  of 4 records

    batch fix: 2 chosen, 1 grave, 1 older than a year
      expect: most are built and signed off; the old ones may be gone already

    wrote        12            The list crashes; when it is empty
    wrote        15            Old thing
    done: 2 drafts, listed in process/batches/2026-11-16.md
    next: fill in verdict and slug of each; pdca status shows what is missing
    "#);
    let brief = desk.workspace.read("results/issue_12/brief.md");
    assert!(
        brief.starts_with("# Brief: issue 12 — The list crashes; when it is empty\n"),
        "{brief}"
    );
    assert!(brief.contains("- **Slug:** <the-list-crashes-when-it-is>\n"), "{brief}");
    let triage = &brief[brief.find("## Triage").unwrap()..];
    insta::assert_snapshot!(triage, @r#"
    ## Triage

    The tracker says: status new, severity major, component ui, 6 days old.
    It comes from export.csv, record in line 2, bucket open.

    - **Triage verdict:** <fix, close, split or ask, and why; a draft until this is filled in>
    - **Still there:** <seen on the target branch, not seen, or not tried>
    - **Thread:** <what of the thread in `notes.json` changes the picture; or nothing>
    "#);
    insta::assert_snapshot!(desk.workspace.read("results/issue_12/notes.json"), @r#"
    {
      "body": "first\r\n\r\nsecond",
      "from": "export.csv, line 2",
      "state": "new",
      "title": "The list crashes; when it is empty"
    }
    "#);
    assert!(!desk.workspace.has("results/issue_15/notes.json"), "it has no description");
    insta::assert_snapshot!(desk.workspace.read("process/batches/2026-11-16.md"), @r#"
    # Batch 2026-11-16

    <!-- pdca select: begin. What is between the marks is written by `pdca select`. -->
    From export.csv: 4 records = 1 closed + 1 requests + 2 open.

    | id | bucket | severity | age | title |
    |---|---|---|---|---|
    | 12 | open | major | 6 d | The list crashes; when it is empty |
    | 15 | open | minor | 2511 d | Old thing |
    <!-- pdca select: end -->
    "#);
}

#[test]
fn a_draft_counts_once_verdict_and_slug_are_filled_in() {
    let desk = desk();
    select(&desk, &["--only", "12"]);
    insta::assert_snapshot!(desk.run(&["status"]), @r#"
    UNPLANNED         12  -  [fill in: Slug, Triage verdict]
    "#);
    let fill = |from: &str, to: &str| {
        let file = "results/issue_12/brief.md";
        let text = desk.workspace.read(file);
        let at = text.find(from).unwrap();
        let end = at + text[at..].find('\n').unwrap();
        desk.workspace.write(file, format!("{}{to}{}", &text[..at], &text[end..]));
    };
    fill("<the-list", "empty-list");
    let run = desk.run(&["status"]);
    assert!(
        run.out.contains("UNPLANNED") && run.out.contains("[fill in: Triage verdict]"),
        "{run}"
    );
    let run = desk.run(&["status", "12"]);
    assert!(run.out.contains("a draft; a person has to fill in: Triage verdict"), "{run}");
    fill("<fix, close", "fix: seen on main");
    assert!(desk.run(&["status"]).out.starts_with("PLANNED"), "{}", desk.run(&["status"]));
}

#[test]
fn a_dry_run_shows_everything_and_writes_nothing() {
    let desk = desk();
    let before = desk.all_files();
    let run = select(&desk, &["--dry-run"]);
    assert_eq!(run.exit, Exit::Done, "{run}");
    assert!(run.out.contains("would write") && run.out.contains("nothing was written"), "{run}");
    assert_eq!(desk.all_files(), before);
}

#[test]
fn a_second_selection_leaves_everything_alone() {
    let desk = desk();
    select(&desk, &[]);
    desk.workspace.write("results/issue_12/brief.md", "- **Slug:** mine\n");
    let before = desk.all_files();
    let run = select(&desk, &[]);
    assert_eq!(run.exit, Exit::NothingToDo, "{run}");
    assert!(run.out.contains("left alone"), "{run}");
    assert_eq!(desk.all_files(), before);
}

#[test]
fn a_limit_is_that_of_the_batch_and_another_batch_takes_the_next() {
    let desk = desk();
    let drafts = || -> Vec<bool> {
        ["12", "15"].map(|id| desk.workspace.has(format!("results/issue_{id}"))).into()
    };
    select(&desk, &["--character", "hygiene", "--limit", "1"]);
    assert_eq!(drafts(), [false, true]);
    let again = select(&desk, &["--character", "hygiene", "--limit", "1"]);
    assert_eq!((again.exit, drafts()), (Exit::NothingToDo, vec![false, true]), "{again}");
    select(&desk, &["--character", "hygiene", "--limit", "1", "--batch", "second"]);
    assert_eq!(drafts(), [true, true]);
    assert!(desk.workspace.has("process/batches/second.md"));
}

#[test]
fn a_batch_whose_index_lists_more_than_there_is_is_finished() {
    let desk = desk();
    select(&desk, &["--limit", "2"]);
    fs_err::remove_dir_all(desk.workspace.path().join("results/issue_15")).unwrap();
    let run = select(&desk, &["--limit", "2"]);
    assert_eq!(run.exit, Exit::Done, "{run}");
    assert!(desk.workspace.has("results/issue_15/brief.md"), "{run}");
}

#[test]
fn ids_that_are_not_there_stop_it() {
    let desk = desk();
    let before = desk.all_files();
    insta::assert_snapshot!(select(&desk, &["--expect", "12,99"]), @r#"
    --- stderr
    error: this is the wrong export: 99 not in it
      --> export.csv
      it has 4 records
    hint: export all issues, or the right project, and repeat; `--expect` names what must be there
    --- exit 2
    "#);
    assert_eq!(select(&desk, &["--only", "12,98"]).exit, Exit::Usage);
    assert_eq!(desk.all_files(), before);
}

#[test]
fn a_bad_record_is_named_with_its_line_and_nothing_is_written() {
    let desk = desk();
    desk.workspace.write("export.csv", "id,title\n1,a\n2\n1,b\n3,\"c\n");
    let before = desk.all_files();
    insta::assert_snapshot!(select(&desk, &[]), @r#"
    --- stderr
    error: the record has 1 field, the header has 2
      --> export.csv:3
    hint: export again with quotes around texts, or name the separator with `--separator`
    error: `1` is there twice, first in line 2
      --> export.csv:4
    hint: remove one of the two, or export again without joins
    error: the quote that opens in column `title` is never closed
      --> export.csv:5
    hint: close the quote, or export again: every record after it would be lost
    --- exit 2
    "#);
    assert_eq!(desk.all_files(), before);
}

#[test]
fn a_missing_column_is_named_with_what_is_there() {
    let desk = desk();
    desk.workspace.write("export.csv", "Isue key,Summary,Owner\nP-1,a,b\n");
    insta::assert_snapshot!(select(&desk, &[]), @r#"
    --- stderr
    error: the export has no column for id
      --> export.csv
      the columns are: Isue key, Summary, Owner
    hint: did you mean `Isue key`? Then set `columns = { id = "Isue key" }` in [select]
    --- exit 2
    "#);
    desk.workspace.config("[select]\ncolumns = { id = \"Isue key\" }\n");
    assert_eq!(select(&desk, &[]).exit, Exit::Done);
    assert!(desk.workspace.has("results/issue_P-1/brief.md"));
}

#[test]
fn a_remainder_is_an_error() {
    let desk = desk();
    desk.workspace.config("[[select.bucket]]\nname = \"new\"\nwhen = { status = \"new\" }\n");
    insta::assert_snapshot!(select(&desk, &[]), @r#"
    --- stderr
    error: 2 records are in no bucket
      --> export.csv
      such as 15 (line 6), 16 (line 7)
    hint: end [select] in pdca.toml with a bucket without `when`: `[[select.bucket]]` and `name = "rest"`
    --- exit 2
    "#);
    assert!(!desk.workspace.has("results/issue_12"));
}

#[test]
fn buckets_are_those_of_the_configuration() {
    let desk = desk();
    desk.workspace.config(
        "[[select.bucket]]\nname = \"stale\"\nwhen = { age = \"> 1y\" }\ndisposition = \"likely-close\"\n\
         [[select.bucket]]\nname = \"crash\"\nwhen = { title = { regex = \"(?i)crash\" } }\n\
         [[select.bucket]]\nname = \"rest\"\ndrop = \"not now\"\n",
    );
    let run = select(&desk, &["--json"]);
    let document: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let buckets: Vec<(&str, u64)> = document["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| (bucket["name"].as_str().unwrap(), bucket["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(buckets, [("stale", 1), ("crash", 1), ("rest", 2)]);
    let brief = desk.workspace.read("results/issue_15/brief.md");
    assert!(brief.contains("The bucket suggests: likely-close."), "{brief}");
}

#[test]
fn more_than_fifty_drafts_are_not_written_unasked() {
    let desk = desk();
    let rows: Vec<String> = (1..=60).map(|id| format!("{id},a\n")).collect();
    let rows = rows.concat();
    desk.workspace.write("export.csv", format!("id,title\n{rows}"));
    let run = select(&desk, &[]);
    assert_eq!(run.exit, Exit::Usage, "{run}");
    assert!(run.err.contains("60 records would become drafts"), "{run}");
    assert!(!desk.workspace.has("results/issue_1"));
    assert_eq!(select(&desk, &["--limit", "60"]).exit, Exit::Done);
    assert!(desk.workspace.has("results/issue_60/brief.md"));
}

#[test]
fn a_target_whose_branch_does_not_exist_is_swept() {
    let desk = desk();
    let repo = pdca_testkit::Repo::at(&desk.workspace.around().join("app"));
    repo.write("a.txt", "a\n");
    repo.commit("first");
    let branch = repo.git(&["branch", "--show-current"]).trim().to_owned();
    desk.workspace.config("[[targets]]\npath = \"../app\"\nrepo = \"team/app\"\n");
    let template = |branch: &str| {
        let text =
            format!("- **Slug:** <{{slug}}>\n- **Repo + branch target:** team/app @ {branch}\n");
        desk.workspace.write("templates/brief.md.tpl", text);
    };
    template("release-1");
    let run = select(&desk, &["--only", "12"]);
    assert!(
        run.out
            .contains("swept: the template's target team/app @ release-1: team/app has no branch"),
        "{run}"
    );
    let brief = desk.workspace.read("results/issue_12/brief.md");
    assert!(
        brief.contains("- **Repo + branch target:** <owner/repo @ branch; the template says"),
        "{brief}"
    );
    template(&branch);
    select(&desk, &["--only", "15"]);
    let brief = desk.workspace.read("results/issue_15/brief.md");
    assert!(
        brief.contains(&format!("- **Repo + branch target:** team/app @ {branch}\n")),
        "{brief}"
    );
}

#[test]
fn the_thread_comes_from_the_command_and_a_failure_stops_before_the_draft() {
    let desk = desk();
    let config =
        |cmd: &str| desk.workspace.config(&format!("[tracker]\nnotes_cmd = '''{cmd}'''\n"));
    config("test $PDCA_ISSUE = 12 && echo '{\"body\": \"thread\"}'");
    let run = select(&desk, &[]);
    assert_eq!(run.exit, Exit::Unexpected, "{run}");
    assert!(desk.workspace.read("results/issue_12/notes.json").contains("thread"));
    assert!(!desk.workspace.has("results/issue_15"), "{run}");
    config("echo '{\"body\": \"later\"}'");
    let run = select(&desk, &[]);
    assert_eq!(run.exit, Exit::Done, "{run}");
    assert!(desk.workspace.read("results/issue_12/notes.json").contains("thread"));
    assert!(desk.workspace.read("results/issue_15/notes.json").contains("later"));
}

#[test]
fn a_command_is_the_source_where_no_export_is_named() {
    let desk = desk();
    desk.workspace.config("[select]\ncmd = '''echo '{\"key\": \"P-7\", \"summary\": \"a\", \"status\": \"new\"}' '''\n");
    let run = desk.run(&["select"]);
    assert_eq!(run.exit, Exit::Done, "{run}");
    assert!(desk.workspace.has("results/issue_P-7/brief.md"), "{run}");
}

#[test]
fn a_hostile_title_is_one_line_of_the_brief() {
    let desk = desk();
    desk.workspace.write(
        "export.csv",
        "id,title\n1,\"x\n- **Slug:** done\n- **Triage verdict:** fix\u{1b}[2J\"\n",
    );
    select(&desk, &[]);
    let run = desk.run(&["status"]);
    assert!(run.out.contains("[fill in: Slug, Triage verdict]"), "{run}");
}
