//! An agent whose provider fails it.

use std::time::Instant;

use clap::ValueEnum;
use serde_json::Value;

use super::{
    cell::{Cell, CellVerdict},
    install::Installed,
    scene::{self, AgentSurroundings, Scene},
    work::ROLES,
};
use crate::Stopped;

/// What goes wrong at the provider, for as long as the agent asks.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentFault {
    Unauthorized,
    RateLimit,
    RetryAfter,
    Overloaded,
    UsageLimit,
    Context,
    Cut,
    Stall,
    Refused,
}

impl AgentFault {
    fn name(self) -> &'static str {
        match self {
            AgentFault::Unauthorized => "401",
            AgentFault::RateLimit => "429",
            AgentFault::RetryAfter => "429 with retry-after",
            AgentFault::Overloaded => "overloaded",
            AgentFault::UsageLimit => "usage limit until a time",
            AgentFault::Context => "context too long",
            AgentFault::Cut => "cut stream",
            AgentFault::Stall => "stalled stream",
            AgentFault::Refused => "refused connection",
        }
    }

    /// The class that the ending has to have.
    fn class(self) -> &'static str {
        match self {
            AgentFault::Unauthorized => "auth",
            AgentFault::RateLimit
            | AgentFault::RetryAfter
            | AgentFault::Overloaded
            | AgentFault::UsageLimit => "throttled",
            AgentFault::Context => "context too long",
            AgentFault::Stall => "stalled",
            AgentFault::Cut | AgentFault::Refused => "host",
        }
    }

    /// The part of the model's script; none where there is no model.
    fn script(self) -> Option<&'static str> {
        match self {
            AgentFault::Unauthorized => Some("kind = \"unauthorized\"\n"),
            AgentFault::RateLimit => Some("kind = \"rate-limit\"\n"),
            AgentFault::RetryAfter => Some("kind = \"rate-limit\"\nretry_after = 1\n"),
            AgentFault::Overloaded => Some("kind = \"overloaded\"\n"),
            AgentFault::UsageLimit => Some("kind = \"usage-limit\"\n"),
            AgentFault::Context => Some("kind = \"context\"\n"),
            AgentFault::Cut => Some("kind = \"cut\"\n"),
            AgentFault::Stall => Some("kind = \"stall\"\n"),
            AgentFault::Refused => None,
        }
    }
}

impl AgentFault {
    /// Returns whether the failure counts as an attempt of the bundle.
    fn costs_an_attempt(self) -> bool {
        match self {
            AgentFault::Context | AgentFault::Stall => true,
            AgentFault::Unauthorized
            | AgentFault::RateLimit
            | AgentFault::RetryAfter
            | AgentFault::Overloaded
            | AgentFault::UsageLimit
            | AgentFault::Cut
            | AgentFault::Refused => false,
        }
    }
}

/// The configured limits of the call, in seconds.
const TIMEOUT: u64 = 120;
const STALL: u64 = 30;

/// Has one bundle built while the fault lasts.
pub(super) fn try_fault(
    program: &Installed,
    fault: AgentFault,
    surroundings: &AgentSurroundings,
    keep: bool,
) -> Result<Cell, Stopped> {
    let agent = program.agent;
    let script = fault.script().map(|fault| format!("{ROLES}\n[[fault]]\n{fault}"));
    let scene = Scene::new(surroundings, agent, script.as_deref())?;
    let wall = scene::walls()[0];
    let leaf = format!(
        "[leaves.builder]\nagent = \"{}\"\nsandbox = \"{wall}\"\ntimeout_secs = {TIMEOUT}\nstall_secs = {STALL}\n\
         throttled = {{ backoff_secs = 1, max_wait_secs = 0 }}\n",
        agent.name()
    );
    scene.workspace(&leaf, &["7"])?;
    let started = Instant::now();
    let ran = scene.pdca(&["run", "7"])?;
    let seconds = started.elapsed().as_secs();
    let events = scene.events()?;
    let mut observed = class(&events);
    // A throttled call is made once more after the pause of a second.
    if seconds > 2 * TIMEOUT + STALL {
        observed = format!("{observed}, too late");
    }
    if (scene.spent_attempts("7") > 0) != fault.costs_an_attempt() {
        observed = format!("{observed}, {} attempts spent", scene.spent_attempts("7"));
    }
    let cell = Cell {
        agent,
        what: fault.name().to_owned(),
        wall,
        expected: fault.class(),
        observed,
        requests: scene.requests(None),
        seconds,
    };
    println!("{} {}: {} ({seconds} s)", agent.name(), cell.what, cell.observed);
    if let Some(evidence) = evidence(&events) {
        println!("  {evidence}");
    }
    if cell.verdict() == CellVerdict::Differs {
        println!("exit code {}\n{}", ran.code, ran.text);
        if keep {
            println!("kept: {}", scene.keep());
        }
    }
    Ok(cell)
}

/// The classes that the driver tells of as `builder: CLASS: evidence`.
const CLASSES: [&str; 5] = ["throttled", "auth", "context too long", "refused", "host"];

/// The words that the class was read from.
fn evidence(events: &[Value]) -> Option<&str> {
    let is_told =
        |text: &&str| CLASSES.iter().any(|class| text.contains(&format!("builder: {class}: ")));
    events.iter().rev().filter_map(|event| event["text"].as_str()).find(is_told)
}

/// How the builder ended by the events of its run.
fn class(events: &[Value]) -> String {
    let told = |event: &Value| {
        let text = event.to_string();
        CLASSES.into_iter().find(|class| text.contains(&format!("builder: {class}: ")))
    };
    if let Some(class) = events.iter().rev().find_map(told) {
        return class.to_owned();
    }
    let ended = |event: &&Value| event["event"] == "leaf_ended" && event["role"] == "builder";
    let ending = events.iter().rfind(ended).and_then(|event| event["ending"].as_str());
    match ending {
        Some(ending) if ending.starts_with("stalled") => "stalled".to_owned(),
        Some(ending) => format!("no class: {ending}"),
        None => "no ending".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_class_that_was_told_counts_and_else_the_ending() {
        let told = |text: &str| json!({"event": "notice", "text": text});
        let ended =
            |ending: &str| json!({"event": "leaf_ended", "role": "builder", "ending": ending});
        let events =
            [told("builder: host: cut"), told("builder: auth: 401"), ended("exit status 1")];
        assert_eq!(class(&events), "auth");
        assert_eq!(class(&[ended("stalled: no output for 30 s")]), "stalled");
        assert_eq!(class(&[ended("exit status 1")]), "no class: exit status 1");
        assert_eq!(class(&[]), "no ending");
    }
}
