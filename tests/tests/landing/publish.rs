//! Accepted changes become known outside: the real binary, real git, and a forge in a directory.

mod accept;
mod answers;
mod forges;
mod gates;
mod people;
mod stack;
mod stall;
mod texts;
mod whole;
