//! Instruction files: one for each role, which is the project's part of that leaf's prompt once it is committed, and a section
//! and a command for people who talk to their agent in the workspace.

use std::collections::BTreeSet;

use camino::Utf8Path;

use super::NewFile;

/// The agents that get instruction files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentsFiles {
    /// Those that build or review.
    #[default]
    Chosen,
    All,
    None,
}

const CLAUDE: [(&str, &str); 6] = [
    (".claude/agents/planner.md", include_str!("instructions/planner.md")),
    (".claude/agents/builder.md", include_str!("instructions/builder.md")),
    (".claude/agents/sign-off.md", include_str!("instructions/sign-off.md")),
    (".claude/agents/publisher.md", include_str!("instructions/publisher.md")),
    (".claude/agents/act.md", include_str!("instructions/act.md")),
    (".claude/commands/pdca.md", include_str!("instructions/command.md")),
];

/// Whatever agent reviews, it is told the same.
const REVIEWER: (&str, &str) =
    ("process/leaves/reviewer.md", include_str!("instructions/reviewer.md"));

/// The file that codex, opencode, gemini and others read.
const SHARED: &str = "AGENTS.md";
const SECTION: &str = include_str!("instructions/agents-section.md");
const BEGIN: &str = "<!-- pdca: begin -->";
const END: &str = "<!-- pdca: end -->";

/// Returns the files that these agents read and that are not there yet. `AGENTS.md` gets a section at its end, once.
pub fn instructions(
    dir: &Utf8Path,
    which: AgentsFiles,
    chosen: &BTreeSet<&str>,
) -> Result<Vec<NewFile>, std::io::Error> {
    let is_for = |agent: &str| match which {
        AgentsFiles::Chosen => chosen.contains(agent),
        AgentsFiles::All => true,
        AgentsFiles::None => false,
    };
    let mut files: Vec<(&str, &str)> = Vec::new();
    if is_for("claude") {
        files.extend(CLAUDE);
    }
    if is_for("claude") || is_for("codex") {
        files.push(REVIEWER);
    }
    let mut items: Vec<NewFile> = files
        .into_iter()
        .map(|(path, text)| NewFile { path: dir.join(path), text: text.to_owned(), appends: false })
        .filter(|item| !super::exists(&item.path))
        .collect();
    if ["codex", "opencode", "gemini"].into_iter().any(is_for) {
        items.extend(section(&dir.join(SHARED))?);
    }
    Ok(items)
}

/// Returns every text, so that a test can check the commands that they name.
pub fn instruction_texts() -> impl Iterator<Item = &'static str> {
    CLAUDE.iter().chain([&REVIEWER]).map(|(_, text)| *text).chain([SECTION])
}

/// Returns `AGENTS.md` with our section, where it has none.
fn section(path: &Utf8Path) -> Result<Option<NewFile>, std::io::Error> {
    let section = format!("{BEGIN}\n{SECTION}{END}\n");
    if !super::exists(path) {
        return Ok(Some(NewFile { path: path.to_owned(), text: section, appends: false }));
    }
    // A link leads to somebody else's file, and a text that is none is not ours to extend.
    let is_file = fs_err::symlink_metadata(path)?.is_file();
    let text = is_file.then(|| fs_err::read(path)).transpose()?.map(String::from_utf8);
    let Some(Ok(mut text)) = text else { return Ok(None) };
    if text.contains(BEGIN) {
        return Ok(None);
    }
    while !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text.push_str(&section);
    Ok(Some(NewFile { path: path.to_owned(), text, appends: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Utf8Path, which: AgentsFiles, chosen: &[&str]) -> Vec<String> {
        let items = instructions(dir, which, &chosen.iter().copied().collect()).unwrap();
        let name = |item: &NewFile| item.path.strip_prefix(dir).unwrap().to_string();
        items.iter().map(name).collect()
    }

    #[test]
    fn each_agent_gets_its_own_files_and_none_gets_none() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let claude = names(dir, AgentsFiles::Chosen, &["claude"]);
        assert_eq!(
            claude,
            [
                ".claude/agents/planner.md",
                ".claude/agents/builder.md",
                ".claude/agents/sign-off.md",
                ".claude/agents/publisher.md",
                ".claude/agents/act.md",
                ".claude/commands/pdca.md",
                "process/leaves/reviewer.md",
            ]
        );
        let codex = names(dir, AgentsFiles::Chosen, &["codex"]);
        assert_eq!(codex, ["process/leaves/reviewer.md", "AGENTS.md"]);
        assert_eq!(names(dir, AgentsFiles::Chosen, &["gemini"]), ["AGENTS.md"]);
        assert!(names(dir, AgentsFiles::Chosen, &["aider"]).is_empty());
        assert!(names(dir, AgentsFiles::None, &["claude", "codex"]).is_empty());
        assert_eq!(names(dir, AgentsFiles::All, &[]).len(), 8);
    }

    #[test]
    fn a_file_that_is_there_stays_and_a_section_is_added_once() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        fs_err::create_dir_all(dir.join(".claude/agents")).unwrap();
        fs_err::write(dir.join(".claude/agents/builder.md"), "mine").unwrap();
        let claude = names(dir, AgentsFiles::Chosen, &["claude"]);
        assert!(!claude.contains(&".claude/agents/builder.md".to_owned()), "{claude:?}");
        fs_err::write(dir.join("AGENTS.md"), "# Ours").unwrap();
        let item = section(&dir.join("AGENTS.md")).unwrap().unwrap();
        assert!(item.appends && item.text.starts_with("# Ours\n\n<!-- pdca: begin -->\n## pdca\n"));
        assert!(item.text.ends_with("<!-- pdca: end -->\n"));
        fs_err::write(&item.path, &item.text).unwrap();
        assert!(section(&item.path).unwrap().is_none());
    }
}
