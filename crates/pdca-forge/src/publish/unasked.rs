//! Commits that would go out with a change and are not of it.
//!
//! A branch is pushed with its whole history. Where the base has commits that the remote lacks (unpushed work on the target
//! branch, or accepted changes that are not published), pushing the change would publish them too, and that cannot
//! be taken back. So it is refused, unless a person asks for it.

use std::collections::BTreeSet;

use pdca_integrate::{
    CommitBeyond, Destination, ObjectId, RemoteTip, bring, commits_beyond, contains,
};
use pdca_journal::events::WarningCode;
use pdca_state::BundleId;

use crate::publish::failure::PublishError;
use crate::publish::forge_state::ForgeState;
use crate::publish::inputs::PublishInputs;
use crate::publish::stack::Stack;

/// The maximum number of commits that are named.
const NAMED: usize = 10;

impl ForgeState<'_> {
    /// Returns an error if commits would be pushed that are not of the change, and were not asked for.
    pub fn require_asked(&self, inputs: &PublishInputs) -> Result<(), PublishError> {
        // What was pushed once is out, and a merged change is not pushed again.
        if self.is_merged() || self.is_out(inputs) {
            return Ok(());
        }
        let remote = self.settings().remote.clone();
        let others = others(inputs, &remote)?;
        if others.is_empty() {
            return Ok(());
        }
        let supports = unpublished(&inputs.stack);
        let mut commits: Vec<String> = others.iter().take(NAMED).map(shown).collect();
        if others.len() > NAMED {
            commits.push(format!("and {} more", others.len() - NAMED));
        }
        if self.publication.request.include_base {
            let text =
                format!("pushed with it, because {remote} lacks them: {}", commits.join("; "));
            (self.publication.warn)(WarningCode::ForeignCommits, text);
            return Ok(());
        }
        let id = self.publication.bundle.id().clone();
        Err(PublishError::Unasked { id, remote, commits, supports })
    }
}

/// Returns the commits below the change that the remote's branch lacks and that are not published otherwise.
fn others(inputs: &PublishInputs, remote: &str) -> Result<Vec<CommitBeyond>, PublishError> {
    let store = &inputs.target_branch.store;
    let seal = inputs.sealed.record();
    let to = Destination { remote, branch: &inputs.base };
    let Some(known) = tip_of(inputs, to, seal.base)? else { return Ok(Vec::new()) };
    let hidden: BTreeSet<String> =
        unpublished(&inputs.stack).iter().map(ToString::to_string).collect();
    // Changes below whose branch is out are no news to the remote.
    let is_out = |digest: &String| {
        let support = seal.stands_on.iter().find(|support| support.seal.as_ref() == Some(digest));
        support.is_some_and(|support| !hidden.contains(support.id.as_str()))
    };
    let mut others = commits_beyond(store, known, seal.base)?;
    others.retain(|commit| !commit.seals.iter().any(is_out));
    Ok(others)
}

/// Returns the tip of the target branch at the remote, with its objects; `None` if it has no such branch.
fn tip_of(
    inputs: &PublishInputs,
    to: Destination<'_>,
    base: ObjectId,
) -> Result<Option<ObjectId>, PublishError> {
    let store = &inputs.target_branch.store;
    let found = match pdca_integrate::remote_tip(store, to)? {
        // An object that is here need not be fetched.
        RemoteTip::At(at) if contains(store, at, base).is_ok() => RemoteTip::At(at),
        RemoteTip::At(_) => bring(store, to)?,
        other @ (RemoteTip::NoBranch | RemoteTip::Silent { .. }) => other,
    };
    match found {
        RemoteTip::At(at) => Ok(Some(at)),
        RemoteTip::NoBranch => Ok(None),
        RemoteTip::Silent { said } => Err(PublishError::Remote {
            remote: to.remote.to_owned(),
            branch: to.branch.to_owned(),
            said: said.split_whitespace().collect::<Vec<_>>().join(" "),
        }),
    }
}

/// Returns the bundles in the base that are not published.
fn unpublished(stack: &Stack) -> Vec<BundleId> {
    match stack {
        Stack::None | Stack::On(_) => Vec::new(),
        Stack::Contains(all) => {
            all.iter().filter(|one| !one.is_out).map(|one| one.id.clone()).collect()
        }
    }
}

fn shown(commit: &CommitBeyond) -> String {
    // A subject of somebody else's commit may hold escape sequences for the terminal.
    let subject: String = commit.subject.chars().filter(|c| !c.is_control()).take(72).collect();
    format!("{:.12} {subject}", commit.commit.to_string())
}
