//! git: a builder must not use commands that reach beyond its checkout or bypass the driver's configuration.
//!
//! `git fetch` is allowed. It only reads from a remote, and a lane is a repository of its own, so no branch of the
//! user's moves; builders need it to read history.

use std::collections::BTreeMap;

use super::{asks_for_help, files, is_unknown, line};
use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::nested::option_value;
use crate::tool_guard::walk::{ShellWalk, quoted};

/// Options before the subcommand that take a value as an argument of its own.
pub(crate) const WITH_VALUE: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--config-env",
    "--super-prefix",
];

const COMMIT: &str = "commit in this checkout and stop there; the driver takes the change, and a person publishes it";
const OWN: &str = "work in your own checkout ($PDCA_WORKTREE) only";
const CONFIG: &str = "leave git's configuration and hooks as they are; pass what you need with `git -c` for one command";

/// Subcommands that only read, in any repository.
const READING: &[&str] = &[
    "annotate",
    "blame",
    "branch",
    "bugreport",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "cherry",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fast-export",
    "for-each-ref",
    "format-patch",
    "fsck",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "merge-tree",
    "name-rev",
    "range-diff",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "tag",
    "var",
    "verify-commit",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "archive",
    "bundle",
    "clone",
    "stash",
    "submodule",
    "notes",
    "symbolic-ref",
];

/// Subcommands that only read with these arguments or none.
const ONLY_BARE: &[(&str, &[&str])] = &[
    (
        "branch",
        &[
            "--list",
            "-l",
            "-a",
            "-r",
            "-v",
            "-vv",
            "--show-current",
            "--contains",
            "--merged",
            "--no-merged",
            "--all",
            "--remotes",
            "--format",
            "--sort",
        ],
    ),
    ("tag", &["--list", "-l", "--contains", "--points-at", "--merged", "-n"]),
    ("remote", &["-v", "show", "get-url"]),
    ("stash", &["list", "show"]),
    ("worktree", &["list"]),
    ("config", &["--get", "--get-all", "--get-regexp", "-l", "--list", "get", "list"]),
    ("notes", &["show", "list"]),
    ("submodule", &["status", "summary"]),
    ("symbolic-ref", &["-q", "--short", "HEAD"]),
    ("reflog", &["show"]),
];

/// Subcommands that are installed apart from git, and refused with some arguments.
const SEPARATE: &[&str] = &["annex", "lfs", "p4", "send-email", "subtree", "svn"];

/// The options before the subcommand.
#[derive(Default)]
struct Before<'a> {
    /// Directories named with `-C`, `--git-dir` and `--work-tree`.
    dirs: Vec<&'a str>,
    /// Settings of `-c`.
    settings: Vec<&'a str>,
}

/// Judges a push: of the builder's own branch where the project lets it push that, and of nothing else.
fn judge_push(rest: &[String], whole: &str, walk: &ShellWalk<'_>) -> Result<(), GuardRefusal> {
    let Some(own) = walk.scope.may_push() else {
        let why = "a builder does not push: `builder_pushes` in [publish] is off";
        return Err(GuardRefusal::new(whole, why, COMMIT));
    };
    // A list of what may stand beside the two words, not of what may not: `--force`, `--mirror` or
    // a second refspec would push more.
    let harmless = [
        "-q",
        "--quiet",
        "--porcelain",
        "-v",
        "--verbose",
        "--force-with-lease",
        "-u",
        "--set-upstream",
    ];
    let words: Vec<&str> =
        rest.iter().map(String::as_str).filter(|word| !harmless.contains(word)).collect();
    let short = format!("HEAD:{}", own.branch);
    if words == [own.remote, own.refspec] || words == [own.remote, &short] {
        return Ok(());
    }
    let why =
        "`builder_pushes` in [publish] lets a builder push the branch of its issue and no other";
    let instead = format!("`git push {} {}`", own.remote, own.refspec);
    Err(GuardRefusal::new(whole, why, &instead))
}

pub(crate) fn judge(
    args: &[String],
    assigned: &BTreeMap<String, String>,
    walk: &mut ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    let (before, rest) = split(args);
    let whole = line("git", args);
    for setting in &before.settings {
        judge_setting(setting, &whole)?;
    }
    let Some((subcommand, rest)) = rest.split_first() else { return Ok(()) };
    if is_unknown(subcommand) {
        walk.not_seen(format!("which subcommand `{whole}` has is not known"));
        return Ok(());
    }
    // Before everything else: an alias may hide any of the subcommands below.
    if let Some(alias) = alias(subcommand, &before, assigned, walk) {
        follow(&alias, rest, &before, assigned, walk)?;
        // Where one of these is installed git runs it and not the alias, so both are judged.
        if !SEPARATE.contains(&subcommand.as_str()) {
            return Ok(());
        }
    }
    if asks_for_help(rest) {
        return Ok(());
    }
    let refuse = |why: &str, instead: &str| Err(GuardRefusal::new(whole.clone(), why, instead));
    let first =
        rest.iter().map(String::as_str).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    match (subcommand.as_str(), first) {
        ("push", _) => return judge_push(rest, &whole, walk),
        ("send-pack" | "http-push" | "remote-http" | "remote-https", _)
        | ("lfs" | "subtree", "push")
        | ("svn", "dcommit")
        | ("p4", "submit")
        | ("annex", "sync" | "copy" | "move") => {
            return refuse("a builder does not push", COMMIT);
        }
        ("send-email" | "imap-send", _) => return refuse("a builder sends nothing out", COMMIT),
        ("credential" | "credential-store" | "credential-cache", _) => {
            return refuse("a builder has no credentials", COMMIT);
        }
        ("config", _) => judge_config(rest, &whole, walk)?,
        ("worktree", action) => judge_worktree(action, rest, &whole, walk)?,
        ("maintenance", "start" | "register") => {
            return refuse("it writes the user's configuration", CONFIG);
        }
        ("clone" | "init", _) => {
            if let Some(path) = rest
                .iter()
                .rev()
                .find(|arg| !arg.starts_with('-'))
                .filter(|arg| arg.starts_with('/'))
            {
                files::write(path, &whole, walk)?;
            }
        }
        _ => {}
    }
    if rest.iter().any(|arg| arg.contains("refs/pdca")) && !is_reading(subcommand, rest) {
        return refuse("the refs below refs/pdca are the driver's record", OWN);
    }
    judge_place(subcommand, rest, &before, assigned, &whole, walk)
}

/// Splits the arguments at the subcommand.
fn split(args: &[String]) -> (Before<'_>, &[String]) {
    let mut before = Before::default();
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.starts_with('-')) {
        let value = args.get(at + 1).map(String::as_str);
        match arg.as_str() {
            "-C" | "--git-dir" | "--work-tree" => before.dirs.extend(value),
            "-c" | "--config-env" => before.settings.extend(value),
            _ => {
                let value = ["--git-dir=", "--work-tree="]
                    .iter()
                    .find_map(|option| arg.strip_prefix(option));
                before.dirs.extend(value);
                before.settings.extend(arg.strip_prefix("--config-env="));
            }
        }
        at += if WITH_VALUE.contains(&arg.as_str()) { 2 } else { 1 };
    }
    (before, args.get(at..).unwrap_or_default())
}

/// Returns the expansion of an alias, from the command line, the environment or the configuration.
fn alias(
    subcommand: &str,
    before: &Before<'_>,
    assigned: &BTreeMap<String, String>,
    walk: &ShellWalk<'_>,
) -> Option<String> {
    // git does not let an alias replace a subcommand of its own, wherever the alias is set.
    if walk.is_shallow || is_known(subcommand) {
        return None;
    }
    let wanted = format!("alias.{subcommand}");
    let set = before.settings.iter().rev().find_map(|setting| {
        let (key, value) = setting.split_once('=')?;
        key.eq_ignore_ascii_case(&wanted).then(|| value.to_owned())
    });
    let variable = |name: &str| assigned.get(name).cloned().or_else(|| walk.variable(name));
    let from_env = || {
        (0..32).find_map(|number| {
            let key = variable(&format!("GIT_CONFIG_KEY_{number}"))?;
            key.eq_ignore_ascii_case(&wanted)
                .then(|| variable(&format!("GIT_CONFIG_VALUE_{number}")))?
        })
    };
    set.or_else(from_env).or_else(|| (walk.git_alias)(subcommand))
}

/// Returns true if git has a subcommand of this name, which no alias can replace.
fn is_known(subcommand: &str) -> bool {
    const CHANGING: &[&str] = &[
        "add",
        "am",
        "apply",
        "bisect",
        "checkout",
        "cherry-pick",
        "clean",
        "commit",
        "commit-tree",
        "credential",
        "credential-cache",
        "credential-store",
        "fetch",
        "gc",
        "hash-object",
        "http-push",
        "imap-send",
        "init",
        "maintenance",
        "merge",
        "mv",
        "pack-refs",
        "prune",
        "pull",
        "push",
        "read-tree",
        "rebase",
        "remote-http",
        "remote-https",
        "reset",
        "restore",
        "revert",
        "rm",
        "send-pack",
        "sparse-checkout",
        "switch",
        "update-index",
        "update-ref",
        "write-tree",
    ];
    READING.contains(&subcommand) || CHANGING.contains(&subcommand)
}

/// Judges the expansion of an alias, with the arguments after it.
fn follow(
    alias: &str,
    rest: &[String],
    before: &Before<'_>,
    assigned: &BTreeMap<String, String>,
    walk: &mut ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    let mut child = walk.clone();
    let quoted = quoted(rest);
    let text = match alias.strip_prefix('!') {
        Some(shell) => format!("{shell} {quoted}"),
        None => format!("git {alias} {quoted}"),
    };
    if let Some(dir) = before.dirs.first() {
        child.cwd = child.resolve(dir);
    }
    child.assign(assigned);
    child.assign(&handed_on(&before.settings));
    // An alias may expand to an alias; the limit on nested scripts ends a cycle.
    let result = child.script(&text, None);
    walk.take_over(child);
    result.map(drop)
}

/// Returns the settings of `-c` as variables: git hands them on to what an alias runs, and they may be aliases too.
fn handed_on(settings: &[&str]) -> BTreeMap<String, String> {
    // Of two with the same key the last counts, and the lowest number is looked at first.
    let numbered = settings.iter().zip((0..32).rev()).filter_map(|(setting, number)| {
        let (key, value) = setting.split_once('=')?;
        Some([
            (format!("GIT_CONFIG_KEY_{number}"), key.to_owned()),
            (format!("GIT_CONFIG_VALUE_{number}"), value.to_owned()),
        ])
    });
    numbered.flatten().collect()
}

/// Refuses settings with which git would run other programs or hooks than the driver expects.
fn judge_setting(setting: &str, whole: &str) -> Result<(), GuardRefusal> {
    let key = setting.split('=').next().unwrap_or_default().to_ascii_lowercase();
    // `core.hooksPath` switches hooks off, `credential.*` brings back what the leaf was signed out
    // of, and an included file could do either.
    if key == "core.hookspath" || key.starts_with("credential.") || key.starts_with("include") {
        return Err(GuardRefusal::new(
            whole,
            format!("`{key}` unties git from what guards this checkout"),
            CONFIG,
        ));
    }
    Ok(())
}

fn judge_config(
    rest: &[String],
    whole: &str,
    walk: &mut ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    const READS: [&str; 10] = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--list",
        "-l",
        "get",
        "list",
        "--get-color",
        "--get-colorbool",
    ];
    let values: Vec<&str> = rest
        .iter()
        .map(String::as_str)
        .filter(|arg| !arg.starts_with('-') && !["set", "unset", "edit"].contains(arg))
        .collect();
    let changes = rest.iter().any(|arg| {
        matches!(
            arg.as_str(),
            "--unset"
                | "--unset-all"
                | "--add"
                | "--replace-all"
                | "--edit"
                | "-e"
                | "set"
                | "unset"
                | "edit"
                | "--rename-section"
                | "--remove-section"
                | "rename-section"
                | "remove-section"
        )
    });
    let reads = rest.iter().any(|arg| READS.contains(&arg.as_str()));
    if reads || (!changes && values.len() < 2) {
        return Ok(());
    }
    if let Some(file) = option_value(rest, &["-f", "--file"]) {
        files::write(file, whole, walk)?;
    }
    if rest.iter().any(|arg| matches!(arg.as_str(), "--global" | "--system")) {
        return Err(GuardRefusal::new(
            whole,
            "it writes the user's own configuration of git",
            CONFIG,
        ));
    }
    let key = values.first().copied().unwrap_or_default();
    judge_setting(key, whole)?;
    if key.to_ascii_lowercase().starts_with("alias.")
        && let Some(value) = values.get(1)
    {
        // Judged when it is set, as an alias of the shell is: a later call could use it unseen.
        follow(value, &[], &Before::default(), &BTreeMap::new(), walk)?;
    }
    Ok(())
}

fn judge_worktree(
    action: &str,
    rest: &[String],
    whole: &str,
    walk: &mut ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    let refuse = || {
        Err(GuardRefusal::new(
            whole,
            "worktrees outside this checkout are the driver's and the user's",
            OWN,
        ))
    };
    match action {
        "add" | "move" | "remove" => {
            let mut paths = rest
                .iter()
                .skip_while(|arg| *arg != action)
                .skip(1)
                .filter(|arg| !arg.starts_with('-'));
            // The value of `-b` looks like a path.
            let named = option_value(rest, &["-b", "-B", "--reason"]);
            let path = paths.find(|arg| Some(arg.as_str()) != named);
            match path.and_then(|path| walk.resolve(path)) {
                Some(path) if walk.scope.is_own(&path) => Ok(()),
                Some(_) => refuse(),
                None => Ok(()),
            }
        }
        "prune" | "repair" | "unlock" | "lock" => refuse(),
        _ => Ok(()),
    }
}

fn is_reading(subcommand: &str, rest: &[String]) -> bool {
    if !READING.contains(&subcommand) {
        return false;
    }
    match ONLY_BARE.iter().find(|(name, _)| *name == subcommand) {
        None => true,
        Some((_, looking)) => match rest.first() {
            // Every other one of the list only shows something without arguments; `git stash` alone
            // changes the checkout.
            None => subcommand != "stash",
            Some(first) => looking
                .iter()
                .any(|option| first == option || first.starts_with(&format!("{option}="))),
        },
    }
}

/// Judges the directory of a command: another repository may be read but not changed.
fn judge_place(
    subcommand: &str,
    rest: &[String],
    before: &Before<'_>,
    assigned: &BTreeMap<String, String>,
    whole: &str,
    walk: &mut ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    // A builder may read any repository: the primary checkout has history that it needs.
    if is_reading(subcommand, rest) {
        return Ok(());
    }
    let mut place = walk.cwd.clone();
    for dir in &before.dirs {
        place = match place {
            Some(cwd) if !is_unknown(dir) => Some(crate::tool_guard::scope::normal(&cwd.join(dir))),
            _ => walk.resolve(dir),
        };
        judge_dir(place.as_deref(), whole, walk)?;
    }
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        if let Some(dir) = assigned.get(name).cloned().or_else(|| walk.variable(name)) {
            judge_dir(walk.resolve(&dir).as_deref(), whole, walk)?;
        }
    }
    judge_dir(place.as_deref(), whole, walk)
}

fn judge_dir(
    dir: Option<&camino::Utf8Path>,
    whole: &str,
    walk: &ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    match dir {
        Some(dir) if !walk.scope.is_own(dir) => Err(GuardRefusal::new(
            whole,
            format!("it changes the repository in {dir}, which is not this checkout"),
            OWN,
        )),
        _ => Ok(()),
    }
}
