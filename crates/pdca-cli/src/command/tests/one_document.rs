//! With `--json` standard output is exactly one document, for every command and every way to end.

use clap::CommandFactory as _;
use serde_json::Value;

use super::Cli;
use crate::exit::Exit;
use crate::testing::{Desk, Run};

/// One command line for every command, in a workspace with a planned bundle 36, an unplanned 37 and a bundle 8 at sign-off.
///
/// A command that is not listed fails [`every_command_is_listed`].
const COMMANDS: &[(&str, &[&[&str]])] = &[
    ("init", &[&[], &["-n"], &["-y"]]),
    ("new", &[&["41"], &["42", "-n"], &["36"], &["../x"]]),
    ("select", &[&[], &["-n"], &["--from-csv", "pdca.toml"], &["--from-csv", "none.csv"]]),
    ("status", &[&[], &["36"], &["99"]]),
    ("why", &[&["36"], &["99"]]),
    ("log", &[&["36"], &["99"], &["36", "builder", "--raw"], &["36", "--attempt", "9"]]),
    ("plan", &[&[], &["99"], &["--check"], &["--write", "-n"]]),
    ("widen", &[&["36", "src", "--reason", "r", "-n"], &["99", "src", "--reason", "r"]]),
    ("split", &[&["36", "--into", "a,b", "-n"], &["36"], &["99"]]),
    ("run", &[&["37"], &["99"], &["36", "-n"]]),
    ("batch", &[&["37"], &["-n"]]),
    ("flow", &[&["-n"], &["36", "-n"], &[], &["99"]]),
    ("gates", &[&["36"], &["99"], &["--working-tree", "--row", "none"]]),
    ("queue", &[&[]]),
    ("review", &[&[], &["8"], &["99"]]),
    ("show", &[&["8"], &["36"], &["99"]]),
    ("diff", &[&["8"], &["8", "--stat"], &["8", "--since"], &["36"], &["99"]]),
    (
        "signoff",
        &[
            &["8", "show"],
            &["8", "36", "accept"],
            &["8", "37", "discontinue", "--note", "no", "-n"],
            &["36", "show"],
            &["8", "accept"],
            &["8", "clear", "9"],
            &["8", "clear", "1", "-n"],
            &["8", "clear", "1"],
            &["8", "accept", "-n"],
            &["8", "iterate-do", "--note", "again"],
            &["37", "discontinue", "--note", "no"],
            &["99", "accept"],
        ],
    ),
    ("reopen", &[&["36"], &["99"]]),
    ("forecast", &[&[], &["99"]]),
    ("integrate", &[&[], &["-n"], &["99"], &["--stats"]]),
    ("resolve", &[&[], &["99"]]),
    ("publish", &[&["36"], &["36", "-n"], &["99"]]),
    ("verify", &[&[], &["none.json"]]),
    ("act index", &[&[]]),
    ("act log", &[&[], &["--date", "never"]]),
    ("act review", &[&[]]),
    ("act resolve", &[&[], &["7"]]),
    ("act diff", &[&[]]),
    ("act-index", &[&[]]),
    ("act-log", &[&[]]),
    ("act-diff", &[&[]]),
    (
        "report",
        &[&[], &["-n"], &["--summary"], &["--run", "none"], &["--junit", "no/such/dir.xml"]],
    ),
    // Without a terminal it is `status --watch`, which does not end.
    ("board", &[&["36"]]),
    ("lanes provision", &[&[], &["-n"]]),
    ("lanes list", &[&[]]),
    ("lanes env", &[&["0"]]),
    ("lanes reset", &[&["0"]]),
    ("lanes doctor", &[&[]]),
    ("lanes remove", &[&["--all"], &["3"]]),
    ("hosts list", &[&[]]),
    ("hosts check", &[&[], &["none"]]),
    ("hosts gc", &[&[], &["none"]]),
    ("hosts add", &[&[]]),
    // Its answer to a driver is no document; without a root it has none.
    ("host-agent", &[&[]]),
    ("sweep", &[&[], &["--older-than", "1"]]),
    ("replay", &[&[], &["latest"], &["none"]]),
    ("recover", &[&[], &["-n"]]),
    ("unblock", &[&[], &["36"]]),
    ("abort", &[&[], &["-n"]]),
    ("cleanup", &[&[], &["-n"]]),
    // The whole demo runs in a suite of its own; here only its failure to start is tested.
    ("demo", &[&["--keep", "."]]),
    ("doctor", &[&[]]),
    ("guard", &[&["builder"], &["--explain", "git push"]]),
    ("config show", &[&[], &["nothing"]]),
    ("config migrate", &[&[], &["-n"]]),
    ("config trust", &[&[], &["-n"]]),
    ("completions", &[&["bash"]]),
    ("man", &[&[]]),
    ("help", &[&[], &["status"], &["nothing"]]),
];

/// Returns the names of all commands, subcommands after a space.
fn commands() -> Vec<String> {
    fn collect(command: &clap::Command, before: &str, names: &mut Vec<String>) {
        for below in command.get_subcommands() {
            let name = format!("{before}{}", below.get_name());
            if below.has_subcommands() {
                collect(below, &format!("{name} "), names);
            } else {
                names.push(name);
            }
        }
    }
    let mut names = Vec::new();
    collect(&Cli::command(), "", &mut names);
    names
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.workspace.brief("36", &[]);
    desk.workspace.write("results/issue_37/brief.md", "- **Slug:** <short-name>\n");
    desk.awaiting("8", &["T5 — naming"], "pass");
    desk
}

/// Runs a line with `--json` and returns its document.
fn document(desk: &Desk, line: &[&str]) -> (Run, Value) {
    let words: Vec<&str> = line.iter().copied().chain(["--json"]).collect();
    let run = desk.run(&words);
    let value: Value = serde_json::from_str(&run.out)
        .unwrap_or_else(|error| panic!("{words:?} is not one document: {error}\n{run}"));
    assert_eq!(value["schema"], 1, "{words:?}: {run}");
    assert!(value["kind"].is_string(), "{words:?}: {run}");
    if run.err.contains("error: ") && value["failed"].as_array().is_none_or(Vec::is_empty) {
        let error = &value["error"];
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{words:?}: {run}");
        assert!(error["hints"].is_array(), "{words:?}: {run}");
        assert_eq!(error["exit"], run.exit.code(), "{words:?}: {run}");
        assert!(error.get("where").is_some(), "{words:?}: {run}");
    } else {
        assert!(value.get("error").is_none_or(Value::is_null), "{words:?}: {run}");
    }
    (run, value)
}

fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    COMMANDS.iter().flat_map(|(name, lines)| {
        lines.iter().map(move |line| name.split(' ').chain(line.iter().copied()).collect())
    })
}

#[test]
fn every_command_is_listed() {
    let mut listed: Vec<String> = COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut there = commands();
    listed.sort();
    there.sort();
    assert_eq!(listed, there, "a new command needs its lines in COMMANDS");
}

#[test]
fn every_command_prints_one_document_however_it_ends() {
    let desk = desk();
    for line in lines() {
        document(&desk, &line);
    }
    document(&desk, &[]);
}

#[test]
fn the_exit_code_is_the_same_with_and_without_json() {
    for line in lines() {
        let plain = desk().run(&line).exit;
        let (with, _) = document(&desk(), &line);
        assert_eq!(with.exit, plain, "{line:?}: {with}");
    }
}

#[test]
fn a_mistake_in_the_words_is_one_document() {
    let desk = desk();
    for name in commands() {
        let words: Vec<&str> = name.split(' ').chain(["--no-such-flag"]).collect();
        let (run, value) = document(&desk, &words);
        assert_eq!(run.exit, Exit::Usage, "{run}");
        let message = value["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("--no-such-flag"), "{run}");
    }
    let (run, value) = document(&desk, &["stauts"]);
    assert_eq!(run.exit, Exit::Usage);
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap(), @r#"
    {
      "error": {
        "exit": 2,
        "hints": [
          "tip: some similar subcommands exist: 'hosts', 'status'; Usage: pdca [OPTIONS] [COMMAND]"
        ],
        "message": "unrecognized subcommand 'stauts'",
        "problems": [
          {
            "details": [],
            "hint": "tip: some similar subcommands exist: 'hosts', 'status'; Usage: pdca [OPTIONS] [COMMAND]",
            "message": "unrecognized subcommand 'stauts'",
            "where": null
          }
        ],
        "where": null
      },
      "kind": "error",
      "schema": 1
    }
    "#);
}

#[test]
fn without_a_workspace_the_error_is_one_document() {
    let mut desk = Desk::new();
    desk.env.cwd = desk.workspace.around();
    for line in lines() {
        document(&desk, &line);
    }
}

#[test]
fn a_broken_config_is_one_document_with_all_its_problems() {
    let desk = desk();
    desk.workspace.config("[driver]\nlanez = 1\n\n[gatez]\n");
    for line in lines() {
        document(&desk, &line);
    }
    let (_, value) = document(&desk, &["status"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap(), @r#"
    {
      "error": {
        "exit": 2,
        "hints": [
          "did you mean `lanes`?",
          "did you mean `gates`?"
        ],
        "message": "unknown key `lanez` in [driver]; unknown key `gatez` at the top level",
        "problems": [
          {
            "details": [],
            "hint": "did you mean `lanes`?",
            "message": "unknown key `lanez` in [driver]",
            "where": "[TMP]/ws/pdca.toml:2:1"
          },
          {
            "details": [],
            "hint": "did you mean `gates`?",
            "message": "unknown key `gatez` at the top level",
            "where": "[TMP]/ws/pdca.toml:4:2"
          }
        ],
        "where": "[TMP]/ws/pdca.toml:2:1"
      },
      "kind": "error",
      "schema": 1
    }
    "#);
}

#[test]
fn an_answer_that_failed_in_the_end_has_both() {
    let desk = desk();
    desk.workspace.brief("50", &[("Depends on", "51")]);
    desk.workspace.brief("51", &[("Depends on", "50")]);
    let (run, value) = document(&desk, &["plan"]);
    assert_eq!(run.exit, Exit::Usage, "{run}");
    assert_eq!(value["problems"][0]["kind"], "cycle", "{run}");
    assert_eq!(value["error"]["exit"], 2, "{run}");
}

#[test]
fn what_shows_again_and_again_is_no_document() {
    for line in [&["status", "--watch"][..], &["status", "36", "--watch"]] {
        let (run, value) = document(&desk(), line);
        assert_eq!(run.exit, Exit::Usage, "{run}");
        let hint = value["error"]["hints"][0].as_str().unwrap_or_default();
        assert!(hint.contains("pdca replay --follow --raw"), "{run}");
    }
}
