//! The facts of a host, and the reasons not to use it.

use pdca_gates::Checks;
use pdca_process::{GitVersion, InstalledGit, OLDEST_GIT, SandboxKind};
use serde::{Deserialize, Serialize};

use crate::host_root::HostRoot;
use crate::objects;
use crate::verb::JobEngine;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OfferRequest {
    /// Programs to look for on the host's `PATH`.
    pub programs: Vec<String>,
    /// Repositories whose commits are asked for.
    pub repositories: Vec<String>,
    /// The gates whose environment is asked for.
    #[serde(default)]
    pub gates: Option<Checks>,
}

/// The facts of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostOffer {
    /// The SHA-256 of the program on the host.
    pub program: String,
    /// Operating system and processor, such as `linux x86_64`.
    pub platform: String,
    /// The output of `git --version`; absent if there is none.
    pub git: Option<String>,
    /// The sandbox that the host's kernel offers; absent if there is none.
    pub sandbox: Option<String>,
    /// Free bytes below the host's root.
    pub free_disk: Option<u64>,
    /// Available bytes of memory.
    pub free_memory: Option<u64>,
    pub processors: u32,
    /// The jobs that run now, of any driver.
    pub running: u32,
    /// Those of the programs that were asked for and found.
    pub found: Vec<String>,
    /// The wall clock, in seconds since 1970.
    pub clock: i64,
    /// The commits that are on the host, by repository.
    pub have: std::collections::BTreeMap<String, Vec<String>>,
    /// The error of writing below the root, if that fails.
    pub unwritable: Option<String>,
    /// The jobs that are there, of any driver.
    pub jobs: Vec<String>,
    /// The fingerprint of the gates that were asked about: platform, search path, and the content of their programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<String>,
}

/// What a driver requires of a host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Requirements {
    /// The SHA-256 of the driver's own program.
    pub program: String,
    /// Programs that gates and leaves start.
    pub programs: Vec<String>,
    /// Bytes that must be free.
    pub min_free: u64,
    /// Bytes of memory for each slot.
    pub slot_memory: u64,
    /// True if leaves or gates have to be confined.
    pub sandbox: bool,
    /// The means to run jobs there, whose programs the host must have.
    pub engine: JobEngine,
    /// The gates whose environment has to be known; none for legs of bundles.
    pub gates: Option<Checks>,
}

/// A reason not to use a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HostRefusal {
    #[error("cannot be reached: {said}")]
    Unreachable { said: String },
    #[error("no pdca is installed under its root")]
    NoProgram,
    #[error("its pdca is another one: {theirs:.12}, and here is {ours:.12}")]
    OtherProgram { theirs: String, ours: String },
    #[error("no git is installed")]
    NoGit,
    #[error("its git is too old: {said}, and {needed} or newer is needed")]
    OldGit { said: String, needed: String },
    #[error("its kernel offers no sandbox")]
    NoSandbox,
    #[error("its disk is nearly full: {free} bytes are free, and {floor} must be")]
    DiskFull { free: u64, floor: u64 },
    #[error("its memory is short: {free} bytes are available, and a slot needs {needed}")]
    MemoryShort { free: u64, needed: u64 },
    #[error("`{program}` is not on its PATH")]
    NoTool { program: String },
    #[error("its root cannot be written: {said}")]
    Unwritable { said: String },
    #[error("`{program}` of its engine is not on its PATH")]
    NoEngine { program: String },
}

impl HostRefusal {
    /// Returns what a person can do about it on the host `name`.
    pub fn remedy(&self, name: &str) -> String {
        match self {
            Self::Unreachable { .. } => {
                format!("`ssh {name} true` shows it; addresses and keys are those of ~/.ssh/config")
            }
            Self::NoProgram | Self::OtherProgram { .. } => {
                format!("`pdca hosts add {name}` puts this pdca there")
            }
            Self::NoGit | Self::OldGit { .. } => {
                format!("install git {OLDEST_GIT} or newer on {name}")
            }
            Self::NoSandbox => format!(
                "install bubblewrap on {name}, or use a kernel with Landlock; `sandbox = \"off\"` does without"
            ),
            Self::DiskFull { .. } => format!(
                "`pdca hosts gc {name}` removes what is left of earlier runs; `min_free_gb` in [driver] is the floor"
            ),
            Self::MemoryShort { .. } => {
                format!("give {name} fewer slots, or lower `lane_memory_mb` in [driver]")
            }
            Self::NoTool { program } => {
                format!("install `{program}` on {name}, or send it with `send` in [[hosts]]")
            }
            Self::Unwritable { .. } => format!("name another `root` for {name} in [[hosts]]"),
            Self::NoEngine { program } => format!(
                "name a host where `{program}` works, or leave out `engine` of {name} in [[hosts]]"
            ),
        }
    }
}

impl HostOffer {
    /// Returns every reason not to use the host.
    pub fn refusals(&self, required: &Requirements) -> Vec<HostRefusal> {
        let mut found = Vec::new();
        if self.program != required.program {
            let (theirs, ours) = (self.program.clone(), required.program.clone());
            found.push(HostRefusal::OtherProgram { theirs, ours });
        }
        if let Some(said) = &self.unwritable {
            found.push(HostRefusal::Unwritable { said: said.clone() });
        }
        match &self.git {
            None => found.push(HostRefusal::NoGit),
            Some(said) if GitVersion::parse(said).is_some_and(|version| version < OLDEST_GIT) => {
                let (said, needed) = (said.clone(), OLDEST_GIT.to_string());
                found.push(HostRefusal::OldGit { said, needed });
            }
            Some(_) => {}
        }
        if required.sandbox && self.sandbox.is_none() {
            found.push(HostRefusal::NoSandbox);
        }
        if let Some(free) = self.free_disk.filter(|free| *free < required.min_free) {
            found.push(HostRefusal::DiskFull { free, floor: required.min_free });
        }
        if let Some(free) = self.free_memory.filter(|free| *free < required.slot_memory) {
            found.push(HostRefusal::MemoryShort { free, needed: required.slot_memory });
        }
        let missing = required.programs.iter().filter(|program| !self.found.contains(program));
        found.extend(missing.map(|program| HostRefusal::NoTool { program: program.clone() }));
        let needed = required.engine.programs().iter().map(|program| (*program).to_owned());
        let missing = needed.filter(|program| !self.found.contains(program));
        found.extend(missing.map(|program| HostRefusal::NoEngine { program }));
        found
    }
}

/// Facts that only the caller may read.
#[derive(Debug, Clone, Copy)]
pub struct OfferContext<'a> {
    pub search_path: Option<&'a std::ffi::OsStr>,
    /// Seconds since 1970.
    pub clock: i64,
}

/// Collects the facts of this machine.
pub(crate) fn offer(root: &HostRoot, request: &OfferRequest, about: OfferContext<'_>) -> HostOffer {
    let have = |name: &String| {
        let repository = root.repository(name).ok()?;
        Some((name.clone(), objects::kept(&repository).ok()?))
    };
    HostOffer {
        program: kept_digest(root).unwrap_or_default(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        git: InstalledGit::find().ok().map(|git| git.said),
        sandbox: sandbox(),
        free_disk: pdca_lanes::free_space(root.path()).ok(),
        free_memory: pdca_process::available_memory(),
        processors: std::thread::available_parallelism()
            .map_or(1, |n| n.get().try_into().unwrap_or(1)),
        running: running(root),
        found: request
            .programs
            .iter()
            .filter(|one| find(about.search_path, one).is_some())
            .cloned()
            .collect(),
        clock: about.clock,
        have: request.repositories.iter().filter_map(have).collect(),
        unwritable: try_to_write(root).err().map(|error| error.to_string()),
        jobs: root
            .list_jobs()
            .unwrap_or_default()
            .iter()
            .map(|job| job.name().to_string())
            .collect(),
        gates: request.gates.as_ref().map(|gates| environment(gates, root, about)),
    }
}

/// Returns the environment of gates on this machine. Scripts of the workspace are left out: they are sent.
fn environment(gates: &Checks, root: &HostRoot, about: OfferContext<'_>) -> String {
    gates.fingerprint(&pdca_gates::GateHost {
        workspace: root.path().to_owned(),
        search_path: about.search_path.map(ToOwned::to_owned),
        ..pdca_gates::GateHost::default()
    })
}

/// Returns the number of jobs that processes of this machine run.
pub(crate) fn running(root: &HostRoot) -> u32 {
    let jobs = root.list_jobs().unwrap_or_default();
    let count = jobs.iter().filter(|job| job.is_locked().unwrap_or(false)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn sandbox() -> Option<String> {
    match pdca_process::wall_support() {
        SandboxKind::Off | SandboxKind::NotAvailable { .. } => None,
        kind @ (SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. }) => Some(kind.to_string()),
    }
}

fn try_to_write(root: &HostRoot) -> std::io::Result<()> {
    fs_err::create_dir_all(root.path())?;
    let probe = root.path().join(".written");
    fs_err::write(&probe, "")?;
    fs_err::remove_file(probe)
}

fn find(path: Option<&std::ffi::OsStr>, program: &str) -> Option<std::path::PathBuf> {
    let runs = |file: &std::path::PathBuf| {
        file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
    };
    std::env::split_paths(path?).map(|dir| dir.join(program)).find(runs)
}

/// Returns the SHA-256 of this program, read once for each file that is put on the host.
fn kept_digest(root: &HostRoot) -> std::io::Result<String> {
    use std::os::unix::fs::MetadataExt as _;
    let about = fs_err::metadata("/proc/self/exe")?;
    let key = format!(
        "{} {} {} {}.{}",
        about.dev(),
        about.ino(),
        about.len(),
        about.mtime(),
        about.mtime_nsec()
    );
    let file = root.path().join("program-digest");
    let known = fs_err::read_to_string(&file).unwrap_or_default();
    if let Some((of, digest)) = known.trim().split_once(": ")
        && of == key
    {
        return Ok(digest.to_owned());
    }
    let digest = own_digest()?;
    // A root that cannot be written is told as such; the digest counts all the same.
    drop(pdca_state::files::replace_unsynced(&file, format!("{key}: {digest}\n").as_bytes()));
    Ok(digest)
}

/// Returns the SHA-256 of this program.
pub fn own_digest() -> std::io::Result<String> {
    use sha2::{Digest as _, Sha256};
    static KNOWN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(known.clone());
    }
    let mut file = fs_err::File::open("/proc/self/exe")?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = std::io::Read::read(&mut file, &mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    Ok(KNOWN.get_or_init(|| crate::wire::hex(&hash.finalize())).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> (HostOffer, Requirements) {
        let offer = HostOffer {
            program: "aa".into(),
            git: Some("git version 2.47.3".into()),
            sandbox: Some("landlock".into()),
            free_disk: Some(1 << 40),
            free_memory: Some(1 << 33),
            found: ["agent", "sbatch", "squeue", "sacct", "scancel"].map(Into::into).into(),
            ..HostOffer::default()
        };
        let required = Requirements {
            program: "aa".into(),
            programs: vec!["agent".into()],
            min_free: 1 << 30,
            slot_memory: 1 << 28,
            sandbox: true,
            engine: JobEngine::Slurm(crate::SlurmOptions::default()),
            gates: None,
        };
        (offer, required)
    }

    #[test]
    fn h5_each_thing_that_a_host_lacks_is_refused_with_its_remedy_and_nothing_else_is() {
        type Spoil = fn(&mut HostOffer);
        let table: [(Spoil, &str, &str); 9] = [
            (|o| o.program = "bb".into(), "another one", "pdca hosts add h"),
            (|o| o.git = None, "no git", "install git"),
            (|o| o.git = Some("git version 2.20.1".into()), "too old", "install git 2.39"),
            (|o| o.sandbox = None, "no sandbox", "bubblewrap"),
            (|o| o.free_disk = Some(5), "nearly full", "pdca hosts gc h"),
            (|o| o.free_memory = Some(5), "memory is short", "fewer slots"),
            (|o| drop(o.found.remove(0)), "`agent` is not on its PATH", "install `agent`"),
            (|o| o.unwritable = Some("read-only".into()), "read-only", "another `root`"),
            (|o| drop(o.found.remove(1)), "`sbatch`", "leave out `engine`"),
        ];
        let (offer, required) = good();
        assert_eq!(offer.refusals(&required), []);
        for (spoil, what, remedy) in table {
            let mut offer = offer.clone();
            spoil(&mut offer);
            let found = offer.refusals(&required);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].to_string().contains(what), "{}", found[0]);
            assert!(found[0].remedy("h").contains(remedy), "{}", found[0].remedy("h"));
        }
    }

    #[test]
    fn what_cannot_be_measured_is_no_reason() {
        let (offer, required) = good();
        let unknown = HostOffer { free_disk: None, free_memory: None, ..offer };
        assert_eq!(unknown.refusals(&required), []);
        let lax = Requirements { sandbox: false, engine: JobEngine::Process, ..required };
        let bare = HostOffer { sandbox: None, found: vec!["agent".into()], ..unknown };
        assert_eq!(bare.refusals(&lax), []);
    }
}
