//! Attempts of hostile leaves and gates, in each layout, behind each wall, as each user.
//!
//! `attempts.txt` is the table: every attempt with its expected verdict. `layouts.txt` has the layouts. All attempts of one role
//! are made in one child, so that the suite is fast; each prints what came of it, and the test compares the user's files from outside as well.
//! `cargo xtask walls` makes `docs/generated/walls.md` from the same tables, so that the page cannot say what no test shows.

mod assault;
mod layout;
mod table;

use std::collections::BTreeSet;

use pdca_process::{SandboxKind, bwrap_support, sandbox_support};

use assault::{Account, Assault, say};
use table::{Wall, attempts, attempts_in, layouts};

/// Returns whether this host has a wall, and says so if it has not.
fn is_here(wall: Wall) -> bool {
    let why = match wall {
        Wall::Bwrap => bwrap_support().err(),
        // The scopes for signals came with the sixth version of the interface.
        Wall::Landlock => match sandbox_support() {
            SandboxKind::Landlock { abi: 6.. } => None,
            SandboxKind::NotAvailable { why } => Some(why),
            SandboxKind::Landlock { abi } => Some(format!("its interface has version {abi}")),
            SandboxKind::Bwrap { .. } | SandboxKind::Off => Some("it is not asked for".to_owned()),
        },
    };
    if let Some(why) = &why {
        say(&format!("{}: skipped, {why}", wall.name()));
    }
    why.is_none()
}

fn assert_layout(layout: &str, wall: Wall) {
    if !is_here(wall) {
        return;
    }
    let all = attempts_in(layout);
    let mut wrong = Vec::new();
    for account in Account::available() {
        let assault = Assault::new(layout, wall, account, &all);
        let differences = assault.differences(&all);
        wrong.extend(differences.into_iter().map(|line| format!("{account:?}: {line}")));
    }
    assert!(wrong.is_empty(), "{layout} behind {}:\n{}", wall.name(), wrong.join("\n"));
}

/// Attempts that are not made without a wall, because they would change the machine that the suite runs on.
const BEYOND: [&str; 12] = [
    "etc",
    "cron",
    "systemd-run",
    "library-preload",
    "proc-sys",
    "proc-sys-core",
    "sysrq",
    "sys",
    "cgroup",
    "host-name",
    "mount",
    "nsenter",
];

/// Attempts that fail without a wall too: the driver gives no child the user's terminal or descriptors, takes away what lies in a lane or a job
/// directory, and searches for no workspace in a lane; and no mount of a wall is there to be undone.
const OWN_REASONS: [&str; 7] = [
    "unshare-mount",
    "terminal",
    "inherited-descriptor",
    "own-job",
    "read-driver-dir",
    "read-lane-leftover",
    "lane-configuration",
];

/// Attempts that only root gets through.
const OF_ROOT: [&str; 6] =
    ["capabilities", "change-owner", "set-user", "chroot-out", "mknod-disk", "file-handle"];

#[test]
fn without_a_wall_every_attempt_gets_through() {
    let walls = [Wall::Bwrap, Wall::Landlock];
    let Some(wall) = walls.into_iter().find(|wall| is_here(*wall)) else { return };
    let account = Account::available()[0];
    let all = attempts();
    let assault = Assault::new(layouts()[0], wall, account, &all);
    let mut left_out = [&BEYOND[..], &OWN_REASONS].concat();
    if account == Account::Ordinary {
        left_out.extend(OF_ROOT);
    }
    let failed = assault.without_wall(&all, &left_out);
    assert!(failed.is_empty(), "these can never get through: {}", failed.join(", "));
}

/// Two tests for each layout, one for each wall.
macro_rules! layouts {
    ($($name:ident: $layout:literal,)*) => {
        const TESTED: &[&str] = &[$($layout),*];
        mod behind_bwrap {
            $(#[test]
            fn $name() {
                super::assert_layout($layout, crate::table::Wall::Bwrap);
            })*
        }
        mod behind_landlock {
            $(#[test]
            fn $name() {
                super::assert_layout($layout, crate::table::Wall::Landlock);
            })*
        }
    };
}

layouts! {
    in_the_layout_of_init_every_attempt_ends_as_the_table_says: "init",
    with_the_target_beside_the_workspace_every_attempt_ends_as_the_table_says: "beside",
    with_the_target_inside_the_workspace_every_attempt_ends_as_the_table_says: "target-inside",
    with_the_workspace_inside_the_target_every_attempt_ends_as_the_table_says: "workspace-inside",
    with_a_linked_worktree_as_target_every_attempt_ends_as_the_table_says: "linked-worktree",
    with_a_link_to_the_workspace_every_attempt_ends_as_the_table_says: "workspace-link",
    with_a_link_to_the_target_every_attempt_ends_as_the_table_says: "target-link",
    with_one_target_inside_the_other_every_attempt_ends_as_the_table_says: "nested-targets",
    with_the_configuration_in_dot_config_every_attempt_ends_as_the_table_says: "dot-config",
    with_a_workspace_that_is_a_repository_every_attempt_ends_as_the_table_says: "workspace-repository",
    with_the_lanes_inside_the_workspace_every_attempt_ends_as_the_table_says: "lanes-inside",
    with_the_bundles_outside_of_the_workspace_every_attempt_ends_as_the_table_says: "bundles-outside",
    with_linked_worktrees_as_lanes_every_attempt_ends_as_the_table_says: "worktree-lanes",
}

#[test]
fn every_layout_of_the_table_is_tested() {
    assert_eq!(TESTED, layouts());
}

#[test]
fn the_table_names_every_attempt_once_and_has_at_least_300() {
    let all = attempts();
    let names: BTreeSet<&str> = all.iter().map(|one| one.name).collect();
    assert_eq!(names.len(), all.len(), "each name once");
    let tried: usize = all.iter().map(|attempt| attempt.roles.len()).sum();
    assert!(tried >= 300, "{tried}");
}
