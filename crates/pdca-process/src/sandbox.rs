//! The Landlock sandbox: everything except some trees.
//!
//! Landlock rules only *allow*, each for a whole tree. "Everything except `/a/b`" is therefore written as rules for all
//! entries of `/` but `a`, and for all entries of `/a` but `b`. From interface version 6 on, signals and abstract
//! sockets are kept inside as well. A symbolic link never gets a rule: the kernel checks its target, under its real
//! path.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};

use crate::ending::SandboxKind;
use crate::spec::Sandbox;

/// The trees that may be read and those that may be written.
#[derive(Debug, Default, PartialEq, Eq)]
struct Allowed {
    read: BTreeSet<PathBuf>,
    write: BTreeSet<PathBuf>,
}

/// Files and trees below the home directory that hold credentials; no confined child can read them.
const CREDENTIALS: [&str; 16] = [
    ".ssh",
    ".gnupg",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".docker/config.json",
    ".pypirc",
    ".cargo/credentials.toml",
    ".password-store",
];

/// Capabilities with which root could undo the sandbox or reach other processes, and their numbers.
pub(crate) const DROPPED: [(&str, u32); 10] = [
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_MODULE", 16),
    ("CAP_SYS_RAWIO", 17),
    ("CAP_SYS_BOOT", 22),
    ("CAP_MKNOD", 27),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
    // Opens a file by its handle, past every mount and rule on the way to it.
    ("CAP_DAC_READ_SEARCH", 2),
    // Leaves files in a checkout that no later reset could remove.
    ("CAP_LINUX_IMMUTABLE", 9),
];

/// Device files that a confined child may always write.
const DEVICES: [&str; 10] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/mqueue",
];

pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::vars_os().find_map(|(found, value)| (found == OsStr::new(name)).then_some(value))
}

/// Returns the user's home directory, if `HOME` is an absolute path.
pub fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

pub(crate) fn credentials() -> Vec<PathBuf> {
    home().iter().flat_map(|home| CREDENTIALS.map(|name| home.join(name))).collect()
}

/// Removes the capabilities of [`DROPPED`] from every program that is executed from now on. Root keeps the others.
pub(crate) fn drop_rights() {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
        for (_, number) in DROPPED {
            let right = CapabilitySet::from_bits_retain(1 << number);
            // Fails without root privileges; then there is nothing to remove.
            let _dropped = remove_capability_from_bounding_set(right);
        }
    }
}

/// Returns the sandbox that [`SandboxMode::Auto`](crate::SandboxMode::Auto) uses on this host: `bwrap` where it works,
/// otherwise Landlock. `bwrap` is probed once per process.
pub fn wall_support() -> SandboxKind {
    if is_bwrap_usable() {
        return SandboxKind::Bwrap {
            scoped: matches!(sandbox_support(), SandboxKind::Landlock { abi: 6.. }),
        };
    }
    sandbox_support()
}

/// Returns true if `bwrap` works on this host; probed once per process.
pub(crate) fn is_bwrap_usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    *USABLE.get_or_init(|| cfg!(target_os = "linux") && bwrap_support().is_ok())
}

/// Returns the directory for temporary files of a sandboxed child.
pub(crate) fn temporary(job: &Utf8Path) -> Utf8PathBuf {
    job.join("tmp")
}

/// Returns the Landlock sandbox that this host supports.
pub fn sandbox_support() -> SandboxKind {
    // The kernel offers no query, so a thread tries it; its restrictions end with it.
    std::thread::Builder::new()
        .spawn(|| {
            let everything = BTreeSet::from([PathBuf::from("/")]);
            let allowed = Allowed { read: everything.clone(), write: everything };
            enforce(&allowed)
        })
        .map_err(|error| error.to_string())
        .and_then(|thread| thread.join().unwrap_or_else(|_| Err("the attempt failed".to_owned())))
        .unwrap_or_else(|why| SandboxKind::NotAvailable { why })
}

/// Checks that `bwrap` is installed and may create namespaces on this host; the error says what failed.
pub fn bwrap_support() -> Result<(), String> {
    let program = crate::bwrap::program().ok_or("bwrap is not installed")?;
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let output = std::process::Command::new(program)
        .args([
            "--unshare-pid",
            "--unshare-ipc",
            "--bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "true",
        ])
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| format!("bwrap cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("bwrap cannot make namespaces here: {}", said.trim()))
}

/// Restricts signals and abstract sockets of the calling thread, and of the processes it starts, to one another.
/// Returns whether the kernel supports that.
pub(crate) fn scope_thread() -> bool {
    #[cfg(target_os = "linux")]
    {
        landlocked::scope_alone().unwrap_or(false)
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}

/// Restricts the calling thread, and with it every process it starts from now on. This cannot be undone.
///
/// Returns the sandbox that holds; an error means that the kernel has Landlock but the rules could not be set up.
pub(crate) fn restrict_thread(sandbox: &Sandbox, job: &Utf8Path) -> Result<SandboxKind, String> {
    enforce(&allowed(sandbox, job))
}

fn allowed(sandbox: &Sandbox, job: &Utf8Path) -> Allowed {
    let mut may_write = real(sandbox.write.iter().chain([&temporary(job)]));
    // The real paths: rules hold for the file that a link leads to.
    let secrets = credentials().into_iter().filter_map(|path| path.canonicalize().ok());
    // A caller that lists exactly this path as writable wants it open.
    let secrets = secrets.filter(|path| !may_write.contains(path));
    let no_read: BTreeSet<PathBuf> = real(&sandbox.no_read).into_iter().chain(secrets).collect();
    // Open whatever the lists say: a shell redirects to `/dev/null`, and an agent opens terminals.
    may_write.extend(DEVICES.map(PathBuf::from));
    let may_read = &real(&sandbox.read) | &may_write;
    // The child must not write its own verdict, unless the whole job directory is given to it.
    let job = &real([&job.to_owned()]) - &may_write;
    let no_write = &(&real(&sandbox.no_write) | &no_read) | &job;
    Allowed {
        read: everything_but(&no_read, &may_read),
        write: everything_but(&no_write, &may_write),
    }
}

/// Returns the real paths of those that exist.
fn real<'a>(paths: impl IntoIterator<Item = &'a Utf8PathBuf>) -> BTreeSet<PathBuf> {
    paths.into_iter().filter_map(|path| path.as_std_path().canonicalize().ok()).collect()
}

/// Returns trees that together contain everything but `denied`, plus the trees of `again` that lie below it.
fn everything_but(denied: &BTreeSet<PathBuf>, again: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let mut trees = BTreeSet::new();
    cover(Path::new("/"), denied, &mut trees);
    for tree in again {
        // A tree outside of the denied ones is covered already. One that is denied itself stays
        // closed: the denial of exactly this path wins.
        let below_denied = denied.iter().any(|denied| tree != denied && tree.starts_with(denied));
        if below_denied {
            cover(tree, denied, &mut trees);
        }
    }
    trees
}

/// Adds `tree` without the denied trees in it.
fn cover(tree: &Path, denied: &BTreeSet<PathBuf>, trees: &mut BTreeSet<PathBuf>) {
    if denied.contains(tree) {
        return;
    }
    if !denied.iter().any(|denied| denied.starts_with(tree)) {
        trees.insert(tree.to_owned());
        return;
    }
    // A directory that we cannot list yields no entry, so nothing below it gets a rule and all of
    // it stays closed.
    let entries = std::fs::read_dir(tree).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            cover(&entry.path(), denied, trees);
        }
    }
}

#[cfg(target_os = "linux")]
fn enforce(allowed: &Allowed) -> Result<SandboxKind, String> {
    landlocked::enforce(allowed).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn enforce(_: &Allowed) -> Result<SandboxKind, String> {
    Ok(SandboxKind::NotAvailable { why: "only Linux has Landlock".to_owned() })
}

#[cfg(target_os = "linux")]
mod landlocked {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use landlock::{
        ABI, Access as _, AccessFs, BitFlags, LandlockStatus, PathBeneath, Ruleset,
        RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
        Scope,
    };
    use rustix::fs::{FileType, Mode, OFlags};

    use super::Allowed;
    use crate::ending::SandboxKind;

    /// The newest interface these rules were written for; an older kernel enforces the part it supports.
    const NEWEST: ABI = ABI::V9;

    pub(super) fn enforce(allowed: &Allowed) -> Result<SandboxKind, RulesetError> {
        let mut rules = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            // Signals and abstract sockets stay inside the domain, where the kernel can keep them there.
            .scope(Scope::from_all(NEWEST))?
            .create()?;
        // Names may be listed everywhere, as documented on `Sandbox`.
        rules = allow(rules, Path::new("/"), AccessFs::ReadDir.into())?;
        let both = allowed.read.union(&allowed.write);
        for tree in both {
            let mut access = BitFlags::empty();
            if allowed.read.contains(tree) {
                access |= AccessFs::from_read(NEWEST);
            }
            if allowed.write.contains(tree) {
                access |= AccessFs::from_write(NEWEST);
            }
            rules = allow(rules, tree, access)?;
        }
        let status = rules.restrict_self()?;
        Ok(held(&status.ruleset, status.landlock))
    }

    pub(super) fn scope_alone() -> Result<bool, RulesetError> {
        let status =
            Ruleset::default().scope(Scope::from_all(NEWEST))?.create()?.restrict_self()?;
        Ok(status.ruleset == RulesetStatus::FullyEnforced)
    }

    fn held(enforced: &RulesetStatus, landlock: LandlockStatus) -> SandboxKind {
        let missing = |why: &str| SandboxKind::NotAvailable { why: why.to_owned() };
        match (enforced, landlock) {
            (_, LandlockStatus::NotImplemented) => missing("this kernel has no Landlock"),
            (_, LandlockStatus::NotEnabled) => missing("Landlock is not enabled in this kernel"),
            (RulesetStatus::NotEnforced, LandlockStatus::Available { .. }) => {
                missing("Landlock enforced nothing")
            }
            (
                RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
                LandlockStatus::Available { effective_abi, .. },
            ) => SandboxKind::Landlock { abi: effective_abi as u32 },
        }
    }

    /// Adds a rule for one tree or file; none if it has vanished or was replaced by a symbolic link meanwhile.
    fn allow(
        rules: RulesetCreated,
        tree: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, RulesetError> {
        let Some((handle, kind)) = open(tree) else {
            return Ok(rules);
        };
        let access = match kind {
            // `O_PATH | O_NOFOLLOW` opens the link itself, and a rule for it would open nothing.
            FileType::Symlink => return Ok(rules),
            FileType::Directory => access,
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            // The kernel refuses a rule with directory rights for a file.
            | FileType::Unknown => access & AccessFs::from_file(NEWEST),
        };
        if access.is_empty() {
            return Ok(rules);
        }
        rules.add_rule(PathBeneath::new(handle, access))
    }

    fn open(path: &Path) -> Option<(OwnedFd, FileType)> {
        // `NOFOLLOW`: between the listing and this call a running child could put a link in place
        // of the entry, and have its target opened.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&handle).ok()?.st_mode);
        Some((handle, kind))
    }
}
