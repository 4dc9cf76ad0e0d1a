//! One change of an older file, and how it is carried out on the parsed file.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::{DeArray, DeTable, DeValue};
use toml::{Spanned, Value};

/// One step into a table or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    Key(String),
    Item(usize),
    /// Behind the last item of a list.
    Push,
}

/// The place of a value.
pub(crate) type KeyPath = Vec<PathStep>;

/// Parses `gates.checks[2].confirm` and `gates.checks[+]`. Keys with a dot in them are pushed by hand.
pub(crate) fn path_of(text: &str) -> KeyPath {
    let mut path = Vec::new();
    for part in text.split('.').filter(|part| !part.is_empty()) {
        let (key, items) = part.split_once('[').unwrap_or((part, ""));
        path.push(PathStep::Key(key.to_owned()));
        for item in items.split(['[', ']']).filter(|item| !item.is_empty()) {
            path.push(item.parse().map_or(PathStep::Push, PathStep::Item));
        }
    }
    path
}

/// Writes a place as people read it.
pub(crate) fn text_of(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Key(key) => text = crate::config::layer::join(&text, key),
            PathStep::Item(index) => {
                text.push('[');
                text.push_str(&index.to_string());
                text.push(']');
            }
            PathStep::Push => text.push_str("[+]"),
        }
    }
    text
}

/// What becomes of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyFate {
    /// Part of another change, which tells of it.
    Silent,
    /// It has a counterpart; says which.
    Becomes(String),
    /// It has none and is left out; says why.
    Dropped(String),
    /// It stays, and a person should look at it.
    Noted(String),
    /// The file cannot be used as long as it is there.
    Refused { what: String, hint: String },
}

/// One change of an older file.
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    /// The key that it is about, for its position and its comment.
    pub(crate) at: KeyPath,
    /// Whether that key goes.
    pub(crate) remove: bool,
    /// The values that are there instead.
    pub(crate) set: Vec<(KeyPath, Value)>,
    pub(crate) fate: KeyFate,
}

impl Edit {
    /// A key that has a counterpart.
    pub(crate) fn becomes(
        at: KeyPath,
        set: Vec<(KeyPath, Value)>,
        what: impl Into<String>,
    ) -> Self {
        Self { at, remove: true, set, fate: KeyFate::Becomes(what.into()) }
    }

    /// A key that is left out.
    pub(crate) fn dropped(at: KeyPath, why: impl Into<String>) -> Self {
        Self { at, remove: true, set: Vec::new(), fate: KeyFate::Dropped(why.into()) }
    }

    /// A key that stays.
    pub(crate) fn noted(at: KeyPath, what: impl Into<String>) -> Self {
        Self { at, remove: false, set: Vec::new(), fate: KeyFate::Noted(what.into()) }
    }

    /// A value that is added, of which another change tells or nothing has to be told.
    pub(crate) fn silent(at: KeyPath, remove: bool, set: Vec<(KeyPath, Value)>) -> Self {
        Self { at, remove, set, fate: KeyFate::Silent }
    }

    pub(crate) fn refused(at: KeyPath, what: impl Into<String>, hint: impl Into<String>) -> Self {
        let fate = KeyFate::Refused { what: what.into(), hint: hint.into() };
        Self { at, remove: true, set: Vec::new(), fate }
    }

    /// Returns the name of the key.
    pub(crate) fn key(&self) -> String {
        text_of(&self.at)
    }
}

/// Returns the position of a key, or of the nearest one above it that is there.
pub(crate) fn span_at(root: &DeTable<'_>, path: &[PathStep]) -> Range<usize> {
    let mut span = 0..0;
    let mut rest = path;
    let mut table = Some(root);
    let mut list: Option<&DeArray<'_>> = None;
    while let Some((step, after)) = rest.split_first() {
        rest = after;
        let (here, value) = match step {
            PathStep::Key(key) => {
                let Some((key, value)) = table.and_then(|table| table.get_key_value(key.as_str()))
                else {
                    return span;
                };
                (key.span(), value)
            }
            PathStep::Item(index) => {
                let Some(value) = list.and_then(|list| list.get(*index)) else { return span };
                (value.span(), value)
            }
            PathStep::Push => return span,
        };
        span = here;
        table = value.get_ref().as_table();
        list = value.get_ref().as_array();
    }
    span
}

/// The texts of the numbers that changes add. A parsed number borrows its text and has no constructor.
#[derive(Debug, Default)]
pub(crate) struct Numbers(BTreeSet<String>);

impl Numbers {
    pub(crate) fn of(edits: &[Edit]) -> Self {
        let mut numbers = Self::default();
        for (_, value) in edits.iter().flat_map(|edit| &edit.set) {
            numbers.add(value);
        }
        numbers
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Integer(_) | Value::Float(_) | Value::Datetime(_) => {
                self.0.insert(value.to_string());
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Table(table) => table.values().for_each(|item| self.add(item)),
            Value::String(_) | Value::Boolean(_) => {}
        }
    }

    fn parsed(&self, value: &Value) -> Option<DeValue<'_>> {
        let text = self.0.get(&value.to_string())?;
        DeValue::parse(text).ok().map(Spanned::into_inner)
    }
}

/// Carries changes out on a parsed file. What is added has the position of the key it comes from.
pub(crate) fn apply<'a>(root: &mut DeTable<'a>, edits: &[Edit], numbers: &'a Numbers) {
    // Positions first, then removals, then values: a key that was removed has no position any more,
    // and a value may take the place of a key that another change removes.
    let spans: Vec<Range<usize>> = edits.iter().map(|edit| span_at(root, &edit.at)).collect();
    for edit in edits.iter().filter(|edit| edit.remove) {
        remove(root, &edit.at);
    }
    for (edit, span) in edits.iter().zip(&spans) {
        for (path, value) in &edit.set {
            set(root, path, spanned(value, span, numbers), span);
        }
    }
}

fn remove(table: &mut DeTable<'_>, path: &[PathStep]) {
    match path {
        [PathStep::Key(key)] => {
            table.remove(key.as_str());
        }
        [PathStep::Key(key), rest @ ..] => {
            if let Some(value) = table.get_mut(key.as_str()) {
                remove_in(value.get_mut(), rest);
            }
        }
        [] | [PathStep::Item(_) | PathStep::Push, ..] => {}
    }
}

fn remove_in(value: &mut DeValue<'_>, path: &[PathStep]) {
    match (value, path) {
        (DeValue::Table(table), path) => remove(table, path),
        (DeValue::Array(items), [PathStep::Item(index), rest @ ..]) => {
            if let Some(item) = items.get_mut(*index) {
                remove_in(item.get_mut(), rest);
            }
        }
        (
            DeValue::Array(_)
            | DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_),
            _,
        ) => {}
    }
}

fn set<'a>(
    table: &mut DeTable<'a>,
    path: &[PathStep],
    value: Spanned<DeValue<'a>>,
    span: &Range<usize>,
) {
    let Some((PathStep::Key(key), rest)) = path.split_first() else { return };
    let entry = || Spanned::new(span.clone(), Cow::Owned(key.clone()));
    if rest.is_empty() {
        table.remove(key.as_str());
        table.insert(entry(), value);
        return;
    }
    if !table.contains_key(key.as_str()) {
        let empty = match rest.first() {
            Some(PathStep::Item(_) | PathStep::Push) => DeValue::Array(DeArray::new()),
            Some(PathStep::Key(_)) | None => DeValue::Table(DeTable::new()),
        };
        table.insert(entry(), Spanned::new(span.clone(), empty));
    }
    if let Some(inner) = table.get_mut(key.as_str()) {
        set_in(inner.get_mut(), rest, value, span);
    }
}

fn set_in<'a>(
    inner: &mut DeValue<'a>,
    path: &[PathStep],
    value: Spanned<DeValue<'a>>,
    span: &Range<usize>,
) {
    match (inner, path) {
        (DeValue::Table(table), path) => set(table, path, value, span),
        (DeValue::Array(items), [PathStep::Push]) => items.push(value),
        (DeValue::Array(items), [PathStep::Item(index), rest @ ..]) if !rest.is_empty() => {
            if let Some(item) = items.get_mut(*index) {
                set_in(item.get_mut(), rest, value, span);
            }
        }
        (
            DeValue::Array(_)
            | DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_),
            _,
        ) => {}
    }
}

/// Gives a value, and everything in it, a position.
fn spanned<'a>(value: &Value, span: &Range<usize>, numbers: &'a Numbers) -> Spanned<DeValue<'a>> {
    let inner = match value {
        Value::String(text) => DeValue::String(Cow::Owned(text.clone())),
        Value::Boolean(flag) => DeValue::Boolean(*flag),
        Value::Table(table) => {
            let entry = |(key, value): (&String, &Value)| {
                let key = Spanned::new(span.clone(), Cow::Owned(key.clone()));
                (key, spanned(value, span, numbers))
            };
            DeValue::Table(table.iter().map(entry).collect())
        }
        Value::Array(items) => {
            let mut list = DeArray::new();
            for item in items {
                list.push(spanned(item, span, numbers));
            }
            DeValue::Array(list)
        }
        Value::Integer(_) | Value::Float(_) | Value::Datetime(_) => {
            // Cannot happen: `Numbers::of` has seen every value of these changes.
            let text = || DeValue::String(Cow::Owned(value.to_string()));
            numbers.parsed(value).unwrap_or_else(text)
        }
    };
    Spanned::new(span.clone(), inner)
}
