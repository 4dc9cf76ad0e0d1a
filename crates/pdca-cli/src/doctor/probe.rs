//! `--probe`: each configured leaf is called once for real.

use std::time::Duration;

use camino::Utf8Path;
use pdca_driver::WorkspaceConfig;
use pdca_leaves::{CallFacts, FailureClass, LeafConfig, LeafMode, ProbeEnding, Probed, Role};
use pdca_process::{Cancel, Tool};
use pdca_state::Money;
use pdca_workspace::config::workspace::Workspace;
use serde::Serialize;

use crate::context::Context;
use crate::doctor::{Health, Row};
use crate::session;

/// The longest that a program may take to tell its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(30);

/// The answer of a leaf.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ProbeAnswer {
    /// `done`, `throttled`, `auth`, `context-too-long`, `refused`, `host` or `failed`.
    class: &'static str,
    /// The version, as the program tells it.
    version: Option<String>,
    /// The model that answered, where it was told.
    model: Option<String>,
    /// The last message, or the words of the failure.
    said: Option<String>,
    seconds: f64,
    /// Tokens read.
    input_tokens: Option<u64>,
    /// Tokens written.
    output_tokens: Option<u64>,
    /// In millionths of a dollar.
    cost_usd_micros: Option<Money>,
    /// The wall that it ran behind.
    wall: Option<String>,
}

/// Probes every leaf that is a command, and says what came back.
pub(super) fn rows(workspace: &Workspace, site: &WorkspaceConfig, cx: &Context<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (spec, name, leaf) in workspace.config.leaves.all() {
        if site.force_stubs || leaf.mode == LeafMode::Stub {
            continue;
        }
        let what = format!("probe {name}");
        rows.push(match leaf.argv.first() {
            _ if leaf.interactive => Row::warning(
                what,
                "not called: it talks to a person at the terminal",
                "call it through the command of its role",
            ),
            Some(program) if session::has_program(cx, &site.dirs.root, program) => {
                probed(what, name, leaf, spec.role, site, cx)
            }
            Some(program) => Row::broken(
                what,
                format!("not called: there is no program `{program}`"),
                format!("install it, or mend [leaves.{name}]"),
            ),
            None => Row::broken(what, "no `argv`", format!("give [leaves.{name}] an `argv`")),
        });
    }
    if rows.is_empty() {
        let remedy = "name an agent, such as `agent = \"claude\"` in [leaves.builder]";
        rows.push(Row::warning("probe", "no leaf is a command, so nothing was called", remedy));
    }
    rows
}

fn probed(
    what: String,
    name: &str,
    leaf: &LeafConfig,
    role: Role,
    site: &WorkspaceConfig,
    cx: &Context<'_>,
) -> Row {
    let call = || -> Result<Probed, pdca_leaves::BoxError> {
        let dir = tempfile::tempdir()?;
        let dir = Utf8Path::from_path(dir.path()).ok_or("the temporary directory is not UTF-8")?;
        let dir = dir.canonicalize_utf8()?;
        checkout(&dir.join("checkout"))?;
        let program = cx.env.program.as_deref().map(Utf8Path::as_str);
        let facts = CallFacts { program, ..CallFacts::default() };
        pdca_leaves::probe(leaf, role, &dir, facts, &Cancel::new())
    };
    match call() {
        Ok(probed) => row(what, name, leaf, version(leaf, site), &probed),
        Err(error) => Row::broken(
            what,
            format!("could not be called: {error}"),
            "make the temporary directory writable, or set TMPDIR to another",
        ),
    }
}

/// Makes a repository with one commit that nobody needs.
fn checkout(path: &Utf8Path) -> Result<(), pdca_leaves::BoxError> {
    fs_err::create_dir_all(path)?;
    fs_err::write(path.join("README.md"), "A checkout to try a leaf in.\n")?;
    let who =
        ["-c", "user.name=pdca", "-c", "user.email=pdca@localhost", "-c", "commit.gpgsign=false"];
    // The settings of the user apply. Their hooks and signatures are not for a commit that only a probe sees.
    let commit = [&who[..], &["commit", "-q", "--no-verify", "-m", "first"]].concat();
    for words in [["init", "-q"].as_slice(), &["add", "README.md"], &commit] {
        let said = Tool::new("git").args(words).cwd(path).run()?;
        if !said.success() {
            return Err(String::from_utf8_lossy(&said.stderr).trim().to_owned().into());
        }
    }
    Ok(())
}

/// Asks a program with a preset for its version. What another program does with `--version` is not known.
fn version(leaf: &LeafConfig, site: &WorkspaceConfig) -> Option<String> {
    let program = leaf.argv.first()?;
    let name = program.rsplit('/').next()?;
    pdca_leaves::Preset::named(name)?;
    let program = if program.contains('/') {
        site.dirs.root.join(program).into_string()
    } else {
        program.clone()
    };
    let said = Tool::new(program).arg("--version").timeout(VERSION_PATIENCE).run().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

fn row(
    what: String,
    name: &str,
    leaf: &LeafConfig,
    version: Option<String>,
    probed: &Probed,
) -> Row {
    let said = &probed.transcript;
    let (class, words) = match &probed.ending {
        ProbeEnding::Answered => ("done", said.message.clone()),
        ProbeEnding::Diagnosed { class, said } => (class_name(*class), Some(said.clone())),
        ProbeEnding::Failed { why } => ("failed", Some(why.clone())),
    };
    let answer = ProbeAnswer {
        class,
        version,
        model: said.model.clone(),
        said: words.map(|words| one_line(&words)),
        seconds: probed.duration.as_secs_f64(),
        input_tokens: said.usage.map(|usage| usage.input),
        output_tokens: said.usage.map(|usage| usage.output),
        cost_usd_micros: said.cost,
        wall: probed.held.as_ref().map(ToString::to_string),
    };
    let found = in_words(&answer);
    let row = match &probed.ending {
        ProbeEnding::Answered => Row::ok(what, found),
        ProbeEnding::Diagnosed { class, .. } => {
            let health = match class {
                FailureClass::Throttled => Health::Warning,
                FailureClass::Auth
                | FailureClass::ContextTooLong
                | FailureClass::Refused
                | FailureClass::Host => Health::Broken,
            };
            Row { remedy: Some(remedy(*class, leaf)), ..Row::new(what, health, found) }
        }
        ProbeEnding::Failed { .. } => {
            let remedy = format!(
                "`pdca config show leaves.{name}` shows what is started; run that by hand to see what it says"
            );
            Row::broken(what, found, remedy)
        }
    };
    Row { probe: Some(answer), ..row }
}

fn in_words(answer: &ProbeAnswer) -> String {
    let version = answer.version.as_deref().map_or_else(String::new, |text| format!("{text}, "));
    let outcome = match (answer.class, &answer.said) {
        ("done", None) => "answered".to_owned(),
        ("done", Some(said)) => format!("answered `{said}`"),
        (class, None) => class.to_owned(),
        (class, Some(said)) => format!("{class}: {said}"),
    };
    let tokens = match (answer.input_tokens, answer.output_tokens) {
        (Some(read), Some(written)) => format!(", {read} tokens read and {written} written"),
        (None, _) | (_, None) => String::new(),
    };
    let cost = answer.cost_usd_micros.map_or_else(String::new, |cost| format!(", {cost}"));
    let wall = answer.wall.as_deref().map_or_else(String::new, |wall| format!(", behind {wall}"));
    format!("{version}{outcome} in {:.1} s{tokens}{cost}{wall}", answer.seconds)
}

/// The first line of a text, cut where it is long.
fn one_line(text: &str) -> String {
    let text = crate::style::printable(text.lines().next().unwrap_or_default());
    text.chars().take(200).collect()
}

fn class_name(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Throttled => "throttled",
        FailureClass::Auth => "auth",
        FailureClass::ContextTooLong => "context-too-long",
        FailureClass::Refused => "refused",
        FailureClass::Host => "host",
    }
}

/// Says what helps, by the kind of failure and the agent.
fn remedy(class: FailureClass, leaf: &LeafConfig) -> String {
    let program = leaf.argv.first().map_or("the program", String::as_str);
    match class {
        FailureClass::Auth => match program {
            "claude" => "start `claude` once and sign in with /login, or set ANTHROPIC_API_KEY".to_owned(),
            "codex" => "`codex login`, or set OPENAI_API_KEY".to_owned(),
            "gemini" => "start `gemini` once and sign in, or set GEMINI_API_KEY".to_owned(),
            "opencode" => "`opencode auth login`".to_owned(),
            "aider" => "set the key of the model that `aider` is configured for, such as OPENAI_API_KEY".to_owned(),
            other => format!("sign `{other}` in, or name its key in `env_pass`"),
        },
        FailureClass::Throttled => {
            "wait, or use another plan or agent; a run waits by itself up to `throttled.max_wait_secs`".to_owned()
        }
        FailureClass::ContextTooLong => {
            format!("`{program}` sends more than its model takes: set a model with a larger window as `model`")
        }
        FailureClass::Refused => "set another `model`".to_owned(),
        FailureClass::Host => {
            "check the network, proxies and the base URL of the provider; `network = \"off\"` would also do this".to_owned()
        }
    }
}
