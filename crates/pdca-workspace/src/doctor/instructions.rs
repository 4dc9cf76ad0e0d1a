//! Which file instructs each leaf, and which files look as if they did.

use pdca_driver::{FoundInstructions, TargetSpec, WorkspaceConfig, find_instructions};
use pdca_leaves::LeafMode;

use super::{Fact, Finding};
use crate::config::Workspace;

/// Returns a finding for each role that has a file, of each target.
pub(super) fn findings(workspace: &Workspace, config: &WorkspaceConfig) -> Vec<Finding> {
    let is_called = |found: &FoundInstructions| {
        let leaf = |spec: &pdca_leaves::RoleSpec| spec.role == found.role;
        let mut leaves = workspace.config.leaves.all().filter(|(spec, ..)| leaf(spec));
        leaves.any(|(_, _, leaf)| leaf.mode == LeafMode::Command)
    };
    let of = |target: Option<&TargetSpec>| {
        let found = find_instructions(config, target).into_iter();
        found.filter(is_called).flat_map(|found| of_role(found, target)).collect::<Vec<_>>()
    };
    match config.targets.as_slice() {
        [] => of(None),
        targets => targets.iter().flat_map(|target| of(Some(target))).collect(),
    }
}

fn of_role(found: FoundInstructions, target: Option<&TargetSpec>) -> Vec<Finding> {
    let FoundInstructions { role, found, uncommitted, outdated } = found;
    let mut findings = Vec::new();
    match found {
        Ok(Some(found)) => {
            let (place, digest) = (found.place(), found.digest.clone());
            findings.push(Finding::ok(Fact::Instructions { role, place, digest }));
        }
        Ok(None) => {}
        Err(error) => {
            let error = pdca_state::chain(&error);
            findings.push(Finding::broken(Fact::InstructionsUnreadable { role, error }));
        }
    }
    if let (Some(file), Some(target)) = (uncommitted, target) {
        let checkout = target.path.clone();
        let path = file.strip_prefix(&checkout).unwrap_or(&file).to_owned();
        findings.push(Finding::warning(Fact::InstructionsUncommitted { role, checkout, path }));
    }
    if let Some(file) = outdated {
        findings.push(Finding::warning(Fact::InstructionsOutdated { role, file }));
    }
    findings
}
