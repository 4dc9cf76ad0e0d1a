//! Forge clients: a builder may read from a forge but not change it.

use std::collections::BTreeMap;

use super::{asks_for_help, git, is_unknown, line};
use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::nested::{behind_options, option_value};
use crate::tool_guard::walk::ShellWalk;

const INSTEAD: &str = "leave the change in the checkout and write what is to be said into build-notes.md; `pdca publish` speaks with the forge";

/// Read-only commands, as `noun verb`; `*` means every verb.
const GH: &[(&str, &[&str])] = &[
    ("pr", &["list", "ls", "view", "diff", "checks", "status", "checkout", "co"]),
    ("issue", &["list", "ls", "view", "status"]),
    ("repo", &["view", "list", "ls", "clone"]),
    ("run", &["list", "ls", "view", "watch", "download"]),
    ("workflow", &["list", "ls", "view"]),
    ("release", &["list", "ls", "view", "download", "verify"]),
    ("search", &["*"]),
    ("status", &["*"]),
    ("browse", &["*"]),
    ("help", &["*"]),
    ("version", &["*"]),
    ("completion", &["*"]),
    ("auth", &["status"]),
    ("gist", &["list", "ls", "view", "clone"]),
    ("label", &["list", "ls"]),
    ("config", &["get", "list", "ls"]),
    ("alias", &["list", "ls"]),
    ("extension", &["list", "ls", "search"]),
    ("ruleset", &["list", "ls", "view", "check"]),
    ("cache", &["list", "ls"]),
    ("secret", &["list", "ls"]),
    ("variable", &["list", "ls", "get"]),
    ("org", &["list", "ls"]),
    ("project", &["list", "ls", "view", "item-list", "field-list"]),
    ("attestation", &["verify", "download", "trusted-root"]),
];

const GLAB: &[(&str, &[&str])] = &[
    ("mr", &["list", "ls", "view", "show", "diff", "checkout", "issues", "approvers"]),
    ("issue", &["list", "ls", "view", "show"]),
    ("incident", &["list", "ls", "view"]),
    ("repo", &["view", "list", "ls", "clone", "search", "contributors", "archive"]),
    ("ci", &["list", "ls", "view", "status", "get", "trace", "lint", "config"]),
    ("pipe", &["list", "view", "status", "get", "trace", "lint"]),
    ("pipeline", &["list", "view", "status", "get", "trace", "lint"]),
    ("job", &["artifact"]),
    ("release", &["list", "ls", "view", "download"]),
    ("label", &["list", "ls", "get"]),
    ("milestone", &["list", "get"]),
    ("snippet", &["list", "ls", "view"]),
    ("variable", &["list", "ls", "get", "export"]),
    ("auth", &["status"]),
    ("config", &["get"]),
    ("user", &["events"]),
    ("help", &["*"]),
    ("version", &["*"]),
    ("completion", &["*"]),
    ("check-update", &["*"]),
];

const HUB: &[(&str, &[&str])] = &[
    ("pr", &["list", "show", "checkout"]),
    ("issue", &["", "show", "labels"]),
    ("release", &["", "show", "download"]),
    ("ci-status", &["*"]),
    ("browse", &["*"]),
    ("compare", &["*"]),
    ("help", &["*"]),
    ("version", &["*"]),
];

const TEA: &[(&str, &[&str])] = &[
    ("pulls", &["", "list", "ls", "checkout"]),
    ("pull", &["", "list", "ls", "checkout"]),
    ("pr", &["", "list", "ls", "checkout"]),
    ("issues", &["", "list", "ls"]),
    ("issue", &["", "list", "ls"]),
    ("releases", &["", "list", "ls"]),
    ("repos", &["", "list", "ls", "search"]),
    ("clone", &["*"]),
    ("help", &["*"]),
    ("whoami", &["*"]),
];

/// Commands of hub itself; it passes all others to git.
const HUB_OWN: &[&str] = &[
    "pull-request",
    "fork",
    "create",
    "delete",
    "gist",
    "sync",
    "pr",
    "issue",
    "release",
    "ci-status",
    "browse",
    "compare",
];

pub(crate) fn judge(
    program: &str,
    args: &[String],
    assigned: &BTreeMap<String, String>,
    walk: &mut ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    let behind = behind_options(args, &["-R", "--repo", "--hostname", "-C", "-c"]);
    let Some((noun, rest)) = behind.split_first() else { return Ok(()) };
    if asks_for_help(rest) {
        return Ok(());
    }
    let whole = line(program, args);
    if noun == "api" {
        return api(&whole, rest);
    }
    if program == "hub"
        && !HUB_OWN.contains(&noun.as_str())
        && !matches!(noun.as_str(), "help" | "version")
    {
        return git::judge(args, assigned, walk);
    }
    if is_unknown(noun) {
        walk.not_seen(format!("which subcommand `{whole}` has is not known"));
        return Ok(());
    }
    let table = match program {
        "gh" => GH,
        "glab" => GLAB,
        "hub" => HUB,
        _ => TEA,
    };
    let verb = behind_options(rest, &["-R", "--repo"]).first().map_or("", String::as_str);
    let reads = table.iter().find(|(name, _)| name == noun).is_some_and(|(_, verbs)| {
        // A list of what reads: a verb that a later version of the client brings is refused until
        // it is listed. Without a verb `gh` and `glab` print help, while `hub fork` acts.
        verbs.contains(&"*") || verbs.contains(&verb) || (verb.is_empty() && program != "hub")
    });
    let is_change = matches!((program, noun.as_str()), ("gh", "pr") | ("glab", "mr"));
    if reads || (is_change && is_own_draft(rest, walk)) {
        return Ok(());
    }
    let why = match (verb, walk.scope.may_push()) {
        ("ready" | "merge" | "accept" | "review" | "approve", _) if is_change => {
            format!("`{verb}` is a person's decision, and no key lets a builder take it")
        }
        ("create", Some(own)) if is_change => format!(
            "`builder_pushes` in [publish] lets a builder open a draft of {} and nothing else",
            own.branch
        ),
        ("create", None) if is_change => {
            "a builder opens no pull request: `builder_pushes` in [publish] is off".to_owned()
        }
        _ => format!("a builder may look with `{program}` but changes nothing on the forge"),
    };
    Err(GuardRefusal::new(whole, why, INSTEAD))
}

/// Returns true for opening a draft, where the driver lets the builder push its branch.
fn is_own_draft(rest: &[String], walk: &ShellWalk<'_>) -> bool {
    let Some(own) = walk.scope.may_push() else { return false };
    let has = |names: [&str; 2]| rest.iter().any(|word| names.contains(&word.as_str()));
    let head = option_value(rest, &["-H", "--head", "-s", "--source-branch"]);
    rest.first().is_some_and(|verb| verb == "create")
        && has(["-d", "--draft"])
        && head.is_none_or(|head| head == own.branch)
        && !has(["-w", "--web"])
}

/// Judges `gh api` and `glab api`: a request that only reads is allowed.
fn api(whole: &str, args: &[String]) -> Result<(), GuardRefusal> {
    let method = option_value(args, &["-X", "--method"]).map(str::to_ascii_uppercase);
    let has_fields = args.iter().any(|arg| {
        ["-f", "-F", "--field", "--raw-field", "--input", "--form"].iter().any(|option| {
            arg == option
                || (arg.starts_with(option) && !arg.starts_with("--f") && option.len() == 2)
                || arg.starts_with(&format!("{option}="))
        })
    });
    let is_graphql = args
        .iter()
        .any(|arg| arg.trim_start_matches('/') == "graphql" || arg.ends_with("/graphql"));
    let refuse = |why: &str| Err(GuardRefusal::new(whole, why, INSTEAD));
    if is_graphql {
        let query = args.iter().find_map(|arg| {
            arg.strip_prefix("query=").or_else(|| {
                arg.split_once("query=")
                    .filter(|(option, _)| option.starts_with('-'))
                    .map(|(_, query)| query)
            })
        });
        let query = query.map(|text| text.trim_start().to_ascii_lowercase());
        return match query {
            Some(text) if is_unknown(&text) || text.starts_with('@') => {
                refuse("the query cannot be seen, so it may change something")
            }
            Some(text) if mutates(&text) => refuse("a mutation changes something on the forge"),
            None if has_fields => refuse("the query cannot be seen, so it may change something"),
            Some(_) | None => Ok(()),
        };
    }
    match method.as_deref() {
        Some("GET" | "HEAD" | "OPTIONS") => Ok(()),
        Some(_) => refuse("the request changes something on the forge"),
        None if has_fields => {
            refuse("a request with fields is a POST, which changes something on the forge")
        }
        None => Ok(()),
    }
}

/// Returns true if a GraphQL document contains a mutation outside of comments.
fn mutates(query: &str) -> bool {
    query.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| {
        line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == "mutation")
    })
}

/// Judges `curl` and the like: a request to the API of a forge may only read.
pub(crate) fn request(program: &str, args: &[String]) -> Result<(), GuardRefusal> {
    let is_forge = |arg: &String| {
        let arg = arg.trim_start_matches("https://").trim_start_matches("http://");
        let host = arg.split(['/', ':', '?']).next().unwrap_or_default();
        host == "api.github.com"
            || host == "uploads.github.com"
            || arg.contains("/api/v4/")
            || arg.contains("/api/v3/repos/")
    };
    if !args.iter().any(is_forge) {
        return Ok(());
    }
    // Of the other programs the same letters mean something else.
    let letters: Vec<_> =
        args.iter().filter(|_| program == "curl").filter_map(|arg| split_letters(arg)).collect();
    let method = option_value(args, &["-X", "--request", "--method"])
        .or_else(|| letters.iter().find_map(|(_, valued)| valued.strip_prefix('X')))
        .filter(|method| !method.is_empty())
        .map(str::to_ascii_uppercase);
    let by_word =
        args.iter().find(|arg| matches!(arg.as_str(), "POST" | "PUT" | "PATCH" | "DELETE"));
    let sends = args.iter().any(|arg| {
        [
            "-d",
            "--data",
            "--data-raw",
            "--data-binary",
            "--data-urlencode",
            "--json",
            "-F",
            "--form",
            "-T",
            "--upload-file",
            "--post-data",
            "--post-file",
            "--body-data",
        ]
        .iter()
        .any(|option| arg == option || arg.starts_with(&format!("{option}=")))
    });
    let sends = sends || letters.iter().any(|(_, valued)| valued.starts_with(['d', 'F', 'T']));
    let is_get = args.iter().any(|arg| matches!(arg.as_str(), "-G" | "--get" | "-I" | "--head"))
        || letters.iter().any(|(flags, _)| flags.contains(['G', 'I']));
    let writes = match method.as_deref() {
        Some("GET" | "HEAD" | "OPTIONS") => false,
        Some(_) => true,
        None => by_word.is_some() || (sends && !is_get),
    };
    if writes {
        return Err(GuardRefusal::new(
            line(program, args),
            "the request changes something on the forge",
            INSTEAD,
        ));
    }
    Ok(())
}

/// Splits an argument with one-letter options of `curl`, such as `-sXPOST`, before the one that takes a value.
fn split_letters(arg: &str) -> Option<(&str, &str)> {
    const WITH_VALUE: &str = "AbcCdDeEFHKmoPQrtTuUwxXyYz";
    let letters = arg.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let valued = letters.find(|letter: char| WITH_VALUE.contains(letter)).unwrap_or(letters.len());
    Some(letters.split_at(valued))
}
