//! The description of a child that [`run`](crate::run) takes.

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
    /// The differences between the child's environment and the driver's.
    pub env: Env,
    /// The source of the child's standard input.
    pub stdin: Stdin,
    /// The job directory: `log`, `verdict.json` and `tmp/` appear there. It is created if missing.
    pub job: Utf8PathBuf,
    /// The longest time the child may run, in running time of the machine.
    pub timeout: Option<Duration>,
    /// The condition under which a child without a sign of life is ended.
    pub stall: Option<Stall>,
    /// The time between `SIGTERM` and `SIGKILL`.
    pub grace: Duration,
    /// The number of bytes of output that are kept.
    pub output: OutputCap,
    /// Line prefixes. Lines that start with one are collected into
    /// [`ChildVerdict::marked`](crate::ChildVerdict::marked), even from the part of the output that the log leaves out.
    pub markers: Vec<String>,
    /// Keeps standard output also in a file of its own, apart from standard error; see
    /// [`read_printed`](crate::read_printed). The two streams are then two pipes, so the log may have their lines in
    /// another order than the child wrote them.
    #[serde(default)]
    pub keep_printed: bool,
    /// The trees that the kernel keeps the child from reading and writing.
    pub sandbox: Option<Sandbox>,
    /// The most processes the child's tree may have at a time; `None` means [`Spec::MAX_PROCESSES`].
    pub max_processes: Option<u32>,
    /// The most bytes of memory the child's tree may use; `None` means no cap. Memory that is shared with files is
    /// not counted. The supervisor samples a few times a second, so a tree can exceed the cap for a moment. See
    /// [`memory_support`](crate::memory_support).
    #[serde(default)]
    pub max_memory: Option<u64>,
    /// Lends the terminal to the child: its process group is in the foreground until it ends, and its output is not
    /// captured. Without a terminal it stays in the driver's process group. Usually combined with [`Stdin::Inherit`].
    pub interactive: bool,
    /// A lock file that the supervisor locks shared from before it starts the child until the whole tree is dead and
    /// the verdict is stored. It is created if missing. See [`wait_until_free`](crate::wait_until_free).
    #[serde(default)]
    pub hold: Option<Utf8PathBuf>,
    /// The program that supervises the child; by default the current one, started again.
    #[serde(skip)]
    pub supervisor: Supervisor,
}

impl Spec {
    /// The cap on processes of one tree when [`Spec::max_processes`] is `None`.
    pub const MAX_PROCESSES: u32 = 4096;

    /// Describes `argv` in `cwd` with the job directory `job`, with empty standard input and no limit but the
    /// default [`OutputCap`].
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

/// The differences between the child's environment and the driver's.
///
/// The child gets the driver's environment without the variables that tie git to a repository (`GIT_DIR` and the
/// like), without any `PDCA_*`, without [`remove`](Self::remove), and then with [`set`](Self::set). One variable is
/// added, `PDCA_SUPERVISED`: the token by which processes of this tree are recognised after their supervisor was
/// killed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Env {
    /// Variables the child gets, whatever the other fields say.
    #[serde(with = "os_map")]
    pub set: BTreeMap<OsString, OsString>,
    /// Variables of the driver that are withheld.
    #[serde(with = "os_set")]
    pub remove: BTreeSet<OsString>,
    /// Withholds the driver's credentials: tokens of forges and registries, cloud keys, the ssh agent. Keys of model
    /// providers are passed.
    #[serde(default)]
    pub withhold_credentials: bool,
    /// Passes only the variables that programs commonly need: paths, locale, terminal, proxies, toolchain directories,
    /// and the keys of model providers.
    #[serde(default)]
    pub usual_only: bool,
    /// Variables that [`withhold_credentials`](Self::withhold_credentials) and [`usual_only`](Self::usual_only) do not
    /// withhold.
    #[serde(with = "os_set", default)]
    pub pass: BTreeSet<OsString>,
}

impl Env {
    /// Sets a variable for the child.
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

    /// Sets whether the driver's credentials are withheld.
    #[must_use]
    pub fn withhold_credentials(mut self, withhold: bool) -> Self {
        self.withhold_credentials = withhold;
        self
    }

    /// Sets whether only variables that programs commonly need are passed.
    #[must_use]
    pub fn usual_only(mut self, usual_only: bool) -> Self {
        self.usual_only = usual_only;
        self
    }

    /// Adds variables that are passed in any case.
    #[must_use]
    pub fn pass<N: Into<OsString>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.pass.extend(names.into_iter().map(Into::into));
        self
    }
}

/// The source of a child's standard input.
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

/// Ends a child that neither writes output nor changes a watched file for [`after`](Self::after).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stall {
    /// The longest time without a sign of life.
    pub after: Duration,
    /// Trees in which a changed, new or removed file counts as a sign of life. A change is noticed up to a
    /// quarter of [`after`](Self::after) late.
    pub watch: Vec<Utf8PathBuf>,
}

impl Stall {
    /// Ends a child after this long without output; no files are watched.
    pub fn new(after: Duration) -> Self {
        Self { after, watch: Vec::new() }
    }

    /// Adds trees to watch.
    #[must_use]
    pub fn watching<P: Into<Utf8PathBuf>>(mut self, trees: impl IntoIterator<Item = P>) -> Self {
        self.watch.extend(trees.into_iter().map(Into::into));
        self
    }
}

/// The number of bytes of output that are kept, from its beginning and from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputCap {
    /// Bytes kept from the beginning.
    pub head: u64,
    /// Bytes kept from the end; the supervisor buffers them in memory until the child has ended.
    pub tail: u64,
}

impl OutputCap {
    /// Keeps `head` bytes from the beginning and `tail` bytes from the end.
    pub const fn new(head: u64, tail: u64) -> Self {
        Self { head, tail }
    }
}

impl Default for OutputCap {
    /// Keeps one mebibyte of each.
    fn default() -> Self {
        Self { head: 1 << 20, tail: 1 << 20 }
    }
}

/// The trees that the kernel keeps a child, and every process it starts, from touching.
///
/// Everything is readable and writable except the denied trees. Landlock rules only allow, so they are made from
/// everything that exists beside the denied trees when the child starts. This has two consequences. In a directory
/// *above* a denied tree the child can read and change existing entries, but cannot create, remove or rename
/// entries, nor read entries that appear later. A denied path that does not exist at the start is not protected.
/// File names can always be listed.
///
/// The job directory itself is never writable for a sandboxed child, except `tmp` (its `TMPDIR`)
/// and what [`write`](Self::write) names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sandbox {
    /// The kind of sandbox, and the fallback where the host cannot enforce it.
    pub mode: SandboxMode,
    /// Trees (or files) that can be neither read nor written.
    pub no_read: Vec<Utf8PathBuf>,
    /// Trees (or files) that cannot be written.
    pub no_write: Vec<Utf8PathBuf>,
    /// Trees below a denied one that can still be read.
    pub read: Vec<Utf8PathBuf>,
    /// Trees below a denied one that can still be read and written.
    pub write: Vec<Utf8PathBuf>,
    /// Access to the network; only `bwrap` can remove it.
    #[serde(default)]
    pub network: Network,
}

impl Sandbox {
    /// Creates a sandbox without denied trees.
    pub fn new(mode: SandboxMode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Adds trees that can be neither read nor written.
    #[must_use]
    pub fn no_read(mut self, trees: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.no_read.extend(trees);
        self
    }

    /// Adds trees that cannot be written.
    #[must_use]
    pub fn no_write(mut self, trees: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.no_write.extend(trees);
        self
    }

    /// Adds trees below a denied one that can still be read.
    #[must_use]
    pub fn read(mut self, trees: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.read.extend(trees);
        self
    }

    /// Adds trees below a denied one that can still be read and written.
    #[must_use]
    pub fn write(mut self, trees: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.write.extend(trees);
        self
    }

    /// Sets the access to the network.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }
}

/// The access of a child to the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// The same access as the driver.
    #[default]
    On,
    /// No access.
    Off,
}

/// The kind of a [`Sandbox`], and the fallback where the host cannot enforce it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// Uses `bwrap` or else Landlock; without either the child runs unconfined, and the verdict records that.
    #[default]
    Auto,
    /// Uses `bwrap` or else Landlock; without either the child is not started.
    Require,
    /// Uses Landlock; without it the child is not started.
    Landlock,
    /// Uses `bwrap` with private namespaces; without it the child is not started.
    Bwrap,
    /// Runs the child unconfined.
    Off,
}

impl SandboxMode {
    /// Returns the name of the mode in configuration files.
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
