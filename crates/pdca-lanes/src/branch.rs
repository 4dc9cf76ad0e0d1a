//! Branches of a lane: one for each attempt, never used twice.

use gix::refs::{
    FullName, Target,
    transaction::{PreviousValue, RefEdit},
};
use pdca_state::BundleId;

use crate::{failure::LaneError, history, lane::Lane};

/// The branch of one attempt at a bundle: `pdca/<run8>/<id>.g<N>`.
///
/// Of the run only the last eight characters count, which in a ULID are the random ones. The
/// generation is part of the name, so that an attempt that was given up can only spoil a branch
/// that nobody will look at.
pub fn attempt_branch(run: &str, bundle: &BundleId, generation: u32) -> Result<String, LaneError> {
    let start = run.len().saturating_sub(8);
    let run8 = run
        .get(start..)
        .filter(|run8| run8.len() == 8 && run8.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let run8 = run8.ok_or_else(|| LaneError::Name { name: run.to_owned() })?;
    Ok(format!("pdca/{run8}/{bundle}.g{generation}"))
}

impl Lane {
    /// Makes a branch at what is checked out, and puts HEAD on it; a reset leaves it again.
    ///
    /// Doing it again with HEAD already there changes nothing. A branch of this name that is
    /// anywhere else is refused, whoever has it checked out.
    pub fn start_branch(&self, branch: &str) -> Result<(), LaneError> {
        let repo = self.room.enter()?;
        let head = self.require_head(&repo)?;
        let bad = || LaneError::Name { name: branch.to_owned() };
        if branch.starts_with('-') {
            return Err(bad());
        }
        let name = FullName::try_from(format!("refs/heads/{branch}")).map_err(|_| bad())?;
        let failed = |source| LaneError::objects("start a branch", source);
        let attached = repo.head_name().map_err(failed)?;
        if attached.as_ref() == Some(&name) {
            return Ok(());
        }
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
        history::edit(&repo, edit)
    }
}
