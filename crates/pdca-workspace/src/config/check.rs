//! Checks one document against the config types, and finds all problems in it.
//!
//! A deserializer stops at its first error. So the document is read into [`Config`], the node with the error
//! is removed, and it is read again, until no error is left. That keeps the types the only list of
//! legal keys.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

use super::{Config, ConfigDocument};
use crate::config::compat::{KeyPath, PathStep, Translation};
use crate::config::problem::{FilePosition, Problem};

/// The most problems that are reported; a file with more is no config file.
const MAX_PROBLEMS: usize = 50;

/// A document after the check.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// The valid part.
    pub(super) table: toml::Table,
    /// The node of each key and item, by its path.
    pub(super) places: BTreeMap<String, Node>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
    /// The keys that were passed over because they are not known.
    pub(super) unknown: Vec<(KeyPath, FilePosition)>,
}

/// A key or an item of a list, with its position.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: FilePosition,
    /// It holds a value rather than further keys.
    pub(super) is_value: bool,
}

/// Checks `document`; with `tolerant`, unknown keys are warnings and older spellings are translated.
pub(super) fn check(document: &ConfigDocument, tolerant: bool) -> Checked {
    let mut checked = Checked::default();
    let translation =
        if tolerant { Translation::of(&document.text) } else { Translation::default() };
    let (mut root, errors) = DeTable::parse_recoverable(&document.text);
    // A recovered table would give follow-up errors about keys that the person did write.
    if !errors.is_empty() {
        checked.problems =
            errors.iter().take(MAX_PROBLEMS).map(|error| syntax(document, error)).collect();
        return checked;
    }
    translation.apply(root.get_mut(), &mut |problem, span| {
        checked.problems.push(problem.at(document.place(&span)));
    });
    if let Some(summary) = translation.summary() {
        checked.warnings.push(Problem::new(summary).at(FilePosition::file(&*document.name)));
    }
    // Each round removes a node or ends the loop, so it terminates. The clone keeps the spans,
    // without which an error has no position.
    while let Err(error) = Config::deserialize(Deserializer::from(root.clone())) {
        let Some(found) = error.span().and_then(|span| find(root.get_ref(), &span)) else {
            checked
                .problems
                .push(Problem::new(error.message()).at(FilePosition::file(&*document.name)));
            break;
        };
        let complaint = Complaint::read(error.message());
        let problem = complaint.problem(&found).at(document.place(&found.span));
        let is_unknown = matches!(complaint, Complaint::Unknown { .. }) && found.is_key;
        if tolerant && is_unknown && !found.gates_something() {
            checked.unknown.push((found.path.clone(), document.place(&found.span)));
            checked.warnings.push(problem);
        } else if tolerant && is_unknown {
            let hint = "what gates is never passed over: mend the key, or remove it";
            checked.problems.push(problem.hint(hint));
        } else {
            checked.problems.push(problem);
        }
        if checked.problems.len() >= MAX_PROBLEMS || !take_out(root.get_mut(), &found.path) {
            break;
        }
    }
    note_places(root.get_ref(), "", &mut |path, span, is_value| {
        checked.places.insert(path.to_owned(), Node { place: document.place(&span), is_value });
    });
    match toml::Table::deserialize(Deserializer::from(root)) {
        Ok(table) => checked.table = table,
        Err(error) => checked.problems.push(syntax(document, &error)),
    }
    checked
}

fn syntax(document: &ConfigDocument, error: &toml::de::Error) -> Problem {
    let place = error
        .span()
        .map_or_else(|| FilePosition::file(&*document.name), |span| document.place(&span));
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    Problem::new(format!("not valid TOML: {message}"))
        .at(place)
        .hint("mend the line; https://toml.io/en/v1.1.0 has the rules")
}

/// The node that an error is about.
#[derive(Debug)]
struct Found {
    path: KeyPath,
    span: Range<usize>,
    /// The error is about the key, not its value.
    is_key: bool,
}

impl Found {
    /// Returns the last key on the path: `timeout_secs`.
    fn key(&self) -> &str {
        self.path
            .iter()
            .rev()
            .find_map(|step| if let PathStep::Key(key) = step { Some(key.as_str()) } else { None })
            .unwrap_or("")
    }

    /// Returns whether the key is of `[gates]`. What gates must not be lost, so it is not passed over.
    fn gates_something(&self) -> bool {
        matches!(self.path.as_slice(), [PathStep::Key(table), _, ..] if table == "gates")
    }

    /// Returns the table of the key, as its header is written: `[[gates.checks]]`.
    fn table(&self) -> String {
        let last_key =
            self.path.iter().rposition(|step| matches!(step, PathStep::Key(_))).unwrap_or(0);
        header(&self.path[..last_key])
    }
}

fn header(path: &[PathStep]) -> String {
    let keys: Vec<&str> = path
        .iter()
        .filter_map(|step| if let PathStep::Key(key) = step { Some(key.as_str()) } else { None })
        .collect();
    match path.last() {
        None => "at the top level".to_owned(),
        Some(PathStep::Key(_)) => format!("in [{}]", keys.join(".")),
        Some(PathStep::Item(_) | PathStep::Push) => format!("in [[{}]]", keys.join(".")),
    }
}

/// An error of the deserializer, parsed from its message: serde and toml offer no other way to tell
/// an unknown key from a wrong type. A message that is not recognised becomes `Other` and is shown
/// as it is.
enum Complaint<'a> {
    Unknown { known: Vec<&'a str> },
    Variant { given: &'a str, known: Vec<&'a str> },
    Type { found: &'a str, expected: &'a str },
    Missing { field: &'a str },
    Other { message: &'a str },
}

impl<'a> Complaint<'a> {
    fn read(message: &'a str) -> Self {
        let message = message.trim();
        if let Some(rest) = message.strip_prefix("unknown field ") {
            return Complaint::Unknown { known: quoted(rest).skip(1).collect() };
        }
        if let Some(rest) = message.strip_prefix("unknown variant ") {
            let mut words = quoted(rest);
            return Complaint::Variant {
                given: words.next().unwrap_or(""),
                known: words.collect(),
            };
        }
        if let Some(rest) = message.strip_prefix("missing field ") {
            return Complaint::Missing { field: quoted(rest).next().unwrap_or(rest) };
        }
        let typed = message
            .strip_prefix("invalid type: ")
            .or_else(|| message.strip_prefix("invalid value: "));
        if let Some((found, expected)) = typed.and_then(|rest| rest.rsplit_once(", expected ")) {
            return Complaint::Type { found, expected };
        }
        Complaint::Other { message }
    }

    fn problem(&self, at: &Found) -> Problem {
        let (key, table) = (at.key(), at.table());
        match self {
            Complaint::Variant { given, known } if at.is_key => unknown_key(given, &table, known),
            Complaint::Unknown { known } => unknown_key(key, &table, known),
            Complaint::Variant { given, known } => {
                let problem = Problem::new(format!("`{key}` {table} cannot be `{given}`"));
                match nearest(given, known) {
                    Some(near) => {
                        problem.hint(format!("did you mean `{near}`? One of: {}", known.join(", ")))
                    }
                    None => problem.hint(format!("write one of: {}", known.join(", "))),
                }
            }
            Complaint::Type { found, expected } => {
                let expected = in_words(expected);
                Problem::new(format!("`{key}` {table} must be {expected}, not {found}"))
                    .hint(format!("write {expected} there, or remove the line to get the default"))
            }
            Complaint::Missing { field } => {
                Problem::new(format!("`{field}` is missing {}", header(&at.path)))
                    .hint(format!("add `{field} = …`"))
            }
            Complaint::Other { message } => Problem::new(format!("`{key}` {table}: {message}"))
                .hint("`pdca config show` lists every key with its value"),
        }
    }
}

fn unknown_key(key: &str, table: &str, known: &[&str]) -> Problem {
    let problem = Problem::new(format!("unknown key `{key}` {table}"));
    match nearest(key, known) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None if known.is_empty() => {
            problem.hint("remove it; `--compat` makes unknown keys warnings")
        }
        None => problem.hint(format!(
            "known here: {}; `--compat` makes unknown keys warnings",
            known.join(", ")
        )),
    }
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the known word that was probably meant.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), *candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn in_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "string" | "path string" | "a path string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list [ … ]",
        other if other.starts_with("struct ") || other == "a map" => "a table",
        other => other,
    }
}

/// Finds the node at exactly this span, the deepest one if several share it.
fn find(table: &DeTable<'_>, span: &Range<usize>) -> Option<Found> {
    fn in_value(
        value: &Spanned<DeValue<'_>>,
        span: &Range<usize>,
        path: &mut Vec<PathStep>,
    ) -> Option<Found> {
        let deeper = match value.get_ref() {
            DeValue::Table(table) => in_table(table, span, path),
            DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
                path.push(PathStep::Item(index));
                let found = in_value(item, span, path);
                path.pop();
                found
            }),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => None,
        };
        let here = || Found { path: path.clone(), span: span.clone(), is_key: false };
        deeper.or_else(|| (value.span() == *span).then(here))
    }
    fn in_table(
        table: &DeTable<'_>,
        span: &Range<usize>,
        path: &mut Vec<PathStep>,
    ) -> Option<Found> {
        table.iter().find_map(|(key, value)| {
            path.push(PathStep::Key(key.get_ref().to_string()));
            let found = if key.span() == *span {
                Some(Found { path: path.clone(), span: span.clone(), is_key: true })
            } else {
                in_value(value, span, path)
            };
            path.pop();
            found
        })
    }
    in_table(table, span, &mut Vec::new())
}

/// Removes one node; returns whether it existed.
fn take_out(table: &mut DeTable<'_>, path: &[PathStep]) -> bool {
    match path {
        [PathStep::Key(key)] => table.remove(key.as_str()).is_some(),
        [PathStep::Key(key), rest @ ..] => table
            .get_mut(key.as_str())
            .is_some_and(|value| take_out_of_value(value.get_mut(), rest)),
        [] | [PathStep::Item(_) | PathStep::Push, ..] => false,
    }
}

fn take_out_of_value(value: &mut DeValue<'_>, path: &[PathStep]) -> bool {
    match (value, path) {
        (DeValue::Table(table), path) => take_out(table, path),
        (DeValue::Array(items), [PathStep::Item(gone)]) => {
            let before = items.len();
            // `DeArray` has no `remove`.
            let mut kept = DeArray::new();
            for (index, item) in items.iter().enumerate() {
                if index != *gone {
                    kept.push(item.clone());
                }
            }
            *items = kept;
            items.len() < before
        }
        (DeValue::Array(items), [PathStep::Item(index), rest @ ..]) => {
            items.get_mut(*index).is_some_and(|item| take_out_of_value(item.get_mut(), rest))
        }
        _ => false,
    }
}

/// Calls `note` with path and position of every key and item.
fn note_places(table: &DeTable<'_>, prefix: &str, note: &mut dyn FnMut(&str, Range<usize>, bool)) {
    for (key, value) in table {
        let path = super::layer::join(prefix, key.get_ref());
        note(&path, key.span(), !holds_keys(value.get_ref()));
        note_inside(value.get_ref(), &path, note);
    }
}

/// Returns whether a value is a table or a list of tables, whose keys are the values.
fn holds_keys(value: &DeValue<'_>) -> bool {
    let is_table = |item: &Spanned<DeValue<'_>>| item.get_ref().is_table();
    value.is_table() || value.as_array().is_some_and(|items| items.iter().any(is_table))
}

fn note_inside(value: &DeValue<'_>, path: &str, note: &mut dyn FnMut(&str, Range<usize>, bool)) {
    match value {
        DeValue::Table(table) => note_places(table, path, note),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}[{index}]");
                note(&path, item.span(), !holds_keys(item.get_ref()));
                note_inside(item.get_ref(), &path, note);
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}
