//! Amounts of money, exact to the millionth of a dollar.
//!
//! ```
//! use pdca_state::Money;
//!
//! let sum: Money = ["0.1", "0.2"].iter().map(|text| text.parse::<Money>().unwrap()).sum();
//! assert_eq!((sum.micros(), sum.to_string()), (300_000, "$0.30".to_owned()));
//! ```

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MICROS: u64 = 1_000_000;
/// The number of digits after the point that count.
const DIGITS: usize = 6;

/// An amount in millionths of a US dollar.
///
/// Amounts are added as integers, so that a sum does not depend on its order. In JSON it is the integer.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Money(u64);

impl Money {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// The amount of so many millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The number of millionths of a dollar.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The amount that a number in JSON or TOML was written as, rounded to the millionth; `None` for one that is no
    /// amount.
    pub fn from_number(number: f64) -> Option<Self> {
        // The shortest text that gives the same number back is what was written, so 0.1 is exactly a tenth.
        if number.is_finite() { format!("{number}").parse().ok() } else { None }
    }

    /// The sum; the largest amount there is if that is too small.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; nothing if more is taken away than there is.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::plus)
    }
}

/// A text that is no amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no amount of dollars, such as 2.50")]
pub struct MoneyError {
    /// The text.
    pub given: String,
}

impl FromStr for Money {
    type Err = MoneyError;

    /// Reads `2`, `2.5`, `$0.000001`. Further digits are rounded, half of a millionth up.
    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let wrong = || MoneyError { given: text.to_owned() };
        let digits = text.strip_prefix('$').unwrap_or(text);
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let are_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(whole) || !are_digits(part) {
            return Err(wrong());
        }
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(MICROS));
        let kept = &part[..part.len().min(DIGITS)];
        let micros = format!("{kept:0<DIGITS$}").parse::<u64>().map_err(|_| wrong())?;
        let up = u64::from(part.as_bytes().get(DIGITS).is_some_and(|digit| *digit >= b'5'));
        whole.and_then(|whole| whole.checked_add(micros + up)).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Money {
    /// At least cents, and as many digits as are needed: `$2.50`, `$0.0421`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.0 % MICROS);
        let digits = part.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", self.0 / MICROS, &part[..digits])
    }
}

/// An amount as configuration files write it: `2`, `2.50` or `"2.50"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dollars(pub Money);

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.to_string().trim_start_matches('$'))
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Amount;
        impl Visitor<'_> for Amount {
            type Value = Dollars;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount of dollars, such as 2.50")
            }

            fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Dollars, E> {
                self.visit_str(&whole.to_string())
            }

            fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Dollars, E> {
                self.visit_str(&whole.to_string())
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Dollars, E> {
                let amount = Money::from_number(number);
                amount
                    .map(Dollars)
                    .ok_or_else(|| E::custom(MoneyError { given: number.to_string() }))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Dollars, E> {
                text.parse().map(Dollars).map_err(E::custom)
            }
        }
        from.deserialize_any(Amount)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_amount_is_read_exactly_and_rounded_at_the_millionth() {
        for (text, micros) in [
            ("0", 0),
            ("2", 2_000_000),
            ("2.5", 2_500_000),
            ("$0.02", 20_000),
            ("0.000001", 1),
            ("0.0000004", 0),
            ("0.0000005", 1),
            ("0.9999999", 1_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Money::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_amount_is_refused() {
        for text in ["", "$", ".5", "5.", "-1", "1e3", "1,5", "1.-5", "nan", "99999999999999"] {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
        for number in [-0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(Money::from_number(number), None, "{number}");
        }
    }

    #[test]
    fn a_number_in_json_counts_as_it_was_written() {
        let number = |text: &str| serde_json::from_str::<f64>(text).unwrap();
        for (text, micros) in
            [("0.1", 100_000), ("0.0421", 42_100), ("1e-3", 1000), ("0.30000000000000004", 300_000)]
        {
            assert_eq!(Money::from_number(number(text)), Some(Money(micros)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(micros in 0..=u64::MAX / 2) {
            let amount = Money::from_micros(micros);
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
        }

        #[test]
        fn a_sum_does_not_depend_on_its_order(mut amounts: Vec<u32>) {
            let sum = |amounts: &[u32]| {
                amounts.iter().map(|micros| Money::from_micros((*micros).into())).sum::<Money>()
            };
            let forward = sum(&amounts);
            amounts.reverse();
            prop_assert_eq!(sum(&amounts), forward);
        }
    }
}
