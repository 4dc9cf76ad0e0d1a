//! The published change that another one stands on.
//!
//! A change that was built on accepted ones that have not landed has them in its base. Published alone, its pull request
//! would show their lines as its own. So it is put on the published branch of the one directly below, and its pull request
//! is opened onto that branch, until the one below is merged. This changes no tree: a branch counts only if it has exactly
//! the files of the base. Where none does (the branch moved on in between, or the change stands on two that do
//! not stand on each other), the pull request is opened onto the target branch and says what it contains.

use pdca_integrate::{ObjectId, SealRecord, Store};
use pdca_state::{Artifact, Bundle, BundleId, BundleRoot};

use crate::publish::record::{BranchState, PublishRecord, StackRecord};

/// The relation of a change to accepted changes that have not landed.
#[derive(Debug)]
pub enum Stack {
    /// It stands on the branch alone.
    None,
    /// It is put on the branch of the one below.
    On(Below),
    /// Its base has these, and no branch with exactly its files is published.
    Contains(Vec<Contained>),
}

/// The published change that another one is put on.
#[derive(Debug)]
pub struct Below {
    pub id: BundleId,
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// The commit of that branch.
    pub onto: ObjectId,
    /// The number of its pull request, if it has one.
    pub number: Option<u64>,
    pub url: Option<String>,
}

/// An accepted change in the base of another one.
#[derive(Debug)]
pub struct Contained {
    pub id: BundleId,
    /// Its branch was pushed from here.
    pub is_out: bool,
    pub url: Option<String>,
}

impl Stack {
    /// Finds out what a change stands on. A decision on record stays.
    pub(super) fn of(
        bundles: &BundleRoot,
        store: &Store,
        seal: &SealRecord,
        record: &PublishRecord,
        remote: &str,
    ) -> Self {
        // Another parent would be another commit than the one that is out (decision 045).
        if let Some(known) = record.stack.as_ref().and_then(|known| recorded(bundles, known)) {
            return Self::On(known);
        }
        if seal.stands_on.is_empty() {
            return Self::None;
        }
        let mut contained = Vec::new();
        // The last one is directly below; its branch has the files of all the others.
        for support in seal.stands_on.iter().rev() {
            let out = record_of(bundles, &support.id);
            let branch = out.as_ref().and_then(|out| out.branch.as_ref());
            let branch = branch
                .filter(|branch| branch.remote == remote && branch.state == BranchState::Pushed);
            let pull = out.as_ref().and_then(|out| out.pull_request.as_ref());
            let (number, url) = pull.map_or((None, None), |pull| (pull.number, pull.url.clone()));
            if let Some(branch) = branch
                && let Ok(onto) = ObjectId::from_hex(branch.commit.as_bytes())
                && has_files_of(store, onto, seal.base)
            {
                let (id, branch) = (support.id.clone(), branch.name.clone());
                return Self::On(Below { id, branch, onto, number, url });
            }
            contained.push(Contained { id: support.id.clone(), is_out: branch.is_some(), url });
        }
        contained.reverse();
        Self::Contains(contained)
    }

    /// Returns the commit that the change is put on, if it is not its sealed base.
    pub fn onto(&self) -> Option<ObjectId> {
        match self {
            Self::On(below) => Some(below.onto),
            Self::None | Self::Contains(_) => None,
        }
    }

    pub fn below(&self) -> Option<&Below> {
        match self {
            Self::On(below) => Some(below),
            Self::None | Self::Contains(_) => None,
        }
    }

    /// Returns the form for `publish.json`.
    pub(super) fn to_record(&self) -> Option<StackRecord> {
        self.below().map(|below| StackRecord {
            id: below.id.to_string(),
            branch: below.branch.clone(),
            onto: below.onto.to_string(),
        })
    }

    /// Returns the line of the pull request that says what it stands on.
    pub(super) fn note(&self) -> Option<String> {
        let shown = |id: &BundleId, url: Option<&String>| {
            url.map_or_else(|| format!("`{id}`"), |url| format!("{url} (`{id}`)"))
        };
        match self {
            Self::None => None,
            Self::On(below) => {
                let on = shown(&below.id, below.url.as_ref());
                Some(format!("Stands on {on}, which is to be merged first."))
            }
            Self::Contains(all) => {
                let all: Vec<String> =
                    all.iter().map(|one| shown(&one.id, one.url.as_ref())).collect();
                Some(format!(
                    "Stands on {}, whose commits it contains until they are merged.",
                    all.join(", ")
                ))
            }
        }
    }
}

fn has_files_of(store: &Store, commit: ObjectId, base: ObjectId) -> bool {
    matches!((store.tree_of(commit), store.tree_of(base)), (Ok(one), Ok(other)) if one == other)
}

fn recorded(bundles: &BundleRoot, known: &StackRecord) -> Option<Below> {
    let id: BundleId = known.id.parse().ok()?;
    let onto = ObjectId::from_hex(known.onto.as_bytes()).ok()?;
    let pull = record_of(bundles, &id).and_then(|out| out.pull_request);
    let (number, url) = pull.map_or((None, None), |pull| (pull.number, pull.url));
    Some(Below { id, branch: known.branch.clone(), onto, number, url })
}

/// Reads what is published of another bundle, wherever it lies.
fn record_of(bundles: &BundleRoot, id: &BundleId) -> Option<PublishRecord> {
    let read = |bundle: Bundle| bundle.read(Artifact::Publish).ok().flatten();
    let bytes = read(bundles.bundle(id)).or_else(|| read(bundles.completed().bundle(id)))?;
    PublishRecord::parse(&bytes).ok()
}
