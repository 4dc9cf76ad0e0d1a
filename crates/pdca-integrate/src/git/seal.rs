//! Seals: immutable records of accepted changes.
//!
//! A seal is one tag object whose message is the record and whose target is the accepted commit, named by
//! `refs/pdca/<run>/seal/<id>`. One ref thereby keeps the commit, its history and the record, which appear in one
//! step and cannot come apart. `seal.json` in the bundle is a copy of the message for people and reviewers.
//!
//! # Protocol
//! 1. *Compare* commit and `patch.diff` with those that Check saw. An edit after the review is refused.
//! 2. *Describe*: derive commits, tree and footprint from the objects, never from the caller. The commits must be one
//!    line from the base, so that each can be recreated on another base.
//!    The files that they change must be those of `patch.diff`, and no link of theirs may lead out of the tree.
//! 3. *Recognize* an existing seal of the run: equal content makes sealing idempotent after a crash, other content is
//!    refused.
//! 4. *Require* every object of the change. A lane may have pruned some, and the seal would promise what it lacks.
//! 5. *Sync* the commits and the tag before the ref names them, or a power loss could leave a ref to nothing.
//! 6. *Create* the ref under the fence, only if it does not exist.
//! 7. *Require* the objects once more: garbage collection may have run between steps 4 and 6. From now on the ref
//!    protects them.

use std::collections::BTreeSet;

use gix::ObjectId;
use pdca_state::{BundleId, Override, sha256_hex};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    git::durable::LooseObjects,
    git::failure::{RefError, StoreError},
    git::fence::{Fence, Move, ReflogEntry, StepEffect, ref_at},
    git::fold::require_date,
    git::footprint::TreeDifference,
    git::link::{OutwardLink, outward_links},
    git::name::RefNamespace,
    git::path::TreePath,
    git::store::Store,
};

/// The version of the format. Version 1 has neither `stands_on` nor `accepted`, version 2 neither `brief_digest` nor
/// `overrides`; both stay readable.
const SCHEMA: u32 = 3;
/// The version without a brief. It is written for a seal that has neither a brief nor overrides.
const WITHOUT_BRIEF: u32 = 2;
/// The oldest readable version.
const OLDEST: u32 = 1;
/// The maximum number of commits of a change.
/// More than a person reviews in one bundle. It ends the walk where the base is no ancestor of the head.
pub(super) const MAX_COMMITS: usize = 10_000;

/// An accepted change. It comes only from [`seal`] and [`Sealed::load`], which both read the objects.
///
/// [`Sealed::unsigned`] returns a change that was checked but not accepted. It can be folded into the base of another
/// attempt, but [`Gated`](crate::Gated) refuses it, so it never lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    record: SealRecord,
    is_signed: bool,
}

/// The content of a seal, as in `seal.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealRecord {
    pub schema: u32,
    /// The run that sealed the change.
    pub run: RefNamespace,
    pub id: BundleId,
    /// The commit that the change starts from.
    #[serde(with = "pdca_journal::object_id")]
    pub base: ObjectId,
    /// The commits of the change, oldest first.
    #[serde(with = "pdca_journal::object_id::list")]
    pub commits: Vec<ObjectId>,
    /// The last commit, which was reviewed.
    #[serde(with = "pdca_journal::object_id")]
    pub head: ObjectId,
    /// The tree of the last commit.
    #[serde(with = "pdca_journal::object_id")]
    pub tree: ObjectId,
    /// Every path that some commit of the change adds, removes or edits.
    pub footprint: Vec<TreePath>,
    /// The identity of the gates that passed it.
    pub gate_digest: String,
    /// The position in the order of completion.
    pub completion_order: u64,
    /// The SHA-256 of the reviewed `patch.diff`.
    pub patch_digest: String,
    /// The tip of the target branch. The base is this commit plus the changes in `stands_on`.
    #[serde(
        default,
        with = "pdca_journal::object_id::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub tip: Option<ObjectId>,
    /// The changes that the base contains beyond the target branch, in the order in which they were folded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_on: Vec<Support>,
    /// The person who accepted the change, and the time: the committer of the commits that land.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Signer>,
    /// Trailer lines for every commit that lands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<String>,
    /// The SHA-256 of the `brief.md` that was accepted with the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief_digest: Option<String>,
    /// The failed gating rows that were accepted nevertheless, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
}

/// A change that another one was built on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Support {
    pub id: BundleId,
    /// The last commit of the change, which identifies the result.
    #[serde(with = "pdca_journal::object_id")]
    pub head: ObjectId,
    /// The digest of its seal; `None` while it is not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// A person and a time, as git writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signer {
    pub name: String,
    pub email: String,
    /// Seconds since 1970, in UTC.
    pub seconds: i64,
}

/// A change to be sealed, and the state that Check saw.
#[derive(Debug, Clone, Copy)]
pub struct Acceptance<'a> {
    pub run: &'a RefNamespace,
    pub id: &'a BundleId,
    /// The commit that the change starts from.
    pub base: ObjectId,
    /// The current last commit.
    pub head: ObjectId,
    /// The current `patch.diff`.
    pub patch: &'a [u8],
    /// The commit that Check saw.
    pub reviewed_head: ObjectId,
    /// The hexadecimal SHA-256 of the `patch.diff` that Check saw.
    pub reviewed_patch: &'a str,
    /// The identity of the gates that passed it.
    pub gate_digest: &'a str,
    /// The position in the order of completion; it only grows.
    pub completion_order: u64,
    /// The tip of the target branch when the base was made.
    pub tip: Option<ObjectId>,
    /// The changes that the base contains beyond `tip`.
    pub stands_on: &'a [Support],
    /// The person who accepts it, and the time.
    pub by: Option<&'a Signer>,
    /// Trailer lines for every commit that lands.
    pub trailers: &'a [String],
    /// The SHA-256 of `brief.md`; `None` if only the change itself is meant.
    pub brief: Option<&'a str>,
    /// The failed gating rows that are accepted nevertheless.
    pub overrides: &'a [Override],
}

/// The position of the change's own branch relative to its seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealDrift {
    AsSealed,
    /// At another commit. What was added after acceptance was never reviewed.
    Moved {
        to: ObjectId,
    },
    /// The branch is gone. The seal still holds the change.
    Gone,
}

/// The reasons why a change cannot be sealed, or a seal not be used.
#[derive(Debug, Error)]
pub enum SealError {
    /// The change is not what Check saw.
    #[error("{what} is {found}, and Check saw {reviewed}")]
    NotAsReviewed {
        /// `the commit` or `patch.diff`.
        what: &'static str,
        reviewed: String,
        found: String,
    },
    /// The bundle is already sealed in this run, with another content.
    #[error("{name} is sealed already, with another {}", fields.join(", "))]
    SealedOtherwise { name: String, fields: Vec<&'static str> },
    /// The commits are not one line from the base.
    #[error("commit {commit} has {parents} parents: a change is one line of commits from its base")]
    NotLinear { commit: ObjectId, parents: usize },
    /// The base is no ancestor of the head.
    #[error("{base} is no ancestor of {head}")]
    NotFromBase { base: ObjectId, head: ObjectId },
    #[error("the change of {id} has no effect: its tree is that of its base")]
    NoChange { id: BundleId },
    /// Links of the change lead out of its tree.
    #[error("the change has links that lead out of the tree: {}", list(links))]
    Links { links: Vec<OutwardLink> },
    /// The commits change other files than `patch.diff`, which a person read.
    #[error("{}", other_files(unsaid, missing))]
    OtherFiles {
        /// The files that the commits change and the patch does not name.
        unsaid: Vec<String>,
        /// The files that the patch names and the commits do not change.
        missing: Vec<String>,
    },
    /// The patch cannot be compared with the commits.
    #[error("patch.diff cannot be read")]
    Patch(#[source] pdca_state::PatchError),
    /// The change stands on one that is not accepted.
    #[error("{id} stands on {on}, which is not accepted")]
    StandsOnUnsigned { id: BundleId, on: BundleId },
    /// The line cannot be a trailer.
    #[error("{line:?} cannot be a trailer of a commit message")]
    Trailer { line: String },
    #[error("{what} {given:?} is not a digest")]
    Digest { what: &'static str, given: String },
    #[error("there is no {name}")]
    NotSealed { name: String },
    /// The seal contradicts its own objects.
    #[error("the seal {name} does not hold: its {field} is not what its commits say")]
    Broken { name: String, field: &'static str },
    #[error("the seal {name} cannot be read")]
    Unreadable {
        name: String,
        #[source]
        source: serde_json::Error,
    },
    #[error(transparent)]
    Ref(#[from] RefError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Seals an accepted change. A second call with the same content is recognized; with another content it is refused.
pub fn seal(
    store: &Store,
    fence: &Fence,
    accepted: &Acceptance<'_>,
    log: ReflogEntry<'_>,
) -> Result<(Sealed, StepEffect), SealError> {
    require_as_reviewed(accepted)?;
    // So that nothing that is accepted stands on something that is not (decision 018).
    let open = accepted.stands_on.iter().find(|support| support.seal.is_none());
    if let Some(on) = open {
        let (id, on) = (accepted.id.clone(), on.id.clone());
        return Err(SealError::StandsOnUnsigned { id, on });
    }
    let record = describe(store, accepted)?;
    let name = record.run.seal_ref(&record.id);
    if let Some(known) = find(store, &name)? {
        return match known.record.differences(&record) {
            fields if fields.is_empty() => Ok((known, StepEffect::Recognised)),
            fields => Err(SealError::SealedOtherwise { name, fields }),
        };
    }
    require_footprint(store, &record, accepted.patch)?;
    let links = outward_links(store, record.base, record.head)?;
    if !links.is_empty() {
        return Err(SealError::Links { links });
    }
    require_complete(store, &record)?;
    let tag = write_tag(store, &record)?;
    LooseObjects::of(store).sync_commits(record.base, record.head)?;
    LooseObjects::of(store).sync_objects(&[tag].into())?;
    fence.move_refs(store, &[Move { name, from: None, to: Some(tag) }], log)?;
    // Garbage collection may have run before the ref existed; from here on the ref protects everything.
    require_complete(store, &record)?;
    Ok((Sealed { record, is_signed: true }, StepEffect::Made))
}

impl Sealed {
    /// Returns a change that was checked but not accepted, to be folded into the base of another attempt. No
    /// ref is created: the caller must keep the commits alive.
    pub fn unsigned(store: &Store, checked: &Acceptance<'_>) -> Result<Self, SealError> {
        require_as_reviewed(checked)?;
        Ok(Self { record: describe(store, checked)?, is_signed: false })
    }

    /// Returns true if a person accepted the change.
    pub fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Returns the digest of the seal, which identifies the change everywhere.
    pub fn digest(&self) -> String {
        self.record.digest()
    }

    /// Loads the seal of a bundle and checks it against its objects.
    pub fn load(store: &Store, run: &RefNamespace, id: &BundleId) -> Result<Self, SealError> {
        let name = run.seal_ref(id);
        let found =
            find(store, &name)?.ok_or_else(|| SealError::NotSealed { name: name.clone() })?;
        if found.record.run != *run || found.record.id != *id {
            return Err(SealError::Broken { name, field: "name" });
        }
        Ok(found)
    }

    /// Loads every seal in the repository, of any run. An invalid one is returned as an error that names its ref.
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
            // One broken seal must not hide the others.
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

    /// Checks a record from elsewhere against the objects.
    pub(crate) fn check(store: &Store, record: SealRecord) -> Result<Self, SealError> {
        let name = record.run.seal_ref(&record.id);
        let broken = |field| SealError::Broken { name: name.clone(), field };
        let is_plain = record.brief_digest.is_none() && record.overrides.is_empty();
        // The version determines which fields exist, so that none can be added or removed unnoticed.
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

    pub fn record(&self) -> &SealRecord {
        &self.record
    }

    pub fn id(&self) -> &BundleId {
        &self.record.id
    }

    /// Returns the text of `seal.json`.
    pub fn to_json(&self) -> Vec<u8> {
        self.record.to_json()
    }

    /// Compares the seal with the current tip of the change's own branch.
    pub fn drift(&self, branch: Option<ObjectId>) -> SealDrift {
        match branch {
            Some(at) if at == self.record.head => SealDrift::AsSealed,
            Some(to) => SealDrift::Moved { to },
            None => SealDrift::Gone,
        }
    }
}

impl SealRecord {
    /// Returns the SHA-256 of the text of `seal.json`.
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
    if let Some(by) = accepted.by {
        require_date(by.seconds)?;
    }
    let commits = line(store, base, head)?;
    for commit in &commits {
        // A commit that cannot be recreated would otherwise stop the fold of all other changes.
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

/// Fails unless the commits change exactly the files that the patch names.
fn require_footprint(store: &Store, record: &SealRecord, patch: &[u8]) -> Result<(), SealError> {
    let said: BTreeSet<String> =
        pdca_state::footprint(patch).map_err(SealError::Patch)?.into_iter().collect();
    let changed = TreeDifference::between(store, Some(store.tree_of(record.base)?), record.tree)?;
    let changed: BTreeSet<String> = changed
        .paths
        .iter()
        .map(|path| String::from_utf8_lossy(path.as_bytes()).into_owned())
        .collect();
    let without = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).cloned().collect()
    };
    let (unsaid, missing) = (without(&changed, &said), without(&said, &changed));
    if unsaid.is_empty() && missing.is_empty() {
        return Ok(());
    }
    Err(SealError::OtherFiles { unsaid, missing })
}

fn other_files(unsaid: &[String], missing: &[String]) -> String {
    let shown = |paths: &[String]| {
        let quoted: Vec<String> =
            paths.iter().map(|path| format!("`{}`", path.escape_debug())).collect();
        quoted.join(", ")
    };
    let mut parts = Vec::new();
    if !unsaid.is_empty() {
        parts.push(format!("the commits change {}, which patch.diff does not name", shown(unsaid)));
    }
    if !missing.is_empty() {
        parts.push(format!("patch.diff names {}, which the commits do not change", shown(missing)));
    }
    parts.join("; ")
}

fn list(links: &[OutwardLink]) -> String {
    links.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn is_trailer_line(line: &str) -> bool {
    !line.contains(['\n', '\r', '\0']) && crate::git::fold::is_trailer(line.as_bytes())
}

/// Returns the commits after `base` up to `head`, oldest first. They must be one line.
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
    let mut paths = BTreeSet::new();
    let mut before = store.tree_of(base)?;
    for commit in commits {
        let tree = store.tree_of(*commit)?;
        paths.extend(TreeDifference::between(store, Some(before), tree)?.paths);
        before = tree;
    }
    Ok(paths.into_iter().collect())
}

/// Fails unless every object of the change is in the repository.
fn require_complete(store: &Store, record: &SealRecord) -> Result<(), StoreError> {
    let revisions = format!("{}\n^{}\n", record.head, record.base);
    let args = ["rev-list", "--objects", "--quiet", "--stdin"];
    store.git()?.must("find every object of the change", &args, revisions.into_bytes()).map(drop)
}

fn write_tag(store: &Store, record: &SealRecord) -> Result<ObjectId, StoreError> {
    let failed = |source| StoreError::objects("write the seal", source);
    let repo = store.repo();
    // From the commit and not from a clock: sealing again after a crash writes the same tag.
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
    // The ref keeps the target of the tag alive, so a record about another commit could lose its objects.
    if decoded.target() != record.head {
        return Err(SealError::Broken { name: name.to_owned(), field: "head" });
    }
    Sealed::check(store, record).map(Some)
}
