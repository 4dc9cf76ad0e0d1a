//! Why a call has no result, and what the error log says about it.

use std::{io, time::Duration};

use camino::Utf8PathBuf;
use pdca_process::{Ending, RunError};
use thiserror::Error;

use crate::{
    attempt::Flaw,
    call::BoxError,
    class::FailureClass,
    outcome::Guard,
    role::Role,
    stage::StageError,
    template::{NoValue, TemplateError},
};

/// Why a call has no result.
#[derive(Debug, Error)]
pub enum LeafError {
    /// The inputs could not be laid out.
    #[error("the inputs cannot be staged")]
    Stage(#[from] StageError),
    /// No program is configured.
    #[error("the {role} has no program")]
    NoProgram {
        /// The role.
        role: Role,
    },
    /// An argument with a wrong placeholder.
    #[error("an argument cannot be read")]
    Template(#[from] TemplateError),
    /// A placeholder that stands for nothing in this call.
    #[error("an argument cannot be filled in")]
    NoValue(#[from] NoValue),
    /// The prompt's file cannot be read.
    #[error("the prompt {path} cannot be read")]
    Prompt {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        source: BoxError,
    },
    /// A configured `writable` path would open what the role may not write.
    #[error("`writable` names {path}, which would open {tree}")]
    Writable {
        /// The path.
        path: Utf8PathBuf,
        /// The tree that must stay closed.
        tree: Utf8PathBuf,
    },
    /// A sandbox is required and the host has none. Nothing was started.
    #[error("the {role} requires a sandbox: {why}")]
    NoSandbox {
        /// The role.
        role: Role,
        /// What is missing.
        why: String,
    },
    /// The leaf talks with a person, and there is no terminal. Nothing was started.
    #[error(
        "the {role} talks with a person, and there is no terminal (`interactive` in [leaves.{role}])"
    )]
    NoTerminal {
        /// The role.
        role: Role,
    },
    /// The driver could not prepare the checkout.
    #[error("the checkout cannot be prepared")]
    Prepare(#[source] BoxError),
    /// The driver could not name the content of the fix.
    #[error("the reviewed checkout cannot be fingerprinted")]
    Fingerprint(#[source] BoxError),
    /// The bundle could not be digested.
    #[error("the bundle cannot be digested")]
    Digest(#[source] pdca_state::LoadError),
    /// What a crash left in the bundle could not be removed.
    #[error("the bundle cannot be cleared of unfinished files")]
    Sweep(#[source] pdca_state::WriteError),
    /// The job directory cannot be used.
    #[error("the job directory cannot be used")]
    Job(#[source] io::Error),
    /// The output of the leaf cannot be read.
    #[error("the leaf's output cannot be read")]
    Log(#[source] pdca_process::LogError),
    /// The leaf could not be run at all.
    #[error("the leaf cannot be run")]
    Run(#[source] RunError),
    /// There is no such program, or it cannot be executed.
    #[error("the {role} cannot be started: {why}")]
    NotStarted {
        /// The role.
        role: Role,
        /// What the system said.
        why: String,
    },
    /// The host, not the leaf, is at fault. No attempt was spent on it.
    #[error("the host ended the {role}: {ending}")]
    Host {
        /// The role.
        role: Role,
        /// How.
        ending: Ending,
    },
    /// Called off. The next call goes on from here.
    #[error("cancelled")]
    Cancelled,
    /// It was told to come back later for longer than configured. No attempt was spent on it.
    #[error("{}{}", throttled(*role, *times, *waited), quoted(said.as_deref()))]
    Throttled {
        /// The role.
        role: Role,
        /// How often.
        times: u32,
        /// How long was waited in all.
        waited: Duration,
        /// The agent's words about it.
        said: Option<String>,
        /// The text for the error log.
        log: String,
    },
    /// The agent cannot do it, for a reason that trying again does not change at once.
    #[error("{}", agent_failed(*role, agent, *class, said))]
    Agent {
        /// The role.
        role: Role,
        /// The agent.
        agent: String,
        /// The kind of reason.
        class: FailureClass,
        /// The agent's words.
        said: String,
        /// The text for the error log.
        log: String,
    },
    /// All attempts failed.
    #[error("the {role} failed after {attempts} attempts: {ending}{}", quoted(said.as_deref()))]
    Failed {
        /// The role.
        role: Role,
        /// How many.
        attempts: u32,
        /// How the last one ended.
        ending: Ending,
        /// The agent's own last words.
        said: Option<String>,
        /// The text for the error log.
        log: String,
    },
    /// The last attempt ended well and left nothing of use.
    #[error("the {role} left no artifact after {attempts} attempts")]
    NoArtifact {
        /// The role.
        role: Role,
        /// How many attempts were made.
        attempts: u32,
        /// What is wrong with what it left.
        #[source]
        flaw: Flaw,
        /// The text for the error log.
        log: String,
    },
    /// An independent leaf's word counts for nothing: the bundle or the fix changed meanwhile.
    #[error("the {role} is void: {} while it ran", changes(changed, *fix))]
    Voided {
        /// The role.
        role: Role,
        /// The files of the bundle that changed; `.` where the change was found by a later driver,
        /// which knows that the bundle differs but not where. Empty if only the fix did.
        changed: Vec<Utf8PathBuf>,
        /// Whether the reviewed checkout changed.
        fix: bool,
        /// What held the leaf; not known where its driver ended before it did.
        guard: Option<Guard>,
        /// The text for the error log.
        log: String,
    },
}

impl LeafError {
    /// Returns true if the agent's login was not accepted on this machine.
    pub fn is_signed_out(&self) -> bool {
        matches!(self, Self::Agent { class: FailureClass::Auth, .. })
    }

    /// The text for the role's `*.error.log`, where the leaf itself is what failed.
    pub fn error_log(&self) -> Option<&str> {
        match self {
            Self::Throttled { log, .. }
            | Self::Agent { log, .. }
            | Self::Failed { log, .. }
            | Self::NoArtifact { log, .. }
            | Self::Voided { log, .. } => Some(log),
            Self::Stage(_)
            | Self::NoProgram { .. }
            | Self::Template(_)
            | Self::NoValue(_)
            | Self::Prompt { .. }
            | Self::Writable { .. }
            | Self::NoSandbox { .. }
            | Self::NoTerminal { .. }
            | Self::Prepare(_)
            | Self::Fingerprint(_)
            | Self::Digest(_)
            | Self::Sweep(_)
            | Self::Job(_)
            | Self::Log(_)
            | Self::Run(_)
            | Self::NotStarted { .. }
            | Self::Host { .. }
            | Self::Cancelled => None,
        }
    }
}

fn quoted(said: Option<&str>) -> String {
    said.map(|said| format!(": {said}")).unwrap_or_default()
}

fn throttled(role: Role, times: u32, waited: Duration) -> String {
    match (times, waited.as_secs()) {
        // A person goes on without its agent, which another call found limited.
        (0, _) => format!("the {role} was not called, because its agent is limited"),
        (1, 0) => format!("the {role} is limited, and was not waited for"),
        (times, waited) => {
            format!("the {role} was throttled {times} times, for {waited} s of waiting")
        }
    }
}

fn agent_failed(role: Role, agent: &str, class: FailureClass, said: &str) -> String {
    match class {
        FailureClass::Auth => format!("the {role} `{agent}` is not signed in: {said}"),
        FailureClass::Host => format!("the {role} `{agent}` cannot reach its model: {said}"),
        FailureClass::ContextTooLong | FailureClass::Refused | FailureClass::Throttled => {
            format!("the {role} `{agent}` gave up ({class}): {said}")
        }
    }
}

pub(crate) fn changes(files: &[Utf8PathBuf], fix: bool) -> String {
    let file = |file: &Utf8PathBuf| match file.as_str() {
        "." => "the bundle changed".to_owned(),
        name => format!("{name} changed"),
    };
    let fix = fix.then(|| "the reviewed checkout changed".to_owned());
    files.iter().map(file).chain(fix).collect::<Vec<_>>().join(", ")
}
