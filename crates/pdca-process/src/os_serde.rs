//! Serde for strings of the operating system: as text where they are UTF-8, otherwise as a list of bytes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize)]
#[serde(untagged)]
enum TextRef<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Bytes(Vec<u8>),
}

impl<'a> From<&'a OsStr> for TextRef<'a> {
    fn from(value: &'a OsStr) -> Self {
        match value.to_str() {
            Some(text) => Self::Text(text),
            None => Self::Bytes(value.as_bytes()),
        }
    }
}

impl From<Text> for OsString {
    fn from(value: Text) -> Self {
        match value {
            Text::Text(text) => text.into(),
            Text::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

pub(crate) mod os_list {
    use super::{Deserialize, Deserializer, OsString, Serializer, Text, TextRef};

    pub(crate) fn serialize<S: Serializer>(list: &[OsString], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|item| TextRef::from(item.as_os_str())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<OsString>, D::Error> {
        let list = Vec::<Text>::deserialize(from)?;
        Ok(list.into_iter().map(OsString::from).collect())
    }
}

/// A set, serialized as a list.
pub(crate) mod os_set {
    use std::collections::BTreeSet;

    use super::{Deserialize, Deserializer, OsString, Serializer, Text, TextRef};

    pub(crate) fn serialize<S: Serializer>(
        set: &BTreeSet<OsString>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(set.iter().map(|item| TextRef::from(item.as_os_str())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeSet<OsString>, D::Error> {
        let list = Vec::<Text>::deserialize(from)?;
        Ok(list.into_iter().map(OsString::from).collect())
    }
}

/// A map, serialized as a list of pairs because JSON keys must be text.
pub(crate) mod os_map {
    use std::collections::BTreeMap;

    use super::{Deserialize, Deserializer, OsString, Serializer, Text, TextRef};

    pub(crate) fn serialize<S: Serializer>(
        map: &BTreeMap<OsString, OsString>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map.iter().map(|(name, value)| {
            (TextRef::from(name.as_os_str()), TextRef::from(value.as_os_str()))
        }))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<OsString, OsString>, D::Error> {
        let list = Vec::<(Text, Text)>::deserialize(from)?;
        Ok(list.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
