//! Decides which tool calls of a builder are allowed.
//!
//! A builder changes its own checkout and writes its notes. It does not push, contact a forge, publish, sign off, run
//! `pdca`, or touch the user's trees. `pdca guard builder` is the hook that an agent calls before each tool call; this
//! module makes the decision. The hook explains to a well-meaning model what not to do. It is not a security boundary:
//! script files are not read, and code can assemble a command at run time. The boundary is that a builder has no
//! credentials and that the kernel sandbox confines it.
//!
//! ```
//! use std::collections::BTreeMap;
//! use pdca_leaves::tool_guard::{GuardScope, judge_shell};
//!
//! let env = BTreeMap::from([("PDCA_WORKTREE".to_owned(), "/w.lanes/lane-0/repo".to_owned())]);
//! let scope = GuardScope::from_env(env).expect("a builder's environment");
//! let judge = |line: &str| judge_shell(line, &scope, scope.lane(), &|_| None);
//! assert!(judge("git commit -m 'explain git push'").is_allowed());
//! assert!(!judge("cd src && timeout 60 git -c x.y=z push origin HEAD").is_allowed());
//! ```
//!
//! # Invariants
//! - Nothing is read or run: text and environment come in as values, and the answer depends on nothing else.
//! - Text that cannot be parsed is refused only if it names a command that would be refused.
//! - Input that is not a tool call is an error, which the command turns into a refusal.

pub mod answer;
pub mod call;
mod code;
mod lexer;
mod nested;
mod rule;
pub mod scope;
mod walk;

use camino::Utf8Path;

pub use answer::{GuardAnswer, GuardRefusal};
pub use call::{Agent, CallError, ToolAction, ToolCall, decision, reason};
pub use scope::GuardScope;
pub use walk::AliasLookup;

/// Judges shell text that a builder is about to run in `cwd`.
pub fn judge_shell(
    text: &str,
    scope: &GuardScope,
    cwd: &Utf8Path,
    git_alias: AliasLookup<'_>,
) -> GuardAnswer {
    let mut walk = walk::ShellWalk::new(scope, git_alias, scope::normal(cwd));
    let result = walk.whole(text);
    GuardAnswer { refusal: result.err(), unseen: walk.unseen }
}
