//! One call of a leaf with a harmless prompt, to see whether it answers.
//!
//! The call is a real one: the leaf's own arguments, environment and wall, in a checkout that nobody needs. It costs what the
//! agent's provider asks for a few words, so it is made only where a person asks for it.

use std::time::Duration;

use camino::Utf8Path;
use pdca_process::{Cancel, SandboxKind};
use pdca_state::{BundleId, BundleRoot};

use crate::{
    call::{BoxError, Call, CallFacts, CallPaths, call},
    class::FailureClass,
    config::{LeafConfig, Throttled},
    error::LeafError,
    outcome::{LeafEvent, LeafOutcome},
    protocol::{ProtocolReader, Transcript},
    role::Role,
    stage::Inputs,
};

/// The prompt.
const PROMPT: &str = "This is a test of the connection. Answer with the one word ready. Call no tool, read no file and change nothing.";
/// The brief.
const BRIEF: &str = "# Brief: a test of the connection\n\n- **Slug:** probe\n";
/// The longest that an answer may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// The answer of a leaf to a harmless prompt.
#[derive(Debug)]
pub struct Probed {
    /// The end.
    pub ending: ProbeEnding,
    /// The time that it took.
    pub duration: Duration,
    /// The wall it ran behind, where it ran.
    pub held: Option<SandboxKind>,
    /// All that its protocol told: message, model, tokens, cost.
    pub transcript: Transcript,
}

/// The end of a probe.
#[derive(Debug)]
pub enum ProbeEnding {
    /// It answered.
    Answered,
    /// The agent said what keeps it from its work.
    Diagnosed {
        /// The kind of reason.
        class: FailureClass,
        /// The agent's words.
        said: String,
    },
    /// It ended in another way, or could not be started.
    Failed {
        /// In words.
        why: String,
    },
}

/// Calls a leaf once. `dir` is a directory of its own with a repository at `checkout` in it; the caller removes it.
pub fn probe(
    config: &LeafConfig,
    role: Role,
    dir: &Utf8Path,
    facts: CallFacts<'_>,
    cancel: &Cancel,
) -> Result<Probed, BoxError> {
    let workspace = dir.join("workspace");
    let root = BundleRoot::new(workspace.join("results"));
    let bundle = root.create(&"1".parse::<BundleId>()?, BRIEF)?;
    // Which arguments it gets is in the configuration; the role says what it may touch and what counts as an answer.
    let role = if role.is_independent() { Role::Reviewer } else { Role::Builder };
    let inputs = Inputs::gather(role, &bundle)?;
    // A probe has a person waiting for it, so neither the hour of a build nor a leaf without a
    // limit counts here.
    let timeout = config.timeout().unwrap_or(PATIENCE).min(PATIENCE);
    let config = LeafConfig {
        prompt: Some(PROMPT.to_owned()),
        prompt_file: None,
        // One call says whether the leaf answers, and each call costs.
        retries: 0,
        timeout_secs: Some(timeout.into()),
        stall_secs: None,
        // A limit is told, not waited for.
        throttled: Throttled {
            backoff_secs: Duration::ZERO.into(),
            max_wait_secs: Duration::ZERO.into(),
            ..config.throttled.clone()
        },
        ..config.clone()
    };
    let (checkout, job) = (dir.join("checkout"), dir.join("job"));
    let places = CallPaths {
        workspace: &workspace,
        bundle_root: root.path(),
        worktree: Some(&checkout),
        tmp: None,
        fix: None,
        primary: None,
        kept: &[],
        hidden: &[],
    };
    let request = Call { facts, ..Call::new(&config, &inputs, &job, places) };
    let (mut held, mut found) = (None, None);
    let begun = std::time::Instant::now();
    let outcome = call(
        &request,
        &mut |event| match event {
            LeafEvent::Ended { held: by, .. } => held = Some(by),
            LeafEvent::Diagnosed { class, evidence } => found = Some((class, evidence)),
            LeafEvent::Attempt { .. }
            | LeafEvent::Started { .. }
            | LeafEvent::Output { .. }
            | LeafEvent::NotResumed { .. }
            | LeafEvent::Throttled { .. } => {}
        },
        cancel,
    );
    let duration = begun.elapsed();
    let printed = pdca_process::read_printed(&job.join("try-001")).ok().flatten();
    let printed = printed.map(|printed| printed.bytes).unwrap_or_default();
    let transcript = ProtocolReader::read(config.protocol, &printed);
    Ok(Probed { ending: ending(outcome, found), duration, held, transcript })
}

fn ending(
    outcome: Result<LeafOutcome, LeafError>,
    found: Option<(FailureClass, String)>,
) -> ProbeEnding {
    match (outcome, found) {
        (Ok(_), _) => ProbeEnding::Answered,
        (Err(LeafError::Agent { class, said, .. }), _) | (Err(_), Some((class, said))) => {
            ProbeEnding::Diagnosed { class, said }
        }
        (Err(error), None) => ProbeEnding::Failed { why: pdca_state::chain(&error) },
    }
}
