//! Compares two values, and locates differences.

use serde_json::Value;

/// The result of comparing one expected file.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    pub(super) file: &'static str,
    /// The number of compared values of the expected file.
    pub(super) compared: usize,
    pub(super) differences: Vec<String>,
}

pub(super) fn compare(file: &'static str, expected: &Value, actual: &Value) -> Comparison {
    let mut comparison = Comparison { file, compared: 0, differences: Vec::new() };
    comparison.descend("", Some(expected), Some(actual));
    comparison
}

impl Comparison {
    fn descend(&mut self, path: &str, expected: Option<&Value>, actual: Option<&Value>) {
        match (expected, actual) {
            (Some(Value::Object(expected)), Some(Value::Object(actual))) => {
                for (key, value) in expected {
                    self.descend(&join(path, key), Some(value), actual.get(key));
                }
                for (key, value) in actual {
                    if !expected.contains_key(key) {
                        self.descend(&join(path, key), None, Some(value));
                    }
                }
            }
            (Some(Value::Array(expected)), Some(Value::Array(actual))) => {
                self.compared += usize::from(expected.is_empty());
                for index in 0..expected.len().max(actual.len()) {
                    let path = join(path, &index.to_string());
                    self.descend(&path, expected.get(index), actual.get(index));
                }
            }
            (expected, actual) => {
                self.compared += usize::from(expected.is_some());
                if expected != actual {
                    let shown = |value: Option<&Value>| {
                        value.map_or_else(|| "nothing".to_owned(), Value::to_string)
                    };
                    self.differences.push(format!(
                        "{path}: expected {}, read {}",
                        shown(expected),
                        shown(actual)
                    ));
                }
            }
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path} › {key}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(expected: &Value, actual: &Value) -> Vec<String> {
        compare("a.json", expected, actual).differences
    }

    #[test]
    fn equal_values_are_counted_and_not_told() {
        let value = json!({"a": {"b": [1, 2], "c": null, "d": []}});
        let comparison = compare("a.json", &value, &value);
        assert_eq!(comparison.compared, 4);
        assert_eq!(comparison.differences, Vec::<String>::new());
    }

    #[test]
    fn a_difference_is_told_with_its_path() {
        assert_eq!(
            differences(&json!({"a": {"b": "x"}}), &json!({"a": {"b": "y"}})),
            ["a › b: expected \"x\", read \"y\""]
        );
    }

    #[test]
    fn what_is_missing_and_what_is_too_much_are_told() {
        assert_eq!(
            differences(&json!({"a": [1], "b": 2}), &json!({"a": [1, 3], "c": 4})),
            [
                "a › 1: expected nothing, read 3",
                "b: expected 2, read nothing",
                "c: expected nothing, read 4",
            ]
        );
    }

    #[test]
    fn null_is_not_nothing() {
        assert_eq!(
            differences(&json!({"a": null}), &json!({})),
            ["a: expected null, read nothing"]
        );
    }
}
