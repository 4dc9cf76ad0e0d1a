//! `cargo xtask corpus PATH`: compares how `pdca-state` reads a collection of bundles with expectations.
//!
//! A collection is a directory with bundles in `results/` and `unsigned/` and the
//! expected readings in `expected/`. The readings are brought into the shape of the
//! expected files and compared value by value, so a difference names the file, the bundle and
//! the field.

mod compare;
mod reading;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::BundleRoot;
use serde_json::{Value, json};

use crate::{Outcome, Stopped};
use compare::Comparison;

/// Compare what is read in a collection of bundles with what is expected there
///
/// PATH holds `results/`, `unsigned/` and `expected/`. Every difference is printed; the exit code is 1
/// if there is one.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The collection
    path: Utf8PathBuf,
}

/// The expected files, in the order of the report.
const FILES: [&str; 6] = [
    "states.tsv",
    "briefs.json",
    "review-items.json",
    "signoff.json",
    "signoff-unsigned.json",
    "queue-unsigned.tsv",
];

pub(crate) fn run(args: &Args) -> Result<Outcome, Stopped> {
    let comparisons = compare_all(&args.path)?;
    for comparison in &comparisons {
        for difference in &comparison.differences {
            println!("{}: {difference}", comparison.file);
        }
    }
    let mut differences = 0;
    for comparison in &comparisons {
        println!(
            "{:<22}  {:>5} values compared, {} differ",
            comparison.file,
            comparison.compared,
            comparison.differences.len()
        );
        differences += comparison.differences.len();
    }
    Ok(if differences == 0 { Outcome::Passed } else { Outcome::Failed })
}

fn compare_all(collection: &Utf8Path) -> Result<Vec<Comparison>, Stopped> {
    let signed = BundleRoot::new(collection.join("results")).list()?;
    let unsigned = BundleRoot::new(collection.join("unsigned")).list()?;
    let mut comparisons = Vec::new();
    for file in FILES {
        let text = fs_err::read_to_string(collection.join("expected").join(file))?;
        let expected = parse(file, &text)?;
        let actual = match file {
            "states.tsv" => reading::states(&signed),
            "briefs.json" => reading::briefs(&signed)?,
            "review-items.json" => reading::review_items(&signed, &expected)?,
            "signoff.json" => reading::signoffs(&signed)?,
            "signoff-unsigned.json" => reading::signoffs(&unsigned)?,
            _ => reading::queue(&unsigned),
        };
        comparisons.push(compare::compare(file, &expected, &actual));
    }
    Ok(comparisons)
}

/// Parses an expected file. Tables of two columns are a mapping, or, if the order
/// counts, a list of pairs.
fn parse(file: &str, text: &str) -> Result<Value, serde_json::Error> {
    let pairs = || text.lines().filter_map(|line| line.split_once('\t'));
    match file {
        "states.tsv" => Ok(json!(pairs().collect::<BTreeMap<_, _>>())),
        "queue-unsigned.tsv" => Ok(pairs().map(|(name, count)| json!([name, count])).collect()),
        _ => serde_json::from_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A collection of one planned bundle and one that waits for its sign-off.
    fn collection(states: &str) -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let brief = "- **Slug:** tidy-up\n- **Depends on:** 7, 8\n";
        let summary = "# Result\n\n## 6. NEEDS-HUMAN\n\n- [ ] look at it\n\n## 9. Check sign-off\n\n- Outcome:\n";
        let gates = r#"{"overall": "pass", "rows": [{"check": "C1", "result": "pass"}]}"#;
        let signoff = json!({"issue_2": {
            "exists": true, "is_set": false, "iteration_delta": "", "outcome_token": "",
            "open_needs_human": ["- [ ] look at it"], "unrecordable": ""}});
        let no_summary = json!({"issue_1": {
            "exists": false, "is_set": false, "iteration_delta": "", "outcome_token": "",
            "open_needs_human": [], "unrecordable": "no SUMMARY.md"}});
        let briefs = json!({"issue_1": {
            "depends_on": ["7", "8"], "depends_on_merged": [], "stacks_on": [], "conflicts_with": [],
            "disposition_hint": "", "do_model": "", "external_dependency_tokens": [],
            "is_placeholder_brief": false, "onto_branch": null, "repo_target": ["", ""], "test_files": [],
            "whole": {"slug": "tidy-up", "depends on": "7, 8"}}});
        for (path, text) in [
            ("results/issue_1/brief.md", brief.to_owned()),
            ("results/issue_1/check-review.md", "- NEEDS-HUMAN — is it enough?\n".to_owned()),
            ("unsigned/issue_2/SUMMARY.md", summary.to_owned()),
            ("unsigned/issue_2/patch.diff", "x".to_owned()),
            ("unsigned/issue_2/check-gates.json", gates.to_owned()),
            ("unsigned/issue_2/brief.md", brief.to_owned()),
            ("expected/states.tsv", states.to_owned()),
            ("expected/briefs.json", briefs.to_string()),
            ("expected/review-items.json", json!({"issue_1": ["is it enough?"]}).to_string()),
            ("expected/signoff.json", no_summary.to_string()),
            ("expected/signoff-unsigned.json", signoff.to_string()),
            ("expected/queue-unsigned.tsv", "issue_2\t1\n".to_owned()),
        ] {
            let path = root.join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        (dir, root)
    }

    fn differences(root: &Utf8Path) -> Vec<String> {
        compare_all(root)
            .unwrap()
            .into_iter()
            .flat_map(|comparison| comparison.differences)
            .collect()
    }

    #[test]
    fn bundles_that_read_as_expected_give_no_difference() {
        let (_dir, root) = collection("issue_1\tPLANNED\n");
        assert_eq!(differences(&root), Vec::<String>::new());
        let compared: usize =
            compare_all(&root).unwrap().iter().map(|comparison| comparison.compared).sum();
        assert!(compared > 20, "{compared}");
    }

    #[test]
    fn a_wrong_state_and_a_missing_bundle_are_told() {
        let (_dir, root) = collection("issue_1\tBUILT\nissue_3\tPLANNED\n");
        assert_eq!(
            differences(&root),
            [
                "issue_1: expected \"BUILT\", read \"PLANNED\"",
                "issue_3: expected \"PLANNED\", read nothing",
            ]
        );
    }
}
