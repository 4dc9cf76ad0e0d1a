//! Offers: an accepted change on a branch of its own at a remote, for review by others.
//!
//! An offer is the sealed change with a given message: trees, base, author and dates are unchanged, so the same
//! message yields the same commit. The branch is created if it does not exist, and replaced only if it is at a
//! commit that we pushed; anything else belongs to someone else and stays.

use gix::{ObjectId, bstr::BString};
use thiserror::Error;

use super::{
    push::{PushError, PushOutcome, refusal},
    remote::{Destination, RemoteTip, address, call, remote_tip},
};
use crate::{
    git::failure::StoreError,
    git::fold::{self, SIGNED},
    git::seal::Sealed,
    git::store::Store,
};

/// A sealed change with the message to offer it with. It comes only from [`SealedOffer::make`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedOffer {
    commit: ObjectId,
}

/// The outcome of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferOutcome {
    Pushed,
    /// The remote had it already: an earlier answer was lost.
    AlreadyThere,
    /// The branch is at a foreign commit and was left alone.
    Foreign {
        at: ObjectId,
    },
    /// A transient failure.
    Transient {
        said: String,
    },
    /// A permanent failure.
    Permanent {
        said: String,
    },
}

/// The reasons why an offer cannot be made.
#[derive(Debug, Error)]
pub enum OfferError {
    #[error("the commit message {flaw}")]
    Message { flaw: &'static str },
    /// The commit has another tree than the base of the change.
    #[error("the change does not stand on {onto}: its base has other files")]
    Base { onto: ObjectId },
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SealedOffer {
    /// Writes the commits to offer. `message` replaces that of the last one; earlier ones keep theirs, with claims of
    /// identity quoted.
    ///
    /// With `onto` they are put on that commit, which must have the tree of the change's base, so that no tree changes.
    pub fn make(
        store: &Store,
        sealed: &Sealed,
        message: &str,
        onto: Option<ObjectId>,
    ) -> Result<Self, OfferError> {
        let flaw = |flaw| Err(OfferError::Message { flaw });
        if message.trim().is_empty() {
            return flaw("is empty");
        }
        if message.contains('\0') {
            return flaw("has a zero byte in it");
        }
        let mut commit = store.read_commit(sealed.record().head)?;
        if let Some(below) = below_head(store, sealed, onto)? {
            commit.parents = [below].into_iter().collect();
        }
        // A signature is about the sealed message.
        commit.extra_headers.retain(|(name, _)| !SIGNED.iter().any(|signed| name == signed));
        // The sealed commit may declare another encoding, but the new message is UTF-8.
        commit.encoding = None;
        commit.message = fold::with_trailers(&tame(message), [fold::marker(sealed).as_str()]);
        let commit = fold::write(store, &commit)?;
        Ok(Self { commit })
    }

    /// Returns the commit to be pushed.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }
}

/// Returns the parent of the offered commit, if it is not that of the sealed head: every commit of the change but the
/// last, put on `onto`, or with claims of identity quoted.
fn below_head(
    store: &Store,
    sealed: &Sealed,
    onto: Option<ObjectId>,
) -> Result<Option<ObjectId>, OfferError> {
    let record = sealed.record();
    let below: Vec<ObjectId> =
        record.commits.iter().copied().filter(|id| *id != record.head).collect();
    let Some(onto) = onto else {
        return Ok(fold::quoted_line(store, record.base, &below)?);
    };
    if store.tree_of(onto)? != store.tree_of(record.base)? {
        return Err(OfferError::Base { onto });
    }
    Ok(Some(fold::line_on(store, onto, &below)?.unwrap_or(onto)))
}

/// Returns the message without seal trailers and with normalized line endings.
fn tame(message: &str) -> BString {
    let lines: Vec<&str> = message.lines().map(str::trim_end).collect();
    pdca_state::quote_claims(lines.join("\n").trim().as_bytes()).into()
}

/// Pushes an offer to a branch of a remote, if the branch does not exist or is at one of `ours`.
///
/// Remote and credentials are the user's, as with [`push`](crate::push).
pub fn offer(
    store: &Store,
    offer: &SealedOffer,
    to: Destination<'_>,
    ours: &[ObjectId],
) -> Result<OfferOutcome, PushError> {
    let new = offer.commit;
    let old = match remote_tip(store, to)? {
        RemoteTip::At(at) if at == new => return Ok(OfferOutcome::AlreadyThere),
        // A person may have pushed to the branch since. Only a commit that the record has as ours is replaced
        // (decision 015).
        RemoteTip::At(at) if ours.contains(&at) => Some(at),
        RemoteTip::At(at) => return Ok(OfferOutcome::Foreign { at }),
        RemoteTip::NoBranch => None,
        RemoteTip::Silent { said } => return Ok(OfferOutcome::Transient { said }),
    };
    let address = address(store, to.remote)?;
    let reference = format!("refs/heads/{}", to.branch);
    // An empty value after the colon requires that the branch does not exist.
    let expected = old.map_or_else(String::new, |old| old.to_string());
    let lease = format!("--force-with-lease={reference}:{expected}");
    let what = format!("{new}:{reference}");
    let args =
        ["push", "--porcelain", "--no-verify", "--no-follow-tags", &lease, "--", &address, &what];
    let said = call(store, &args)?;
    Ok(match remote_tip(store, to)? {
        RemoteTip::At(at) if at == new => OfferOutcome::Pushed,
        RemoteTip::At(at) if Some(at) != old => OfferOutcome::Foreign { at },
        RemoteTip::At(_) | RemoteTip::NoBranch => match refusal(&said, &reference) {
            PushOutcome::Permanent { said } => OfferOutcome::Permanent { said },
            PushOutcome::Transient { said } => OfferOutcome::Transient { said },
            other @ (PushOutcome::Pushed
            | PushOutcome::AlreadyThere
            | PushOutcome::Race { .. }
            | PushOutcome::NoBranch) => OfferOutcome::Transient { said: format!("{other:?}") },
        },
        RemoteTip::Silent { said } => OfferOutcome::Transient { said },
    })
}

#[cfg(test)]
mod tests {
    use super::tame;

    #[test]
    fn words_cannot_say_that_another_change_is_in_the_commit() {
        let said = "fix it\n\nbecause\n\npdca-sealed: 99\n Pdca-Sealed : 98\n";
        assert_eq!(tame(said), "fix it\n\nbecause\n\n> pdca-sealed: 99\n>  Pdca-Sealed : 98");
    }

    #[test]
    fn line_ends_of_other_systems_are_not_part_of_the_words() {
        assert_eq!(tame("\r\nfix it\r\n\r\nbecause\r\n"), "fix it\n\nbecause");
    }
}
