//! Symbolic links that lead out of a tree.
//!
//! A link is judged in the tree that it is in, never by a patch: a patch that renames a link has no line for its target,
//! and the same target means another place from another directory. A link to another one leads to where that one does.

use std::fmt;

use gix::ObjectId;
use pdca_state::patch::path::leaves;

use crate::{
    git::failure::StoreError,
    git::footprint::{Leaf, TreeDifference},
    git::path::TreePath,
    git::store::Store,
};

/// The number of links that are followed one after the other, as in the kernel.
const MOST_LINKS: usize = 40;
/// The number of characters of a target that are shown.
const SHOWN: usize = 200;

/// A symbolic link that leads out of its tree, or into its `.git`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutwardLink {
    pub path: TreePath,
    /// The text of the link, as far as it can be shown.
    pub target: String,
}

impl fmt::Display for OutwardLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.path, self.target)
    }
}

/// Returns the links that a change from `base` to `head` makes, moves or edits and that lead out of the tree of `head`.
///
/// Both are commits or trees. Links that were there before, at the same path and with the same target, do not count.
pub fn outward_links(
    store: &Store,
    base: ObjectId,
    head: ObjectId,
) -> Result<Vec<OutwardLink>, StoreError> {
    outward_between(store, store.tree_at(base)?, store.tree_at(head)?)
}

/// Like [`outward_links`], for trees.
pub(crate) fn outward_between(
    store: &Store,
    base: ObjectId,
    head: ObjectId,
) -> Result<Vec<OutwardLink>, StoreError> {
    let mut found = Vec::new();
    for path in TreeDifference::between(store, Some(base), head)?.paths {
        let Some(leaf) = store.leaf(head, &path)?.filter(|leaf| leaf.mode.is_link()) else {
            continue;
        };
        let target = target_of(store, leaf)?;
        if leads_out(store, head, &path, &target)? {
            let target: String = String::from_utf8_lossy(&target).chars().take(SHOWN).collect();
            found.push(OutwardLink { path, target: target.escape_debug().to_string() });
        }
    }
    Ok(found)
}

/// Follows a link within a tree, through other links of the tree.
fn leads_out(
    store: &Store,
    tree: ObjectId,
    path: &TreePath,
    target: &[u8],
) -> Result<bool, StoreError> {
    if leaves(path.as_bytes(), target) {
        return Ok(true);
    }
    let mut at: Vec<Vec<u8>> = parts(path.as_bytes()).collect();
    at.pop();
    let mut ahead: Vec<Vec<u8>> = parts(target).collect();
    ahead.reverse();
    let mut followed = 0;
    while let Some(part) = ahead.pop() {
        if part == b".." {
            at.pop();
            continue;
        }
        at.push(part);
        let here = TreePath::new(at.join(&b'/'));
        let Some(link) = store.leaf(tree, &here)?.filter(|leaf| leaf.mode.is_link()) else {
            continue;
        };
        let next = target_of(store, link)?;
        if leaves(here.as_bytes(), &next) {
            return Ok(true);
        }
        followed += 1;
        // More than that is a circle, which leads nowhere.
        if followed > MOST_LINKS {
            return Ok(false);
        }
        at.pop();
        let next: Vec<Vec<u8>> = parts(&next).collect();
        ahead.extend(next.into_iter().rev());
    }
    Ok(false)
}

fn parts(path: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    parts.map(<[u8]>::to_vec)
}

fn target_of(store: &Store, link: Leaf) -> Result<Vec<u8>, StoreError> {
    let failed = |source| StoreError::objects("read a link of a tree", source);
    Ok(store.repo().find_blob(link.id).map_err(failed)?.detach().data)
}
