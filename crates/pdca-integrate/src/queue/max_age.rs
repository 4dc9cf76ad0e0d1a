//! The maximum age of a verdict: a number and a unit, such as `7d`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The units with their seconds, longest first.
const UNITS: [(char, u64); 5] =
    [('w', 7 * 24 * 3600), ('d', 24 * 3600), ('h', 3600), ('m', 60), ('s', 1)];
/// The maximum, in seconds; anything longer is taken for a typing mistake.
const LONGEST: u64 = 100 * 366 * 24 * 3600;

/// A span of time as written in the configuration.
///
/// ```
/// use pdca_integrate::MaxAge;
///
/// assert_eq!("7d".parse::<MaxAge>().unwrap().as_secs(), 604_800);
/// assert!("7".parse::<MaxAge>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxAge {
    secs: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a positive whole number with a unit (s, m, h, d or w), such as `7d`")]
pub struct MaxAgeError;

impl MaxAge {
    pub fn as_secs(self) -> u64 {
        self.secs
    }

    /// Returns the earliest time, in seconds since 1970, that is not too old at `now`.
    pub(crate) fn before(self, now: i64) -> i64 {
        now.saturating_sub_unsigned(self.secs)
    }
}

impl FromStr for MaxAge {
    type Err = MaxAgeError;

    fn from_str(text: &str) -> Result<Self, MaxAgeError> {
        let unit = text.chars().last().ok_or(MaxAgeError)?;
        let (_, secs) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(MaxAgeError)?;
        let number = &text[..text.len() - 1];
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(MaxAgeError);
        }
        let number: u64 = number.parse().map_err(|_| MaxAgeError)?;
        let secs = number.checked_mul(secs).filter(|secs| (1..=LONGEST).contains(secs));
        Ok(Self { secs: secs.ok_or(MaxAgeError)? })
    }
}

impl fmt::Display for MaxAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, secs): &(char, u64)| self.secs.is_multiple_of(*secs);
        let (unit, secs) = UNITS.into_iter().find(fits).unwrap_or(('s', 1));
        write!(f, "{}{unit}", self.secs / secs)
    }
}

impl Serialize for MaxAge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MaxAge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_as_it_is_written() {
        for (text, secs) in
            [("1s", 1), ("90m", 5400), ("24h", 86_400), ("7d", 604_800), ("2w", 1_209_600)]
        {
            let age: MaxAge = text.parse().unwrap();
            assert_eq!(age.as_secs(), secs, "{text}");
            assert_eq!(age.to_string().parse(), Ok(age), "{text}");
        }
        let said: MaxAge = "24h".parse().unwrap();
        assert_eq!(said.to_string(), "1d");
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in ["", "d", "7", "0d", "-7d", "+7d", "7 d", "7D", "1.5h", "7days", "7ä"] {
            assert_eq!(text.parse::<MaxAge>(), Err(MaxAgeError), "{text}");
        }
        assert!(format!("{}w", u64::MAX).parse::<MaxAge>().is_err());
        assert!("100000w".parse::<MaxAge>().is_err());
    }
}
