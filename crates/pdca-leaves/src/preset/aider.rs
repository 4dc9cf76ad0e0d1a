//! aider.

use super::Preset;
use crate::{config::PromptVia, protocol::Protocol};

/// aider as a leaf. A brief for it names the files.
pub(super) static PRESET: Preset = Preset {
    name: "aider",
    family: None,
    tested: "0.86.2",
    protocol: Protocol::Aider,
    // It edits files and runs nothing, so it cannot check a change and does not judge.
    edits_only: true,
    home: &[".aider"],
    args: &[
        "--message-file",
        "{prompt_file}",
        "--read",
        "{brief}",
        "--yes-always",
        // It would add a line to the project's `.gitignore`, which would become part of the patch.
        "--no-gitignore",
        // The driver makes the commit of what is left in the checkout.
        "--no-auto-commits",
        "--no-dirty-commits",
        "--no-check-update",
        "--no-show-release-notes",
        "--no-show-model-warnings",
        "--no-suggest-shell-commands",
        "--analytics-disable",
        "--no-pretty",
        "--no-stream",
        // No map of the repository: its cache lies in the checkout and would become part of the
        // patch. The same holds for the histories, which therefore go to the staged view.
        "--map-tokens",
        "0",
        "--chat-history-file",
        "{bundle}/.aider.chat.history.md",
        "--input-history-file",
        "{bundle}/.aider.input.history",
    ],
    guard_args: &[],
    independent_args: &[],
    model_args: &["--model", "{model}"],
    effort_args: &["--reasoning-effort", "{effort}"],
    resume_args: &[],
    prompt_via: PromptVia::File,
    env: &[
        // Without it, it waits for a price table from the network before it starts.
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
        // It breaks long lines, also without a terminal, and a class is read from whole sentences.
        ("COLUMNS", "1000"),
    ],
    guard_env: &[],
    independent_env: &[],
};
