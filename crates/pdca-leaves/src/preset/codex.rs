//! Codex.

use super::Preset;
use crate::{config::PromptVia, protocol::Protocol};

/// Its own sandbox cannot be built inside ours, so it is switched off.
pub(super) static PRESET: Preset = Preset {
    name: "codex",
    family: Some("openai"),
    tested: "0.166.0",
    protocol: Protocol::Codex,
    edits_only: false,
    home: &[".codex"],
    args: &[
        "exec",
        "--dangerously-bypass-approvals-and-sandbox",
        "--skip-git-repo-check",
        "--json",
    ],
    guard_args: &[
        "--dangerously-bypass-hook-trust",
        "-c",
        r#"hooks.PreToolUse=[{{matcher="Bash|apply_patch",hooks=[{{type="command",command="{pdca} guard builder --agent codex || exit 2"}}]}}]"#,
    ],
    // It has no word of the project then.
    independent_args: &["-c", "project_doc_max_bytes=0"],
    model_args: &["-m", "{model}"],
    effort_args: &["-c", "model_reasoning_effort={effort}"],
    // A command of `exec`, so it stands behind all its flags; `-` is the prompt on standard input.
    resume_args: &["resume", "{session}", "-"],
    prompt_via: PromptVia::Stdin,
    env: &[],
    guard_env: &[],
    independent_env: &[],
};
