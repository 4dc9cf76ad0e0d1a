//! Rules between values that are each valid by themselves.

use std::collections::BTreeMap;

use pdca_forge::publish::SettingsFault;
use pdca_gates::{ConfigFault, ConfigProblem};
use pdca_lanes::HydrateFault;
use pdca_leaves::ConfigFlaw;

use super::{Config, Sources};
use crate::config::problem::Problem;

/// Returns every broken rule, with its position.
pub(super) fn broken(config: &Config, sources: &Sources) -> Vec<Problem> {
    let mut problems = Vec::new();
    if config.driver.max_duration_secs == 0 {
        let problem = Problem::new("`max_duration_secs` in [driver] must be at least 1")
            .hint("write a number of seconds, such as 14400, or remove the line");
        problems.push(at(sources, "driver.max_duration_secs", problem));
    }
    for (index, word) in config.driver.close_dispositions.iter().enumerate() {
        if word.trim().is_empty() {
            let path = format!("driver.close_dispositions[{index}]");
            let problem =
                Problem::new("an empty word in `close_dispositions` would close every bundle")
                    .hint("remove the empty word");
            problems.push(at(sources, &path, problem));
        }
    }
    targets(config, sources, &mut problems);
    crate::config::hosts::rules(config, sources, &mut problems);
    problems.extend(config.lanes.hydrate.validate().iter().map(|problem| {
        let told = Problem::new(problem.to_string()).hint(hydrate_hint(&problem.fault));
        at(sources, &format!("lanes.hydrate.{}", problem.key), told)
    }));
    for (index, glob) in config.lanes.cache.iter().enumerate() {
        if let Err(error) = crate::config::cache_pattern(glob) {
            let problem = Problem::new(format!("`{glob}` is no path or glob: {error}"))
                .hint("name directories from the top of the checkout, such as `target/`");
            problems.push(at(sources, &format!("lanes.cache[{index}]"), problem));
        }
    }
    for (index, glob) in config.act.rules.iter().enumerate() {
        if let Err(error) = crate::config::cache_pattern(glob) {
            let problem = Problem::new(format!("`{glob}` is no path or glob: {error}"))
                .hint("name files from the top of the workspace, such as `rules/**/*.yml`");
            problems.push(at(sources, &format!("act.rules[{index}]"), problem));
        }
    }
    problems.extend(config.gates.validate().iter().map(|problem| gate(problem, sources)));
    let is_ref = |(_, entry): &(usize, &String)| entry.starts_with("refs/");
    for (index, entry) in config.gates.may_write.iter().enumerate().filter(is_ref) {
        if let Err(error) = crate::config::cache_pattern(entry) {
            let problem = Problem::new(format!("`{entry}` is no pattern of refs: {error}"))
                .hint("write a name such as `refs/heads/verify-*`");
            problems.push(at(sources, &format!("gates.may_write[{index}]"), problem));
        }
    }
    problems.extend(config.doctor.validate().iter().map(|problem| {
        let told = Problem::new(problem.to_string())
            .hint("a check is `id = \"protoc\"`, the word that briefs put in backticks, and `cmd = \"protoc --version\"`");
        at(sources, &format!("doctor.checks[{}].{}", problem.index, problem.key), told)
    }));
    problems.extend(config.publish.validate().iter().map(|problem| {
        let told = Problem::new(problem.to_string()).hint(publish_hint(&problem.fault));
        at(sources, &format!("publish.{}", problem.key), told)
    }));
    if config.tracker.notes_cmd.as_deref().is_some_and(|cmd| cmd.trim().is_empty()) {
        let problem = Problem::new("`notes_cmd` in [tracker] is empty")
            .hint("write a command, or remove the line");
        problems.push(at(sources, "tracker.notes_cmd", problem));
    }
    problems.extend(config.select.validate().into_iter().map(|problem| {
        let told = Problem::new(problem.what).hint(problem.hint);
        at(sources, &format!("select.{}", problem.key), told)
    }));
    for (key, cap) in [
        ("max_cost", config.driver.max_cost),
        ("max_cost_per_issue", config.driver.max_cost_per_issue),
    ] {
        if cap.is_some_and(|cap| cap.0 == pdca_state::Money::ZERO) {
            let problem = Problem::new(format!("`{key}` is 0, so nothing would ever be started"))
                .hint("write an amount of dollars, such as 5.00, or remove the line");
            problems.push(at(sources, &format!("driver.{key}"), problem));
        }
    }
    problems.extend(config.leaves.validate().iter().map(|problem| {
        let told = Problem::new(format!("`{}`: {}", problem.key, problem.flaw))
            .hint(leaf_hint(&problem.flaw));
        at(sources, &problem.key, told)
    }));
    problems
}

fn at(sources: &Sources, path: &str, problem: Problem) -> Problem {
    match sources.place(path) {
        Some(place) => problem.at(place),
        None => problem,
    }
}

/// Returns the remedy for a fault of `[lanes.hydrate]`.
pub fn hydrate_hint(fault: &HydrateFault) -> &'static str {
    match fault {
        HydrateFault::Path { .. } => "write a path relative to the root of the checkout",
        HydrateFault::Overlap { .. } => {
            "name each place once, in one of `copy`, `symlink` and `seed`"
        }
        HydrateFault::Empty => "write a command, or remove the line",
        HydrateFault::Timeout => "write a number of seconds, such as 600",
    }
}

fn publish_hint(fault: &SettingsFault) -> &'static str {
    match fault {
        SettingsFault::Empty | SettingsFault::Option | SettingsFault::Control => {
            "write a name, or remove the line to get the default"
        }
        SettingsFault::Zero => "write a number of seconds, such as 60",
        SettingsFault::Branch(_) | SettingsFault::RunUnknown => {
            "write a pattern such as `pdca/{id}`"
        }
        SettingsFault::ForgeCommand => {
            "write both, `forge = \"command\"` and `forge_cmd = \"./forge\"`, or none"
        }
        SettingsFault::NoForge => "remove it, or name a forge",
        SettingsFault::Needed => {
            "add it: `comment_cmd` posts a comment and `list_cmd` prints those there are, so that none is there twice"
        }
        SettingsFault::Unused => "remove the line, or write `comments = \"command\"`",
    }
}

fn leaf_hint(flaw: &ConfigFlaw) -> &'static str {
    match flaw {
        ConfigFlaw::NoProgram => "add `argv = [\"program\", …]`, or use `mode = \"stub\"`",
        ConfigFlaw::Template(_) => {
            "placeholders are {bundle}, {inputs}, {brief}, {worktree}, {id} and so on; a brace is `{{`"
        }
        ConfigFlaw::NoValue { .. } => "set the key it stands for, or take the placeholder out",
        ConfigFlaw::Both(..) => "keep one of the two",
        ConfigFlaw::Zero => "write a number of seconds, or remove the line",
        ConfigFlaw::ExitCode(_) => {
            "name the exit code the program uses for `come back later`, such as 75"
        }
        ConfigFlaw::Empty => "write a value, or remove the line",
        ConfigFlaw::Env(_) => "use another name",
        ConfigFlaw::Retries(_) => {
            "a leaf that fails that often needs a person; use `throttled` for limits"
        }
        ConfigFlaw::Transcript(_) => "write a smaller number; 0 keeps none",
        ConfigFlaw::PriceWithoutTokens => {
            "write `cost_per_call = 0.30` in its place, or set the `protocol` of the agent"
        }
        ConfigFlaw::AdviserName | ConfigFlaw::AdviserTwice => "give each adviser its own `id`",
        ConfigFlaw::NameWithoutAdviser => "remove the `id`",
        ConfigFlaw::PromptOnTerminal => "remove `prompt_via`, or use \"file\"",
        ConfigFlaw::Unattended(_) => "remove `interactive`",
        ConfigFlaw::Condition => "move it to a [[leaves.builder_variant]], or remove it",
        ConfigFlaw::RoleWithoutAdviser => "remove it; a leaf's task is in its `prompt`",
        ConfigFlaw::Unconditional => {
            "add `when = \"Difficulty: high\"` or `attempt = 2`, or change [leaves.builder]"
        }
        ConfigFlaw::Unreachable { .. } => "move it before the other, or remove it",
        ConfigFlaw::Resume(_) => "remove `resume`",
        ConfigFlaw::Author => "remove it; [leaves.builder] says whose commits they are",
    }
}

fn gate(problem: &ConfigProblem, sources: &Sources) -> Problem {
    let row = problem.row.map_or_else(|| "gates".to_owned(), |row| format!("gates.checks[{row}]"));
    let path = format!("{row}.{}", problem.key);
    let told = match &problem.fault {
        ConfigFault::DuplicateId { first } => {
            let other =
                sources.place(&format!("gates.checks[{first}].id")).and_then(|place| place.line);
            let there =
                other.map_or_else(String::new, |line| format!(", first used in line {line}"));
            Problem::new(format!("gate id `{}` is used twice{there}", problem.id))
                .hint("give each [[gates.checks]] its own id; it names the row's log")
        }
        ConfigFault::UnknownTier { .. } => {
            let told = Problem::new(problem.to_string());
            match problem.suggestion() {
                Some(near) => told.hint(format!("did you mean `{near}`?")),
                None => told.hint("write one of C1 … C5, T1 … T5, V"),
            }
        }
        ConfigFault::NoCommand => Problem::new(problem.to_string()).hint("add `cmd = \"…\"`"),
        ConfigFault::Empty => {
            Problem::new(problem.to_string()).hint(format!("write a value for `{}`", problem.key))
        }
        ConfigFault::Reserved => Problem::new(problem.to_string()).hint("give the row another id"),
        ConfigFault::NotAFileName => Problem::new(problem.to_string())
            .hint("use letters, digits, `.`, `_` and `-`, such as `C4-verify`"),
        ConfigFault::SeveralCommands => {
            Problem::new(problem.to_string()).hint("keep one of `cmd`, `argv`, `subcmd`")
        }
        ConfigFault::NoRunner => {
            Problem::new(problem.to_string()).hint("add `runner = \"…\"` in [gates], or use `cmd`")
        }
        ConfigFault::TimeoutOutOfRange { .. } => {
            Problem::new(problem.to_string()).hint("write a number of seconds, such as 600")
        }
        ConfigFault::NotInside => Problem::new(problem.to_string())
            .hint("write a relative path without `..`, such as `target/junit.xml`"),
        ConfigFault::NotAVariable { .. } => {
            Problem::new(problem.to_string()).hint("use letters, digits and `_`, such as `LC_ALL`")
        }
        ConfigFault::SetByPdca { .. } => Problem::new(problem.to_string()).hint(
            "remove it; a row sets it for its own command, as in `cmd = \"PATH=… make test\"`",
        ),
        ConfigFault::NotChanging { .. } => Problem::new(problem.to_string())
            .hint(format!("`needs = []`, or some of {}", pdca_gates::CHANGING.join(", "))),
        ConfigFault::NotNeeded { name } => Problem::new(problem.to_string())
            .hint(format!("write `needs = [\"{name}\"]`, or remove `needs`")),
        ConfigFault::ControlCharacter => {
            Problem::new(problem.to_string()).hint("remove the control character")
        }
    };
    at(sources, &path, told)
}

/// Checks the names of targets: each becomes a directory of the lanes, so it must be a file name and unique.
fn targets(config: &Config, sources: &Sources, problems: &mut Vec<Problem>) {
    let mut seen = BTreeMap::new();
    for (index, target) in config.targets.iter().enumerate() {
        let path = |key: &str| format!("targets[{index}].{key}");
        if target.path.as_str().is_empty() {
            let problem = Problem::new("`path` in [[targets]] is empty")
                .hint("write the path of the checkout");
            problems.push(at(sources, &path("path"), problem));
        }
        let name = target.name();
        if !is_plain(&name) {
            let problem = Problem::new(format!("`{name}` cannot be the name of a target"))
                .hint("add `name = \"…\"` of letters, digits, `.`, `_` and `-`");
            problems.push(at(sources, &path("name"), problem));
        // The name becomes a directory, and some filesystems ignore case.
        } else if let Some(first) = seen.insert(name.to_lowercase(), index) {
            let other = sources.place(&format!("targets[{first}]")).and_then(|place| place.line);
            let there =
                other.map_or_else(String::new, |line| format!(", first used in line {line}"));
            let problem = Problem::new(format!("target name `{name}` is used twice{there}"))
                .hint("give each its own `name`");
            problems.push(at(sources, &path("name"), problem));
        }
    }
}

fn is_plain(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=100).contains(&name.len()) && !name.starts_with(['.', '-']) && name.bytes().all(allowed)
}
