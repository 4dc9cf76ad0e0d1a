//! The part of a front end that is not its words: what every command needs to answer a person or a program.
//!
//! ```
//! use pdca_front::failure::{Failure, FilePosition};
//! use pdca_front::{Exit, style::Palette};
//!
//! let failure = Failure::usage("unknown key `lanse`")
//!     .at(FilePosition::line("pdca.toml", 2))
//!     .hint("did you mean `lanes`?");
//! let mut text = Vec::new();
//! failure.render(Palette::PLAIN, "".into(), &mut text).expect("a vector can be written");
//! assert_eq!(failure.exit, Exit::Usage);
//! assert!(String::from_utf8_lossy(&text).ends_with("hint: did you mean `lanes`?\n"));
//! ```
//!
//! # Invariants
//! - This is the only crate that reads environment, working directory, terminal and clock ([`process_env`]), and the only
//!   one that gives an error its remedy and its exit code ([`explain`], [`failure`]). `pdca-config` knows the remedies of
//!   its own rules.
//! - It prints nothing: text goes to the writers of its caller.
//! - A JSON document has one envelope, [`json`]; a format is a variant of [`report::Format`].

pub mod columns;
pub mod context;
pub mod cost;
pub mod editor;
pub mod exit;
pub mod explain;
pub mod failure;
pub mod faults;
pub mod flow_record;
pub mod json;
pub mod notify;
pub mod process_env;
pub mod progress;
pub mod report;
pub mod session;
pub mod style;
pub mod words;

pub use exit::Exit;
pub use pdca_config::workspace;
pub use process_env::ProcessEnv;
