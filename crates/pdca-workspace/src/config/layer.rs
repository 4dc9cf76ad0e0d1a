//! Merges the layers of the configuration.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::LaneCount;
use serde::Deserialize as _;
use toml::{Table, Value};

use super::check::{Checked, check};
use super::{Config, ConfigDocument, FileTrust, preset, rules, trust, variant};
use crate::config::environment::Environment;
use crate::config::problem::{ConfigError, FilePosition, Problem};

/// The layer that a value comes from; later ones win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Layer {
    Default,
    /// The preset of the agent that a leaf names.
    Preset,
    User,
    Workspace,
    Env,
    Flag,
}

/// The origin of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub layer: Layer,
    /// The file and line, or the name of the variable or flag.
    pub place: Option<FilePosition>,
}

/// The origin of each value, by its path (`gates.checks[0].id`).
#[derive(Debug, Clone, Default)]
pub struct Sources {
    values: BTreeMap<String, Origin>,
    places: BTreeMap<String, FilePosition>,
}

impl Sources {
    /// Returns the origin of a value.
    pub fn of(&self, path: &str) -> Origin {
        let origin = self.values.get(path).cloned();
        origin.unwrap_or(Origin { layer: Layer::Default, place: None })
    }

    /// Returns the position of a key, or of the nearest table or list that would contain it.
    pub fn place(&self, path: &str) -> Option<FilePosition> {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return Some(place.clone());
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }

    /// Removes a path and everything below it.
    fn forget(&mut self, path: &str) {
        let is_inside = |other: &str| {
            let rest = other.strip_prefix(path);
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || rest.starts_with('[')
            })
        };
        self.values.retain(|other, _| !is_inside(other));
        self.places.retain(|other, _| !is_inside(other));
    }
}

/// The sources to load.
#[derive(Debug, Clone, Copy)]
pub struct LoadRequest<'a> {
    /// The workspace's file, if there is one.
    pub file: Option<&'a Utf8Path>,
    /// `--config KEY=VALUE`, in order.
    pub flags: &'a [String],
    /// Treats unknown keys as warnings.
    pub compat: bool,
    /// The trust in the user's file.
    pub trust: &'a FileTrust,
}

/// The effective configuration with its origins.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    pub sources: Sources,
    /// Problems that were tolerated.
    pub warnings: Vec<Problem>,
    /// The user's file, if one was read.
    pub user_file: Option<Utf8PathBuf>,
}

/// Loads all layers. Every problem of every layer is in the error.
pub fn load(request: LoadRequest<'_>, environment: Environment<'_>) -> Result<Loaded, ConfigError> {
    let mut stack =
        Stack { compat: request.compat, trust: request.trust.clone(), ..Stack::default() };
    let user_path = environment.config_home().map(|home| home.join("pdca").join("config.toml"));
    let user_file = user_path.filter(|path| stack.add_file(Layer::User, path));
    if let Some(path) = request.file {
        stack.add_file(Layer::Workspace, path);
    }
    for (name, text) in variables(environment) {
        match text {
            Ok(text) => stack.add(Layer::Env, &ConfigDocument::new(name, text)),
            Err(problem) => stack.problems.push(problem.at(FilePosition::file(name))),
        }
    }
    for flag in request.flags {
        match flag_line(flag) {
            Some(text) => stack.add(Layer::Flag, &ConfigDocument::new("--config", text)),
            None => stack.problems.push(
                Problem::new(format!("`--config {flag}` is not KEY=VALUE"))
                    .hint("write for example `--config driver.lanes=2`"),
            ),
        }
    }
    stack.finish(user_file)
}

/// Loads a single file over the defaults.
pub(crate) fn load_document(
    document: &ConfigDocument,
    compat: bool,
) -> Result<Loaded, ConfigError> {
    let mut stack = Stack { compat, ..Stack::default() };
    stack.add(Layer::Workspace, document);
    stack.finish(None)
}

#[derive(Default)]
struct Stack {
    compat: bool,
    trust: FileTrust,
    merged: Table,
    sources: Sources,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Stack {
    /// Adds a file; returns whether it exists.
    fn add_file(&mut self, layer: Layer, path: &Utf8Path) -> bool {
        match ConfigDocument::load(path) {
            Ok(Some(document)) => {
                self.add(layer, &document);
                true
            }
            Ok(None) => false,
            Err(problem) => {
                self.problems.push(*problem);
                false
            }
        }
    }

    fn add(&mut self, layer: Layer, document: &ConfigDocument) {
        let Checked { mut table, mut places, mut problems, mut warnings, unknown: _ } =
            check(document, self.compat);
        if layer == Layer::User {
            // Before the merge: once a key is in `merged`, nothing tells it from one of the
            // workspace. Its place goes too, or `config show` would name the user's file as the
            // origin.
            for path in self.trust.restrict(&document.text, &mut table) {
                let problem = trust::ignored(&path);
                let place = places.get(&path).map(|node| node.place.clone());
                warnings.push(Problem { place, ..problem });
                let is_inside = |other: &str| {
                    let rest = other.strip_prefix(path.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                };
                places.retain(|other, _| !is_inside(other));
            }
        }
        let line =
            |problem: &Problem| problem.place.as_ref().map(|place| (place.line, place.column));
        problems.sort_by_key(line);
        warnings.sort_by_key(line);
        // A variable or flag is a single value, so a line number in it is meaningless.
        let seen = |place: FilePosition| match layer {
            Layer::Env | Layer::Flag => FilePosition::file(place.file),
            Layer::Default | Layer::Preset | Layer::User | Layer::Workspace => place,
        };
        let told = |problem: Problem| Problem { place: problem.place.clone().map(seen), ..problem };
        self.problems.extend(problems.into_iter().map(told));
        self.warnings.extend(warnings.into_iter().map(told));
        let sources = &mut self.sources;
        overlay(&mut self.merged, &table, "", &mut |path| sources.forget(path));
        for (path, node) in places {
            let place = seen(node.place);
            if node.is_value {
                self.sources
                    .values
                    .insert(path.clone(), Origin { layer, place: Some(place.clone()) });
            }
            self.sources.places.insert(path, place);
        }
    }

    fn finish(self, user_file: Option<Utf8PathBuf>) -> Result<Loaded, ConfigError> {
        let Stack { mut merged, mut sources, mut problems, mut warnings, .. } = self;
        // Variants before presets: a variant inherits what the layers say of the builder and not
        // what the builder's preset adds, and then gets the preset of its own agent.
        for (path, from) in variant::inherit(&mut merged) {
            let origin = sources.of(&from);
            if let Some(place) = sources.place(&from) {
                sources.places.insert(path.clone(), place);
            }
            sources.values.insert(path, origin);
        }
        let expanded = preset::expand(&mut merged);
        let at =
            |(path, problem): (String, Problem)| Problem { place: sources.place(&path), ..problem };
        problems.extend(expanded.problems.into_iter().map(at));
        warnings.extend(expanded.warnings.into_iter().map(at));
        for (path, name) in expanded.values {
            let place = Some(preset::place(name));
            sources.values.insert(path, Origin { layer: Layer::Preset, place });
        }
        let config = match Config::deserialize(Value::Table(merged)) {
            Ok(config) => config,
            // Each layer was valid by itself, so this can only come of their combination, such as a
            // table in one and a value in the other. There is no single position for it.
            Err(error) => {
                problems.push(Problem::new(format!(
                    "the layers do not fit together: {}",
                    error.message()
                )));
                return Err(ConfigError { problems });
            }
        };
        // Rules between values hold for the merged configuration alone: one layer may set what
        // another relies on.
        problems.extend(rules::broken(&config, &sources));
        if problems.is_empty() {
            Ok(Loaded { config, sources, warnings, user_file })
        } else {
            Err(ConfigError { problems })
        }
    }
}

/// Merges `over` into `base`: tables are merged, everything else is replaced.
fn overlay(base: &mut Table, over: &Table, prefix: &str, replaced: &mut dyn FnMut(&str)) {
    for (key, value) in over {
        let path = join(prefix, key);
        match (base.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => {
                overlay(below, above, &path, replaced);
            }
            // Lists are replaced as a whole, so what is known of the items of the old one has to go.
            (_, value) => {
                replaced(&path);
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Joins a path and a key; a key that is not a bare word is quoted.
pub(super) fn join(prefix: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let key = if bare { key.to_owned() } else { Value::String(key.to_owned()).to_string() };
    if prefix.is_empty() { key } else { format!("{prefix}.{key}") }
}

/// Calls `tell` with every value that is not a table; lists of tables are entered, other lists are one value.
pub(super) fn flatten(value: &Value, path: &str, tell: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                flatten(value, &join(path, key), tell);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_table) => {
            for (index, item) in items.iter().enumerate() {
                flatten(item, &format!("{path}[{index}]"), tell);
            }
        }
        Value::Array(_)
        | Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => {
            tell(path, value);
        }
    }
}

/// Returns the variables that stand for a key. Other `PDCA_*` variables are meant for gates and leaves.
fn variables(environment: Environment<'_>) -> Vec<(&'static str, Result<String, Problem>)> {
    let text = |name| environment.text(name);
    let mut found = Vec::new();
    if let Some(root) = text("PDCA_BUNDLE_ROOT") {
        // A variable is typed by a person, so it is relative to where that person is. Keys of a
        // file are relative to the workspace.
        let root = environment.cwd.join(root);
        found.push(("PDCA_BUNDLE_ROOT", Ok(line("paths.bundle_root", root.as_str()))));
    }
    if let Some(author) = text("PDCA_AUTHOR") {
        found.push(("PDCA_AUTHOR", Ok(line("project.author", author))));
    }
    if let Some(lanes) = text("PDCA_LANES") {
        let value = match lanes.parse::<LaneCount>() {
            Ok(LaneCount::Number(number)) => Ok(format!("driver.lanes = {number}")),
            Ok(LaneCount::Auto) => Ok(line("driver.lanes", "auto")),
            Err(_) => {
                let what = "a whole number that is not negative or `auto`";
                Err(Problem::new(format!("PDCA_LANES must be {what}, not `{lanes}`"))
                    .hint("unset it, or `PDCA_LANES=1`, or `PDCA_LANES=auto`"))
            }
        };
        found.push(("PDCA_LANES", value));
    }
    found
}

fn line(key: &str, value: &str) -> String {
    format!("{key} = {}", Value::String(value.to_owned()))
}

/// Converts `KEY=VALUE` to a line of TOML; a value that is not valid TOML is taken as a string.
fn flag_line(flag: &str) -> Option<String> {
    let (key, value) = flag.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || value.contains('\n') || key.contains('\n') {
        return None;
    }
    let as_is = format!("{key} = {value}");
    // So that `--config project.author=Ada` needs no quotes within quotes.
    if as_is.parse::<Table>().is_ok() { Some(as_is) } else { Some(line(key, value)) }
}
