//! Real commands through the real supervisor, on real checkouts.

mod confined;
mod confirm_and_fix;
mod evidence;
mod hostile;
mod report;
mod resume;
mod stage;
mod together;
mod tree;

pdca_process::supervisor_entry!();
