//! From accepted changes to a certificate, a branch and a pull request: the real binary and real git.

mod integrate;
mod meeting;
mod publish;
