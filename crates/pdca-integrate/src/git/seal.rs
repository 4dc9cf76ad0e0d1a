//! The immutable record of an accepted change.
//!
//! Accepting binds to the commit that was reviewed. What was accepted becomes one tag object whose
//! text is the record and whose target is the commit, named by `refs/pdca/<run>/seal/<id>`. So
//! the commit, its history and the record about it are kept by one ref, appear in one step, and
//! cannot come apart; `seal.json` in the bundle is a copy of that text for people and reviewers.

use gix::ObjectId;
use pdca_state::{BundleId, Override, sha256_hex};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    git::failure::{RefError, StoreError},
    git::fence::{Effect, Fence, Log, Move, ref_at},
    git::footprint::Difference,
    git::name::Run,
    git::path::TreePath,
    git::store::Store,
};

/// The version of the record's form. Records of version 1 name neither what the change stands on nor
/// who accepted it, those of version 2 neither the brief nor overridden rows; both stay readable.
const SCHEMA: u32 = 3;
/// The version without a brief. It is written for a seal that was begun in that form.
const WITHOUT_BRIEF: u32 = 2;
/// The oldest version that is read.
const OLDEST: u32 = 1;
/// More commits than anybody would review in one bundle.
const MAX_COMMITS: usize = 10_000;

/// An accepted change. There is no way to have one but [`seal`] and [`Sealed::load`], which both
/// look at the objects themselves.
///
/// [`Sealed::unsigned`] gives a change that was checked and not accepted. It can be folded into the
/// base of another attempt; [`Gated`](crate::Gated) refuses it, so it never lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    record: SealRecord,
    is_signed: bool,
}

/// What a seal says, as in `seal.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealRecord {
    /// The version of this form.
    pub schema: u32,
    /// The run that sealed it.
    pub run: Run,
    /// The bundle.
    pub id: BundleId,
    /// The commit that the change starts from.
    #[serde(with = "crate::git::hex")]
    pub base: ObjectId,
    /// The commits of the change, oldest first.
    #[serde(with = "crate::git::hex::list")]
    pub commits: Vec<ObjectId>,
    /// The last of them, which was reviewed.
    #[serde(with = "crate::git::hex")]
    pub head: ObjectId,
    /// The tree of the last of them.
    #[serde(with = "crate::git::hex")]
    pub tree: ObjectId,
    /// Every path in which a commit of the change differs from the one before it.
    pub footprint: Vec<TreePath>,
    /// Which gates, in which form, passed it.
    pub gate_digest: String,
    /// The place in the order of completion.
    pub completion_order: u64,
    /// SHA-256 of the `patch.diff` that was reviewed.
    pub patch_digest: String,
    /// Where the target branch was. The base is that plus the changes in `stands_on`.
    #[serde(default, with = "crate::git::hex::optional", skip_serializing_if = "Option::is_none")]
    pub tip: Option<ObjectId>,
    /// The changes that the base has beyond the target branch, in the order they were folded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_on: Vec<Support>,
    /// Who accepted it and when: committer of the commits that land.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Signer>,
    /// Lines that are added to the trailers of every commit that lands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<String>,
    /// SHA-256 of the `brief.md` that was accepted with the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief_digest: Option<String>,
    /// The failed gating rows that were accepted all the same, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
}

/// A change that another one stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Support {
    /// The bundle.
    pub id: BundleId,
    /// The last commit of its change: which result of the bundle it was.
    #[serde(with = "crate::git::hex")]
    pub head: ObjectId,
    /// The digest of its seal; none while it is not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// A person and a time, as git writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signer {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// Seconds since 1970, as UTC.
    pub seconds: i64,
}

/// What is to be sealed, and what Check saw.
#[derive(Debug, Clone, Copy)]
pub struct Acceptance<'a> {
    /// The run.
    pub run: &'a Run,
    /// The bundle.
    pub id: &'a BundleId,
    /// The commit that the change starts from.
    pub base: ObjectId,
    /// The commit as it is now.
    pub head: ObjectId,
    /// `patch.diff` as it is now.
    pub patch: &'a [u8],
    /// The commit that Check saw.
    pub reviewed_head: ObjectId,
    /// SHA-256 of the `patch.diff` that Check saw, in hexadecimal.
    pub reviewed_patch: &'a str,
    /// Which gates, in which form, passed it.
    pub gate_digest: &'a str,
    /// The place in the order of completion: a number that only grows.
    pub completion_order: u64,
    /// Where the target branch was when the base was made.
    pub tip: Option<ObjectId>,
    /// The changes that the base has beyond that.
    pub stands_on: &'a [Support],
    /// Who accepts it, and when.
    pub by: Option<&'a Signer>,
    /// Lines for the trailers of every commit that lands.
    pub trailers: &'a [String],
    /// SHA-256 of `brief.md` as it is accepted; none where only the change itself is meant.
    pub brief: Option<&'a str>,
    /// The failed gating rows that are accepted all the same.
    pub overrides: &'a [Override],
}

/// Where the branch that a change was built on stands, seen from its seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// At the sealed commit.
    AsSealed,
    /// Somewhere else: what was added after acceptance was never reviewed.
    Moved {
        /// Where it is.
        to: ObjectId,
    },
    /// There is no such branch any more. The seal holds the change all the same.
    Gone,
}

/// Why nothing was sealed.
#[derive(Debug, Error)]
pub enum SealError {
    /// What is to be sealed is not what Check saw.
    #[error("{what} is {found}, and Check saw {reviewed}")]
    NotAsReviewed {
        /// `the commit` or `patch.diff`.
        what: &'static str,
        /// What Check saw.
        reviewed: String,
        /// What is there now.
        found: String,
    },
    /// The change is sealed already, with another content.
    #[error("{name} is sealed already, with another {}", fields.join(", "))]
    SealedOtherwise {
        /// The ref of the seal.
        name: String,
        /// The fields in which the two differ.
        fields: Vec<&'static str>,
    },
    /// The commits are not one line from the base.
    #[error("commit {commit} has {parents} parents: a change is one line of commits from its base")]
    NotLinear {
        /// The commit.
        commit: ObjectId,
        /// How many parents it has.
        parents: usize,
    },
    /// The base is not among the ancestors of the head.
    #[error("{base} is no ancestor of {head}")]
    NotFromBase {
        /// The base.
        base: ObjectId,
        /// The head.
        head: ObjectId,
    },
    /// There is nothing to seal.
    #[error("the change of {id} has no effect: its tree is that of its base")]
    NoChange {
        /// The bundle.
        id: BundleId,
    },
    /// The change stands on one that is not accepted.
    #[error("{id} stands on {on}, which is not accepted")]
    StandsOnUnsigned {
        /// The bundle.
        id: BundleId,
        /// The one that it stands on.
        on: BundleId,
    },
    /// A line that cannot be a trailer.
    #[error("{line:?} cannot be a trailer of a commit message")]
    Trailer {
        /// The line.
        line: String,
    },
    /// A digest that is none.
    #[error("{what} {given:?} is not a digest")]
    Digest {
        /// Which one.
        what: &'static str,
        /// What was given.
        given: String,
    },
    /// There is no seal.
    #[error("there is no {name}")]
    NotSealed {
        /// The ref of the seal.
        name: String,
    },
    /// A seal that does not say what its own objects say.
    #[error("the seal {name} does not hold: its {field} is not what its commits say")]
    Broken {
        /// The ref of the seal.
        name: String,
        /// What is wrong.
        field: &'static str,
    },
    /// The text is no seal of this version.
    #[error("the seal {name} cannot be read")]
    Unreadable {
        /// The ref of the seal.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The ref could not be made.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Seals an accepted change. Doing so again is recognised; with another content it is refused.
pub fn seal(
    store: &Store,
    fence: &Fence,
    accepted: &Acceptance<'_>,
    log: Log<'_>,
) -> Result<(Sealed, Effect), SealError> {
    require_as_reviewed(accepted)?;
    let open = accepted.stands_on.iter().find(|support| support.seal.is_none());
    if let Some(on) = open {
        let (id, on) = (accepted.id.clone(), on.id.clone());
        return Err(SealError::StandsOnUnsigned { id, on });
    }
    let record = describe(store, accepted)?;
    let name = record.run.seal_ref(&record.id);
    if let Some(known) = find(store, &name)? {
        return match known.record.differences(&record) {
            fields if fields.is_empty() => Ok((known, Effect::Recognised)),
            fields => Err(SealError::SealedOtherwise { name, fields }),
        };
    }
    require_complete(store, &record)?;
    let tag = write_tag(store, &record)?;
    store.sync_commits(record.base, record.head)?;
    store.sync_objects(&[tag].into())?;
    fence.move_refs(store, &[Move { name, from: None, to: Some(tag) }], log)?;
    // A collection of garbage may have come between; from here on the ref keeps everything.
    require_complete(store, &record)?;
    Ok((Sealed { record, is_signed: true }, Effect::Made))
}

impl Sealed {
    /// A change that was checked and not accepted, to be folded into the base of another attempt. No
    /// ref is made: the caller keeps the commits alive.
    pub fn unsigned(store: &Store, checked: &Acceptance<'_>) -> Result<Self, SealError> {
        require_as_reviewed(checked)?;
        Ok(Self { record: describe(store, checked)?, is_signed: false })
    }

    /// Whether a person accepted it.
    pub fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// The digest of the seal, by which a change is known wherever it is.
    pub fn digest(&self) -> String {
        self.record.digest()
    }

    /// The seal of a bundle, checked against the objects it speaks of.
    pub fn load(store: &Store, run: &Run, id: &BundleId) -> Result<Self, SealError> {
        let name = run.seal_ref(id);
        let found =
            find(store, &name)?.ok_or_else(|| SealError::NotSealed { name: name.clone() })?;
        if found.record.run != *run || found.record.id != *id {
            return Err(SealError::Broken { name, field: "name" });
        }
        Ok(found)
    }

    /// Every seal in the repository, whichever run made it. One that does not hold is given as the
    /// error, with the name of its ref in it.
    pub fn all(store: &Store) -> Result<Vec<Result<Self, SealError>>, StoreError> {
        let failed = |source| StoreError::objects("list the seals", source);
        let repo = store.repo();
        let platform = repo.references().map_err(failed)?;
        let mut names = Vec::new();
        for found in platform.prefixed("refs/pdca/").map_err(failed)? {
            let found = found.map_err(failed)?;
            let name = found.name().as_bstr().to_string();
            if name.split('/').nth(3) == Some("seal") {
                names.push(name);
            }
        }
        let mut seals = Vec::new();
        for name in names {
            match find(store, &name) {
                Ok(None) => {}
                Ok(Some(found)) if found.record.run.seal_ref(found.id()) != name => {
                    seals.push(Err(SealError::Broken { name, field: "name" }));
                }
                Ok(Some(found)) => seals.push(Ok(found)),
                Err(error) => seals.push(Err(error)),
            }
        }
        Ok(seals)
    }

    /// A record from elsewhere, checked against the objects it speaks of.
    pub(crate) fn check(store: &Store, record: SealRecord) -> Result<Self, SealError> {
        let name = record.run.seal_ref(&record.id);
        let broken = |field| SealError::Broken { name: name.clone(), field };
        let is_plain = record.brief_digest.is_none() && record.overrides.is_empty();
        // A version says which fields there are, so that none can be added or taken away quietly.
        if !(OLDEST..=SCHEMA).contains(&record.schema) || is_plain == (record.schema == SCHEMA) {
            return Err(broken("schema"));
        }
        if line(store, record.base, record.head)? != record.commits {
            return Err(broken("commits"));
        }
        if store.tree_of(record.head)? != record.tree {
            return Err(broken("tree"));
        }
        if footprint(store, record.base, &record.commits)? != record.footprint {
            return Err(broken("footprint"));
        }
        Ok(Self { record, is_signed: true })
    }

    /// What it says.
    pub fn record(&self) -> &SealRecord {
        &self.record
    }

    /// The bundle.
    pub fn id(&self) -> &BundleId {
        &self.record.id
    }

    /// The text of `seal.json`.
    pub fn to_json(&self) -> Vec<u8> {
        self.record.to_json()
    }

    /// Compares with where the branch of the change is now.
    pub fn drift(&self, branch: Option<ObjectId>) -> Drift {
        match branch {
            Some(at) if at == self.record.head => Drift::AsSealed,
            Some(to) => Drift::Moved { to },
            None => Drift::Gone,
        }
    }
}

impl SealRecord {
    /// SHA-256 of the text of `seal.json`.
    pub fn digest(&self) -> String {
        sha256_hex(&self.to_json())
    }

    fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("because every key is a string");
        text.push(b'\n');
        text
    }

    fn differences(&self, other: &Self) -> Vec<&'static str> {
        let fields = [
            ("schema", self.schema == other.schema),
            ("run", self.run == other.run),
            ("id", self.id == other.id),
            ("base", self.base == other.base),
            ("commits", self.commits == other.commits && self.head == other.head),
            ("tree", self.tree == other.tree),
            ("footprint", self.footprint == other.footprint),
            ("gate digest", self.gate_digest == other.gate_digest),
            ("completion order", self.completion_order == other.completion_order),
            ("patch", self.patch_digest == other.patch_digest),
            ("tip", self.tip == other.tip),
            ("list of changes that it stands on", self.stands_on == other.stands_on),
            ("signer", self.accepted == other.accepted),
            ("trailers", self.trailers == other.trailers),
            ("brief", self.brief_digest == other.brief_digest),
            ("list of overridden rows", self.overrides == other.overrides),
        ];
        fields.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }
}

fn require_as_reviewed(accepted: &Acceptance<'_>) -> Result<(), SealError> {
    let digests = [
        ("the gate digest", accepted.gate_digest),
        ("the reviewed patch", accepted.reviewed_patch),
    ];
    for (what, digest) in digests {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-');
        if digest.is_empty() || digest.len() > 200 || !digest.bytes().all(legal) {
            return Err(SealError::Digest { what, given: digest.chars().take(80).collect() });
        }
    }
    let not = |what, reviewed: String, found: String| {
        Err(SealError::NotAsReviewed { what, reviewed, found })
    };
    if accepted.head != accepted.reviewed_head {
        return not("the commit", accepted.reviewed_head.to_string(), accepted.head.to_string());
    }
    let patch = sha256_hex(accepted.patch);
    if patch != accepted.reviewed_patch {
        return not("patch.diff", accepted.reviewed_patch.to_owned(), patch);
    }
    Ok(())
}

fn describe(store: &Store, accepted: &Acceptance<'_>) -> Result<SealRecord, SealError> {
    let (base, head) = (accepted.base, accepted.head);
    if let Some(line) = accepted.trailers.iter().find(|line| !is_trailer_line(line)) {
        return Err(SealError::Trailer { line: line.clone() });
    }
    let commits = line(store, base, head)?;
    for commit in &commits {
        // One that cannot be made again would otherwise stop the fold of all the others.
        store.require_sound(*commit)?;
    }
    let tree = store.tree_of(head)?;
    if tree == store.tree_of(base)? {
        return Err(SealError::NoChange { id: accepted.id.clone() });
    }
    let is_plain = accepted.brief.is_none() && accepted.overrides.is_empty();
    Ok(SealRecord {
        schema: if is_plain { WITHOUT_BRIEF } else { SCHEMA },
        run: accepted.run.clone(),
        id: accepted.id.clone(),
        base,
        footprint: footprint(store, base, &commits)?,
        commits,
        head,
        tree,
        gate_digest: accepted.gate_digest.to_owned(),
        completion_order: accepted.completion_order,
        patch_digest: accepted.reviewed_patch.to_owned(),
        tip: accepted.tip,
        stands_on: accepted.stands_on.to_vec(),
        accepted: accepted.by.cloned(),
        trailers: accepted.trailers.to_vec(),
        brief_digest: accepted.brief.map(str::to_owned),
        overrides: accepted.overrides.to_vec(),
    })
}

fn is_trailer_line(line: &str) -> bool {
    !line.contains(['\n', '\r', '\0']) && crate::git::fold::is_trailer(line.as_bytes())
}

/// The commits after `base` up to `head`, oldest first, which must be one line.
fn line(store: &Store, base: ObjectId, head: ObjectId) -> Result<Vec<ObjectId>, SealError> {
    store.require_commit(base)?;
    let mut commits = Vec::new();
    let mut at = head;
    while at != base {
        let parents = store.parents_of(at)?;
        let [parent] = parents[..] else {
            return Err(match parents.len() {
                0 => SealError::NotFromBase { base, head },
                parents => SealError::NotLinear { commit: at, parents },
            });
        };
        commits.push(at);
        if commits.len() > MAX_COMMITS {
            return Err(SealError::NotFromBase { base, head });
        }
        at = parent;
    }
    commits.reverse();
    Ok(commits)
}

fn footprint(
    store: &Store,
    base: ObjectId,
    commits: &[ObjectId],
) -> Result<Vec<TreePath>, StoreError> {
    let mut paths = std::collections::BTreeSet::new();
    let mut before = store.tree_of(base)?;
    for commit in commits {
        let tree = store.tree_of(*commit)?;
        paths.extend(Difference::between(store, Some(before), tree)?.paths);
        before = tree;
    }
    Ok(paths.into_iter().collect())
}

/// Every object of the change must be here, or the seal would promise what it cannot keep.
fn require_complete(store: &Store, record: &SealRecord) -> Result<(), StoreError> {
    let revisions = format!("{}\n^{}\n", record.head, record.base);
    let args = ["rev-list", "--objects", "--quiet", "--stdin"];
    store.git().must("find every object of the change", &args, revisions.into_bytes()).map(drop)
}

fn write_tag(store: &Store, record: &SealRecord) -> Result<ObjectId, StoreError> {
    let failed = |source| StoreError::objects("write the seal", source);
    let repo = store.repo();
    let committer = store.read_commit(record.head)?.committer;
    let tag = gix::objs::Tag {
        target: record.head,
        target_kind: gix::object::Kind::Commit,
        name: format!("pdca-seal-{}", record.id).into(),
        tagger: Some(committer),
        message: record.to_json().into(),
        signature: None,
    };
    Ok(repo.write_object(&tag).map_err(failed)?.detach())
}

fn find(store: &Store, name: &str) -> Result<Option<Sealed>, SealError> {
    let Some(tag) = ref_at(store, name)? else {
        return Ok(None);
    };
    let failed = |source| StoreError::objects("read the seal", source);
    let repo = store.repo();
    let tag = repo.find_tag(tag).map_err(failed)?;
    let decoded = tag.decode().map_err(failed)?;
    let record: SealRecord = serde_json::from_slice(decoded.message)
        .map_err(|source| SealError::Unreadable { name: name.to_owned(), source })?;
    if decoded.target() != record.head {
        return Err(SealError::Broken { name: name.to_owned(), field: "head" });
    }
    Sealed::check(store, record).map(Some)
}
