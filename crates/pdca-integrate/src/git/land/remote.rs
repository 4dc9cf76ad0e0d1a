//! The branch of a remote: where it is, and what it leads to brought here.
//!
//! Nothing of the user's is written for that: no branch, no tag, no remote-tracking ref and no
//! `FETCH_HEAD`. Where the branch was last seen is kept in a ref of our own, so that `status` can tell
//! what is there without asking the remote.

use std::time::Duration;

use gix::{ObjectId, bstr::ByteSlice as _};
use pdca_process::Tool;

use super::push::PushError;
use crate::{
    git::command::run,
    git::failure::StoreError,
    git::fence::{Fence, Log, Move, ref_at},
    git::presence::refs_below,
    git::store::Store,
};

/// How long a remote may take for its answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// Below this are the refs that say where the branches of remotes were last seen.
const SIGHTINGS: &str = "refs/pdca/remote/";

/// What is decided whatever the configuration of the user says.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// A branch of a remote.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The name of the remote, or its address.
    pub remote: &'a str,
    /// The branch there, without `refs/heads/`.
    pub branch: &'a str,
}

/// Where the branch of a remote is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteTip {
    /// There.
    At(ObjectId),
    /// The remote has no such branch.
    NoBranch,
    /// The remote gives no answer.
    Silent {
        /// What git said.
        said: String,
    },
}

impl Destination<'_> {
    /// The ref that says where this branch was last seen.
    pub fn sighting(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_name = !self.remote.is_empty() && self.remote.bytes().all(plain);
        let digest = pdca_state::sha256_hex(self.remote.as_bytes());
        // An address cannot be part of a ref; no remote has a name with a point in it here.
        let remote = if is_name { self.remote.to_owned() } else { format!("at.{digest:.16}") };
        format!("{SIGHTINGS}{remote}/{}", self.branch)
    }

    /// Whether a ref is one that says where the branch of a remote was last seen.
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
        // As a ref it would be legal; as the name of a branch git takes it for an option.
        if self.branch.starts_with('-') || gix::refs::FullName::try_from(full.as_str()).is_err() {
            return bad("branch", self.branch);
        }
        Ok(())
    }
}

/// Where a remote takes pushes. Everything is asked there, by address: git moves the user's own
/// remote-tracking refs along with a remote that it is given by name.
pub(super) fn address(store: &Store, remote: &str) -> Result<String, PushError> {
    let said = run(&tool(store, &["remote", "get-url", "--push", "--all", "--", remote]))?;
    if said.code != 0 {
        // No remote has that name, so it is an address itself.
        return Ok(remote.to_owned());
    }
    let said = said.stdout.to_str_lossy();
    let mut addresses = said.lines().filter(|line| !line.is_empty());
    match (addresses.next(), addresses.next()) {
        (Some(one), None) => Ok(one.to_owned()),
        (_, _) => Err(PushError::Addresses { remote: remote.to_owned() }),
    }
}

/// Asks the remote where its branch is.
pub fn remote_tip(store: &Store, of: Destination<'_>) -> Result<RemoteTip, PushError> {
    of.require_names()?;
    let reference = format!("refs/heads/{}", of.branch);
    let address = address(store, of.remote)?;
    let said = run(&tool(store, &["ls-remote", "--refs", "--", &address, &reference]))?;
    if said.code != 0 {
        return Ok(RemoteTip::Silent { said: said.stderr.trim().to_owned() });
    }
    // The remote matches by the end of the name, so another ref may be in the list as well.
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

/// Asks the remote where its branch is, and brings here what that leads to: objects and no ref.
pub fn bring(store: &Store, of: Destination<'_>) -> Result<RemoteTip, PushError> {
    let at = match remote_tip(store, of)? {
        RemoteTip::At(at) => at,
        other @ (RemoteTip::NoBranch | RemoteTip::Silent { .. }) => return Ok(other),
    };
    // A ref of ours at this commit proves that all of it is here. That the object is here does not: a
    // fetch that was killed leaves some of them.
    if ref_at(store, &of.sighting())? == Some(at) {
        return Ok(RemoteTip::At(at));
    }
    let reference = format!("refs/heads/{}", of.branch);
    let address = address(store, of.remote)?;
    let args = [
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-prune",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--refmap=",
        "--",
        &address,
        &reference,
    ];
    let said = run(&tool(store, &args))?;
    if said.code != 0 {
        return Ok(RemoteTip::Silent { said: said.stderr.trim().to_owned() });
    }
    match store.require_commit(at) {
        Ok(()) => Ok(RemoteTip::At(at)),
        // It was rewound between the two questions.
        Err(_) => Ok(RemoteTip::Silent { said: format!("{at} is not there any more") }),
    }
}

/// Keeps in a ref where the branch of a remote was seen, and says where it was seen before.
pub fn sight(
    store: &Store,
    fence: &Fence,
    of: Destination<'_>,
    at: ObjectId,
    log: Log<'_>,
) -> Result<Option<ObjectId>, PushError> {
    let name = of.sighting();
    let before = ref_at(store, &name)?;
    if before != Some(at) {
        fence.move_refs(store, &[Move { name, from: before, to: Some(at) }], log)?;
    }
    Ok(before)
}

/// Where the branch of each remote was last seen, by names such as `origin/main`.
pub fn sightings(store: &Store, branch: &str) -> Result<Vec<(String, ObjectId)>, StoreError> {
    let of_branch = |name: &str| {
        let place = name.strip_prefix(SIGHTINGS)?;
        let (_, found) = place.split_once('/')?;
        (found == branch).then(|| place.to_owned())
    };
    let all = refs_below(store, SIGHTINGS)?;
    Ok(all.into_iter().filter_map(|(name, at)| Some((of_branch(&name)?, at))).collect())
}

/// git in the target's own repository, because the remote is what the user says it is. An address may
/// be a path from the top of the checkout.
pub(super) fn tool(store: &Store, args: &[&str]) -> Tool {
    let git_dir = store.common_dir();
    let top = git_dir.parent().filter(|_| git_dir.file_name() == Some(".git"));
    Tool::new(store.git().program())
        .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
        .args(args)
        .cwd(top.unwrap_or(git_dir))
        .env("GIT_DIR", store.common_dir().as_str())
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C")
        .timeout(PATIENCE)
}
