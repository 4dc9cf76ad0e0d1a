//! `--probe`: each configured leaf is called once for real.

use std::time::Duration;

use camino::Utf8Path;
use pdca_driver::WorkspaceConfig;
use pdca_leaves::{CallFacts, FailureClass, LeafConfig, LeafMode, ProbeEnding, Probed, Role};
use pdca_process::{Cancel, Tool};
use pdca_state::Money;
use pdca_state::text::printable;
use serde::Serialize;

use super::{Fact, Finding, Health};
use crate::OpenWorkspace;
use crate::config::has_program;

/// The longest that a program may take to tell its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(30);

/// The answer of a leaf.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeAnswer {
    pub class: ProbeClass,
    /// The version, as the program tells it.
    pub version: Option<String>,
    /// The model that answered, where it was told.
    pub model: Option<String>,
    /// The last message, or the words of the failure.
    pub said: Option<String>,
    pub seconds: f64,
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// In millionths of a dollar.
    pub cost_usd_micros: Option<Money>,
    /// The wall that it ran behind.
    pub wall: Option<String>,
}

/// The end of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeClass {
    /// The leaf answered.
    Done,
    Throttled,
    Auth,
    ContextTooLong,
    Refused,
    Host,
    /// It failed for another reason.
    Failed,
}

/// Probes every leaf that is a command, and returns what came back.
pub(super) fn findings(open: &OpenWorkspace<'_>, config: &WorkspaceConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (spec, name, leaf) in open.workspace.config.leaves.all() {
        if config.force_stubs || leaf.mode == LeafMode::Stub {
            continue;
        }
        let name = name.to_owned();
        findings.push(match leaf.argv.first() {
            _ if leaf.interactive => Finding::warning(Fact::ProbeInteractive { leaf: name }),
            Some(program) if has_program(open.environment, &config.dirs.root, program) => {
                probed(name, leaf, spec.role, config, open)
            }
            Some(program) => {
                let program = program.clone();
                Finding::broken(Fact::ProbeMissing { leaf: name, program })
            }
            None => Finding::broken(Fact::ProbeWithoutArgv { leaf: name }),
        });
    }
    if findings.is_empty() {
        findings.push(Finding::warning(Fact::NothingProbed));
    }
    findings
}

fn probed(
    name: String,
    leaf: &LeafConfig,
    role: Role,
    config: &WorkspaceConfig,
    open: &OpenWorkspace<'_>,
) -> Finding {
    let call = || -> Result<Probed, pdca_leaves::BoxError> {
        let dir = tempfile::tempdir()?;
        let dir = Utf8Path::from_path(dir.path()).ok_or("the temporary directory is not UTF-8")?;
        let dir = dir.canonicalize_utf8()?;
        checkout(&dir.join("checkout"))?;
        let program = open.machine.program.as_deref().map(Utf8Path::as_str);
        let facts = CallFacts { program, ..CallFacts::default() };
        pdca_leaves::probe(leaf, role, &dir, facts, &Cancel::new())
    };
    match call() {
        Ok(probed) => answered(name, leaf, version(leaf, config), &probed),
        Err(error) => Finding::broken(Fact::ProbeFailed { leaf: name, error: error.to_string() }),
    }
}

/// Makes a repository with one commit that nobody needs.
fn checkout(path: &Utf8Path) -> Result<(), pdca_leaves::BoxError> {
    fs_err::create_dir_all(path)?;
    fs_err::write(path.join("README.md"), "A checkout to try a leaf in.\n")?;
    let who =
        ["-c", "user.name=pdca", "-c", "user.email=pdca@localhost", "-c", "commit.gpgsign=false"];
    // The settings of the user apply. Their hooks and signatures are not for a commit that only a probe sees.
    let commit = [&who[..], &["commit", "-q", "--no-verify", "-m", "first"]].concat();
    for words in [["init", "-q"].as_slice(), &["add", "README.md"], &commit] {
        let said = Tool::new("git").args(words).cwd(path).run()?;
        if !said.success() {
            return Err(String::from_utf8_lossy(&said.stderr).trim().to_owned().into());
        }
    }
    Ok(())
}

/// Asks a program with a preset for its version. What another program does with `--version` is not known.
fn version(leaf: &LeafConfig, config: &WorkspaceConfig) -> Option<String> {
    let program = leaf.argv.first()?;
    let name = program.rsplit('/').next()?;
    pdca_leaves::Preset::named(name)?;
    let program = if program.contains('/') {
        config.dirs.root.join(program).into_string()
    } else {
        program.clone()
    };
    let said = Tool::new(program).arg("--version").timeout(VERSION_PATIENCE).run().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

fn answered(name: String, leaf: &LeafConfig, version: Option<String>, probed: &Probed) -> Finding {
    let transcript = &probed.transcript;
    let (class, said) = match &probed.ending {
        ProbeEnding::Answered => (ProbeClass::Done, transcript.message.clone()),
        ProbeEnding::Diagnosed { class, said } => (class_of(*class), Some(said.clone())),
        ProbeEnding::Failed { why } => (ProbeClass::Failed, Some(why.clone())),
    };
    let answer = ProbeAnswer {
        class,
        version,
        model: transcript.model.clone(),
        said: said.map(|said| one_line(&said)),
        seconds: probed.duration.as_secs_f64(),
        input_tokens: transcript.usage.map(|usage| usage.input),
        output_tokens: transcript.usage.map(|usage| usage.output),
        cost_usd_micros: transcript.cost,
        wall: probed.held.as_ref().map(ToString::to_string),
    };
    let health = match class {
        ProbeClass::Done => Health::Ok,
        ProbeClass::Throttled => Health::Warning,
        ProbeClass::Auth
        | ProbeClass::ContextTooLong
        | ProbeClass::Refused
        | ProbeClass::Host
        | ProbeClass::Failed => Health::Broken,
    };
    let program = leaf.argv.first().cloned();
    Finding { health, fact: Fact::Probed { leaf: name, program, answer: Box::new(answer) } }
}

/// The first line of a text, cut where it is long.
fn one_line(text: &str) -> String {
    let text = printable(text.lines().next().unwrap_or_default());
    text.chars().take(200).collect()
}

fn class_of(class: FailureClass) -> ProbeClass {
    match class {
        FailureClass::Throttled => ProbeClass::Throttled,
        FailureClass::Auth => ProbeClass::Auth,
        FailureClass::ContextTooLong => ProbeClass::ContextTooLong,
        FailureClass::Refused => ProbeClass::Refused,
        FailureClass::Host => ProbeClass::Host,
    }
}
