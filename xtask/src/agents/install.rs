//! Pinned versions of the agents, below `target/agents/`.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{Tool, ToolError};

use super::Agent;
use crate::Stopped;

/// The longest that a registry may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The same where time is short.
const QUICK_PATIENCE: Duration = Duration::from_secs(60);

/// An agent that can be run.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) agent: Agent,
    /// The directory of its program.
    pub(super) bin: Utf8PathBuf,
}

/// Installs an agent, or says why it cannot be.
pub(super) fn install(
    agent: Agent,
    root: &Utf8Path,
    is_quick: bool,
) -> Result<Result<Installed, String>, Stopped> {
    let patience = if is_quick { QUICK_PATIENCE } else { PATIENCE };
    let dir = root.join("target/agents").join(agent.name());
    let bin = match agent {
        Agent::Aider => dir.join("bin"),
        Agent::Claude | Agent::Codex | Agent::Opencode | Agent::Gemini => {
            dir.join("node_modules/.bin")
        }
    };
    // It is written last, so that an installation that was interrupted is made again.
    let mark = dir.join(format!("installed-{}", agent.version()));
    if mark.exists() {
        return Ok(Ok(Installed { agent, bin }));
    }
    println!("installing {} {}", agent.name(), agent.version());
    if dir.exists() {
        fs_err::remove_dir_all(&dir)?;
    }
    fs_err::create_dir_all(&dir)?;
    let done = match agent {
        Agent::Claude => npm("@anthropic-ai/claude-code", agent, &dir, patience),
        Agent::Codex => npm("@openai/codex", agent, &dir, patience),
        Agent::Opencode => npm("opencode-ai", agent, &dir, patience),
        Agent::Gemini => npm("@google/gemini-cli", agent, &dir, patience),
        Agent::Aider => pip("aider-chat", agent, &dir, patience),
    };
    if let Err(why) = done {
        return Ok(Err(why));
    }
    fs_err::write(mark, "")?;
    Ok(Ok(Installed { agent, bin }))
}

fn npm(package: &str, agent: Agent, dir: &Utf8Path, patience: Duration) -> Result<(), String> {
    let package = format!("{package}@{}", agent.version());
    succeed("node", &["--version"], dir, patience)?;
    let words = ["install", "--no-audit", "--no-fund", "--prefix", ".", &package];
    succeed("npm", &words, dir, patience)
}

fn pip(package: &str, agent: Agent, dir: &Utf8Path, patience: Duration) -> Result<(), String> {
    // A Python of one user's own cannot be run by another.
    let system = "/usr/bin/python3";
    let python = if Utf8Path::new(system).exists() { system } else { "python3" };
    succeed(python, &["-m", "venv", "."], dir, patience)?;
    let package = format!("{package}=={}", agent.version());
    succeed(dir.join("bin/pip").as_str(), &["install", "--quiet", &package], dir, patience)
}

/// Runs a program to its end; the last line of its complaint is the reason why not.
fn succeed(program: &str, args: &[&str], dir: &Utf8Path, patience: Duration) -> Result<(), String> {
    match Tool::new(program).args(args).cwd(dir).timeout(patience).run() {
        Ok(said) if said.success() => Ok(()),
        Ok(said) => {
            let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
            let last = complaint.lines().rfind(|line| line.contains("rror")).unwrap_or_default();
            Err(format!("`{program}` ended with {}: {last}", said.code))
        }
        Err(ToolError::Start { .. }) => Err(format!("`{program}` is not installed")),
        Err(error) => Err(error.to_string()),
    }
}
