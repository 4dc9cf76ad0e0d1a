//! Registries: a builder must not publish packages or images.

use super::{asks_for_help, line};
use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::nested::{behind_options, option_value};

const INSTEAD: &str = "build and test the package here; a person publishes it after sign-off";

/// The subcommands of each program that publish.
const PUBLISHING: &[(&[&str], &[&[&str]])] = &[
    (
        &["npm", "pnpm", "bun", "cnpm"],
        &[
            &["publish"],
            &["unpublish"],
            &["deprecate"],
            &["undeprecate"],
            &["dist-tag", "add"],
            &["dist-tag", "rm"],
            &["owner", "add"],
            &["owner", "rm"],
            &["stage"],
            &["token", "create"],
        ],
    ),
    (&["yarn"], &[&["publish"], &["npm", "publish"], &["npm", "tag"], &["workspaces", "publish"]]),
    (&["lerna", "changeset", "nx"], &[&["publish"], &["release", "publish"]]),
    (&["semantic-release", "np", "release-it"], &[&[]]),
    (&["jsr", "deno"], &[&["publish"]]),
    (
        &["cargo"],
        &[
            &["publish"],
            &["yank"],
            &["owner"],
            &["login"],
            &["release"],
            &["smart-release"],
            &["workspaces", "publish"],
            &["dist", "host"],
        ],
    ),
    (&["twine"], &[&["upload"], &["register"]]),
    (&["poetry", "uv", "flit", "hatch", "pdm", "rye"], &[&["publish"]]),
    (&["maturin"], &[&["publish"], &["upload"]]),
    (&["gem"], &[&["push"], &["yank"], &["owner"]]),
    (&["bundle", "rake"], &[&["release"], &["exec", "rake", "release"]]),
    (
        &["docker", "podman", "nerdctl", "buildah"],
        &[
            &["push"],
            &["image", "push"],
            &["compose", "push"],
            &["manifest", "push"],
            &["plugin", "push"],
        ],
    ),
    (
        &["docker-compose", "crane", "oras", "helm", "regctl", "ko", "cosign", "apko"],
        &[&["push"], &["publish"], &["image", "copy"]],
    ),
    (&["skopeo"], &[&["copy"], &["sync"], &["delete"]]),
    (&["mvn", "mvnw"], &[&["deploy"], &["release:perform"], &["deploy:deploy"]]),
    (&["dotnet"], &[&["nuget", "push"], &["nuget", "delete"]]),
    (&["nuget"], &[&["push"], &["delete"]]),
    (&["mix"], &[&["hex.publish"], &["hex.retire"]]),
    (&["dart", "flutter"], &[&["pub", "publish"]]),
    (&["pub"], &[&["publish"]]),
    (&["vsce", "ovsx"], &[&["publish"], &["unpublish"]]),
    (&["goreleaser"], &[&["release"]]),
    (&["pod"], &[&["trunk", "push"], &["repo", "push"]]),
    (&["luarocks", "opam", "conda", "anaconda"], &[&["upload"], &["publish"]]),
    (&["cabal", "stack"], &[&["upload"]]),
    (&["snapcraft", "charmcraft"], &[&["upload"], &["push"], &["release"]]),
];

/// Options before a subcommand that take their value as the next argument.
const WITH_VALUE: &[&str] = &[
    "--prefix",
    "-C",
    "--dir",
    "--filter",
    "-F",
    "--config",
    "--manifest-path",
    "--context",
    "-c",
    "-H",
    "--host",
    "--registry",
    "--userconfig",
    "-w",
    "--workspace",
    "--project",
    "--directory",
    "-f",
    "--file",
    "-Z",
    "--color",
    "-P",
    "-p",
    "--cwd",
    "-s",
    "--settings",
    "--log-level",
    "-l",
];

pub(crate) fn judge(program: &str, args: &[String]) -> Result<(), GuardRefusal> {
    let refuse =
        || Err(GuardRefusal::new(line(program, args), "a builder publishes nothing", INSTEAD));
    if asks_for_help(args) {
        return Ok(());
    }
    if matches!(program, "gradle" | "gradlew")
        && args.iter().any(|arg| is_gradle_publish(arg))
        && !is_rehearsal(args)
    {
        return refuse();
    }
    if program == "setup.py" || args.first().is_some_and(|arg| arg.ends_with("setup.py")) {
        if args.iter().any(|arg| matches!(arg.as_str(), "upload" | "register" | "upload_docs")) {
            return refuse();
        }
        return Ok(());
    }
    if matches!(program, "docker" | "podman" | "buildx")
        && args.iter().any(|arg| {
            arg == "--push" || (arg.starts_with("--output") && arg.contains("push=true"))
        })
    {
        return refuse();
    }
    let Some((_, paths)) = PUBLISHING.iter().find(|(names, _)| names.contains(&program)) else {
        return Ok(());
    };
    let words = subcommands(program, args);
    let publishes = paths.iter().any(|path| match program {
        // Maven accepts its goals in any position.
        "mvn" | "mvnw" => path.iter().all(|goal| words.contains(goal)),
        _ => words.starts_with(path),
    });
    if !publishes || is_rehearsal(args) || is_local(program, &words, args) {
        return Ok(());
    }
    refuse()
}

/// Returns the arguments that are neither options nor their values, nor toolchains.
fn subcommands<'a>(program: &str, args: &'a [String]) -> Vec<&'a str> {
    let mut words = Vec::new();
    let mut rest = args;
    loop {
        rest = behind_options(rest, WITH_VALUE);
        match rest.split_first() {
            Some((word, behind)) => {
                if !(program == "cargo" && word.starts_with('+')) {
                    words.push(word.as_str());
                }
                rest = behind;
            }
            None => return words,
        }
    }
}

/// Returns true if the command is a dry run.
fn is_rehearsal(args: &[String]) -> bool {
    args.iter().any(|arg| {
        matches!(
            arg.as_str(),
            "--dry-run"
                | "--dry-run=true"
                | "--dryRun"
                | "--snapshot"
                | "--skip=publish"
                | "--no-publish"
        )
    })
}

/// Returns true if the command stays on this machine: `cargo release` without `--execute`, `cargo owner --list`, a copy
/// to a directory.
fn is_local(program: &str, words: &[&str], args: &[String]) -> bool {
    let has = |option: &str| args.iter().any(|arg| arg == option);
    match (program, words) {
        ("cargo", ["release", ..]) => !has("--execute") && !has("-x"),
        ("cargo", ["publish", ..]) => has("-n"),
        ("cargo", ["owner", ..]) => has("--list") || has("-l"),
        ("skopeo", ["copy" | "sync", ..]) => {
            let to = words.last().copied().unwrap_or_default();
            !(to.starts_with("docker://") || option_value(args, &["--dest"]) == Some("docker"))
        }
        ("npm", ["stage", ..]) => words.len() < 2,
        _ => false,
    }
}

fn is_gradle_publish(task: &str) -> bool {
    let task = task.rsplit(':').next().unwrap_or(task);
    task.starts_with("publish") && !task.ends_with("ToMavenLocal")
        || task == "uploadArchives"
        || task == "bintrayUpload"
}
