//! Bundle ids, and the directory names derived from them.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const DIR_PREFIX: &str = "issue_";

/// The id of a bundle: `36`, `PROJ-12`.
///
/// Safe as a file name, as one component of a git ref and as the value of an environment
/// variable: ASCII letters, digits and `-_.+`, no leading `-`, `.` or `+`, no `..`, no end in
/// `.` or `.lock`, at most [`BundleId::MAX_LEN`] bytes. Ids sort as people count: 2 before 11, `PROJ-9` before `PROJ-10`.
///
/// ```
/// use pdca_state::BundleId;
/// let id: BundleId = "#36".parse()?;
/// assert_eq!((id.to_string(), id.dir_name()), ("36".into(), "issue_36".into()));
/// assert!("../x".parse::<BundleId>().is_err());
/// # Ok::<(), pdca_state::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct BundleId(Box<str>);

impl BundleId {
    /// The longest legal id, in bytes.
    pub const MAX_LEN: usize = 100;

    /// The name of the bundle's directory: `issue_36`.
    pub fn dir_name(&self) -> String {
        format!("{DIR_PREFIX}{}", self.0)
    }

    /// Returns the id that a directory name stands for, or `None` if it is not `issue_<id>`.
    pub fn from_dir_name(name: &str) -> Option<Self> {
        Self::parse_dir_name(name).ok()
    }

    /// Like [`BundleId::from_dir_name`], but says what is wrong with the name.
    pub(crate) fn parse_dir_name(name: &str) -> Result<Self, IdError> {
        let bare =
            name.strip_prefix(DIR_PREFIX).ok_or_else(|| IdError::new(name, IdFlaw::NoPrefix))?;
        Self::bare(bare).map_err(|error| IdError::new(name, error.flaw))
    }

    /// The bare id, without `#` or `issue_`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true for every name with the `issue_` prefix, even if the id after it is not legal.
    pub(crate) fn claims_dir_name(name: &[u8]) -> bool {
        name.starts_with(DIR_PREFIX.as_bytes())
    }

    fn bare(text: &str) -> Result<Self, IdError> {
        match flaw(text) {
            None => Ok(Self(text.into())),
            Some(flaw) => Err(IdError::new(text, flaw)),
        }
    }
}

impl Ord for BundleId {
    /// Compares runs of digits as numbers and other letters as they are; of two ids that are equal so far, such as `7` and
    /// `07`, the bytes decide.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut here, mut there) = (self.0.as_bytes(), other.0.as_bytes());
        loop {
            let (number, left) = split_number(here);
            let (other_number, other_left) = split_number(there);
            if !number.is_empty() && !other_number.is_empty() {
                match compare_numbers(number, other_number) {
                    Ordering::Equal => (here, there) = (left, other_left),
                    different @ (Ordering::Less | Ordering::Greater) => return different,
                }
                continue;
            }
            match (here.split_first(), there.split_first()) {
                (Some((a, rest)), Some((b, other_rest))) if a == b => {
                    (here, there) = (rest, other_rest);
                }
                // `7` and `007` are equal as numbers and different ids; the order must agree with
                // `Eq`.
                (None, None) => return self.0.cmp(&other.0),
                (a, b) => return a.map(|(byte, _)| byte).cmp(&b.map(|(byte, _)| byte)),
            }
        }
    }
}

impl PartialOrd for BundleId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Splits off the digits at the start.
fn split_number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Compares digits as numbers of any length.
fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let significant = |digits: &[u8]| digits.iter().position(|digit| *digit != b'0');
    let a = &a[significant(a).unwrap_or(a.len())..];
    let b = &b[significant(b).unwrap_or(b.len())..];
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl FromStr for BundleId {
    type Err = IdError;

    /// Accepts `36`, `#36`, `issue_36` and `PROJ-12`.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let bare = text.strip_prefix('#').unwrap_or(text);
        let bare = bare.strip_prefix(DIR_PREFIX).unwrap_or(bare);
        Self::bare(bare).map_err(|error| IdError::new(text, error.flaw))
    }
}

impl fmt::Display for BundleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for BundleId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BundleId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<BundleId> for String {
    fn from(id: BundleId) -> Self {
        id.0.into()
    }
}

/// The error of parsing a [`BundleId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an id: {flaw}")]
pub struct IdError {
    /// The input, with control characters escaped and cut to 40 characters.
    pub given: String,
    /// The first rule that the input breaks.
    pub flaw: IdFlaw,
}

impl IdError {
    fn new(given: &str, flaw: IdFlaw) -> Self {
        const SHOWN: usize = 40;
        let mut shown: String = given.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        if given.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        Self { given: shown, flaw }
    }
}

/// A rule of [`BundleId`] that a text breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdFlaw {
    /// Nothing is left after removing `#` and `issue_`.
    #[error("it is empty")]
    Empty,
    /// A directory name does not start with `issue_`.
    #[error("the name of a bundle's directory starts with `issue_`")]
    NoPrefix,
    /// The id is longer than [`BundleId::MAX_LEN`]; holds its length in bytes.
    #[error("it has {0} bytes, the limit is {max}", max = BundleId::MAX_LEN)]
    TooLong(usize),
    /// A character other than ASCII letters, digits and `-_.+`.
    #[error("the character {0:?} is not allowed")]
    Character(char),
    /// A start that would make it an option, a hidden file or a second `issue_` prefix.
    #[error("it may not start with `{0}`")]
    Start(&'static str),
    /// An end that git does not allow in a ref.
    #[error("it may not end with `{0}`")]
    End(&'static str),
    /// A `..`, which git does not allow in a ref.
    #[error("it may not contain `..`")]
    DotDot,
}

fn flaw(text: &str) -> Option<IdFlaw> {
    if text.is_empty() {
        return Some(IdFlaw::Empty);
    }
    if text.len() > BundleId::MAX_LEN {
        return Some(IdFlaw::TooLong(text.len()));
    }
    let illegal = |c: &char| !(c.is_ascii_alphanumeric() || "-_.+".contains(*c));
    if let Some(c) = text.chars().find(illegal) {
        return Some(IdFlaw::Character(c));
    }
    // A second `issue_` would make the printed id name another bundle when it is read again.
    if let Some(start) = ["-", ".", "+", DIR_PREFIX].into_iter().find(|s| text.starts_with(s)) {
        return Some(IdFlaw::Start(start));
    }
    // git refuses a ref whose component ends like this, or contains `..`.
    if let Some(end) = [".lock", "."].into_iter().find(|e| text.ends_with(e)) {
        return Some(IdFlaw::End(end));
    }
    text.contains("..").then_some(IdFlaw::DotDot)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_four_spellings_name_a_bundle() {
        for (text, bare) in [
            ("36", "36"),
            ("#36", "36"),
            ("issue_36", "36"),
            ("PROJ-12", "PROJ-12"),
            ("449-v1", "449-v1"),
        ] {
            assert_eq!(text.parse::<BundleId>().unwrap().as_str(), bare, "{text}");
        }
    }

    #[test]
    fn what_could_leave_the_bundle_root_or_pose_as_an_option_is_refused() {
        let long = "7".repeat(300);
        for text in [
            "",
            "#",
            "issue_",
            "../x",
            "..",
            ".",
            "a..b",
            "-rf",
            "--all",
            "a/b",
            "a\\b",
            "/etc",
            ".git",
            "x\0y",
            "x\ny",
            "x y",
            " 36",
            "36 ",
            "a:b",
            "a~1",
            "a^",
            "a?",
            "a*",
            "a[b",
            "@{u}",
            "a.lock",
            "a.",
            "é",
            "$(x)",
            "issue_issue_36",
            "issue_-rf",
            "##36",
            &long,
        ] {
            assert!(text.parse::<BundleId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_error_shows_a_hostile_id_escaped_and_cut() {
        let error = format!("a\0{}", "b".repeat(300)).parse::<BundleId>().unwrap_err();
        assert!(error.given.len() < 60 && error.to_string().starts_with("`a\\0bbb"), "{error}");
    }

    #[test]
    fn ids_sort_as_people_count() {
        let sorted =
            ["2", "07", "7", "11", "11-a", "100", "PROJ-9", "PROJ-9b", "PROJ-10", "a", "a2", "a10"];
        let mut ids: Vec<BundleId> = sorted.iter().rev().map(|id| id.parse().unwrap()).collect();
        ids.sort();
        assert_eq!(ids.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), sorted);
    }

    proptest! {
        #[test]
        fn any_text_is_either_refused_or_one_harmless_path_component(text in any::<String>()) {
            if let Ok(id) = text.parse::<BundleId>() {
                prop_assert!(id.as_str().len() <= BundleId::MAX_LEN);
                prop_assert_eq!(camino::Utf8Path::new(&id.dir_name()).components().count(), 1);
            }
        }

        #[test]
        fn the_order_is_total_and_equal_only_for_the_same_id(
            ids in proptest::collection::vec("[a-c0-2][a-c0-2-]{0,4}", 3),
        ) {
            let ids: Vec<BundleId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
            for a in &ids {
                for b in &ids {
                    prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
                    prop_assert_eq!(a.cmp(b) == Ordering::Equal, a == b);
                    for c in &ids {
                        prop_assert!(!(a < b && b < c) || a < c, "{} {} {}", a, b, c);
                    }
                }
            }
        }

        #[test]
        fn a_legal_id_reads_back_from_each_of_its_spellings(text in "[A-Za-z0-9_][A-Za-z0-9_.+-]{0,20}") {
            if let Ok(id) = text.parse::<BundleId>() {
                prop_assert_eq!(BundleId::from_dir_name(&id.dir_name()), Some(id.clone()));
                prop_assert_eq!(id.to_string().parse::<BundleId>(), Ok(id.clone()));
                prop_assert_eq!(id.dir_name().parse::<BundleId>(), Ok(id));
            }
        }
    }
}
