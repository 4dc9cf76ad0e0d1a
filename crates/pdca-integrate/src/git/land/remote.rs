//! Branches of remotes: reading the tip, fetching it, and remembering it.
//!
//! No ref of the user is written for that: no branch, no tag, no remote-tracking ref and no `FETCH_HEAD`. The
//! last known tip is kept in a ref of our own, so that `status` can show it without asking the remote.

use gix::{ObjectId, bstr::ByteSlice as _};
use pdca_process::{GitCall, GitOutput};

use super::push::PushError;
use crate::{
    git::failure::StoreError,
    git::fence::{Fence, Move, ReflogEntry, ref_at},
    git::presence::refs_below,
    git::store::Store,
};

/// The prefix of the refs that remember tips of remote branches.
const SIGHTINGS: &str = "refs/pdca/remote/";

/// Settings that override the user's configuration, beside those of every call.
/// A push that brings tags or submodules along would publish more than was gated, and one that is to be signed
/// fails at a remote without support for it. A commit graph would be a file in the user's repository.
const SETTINGS: &[&str] = &[
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "fetch.writeCommitGraph=false",
];

#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The name of the remote, or its address.
    pub remote: &'a str,
    /// The branch name without `refs/heads/`.
    pub branch: &'a str,
}

/// The tip of a remote branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteTip {
    At(ObjectId),
    NoBranch,
    Silent { said: String },
}

impl Destination<'_> {
    /// Returns the ref that remembers the tip of this branch.
    pub fn sighting(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_name = !self.remote.is_empty() && self.remote.bytes().all(plain);
        let digest = pdca_state::sha256_hex(self.remote.as_bytes());
        // An address cannot be part of a ref name. `at.` cannot collide: a name with a dot is treated as an
        // address here.
        let remote = if is_name { self.remote.to_owned() } else { format!("at.{digest:.16}") };
        format!("{SIGHTINGS}{remote}/{}", self.branch)
    }

    /// Returns true if a ref remembers the tip of a remote branch.
    pub fn is_sighting(reference: &str) -> bool {
        reference.starts_with(SIGHTINGS)
    }

    pub(super) fn require_names(&self) -> Result<(), PushError> {
        let bad = |what, given: &str| Err(PushError::Name { what, given: given.to_owned() });
        let remote = self.remote;
        if remote.is_empty() || remote.starts_with('-') || remote.contains(char::is_control) {
            return bad("remote", remote);
        }
        let full = format!("refs/heads/{}", self.branch);
        // It would be valid as a ref, but git takes it as an option where a branch is expected.
        if self.branch.starts_with('-') || gix::refs::FullName::try_from(full.as_str()).is_err() {
            return bad("branch", self.branch);
        }
        Ok(())
    }
}

/// Returns the push address of a remote. All questions go to this address and not to the remote's name, because
/// with a name git would also move the user's remote-tracking refs.
pub(super) fn address(store: &Store, remote: &str) -> Result<String, PushError> {
    let said = call(store, &["remote", "get-url", "--push", "--all", "--", remote])?;
    if !said.success() {
        // No remote has that name, so it is an address itself.
        return Ok(remote.to_owned());
    }
    let said = said.stdout.to_str_lossy();
    let mut addresses = said.lines().filter(|line| !line.is_empty());
    match (addresses.next(), addresses.next()) {
        (Some(one), None) => Ok(one.to_owned()),
        // A landing is one compare-and-swap at one place. With two addresses one could take it and the other
        // refuse.
        (_, _) => Err(PushError::Addresses { remote: remote.to_owned() }),
    }
}

/// Asks the remote for the tip of a branch.
pub fn remote_tip(store: &Store, of: Destination<'_>) -> Result<RemoteTip, PushError> {
    of.require_names()?;
    let address = address(store, of.remote)?;
    tip_at(store, of, &address)
}

fn tip_at(store: &Store, of: Destination<'_>, address: &str) -> Result<RemoteTip, PushError> {
    let reference = format!("refs/heads/{}", of.branch);
    let said = call(store, &["ls-remote", "--refs", "--", address, &reference])?;
    if !said.success() {
        return Ok(RemoteTip::Silent { said: said.stderr });
    }
    // `ls-remote` matches the end of the name, so the list may contain other refs.
    for line in said.stdout.lines() {
        if let Some((id, name)) = line.split_once_str("\t")
            && name == reference.as_bytes()
        {
            let form = |_| StoreError::Form { what: "the remote's list of refs".to_owned() };
            return Ok(RemoteTip::At(ObjectId::from_hex(id).map_err(form)?));
        }
    }
    Ok(RemoteTip::NoBranch)
}

/// Asks the remote for the tip of a branch and fetches its objects, without writing a ref.
pub fn bring(store: &Store, of: Destination<'_>) -> Result<RemoteTip, PushError> {
    of.require_names()?;
    let address = address(store, of.remote)?;
    bring_from(store, of, &address)
}

/// Like [`bring`], from the address that the user fetches from, which may differ from the one that is pushed to.
pub fn bring_to_read(store: &Store, of: Destination<'_>) -> Result<RemoteTip, PushError> {
    of.require_names()?;
    let said = call(store, &["remote", "get-url", "--", of.remote])?;
    if !said.success() {
        return Ok(RemoteTip::NoBranch);
    }
    let said = said.stdout.to_str_lossy();
    bring_from(store, of, said.lines().next().unwrap_or_default())
}

/// Returns the remote and the branch there that a local branch follows, as the user configured it; without such a
/// configuration, the branch of the same name at `remote`, if there is a remote of that name.
pub fn upstream(
    store: &Store,
    branch: &str,
    remote: &str,
) -> Result<Option<(String, String)>, StoreError> {
    let get = |key: &str| -> Result<Option<String>, StoreError> {
        let said = call(store, &["config", "--get", &format!("branch.{branch}.{key}")])?;
        let text = said.stdout.to_str_lossy().trim().to_owned();
        Ok(Some(text).filter(|text| said.success() && !text.is_empty()))
    };
    if let (Some(remote), Some(merge)) = (get("remote")?, get("merge")?) {
        let name = merge.strip_prefix("refs/heads/").map(ToOwned::to_owned);
        // `.` is the repository itself: the branch follows another local one.
        return Ok(name.filter(|_| remote != ".").map(|name| (remote, name)));
    }
    let is_known = call(store, &["remote", "get-url", "--", remote])?.success();
    Ok(is_known.then(|| (remote.to_owned(), branch.to_owned())))
}

fn bring_from(store: &Store, of: Destination<'_>, address: &str) -> Result<RemoteTip, PushError> {
    let at = match tip_at(store, of, address)? {
        RemoteTip::At(at) => at,
        other @ (RemoteTip::NoBranch | RemoteTip::Silent { .. }) => return Ok(other),
    };
    // A ref of ours at this commit proves that all its objects are here. The commit object alone does not: an
    // interrupted fetch leaves some of them.
    if ref_at(store, &of.sighting())? == Some(at) {
        return Ok(RemoteTip::At(at));
    }
    let reference = format!("refs/heads/{}", of.branch);
    let args = [
        "fetch",
        "--quiet",
        "--no-tags",
        // Each of these overrides a setting of the user, such as `fetch.prune`, that would write or remove refs
        // of theirs.
        "--no-prune",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        // An empty map: no configured refspec applies, so no remote-tracking ref is updated.
        "--refmap=",
        "--",
        address,
        &reference,
    ];
    let said = call(store, &args)?;
    if !said.success() {
        return Ok(RemoteTip::Silent { said: said.stderr });
    }
    match store.require_commit(at) {
        Ok(()) => Ok(RemoteTip::At(at)),
        // The branch was rewound between `ls-remote` and `fetch`.
        Err(_) => Ok(RemoteTip::Silent { said: format!("{at} is gone") }),
    }
}

/// Remembers the tip of a remote branch in a ref, and returns the tip remembered before.
pub fn sight(
    store: &Store,
    fence: &Fence,
    of: Destination<'_>,
    at: ObjectId,
    log: ReflogEntry<'_>,
) -> Result<Option<ObjectId>, PushError> {
    let name = of.sighting();
    let before = ref_at(store, &name)?;
    if before != Some(at) {
        fence.move_refs(store, &[Move { name, from: before, to: Some(at) }], log)?;
    }
    Ok(before)
}

/// Returns the remembered tips of a branch, under names such as `origin/main`.
pub fn sightings(store: &Store, branch: &str) -> Result<Vec<(String, ObjectId)>, StoreError> {
    let of_branch = |name: &str| {
        let place = name.strip_prefix(SIGHTINGS)?;
        let (_, found) = place.split_once('/')?;
        (found == branch).then(|| place.to_owned())
    };
    let all = refs_below(store, SIGHTINGS)?;
    Ok(all.into_iter().filter_map(|(name, at)| Some((of_branch(&name)?, at))).collect())
}

/// Runs git in the target's own repository, because remotes are defined by the user's configuration. An
/// address may be a path relative to the top of the checkout.
pub(super) fn call(store: &Store, args: &[&str]) -> Result<GitOutput, StoreError> {
    let git_dir = store.common_dir();
    let top = git_dir.parent().filter(|_| git_dir.file_name() == Some(".git"));
    let call = GitCall::as_user(top.unwrap_or(git_dir))
        .program(store.git()?.program())
        .repository(git_dir)
        .settings(SETTINGS)
        .args(args);
    Ok(call.run()?)
}
