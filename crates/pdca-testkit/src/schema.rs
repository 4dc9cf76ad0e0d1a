//! Checks JSON against the schemas in `docs/generated/schemas`.
//!
//! It knows the keywords that are written there, and no others. It is stricter than the standard in one
//! point: a field that the schema does not name is a problem, so the schemas name every field.

use std::collections::BTreeSet;

use camino::Utf8Path;
use serde_json::Value;

/// Checks a document of `--json` against the schema of its `kind`.
///
/// # Panics
/// Where the document does not follow the schema, or there is none for its kind.
#[track_caller]
pub fn assert_follows_schema(document: &Value) {
    let kind = document["kind"].as_str().expect("a document has a kind");
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/generated/schemas");
    let path = root.join(format!("{kind}.json"));
    let text = fs_err::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{error}; `cargo xtask schemas --write` makes it"));
    let schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
    let problems = problems(&schema, document);
    assert!(problems.is_empty(), "{path}: {}\n{document:#}", problems.join("; "));
}

/// The ways in which a value does not follow a schema.
fn problems(root: &Value, value: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    Checker { root, problems: &mut problems }.whole(root, value, "");
    problems
}

struct Checker<'a> {
    root: &'a Value,
    problems: &'a mut Vec<String>,
}

impl<'a> Checker<'a> {
    /// Checks a value, and that every field of it is named.
    fn whole(&mut self, schema: &'a Value, value: &Value, at: &str) {
        let named = self.part(schema, value, at);
        let fields = value.as_object().into_iter().flat_map(serde_json::Map::keys);
        for name in fields.filter(|name| !named.contains(*name)) {
            self.problems.push(format!("{at}/{name} is not in the schema"));
        }
    }

    /// Checks a value against one of the schemas that apply to it, and returns the fields that this one names.
    fn part(&mut self, schema: &'a Value, value: &Value, at: &str) -> BTreeSet<String> {
        let mut named = BTreeSet::new();
        let Some(schema) = schema.as_object() else {
            // `true`: anything.
            named.extend(value.as_object().into_iter().flat_map(serde_json::Map::keys).cloned());
            return named;
        };
        for (keyword, rule) in schema {
            match keyword.as_str() {
                "$schema"
                | "$defs"
                | "title"
                | "description"
                | "default"
                | "format"
                | "additionalProperties" => {}
                "$ref" => {
                    let name = rule.as_str().and_then(|text| text.strip_prefix('#'));
                    let found = name.and_then(|name| self.root.pointer(name));
                    let found = found.unwrap_or_else(|| panic!("{rule} is not in the schema"));
                    named.extend(self.part(found, value, at));
                }
                "type" => self.require(is_of_type(rule, value), at, || format!("is no {rule}")),
                "const" => self.require(rule == value, at, || format!("is not {rule}")),
                "enum" => {
                    let is_one = rule.as_array().is_some_and(|all| all.contains(value));
                    self.require(is_one, at, || format!("{value} is none of {rule}"));
                }
                "minimum" | "maximum" => {
                    let is_within = is_within(keyword, rule.as_i64(), value.as_i64());
                    self.require(is_within, at, || format!("{value} is beyond {rule}"));
                }
                "minItems" | "maxItems" => {
                    let count = value.as_array().and_then(|items| items.len().try_into().ok());
                    let is_within = is_within(keyword, rule.as_i64(), count);
                    self.require(is_within, at, || format!("has not {rule} items"));
                }
                "uniqueItems" => {
                    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                    let is_unique = (1..items.len()).all(|at| !items[..at].contains(&items[at]));
                    self.require(is_unique, at, || "has an item twice".to_owned());
                }
                "required" => {
                    for name in rule.as_array().into_iter().flatten().filter_map(Value::as_str) {
                        let is_there = value.as_object().is_none_or(|all| all.contains_key(name));
                        self.require(is_there, at, || format!("lacks {name}"));
                    }
                }
                "properties" => {
                    for (name, below) in rule.as_object().into_iter().flatten() {
                        named.insert(name.clone());
                        if let Some(value) = value.get(name) {
                            self.whole(below, value, &format!("{at}/{name}"));
                        }
                    }
                }
                "items" => {
                    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.whole(rule, item, &format!("{at}/{place}"));
                    }
                }
                "prefixItems" => {
                    let rules = rule.as_array().into_iter().flatten();
                    let items = value.as_array().into_iter().flatten();
                    for (place, (rule, item)) in rules.zip(items).enumerate() {
                        self.whole(rule, item, &format!("{at}/{place}"));
                    }
                }
                "allOf" => {
                    for rule in rule.as_array().into_iter().flatten() {
                        named.extend(self.part(rule, value, at));
                    }
                }
                "anyOf" | "oneOf" => named.extend(self.one_of(rule, value, at)),
                other => panic!("the keyword {other} is not known here"),
            }
        }
        if let Some(rule @ Value::Object(_)) = schema.get("additionalProperties") {
            for (name, value) in value.as_object().into_iter().flatten() {
                if named.insert(name.clone()) {
                    self.whole(rule, value, &format!("{at}/{name}"));
                }
            }
        }
        named
    }

    /// Checks that one of the schemas holds. Where none does, the problems of the nearest one are told.
    fn one_of(&mut self, rules: &'a Value, value: &Value, at: &str) -> BTreeSet<String> {
        let mut nearest: Option<Vec<String>> = None;
        let mut named = BTreeSet::new();
        for rule in rules.as_array().into_iter().flatten() {
            let mut problems = Vec::new();
            let below = Checker { root: self.root, problems: &mut problems }.part(rule, value, at);
            if problems.is_empty() {
                named.extend(below);
            }
            if nearest.as_ref().is_none_or(|nearest| problems.len() < nearest.len()) {
                nearest = Some(problems);
            }
        }
        self.problems.extend(nearest.unwrap_or_default());
        named
    }

    fn require(&mut self, holds: bool, at: &str, what: impl FnOnce() -> String) {
        if !holds {
            self.problems.push(format!("{} {}", if at.is_empty() { "/" } else { at }, what()));
        }
    }
}

/// Compares with the bound of a keyword that begins with `min` or `max`.
fn is_within(keyword: &str, bound: Option<i64>, value: Option<i64>) -> bool {
    bound.zip(value).is_none_or(|(bound, value)| {
        if keyword.starts_with("min") { value >= bound } else { value <= bound }
    })
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type {other} is not known here"),
    };
    let names = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
    names.iter().any(|name| is(name.as_str().expect("a type is a name")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value, value: &Value) -> String {
        problems(schema, value).join("; ")
    }

    #[test]
    fn a_field_that_is_missing_wrong_or_not_named_is_a_problem() {
        let schema = json!({
            "type": "object",
            "properties": {"id": {"type": "string"}, "lane": {"type": ["integer", "null"], "minimum": 0}},
            "required": ["id"],
        });
        assert_eq!(found(&schema, &json!({"id": "1", "lane": null})), "");
        assert_eq!(found(&schema, &json!({"lane": -1})), "/lane -1 is beyond 0; / lacks id");
        assert_eq!(found(&schema, &json!({"id": 1})), "/id is no \"string\"");
        assert_eq!(found(&schema, &json!({"id": "1", "slot": 1})), "/slot is not in the schema");
        assert_eq!(found(&schema, &json!([])), "/ is no \"object\"");
    }

    #[test]
    fn a_value_follows_one_of_several_schemas_or_the_nearest_is_told() {
        let schema = json!({
            "$defs": {"red": {"properties": {"rows": {"items": {"enum": ["a", "b"]}}}, "required": ["rows"]}},
            "properties": {"kind": {"const": 1}},
            "anyOf": [{"$ref": "#/$defs/red"}, {"properties": {"why": {"type": "string"}}, "required": ["why"]}],
        });
        assert_eq!(found(&schema, &json!({"kind": 1, "rows": ["a"]})), "");
        assert_eq!(found(&schema, &json!({"kind": 1, "why": "x"})), "");
        assert_eq!(found(&schema, &json!({"kind": 2, "why": "x"})), "/kind is not 1");
        assert_eq!(
            found(&schema, &json!({"kind": 1, "rows": ["c"]})),
            "/rows/0 \"c\" is none of [\"a\",\"b\"]; /rows is not in the schema"
        );
    }

    #[test]
    fn the_values_of_a_map_follow_one_schema() {
        let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        assert_eq!(found(&schema, &json!({"a": 1, "b": 2})), "");
        assert_eq!(found(&schema, &json!({"a": "x"})), "/a is no \"integer\"");
    }
}
