//! What is told to a forge and a tracker, once.
//!
//! An accepted change becomes known outside by a branch, a draft pull request and a comment. Whoever
//! asks for such a thing may die before the answer comes, so each carries a [`Key`] made of the run, the
//! bundle and the seal, and is looked up by it before it is asked for: [`once`] is that rule. The forge
//! is spoken with through the program [`Gh`], a tracker through it or through commands of the project,
//! and a [`Record`], kept as `publish.json`, says what is out.
//!
//! ```
//! use pdca_publish::{Branch, Key};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = Key::new("01JC", &"36".parse()?, b"{\"schema\": 1}");
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
mod words;

mod record;

mod gh;
mod inert;
mod outside;
mod patience;
mod tracker;

pub use branch::{Branch, BranchFlaw};
pub use gh::{Gh, Opening, Pull, PullState};
pub use key::Key;
pub use outside::OutsideError;
pub use patience::{Patience, once};
pub use record::{
    BranchRecord, CommentRecord, CommentState, GateRecord, PullRecord, Record, RecordError,
    Standing,
};
pub use settings::{Comments, Settings, SettingsFault, SettingsProblem};
pub use tracker::{Posted, Tracker};
pub use words::{Words, comment_body, pull_body, subject};
