//! Examines host and workspace: each check is a finding.
//!
//! # Invariants
//! - Nothing is changed, not even what is stale; git's locks are reported, never removed.
//! - A check that cannot be made is a finding that says so, and hides no other.
//! - No program of a leaf is called unless a probe is asked for.

mod git_locks;
mod instructions;
mod leads;
mod machine;
mod probe;
mod runs;

use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::{LaneCount, Reckoning, WorkspaceConfig};
use pdca_gates::{Check, GateContext, ProgramFault, Purpose, preflight};
use pdca_lanes::Target;
use pdca_leaves::{Called, LeafConfig, LeafMode, Role};
use pdca_process::{Cancel, GitError, SandboxKind, SandboxMode};
use pdca_remote::{HostOffer, HostRefusal};
use serde::Serialize;

use crate::config::{
    Environment, HostEntry, Problem, Workspace, has_program, require_sendable, scaffold,
};
use crate::hosts::{AskedHost, HostWork, ask_hosts};
use crate::{OpenWorkspace, OperationError};

pub use leads::Lead;
pub use machine::{SupervisionFault, examine_machine};
pub use probe::{ProbeAnswer, ProbeClass};
pub use runs::{RunFinding, RunFindingState};

/// One finding: a fact, and whether it is a problem.
#[derive(Debug)]
pub struct Finding {
    pub health: Health,
    pub fact: Fact,
}

/// Whether a fact is a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Health {
    Ok,
    Warning,
    Broken,
}

impl Finding {
    fn ok(fact: Fact) -> Self {
        Self { health: Health::Ok, fact }
    }

    fn warning(fact: Fact) -> Self {
        Self { health: Health::Warning, fact }
    }

    fn broken(fact: Fact) -> Self {
        Self { health: Health::Broken, fact }
    }
}

/// A fact about the host or the workspace. Errors are texts with their causes.
#[derive(Debug)]
pub enum Fact {
    /// The output of `git --version`, or the reason that git cannot be used.
    Git(Result<String, GitError>),
    /// The sandbox of leaves and gates.
    Sandbox(SandboxKind),
    /// The sandbox is Landlock, because bubblewrap cannot be used.
    Landlock {
        abi: u32,
        bwrap: String,
    },
    /// Whether children can be supervised.
    Supervision(Result<(), SupervisionFault>),
    /// The file of the configuration; none if the bundle root comes from the environment.
    Config {
        file: Option<Utf8PathBuf>,
    },
    /// The configuration cannot be used.
    ConfigProblem(Problem),
    /// The number of bundles.
    Bundles {
        root: Utf8PathBuf,
        count: usize,
    },
    /// The bundles cannot be listed.
    NoBundles {
        error: String,
    },
    /// A bundle cannot be read.
    BundleUnreadable {
        error: String,
    },
    /// A target, with the base of its lanes.
    Target {
        name: String,
        path: Utf8PathBuf,
        branch: String,
        commit: String,
    },
    /// Properties of a target that its private checkouts do not share.
    TargetNotes {
        name: String,
        notes: Vec<String>,
    },
    /// A target cannot be opened.
    TargetClosed {
        name: String,
        error: String,
    },
    /// The branch of a target cannot be resolved.
    NoBranch {
        name: String,
        error: String,
    },
    NoTargets,
    /// The repository of a target cannot be locked.
    TargetUnlockable {
        name: String,
        error: String,
    },
    /// A process has a lock file of git open.
    GitLockHeld {
        target: String,
        file: Utf8PathBuf,
        holder: String,
    },
    /// A lock file of git that no visible process has open; `age` is in seconds.
    GitLockStale {
        target: String,
        file: Utf8PathBuf,
        owner: Option<u32>,
        age: Option<u64>,
    },
    /// Free bytes of disk and memory, and whether the disk is too full for a run.
    Room {
        disk: u64,
        memory: u64,
        is_full: bool,
    },
    /// The free space cannot be measured.
    RoomUnknown {
        error: Option<String>,
    },
    /// The number of lanes follows from the machine.
    LanesReckoned(Reckoning),
    /// The number of lanes.
    Lanes(NonZeroU32),
    /// The configuration asks for no lane, and one is taken.
    NoLanes,
    /// The limit of memory for leaves and gates in bytes, and whether it can be held.
    LeafMemory {
        cap: Option<u64>,
        support: Result<(), String>,
    },
    /// No driver works here.
    NoDriver,
    /// An integration works here.
    Integrating {
        holder: String,
    },
    /// A driver works here.
    DriverAtWork {
        holder: String,
    },
    /// It is unknown whether a driver works here.
    DriverUnknown {
        error: String,
    },
    NoRuns,
    /// The runs cannot be listed.
    RunsUnlisted {
        error: String,
    },
    Run(RunFinding),
    NoGates,
    /// A row whose program can be started.
    Gate {
        id: String,
        command: String,
    },
    GateUnready {
        id: String,
        fault: ProgramFault,
    },
    /// Rows without a sandbox.
    GatesUnconfined {
        ids: Vec<String>,
    },
    /// A path that rows may write does not exist.
    OpeningMissing {
        owner: String,
        path: Utf8PathBuf,
    },
    /// What leads a gate into the checkout of a target; behind bubblewrap it finds the lane there.
    Leads {
        target: String,
        leads: Vec<Lead>,
        is_walled: bool,
    },
    /// Proxies that rows do not get.
    Proxies(Vec<&'static str>),
    /// The workflow that `pdca init` wrote does not say where this program is built from.
    WorkflowWithoutSource,
    /// A check of `[[doctor.checks]]` that passed.
    Dependency {
        id: String,
        command: String,
    },
    /// A check of `[[doctor.checks]]` that failed, with its own hint.
    DependencyUnmet {
        id: String,
        command: String,
        reason: String,
        hint: Option<String>,
    },
    /// A leaf whose program exists.
    Leaf {
        name: String,
        argv: Vec<String>,
    },
    LeafStub {
        name: String,
    },
    LeafWithoutArgv {
        name: String,
    },
    LeafMissing {
        name: String,
        program: String,
    },
    /// A builder is judged by a model of its own family.
    SameFamily {
        builder: String,
        family: String,
    },
    /// The file that instructs a role.
    Instructions {
        role: Role,
        place: String,
        digest: String,
    },
    InstructionsUnreadable {
        role: Role,
        error: String,
    },
    /// A file of the checkout that would instruct a role, and is not what the branch has.
    InstructionsUncommitted {
        role: Role,
        checkout: Utf8PathBuf,
        path: Utf8PathBuf,
    },
    /// A file of an earlier `pdca init` that instructs no leaf.
    InstructionsOutdated {
        role: Role,
        file: Utf8PathBuf,
    },
    /// The configuration cannot be sent to hosts.
    HostsProblem(Problem),
    /// The hosts cannot be asked.
    HostsUnknown(OperationError),
    Host {
        name: String,
        slots: u32,
        offer: Box<HostOffer>,
    },
    HostRefused {
        name: String,
        refusal: HostRefusal,
    },
    /// A leaf that talks to a person, which a probe does not call.
    ProbeInteractive {
        leaf: String,
    },
    ProbeMissing {
        leaf: String,
        program: String,
    },
    ProbeWithoutArgv {
        leaf: String,
    },
    /// No leaf is a command.
    NothingProbed,
    /// The answer of a leaf; `program` is what was called.
    Probed {
        leaf: String,
        program: Option<String>,
        answer: Box<ProbeAnswer>,
    },
    ProbeFailed {
        leaf: String,
        error: String,
    },
}

/// Examines the workspace; `probe` calls each leaf once for real, which costs money.
pub fn examine_workspace(open: &OpenWorkspace<'_>, probe: bool) -> Vec<Finding> {
    let workspace = open.workspace;
    let mut findings = vec![Finding::ok(Fact::Config { file: workspace.file.clone() })];
    match open.driver_config() {
        Ok(config) => {
            findings.extend(of_workspace(open, &config));
            findings.extend(hosts(open, &config));
            if probe {
                findings.extend(probe::findings(open, &config));
            }
        }
        Err(error) => {
            let problems = error.problems.into_iter();
            findings.extend(problems.map(|it| Finding::broken(Fact::ConfigProblem(it))));
        }
    }
    findings
}

fn of_workspace(open: &OpenWorkspace<'_>, config: &WorkspaceConfig) -> Vec<Finding> {
    let workspace = open.workspace;
    let mut findings = vec![bundles(workspace)];
    let targets = &workspace.targets;
    findings.extend(targets.iter().map(|it| target(&it.name, &it.path, it.branch.as_deref())));
    if targets.is_empty() {
        findings.push(Finding::warning(Fact::NoTargets));
    }
    for target in targets {
        if let Ok(opened) = Target::open(&target.name, &target.path) {
            findings.extend(git_locks::findings(&opened, open.now()));
        }
    }
    findings.push(room(config));
    findings.push(lanes(workspace, config));
    findings.push(leaf_memory(config));
    findings.push(driver(config));
    findings.extend(runs::findings(config));
    findings.extend(gates(config, open.environment));
    findings.extend(workflow(workspace));
    findings.extend(dependencies(config));
    findings.extend(leaves(open, config));
    findings.extend(independence(workspace, config));
    findings.extend(instructions::findings(workspace, config));
    findings
}

/// Asks every configured host. One that cannot be used only makes a run slower.
fn hosts(open: &OpenWorkspace<'_>, config: &WorkspaceConfig) -> Vec<Finding> {
    let workspace = open.workspace;
    let entries: Vec<&HostEntry> = workspace.config.hosts.iter().collect();
    if entries.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if let Err(error) = require_sendable(workspace, config, &entries) {
        let problems = error.problems.into_iter();
        findings.extend(problems.map(|it| Finding::broken(Fact::HostsProblem(it))));
    }
    let asked = ask_hosts(open, config, entries, HostWork::Legs).unwrap_or_else(|error| {
        findings.push(Finding::broken(Fact::HostsUnknown(error)));
        Vec::new()
    });
    for AskedHost { entry, answer, .. } in asked {
        let name = entry.name.clone();
        match answer {
            Ok(offer) => findings.push(Finding::ok(Fact::Host {
                name,
                slots: entry.slots,
                offer: Box::new(offer),
            })),
            Err(refusals) => findings.extend(refusals.into_iter().map(|refusal| {
                Finding::warning(Fact::HostRefused { name: name.clone(), refusal })
            })),
        }
    }
    findings
}

/// Checks that the workflow that `pdca init` wrote can build this program.
fn workflow(workspace: &Workspace) -> Option<Finding> {
    let text = fs_err::read_to_string(workspace.root.join(scaffold::WORKFLOW_FILE)).ok()?;
    scaffold::lacks_source(&text).then(|| Finding::warning(Fact::WorkflowWithoutSource))
}

fn bundles(workspace: &Workspace) -> Finding {
    match pdca_state::survey(&workspace.bundle_root) {
        Err(error) => Finding::warning(Fact::NoBundles { error: pdca_state::chain(&error) }),
        Ok(found) => match found.iter().find_map(|row| row.result.as_ref().err()) {
            None => {
                let root = workspace.bundle_root.path().to_owned();
                Finding::ok(Fact::Bundles { root, count: found.len() })
            }
            Some(error) => {
                Finding::broken(Fact::BundleUnreadable { error: pdca_state::chain(error) })
            }
        },
    }
}

fn target(name: &str, path: &Utf8Path, branch: Option<&str>) -> Finding {
    let name = name.to_owned();
    let opened = match Target::open(&name, path) {
        Ok(opened) => opened,
        Err(error) => {
            return Finding::broken(Fact::TargetClosed { name, error: pdca_state::chain(&error) });
        }
    };
    match opened.resolve(branch) {
        Ok(base) => match opened.notes() {
            [] => {
                let (path, branch, commit) = (path.to_owned(), base.branch, base.commit);
                Finding::ok(Fact::Target { name, path, branch, commit })
            }
            notes => {
                let notes = notes.iter().map(ToString::to_string).collect();
                Finding::warning(Fact::TargetNotes { name, notes })
            }
        },
        Err(error) => Finding::broken(Fact::NoBranch { name, error: pdca_state::chain(&error) }),
    }
}

/// Compares free disk and memory with what a run needs.
fn room(config: &WorkspaceConfig) -> Finding {
    let room = pdca_driver::room(config);
    let (Ok(disk), Ok(memory)) = (&room.disk, &room.memory) else {
        let error = room.disk.as_ref().err().or(room.memory.as_ref().err());
        return Finding::warning(Fact::RoomUnknown { error: error.map(ToString::to_string) });
    };
    let (disk, memory, is_full) = (*disk, *memory, *disk < config.limits.min_free);
    let fact = Fact::Room { disk, memory, is_full };
    if is_full { Finding::broken(fact) } else { Finding::ok(fact) }
}

/// Returns the number of bundles in flight at once, and the value of `auto`.
fn lanes(workspace: &Workspace, config: &WorkspaceConfig) -> Finding {
    let lanes = workspace.config.driver.lanes;
    match lanes.number() {
        None => Finding::ok(Fact::LanesReckoned(pdca_driver::reckon_lanes(config))),
        Some(_) if lanes == LaneCount::Number(0) => Finding::warning(Fact::NoLanes),
        Some(number) => Finding::ok(Fact::Lanes(number)),
    }
}

/// Returns whether the memory limit of leaves and gates is enforced.
fn leaf_memory(config: &WorkspaceConfig) -> Finding {
    let (cap, support) = (config.limits.leaf_memory, pdca_process::memory_support());
    let is_held = cap.is_none() || support.is_ok();
    let fact = Fact::LeafMemory { cap, support };
    if is_held { Finding::ok(fact) } else { Finding::warning(fact) }
}

fn driver(config: &WorkspaceConfig) -> Finding {
    match config.locks().driver_at_work() {
        Ok(None) => match config.locks().integration_at_work() {
            Ok(Some(holder)) => Finding::ok(Fact::Integrating { holder }),
            Ok(None) | Err(_) => Finding::ok(Fact::NoDriver),
        },
        Ok(Some(holder)) => Finding::warning(Fact::DriverAtWork { holder }),
        Err(error) => Finding::broken(Fact::DriverUnknown { error: pdca_state::chain(&error) }),
    }
}

fn gates(config: &WorkspaceConfig, environment: Environment<'_>) -> Vec<Finding> {
    if config.rows.is_empty() {
        return vec![Finding::warning(Fact::NoGates)];
    }
    let jobs = config.dirs.private().join("jobs");
    let mut scene = GateContext::new(Purpose::Bundle, &config.dirs.root, &jobs);
    scene.search_path = config.search_path.as_deref();
    let unready = preflight(&config.rows, &scene);
    let rows = config.rows.as_slice().iter().map(|row| {
        let id = row.id.clone();
        match unready.iter().find(|unready| unready.rule_id == row.id) {
            None => Finding::ok(Fact::Gate { id, command: row.command.shown() }),
            Some(unready) => {
                Finding::broken(Fact::GateUnready { id, fault: unready.fault.clone() })
            }
        }
    });
    rows.chain(gate_sandboxes(config)).chain(leads::findings(config, environment)).collect()
}

/// Returns which rows are not confined, and which openings are not there.
fn gate_sandboxes(config: &WorkspaceConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_off = |row: &&Check| row.sandbox.unwrap_or(config.gate_sandbox) == SandboxMode::Off;
    let off = config.rows.as_slice().iter().filter(is_off);
    let ids: Vec<String> = off.map(|row| row.id.clone()).collect();
    if !ids.is_empty() {
        findings.push(Finding::warning(Fact::GatesUnconfined { ids }));
    }
    let absent = config.absent_openings().into_iter();
    findings
        .extend(absent.map(|(owner, path)| Finding::warning(Fact::OpeningMissing { owner, path })));
    findings
}

/// Runs the checks of `[[doctor.checks]]`.
fn dependencies(config: &WorkspaceConfig) -> Vec<Finding> {
    let findings = config.doctor.checks.iter().map(|check| {
        let (id, command) = (check.id.clone(), check.cmd.clone());
        let Err(unmet) = check.run(&config.dirs.root, &Cancel::new()) else {
            return Finding::ok(Fact::Dependency { id, command });
        };
        let (reason, hint) = (unmet.said, unmet.hint);
        let fact = Fact::DependencyUnmet { id, command, reason, hint };
        if check.required { Finding::broken(fact) } else { Finding::warning(fact) }
    });
    findings.collect()
}

fn leaves(open: &OpenWorkspace<'_>, config: &WorkspaceConfig) -> Vec<Finding> {
    // A role that is called on demand may be missing without a warning.
    let is_used = |called: Called, leaf: &LeafConfig| {
        called == Called::InEveryCycle || leaf.mode == LeafMode::Command && !config.force_stubs
    };
    let configured = &open.workspace.config.leaves;
    let leaves = configured
        .all()
        .filter(|(spec, _, leaf)| is_used(spec.called, leaf))
        .map(|(_, name, leaf)| self::leaf(name, leaf, config, open.environment));
    let variants = configured.variants();
    let variants = variants.map(|(name, leaf)| self::leaf(&name, leaf, config, open.environment));
    leaves.chain(variants).collect()
}

fn leaf(
    name: &str,
    leaf: &LeafConfig,
    config: &WorkspaceConfig,
    environment: Environment<'_>,
) -> Finding {
    let name = name.to_owned();
    if config.force_stubs || leaf.mode == LeafMode::Stub {
        return Finding::warning(Fact::LeafStub { name });
    }
    match leaf.argv.first() {
        Some(program) if has_program(environment, &config.dirs.root, program) => {
            Finding::ok(Fact::Leaf { name, argv: leaf.argv.clone() })
        }
        Some(program) => Finding::broken(Fact::LeafMissing { name, program: program.clone() }),
        None => Finding::broken(Fact::LeafWithoutArgv { name }),
    }
}

/// Returns where a builder is judged by a model of its own family.
fn independence(workspace: &Workspace, config: &WorkspaceConfig) -> Vec<Finding> {
    let leaves = &workspace.config.leaves;
    let builders =
        std::iter::once(("builder".to_owned(), &leaves.builder)).chain(leaves.variants());
    let finding = |(builder, leaf): (String, &LeafConfig)| {
        let family = leaf.shared_family(&leaves.reviewer)?.to_string();
        Some(Finding::warning(Fact::SameFamily { builder, family }))
    };
    builders.filter_map(finding).filter(|_| !config.force_stubs).collect()
}
