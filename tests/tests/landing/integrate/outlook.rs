//! Forecasts before gating, and reports after it.

use crate::meeting::Meeting;

#[test]
fn a_forecast_uses_the_surest_that_both_have_and_names_file_and_line() {
    let scene = Meeting::new("true");
    // 1 declares nothing, so it is built beside 2 and not on it.
    scene.waiting("2", &[("Touches", "greeting.txt")], &[("greeting.txt", "hello, two\n")]);
    scene.accepted("1", "greeting.txt", "hello, one\n");
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
fn a_change_is_not_forecast_to_conflict_with_what_it_was_built_on() {
    let scene = Meeting::new("true");
    // Each rewrites the same line, so no two of them merge without those between.
    for id in ["1", "2", "3", "4"] {
        let text = format!("hello, {id}\n");
        scene.waiting(id, &[("Touches", "greeting.txt")], &[("greeting.txt", &text)]);
        let summary = scene.scene.workspace.read(format!("results/issue_{id}/SUMMARY.md"));
        assert!(!summary.contains("does not merge with"), "{summary}");
    }
    let said = scene.pdca(&["forecast", "--json"]).expect(0).json();
    assert_eq!(said["forecasts"][0]["troubles"], serde_json::json!([]), "{said}");
    for id in ["1", "2", "3", "4"] {
        scene.scene.accept(id);
    }
    // The forecast was right: they land together.
    scene.integrate(&["--land", "target"]).expect(0);
    assert_eq!(scene.scene.repo.git(&["show", "main:greeting.txt"]), "hello, 4\n");
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
    // The user's checkout is on a branch of its own: a merge there would merge into that.
    let (command, staging) = ("fetch --no-write-fetch-head .", "pdca/staging/main");
    assert!(next().contains(&format!("{command} {staging}")), "{}", next());
    assert_eq!((standing("1"), standing("2")), ("staged".to_owned(), "held".to_owned()));
    let reference = done["references"][0].as_str().unwrap();
    // Landed is what the branch says, not what we remember.
    scene.scene.repo.git(&["update-ref", "refs/heads/main", reference]);
    scene.scene.repo.git(&["update-ref", "-d", reference]);
    fs_err::remove_file(scene.scene.workspace.path().join(".pdca/held.json")).unwrap();
    assert_eq!((standing("1"), standing("2")), ("landed".to_owned(), "sealed".to_owned()));
    let shown = scene.pdca(&["status"]).expect(0).out;
    assert!(shown.contains("[landed: main]"), "{shown}");
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

/// A file of thirty lines, of which these are changed.
fn long(changes: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let edited = changes.iter().find(|(line, _)| *line == number);
        edited.map_or_else(|| format!("line {number}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=30).map(line).collect()
}

/// Returns the report of an integration about a held bundle.
fn held(ran: &pdca_e2e::Ran, id: &str) -> String {
    let said = ran.json();
    let held = said["held"].as_array().expect("integrate lists what it held");
    let of_it = held.iter().find(|held| held["id"] == id);
    let of_it = of_it.unwrap_or_else(|| panic!("{id} is not held: {said}"));
    of_it["text"].as_str().expect("what is held has a text").to_owned()
}

#[test]
fn a_conflict_names_the_change_it_disagrees_with_and_not_the_others_in_the_same_file() {
    let scene = Meeting::new("true");
    scene.commit_to_main("long.txt", &long(&[]));
    scene.accepted("1", "long.txt", &long(&[(1, "one")]));
    scene.accepted("2", "long.txt", &long(&[(15, "two")]));
    scene.accepted("3", "long.txt", &long(&[(15, "three")]));
    let dry = scene.integrate(&["--dry-run"]).out;
    assert!(dry.contains("3 conflicts with 2 in long.txt:15"), "{dry}");
    let done = scene.integrate(&["--json"]).expect(102);
    assert_eq!(held(&done, "3"), "3 conflicts with 2 in long.txt:15");
}

#[test]
fn a_conflict_names_the_other_side_in_an_earlier_batch_and_in_an_earlier_integration() {
    let scene = Meeting::with("true", "[integrate]\nmax_batch = 1\nland = \"target\"\n");
    scene.commit_to_main("long.txt", &long(&[]));
    scene.accepted("1", "long.txt", &long(&[(1, "one")]));
    scene.accepted("2", "long.txt", &long(&[(15, "two")]));
    scene.accepted("3", "long.txt", &long(&[(15, "three")]));
    scene.accepted("4", "long.txt", &long(&[(1, "four")]));
    let done = scene.integrate(&["--json"]).expect(102);
    assert_eq!(held(&done, "3"), "3 conflicts with 2 in long.txt:15");
    assert_eq!(held(&done, "4"), "4 conflicts with 1 in long.txt:1");
    let again = scene.integrate(&["--json"]).expect(102);
    assert_eq!(held(&again, "3"), "3 conflicts with 2 in long.txt:15");
    assert_eq!(held(&again, "4"), "4 conflicts with 1 in long.txt:1");
}

#[test]
fn a_conflict_with_the_branch_names_the_commit_that_touched_those_lines() {
    let scene = Meeting::new("true");
    scene.commit_to_main("long.txt", &long(&[]));
    scene.accepted("1", "long.txt", &long(&[(15, "one")]));
    scene.accepted("2", "long.txt", &long(&[(1, "two")]));
    scene.commit_to_main("long.txt", &long(&[(15, "theirs")]));
    let guilty = scene.scene.repo.git(&["rev-parse", "--short=12", "main"]).trim().to_owned();
    scene.commit_to_main("long.txt", &long(&[(15, "theirs"), (29, "later")]));
    let done = scene.integrate(&["--json"]).expect(102);
    let expected = format!("1 conflicts with the branch ({guilty} somebody else) in long.txt:15");
    assert_eq!(held(&done, "1"), expected);
}

#[test]
fn a_forecast_of_more_than_thirty_changes_says_in_a_few_lines_what_goes_together() {
    let scene = Meeting::new("true");
    for number in 1..=36 {
        let (file, text) = match number % 3 {
            0 => ("shared.txt".to_owned(), format!("{number}\n")),
            _ => (format!("own-{number}.txt"), format!("{number}\n")),
        };
        scene.scene.workspace.write(format!("todo/{number}/{file}"), text);
        scene.scene.brief(&number.to_string(), &[]);
    }
    scene.pdca(&["batch"]).expect(0);
    let said = scene.pdca(&["forecast", "--json"]).expect(0).json();
    let forecast = &said["forecasts"][0];
    let of = |value: &serde_json::Value| value.as_array().unwrap().len();
    assert_eq!((of(&forecast["order"]), of(&forecast["groups"])), (25, 12));
    assert_eq!((of(&forecast["clusters"]), of(&forecast["troubles"])), (1, 66));
    let cluster = &forecast["clusters"][0];
    assert_eq!((of(&cluster["bundles"]), of(&cluster["lands"])), (12, 1));
    assert_eq!(cluster["paths"][0], "shared.txt");
    let shown = scene.pdca(&["forecast"]).expect(0).out;
    assert!(shown.contains("✓ together  25 of 36: "), "{shown}");
    assert!(shown.contains(" only 1 can land ("), "{shown}");
    assert!(shown.lines().count() < 6, "{shown}");
    let status = scene.pdca(&["status"]).expect(0).out;
    assert_eq!(status.matches("[will conflict: ").count(), 12, "{status}");
}
