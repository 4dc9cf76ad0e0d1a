//! What comes next in a day of work: the decisions of `pdca flow`, and the loop that carries them out.
//!
//! Three tracks go on side by side: lanes *build*, accepted changes are *delivered*, and the *person* plans, signs off and
//! looks back, one thing at a time. What each track does next is one pure function over the facts, so that a flow that was
//! killed goes on where the files say it is.
//!
//! ```
//! use pdca_workspace::flow::{FlowFacts, FlowStatus, FlowStep, next};
//!
//! let facts = FlowFacts { unsigned: vec!["36".parse()?], ..FlowFacts::default() };
//! let status = FlowStatus { has_terminal: true, ..FlowStatus::default() };
//! let moves = next(&facts, &status);
//! assert_eq!(moves.person, FlowStep::SignOff(vec!["36".parse()?]));
//! assert!(!moves.build && moves.deliver.is_empty());
//! # Ok::<(), pdca_state::IdError>(())
//! ```
//!
//! # Invariants
//! - [`next`] is pure, total, and never repeats what the same facts have answered before.
//! - No step of a person is taken without a terminal, and never two at once.
//! - A failing or hanging notification neither stops nor delays anything.
//! - Nothing is printed, and no file of a workspace is read or written here.

mod engine;
mod notify;
mod pace;
mod settings;
mod step;

pub use engine::{FlowHost, FlowReport, Person, Visit, run};
pub use notify::{NoticeKind, Notification, Notifier, NotifyOutcome, osc9};
pub use pace::{UnsignedWork, decisions_per_hour};
pub use settings::{AfterAccept, FlowSettings, NotifySettings};
pub use step::{FlowEnd, FlowFacts, FlowStatus, FlowStep, Moves, next};
