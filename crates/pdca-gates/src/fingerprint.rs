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
    digest::Digest,
    followed::Followed,
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

/// A larger script is not followed.
pub(crate) const LARGEST_SCRIPT: u64 = 1 << 20;

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
    /// Returns true if everything outside of the tree that the check runs is in its fingerprint.
    pub fn is_followed(&self, around: &GateHost) -> bool {
        Followed::of(&self.command, self.cwd, around).is_complete
    }

    /// Returns the files outside of the tree that the check runs, as far as they can be followed.
    pub fn programs(&self, around: &GateHost) -> Vec<Utf8PathBuf> {
        let commands = [Some(&self.command), self.fix.as_ref()].into_iter().flatten();
        let files = commands.flat_map(|command| Followed::of(command, self.cwd, around).files);
        files.map(|(_, file)| file).collect()
    }

    /// Adds the content of programs outside of the tree, and the output of the `identity` commands.
    pub(crate) fn add_programs(&self, around: &GateHost, digest: &mut Digest) {
        for command in [Some(&self.command), self.fix.as_ref()].into_iter().flatten() {
            for (word, file) in Followed::of(command, self.cwd, around).files {
                digest.text("program", &word);
                digest.text("content", &content_of(&file));
            }
        }
        for command in &self.identity {
            digest.text("identity", command);
            digest.text("answer", &answer_of(command, around));
        }
    }
}

/// Splits a command into words, as far as that is possible without a shell, with the home directory and the workspace
/// in the place of their names.
pub(crate) fn shell_words(command: &Command, home: &Utf8Path, workspace: &Utf8Path) -> Vec<String> {
    match command {
        Command::Argv(words) => {
            let inner = words.iter().flat_map(|word| words_with(word, home, workspace));
            words.iter().cloned().chain(inner).collect()
        }
        Command::Shell(text) => words_with(text, home, workspace),
    }
}

/// Splits shell text into words. Quotes are removed, `~`, `$HOME` and `$PDCA_WORKSPACE` are replaced, other variables stay.
/// A file that output goes to is left out: it changes with every run.
pub(crate) fn words_with(text: &str, home: &Utf8Path, workspace: &Utf8Path) -> Vec<String> {
    const ENDS: &str = ";|&()<>`=:,";
    let mut words = vec![String::new()];
    let mut written = std::collections::BTreeSet::new();
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        let is_start = words.last().is_some_and(String::is_empty);
        let mut say = |part: &str| {
            if let Some(word) = words.last_mut() {
                word.push_str(part);
            }
        };
        match letter {
            '"' | '\'' => {}
            '~' if is_start && rest.peek().is_none_or(|next| *next == '/') => say(home.as_str()),
            '$' => {
                let is_braced = rest.next_if_eq(&'{').is_some();
                let mut name = String::new();
                while let Some(part) = rest.next_if(|it| it.is_ascii_alphanumeric() || *it == '_') {
                    name.push(part);
                }
                if is_braced {
                    // Of `${NAME:-default}` the default is a word of its own.
                    rest.next_if_eq(&'}');
                }
                match name.as_str() {
                    "HOME" => say(home.as_str()),
                    "PDCA_WORKSPACE" => say(workspace.as_str()),
                    // Not a variable but `$(`: the command in it is a word of its own.
                    "" => {}
                    name => say(&format!("${name}")),
                }
            }
            end if end.is_whitespace() || ENDS.contains(end) => {
                let is_open = is_start && written.contains(&(words.len() - 1)) && end != '\n';
                if !is_open {
                    words.push(String::new());
                }
                if end == '>' {
                    written.insert(words.len() - 1);
                }
            }
            plain => say(plain.encode_utf8(&mut [0; 4])),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    let read = words.into_iter().enumerate().filter(|(at, _)| !written.contains(at));
    read.map(|(_, word)| word)
        .filter(|word| !word.is_empty() && seen.insert(word.clone()))
        .collect()
}

/// Splits shell text into words, as far as that is possible without a shell. A variable is a word without its `$`.
pub fn words_in(text: &str) -> Vec<&str> {
    text.split(|letter: char| letter.is_whitespace() || ";|&()<>\"'`=$".contains(letter)).collect()
}

/// Returns the program of this name that a shell would start.
pub(crate) fn on_path(name: &str, path: Option<&OsStr>) -> Option<Utf8PathBuf> {
    if name.contains('/') {
        return None;
    }
    let dirs = std::env::split_paths(path?);
    let runs = |file: &std::path::PathBuf| {
        std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    };
    let found = dirs.map(|dir| dir.join(name)).find(runs)?;
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
        let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(dir.join("bin/tool"), runs).unwrap();
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
    fn words_are_those_that_a_shell_would_see() {
        let (home, workspace) = (Utf8Path::new("/h"), Utf8Path::new("/w"));
        let words = |text: &str| words_with(text, home, workspace).join(" ");
        assert_eq!(words("~/bin/x \"$HOME\"/bin/y ${HOME}/z a~b"), "/h/bin/x /h/bin/y /h/z a~b");
        assert_eq!(
            words("A=~/x:$PATH env B=1 'p q' && $(which t) >o"),
            "A /h/x $PATH env B 1 p q which t"
        );
        assert_eq!(words("\"$PDCA_WORKSPACE/x\" $TOOLS/y"), "/w/x $TOOLS/y");
        assert_eq!(words("a >> \"$HOME/log\" 2>&1; b >c d < e"), "a 2 b d e");
    }
}
