//! Which files of a checkout coding agents take for their own configuration and instructions.
//!
//! An agent that reviews a change loads these from the directory it works in. Those of the change under review would let it
//! write its own verdict, so the reviewer's copy has them as the base has them.

/// Directories of agents, at any depth.
const DIRECTORIES: [&str; 14] = [
    ".claude",
    ".codex",
    ".gemini",
    ".opencode",
    ".agents",
    ".cursor",
    ".windsurf",
    ".continue",
    ".roo",
    ".clinerules",
    ".amazonq",
    ".qwen",
    ".kiro",
    ".junie",
];

/// Files of agents, at any depth.
const FILES: [&str; 20] = [
    "claude.md",
    "claude.local.md",
    "agents.md",
    "agents.override.md",
    "agent.md",
    "gemini.md",
    "qwen.md",
    "opencode.json",
    "opencode.jsonc",
    ".mcp.json",
    "mcp.json",
    ".cursorrules",
    ".windsurfrules",
    ".goosehints",
    ".aider.conf.yml",
    ".aiderignore",
    ".geminiignore",
    ".claudeignore",
    ".cursorignore",
    "copilot-instructions.md",
];

/// Whether an agent would load this file of a checkout as its configuration or as instructions. Letter case does not count:
/// it does not on every filesystem.
///
/// ```
/// use pdca_leaves::is_agent_config;
///
/// for path in ["CLAUDE.md", "web/AGENTS.md", ".claude/settings.json", "a/.codex/config.toml", ".mcp.json"] {
///     assert!(is_agent_config(path), "{path}");
/// }
/// for path in ["src/claude.rs", "docs/agents.md.txt", "claude/x", "README.md"] {
///     assert!(!is_agent_config(path), "{path}");
/// }
/// ```
pub fn is_agent_config(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let is_dir = |part: &str| DIRECTORIES.contains(&part);
    path.split('/').any(is_dir) || path.rsplit('/').next().is_some_and(|name| FILES.contains(&name))
}
