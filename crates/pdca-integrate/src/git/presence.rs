//! Presence of sealed changes in a history, derived from git alone.
//!
//! A change is identified by the digest of its seal, which every commit that brings it carries in a trailer.
//! The bundle's id is not enough: two clones, two trackers or a follow-up may use the same number. Dates are
//! not used either. A reverted commit does not count until its revert is reverted.
//!
//! Words are not believed: a trailer counts on a commit that brings the sealed change, and "This reverts commit" in
//! one that takes the named commit back ([`Effect`]). Anything else is a sentence that someone wrote.
//!
//! Seals of the first version left trailers without a digest. These count only for such a seal, and only on
//! commits that its base does not contain.

use std::collections::{BTreeMap, BTreeSet};

use gix::{ObjectId, bstr::ByteSlice as _};
use pdca_state::SEALED_TRAILER;

use crate::{
    git::effect::Effect, git::failure::StoreError, git::fold::is_trailer, git::land::proof,
    git::seal::SealRecord, git::store::Store,
};

/// The sentence with which `git revert` names the reverted commit.
const REVERTS: &[u8] = b"This reverts commit ";
/// The minimum length of a short id, in characters. Git makes none shorter.
const SHORTEST: usize = 4;

/// The presence of a sealed change in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// The last commit that brought it.
    pub commit: ObjectId,
    /// The commit that reverted it; `None` while it is in effect.
    pub reverted_by: Option<ObjectId>,
}

/// Finds changes in the history of `tip`, by the digests of their seals.
///
/// A change is present if a commit that brings it names its seal in a trailer, or if its own head is an ancestor.
pub fn present_in(
    store: &Store,
    tip: ObjectId,
    seals: &[&SealRecord],
) -> Result<BTreeMap<String, Presence>, StoreError> {
    if seals.is_empty() {
        return Ok(BTreeMap::new());
    }
    let history = History::since(store, tip, seals)?;
    let mut found = BTreeMap::new();
    for record in seals {
        let digest = record.digest();
        if let Some(presence) = history.find(store, record, &digest)? {
            found.insert(digest, presence);
        }
    }
    Ok(found)
}

/// Returns the commits in the history of `tip` and of none of `known` that belong to no sealed change: work of people,
/// which must not be lost when a branch is folded again.
pub fn foreign_commits(
    store: &Store,
    known: &[ObjectId],
    tip: ObjectId,
) -> Result<Vec<ObjectId>, StoreError> {
    let history = History::read(store, tip, known)?;
    let is_ours = |commit: &Commit| !commit.claims.is_empty();
    // With merge commits, the commits that a marked merge brought are ours as well.
    let mut ours: BTreeSet<ObjectId> = BTreeSet::new();
    for commit in history.commits.iter().filter(|commit| is_ours(commit)) {
        ours.insert(commit.id);
        ours.extend(history.brought_by(commit));
    }
    let foreign = history.commits.iter().map(|commit| commit.id).filter(|id| !ours.contains(id));
    Ok(foreign.collect())
}

/// A commit that a history has and a known one lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitBeyond {
    pub commit: ObjectId,
    /// The first line of its message.
    pub subject: String,
    /// The digests of the seals that it names.
    pub seals: Vec<String>,
}

/// Returns the commits in the history of `tip` that are not in that of `known`, breadth first from `tip`: on a
/// line, children before their parents.
pub fn commits_beyond(
    store: &Store,
    known: ObjectId,
    tip: ObjectId,
) -> Result<Vec<CommitBeyond>, StoreError> {
    let history = History::read(store, tip, &[known])?;
    let mut found = Vec::new();
    for commit in &history.commits {
        let message = store.read_commit(commit.id)?.message;
        let subject = message.lines().next().unwrap_or_default().to_str_lossy().into_owned();
        let seals = commit.claims.iter().filter_map(|claim| claim.digest.clone()).collect();
        found.push(CommitBeyond { commit: commit.id, subject, seals });
    }
    Ok(found)
}

/// Returns the digests of the seals that commits in the history of `tip` and of none of `known` name.
pub fn seals_named(
    store: &Store,
    known: &[ObjectId],
    tip: ObjectId,
) -> Result<BTreeSet<String>, StoreError> {
    let history = History::read(store, tip, known)?;
    let claims = history.commits.iter().flat_map(|commit| commit.claims.iter());
    Ok(claims.filter_map(|claim| claim.digest.clone()).collect())
}

/// Returns the refs below a prefix such as `refs/heads/pdca/`, each with its commit.
pub fn refs_below(store: &Store, prefix: &str) -> Result<Vec<(String, ObjectId)>, StoreError> {
    let failed = |source| StoreError::objects("list refs", source);
    let repo = store.repo();
    let mut found = Vec::new();
    for reference in repo.references().map_err(failed)?.prefixed(prefix).map_err(failed)? {
        let mut reference = reference.map_err(failed)?;
        let name = reference.name().as_bstr().to_string();
        // A ref to something else than a commit is of no use to any caller.
        if let Ok(commit) = reference.peel_to_commit() {
            found.push((name, commit.id));
        }
    }
    Ok(found)
}

/// Returns true if `commit` is `tip` or an ancestor of it.
pub fn contains(store: &Store, tip: ObjectId, commit: ObjectId) -> Result<bool, StoreError> {
    store.require_commit(tip)?;
    store.require_commit(commit)?;
    proof::contains(store, tip, commit)
}

/// Returns true if `commit` is `tip` or an ancestor of it, like [`contains`], but reads the objects itself.
///
/// Only for what is shown: a landing is decided by what git says.
pub fn descends_from(store: &Store, tip: ObjectId, commit: ObjectId) -> Result<bool, StoreError> {
    store.require_commit(tip)?;
    store.require_commit(commit)?;
    if tip == commit {
        return Ok(true);
    }
    let failed = |source| StoreError::objects("compare histories", source);
    let repo = store.repo();
    // Of several common ancestors none is the commit itself: an ancestor of the tip is the only one.
    let base = repo.merge_bases_many(tip, &[commit]).map_err(failed)?;
    Ok(base.iter().any(|base| base.detach() == commit))
}

/// A part of a history, read once.
struct History {
    /// In breadth-first order from the tip: on a line, children before their parents.
    commits: Vec<Commit>,
    places: BTreeMap<ObjectId, usize>,
    /// The reverted commits, each with a revert that is in effect.
    undone: BTreeMap<ObjectId, ObjectId>,
}

struct Commit {
    id: ObjectId,
    parents: Vec<ObjectId>,
    claims: Vec<Claim>,
    /// Author, author date and subject: equal for all copies of a commit.
    origin: Vec<u8>,
}

/// A trailer that names a sealed change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    id: String,
    digest: Option<String>,
}

impl History {
    /// Reads the part that may contain these changes: everything after the oldest base.
    fn since(store: &Store, tip: ObjectId, seals: &[&SealRecord]) -> Result<Self, StoreError> {
        // The base may be a fold of ours that is in no branch. The tip is where the branch was when that base was
        // made.
        let starts: BTreeSet<ObjectId> =
            seals.iter().map(|record| record.tip.unwrap_or(record.base)).collect();
        let mut common = Vec::new();
        for start in starts {
            // If a base is gone there is no bound, and the whole history is read.
            if store.require_commit(start).is_err() {
                return Self::read(store, tip, &[]);
            }
            common.push(start);
        }
        common.push(tip);
        let failed = |source| StoreError::objects("compare histories", source);
        let repo = store.repo();
        let base = repo.merge_base_octopus(common).map_err(failed)?.map(gix::Id::detach);
        Self::read(store, tip, base.as_slice())
    }

    fn read(store: &Store, tip: ObjectId, without: &[ObjectId]) -> Result<Self, StoreError> {
        store.require_commit(tip)?;
        let failed = |source| StoreError::objects("walk a history", source);
        let repo = store.repo();
        // Hidden by ancestry and not by a cutoff, because the dates of commits may go back.
        let walk = repo.rev_walk([tip]).with_hidden(without.iter().copied());
        let (mut commits, mut said) = (Vec::<Commit>::new(), Vec::new());
        for step in walk.all().map_err(failed)? {
            let info = step.map_err(|source| StoreError::objects("walk a history", source))?;
            let object = info.object().map_err(failed)?;
            let read = object.decode().map_err(failed)?;
            let reverted: Vec<RevertedId> = reverted_by(read.message).collect();
            if !reverted.is_empty() {
                said.push((info.id, reverted));
            }
            commits.push(Commit {
                id: info.id,
                parents: info.parent_ids.iter().copied().collect(),
                claims: claims(read.message),
                origin: origin(read.author, read.message),
            });
        }
        let places: BTreeMap<ObjectId, usize> =
            commits.iter().enumerate().map(|(place, commit)| (commit.id, place)).collect();
        let mut reverts = BTreeMap::<_, Vec<_>>::new();
        // After the walk: the parents that a short id means come after the commit that names it.
        for (by, named) in said {
            let named = named.into_iter().filter_map(|undone| match undone {
                RevertedId::Whole(id) => Some(id),
                RevertedId::Short(start) => only_one(&commits, &start),
            });
            let named: Vec<ObjectId> = named.filter(|id| places.contains_key(id)).collect();
            for undone in taken_back(store, by, named)? {
                reverts.entry(undone).or_default().push(by);
            }
        }
        Ok(Self { commits, places, undone: undone(&reverts) })
    }

    fn find(
        &self,
        store: &Store,
        record: &SealRecord,
        digest: &str,
    ) -> Result<Option<Presence>, StoreError> {
        let mut named = Vec::new();
        for commit in &self.commits {
            // The head itself is an ancestor where a person merged or pushed the sealed branch as it is.
            if commit.id == record.head || names(store, commit, record, digest)? {
                named.push(commit);
            }
        }
        // Copies of one commit count as one: it is present as long as one of them is.
        let mut carriers: BTreeMap<&[u8], Vec<ObjectId>> = BTreeMap::new();
        let mut last = None;
        for commit in believed(store, record, named)? {
            last.get_or_insert(commit.id);
            carriers.entry(&commit.origin).or_default().push(commit.id);
        }
        let Some(commit) = last else { return Ok(None) };
        let mut reverted_by = None;
        for copies in carriers.values() {
            let undone: Vec<Option<ObjectId>> =
                copies.iter().map(|copy| self.undone_by(*copy)).collect();
            // One commit of the change that is reverted in all its copies takes the change back.
            if undone.iter().all(Option::is_some) {
                reverted_by = undone.into_iter().flatten().next();
            }
        }
        Ok(Some(Presence { commit, reverted_by }))
    }

    /// Returns the commit that reverts another, alone or within a merge, and is itself in effect.
    fn undone_by(&self, commit: ObjectId) -> Option<ObjectId> {
        if self.undone.is_empty() {
            return None;
        }
        // A revert of a merge names the merge alone, and takes back every commit that the merge brought.
        let by_merge = self.commits.iter().filter(|merge| {
            merge.parents.len() > 1
                && self.undone.contains_key(&merge.id)
                && self.brought_by(merge).contains(&commit)
        });
        let mut targets = by_merge.map(|merge| merge.id).chain([commit]);
        targets.find_map(|target| self.undone.get(&target).copied())
    }

    /// Returns the commits that a merge brought to its first parent.
    fn brought_by(&self, merge: &Commit) -> BTreeSet<ObjectId> {
        let Some((first, others)) = merge.parents.split_first() else { return BTreeSet::new() };
        let mut brought = self.reachable(others);
        for known in self.reachable(&[*first]) {
            brought.remove(&known);
        }
        brought
    }

    fn reachable(&self, from: &[ObjectId]) -> BTreeSet<ObjectId> {
        let mut found = BTreeSet::new();
        let mut next = from.to_vec();
        while let Some(id) = next.pop() {
            if let Some(place) = self.places.get(&id)
                && found.insert(id)
            {
                next.extend(&self.commits[*place].parents);
            }
        }
        found
    }
}

/// Returns those of the commits that name a change which really bring it, or a part of it. All of it has to be there
/// with one of them.
fn believed<'c>(
    store: &Store,
    record: &SealRecord,
    named: Vec<&'c Commit>,
) -> Result<Vec<&'c Commit>, StoreError> {
    let Some(sealed) = sealed_effect(store, record, &named)? else { return Ok(named) };
    let (mut parts, mut is_there) = (Vec::new(), false);
    for commit in named {
        let (own, tree) = (Effect::of_commit(store, commit.id)?, store.tree_of(commit.id)?);
        let is_part = own.is_within(&record.footprint);
        // A commit that does other things as well must have brought it: its text may have been there before.
        let was_there = match commit.parents.first() {
            Some(parent) if !is_part => {
                sealed.is_in(store, store.tree_of(*parent)?, &Effect::default())?
            }
            Some(_) | None => false,
        };
        let brings_all = !was_there && (tree == record.tree || sealed.is_in(store, tree, &own)?);
        is_there |= brings_all || commit.id == record.head;
        if is_part || brings_all || commit.id == record.head {
            parts.push(commit);
        }
    }
    Ok(if is_there { parts } else { Vec::new() })
}

/// Returns the effect of a sealed change, or `None` if the commits that name it need not be compared with it.
fn sealed_effect(
    store: &Store,
    record: &SealRecord,
    named: &[&Commit],
) -> Result<Option<Effect>, StoreError> {
    if named.is_empty() || matches!(named, [only] if only.id == record.head) {
        return Ok(None);
    }
    // A seal is checked against its base when it is loaded. Without the base nothing is known, and nothing believed.
    if store.require_commit(record.base).is_err() {
        return Ok(Some(Effect::default()));
    }
    Effect::between(store, Some(store.tree_of(record.base)?), record.tree).map(Some)
}

/// Returns those of the commits that a message says it reverts whose effect the commit takes back, each by itself or all
/// together.
fn taken_back(
    store: &Store,
    by: ObjectId,
    named: Vec<ObjectId>,
) -> Result<Vec<ObjectId>, StoreError> {
    if named.is_empty() {
        return Ok(named);
    }
    let undoing = Effect::of_commit(store, by)?;
    let (mut undone, mut all) = (Vec::new(), Effect::default());
    for id in &named {
        let effect = Effect::of_commit(store, *id)?;
        if effect.is_undone_by(&undoing) {
            undone.push(*id);
        }
        all = all.and(effect);
    }
    // Of several commits that edit each other's lines, no single one is taken back by a revert of them all.
    let is_all = named.len() > 1 && all.is_undone_by(&undoing);
    Ok(if is_all { named } else { undone })
}

/// Returns true if a commit names a change in a trailer.
fn names(
    store: &Store,
    commit: &Commit,
    record: &SealRecord,
    digest: &str,
) -> Result<bool, StoreError> {
    for claim in commit.claims.iter().filter(|claim| claim.id == record.id.as_str()) {
        match &claim.digest {
            Some(named) if named == digest => return Ok(true),
            // The first version left no digest. A commit below the base is an earlier change of the same
            // number.
            None if record.schema == 1 => {
                if !descends_from(store, record.base, commit.id)? {
                    return Ok(true);
                }
            }
            Some(_) | None => {}
        }
    }
    Ok(false)
}

/// Returns the commits that are reverted by a commit in effect. A revert is newer than what it reverts, so
/// there are no cycles. Chains may be long, so this does not recurse.
fn undone(reverts: &BTreeMap<ObjectId, Vec<ObjectId>>) -> BTreeMap<ObjectId, ObjectId> {
    let mut known: BTreeMap<ObjectId, Option<ObjectId>> = BTreeMap::new();
    for start in reverts.keys() {
        let mut open = vec![*start];
        // A commit is decided after all of its reverts are: it stays on the stack until they are known.
        while let Some(at) = open.last().copied() {
            let by = reverts.get(&at).map(Vec::as_slice).unwrap_or_default();
            let unknown =
                by.iter().find(|by| reverts.contains_key(*by) && !known.contains_key(*by));
            if let Some(next) = unknown.filter(|next| !open.contains(next)) {
                open.push(*next);
                continue;
            }
            let holds = |by: &&ObjectId| !matches!(known.get(*by), Some(Some(_)));
            known.insert(at, by.iter().find(holds).copied());
            open.pop();
        }
    }
    known.into_iter().filter_map(|(commit, by)| Some((commit, by?))).collect()
}

/// Parses the seal trailers of a message from its last paragraph, as git does.
fn claims(message: &[u8]) -> Vec<Claim> {
    let body = message.trim_end();
    let Some((_, last)) = body.rsplit_once_str("\n\n") else { return Vec::new() };
    // One trailer is enough, unlike in `with_trailers`: a forge or a person may have added other lines when
    // merging.
    if !last.lines().any(is_trailer) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for line in last.lines() {
        let Some((key, value)) = line.split_once_str(": ") else { continue };
        if !key.eq_ignore_ascii_case(SEALED_TRAILER.as_bytes()) {
            continue;
        }
        let Ok(value) = value.to_str() else { continue };
        let mut words = value.split_whitespace();
        let Some(id) = words.next() else { continue };
        found.push(Claim { id: id.to_owned(), digest: words.next().map(str::to_owned) });
    }
    found
}

/// Returns the bundles that the trailers of a message name, each with the digest of its seal.
pub(crate) fn named_by(message: &[u8]) -> Vec<(String, Option<String>)> {
    claims(message).into_iter().map(|claim| (claim.id, claim.digest)).collect()
}

/// Returns what all copies of a commit have in common.
fn origin(author: &[u8], message: &[u8]) -> Vec<u8> {
    let subject = message.lines().next().unwrap_or_default();
    [author, b"\0", subject].concat()
}

/// A commit as a message names it.
enum RevertedId {
    Whole(ObjectId),
    /// The start of an id, as `git revert --reference` writes it.
    Short(String),
}

/// Returns the commits that a message says it reverts.
fn reverted_by(message: &[u8]) -> impl Iterator<Item = RevertedId> {
    message.find_iter(REVERTS).filter_map(|at| {
        let rest = &message[at + REVERTS.len()..];
        let hex = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (hex, after) = rest.split_at(hex);
        if let Ok(id) = ObjectId::from_hex(hex) {
            return Some(RevertedId::Whole(id));
        }
        // Subject and date follow in parentheses. Without them it may be a word that begins like an id.
        let is_short = hex.len() >= SHORTEST && after.starts_with(b" (");
        is_short.then(|| RevertedId::Short(hex.to_str_lossy().to_lowercase()))
    })
}

/// Returns the commit that a short id means, unless it means several.
fn only_one(commits: &[Commit], start: &str) -> Option<ObjectId> {
    let ids = commits.iter().map(|commit| commit.id);
    let mut meant = ids.filter(|id| id.to_string().starts_with(start));
    meant.next().filter(|_| meant.next().is_none())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gix::ObjectId;

    use super::{Claim, claims, undone};

    #[test]
    fn a_revert_of_a_revert_brings_a_change_back() {
        let id = |n: u8| ObjectId::from_bytes_or_panic(&[n; 20]);
        // 2 reverts 1, 3 reverts 2, 4 reverts 3.
        let chain = |length: u8| -> BTreeMap<ObjectId, Vec<ObjectId>> {
            (1..length).map(|n| (id(n), vec![id(n + 1)])).collect()
        };
        for (length, is_undone) in [(1, false), (2, true), (3, false), (4, true)] {
            assert_eq!(undone(&chain(length)).contains_key(&id(1)), is_undone, "{length}");
        }
    }

    #[test]
    fn only_trailers_name_a_change() {
        let claim = |id: &str, digest: Option<&str>| Claim {
            id: id.to_owned(),
            digest: digest.map(str::to_owned),
        };
        for (message, expected) in [
            ("s\n\nPdca-Sealed: 12 ab\n", vec![claim("12", Some("ab"))]),
            ("s\n\nPdca-Sealed: 12\n", vec![claim("12", None)]),
            ("s\n\nFixes: #1\nPdca-Sealed: 12 ab\nReviewed-by: x\n", vec![claim("12", Some("ab"))]),
            (
                "s\n\nPdca-Sealed: 1 a\nPdca-Sealed: 2 b\n",
                vec![claim("1", Some("a")), claim("2", Some("b"))],
            ),
            ("Pdca-Sealed: 12 ab\n", vec![]),
            ("s\n\nPdca-Sealed: 12 ab\n\nmore words\n", vec![]),
            ("s\n\n> Pdca-Sealed: 12 ab\n", vec![]),
        ] {
            assert_eq!(claims(message.as_bytes()), expected, "{message:?}");
        }
    }
}
