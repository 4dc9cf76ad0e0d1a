//! The fixture of the demo: a repository, a config, scripted leaves, six briefs.

use camino::Utf8Path;
use pdca_process::GitCall;

use crate::exit::Exit;
use crate::failure::Failure;

use super::{REACHES_OUT, is_confined};

/// Id, slug, defect, and further fields of the brief.
const ISSUES: [(&str, &str, &str, &str); 6] = [
    (
        "12",
        "greet-nobody",
        "`greet.sh` without a name prints `Hello, !`",
        "- **Touches:** greet.sh, tests/issue-12.sh\n",
    ),
    (
        "15",
        "say-goodbye",
        "there is a greeting and no farewell",
        "- **Depends on:** 12\n- **Touches:** farewell.sh, tests/issue-15.sh\n",
    ),
    (
        "20",
        "same-every-day",
        "nothing keeps scripts from printing something else tomorrow",
        "- **Touches:** README.md, tests/issue-20.sh\n",
    ),
    (
        "23",
        "shout",
        "nothing greets the hard of hearing",
        "- **Touches:** README.md, shout.sh, tests/issue-23.sh\n",
    ),
    (
        "31",
        "rename-everything",
        "somebody dislikes the name of the project",
        "- **Disposition hint:** wontfix\n",
    ),
    (
        "42",
        "print-version",
        "nobody knows which version this is",
        "- **Touches:** version.sh, tests/issue-42.sh\n",
    ),
];

const README: &str = "# greeter

Small scripts that greet.

## Rules

(none yet)

## Scripts

- `greet.sh`
";

/// Creates the workspace.
pub(super) fn lay_out(workspace: &Utf8Path) -> Result<(), Failure> {
    let write = |path: &str, text: &str| {
        let path = workspace.join(path);
        fs_err::create_dir_all(path.parent().unwrap_or(workspace))?;
        fs_err::write(path, text)
    };
    write("pdca.toml", include_str!("pdca.toml"))?;
    write("leaves/builder.sh", include_str!("builder.sh"))?;
    write("leaves/reviewer.sh", include_str!("reviewer.sh"))?;
    write("greeter/README.md", README)?;
    write("greeter/greet.sh", "#!/bin/sh\necho \"Hello, $1!\"\n")?;
    write("greeter/tests/greet.sh", "[ \"$(sh greet.sh Ada)\" = \"Hello, Ada!\" ]\n")?;
    for (id, slug, defect, more) in
        ISSUES.into_iter().filter(|issue| is_confined() || issue.0 != REACHES_OUT)
    {
        write(
            &format!("results/issue_{id}/brief.md"),
            &format!(
                "# Brief — issue {id}\n\n- **Slug:** {slug}\n- **Defect:** {defect}\n- **Success criterion:** \
                 `tests/issue-{id}.sh` is green\n- **Repo + branch target:** demo/greeter @ main\n{more}"
            ),
        )?;
    }
    let repository = workspace.join("greeter");
    git(&repository, &["init", "-q", "-b", "main"])?;
    git(&repository, &["add", "-A"])?;
    let who = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"];
    // The user's own settings apply here; a signature would ask for a passphrase.
    let how = ["-c", "commit.gpgsign=false", "commit", "-q", "-m", "greet"];
    git(&repository, &[&who[..], &how[..]].concat())?;
    Ok(())
}

/// Runs git and returns its output. The dates are fixed, so that the demo always has the same
/// commits.
pub(super) fn git(repository: &Utf8Path, words: &[&str]) -> Result<String, Failure> {
    let said = GitCall::as_user(repository)
        .args(words)
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .run()
        .map_err(|error| {
            Failure::from_error(Exit::Usage, &error).hint("install git, then `pdca doctor`")
        })?;
    if !said.success() {
        return Err(Failure::unexpected(format!("git: {}", said.stderr)));
    }
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}
