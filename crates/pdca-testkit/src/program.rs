//! The programs of this project that tests start: found beside the test, built when needed.
//!
//! `cargo test -p one-crate` builds no binary of another crate, and one left over from an
//! earlier build may be out of date. Cargo leaves a list of sources beside each binary, so
//! one that is older than any of its sources is built again; everything else is found as is.

use std::{
    fs::File,
    process::{Command, Stdio},
    sync::OnceLock,
    time::SystemTime,
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

/// The supervisor of `pdca-process` as a program of its own.
pub fn supervisor() -> &'static Utf8Path {
    static PATH: OnceLock<Utf8PathBuf> = OnceLock::new();
    PATH.get_or_init(|| require("pdca-supervisor", &[]))
}

/// The binary `pdca` that faults can be asked of, by `PDCA_CRASH_AT` and `PDCA_STOP_AT`.
pub fn pdca_bin() -> &'static Utf8Path {
    static PATH: OnceLock<Utf8PathBuf> = OnceLock::new();
    PATH.get_or_init(|| require("pdca-with-faults", &["--features", "pdca-cli/fault-injection"]))
}

/// The scripted leaf of this crate; its language is documented with the binary.
pub fn fake_leaf() -> &'static Utf8Path {
    static PATH: OnceLock<Utf8PathBuf> = OnceLock::new();
    PATH.get_or_init(|| require("fake-leaf", &[]))
}

/// The forge of this crate; how it is told what goes wrong is documented with the binary.
pub fn fake_gh() -> &'static Utf8Path {
    static PATH: OnceLock<Utf8PathBuf> = OnceLock::new();
    PATH.get_or_init(|| require("fake-gh", &[]))
}

/// The slow link of this crate, a `ProxyCommand` of `ssh`.
pub(crate) fn slow_link() -> &'static Utf8Path {
    static PATH: OnceLock<Utf8PathBuf> = OnceLock::new();
    PATH.get_or_init(|| require("slow-link", &[]))
}

/// Finds the binary of this build, building it first where it is absent or older than its sources.
fn require(bin: &str, features: &[&str]) -> Utf8PathBuf {
    let dir = profile_dir();
    let path = dir.join(bin);
    if is_current(&path) {
        return path;
    }
    // Several test programs may come here at once; one builds, the others find the result.
    let lock = File::create(dir.join(format!(".{bin}.build-lock")))
        .expect("the target directory can be written");
    lock.lock().expect("the target directory's filesystem can lock");
    if !is_current(&path) {
        build(&dir, bin, features);
    }
    path
}

/// The directory of this build, such as `target/debug`.
fn profile_dir() -> Utf8PathBuf {
    let test = std::env::current_exe().expect("a running program knows its path");
    let test = Utf8PathBuf::from_path_buf(test).expect("the target directory has a UTF-8 name");
    let mut dir = test.parent().expect("a program is in a directory");
    if matches!(dir.file_name(), Some("deps" | "examples")) {
        dir = dir.parent().expect("deps is in the directory of a profile");
    }
    // A documentation test runs from a temporary directory: it has no build of its own.
    if dir.join("deps").is_dir() { dir.to_owned() } else { workspace().join("target/debug") }
}

fn workspace() -> Utf8PathBuf {
    let here = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate is two levels down in the workspace").to_owned()
}

/// Whether the binary exists and none of the sources cargo lists for it is younger.
fn is_current(path: &Utf8Path) -> bool {
    let (Some(built), Ok(list)) = (modified(path), fs::read_to_string(path.with_extension("d")))
    else {
        return false;
    };
    sources(&list).iter().all(|source| modified(source).is_some_and(|changed| changed <= built))
}

fn modified(path: &Utf8Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

/// Reads a list of the form `binary: source source`, with blanks in names escaped.
fn sources(list: &str) -> Vec<Utf8PathBuf> {
    let Some((_, names)) = list.split_once(": ") else {
        return Vec::new();
    };
    let mut found = vec![String::new()];
    let mut letters = names.chars().peekable();
    while let Some(letter) = letters.next() {
        let name = found.last_mut().expect("the list starts with one name");
        match letter {
            '\\' if letters.peek() == Some(&' ') => name.extend(letters.next()),
            letter if letter.is_whitespace() => found.push(String::new()),
            letter => name.push(letter),
        }
    }
    found.into_iter().filter(|name| !name.is_empty()).map(Utf8PathBuf::from).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo builds what the tests start; pdca-process may be the thing built"
)]
fn build(dir: &Utf8Path, bin: &str, features: &[&str]) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let profile = match dir.file_name() {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let target = dir.parent().expect("a profile is in the target directory");
    let output = Command::new(cargo)
        .current_dir(workspace())
        .args([
            "build",
            "--quiet",
            "--offline",
            // What others wrote then has the features that `cargo test --workspace` chose, and is built already.
            "--workspace",
            "--bin",
            bin,
            "--profile",
            profile,
        ])
        .args(features)
        .args(["--target-dir", target.as_str()])
        .stdin(Stdio::null())
        .output()
        .expect("cargo can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "building {bin} failed: {said}");
}

#[cfg(test)]
mod tests {
    use super::sources;

    #[test]
    fn blanks_in_the_names_of_sources_are_kept() {
        assert_eq!(sources("/t/bin: /a/b.rs /a\\ b/c.rs\n"), ["/a/b.rs", "/a b/c.rs"]);
    }
}
