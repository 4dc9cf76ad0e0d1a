//! `pdca init`: creates a workspace.

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_state::text::shell;
use pdca_workspace::config::scaffold::{
    AgentsFiles, Chosen, InitRequest, PdcaSource, parse_builder, parse_reviewer, plan_workspace,
};

use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

/// Create a workspace: pdca.toml, a brief template, an Act log, a CI workflow
///
/// Detects cargo, npm, pytest, go and make in the target, and proposes gate rows and caches. Detects claude, codex, gemini,
/// opencode and aider on PATH, and makes them builder and reviewer, of two families where there are two; the builder's agent
/// also plans, helps at sign-off, publishes and looks back. The target is
/// the git repository around the directory, or `--target`. Shows the configuration and asks before it writes; `--yes`
/// does not ask. An existing file is never overwritten.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca init                 # in the directory that is to become a workspace
  pdca -C ../cycle init -y  # elsewhere, from a script
  pdca init --dry-run       # only show what would be written
  pdca init --target ../app --builder claude --reviewer codex
  pdca init --builder none --reviewer none   # no agents: stubs, until pdca.toml names some
  pdca init --guard claude  # the guard's hook for an agent that is not on PATH

Without a terminal and without --yes nothing is written and the exit code is 2.")]
pub(crate) struct Args {
    /// The repository under change, where it is not the one around the workspace
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    target: Option<Utf8PathBuf>,
    /// The agent that builds: claude, codex, gemini, opencode, aider, or none
    #[arg(long, value_name = "AGENT", value_parser = parse_builder)]
    builder: Option<Chosen>,
    /// The agent that reviews; one of another family judges more independently
    #[arg(long, value_name = "AGENT", value_parser = parse_reviewer)]
    reviewer: Option<Chosen>,
    /// Write the guard's configuration for this agent even if it is not on PATH; can be repeated
    #[arg(long, value_name = "AGENT", value_parser = parse_agent)]
    guard: Vec<pdca_leaves::tool_guard::Agent>,
    /// Where CI builds pdca from, for the workflow: a git repository, and a tag or a commit of it
    #[arg(long, value_name = "URL[@REV]")]
    pdca_source: Option<PdcaSource>,
    /// For which agents instruction files are written: `.claude/agents/`, `.claude/commands/pdca.md`, a section of AGENTS.md
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    agents_files: AgentsFilesArg,
}

impl Args {
    /// Returns the options as they were typed, so that a hint repeats them.
    fn typed(&self) -> String {
        let mut words: Vec<(&str, &str)> = Vec::new();
        words.extend(self.target.as_ref().map(|target| ("--target", target.as_str())));
        let name = |chosen: Chosen| chosen.map_or("none", |preset| preset.name);
        words.extend(self.builder.map(|builder| ("--builder", name(builder))));
        words.extend(self.reviewer.map(|reviewer| ("--reviewer", name(reviewer))));
        words.extend(self.guard.iter().map(|agent| ("--guard", agent.as_str())));
        let source = self.pdca_source.as_ref().map(|source| {
            let rev = source.rev.as_ref().map_or_else(String::new, |rev| format!("@{rev}"));
            format!("{}{rev}", source.url)
        });
        words.extend(source.as_deref().map(|source| ("--pdca-source", source)));
        match self.agents_files {
            AgentsFilesArg::Chosen => {}
            AgentsFilesArg::All => words.push(("--agents-files", "all")),
            AgentsFilesArg::None => words.push(("--agents-files", "none")),
        }
        let words = words.iter().map(|(option, value)| format!(" {option} {}", shell(value)));
        words.collect::<Vec<_>>().concat()
    }
}

/// The agents that get instruction files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum AgentsFilesArg {
    /// Those that build or review
    #[default]
    Chosen,
    /// All agents
    All,
    /// No agent
    None,
}

impl From<AgentsFilesArg> for AgentsFiles {
    fn from(arg: AgentsFilesArg) -> Self {
        match arg {
            AgentsFilesArg::Chosen => Self::Chosen,
            AgentsFilesArg::All => Self::All,
            AgentsFilesArg::None => Self::None,
        }
    }
}

fn parse_agent(name: &str) -> Result<pdca_leaves::tool_guard::Agent, String> {
    let known =
        pdca_leaves::tool_guard::Agent::ALL.map(pdca_leaves::tool_guard::Agent::as_str).join(", ");
    name.parse()
        .map_err(|error: pdca_leaves::tool_guard::CallError| format!("{error}; known are {known}"))
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let request = InitRequest {
        dir: &cx.globals.start_dir(cx.env)?,
        target: args.target.as_deref(),
        builder: args.builder,
        reviewer: args.reviewer,
        guard: &args.guard,
        pdca_source: args.pdca_source.as_ref(),
        agents_files: args.agents_files.into(),
        dry_run: cx.globals.dry_run,
    };
    let mut new = plan_workspace(request, cx.env.environment())?;
    for note in &new.notes {
        writeln!(err, "note: {note}")?;
    }
    if new.files.is_empty() || cx.globals.dry_run {
        return Ok(render::init::planned(new));
    }
    let mut is_proposed = false;
    if !cx.globals.yes {
        if !cx.may_ask() {
            let failure = Failure::usage("nothing was written: there is no terminal to ask on");
            let again = cx.typed(&format!("pdca init --yes{}", args.typed()));
            return Ok(render::init::planned(new).failed(failure.hint(format!("`{again}`"))));
        }
        render::init::proposal(&new, cx, err)?;
        is_proposed = true;
        if !cx.ask("Write these files?", err)? {
            return Ok(render::init::asked(new));
        }
    }
    new.write()?;
    Ok(if is_proposed { render::init::asked(new) } else { render::init::planned(new) })
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use crate::exit::Exit;
    use crate::process_env::ProcessEnv;
    use crate::testing::{Desk, Run};

    /// An empty directory beside the workspace of a desk.
    fn empty(files: &[(&str, &str)]) -> (Desk, Utf8PathBuf) {
        let mut desk = Desk::new();
        let dir = desk.workspace.around().join("fresh");
        for (name, text) in files {
            let path = dir.join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        fs_err::create_dir_all(&dir).unwrap();
        desk.env = ProcessEnv::of_values(dir.as_str(), &[]);
        (desk, dir)
    }

    fn init(desk: &Desk, args: &[&str]) -> Run {
        desk.run(&[&["init"], args].concat())
    }

    #[test]
    fn it_shows_what_it_writes() {
        let (desk, _) = empty(&[("Cargo.toml", ""), (".git/HEAD", "")]);
        insta::assert_snapshot!(init(&desk, &["--yes"]), @r#"
        workspace: .
        build tools found: cargo
        gate rows proposed: T1-fmt, T2-clippy, T3-test
        agents on PATH: nothing
        target: the repository at `.`
        builder: none, a stub stands in
        reviewer: none, a stub stands in
          write pdca.toml
          write templates/brief.md.tpl
          write process/act-log.md
          write .github/workflows/pdca.yml
          write .gitignore

        pdca.toml, without its comments:

          [project]
          name = "fresh"
          [lanes]
          cache = ["target/"]
          [[targets]]
          path = "."
          [[gates.checks]]
          id = "T1-fmt"
          tier = "T1"
          label = "formatted as rustfmt wants it"
          cmd = "cargo fmt --all --check"
          scope = "repo"
          gating = false
          needs = []
          [[gates.checks]]
          id = "T2-clippy"
          tier = "T2"
          label = "no clippy warning"
          cmd = "cargo clippy --workspace --all-targets -- -D warnings"
          scope = "repo"
          gating = false
          needs = []
          [[gates.checks]]
          id = "T3-test"
          tier = "T3"
          label = "the test suite passes"
          cmd = "cargo test --workspace"
          scope = "repo"
          gating = true
          needs = []

        done: a workspace in .
        next: pdca new <id> --title "…"
        --- stderr
        note: the workflow does not say where pdca is built from; `--pdca-source URL@REV` writes it, or edit .github/workflows/pdca.yml
        "#);
        assert_eq!(init(&desk, &["--yes"]).exit, Exit::NothingToDo);
    }

    #[test]
    fn every_command_that_instruction_files_name_exists() {
        use clap::CommandFactory as _;
        let cli = crate::command::Cli::command();
        let mut named = 0;
        for text in pdca_workspace::config::scaffold::instruction_texts() {
            for (at, _) in text.match_indices("`pdca ") {
                let name = text[at + 6..].split([' ', '`']).next().unwrap();
                assert!(cli.find_subcommand(name).is_some(), "`pdca {name}`");
                named += 1;
            }
        }
        assert!(named > 0);
    }

    #[test]
    fn the_workflow_is_well_formed_and_uses_only_what_it_defines() {
        let source = "https://forge.example/own/pdca@v1".parse().unwrap();
        let text = pdca_workspace::config::scaffold::workflow(Some(&source));
        let mut steps = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let indent = line.len() - line.trim_start().len();
            assert!(!line.contains('\t') && indent % 2 == 0, "line {number}: {line}");
            if let Some(action) = line.trim_start().trim_start_matches("- ").strip_prefix("uses: ")
            {
                let version = action.split_once("@v").map(|(_, version)| version);
                assert!(
                    version.is_some_and(|one| one.parse::<u32>().is_ok()),
                    "line {number}: {line}"
                );
            }
            steps.extend(line.trim_start().strip_prefix("id: "));
            for expression in line.split("${{ ").skip(1) {
                let name = expression.split_once(" }}").expect("an expression ends on its line").0;
                let known = match name.split('.').collect::<Vec<_>>()[..] {
                    ["steps", step, "outputs", _] => steps.contains(&step),
                    ["runner", "os" | "arch"] | ["github", "ref"] => true,
                    _ => false,
                };
                assert!(known, "line {number}: {name}");
            }
        }
        for part in [
            "PDCA_SOURCE: \"https://forge.example/own/pdca\"\n      PDCA_REV: \"v1\"\n",
            "pdca gates --working-tree --json --junit gates.xml > gates.json",
            "actions/cache@",
            "GITHUB_STEP_SUMMARY",
            "::error title=",
            "contents: read",
            "exit \"$code\"",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }

    #[test]
    fn the_workflow_runs_for_every_push_to_a_pull_request() {
        let (desk, dir) = empty(&[("Cargo.toml", ""), (".git/HEAD", "")]);
        assert_eq!(init(&desk, &["--yes"]).exit, Exit::Done);
        let text = fs_err::read_to_string(dir.join(".github/workflows/pdca.yml")).unwrap();
        let on = text.split("\non:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        // Without `types` that is opened, reopened and pushed to, drafts included.
        assert!(on.lines().any(|line| line == "  pull_request:") && !on.contains("types:"), "{on}");
    }

    #[test]
    fn without_a_terminal_and_without_yes_nothing_is_written() {
        let (desk, dir) = empty(&[]);
        insta::assert_snapshot!(init(&desk, &[]), @r#"
        workspace: .
        build tools found: nothing
        gate rows proposed: nothing
        agents on PATH: nothing
        target: none (no git repository here); add a [[targets]] to pdca.toml
        builder: none, a stub stands in
        reviewer: none, a stub stands in
          write pdca.toml
          write templates/brief.md.tpl
          write process/act-log.md

        pdca.toml, without its comments:

          [project]
          name = "fresh"
        --- stderr
        error: nothing was written: there is no terminal to ask on
        hint: `pdca init --yes`
        --- exit 2
        "#);
        let run = init(&desk, &["--builder", "none", "--reviewer", "codex", "--guard", "claude"]);
        let again = "hint: `pdca init --yes --builder none --reviewer codex --guard claude`";
        assert!(run.err.contains(again), "{run}");
        assert_eq!(init(&desk, &["--dry-run"]).exit, Exit::Done);
        assert_eq!(dir.read_dir_utf8().unwrap().count(), 0);
    }

    #[test]
    fn what_exists_is_never_overwritten() {
        let (desk, dir) =
            empty(&[("pdca.toml", "# mine\n"), (".git/HEAD", ""), (".gitignore", "target")]);
        assert_eq!(init(&desk, &["--yes"]).exit, Exit::Done);
        assert_eq!(fs_err::read_to_string(dir.join("pdca.toml")).unwrap(), "# mine\n");
        assert_eq!(fs_err::read_to_string(dir.join(".gitignore")).unwrap(), "target\n.pdca/\n");
        assert!(dir.join("templates/brief.md.tpl").is_file());
    }

    #[test]
    fn what_it_writes_loads_without_a_word() {
        for files in [
            &[][..],
            &[
                ("Cargo.toml", ""),
                (".git/HEAD", ""),
                ("package.json", "{}"),
                ("Makefile", "test:\n"),
            ],
        ] {
            let (desk, _) = empty(files);
            assert_eq!(init(&desk, &["--yes"]).exit, Exit::Done);
            let run = desk.run(&["status"]);
            assert_eq!(run.to_string(), "no bundles in results\n");
            assert_eq!(desk.run(&["new", "1"]).exit, Exit::Done);
        }
    }

    /// A directory with programs of these names on its `PATH`.
    fn with_programs(names: &[&str], files: &[(&str, &str)]) -> (Desk, Utf8PathBuf) {
        use std::os::unix::fs::PermissionsExt as _;
        let (mut desk, dir) = empty(files);
        let bin = desk.workspace.around().join("bin");
        fs_err::create_dir_all(&bin).unwrap();
        for name in names {
            fs_err::write(bin.join(name), "").unwrap();
            let mode = std::fs::Permissions::from_mode(0o755);
            fs_err::set_permissions(bin.join(name), mode).unwrap();
        }
        desk.env.vars.insert("PATH".into(), bin.as_str().into());
        (desk, dir)
    }

    #[test]
    fn agents_on_path_build_and_review_and_the_configuration_is_shown_before_it_is_written() {
        let (desk, dir) = with_programs(&["claude", "codex"], &[]);
        let shown = init(&desk, &["--dry-run"]).out;
        let table = |role: &str, agent: &str| format!("  [leaves.{role}]\n  agent = \"{agent}\"\n");
        let tables: String = [
            ("planner", "claude"),
            ("builder", "claude"),
            ("reviewer", "codex"),
            ("signoff", "claude"),
            ("publisher", "claude"),
            ("act", "claude"),
        ]
        .map(|(role, agent)| table(role, agent))
        .concat();
        assert!(shown.contains(&tables), "{shown}");
        assert_eq!(init(&desk, &["--yes"]).exit, Exit::Done);
        let text = fs_err::read_to_string(dir.join("pdca.toml")).unwrap();
        assert!(text.contains("\n[leaves.builder]\nagent = \"claude\"\n"), "{text}");
        assert!(desk.run(&["config", "show", "leaves.builder.mode"]).out.contains("\"command\""));
        assert!(desk.run(&["config", "show", "leaves.reviewer.argv"]).out.contains("preset codex"));
    }

    #[test]
    fn agents_are_chosen_by_name_and_none_is_a_choice() {
        let (desk, dir) = with_programs(&["claude", "codex"], &[]);
        let args = ["--yes", "--builder", "gemini", "--reviewer", "none"];
        let run = init(&desk, &args);
        assert!(run.err.contains("`gemini` is not on PATH"), "{run}");
        let text = fs_err::read_to_string(dir.join("pdca.toml")).unwrap();
        assert!(text.contains("\n[leaves.builder]\nagent = \"gemini\"\n"), "{text}");
        assert!(!text.contains("\n[leaves.reviewer]"), "{text}");
        let run = init(&desk, &["--reviewer", "aider"]);
        assert_eq!(run.exit, Exit::Usage);
        assert!(run.err.contains("`aider` has no preset as reviewer"), "{run}");
    }

    #[test]
    fn a_workspace_beside_its_target_gets_the_gates_and_caches_of_the_target() {
        let (desk, dir) = empty(&[]);
        let app = desk.workspace.around().join("its-app");
        fs_err::create_dir_all(app.join(".git")).unwrap();
        fs_err::write(app.join("Cargo.toml"), "").unwrap();
        assert_eq!(init(&desk, &["--yes", "--target", "../its-app"]).exit, Exit::Done);
        let text = fs_err::read_to_string(dir.join("pdca.toml")).unwrap();
        for line in
            ["path = \"../its-app\"", "cmd = \"cargo test --workspace\"", "cache = [\"target/\"]"]
        {
            assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
        }
        assert!(!dir.join(".github").exists());
        let run = init(&desk, &["--target", "../nowhere"]);
        assert_eq!(run.exit, Exit::Usage);
        assert!(run.err.contains("`../nowhere` is no git repository"), "{run}");
    }

    /// The file with every example switched on: `#key = …` and `#[table]`.
    fn switched_on(text: &str) -> String {
        let is_example = |line: &&str| {
            line.strip_prefix('#')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '['))
        };
        text.lines()
            .map(|line| if is_example(&line) { &line[1..] } else { line })
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn every_example_in_the_file_is_legal() {
        let (desk, dir) = empty(&[]);
        init(&desk, &["--yes"]);
        let text = switched_on(&fs_err::read_to_string(dir.join("pdca.toml")).unwrap());
        fs_err::write(dir.join("pdca.toml"), &text).unwrap();
        let run = desk.run(&["status"]);
        assert_eq!(run.to_string(), "no bundles in results\n", "{text}");
    }

    #[test]
    fn every_key_there_is_stands_in_the_file() {
        let (desk, dir) = empty(&[]);
        init(&desk, &["--yes"]);
        let text = fs_err::read_to_string(dir.join("pdca.toml")).unwrap();
        let tables = [
            "[project]",
            "[paths]",
            "[driver]",
            "[lanes]",
            "[lanes.hydrate]",
            "[tracker]",
            "[[targets]]",
            "[gates]",
            "[[gates.checks]]",
            "[leaves]",
            "[leaves.builder]",
            "[leaves.builder.throttled]",
        ];
        for table in tables {
            // A key nobody has makes the reader list those it knows.
            fs_err::write(dir.join("pdca.toml"), format!("{table}\nzzqqxx = 1\n")).unwrap();
            let told = desk.run(&["status"]).err;
            let known = told
                .split("known here: ")
                .nth(1)
                .and_then(|rest| rest.split(';').next())
                .unwrap_or_else(|| panic!("{told}"));
            for key in known.split(", ") {
                let there = ["", "#"]
                    .iter()
                    .any(|mark| text.contains(&format!("\n{mark}{key} = ")))
                    || text.contains(&format!("{key} = "))
                    || text.contains(&format!("[leaves.{key}]"))
                    || text.contains(&format!("[lanes.{key}]"))
                    || text.lines().any(|line| line.starts_with("# Roles:") && line.contains(key))
                    || ["throttle", "prompt", "subcmd", "checks"].contains(&key);
                assert!(there, "`{key}` of {table} is not explained");
            }
        }
    }
}
