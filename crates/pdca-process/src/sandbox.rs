//! The Landlock sandbox, and the rules of both sandboxes.
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

use crate::access::{self, Access, Rule, Rules};
use crate::credentials::{HiddenWhen, credential_files};
use crate::ending::SandboxKind;
use crate::programs::find_program;
use crate::rights;
use crate::spec::{Sandbox, Spec};

/// The trees that may be read and those that may be written.
#[derive(Debug, Default, PartialEq, Eq)]
struct Allowed {
    read: BTreeSet<PathBuf>,
    write: BTreeSet<PathBuf>,
}

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

/// Returns a variable of this process that a child is to get by its name.
pub fn inherited(name: &str) -> Option<OsString> {
    variable(name)
}

/// Returns the user's home directory, if `HOME` is an absolute path.
pub fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
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
    let program = find_program("bwrap").map_err(|error| error.to_string())?;
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
    let mut rules = rules(sandbox, job);
    // Open whatever the lists say: a shell redirects to `/dev/null`, and an agent opens terminals.
    for device in DEVICES {
        rules.add(device, Rule::Own);
    }
    // Root needs no capability to write a setting of the kernel, such as the program that is started after a crash.
    for tree in ["/proc/sys", "/sys"] {
        rules.close(Path::new(tree), Rule::Closed);
    }
    Allowed {
        read: rules.trees(Access::ReadOnly, &access::entries),
        write: rules.trees(Access::Writable, &access::entries),
    }
}

/// Returns true if root has to keep a capability to work in the places of this child.
pub(crate) fn needs_override(spec: &Spec, rules: &Rules) -> bool {
    let places = rules.paths().map(|path| (path, rules.access(path)));
    let places =
        places.filter(|(path, access)| *access != Access::Hidden && !path.starts_with("/dev"));
    // Closed trees are read: a lane borrows the objects of its target.
    rights::needs_override(places.chain([(spec.cwd.as_std_path(), Access::ReadOnly)]))
}

/// Returns the rules of a sandbox together with those of every sandbox: the job directory and credentials.
pub(crate) fn rules(sandbox: &Sandbox, job: &Utf8Path) -> Rules {
    let sandbox = sandbox
        .clone()
        // The child must not write its own verdict.
        .no_write([job.to_owned()])
        .own([temporary(job)]);
    let mut rules = Rules::of(&sandbox);
    for (path, hidden) in credential_files() {
        let Ok(real) = path.canonicalize() else { continue };
        // A caller that lists exactly this path as writable wants it open.
        let is_listed = [Rule::Own, Rule::Declared].iter().any(|rule| rules.has(&real, *rule));
        let is_opened = hidden == HiddenWhen::NotOpened && rules.access(&real) == Access::Writable;
        if !is_listed && !is_opened {
            rules.close(&path, Rule::Hidden);
        }
    }
    rules
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
    use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;

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
        // Between the listing and this call a running child could put a link in place of the entry or of a directory
        // on the way, and have its target opened.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let no_links = ResolveFlags::NO_SYMLINKS;
        let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), no_links);
        let handle = match opened {
            // A filter of system calls around us may not know the call.
            Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(path, flags, Mode::empty()),
            opened => opened,
        };
        let handle = handle.ok()?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&handle).ok()?.st_mode);
        Some((handle, kind))
    }
}
