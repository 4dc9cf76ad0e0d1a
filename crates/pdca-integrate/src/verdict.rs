//! What the gates said about a tree, kept so that nobody asks twice.
//!
//! A verdict belongs to a tree, to the gates in their exact form, to the environment they ran in
//! and to the merge drivers that made the tree. One file per verdict, with a checksum; a damaged
//! file is no verdict, is removed, and the gates run again.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::ObjectId;
use pdca_state::{files, sha256_hex};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{candidate::Candidate, failure::StoreError};

/// The version of the file's form.
const SCHEMA: u32 = 1;
/// Larger than any such file.
const MAX_FILE: u64 = 64 << 10;

/// Which gates, in which form, in which environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oracle {
    /// A digest of the gates.
    pub gate_digest: String,
    /// A digest of what they run in.
    pub environment_digest: String,
}

/// What a verdict is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictKey {
    /// The tree.
    #[serde(with = "crate::hex")]
    pub tree: ObjectId,
    /// The gates.
    pub oracle: Oracle,
    /// A digest of the declared merge drivers.
    pub drivers: String,
}

/// What the gates said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Light {
    /// All that block passed.
    Green,
    /// One that blocks did not.
    Red,
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// What it is about.
    pub key: VerdictKey,
    /// What it is.
    pub light: Light,
}

/// A candidate that was gated green as exactly its tree. Nothing else lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gated {
    pub(crate) candidate: Candidate,
    pub(crate) verdict: Verdict,
}

/// Why a candidate may not land.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotGated {
    /// The verdict is red.
    #[error("the tree {tree} was gated red")]
    Red {
        /// The tree.
        tree: ObjectId,
    },
    /// The verdict is about something else.
    #[error("the verdict is about another {what}")]
    AboutAnother {
        /// In what it differs.
        what: &'static str,
    },
}

/// Verdicts in a directory.
#[derive(Debug, Clone)]
pub struct VerdictCache {
    dir: Utf8PathBuf,
}

/// What the cache has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// A verdict.
    Found(Verdict),
    /// None.
    Unknown,
    /// A file that was damaged and is removed now.
    Dropped {
        /// Where it was.
        path: Utf8PathBuf,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    schema: u32,
    verdict: Verdict,
    sha256: String,
}

impl Oracle {
    /// What a verdict about this candidate is about.
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
    /// Takes a candidate as gated if the verdict is green, about exactly its tree, and by exactly
    /// the gates that count now.
    pub fn new(candidate: Candidate, oracle: &Oracle, verdict: Verdict) -> Result<Self, NotGated> {
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

    /// What was gated.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}

impl VerdictCache {
    /// Verdicts in a directory, which is made with the first of them.
    pub fn new(dir: impl Into<Utf8PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// What is known.
    pub fn look_up(&self, key: &VerdictKey) -> Result<Lookup, StoreError> {
        let path = self.dir.join(key.file_name());
        let text = match files::read_bounded(&path, MAX_FILE) {
            Ok(None) => return Ok(Lookup::Unknown),
            Ok(Some(text)) => text,
            Err(files::ReadError::TooLarge { .. }) => Vec::new(),
            Err(error) => {
                let source = std::io::Error::other(error);
                return Err(StoreError::io("read", path, source));
            }
        };
        if let Some(verdict) = read(&text).filter(|verdict| verdict.key == *key) {
            return Ok(Lookup::Found(verdict));
        }
        fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, source))?;
        Ok(Lookup::Dropped { path })
    }

    /// Keeps a verdict, in place of any about the same.
    pub fn keep(&self, verdict: &Verdict) -> Result<(), StoreError> {
        let path = self.dir.join(verdict.key.file_name());
        let failed = |source| StoreError::io("write", &path, source);
        fs::create_dir_all(&self.dir).map_err(failed)?;
        let sha256 = sha256_hex(&json(verdict));
        let entry = Entry { schema: SCHEMA, verdict: verdict.clone(), sha256 };
        files::replace(&path, &json(&entry)).map_err(failed)
    }

    /// Where they are.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }
}

fn read(text: &[u8]) -> Option<Verdict> {
    let entry: Entry = serde_json::from_slice(text).ok()?;
    let sound = entry.schema == SCHEMA && entry.sha256 == sha256_hex(&json(&entry.verdict));
    sound.then_some(entry.verdict)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("because every key is a string")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> Verdict {
        let oracle = Oracle { gate_digest: "g".to_owned(), environment_digest: "e".to_owned() };
        let tree = ObjectId::empty_tree(gix::hash::Kind::Sha1);
        let key = VerdictKey { tree, oracle, drivers: "d".to_owned() };
        Verdict { key, light: Light::Green }
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
}
