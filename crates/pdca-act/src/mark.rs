//! The mark of a cycle: which end of a bundle it is.
//!
//! A bundle can end more than once: it is accepted, sent back and accepted again, or put away and done again under its
//! id. Each end is a cycle of its own, and a review considers each once.

use pdca_state::{Artifact, Bundle, LoadError, Summary, sha256_hex};

/// The length of a mark, in hexadecimal digits.
const LEN: usize = 10;

/// A short digest of the end of a cycle: its sign-off and its seal. Landing and putting a bundle away leave it as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CycleMark(String);

impl CycleMark {
    /// Returns the mark of a bundle's present end. `iterations` is the number of its archived attempts.
    pub(crate) fn of(
        bundle: &Bundle,
        summary: &Summary,
        iterations: u32,
    ) -> Result<Self, LoadError> {
        let seal = bundle.read(Artifact::Seal)?.unwrap_or_default();
        let (outcome, by, date) = summary.signoff().map_or_else(Default::default, |signed| {
            (signed.outcome.as_str(), signed.by.clone(), signed.date.clone())
        });
        let seal = sha256_hex(&seal);
        let text = format!("{}\0{iterations}\0{outcome}\0{by}\0{date}\0{seal}", bundle.id());
        Ok(Self(format!("{:.LEN$}", sha256_hex(text.as_bytes()))))
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        let is_mark = word.len() == LEN && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_mark.then(|| Self(word.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
