//! What is told to a forge and a tracker, once.
//!
//! An accepted change becomes known outside by a branch, a draft pull request and a comment. Whoever
//! asks for such a thing may die before the answer comes, so each carries a [`PublishKey`] made of the run, the
//! bundle and the seal, and is looked up by it before it is asked for: [`once`] is that rule. The forge
//! is spoken with through the program [`Gh`], a tracker through it or through commands of the project,
//! and a [`PublishRecord`], kept as `publish.json`, says what is out.
//!
//! ```
//! use pdca_publish::{Branch, PublishKey};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = PublishKey::new("01JC", &"36".parse()?, b"{\"schema\": 1}");
//! assert!(key.is_in(&format!("Mends the parser.\r\n\r\n{}\r\n", key.marker())));
//! assert_eq!(Branch::of("pdca/{id}", &"36".parse()?, "fast parser", "01JC")?.as_str(), "pdca/36");
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - Nothing is asked for that was not looked up first, and no answer counts but what is found after it.
//! - What a program answers is checked before it is believed; what it says is bounded.
//! - No text of a bundle can carry a mark, and no text becomes an option of a program.
//! - Nothing is printed, and neither the environment nor the clock is read.

mod settings;

mod branch;
mod key;
mod templates;

mod record;

mod error;
mod gh;
mod inert;
mod retry;
mod tracker;

pub use branch::{Branch, BranchFlaw};
pub use error::ForgeError;
pub use gh::{Gh, Opening, Pull, PullState};
pub use key::PublishKey;
pub use record::{
    BranchRecord, BranchState, CommentRecord, CommentState, GateRecord, PublishRecord, PullRecord,
    RecordError,
};
pub use retry::{RetryPolicy, once};
pub use settings::{Comments, PublishSettings, SettingsFault, SettingsProblem};
pub use templates::{Templates, comment_body, pull_body, subject};
pub use tracker::{Posted, Tracker};
