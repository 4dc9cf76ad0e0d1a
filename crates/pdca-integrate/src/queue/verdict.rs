//! Verdicts of gates about trees, and their cache.
//!
//! A verdict belongs to a tree, to the exact gates, to their environment and to the merge drivers that made the
//! tree. Each is stored in one file with a checksum. A damaged file is removed and the gates run again.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::ObjectId;
use pdca_state::{BundleId, files, sha256_hex};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{git::failure::StoreError, queue::candidate::Candidate};

/// The version of the file format. Version 1 has no [`VerdictOrigin`].
const SCHEMA: u32 = 2;
/// The maximum size of a file, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// The identity of a set of gates in an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSetId {
    pub gate_digest: String,
    pub environment_digest: String,
}

/// The subject of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictKey {
    #[serde(with = "pdca_journal::object_id")]
    pub tree: ObjectId,
    pub oracle: GateSetId,
    /// A digest of the declared merge drivers.
    pub drivers: String,
}

/// The result of the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Light {
    /// Every gating row passed.
    Green,
    /// A gating row failed.
    Red,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub key: VerdictKey,
    pub light: Light,
    /// Rows that were red and did not count because they are in quarantine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
}

/// The origin of a stored verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictOrigin {
    /// The time of the verdict, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The integration that ran the gates; `None` for any other caller, such as the Check of a bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The conditions under which a stored verdict counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerdictTrust {
    /// The integration whose own verdicts always count.
    pub own: Option<String>,
    /// Ignores all verdicts but its own.
    pub only_own: bool,
    /// The span, in seconds since 1970, that other verdicts must fall in.
    pub within: Option<(i64, i64)>,
    /// Ignores verdicts that no integration asked for.
    pub of_integrations: bool,
}

/// A candidate that was gated green as exactly its tree. Only this type can land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gated {
    pub(crate) candidate: Candidate,
    pub(crate) verdict: Verdict,
}

/// The reasons why a candidate may not land.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotGated {
    #[error("{id} is not accepted")]
    Unsigned { id: BundleId },
    #[error("the tree {tree} was gated red")]
    Red { tree: ObjectId },
    /// The verdict belongs to another candidate or other gates.
    #[error("the verdict is about another {what}")]
    AboutAnother {
        /// The part in which they differ.
        what: &'static str,
    },
}

/// A directory of verdicts.
#[derive(Debug, Clone)]
pub struct VerdictCache {
    dir: Utf8PathBuf,
    trust: VerdictTrust,
}

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    Found(Verdict),
    Unknown,
    /// The file was damaged and has been removed.
    Dropped {
        path: Utf8PathBuf,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    schema: u32,
    verdict: Verdict,
    #[serde(default)]
    origin: VerdictOrigin,
    sha256: String,
}

impl VerdictTrust {
    /// Returns true if a verdict of this origin counts. A verdict without a time, or with a time in the future,
    /// counts only if no span is required.
    fn covers(&self, origin: &VerdictOrigin) -> bool {
        if origin.by.is_some() && origin.by == self.own {
            return true;
        }
        let is_young =
            |(oldest, now): (i64, i64)| origin.at.is_some_and(|at| (oldest..=now).contains(&at));
        let is_wanted = !self.only_own && (origin.by.is_some() || !self.of_integrations);
        is_wanted && self.within.is_none_or(is_young)
    }
}

impl Verdict {
    /// Returns a verdict without quarantined rows.
    pub fn new(key: VerdictKey, light: Light) -> Self {
        Self { key, light, quarantined: Vec::new() }
    }
}

impl GateSetId {
    /// Returns the key of a verdict about this candidate.
    pub fn key(&self, candidate: &Candidate) -> VerdictKey {
        VerdictKey {
            tree: candidate.tree,
            oracle: self.clone(),
            drivers: candidate.drivers.clone(),
        }
    }
}

impl VerdictKey {
    fn file_name(&self) -> String {
        format!("{}.json", sha256_hex(&json(self)))
    }
}

impl Gated {
    /// Accepts a candidate if the verdict is green, about exactly its tree, and of exactly the current gates.
    pub fn new(
        candidate: Candidate,
        oracle: &GateSetId,
        verdict: Verdict,
    ) -> Result<Self, NotGated> {
        let unsigned = candidate.bundles.iter().map(|taken| taken.entry.sealed());
        if let Some(sealed) = unsigned.into_iter().find(|sealed| !sealed.is_signed()) {
            return Err(NotGated::Unsigned { id: sealed.id().clone() });
        }
        let wanted = oracle.key(&candidate);
        let differs = [
            ("tree", verdict.key.tree != wanted.tree),
            ("set of gates", verdict.key.oracle.gate_digest != oracle.gate_digest),
            ("environment", verdict.key.oracle.environment_digest != oracle.environment_digest),
            ("set of merge drivers", verdict.key.drivers != wanted.drivers),
        ];
        if let Some((what, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            return Err(NotGated::AboutAnother { what });
        }
        match verdict.light {
            Light::Green => Ok(Self { candidate, verdict }),
            Light::Red => Err(NotGated::Red { tree: wanted.tree }),
        }
    }

    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}

impl VerdictCache {
    /// Opens a directory of verdicts, which need not exist yet.
    pub fn new(dir: impl Into<Utf8PathBuf>) -> Self {
        Self { dir: dir.into(), trust: VerdictTrust::default() }
    }

    /// Restricts lookups to verdicts that count. The others stay in the directory.
    #[must_use]
    pub fn trusting(mut self, trust: VerdictTrust) -> Self {
        self.trust = trust;
        self
    }

    /// Looks up a verdict. Removes the file if it is damaged.
    pub fn look_up(&self, key: &VerdictKey) -> Result<Lookup, StoreError> {
        let path = self.dir.join(key.file_name());
        let text = match files::read_bounded(&path, MAX_FILE) {
            Ok(None) => return Ok(Lookup::Unknown),
            Ok(Some(text)) => text,
            // Not a verdict of ours, so it is treated like a damaged one.
            Err(files::FileReadError::TooLarge { .. }) => Vec::new(),
            Err(error) => {
                let source = std::io::Error::other(error);
                return Err(StoreError::io("read", path, source));
            }
        };
        // The name of the file is a digest of the key. The key itself is compared, so that a renamed file does
        // not count.
        if let Some(entry) = read(&text).filter(|entry| entry.verdict.key == *key) {
            let counts = self.trust.covers(&entry.origin);
            return Ok(if counts { Lookup::Found(entry.verdict) } else { Lookup::Unknown });
        }
        // Otherwise it would be damaged at each lookup until the gates write a new one.
        fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, source))?;
        Ok(Lookup::Dropped { path })
    }

    /// Stores a verdict without an origin.
    pub fn keep(&self, verdict: &Verdict) -> Result<(), StoreError> {
        self.keep_from(verdict, &VerdictOrigin::default())
    }

    /// Stores a verdict, replacing any with the same key.
    pub fn keep_from(&self, verdict: &Verdict, origin: &VerdictOrigin) -> Result<(), StoreError> {
        let path = self.dir.join(verdict.key.file_name());
        let failed = |source| StoreError::io("write", &path, source);
        fs::create_dir_all(&self.dir).map_err(failed)?;
        let sha256 = sha256_hex(&json(&(verdict, origin)));
        let (verdict, origin) = (verdict.clone(), origin.clone());
        let entry = Entry { schema: SCHEMA, verdict, origin, sha256 };
        files::replace(&path, &json(&entry)).map_err(failed)
    }

    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }
}

fn read(text: &[u8]) -> Option<Entry> {
    let entry: Entry = serde_json::from_slice(text).ok()?;
    let sha256 = match entry.schema {
        // The checksum of the first version does not cover an origin, so it must not have one.
        1 if entry.origin == VerdictOrigin::default() => sha256_hex(&json(&entry.verdict)),
        SCHEMA => sha256_hex(&json(&(&entry.verdict, &entry.origin))),
        _ => return None,
    };
    (entry.sha256 == sha256).then_some(entry)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("because every key is a string")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> Verdict {
        let oracle = GateSetId { gate_digest: "g".to_owned(), environment_digest: "e".to_owned() };
        let tree = ObjectId::empty_tree(gix::hash::Kind::Sha1);
        let key = VerdictKey { tree, oracle, drivers: "d".to_owned() };
        Verdict::new(key, Light::Green)
    }

    fn cache() -> (tempfile::TempDir, VerdictCache) {
        let home = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(home.path()).unwrap().join("verdicts");
        (home, VerdictCache::new(dir))
    }

    #[test]
    fn a_verdict_is_found_under_its_own_key_only() {
        let (_home, cache) = cache();
        let verdict = verdict();
        assert_eq!(cache.look_up(&verdict.key).unwrap(), Lookup::Unknown);
        cache.keep(&verdict).unwrap();
        assert_eq!(cache.look_up(&verdict.key).unwrap(), Lookup::Found(verdict.clone()));
        for other in ["gate", "environment", "drivers"] {
            let mut key = verdict.key.clone();
            match other {
                "gate" => key.oracle.gate_digest.push('x'),
                "environment" => key.oracle.environment_digest.push('x'),
                _ => key.drivers.push('x'),
            }
            assert_eq!(cache.look_up(&key).unwrap(), Lookup::Unknown, "{other}");
        }
    }

    #[test]
    fn e15_a_verdict_with_any_byte_damaged_is_dropped() {
        let (_home, cache) = cache();
        let verdict = verdict();
        cache.keep(&verdict).unwrap();
        let path = cache.dir().join(verdict.key.file_name());
        let whole = fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let found = cache.look_up(&verdict.key).unwrap();
            assert_eq!(found, Lookup::Dropped { path: path.clone() }, "byte {place}");
            assert_eq!(cache.look_up(&verdict.key).unwrap(), Lookup::Unknown);
        }
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(!matches!(cache.look_up(&verdict.key).unwrap(), Lookup::Found(_)), "{cut}");
        }
    }

    #[test]
    fn which_verdicts_count_follows_from_their_age_and_from_who_asked() {
        let (_home, cache) = cache();
        let verdict = verdict();
        let origin = |at: i64, by: &str| VerdictOrigin { at: Some(at), by: Some(by.to_owned()) };
        let limit = VerdictTrust { within: Some((100, 200)), ..VerdictTrust::default() };
        let own = |only_own| VerdictTrust { own: Some("me".to_owned()), only_own, ..limit.clone() };
        for (kept, trust, counts) in [
            (origin(50, "other"), VerdictTrust::default(), true),
            (origin(100, "other"), limit.clone(), true),
            (origin(99, "other"), limit.clone(), false),
            (origin(201, "other"), limit.clone(), false),
            (VerdictOrigin::default(), limit.clone(), false),
            (VerdictOrigin::default(), own(true), false),
            (origin(150, "other"), own(false), true),
            (origin(150, "other"), own(true), false),
            (
                origin(50, "other"),
                VerdictTrust { of_integrations: true, ..VerdictTrust::default() },
                true,
            ),
            (
                VerdictOrigin::default(),
                VerdictTrust { of_integrations: true, ..VerdictTrust::default() },
                false,
            ),
            (origin(50, "me"), own(false), true),
            (origin(50, "me"), own(true), true),
        ] {
            cache.keep_from(&verdict, &kept).unwrap();
            let found = cache.clone().trusting(trust.clone()).look_up(&verdict.key).unwrap();
            let expected = if counts { Lookup::Found(verdict.clone()) } else { Lookup::Unknown };
            assert_eq!(found, expected, "{kept:?} {trust:?}");
        }
    }

    #[test]
    fn a_verdict_of_the_first_form_is_still_found() {
        let (_home, cache) = cache();
        let verdict = verdict();
        cache.keep(&verdict).unwrap();
        let first = serde_json::json!({
            "schema": 1, "verdict": verdict, "sha256": sha256_hex(&json(&verdict)),
        });
        fs::write(cache.dir().join(verdict.key.file_name()), first.to_string()).unwrap();
        assert_eq!(cache.look_up(&verdict.key).unwrap(), Lookup::Found(verdict));
    }
}
