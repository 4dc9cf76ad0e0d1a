//! `notes.json`, of which only the field `resolved` is read.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// Returns true if the field `resolved` is an *object*; `true`, a date or a text do not count.
///
/// Returns an error only if the notes are not JSON.
pub(crate) fn is_resolved(notes: &[u8]) -> Result<bool, serde_json::Error> {
    // serde would also take an array for the struct, field by field.
    let is_object = notes.trim_ascii_start().starts_with(b"{");
    match serde_json::from_slice::<Notes>(notes) {
        Ok(notes) => Ok(is_object && notes.resolved.is_some()),
        Err(error) if error.is_data() => Ok(false),
        Err(error) => Err(error),
    }
}

#[derive(Deserialize)]
struct Notes {
    resolved: Option<Object>,
}

/// Any JSON object; its content is skipped without being stored.
struct Object;

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Object)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::is_resolved;

    #[test]
    fn only_an_object_resolves() {
        for (notes, resolved) in [
            (r#"{"resolved": {}}"#, true),
            (r#" {"body": [1, {"resolved": 2}], "resolved": {"by": "PR 7"}, "n": 1} "#, true),
            (r#"{"resolved": true}"#, false),
            (r#"{"resolved": "yes"}"#, false),
            (r#"{"resolved": []}"#, false),
            (r#"{"resolved": null}"#, false),
            (r#"{"body": {"resolved": {}}}"#, false),
            (r#"[{"resolved": {}}]"#, false),
            (r"[{}]", false),
            ("3", false),
            ("{}", false),
        ] {
            assert_eq!(is_resolved(notes.as_bytes()).unwrap(), resolved, "{notes}");
        }
    }

    #[test]
    fn a_torn_file_resolves_nothing() {
        assert!(is_resolved(br#"{"resolved": {"by":"#).is_err());
        assert!(is_resolved(b"").is_err());
    }

    #[test]
    fn a_hundred_thousand_open_brackets_are_an_error_and_no_stack_overflow() {
        assert!(is_resolved(format!(r#"{{"x": {}"#, "[".repeat(100_000)).as_bytes()).is_err());
        assert!(
            is_resolved(
                format!(r#"{{"resolved": {{"a": {}"#, "{\"a\":".repeat(100_000)).as_bytes()
            )
            .is_err()
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), cut in any::<prop::sample::Index>()) {
            drop(is_resolved(&bytes));
            let whole = br#"{"title": "x", "resolved": {"by": [1, null, {"a": "b"}]}}"#;
            let cut = cut.index(whole.len());
            prop_assert!(!is_resolved(&whole[..cut]).unwrap_or(false), "cut at {}", cut);
        }
    }
}
