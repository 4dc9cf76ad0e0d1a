//! Branches of a lane: one per attempt, never reused.

use gix::{
    bstr::ByteSlice as _,
    refs::{
        FullName, Target,
        transaction::{Change, PreviousValue, RefEdit, RefLog},
    },
};
use pdca_state::BundleId;

use crate::{failure::LaneError, history, lane::Lane, work_tree::WorkTree};

/// Returns the branch name of one attempt at a bundle: `pdca/<run8>/<id>.g<N>`.
///
/// `run8` is the last eight characters of the run, which in a ULID are random. The generation is part of the name, so
/// that a process of an abandoned attempt can only modify a branch that is not used any more.
pub fn attempt_branch(run: &str, bundle: &BundleId, generation: u32) -> Result<String, LaneError> {
    let start = run.len().saturating_sub(8);
    let run8 = run
        .get(start..)
        .filter(|run8| run8.len() == 8 && run8.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let run8 = run8.ok_or_else(|| LaneError::Name { name: run.to_owned() })?;
    Ok(format!("pdca/{run8}/{bundle}.g{generation}"))
}

impl WorkTree {
    /// Creates a branch at the commit that is checked out, and puts HEAD on it. A reset leaves the branch again.
    ///
    /// Does nothing if HEAD is already on it. Fails if a branch of this name exists anywhere else.
    pub fn start_branch(&self, branch: &str) -> Result<(), LaneError> {
        let repo = self.room.enter()?;
        let head = self.require_head(&repo)?;
        let bad = || LaneError::Name { name: branch.to_owned() };
        // A tool in the lane could take the name for an option.
        if branch.starts_with('-') {
            return Err(bad());
        }
        let name = FullName::try_from(format!("refs/heads/{branch}")).map_err(|_| bad())?;
        let failed = |source| LaneError::objects("start a branch", source);
        let attached = repo.head_name().map_err(failed)?;
        if attached.as_ref() == Some(&name) {
            return self.stage.lend_memory(&self.room);
        }
        // Looked up before it is created, for an error that names the branch; `MustNotExist` below
        // closes the race.
        if repo.try_find_reference(name.as_ref()).map_err(failed)?.is_some() {
            return Err(LaneError::BranchTaken { branch: branch.to_owned() });
        }
        history::move_ref(
            &repo,
            name.as_bstr().to_string().as_str(),
            head,
            PreviousValue::MustNotExist,
            false,
        )?;
        let edit = RefEdit::update(
            FullName::try_from("HEAD").map_err(|_| bad())?,
            Target::Symbolic(name),
            PreviousValue::Any,
            "pdca",
        );
        history::edit(&repo, edit)?;
        self.stage.lend_memory(&self.room)
    }

    /// Returns true if the branch exists, in the lane's repository or in the primary's for a worktree.
    pub(crate) fn has_branch(&self, branch: &str) -> Result<bool, LaneError> {
        let repo = self.room.enter()?;
        let found = repo.try_find_reference(&full_name(branch)?);
        Ok(found.map_err(|source| LaneError::objects("look for a branch", source))?.is_some())
    }
}

impl Lane {
    /// Deletes the branch that the last [`reset_on`](Self::reset_on) created, if any. HEAD must have left it.
    pub(crate) fn drop_branch(&self, repo: &gix::Repository) -> Result<(), LaneError> {
        let failed = |source| LaneError::Io { doing: "read the marker", source };
        let marker = self.record.marker().map_err(failed)?;
        let Some(branch) = marker.and_then(|marker| marker.branch) else { return Ok(()) };
        let name = full_name(&branch)?;
        let found = repo.try_find_reference(&name);
        if found.map_err(|source| LaneError::objects("look for a branch", source))?.is_some() {
            // Any value: the builder moves its branch by committing. The marker says that the
            // branch is the lane's.
            let change = Change::Delete { expected: PreviousValue::Any, log: RefLog::AndReference };
            history::edit(repo, RefEdit { change, name, deref: false })?;
        }
        self.record.update("note the branch", |marker| marker.branch = None)
    }
}

/// Returns true if a full ref name is one that [`attempt_branch`] can return.
pub(crate) fn is_attempt(name: &[u8]) -> bool {
    let below = name.strip_prefix(b"refs/heads/pdca/").and_then(|name| name.split_once_str("/"));
    let Some((run8, attempt)) = below else { return false };
    let Some((id, generation)) = attempt.rsplit_once_str(".g") else { return false };
    run8.len() == 8
        && run8.iter().all(u8::is_ascii_alphanumeric)
        && !id.is_empty()
        && !id.contains(&b'/')
        && !generation.is_empty()
        && generation.iter().all(u8::is_ascii_digit)
}

fn full_name(branch: &str) -> Result<FullName, LaneError> {
    FullName::try_from(format!("refs/heads/{branch}"))
        .map_err(|_| LaneError::Name { name: branch.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{attempt_branch, is_attempt};

    #[test]
    fn the_branch_of_an_attempt_is_known_by_its_name() {
        let branch = attempt_branch("01ARZ3NDEKTSV4RRFFQ69G5FAV", &"A-7".parse().unwrap(), 12);
        assert!(is_attempt(format!("refs/heads/{}", branch.unwrap()).as_bytes()));
        for other in
            ["main", "pdca/x.g1", "pdca/12345678/x", "pdca/12345678/a/x.g1", "pdca/12345678/.g1"]
        {
            assert!(!is_attempt(format!("refs/heads/{other}").as_bytes()), "{other}");
        }
    }
}
