//! One decision about one bundle: the evidence as a card, the decision as a value, and recording it.
//!
//! `pdca signoff`, `pdca review`, the board and `pdca flow` are different ways to make a [`Decision`]. All of them show
//! the same [`Card`] and call the same [`decide`], so what §9 of the summary says is byte for byte what the typed
//! command would have written, and [`Decision::command_line`] is that command.
//!
//! ```
//! use pdca_workspace::review::{Choice, Decision, Ticks};
//!
//! let decision = Decision {
//!     id: "36".parse()?,
//!     choice: Choice::Accept { clear: Ticks::Numbers(vec![1, 3]), overridden: None },
//!     note: Some("seen on staging".to_owned()),
//! };
//! assert_eq!(decision.command_line(), "pdca signoff 36 accept --clear=1,3 --note 'seen on staging'");
//! # Ok::<(), pdca_state::IdError>(())
//! ```
//!
//! # How to use it
//! 1. Load a [`crate::snapshot::WorkspaceSnapshot`]; [`waiting`] lists what waits for sign-off, cheapest first.
//! 2. [`Card::load`] reads one bundle; [`Card::sections`] is its text, [`Card::offers`] the decisions that are possible.
//! 3. Make a [`Decision`], and call [`decide`] with a [`Signing`], or [`decide_all`] for many at once.
//!
//! # Invariants
//! - A card is a plain value. Loading one starts no process and changes nothing.
//! - A decision is recorded under the lock of its bundle, and an acceptance is sealed before it is recorded.
//! - With [`Signing::dry_run`] every rule is checked that needs no write, and nothing is changed.
//! - Nothing is printed; neither environment nor clock is read.

mod card;
mod change;
mod checklist;
mod decide;
mod decision;
mod proposal;
mod sections;
mod session;
mod take_back;
mod waiting;

pub use card::{
    AttemptDelta, Card, CardSource, ChangeSize, ChangedFile, GateLine, NoteAnswer, OfferedDecision,
    Proof, ProofStep, ProposedDecision, ReviewLine,
};
pub use change::{BundleChange, ChangeError, ChangeRequest};
pub use checklist::{Checklist, ChecklistError, tick};
pub use decide::{
    Cleared, DecideError, Decided, DecidedBatch, DecisionOutcome, DecisionRemark, Signing,
    TakenBundle, acceptances, decide, decide_all,
};
pub use decision::{Choice, Decision, Overridden, Ticks};
pub use proposal::{KeepProposalError, leaf_signature};
pub use sections::{CardLine, CardSection, Tone};
pub use session::{KEYS, KeyMode, Prompt, ReviewSession, SessionStep, UNDO_WINDOW};
pub use take_back::{ReturnedCulprit, TakenBack, return_culprits};
pub use waiting::waiting;
