//! Lanes checked against the real git.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a step that fails, or another error than the one expected, ends the test there"
)]

mod branch;
mod broken;
mod change;
mod claim;
mod copy;
mod deep;
mod hostile;
mod hydrate;
mod hydrate_commands;
mod idle;
mod import;
mod inspect;
mod interrupted;
mod nested;
mod patch_names;
mod patches;
mod private;
mod products;
mod provision;
mod remotes;
mod remove;
mod rescue;
mod reset;
mod scene;
mod target;
mod traps;
mod tripwire;
mod workbench;
mod worktree;
