//! Batches whose provider fails them, the way of a new user, and `doctor --probe`.

use std::time::Instant;

use super::{
    Agent,
    cell::{Cell, CellVerdict},
    install::Installed,
    scene::{self, AgentSurroundings, Scene},
    work::ROLES,
};
use crate::Stopped;

const IDS: [&str; 4] = ["7", "8", "9", "10"];

/// A story that a person goes through with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Story {
    /// A batch of four while the provider is short for 20 seconds.
    Limit,
    /// A batch of four with a key that is not accepted.
    BadKey,
    /// From `init` to a review without an edit of `pdca.toml`.
    NewUser,
}

impl Story {
    pub(super) const ALL: [Story; 3] = [Story::Limit, Story::BadKey, Story::NewUser];

    fn name(self) -> &'static str {
        match self {
            Story::Limit => "batch of 4, 429 for 20 s",
            Story::BadKey => "batch of 4, bad key",
            Story::NewUser => "init, doctor, new, run",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Story::Limit => "4 built, 0 attempts spent",
            Story::BadKey => "1 call, 0 attempts spent, said once",
            Story::NewUser => "built and reviewed",
        }
    }
}

/// Goes through a story.
pub(super) fn try_story(
    program: &Installed,
    story: Story,
    surroundings: &AgentSurroundings,
    keep: bool,
) -> Result<Cell, Stopped> {
    let agent = program.agent;
    let fault = match story {
        Story::Limit => "\n[[fault]]\nkind = \"rate-limit\"\nseconds = 20\n",
        Story::BadKey => "\n[[fault]]\nkind = \"unauthorized\"\n",
        Story::NewUser => "",
    };
    let scene = Scene::new(surroundings, agent, Some(&format!("{ROLES}{fault}")))?;
    let started = Instant::now();
    let mut said = String::new();
    let observed = match story {
        Story::Limit => limit(&scene, agent, &mut said)?,
        Story::BadKey => bad_key(&scene, agent, &mut said)?,
        Story::NewUser => new_user(&scene, agent, &mut said)?,
    };
    let cell = Cell {
        agent,
        what: story.name().to_owned(),
        wall: if story == Story::NewUser { "auto" } else { scene::walls()[0] },
        expected: story.expected(),
        observed,
        requests: scene.requests(None),
        seconds: started.elapsed().as_secs(),
    };
    println!("{} {}: {} ({} s)", agent.name(), cell.what, cell.observed, cell.seconds);
    if cell.verdict() == CellVerdict::Differs {
        println!("{said}");
        if keep {
            println!("kept: {}", scene.keep());
        }
    }
    Ok(cell)
}

fn builder(agent: Agent) -> String {
    let (name, wall) = (agent.name(), scene::walls()[0]);
    format!("[leaves.builder]\nagent = \"{name}\"\nsandbox = \"{wall}\"\ntimeout_secs = 300\n")
}

fn spent(scene: &Scene<'_>) -> u64 {
    IDS.iter().map(|id| scene.spent_attempts(id)).sum()
}

fn limit(scene: &Scene<'_>, agent: Agent, said: &mut String) -> Result<String, Stopped> {
    let pauses = "throttled = { backoff_secs = 10, max_wait_secs = 600 }\n";
    scene.workspace(&format!("{}{pauses}", builder(agent)), &IDS)?;
    let ran = scene.pdca(&["batch", "--lanes", "2"])?;
    *said = ran.text;
    let has_change = |id: &&&str| scene.artifact(id, "patch.diff").contains("+hello, world");
    let built = IDS.iter().filter(has_change).count();
    Ok(format!("{built} built, {} attempts spent", spent(scene)))
}

fn bad_key(scene: &Scene<'_>, agent: Agent, said: &mut String) -> Result<String, Stopped> {
    scene.workspace(&builder(agent), &IDS)?;
    let ran = scene.pdca(&["batch", "--lanes", "2"])?;
    let told = ran.text.matches("so nothing more was started").count();
    *said = ran.text;
    let events = scene.events()?;
    let calls = events.iter().filter(|event| event["event"] == "leaf_began").count();
    let told = if told == 1 { "said once".to_owned() } else { format!("said {told} times") };
    Ok(format!("{calls} call, {} attempts spent, {told}", spent(scene)))
}

/// Types what the first page of the documentation says.
fn new_user(scene: &Scene<'_>, agent: Agent, said: &mut String) -> Result<String, Stopped> {
    scene.home(".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n")?;
    scene.hand_over()?;
    let name = agent.name();
    let reviewer = if agent == Agent::Aider { "none" } else { name };
    let init = ["init", "--yes", "--target", "../app", "--builder", name, "--reviewer", reviewer];
    for words in
        [init.as_slice(), &["doctor"], &["doctor", "--probe"], &["new", "7", "--title", "Greet"]]
    {
        let ran = scene.pdca(words)?;
        said.push_str(&ran.text);
        if ran.code != 0 {
            return Ok(format!("`pdca {}` ended with {}", words.join(" "), ran.code));
        }
    }
    let brief = scene.path().join("ws/results/issue_7/brief.md");
    let text = fs_err::read_to_string(&brief)?;
    let slug = text.lines().find(|line| line.starts_with("- **Slug:**")).unwrap_or_default();
    fs_err::write(&brief, text.replace(slug, "- **Slug:** greet-the-world"))?;
    // The file was written by this process, which may be root.
    scene.hand_over()?;
    let ran = scene.pdca(&["run", "7"])?;
    said.push_str(&ran.text);
    if !scene.artifact("7", "patch.diff").contains("+hello, world") {
        return Ok(format!("there is no change, and `pdca run` ended with {}", ran.code));
    }
    let has_review = scene.artifact("7", "check-review.md").contains("as the brief asks");
    if agent != Agent::Aider && !has_review {
        return Ok("there is no review".to_owned());
    }
    Ok(Story::NewUser.expected().to_owned())
}
