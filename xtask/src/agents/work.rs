//! An agent at work: a batch of two on two lanes, and a conflict.

use std::time::Instant;

use super::{
    Agent,
    cell::{Cell, CellVerdict},
    install::Installed,
    scene::{AgentSurroundings, Scene},
};
use crate::Stopped;

/// What the model says in each role.
pub(super) const ROLES: &str = include_str!("roles.toml");

const DONE: &str = "done";

/// Tries every role of an agent behind one wall.
pub(super) fn try_roles(
    program: &Installed,
    wall: &'static str,
    surroundings: &AgentSurroundings,
    keep: bool,
) -> Result<Vec<Cell>, Stopped> {
    let agent = program.agent;
    let scene = Scene::new(surroundings, agent, Some(ROLES))?;
    let roles: &[&str] = match agent {
        Agent::Aider => &["builder"],
        Agent::Claude | Agent::Codex | Agent::Opencode | Agent::Gemini => {
            &["builder", "reviewer", "resolver"]
        }
    };
    let leaves = roles.iter().map(|role| {
        let name = agent.name();
        format!("[leaves.{role}]\nagent = \"{name}\"\nsandbox = \"{wall}\"\ntimeout_secs = 180\n\n")
    });
    scene.workspace(&leaves.collect::<String>(), &["7", "8"])?;
    let mut cells = Vec::new();
    let mut said = String::new();
    for role in roles {
        let started = Instant::now();
        let observed = match *role {
            "builder" => {
                let ran = scene.pdca(&["run", "7", "8", "--lanes", "2"])?;
                said = ran.text;
                built(&scene, agent)
            }
            // It was part of the batch.
            "reviewer" => reviewed(&scene),
            _ => resolved(&scene, &mut said)?,
        };
        let observed = observed.map_or_else(|why| why, |()| DONE.to_owned());
        cells.push(Cell {
            agent,
            what: (*role).to_owned(),
            wall,
            expected: DONE,
            observed,
            requests: scene.requests(Some(role)),
            seconds: started.elapsed().as_secs(),
        });
        println!(
            "{} {}, {wall}: {}",
            agent.name(),
            cells[cells.len() - 1].what,
            cells[cells.len() - 1].observed
        );
        if cells[cells.len() - 1].verdict() == CellVerdict::Differs {
            println!("{said}");
            break;
        }
    }
    if keep && cells.iter().any(|cell| cell.verdict() == CellVerdict::Differs) {
        println!("kept: {}", scene.keep());
    }
    Ok(cells)
}

/// Both bundles have the change, and the agent's own notes where it can write them.
fn built(scene: &Scene<'_>, agent: Agent) -> Result<(), String> {
    for id in ["7", "8"] {
        if !scene.artifact(id, "patch.diff").contains("+hello, world") {
            return Err(format!("{id} has no change"));
        }
        let notes = scene.artifact(id, "build-notes.md");
        // aider writes nothing outside the checkout.
        if agent != Agent::Aider && !notes.contains("The greeting greets the world.") {
            return Err(format!("{id} has no notes"));
        }
    }
    Ok(())
}

fn reviewed(scene: &Scene<'_>) -> Result<(), String> {
    for id in ["7", "8"] {
        if !scene.artifact(id, "check-review.md").contains("as the brief asks") {
            return Err(format!("{id} has no review"));
        }
    }
    Ok(())
}

/// Accepts a change, moves the branch under it, and has the conflict resolved.
fn resolved(scene: &Scene<'_>, said: &mut String) -> Result<Result<(), String>, Stopped> {
    for words in [["signoff", "7", "clear", "all"].as_slice(), &["signoff", "7", "accept"]] {
        let ran = scene.pdca(words)?;
        *said = ran.text;
        if ran.code != 0 {
            return Ok(Err(format!("`pdca {}` ended with {}", words.join(" "), ran.code)));
        }
    }
    scene.move_branch("good day\n")?;
    // With a resolver the conflict is worked on at the end of the integration.
    let ran = scene.pdca(&["integrate", "--land", "branch"])?;
    *said = ran.text;
    let patch = scene.artifact("7", "patch.diff");
    if !patch.contains("-good day\n") || !patch.contains("+good day, world\n") {
        return Ok(Err("7 has no resolved change".to_owned()));
    }
    Ok(Ok(()))
}
