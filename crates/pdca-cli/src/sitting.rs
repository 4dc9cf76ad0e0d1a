//! Sign-off at the terminal: the card of a bundle, its diff, and one decision after the other.
//!
//! `pdca_workspace::review` knows what a decision is; this module shows it to a person. [`review`] reads keys and hands what
//! they decide to [`pdca_workspace::review::decide`], when the time to undo it is over; [`publish_accepted`] follows an
//! acceptance.
//!
//! # Invariants
//! - The terminal is put back however the sitting ends: a signal, a panic, a child that left it changed.
//! - A decision is recorded after its window, or when the person confirms it. A process that ends before has recorded
//!   nothing of what was pending, and says so with the commands that would.
//! - What `[signoff] on_accept` names follows each recorded acceptance, and takes none back.
//! - The checkout behind `t` is a private one below a temporary directory; nothing in it reaches the bundle.

mod aside;
mod checkout;
mod keyboard;
mod pager;
pub(crate) mod publication;
pub(crate) mod review;
mod signing;

pub(crate) use aside::{card_text, change_text, edit_note, interrupted, log_text, open_shell};
pub(crate) use pager::{PageKind, less_options, page_and_wait, page_diff};
pub(crate) use publication::{publish, publish_accepted};
pub(crate) use review::{SittingRequest, review};
pub(crate) use signing::{SignoffSignature, signer, with_signing};
