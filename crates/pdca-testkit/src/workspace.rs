//! A temporary workspace: `pdca.toml` and a bundle root.

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use tempfile::TempDir;

use crate::repo::{Repo, utf8};

/// A directory with a `pdca.toml` and an empty `results/`.
///
/// It stands alone in a temporary directory, so that siblings (the lanes, a target) are
/// private to the test as well.
#[derive(Debug)]
pub struct TestWorkspace {
    path: Utf8PathBuf,
    home: TempDir,
}

/// What a brief says when the test does not care.
const FIELDS: &[(&str, &str)] = &[
    ("Slug", "a-small-thing"),
    ("Defect (Goal)", "the thing is wrong"),
    ("Success criterion", "the thing is right"),
    ("Falsifiability", "the test fails without the change"),
    ("Invariant to restore", "things are right"),
    ("Scope", "one file"),
    ("Disposition hint", "fix"),
];

impl TestWorkspace {
    /// A workspace whose `pdca.toml` is empty.
    pub fn new() -> Self {
        let home = TempDir::new().expect("a temporary directory can be made");
        let path = utf8(home.path()).join("ws");
        fs::create_dir_all(path.join("results")).expect("directories can be made");
        let workspace = Self { path, home };
        workspace.config("");
        workspace
    }

    /// The directory that holds `pdca.toml`.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The temporary directory around the workspace: the place for its siblings.
    pub fn around(&self) -> Utf8PathBuf {
        utf8(self.home.path())
    }

    /// Replaces `pdca.toml`. In a workspace with a directory `calls`, in which programs of a test count their runs, every
    /// row of the gates may write it.
    pub fn config(&self, text: &str) {
        let text = if self.has("calls") { counting_rows(text) } else { text.to_owned() };
        self.write("pdca.toml", text);
    }

    /// Where a bundle is, whether or not it exists.
    pub fn bundle(&self, id: &str) -> Utf8PathBuf {
        self.path.join("results").join(format!("issue_{id}"))
    }

    /// Writes an authored brief and says where its bundle is.
    ///
    /// The usual fields have sensible values; `fields` replaces them by label, or adds.
    pub fn brief(&self, id: &str, fields: &[(&str, &str)]) -> Utf8PathBuf {
        let mut text = format!("# Brief: issue {id}\n\n");
        let given = |label: &str| fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(label));
        let usual = FIELDS.iter().filter(|(label, _)| !given(label));
        for (label, value) in usual.chain(fields) {
            let value = value.replace('\n', "\n  ");
            writeln!(text, "- **{label}:** {value}").expect("a string takes any text");
        }
        self.write(format!("results/issue_{id}/brief.md"), text);
        self.bundle(id)
    }

    /// An empty repository beside the workspace, kept alive by it.
    pub fn target(&self, name: &str) -> Repo {
        Repo::at(&self.around().join(name))
    }

    /// Writes a file of the workspace, with the directories above it.
    pub fn write(&self, file: impl AsRef<Utf8Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path.join(file);
        let parent = path.parent().expect("a file has a directory above it");
        fs::create_dir_all(parent).expect("directories can be made");
        fs::write(path, bytes).expect("a file can be written");
    }

    /// Reads a text file of the workspace.
    pub fn read(&self, file: impl AsRef<Utf8Path>) -> String {
        fs::read_to_string(self.path.join(file)).expect("a file can be read")
    }

    /// Whether the workspace has this file or directory.
    pub fn has(&self, file: impl AsRef<Utf8Path>) -> bool {
        self.path.join(file).exists()
    }

    /// Whether a program has written a line to this file.
    ///
    /// A shell makes a file first and writes it then, so that it is there tells a test too early.
    pub fn says(&self, file: impl AsRef<Utf8Path>) -> bool {
        fs::read(self.path.join(file)).is_ok_and(|bytes| bytes.ends_with(b"\n"))
    }

    /// Writes a script for [`fake_leaf`](crate::fake_leaf) beside the workspace and says where.
    pub fn script(&self, name: &str, text: &str) -> Utf8PathBuf {
        let path = self.around().join("scripts").join(name);
        fs::create_dir_all(self.around().join("scripts")).expect("directories can be made");
        fs::write(&path, text).expect("a file can be written");
        path
    }
}

impl Default for TestWorkspace {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds `may_write = ["calls"]` to the rows that have no `may_write`.
fn counting_rows(text: &str) -> String {
    let mut tables = text.split("[[gates.checks]]\n");
    let mut counting = tables.next().unwrap_or_default().to_owned();
    for table in tables {
        counting.push_str("[[gates.checks]]\n");
        let end = table.find("\n[").unwrap_or(table.len());
        if !table[..end].contains("may_write") {
            counting.push_str("may_write = [\"calls\"]\n");
        }
        counting.push_str(table);
    }
    counting
}

#[cfg(test)]
mod tests {
    use super::TestWorkspace;

    #[test]
    fn a_given_field_takes_the_place_of_the_usual_one() {
        let workspace = TestWorkspace::new();
        workspace.brief("7", &[("slug", "other"), ("Touches", "a\nb")]);
        let text = workspace.read("results/issue_7/brief.md");
        assert!(text.contains("- **slug:** other\n- **Touches:** a\n  b\n"), "{text}");
        assert!(!text.contains("a-small-thing"), "{text}");
    }

    #[test]
    fn siblings_of_the_workspace_are_private_to_it() {
        let workspace = TestWorkspace::new();
        let target = workspace.target("repo");
        assert_eq!(target.path().parent(), workspace.path().parent());
    }
}
