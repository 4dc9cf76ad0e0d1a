//! Repositories, workspaces and a scripted leaf for the tests of the other crates.
//!
//! Nothing here is mocked: a [`Repo`] is made by the real `git`, a [`TestWorkspace`] is a real
//! directory, and [`fake_leaf`] is a real program that does what its script says.
//!
//! ```
//! use pdca_testkit::{Repo, TestWorkspace};
//!
//! let repo = Repo::new();
//! repo.write("src/a.txt", "one\n");
//! let first = repo.commit("a file");
//! assert_eq!(repo.git(&["rev-parse", "HEAD"]).trim(), first);
//!
//! let workspace = TestWorkspace::new();
//! workspace.brief("7", &[("Touches", "src/a.txt")]);
//! assert!(workspace.bundle("7").join("brief.md").exists());
//! ```
//!
//! # Invariants
//! - Everything lives below a temporary directory and is gone when its value is dropped.
//! - The git configuration of whoever runs the tests has no influence, and the same steps
//!   give the same commit ids everywhere.
//! - A step that fails panics, with what the program said: a test never goes on from there.

#![expect(
    clippy::missing_panics_doc,
    reason = "every step of a fixture panics when it fails, as the crate says once"
)]

mod browser;
mod gits;
mod program;
mod pty;
mod repo;
mod schema;
mod ssh;
mod workspace;

pub use browser::Browser;
pub use gits::gits;
pub use program::{fake_gh, fake_leaf, pdca_bin, supervisor};
pub use pty::{Pty, Reply};
pub use repo::Repo;
pub use schema::assert_follows_schema;
pub use ssh::SshHosts;
pub use workspace::TestWorkspace;
