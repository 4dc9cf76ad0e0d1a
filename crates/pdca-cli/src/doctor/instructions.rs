//! Which file instructs each leaf, and which files look as if they did.

use camino::Utf8Path;
use pdca_driver::{FoundInstructions, TargetSpec, WorkspaceConfig, find_instructions};
use pdca_leaves::LeafMode;
use pdca_workspace::config::workspace::Workspace;

use crate::doctor::Row;

/// Returns a row for each role that has a file, of each target.
pub(crate) fn rows(workspace: &Workspace, site: &WorkspaceConfig) -> Vec<Row> {
    let is_called = |found: &FoundInstructions| {
        let leaf = |spec: &pdca_leaves::RoleSpec| spec.role == found.role;
        let mut leaves = workspace.config.leaves.all().filter(|(spec, ..)| leaf(spec));
        leaves.any(|(_, _, leaf)| leaf.mode == LeafMode::Command)
    };
    let of = |target: Option<&TargetSpec>| {
        let found = find_instructions(site, target).into_iter();
        found.filter(is_called).flat_map(|found| of_role(found, target)).collect::<Vec<_>>()
    };
    match site.targets.as_slice() {
        [] => of(None),
        targets => targets.iter().flat_map(|target| of(Some(target))).collect(),
    }
}

fn of_role(found: FoundInstructions, target: Option<&TargetSpec>) -> Vec<Row> {
    let FoundInstructions { role, found, uncommitted, outdated } = found;
    let what = format!("instructions {role}");
    let mut rows = Vec::new();
    match found {
        Ok(Some(found)) => {
            rows.push(Row::ok(&what, format!("{}, sha256 {:.12}", found.place(), found.digest)));
        }
        Ok(None) => {}
        Err(error) => rows.push(Row::broken(
            &what,
            pdca_state::chain(&error),
            "mend the file on the target's branch: a text of at most 64 KiB",
        )),
    }
    if let (Some(file), Some(target)) = (uncommitted, target) {
        let dir = &target.path;
        let path = file.strip_prefix(dir).unwrap_or(&file);
        rows.push(Row::warning(
            &what,
            format!(
                "{path} of the checkout is not what the branch has, so the {role} does not read it"
            ),
            commit_it(dir, path),
        ));
    }
    if let Some(file) = outdated {
        rows.push(Row::warning(
            &what,
            format!("{file} is from an earlier `pdca init` and instructs no leaf"),
            format!("`rm {file} && pdca init` writes the present text"),
        ));
    }
    rows
}

fn commit_it(dir: &Utf8Path, path: &Utf8Path) -> String {
    format!(
        "`git -C {dir} add {path} && git -C {dir} commit -m 'Instructions of leaves' -- {path}`"
    )
}
