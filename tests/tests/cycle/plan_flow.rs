//! What a brief declares in any usual spelling, `flow` for exactly the ids named, and files in idle lanes.

use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_e2e::{Ran, Scene, leaf};

const BUILDER: &str = "echo \"$1\" > \"file-$1.txt\"";
const REVIEWER: &str = "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 | PASS | seen |\\n' > \"$PDCA_OUTPUT\"";
const CONFIG: &str = "[driver]\nlanes = 1\ngate_base = \"off\"\n\n\
    [[gates.checks]]\nid = \"T1-there\"\ntier = \"T1\"\ncmd = \"test -f greeting.txt\"\n\n";

fn scene(more: &str) -> Scene {
    Scene::with_leaves(BUILDER, REVIEWER, &format!("{CONFIG}{more}"))
}

/// Writes a brief with these lines below the usual ones.
fn brief(scene: &Scene, id: &str, lines: &str) {
    let text = format!(
        "# Brief\n\n- **Slug:** s-{id}\n- **Repo + branch target:** team/app @ main\n{lines}\n"
    );
    scene.workspace.write(format!("results/issue_{id}/brief.md"), text);
}

fn status(scene: &Scene, id: &str) -> serde_json::Value {
    scene.pdca(&["--json", "status", id]).expect(0).json()
}

fn accepted(scene: &Scene, id: &str) {
    scene.pdca(&["run", id]).expect(0);
    scene.accept(id);
}

#[test]
fn a_field_counts_in_every_usual_spelling() {
    let scene = scene("");
    brief(&scene, "base", "");
    for (at, line) in [
        "Depends: base",
        "depends_on: `base`",
        "+ __Depends on__: base",
        "1. Depends upon: base",
        "- [ ] **DEPENDS ON:** base (it has the parser)",
    ]
    .iter()
    .enumerate()
    {
        let id = format!("d{at}");
        brief(&scene, &id, line);
        assert_eq!(status(&scene, &id)["blocked_by"], serde_json::json!(["base"]), "{line}");
    }
    brief(&scene, "rival", "* Conflicts: base\n\nTouches:\n- `docs/a.md`: the page\n- src/");
    let rival = status(&scene, "rival");
    assert_eq!(rival["conflicts_with"], serde_json::json!(["base"]));
    assert_eq!(rival["touches"], serde_json::json!(["docs/a.md", "src/"]));
    scene.pdca(&["batch"]).expect(0);
    assert_eq!(scene.state("d0"), "PLANNED", "its prerequisite is not accepted");
    assert_eq!(scene.state("base"), "AWAITING_SIGNOFF");
}

#[test]
fn a_label_that_is_almost_right_keeps_its_bundle_and_no_other_from_starting() {
    let scene = scene("");
    brief(&scene, "1", "");
    brief(&scene, "2", "- **Dependson:** 1");
    brief(&scene, "3", "Which of both\ndepends on: 1, is open.");
    let ran = scene.pdca(&["batch"]).expect(0);
    assert!(ran.err.contains("issue_2/brief.md:5"), "{}", ran.err);
    assert!(ran.err.contains("`- **Depends on:** …`"), "{}", ran.err);
    assert!(ran.err.contains("issue_3/brief.md:6"), "{}", ran.err);
    let states = ["1", "2", "3"].map(|id| scene.state(id));
    assert_eq!(states, ["AWAITING_SIGNOFF", "PLANNED", "AWAITING_SIGNOFF"]);
    let problems = status(&scene, "2")["problems"].clone();
    assert!(problems[0]["what"].as_str().is_some_and(|what| what.contains("line 5")), "{problems}");
    scene.pdca(&["run", "2"]).expect(2);
    brief(&scene, "2", "- **Depends on:** 1");
    scene.accept("1");
    scene.pdca(&["run", "2"]).expect(0);
    assert_eq!(scene.state("2"), "AWAITING_SIGNOFF");
}

fn bundles(scene: &Scene) -> Vec<String> {
    let entries = scene.workspace.path().join("results").read_dir_utf8();
    let mut names: Vec<String> =
        entries.into_iter().flatten().flatten().map(|entry| entry.file_name().to_owned()).collect();
    names.retain(|name| name.starts_with("issue_"));
    names.sort_unstable();
    names
}

#[test]
fn a_flow_drafts_exactly_the_ids_that_are_named() {
    let scene = scene("");
    let rows = "id,title,status\n41,Crash,new\n42,Hang,new\n43,Leak,new\n";
    scene.workspace.write("pool.csv", rows);
    scene.pdca(&["flow", "42", "--from-csv", "pool.csv"]).expect(3);
    assert_eq!(bundles(&scene), ["issue_42"]);
    let refused = scene.pdca(&["flow", "42", "--from-csv", "pool.csv", "--limit", "2"]).expect(2);
    assert!(refused.err.contains("--limit"), "{}", refused.err);
    scene.pdca(&["flow", "44", "--from-csv", "pool.csv"]).expect(2);
    assert_eq!(bundles(&scene), ["issue_42"], "44 is not in the export");
    scene.pdca(&["flow", "--from-csv", "pool.csv"]).expect(3);
    assert_eq!(bundles(&scene), ["issue_41", "issue_42", "issue_43"]);
}

#[test]
fn a_flow_from_nothing_begins_with_plan() {
    let planner = leaf("planner").replace("{id}", "session");
    let scene = scene(&planner);
    scene.script(
        "planner",
        "for issue in $PDCA_ISSUES; do printf -- '- **Slug:** s\\n- **Repo + branch target:** team/app @ main\\n' > \"issue_$issue/brief.md\"; done",
    );
    brief(&scene, "9", "");
    scene.pdca(&["--dry-run", "flow", "77"]).expect(0);
    assert_eq!(bundles(&scene), ["issue_9"]);
    let ran = scene.pdca(&["--json", "flow", "77"]).expect(3).json();
    assert_eq!(ran["unsigned"], serde_json::json!(["77"]), "{ran}");
    assert_eq!(scene.state("9"), "PLANNED", "it was not named");
}

#[test]
fn documents_are_handed_to_the_planner() {
    let planner = leaf("planner").replace("{id}", "session");
    let scene = scene(&planner);
    scene.script(
        "planner",
        "for issue in $PDCA_ISSUES; do printf -- \"- **Slug:** $(cat documents/design.md)\\n- **Repo + branch target:** team/app @ main\\n\" > \"issue_$issue/brief.md\"; done",
    );
    scene.workspace.write("notes/design.md", "from-the-design");
    let refused = scene.pdca(&["flow", "77", "--doc", "notes/none.md"]).expect(2);
    assert!(refused.err.contains("notes/none.md"), "{}", refused.err);
    assert_eq!(bundles(&scene), [""; 0], "nothing was written");
    scene.pdca(&["flow", "77", "--doc", "notes/design.md"]).expect(3);
    assert!(scene.workspace.read("results/issue_77/brief.md").contains("from-the-design"));
}

#[test]
fn a_flow_without_a_planner_leaves_a_draft_to_fill_in() {
    let scene = scene("");
    let ran = scene.pdca(&["--json", "flow", "PROJ-7"]).expect(3).json();
    assert_eq!(ran["drafts"], serde_json::json!(["PROJ-7"]), "{ran}");
    assert!(scene.workspace.read("results/issue_PROJ-7/brief.md").contains("Slug"));
}

#[test]
fn a_flow_tells_what_is_staged_from_what_landed() {
    let scene = scene("[integrate]\nland = \"branch\"\n");
    brief(&scene, "1", "");
    accepted(&scene, "1");
    let ran = scene.pdca(&["--json", "flow", "1"]).expect(0).json();
    assert_eq!(
        (&ran["staged"], &ran["landed"]),
        (&serde_json::json!(["1"]), &serde_json::json!([]))
    );
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    scene.workspace.config(&format!(
        "{}{}{}{CONFIG}[integrate]\nland = \"target\"\n",
        pdca_e2e::TARGET,
        leaf("builder"),
        leaf("reviewer")
    ));
    brief(&scene, "2", "");
    accepted(&scene, "2");
    let ran = scene.pdca(&["--json", "flow", "2"]).expect(0).json();
    assert_eq!(
        (&ran["staged"], &ran["landed"]),
        (&serde_json::json!([]), &serde_json::json!(["2"]))
    );
}

/// The checkout of the lane, and a clock of the file system that has moved on since its release.
fn idle_lane(scene: &Scene) -> Utf8PathBuf {
    let listed = scene.pdca(&["--json", "lanes", "list"]).expect(0).json();
    let path = listed["lanes"][0]["path"].as_str().unwrap_or_else(|| panic!("{listed}"));
    let lane = Utf8PathBuf::from(path);
    let time = |path: &Utf8Path| {
        fs_err::metadata(path).map(|at| (at.ctime(), at.ctime_nsec())).expect("it is there")
    };
    let stamp = time(&lane.with_file_name("app.released"));
    let probe = scene.workspace.path().join("probe");
    loop {
        fs_err::write(&probe, "").expect("a file can be written");
        if time(&probe) > stamp {
            return lane;
        }
    }
}

#[test]
fn files_in_an_idle_lane_are_kept_and_told_whatever_the_last_attempt_left() {
    let scene = scene("");
    scene.repo.write(".gitignore", "*.o\n");
    scene.repo.commit("rules");
    brief(&scene, "1", "");
    scene.pdca(&["run", "1"]).expect(0);
    let lane = idle_lane(&scene);
    fs_err::write(lane.join("greeting.txt"), "precious tracked\n").expect("written");
    fs_err::write(lane.join("mine.txt"), "precious untracked\n").expect("written");
    fs_err::write(lane.join("mine.o"), "precious ignored\n").expect("written");
    brief(&scene, "2", "");
    let ran = scene.pdca(&["run", "2"]).expect(0);
    for name in ["greeting.txt", "mine.txt", "mine.o"] {
        assert!(ran.err.contains(name), "{name} is not told:\n{}", ran.err);
    }
    let patch = scene.workspace.read("results/issue_2/patch.diff");
    assert!(!patch.contains("precious") && patch.contains("file-2.txt"), "{patch}");
    let (kept, place) = rescued(&ran);
    let show =
        |name: &str| pdca_testkit::Repo::existing(&place).git(&["show", &format!("{kept}:{name}")]);
    assert_eq!(show("greeting.txt"), "precious tracked\n");
    assert_eq!(show("mine.txt"), "precious untracked\n");
    let aside = lane.with_file_name("rescued");
    let ignored: Vec<_> = aside.read_dir_utf8().expect("it is there").flatten().collect();
    let text =
        ignored.iter().find_map(|dir| fs_err::read_to_string(dir.path().join("mine.o")).ok());
    assert_eq!(text.as_deref(), Some("precious ignored\n"));
    // Nothing was put there since, so nothing is told.
    idle_lane(&scene);
    brief(&scene, "3", "");
    let ran = scene.pdca(&["run", "3"]).expect(0);
    assert!(!ran.err.contains("rescued") && !ran.err.contains("kept"), "{}", ran.err);
}

/// The commit and the repository in the line `rescued … is kept as COMMIT in PATH`.
fn rescued(ran: &Ran) -> (String, Utf8PathBuf) {
    let line = ran
        .err
        .lines()
        .find(|line| line.contains("rescued"))
        .unwrap_or_else(|| panic!("{}", ran.err));
    let (_, rest) = line.split_once("kept as ").unwrap_or_else(|| panic!("{line}"));
    let (commit, place) = rest.split_once(" in ").unwrap_or_else(|| panic!("{line}"));
    (commit.to_owned(), place.trim().into())
}

#[test]
fn a_workspace_can_ask_for_lanes_json() {
    let scene = scene("[schedule]\nlanes_json = \"required\"\njoin_dependencies = true\n");
    brief(&scene, "1", "- **Touches:** a");
    brief(&scene, "2", "- **Depends on:** 1\n- **Touches:** b");
    let refused = scene.pdca(&["batch"]).expect(2);
    assert!(refused.err.contains("pdca plan --write"), "{}", refused.err);
    assert_eq!(scene.state("1"), "PLANNED");
    scene.pdca(&["plan", "--write"]).expect(0);
    let file: serde_json::Value =
        serde_json::from_str(&scene.workspace.read("lanes.json")).expect("it is JSON");
    assert_eq!(file["groups"].as_array().map(Vec::len), Some(1), "{file}");
    assert_eq!(file["collapse_report"][0]["merged_wps"], serde_json::json!(["1", "2"]));
    let reason = file["collapse_report"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("dependency: 2 depends on 1"), "{reason}");
    scene.pdca(&["batch"]).expect(0);
    assert_eq!(scene.state("1"), "AWAITING_SIGNOFF");
}

#[test]
fn bundles_with_a_common_surface_share_a_group_that_one_lane_builds_in_order() {
    let scene = scene("[schedule]\nsurfaces = \"join\"\n");
    brief(&scene, "1", "- **Touches:** a\n- **Surfaces:** Main  Menu, API");
    brief(&scene, "2", "- **Touches:** b\n- **Surfaces:** `main menu`.");
    brief(&scene, "3", "- **Touches:** c\n- **Surfaces:** menu");
    let said = scene.pdca(&["plan", "--write"]).expect(0).out;
    assert!(
        said.contains("1 and 2 share a group: common surface: both show on main menu"),
        "{said}"
    );
    let file: serde_json::Value =
        serde_json::from_str(&scene.workspace.read("lanes.json")).expect("it is JSON");
    let groups: Vec<&serde_json::Value> =
        file["groups"].as_array().into_iter().flatten().map(|group| &group["bundles"]).collect();
    // A surface is a name and no glob: `menu` is not `main menu`.
    assert_eq!(groups, [&serde_json::json!(["1", "2"]), &serde_json::json!(["3"])], "{file}");
    let join = &file["collapse_report"][0];
    assert_eq!((&join["rule"], &join["bundles"]), (&"surface".into(), groups[0]), "{file}");
    assert_eq!(join["reason"], "common surface: both show on main menu");
    // The surface alone is declared otherwise, and the file is out of date.
    brief(&scene, "3", "- **Touches:** c\n- **Surfaces:** api");
    scene.pdca(&["plan", "--check"]).expect(3);
    scene.pdca(&["plan", "--write"]).expect(0);
    scene.pdca(&["batch", "--lanes", "3", "--events", "events.jsonl"]).expect(0);
    let mut lanes: Vec<String> = Vec::new();
    for line in scene.workspace.read("events.jsonl").lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        if event.to_string().contains("dispatched") {
            lanes.push(event["lane"].to_string());
        }
    }
    assert_eq!(lanes.len(), 3, "{lanes:?}");
    assert!(lanes.iter().all(|lane| *lane == lanes[0]), "one lane for the group: {lanes:?}");
}

#[test]
fn a_common_surface_keeps_no_two_bundles_apart_where_groups_do_not_ask_for_it() {
    let scene = scene("");
    brief(&scene, "1", "- **Touches:** a\n- **Surfaces:** menu");
    brief(&scene, "2", "- **Touches:** b\n- **Surfaces:** menu");
    let plan = scene.pdca(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["groups"].as_array().map(Vec::len), Some(2), "{plan}");
    assert_eq!(plan["waves"], serde_json::json!([["1", "2"]]), "{plan}");
}
