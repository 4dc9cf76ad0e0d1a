//! The fingerprint of a set of checks: one identity for job keys, kept verdicts, seals and certificates.
//!
//! A verdict counts only for exactly the checks that gave it. The fingerprint covers the checks in canonical form, the
//! content of every program outside of the tree that a check starts or names, the output of the `identity` commands,
//! and the surroundings: sandbox, hydration, reset, caches, search path, platform. If any of them changes, the gates
//! run again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::Tool;

use crate::{
    check::{Check, Checks, Command},
    config::Cwd,
    digest::Digest,
};

/// A larger program is identified by its size and time, not by its content.
const LARGEST_PROGRAM: u64 = 64 << 20;
/// The timeout of an `identity` command.
const PATIENCE: Duration = Duration::from_secs(60);

/// The properties of the host that can decide what checks report.
#[derive(Debug, Clone, Default)]
pub struct GateHost {
    /// The directory from which relative paths of commands are resolved, unless they are in the tree.
    pub workspace: Utf8PathBuf,
    /// The search path for programs.
    pub search_path: Option<OsString>,
    /// Checkouts of the change under check: their files are part of the tree, so their content here is left out.
    pub trees: Vec<Utf8PathBuf>,
    /// Further facts by name, in canonical form: sandbox, hydration, reset, caches.
    pub facts: BTreeMap<&'static str, Vec<u8>>,
}

/// Variables that identify a bundle or its base. A check that reads one of them may report something else about a
/// bundle than about a combination with the same tree.
const OF_A_BUNDLE: [&str; 3] = ["PDCA_ISSUE", "PDCA_BUNDLE", "PDCA_BASE"];
/// A larger script is not searched for these variables.
const LARGEST_SCRIPT: u64 = 1 << 20;

impl GateHost {
    /// Adds everything but the checks and their programs.
    pub(crate) fn add_to(&self, digest: &mut Digest) {
        digest.text("os", std::env::consts::OS);
        digest.text("arch", std::env::consts::ARCH);
        let path = self.search_path.as_deref().unwrap_or_default();
        digest.bytes("path", path.as_encoded_bytes());
        for (name, fact) in &self.facts {
            digest.bytes(name, fact);
        }
    }
}

impl Checks {
    /// Returns the fingerprint of these checks in these surroundings, in hexadecimal.
    pub fn fingerprint(&self, around: &GateHost) -> String {
        let mut digest = Digest::default();
        around.add_to(&mut digest);
        for check in self.as_slice() {
            check.add_to(&mut digest);
            check.add_programs(around, &mut digest);
        }
        digest.hex()
    }
}

impl Check {
    /// Returns true if the command, or a script that it names in the workspace or in `tree`, mentions a variable that
    /// identifies the bundle.
    pub fn asks_for_bundle(&self, workspace: &Utf8Path, tree: &Utf8Path) -> bool {
        let names_one = |text: &[u8]| {
            let finds = |name: &str| text.windows(name.len()).any(|part| part == name.as_bytes());
            OF_A_BUNDLE.iter().any(|name| finds(name))
        };
        let reads_one = |file: &Utf8Path| {
            pdca_state::files::read_bounded(file, LARGEST_SCRIPT)
                .is_ok_and(|text| text.is_some_and(|text| names_one(&text)))
        };
        words_of(&self.command).into_iter().filter(|word| !word.is_empty()).any(|word| {
            names_one(word.as_bytes())
                || [workspace, tree].iter().any(|dir| reads_one(&dir.join(word)))
        })
    }

    /// Adds the content of programs outside of the tree, and the output of the `identity` commands.
    pub(crate) fn add_programs(&self, around: &GateHost, digest: &mut Digest) {
        for command in [Some(&self.command), self.fix.as_ref()].into_iter().flatten() {
            for (word, file) in files_of(command, self.cwd, around) {
                // The word, not the path where it was found: the same checks elsewhere must have the same fingerprint.
                digest.text("program", word);
                digest.text("content", &content_of(&file));
            }
        }
        for command in &self.identity {
            digest.text("identity", command);
            digest.text("answer", &answer_of(command, around));
        }
    }
}

/// Returns the files that the words of a command name: by a path in the workspace, or as a program on the search path.
/// Files in the tree are left out.
fn files_of<'c>(command: &'c Command, cwd: Cwd, around: &GateHost) -> Vec<(&'c str, Utf8PathBuf)> {
    let words = words_of(command);
    let mut files: Vec<(&str, Utf8PathBuf)> = Vec::new();
    for word in words.into_iter().filter(|word| !word.is_empty()) {
        let file = if word.contains('/') {
            Some(around.workspace.join(word)).filter(|path| path.is_file())
        } else {
            on_path(word, around.search_path.as_deref())
        };
        let in_a_tree = |file: &Utf8PathBuf| {
            // The tree is part of every key by its id; the content that lies here now may be that of
            // another branch.
            cwd != Cwd::Workspace && around.trees.iter().any(|tree| file.starts_with(tree))
        };
        let is_new = |file: &Utf8PathBuf| files.iter().all(|(_, known)| known != file);
        if let Some(file) = file.filter(|file| is_new(file) && !in_a_tree(file)) {
            files.push((word, file));
        }
    }
    files
}

/// Splits a command into words, as far as that is possible without a shell.
fn words_of(command: &Command) -> Vec<&str> {
    match command {
        Command::Argv(words) => words.iter().map(String::as_str).collect(),
        Command::Shell(text) => words_in(text),
    }
}

/// Splits shell text into words, as far as that is possible without a shell. A variable is a word without its `$`.
pub fn words_in(text: &str) -> Vec<&str> {
    text.split(|letter: char| letter.is_whitespace() || ";|&()<>\"'`=$".contains(letter)).collect()
}

fn on_path(name: &str, path: Option<&OsStr>) -> Option<Utf8PathBuf> {
    let dirs = std::env::split_paths(path?);
    let found = dirs.map(|dir| dir.join(name)).find(|file| file.is_file())?;
    Utf8PathBuf::from_path_buf(found).ok()
}

/// Device, inode, change time and size, which differ for another version of a file.
type Version = (u64, u64, i64, i64, u64);

/// Returns the digest of a file's content. Each version of a file is read once per process.
fn content_of(file: &Utf8Path) -> String {
    static KNOWN: Mutex<BTreeMap<Version, String>> = Mutex::new(BTreeMap::new());
    let Ok(meta) = fs_err::metadata(file) else { return "unreadable".to_owned() };
    // The change time and not the modification time: a program can set the latter, as `cp -p` and
    // package managers do.
    let version = (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.len());
    if meta.len() > LARGEST_PROGRAM {
        return format!("{} bytes of {}.{}", meta.len(), meta.mtime(), meta.mtime_nsec());
    }
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(digest) = known().get(&version) {
        return digest.clone();
    }
    let Ok(bytes) = fs_err::read(file) else { return "unreadable".to_owned() };
    let digest = pdca_state::sha256_hex(&bytes);
    known().insert(version, digest.clone());
    digest
}

/// Returns the output of an `identity` command, or its error.
fn answer_of(command: &str, around: &GateHost) -> String {
    let mut tool =
        Tool::new("/bin/sh").args(["-c", command]).cwd(&around.workspace).timeout(PATIENCE);
    if let Some(path) = &around.search_path {
        tool = tool.env("PATH", path);
    }
    match tool.run() {
        Ok(said) => {
            let out = String::from_utf8_lossy(&said.stdout);
            let err = String::from_utf8_lossy(&said.stderr);
            format!("{}\n{out}\n{err}", said.code)
        }
        Err(error) => pdca_state::chain(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::check;

    fn around(dir: &Utf8Path) -> GateHost {
        let facts = BTreeMap::from([("sandbox", b"auto".to_vec()), ("reset", b"clean".to_vec())]);
        let search_path = Some(OsString::from(dir.join("bin").as_str()));
        GateHost { workspace: dir.to_owned(), search_path, trees: Vec::new(), facts }
    }

    fn of(text: &str, around: &GateHost) -> String {
        Checks::new(vec![check(text)]).fingerprint(around)
    }

    #[test]
    fn every_ingredient_changes_the_fingerprint() {
        let home = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(home.path()).unwrap();
        fs_err::create_dir_all(dir.join("bin")).unwrap();
        fs_err::write(dir.join("gate.sh"), "exit 0").unwrap();
        fs_err::write(dir.join("bin/tool"), "1").unwrap();
        fs_err::write(dir.join("version"), "1").unwrap();
        let text = "cmd = 'sh ./gate.sh && tool'\nidentity = ['/bin/cat version']";
        let here = around(dir);
        let mut seen = vec![of(text, &here)];
        assert_eq!(of(text, &here), seen[0], "the same is the same");
        let mut differs = |what: &str, now: String| {
            assert!(!seen.contains(&now), "{what} changes nothing");
            seen.push(now);
        };
        differs("another command", of("cmd = 'true'", &here));
        differs("another timeout", of(&format!("{text}\ntimeout_secs = 7"), &here));
        for fact in ["sandbox", "reset", "hydrate"] {
            let mut other = here.clone();
            other.facts.insert(fact, b"other".to_vec());
            differs(fact, of(text, &other));
        }
        let mut other = here.clone();
        other.search_path = Some(OsString::from(format!("{dir}/bin:/nowhere")));
        differs("another search path", of(text, &other));
        fs_err::write(dir.join("gate.sh"), "exit 1").unwrap();
        differs("a script that a row is handed", of(text, &here));
        fs_err::write(dir.join("bin/tool"), "22").unwrap();
        differs("a program on the search path", of(text, &here));
        fs_err::write(dir.join("version"), "2").unwrap();
        differs("what an identity command says", of(text, &here));
    }

    #[test]
    fn a_row_that_reads_which_bundle_it_is_about_is_known_by_its_command_or_its_script() {
        let home = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(home.path()).unwrap();
        let tree = dir.join("tree");
        fs_err::create_dir_all(&tree).unwrap();
        fs_err::write(dir.join("own.sh"), "git diff \"$PDCA_BASE\"").unwrap();
        fs_err::write(tree.join("check.sh"), "test -n \"${PDCA_ISSUE}\"").unwrap();
        fs_err::write(tree.join("plain.sh"), "test -n \"$PDCA_TARGET\"").unwrap();
        let asks = |text: &str| check(text).asks_for_bundle(dir, &tree);
        assert!(asks("cmd = 'git diff ${PDCA_BASE}..HEAD'"));
        assert!(asks("cmd = 'sh ./own.sh'"));
        assert!(asks("argv = ['sh', 'check.sh']"));
        assert!(!asks("cmd = 'sh plain.sh && cargo test'"));
    }
}
