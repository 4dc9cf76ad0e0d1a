//! An accepted change goes to a branch of its own at a remote, for others to look at.
//!
//! What goes there is the sealed change, with the words that people gave it: the same trees on the
//! same base by the same author at the same time, so the same words make the same commit. The branch
//! is made where there is none, and replaced only where it is at a commit that we put there; whatever
//! else is there is somebody's, and stays.

use gix::{ObjectId, bstr::BString};
use thiserror::Error;

use super::{
    push::{PushError, PushOutcome, refusal},
    remote::{Destination, RemoteTip, address, remote_tip, tool},
};
use crate::{
    git::command::run,
    git::failure::StoreError,
    git::fold::{self, SIGNED},
    git::seal::Sealed,
    git::store::Store,
};

/// A sealed change in the words in which it is offered. There is no way to have one but
/// [`Offer::make`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    commit: ObjectId,
}

/// What came of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferOutcome {
    /// The remote has it now.
    Pushed,
    /// The remote had it already: an earlier answer was lost.
    AlreadyThere,
    /// The branch is at a commit that we did not put there. It was left alone.
    Foreign {
        /// Where it is.
        at: ObjectId,
    },
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

/// Why there is nothing to offer.
#[derive(Debug, Error)]
pub enum OfferError {
    /// The words cannot be those of a commit.
    #[error("the commit message {flaw}")]
    Message {
        /// What is wrong with it.
        flaw: &'static str,
    },
    /// git would take a name for something else, or could not be run.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Offer {
    /// Makes the commits to offer. The message is that of the last one; those before it keep theirs.
    pub fn make(store: &Store, sealed: &Sealed, message: &str) -> Result<Self, OfferError> {
        let flaw = |flaw| Err(OfferError::Message { flaw });
        if message.trim().is_empty() {
            return flaw("is empty");
        }
        if message.contains('\0') {
            return flaw("has a zero byte in it");
        }
        let mut commit = store.read_commit(sealed.record().head)?;
        commit.extra_headers.retain(|(name, _)| !SIGNED.iter().any(|signed| name == signed));
        // A message may say in which encoding it is; this one is in UTF-8.
        commit.encoding = None;
        commit.message = fold::with_trailers(&tame(message), [fold::marker(sealed).as_str()]);
        let commit = fold::write(store, &commit)?;
        Ok(Self { commit })
    }

    /// The commit that is offered.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }
}

/// The message without claims to be a sealed change, and without the line ends of other systems.
fn tame(message: &str) -> BString {
    let lines: Vec<&str> = message.lines().map(str::trim_end).collect();
    fold::without_claims(lines.join("\n").trim().as_bytes())
}

/// Puts an offer at a branch of a remote, if there is no such branch or it is at one of `ours`.
///
/// The remote and the credentials are the user's, as with [`push`](crate::push).
pub fn offer(
    store: &Store,
    offer: &Offer,
    to: Destination<'_>,
    ours: &[ObjectId],
) -> Result<OfferOutcome, PushError> {
    let new = offer.commit;
    let old = match remote_tip(store, to)? {
        RemoteTip::At(at) if at == new => return Ok(OfferOutcome::AlreadyThere),
        RemoteTip::At(at) if ours.contains(&at) => Some(at),
        RemoteTip::At(at) => return Ok(OfferOutcome::Foreign { at }),
        RemoteTip::NoBranch => None,
        RemoteTip::Silent { said } => return Ok(OfferOutcome::Transient { said }),
    };
    let address = address(store, to.remote)?;
    let reference = format!("refs/heads/{}", to.branch);
    // Nothing after the colon means that there must be no such branch.
    let expected = old.map_or_else(String::new, |old| old.to_string());
    let lease = format!("--force-with-lease={reference}:{expected}");
    let what = format!("{new}:{reference}");
    let args =
        ["push", "--porcelain", "--no-verify", "--no-follow-tags", &lease, "--", &address, &what];
    let said = run(&tool(store, &args))?;
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
