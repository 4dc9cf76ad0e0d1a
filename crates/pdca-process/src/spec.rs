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
    /// Gives the child a fixed mask for new files and fixed limits, whatever the driver has: [`FixedLimits`](crate::FixedLimits).
    #[serde(default)]
    pub fixed_limits: bool,
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
            fixed_limits: false,
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
#[expect(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub struct Env {
    /// Variables the child gets, whatever the other fields say.
    #[serde(with = "os_map")]
    pub set: BTreeMap<OsString, OsString>,
    /// Variables of the driver that are withheld.
    #[serde(with = "os_set")]
    pub remove: BTreeSet<OsString>,
    /// Withholds the driver's credentials, which are known by their names and values:
    /// [`CREDENTIAL_VARIABLES`](crate::CREDENTIAL_VARIABLES).
    #[serde(default)]
    pub withhold_credentials: bool,
    /// Passes the keys of model providers, and proxies with a password, though credentials are withheld.
    #[serde(default)]
    pub model_keys: bool,
    /// The beginnings of the model keys that are passed; all of them if it is empty.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub model_vendors: BTreeSet<String>,
    /// Passes only the variables that programs commonly need: paths, locale, terminal, proxies, toolchain directories,
    /// and the keys of model providers.
    #[serde(default)]
    pub usual_only: bool,
    /// Passes nothing of the driver's environment.
    #[serde(default)]
    pub nothing: bool,
    /// Variables that [`withhold_credentials`](Self::withhold_credentials), [`usual_only`](Self::usual_only) and
    /// [`nothing`](Self::nothing) do not withhold.
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

    /// Sets whether the keys of model providers are passed though credentials are withheld.
    #[must_use]
    pub fn model_keys(mut self, pass: bool) -> Self {
        self.model_keys = pass;
        self
    }

    /// Sets the beginnings of the model keys that are passed, such as `ANTHROPIC_`; without one, all are.
    #[must_use]
    pub fn model_vendors(mut self, beginnings: &[&str]) -> Self {
        self.model_vendors = beginnings.iter().map(|&beginning| beginning.to_owned()).collect();
        self
    }

    /// Sets whether only variables that programs commonly need are passed.
    #[must_use]
    pub fn usual_only(mut self, usual_only: bool) -> Self {
        self.usual_only = usual_only;
        self
    }

    /// Creates an environment without any variable of the driver.
    pub fn nothing() -> Self {
        Self { nothing: true, ..Self::default() }
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
/// Everything is readable and nothing is writable, except for these rules. Each is about a file or a whole tree, under
/// its real path.
///
/// - [`own`](Self::own) are the places that the driver made for this child, such as its checkout. Among these and the
///   closed trees, the deepest rule decides: a checkout inside a closed directory is open, and a closed file inside the
///   checkout is closed. On the same path the closed one wins.
/// - [`no_write`](Self::no_write) and [`no_read`](Self::no_read) are closed trees. They win over every declared
///   opening, whatever the depth. A path that does not exist is closed too: it cannot be created. So are the links that
///   lead to a closed tree: they cannot be replaced.
/// - [`write`](Self::write) are the openings that a person or a preset declares.
/// - [`apart`](Self::apart) are trees that an opening above them does not include, such as the home directory in an
///   opened `/tmp`. An opening at such a tree or inside it counts.
///
/// The job directory is closed, except for `tmp` (the child's `TMPDIR`). Credential files of the home directory are
/// hidden, unless `write` or `own` names their very path.
///
/// Openings have to exist when the child starts. One that is reached through a link that the child could write is
/// ignored.
///
/// Where a wall cannot express the rules, it closes more. Behind Landlock, a child cannot create, remove or rename
/// entries of an opened directory that has a closed tree in it, nor read entries of one with a hidden tree that appear
/// later; names can always be listed. Behind `bwrap` the same holds for a directory in which a closed name does not
/// exist or is a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sandbox {
    /// The kind of sandbox, and the fallback where the host cannot enforce it.
    pub mode: SandboxMode,
    /// Trees (or files) that can be neither read nor written.
    pub no_read: Vec<Utf8PathBuf>,
    /// Trees (or files) that cannot be written.
    pub no_write: Vec<Utf8PathBuf>,
    /// Trees (or files) in a hidden one that can still be read.
    pub read: Vec<Utf8PathBuf>,
    /// Trees (or files) that are declared to be writable; closed ones stay closed.
    pub write: Vec<Utf8PathBuf>,
    /// The child's own places, readable and writable also inside a closed tree.
    #[serde(default)]
    pub own: Vec<Utf8PathBuf>,
    /// Trees that a declared opening above them does not include.
    #[serde(default)]
    pub apart: Vec<Utf8PathBuf>,
    /// Hidden trees in whose place the child finds another one, behind `bwrap`.
    #[serde(default)]
    pub replaced: Vec<Replaced>,
    /// Access to the network; only `bwrap` can remove it.
    #[serde(default)]
    pub network: Network,
    /// Hides sockets together with their directories: a second attempt, after one of them vanished.
    #[serde(default)]
    pub(crate) by_directory: bool,
}

impl Sandbox {
    /// Creates a sandbox in which everything can be read and nothing can be written.
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

    /// Adds trees in a hidden one that can still be read.
    #[must_use]
    pub fn read(mut self, trees: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.read.extend(trees);
        self
    }

    /// Adds trees that are declared to be writable; closed ones stay closed.
    #[must_use]
    pub fn write(mut self, trees: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.write.extend(trees);
        self
    }

    /// Adds the child's own places, which are open also inside a closed tree.
    #[must_use]
    pub fn own(mut self, trees: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.own.extend(trees);
        self
    }

    /// Adds trees that a declared opening above them does not include.
    #[must_use]
    pub fn apart(mut self, trees: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        self.apart.extend(trees);
        self
    }

    /// Hides a tree and, where paths can be given another meaning, shows `with` in its place. Trees in it that are
    /// listed as readable or as the child's own stay as they are.
    #[must_use]
    pub fn replace(mut self, tree: Utf8PathBuf, with: Utf8PathBuf) -> Self {
        self.no_read.push(tree.clone());
        self.replaced.push(Replaced { tree, with });
        self
    }

    /// Sets the access to the network.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }
}

/// A tree in whose place a child finds another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Replaced {
    /// The tree that is out of reach.
    pub tree: Utf8PathBuf,
    /// The tree that is found in its place, read-only.
    pub with: Utf8PathBuf,
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
