//! Records as JSON: one array of objects, or one object per line.

use serde_json::{Map, Value};

/// One record, and the line it is on; in an array, its number.
pub(crate) type JsonRecord = (u64, Map<String, Value>);

/// The line of something that is no JSON object, and the reason.
#[derive(Debug)]
pub(crate) struct JsonFlaw {
    pub(crate) line: u64,
    pub(crate) why: String,
}

/// Parses an output whole.
pub(crate) fn records(bytes: &[u8]) -> Vec<Result<JsonRecord, JsonFlaw>> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return match serde_json::from_slice::<Vec<Value>>(bytes) {
            Ok(values) => (1..).zip(values).map(|(line, value)| object(line, value)).collect(),
            Err(error) => {
                let line = u64::try_from(error.line()).unwrap_or(0);
                vec![Err(JsonFlaw { line, why: error.to_string() })]
            }
        };
    }
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    lines
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(number, line)| match serde_json::from_slice(line) {
            Ok(value) => object(number, value),
            Err(error) => Err(JsonFlaw { line: number, why: error.to_string() }),
        })
        .collect()
}

fn object(line: u64, value: Value) -> Result<JsonRecord, JsonFlaw> {
    match value {
        Value::Object(map) => Ok((line, map)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(JsonFlaw { line, why: "not an object".to_owned() })
        }
    }
}

/// Returns a value as one text. Lists are joined by commas, of an object its name counts.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) => value.clone(),
        Value::Array(values) => {
            let texts: Vec<String> =
                values.iter().map(text).filter(|text| !text.is_empty()).collect();
            texts.join(", ")
        }
        Value::Object(map) => {
            let names = ["name", "value", "key", "title", "login"];
            names.iter().find_map(|name| map.get(*name)).map(text).unwrap_or_default()
        }
    }
}
