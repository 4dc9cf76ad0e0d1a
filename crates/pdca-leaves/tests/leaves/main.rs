//! Leaves as real processes, under a real supervisor, on a real filesystem.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be set up fails its test")]

mod artifact;
mod attempts;
mod command;
mod faults;
mod independence;
mod protocol;
mod render;
mod resume;
mod scene;
mod stubs;
mod tool_guard;

pdca_process::supervisor_entry!();
