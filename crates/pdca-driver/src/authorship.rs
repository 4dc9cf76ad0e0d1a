//! Author and date of the commits that the driver makes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A person as git writes one: `Name <address>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub name: String,
    pub email: String,
}

/// A text that is not `Name <address>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not of the form `Name <address>`")]
pub struct AuthorError {
    pub given: String,
}

impl Author {
    /// The author of commits if none is configured and git has no user.
    pub fn nobody() -> Self {
        Self { name: "pdca".to_owned(), email: "pdca@localhost".to_owned() }
    }
}

impl FromStr for Author {
    type Err = AuthorError;

    fn from_str(text: &str) -> Result<Self, AuthorError> {
        let bad = || AuthorError { given: text.to_owned() };
        let (name, rest) = text.trim().split_once('<').ok_or_else(bad)?;
        let email = rest.strip_suffix('>').ok_or_else(bad)?;
        let (name, email) = (name.trim(), email.trim());
        // Git cannot write these into a commit header.
        let unfit = |text: &str| text.contains(['<', '>', '\n', '\r', '\0']);
        if name.is_empty() || email.is_empty() || unfit(name) || unfit(email) {
            return Err(bad());
        }
        Ok(Self { name: name.to_owned(), email: email.to_owned() })
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <{}>", self.name, self.email)
    }
}

/// The source of commit dates.
#[derive(Debug, Clone, Copy)]
pub enum Dates {
    /// A clock, in seconds since 1970.
    Clock(fn() -> i64),
    /// One time for all commits, as `SOURCE_DATE_EPOCH` asks for.
    Fixed(i64),
    /// A clock that is so many seconds behind the driver's, on another machine.
    Behind(fn() -> i64, i64),
}

impl Dates {
    /// Returns the current time, in seconds since 1970.
    pub fn now(self) -> i64 {
        match self {
            Self::Clock(clock) => clock(),
            Self::Fixed(seconds) => seconds,
            Self::Behind(clock, seconds) => clock().saturating_add(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Author, Dates};

    #[test]
    fn h20_a_clock_that_is_wrong_on_a_host_dates_no_commit() {
        let wrong = || 1_000;
        // The driver's clock said 5,000 when the host's said 1,000.
        assert_eq!(Dates::Behind(wrong, 4_000).now(), 5_000);
        assert_eq!(Dates::Behind(wrong, -900).now(), 100);
    }

    #[test]
    fn an_author_is_a_name_and_an_address() {
        let author: Author = " Jane Doe  <jane@example.org> ".parse().unwrap();
        assert_eq!(author.to_string(), "Jane Doe <jane@example.org>");
        for text in ["Jane", "<jane@x>", "Jane <>", "Jane <a@b> x", "Ja\nne <a@b>", "J <a<b>"] {
            assert!(text.parse::<Author>().is_err(), "{text:?}");
        }
    }
}
