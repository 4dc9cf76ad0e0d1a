//! opencode.

use super::Preset;
use crate::{config::PromptVia, protocol::Protocol};

/// Whose models it speaks to is in its own configuration, so it has no family.
pub(super) static PRESET: Preset = Preset {
    name: "opencode",
    family: None,
    tested: "1.18.33",
    protocol: Protocol::Opencode,
    edits_only: false,
    home: &[
        ".config/opencode",
        ".local/share/opencode",
        ".local/state/opencode",
        ".cache/opencode",
        ".opencode",
    ],
    // It tries again for ever after a 429 or 503; only its log tells of that.
    args: &["run", "--auto", "--format", "json", "--print-logs", "--log-level", "ERROR"],
    guard_args: &[],
    // No plugins and no configuration of the change under review (decision 039).
    independent_args: &["--pure"],
    model_args: &["--model", "{model}"],
    effort_args: &["--variant", "{effort}"],
    resume_args: &["--session", "{session}"],
    prompt_via: PromptVia::Stdin,
    env: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
    guard_env: &[("OPENCODE_CONFIG_DIR", "{guard}/opencode")],
    independent_env: &[("OPENCODE_DISABLE_PROJECT_CONFIG", "1")],
};
