//! `pdca completions`: a completion script for the shell, and the answers to its calls.
//!
//! The script calls `pdca` at every Tab, with `PDCA_COMPLETE=<shell>` in the environment, so that the ids of
//! existing bundles complete like everything else.

use std::ffi::{OsStr, OsString};
use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::Shells;
use pdca_workspace::config::workspace::Workspace;
use pdca_workspace::logs::recorded_runs;

use pdca_lanes::Lanes;

use crate::context::Globals;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::report::{Response, TextPage};

/// The variable that the script sets.
const ASKED_BY: &str = "PDCA_COMPLETE";

/// Print a completion script for a shell
///
/// Commands, flags and bundle ids complete. The script asks `pdca` at every Tab, so it never goes stale.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca completions bash > ~/.local/share/bash-completion/completions/pdca
  pdca completions zsh > ~/.zfunc/_pdca
  pdca completions fish > ~/.config/fish/completions/pdca.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

pub(crate) fn run(args: &Args) -> Result<Response, Failure> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).ok_or_else(|| unknown(&args.shell))?;
    let script =
        TextPage::of(|out| shell.write_registration(ASKED_BY, "pdca", "pdca", "pdca", out));
    Ok(Response::done(script?))
}

fn unknown(shell: &str) -> Failure {
    let known: Vec<&str> = Shells::builtins().names().collect();
    Failure::usage(format!("no completions for the shell `{shell}`"))
        .hint(format!("one of: {}", known.join(", ")))
}

/// Answers a call of the script, if this is one.
pub(crate) fn answer(
    args: &[OsString],
    env: &ProcessEnv,
    out: &mut dyn Write,
) -> Option<Result<Exit, Failure>> {
    let shell = env.var_text(ASKED_BY)?;
    // The script calls `pdca -- pdca run 3`: the line being typed follows the first `--`.
    let words = args.iter().skip(1).skip_while(|word| *word != "--").skip(1).cloned().collect();
    Some(complete(shell, words, env, out))
}

fn complete(
    shell: &str,
    words: Vec<OsString>,
    env: &ProcessEnv,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    let shells = Shells::builtins();
    let shell = shells.completer(shell).ok_or_else(|| unknown(shell))?;
    let mut tree = with_ids(super::tree(env), &Ids::new(&words, env));
    shell.write_complete(&mut tree, words, Some(env.cwd.as_std_path()), out)?;
    Ok(Exit::Done)
}

/// Makes arguments that are bundle ids complete to existing ids, and slots to existing lanes.
fn with_ids(command: clap::Command, ids: &Ids) -> clap::Command {
    let is = |arg: &clap::Arg, what: &str| {
        arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == what))
    };
    command
        .mut_args(|arg| {
            let ids = ids.clone();
            if is(&arg, "ID|ACTION") {
                arg.add(ArgValueCompleter::new(move |typed: &OsStr| ids.or_actions(typed)))
            } else if is(&arg, "ID") {
                arg.add(ArgValueCompleter::new(move |typed: &OsStr| ids.candidates(typed)))
            } else if is(&arg, "SLOT") {
                arg.add(ArgValueCompleter::new(move |typed: &OsStr| ids.slots(typed)))
            } else if is(&arg, "RUN") {
                arg.add(ArgValueCompleter::new(move |typed: &OsStr| ids.runs(typed)))
            } else {
                arg
            }
        })
        .mut_subcommands(|command| with_ids(command, ids))
}

/// The place to look for ids: the environment, and the `-C` typed so far.
#[derive(Clone)]
struct Ids {
    env: ProcessEnv,
    directory: Option<Utf8PathBuf>,
}

impl Ids {
    fn new(words: &[OsString], env: &ProcessEnv) -> Self {
        // By the parser of the command line, so that every spelling counts; the rest of the line is not finished.
        let line = super::tree(env).ignore_errors(true).try_get_matches_from(words).ok();
        let typed = line
            .as_ref()
            .and_then(|line| line.try_get_one::<Utf8PathBuf>("directory").ok().flatten());
        let directory = typed.map(|typed| match typed.strip_prefix("~") {
            // The shell expands it only when the line is run.
            Ok(rest) => {
                env.var_text("HOME").map_or(typed.clone(), |home| Utf8Path::new(home).join(rest))
            }
            Err(_) => typed.clone(),
        });
        Ids { env: env.clone(), directory }
    }

    /// Loads the workspace. Errors are not reported here, because Tab has no place for them.
    fn workspace(&self) -> Option<Workspace> {
        let globals =
            // Keys that are unknown must not end the completion of ids.
            Globals { directory: self.directory.clone(), compat: true, ..Globals::default() };
        globals.load_workspace(&self.env).ok()
    }

    fn slots(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let (Some(typed), Some(workspace)) = (typed.to_str(), self.workspace()) else {
            return Vec::new();
        };
        let slots = Lanes::new(&workspace.lanes_root).slots().unwrap_or_default();
        let names = slots.iter().map(ToString::to_string);
        names.filter(|slot| slot.starts_with(typed)).map(CompletionCandidate::new).collect()
    }

    fn runs(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let (Some(typed), Some(workspace)) = (typed.to_str(), self.workspace()) else {
            return Vec::new();
        };
        let ids = recorded_runs(&workspace).into_iter().map(|id| id.to_string());
        let ids = ids.chain(["latest".to_owned()]);
        ids.filter(|id| id.starts_with(typed)).map(CompletionCandidate::new).collect()
    }

    fn or_actions(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let typed_text = typed.to_str().unwrap_or_default();
        let actions = super::signoff::ACTIONS.into_iter();
        let actions = actions.filter(|action| action.starts_with(typed_text));
        let mut found = self.candidates(typed);
        found.extend(actions.map(CompletionCandidate::new));
        found
    }

    fn candidates(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let Some(typed) = typed.to_str() else { return Vec::new() };
        let Some(workspace) = self.workspace() else { return Vec::new() };
        let Ok(bundles) = workspace.bundle_root.list() else { return Vec::new() };
        let spelled = |bundle: &pdca_state::Bundle| {
            let id = bundle.id();
            [id.to_string(), format!("#{id}"), id.dir_name()]
                .into_iter()
                .find(|name| name.starts_with(typed))
        };
        bundles.iter().filter_map(spelled).map(CompletionCandidate::new).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::testing::Desk;

    #[test]
    fn every_shell_gets_a_script_that_asks_pdca() {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let run = Desk::new().run(&["completions", shell]);
            assert_eq!(run.exit, Exit::Done, "{shell}");
            assert!(run.out.contains(ASKED_BY), "{shell}: {run}");
        }
    }

    #[test]
    fn the_ids_of_the_bundles_that_exist_complete() {
        let desk = Desk::new();
        for id in ["36", "37", "PROJ-1"] {
            desk.workspace.brief(id, &[]);
        }
        let ids = |typed: &str| {
            let ids = Ids::new(&[], &desk.env);
            let found = ids.candidates(OsStr::new(typed));
            found
                .iter()
                .map(|candidate| candidate.get_value().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(""), ["36", "37", "PROJ-1"]);
        assert_eq!(ids("3"), ["36", "37"]);
        assert_eq!(ids("#36"), ["#36"]);
        assert_eq!(ids("issue_P"), ["issue_PROJ-1"]);
        assert_eq!(ids("x"), Vec::<String>::new());
    }

    #[test]
    fn the_lanes_that_exist_complete() {
        let desk = Desk::new().with_env(ASKED_BY, "fish");
        for slot in ["lane-0", "lane-1", "lane-10"] {
            fs_err::create_dir_all(desk.workspace.around().join("ws.lanes").join(slot)).unwrap();
        }
        let answer = |words: &[&str]| desk.run(&[&["--", "pdca", "lanes"], words].concat()).out;
        assert_eq!(answer(&["env", ""]).lines().take(3).collect::<Vec<_>>(), ["0", "1", "10"]);
        assert_eq!(answer(&["remove", "0", "1"]), "1\n10\n");
    }

    #[test]
    fn a_script_s_question_is_answered_with_ids_and_flags() {
        let desk = Desk::new().with_env(ASKED_BY, "fish");
        desk.workspace.brief("36", &[]);
        let answer = |words: &[&str]| desk.run(&[&["--", "pdca"], words].concat()).out;
        assert!(answer(&["status", ""]).contains("36"), "{}", answer(&["status", ""]));
        assert!(answer(&["sta"]).starts_with("status"), "{}", answer(&["sta"]));
        let elsewhere = desk.workspace.around();
        assert!(!answer(&["-C", elsewhere.as_str(), "status", "3"]).contains("36"));
        let workspace = desk.workspace.path();
        let desk = Desk::new()
            .with_env(ASKED_BY, "fish")
            .with_env("HOME", workspace.parent().unwrap().as_str());
        let answer = |words: &[&str]| desk.run(&[&["--", "pdca"], words].concat()).out;
        let (glued, home) =
            (format!("-C{workspace}"), format!("~/{}", workspace.file_name().unwrap()));
        for words in [
            &["-C", workspace.as_str(), "status", "3"][..],
            &[glued.as_str(), "status", "3"],
            &["-C", home.as_str(), "status", "3"],
            &["status", "-C", home.as_str(), "3"],
            &["-qC", home.as_str(), "status", "3"],
        ] {
            assert!(answer(words).contains("36"), "{words:?}: {}", answer(words));
        }
    }
}
