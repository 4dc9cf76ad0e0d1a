//! `[[hosts]]`: other machines that legs run on.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::WorkspaceConfig;
use pdca_gates::{Check, Command, Cwd};
use pdca_leaves::{LeafConfig, LeafMode};
use pdca_process::SandboxMode;
use pdca_remote::{
    Host, HostSpec, JobEngine, LocalProcess, Requirements, SlurmOptions, Ssh, Transport,
    is_plain_host, is_plain_root, repository_name,
};
use serde::{Deserialize, Serialize};

use crate::config::problem::{ConfigError, Problem};
use crate::config::{Config, Sources, Workspace};

/// The default root of a host.
const ROOT: &str = "~/.pdca-host";

/// `[[hosts]]`: another machine that legs run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// The name of the host in `~/.ssh/config`, or an address that `ssh` takes.
    pub name: String,
    /// The number of legs that run there at once.
    #[serde(default = "one")]
    pub slots: u32,
    /// The one directory that is used there.
    #[serde(default = "default_root")]
    pub root: String,
    /// How legs are run there: `ssh`, `slurm` through its commands, or `process`, a directory of this machine.
    #[serde(default)]
    pub engine: HostEngine,
    /// Files and directories of the workspace that gates and leaves need there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub send: Vec<Utf8PathBuf>,
    /// The seconds without a sign of life after which the host is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_after_secs: Option<u64>,
    /// The number of jobs in Slurm's queue at once; `slots` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// Slurm's licenses that each job takes, such as `model_api:1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licenses: Option<String>,
    /// Slurm's partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Slurm's limit on the time of a job, in minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_minutes: Option<u32>,
    /// Slurm's limit on the memory of a job, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
}

/// The engine of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HostEngine {
    /// Processes of the host, reached through `ssh`.
    #[default]
    Ssh,
    /// Jobs of Slurm, submitted on the host.
    Slurm,
    /// Processes of this machine under a root of their own, to try it out.
    Process,
}

impl HostEngine {
    /// Returns the name that the configuration has for the engine.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ssh => "ssh",
            Self::Slurm => "slurm",
            Self::Process => "process",
        }
    }
}

fn one() -> u32 {
    1
}

fn default_root() -> String {
    ROOT.to_owned()
}

impl HostEntry {
    /// Returns the entry of a host of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            slots: 1,
            root: default_root(),
            engine: HostEngine::default(),
            send: Vec::new(),
            lost_after_secs: None,
            max_jobs: None,
            licenses: None,
            partition: None,
            time_minutes: None,
            memory_mb: None,
        }
    }

    /// Returns the entry as a table of `pdca.toml`, without the values that are defaults.
    pub fn stanza(&self) -> String {
        let mut text = format!("[[hosts]]\nname = \"{}\"\nslots = {}\n", self.name, self.slots);
        if self.root != ROOT {
            text = format!("{text}root = \"{}\"\n", self.root);
        }
        if self.engine != HostEngine::default() {
            text = format!("{text}engine = \"{}\"\n", self.engine.name());
        }
        text
    }

    fn spec(&self) -> HostSpec {
        let (engine, lost_after, slots) = match self.engine {
            HostEngine::Ssh | HostEngine::Process => (JobEngine::Process, 60, self.slots),
            HostEngine::Slurm => {
                let options = SlurmOptions {
                    licenses: self.licenses.clone(),
                    partition: self.partition.clone(),
                    time_minutes: self.time_minutes,
                    memory_mb: self.memory_mb,
                };
                // A node that died is noticed by Slurm first, which then runs the job on another.
                let slots = self.max_jobs.map_or(self.slots, |jobs| jobs.min(self.slots));
                (JobEngine::Slurm(options), 600, slots)
            }
        };
        HostSpec {
            name: self.name.clone(),
            slots,
            root: self.root.clone(),
            engine,
            lost_after: Duration::from_secs(self.lost_after_secs.unwrap_or(lost_after)),
            send: self.send.clone(),
        }
    }

    /// Makes the near side of the host. `sockets` is a private directory with a short path.
    pub fn host(&self, sockets: &Utf8Path, program: Option<&Utf8Path>) -> Host {
        let spec = self.spec();
        let transport: Box<dyn Transport> = match self.engine {
            HostEngine::Ssh | HostEngine::Slurm => {
                let alive = spec.lost_after.as_secs();
                Box::new(Ssh::new(&self.name, &self.root, sockets.to_owned(), alive))
            }
            HostEngine::Process => {
                let program = program.unwrap_or("pdca".into()).to_owned();
                Box::new(LocalProcess::new(program, pdca_leaves::expand_home(&self.root)))
            }
        };
        Host::new(spec, transport)
    }
}

/// Checks `[[hosts]]`.
pub(crate) fn rules(config: &Config, sources: &Sources, problems: &mut Vec<Problem>) {
    let mut seen = BTreeMap::new();
    for (index, host) in config.hosts.iter().enumerate() {
        let mut add = |key: &str, problem: Problem| {
            problems.push(problem.at_known(sources.place(&format!("hosts[{index}].{key}"))));
        };
        let HostEntry { name, root, .. } = host;
        if !is_plain_host(name) {
            let what = format!("`{name}` cannot be the name of a host");
            add(
                "name",
                Problem::new(what).hint("write a `Host` of ~/.ssh/config, or `user@address`"),
            );
        } else if seen.insert(name.clone(), index).is_some() {
            let what = format!("host `{name}` is configured twice");
            add("name", Problem::new(what).hint("give one of them more `slots` instead"));
        }
        if !is_plain_root(root) {
            let what = format!("`{root}` cannot be the root of a host");
            let hint = "write an absolute path, or one that begins with `~/`, of letters, digits, `.`, `_`, `+` and `-`";
            add("root", Problem::new(what).hint(hint));
        }
        if host.slots == 0 || host.max_jobs == Some(0) {
            let what = format!("host `{name}` has no slots");
            add("slots", Problem::new(what).hint("write at least 1, or remove the host"));
        }
        if host.lost_after_secs == Some(0) {
            let what = "`lost_after_secs` in [[hosts]] must be at least 1";
            add("lost_after_secs", Problem::new(what).hint("write 60, or remove the line"));
        }
        for path in &host.send {
            let is_inside = path.is_relative()
                && !path.as_str().is_empty()
                && path.components().all(|part| matches!(part, camino::Utf8Component::Normal(_)));
            // Bundles are sent anyway, and `.pdca` is the record of this side.
            let is_own = path.starts_with(".pdca") || path.starts_with(&config.paths.bundle_root);
            if !is_inside || is_own {
                let what = format!("`{path}` in `send` of [[hosts]] is no path of the workspace");
                let hint = "name files and directories beside pdca.toml, such as `scripts`; bundles are sent anyway";
                add("send", Problem::new(what).hint(hint));
            }
        }
        let slurm_only = [
            ("max_jobs", host.max_jobs.is_some()),
            ("licenses", host.licenses.is_some()),
            ("partition", host.partition.is_some()),
            ("time_minutes", host.time_minutes.is_some()),
            ("memory_mb", host.memory_mb.is_some()),
        ];
        for (key, is_set) in slurm_only {
            if is_set && host.engine != HostEngine::Slurm {
                let what = format!("`{key}` of host `{name}` needs `engine = \"slurm\"`");
                add(key, Problem::new(what).hint("add the engine, or remove the line"));
            }
        }
    }
}

/// Refuses a configuration that cannot be carried out on another machine.
pub fn require_sendable(
    workspace: &Workspace,
    site: &WorkspaceConfig,
    hosts: &[&HostEntry],
) -> Result<(), ConfigError> {
    let at = |problem: Problem, key: &str| problem.at_known(workspace.sources.place(key));
    let mut problems = Vec::new();
    let hydrate = &site.lanes.hydrate;
    for (key, files) in
        [("copy", &hydrate.copy), ("symlink", &hydrate.symlink), ("seed", &hydrate.seed)]
    {
        if !files.is_empty() {
            let what = format!(
                "`{key}` in [lanes.hydrate] takes files from your checkout, which a host does not have"
            );
            let hint = "make them with `install` in [lanes.hydrate], or add `--local`";
            problems.push(at(Problem::new(what).hint(hint), &format!("lanes.hydrate.{key}")));
        }
    }
    for (name, leaf) in called(site) {
        for variable in leaf.env.keys().filter(|name| pdca_process::is_credential(name)) {
            let what = format!(
                "`{variable}` in `env` of [{name}] looks like a credential, and credentials do not travel"
            );
            let hint = format!("set it on the hosts, and name it in `env_pass` of [{name}]");
            problems.push(at(Problem::new(what).hint(hint), &format!("{name}.env.{variable}")));
        }
        for file in leaf.argv.iter().filter(|arg| is_kept_here(workspace, hosts, arg)) {
            let what = format!(
                "`{file}` of [{name}] is a file of this workspace, which a host does not have"
            );
            problems.push(at(Problem::new(what).hint(send_hint(file)), &format!("{name}.argv")));
        }
    }
    for (index, row) in site.rows.as_slice().iter().enumerate() {
        let (key, words) = words(row);
        for file in words.into_iter().filter(|word| is_kept_here(workspace, hosts, word)) {
            let what = format!(
                "`{file}` of gate `{}` is a file of this workspace, which a host does not have",
                row.id
            );
            problems.push(at(
                Problem::new(what).hint(send_hint(file)),
                &format!("gates.checks[{index}].{key}"),
            ));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
}

/// Returns the words of a check that may name files, and the key that they are of.
fn words(row: &Check) -> (&'static str, Vec<&str>) {
    match &row.command {
        Command::Argv(argv) => ("argv", argv.iter().map(String::as_str).collect()),
        // In a checkout `./gate.sh` is a file of the change. Of text that is more than one plain command
        // the words are not known.
        Command::Shell(text) => {
            let is_plain =
                |letter: char| letter.is_ascii_alphanumeric() || " ./_-=:,+@%".contains(letter);
            let is_known = row.cwd == Cwd::Workspace && text.chars().all(is_plain);
            ("cmd", text.split_whitespace().filter(|_| is_known).collect())
        }
    }
}

/// Returns a path as `send` names it.
fn plain(file: &str) -> &Utf8Path {
    Utf8Path::new(file.trim_start_matches("./"))
}

fn send_hint(file: &str) -> String {
    let top = plain(file).components().next().map_or(file, |part| part.as_str());
    format!("add `send = [\"{top}\"]` to [[hosts]], or install it there")
}

/// Returns whether an argument names a file of the workspace that some host would not be sent.
fn is_kept_here(workspace: &Workspace, hosts: &[&HostEntry], arg: &str) -> bool {
    let path = plain(arg);
    let is_plain = path.is_relative() && !arg.contains('{') && workspace.root.join(path).is_file();
    let is_sent = |host: &&HostEntry| host.send.iter().any(|sent| path.starts_with(sent));
    is_plain && !hosts.iter().all(is_sent)
}

/// Returns the leaves that a run calls, by their table.
fn called(site: &WorkspaceConfig) -> impl Iterator<Item = (String, &LeafConfig)> {
    let single = site.leaves.all().map(|(_, name, leaf)| (format!("leaves.{name}"), leaf));
    let variants = site.leaves.variants().map(|(name, leaf)| (format!("leaves.{name}"), leaf));
    single.chain(variants).filter(|(_, leaf)| leaf.mode == LeafMode::Command && !site.force_stubs)
}

/// Returns what a host must have for this workspace.
pub fn host_requirements(
    site: &WorkspaceConfig,
    program: String,
    host: &HostEntry,
) -> Requirements {
    let plain = |name: &str| !name.contains(['/', '{']);
    let mut programs: Vec<String> = Vec::new();
    let first = |argv: &[String]| argv.first().filter(|name| plain(name)).cloned();
    programs.extend(called(site).filter_map(|(_, leaf)| first(&leaf.argv)));
    let rows = site.rows.as_slice().iter();
    programs.extend(rows.filter_map(|row| match &row.command {
        Command::Argv(argv) => first(argv),
        Command::Shell(_) => Some("sh".to_owned()),
    }));
    programs.sort();
    programs.dedup();
    let walls = called(site).map(|(_, leaf)| leaf.sandbox).chain([site.gate_sandbox]);
    let mut walls = walls.filter(|mode| *mode != SandboxMode::Off);
    Requirements {
        program,
        programs,
        min_free: site.limits.min_free,
        slot_memory: site.limits.lane_memory,
        sandbox: walls.next().is_some(),
        engine: host.spec().engine,
        gates: None,
    }
}

/// Returns the names that the targets' repositories have on hosts.
pub fn repositories(site: &WorkspaceConfig) -> Vec<String> {
    let open =
        |spec: &pdca_driver::TargetSpec| pdca_lanes::Target::open(&spec.name, &spec.path).ok();
    let targets = site.targets.iter().filter_map(open);
    targets.map(|target| repository_name(target.name(), target.common_dir())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_gate_names_are_known_of_a_plain_command_in_the_workspace() {
        let named = |keys: &str| {
            let text = format!("[[checks]]\nid = 'a'\ntier = 'T1'\n{keys}\n");
            let gates: pdca_gates::GatesConfig = toml::from_str(&text).unwrap();
            let rows = gates.checks().unwrap();
            words(&rows.as_slice()[0]).1.join("|")
        };
        assert_eq!(named("argv = ['./gate.sh', 'a b']"), "./gate.sh|a b");
        assert_eq!(named("cmd = './gate.sh --all'\ncwd = 'workspace'"), "./gate.sh|--all");
        assert_eq!(named("cmd = './gate.sh --all'"), "", "a file of the checkout");
        assert_eq!(named("cmd = 'cd x && ./gate.sh'\ncwd = 'workspace'"), "", "real shell");
        assert_eq!(plain("./gate.sh"), "gate.sh");
    }
}
