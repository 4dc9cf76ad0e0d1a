//! A leaf call with a fixed input set.
//!
//! A leaf is an outside program that fills one artifact: it plans, builds, reviews, helps at the
//! sign-off, describes, or looks back. It gets a staged view of the bundle, a directory with copies
//! of exactly the artifacts on its role's list, and leaves its result there. [`call`] runs it and
//! returns the result as bytes; the bundle itself is the driver's to write.
//!
//! ```
//! use pdca_leaves::{Call, Guard, Inputs, LeafConfig, Output, CallPaths, Role, call};
//! use pdca_process::Cancel;
//! use pdca_state::{Artifact, Bundle, BundleRoot, Review};
//!
//! # let dir = tempfile::tempdir()?;
//! # let workspace = camino::Utf8Path::from_path(dir.path()).ok_or("not UTF-8")?;
//! let root = BundleRoot::new(workspace.join("results"));
//! let bundle = root.create(&"36".parse()?, "- **Slug:** crash-on-empty-input\n")?;
//! bundle.publish(Artifact::Patch, b"diff --git a/x b/x\n")?;
//! bundle.publish(Artifact::BuildNotes, b"I was not sure about the empty case.\n")?;
//!
//! let inputs = Inputs::gather(Role::Reviewer, &bundle)?;
//! assert!(inputs.names().eq(["brief.md", "patch.diff"])); // the builder's notes are not on the list
//!
//! let config = LeafConfig::default(); // a stub
//! let job = workspace.join(".pdca/jobs/36/reviewer");
//! let places = CallPaths {
//!     workspace,
//!     bundle_root: root.path(),
//!     worktree: None,
//!     tmp: None,
//!     fix: None,
//!     primary: None,
//!     kept: &[],
//!     hidden: &[],
//! };
//! let reviewed = call(&Call::new(&config, &inputs, &job, places), &mut |_| (), &Cancel::new())?;
//!
//! assert_eq!(reviewed.guard, Guard::Stub);
//! let text = reviewed.get(Output::Artifact(Artifact::Review)).ok_or("no review")?;
//! let review = Review::parse(std::str::from_utf8(text)?);
//! assert_eq!(review.findings().count(), 1); // nobody has reviewed this change
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - What a role may see is a list in code ([`inputs`]); the reviewer's and the advisers' have no
//!   `build-notes.md`, and [`Inputs`] can be made in no other way.
//! - A leaf never gets the path of the real bundle, and nothing it leaves is followed as a link out
//!   of its view. This crate writes no artifact into a bundle.
//! - An independent leaf's word counts only if bundle and fix are the same before and after,
//!   byte for byte, whatever the kernel could enforce; [`LeafOutcome::guard`] says which it could.
//! - An attempt that came to its end is not made again, also not by the next driver; one that was
//!   throttled or hindered by the host costs none.
//! - Arguments are substituted literally and never see a shell.
//! - A stub starts nothing, says that it is one, and claims nothing.
//! - Nothing is printed, and neither the environment nor the wall clock is read.

mod config;
mod preset;
mod problem;
mod protocol;
mod render;
mod role;
mod template;
mod variant;

mod stage;

mod agent_config;
mod attempt;
mod breaker;
mod call;
mod class;
mod command;
mod error;
mod guard;
mod home;
mod instructions;
mod outcome;
mod pause;
mod prompt;
mod pulse;
mod resume;
mod session;
mod stub;
mod tail;
mod trace;

mod probe;
mod proposal;

pub mod tool_guard;

pub use agent_config::{agent_imports, is_agent_config};
pub use attempt::{Flaw, left_briefs};
pub use breaker::Breaker;
pub use call::{BoxError, Call, CallFacts, CallPaths, call};
pub use class::{FailureClass, WallClock};
pub use config::{LeafConfig, LeafMode, Leaves, Price, PromptVia, Seconds, Throttled};
pub use error::LeafError;
pub use home::{caches as home_caches, expand as expand_home, openings as home_openings};
pub use instructions::{
    INSTRUCTION_DIRS, Instructions, InstructionsFlaw, MAX_INSTRUCTIONS, instruction_paths,
};
pub use outcome::{FoundIn, Guard, LeafEvent, LeafOutcome, Produced};
pub use pause::{LongWait, WaitDecision};
pub use preset::{CLAUDE_GUARD, GEMINI_GUARD, OPENCODE_GUARD, PRESETS, Preset, Stanza};
pub use probe::{ProbeEnding, Probed, probe};
pub use problem::{ConfigFlaw, LeafConfigProblem};
pub use proposal::{Proposal, ProposalError};
pub use protocol::{Complaint, End, MAX_LINE, Protocol, ProtocolReader, Transcript, Usage};
pub use render::{EntryKind, Renderer, TranscriptEntry};
pub use role::{CONFLICT, Called, Output, ROLES, Role, RoleSpec, inputs};
pub use stage::{Inputs, StageError};
pub use template::{NoValue, Placeholder, TemplateError};
pub use trace::{CallHeader, Trace, begin_call, forget_call, tries_of, try_dir};
pub use variant::ChosenBuilder;
