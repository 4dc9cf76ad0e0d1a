//! The findings of a doctor as rows, with a remedy for each problem.

use std::io::Write;

use camino::Utf8Path;
use pdca_process::SandboxKind;
use pdca_workspace::config::{Problem, scaffold};
use pdca_workspace::doctor::{
    Fact, Finding, Health, Lead, ProbeAnswer, ProbeClass, RunFinding, RunFindingState,
    SupervisionFault,
};
use pdca_workspace::snapshot::RunRowKind;
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, install_git};
use crate::report::{Report, Response};
use crate::words::{age, size};

/// The most leads that are shown.
const SHOWN_LEADS: usize = 8;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Examination {
    rows: Vec<Row>,
}

/// The result of one check.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    what: String,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The answer of a leaf, with `--probe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<ProbeAnswer>,
}

/// Returns the response to an examination; `failure` is the reason that there is no workspace to examine.
pub(crate) fn examined(
    findings: Vec<Finding>,
    failure: Option<&Failure>,
    cx: &Context<'_>,
) -> Response {
    let findings = findings.into_iter();
    let mut rows: Vec<Row> =
        findings.map(|finding| Row::new(finding.health, words(finding.fact, cx))).collect();
    if let Some(failure) = failure {
        let problems = failure.problems.iter();
        let words = problems.map(|it| problem("config", it, "mend the file", cx));
        rows.extend(words.map(|words| Row::new(Health::Broken, words)));
    }
    let is_broken = rows.iter().any(|row| row.health == Health::Broken);
    let exit = if is_broken { Exit::Usage } else { Exit::Done };
    Response::new(Examination { rows }, exit)
}

impl Report for Examination {
    const KIND: &'static str = "doctor";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        for row in &self.rows {
            let mark = match row.health {
                Health::Ok => p.good("✓ ok     "),
                Health::Warning => p.warn("! warning"),
                Health::Broken => p.bad("✗ broken "),
            };
            writeln!(out, "{mark}  {:<18} {}", row.what, row.found)?;
            if let Some(remedy) = &row.remedy {
                writeln!(out, "           {} {remedy}", p.accent("hint:"))?;
            }
        }
        Ok(())
    }
}

impl Row {
    fn new(health: Health, words: Words) -> Self {
        let Words { what, found, remedy, probe } = words;
        Self { what, health, found, remedy, probe: probe.map(|answer| *answer) }
    }
}

/// The words of a fact.
struct Words {
    what: String,
    found: String,
    remedy: Option<String>,
    probe: Option<Box<ProbeAnswer>>,
}

impl Words {
    fn new(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), found: found.into(), remedy: None, probe: None }
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    fn with_answer(self, answer: Box<ProbeAnswer>) -> Self {
        Self { probe: Some(answer), ..self }
    }
}

/// Describes a problem; `remedy` is for one without a hint.
fn problem(what: &str, problem: &Problem, remedy: &str, cx: &Context<'_>) -> Words {
    let place = problem.place.as_ref();
    let place = place.map_or(String::new(), |place| format!("{}: ", place.show(&cx.env.cwd)));
    let remedy = problem.hint.clone().unwrap_or_else(|| remedy.to_owned());
    Words::new(what, format!("{place}{}", problem.what)).remedy(remedy)
}

#[expect(clippy::too_many_lines, reason = "one arm for each fact")]
fn words(fact: Fact, cx: &Context<'_>) -> Words {
    match fact {
        Fact::ConfigProblem(it) => problem("config", &it, "mend the file", cx),
        // Its position is not shown.
        Fact::HostsProblem(it) => {
            problem("hosts", &Problem { place: None, ..it }, "add `--local`", cx)
        }
        Fact::HostsUnknown(error) => {
            let failure = Failure::from(error);
            let first = failure.problems.first();
            first.map_or_else(
                || Words::new("hosts", failure.sentence()),
                |it| problem("hosts", it, "add `--local`", cx),
            )
        }
        Fact::Probed { leaf, program, answer } => {
            let program = program.as_deref().unwrap_or("the program");
            Words {
                remedy: probe_remedy(answer.class, &leaf, program),
                ..Words::new(format!("probe {leaf}"), probe_result(&answer))
            }
            .with_answer(answer)
        }
        Fact::Git(Ok(version)) => Words::new("git", version),
        Fact::Git(Err(error)) => {
            let found = pdca_state::chain(&error);
            let problems = Failure::from(error).problems;
            let remedy = problems.into_iter().find_map(|problem| problem.hint);
            Words::new("git", found).remedy(remedy.unwrap_or_else(install_git))
        }
        Fact::Landlock { abi, bwrap } => Words::new(
            "sandbox",
            format!(
                "Landlock, interface version {abi}: leaves and gates write what is listed; modes and times of files and named sockets are not held ({bwrap})"
            ),
        ),
        Fact::Sandbox(SandboxKind::NotAvailable { why }) => Words::new(
            "sandbox",
            format!(
                "none ({why}): what a leaf changes beyond its artifact is found by digests and voids it"
            ),
        )
        .remedy(
            "install bubblewrap, or use a Linux kernel 5.13 or newer with Landlock switched on; `sandbox = \"require\"` insists",
        ),
        Fact::Sandbox(SandboxKind::Off) => {
            Words::new("sandbox", "off").remedy("set `sandbox = \"auto\"`")
        }
        Fact::Sandbox(held @ (SandboxKind::Bwrap { .. } | SandboxKind::Landlock { .. })) => {
            Words::new("sandbox", format!("{held}: leaves and gates write what is listed"))
        }
        Fact::Supervision(supervision) => self::supervision(supervision),
        Fact::Config { file } => Words::new(
            "config",
            file.as_ref().map_or("PDCA_BUNDLE_ROOT only", |file| file.as_str()),
        ),
        Fact::Bundles { root, count } => Words::new("bundles", format!("{count} in {root}")),
        Fact::NoBundles { error } => {
            Words::new("bundles", error).remedy("`pdca new <id>` makes the first bundle")
        }
        Fact::BundleUnreadable { error } => Words::new("bundles", error)
            .remedy("`pdca status` shows every bundle that cannot be read"),
        Fact::Target { name, path, branch, commit } => {
            Words::new(format!("target {name}"), format!("{path}, {branch} at {commit:.12}"))
        }
        Fact::TargetNotes { name, notes } => {
            Words::new(format!("target {name}"), notes.join("; "))
                .remedy("the private checkout differs there; the primary is untouched")
        }
        Fact::TargetClosed { name, error } => Words::new(format!("target {name}"), error)
            .remedy("mend `path` of its [[targets]] in pdca.toml"),
        Fact::NoBranch { name, error } => Words::new(format!("target {name}"), error)
            .remedy("name a branch that exists as `branch` of its [[targets]]"),
        Fact::NoTargets => Words::new("targets", "none")
            .remedy("add a [[targets]] to pdca.toml: without one nothing can be built"),
        Fact::TargetUnlockable { name, error } => Words::new(format!("target {name}"), error)
            .remedy(
                "without locks two drivers could work at once; move the repository to a filesystem that has them",
            ),
        Fact::GitLockHeld { target, file, holder } => Words::new(
            format!("target {target}"),
            format!("{holder} has {file} open: a git command is at work"),
        )
        .remedy("wait until it is done"),
        Fact::GitLockStale { target, file, owner, age } => {
            let owner = owner.map_or_else(String::new, |owner| format!(" of user {owner}"));
            let age = age.map_or_else(String::new, |age| format!(", {} old", self::age(age)));
            Words::new(
                format!("target {target}"),
                format!("{file}{owner} is there{age}, and no process that can be seen has it open"),
            )
            .remedy(format!("a git command was killed; if none is at work, `rm {file}`"))
        }
        Fact::Room { disk, memory, is_full } => {
            let found = format!("{} free on the disk, {} of memory", size(disk), size(memory));
            let words = Words::new("room", found);
            if !is_full {
                return words;
            }
            words.remedy(
                "make room: `pdca cleanup`, `pdca sweep`; or lower `min_free_gb` in [driver]",
            )
        }
        Fact::RoomUnknown { error } => {
            let why = error.map_or_else(String::new, |error| format!(": {error}"));
            Words::new("room", format!("cannot be measured{why}"))
                .remedy("no limit can be held without a measurement; watch it yourself")
        }
        Fact::LanesReckoned(reckoning) => Words::new("lanes", reckoning.to_string()),
        Fact::Lanes(number) => Words::new("lanes", format!("{number} at once")),
        Fact::NoLanes => Words::new("lanes", "`lanes` in [driver] is 0, and 1 is taken")
            .remedy("write `lanes = 1`, or `lanes = \"auto\"` for what the machine carries"),
        Fact::LeafMemory { cap, support } => leaf_memory(cap, support),
        Fact::NoDriver => Words::new("driver", "none is at work here"),
        Fact::Integrating { holder } => Words::new("driver", format!("{holder} integrates")),
        Fact::DriverAtWork { holder } => Words::new("driver", format!("{holder} is at work"))
            .remedy("wait for it; a second one would be refused"),
        Fact::DriverUnknown { error } => Words::new("driver", error)
            .remedy("the workspace must be writable and on a filesystem that can lock files"),
        Fact::NoRuns => Words::new("runs", "none is active"),
        Fact::RunsUnlisted { error } => Words::new("runs", error)
            .remedy("the workspace's `.pdca/runs` must be a readable directory"),
        Fact::Run(finding) => run(finding),
        Fact::NoGates => Words::new("gates", "none configured")
            .remedy("add [[gates.checks]] to pdca.toml: nothing real is checked"),
        Fact::Gate { id, command } => Words::new(format!("gate {id}"), command),
        Fact::GateUnready { id, fault } => Words::new(format!("gate {id}"), fault.to_string())
            .remedy("install it, or mend the row in pdca.toml"),
        Fact::GatesUnconfined { ids } => Words::new(
            "gates' sandbox",
            format!("off for {}: they run the builder's code with all your rights", ids.join(", ")),
        )
        .remedy(
            "remove `sandbox = \"off\"`; a row that writes beyond its checkout names the directory, `may_write = [\"out\"]`",
        ),
        Fact::OpeningMissing { owner, path } => Words::new(
            "gates' may_write",
            format!("{owner} names {path}, which does not exist and so is not opened"),
        )
        .remedy(format!("`mkdir -p {path}`, or take it out")),
        Fact::Leads { target, leads, is_walled } => self::leads(&target, &leads, is_walled),
        Fact::Proxies(names) => {
            let list: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            Words::new(
                "gates' proxy",
                format!("{} is set, and rows do not get it", names.join(", ")),
            )
            .remedy(format!("if rows need the network: `env_pass = [{}]` in [gates]", list.join(", ")))
        }
        Fact::WorkflowWithoutSource => {
            Words::new("CI workflow", "it does not say where pdca is built from")
                .remedy(format!("write `PDCA_SOURCE` and `PDCA_REV` in {}", scaffold::WORKFLOW_FILE))
        }
        Fact::Dependency { id, command } => Words::new(format!("needs {id}"), command),
        Fact::DependencyUnmet { id, command, reason, hint } => {
            let remedy =
                hint.unwrap_or_else(|| format!("provide `{id}`; the check is `{command}`"));
            Words::new(format!("needs {id}"), reason).remedy(remedy)
        }
        Fact::Leaf { name, argv } => Words::new(format!("leaf {name}"), argv.join(" ")),
        Fact::LeafStub { name } => {
            Words::new(format!("leaf {name}"), "stub: no program is called")
                .remedy(format!("set `mode = \"command\"` and `argv` of [leaves.{name}]"))
        }
        Fact::LeafWithoutArgv { name } => Words::new(format!("leaf {name}"), "no `argv`")
            .remedy(format!("give [leaves.{name}] an `argv`")),
        Fact::LeafMissing { name, program } => {
            Words::new(format!("leaf {name}"), format!("no program `{program}`"))
                .remedy(format!("install it, or mend [leaves.{name}]"))
        }
        Fact::SameFamily { builder, family } => Words::new(
            "independence",
            format!("{builder} and reviewer are both of family {family}"),
        )
        .remedy(
            "an agent of another family judges more independently: `agent` or `family` of [leaves.reviewer]",
        ),
        Fact::Instructions { role, place, digest } => {
            Words::new(format!("instructions {role}"), format!("{place}, sha256 {digest:.12}"))
        }
        Fact::InstructionsUnreadable { role, error } => {
            Words::new(format!("instructions {role}"), error)
                .remedy("mend the file on the target's branch: a text of at most 64 KiB")
        }
        Fact::InstructionsUncommitted { role, checkout, path } => Words::new(
            format!("instructions {role}"),
            format!(
                "{path} of the checkout is not what the branch has, so the {role} does not read it"
            ),
        )
        .remedy(commit_it(&checkout, &path)),
        Fact::InstructionsOutdated { role, file } => Words::new(
            format!("instructions {role}"),
            format!("{file} is from an earlier `pdca init` and instructs no leaf"),
        )
        .remedy(format!("`rm {file} && pdca init` writes the present text")),
        Fact::Host { name, slots, offer } => {
            let git = offer.git.unwrap_or_default();
            Words::new(format!("host {name}"), format!("{slots} slots, {}, {git}", offer.platform))
        }
        Fact::HostRefused { name, refusal } => {
            Words::new(format!("host {name}"), refusal.to_string()).remedy(refusal.remedy(&name))
        }
        Fact::ProbeInteractive { leaf } => Words::new(
            format!("probe {leaf}"),
            "not called: it talks to a person at the terminal",
        )
        .remedy("call it through the command of its role"),
        Fact::ProbeMissing { leaf, program } => Words::new(
            format!("probe {leaf}"),
            format!("not called: there is no program `{program}`"),
        )
        .remedy(format!("install it, or mend [leaves.{leaf}]")),
        Fact::ProbeWithoutArgv { leaf } => Words::new(format!("probe {leaf}"), "no `argv`")
            .remedy(format!("give [leaves.{leaf}] an `argv`")),
        Fact::NothingProbed => {
            Words::new("probe", "no leaf is a command, so nothing was called")
                .remedy("name an agent, such as `agent = \"claude\"` in [leaves.builder]")
        }
        Fact::ProbeFailed { leaf, error } => {
            Words::new(format!("probe {leaf}"), format!("could not be called: {error}"))
                .remedy("make the temporary directory writable, or set TMPDIR to another")
        }
    }
}

fn supervision(supervision: Result<(), SupervisionFault>) -> Words {
    let fault = match supervision {
        Ok(()) => return Words::new("supervision", "children are supervised"),
        Err(fault) => fault,
    };
    let again = "run `pdca doctor` again; if it stays, the host keeps pdca from starting itself";
    let (found, remedy) = match fault {
        SupervisionFault::NoTemporaryDirectory => {
            ("no temporary directory".to_owned(), "set TMPDIR to a writable directory")
        }
        SupervisionFault::TemporaryDirectoryNotUtf8 => {
            ("the temporary directory is not UTF-8".to_owned(), "set TMPDIR to one that is")
        }
        SupervisionFault::Ended(ending) => (ending.to_string(), again),
        SupervisionFault::Failed(error) => (error, again),
    };
    Words::new("supervision", found).remedy(remedy)
}

fn leaf_memory(cap: Option<u64>, support: Result<(), String>) -> Words {
    let what = "leaf memory";
    match (cap, support) {
        (None, Ok(())) => Words::new(what, "no cap; `leaf_memory_mb` in [driver] sets one"),
        (None, Err(why)) => Words::new(what, format!("no cap, and none could be held here: {why}")),
        (Some(cap), Ok(())) => {
            Words::new(what, format!("{} for each with all it starts, by looking", size(cap)))
        }
        (Some(_), Err(why)) => Words::new(what, format!("cannot be seen: {why}"))
            .remedy("nothing holds `leaf_memory_mb` here; use fewer lanes, or cap it from outside"),
    }
}

fn run(finding: RunFinding) -> Words {
    let RunFinding { id, kind, state } = finding;
    let (what, is_batch) = match kind {
        RunRowKind::Batch => (format!("run {id}"), true),
        RunRowKind::Integration => (format!("integration {id}"), false),
    };
    match state {
        RunFindingState::Unreadable { dir, error } => {
            let remedy = if is_batch {
                format!(
                    "restore {dir}/journal from a backup, or move the directory away: nothing was cut or changed"
                )
            } else {
                format!("restore {dir}/journal, or move the directory away")
            };
            Words::new(what, error).remedy(remedy)
        }
        RunFindingState::Blocked { phase, since, evidence } => {
            let remedy = if is_batch {
                "mend it and `pdca unblock`, or `pdca abort`"
            } else {
                "mend it, and `pdca integrate` goes on"
            };
            Words::new(what, format!("{phase} since {since}: {evidence}")).remedy(remedy)
        }
        RunFindingState::BundleBlocked { id, since, evidence } => {
            Words::new(what, format!("{id} is blocked since {since}: {evidence}"))
                .remedy(format!("mend it and `pdca unblock {id}`"))
        }
        RunFindingState::Driven { phase, since, driver } => {
            Words::new(what, format!("{phase} since {since}, by {driver}"))
        }
        RunFindingState::DriverUnknown { phase, since, driver } => {
            let from_here = if is_batch { " from here" } else { "" };
            let found =
                format!("{phase} since {since}; whether {driver} lives cannot be told{from_here}");
            Words::new(what, found).remedy(
                "look at it where it was started; nothing is touched until it is known to be dead",
            )
        }
        RunFindingState::DriverDead { phase, since, driver } => {
            let remedy = if is_batch {
                "`pdca batch` goes on with it; `pdca recover` sets it right and shows more"
            } else {
                "`pdca integrate` goes on with it; `pdca recover -n` says with what"
            };
            Words::new(what, format!("{phase} since {since}, left by {driver}, which is dead"))
                .remedy(remedy)
        }
        RunFindingState::Finished { driver } => {
            Words::new(what, format!("nothing is left to do in it, and {driver} did not end it"))
                .remedy("`pdca recover` ends it")
        }
    }
}

fn leads(target: &str, leads: &[Lead], is_walled: bool) -> Words {
    let mut leads: Vec<String> = leads.iter().map(lead).collect();
    leads.sort();
    leads.dedup();
    let more = leads.len().saturating_sub(SHOWN_LEADS);
    leads.truncate(SHOWN_LEADS);
    let mut found = leads.join("; ");
    if more > 0 {
        found = format!("{found}; and {more} more");
    }
    let what = format!("checkout of {target}");
    if is_walled {
        return Words::new(what, format!("{found}: gates find the lane there"));
    }
    Words::new(what, format!("{found}: not the change, but the checkout")).remedy(
        "have rows take the sources of the directory they run in, such as `cmd = \"PYTHONPATH=src pytest\"`, or install bwrap",
    )
}

fn lead(lead: &Lead) -> String {
    match lead {
        Lead::RowVariable { name, row } => format!("`{name}` in `env` of {row}"),
        Lead::Variable { name, is_passed: true } => format!("`{name}`, which `env_pass` names"),
        Lead::Variable { name, is_passed: false } => format!("`{name}`, which rows do not get"),
        Lead::EditableInstall(file) => format!("the editable install {file}"),
        Lead::Link(link) => format!("the link {link}"),
        Lead::FullPath(file) => format!("the full path in {file}"),
    }
}

fn commit_it(checkout: &Utf8Path, path: &Utf8Path) -> String {
    format!(
        "`git -C {checkout} add {path} && git -C {checkout} commit -m 'Instructions of leaves' -- {path}`"
    )
}

/// Describes the answer of a leaf.
fn probe_result(answer: &ProbeAnswer) -> String {
    let version = answer.version.as_deref().map_or_else(String::new, |text| format!("{text}, "));
    let class = match answer.class {
        ProbeClass::Done => "answered",
        ProbeClass::Throttled => "throttled",
        ProbeClass::Auth => "auth",
        ProbeClass::ContextTooLong => "context-too-long",
        ProbeClass::Refused => "refused",
        ProbeClass::Host => "host",
        ProbeClass::Failed => "failed",
    };
    let outcome = match (answer.class, &answer.said) {
        (_, None) => class.to_owned(),
        (ProbeClass::Done, Some(said)) => format!("answered `{said}`"),
        (_, Some(said)) => format!("{class}: {said}"),
    };
    let tokens = match (answer.input_tokens, answer.output_tokens) {
        (Some(read), Some(written)) => format!(", {read} tokens read and {written} written"),
        (None, _) | (_, None) => String::new(),
    };
    let cost = answer.cost_usd_micros.map_or_else(String::new, |cost| format!(", {cost}"));
    let wall = answer.wall.as_deref().map_or_else(String::new, |wall| format!(", behind {wall}"));
    format!("{version}{outcome} in {:.1} s{tokens}{cost}{wall}", answer.seconds)
}

/// Returns what helps, by the kind of failure and the agent.
fn probe_remedy(class: ProbeClass, leaf: &str, program: &str) -> Option<String> {
    Some(match class {
        ProbeClass::Done => return None,
        ProbeClass::Auth => match program {
            "claude" => "start `claude` once and sign in with /login, or set ANTHROPIC_API_KEY".to_owned(),
            "codex" => "`codex login`, or set OPENAI_API_KEY".to_owned(),
            "gemini" => "start `gemini` once and sign in, or set GEMINI_API_KEY".to_owned(),
            "opencode" => "`opencode auth login`".to_owned(),
            "aider" => "set the key of the model that `aider` is configured for, such as OPENAI_API_KEY".to_owned(),
            other => format!("sign `{other}` in, or name its key in `env_pass`"),
        },
        ProbeClass::Throttled => {
            "wait, or use another plan or agent; a run waits by itself up to `throttled.max_wait_secs`".to_owned()
        }
        ProbeClass::ContextTooLong => {
            format!("`{program}` sends more than its model takes: set a model with a larger window as `model`")
        }
        ProbeClass::Refused => "set another `model`".to_owned(),
        ProbeClass::Host => {
            "check the network, proxies and the base URL of the provider; `network = \"off\"` would also do this".to_owned()
        }
        ProbeClass::Failed => format!(
            "`pdca config show leaves.{leaf}` shows what is started; run that by hand to see what it says"
        ),
    })
}
