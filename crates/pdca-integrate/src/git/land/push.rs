//! What was gated goes to a remote.
//!
//! Success is read from the remote and from nothing else: before the push, because an earlier
//! answer may have been lost, and after it, because "everything up to date" is no proof.

use gix::{ObjectId, bstr::ByteSlice as _};
use thiserror::Error;

use super::{
    proof,
    remote::{Destination, RemoteTip, address, remote_tip, tool},
};
use crate::{
    git::command::{Said, run},
    git::failure::{RefError, StoreError},
    git::fence::Fence,
    git::store::Store,
    queue::verdict::Gated,
};

/// What came of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    /// The remote has it now.
    Pushed,
    /// The remote had it already: an earlier answer was lost.
    AlreadyThere,
    /// The remote is somewhere else: take a new base and gate again.
    Race {
        /// Where it is.
        at: ObjectId,
    },
    /// The remote has no such branch.
    NoBranch,
    /// It may work later.
    Transient {
        /// What git said.
        said: String,
    },
    /// It will not work as it is.
    Permanent {
        /// What the remote said.
        said: String,
    },
}

/// Why nothing was pushed.
#[derive(Debug, Error)]
pub enum PushError {
    /// A name that git would take for something else.
    #[error("{given:?} cannot be used as a {what}")]
    Name {
        /// `remote` or `branch`.
        what: &'static str,
        /// What was given.
        given: String,
    },
    /// A remote that is several.
    #[error("{remote} takes pushes at several addresses")]
    Addresses {
        /// The remote.
        remote: String,
    },
    /// What was to be pushed is not what was gated and sealed.
    #[error("what is to be pushed is not what was gated")]
    Refused(#[source] proof::Disproof),
    /// Another driver took over.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// git could not be run.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Pushes what was gated, if the remote is at exactly the gated base.
///
/// The remote is that of the user's configuration, with the user's credentials; hooks are not
/// run, nothing is asked at a terminal, and no tags, signatures or submodules go along.
pub fn push(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    to: Destination<'_>,
) -> Result<PushOutcome, PushError> {
    to.require_names()?;
    fence.verify(store)?;
    let candidate = &gated.candidate;
    proof::examine(store, gated, candidate.commit).map_err(|error| match error {
        proof::ProofError::Disproved(disproof) => PushError::Refused(disproof),
        proof::ProofError::Store(error) => PushError::Store(error),
    })?;
    let (old, new) = (candidate.base, candidate.commit);
    match remote_tip(store, to)? {
        RemoteTip::At(at) if at == new => return Ok(PushOutcome::AlreadyThere),
        RemoteTip::At(at) if at == old => {}
        RemoteTip::At(at) => return Ok(PushOutcome::Race { at }),
        RemoteTip::NoBranch => return Ok(PushOutcome::NoBranch),
        RemoteTip::Silent { said } => return Ok(PushOutcome::Transient { said }),
    }
    let address = address(store, to.remote)?;
    let reference = format!("refs/heads/{}", to.branch);
    let lease = format!("--force-with-lease={reference}:{old}");
    let what = format!("{new}:{reference}");
    let args =
        ["push", "--porcelain", "--no-verify", "--no-follow-tags", &lease, "--", &address, &what];
    let said = run(&tool(store, &args))?;
    Ok(match remote_tip(store, to)? {
        RemoteTip::At(at) if at == new => PushOutcome::Pushed,
        RemoteTip::At(at) if at == old => refusal(&said, &reference),
        RemoteTip::At(at) => PushOutcome::Race { at },
        RemoteTip::NoBranch => PushOutcome::NoBranch,
        RemoteTip::Silent { said } => PushOutcome::Transient { said },
    })
}

/// Brings the seals of what landed to the remote, under the names that they have here, so that anybody with
/// a mirror of it can verify the certificate. Says what git said where the remote would not take them: the
/// landing stands all the same.
pub fn push_seals(
    store: &Store,
    gated: &Gated,
    to: Destination<'_>,
) -> Result<Option<String>, PushError> {
    to.require_names()?;
    let seals = gated.candidate.bundles.iter().map(|taken| taken.entry.sealed().record());
    let names: Vec<String> = seals.map(|record| record.run.seal_ref(&record.id)).collect();
    let whats: Vec<String> = names.iter().map(|name| format!("{name}:{name}")).collect();
    let address = address(store, to.remote)?;
    let mut args = vec!["push", "--porcelain", "--no-verify", "--no-follow-tags", "--", &address];
    args.extend(whats.iter().map(String::as_str));
    let said = run(&tool(store, &args))?;
    Ok((said.code != 0).then(|| said.stderr.trim().to_owned()))
}

/// What a push that left the remote where it was has to say.
///
/// A line with `!` is the answer of a remote that was reached; without one it was not.
pub(super) fn refusal(said: &Said, reference: &str) -> PushOutcome {
    let ours = format!(":{reference}\t");
    let answer = said
        .stdout
        .lines()
        .map(|line| line.to_str_lossy())
        .find(|line| line.starts_with("!\t") && line.contains(&ours));
    let Some(answer) = answer else {
        return PushOutcome::Transient { said: said.stderr.trim().to_owned() };
    };
    let answer = answer.rsplit('\t').next().unwrap_or_default().to_owned();
    // Somebody else was at the ref in the same moment and has not moved it: it may work again.
    let passing = ["cannot lock ref", "failed to update ref", "stale info", "fetch first"];
    if passing.iter().any(|reason| answer.contains(reason)) {
        PushOutcome::Transient { said: answer }
    } else {
        PushOutcome::Permanent { said: answer }
    }
}
