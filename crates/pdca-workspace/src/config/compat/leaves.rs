//! `[leaves]`: programs get the model and the effort that the older instance gives them.
//!
//! There, a *family* says how a model and an effort are passed, and a flag that is already in `argv` wins over the key. Here a
//! leaf says it for itself: `model_args` and `effort_args` follow on `argv`. A `model` of a variant there is a name that a
//! brief chooses in `Do model`, and no model.

use toml::{Table, Value};

use super::driver::value_at;
use super::edit::{Edit, KeyPath, PathStep, path_of};

/// The roles that are the same here.
const ROLES: [&str; 6] = ["builder", "reviewer", "planner", "signoff", "publisher", "act"];

/// Tables without a counterpart, with the reason.
const DROPPED: &[(&str, &str)] = &[
    ("splitter", "there is no leaf that splits a brief"),
    ("sizer", "there is no leaf that judges the size of a brief"),
    ("sizer_escalation", "there is no leaf that judges the size of a brief"),
    ("plan_advisory_selection", "every adviser whose `when` holds is asked"),
    ("advisory_selection", "every adviser whose `when` holds is asked"),
    ("sandbox", "each leaf has `sandbox`, `network` and `writable`"),
];

/// Keys of a leaf without a counterpart, with the reason.
const DROPPED_OF_A_LEAF: &[(&str, &str)] = &[
    ("memory_max", "one cap holds for all leaves: [driver] leaf_memory_mb"),
    ("style_file", "say it in the leaf's `prompt` or `prompt_file`"),
];

/// How a family of programs is told its model and its effort.
struct Family {
    model: Vec<String>,
    effort: Vec<String>,
}

impl Family {
    /// Returns the built-in family of that name with the changes of `[families]`.
    fn of(file: &Table, name: &str) -> Self {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let (model, effort) = match name.trim().to_lowercase().as_str() {
            "claude" => (words(&["--model"]), words(&["--effort", "{effort}"])),
            "codex" => (words(&["-m"]), words(&["-c", "model_reasoning_effort={effort}"])),
            "gemini" => (words(&["-m"]), Vec::new()),
            _ => (Vec::new(), Vec::new()),
        };
        let mut family = Self { model, effort };
        let table = value_at(file, &path_of("families"))
            .and_then(Value::as_table)
            .and_then(|all| all.iter().find(|(key, _)| key.eq_ignore_ascii_case(name.trim())))
            .and_then(|(_, table)| table.as_table());
        if let Some(flag) = table.and_then(|table| table.get("model_flag")?.as_str()) {
            family.model = if flag.is_empty() { Vec::new() } else { vec![flag.to_owned()] };
        }
        if let Some(args) = table.and_then(|table| table.get("effort_argv")?.as_array()) {
            family.effort = args.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        family
    }

    /// Returns the word of `argv` that says the effort: a flag, or the key of `-c key=value`.
    fn effort_word(&self) -> Option<&str> {
        let first = self.effort.first()?;
        if first.starts_with("--") {
            return Some(first);
        }
        self.effort.last()?.split('=').next()
    }
}

/// Returns the value that `argv` gives to a word, as `word value` or `word=value`.
fn pinned(argv: &[String], word: &str) -> Option<String> {
    let at = argv.iter().position(|arg| arg == word || arg.starts_with(&format!("{word}=")))?;
    match argv[at].split_once('=').filter(|_| argv[at] != word) {
        Some((_, value)) => Some(value.to_owned()),
        None => Some(argv.get(at + 1).cloned().unwrap_or_default()),
    }
}

/// `is_older` says whether another table shows that the file is of an older instance.
pub(super) fn list(file: &Table, is_older: bool, edits: &mut Vec<Edit>) {
    let Some(leaves) = file.get("leaves").and_then(Value::as_table) else { return };
    for (key, why) in DROPPED {
        if leaves.contains_key(*key) {
            edits.push(Edit::dropped(path_of(&format!("leaves.{key}")), *why));
        }
    }
    let is_older = is_older
        || DROPPED.iter().any(|(key, _)| leaves.contains_key(*key))
        || leaves.contains_key("builder_escalation")
        || leaves.get("builder_variant").is_some_and(has_names);
    if !is_older {
        return;
    }
    for role in ROLES {
        if let Some(leaf) = leaves.get(role).and_then(Value::as_table) {
            list_leaf(file, leaf, &path_of(&format!("leaves.{role}")), edits);
        }
    }
    for list in ["advisory", "plan_advisory"] {
        let advisers = leaves.get(list).and_then(Value::as_array);
        for (index, leaf) in advisers.into_iter().flatten().enumerate() {
            if let Some(leaf) = leaf.as_table() {
                list_leaf(file, leaf, &path_of(&format!("leaves.{list}[{index}]")), edits);
            }
        }
    }
    variants(file, leaves, edits);
}

/// Returns whether a variant is chosen by its name alone, which there is none of here.
fn has_names(variants: &Value) -> bool {
    let is_named =
        |variant: &Value| variant.get("when").is_none() && variant.get("attempt").is_none();
    variants.as_array().is_some_and(|variants| variants.iter().any(is_named))
}

fn below(path: &KeyPath, key: &str) -> KeyPath {
    [path.as_slice(), &[PathStep::Key(key.to_owned())]].concat()
}

/// A leaf that is there: how its program is told the model and the effort.
fn list_leaf(file: &Table, leaf: &Table, path: &KeyPath, edits: &mut Vec<Edit>) {
    for (key, why) in DROPPED_OF_A_LEAF {
        if leaf.contains_key(*key) {
            edits.push(Edit::dropped(below(path, key), *why));
        }
    }
    let mut complete = leaf.clone();
    tell_model_and_effort(file, &mut complete);
    let changed = complete.iter().filter(|(key, value)| leaf.get(key.as_str()) != Some(value));
    let set: Vec<(KeyPath, Value)> =
        changed.map(|(key, value)| (below(path, key), value.clone())).collect();
    if !set.is_empty() {
        edits.push(Edit::silent(path.clone(), false, set));
    }
    note_sandbox(leaf, path, edits);
}

/// A sandbox of codex cannot run inside that of `pdca`.
fn note_sandbox(leaf: &Table, path: &KeyPath, edits: &mut Vec<Edit>) {
    let argv = leaf.get("argv").map(strings).unwrap_or_default();
    let is_codex = argv.first().is_some_and(|program| program.ends_with("codex"));
    if is_codex && argv.iter().any(|arg| arg == "--sandbox") {
        let what = "codex's own sandbox cannot run inside the one of `pdca`; write \
             `--dangerously-bypass-approvals-and-sandbox` in place of `--sandbox …`, or `sandbox = \"off\"` for this leaf";
        edits.push(Edit::noted(below(path, "argv"), what));
    }
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Adds `model_args` and `effort_args` where the program is told by a key, and takes the value from `argv` where it is told there.
fn tell_model_and_effort(file: &Table, leaf: &mut Table) {
    let argv = leaf.get("argv").map(strings).unwrap_or_default();
    let name = leaf.get("family").and_then(Value::as_str).unwrap_or_default().to_owned();
    let family = Family::of(file, &name);
    let text = |leaf: &Table, key: &str| {
        leaf.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if let Some(flag) = family.model.first() {
        if let Some(model) = pinned(&argv, flag) {
            leaf.insert("model".to_owned(), Value::String(model));
        } else if text(leaf, "model").is_some() {
            let words = [flag.clone(), "{model}".to_owned()].map(Value::String);
            leaf.insert("model_args".to_owned(), Value::Array(words.to_vec()));
        }
    }
    let Some(word) = family.effort_word() else { return };
    if let Some(effort) = pinned(&argv, word) {
        leaf.insert("effort".to_owned(), Value::String(effort));
    } else if text(leaf, "effort").is_some() && !argv.iter().any(|arg| arg.contains(word)) {
        let words = family.effort.iter().cloned().map(Value::String);
        leaf.insert("effort_args".to_owned(), Value::Array(words.collect()));
    }
}

/// The builders in place of the usual one. There, the escalation with the highest attempt that is reached wins, then the variant
/// that the brief names, then the first whose `when` holds; here the first of the list that applies.
fn variants(file: &Table, leaves: &Table, edits: &mut Vec<Edit>) {
    let usual = leaves.get("builder").and_then(Value::as_table).cloned().unwrap_or_default();
    let tables = |key: &str| {
        let rows = leaves.get(key).and_then(Value::as_array).into_iter().flatten().enumerate();
        let path = move |index: usize| path_of(&format!("leaves.{key}[{index}]"));
        rows.filter_map(move |(index, row)| Some((path(index), row.as_table()?.clone())))
            .collect::<Vec<_>>()
    };
    let (escalations, named) = (tables("builder_escalation"), tables("builder_variant"));
    if escalations.is_empty() && named.is_empty() {
        return;
    }
    for (key, rows) in [("builder_escalation", &escalations), ("builder_variant", &named)] {
        if !rows.is_empty() {
            let path = path_of(&format!("leaves.{key}"));
            let what = "[[leaves.builder_variant]], in the order in which they win";
            edits.push(Edit::becomes(path, Vec::new(), what));
        }
    }
    let mut ladder = Vec::new();
    for (path, row) in escalations {
        let from = row.get("min_iteration").and_then(Value::as_integer).unwrap_or(0);
        if from < 2 {
            let what = "an escalation from the first attempt on is the builder itself";
            let hint =
                "write its keys into [leaves.builder], and remove it and every `builder_variant`";
            edits.push(Edit::refused(path, what, hint));
        } else {
            ladder.push((from, path, row));
        }
    }
    // Of two with the same attempt the first wins, there and here.
    ladder.sort_by_key(|(from, ..)| std::cmp::Reverse(*from));
    // A variant can be added twice, by its name and by its `when`: the older driver asks for both
    // in turn, while a variant here has one condition on the brief.
    let mut add = |path: KeyPath, row: &Table, condition: (&str, Value)| {
        let mut leaf = complete(file, row, &usual);
        leaf.insert(condition.0.to_owned(), condition.1);
        let set = vec![(path_of("leaves.builder_variant[+]"), Value::Table(leaf))];
        edits.push(Edit::silent(path, false, set));
    };
    let mut seen = Vec::new();
    for (from, path, row) in ladder {
        if !seen.contains(&from) {
            add(path, &row, ("attempt", Value::Integer(from)));
            seen.push(from);
        }
    }
    let mut taken = Vec::new();
    for (path, row) in &named {
        let name = row.get("model").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if !name.is_empty() && !taken.contains(&name.to_lowercase()) {
            taken.push(name.to_lowercase());
            let when = Table::from_iter([
                ("field".to_owned(), Value::String("Do model".to_owned())),
                ("equals".to_owned(), Value::String(name.to_owned())),
            ]);
            add(path.clone(), row, ("when", Value::Table(when)));
        }
    }
    for (path, row) in &named {
        if let Some(when) = row.get("when").filter(|when| has_text(when)) {
            add(path.clone(), row, ("when", when.clone()));
        }
    }
}

fn has_text(when: &Value) -> bool {
    match when.get("substring") {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(texts)) => texts.iter().any(|text| text.as_str() != Some("")),
        Some(
            Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Table(_),
        )
        | None => false,
    }
}

/// Lays a variant over the usual builder: its `model` is its name there, so the model is the builder's unless `argv` says one.
fn complete(file: &Table, row: &Table, usual: &Table) -> Table {
    const OWN: [&str; 6] = ["mode", "family", "argv", "interactive", "agent", "effort"];
    let mut leaf = Table::new();
    for key in OWN {
        let is_set = |value: &&Value| match value {
            Value::String(text) => !text.is_empty() || !matches!(key, "mode"),
            Value::Array(items) => !items.is_empty(),
            Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Table(_) => true,
        };
        if let Some(value) = row.get(key).filter(is_set).or_else(|| usual.get(key)) {
            leaf.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(model) = usual.get("model") {
        leaf.insert("model".to_owned(), model.clone());
    }
    tell_model_and_effort(file, &mut leaf);
    leaf
}
