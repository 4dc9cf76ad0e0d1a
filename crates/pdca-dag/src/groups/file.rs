//! `lanes.json`: the groups of a plan, as they are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

/// The content of `lanes.json`.
///
/// A file that is there and cannot be read is an error and never the same as no file: planning
/// without it would give started work to other groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanesFile {
    /// The version of the format.
    pub schema: u32,
    /// [`Plan::digest`](crate::Plan::digest) of the plan it was made from.
    pub digest: String,
    /// The groups, in the order of their ids.
    pub groups: Vec<Group>,
    /// Why bundles share a group: one entry for each two that were joined.
    pub collapse_report: Vec<Join>,
    /// Groups that should be one and are not, because work has begun in both: one entry for
    /// each two of them.
    pub apart: Vec<Join>,
    /// How many groups the longest chain of groups has.
    pub depth: usize,
    /// The most groups that no dependency orders: as many lanes can be busy.
    pub width: usize,
    /// The heaviest chain of work.
    pub critical_path: Vec<BundleId>,
    /// The id of the next new group. No id comes back once its group is gone.
    pub next: GroupId,
}

/// Bundles that run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name, for good.
    pub id: GroupId,
    /// Its bundles, prerequisites first.
    pub bundles: Vec<BundleId>,
    /// The groups it waits for.
    pub depends_on: Vec<GroupId>,
    /// How many groups are before it on the longest chain.
    pub depth: usize,
}

impl Group {
    pub(super) fn new(name: usize) -> Self {
        let id = GroupId::nth(name);
        Self { id, bundles: Vec::new(), depends_on: Vec::new(), depth: 0 }
    }
}

/// Two bundles that were put into one group, or should have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// The two, in name order.
    pub bundles: (BundleId, BundleId),
    /// What joined them.
    pub rule: JoinRule,
    /// The declarations behind it, for people.
    pub evidence: String,
    /// A path that both can write.
    pub witness: Option<String>,
}

/// What puts two bundles into one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinRule {
    /// One names the other in `Conflicts with`.
    Conflict,
    /// Both can write one path.
    Overlap,
    /// One depends on the other, and dependencies join.
    Dependency,
    /// Their groups would wait for each other.
    Cycle,
    /// They shared a group before.
    Previous,
}

/// The name of a group: `a` to `z`, then `aa`, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupId(String);

impl GroupId {
    /// Longer than any number of groups needs.
    const MAX_LEN: usize = 8;

    /// The name of the n-th group, from 0.
    pub(super) fn nth(n: usize) -> Self {
        let mut letters = Vec::new();
        let mut left = n + 1;
        while left > 0 {
            left -= 1;
            letters.push(char::from(b'a' + u8::try_from(left % 26).expect("less than 26")));
            left /= 26;
        }
        Self(letters.iter().rev().collect())
    }

    /// Which group it names, from 0.
    pub(super) fn index(&self) -> usize {
        self.0.bytes().fold(0, |all, letter| all * 26 + usize::from(letter - b'a') + 1) - 1
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialOrd for GroupId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GroupId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text that names no group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` does not name a group", given.escape_debug())]
pub struct GroupIdError {
    /// What was given.
    pub given: String,
}

impl FromStr for GroupId {
    type Err = GroupIdError;

    fn from_str(text: &str) -> Result<Self, GroupIdError> {
        let is_name = (1..=Self::MAX_LEN).contains(&text.len())
            && text.bytes().all(|letter| letter.is_ascii_lowercase());
        is_name
            .then(|| Self(text.to_owned()))
            .ok_or_else(|| GroupIdError { given: text.to_owned() })
    }
}

impl TryFrom<String> for GroupId {
    type Error = GroupIdError;

    fn try_from(text: String) -> Result<Self, GroupIdError> {
        text.parse()
    }
}

impl From<GroupId> for String {
    fn from(id: GroupId) -> Self {
        id.0
    }
}

/// Why the content of a `lanes.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LanesFileError {
    /// It is cut short, or not what it should be.
    #[error("it is damaged")]
    Damaged {
        /// Where and what.
        source: serde_json::Error,
    },
    /// It was written by another version.
    #[error("its schema is {found}, this program knows {known}", known = LanesFile::SCHEMA)]
    Schema {
        /// The schema it has.
        found: u64,
    },
    /// Two groups have one name.
    #[error("group {id} is there twice")]
    DuplicateGroup {
        /// The name.
        id: GroupId,
    },
    /// A group of nothing.
    #[error("group {id} has no bundles")]
    EmptyGroup {
        /// Its name.
        id: GroupId,
    },
    /// It is not clear where it belongs.
    #[error("bundle {id} is in group {first} and in group {again}")]
    BundleTwice {
        /// The bundle.
        id: BundleId,
        /// One group.
        first: GroupId,
        /// The other.
        again: GroupId,
    },
    /// A group waits for itself, or for one that is not there.
    #[error("group {id} depends on {on}, which is not another group of the file")]
    BadDependency {
        /// The group.
        id: GroupId,
        /// What it waits for.
        on: GroupId,
    },
    /// The next group would get a name that is in use.
    #[error("the next group would be {next}, but there is a group {id}")]
    NextInUse {
        /// The next name.
        next: GroupId,
        /// The group.
        id: GroupId,
    },
}

impl LanesFile {
    /// The version of the format that is written.
    pub const SCHEMA: u32 = 1;

    /// Reads a file. Everything in it must be known and fit together.
    pub fn parse(bytes: &[u8]) -> Result<Self, LanesFileError> {
        #[derive(Deserialize)]
        struct Header {
            schema: u64,
        }
        let damaged = |source| LanesFileError::Damaged { source };
        let Header { schema } = serde_json::from_slice(bytes).map_err(damaged)?;
        if schema != u64::from(Self::SCHEMA) {
            return Err(LanesFileError::Schema { found: schema });
        }
        let file: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        file.check()?;
        Ok(file)
    }

    /// The file as it is written.
    pub fn to_json(&self) -> String {
        let mut json = pretty(self);
        json.push('\n');
        json
    }

    /// The group of a bundle.
    pub fn group_of(&self, id: &BundleId) -> Option<&Group> {
        self.groups.iter().find(|group| group.bundles.contains(id))
    }

    fn check(&self) -> Result<(), LanesFileError> {
        let mut ids = BTreeSet::new();
        let mut homes: BTreeMap<&BundleId, &GroupId> = BTreeMap::new();
        for Group { id, bundles, .. } in &self.groups {
            let id = id.clone();
            if bundles.is_empty() {
                return Err(LanesFileError::EmptyGroup { id });
            }
            if id >= self.next {
                return Err(LanesFileError::NextInUse { next: self.next.clone(), id });
            }
            if !ids.insert(id.clone()) {
                return Err(LanesFileError::DuplicateGroup { id });
            }
        }
        for group in &self.groups {
            for bundle in &group.bundles {
                if let Some(first) = homes.insert(bundle, &group.id) {
                    let (id, first, again) = (bundle.clone(), first.clone(), group.id.clone());
                    return Err(LanesFileError::BundleTwice { id, first, again });
                }
            }
            let bad = |on: &&GroupId| **on == group.id || !ids.contains(*on);
            if let Some(on) = group.depends_on.iter().find(bad) {
                let (id, on) = (group.id.clone(), on.clone());
                return Err(LanesFileError::BadDependency { id, on });
            }
        }
        Ok(())
    }
}

fn pretty(file: &LanesFile) -> String {
    serde_json::to_string_pretty(file).expect("names, numbers and lists have a JSON form")
}
