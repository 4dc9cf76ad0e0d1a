//! The `bwrap` sandbox, which gives the child private namespaces.
//!
//! Process ids, IPC, mounts and `/dev` are private. Denied trees are mounted read-only or hidden, and the exceptions
//! below them are mounted on top. Mounts protect what Landlock does not: modes, owners and times of files. When the
//! namespace ends, the kernel kills every process in it. Named sockets that a process listens on are hidden, as are the
//! user's credential files.
//!
//! The directories for temporary files and `/run` are private as well, unless they contain a path that the child needs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;

use crate::sandbox::{DROPPED, credentials, home, temporary, variable};
use crate::spec::{Network, Sandbox, Spec};

/// Directories that are private unless they contain a path that the child needs.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/run"];
/// Trees that `bwrap` creates anew.
const OWN: [&str; 2] = ["/dev", "/proc"];
/// The most sockets that are hidden; each costs a mount.
const SOCKETS: usize = 64;

/// The treatment of a path; where several apply to one path, the greatest wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mount {
    Private,
    ReadOnly,
    Hidden,
    Shown,
    Writable,
}

/// Returns the path of `bwrap`, if it is installed.
pub(crate) fn program() -> Option<PathBuf> {
    let search = variable("PATH")?;
    std::env::split_paths(&search).map(|dir| dir.join("bwrap")).find(|path| path.is_file())
}

/// Returns the arguments that precede the program to confine.
pub(crate) fn arguments(spec: &Spec, sandbox: &Sandbox, own: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        // If the supervisor is killed, `--die-with-parent` ends `bwrap`, and the kernel ends every
        // process of the namespace with it.
        ["--die-with-parent", "--unshare-pid", "--unshare-ipc"].map(OsString::from).to_vec();
    // If only listed trees may be written, the root is read-only and the trees are mounted on top.
    let is_listed = sandbox.no_write.iter().any(|path| path == "/");
    let root = if is_listed { "--ro-bind" } else { "--bind" };
    args.extend([root, "/", "/"].map(OsString::from));
    if sandbox.network == Network::Off {
        args.push("--unshare-net".into());
    }
    // Root keeps its capabilities inside; with these it could mount over what is made read-only
    // here.
    for (right, _) in DROPPED {
        args.extend(["--cap-drop".into(), right.into()]);
    }
    args.extend(["--dev".into(), "/dev".into(), "--proc".into(), "/proc".into()]);
    // Made read-only last: mount points inside them must be created first.
    let mut hidden: Vec<OsString> = Vec::new();
    // The map is ordered, so a path comes before those below it and the inner mounts end up on top.
    for (path, mount) in mounts(spec, sandbox, own) {
        let path = path.into_os_string();
        match mount {
            Mount::Private => args.extend(["--tmpfs".into(), path]),
            Mount::ReadOnly | Mount::Shown => args.extend(["--ro-bind".into(), path.clone(), path]),
            Mount::Writable => args.extend(["--bind".into(), path.clone(), path]),
            Mount::Hidden if Path::new(&path).is_dir() => {
                args.extend(["--tmpfs".into(), path.clone()]);
                hidden.extend(["--remount-ro".into(), path]);
            }
            Mount::Hidden => args.extend(["--ro-bind".into(), "/dev/null".into(), path]),
        }
    }
    args.append(&mut hidden);
    // The process that becomes the child enters the child's directory itself. Without this option
    // `bwrap` would enter the supervisor's.
    args.extend(["--chdir".into(), "/".into(), "--".into()]);
    args
}

fn mounts(spec: &Spec, sandbox: &Sandbox, own: &Path) -> BTreeMap<PathBuf, Mount> {
    let mut mounts = BTreeMap::new();
    let mut mount = |paths: &[Utf8PathBuf], mount: Mount| {
        for path in paths {
            if let Ok(real) = path.as_std_path().canonicalize()
                // A mount below these would replace what `bwrap` makes there.
                && !OWN.iter().any(|own| real.starts_with(own))
                && real != Path::new("/")
            {
                let now = mounts.entry(real).or_insert(mount);
                *now = mount.max(*now);
            }
        }
    };
    // The child must not write its own verdict.
    mount(std::slice::from_ref(&spec.job), Mount::ReadOnly);
    mount(&sandbox.no_write, Mount::ReadOnly);
    mount(&sandbox.no_read, Mount::Hidden);
    mount(&sandbox.read, Mount::Shown);
    mount(&[temporary(&spec.job)], Mount::Writable);
    mount(&sandbox.write, Mount::Writable);
    let given: Vec<PathBuf> =
        mounts.keys().cloned().chain([own.to_owned(), spec.cwd.clone().into()]).collect();
    let programs = spec.argv.iter().map(PathBuf::from).filter(|path| path.is_absolute());
    // A private `/tmp` would hide these: the program, its working directory, the home directory,
    // and every path that a list names.
    let needed: Vec<PathBuf> = given.into_iter().chain(programs).chain(home()).collect();
    for private in PRIVATE.map(PathBuf::from) {
        if private.is_dir() && !needed.iter().any(|path| path.starts_with(&private)) {
            mounts.entry(private).or_insert(Mount::Private);
        }
    }
    let is_private = |mounts: &BTreeMap<PathBuf, Mount>, path: &Path| {
        mounts.iter().any(|(tree, mount)| *mount == Mount::Private && path.starts_with(tree))
    };
    // `resolv.conf` is often a link into /run; without its target names cannot be resolved.
    if let Ok(resolver) = Path::new("/etc/resolv.conf").canonicalize()
        && is_private(&mounts, &resolver)
    {
        mounts.insert(resolver, Mount::Shown);
    }
    let writable = |mounts: &BTreeMap<PathBuf, Mount>, path: &Path| {
        mounts.iter().any(|(tree, mount)| *mount == Mount::Writable && path.starts_with(tree))
    };
    for path in sockets() {
        let Ok(real) = path.canonicalize() else { continue };
        if !is_private(&mounts, &real) && !writable(&mounts, &real) {
            mounts.entry(real).or_insert(Mount::Hidden);
        }
    }
    // Credentials are hidden also in writable trees, unless a list names their very path.
    for path in credentials() {
        let Ok(real) = path.canonicalize() else { continue };
        if !is_private(&mounts, &real) {
            mounts.entry(real).or_insert(Mount::Hidden);
        }
    }
    without_reopened(mounts)
}

/// Removes read-only mounts that would make a path inside a hidden tree visible again.
fn without_reopened(mut mounts: BTreeMap<PathBuf, Mount>) -> BTreeMap<PathBuf, Mount> {
    let is_shown_again = |path: &PathBuf| {
        // Only the nearest mount above counts, because an inner mount covers the outer one.
        let nearest = path.ancestors().skip(1).find_map(|above| mounts.get(above));
        mounts.get(path) == Some(&Mount::ReadOnly) && nearest == Some(&Mount::Hidden)
    };
    let again: Vec<PathBuf> = mounts.keys().filter(|path| is_shown_again(path)).cloned().collect();
    for path in again {
        mounts.remove(&path);
    }
    mounts
}

/// Returns the named sockets that exist now.
fn sockets() -> Vec<PathBuf> {
    // As bytes: a socket may have any name, and one that is no text must not keep the others from
    // being hidden.
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let is_socket =
        |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    let mut paths: Vec<PathBuf> =
        table.split(|byte| *byte == b'\n').skip(1).filter_map(socket_path).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.into_iter().filter(is_socket).take(SOCKETS).collect()
}

/// Returns the absolute path in a line of `/proc/net/unix`: everything after the seventh field, which may contain
/// spaces.
fn socket_path(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..7 {
        // Fields are padded.
        rest = rest.trim_ascii_start();
        rest = &rest[rest.iter().position(|byte| *byte == b' ')?..];
    }
    let path = rest.strip_prefix(b" ").filter(|path| path.starts_with(b"/"))?;
    Some(OsStr::from_bytes(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_socket_may_have_spaces_and_be_no_text() {
        let fields = b"0000000000000000: 00000002 00000000 00010000 0001 01  4242";
        let line = |end: &[u8]| [&fields[..], end].concat();
        for (end, expected) in [
            (&b" /run/agent"[..], Some(&b"/run/agent"[..])),
            (b" /srv/my sockets/agent  1", Some(b"/srv/my sockets/agent  1")),
            (b" /run/\xff", Some(b"/run/\xff")),
            (b" @abstract", None),
            (b" relative", None),
            (b"", None),
        ] {
            let found = socket_path(&line(end));
            assert_eq!(found.as_ref().map(|path| path.as_os_str().as_bytes()), expected);
        }
        assert_eq!(socket_path(b""), None);
    }

    #[test]
    fn a_closed_tree_in_a_hidden_one_is_hidden_too_and_one_in_what_is_given_back_stays_closed() {
        let mounts = [
            ("/a", Mount::Hidden),
            ("/a/closed", Mount::ReadOnly),
            ("/a/given", Mount::Writable),
            ("/a/given/closed", Mount::ReadOnly),
            ("/b", Mount::ReadOnly),
        ];
        let mounts = mounts.map(|(path, mount)| (PathBuf::from(path), mount));
        let left = without_reopened(mounts.into());
        let left: Vec<&str> = left.keys().filter_map(|path| path.to_str()).collect();
        assert_eq!(left, ["/a", "/a/given", "/a/given/closed", "/b"]);
    }
}
