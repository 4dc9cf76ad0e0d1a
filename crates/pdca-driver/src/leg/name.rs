//! Names of legs.

use std::fmt;
use std::str::FromStr;

use pdca_journal::Generation;
use serde::{Deserialize, Serialize};

/// Names one attempt at one unit of work of a run: `pdca-<run>-<unit>-g<generation>`.
///
/// A driver that takes over another's run finds a leg by its name alone, so the name is derived and never stored.
/// A run's id has no hyphen; the unit is a bundle's id, or `tree+` and the first digits of a tree's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct LegName {
    run: String,
    unit: String,
    generation: Generation,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not of the form `pdca-<run>-<unit>-g<generation>`")]
pub struct LegNameError {
    pub given: String,
}

impl LegName {
    /// Returns the name, or an error if its text could not be parsed back into the same parts.
    pub fn new(run: &str, unit: &str, generation: Generation) -> Result<Self, LegNameError> {
        let name = Self { run: run.to_owned(), unit: unit.to_owned(), generation };
        let is_word = |text: &str| !text.is_empty() && !text.contains(is_unfit);
        // The name is a directory where the leg runs and is split at hyphens; only the unit may contain
        // some, because the run ends at the first and the generation begins at the last `-g`.
        if is_word(run) && is_word(unit) && !run.contains('-') {
            Ok(name)
        } else {
            Err(LegNameError { given: name.to_string() })
        }
    }

    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the bundle's id, or `tree+` and the first digits of a tree's id.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Returns the number of the attempt within the run.
    pub fn generation(&self) -> Generation {
        self.generation
    }
}

fn is_unfit(c: char) -> bool {
    c.is_whitespace() || c.is_control() || c == '/'
}

impl fmt::Display for LegName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pdca-{}-{}-g{}", self.run, self.unit, self.generation)
    }
}

impl FromStr for LegName {
    type Err = LegNameError;

    fn from_str(text: &str) -> Result<Self, LegNameError> {
        let parts = || {
            let (run, rest) = text.strip_prefix("pdca-")?.split_once('-')?;
            let (unit, number) = rest.rsplit_once("-g")?;
            // One spelling for one name: no sign and no leading zero.
            let generation = Generation::new(number.parse().ok()?)?;
            let name = Self::new(run, unit, generation).ok()?;
            (name.to_string() == text).then_some(name)
        };
        parts().ok_or_else(|| LegNameError { given: text.to_owned() })
    }
}

impl TryFrom<String> for LegName {
    type Error = LegNameError;

    fn try_from(text: String) -> Result<Self, LegNameError> {
        text.parse()
    }
}

impl From<LegName> for String {
    fn from(name: LegName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_cannot_be_read_back_is_refused() {
        for (run, unit) in
            [("", "7"), ("r", ""), ("a-b", "7"), ("r", "a b"), ("r", "a/b"), ("r", "\n")]
        {
            assert!(LegName::new(run, unit, Generation::FIRST).is_err(), "{run:?} {unit:?}");
        }
        for text in [
            "",
            "pdca",
            "pdca-r-7",
            "pdca-r-7-g",
            "pdca-r-7-g0",
            "pdca-r-7-g01",
            "pdca-r-7-g+1",
            "pdca-r--g1",
        ] {
            assert!(text.parse::<LegName>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_read_back_as_it_was(run in "[A-Z0-9a-z]{1,26}", unit in "[A-Za-z0-9+._-]{1,20}(-g[0-9]{1,3})?", number in 1_u32..) {
            let name = LegName::new(&run, &unit, Generation::new(number).unwrap()).unwrap();
            prop_assert_eq!(name.to_string().parse::<LegName>(), Ok(name));
        }

        #[test]
        fn any_text_is_refused_or_is_its_own_name(text in "(pdca-)?[a-z0-9-]{0,12}(-g)?[0-9+]{0,4}") {
            if let Ok(name) = text.parse::<LegName>() {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }
}
