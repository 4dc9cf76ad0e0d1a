//! One call of one leaf: what it is given, and where it may go.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{Cancel, SandboxKind, SandboxMode};
use tracing::{debug, debug_span};

use crate::{
    breaker::Breaker,
    class::WallClock,
    command,
    config::{LeafConfig, LeafMode, PromptVia},
    error::LeafError,
    instructions::Instructions,
    outcome::{LeafEvent, LeafOutcome},
    pause::{LongWait, WaitDecision},
    role::Role,
    session::LeafCall,
    stage::Inputs,
    stub,
};

/// An error of the driver's own, passed through.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// One call, described completely before anything happens.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The leaf.
    pub config: &'a LeafConfig,
    /// Its role and what it may see.
    pub inputs: &'a Inputs,
    /// The job directory, named by a key over all that determines the result. The driver removes
    /// it once the result is published, or to have a finished failure tried afresh.
    pub job: &'a Utf8Path,
    /// Where things are.
    pub places: CallPaths<'a>,
    /// What the leaf is told about the change.
    pub facts: CallFacts<'a>,
    /// A person sits at the terminal. Without one an interactive leaf is refused.
    pub has_terminal: bool,
    /// Start nothing, whatever the configuration says.
    pub force_stub: bool,
    /// The model that the brief asks for, in place of the configured one.
    pub model: Option<&'a str>,
    /// The effort that the brief asks for, in place of the configured one.
    pub effort: Option<&'a str>,
    /// The session of an earlier call to go on in. One that cannot be resumed is given up for a new one, once, and costs no
    /// attempt.
    pub session: Option<&'a str>,
    /// A lock that is held while anything of the leaf is alive; see
    /// [`Spec::hold`](pdca_process::Spec::hold).
    pub hold: Option<&'a Utf8Path>,
    /// How many bytes of memory the leaf may have; see [`Spec::max_memory`](pdca_process::Spec::max_memory).
    pub max_memory: Option<u64>,
    /// What other calls of the run learned about agents.
    pub breaker: Option<&'a Breaker>,
    /// The clock on the wall, for limits that end at a time of day.
    pub clock: Option<WallClock>,
    /// What the kernel can enforce; asked where absent.
    pub support: Option<&'a SandboxKind>,
    /// Called before each try that is really started, with its number from 1: the place to bring a
    /// checkout back to where an attempt begins.
    pub prepare: Option<&'a dyn Fn(u32) -> Result<(), BoxError>>,
    /// Names the present content of the fix, such as the id of its tree. For an independent role
    /// it must be the same before and after.
    pub fingerprint: Option<&'a dyn Fn() -> Result<String, BoxError>>,
    /// Says whether the checkout holds a change. Asked of a builder that ended well, left no file and
    /// printed the words of a limit: work that is there is kept.
    pub has_work: Option<&'a dyn Fn() -> bool>,
    /// Asks a person about a limit that ends later than `max_wait_secs` allows. Without it the call waits, for a day at most.
    pub ask_wait: Option<&'a dyn Fn(&LongWait) -> WaitDecision>,
}

impl<'a> Call<'a> {
    /// A call with nothing but what every call has.
    pub fn new(
        config: &'a LeafConfig,
        inputs: &'a Inputs,
        job: &'a Utf8Path,
        places: CallPaths<'a>,
    ) -> Self {
        Self {
            config,
            inputs,
            job,
            places,
            facts: CallFacts::default(),
            has_terminal: true,
            force_stub: false,
            model: None,
            effort: None,
            session: None,
            hold: None,
            max_memory: None,
            breaker: None,
            clock: None,
            support: None,
            prepare: None,
            fingerprint: None,
            has_work: None,
            ask_wait: None,
        }
    }

    /// Whether nothing will be started.
    pub fn is_stub(&self) -> bool {
        self.force_stub || self.config.mode == LeafMode::Stub
    }

    /// Returns the sha256 over all that determines the result and is known here: inputs,
    /// configuration, prompt, model, gates, base. It is part of the key that names [`Call::job`],
    /// and does not depend on that path.
    pub fn digest(&self) -> Result<String, LeafError> {
        // A price that is corrected between two drivers must not have a finished call made again.
        let config = json(&LeafConfig { cost_per_call: None, price: None, ..self.config.clone() });
        let prompt = command::raw_prompt(self)?.unwrap_or_default();
        let mode = if self.is_stub() { "stub" } else { "command" };
        // The session is left out: it decides what the agent remembers, not what is asked of it,
        // and a driver that comes back must find the same job (decision 036).
        let facts = self.facts;
        let known =
            [self.model(), self.effort, facts.gates, facts.base, facts.brief_base, facts.target];
        let inputs = self.inputs.digest();
        let parts = [inputs.as_str(), &config, &prompt, mode].into_iter().map(Some).chain(known);
        let mut hashed = Vec::new();
        for part in parts {
            // Lengths keep the parts from running into each other, and none apart from an empty one.
            let length = part.map_or(u64::MAX, |part| part.len() as u64);
            hashed.extend_from_slice(&length.to_le_bytes());
            hashed.extend_from_slice(part.unwrap_or_default().as_bytes());
        }
        Ok(pdca_state::sha256_hex(&hashed))
    }

    /// The name under which the breaker knows the agent: the configured one, or the program's.
    pub fn agent(&self) -> &'a str {
        let config = self.config;
        let program = || config.argv.first().and_then(|program| program.rsplit('/').next());
        config.agent.as_deref().or_else(program).unwrap_or_default()
    }

    /// The instructions that are part of the prompt; none where nothing is started or no prompt is wanted.
    pub fn instructions(&self) -> Option<&'a Instructions> {
        let has_prompt = !self.is_stub() && self.config.prompt_via() != PromptVia::None;
        self.inputs.instructions().filter(|_| has_prompt)
    }

    /// The model that is asked for.
    pub fn model(&self) -> Option<&'a str> {
        self.model.or(self.config.model.as_deref())
    }

    pub(crate) fn effort(&self) -> Option<&'a str> {
        self.effort.or(self.config.effort.as_deref())
    }
}

/// Where things are, and which of them are out of bounds.
#[derive(Clone, Copy, Debug)]
pub struct CallPaths<'a> {
    /// The directory of `pdca.toml`. No leaf writes there, `writable` apart.
    pub workspace: &'a Utf8Path,
    /// Where the bundles are. No leaf writes there; an independent one cannot read it.
    pub bundle_root: &'a Utf8Path,
    /// Where the leaf works, if it has a checkout: a builder the lane's, a reviewer a throwaway
    /// copy of it. It is the leaf's current directory, and its own to write.
    pub worktree: Option<&'a Utf8Path>,
    /// The lane's directory for temporary files, where it has one. The leaf's own to write.
    pub tmp: Option<&'a Utf8Path>,
    /// The checkout that holds the change under review. An independent role cannot write it.
    pub fix: Option<&'a Utf8Path>,
    /// The user's own checkout. No leaf writes there.
    pub primary: Option<&'a Utf8Path>,
    /// Further places that no leaf writes, such as the other lanes.
    pub kept: &'a [Utf8PathBuf],
    /// Further places that an independent role cannot read.
    pub hidden: &'a [Utf8PathBuf],
}

/// What a leaf is told about the change, as environment.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// `PDCA_BASE`: the commit the change starts from.
    pub base: Option<&'a str>,
    /// `PDCA_BRIEF_BASE`: the branch the brief names.
    pub brief_base: Option<&'a str>,
    /// `PDCA_TARGET`: the name of the target.
    pub target: Option<&'a str>,
    /// `PDCA_GIT_COMMON_DIR`: the git directory of the primary, from whose objects the checkout borrows.
    pub git_common_dir: Option<&'a str>,
    /// `PDCA_ATTEMPT`: the number of the attempt at the bundle, from 1.
    pub attempt: u32,
    /// `PDCA_PUSH`: the remote and the refspec that the leaf may push; `None` if it may push nothing.
    pub push: Option<&'a str>,
    /// The gates that judge the change, one line each with its command.
    pub gates: Option<&'a str>,
    /// `PDCA_RUN`: the run this belongs to.
    pub run: Option<&'a str>,
    /// The program that drives, for hooks that ask it; `pdca` where it is not known.
    pub program: Option<&'a str>,
    /// What a lane adds: `PDCA_LANE`, `PDCA_PORT_BASE`, ….
    pub lane: &'a BTreeMap<String, String>,
}

impl Default for CallFacts<'_> {
    fn default() -> Self {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        Self {
            base: None,
            brief_base: None,
            target: None,
            git_common_dir: None,
            attempt: 1,
            push: None,
            gates: None,
            run: None,
            program: None,
            lane: &NONE,
        }
    }
}

/// Has a leaf do its part, and returns what it left; the bundle is not written.
///
/// While it runs, nobody but the leaf is expected to change the bundle: whatever else the driver
/// has to publish into the same bundle comes before or after.
pub fn call(
    call: &Call<'_>,
    report: &mut dyn FnMut(LeafEvent),
    cancel: &Cancel,
) -> Result<LeafOutcome, LeafError> {
    let _span = debug_span!("leaf", role = %call.inputs.role()).entered();
    if call.is_stub() {
        debug!("filled by a stub");
        return stub::fill(call);
    }
    if call.config.interactive && !call.has_terminal {
        return Err(LeafError::NoTerminal { role: call.inputs.role() });
    }
    require_sandbox(call, call.inputs.role())?;
    LeafCall::open(call).run(report, cancel)
}

fn json(config: &LeafConfig) -> String {
    serde_json::to_string(config).expect("because all its keys are strings")
}

fn require_sandbox(call: &Call<'_>, role: Role) -> Result<(), LeafError> {
    match call.config.sandbox {
        // Whether `bwrap` can is found when it is started.
        SandboxMode::Auto | SandboxMode::Off | SandboxMode::Bwrap => return Ok(()),
        SandboxMode::Require | SandboxMode::Landlock => {}
    }
    let why = match call.support.cloned().unwrap_or_else(pdca_process::wall_support) {
        SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. } => return Ok(()),
        SandboxKind::NotAvailable { why } => why,
        SandboxKind::Off => "there is none".to_owned(),
    };
    Err(LeafError::NoSandbox { role, why })
}
