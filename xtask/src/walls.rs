//! `cargo xtask walls`: lists what a hostile leaf, gate and reviewer can do in each sandbox.
//!
//! The page is made only from the table that the suite `tests/tests/walls` runs, so it cannot claim
//! a protection that no test tried.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use camino::Utf8Path;

use crate::{Outcome, Stopped, page};

/// The generated page.
const PAGE: &str = "docs/reference/walls.md";
/// The table that it is made from.
const TABLE: &str = "tests/tests/walls/attempts.txt";

/// Compare the page of the walls with the attempts of the suite, or write it
///
/// Fails where the page is not what the table says.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Args {
    #[command(flatten)]
    page: page::Args,
}

/// One attempt of the table.
#[derive(Debug, PartialEq, Eq)]
struct Attempt<'a> {
    name: &'a str,
    roles: Vec<&'a str>,
    landlock: &'a str,
    bwrap: &'a str,
    title: &'a str,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let table = fs_err::read_to_string(root.join(TABLE))?;
    let attempts = attempts(&table);
    let made = page::Page {
        path: PAGE,
        source: TABLE,
        command: "walls",
        text: text(&attempts),
        sum: format!("{} attempts", attempts.len()),
    };
    made.settle(&args.page, root)
}

/// Reads the table. Invalid lines are left out here, and fail in the suite.
fn attempts(table: &str) -> Vec<Attempt<'_>> {
    let heads = table.split("\n\n").filter_map(|block| block.lines().next());
    let attempt = |head| {
        let fields: Vec<&str> = str::split(head, " | ").collect();
        let [name, roles, landlock, bwrap, title] = fields[..] else { return None };
        let roles = roles.split(' ').collect();
        Some(Attempt { name, roles, landlock, bwrap, title })
    };
    heads.filter(|head| !head.starts_with('#')).filter_map(attempt).collect()
}

fn text(attempts: &[Attempt<'_>]) -> String {
    let mut page = String::from(INTRODUCTION);
    let tried: usize = attempts.iter().map(|attempt| attempt.roles.len()).sum();
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for attempt in attempts {
        counts.entry(attempt.landlock).or_default()[0] += attempt.roles.len();
        counts.entry(attempt.bwrap).or_default()[1] += attempt.roles.len();
    }
    page.push_str("\n| of all attempts | Landlock | bwrap |\n|---|---|---|\n");
    for (verdict, [landlock, bwrap]) in counts {
        let _ = writeln!(page, "| {verdict} | {landlock} | {bwrap} |");
    }
    let _ = writeln!(page, "| together | {tried} | {tried} |\n\n## Attempts\n");
    page.push_str("| attempt | by | Landlock | bwrap | what is tried |\n|---|---|---|---|---|\n");
    for Attempt { name, roles, landlock, bwrap, title } in attempts {
        let roles = roles.join(", ");
        let _ = writeln!(page, "| `{name}` | {roles} | {landlock} | {bwrap} | {title} |");
    }
    page.push_str(LIMITS);
    page
}

const INTRODUCTION: &str = "# What the walls hold

Made by `cargo xtask walls --write` from the table that the suite `tests/tests/walls` runs; do not edit.

A leaf or a gate runs what a model wrote. This page says what a hostile one gets through behind each wall. `sandbox = \"auto\"` is
`bwrap` where that program is installed and may make namespaces, and Landlock elsewhere; each line of a run about a leaf says which
wall stood, and `pdca doctor` says it beforehand.

- **enforced**: it does not get through.
- **noticed**: it gets through, and the run names the file.
- **not kept**: it gets through, and nothing is said.

The Landlock column is for a kernel with version 6 of its interface or newer (Linux 6.12): before that, signals and abstract
sockets are not held. The verdicts are the same for root and for an ordinary user.
";

const LIMITS: &str = "
## Not tried here, and not kept

- Without Landlock and without `bwrap` nothing is enforced. The bundle is compared before and after each child, and so is the target's
  checkout; what a leaf wrote there fails its attempt. `sandbox = \"require\"` starts nothing on such a host.
- `sandbox = \"off\"` and rows with `cwd = \"workspace\"` are not confined. What changes in the target's checkout meanwhile is told with
  the words \"the user, or a gate\" and fails nobody, because it cannot be told apart from the user's own work.
- The network is open unless `network = \"off\"`, which needs `bwrap`.
- A leaf may write the state of coding agents (`~/.claude`, `~/.codex`, …) and the caches of package managers (`~/.cache`, `~/.npm`,
  `~/.cargo/registry`, …), and a reviewer may read there what an agent that built has left.
- Gates may write the workspace, but for `pdca.toml`, the bundles and `.pdca`, and the shared directories for temporary files.
- Behind Landlock, named sockets of the user's services can be spoken to; what such a service then writes into the target's checkout is
  told. Behind `bwrap` those that listen when the child starts are hidden.
- A gate gets the environment of the driver; credentials are withheld from leaves.
- The reviewer's copy has the configuration of agents as the base has it; a file that such configuration refers to, and that the change
  edits, is read as the change has it.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_attempt_and_counts_them_by_role() {
        let table = "# about\n\na | leaf gate | enforced | noticed | tries a\ntrue\n\nb | reviewer | not kept | enforced | tries b\ntrue\n";
        let all = attempts(table);
        assert_eq!(all.len(), 2);
        let page = text(&all);
        assert!(page.contains("| `a` | leaf, gate | enforced | noticed | tries a |"), "{page}");
        assert!(
            page.contains("| enforced | 2 | 1 |") && page.contains("| together | 3 | 3 |"),
            "{page}"
        );
    }
}
