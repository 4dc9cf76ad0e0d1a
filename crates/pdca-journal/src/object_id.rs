//! The text form of object ids: strict parsing, and serde for a field, an optional field and a list.
//!
//! The type is git's own, so that records, the queue and the object store share one. Serde's derived form of it is not
//! the text of the formats, so a field says `#[serde(with = "pdca_journal::object_id")]`.

use serde::{Deserialize as _, Deserializer, Serializer};

pub use gix_hash::ObjectId;

/// The error of [`parse`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an object id: 40 or 64 digits 0-9 and a-f")]
pub struct ObjectIdError {
    /// The input, escaped and cut to 70 characters.
    pub given: String,
}

/// Parses 40 or 64 lower-case hexadecimal digits, never an abbreviation.
pub fn parse(text: &str) -> Result<ObjectId, ObjectIdError> {
    // git's own parser takes upper case too, which would give one object two names on disk.
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let id = is_lower.then(|| ObjectId::from_hex(text.as_bytes()).ok()).flatten();
    id.ok_or_else(|| {
        let given = text.chars().take(70).flat_map(char::escape_debug).collect();
        ObjectIdError { given }
    })
}

pub fn serialize<S: Serializer>(id: &ObjectId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(id)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectId, D::Error> {
    parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// Serde for a list of ids.
pub mod list {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::ObjectId;

    pub fn serialize<S: Serializer>(ids: &[ObjectId], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ids.iter().map(ToString::to_string))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ObjectId>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let ids = texts.iter().map(|text| super::parse(text));
        ids.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
    }
}

/// Serde for an optional id.
pub mod optional {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::ObjectId;

    pub fn serialize<S: Serializer>(id: &Option<ObjectId>, to: S) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => to.collect_str(id),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ObjectId>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| super::parse(&text)).transpose().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_lower_case_id_is_one() {
        for digits in [40, 64] {
            let text = "a1".repeat(digits / 2);
            assert_eq!(parse(&text).unwrap().to_string(), text);
        }
        for text in ["", "HEAD", &"a".repeat(39), &"A".repeat(40), &"g".repeat(40), &"é".repeat(20)]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
