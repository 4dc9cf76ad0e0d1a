//! `[publisher]` and the trailer of `[tracker]`.

use toml::{Table, Value};

use super::driver::value_at;
use super::edit::{Edit, PathStep, path_of};

pub(super) fn list(file: &Table, edits: &mut Vec<Edit>) {
    let Some(publisher) = file.get("publisher").and_then(Value::as_table) else {
        return trailer(file, edits);
    };
    rename(file, edits, "publisher.fix_branch_pattern", "publish.branch");
    rename(file, edits, "publisher.feature_branch_pattern", "publish.feature_branch");
    let remote = path_of("publisher.base_remote");
    if let Some(value) = value_at(file, &remote) {
        let set = vec![(path_of("publish.remote"), value.clone())];
        let what = match value.as_str() {
            Some("origin") => "[publish] remote".to_owned(),
            _ => "[publish] remote: a branch is pushed where its pull request is opened, and not to a fork".to_owned(),
        };
        edits.push(Edit::becomes(remote, set, what));
    }
    trailer(file, edits);
    checkouts(publisher, edits);
    // Of the table itself only what is not known stays, to be told of.
    let known = [
        "fix_branch_pattern",
        "feature_branch_pattern",
        "base_remote",
        "checkouts",
        "repo_aliases",
    ];
    if publisher.keys().all(|key| known.contains(&key.as_str())) {
        edits.push(Edit::silent(path_of("publisher"), true, Vec::new()));
    }
}

fn rename(file: &Table, edits: &mut Vec<Edit>, old: &str, new: &str) {
    let old = path_of(old);
    if let Some(value) = value_at(file, &old) {
        let (table, key) = new.split_once('.').unwrap_or(("", new));
        let set = vec![(path_of(new), value.clone())];
        edits.push(Edit::becomes(old, set, format!("[{table}] {key}")));
    }
}

fn trailer(file: &Table, edits: &mut Vec<Edit>) {
    let old = path_of("tracker.issue_trailer");
    match value_at(file, &old).and_then(Value::as_str) {
        Some("") => edits.push(Edit::silent(old, true, Vec::new())),
        Some(_) => rename(file, edits, "tracker.issue_trailer", "publish.issue_trailer"),
        None => {}
    }
}

/// `[publisher.checkouts] "owner/repo" = "../path"` is a `[[targets]]` with that `repo` and `path`.
fn checkouts(publisher: &Table, edits: &mut Vec<Edit>) {
    let aliases = publisher.get("repo_aliases").and_then(Value::as_table);
    let name_of = |repo: &str| {
        let alias = |(_, spec): &(&String, &Value)| spec.as_str() == Some(repo);
        aliases.and_then(|aliases| aliases.iter().find(alias)).map(|(name, _)| name.clone())
    };
    let key =
        |key: &str| vec![PathStep::Key("publisher".to_owned()), PathStep::Key(key.to_owned())];
    if aliases.is_some_and(|aliases| !aliases.is_empty()) {
        let why = "a brief names a target by its `name`, or by the last part of its `repo`";
        edits.push(Edit::dropped(key("repo_aliases"), why));
    }
    let Some(checkouts) = publisher.get("checkouts").and_then(Value::as_table) else { return };
    if checkouts.is_empty() {
        return;
    }
    edits.push(Edit::becomes(key("checkouts"), Vec::new(), "[[targets]]"));
    for (repo, path) in checkouts {
        let mut target = Table::new();
        target.insert("repo".to_owned(), Value::String(repo.clone()));
        target.insert("path".to_owned(), path.clone());
        if let Some(name) = name_of(repo) {
            target.insert("name".to_owned(), Value::String(name));
        }
        let at = [key("checkouts"), vec![PathStep::Key(repo.clone())]].concat();
        let set = vec![(path_of("targets[+]"), Value::Table(target))];
        edits.push(Edit::silent(at, false, set));
    }
}
