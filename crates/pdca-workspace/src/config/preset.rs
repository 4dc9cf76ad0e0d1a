//! Leaves that only name their agent get the keys of its preset, below what the layers say.

use pdca_leaves::{Preset, ROLES, Role};
use toml::{Table, Value};

use super::layer::join;
use crate::config::problem::{FilePosition, Problem};

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    /// Each value that a preset gave: its path and the preset's name.
    pub(super) values: Vec<(String, &'static str)>,
    /// Problems, each with the path it is about.
    pub(super) problems: Vec<(String, Problem)>,
    pub(super) warnings: Vec<(String, Problem)>,
}

/// Lays the layers' keys of each leaf over its agent's preset.
pub(super) fn expand(merged: &mut Table) -> Expanded {
    let mut expanded = Expanded::default();
    let Some(Value::Table(leaves)) = merged.get_mut("leaves") else { return expanded };
    for spec in &ROLES {
        if let Some(Value::Table(leaf)) = leaves.get_mut(spec.name) {
            expand_leaf(leaf, spec.role, &format!("leaves.{}", spec.name), &mut expanded);
        }
    }
    let variants = leaves.get_mut("builder_variant").and_then(Value::as_array_mut);
    for (place, variant) in variants.into_iter().flatten().enumerate() {
        if let Value::Table(leaf) = variant {
            let path = format!("leaves.builder_variant[{place}]");
            expand_leaf(leaf, Role::Builder, &path, &mut expanded);
        }
    }
    for spec in &ROLES {
        let listed = spec.list.and_then(|list| leaves.get_mut(list)).and_then(Value::as_array_mut);
        for (place, leaf) in listed.into_iter().flatten().enumerate() {
            if let Value::Table(leaf) = leaf {
                expand_leaf(leaf, spec.role, &spec.table(place), &mut expanded);
            }
        }
    }
    expanded
}

fn expand_leaf(leaf: &mut Table, role: Role, path: &str, expanded: &mut Expanded) {
    let Some(agent) = leaf.get("agent").and_then(Value::as_str) else { return };
    let has_argv = leaf.get("argv").and_then(Value::as_array).is_some_and(|argv| !argv.is_empty());
    if has_argv {
        // The configuration says what runs. The name of the agent is only carried to it, as
        // `PDCA_AGENT`.
        return;
    }
    let place = format!("{path}.agent");
    let Some(preset) = Preset::named(agent) else {
        if let Some(near) = Preset::nearest(agent) {
            let what = format!(
                "no preset is named `{agent}`, so nothing is started; did you mean `{near}`?"
            );
            let problem = Problem::new(what);
            expanded.warnings.push((place, problem));
        }
        return;
    };
    let stanza = preset.stanza(role).and_then(|stanza| Table::try_from(stanza).ok());
    let Some(stanza) = stanza else {
        let able: Vec<&str> = preset.roles().map(Role::as_str).collect();
        let problem = Problem::new(format!("`{agent}` has no preset as {role}"))
            .hint(format!("it can be {}; or give the leaf an `argv`", able.join(" or ")));
        expanded.problems.push((place, problem));
        return;
    };
    // An empty `argv` would win over the one of the preset.
    leaf.remove("argv");
    lay_under(leaf, stanza, path, &mut |path| expanded.values.push((path, preset.name)));
}

/// Adds what is not there; tables are gone into.
pub(super) fn lay_under(
    over: &mut Table,
    under: Table,
    prefix: &str,
    added: &mut dyn FnMut(String),
) {
    for (key, value) in under {
        let path = join(prefix, &key);
        match (over.get_mut(&key), value) {
            (Some(Value::Table(over)), Value::Table(under)) => lay_under(over, under, &path, added),
            (Some(_), _) => {}
            (None, Value::Table(under)) => {
                let mut table = Table::new();
                lay_under(&mut table, under, &path, added);
                over.insert(key, Value::Table(table));
            }
            (None, value) => {
                over.insert(key, value);
                added(path);
            }
        }
    }
}

/// Where a value of a preset comes from, for people.
pub(super) fn place(preset: &str) -> FilePosition {
    FilePosition::file(format!("preset {preset}"))
}
