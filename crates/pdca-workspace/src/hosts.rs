//! The hosts that legs run on: listed, checked, added and cleaned up.
//!
//! # Invariants
//! - Nothing is written to `pdca.toml` before the host has answered.
//! - Only what runs of this workspace left is removed from a host, and only of runs that are over.

use std::collections::BTreeSet;
use std::thread;

use camino::Utf8PathBuf;
use pdca_driver::WorkspaceConfig;
use pdca_driver::leg::LegName;
use pdca_remote::{
    Host, HostError, HostOffer, HostRefusal, OfferRequest, ReapRequest, Requirements,
};
use serde::Serialize;

use crate::config::{HostEngine, HostEntry, Workspace, host_requirements, repositories};
use crate::{OpenWorkspace, OperationError};

/// A host that is configured, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostState {
    pub name: String,
    pub engine: HostEngine,
    pub slots: u32,
    pub root: String,
    /// Whether a run would use it; null where it was not asked.
    pub fit: Option<bool>,
    /// Its facts, where it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<HostOffer>,
    /// The reasons not to use it.
    #[serde(skip)]
    pub refusals: Vec<HostRefusal>,
    /// The jobs that were removed from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

impl HostState {
    fn of(entry: &HostEntry) -> Self {
        Self {
            name: entry.name.clone(),
            engine: entry.engine,
            slots: entry.slots,
            root: entry.root.clone(),
            fit: None,
            facts: None,
            refusals: Vec::new(),
            removed: Vec::new(),
        }
    }

    fn answered(self, answer: Result<HostOffer, Vec<HostRefusal>>) -> Self {
        match answer {
            Ok(offer) => Self { fit: Some(true), facts: Some(offer), ..self },
            Err(refusals) => Self { fit: Some(false), refusals, ..self },
        }
    }
}

/// A host to add. Values that are absent are the defaults; a host that has an entry keeps those of its entry.
#[derive(Debug, Clone, Default)]
pub struct NewHost {
    /// The name of the host in `~/.ssh/config`.
    pub name: String,
    pub slots: Option<u32>,
    pub root: Option<String>,
    pub engine: Option<HostEngine>,
}

/// What a caller can show while a host is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostProgress {
    /// The host has an entry in `pdca.toml` with other values, which it keeps.
    EntryKept { name: String },
    /// In a dry run: the program would be put on the host, and this stanza added to `pdca.toml`.
    WouldAdd { name: String, stanza: Option<String> },
    /// The host was added to this file.
    Added { name: String, file: Utf8PathBuf },
}

/// The hosts after leftovers were removed from them.
#[derive(Debug)]
pub struct HostsCleanup {
    pub hosts: Vec<HostState>,
    /// Every host answered and removed what it was asked to.
    pub is_complete: bool,
}

/// A host was not used or changed.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    #[error("there is no host `{name}` in [[hosts]]")]
    Unknown { name: String, configured: Vec<String> },
    #[error("`{name}` and `{root}` cannot be a host and its root")]
    Implausible { name: String, root: String },
    #[error("pdca cannot be put on {name}: {}", pdca_state::chain(error))]
    Install { name: String, error: HostError },
    #[error("a thread panicked")]
    Panicked,
}

/// Returns the configured hosts. Nothing is asked of them.
pub fn list_hosts(open: &OpenWorkspace<'_>) -> Vec<HostState> {
    open.workspace.config.hosts.iter().map(HostState::of).collect()
}

/// Asks hosts for their facts; all of them if none is named.
pub fn check_hosts(
    open: &OpenWorkspace<'_>,
    names: &[String],
) -> Result<Vec<HostState>, OperationError> {
    let config = open.driver_config()?;
    let entries = entries(open.workspace, names)?;
    let asked = ask_hosts(open, &config, entries, HostWork::Legs)?.into_iter();
    Ok(asked.map(|host| HostState::of(host.entry).answered(host.answer)).collect())
}

/// Puts this program on a host, checks the host, and adds it to `pdca.toml`.
pub fn add_host(
    open: &OpenWorkspace<'_>,
    new: &NewHost,
    progress: &mut dyn FnMut(HostProgress),
) -> Result<HostState, OperationError> {
    let workspace = open.workspace;
    let known = workspace.config.hosts.iter().find(|host| host.name == new.name);
    let mut entry = known.cloned().unwrap_or_else(|| HostEntry::named(&new.name));
    entry.slots = new.slots.unwrap_or(entry.slots);
    entry.root = new.root.clone().unwrap_or(entry.root);
    entry.engine = new.engine.unwrap_or(entry.engine);
    if let Some(known) = known
        && entry != *known
    {
        // The next run reads the file, so a host that is checked with other values says nothing.
        progress(HostProgress::EntryKept { name: entry.name });
        entry = known.clone();
    }
    let HostEntry { name, root, .. } = &entry;
    if !pdca_remote::is_plain_host(name) || !pdca_remote::is_plain_root(root) {
        let (name, root) = (name.clone(), root.clone());
        return Err(HostsError::Implausible { name, root }.into());
    }
    let stanza = known.is_none().then(|| entry.stanza());
    if open.dry_run {
        progress(HostProgress::WouldAdd { name: name.clone(), stanza });
        return Ok(HostState::of(&entry));
    }
    // The running binary, even if its file was replaced since: both sides must be the same program.
    let own = fs_err::read("/proc/self/exe")?;
    host_of(open, &entry)
        .install(own)
        .map_err(|error| HostsError::Install { name: name.clone(), error })?;
    let config = open.driver_config()?;
    let mut state = HostState::of(&entry);
    for host in ask_hosts(open, &config, vec![&entry], HostWork::Legs)? {
        state = state.answered(host.answer);
    }
    // After the installation: a host that cannot be reached is not added.
    if let (Some(stanza), Some(file)) = (stanza, &workspace.file) {
        let text = fs_err::read_to_string(file)?;
        let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
        pdca_state::files::rewrite(file, format!("{text}{gap}{stanza}").as_bytes())?;
        progress(HostProgress::Added { name: name.clone(), file: file.clone() });
    }
    Ok(state)
}

/// Removes what ended runs left on hosts, and contents that no job used for `older_than` days.
pub fn clean_up_hosts(
    open: &OpenWorkspace<'_>,
    names: &[String],
    older_than: Option<u32>,
) -> Result<HostsCleanup, OperationError> {
    let config = open.driver_config()?;
    let entries = entries(open.workspace, names)?;
    let mut cleanup = HostsCleanup { hosts: Vec::new(), is_complete: true };
    for AskedHost { entry, host, answer } in ask_hosts(open, &config, entries, HostWork::Legs)? {
        // Asked again, because a host that is refused for a run may still have leftovers to remove.
        let offer = host.offer(OfferRequest::default());
        let mut state = HostState::of(entry).answered(answer);
        if let Ok(offer) = offer {
            let over = ended_runs(&config, &offer.jobs);
            let request =
                ReapRequest { over, older_than_days: older_than, ..ReapRequest::default() };
            match host.reap(request) {
                Ok(jobs) => state.removed = jobs.iter().map(ToString::to_string).collect(),
                Err(error) => {
                    cleanup.is_complete = false;
                    let said = pdca_state::chain(&error);
                    state = state.answered(Err(vec![HostRefusal::Unreachable { said }]));
                }
            }
        } else {
            cleanup.is_complete = false;
        }
        cleanup.hosts.push(state);
    }
    Ok(cleanup)
}

/// What hosts are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostWork {
    Legs,
    /// Their gates decide about combinations, so the environment of those is asked for as well.
    Combinations,
}

/// A host with its facts, or the reasons not to use it.
#[derive(Debug)]
pub struct AskedHost<'w> {
    pub entry: &'w HostEntry,
    pub host: Host,
    pub answer: Result<HostOffer, Vec<HostRefusal>>,
}

/// Asks all these hosts for their facts, side by side.
pub fn ask_hosts<'w>(
    open: &OpenWorkspace<'_>,
    config: &WorkspaceConfig,
    entries: Vec<&'w HostEntry>,
    work: HostWork,
) -> Result<Vec<AskedHost<'w>>, OperationError> {
    let own = pdca_remote::own_digest()?;
    let repositories = repositories(config);
    let hosts: Vec<(&HostEntry, Host)> =
        entries.into_iter().map(|entry| (entry, host_of(open, entry))).collect();
    let gates = (work == HostWork::Combinations).then(|| config.rows.clone());
    let ask = |entry: &HostEntry, host: &Host| {
        let required = host_requirements(config, own.clone(), entry);
        host.check(&Requirements { gates: gates.clone(), ..required }, repositories.clone())
    };
    let answers: Vec<_> = thread::scope(|scope| {
        let asked: Vec<_> =
            hosts.iter().map(|(entry, host)| scope.spawn(|| ask(entry, host))).collect();
        asked.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let asked = hosts.into_iter().zip(answers).map(|((entry, host), answer)| {
        let answer = answer.map_err(|_| HostsError::Panicked)?;
        Ok(AskedHost { entry, host, answer })
    });
    asked.collect()
}

/// Returns the hosts of the names; all of them if there is no name.
fn entries<'w>(
    workspace: &'w Workspace,
    names: &[String],
) -> Result<Vec<&'w HostEntry>, HostsError> {
    if names.is_empty() {
        return Ok(workspace.config.hosts.iter().collect());
    }
    names.iter().map(|name| host_named(workspace, name)).collect()
}

/// Returns a configured host by its name.
pub fn host_named<'w>(workspace: &'w Workspace, name: &str) -> Result<&'w HostEntry, HostsError> {
    let configured = &workspace.config.hosts;
    configured.iter().find(|host| host.name == name).ok_or_else(|| HostsError::Unknown {
        name: name.to_owned(),
        configured: configured.iter().map(|host| host.name.clone()).collect(),
    })
}

/// Makes the near side of a host.
fn host_of(open: &OpenWorkspace<'_>, entry: &HostEntry) -> Host {
    entry.host(&sockets(open), open.machine.program.as_deref())
}

/// Returns the directory of control sockets. Their paths must be short.
fn sockets(open: &OpenWorkspace<'_>) -> Utf8PathBuf {
    // A path of a socket has at most 108 bytes on Linux, and ssh appends a hash and a suffix to it.
    let own = || format!("/tmp/pdca-ssh-{}", rustix::process::getuid().as_raw()).into();
    let runtime = open.environment.text("XDG_RUNTIME_DIR");
    runtime.map_or_else(own, |dir| Utf8PathBuf::from(dir).join("pdca-ssh"))
}

/// Returns the runs of this workspace that are over and have jobs on a host.
pub fn ended_runs(config: &WorkspaceConfig, jobs: &[String]) -> Vec<String> {
    let names = jobs.iter().filter_map(|name| name.parse::<LegName>().ok());
    let runs: BTreeSet<String> = names.map(|name| name.run().to_owned()).collect();
    let is_over = |run: &String| {
        let Ok(id) = run.parse() else { return false };
        let found =
            [config.dirs.runs(), config.dirs.integrations()].map(|runs| runs.find(&id).found);
        found.into_iter().flatten().any(|found| !found.state.is_active())
    };
    runs.into_iter().filter(is_over).collect()
}
