//! `.act-reviewed`: the bundles that a review has considered.
//!
//! One directory name per line. Older versions wrote a JSON object with a list `reviewed`, which is read and
//! kept in that form; still older ones wrote only a count, which names no bundle and so covers none.

use std::collections::BTreeSet;

use pdca_state::BundleId;
use serde_json::{Map, Value};

/// The reviewed bundles, and the form of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewedCycles {
    ids: BTreeSet<BundleId>,
    form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Lines(Vec<u8>),
    Object(Map<String, Value>),
}

impl Default for Form {
    fn default() -> Self {
        Form::Lines(Vec::new())
    }
}

impl ReviewedCycles {
    /// Parses the names. Any bytes are accepted; lines that are no directory name are ignored.
    pub fn parse(bytes: &[u8]) -> Self {
        if let Ok(Value::Object(object)) = serde_json::from_slice(bytes) {
            let names = object.get("reviewed").and_then(Value::as_array);
            let names = names.into_iter().flatten().filter_map(Value::as_str);
            return Self {
                ids: names.filter_map(BundleId::from_dir_name).collect(),
                form: Form::Object(object),
            };
        }
        let text = String::from_utf8_lossy(bytes);
        Self {
            ids: text.lines().filter_map(|line| BundleId::from_dir_name(line.trim())).collect(),
            form: Form::Lines(bytes.to_vec()),
        }
    }

    pub fn ids(&self) -> &BTreeSet<BundleId> {
        &self.ids
    }

    /// Returns the file with these bundles added, in its existing form.
    pub fn with<'a>(&self, ids: impl IntoIterator<Item = &'a BundleId>, date: &str) -> Vec<u8> {
        let fresh: BTreeSet<&BundleId> =
            ids.into_iter().filter(|id| !self.ids.contains(id)).collect();
        match &self.form {
            Form::Lines(bytes) => {
                let mut bytes = bytes.clone();
                if !bytes.is_empty() && !bytes.ends_with(b"\n") {
                    bytes.push(b'\n');
                }
                for id in fresh {
                    bytes.extend_from_slice(id.dir_name().as_bytes());
                    bytes.push(b'\n');
                }
                bytes
            }
            Form::Object(object) => {
                let mut object = object.clone();
                let mut names: Vec<String> =
                    self.ids.iter().chain(fresh).map(BundleId::dir_name).collect();
                names.sort_unstable();
                object.insert("count".to_owned(), names.len().into());
                object.insert("reviewed".to_owned(), names.into());
                object.insert("last_review_date".to_owned(), date.into());
                pretty(&Value::Object(object))
            }
        }
    }
}

/// Formats JSON for people, with a final newline.
pub(crate) fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(bytes: &[u8]) -> Vec<String> {
        ReviewedCycles::parse(bytes).ids().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_read_from_lines_and_from_the_object_of_older_instances() {
        assert_eq!(ids(b"issue_36\n# a note\n issue_PROJ-1 \n../x\n"), ["36", "PROJ-1"]);
        assert_eq!(ids(br#"{"count": 2, "reviewed": ["issue_1", "issue_2", 3]}"#), ["1", "2"]);
        assert_eq!(ids(b"14"), [""; 0], "a count names no bundle");
        assert_eq!(ids(b""), [""; 0]);
    }

    #[test]
    fn what_is_written_keeps_the_form_and_everything_in_it() {
        let id: BundleId = "7".parse().unwrap();
        let lines = ReviewedCycles::parse(b"issue_36\n# caf\xe9");
        assert_eq!(lines.with([&id], "2026-11-16"), b"issue_36\n# caf\xe9\nissue_7\n");
        let object =
            ReviewedCycles::parse(br#"{"count": 1, "reviewed": ["issue_1"], "mine": true}"#);
        let written: Value = serde_json::from_slice(&object.with([&id], "2026-11-16")).unwrap();
        assert_eq!(
            written,
            serde_json::json!({"count": 2, "reviewed": ["issue_1", "issue_7"], "mine": true, "last_review_date": "2026-11-16"})
        );
    }

    proptest! {
        #[test]
        fn whatever_is_there_what_is_added_is_read_again(bytes in any::<Vec<u8>>(), id in "[a-z0-9]{1,8}") {
            let id: BundleId = id.parse().unwrap();
            let before = ReviewedCycles::parse(&bytes);
            let after = ReviewedCycles::parse(&before.with([&id], "d"));
            prop_assert!(after.ids().contains(&id));
            prop_assert!(before.ids().is_subset(after.ids()));
        }
    }
}
