//! Which files of a checkout coding agents take for their own configuration and instructions.
//!
//! An agent that reviews a change loads these from the directory it works in. Those of the change under review would let it
//! write its own verdict, so the reviewer's copy has them as the base has them. The same holds for documents that those of
//! the base import.

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
const FILES: [&str; 21] = [
    "claude.md",
    "claude.local.md",
    "agents.md",
    "agents.override.md",
    "agent.md",
    "gemini.md",
    "context.md",
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

/// Endings of files that are read as instructions where an agent's file names them.
const DOCUMENTS: [&str; 6] = [".md", ".mdc", ".markdown", ".txt", ".rst", ".adoc"];

/// The documents of a checkout that an agent loads together with one of its files: `@docs/rules.md` in instructions, and any
/// document that a configuration names. A `*` stands for any letters.
///
/// Other files stay as the change has them, also where instructions import them: a reviewer has to see and run the change.
///
/// ```
/// use pdca_leaves::agent_imports;
///
/// let text = "See @docs/rules.md and @../style.txt, mail ada@example.com, @src/main.rs";
/// assert_eq!(agent_imports("web/AGENTS.md", text), ["web/docs/rules.md", "style.txt"]);
/// let config = r#"{"instructions": ["docs/*.md", "https://example.com/x.md"]}"#;
/// assert_eq!(agent_imports("opencode.json", config), ["docs/*.md"]);
/// ```
pub fn agent_imports(path: &str, text: &str) -> Vec<String> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_document = |word: &&str| {
        let word = word.to_ascii_lowercase();
        DOCUMENTS.iter().any(|ending| word.ends_with(ending)) && !word.contains("://")
    };
    let is_prose = is_document(&name);
    let outside = |letter: char| letter.is_whitespace() || "`'\"<>()[]{},;".contains(letter);
    let words = text.split(outside).map(|word| word.trim_end_matches(['.', ':', '!', '?']));
    let mut found = Vec::new();
    if is_prose {
        for word in words.filter_map(|word| word.strip_prefix('@')).filter(is_document) {
            found.extend(resolved(dir, word));
        }
    } else {
        // A configuration names files as seen from the top, or from where it lies.
        for word in words.filter(is_document) {
            found.extend(resolved("", word).into_iter().chain(resolved(dir, word)));
        }
    }
    // In the top directory both readings of a name give the same path.
    found.dedup();
    found
}

/// A path as the repository names it; none for one outside of it.
fn resolved(dir: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~']) {
        return None;
    }
    let mut parts: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
