//! `[leaves]` of `pdca.toml`: one table per role, and the advisers.

use std::{collections::BTreeMap, time::Duration};

use camino::Utf8PathBuf;
use pdca_process::{Network, SandboxMode};
use pdca_state::{Dollars, Money, Usage, WhenText};
use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;
use crate::role::{ROLES, Role, RoleSpec};

/// `[leaves]`: who fills which artifact.
///
/// ```
/// # let text = r#"
/// [builder]
/// mode = "command"
/// argv = ["my-agent", "--model", "{model}", "--dir", "{worktree}"]
/// model = "large"
/// retries = 1
/// throttled = { exit_codes = [75], backoff_secs = 30, max_wait_secs = 3600 }
///
/// [[advisory]]
/// id = "security"
/// mode = "command"
/// argv = ["./advisers/security.sh", "{inputs}"]
/// # "#;
/// let leaves: pdca_leaves::Leaves = toml::from_str(text).unwrap();
/// assert!(leaves.validate().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Leaves {
    /// How much of each call's output is kept in the bundle, in KiB; see [`Leaves::transcript_bytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_kb: Option<u32>,
    /// Fills `brief.md`.
    pub planner: LeafConfig,
    /// Changes the checkout, or writes `patch.diff`; leaves `build-notes.md`.
    pub builder: LeafConfig,
    /// Fills `check-review.md`.
    pub reviewer: LeafConfig,
    /// Talks to a person at sign-off and proposes a decision.
    pub signoff: LeafConfig,
    /// Fills the commit message, the pull request's text and the tracker comment.
    pub publisher: LeafConfig,
    /// Fills an entry of the Act log.
    pub act: LeafConfig,
    /// Resolves what conflicts with the branch, in a checkout of its own.
    pub resolver: LeafConfig,
    /// Builders in place of `builder` for some briefs or from some attempt on; the first that applies is called. Each is
    /// complete: whoever loads the configuration lays its keys over those of `builder`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub builder_variant: Vec<LeafConfig>,
    /// Further advisers beside the reviewer, as independent as it is.
    pub advisory: Vec<LeafConfig>,
    /// Advisers on a brief, asked once a planner left it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan_advisory: Vec<LeafConfig>,
}

impl Leaves {
    /// How much of each call's output is kept where nothing is configured, in KiB.
    pub const DEFAULT_TRANSCRIPT_KB: u32 = 1024;

    /// How much of each call's output is kept in the bundle, in bytes; 0 keeps none.
    pub fn transcript_bytes(&self) -> usize {
        let kib = self.transcript_kb.unwrap_or(Self::DEFAULT_TRANSCRIPT_KB);
        usize::try_from(kib).unwrap_or(usize::MAX).saturating_mul(1024)
    }

    /// The leaf of a role. Advisers are many: see [`Leaves::listed`].
    pub fn of(&self, role: Role) -> Option<&LeafConfig> {
        match role {
            Role::Planner => Some(&self.planner),
            Role::Builder => Some(&self.builder),
            Role::Reviewer => Some(&self.reviewer),
            Role::PlanAdviser | Role::Adviser => None,
            Role::Signoff => Some(&self.signoff),
            Role::Publisher => Some(&self.publisher),
            Role::Act => Some(&self.act),
            Role::Resolver => Some(&self.resolver),
        }
    }

    /// The leaves of a role that several may have; none of any other role.
    pub fn listed(&self, role: Role) -> &[LeafConfig] {
        match role {
            Role::PlanAdviser => &self.plan_advisory,
            Role::Adviser => &self.advisory,
            Role::Planner
            | Role::Builder
            | Role::Reviewer
            | Role::Signoff
            | Role::Publisher
            | Role::Act
            | Role::Resolver => &[],
        }
    }

    /// Every leaf of a list with its role and its place there.
    pub fn all_listed(&self) -> impl Iterator<Item = (&'static RoleSpec, usize, &LeafConfig)> {
        let of = |spec: &'static RoleSpec| {
            let leaves = self.listed(spec.role).iter().enumerate();
            leaves.map(move |(place, leaf)| (spec, place, leaf))
        };
        ROLES.iter().flat_map(of)
    }

    /// Every leaf with its role and its name, advisers after the rest.
    pub fn all(&self) -> impl Iterator<Item = (&'static RoleSpec, &str, &LeafConfig)> {
        let single = |spec: &'static RoleSpec| Some((spec, spec.name, self.of(spec.role)?));
        let listed = self
            .all_listed()
            .map(|(spec, _, leaf)| (spec, leaf.id.as_deref().unwrap_or(spec.name), leaf));
        ROLES.iter().filter_map(single).chain(listed)
    }
}

/// One leaf: what is started, and how far it is trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeafConfig {
    /// The name of an adviser; no other leaf has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What an adviser looks for, for its prompt; no other leaf has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The briefs that a variant or an adviser is for; no other leaf has a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<WhenText>,
    /// The attempt, from 1, from which on a variant is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Whether anything is started at all.
    pub mode: LeafMode,
    /// Whether the leaf talks to the person at the terminal.
    pub interactive: bool,
    /// The program and its arguments, with placeholders. A relative program that has a `/` in it
    /// is looked for in the workspace.
    pub argv: Vec<String>,
    /// What follows on `argv` where there is a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_args: Vec<String>,
    /// What follows on `argv` where there is an effort.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effort_args: Vec<String>,
    /// What follows on `argv` where a session is resumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resume_args: Vec<String>,
    /// Has the next attempt go on in the session of the last one, or not. Absent: where the leaf finds everything as it
    /// left it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<bool>,
    /// The form of what it prints.
    #[serde(skip_serializing_if = "Protocol::is_text")]
    pub protocol: Protocol,
    /// The prompt in place of the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// A file with the prompt, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_file: Option<Utf8PathBuf>,
    /// How the prompt reaches the leaf; see [`LeafConfig::prompt_via`].
    #[serde(rename = "prompt_via", skip_serializing_if = "Option::is_none")]
    pub prompt_by: Option<PromptVia>,
    /// The longest an attempt may take; see [`LeafConfig::timeout`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<Seconds>,
    /// The longest an attempt may go without output or a changed file. Absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_secs: Option<Seconds>,
    /// How many failed attempts are followed by another.
    pub retries: u32,
    /// What is no failure but "come back later".
    #[serde(alias = "throttle")]
    pub throttled: Throttled,
    /// Whether the kernel keeps the leaf to what its role may touch.
    pub sandbox: SandboxMode,
    /// Whether the leaf reaches the network; only the wall `bwrap` can take it away.
    pub network: Network,
    /// Further places it may write, with placeholders, relative to the workspace.
    pub writable: Vec<String>,
    /// Further environment, with placeholders.
    pub env: BTreeMap<String, String>,
    /// Who the commits are by that the driver makes of this leaf's work: `Name <address>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Credentials of the driver's environment that the leaf gets all the same.
    pub env_pass: Vec<String>,
    /// What a call costs, in dollars, where the agent tells no cost: an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_call: Option<Dollars>,
    /// What tokens cost, where the agent tells them and no cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Carried to the leaf as `PDCA_FAMILY` and `{family}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Carried to the leaf as `PDCA_MODEL` and `{model}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Carried to the leaf as `PDCA_EFFORT` and `{effort}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Carried to the leaf as `PDCA_AGENT` and `{agent}`. Where it names a [`Preset`](crate::Preset) and there is no
    /// `argv`, whoever loads the configuration lays the other keys over [`Preset::stanza`](crate::Preset::stanza).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl LeafConfig {
    /// The wall clock of an attempt where none is configured. A person is never hurried.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3600);

    /// How the prompt reaches the leaf: on stdin, or as a file where a person has the terminal.
    pub fn prompt_via(&self) -> PromptVia {
        self.prompt_by.unwrap_or(if self.interactive { PromptVia::File } else { PromptVia::Stdin })
    }

    /// Returns whether the cost of a call is known once it has ended: the agent tells it, or it can be computed.
    pub fn tells_cost(&self) -> bool {
        self.protocol.tells_cost()
            || self.cost_per_call.is_some()
            || (self.price.is_some() && self.protocol.tells_usage())
    }

    /// The longest an attempt may take.
    pub fn timeout(&self) -> Option<Duration> {
        let default = (!self.interactive).then_some(Self::DEFAULT_TIMEOUT);
        self.timeout_secs.map(Seconds::get).or(default)
    }
}

/// `price`: dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// For tokens read.
    pub input: Dollars,
    /// For those of them that came from a cache; as `input` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Dollars>,
    /// For tokens written.
    pub output: Dollars,
}

impl Price {
    /// The price of these tokens, rounded up to the millionth of a dollar.
    pub fn of(&self, usage: Usage) -> Money {
        // The numbers come out of an agent's output, which may claim more cached tokens than it
        // read.
        let cached = usage.cached.min(usage.input);
        let parts = [
            (usage.input - cached, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        let product =
            |(tokens, price): (u64, Dollars)| u128::from(tokens) * u128::from(price.0.micros());
        // Rounded up once, over the sum: a cap must not be kept by fractions that were cut off call
        // by call (decision 034).
        let micros = parts.into_iter().map(product).sum::<u128>().div_ceil(1_000_000);
        Money::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// Whether a leaf is a program or a stand-in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeafMode {
    /// A deterministic stand-in that says it is one.
    #[default]
    Stub,
    /// The program in `argv`.
    Command,
}

/// How a prompt reaches the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptVia {
    /// On standard input, which then ends.
    Stdin,
    /// As a file, named by `PDCA_PROMPT_FILE`; standard input is empty.
    File,
    /// Not at all; `{prompt}` and `{prompt_file}` have no value.
    None,
}

/// What counts as "come back later": the leaf is asked again after a pause, and no attempt is
/// spent on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Throttled {
    /// Exit codes that say so.
    pub exit_codes: Vec<i32>,
    /// Text in the output that says so, if the leaf failed or left nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The first pause; each further one is twice as long.
    pub backoff_secs: Seconds,
    /// All pauses together; after that the call gives up.
    pub max_wait_secs: Seconds,
}

impl Default for Throttled {
    fn default() -> Self {
        Self {
            exit_codes: Vec::new(),
            pattern: None,
            backoff_secs: Seconds(Duration::from_secs(30)),
            max_wait_secs: Seconds(Duration::from_secs(3600)),
        }
    }
}

/// A span of time in seconds; fractions are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(Duration);

impl Seconds {
    /// The span.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl From<Duration> for Seconds {
    fn from(span: Duration) -> Self {
        Self(span)
    }
}

impl TryFrom<f64> for Seconds {
    type Error = std::time::TryFromFloatSecsError;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        Duration::try_from_secs_f64(seconds).map(Self)
    }
}

impl Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.subsec_nanos() == 0 {
            to.serialize_u64(self.0.as_secs())
        } else {
            to.serialize_f64(self.0.as_secs_f64())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(text: &str) -> Leaves {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn nothing_configured_is_a_stub_for_every_role() {
        let leaves = leaves("");
        assert_eq!(leaves.all().count(), 7);
        for (_, name, leaf) in leaves.all() {
            assert_eq!(leaf.mode, LeafMode::Stub, "{name}");
        }
    }

    #[test]
    fn every_key_is_read() {
        let leaf = leaves(
            r#"
            [builder]
            mode = "command"
            interactive = true
            argv = ["a", "{id}"]
            model_args = ["-m"]
            effort_args = ["-e"]
            resume_args = ["-r"]
            resume = false
            when = "Difficulty: high"
            attempt = 2
            protocol = "codex"
            prompt = "p"
            prompt_file = "f.md"
            prompt_via = "none"
            timeout_secs = 90
            stall_secs = 0.5
            retries = 2
            throttled = { exit_codes = [75], pattern = "slow", backoff_secs = 1, max_wait_secs = 9 }
            sandbox = "require"
            network = "off"
            writable = ["cache"]
            env = { A = "b" }
            env_pass = ["NPM_TOKEN"]
            cost_per_call = 0.3
            price = { input = 1, output = 2.5 }
            family = "f"
            model = "m"
            effort = "e"
            agent = "g"
            "#,
        )
        .builder;
        let expected = LeafConfig {
            id: None,
            role: None,
            when: Some(WhenText::Text("Difficulty: high".into())),
            attempt: Some(2),
            mode: LeafMode::Command,
            interactive: true,
            argv: vec!["a".into(), "{id}".into()],
            model_args: vec!["-m".into()],
            effort_args: vec!["-e".into()],
            resume_args: vec!["-r".into()],
            resume: Some(false),
            protocol: Protocol::Codex,
            prompt: Some("p".into()),
            prompt_file: Some("f.md".into()),
            prompt_by: Some(PromptVia::None),
            timeout_secs: Some(Duration::from_secs(90).into()),
            stall_secs: Some(Duration::from_millis(500).into()),
            retries: 2,
            throttled: Throttled {
                exit_codes: vec![75],
                pattern: Some("slow".into()),
                backoff_secs: Duration::from_secs(1).into(),
                max_wait_secs: Duration::from_secs(9).into(),
            },
            sandbox: SandboxMode::Require,
            network: Network::Off,
            writable: vec!["cache".into()],
            env: BTreeMap::from([("A".into(), "b".into())]),
            author: None,
            env_pass: vec!["NPM_TOKEN".into()],
            cost_per_call: Some(Dollars(Money::from_micros(300_000))),
            price: Some(Price {
                input: Dollars(Money::from_micros(1_000_000)),
                cached: None,
                output: Dollars(Money::from_micros(2_500_000)),
            }),
            family: Some("f".into()),
            model: Some("m".into()),
            effort: Some("e".into()),
            agent: Some("g".into()),
        };
        assert_eq!(leaf, expected);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = "transcript_kb = 7\n[builder]\nstall_secs = 0.5\ntimeout_secs = 3\ncost_per_call = 0.25\n\
            price = { input = 1.25, cached = 0, output = \"10\" }\n[[advisory]]\nid = \"a\"\n";
        let first = leaves(text);
        assert_eq!(leaves(&toml::to_string(&first).unwrap()), first);
    }

    #[test]
    fn an_unknown_key_is_refused_by_name() {
        let error = toml::from_str::<Leaves>("[builder]\nretry = 1\n").unwrap_err().to_string();
        assert!(error.contains("unknown field `retry`"), "{error}");
        let error = toml::from_str::<Leaves>("[biulder]\n").unwrap_err().to_string();
        assert!(error.contains("unknown field `biulder`"), "{error}");
    }

    #[test]
    fn a_span_that_is_no_span_is_refused() {
        for wrong in ["-1", "nan", "inf", "\"1\""] {
            let text = format!("[builder]\ntimeout_secs = {wrong}\n");
            assert!(toml::from_str::<Leaves>(&text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_person_at_the_terminal_gets_the_prompt_as_a_file_and_no_deadline() {
        let leaf = leaves("[planner]\ninteractive = true\n").planner;
        assert_eq!((leaf.prompt_via(), leaf.timeout()), (PromptVia::File, None));
        let leaf = leaves("").planner;
        let expected = (PromptVia::Stdin, Some(LeafConfig::DEFAULT_TIMEOUT));
        assert_eq!((leaf.prompt_via(), leaf.timeout()), expected);
    }
}
