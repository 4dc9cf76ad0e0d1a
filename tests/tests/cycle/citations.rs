//! Places that a review or the notes cite are looked up in the tree that was reviewed.

use pdca_e2e::Scene;

const BUILDER: &str = "printf 'one\\ntwo\\nthree\\n' > greeting.txt\nmkdir -p src\nprintf 'fn total() {}\\n' > src/total.rs\n\
     printf 'Changed `greeting.txt:2` `two`; see src/gone.rs:4.\\n' > \"$PDCA_OUTPUT\"";

fn reviewer(basis: &str) -> String {
    format!(
        "cat <<'EOT'\n| Item | Verdict | Basis |\n|---|---|---|\n| C3 Change | PASS | {basis} |\nEOT\n"
    )
}

fn items(scene: &Scene) -> Vec<String> {
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    let items = summary.lines().filter(|line| line.starts_with("- [ ] citations: "));
    items.map(str::to_owned).collect()
}

#[test]
fn a_place_that_is_not_there_or_says_something_else_is_an_open_item_and_blocks_nothing_by_itself() {
    let basis = "`greeting.txt:2` `two`, `src/total.rs:1` `fn total()`, total.rs:1, `greeting.txt:9`, `greeting.txt:1` `three`";
    let scene = Scene::with_leaves(BUILDER, &reviewer(basis), "");
    let items = items(&scene);
    assert_eq!(items.len(), 2, "{items:?}");
    let review = items.iter().find(|item| item.contains("check-review.md")).expect("the review");
    assert!(review.contains("2 of 5 in check-review.md do not hold"), "{review}");
    assert!(review.contains("greeting.txt:9 (line 3: the file has 3 lines)"), "{review}");
    assert!(
        review.contains(
            "greeting.txt:1 (line 3: the line says `one`, the quotation stands in line 3)"
        ),
        "{review}"
    );
    let notes = items.iter().find(|item| item.contains("build-notes.md")).expect("the notes");
    assert!(notes.contains("src/gone.rs:4 (line 1: there is no such file)"), "{notes}");
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    scene.accept("7");
}

#[test]
fn places_that_hold_and_lines_that_the_change_removed_ask_nothing() {
    let notes = "printf 'one\\n' > greeting.txt\necho 'All of it.' > \"$PDCA_OUTPUT\"";
    // The base says "hello" there, the change "one"; both sides may be cited.
    let basis = "`greeting.txt:1` `hello` before, `greeting.txt:1` `one` after; `brief.md:1`; http://example.com:80/x";
    let scene = Scene::with_leaves(notes, &reviewer(basis), "");
    assert_eq!(items(&scene), Vec::<String>::new());
}

#[test]
fn nothing_is_looked_up_where_the_configuration_says_so() {
    let more = "[check]\ncitations = \"off\"\n";
    let scene = Scene::with_leaves(BUILDER, &reviewer("`nowhere.rs:3`"), more);
    assert_eq!(items(&scene), Vec::<String>::new());
}
