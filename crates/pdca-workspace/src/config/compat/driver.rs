//! `[project]`, `[driver]`, `[tracker]` and the tables that have no counterpart.

use toml::{Table, Value};

use super::edit::{Edit, KeyPath, PathStep, path_of};

/// Keys without a counterpart, with the reason. A key that names a table stands for all of it.
const DROPPED: &[(&str, &str)] = &[
    (
        "project.rubric_file",
        "a leaf reads the project's own agent files; name the rubric in its `prompt_file`",
    ),
    ("project.rubric_section", "it belongs to `rubric_file`"),
    ("driver.max_passes", "a bundle goes round as often as a person or `max_auto_iters` sends it"),
    ("driver.soft_auto_iters", "there is one limit, `max_auto_iters`"),
    ("driver.worktree", "work is always done in private checkouts"),
    ("driver.overflow", "a reading that finds its lane taken gets one of its own"),
    (
        "driver.wave_mode",
        "a change starts as soon as what it needs is accepted, and stands on it; see [schedule] dependants",
    ),
    ("driver.merge_method", "`pdca integrate` makes the commits; see [integrate] strategy"),
    ("driver.auto_merge", "nothing is merged on a forge unasked"),
    ("driver.merge_wait_secs", "nothing is merged on a forge unasked"),
    (
        "driver.merge_requires",
        "nothing is merged on a forge unasked; `pdca integrate` lands only what is green together",
    ),
    ("driver.merge_sync_base", "a combination is always gated on the present tip"),
    ("driver.regate_between_waves", "a combination is always gated before it lands"),
    ("driver.act_cadence", "`pdca act review` runs when it is asked for"),
    ("driver.scratch_dir", "each lane has a directory for temporary files, `PDCA_TMP`"),
    (
        "driver.sweep_worktrees",
        "`pdca sweep` reclaims lanes; see [lanes] reset, min_free_gb and max_age_days",
    ),
    (
        "driver.lane_preflight",
        "lanes are made and checked by the driver; [lanes.hydrate] verify checks what they need",
    ),
    ("driver.dependency_halt", "what a builder declares becomes an item of the sign-off"),
    ("driver.size_guard", "the size of a change is measured, not that of a brief"),
    ("driver.sizing", "the size of a change is measured, not that of a brief"),
    ("install", "nothing is installed by `pdca`; [lanes.hydrate] install prepares a lane"),
    ("manual_test", "start it yourself in the lane that `pdca status <id>` names"),
    ("tracker.system", "only for people"),
    ("tracker.url", "only for people"),
    ("tracker.issue_id_example", "only for people"),
    ("tracker.export_csv", "name the file: `pdca select --from-csv FILE`"),
    ("plan", "`pdca select` fetches issues, and [tracker] notes_cmd their thread"),
    ("records", "bundles are files of the workspace; commit them as you like"),
    ("triage", "there is no triage of reviews on a forge"),
    (
        "families",
        "a leaf says for itself how its model and effort are passed: model_args, effort_args",
    ),
    ("doctor.min_free_gb", "see [driver] min_free_gb, which holds builds back"),
];

pub(super) fn list(file: &Table, edits: &mut Vec<Edit>) {
    for (key, why) in DROPPED {
        let path = path_of(key);
        if value_at(file, &path).is_some() {
            edits.push(Edit::dropped(path, *why));
        }
    }
    auto_iterations(file, edits);
    size_signal(file, edits);
    memory(file, edits);
    notes_command(file, edits);
    let url = path_of("tracker.issue_url_pattern");
    if value_at(file, &url).and_then(Value::as_str) == Some("") {
        edits.push(Edit::silent(url, true, Vec::new()));
    }
    doctor(file, edits);
}

/// Returns the value at a place of keys and items.
pub(super) fn value_at<'a>(file: &'a Table, path: &[PathStep]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let PathStep::Key(key) = first else { return None };
    rest.iter().try_fold(file.get(key)?, |value, step| match step {
        PathStep::Key(key) => value.get(key.as_str()),
        PathStep::Item(index) => value.get(*index),
        PathStep::Push => None,
    })
}

/// `auto_iterate` switches on what `max_auto_iters` limits; here the limit does both.
fn auto_iterations(file: &Table, edits: &mut Vec<Edit>) {
    const USUAL: i64 = 3;
    let switch = path_of("driver.auto_iterate");
    let limit = path_of("driver.max_auto_iters");
    let number = |key: &str| value_at(file, &path_of(key)).and_then(Value::as_integer);
    let given = value_at(file, &limit).and_then(Value::as_integer);
    let is_older = value_at(file, &switch).is_some() || number("driver.max_passes").is_some();
    if !is_older {
        return;
    }
    let is_on = value_at(file, &switch).and_then(Value::as_bool) == Some(true);
    let passes = number("driver.max_passes").unwrap_or(20).max(1);
    // The last pass is for the person.
    let rounds = if is_on { given.unwrap_or(USUAL).max(1).min(passes - 1) } else { 0 };
    let set = vec![(limit.clone(), Value::Integer(rounds))];
    if value_at(file, &switch).is_some() {
        edits.push(Edit::becomes(switch, set, format!("max_auto_iters = {rounds}")));
    } else if given.is_some_and(|given| given != rounds) {
        let what = "max_auto_iters = 0: without `auto_iterate` it has no effect";
        edits.push(Edit::becomes(limit, set, what));
    }
}

/// `[driver.size_signal]` asks at a size and above it, and knows no lines; `[check]` asks above one.
fn size_signal(file: &Table, edits: &mut Vec<Edit>) {
    /// The key, the limit where it is not set, and the key here.
    const LIMITS: [(&str, i64, &str); 2] =
        [("patch_kb", 100, "max_kb"), ("patch_files", 20, "max_files")];
    let old = path_of("driver.size_signal");
    let Some(signal) = value_at(file, &old).and_then(Value::as_table) else { return };
    let limit = |key: &str, usual: i64| {
        // What is no number counts as not set there.
        let given = signal.get(key).and_then(|value| match value {
            Value::Integer(number) => Some(*number),
            #[expect(clippy::cast_possible_truncation, reason = "that is how it is read there")]
            Value::Float(number) if number.is_finite() => Some(*number as i64),
            Value::String(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Array(_)
            | Value::Table(_) => None,
        });
        given.unwrap_or(usual)
    };
    let mut set = vec![(path_of("check.max_lines"), Value::Integer(0))];
    let mut words = Vec::new();
    for (key, usual, here) in LIMITS {
        let above = match limit(key, usual) {
            ..=0 => 0,
            // A limit of one file is always reached, which 0 would switch off.
            limit => (limit - 1).max(1),
        };
        set.push((path_of(&format!("check.{here}")), Value::Integer(above)));
        words.push(format!("{here} = {above}"));
    }
    let what = format!("[check] {}, max_lines = 0", words.join(", "));
    if signal.contains_key("rounds") {
        let why = "rounds are no sign of size here; `max_auto_iters` limits those without a person";
        edits.push(Edit::dropped(path_of("driver.size_signal.rounds"), why));
    }
    edits.push(Edit::becomes(old, set, what));
}

/// `leaf_memory_max` has the units of systemd.
fn memory(file: &Table, edits: &mut Vec<Edit>) {
    let old = path_of("driver.leaf_memory_max");
    let Some(value) = value_at(file, &old) else { return };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match mebibytes(&text) {
        Some(MemoryCap::Mebibytes(number)) => {
            let set = vec![(path_of("driver.leaf_memory_mb"), Value::Integer(number))];
            edits.push(Edit::becomes(old, set, format!("leaf_memory_mb = {number}")));
        }
        Some(MemoryCap::Unlimited) => {
            edits.push(Edit::dropped(old, "there is no cap where none is set"));
        }
        None => edits.push(Edit::refused(
            old,
            format!("`leaf_memory_max = {text:?}` has no counterpart"),
            "write `leaf_memory_mb = …`, a number of MiB, in its place",
        )),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryCap {
    Unlimited,
    Mebibytes(i64),
}

/// Converts `16G` to MiB; `None` means that it cannot be converted.
fn mebibytes(text: &str) -> Option<MemoryCap> {
    let text = text.trim().to_ascii_uppercase();
    if text.is_empty() || text == "OFF" || text == "INFINITY" {
        return Some(MemoryCap::Unlimited);
    }
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let number: u64 = digits.parse().ok()?;
    let kib = match &text[digits.len()..] {
        "" => number / 1024,
        "K" => number,
        "M" => number.checked_mul(1 << 10)?,
        "G" => number.checked_mul(1 << 20)?,
        "T" => number.checked_mul(1 << 30)?,
        _ => return None,
    };
    // A cap below one MiB would be none.
    Some(MemoryCap::Mebibytes(i64::try_from(kib / 1024).ok()?.max(1)))
}

/// An older `notes_cmd` has the id in its text and writes `notes.json` itself; ours prints it.
fn notes_command(file: &Table, edits: &mut Vec<Edit>) {
    let path = path_of("tracker.notes_cmd");
    let Some(text) = value_at(file, &path).and_then(Value::as_str) else { return };
    if text.trim().is_empty() {
        edits.push(Edit::silent(path, true, Vec::new()));
    } else if text.contains("{id}") {
        let command = with_issue(text);
        // Run in a throwaway directory: the old command writes beside the brief, where only the
        // driver writes here. Exported and in parentheses, because the text may be several commands.
        let wrapped = format!(
            "dir=$(mktemp -d) && trap 'rm -rf \"$dir\"' EXIT && export PDCA_BUNDLE=\"$dir\" && ( {command} ) >&2 && cat \"$dir/notes.json\""
        );
        let set = vec![(path.clone(), Value::String(wrapped))];
        let what = "a command that prints what the old one writes to `$PDCA_BUNDLE/notes.json`";
        edits.push(Edit::becomes(path, set, what));
    }
}

/// Puts the variable in place of each `{id}`, so that a shell expands it in whatever quotes it stands.
fn with_issue(text: &str) -> String {
    let mut command = String::new();
    let mut quote: Option<char> = None;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("{id}") {
            // Quotes around it are closed before and opened again.
            command.extend(quote);
            command.push_str("\"$PDCA_ISSUE\"");
            command.extend(quote);
            rest = behind;
            continue;
        }
        let mut length = letter.len_utf8();
        match quote {
            None | Some('"') if letter == '\\' => {
                length += rest[length..].chars().next().map_or(0, char::len_utf8);
            }
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            Some(open) if open == letter => quote = None,
            None | Some(_) => {}
        }
        command.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    command
}

/// Rows of `[[doctor.checks]]` have a group and a level, which are a heading and `required` here.
fn doctor(file: &Table, edits: &mut Vec<Edit>) {
    let guard = path_of("driver.dependency_guard");
    if let Some(value) = value_at(file, &guard) {
        let set = vec![(path_of("doctor.guard"), value.clone())];
        edits.push(Edit::becomes(guard, set, "[doctor] guard"));
    }
    let rows = value_at(file, &path_of("doctor.checks")).and_then(Value::as_array);
    for (index, row) in rows.into_iter().flatten().enumerate() {
        let Some(row) = row.as_table() else { continue };
        doctor_row(row, &path_of(&format!("doctor.checks[{index}]")), edits);
    }
}

fn doctor_row(row: &Table, path: &KeyPath, edits: &mut Vec<Edit>) {
    let key = |key: &str| [path.as_slice(), &[PathStep::Key(key.to_owned())]].concat();
    if !row.keys().any(|key| matches!(key.as_str(), "group" | "level" | "per_lane")) {
        return;
    }
    for gone in ["group", "level", "per_lane"] {
        if row.contains_key(gone) {
            edits.push(Edit::silent(key(gone), true, Vec::new()));
        }
    }
    if !row.contains_key("required") {
        let is_required = row.get("level").and_then(Value::as_str) == Some("FAIL");
        let set = vec![(key("required"), Value::Boolean(is_required))];
        edits.push(Edit::silent(key("level"), false, set));
    }
}
