//! `cargo xtask agents`: the real coding agents, in every role and with every fault, against a scripted model.
//!
//! 1. Pinned versions are installed below `target/agents/`. What cannot be installed is skipped, by name.
//! 2. For each agent and each wall of the host a batch of two bundles is built and reviewed on two lanes, accepted, and a conflict is resolved.
//! 3. For each agent and each fault of a provider one bundle is built; the class of the ending and the spent attempts are compared.
//! 4. A builder pushes and merges, a change carries configuration for its reviewer, a batch meets a limit and a bad key, and a new user
//!    gets from `init` to a review.
//! 5. The table is printed, and with `--write` put into the page.
//!
//! The model is `fake-model` of the testkit: no account, no key, no network beyond the registries. The agents have a fresh home
//! directory, and run as an ordinary user where this program is root and can become one.

mod attack;
mod batch;
mod cell;
mod fault;
mod install;
mod scene;
mod work;

use batch::Story;
use camino::{Utf8Path, Utf8PathBuf};
use cell::{Cell, CellVerdict};
use clap::ValueEnum;
use fault::AgentFault;
use install::Installed;
use scene::AgentSurroundings;

use crate::{Outcome, Stopped, program};

const PAGE: &str = "docs/reference/agents.md";
const BEGIN: &str = "<!-- made by `cargo xtask agents --all --write`: begin -->\n";
const END: &str = "<!-- end -->\n";

/// Run the real coding agents against a scripted model
///
/// Installs pinned versions below `target/agents/` and needs the registries of npm and Python for that once.
#[derive(clap::Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Run all agents; claude and codex if not given
    #[arg(long, conflicts_with = "agent")]
    all: bool,
    /// Run what takes two minutes, and skip what is not installed within one
    #[arg(long, conflicts_with_all = ["all", "only", "write"])]
    quick: bool,
    /// Run this agent (may be repeated)
    #[arg(long, value_name = "NAME")]
    agent: Vec<Agent>,
    /// Run this part alone
    #[arg(long)]
    only: Option<Part>,
    /// Run this fault alone (may be repeated)
    #[arg(long, value_name = "FAULT")]
    fault: Vec<AgentFault>,
    /// Put the table into the page
    #[arg(long)]
    write: bool,
    /// Keep the directories of cells that differ
    #[arg(long)]
    keep: bool,
    /// The directory that has `pdca` and `fake-model`; they are built if not given
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<Utf8PathBuf>,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Roles,
    Faults,
    Attacks,
    Stories,
}

/// An agent that has a preset.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Agent {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Aider,
}

impl Agent {
    /// The name of the preset and of the program.
    fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Opencode => "opencode",
            Agent::Gemini => "gemini",
            Agent::Aider => "aider",
        }
    }

    /// The version that is installed.
    fn version(self) -> &'static str {
        match self {
            Agent::Claude => "2.1.325",
            Agent::Codex => "0.166.0",
            Agent::Opencode => "1.18.33",
            Agent::Gemini => "0.61.0",
            Agent::Aider => "0.86.2",
        }
    }
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let chosen: Vec<Agent> = match (args.all, args.agent.as_slice()) {
        (true, _) => Agent::value_variants().to_vec(),
        (false, []) => vec![Agent::Claude, Agent::Codex],
        (false, named) => named.to_vec(),
    };
    let bin_dir = match &args.bin_dir {
        Some(dir) => dir.canonicalize_utf8()?,
        None => build(root)?,
    };
    let mut skipped = Vec::new();
    let mut installed = Vec::new();
    for agent in chosen {
        match install::install(agent, root, args.quick)? {
            Ok(program) => installed.push(program),
            Err(why) => skipped.push(format!("{} is skipped: {why}", agent.name())),
        }
    }
    let surroundings = AgentSurroundings::find(bin_dir, &installed);
    println!("agents run as {}", surroundings.user());
    let mut cells = Vec::new();
    for program in &installed {
        cells.extend(tried(args, program, &surroundings)?);
        if args.write {
            // What was seen stays, should a later agent stop the run.
            write(root, &cell::table(&cells), false)?;
        }
    }
    println!("\n{}", cell::table(&cells));
    for line in &skipped {
        println!("{line}");
    }
    if args.write {
        let is_whole = args.all && args.only.is_none() && args.fault.is_empty();
        write(root, &cell::table(&cells), is_whole)?;
    }
    let wrong = cells.iter().filter(|cell| cell.verdict() == CellVerdict::Differs).count();
    println!("agents: {} cells, {wrong} differ, {} agents skipped", cells.len(), skipped.len());
    Ok(if wrong == 0 { Outcome::Passed } else { Outcome::Failed })
}

/// Tries one agent in all cells that were asked for.
fn tried(
    args: &Args,
    program: &Installed,
    surroundings: &AgentSurroundings,
) -> Result<Vec<Cell>, Stopped> {
    let mut cells = Vec::new();
    let is_asked = |part: Part| args.only.is_none_or(|only| only == part);
    if is_asked(Part::Roles) {
        for wall in scene::walls().into_iter().take(if args.quick { 1 } else { usize::MAX }) {
            cells.extend(work::try_roles(program, wall, surroundings, args.keep)?);
        }
    }
    if is_asked(Part::Faults) {
        let is_quick = |fault: &&AgentFault| !args.quick || QUICK.contains(fault);
        for fault in AgentFault::value_variants().iter().filter(is_quick) {
            if args.fault.is_empty() || args.fault.contains(fault) {
                cells.push(fault::try_fault(program, *fault, surroundings, args.keep)?);
            }
        }
    }
    if is_asked(Part::Attacks) {
        // aider runs no commands and judges nothing.
        if program.agent != Agent::Aider {
            cells.push(attack::try_guard(program, surroundings, args.keep)?);
            cells.push(attack::try_planted(program, surroundings, args.keep)?);
        }
    }
    if is_asked(Part::Stories) {
        for story in Story::ALL.into_iter().filter(|story| !args.quick || *story != Story::Limit) {
            cells.push(batch::try_story(program, story, surroundings, args.keep)?);
        }
    }
    Ok(cells)
}

/// Faults that an agent tells at once.
const QUICK: [AgentFault; 2] = [AgentFault::Unauthorized, AgentFault::Context];

/// Builds the programs of this workspace and returns their directory.
fn build(root: &Utf8Path) -> Result<Utf8PathBuf, Stopped> {
    let words = ["build", "--workspace", "--bin", "pdca", "--bin", "fake-model"];
    if !program::succeeds("cargo", &words, &[], root)? {
        return Err("pdca and fake-model cannot be built".into());
    }
    Ok(root.join("target/debug"))
}

/// Replaces what is between the marks of the page: all of it, or the rows of the cells that were run.
fn write(root: &Utf8Path, table: &str, is_whole: bool) -> Result<(), Stopped> {
    let path = root.join(PAGE);
    let text = fs_err::read_to_string(&path)?;
    let page = replaced(&text, table, is_whole).ok_or("the page has no marks for the table")?;
    fs_err::write(&path, page)?;
    println!("{PAGE} is written");
    Ok(())
}

fn replaced(text: &str, table: &str, is_whole: bool) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let table = if is_whole { table.to_owned() } else { merged(old.trim(), table) };
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

/// Puts rows in the place of those for the same agent, subject and wall, and what is new to the end.
fn merged(old: &str, new: &str) -> String {
    let key = |row: &str| row.splitn(5, '|').take(4).map(str::to_owned).collect::<Vec<_>>();
    let mut rows: Vec<&str> = old.lines().collect();
    for row in new.lines().filter(|row| !row.is_empty()) {
        match rows.iter_mut().find(|old| key(old) == key(row)) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }
    rows.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before() {
        let page = format!("# Agents\n\n{BEGIN}old\n{END}\nmore\n");
        let once = replaced(&page, "| a |\n", true).unwrap();
        assert_eq!(once, format!("# Agents\n\n{BEGIN}\n| a |\n\n{END}\nmore\n"));
        assert_eq!(replaced(&once, "| a |\n", true).unwrap(), once);
        assert_eq!(replaced("# Agents\n", "| a |\n", true), None);
    }

    #[test]
    fn a_part_of_the_cells_replaces_its_own_rows() {
        let old = "| a | 401 | w | auth | 1 |\n| b | 401 | w | auth | 1 |";
        let new = "| b | 401 | w | auth | 9 |\n| b | 429 | w | throttled | 2 |\n";
        let both = "| a | 401 | w | auth | 1 |\n| b | 401 | w | auth | 9 |\n| b | 429 | w | throttled | 2 |\n";
        assert_eq!(merged(old, new), both);
    }
}
