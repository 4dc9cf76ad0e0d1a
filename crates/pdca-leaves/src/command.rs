//! One leaf as a program to start: arguments, environment, prompt, limits, sandbox.

use std::collections::BTreeSet;
use std::ffi::OsString;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_process::{Env, OutputCap, Spec, Stall, Stdin};
use pdca_state::{Artifact, files};

use crate::{
    call::Call,
    config::PromptVia,
    error::LeafError,
    guard, home,
    instructions::Instructions,
    preset, prompt,
    protocol::Protocol,
    template::{self, Placeholder, Template, Values},
    trace,
};

/// The longest prompt that is read from a file.
const MAX_PROMPT: u64 = 1024 * 1024;

/// How much of a leaf's output is kept: the head and the tail. A printed review is taken only if
/// nothing was left out, so both together have to hold the longest.
pub(crate) const OUTPUT: OutputCap = OutputCap::new(4 << 20, 1 << 20);

/// Where the parts of a job lie.
#[derive(Clone, Debug)]
pub(crate) struct JobLayout {
    job: Utf8PathBuf,
}

impl JobLayout {
    pub(crate) fn new(job: &Utf8Path) -> Self {
        Self { job: job.to_owned() }
    }

    /// The staged view.
    pub(crate) fn view(&self) -> Utf8PathBuf {
        self.job.join("bundle")
    }

    /// The prompt, where one is given.
    pub(crate) fn prompt(&self) -> Utf8PathBuf {
        self.job.join("prompt.md")
    }

    /// The files of the builder guard.
    fn guard(&self) -> Utf8PathBuf {
        self.job.join("guard")
    }

    /// The job of one try of the leaf, counted from 1; throttled ones count here.
    pub(crate) fn try_at(&self, n: u32) -> Utf8PathBuf {
        trace::try_dir(&self.job, n)
    }

    /// The mark that nothing had changed when that try was compared with its baseline.
    pub(crate) fn mark(&self, n: u32) -> Utf8PathBuf {
        self.try_at(n).join("unchanged")
    }
}

/// Describes the leaf of a call completely, going on in `session` if there is one; [`Spec::job`] is set anew for each
/// try.
pub(crate) fn describe(
    call: &Call<'_>,
    layout: &JobLayout,
    session: Option<&str>,
) -> Result<Spec, LeafError> {
    let config = call.config;
    let mut values = values(call, layout);
    values.insert(Placeholder::Session, session.unwrap_or_default().to_owned());
    let prompt = prompt(call, &values)?;
    if let Some(prompt) = &prompt {
        values.insert(Placeholder::Prompt, prompt.clone());
        values.insert(Placeholder::PromptFile, layout.prompt().into());
    }
    let expand =
        |text: &str| -> Result<String, LeafError> { Ok(Template::parse(text)?.expand(&values)?) };
    let model = config.model_args.iter().filter(|_| call.model().is_some());
    let effort = config.effort_args.iter().filter(|_| call.effort().is_some());
    let resume = config.resume_args.iter().filter(|_| session.is_some());
    let argv = config.argv.iter().chain(model).chain(effort).chain(resume);
    let mut argv = argv.map(|text| expand(text)).collect::<Result<Vec<_>, _>>()?;
    let program = argv.first_mut().filter(|program| !program.is_empty());
    let program = program.ok_or(LeafError::NoProgram { role: call.inputs.role() })?;
    if program.contains('/') {
        // The leaf starts in the checkout, so a relative program would be looked for in the change
        // under work. An absolute path is kept by `join`.
        *program = call.places.workspace.join(&program).into();
    }
    // An allow-list: a leaf runs what a model wrote and must not see tokens of the driver's
    // environment. `env_pass` names the exceptions.
    let mut env = Env::default()
        .withhold_credentials(true)
        .model_keys(true)
        .model_vendors(&vendor_keys(config.protocol, config.family.as_deref()))
        .usual_only(true)
        .pass(&config.env_pass);
    env.set.extend(signed_out(call, &env.pass));
    // In this order: the configuration may replace what signs clients out, and nothing replaces
    // what the driver tells the leaf about itself.
    for (name, text) in &config.env {
        env.set.insert(name.into(), expand(text)?.into());
    }
    env.set.extend(environment(call, layout, prompt.is_some()));
    env.set.extend(session.map(|session| ("PDCA_SESSION".into(), session.into())));
    let writable = config
        .writable
        .iter()
        .map(|text| expand(text).map(|path| call.places.workspace.join(home::expand(&path))));
    let writable = writable.collect::<Result<Vec<_>, _>>()?;

    let view = layout.view();
    let prompt_file = prompt.as_ref().map(|_| layout.prompt());
    let sandbox = guard::sandbox(call, &view, prompt_file.as_deref(), writable)?;
    let mut spec = Spec::new(argv, call.places.worktree.unwrap_or(&view), call.job);
    spec.env = env;
    spec.stdin = match (config.interactive, config.prompt_via(), &prompt) {
        (true, ..) => Stdin::Inherit,
        (false, PromptVia::Stdin, Some(prompt)) => Stdin::Bytes(prompt.clone().into_bytes()),
        (false, ..) => Stdin::Null,
    };
    spec.interactive = config.interactive;
    spec.timeout = config.timeout();
    let watched = [Some(view.as_path()), call.places.worktree].into_iter().flatten();
    // A protocol that tells progress is watched by the driver, which understands it.
    let stall_secs = config.stall_secs.filter(|_| !config.protocol.tells_progress());
    spec.stall = stall_secs.map(|after| Stall::new(after.get()).watching(watched));
    // What is beyond this is dropped while it is read, never left in the pipe: a leaf that prints
    // without end must not fill the disk or block.
    spec.output = OUTPUT;
    // Only what an independent leaf says on its standard output may stand for the file it did not write, and a protocol is
    // spoken there alone.
    spec.keep_printed = call.inputs.role().is_independent() || !config.protocol.is_text();
    spec.hold = call.hold.map(Utf8Path::to_owned);
    spec.max_memory = call.max_memory;
    spec.sandbox = Some(sandbox);
    if uses_guard(call) {
        lay_out_guard(call, layout).map_err(LeafError::Job)?;
    }
    if let Some(prompt) = prompt {
        fs::create_dir_all(call.job).map_err(LeafError::Job)?;
        // Beside the view and not in it: the view is removed before each try.
        files::replace_unsynced(layout.prompt(), prompt.as_bytes()).map_err(LeafError::Job)?;
    }
    Ok(spec)
}

/// Whether a placeholder asks for the files of the guard.
fn uses_guard(call: &Call<'_>) -> bool {
    let config = call.config;
    let texts = config.argv.iter().chain(config.env.values());
    texts.filter_map(|text| Template::parse(text).ok()).any(|template| {
        template.placeholders().any(|placeholder| placeholder == Placeholder::Guard)
    })
}

fn lay_out_guard(call: &Call<'_>, layout: &JobLayout) -> std::io::Result<()> {
    for (name, text) in preset::guard_files(program(call)) {
        let file = layout.guard().join(name);
        fs::create_dir_all(file.parent().unwrap_or(&file))?;
        files::replace_unsynced(&file, text.as_bytes())?;
    }
    Ok(())
}

/// The program that a hook asks, in a form that needs no quotes in a shell, in JSON or in TOML.
fn program<'a>(call: &Call<'a>) -> &'a str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-@".contains(&byte);
    call.facts.program.filter(|path| path.bytes().all(plain)).unwrap_or("pdca")
}

/// What the placeholders stand for, the prompt's own apart.
fn values(call: &Call<'_>, layout: &JobLayout) -> Values {
    let role = call.inputs.role();
    let view = layout.view();
    let config = call.config;
    let attempt = call.facts.attempt.to_string();
    let previous = call.inputs.previous().map(|name| view.join(name));
    let ids = call.inputs.ids();
    let brief = view.join(Artifact::Brief.file_name());
    let brief = call.inputs.session().is_empty().then_some(brief.as_str());
    let all = [
        (Placeholder::Bundle, Some(view.as_str())),
        (Placeholder::Inputs, Some(view.as_str())),
        (Placeholder::Brief, brief),
        (Placeholder::Output, Some(output(call, &view).as_str())),
        (Placeholder::Worktree, call.places.worktree.map(Utf8Path::as_str)),
        (Placeholder::Workspace, Some(call.places.workspace.as_str())),
        (Placeholder::Id, ids.as_deref()),
        (Placeholder::Role, Some(role.as_str())),
        (Placeholder::Base, call.facts.base),
        (Placeholder::Target, call.facts.target),
        (Placeholder::Model, call.model()),
        (Placeholder::Effort, call.effort()),
        (Placeholder::Attempt, Some(attempt.as_str())),
        (Placeholder::Push, call.facts.push),
        (Placeholder::Previous, previous.as_deref().map(Utf8Path::as_str)),
        (Placeholder::Primary, primary(call).map(Utf8Path::as_str)),
        (Placeholder::Gates, call.facts.gates),
        (Placeholder::Family, config.family.as_deref()),
        (Placeholder::Agent, config.agent.as_deref()),
        (Placeholder::Lens, config.role.as_deref()),
        (Placeholder::Pdca, Some(program(call))),
        (Placeholder::Guard, Some(layout.guard().as_str())),
    ]
    .map(|(name, value)| value.map(|value| (name, value.to_owned())));
    all.into_iter().flatten().collect()
}

/// The file to leave; in a session over several issues, the directory with one of each.
fn output(call: &Call<'_>, view: &Utf8Path) -> Utf8PathBuf {
    let is_session = !call.inputs.session().is_empty();
    if is_session { view.to_owned() } else { view.join(call.inputs.role().output().file_name()) }
}

/// Returns the beginnings of the variables with which an agent signs in to its own vendor; none where that is not known.
fn vendor_keys(protocol: Protocol, family: Option<&str>) -> Vec<&'static str> {
    const ANTHROPIC: [&str; 2] = ["ANTHROPIC_", "CLAUDE_"];
    const OPENAI: [&str; 3] = ["OPENAI_", "CODEX_", "AZURE_OPENAI_"];
    const GOOGLE: [&str; 2] = ["GEMINI_", "GOOGLE_API_KEY"];
    let of_family = || match family.map(str::to_ascii_lowercase)?.as_str() {
        "anthropic" => Some(ANTHROPIC.to_vec()),
        "openai" => Some(OPENAI.to_vec()),
        "google" => Some(GOOGLE.to_vec()),
        "mistral" => Some(vec!["MISTRAL_"]),
        "deepseek" => Some(vec!["DEEPSEEK_"]),
        "groq" => Some(vec!["GROQ_"]),
        "xai" => Some(vec!["XAI_"]),
        "openrouter" => Some(vec!["OPENROUTER_"]),
        _ => None,
    };
    let own = match protocol {
        Protocol::Claude => return ANTHROPIC.to_vec(),
        Protocol::Codex => return OPENAI.to_vec(),
        Protocol::Gemini => return GOOGLE.to_vec(),
        Protocol::Aider => Some("AIDER_"),
        Protocol::Opencode => Some("OPENCODE_"),
        Protocol::Text => None,
    };
    // These work with any vendor, so the family has to say which.
    of_family().map(|keys| keys.into_iter().chain(own).collect()).unwrap_or_default()
}

/// Has clients that keep their credentials in files find none: those of forges look into an empty directory, and git
/// asks no helper.
fn signed_out(call: &Call<'_>, pass: &BTreeSet<OsString>) -> Vec<(OsString, OsString)> {
    let nowhere = call.job.join("signed-out");
    // The sandbox closes the files of credentials where it can; this holds without one too, and for a
    // git helper that is a keychain and has no file. `GIT_CONFIG_COUNT` outranks the user's
    // configuration, and an empty `credential.helper` clears the list of helpers.
    let settings = [
        ("GH_CONFIG_DIR", nowhere.as_str()),
        ("GLAB_CONFIG_DIR", nowhere.as_str()),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "credential.helper"),
        ("GIT_CONFIG_VALUE_0", ""),
    ];
    let settings = settings.into_iter().map(|(name, value)| (name.into(), value.into()));
    settings.filter(|(name, _): &(OsString, OsString)| !pass.contains(name)).collect()
}

/// The user's own checkout, for the guard and for those who only read. An independent role is told of nothing but its
/// inputs.
fn primary<'a>(call: &Call<'a>) -> Option<&'a Utf8Path> {
    call.places.primary.filter(|_| !call.inputs.role().is_independent())
}

/// The environment that every leaf gets; what has no value is not set.
fn environment(
    call: &Call<'_>,
    layout: &JobLayout,
    prompted: bool,
) -> impl Iterator<Item = (OsString, OsString)> {
    let role = call.inputs.role();
    let view = layout.view();
    let output = output(call, &view);
    let issues =
        call.inputs.session().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let prompt = prompted.then(|| layout.prompt());
    let facts = call.facts;
    let attempt = facts.attempt.to_string();
    let primary = primary(call).map(Utf8Path::as_str);
    let fixed = [
        // Of the driver it is where the person is; some agents work there.
        ("PWD", Some(call.places.worktree.unwrap_or(&view).as_str())),
        ("PDCA_BUNDLE", Some(view.as_str())),
        ("PDCA_OUTPUT", Some(output.as_str())),
        ("PDCA_ROLE", Some(role.as_str())),
        ("PDCA_PROMPT_FILE", prompt.as_deref().map(Utf8Path::as_str)),
        ("PDCA_ISSUE", call.inputs.bundle().map(|bundle| bundle.id().as_ref())),
        ("PDCA_ISSUES", Some(issues.as_str()).filter(|issues| !issues.is_empty())),
        ("PDCA_WORKSPACE", Some(call.places.workspace.as_str())),
        ("PDCA_WORKTREE", call.places.worktree.map(Utf8Path::as_str)),
        ("PDCA_PRIMARY", primary),
        ("PDCA_BASE", facts.base),
        ("PDCA_BRIEF_BASE", facts.brief_base),
        ("PDCA_TARGET", facts.target),
        ("PDCA_GIT_COMMON_DIR", facts.git_common_dir),
        ("PDCA_ATTEMPT", Some(attempt.as_str())),
        ("PDCA_PUSH", facts.push),
        ("PDCA_RUN", facts.run),
        ("PDCA_MODEL", call.model()),
        ("PDCA_EFFORT", call.effort()),
        ("PDCA_FAMILY", call.config.family.as_deref()),
        ("PDCA_AGENT", call.config.agent.as_deref()),
    ];
    let lane = facts.lane.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
    let all: Vec<_> = fixed
        .into_iter()
        .chain(lane)
        .filter_map(|(name, value)| value.map(|value| (name.into(), value.into())))
        .collect();
    all.into_iter()
}

/// The prompt with its values, unless none is wanted.
fn prompt(call: &Call<'_>, values: &Values) -> Result<Option<String>, LeafError> {
    let is_built_in = call.config.prompt.is_none() && call.config.prompt_file.is_none();
    let text = raw_prompt(call)?.map(|text| {
        if is_built_in { prompt::select(&text, values, call.config.interactive) } else { text }
    });
    // After the values are filled in: the project's own text is nobody's template.
    let own = call.inputs.instructions().map(Instructions::section).unwrap_or_default();
    Ok(text.map(|text| template::fill(&text, values) + &own))
}

/// The prompt as configured or built in, unless none is wanted.
pub(crate) fn raw_prompt(call: &Call<'_>) -> Result<Option<String>, LeafError> {
    let config = call.config;
    match (config.prompt_via(), &config.prompt, &config.prompt_file) {
        (PromptVia::None, ..) => Ok(None),
        (PromptVia::Stdin | PromptVia::File, Some(text), _) => Ok(Some(text.clone())),
        (PromptVia::Stdin | PromptVia::File, None, Some(file)) => {
            load_prompt(&call.places.workspace.join(file)).map(Some)
        }
        (PromptVia::Stdin | PromptVia::File, None, None) if !call.inputs.session().is_empty() => {
            Ok(Some(prompt::PLANNING_SESSION.to_owned()))
        }
        (PromptVia::Stdin | PromptVia::File, None, None) => {
            Ok(Some(prompt::built_in(call.inputs.role(), config.protocol).to_owned()))
        }
    }
}

fn load_prompt(path: &Utf8Path) -> Result<String, LeafError> {
    let bytes = files::read_bounded(path, MAX_PROMPT)
        .map_err(|source| LeafError::Prompt { path: path.to_owned(), source: source.into() })?
        .ok_or_else(|| LeafError::Prompt {
            path: path.to_owned(),
            source: std::io::Error::from(std::io::ErrorKind::NotFound).into(),
        })?;
    String::from_utf8(bytes)
        .map_err(|source| LeafError::Prompt { path: path.to_owned(), source: source.into() })
}
