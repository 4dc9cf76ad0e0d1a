//! The mark of a cycle: which end of a bundle it is.
//!
//! A bundle can end more than once: it is accepted, sent back and accepted again, or put away and done again under its
//! id. Each end is a cycle of its own, and a review considers each once.

use pdca_state::{Artifact, Bundle, LoadError, Summary, sha256_hex};
use serde::{Deserialize, Serialize};

/// The length of a mark, in hexadecimal digits.
const LEN: usize = 10;

/// A short digest of the end of a cycle: its sign-off and its seal. Landing and putting a bundle away leave it as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
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
}
