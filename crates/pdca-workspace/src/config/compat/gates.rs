//! `[gates]`: rows are never lost. A row that gates stays one, and runs wherever it ran.

use toml::{Table, Value};

use super::driver::value_at;
use super::edit::{Edit, KeyPath, PathStep, path_of};

/// Keys of a row that decide nothing, with the reason.
const DROPPED_OF_A_ROW: &[(&str, &str)] =
    &[("promote_after", "`pdca act index` shows how often a row was right; set `gating` yourself")];

pub(super) fn list(file: &Table, edits: &mut Vec<Edit>) {
    let Some(gates) = file.get("gates").and_then(Value::as_table) else { return };
    let has_rows = gates.contains_key("checks") || gates.contains_key("host_ci");
    if has_rows && !gates.contains_key("cwd") {
        // Older instances run their rows in the directory of `pdca.toml`.
        let mut set = vec![(path_of("gates.cwd"), Value::String("workspace".to_owned()))];
        if !gates.contains_key("sandbox") {
            // Their rows make worktrees and branches in the target, which a confined row cannot.
            set.push((path_of("gates.sandbox"), Value::String("off".to_owned())));
        }
        edits.push(Edit::silent(path_of("gates"), false, set));
    }
    if gates.get("default_timeout_secs").and_then(Value::as_integer) == Some(0) {
        let why = "every row has a bound, an hour where none is set";
        edits.push(Edit::dropped(path_of("gates.default_timeout_secs"), why));
    }
    let confirm = gates.get("confirm_gating_fail").and_then(Value::as_bool);
    if gates.contains_key("confirm_gating_fail") {
        let what = "`confirm` of each row that gates";
        edits.push(Edit::becomes(path_of("gates.confirm_gating_fail"), Vec::new(), what));
    }
    if gates.contains_key("registry_consistency") {
        let why = "it is read by the row that calls `registry-check`, from the file that you kept";
        edits.push(Edit::dropped(path_of("gates.registry_consistency"), why));
    }
    let labels = Labels::of(gates);
    for key in ["target_default", "target_match", "target_flags"] {
        if gates.contains_key(key) {
            let path = path_of(&format!("gates.{key}"));
            edits.push(Edit::becomes(path, Vec::new(), "`when` of the rows with that `target`"));
        }
    }
    let rows = gates.get("checks").and_then(Value::as_array);
    for (index, row) in rows.into_iter().flatten().enumerate() {
        if let Some(row) = row.as_table() {
            let path = path_of(&format!("gates.checks[{index}]"));
            list_row(row, &path, confirm, &labels, is_older(file), edits);
        }
    }
    host_ci(gates, confirm, edits);
}

/// Whether the file has a key that only older instances have. In ours, an absent key has its documented default.
fn is_older(file: &Table) -> bool {
    let has = |key: &str| value_at(file, &path_of(key)).is_some();
    ["publisher", "tracker.system", "driver.worktree", "gates.host_ci", "leaves.builder_escalation"]
        .into_iter()
        .any(has)
}

fn below(path: &KeyPath, key: &str) -> KeyPath {
    [path.as_slice(), &[PathStep::Key(key.to_owned())]].concat()
}

fn list_row(
    row: &Table,
    path: &KeyPath,
    confirm: Option<bool>,
    labels: &Labels,
    is_older: bool,
    edits: &mut Vec<Edit>,
) {
    for (key, why) in DROPPED_OF_A_ROW {
        if row.contains_key(*key) {
            edits.push(Edit::dropped(below(path, key), *why));
        }
    }
    if row.get("timeout_secs").and_then(Value::as_integer) == Some(0) {
        let why = "every row has a bound; `default_timeout_secs` or an hour counts";
        edits.push(Edit::dropped(below(path, "timeout_secs"), why));
    }
    let gates = row.get("gating").and_then(Value::as_bool) != Some(false);
    let own = row.get("confirm_fail").and_then(Value::as_bool);
    if row.contains_key("confirm_fail") {
        edits.push(Edit::becomes(below(path, "confirm_fail"), Vec::new(), "`confirm`"));
    }
    // Only a row that gates is run again.
    if let Some(confirm) = own.or(confirm)
        && gates
        && !row.contains_key("confirm")
    {
        let set = vec![(below(path, "confirm"), Value::Boolean(confirm))];
        edits.push(Edit::silent(path.clone(), false, set));
    }
    let text = |key: &str| row.get(key).and_then(Value::as_str);
    let is_contribution = text("tier") == Some("T4") && text("scope") == Some("bundle");
    if is_older && is_contribution && !row.contains_key("at_publish") {
        // What it looks at may not be there before.
        let set = vec![(below(path, "at_publish"), Value::Boolean(true))];
        edits.push(Edit::silent(path.clone(), false, set));
    }
    if let Some(target) = row.get("target") {
        labels.list_target(target, path, edits);
    }
}

/// Commands that the forge's own CI runs on every pull request: rows that gate, in the patched checkout, again at publication.
fn host_ci(gates: &Table, confirm: Option<bool>, edits: &mut Vec<Edit>) {
    let Some(value) = gates.get("host_ci") else { return };
    let rows = path_of("gates.host_ci");
    let Some(entries) = value.as_array() else {
        let what = "`host_ci` in [gates] is no list";
        return edits.push(Edit::refused(rows, what, "write a list of commands or of rows"));
    };
    let what = "rows that gate and run again at publication";
    edits.push(Edit::becomes(rows, Vec::new(), what));
    for (index, entry) in entries.iter().enumerate() {
        let at = path_of(&format!("gates.host_ci[{index}]"));
        let mut row = match entry {
            Value::Table(row) => row.clone(),
            Value::String(cmd) => {
                [("cmd".to_owned(), Value::String(cmd.clone()))].into_iter().collect()
            }
            Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Array(_) => Table::new(),
        };
        let command = ["cmd", "subcmd"].into_iter().find_map(|key| row.get(key)?.as_str());
        let Some(command) = command.map(str::to_owned).filter(|cmd| !cmd.trim().is_empty()) else {
            let what = format!("entry {index} of `host_ci` in [gates] has no command");
            edits.push(Edit::refused(at, what, "add `cmd = \"…\"`, or remove the entry"));
            continue;
        };
        let confirms = row.remove("confirm_fail").and_then(|own| own.as_bool()).or(confirm);
        row.insert("gating".to_owned(), Value::Boolean(true));
        let defaults = [
            ("id", Value::String(format!("host-ci-{index}"))),
            ("tier", Value::String("T4".to_owned())),
            ("scope", Value::String("bundle".to_owned())),
            ("label", Value::String(format!("host CI: {command}"))),
            // The forge's CI runs in a checkout of the change, whatever directory the other rows
            // use.
            ("cwd", Value::String("worktree".to_owned())),
            ("sandbox", Value::String("auto".to_owned())),
            ("at_publish", Value::Boolean(true)),
            ("confirm", Value::Boolean(confirms.unwrap_or(false))),
        ];
        for (key, value) in defaults {
            if !row.contains_key(key) {
                row.insert(key.to_owned(), value);
            }
        }
        if row.get("timeout_secs").and_then(Value::as_integer) == Some(0) {
            row.remove("timeout_secs");
        }
        let set = vec![(path_of("gates.checks[+]"), Value::Table(row))];
        edits.push(Edit::silent(at, false, set));
    }
}

/// The labels that an older instance gives to a bundle, each by a text in a field of the brief.
struct Labels {
    /// The label and its condition; the first axis and the flags alike.
    conditions: Vec<(String, Value)>,
    /// The label of a bundle that has none of the first axis.
    default: Option<String>,
}

/// The field of a brief that the labels of older instances are texts of.
const TARGET: &str = "Repo + branch target";

impl Labels {
    fn of(gates: &Table) -> Self {
        let table = |key: &str| gates.get(key).and_then(Value::as_table).into_iter().flatten();
        let when = |field: &str, text: &Value| {
            let field = ("field".to_owned(), Value::String(field.to_owned()));
            let text = ("substring".to_owned(), text.clone());
            Value::Table([field, text].into_iter().collect())
        };
        let axis = table("target_match").map(|(label, text)| (label.clone(), when(TARGET, text)));
        let flags = table("target_flags").map(|(label, rule)| {
            let condition = if rule.is_table() { rule.clone() } else { when(TARGET, rule) };
            (label.clone(), condition)
        });
        let default = gates.get("target_default").and_then(Value::as_str).map(str::to_owned);
        Self { conditions: axis.chain(flags).collect(), default }
    }

    /// A row for one label that a text in the brief gives gets that as its `when`. Any other row runs for every bundle: rather
    /// once too often than never.
    fn list_target(&self, target: &Value, path: &KeyPath, edits: &mut Vec<Edit>) {
        let at = below(path, "target");
        let labels: Vec<&str> = match target {
            Value::String(label) => vec![label],
            Value::Array(labels) => labels.iter().filter_map(Value::as_str).collect(),
            Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Table(_) => Vec::new(),
        };
        let condition = match labels.as_slice() {
            [label] if self.default.as_deref() != Some(*label) => {
                self.conditions.iter().find(|(known, _)| known == label).map(|(_, when)| when)
            }
            _ => None,
        };
        if let Some(when) = condition {
            let set = vec![(below(path, "when"), when.clone())];
            edits.push(Edit::becomes(at, set, "`when`"));
        } else {
            let what = format!(
                "a row for every bundle: `{}` is no single text of a brief",
                labels.join("` and `")
            );
            edits.push(Edit::becomes(at, Vec::new(), what));
        }
    }
}
