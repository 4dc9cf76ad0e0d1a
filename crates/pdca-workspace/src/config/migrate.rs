//! Writes the file of an older instance as one of ours, with its comments.
//!
//! The changes are those that `--compat` makes in memory, so the result means the same.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{BundleRoot, files};
use serde::Serialize;
use toml::de::DeTable;
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

use crate::config::ConfigDocument;
use crate::config::check::check;
use crate::config::compat::{Edit, KeyFate, KeyPath, PathStep, edits, path_of, span_at, text_of};
use crate::config::problem::{ConfigError, FilePosition, Problem};
use crate::config::workspace::{FILE, FoundFile, find, sibling_targets};

/// A migrated file, or one that would be.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigMigration {
    pub dry_run: bool,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
    /// Where the old file is kept; `None` unless it was written.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub backup: Option<Utf8PathBuf>,
    /// What became of each key, in the order of the old file.
    pub keys: Vec<MigratedKey>,
    /// The new text.
    pub text: String,
    pub written: bool,
    #[serde(skip)]
    old_text: String,
}

/// A migrated text.
#[derive(Debug, Clone)]
pub(super) struct Migration {
    pub(super) text: String,
    /// What was changed, in the order of the old file.
    pub(super) keys: Vec<MigratedKey>,
}

/// What became of one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MigratedKey {
    /// The key, such as `driver.max_passes`.
    pub key: String,
    /// Its line in the old file.
    pub line: Option<usize>,
    pub fate: MigratedKind,
    /// The counterpart, or the reason.
    pub what: String,
}

/// The fate of a key in a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MigratedKind {
    /// It has a counterpart.
    Mapped,
    /// It has none and is left out.
    Dropped,
    /// It stays, and a person should look at it.
    Look,
}

/// Reads the file of the workspace around `start`, and plans its migration.
pub fn plan_migration(start: &Utf8Path, dry_run: bool) -> Result<ConfigMigration, ConfigError> {
    let Some(FoundFile { root, file }) = find(start) else {
        return Err(Problem::new(format!("no {FILE} in {start} or in a directory above it"))
            .hint("`-C DIR` names the workspace")
            .into());
    };
    let document = ConfigDocument::load(&file).map_err(|problem| ConfigError::from(*problem))?;
    let document = document.unwrap_or_else(|| ConfigDocument::new(file.clone(), ""));
    let siblings = sibling_targets(&root, &named_bundles(&root, &document));
    let Migration { text, keys } = migrate(&document, &siblings)?;
    let old_text = document.text;
    Ok(ConfigMigration { dry_run, file, backup: None, keys, text, written: false, old_text })
}

/// Returns the bundles that the old file names.
fn named_bundles(root: &Utf8Path, document: &ConfigDocument) -> BundleRoot {
    let table: Option<toml::Table> = document.text.parse().ok();
    let named = table.as_ref().and_then(|table| table.get("paths")?.get("bundle_root")?.as_str());
    BundleRoot::new(root.join(named.unwrap_or("results")))
}

impl ConfigMigration {
    /// Returns whether the file needs no change.
    pub fn is_current(&self) -> bool {
        self.text == self.old_text
    }

    /// Writes the new file, and keeps the old one beside it.
    pub fn write(&mut self) -> io::Result<()> {
        let backup = free_name(&self.file);
        // First the copy: a crash in between leaves the old file in force, and one file too many.
        files::replace_like(&backup, self.old_text.as_bytes(), &self.file)?;
        files::rewrite(&self.file, self.text.as_bytes())?;
        self.backup = Some(backup);
        self.written = true;
        Ok(())
    }
}

/// Returns a name beside the file that is not taken.
fn free_name(file: &Utf8Path) -> Utf8PathBuf {
    let name = |number: usize| match number {
        1 => Utf8PathBuf::from(format!("{file}.old")),
        _ => Utf8PathBuf::from(format!("{file}.old-{number}")),
    };
    let is_free = |path: &Utf8PathBuf| path.symlink_metadata().is_err();
    (1..=usize::MAX).map(name).find(is_free).unwrap_or_else(|| name(1))
}

/// Migrates the text of a file. `siblings` are checkouts beside the workspace, as `pdca.toml` names them; they become targets
/// where the file names none.
///
/// Fails with every problem if the file, or what would become of it, cannot be used.
pub(super) fn migrate(
    document: &ConfigDocument,
    siblings: &[Utf8PathBuf],
) -> Result<Migration, ConfigError> {
    let checked = check(document, true);
    if !checked.problems.is_empty() {
        return Err(ConfigError { problems: checked.problems });
    }
    let unreadable =
        |message: &str| Problem::new(message.to_owned()).at(FilePosition::file(&*document.name));
    let old: toml::Table =
        document.text.parse().map_err(|error: toml::de::Error| unreadable(error.message()))?;
    let mut text: DocumentMut =
        document.text.parse().map_err(|error: toml_edit::TomlError| unreadable(error.message()))?;
    let mut edits = edits(&old);
    // Only for a file of an older instance, which finds its checkouts by their names. A file of
    // ours without targets is meant that way.
    if !edits.is_empty() && !old.contains_key("targets") && !edits.iter().any(sets_targets) {
        edits.extend(siblings.iter().map(|path| target(path)));
    }
    carry_out(&mut text, &edits);
    for (path, _) in &checked.unknown {
        remove(text.as_item_mut(), path);
    }
    // An empty `[publisher]` would be an unknown key in the new file.
    remove_empty_tables(text.as_table_mut());
    let changes = changes(document, &edits, &checked.unknown);
    let text = text.to_string();
    // The new text has to load without `--compat`; otherwise the person would be left with a file
    // that no command reads.
    crate::config::layer::load_document(
        &ConfigDocument::new(document.name.clone(), text.clone()),
        false,
    )?;
    Ok(Migration { text, keys: changes })
}

fn changes(
    document: &ConfigDocument,
    edits: &[Edit],
    unknown: &[(KeyPath, FilePosition)],
) -> Vec<MigratedKey> {
    let (root, _) = DeTable::parse_recoverable(&document.text);
    let line = |at: &KeyPath| document.place(&span_at(root.get_ref(), at)).line;
    let told = |edit: &Edit| {
        let (fate, what) = match &edit.fate {
            KeyFate::Becomes(what) => (MigratedKind::Mapped, what),
            KeyFate::Dropped(why) => (MigratedKind::Dropped, why),
            KeyFate::Noted(what) => (MigratedKind::Look, what),
            KeyFate::Silent | KeyFate::Refused { .. } => return None,
        };
        Some(MigratedKey { key: edit.key(), line: line(&edit.at), fate, what: what.clone() })
    };
    let mut changes: Vec<MigratedKey> = edits.iter().filter_map(told).collect();
    changes.extend(unknown.iter().map(|(path, place)| MigratedKey {
        key: text_of(path),
        line: place.line,
        fate: MigratedKind::Dropped,
        what: "it is not known here".to_owned(),
    }));
    changes.sort_by_key(|change| change.line);
    changes
}

fn sets_targets(edit: &Edit) -> bool {
    edit.set.iter().any(|(path, _)| path.first() == Some(&PathStep::Key("targets".to_owned())))
}

/// A target that the older instance finds beside the workspace.
fn target(path: &Utf8Path) -> Edit {
    let entry =
        toml::Table::from_iter([("path".to_owned(), toml::Value::String(path.to_string()))]);
    let set = vec![(path_of("targets[+]"), toml::Value::Table(entry))];
    Edit::silent(Vec::new(), false, set)
}

/// Carries changes out on the text. A comment goes along with its key to the first value that takes its place.
fn carry_out(text: &mut DocumentMut, edits: &[Edit]) {
    // The comments are taken before anything is removed, because they go with their keys.
    let comments: Vec<Option<String>> =
        edits.iter().map(|edit| comment_of(text.as_item(), &edit.at)).collect();
    for edit in edits.iter().filter(|edit| edit.remove) {
        remove(text.as_item_mut(), &edit.at);
    }
    for (edit, comment) in edits.iter().zip(comments) {
        for (number, (path, value)) in edit.set.iter().enumerate() {
            let comment = comment.as_deref().filter(|_| number == 0);
            set(text.as_item_mut(), path, value, comment);
        }
    }
}

/// Returns the lines before a key or an item.
fn comment_of(root: &Item, path: &[PathStep]) -> Option<String> {
    let (last, above) = path.split_last()?;
    let mut item = root;
    for step in above {
        item = match step {
            PathStep::Key(key) => item.get(key.as_str())?,
            PathStep::Item(index) => item.get(*index)?,
            PathStep::Push => return None,
        };
    }
    let decor = match last {
        PathStep::Key(key) => item.as_table_like()?.key(key)?.leaf_decor(),
        PathStep::Item(index) => match item {
            Item::ArrayOfTables(tables) => tables.get(*index)?.decor(),
            Item::Value(value) => value.as_array()?.get(*index)?.decor(),
            Item::None | Item::Table(_) => return None,
        },
        PathStep::Push => return None,
    };
    decor.prefix()?.as_str().filter(|text| text.contains('#')).map(str::to_owned)
}

fn remove(item: &mut Item, path: &[PathStep]) {
    match path {
        [PathStep::Key(key)] => {
            if let Some(table) = item.as_table_like_mut() {
                table.remove(key);
            }
        }
        [step, rest @ ..] => {
            if let Some(inner) = step_into(item, step) {
                remove_inner(inner, rest);
            }
        }
        [] => {}
    }
}

/// A place in a document: an item, or a table of a list of tables.
enum Inner<'a> {
    Item(&'a mut Item),
    Table(&'a mut Table),
    Value(&'a mut Value),
}

fn step_into<'a>(item: &'a mut Item, step: &PathStep) -> Option<Inner<'a>> {
    match step {
        PathStep::Key(key) => item.get_mut(key.as_str()).map(Inner::Item),
        PathStep::Item(index) => match item {
            Item::ArrayOfTables(tables) => tables.get_mut(*index).map(Inner::Table),
            Item::Value(value) => value.as_array_mut()?.get_mut(*index).map(Inner::Value),
            Item::None | Item::Table(_) => None,
        },
        PathStep::Push => None,
    }
}

fn remove_inner(inner: Inner<'_>, path: &[PathStep]) {
    match (inner, path) {
        (Inner::Item(item), path) => remove(item, path),
        (Inner::Table(table), [PathStep::Key(key)]) => {
            table.remove(key);
        }
        (Inner::Table(table), [PathStep::Key(key), rest @ ..]) => {
            if let Some(item) = table.get_mut(key) {
                remove(item, rest);
            }
        }
        (Inner::Value(value), [PathStep::Key(key)]) => {
            if let Some(table) = value.as_inline_table_mut() {
                table.remove(key);
            }
        }
        (Inner::Table(_) | Inner::Value(_), _) => {}
    }
}

fn set(item: &mut Item, path: &[PathStep], value: &toml::Value, comment: Option<&str>) {
    let Some((step, rest)) = path.split_first() else { return };
    match (step, rest) {
        (PathStep::Key(key), []) => insert(item, key, value, comment),
        (PathStep::Key(key), [PathStep::Push]) => push(item, key, value, comment),
        (PathStep::Key(key), rest) => {
            if item.get(key.as_str()).is_none()
                && let Some(table) = item.as_table_like_mut()
            {
                table.insert(key, Item::Table(Table::new()));
            }
            if let Some(inner) = item.get_mut(key.as_str()) {
                set(inner, rest, value, comment);
            }
        }
        (PathStep::Item(index), [PathStep::Key(key)]) => match item {
            Item::ArrayOfTables(tables) => {
                if let Some(table) = tables.get_mut(*index) {
                    table.insert(key, Item::Value(edited(value)));
                }
            }
            Item::Value(list) => {
                let row = list.as_array_mut().and_then(|list| list.get_mut(*index));
                if let Some(row) = row.and_then(Value::as_inline_table_mut) {
                    row.insert(key, edited(value));
                    row.fmt();
                }
            }
            Item::None | Item::Table(_) => {}
        },
        (PathStep::Item(_) | PathStep::Push, _) => {}
    }
}

fn insert(item: &mut Item, key: &str, value: &toml::Value, comment: Option<&str>) {
    let Some(table) = item.as_table_like_mut() else { return };
    table.insert(key, Item::Value(edited(value)));
    if let Some(comment) = comment
        && let Some(mut key) = table.key_mut(key)
    {
        key.leaf_decor_mut().set_prefix(comment);
    }
}

/// Adds a table to a list of tables, written as the others of it are.
fn push(item: &mut Item, key: &str, value: &toml::Value, comment: Option<&str>) {
    let Some(parent) = item.as_table_like_mut() else { return };
    if parent.get(key).is_none() {
        parent.insert(key, Item::ArrayOfTables(ArrayOfTables::new()));
    }
    let toml::Value::Table(entry) = value else { return };
    match parent.get_mut(key) {
        Some(Item::ArrayOfTables(tables)) => {
            let mut table = Table::new();
            for (key, value) in entry {
                table.insert(key, Item::Value(edited(value)));
            }
            table.decor_mut().set_prefix(comment.unwrap_or("\n"));
            tables.push(table);
        }
        Some(Item::Value(list)) => {
            if let Some(list) = list.as_array_mut() {
                let mut row = edited(value);
                row.decor_mut().set_prefix(format!("{}  ", comment.unwrap_or("\n")));
                list.push_formatted(row);
                list.set_trailing("\n");
                list.set_trailing_comma(true);
            }
        }
        Some(Item::None | Item::Table(_)) | None => {}
    }
}

fn edited(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(date) => {
            date.to_string().parse().unwrap_or_else(|_| date.to_string().into())
        }
        toml::Value::Array(items) => Value::Array(items.iter().map(edited).collect()),
        toml::Value::Table(table) => {
            let entries = table.iter().map(|(key, value)| (key.as_str(), edited(value)));
            Value::InlineTable(entries.collect::<InlineTable>())
        }
    }
}

/// Removes tables of which nothing is left.
fn remove_empty_tables(table: &mut Table) {
    let names: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        let Some(Item::Table(inner)) = table.get_mut(&name) else { continue };
        remove_empty_tables(inner);
        if inner.is_empty() {
            table.remove(&name);
        }
    }
}
