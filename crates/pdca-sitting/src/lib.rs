//! Sign-off at the terminal: the card of a bundle, its diff, and one decision after the other.
//!
//! `pdca-review` knows what a decision is; this crate shows it to a person. [`review`] reads keys and hands what
//! they decide to [`pdca_review::decide`], when the time to undo it is over; [`publish_accepted`] follows an acceptance.
//!
//! # Invariants
//! - The terminal is put back however the sitting ends: a signal, a panic, a child that left it changed.
//! - A decision is recorded after its window, or when the person confirms it. A process that ends before has recorded
//!   nothing of what was pending, and says so with the commands that would.
//! - What `[signoff] on_accept` names follows each recorded acceptance, and takes none back.
//! - The checkout behind `t` is a private one below a temporary directory; nothing in it reaches the bundle.

mod aside;
mod checkout;
mod diff;
mod explain;
mod keyboard;
mod pager;
mod publication;
mod review;
mod show;
mod signing;

pub use aside::{card_text, change_text, edit_note, interrupted, log_text, open_shell};
pub use diff::{DiffReport, DiffRequest, diff};
pub use explain::{explain, not_awaiting};
pub use pager::{PageKind, page_and_wait};
pub use publication::{
    PublishOptions, PublishReport, is_accepted, only_changes, publish, publish_accepted,
};
pub use review::{SittingReport, SittingRequest, review};
pub use show::{CardReport, show};
pub use signing::{SignoffSignature, signer, with_signing};

use pdca_front::{context, editor, exit, failure, faults, report, session, style};
