//! What is to be run: the description that [`run`](crate::run) takes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::os_serde::{os_list, os_map, os_set};
use crate::supervisor::Supervisor;

/// One child process, described completely before anything is started.
///
/// [`Spec::new`] fills in defaults; all fields are public, so a caller changes what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spec {
    /// The program and its arguments. A program without a `/` is looked up in the child's `PATH`; a
    /// relative path is relative to [`cwd`](Self::cwd).
    #[serde(with = "os_list")]
    pub argv: Vec<OsString>,
    /// The directory the child starts in.
    pub cwd: Utf8PathBuf,
    /// How the child's environment differs from the driver's.
    pub env: Env,
    /// What the child reads from its standard input.
    pub stdin: Stdin,
    /// The job directory: `log`, `verdict.json` and `tmp/` appear there. It is created if missing.
    pub job: Utf8PathBuf,
    /// How long the child may run, in running time of the machine.
    pub timeout: Option<Duration>,
    /// When a child that shows no sign of life is given up.
    pub stall: Option<Stall>,
    /// How long a process has between being asked to end and being killed.
    pub grace: Duration,
    /// How much of the output is kept.
    pub output: OutputCap,
    /// Line prefixes whose lines are collected into [`ChildVerdict::marked`](crate::ChildVerdict::marked) even
    /// when they fall into the part of the output that is left out.
    pub markers: Vec<String>,
    /// Keeps what the child writes to its standard output once more, apart from standard error, in a file of its own;
    /// see [`read_printed`](crate::read_printed). The two streams are then two pipes, so that the log may have their
    /// lines in another order than they were written.
    #[serde(default)]
    pub keep_printed: bool,
    /// What the kernel keeps the child from reading and writing.
    pub sandbox: Option<Sandbox>,
    /// How many processes the child's tree may have at a time; `None` is [`Spec::MAX_PROCESSES`].
    pub max_processes: Option<u32>,
    /// How many bytes of memory the child's tree may have; `None` is no cap. The supervisor looks a few
    /// times a second, so a tree can be over it for a moment; what it has is what it does not share
    /// with files. See [`memory_support`](crate::memory_support).
    #[serde(default)]
    pub max_memory: Option<u64>,
    /// The child keeps the terminal: it stays in the driver's process group and its output is not
    /// captured. Usually together with [`Stdin::Inherit`].
    pub interactive: bool,
    /// A lock file that the supervisor shares from before it starts the child until the whole tree is
    /// dead and the verdict is stored; it is created if missing. See
    /// [`wait_until_free`](crate::wait_until_free).
    #[serde(default)]
    pub hold: Option<Utf8PathBuf>,
    /// Which program supervises the child; the default is this very program, started again.
    #[serde(skip)]
    pub supervisor: Supervisor,
}

impl Spec {
    /// The cap on processes of one tree when [`Spec::max_processes`] names none.
    pub const MAX_PROCESSES: u32 = 4096;

    /// Describes `argv` in `cwd` with the job directory `job`, no limits but the output's, and
    /// nothing on standard input.
    pub fn new<A: Into<OsString>>(
        argv: impl IntoIterator<Item = A>,
        cwd: impl AsRef<Utf8Path>,
        job: impl AsRef<Utf8Path>,
    ) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: cwd.as_ref().to_owned(),
            env: Env::default(),
            stdin: Stdin::Null,
            job: job.as_ref().to_owned(),
            timeout: None,
            stall: None,
            grace: Duration::from_secs(5),
            output: OutputCap::default(),
            markers: Vec::new(),
            keep_printed: false,
            sandbox: None,
            max_processes: None,
            max_memory: None,
            interactive: false,
            hold: None,
            supervisor: Supervisor::default(),
        }
    }
}

/// How the child's environment differs from the driver's.
///
/// The child gets the driver's environment without the variables that tie git to a repository
/// (`GIT_DIR` and its kin), without any `PDCA_*`, without [`remove`](Self::remove), and then with
/// [`set`](Self::set). One variable is added, `PDCA_SUPERVISED`: the token by which a process of
/// this tree is recognised when its supervisor was killed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Env {
    /// Variables the child gets; these win over everything else.
    #[serde(with = "os_map")]
    pub set: BTreeMap<OsString, OsString>,
    /// Variables of the driver that the child does not get.
    #[serde(with = "os_set")]
    pub remove: BTreeSet<OsString>,
    /// The child does not get the driver's credentials: tokens of forges and registries, keys of clouds, the agent
    /// of ssh. Keys of model providers are not among them.
    #[serde(default)]
    pub withhold_credentials: bool,
    /// The child gets of the driver's variables only what programs commonly need: paths, locale, terminal, proxies,
    /// the places of toolchains, and what an agent signs in to its model with.
    #[serde(default)]
    pub usual_only: bool,
    /// Variables that are let through all the same.
    #[serde(with = "os_set", default)]
    pub pass: BTreeSet<OsString>,
}

impl Env {
    /// Adds a variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set.insert(name.into(), value.into());
        self
    }

    /// Withholds a variable of the driver.
    #[must_use]
    pub fn without(mut self, name: impl Into<OsString>) -> Self {
        self.remove.insert(name.into());
        self
    }
}

/// What the child reads from its standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// End of input at once.
    #[default]
    Null,
    /// These bytes, then end of input.
    Bytes(Vec<u8>),
    /// The driver's own standard input.
    Inherit,
}

/// A child that neither writes output nor changes a watched file for this long is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// How long without any sign of life.
    pub after: Duration,
    /// Trees in which a changed, new or removed file is a sign of life. A change is noticed up to a
    /// quarter of [`after`](Self::after) late.
    pub watch: Vec<Utf8PathBuf>,
}

/// How much of the output is kept: its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputCap {
    /// Bytes kept from the beginning.
    pub head: u64,
    /// Bytes kept from the end; the supervisor holds them in memory until the child ended.
    pub tail: u64,
}

impl Default for OutputCap {
    /// One mebibyte each.
    fn default() -> Self {
        Self { head: 1 << 20, tail: 1 << 20 }
    }
}

/// What the kernel keeps the child, and everything it starts, from touching.
///
/// Everything is readable and writable except the denied trees. The kernel's rules only allow, so
/// they are made from everything that exists beside the denied trees when the child starts. Two
/// consequences: in a directory *above* a denied tree the child can change and read what is there,
/// but not create, remove or rename entries of that directory itself, nor read entries that appear
/// later; and a denied path that does not exist at the start is not held. File names can always be
/// listed.
///
/// The job directory itself is never writable for a sandboxed child, except `tmp` (its `TMPDIR`)
/// and what [`write`](Self::write) names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// What happens when the kernel cannot enforce this.
    pub mode: SandboxMode,
    /// Trees (or files) that can be neither read nor written.
    pub no_read: Vec<Utf8PathBuf>,
    /// Trees (or files) that cannot be written.
    pub no_write: Vec<Utf8PathBuf>,
    /// Trees below a denied one that can be read all the same.
    pub read: Vec<Utf8PathBuf>,
    /// Trees below a denied one that can be read and written all the same.
    pub write: Vec<Utf8PathBuf>,
    /// Whether the child reaches the network; only `bwrap` can take it away.
    #[serde(default)]
    pub network: Network,
}

/// Whether a child reaches the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// As the driver does.
    #[default]
    On,
    /// Not at all.
    Off,
}

/// Which wall a [`Sandbox`] is, and what happens where it cannot be built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// The child runs without, and the verdict says so.
    #[default]
    Auto,
    /// The child is not started.
    Require,
    /// Landlock holds the child, or it is not started.
    Landlock,
    /// `bwrap` holds the child in namespaces of its own, or it is not started.
    Bwrap,
    /// The child runs without.
    Off,
}

impl SandboxMode {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Require => "require",
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
            Self::Off => "off",
        }
    }
}
