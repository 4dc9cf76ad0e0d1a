//! The readings of `pdca-state`, in the shape of the expected files.

use pdca_state::{Artifact, Brief, Bundle, IdList, LoadError, Review, Summary};
use serde_json::{Map, Value, json};

/// Returns the state of each bundle, or the error of reading it.
pub(super) fn states(bundles: &[Bundle]) -> Value {
    let state = |bundle: &Bundle| match bundle.glance() {
        Ok(glance) => json!(glance.state.as_str()),
        Err(error) => json!(error.to_string()),
    };
    bundles.iter().map(|bundle| (bundle.id().dir_name(), state(bundle))).collect()
}

/// Returns the brief of each bundle that has one.
pub(super) fn briefs(bundles: &[Bundle]) -> Result<Value, LoadError> {
    let mut values = Map::new();
    for bundle in bundles {
        if let Some(text) = read_text(bundle, Artifact::Brief)? {
            values.insert(bundle.id().dir_name(), brief(&Brief::parse(&text)));
        }
    }
    Ok(values.into())
}

fn brief(brief: &Brief) -> Value {
    let ids =
        |list: IdList| -> Vec<String> { list.ids().iter().map(ToString::to_string).collect() };
    let whole: Map<String, Value> =
        brief.fields().map(|field| (field.label.to_lowercase(), json!(field.whole()))).collect();
    let target = brief
        .repo_target()
        .map_or_else(Default::default, |target| [target.repo, target.branch.unwrap_or_default()]);
    json!({
        "conflicts_with": ids(brief.ids_of("Conflicts with")),
        "depends_on": ids(brief.ids_of("Depends on")),
        "depends_on_merged": ids(brief.ids_of("Depends on (merged)")),
        "stacks_on": ids(brief.ids_of("Stacks on")),
        "disposition_hint": brief.disposition_hint().unwrap_or_default(),
        "do_model": brief.do_model().unwrap_or_default(),
        "external_dependency_tokens": brief.external_dependencies(),
        "is_placeholder_brief": brief.is_placeholder(),
        "onto_branch": brief.onto_branch().map(|onto| [onto.remote, onto.branch]),
        "repo_target": target,
        "test_files": brief.test_files(),
        "whole": whole,
    })
}

/// Returns the items that each review asks a person to decide.
///
/// The expected lists continue with items of gates and advisers. Only §6 still has those, and it
/// may have more than a list names, so those of `expected` that exist are copied. The lists
/// are about NEEDS-HUMAN; that a FAIL of the table is an item too is our addition, and left out here.
pub(super) fn review_items(bundles: &[Bundle], expected: &Value) -> Result<Value, LoadError> {
    let mut values = Map::new();
    for bundle in bundles {
        let Some(review) = read_text(bundle, Artifact::Review)? else {
            continue;
        };
        let name = bundle.id().dir_name();
        let summary = Summary::parse(&read_text(bundle, Artifact::Summary)?.unwrap_or_default());
        let Review { mut items, rows, .. } = Review::parse(&review);
        let is_fail =
            |item: &str| rows.iter().any(|row| item.starts_with(&format!("{} FAIL", row.item)));
        items.retain(|item| !is_fail(item));
        let named = expected[&name].as_array().map_or(&[][..], Vec::as_slice);
        let others = named.iter().skip(items.len()).filter_map(Value::as_str);
        let others = others.filter(|other| summary.items().iter().any(|item| item.text == *other));
        items.extend(others.map(str::to_owned).collect::<Vec<_>>());
        values.insert(name, json!(items));
    }
    Ok(values.into())
}

/// Returns §6 and §9 of each bundle, those without a summary included.
pub(super) fn signoffs(bundles: &[Bundle]) -> Result<Value, LoadError> {
    let mut signoffs = Map::new();
    for bundle in bundles {
        let text = read_text(bundle, Artifact::Summary)?;
        signoffs.insert(bundle.id().dir_name(), signoff(text.as_deref()));
    }
    Ok(signoffs.into())
}

fn signoff(text: Option<&str>) -> Value {
    let Some(text) = text else {
        return json!({
            "exists": false, "is_set": false, "iteration_delta": "", "open_needs_human": [],
            "outcome_token": "", "unrecordable": "no SUMMARY.md",
        });
    };
    let summary = Summary::parse(text);
    json!({
        "exists": true,
        "is_set": summary.outcome().is_some(),
        "iteration_delta": summary.iteration_delta(),
        "open_needs_human": summary.open_items(),
        "outcome_token": summary.outcome_token(),
        "unrecordable": summary.unrecordable().map(ToString::to_string).unwrap_or_default(),
    })
}

/// Returns the bundles that wait for a sign-off with their numbers of open items, cheapest first.
pub(super) fn queue(bundles: &[Bundle]) -> Value {
    let mut waiting: Vec<(usize, String)> = bundles
        .iter()
        .filter_map(|bundle| {
            let glance = bundle.glance().ok()?;
            (glance.state == pdca_state::State::AwaitingSignoff)
                .then(|| (glance.open_items, bundle.id().dir_name()))
        })
        .collect();
    waiting.sort();
    waiting.into_iter().map(|(open, name)| json!([name, open.to_string()])).collect()
}

fn read_text(bundle: &Bundle, artifact: Artifact) -> Result<Option<String>, LoadError> {
    let bytes = bundle.read(artifact)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    /// A bundle with a review that asks one thing and a summary that holds two more.
    fn reviewed(root: &Utf8Path) -> Vec<Bundle> {
        let dir = root.join("issue_1");
        fs_err::create_dir_all(&dir).unwrap();
        fs_err::write(dir.join("check-review.md"), "- NEEDS-HUMAN — one\n").unwrap();
        let summary = "## 6. NEEDS-HUMAN\n- [x] one\n- [x] two\n- [ ] three\n";
        fs_err::write(dir.join("SUMMARY.md"), summary).unwrap();
        pdca_state::BundleRoot::new(root).list().unwrap()
    }

    fn items(expected: &[&str]) -> Value {
        let dir = tempfile::tempdir().unwrap();
        let bundles = reviewed(Utf8Path::from_path(dir.path()).unwrap());
        review_items(&bundles, &json!({"issue_1": expected})).unwrap()["issue_1"].take()
    }

    #[test]
    fn what_gates_and_advisers_added_is_looked_up_in_the_summary() {
        assert_eq!(items(&["one", "two"]), json!(["one", "two"]));
        assert_eq!(items(&["one", "never asked"]), json!(["one"]));
    }

    #[test]
    fn a_fail_of_the_table_is_left_out_because_the_lists_are_about_other_things() {
        let dir = tempfile::tempdir().unwrap();
        let bundles = reviewed(Utf8Path::from_path(dir.path()).unwrap());
        let table = "| Item | Verdict | Basis |\n|---|---|---|\n| T3 | FAIL | red |\n| C5 | NEEDS-HUMAN | why |\n";
        fs_err::write(bundles[0].path(Artifact::Review), table).unwrap();
        let read = review_items(&bundles, &json!({"issue_1": []})).unwrap();
        assert_eq!(read["issue_1"], json!(["C5 — why"]));
    }

    #[test]
    fn what_the_review_asks_is_read_whatever_is_expected() {
        assert_eq!(items(&["another"]), json!(["one"]));
        assert_eq!(items(&[]), json!(["one"]));
    }
}
