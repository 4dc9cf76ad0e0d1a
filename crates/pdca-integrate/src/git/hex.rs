//! Serde for object ids as hexadecimal text.

use gix::ObjectId;
use serde::{Deserialize as _, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(id: &ObjectId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(id)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectId, D::Error> {
    parse(&String::deserialize(from)?)
}

fn parse<E: serde::de::Error>(text: &str) -> Result<ObjectId, E> {
    ObjectId::from_hex(text.as_bytes()).map_err(|_| E::custom("not the id of an object"))
}

/// Serde for a list of ids.
pub(crate) mod list {
    use super::{Deserializer, ObjectId, Serializer, parse};
    use serde::Deserialize as _;

    pub(crate) fn serialize<S: Serializer>(ids: &[ObjectId], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ids.iter().map(ToString::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<ObjectId>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| parse(text)).collect()
    }
}

/// Serde for an optional id.
pub(crate) mod optional {
    use super::{Deserializer, ObjectId, Serializer, parse};
    use serde::Deserialize as _;

    #[expect(clippy::ref_option, reason = "serde hands a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(
        id: &Option<ObjectId>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => to.collect_str(id),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<ObjectId>, D::Error> {
        Option::<String>::deserialize(from)?.map(|text| parse(&text)).transpose()
    }
}
