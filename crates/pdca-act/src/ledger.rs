//! `act-ledger.json`: the state of the process at each review.
//!
//! A JSON list. Each review is an object with its heading and the digest of every file of the baseline. Resolved
//! signals are objects with a `status`; so are the signals of older versions, which are read and kept unchanged.

use pdca_state::BundleId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::baseline::Baseline;
use crate::log::Signal;
use crate::mark::CycleMark;
use crate::reviewed::pretty;
use crate::wording::normalise;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    items: Vec<Value>,
}

/// A review in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerReview {
    /// The heading of its log entry, which links the two.
    pub review: String,
    pub date: String,
    /// The considered cycles.
    pub cycles: Vec<BundleId>,
    /// The process at that time.
    pub baseline: Baseline,
    /// True if the baseline was taken later, by a command that completed an interrupted review.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The mark of each cycle, by which two ends of one bundle are told apart; empty in reviews of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<CycleMark>,
}

/// A person's word that a watched signal needs no more watching.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resolution {
    /// The signal as the log states it.
    pub raw: String,
    /// The day from which on a recurrence counts as one.
    #[serde(rename = "resolved_date")]
    pub date: String,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The `status` of a resolution.
const RESOLVED: &str = "resolved";

impl Resolution {
    /// Returns whether it is about this signal, numbers and paths aside.
    pub fn is_about(&self, signal: &Signal) -> bool {
        normalise(&self.raw) == normalise(&signal.text)
    }

    fn item(&self) -> Result<Value, serde_json::Error> {
        let mut item = serde_json::to_value(self)?;
        item["signal"] = normalise(&self.raw).into();
        item["status"] = RESOLVED.into();
        Ok(item)
    }
}

/// The reasons why a file is not a valid ledger.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("not JSON (line {line}, column {column})")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        source: serde_json::Error,
    },
    /// It is JSON, but not a list.
    #[error("not a list")]
    NotAList,
}

impl Ledger {
    /// Parses the list; an empty file is an empty list.
    pub fn parse(bytes: &[u8]) -> Result<Self, LedgerError> {
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let value = serde_json::from_slice(bytes).map_err(|source| LedgerError::Malformed {
            line: source.line(),
            column: source.column(),
            source,
        })?;
        match value {
            Value::Array(items) => Ok(Self { items }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => Err(LedgerError::NotAList),
        }
    }

    /// Returns the reviews in the order of recording.
    pub fn reviews(&self) -> Vec<LedgerReview> {
        let review = |item: &Value| LedgerReview::deserialize(item).ok();
        self.items.iter().filter_map(review).collect()
    }

    /// Returns true if there is a review with this heading.
    pub fn has(&self, heading: &str) -> bool {
        let is_it = |item: &Value| item.get("review").and_then(Value::as_str) == Some(heading);
        self.items.iter().any(is_it)
    }

    /// Returns the signals that an older version marked as applied.
    pub(crate) fn applied(&self) -> Vec<Signal> {
        let signal = |item: &Value| {
            let text = |key: &str| item.get(key).and_then(Value::as_str);
            let key = text("signal").filter(|_| text("status") == Some("applied"))?;
            let since = text("applied_date").unwrap_or_default();
            Some(Signal::applied(text("raw").unwrap_or(key), key, since))
        };
        self.items.iter().filter_map(signal).collect()
    }

    /// Returns the resolved signals in the order of recording.
    pub fn resolutions(&self) -> Vec<Resolution> {
        let is_one = |item: &&Value| item.get("status").and_then(Value::as_str) == Some(RESOLVED);
        let read = |item: &Value| Resolution::deserialize(item).ok();
        self.items.iter().filter(is_one).filter_map(read).collect()
    }

    /// Returns the file with these resolutions added.
    pub fn with_resolved(&self, resolved: &[Resolution]) -> Result<Vec<u8>, serde_json::Error> {
        let mut items = self.items.clone();
        for resolution in resolved {
            items.push(resolution.item()?);
        }
        Ok(pretty(&Value::Array(items)))
    }

    /// Returns the file with these reviews added.
    pub fn with(&self, reviews: &[LedgerReview]) -> Result<Vec<u8>, serde_json::Error> {
        let mut items = self.items.clone();
        for review in reviews {
            items.push(serde_json::to_value(review)?);
        }
        Ok(pretty(&Value::Array(items)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn review() -> LedgerReview {
        LedgerReview {
            review: "# Act review — 2026-11-16 — cycles considered: 36".to_owned(),
            date: "2026-11-16".to_owned(),
            cycles: vec!["36".parse().unwrap()],
            baseline: [("pdca.toml [gates]".to_owned(), "ab".to_owned())].into_iter().collect(),
            late: false,
            marks: Vec::new(),
        }
    }

    #[test]
    fn a_review_is_read_again_and_what_an_older_instance_kept_stays() {
        let old = br#"[{"signal": "the t3 gate is red", "raw": "The T3 gate is red", "status": "applied", "applied_date": "2026-01-02"},
                       {"signal": "open one", "status": "open"}, 7]"#;
        let ledger = Ledger::parse(old).unwrap();
        assert!(ledger.reviews().is_empty() && !ledger.has(&review().review));
        let signals: Vec<String> = ledger.applied().into_iter().map(|signal| signal.text).collect();
        assert_eq!(signals, ["The T3 gate is red"]);
        let again = Ledger::parse(&ledger.with(&[review()]).unwrap()).unwrap();
        assert_eq!(again.reviews(), [review()]);
        assert!(again.has(&review().review));
        assert_eq!(again.items[..3], ledger.items[..]);
    }

    #[test]
    fn a_resolution_is_read_again_beside_reviews() {
        let ledger = Ledger::parse(&Ledger::default().with(&[review()]).unwrap()).unwrap();
        let resolution = Resolution {
            raw: "T3 took 40 s in issue_7".to_owned(),
            date: "2026-11-17".to_owned(),
            by: "Ada".to_owned(),
            note: None,
        };
        let ledger =
            Ledger::parse(&ledger.with_resolved(std::slice::from_ref(&resolution)).unwrap())
                .unwrap();
        assert_eq!(ledger.resolutions(), std::slice::from_ref(&resolution));
        assert_eq!((ledger.reviews().len(), ledger.applied().len()), (1, 0));
        let said = Signal::applied("t3 took 55 s in issue_9", "x", "");
        assert!(resolution.is_about(&said));
        assert!(!resolution.is_about(&Signal::applied("T1 took 55 s", "x", "")));
    }

    #[test]
    fn a_file_that_is_no_ledger_says_so() {
        assert!(Ledger::parse(b" \n").unwrap().reviews().is_empty());
        assert!(matches!(Ledger::parse(b"{}"), Err(LedgerError::NotAList)));
        assert!(matches!(Ledger::parse(b"[{"), Err(LedgerError::Malformed { line: 1, .. })));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(ledger) = Ledger::parse(&bytes) {
                prop_assert!(ledger.reviews().len() <= bytes.len());
            }
        }

        #[test]
        fn arbitrary_json_never_panics(text in "\\[(\\{\"(review|signal|baseline|status)\": (\"applied\"|\\{\\}|7|\\[\\])\\},?){0,4}\\]") {
            if let Ok(ledger) = Ledger::parse(text.as_bytes()) {
                prop_assert!(ledger.applied().len() + ledger.reviews().len() <= ledger.items.len());
            }
        }
    }
}
