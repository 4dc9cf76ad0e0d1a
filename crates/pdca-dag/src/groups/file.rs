//! The format of `lanes.json`, which stores the groups of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

/// The content of `lanes.json`.
///
/// Treat a file that cannot be read as an error and not as absent: planning without it would move
/// started work to other groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanesFile {
    /// The version of the format, [`LanesFile::SCHEMA`].
    pub schema: u32,
    /// The [`Plan::digest`](crate::Plan::digest) of the plan that the file was made from.
    pub digest: String,
    /// The groups, in the order of their ids.
    pub groups: Vec<BundleGroup>,
    /// The reasons bundles share a group, one entry per join of two bundles.
    pub collapse_report: Vec<Join>,
    /// Pairs of groups that should be one and are not, because work has begun in both.
    pub apart: Vec<Join>,
    /// The number of groups on the longest chain of groups.
    pub depth: usize,
    /// The most groups at one depth: about as many lanes can be busy.
    pub width: usize,
    /// The bundles of the heaviest chain of work.
    pub critical_path: Vec<BundleId>,
    /// The id of the next new group; ids are never reused.
    pub next: GroupId,
}

/// Bundles that run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BundleGroup {
    /// The name of the group, which never changes.
    pub id: GroupId,
    /// The bundles of the group, prerequisites first.
    pub bundles: Vec<BundleId>,
    /// The groups that this one waits for.
    pub depends_on: Vec<GroupId>,
    /// The number of groups before this one on the longest chain.
    pub depth: usize,
}

impl BundleGroup {
    pub(super) fn new(name: usize) -> Self {
        let id = GroupId::nth(name);
        Self { id, bundles: Vec::new(), depends_on: Vec::new(), depth: 0 }
    }
}

/// Two bundles that were joined into one group, or should have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Join {
    /// The two bundles, in name order.
    pub bundles: (BundleId, BundleId),
    /// The rule that joins them.
    pub rule: JoinRule,
    /// The declarations that the rule applies to, for people.
    pub evidence: String,
    /// A path that both can write, for [`JoinRule::Overlap`].
    pub witness: Option<String>,
    /// The bundles again, as a list under the name that the process has for it.
    #[serde(default)]
    pub merged_wps: Vec<BundleId>,
    /// The rule and the evidence in one sentence.
    #[serde(default)]
    pub reason: String,
}

/// A reason to put two bundles into one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum JoinRule {
    /// One names the other in `Conflicts with`.
    Conflict,
    /// Both can write the same path.
    Overlap,
    /// One depends on the other, and
    /// [`Options::join_dependencies`](crate::Options::join_dependencies) is set.
    Dependency,
    /// Both have a word of `Surfaces` in common, and
    /// [`Options::join_surfaces`](crate::Options::join_surfaces) is set.
    Surface,
    /// The groups of the two would wait for each other.
    Cycle,
    /// The two shared a group in the previous file.
    Previous,
}

impl JoinRule {
    /// The rule in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "declared conflict",
            Self::Overlap => "overlapping paths",
            Self::Dependency => "dependency",
            Self::Surface => "common surface",
            Self::Cycle => "cycle between groups",
            Self::Previous => "same group as before",
        }
    }
}

/// The name of a group: `a` to `z`, then `aa` and so on; sorted in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct GroupId(String);

impl GroupId {
    /// Longer than any number of groups needs.
    const MAX_LEN: usize = 8;

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

    /// The inverse of [`GroupId::nth`].
    pub(super) fn index(&self) -> usize {
        self.0.bytes().fold(0, |all, letter| all * 26 + usize::from(letter - b'a') + 1) - 1
    }

    /// The letters of the name.
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
        // By length first: `z` comes before `aa`.
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The error of parsing a [`GroupId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` does not name a group", given.escape_debug())]
pub struct GroupIdError {
    /// The text that is not a group name.
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

/// The error of parsing `lanes.json`.
#[derive(Debug, thiserror::Error)]
pub enum LanesFileError {
    /// The file is truncated or does not have the expected shape.
    #[error("it is damaged")]
    Damaged {
        /// The error of the JSON parser, with line and column.
        source: serde_json::Error,
    },
    /// The file was written by another version of the program.
    #[error("its schema is {found}, this program knows {known}", known = LanesFile::SCHEMA)]
    Schema {
        /// The schema number in the file.
        found: u64,
    },
    /// Two groups have the same name.
    #[error("group {id} is there twice")]
    DuplicateGroup {
        /// The name of both groups.
        id: GroupId,
    },
    /// A group has no bundles.
    #[error("group {id} has no bundles")]
    EmptyGroup {
        /// The name of the group.
        id: GroupId,
    },
    /// A bundle is in two groups.
    #[error("bundle {id} is in group {first} and in group {again}")]
    BundleTwice {
        /// The id of the bundle.
        id: BundleId,
        /// The first group with the bundle.
        first: GroupId,
        /// The second group with the bundle.
        again: GroupId,
    },
    /// A group depends on itself, or on a group that is not in the file.
    #[error("group {id} depends on {on}, which is not another group of the file")]
    BadDependency {
        /// The group with the dependency.
        id: GroupId,
        /// The group that it depends on.
        on: GroupId,
    },
    /// [`LanesFile::next`] is not after every name in the file.
    #[error("the next group would be {next}, but there is a group {id}")]
    NextInUse {
        /// The value of [`LanesFile::next`].
        next: GroupId,
        /// A group with that name or a later one.
        id: GroupId,
    },
}

impl LanesFile {
    /// The version of the format that is written.
    pub const SCHEMA: u32 = 1;

    /// Parses and validates a file. Unknown fields and contradictions are errors.
    pub fn parse(bytes: &[u8]) -> Result<Self, LanesFileError> {
        #[derive(Deserialize)]
        struct Header {
            schema: u64,
        }
        let damaged = |source| LanesFileError::Damaged { source };
        // The number alone first: a newer file has fields that this version does not know, and
        // would be called damaged.
        let Header { schema } = serde_json::from_slice(bytes).map_err(damaged)?;
        if schema != u64::from(Self::SCHEMA) {
            return Err(LanesFileError::Schema { found: schema });
        }
        let file: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        file.check()?;
        Ok(file)
    }

    /// Renders the file: indented JSON with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut json = pretty(self);
        json.push('\n');
        json
    }

    /// Returns the group that contains a bundle.
    pub fn group_of(&self, id: &BundleId) -> Option<&BundleGroup> {
        self.groups.iter().find(|group| group.bundles.contains(id))
    }

    fn check(&self) -> Result<(), LanesFileError> {
        let mut ids = BTreeSet::new();
        let mut homes: BTreeMap<&BundleId, &GroupId> = BTreeMap::new();
        for BundleGroup { id, bundles, .. } in &self.groups {
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
