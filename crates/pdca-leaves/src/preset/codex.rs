//! Codex.

use super::Preset;
use crate::{config::PromptVia, protocol::Protocol};

/// Codex as a leaf.
pub(super) static PRESET: Preset = Preset {
    name: "codex",
    family: Some("openai"),
    tested: "0.166.0",
    protocol: Protocol::Codex,
    edits_only: false,
    home: &[".codex"],
    args: &[
        "exec",
        // Its own bubblewrap sandbox cannot be built inside Landlock. The wall is the leaf's
        // sandbox.
        "--dangerously-bypass-approvals-and-sandbox",
        "--skip-git-repo-check",
        "--json",
    ],
    guard_args: &[
        // Otherwise a person has to trust the hook at a terminal first, and a leaf has none.
        "--dangerously-bypass-hook-trust",
        "-c",
        // `|| exit 2`, because only that code blocks: a `pdca` that is not found must not open the
        // way.
        r#"hooks.PreToolUse=[{{matcher="Bash|apply_patch",hooks=[{{type="command",command="{pdca} guard builder --agent codex || exit 2"}}]}}]"#,
    ],
    // No `AGENTS.md` of the change under review is loaded (decision 039).
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
