//! Commands that reproduce a red row.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_gates::{Check, Cwd, quoted};

use crate::{QueueWorkspace, TargetBranch};

/// Returns a shell command that reproduces a red row: a checkout of that very commit, and the row's command in
/// it, with the row's variables.
pub fn reproduction(
    workspace: &QueueWorkspace,
    branch: &TargetBranch,
    commit: &str,
    row: &Check,
) -> String {
    let git = format!("git -C {}", quoted(branch.target.path.as_str()));
    let there = match row.cwd {
        Cwd::Workspace => quoted(workspace.dirs.root.as_str()),
        Cwd::Auto | Cwd::Worktree => "\"$d\"".to_owned(),
    };
    let variables = [
        ("PDCA_WORKSPACE", quoted(workspace.dirs.root.as_str())),
        ("PDCA_WORKTREE", "\"$d\"".to_owned()),
        ("PDCA_BASE", commit.to_owned()),
        ("PDCA_BRIEF_BASE", quoted(&branch.branch)),
        ("PDCA_TARGET", quoted(&branch.target.name)),
    ];
    let variables = variables.map(|(name, value)| format!("{name}={value}")).join(" ");
    let run = row.command.typed();
    // The subshell keeps the variable and the directory from the shell that the command is pasted into.
    format!(
        "(d=$(mktemp -d) && {git} worktree add -q --detach \"$d\" {commit} && cd {there} && {variables} {run})"
    )
}

/// Returns a path relative to the workspace, for files that are kept.
pub(super) fn relative<'a>(workspace: &QueueWorkspace, path: &'a Utf8Path) -> &'a Utf8Path {
    path.strip_prefix(&workspace.dirs.root).unwrap_or(path)
}

/// Rewrites a command of [`reproduction`] to run in the workspace, wherever that is, so
/// that the same bundle has the same bytes on every machine.
pub(super) fn portable(workspace: &QueueWorkspace, command: &str) -> String {
    let mut text = command.to_owned();
    for target in &workspace.targets {
        let there =
            format!("\"$w\"/{}", quoted(up_and_down(&workspace.dirs.root, &target.path).as_str()));
        text = text.replace(
            &format!("git -C {} ", quoted(target.path.as_str())),
            &format!("git -C {there} "),
        );
    }
    let own = quoted(workspace.dirs.root.as_str());
    for place in ["PDCA_WORKSPACE=", "&& cd "] {
        text = text.replace(&format!("{place}{own} "), &format!("{place}\"$w\" "));
    }
    text.replacen("(d=$(mktemp -d)", "(w=$PWD d=$(mktemp -d)", 1)
}

/// Returns the relative path from one directory to another.
fn up_and_down(from: &Utf8Path, to: &Utf8Path) -> Utf8PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| "..");
    up.chain(to.components().skip(shared).map(|part| part.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_from_one_directory_to_another_goes_up_and_down() {
        for (from, to, way) in [
            ("/a/ws", "/a/ws/app", "app"),
            ("/a/ws", "/a/app", "../app"),
            ("/a/b/ws", "/c", "../../../c"),
            ("/a", "/a", ""),
        ] {
            assert_eq!(up_and_down(Utf8Path::new(from), Utf8Path::new(to)), way, "{from} {to}");
        }
    }
}
