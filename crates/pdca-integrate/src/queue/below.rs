//! Landed changes directly below a tip.

use std::collections::BTreeMap;

use gix::{ObjectId, bstr::ByteSlice as _};

use crate::{
    git::failure::StoreError, git::seal::Sealed, git::store::Store, queue::plan::Strategy,
};

/// A landed change and its last commit.
#[derive(Debug, Clone, Copy)]
pub struct LandedChange<'a> {
    pub sealed: &'a Sealed,
    pub commit: ObjectId,
}

/// Returns the changes that landed directly one upon the other up to `tip`, oldest first, and the commit below them.
///
/// The walk ends at a foreign commit, because every combination must contain it, and after `most` changes.
pub fn landed_below<'a>(
    store: &Store,
    tip: ObjectId,
    strategy: Strategy,
    landings: &[LandedChange<'a>],
    most: usize,
) -> Result<(ObjectId, Vec<LandedChange<'a>>), StoreError> {
    let by_commit: BTreeMap<ObjectId, LandedChange<'a>> =
        landings.iter().map(|landing| (landing.commit, *landing)).collect();
    if by_commit.is_empty() {
        return Ok((tip, Vec::new()));
    }
    let length = |landing: &LandedChange<'_>| match strategy {
        Strategy::RebaseFf => landing.sealed.record().commits.len().max(1),
        Strategy::MergeCommit => 1,
    };
    // Enough for all of them on one line, and the commit below.
    let count: usize = landings.iter().map(length).sum::<usize>() + 1;
    let count = format!("--max-count={count}");
    // First parents: with merge commits the sealed commits are on the second one.
    let args = ["rev-list", "--first-parent", &count, "--end-of-options", &tip.to_string(), "--"];
    let said = store.git()?.must("list the commits below a tip", &args, Vec::new())?;
    let form = || StoreError::Form { what: "git's list of commits".to_owned() };
    let line = said.lines().map(|line| ObjectId::from_hex(line).map_err(|_| form()));
    let line = line.collect::<Result<Vec<ObjectId>, StoreError>>()?;
    let (mut at, mut found) = (0, Vec::new());
    while found.len() < most
        && let Some(landing) = line.get(at).and_then(|commit| by_commit.get(commit))
    {
        let next = at + length(landing);
        // It brought fewer commits than were sealed, or nothing is below it: its extent is unknown.
        if next >= line.len()
            || line[at + 1..next].iter().any(|commit| by_commit.contains_key(commit))
        {
            break;
        }
        found.push(*landing);
        at = next;
    }
    found.reverse();
    Ok((line.get(at).copied().unwrap_or(tip), found))
}
