//! What is told before anything is gated, and after.

use crate::meeting::Meeting;

#[test]
fn a_forecast_uses_the_surest_that_both_have_and_names_file_and_line() {
    let scene = Meeting::new("true");
    scene.accepted("1", "greeting.txt", "hello, one\n");
    scene.waiting("2", &[("Touches", "greeting.txt")], &[("greeting.txt", "hello, two\n")]);
    scene.scene.brief("3", &[("Touches", "*.txt")]);
    scene.accepted("4", "d.txt", "d\n");
    let said = scene.pdca(&["forecast", "--json"]).expect(0).json();
    let troubles: Vec<(String, String)> = said["forecasts"][0]["troubles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let text = |name: &str| pair[name].as_str().unwrap().to_owned();
            (text("level"), text("text"))
        })
        .collect();
    let pair = |level: &str, text: &str| (level.to_owned(), text.to_owned());
    assert_eq!(
        troubles,
        [
            pair("heads", "1 and 2 conflict in greeting.txt:1"),
            pair("declared", "2 and 3 both declare greeting.txt"),
        ]
    );
    let shown = scene.pdca(&["forecast"]).expect(0).out;
    assert!(shown.contains("✗ conflict  1 and 2 conflict in greeting.txt:1"), "{shown}");
    for command in ["queue", "status"] {
        let shown = scene.pdca(&[command]).expect(0).out;
        assert!(shown.contains("[will conflict: 1]"), "{command}: {shown}");
    }
}

#[test]
fn status_tells_from_git_what_is_sealed_held_staged_and_landed() {
    let scene = Meeting::new("! { test -e a.txt && test -e b.txt; }");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    let standing = |id: &str| {
        let status = scene.pdca(&["status", "--json"]).expect(0).json();
        let rows = status["bundles"].as_array().unwrap().clone();
        let row = rows.into_iter().find(|row| row["id"] == id).unwrap();
        row["integration"].as_str().unwrap().to_owned()
    };
    assert_eq!((standing("1"), standing("2")), ("sealed".to_owned(), "sealed".to_owned()));
    let next = || scene.pdca(&[]).expect(0).out.lines().last().unwrap().to_owned();
    assert_eq!(next(), "next: pdca integrate   # 2 accepted and not landed");
    let done = scene.integrate(&["--json"]).expect(101).json();
    assert!(next().starts_with("next: git merge --ff-only pdca/integration-"), "{}", next());
    assert_eq!((standing("1"), standing("2")), ("staged".to_owned(), "held".to_owned()));
    let reference = done["references"][0].as_str().unwrap();
    // Landed is what the branch says, not what we remember.
    scene.scene.repo.git(&["update-ref", "refs/heads/main", reference]);
    scene.scene.repo.git(&["update-ref", "-d", reference]);
    fs_err::remove_file(scene.scene.workspace.path().join(".pdca/held.json")).unwrap();
    assert_eq!((standing("1"), standing("2")), ("landed".to_owned(), "sealed".to_owned()));
    let shown = scene.pdca(&["status"]).expect(0).out;
    assert!(shown.contains("[landed]"), "{shown}");
}

#[test]
fn the_result_document_names_what_the_change_does_not_merge_with() {
    let scene = Meeting::new("true");
    scene.waiting("1", &[], &[("shared.txt", "one\n")]);
    scene.waiting("2", &[], &[("shared.txt", "two\n")]);
    scene.waiting("3", &[], &[("other.txt", "three\n")]);
    let summary = |id: &str| scene.scene.workspace.read(format!("results/issue_{id}/SUMMARY.md"));
    let item = "- [ ] forecast: it does not merge with 1, in shared.txt";
    assert!(summary("2").contains(item), "{}", summary("2"));
    assert!(summary("2").contains("- Together with other changes: it does not merge with another"));
    for id in ["1", "3"] {
        assert!(!summary(id).contains("forecast:"), "{}", summary(id));
        assert!(summary(id).contains("- Together with other changes: not proven here"));
    }
    // Nobody accepts it without having seen that.
    let refused = scene.pdca(&["signoff", "2", "accept"]).expect(2);
    assert!(refused.err.contains("forecast: it does not merge with 1"), "{}", refused.err);
    // What landed is no longer a forecast.
    scene.scene.accept("1");
    scene.integrate(&["--land", "target"]).expect(0);
    scene.waiting("4", &[], &[("shared.txt", "four\n")]);
    assert!(!summary("4").contains("merge with 1"), "{}", summary("4"));
    assert!(summary("4").contains("merge with 2"), "{}", summary("4"));
}
