//! The `bwrap` sandbox, which gives the child private namespaces.
//!
//! Process ids, IPC, mounts and `/dev` are private. The mounts give each path the access that the rules say. Mounts protect what Landlock does not: modes, owners and times of files. When the
//! namespace ends, the kernel kills every process in it. Named sockets that a process listens on are hidden, as are the
//! user's credential files.
//!
//! The directories for temporary files and `/run` are private as well, unless they contain a path that the child needs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::access::{self, Access, Rule, Rules};
use crate::replaced;
use crate::rights::{OVERRIDE, SET_CAPABILITIES, has_capability};
use crate::sandbox::{home, needs_override, rules};
use crate::spec::{Network, Sandbox, Spec};

/// Directories that are private unless they contain a path that the child needs.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/run"];
/// Trees that `bwrap` creates anew.
const OWN: [&str; 2] = ["/dev", "/proc"];
/// Parts of `/proc` with which root changes the kernel. It needs no capability for that, only its user id.
const KERNEL: [&str; 8] = ["sys", "sysrq-trigger", "irq", "bus", "fs", "scsi", "acpi", "mtrr"];
/// The most sockets of a directory that are hidden one by one; with more, the directory is hidden.
const MANY: usize = 16;
/// The most sockets that are hidden one by one in all; each costs a mount, and `bwrap` takes about a millisecond for it.
const MOST: usize = 256;

/// The treatment of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mount {
    /// A part of the host, with this access.
    Host(Access),
    /// An empty directory of the child.
    Private,
}

/// Returns the arguments that precede the program to confine.
pub(crate) fn arguments(spec: &Spec, sandbox: &Sandbox, own: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        // If the supervisor is killed, `--die-with-parent` ends `bwrap`, and the kernel ends every
        // process of the namespace with it.
        ["--die-with-parent", "--unshare-pid", "--unshare-ipc"].map(OsString::from).to_vec();
    if sandbox.network == Network::Off {
        args.push("--unshare-net".into());
    }
    args.extend(["--cap-drop".into(), "ALL".into()]);
    if rustix::process::geteuid().is_root() && has_capability(SET_CAPABILITIES) {
        // `bwrap` leaves the bounding set as it is. The process that becomes the child empties it, with this one.
        args.extend(["--cap-add".into(), SET_CAPABILITIES.0.into()]);
    }
    let rules = rules(sandbox, &spec.job);
    if needs_override(spec, &rules) {
        args.extend(["--cap-add".into(), OVERRIDE.0.into()]);
    }
    let replaced = replaced::resolved(sandbox);
    let mounts = mounts(spec, rules, own);
    let places: BTreeSet<PathBuf> = mounts.keys().cloned().collect();
    // Made read-only last: mount points inside them must be created first.
    let mut hidden: Vec<OsString> = Vec::new();
    // The map is ordered, so a path comes before those below it and the inner mounts end up on top.
    for (path, mount) in mounts {
        let is_root = path == Path::new("/");
        let is_dir = path.is_dir();
        let path = path.into_os_string();
        match mount {
            Mount::Private => args.extend(["--tmpfs".into(), path]),
            Mount::Host(Access::ReadOnly) => {
                args.extend(["--ro-bind".into(), path.clone(), path]);
            }
            Mount::Host(Access::Writable) => args.extend(["--bind".into(), path.clone(), path]),
            Mount::Host(Access::Hidden) if is_dir && replaced.contains_key(Path::new(&path)) => {
                let with = &replaced[Path::new(&path)];
                let laid = replaced::lay(Path::new(&path), with, &places);
                args.extend(laid.args);
                let made = laid.made.into_iter().map(PathBuf::into_os_string);
                hidden.extend(made.flat_map(|made| ["--remount-ro".into(), made]));
            }
            Mount::Host(Access::Hidden) if is_dir => {
                args.extend(["--tmpfs".into(), path.clone()]);
                hidden.extend(["--remount-ro".into(), path]);
            }
            Mount::Host(Access::Hidden) => {
                args.extend(["--ro-bind".into(), "/dev/null".into(), path]);
            }
        }
        if is_root {
            args.extend(["--dev".into(), "/dev".into(), "--proc".into(), "/proc".into()]);
            for part in KERNEL {
                let path = Path::new("/proc").join(part).into_os_string();
                args.extend(["--ro-bind-try".into(), path.clone(), path]);
            }
        }
    }
    args.append(&mut hidden);
    // The process that becomes the child enters the child's directory itself. Without this option
    // `bwrap` would enter the supervisor's.
    args.extend(["--chdir".into(), "/".into(), "--".into()]);
    args
}

fn mounts(spec: &Spec, mut rules: Rules, own: &Path) -> BTreeMap<PathBuf, Mount> {
    // It becomes the child inside of the namespaces.
    if rules.access(own) == Access::Hidden {
        rules.add(own, Rule::Shown);
    }
    let private = private(&rules, spec, own);
    let is_private = |path: &Path| private.iter().any(|tree| path.starts_with(tree));
    let sockets = sockets().into_iter().filter_map(|path| path.canonicalize().ok());
    // A socket in a place of the child is the child's.
    let of_others = |path: &PathBuf| {
        !is_private(path) && !rules.is_own(path) && rules.access(path) != Access::Hidden
    };
    let sockets: Vec<PathBuf> = sockets.filter(of_others).collect();
    let by_directory = spec.sandbox.as_ref().is_some_and(|sandbox| sandbox.by_directory);
    hide_sockets(&mut rules, &sockets, &needed(spec, own), by_directory);
    let is_made = |path: &Path| OWN.iter().any(|own| path.starts_with(own)) || is_private(path);
    let mounts = rules.mounts(&access::entries).into_iter();
    let mounts = mounts.filter(|(path, _)| !is_made(path));
    let mut mounts: BTreeMap<PathBuf, Mount> =
        mounts.map(|(path, access)| (path, Mount::Host(access))).collect();
    // `resolv.conf` is often a link into /run; without its target names cannot be resolved.
    if let Ok(resolver) = Path::new("/etc/resolv.conf").canonicalize()
        && is_private(&resolver)
    {
        mounts.insert(resolver, Mount::Host(Access::ReadOnly));
    }
    mounts.extend(private.into_iter().map(|tree| (tree, Mount::Private)));
    mounts
}

/// Hides sockets: one by one, or with their directories where these are many.
///
/// However many sockets there are, each of them is hidden. A directory that holds more than [`MANY`] is hidden if the
/// child needs nothing in it; and if more than [`MOST`] are left, so are the directories that hold most of them, with
/// all that the child does not need.
///
/// With `by_directory` this is a second attempt: a socket vanished before it was hidden, and `bwrap` failed. Then every
/// directory is hidden that another child could have made a socket in.
fn hide_sockets(rules: &mut Rules, sockets: &[PathBuf], needed: &[PathBuf], by_directory: bool) {
    let mut by_dir: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for socket in sockets {
        by_dir.entry(socket.parent().unwrap_or(socket)).or_default().push(socket);
    }
    let is_hidden = |dir: &Path, count: usize| {
        let is_free = !is_needed(rules, needed, dir);
        (is_free && (by_directory || count > MANY))
            || (by_directory && rules.access(dir) == Access::Writable)
    };
    let (mut dirs, single): (Vec<_>, Vec<_>) =
        by_dir.into_iter().partition(|(dir, sockets)| is_hidden(dir, sockets.len()));
    // The home directory and the working directory stay, and no other child can write in them.
    let (mut single, fixed): (Vec<_>, Vec<_>) =
        single.into_iter().partition(|(dir, _)| !needed.iter().any(|path| path == dir));
    single.sort_by_key(|(dir, sockets)| (sockets.len(), *dir));
    while single.iter().map(|(_, sockets)| sockets.len()).sum::<usize>() > MOST {
        dirs.extend(single.pop());
    }
    for (dir, _) in dirs {
        for path in needed.iter().filter(|path| path.starts_with(dir)) {
            rules.add(path, Rule::Shown);
        }
        rules.add(dir, Rule::Hidden);
    }
    for socket in single.iter().chain(&fixed).flat_map(|(_, sockets)| sockets) {
        rules.add(*socket, Rule::Hidden);
    }
}

/// Returns paths that the child has to read: its program, its working directory and the home directory.
fn needed(spec: &Spec, own: &Path) -> Vec<PathBuf> {
    let programs = spec.argv.iter().map(PathBuf::from).filter(|path| path.is_absolute());
    let places = [own.to_owned(), spec.cwd.clone().into()].into_iter().chain(programs);
    places.chain(home()).filter_map(|path| path.canonicalize().ok()).collect()
}

/// Returns true if a rule or a needed path is about this tree or something in it.
fn is_needed(rules: &Rules, needed: &[PathBuf], tree: &Path) -> bool {
    rules.has_below(tree)
        || rules.paths().any(|path| path == tree)
        || needed.iter().any(|path| path.starts_with(tree))
}

/// Returns the directories that are private for this child.
fn private(rules: &Rules, spec: &Spec, own: &Path) -> Vec<PathBuf> {
    let needed = needed(spec, own);
    let trees = PRIVATE.map(PathBuf::from).into_iter();
    trees.filter(|tree| tree.is_dir() && !is_needed(rules, &needed, tree)).collect()
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
    paths.into_iter().filter(is_socket).collect()
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

    /// Hides these sockets from a child that works in `/lanes/2` and may write `/people/cache`.
    fn hidden(sockets: &[(&str, usize)], by_directory: bool) -> Rules {
        let mut rules = Rules::default();
        rules.add("/lanes", Rule::Closed);
        rules.add("/lanes/2", Rule::Own);
        rules.add("/people/cache", Rule::Declared);
        let sockets: Vec<PathBuf> = sockets
            .iter()
            .flat_map(|(dir, count)| {
                (0..*count).map(move |n| Path::new(dir).join(format!("{n}.sock")))
            })
            .collect();
        hide_sockets(&mut rules, &sockets, &["/home".into(), "/lanes/2".into()], by_directory);
        for socket in &sockets {
            assert_eq!(rules.access(socket), Access::Hidden, "{}", socket.display());
        }
        rules
    }

    #[test]
    fn however_many_sockets_there_are_each_is_hidden_and_what_the_child_needs_is_not() {
        let user = ("/srv/user", 1);
        for others in
            [("/lanes/1", 70), ("/lanes/1", 5000), ("/people/cache", 70), ("/people/cache", 5000)]
        {
            for by_directory in [false, true] {
                let rules = hidden(&[others, user], by_directory);
                assert_eq!(rules.access(Path::new("/lanes/2/file")), Access::Writable);
                assert_eq!(rules.access(Path::new("/people/file")), Access::ReadOnly);
            }
        }
    }

    #[test]
    fn a_few_sockets_cost_nothing_else_and_many_cost_their_directory() {
        let rules = hidden(&[("/srv/user", 3), ("/home", 3)], false);
        assert_eq!(rules.access(Path::new("/srv/user/file")), Access::ReadOnly);
        let rules = hidden(&[("/srv/user", 17), ("/home", 70)], false);
        assert_eq!(rules.access(Path::new("/srv/user/file")), Access::Hidden);
        assert_eq!(rules.access(Path::new("/people/cache/file")), Access::Writable, "it is needed");
    }

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
}
