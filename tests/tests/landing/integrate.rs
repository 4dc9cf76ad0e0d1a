//! What was accepted meets, is gated together and lands: the real binary and real git.
//!
//! In every scenario the user is in the middle of a merge of their own, with edits that are not
//! committed; a [`Meeting`](crate::meeting::Meeting) looks at its end whether all of that is as it was.

mod accepted;
mod beside;
mod combination;
mod crash;
mod evidence;
mod faults;
mod fingerprint;
mod flaky;
mod guilty;
mod landing;
mod leftovers;
mod outlook;
mod owners;
mod push;
mod reopen;
mod resolve;
mod stands_on;
mod targets;
mod upstream;
mod verdicts;
mod words;
