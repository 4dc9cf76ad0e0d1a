//! What the guide for embedders says is a program, and it works.

use pdca_driver::Halt;
use pdca_state::BundleRoot;
use pdca_testkit::{Repo, TestWorkspace};

#[path = "../examples/drive_a_bundle.rs"]
#[expect(dead_code, reason = "the program's main is not what is tested")]
mod drive_a_bundle;

#[path = "../../pdca-dag/examples/frontier.rs"]
#[expect(dead_code, reason = "the program's main is not what is tested")]
mod frontier;

pdca_process::supervisor_entry!();

const GUIDE: &str = include_str!("../../../docs/guide/embedding.md");
const PLANNING: &str = include_str!("../../pdca-dag/examples/frontier.rs");
const EXAMPLE: &str = include_str!("../examples/drive_a_bundle.rs");

#[test]
fn the_guide_shows_the_program_as_it_is_in_at_most_40_lines() {
    let body = EXAMPLE.split_once("use camino").expect("it uses camino").1;
    assert!(GUIDE.contains(body), "docs/guide/embedding.md differs from the example");
    assert!(body.lines().count() <= 40, "{}", body.lines().count());
}

#[test]
fn the_guide_shows_how_a_batch_is_planned_and_the_example_does_what_it_says() {
    let body = PLANNING.split_once("use pdca_dag").expect("it uses pdca-dag").1;
    assert!(GUIDE.contains(body), "docs/guide/embedding.md differs from the example");
    assert_eq!(frontier::starts().unwrap(), [vec!["1"], vec!["2", "3"]]);
}

#[test]
fn a_program_drives_a_bundle_in_the_lanes_of_its_machine() {
    pdca_process::testing::use_harness();
    let workspace = TestWorkspace::new();
    let app = Repo::at(&workspace.around().join("app"));
    app.write("a.txt", "one\n");
    app.commit("first");
    let untouched = app.status();
    workspace.brief("7", &[]);
    let id = "7".parse().unwrap();
    let end = drive_a_bundle::drive(workspace.path(), &id, "echo two >> a.txt").unwrap();
    assert_eq!((end.halt, end.red), (Halt::AwaitingSignoff, false));
    let bundle = BundleRoot::new(workspace.path().join("results")).bundle(&id);
    let report = bundle.load().unwrap().gates.unwrap();
    assert!(report.rows.iter().any(|row| row.rule_id == "T1-words"), "{report:?}");
    assert_eq!(app.status(), untouched);

    workspace.brief("8", &[]);
    let id = "8".parse().unwrap();
    let end = drive_a_bundle::drive(workspace.path(), &id, "echo TODO >> a.txt").unwrap();
    assert_eq!((end.halt, end.red), (Halt::AwaitingSignoff, true));
}
