//! Ids of git objects.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The id of a commit or a tree: 40 or 64 lower-case hexadecimal digits, never abbreviated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId(Box<str>);

/// The error of parsing an [`ObjectId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an object id: 40 or 64 digits 0-9 and a-f")]
pub struct ObjectIdError {
    /// The input, escaped and cut to 70 characters.
    pub given: String,
}

impl ObjectId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectId {
    type Err = ObjectIdError;

    fn from_str(text: &str) -> Result<Self, ObjectIdError> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if matches!(text.len(), 40 | 64) && text.bytes().all(hex) {
            Ok(Self(text.into()))
        } else {
            let given = text.chars().take(70).flat_map(char::escape_debug).collect();
            Err(ObjectIdError { given })
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for ObjectId {
    type Error = ObjectIdError;

    fn try_from(text: String) -> Result<Self, ObjectIdError> {
        text.parse()
    }
}

impl From<ObjectId> for String {
    fn from(id: ObjectId) -> Self {
        id.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_lower_case_id_is_one() {
        for digits in [40, 64] {
            assert!("a1".repeat(digits / 2).parse::<ObjectId>().is_ok());
        }
        for text in ["", "HEAD", &"a".repeat(39), &"A".repeat(40), &"g".repeat(40), &"é".repeat(20)]
        {
            assert!(text.parse::<ObjectId>().is_err(), "{text}");
        }
    }
}
