//! Run ids.

use std::fmt;
use std::io::{self, Read as _};
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Crockford's alphabet: no I, L, O, U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_BITS: u32 = 48;
const RANDOM_BITS: u32 = 80;

/// The id of a run: a ULID of 48 bits of time and 80 random bits, as 26 upper-case characters.
///
/// Safe as a file name and as one component of a git ref. Ids sort by creation time, as far as the
/// wall clock was right.
///
/// ```
/// use pdca_journal::RunId;
/// let run = RunId::new("2026-11-16T08:00:00Z".parse()?, [7; 10]);
/// assert_eq!(run.to_string().parse::<RunId>()?, run);
/// assert_eq!(run.short(), &run.to_string()[18..]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(Box<str>);

/// The error of parsing a [`RunId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a run id: 26 of the characters 0-9 and A-Z without I, L, O and U")]
pub struct RunIdError {
    /// The input, escaped and cut to 40 characters.
    pub given: String,
}

impl RunId {
    pub const LEN: usize = 26;
    /// The length of [`RunId::short`].
    pub const SHORT_LEN: usize = 8;

    /// Makes an id from a time and random bytes.
    pub fn new(at: Timestamp, chance: [u8; 10]) -> Self {
        let millis = u128::try_from(at.as_millisecond()).unwrap_or(0) & ((1 << TIME_BITS) - 1);
        let chance = chance.iter().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
        let bits = millis << RANDOM_BITS | chance;
        let text = (0..Self::LEN).rev().map(|place| {
            let [.., digit] = (bits >> (5 * place) & 31).to_be_bytes();
            char::from(ALPHABET[usize::from(digit)])
        });
        Self(text.collect::<String>().into())
    }

    /// Makes an id from a time and random bytes of the kernel.
    pub fn generate(at: Timestamp) -> io::Result<Self> {
        let mut chance = [0; 10];
        fs_err::File::open("/dev/urandom")?.read_exact(&mut chance)?;
        Ok(Self::new(at, chance))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last 8 characters. They are random; the first ones are only the time.
    pub fn short(&self) -> &str {
        &self.0[Self::LEN - Self::SHORT_LEN..]
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        // 26 digits of 5 bits have 130 bits; the first digit may use only 3 of its 5.
        let legal = text.len() == Self::LEN
            && text.bytes().all(|byte| ALPHABET.contains(&byte))
            && text.as_bytes()[0] <= b'7';
        if legal {
            Ok(Self(text.into()))
        } else {
            let given = text.chars().take(40).flat_map(char::escape_debug).collect();
            Err(RunIdError { given })
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for RunId {
    type Error = RunIdError;

    fn try_from(text: String) -> Result<Self, RunIdError> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_known_ulid_of_a_known_time_is_made() {
        let at = Timestamp::from_millisecond(1_469_918_176_385).unwrap();
        assert_eq!(RunId::new(at, [0; 10]).as_str(), "01ARYZ6S410000000000000000");
        assert_eq!(RunId::new(at, [0xff; 10]).as_str(), "01ARYZ6S41ZZZZZZZZZZZZZZZZ");
    }

    #[test]
    fn two_generated_ids_of_one_time_differ_in_the_short_part() {
        let at = Timestamp::UNIX_EPOCH;
        let (one, two) = (RunId::generate(at).unwrap(), RunId::generate(at).unwrap());
        assert_ne!(one.short(), two.short());
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let zeros = "0".repeat(26);
        zeros.parse::<RunId>().unwrap();
        for text in [
            "",
            "0",
            &zeros[1..],
            &format!("{zeros}0"),
            &zeros.replacen('0', "8", 1),
            &zeros.replacen("00", "0a", 1),
            &zeros.replacen("00", "0U", 1),
            &zeros.replacen("00", "..", 1),
            &zeros.replacen("00", "/.", 1),
            &zeros.replacen("00", "é", 1),
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn ids_sort_by_their_time_and_read_back(
            early in 0i64..1 << 40, later in 1i64..1 << 40, chance in any::<[u8; 10]>(),
        ) {
            let id = |millis| RunId::new(Timestamp::from_millisecond(millis).unwrap(), chance);
            let (one, two) = (id(early), id(early + later));
            prop_assert!(one < two);
            prop_assert_eq!(one.to_string().parse::<RunId>().unwrap(), one);
        }
    }
}
