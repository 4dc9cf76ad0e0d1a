//! The programs that a configuration names, looked for before anything starts.

use camino::Utf8Path;
use pdca_driver::WorkspaceConfig;
use pdca_gates::{GateContext, Purpose, preflight};
use pdca_leaves::{Called, LeafMode, ROLES, Role, RoleSpec};

use crate::config::driver::force_stubs;
use crate::config::{ConfigError, Environment, Problem, Workspace};

/// Refuses to start if the program of a gate or a leaf is missing, or the target to build in, because each bundle would
/// fail on it in the middle of the run.
pub fn require_programs(
    workspace: &Workspace,
    site: &WorkspaceConfig,
    environment: Environment<'_>,
) -> Result<(), ConfigError> {
    let at = |problem: Problem, key: &str| problem.at_known(workspace.sources.place(key));
    let jobs = site.dirs.private().join("jobs");
    let mut scene = GateContext::new(Purpose::Bundle, &site.dirs.root, &jobs);
    scene.search_path = site.search_path.as_deref();
    let mut problems = Vec::new();
    for unready in preflight(&site.rows, &scene) {
        let row = site.rows.as_slice().iter().position(|row| row.id == unready.rule_id);
        let problem = Problem::new(format!("gate `{}`: {}", unready.rule_id, unready.fault))
            .hint("install it, or mend the row; `pdca doctor` looks at all of them");
        problems.push(at(problem, &format!("gates.checks[{}].cmd", row.unwrap_or_default())));
    }
    let leaves = &workspace.config.leaves;
    // A builder without a checkout delivers no patch, and is paid all the same.
    if workspace.targets.is_empty() && leaves.builder.mode == LeafMode::Command && !site.force_stubs
    {
        let problem = Problem::new("no target is configured: the builder would have no checkout")
            .hint("add `[[targets]]` with `path = \"../app\"`, the repository under change, to pdca.toml; PDCA_LEAVES_MODE=stub does without");
        problems.push(at(problem, "leaves.builder.mode"));
    }
    for RoleSpec { role, name, .. } in
        ROLES.iter().filter(|spec| spec.called == Called::InEveryCycle)
    {
        // A missing adviser does not stop a run; `pdca doctor` reports it.
        let Some(leaf) = leaves.of(*role) else { continue };
        let program = leaf.argv.first().filter(|_| leaf.mode == LeafMode::Command);
        let Some(program) = program else { continue };
        if !site.force_stubs && !has_program(environment, &site.dirs.root, program) {
            let problem = Problem::new(format!("{name} program `{program}` not found on PATH"))
                .hint("install it, or mend its `argv`; PDCA_LEAVES_MODE=stub does without");
            problems.push(at(problem, &format!("leaves.{name}.argv")));
        }
    }
    // An attempt that needs a variant comes late in a run, so its program is looked for now.
    for (name, leaf) in leaves.variants().filter(|(_, leaf)| leaf.mode == LeafMode::Command) {
        let Some(program) = leaf.argv.first().filter(|_| !site.force_stubs) else { continue };
        if !has_program(environment, &site.dirs.root, program) {
            let what = format!("{name} program `{program}` not found on PATH");
            let problem = Problem::new(what)
                .hint("install it, or mend its `argv`; PDCA_LEAVES_MODE=stub does without");
            problems.push(at(problem, &format!("leaves.{name}.argv")));
        }
    }
    for (table, leaf) in pdca_driver::leaves_without_cost(site) {
        let agent = leaf.agent.as_deref().unwrap_or(leaf.protocol.as_str());
        let key = if site.limits.max_cost.is_some() { "max_cost" } else { "max_cost_per_issue" };
        let remedy = if leaf.protocol.tells_usage() {
            "add `price = { input = 1.25, output = 10 }`, dollars for a million tokens, or `cost_per_call = 0.30`"
        } else {
            "add `cost_per_call = 0.30`, the dollars that a call is taken to cost"
        };
        let what = format!("`{key}` cannot be kept: [{table}] (`{agent}`) tells no cost");
        let problem = Problem::new(what).hint(format!("{remedy}, to [{table}]; or remove `{key}`"));
        problems.push(at(problem, &format!("driver.{key}")));
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
}

/// Returns whether a program exists: on `PATH`, or in the workspace if it is a path. A
/// placeholder is not known yet, and counts as existing.
pub fn has_program(environment: Environment<'_>, workspace: &Utf8Path, program: &str) -> bool {
    if program.contains('{') {
        return true;
    }
    if program.contains('/') {
        return workspace.join(program).is_file();
    }
    environment.find_program(program).is_some()
}

/// Returns whether a program is configured for a role.
pub fn has_leaf(
    workspace: &Workspace,
    role: Role,
    environment: Environment<'_>,
) -> Result<bool, ConfigError> {
    let leaf = workspace.config.leaves.of(role);
    Ok(leaf.is_some_and(|leaf| leaf.mode == LeafMode::Command) && !force_stubs(environment)?)
}

/// Returns an error if no program is configured for a role that a person asked for by name, or if it talks with a person
/// and there is no terminal.
pub fn require_leaf(
    workspace: &Workspace,
    role: Role,
    environment: Environment<'_>,
    has_terminal: bool,
) -> Result<(), ConfigError> {
    if has_leaf(workspace, role, environment)? {
        let is_interactive = workspace.config.leaves.of(role).is_some_and(|leaf| leaf.interactive);
        if !is_interactive || has_terminal {
            return Ok(());
        }
        let key = format!("leaves.{role}.interactive");
        return Err(Problem::new(format!("the {role} talks with a person, and there is no terminal"))
            .hint(format!(
                "run the command in a terminal, without redirecting its input or its errors; or set `interactive = false` in [leaves.{role}]"
            ))
            .at_known(workspace.sources.place(&key))
            .into());
    }
    Err(Problem::new(format!("no {role} is configured"))
        .hint(format!("set `mode = \"command\"` and `argv` of [leaves.{role}] in pdca.toml"))
        .into())
}
