//! Paths in a tree: bytes with a lossless text form.

use std::fmt;

use gix::bstr::{BStr, BString, ByteSlice as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A path in git: bytes separated by `/`.
///
/// The text form is the path itself if it is UTF-8 without control characters. Otherwise it is quoted, with
/// special bytes as `\xNN`, and parses back to the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(BString);

impl TreePath {
    pub fn new(bytes: impl Into<BString>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &BStr {
        self.0.as_bstr()
    }

    /// Returns the name after the last `/`.
    pub(crate) fn file_name(&self) -> &[u8] {
        self.0.rsplit_str("/").next().unwrap_or_default()
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_str() {
            // A path that begins with a quote is quoted itself, so that the first character decides how a text
            // is read.
            Ok(text) if !text.starts_with('"') && !text.contains(char::is_control) => {
                f.write_str(text)
            }
            Ok(_) | Err(_) => {
                f.write_str("\"")?;
                for byte in self.0.iter() {
                    match byte {
                        b'\\' | b'"' | 0..=31 | 127.. => write!(f, "\\x{byte:02x}")?,
                        plain => write!(f, "{}", char::from(*plain))?,
                    }
                }
                f.write_str("\"")
            }
        }
    }
}

impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        unquote(&text).map(Self::new).ok_or_else(|| D::Error::custom("not a path of a tree"))
    }
}

fn unquote(text: &str) -> Option<Vec<u8>> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Some(text.as_bytes().to_vec());
    };
    let mut bytes = Vec::new();
    let mut rest = quoted.strip_suffix('"')?.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'\\' {
            let digits = rest.strip_prefix(b"x")?.get(..2)?;
            bytes.push(u8::from_str_radix(digits.to_str().ok()?, 16).ok()?);
            rest = &rest[3..];
        } else {
            bytes.push(*first);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::TreePath;

    proptest! {
        #[test]
        fn any_bytes_read_back_from_their_text(bytes: Vec<u8>) {
            let path = TreePath::new(bytes);
            let text = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(serde_json::from_str::<TreePath>(&text).unwrap(), path);
        }
    }

    #[test]
    fn a_plain_path_is_its_own_text() {
        assert_eq!(TreePath::new("src/größe.rs").to_string(), "src/größe.rs");
        assert_eq!(TreePath::new("a\nb").to_string(), "\"a\\x0ab\"");
    }
}
