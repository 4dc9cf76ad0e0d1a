//! Pushes a gated commit to a remote.
//!
//! Success is read from the remote alone: before the push, because an earlier answer may have been lost, and
//! after it, because "everything up to date" proves nothing.

use gix::{ObjectId, bstr::ByteSlice as _};
use pdca_process::GitOutput;
use thiserror::Error;

use super::{
    proof,
    remote::{Destination, RemoteTip, address, call, remote_tip},
};
use crate::{
    git::failure::{RefError, StoreError},
    git::fence::Fence,
    git::store::Store,
    queue::verdict::Gated,
};

/// The outcome of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    Pushed,
    /// The remote had it already: an earlier answer was lost.
    AlreadyThere,
    /// The branch is at another commit: gate again on a new base.
    Race {
        at: ObjectId,
    },
    NoBranch,
    /// A transient failure.
    Transient {
        said: String,
    },
    /// A permanent failure.
    Permanent {
        said: String,
    },
}

/// The reasons why a push was not tried.
#[derive(Debug, Error)]
pub enum PushError {
    /// Git would take the name for something else.
    #[error("{given:?} cannot be used as a {what}")]
    Name {
        /// `remote` or `branch`.
        what: &'static str,
        given: String,
    },
    /// The remote has several push addresses.
    #[error("{remote} takes pushes at several addresses")]
    Addresses { remote: String },
    /// The commit is not what was gated and sealed.
    #[error("what is to be pushed is not what was gated")]
    Refused(#[source] proof::Disproof),
    #[error(transparent)]
    Ref(#[from] RefError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Pushes a gated commit if the remote branch is at exactly the gated base.
///
/// The remote comes from the user's configuration, with the user's credentials. Hooks are not run, nothing is
/// asked at a terminal, and no tags, signatures or submodules are pushed along.
pub fn push(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    to: Destination<'_>,
) -> Result<PushOutcome, PushError> {
    to.require_names()?;
    // Without the lock, which is not held while a remote answers. A driver that loses the fence during the push
    // can still only move the branch from the gated base, by the lease below.
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
    // The remote compares and moves in one step, which closes the race after the look above. The look saves a
    // push.
    let lease = format!("--force-with-lease={reference}:{old}");
    let what = format!("{new}:{reference}");
    let args =
        ["push", "--porcelain", "--no-verify", "--no-follow-tags", &lease, "--", &address, &what];
    let said = call(store, &args)?;
    Ok(match remote_tip(store, to)? {
        RemoteTip::At(at) if at == new => PushOutcome::Pushed,
        RemoteTip::At(at) if at == old => refusal(&said, &reference),
        RemoteTip::At(at) => PushOutcome::Race { at },
        RemoteTip::NoBranch => PushOutcome::NoBranch,
        RemoteTip::Silent { said } => PushOutcome::Transient { said },
    })
}

/// Pushes the seals of landed changes under their own names, so that anyone with a mirror can verify the certificate.
/// Returns the message of git if the remote refuses them; the landing stands nevertheless.
pub fn push_seals(
    store: &Store,
    gated: &Gated,
    to: Destination<'_>,
) -> Result<Option<String>, PushError> {
    to.require_names()?;
    let seals = gated.candidate.bundles.iter().map(|taken| taken.entry.sealed().record());
    let names: Vec<String> = seals.map(|record| record.run.seal_ref(&record.id)).collect();
    // Without `+`: a seal never changes under its name, so another one at the remote is not replaced.
    let whats: Vec<String> = names.iter().map(|name| format!("{name}:{name}")).collect();
    let address = address(store, to.remote)?;
    let mut args = vec!["push", "--porcelain", "--no-verify", "--no-follow-tags", "--", &address];
    args.extend(whats.iter().map(String::as_str));
    let said = call(store, &args)?;
    Ok((!said.success()).then_some(said.stderr))
}

/// Classifies a push that did not move the remote branch.
///
/// A line with `!` is the answer of a remote that was reached; without one it was not reached.
pub(super) fn refusal(said: &GitOutput, reference: &str) -> PushOutcome {
    let ours = format!(":{reference}\t");
    let answer = said
        .stdout
        .lines()
        .map(|line| line.to_str_lossy())
        .find(|line| line.starts_with("!\t") && line.contains(&ours));
    let Some(answer) = answer else {
        return PushOutcome::Transient { said: said.stderr.clone() };
    };
    let answer = answer.rsplit('\t').next().unwrap_or_default().to_owned();
    // Another process had the ref locked but did not move it, so a retry may succeed.
    let passing = ["cannot lock ref", "failed to update ref", "stale info", "fetch first"];
    if passing.iter().any(|reason| answer.contains(reason)) {
        PushOutcome::Transient { said: answer }
    } else {
        PushOutcome::Permanent { said: answer }
    }
}
