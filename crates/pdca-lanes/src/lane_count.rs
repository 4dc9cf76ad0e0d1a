//! The configured number of lanes: a number, or as many as the machine can carry.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::de::{Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number of lanes as a person writes it, in a file, in a variable or behind a flag.
///
/// There is no upper limit: the caller reduces it to what the machine can carry.
///
/// ```
/// use pdca_lanes::LaneCount;
///
/// assert_eq!("4".parse(), Ok(LaneCount::Number(4)));
/// assert_eq!("auto".parse(), Ok(LaneCount::Auto));
/// assert!("-1".parse::<LaneCount>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneCount {
    /// This many lanes; 0 means 1.
    Number(u32),
    /// As many as processors, memory, disk and ports allow.
    Auto,
}

/// A text that is not a number of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a whole number that is not negative, or `auto`, is needed")]
pub struct LaneCountError;

const AUTO: &str = "auto";

impl LaneCount {
    /// Returns the number, at least 1; `None` for `auto`.
    pub fn number(self) -> Option<NonZeroU32> {
        match self {
            Self::Number(number) => Some(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)),
            Self::Auto => None,
        }
    }
}

impl Default for LaneCount {
    fn default() -> Self {
        Self::Number(1)
    }
}

impl From<u64> for LaneCount {
    /// Caps the number at 32 bits, which is more than any machine can carry.
    fn from(number: u64) -> Self {
        Self::Number(u32::try_from(number).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for LaneCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Auto => f.write_str(AUTO),
        }
    }
}

impl FromStr for LaneCount {
    type Err = LaneCountError;

    fn from_str(text: &str) -> Result<Self, LaneCountError> {
        if text == AUTO {
            return Ok(Self::Auto);
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(LaneCountError);
        }
        // A string of digits fails to parse only if it is too long.
        Ok(Self::from(text.parse::<u64>().unwrap_or(u64::MAX)))
    }
}

impl Serialize for LaneCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u32(*number),
            Self::Auto => serializer.serialize_str(AUTO),
        }
    }
}

impl<'de> Deserialize<'de> for LaneCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrAuto)
    }
}

/// Deserializes by hand, because an untagged enum would not name the expected values in its error.
struct NumberOrAuto;

impl Visitor<'_> for NumberOrAuto {
    type Value = LaneCount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number that is not negative or \"auto\"")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<LaneCount, E> {
        Ok(LaneCount::from(number))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<LaneCount, E> {
        let invalid = |_| E::invalid_value(Unexpected::Signed(number), &self);
        u64::try_from(number).map(LaneCount::from).map_err(invalid)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LaneCount, E> {
        if text == AUTO {
            Ok(LaneCount::Auto)
        } else {
            Err(E::invalid_type(Unexpected::Str(text), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_number_without_a_sign_or_auto() {
        let table: &[(&str, Option<LaneCount>)] = &[
            ("0", Some(LaneCount::Number(0))),
            ("1", Some(LaneCount::Number(1))),
            ("257", Some(LaneCount::Number(257))),
            ("4294967296", Some(LaneCount::Number(u32::MAX))),
            ("99999999999999999999999", Some(LaneCount::Number(u32::MAX))),
            ("auto", Some(LaneCount::Auto)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            (" 2", None),
            ("Auto", None),
            ("many", None),
        ];
        for (text, wanted) in table {
            assert_eq!(text.parse::<LaneCount>().ok(), *wanted, "{text:?}");
        }
    }

    #[test]
    fn a_file_writes_a_number_or_auto_and_gets_the_same_back() {
        for text in ["0", "7", "\"auto\""] {
            let count: LaneCount = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&count).unwrap(), text);
        }
        for text in ["-1", "1.5", "\"2\"", "\"two\"", "true", "[]", "null"] {
            let error = serde_json::from_str::<LaneCount>(text).unwrap_err().to_string();
            assert!(error.contains("that is not negative or \"auto\""), "{text}: {error}");
        }
    }

    #[test]
    fn zero_stands_for_one_and_auto_for_no_number() {
        assert_eq!(LaneCount::Number(0).number(), NonZeroU32::new(1));
        assert_eq!(LaneCount::Number(300).number(), NonZeroU32::new(300));
        assert_eq!(LaneCount::Auto.number(), None);
        assert_eq!(LaneCount::default().number(), NonZeroU32::new(1));
    }
}
