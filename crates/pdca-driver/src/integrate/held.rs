//! What was not landed, and why: for people, and for `status`.
//!
//! The file is a memory of the last integration. It decides nothing: the next one finds everything
//! out again. An entry counts only as long as the seal it speaks of is the one that is there.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_integrate::Conflict;
use pdca_state::{BundleId, files};
use serde::{Deserialize, Serialize};

use crate::site::Site;

/// The file is not larger than this.
const LARGEST: u64 = 16 << 20;

/// A change that did not land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The bundle.
    pub id: BundleId,
    /// Why.
    pub reason: Reason,
    /// Those it does not go together with, or the one that it waits for.
    pub partners: Vec<BundleId>,
    /// The rows that are red.
    #[serde(default)]
    pub rows: Vec<String>,
    /// The files that disagree.
    #[serde(default)]
    pub conflicts: Vec<Conflict>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The sealed commit that this is about.
    pub head: Option<String>,
}

/// Why a change did not land.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// With it the gates are red.
    Red,
    /// It disagrees with what is there.
    Conflict,
    /// It needs one that is not there.
    Needs,
    /// What is there is not what was sealed.
    Drift,
    /// It was accepted without a seal.
    Unsealed,
    /// Its effect is there already.
    Present,
}

impl Reason {
    /// The word in files and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Conflict => "conflict",
            Self::Needs => "needs",
            Self::Drift => "drift",
            Self::Unsealed => "unsealed",
            Self::Present => "present",
        }
    }
}

impl Held {
    pub(super) fn blank(id: &BundleId, reason: Reason) -> Self {
        Self {
            id: id.clone(),
            reason,
            partners: Vec::new(),
            rows: Vec::new(),
            conflicts: Vec::new(),
            detail: None,
            head: None,
        }
    }

    /// One sentence for a person.
    pub fn sentence(&self) -> String {
        let id = &self.id;
        let partners = list(&self.partners);
        let rows = if self.rows.is_empty() { "the gates".to_owned() } else { self.rows.join(", ") };
        match self.reason {
            Reason::Red if self.partners.is_empty() => format!("{id} breaks {rows} by itself"),
            Reason::Red => format!("{id} breaks {rows} only together with {partners}"),
            Reason::Conflict if self.conflicts.is_empty() => {
                format!("{id} does not merge with what is left of the others")
            }
            Reason::Conflict => {
                let files: Vec<String> = self.conflicts.iter().map(place).collect();
                let with = if self.partners.is_empty() { "the branch" } else { &partners };
                format!("{id} conflicts with {with} in {}", files.join(", "))
            }
            Reason::Needs => format!("{id} needs {partners}, which has not landed"),
            Reason::Drift => {
                format!("{id} is not as it was sealed: {}", self.detail.as_deref().unwrap_or("?"))
            }
            Reason::Unsealed => format!("{id} was accepted without a seal"),
            Reason::Present if self.partners.is_empty() => {
                format!("what {id} does is there already")
            }
            Reason::Present => format!("what {id} does is there already, by {partners}"),
        }
    }
}

/// A file that disagrees, with the first line where there is one.
pub(super) fn place(conflict: &Conflict) -> String {
    match conflict.hunks.first() {
        Some(hunk) => format!("{}:{}", conflict.path, hunk.line),
        None => format!("{} ({})", conflict.path, conflict.kind.trim_start_matches("CONFLICT ")),
    }
}

fn list(ids: &[BundleId]) -> String {
    match ids {
        [] => String::new(),
        [only] => only.to_string(),
        [rest @ .., last] => {
            let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
            format!("{} and {last}", rest.join(", "))
        }
    }
}

/// What the last integrations held back, by bundle.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HeldBack(BTreeMap<BundleId, Held>);

impl HeldBack {
    /// What is remembered about a bundle with this sealed head.
    pub fn of(&self, id: &BundleId, head: Option<&str>) -> Option<&Held> {
        self.0.get(id).filter(|held| held.head.as_deref() == head)
    }

    /// Forgets what was said about these bundles and remembers what is to be said now.
    pub(super) fn renew<'a>(
        &mut self,
        about: impl IntoIterator<Item = &'a BundleId>,
        held: &[Held],
    ) {
        for id in about {
            self.0.remove(id);
        }
        self.0.extend(held.iter().map(|held| (held.id.clone(), held.clone())));
    }
}

impl Site {
    fn held_file(&self) -> Utf8PathBuf {
        self.private().join("held.json")
    }

    /// What the last integrations held back. A file that cannot be read is as good as none.
    pub fn held_back(&self) -> HeldBack {
        let text = files::read_bounded(self.held_file(), LARGEST).ok().flatten();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    pub(super) fn keep_held_back(&self, held: &HeldBack) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(held).map_err(std::io::Error::other)?;
        files::replace(self.held_file(), &text)
    }
}
