//! `cargo xtask walls`: lists what hostile leaves and gates can do, in each layout, behind each wall, as each user.
//!
//! The page is made only from the tables that the suite `tests/tests/walls` runs and from the list of credentials that
//! the sandbox reads, so it cannot claim a protection that no test tried.

use std::fmt::Write as _;

use camino::Utf8Path;
use pdca_process::{CREDENTIAL_FILES, CREDENTIAL_VARIABLES, HiddenWhen};

use crate::{Outcome, Stopped, page};

/// The generated page.
const PAGE: &str = "docs/generated/walls.md";
/// The tables that it is made from.
const ATTEMPTS: &str = "tests/tests/walls/attempts.txt";
const LAYOUTS: &str = "tests/tests/walls/layouts.txt";
/// The line that begins the attempts of the first layout alone.
const ONCE: &str = "\n# once: ";
/// How many roles `gate` stands for: a row, a row in the workspace, a fix, a command of hydration.
const AS_GATE: usize = 4;

/// Compare the page of the walls with the attempts of the suite, or write it
///
/// Fails where the page is not what the tables say.
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
    /// It does not depend on the layout.
    once: bool,
    landlock: &'a str,
    bwrap: &'a str,
    title: &'a str,
    /// Why it is not held.
    reason: &'a str,
}

impl Attempt<'_> {
    /// Returns how often the suite makes it in one layout.
    fn tries(&self) -> usize {
        self.roles.iter().map(|role| if *role == "gate" { AS_GATE } else { 1 }).sum()
    }
}

/// One layout of the table.
#[derive(Debug, PartialEq, Eq)]
struct Layout<'a> {
    name: &'a str,
    title: &'a str,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let table = fs_err::read_to_string(root.join(ATTEMPTS))?;
    let attempts = attempts(&table);
    let table = fs_err::read_to_string(root.join(LAYOUTS))?;
    let layouts = layouts(&table);
    let made = page::Page {
        path: PAGE,
        source: ATTEMPTS,
        command: "walls",
        text: text(&attempts, &layouts),
        sum: format!("{} attempts in {} layouts", attempts.len(), layouts.len()),
    };
    made.settle(&args.page, root)
}

/// Reads the table. Invalid lines are left out here, and fail in the suite.
fn attempts(table: &str) -> Vec<Attempt<'_>> {
    let (everywhere, once) = table.split_once(ONCE).unwrap_or((table, ""));
    let of = |part, once| {
        let heads = str::split(part, "\n\n").filter_map(|block| block.lines().next());
        heads.filter(|head| !head.starts_with('#')).filter_map(move |head| attempt(head, once))
    };
    of(everywhere, false).chain(of(once, true)).collect()
}

fn attempt(head: &str, once: bool) -> Option<Attempt<'_>> {
    let fields: Vec<&str> = head.split(" | ").collect();
    let [name, roles, landlock, bwrap, title, ref reason @ ..] = fields[..] else { return None };
    let roles = roles.split(' ').collect();
    let reason = reason.first().copied().unwrap_or_default();
    Some(Attempt { name, roles, once, landlock, bwrap, title, reason })
}

fn layouts(table: &str) -> Vec<Layout<'_>> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let layout = |line| {
        let (name, title) = str::split_once(line, " | ")?;
        Some(Layout { name, title })
    };
    lines.filter_map(layout).collect()
}

fn text(attempts: &[Attempt<'_>], layouts: &[Layout<'_>]) -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## Layouts\n\n");
    page.push_str(LAYOUTS_NOTE);
    page.push_str("\n| layout | `bwrap`, root | `bwrap`, ordinary user | Landlock, root | Landlock, ordinary user |\n|---|---|---|---|---|\n");
    for (number, layout) in layouts.iter().enumerate() {
        let made = || attempts.iter().filter(|attempt| number == 0 || !attempt.once);
        let [bwrap, landlock] = [
            cell(made().map(|attempt| (attempt.bwrap, attempt.tries()))),
            cell(made().map(|attempt| (attempt.landlock, attempt.tries()))),
        ];
        let Layout { name, title } = layout;
        // The suite asks for the same verdicts as root and as an ordinary user.
        let _ =
            writeln!(page, "| `{name}`: {title} | {bwrap} | {bwrap} | {landlock} | {landlock} |");
    }
    page.push_str("\n## Not held\n\nEverything that gets through behind one of the walls.\n\n");
    page.push_str("| attempt | Landlock | bwrap | why |\n|---|---|---|---|\n");
    for one in attempts.iter().filter(|one| !one.reason.is_empty()) {
        let Attempt { name, landlock, bwrap, reason, .. } = one;
        let _ = writeln!(page, "| `{name}` | {landlock} | {bwrap} | {reason} |");
    }
    page.push_str("\n## Attempts\n\n");
    let titles = [(false, "### In every layout\n\n"), (true, "\n### In the first layout\n\n")];
    for (once, title) in titles {
        page.push_str(title);
        page.push_str(
            "| attempt | by | Landlock | bwrap | what is tried |\n|---|---|---|---|---|\n",
        );
        for one in attempts.iter().filter(|one| one.once == once) {
            let Attempt { name, roles, landlock, bwrap, title, .. } = one;
            let roles = roles.join(", ").replace('>', " → ");
            let _ = writeln!(page, "| `{name}` | {roles} | {landlock} | {bwrap} | {title} |");
        }
    }
    page.push_str(&credentials());
    page.push_str(LIMITS);
    page
}

/// Lists the files and variables that a confined child does not get.
fn credentials() -> String {
    let mut text = String::from(CREDENTIALS_NOTE);
    text.push_str("\n| file or directory | hidden |\n|---|---|\n");
    for file in CREDENTIAL_FILES {
        let hidden = match file.hidden {
            HiddenWhen::Always => "always".to_owned(),
            HiddenWhen::Contains(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("if it contains {} or an address with a password", words.join(", "))
            }
            HiddenWhen::NotOpened => "from gates, and from leaves of other agents".to_owned(),
        };
        let _ = writeln!(text, "| `~/{}` | {hidden} |", file.path);
    }
    text.push_str("\n| variable | for example |\n|---|---|\n");
    for variable in CREDENTIAL_VARIABLES {
        let example = match variable.example {
            "" => String::new(),
            example => format!("`{example}`"),
        };
        let _ = writeln!(text, "| {} | {example} |", variable.pattern.replace('*', "\\*"));
    }
    text
}

/// Counts the attempts of a layout behind a wall.
fn cell<'a>(made: impl Iterator<Item = (&'a str, usize)>) -> String {
    let (mut held, mut noticed, mut open) = (0, 0, 0);
    for (verdict, tries) in made {
        match verdict {
            "enforced" => held += tries,
            "noticed" => noticed += tries,
            _ => open += tries,
        }
    }
    let tried = held + noticed + open;
    let mut cell = format!("{held} of {tried} enforced");
    if noticed > 0 {
        let _ = write!(cell, ", {noticed} noticed");
    }
    if open > 0 {
        let _ = write!(cell, ", {open} not kept");
    }
    cell
}

const INTRODUCTION: &str = "# What the walls hold

Made by `cargo xtask walls --write` from the tables that the suite `tests/tests/walls` runs; do not edit.

Leaves and gates run code that a model wrote. This page says what a hostile one gets through behind each wall. `sandbox = \"auto\"` is
`bwrap` where that program is installed and may make namespaces, and Landlock elsewhere; each line of a run about a leaf says which
wall stood, and `pdca doctor` says it beforehand.

- **enforced**: it does not get through.
- **noticed**: it gets through, and the run names the file.
- **not kept**: it gets through, and nothing is said.

The attempts are made by a builder (*leaf*), a *reviewer* and a *gate*. Each attempt of a gate is made four times: by a row in the
checkout, by a row with `cwd = \"workspace\"`, by the `fix` of a row and by the `install` of `[lanes.hydrate]`. *a → b* is an attempt of two:
what *a* leaves behind is used by *b*. *row* is the next row of the same bundle, *next* the builder of the next bundle in the same lane,
*last*, *worst* and *swapped* are builders of further bundles, and *user* is the user with the driver, unconfined.

The Landlock column is for a kernel with version 6 of its interface or newer (Linux 6.12): before that, signals and abstract
sockets are not held. An attempt that ends better than the table says, as on a newer kernel, is no error.
";

const LAYOUTS_NOTE: &str = "All attempts are made in the first layout. Those that do not depend on where something lies are made there alone. \
In each layout the suite also compares the user's files before and after, from outside. It runs as root and as an ordinary user \
and asks for the same verdicts; a wall or a user that a host does not have is skipped, and that is said.\n";

const CREDENTIALS_NOTE: &str = "
## Credentials

A confined child can read none of these files, and these variables reach no gate and no leaf. `env_pass` lets a variable through by its
name; a leaf also gets the variables with which its agent signs in to its model.
";

const LIMITS: &str = "
## Not tried here, and not kept

- Without Landlock and without `bwrap` nothing is enforced. The bundle is compared before and after each child, and so is the target's
  checkout; what a leaf wrote there fails its attempt. `sandbox = \"require\"` starts nothing on such a host.
- `sandbox = \"off\"` confines nothing. What changes in the target's checkout meanwhile is told with
  the words \"the user, or a gate\" and fails nobody, because it cannot be told apart from the user's own work.
- The network is open unless `network = \"off\"`, which needs `bwrap`. A service of the user that listens on a port can be spoken to.
- A leaf may write the state of coding agents (`~/.claude`, `~/.codex`, …), and leaves and gates may write the caches of package managers
  (`~/.cache`, `~/.npm`, `~/.cargo/registry`, …). A gate finds there what a builder has left, and a reviewer may read it.
- A leaf or a gate may read every file of the user that is not named on this page.
- Behind Landlock, named sockets of the user's services can be spoken to; what such a service then writes into the target's checkout is
  told. Behind `bwrap` those that listen when the child starts are hidden.
- The resolver is confined as a builder is, and an adviser as a reviewer; the suite does not try them.
- The reviewer's copy has the configuration of agents as the base has it; a file that such configuration refers to, and that the change
  edits, is read as the change has it.
";

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# about\n\na | leaf gate | enforced | noticed | tries a | no rule\ntrue\n\n# once: these\n\n\
                         b | leaf>gate | not kept | enforced | tries b | no rule either\ntrue\n--\ntrue\n";

    #[test]
    fn the_page_lists_every_attempt_with_its_roles_and_its_reason() {
        let page = text(&attempts(TABLE), &layouts("# about\none | first\ntwo | second\n"));
        assert!(page.contains("| `a` | leaf, gate | enforced | noticed | tries a |"), "{page}");
        assert!(page.contains("| `b` | leaf → gate | not kept | enforced | tries b |"), "{page}");
        assert!(page.contains("| `b` | not kept | enforced | no rule either |"), "{page}");
    }

    #[test]
    fn the_page_counts_per_layout_and_an_attempt_of_a_gate_four_times() {
        let page = text(&attempts(TABLE), &layouts("# about\none | first\ntwo | second\n"));
        let [noticed, open] = ["1 of 6 enforced, 5 noticed", "5 of 6 enforced, 1 not kept"];
        let row = format!("| `one`: first | {noticed} | {noticed} | {open} | {open} |");
        assert!(page.contains(&row), "{page}");
        let [noticed, held] = ["0 of 5 enforced, 5 noticed", "5 of 5 enforced"];
        let row = format!("| `two`: second | {noticed} | {noticed} | {held} | {held} |");
        assert!(page.contains(&row), "{page}");
    }
}
