//! Which sealed changes a history has, found in git and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use gix::{ObjectId, bstr::ByteSlice as _};
use pdca_state::BundleId;

use crate::{failure::StoreError, fold::TRAILER, land::proof, seal::Sealed, store::Store};

/// The changes that are in the history of `tip`, each with the last commit that brought it.
///
/// A change is there where a commit after its base names it in its trailer, or where its own head
/// is an ancestor. Commits before the base do not count: another bundle may have had the same id.
pub fn present_in(
    store: &Store,
    tip: ObjectId,
    seals: &[&Sealed],
) -> Result<BTreeMap<BundleId, ObjectId>, StoreError> {
    let mut found = BTreeMap::new();
    let bases: BTreeSet<ObjectId> = seals.iter().map(|sealed| sealed.record().base).collect();
    for base in bases {
        let named = named_after(store, base, tip)?;
        for sealed in seals.iter().filter(|sealed| sealed.record().base == base) {
            if let Some(commit) = named.get(sealed.id().as_str()) {
                found.insert(sealed.id().clone(), *commit);
            }
        }
    }
    for sealed in seals {
        let head = sealed.record().head;
        if !found.contains_key(sealed.id()) && contains(store, tip, head)? {
            found.insert(sealed.id().clone(), head);
        }
    }
    Ok(found)
}

/// The refs below a prefix such as `refs/heads/pdca/`, each with the commit that it leads to.
pub fn refs_below(store: &Store, prefix: &str) -> Result<Vec<(String, ObjectId)>, StoreError> {
    let failed = |source| StoreError::objects("list refs", source);
    let repo = store.repo();
    let mut found = Vec::new();
    for reference in repo.references().map_err(failed)?.prefixed(prefix).map_err(failed)? {
        let mut reference = reference.map_err(failed)?;
        let name = reference.name().as_bstr().to_string();
        // One that leads to no commit is none that anybody could mean.
        if let Ok(commit) = reference.peel_to_commit() {
            found.push((name, commit.id));
        }
    }
    Ok(found)
}

/// Whether `commit` is `tip` or an ancestor of it.
pub fn contains(store: &Store, tip: ObjectId, commit: ObjectId) -> Result<bool, StoreError> {
    store.require_commit(tip)?;
    store.require_commit(commit)?;
    proof::contains(store, tip, commit)
}

/// The ids in trailers of the commits after `base`, each with the latest commit that has it.
fn named_after(
    store: &Store,
    base: ObjectId,
    tip: ObjectId,
) -> Result<BTreeMap<String, ObjectId>, StoreError> {
    let format = format!("--format=%H%n%(trailers:key={TRAILER},valueonly)");
    let range = format!("{base}..{tip}");
    let args = ["log", "-z", &format, "--end-of-options", &range, "--"];
    let said = store.git().must("look for landed changes", &args, Vec::new())?;
    let mut found = BTreeMap::new();
    for commit in said.split_str("\0").filter(|commit| !commit.is_empty()) {
        let mut lines = commit.lines();
        let form = || StoreError::Form { what: "git's list of commits".to_owned() };
        let id = ObjectId::from_hex(lines.next().unwrap_or_default()).map_err(|_| form())?;
        for named in lines.filter_map(|line| line.to_str().ok()).map(str::trim) {
            if !named.is_empty() {
                found.entry(named.to_owned()).or_insert(id);
            }
        }
    }
    Ok(found)
}
