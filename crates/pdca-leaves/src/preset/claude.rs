//! Claude Code.

use super::Preset;
use crate::{config::PromptVia, protocol::Protocol};

/// Claude Code as a leaf.
pub(super) static PRESET: Preset = Preset {
    name: "claude",
    family: Some("anthropic"),
    tested: "2.1.325",
    protocol: Protocol::Claude,
    edits_only: false,
    home: &[".claude", ".claude.json"],
    args: &[
        "-p",
        "--permission-mode",
        // The staged view lies outside its directory, so with `acceptEdits` alone it could neither
        // read the brief nor run a test nor write its notes. The wall around it is the leaf's
        // sandbox.
        "bypassPermissions",
        "--output-format",
        "stream-json",
        // With `-p`, `stream-json` is refused without this flag.
        "--verbose",
    ],
    guard_args: &[
        "--settings",
        // `|| exit 2`: with any other exit code, such as that of a `pdca` that is not found, the hook
        // lets the call pass.
        r#"{{"hooks":{{"PreToolUse":[{{"matcher":"Bash|Write|Edit|MultiEdit|NotebookEdit","hooks":[{{"type":"command","command":"{pdca} guard builder --agent claude || exit 2"}}]}}]}}}}"#,
    ],
    // The change under review must not configure its reviewer: no settings and no servers of the
    // project (decision 039).
    independent_args: &["--setting-sources", "user", "--strict-mcp-config"],
    model_args: &["--model", "{model}"],
    effort_args: &["--effort", "{effort}"],
    resume_args: &["--resume", "{session}"],
    prompt_via: PromptVia::Stdin,
    env: &[
        // Its own retries go on for minutes; a limit is waited for here, once for all lanes.
        ("CLAUDE_CODE_MAX_RETRIES", "2"),
        ("DISABLE_AUTOUPDATER", "1"),
        // Without it, it does not start as root, which is who runs in a container.
        ("IS_SANDBOX", "1"),
    ],
    guard_env: &[],
    independent_env: &[],
};
