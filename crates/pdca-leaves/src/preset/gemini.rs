//! Gemini CLI.

use super::Preset;
use crate::{config::PromptVia, protocol::Protocol};

/// It has no flag for effort: its models decide that themselves.
pub(super) static PRESET: Preset = Preset {
    name: "gemini",
    family: Some("google"),
    tested: "0.61.0",
    protocol: Protocol::Gemini,
    edits_only: false,
    home: &[".gemini"],
    args: &[
        "--approval-mode",
        // It cannot be asked: no person is at its terminal. The wall is the leaf's sandbox.
        "yolo",
        "--skip-trust",
        "--output-format",
        "stream-json",
        // The staged view lies outside its directory, where it reads and writes nothing by itself.
        "--include-directories",
        "{inputs}",
    ],
    guard_args: &["--policy", "{guard}/gemini.toml"],
    independent_args: &[],
    model_args: &["--model", "{model}"],
    effort_args: &[],
    resume_args: &["--resume", "{session}"],
    prompt_via: PromptVia::Stdin,
    env: &[],
    guard_env: &[("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "{guard}/gemini.json")],
    independent_env: &[],
};
