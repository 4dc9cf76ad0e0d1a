//! Accepted changes become known outside: the real binary, real git, and a forge in a directory.

mod accept;
mod answers;
mod forges;
mod gates;
#[path = "../integrate/meeting.rs"]
#[expect(dead_code, reason = "what the suite about integration needs beside")]
mod meeting;
mod people;
mod stack;
mod stall;
mod texts;
mod whole;
