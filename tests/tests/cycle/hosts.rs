//! Bands on other machines: the real binary on both sides.
//!
//! Most tests reach their hosts through a script that stands in for `ssh` and can lose requests and answers. Those in
//! `real_ssh.rs` have a real `sshd` in a network namespace for each host, those in `slurm.rs` a real Slurm.

#![expect(clippy::unwrap_used, reason = "a scene that cannot be set up fails its test")]

mod bands;
mod combination;
mod faults;
mod harness;
mod link;
mod real_ssh;
mod refusals;
mod slurm;
