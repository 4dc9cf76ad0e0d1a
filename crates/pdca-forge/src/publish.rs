//! Publication of accepted changes: a branch, a draft pull request and a tracker comment, each exactly once.
//!
//! A driver may be killed between a request to the forge and its answer, so a request cannot tell whether it
//! was the first. Publication is idempotent instead:
//!
//! 1. Each published thing carries a [`PublishKey`], made of the run, the bundle and the seal, so that a driver
//!    started later recognizes it.
//! 2. The [`PublishRecord`] (`publish.json`) is written before each request, so that a commit found at the remote
//!    after a crash is known to be ours.
//! 3. [`once`] looks for the key before it asks, so that a repeated run does not open a second pull request.
//! 4. [`once`] looks again afterwards and believes only what it finds, so that a lost or false answer does not
//!    matter.
//!
//! ```text
//! PublishInputs::load ─► the change, its destination and its key
//! ForgeState::look ─► what exists at the forge, the tracker and the remote
//! ForgeState::send ─► push ─ pull request ─ comment ─ ready mark ─ merge
//! ```
//!
//! The user's checkout is not used: [`pdca_integrate::SealedOffer`] makes the commit in the object store.
//!
//! The forge is reached through the program [`Gh`]; a [`Tracker`] through it or through commands of the project.
//!
//! ```
//! use pdca_forge::publish::{Branch, PublishKey};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = PublishKey::new("01JC", &"36".parse()?, b"{\"schema\": 1}");
//! assert!(key.is_in(&format!("Mends the parser.\r\n\r\n{}\r\n", key.marker())));
//! assert_eq!(Branch::of("pdca/{id}", &"36".parse()?, "fast parser", "01JC")?.as_str(), "pdca/36");
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - Every request is preceded by a lookup, and only a later lookup counts as its answer.
//! - Output of a program is validated before use, and bounded in size.
//! - No text of a bundle can carry a marker or become an option of a program.
//! - This module prints nothing and reads neither the environment nor the wall clock.

mod settings;

mod branch;
mod key;
mod legacy;
mod page;

mod record;

mod error;
mod gh;
mod merge;
mod retry;
mod tracker;

mod failure;
mod request;

mod inputs;
mod messages;
mod stack;

mod dry_run;
mod forge_state;
mod merge_pull;
mod outcome;
mod send;
mod unasked;

pub use branch::{Branch, BranchFlaw};
pub use error::ForgeError;
pub use failure::PublishError;
pub use forge_state::ForgeState;
pub use gh::{Amendment, Gh, NewPullRequest, Pull, PullState};
pub use inputs::PublishInputs;
pub use key::PublishKey;
pub use legacy::LegacyRecord;
pub use merge::{MergeView, Mergeability};
pub use messages::{Messages, absent_texts, drafted_comment, needs_author};
pub use outcome::{
    CommentOutcome, MergeOutcome, PublishDryRun, PublishStep, PublishedBundle, PublishedPull, Would,
};
pub use page::{comment_body, pull_body, subject};
pub use record::{
    Adoption, BranchRecord, BranchState, CommentRecord, CommentState, GateRecord, PublishRecord,
    PublishRecordError, PullRecord, StackRecord, merged_pull_request, open_pull_request,
};
pub use request::{Publication, PublishRequest, stop_if_cancelled};
pub use retry::{RetryPolicy, once};
pub use send::Sent;
pub use settings::{
    Comments, ForgeKind, MergeMethod, PublishSettings, PublishSettingsProblem, SettingsFault,
};
pub use stack::{Below, Contained, Stack};
pub use tracker::{Posted, Tracker};
