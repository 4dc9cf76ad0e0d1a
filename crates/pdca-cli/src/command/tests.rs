mod config;
mod lanes;
mod one_document;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt as _;

use clap::CommandFactory as _;

use super::Cli;
use crate::exit::Exit;
use crate::testing::{Desk, Run};

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_an_imperative_line_and_an_example() {
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let about =
            command.get_about().unwrap_or_else(|| panic!("{name} says nothing")).to_string();
        assert!(!about.ends_with('.'), "{name}: {about}");
        assert!(about.starts_with(char::is_uppercase), "{name}: {about}");
        let after = command.get_after_long_help().or(command.get_after_help());
        let long = after.map(ToString::to_string).unwrap_or_default();
        assert!(
            command.is_hide_set() || long.contains(&format!("pdca {name}")),
            "{name} has no example"
        );
    }
}

#[test]
fn an_end_that_cannot_be_announced_keeps_its_exit_code() {
    /// Standard error that takes everything but the warning about a notification.
    struct TakesNoWarning;
    impl Write for TakesNoWarning {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let is_warning = String::from_utf8_lossy(bytes).contains("[notify]");
            if is_warning { Err(io::Error::other("it is full")) } else { Ok(bytes.len()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let desk = Desk::new();
    desk.workspace.config("[notify]\ncmd = 'exit 7'\n");
    desk.workspace.write("results/issue_37/brief.md", "- **Slug:** <short-name>\n");
    let args = ["pdca", "batch", "37"].into_iter().map(Into::into);
    let mut out = Vec::new();
    assert_eq!(crate::run(args, &desk.env, &mut out, &mut TakesNoWarning), Exit::Waiting);
    assert_eq!(String::from_utf8_lossy(&out), "issue_37  waits for a person\n");
}

#[test]
fn the_short_help_names_every_command() {
    insta::assert_snapshot!(Desk::new().run(&["-h"]), @r#"
    Carry issues through Plan, Do, Check and Act

    Usage: pdca [OPTIONS] [COMMAND]

    Commands:
      init         Create a workspace: pdca.toml, a brief template, an Act log, a CI workflow
      new          Create a bundle with a brief to fill in
      select       Turn an export of the tracker into a batch of draft briefs
      status       Show the state of every bundle, or everything about one
      why          Explain why a bundle is not running, and what would change that
      log          Show what a leaf or a gate printed, also while it runs
      plan         Show the order in which bundles may be built, and why [alias: waves]
      widen        Add globs to the declared paths of a brief, with a reason
      split        Split a bundle into several
      run          Build, gate and review bundles until a person has to decide
      batch        Run all unfinished bundles
      flow         Carry issues through the whole cycle, with you only where a person is due
      gates        Run the configured checks over a bundle's patch or the working tree
      queue        List bundles that wait for sign-off, cheapest first
      review       Go through what waits for sign-off, one key per decision
      show         Show what a person needs to decide about a bundle
      diff         Show the change of a bundle
      signoff      Record a decision about one bundle or many
      reopen       Send an accepted change that has not landed back to be built again
      forecast     Predict merge conflicts between pending changes
      integrate    Gate accepted changes together and land the green ones
      resolve      Run the resolver on accepted changes that conflict with their branch
      publish      Push accepted changes, with a draft pull request and a comment for each
      verify       Re-verify landing certificates against the repository
      act          Review finished cycles, and record what the process learns
      lanes        Provision, list, reset and remove private checkouts
      sweep        Remove lanes by age or for free disk space, oldest first
      hosts        Add, check, list and clean up the hosts that bands run on
      replay       Print the output of a run, an integration or a flow again
      report       Write the record of a batch: one HTML file, a trace, `JUnit`, a summary
      board        Decide, watch lanes and the integration, on one screen
      recover      Repair interrupted runs and list what needs a decision
      unblock      Lift the block of a run or a bundle
      abort        Abort the active run: stop its lanes, rescue unfinished work, land nothing
      cleanup      Remove leftovers of finished work: private checkouts, and records of old runs
      demo         Watch issues go from brief to landed, without a model, a key or a network
      doctor       Check the host and the workspace, with a remedy for each problem
      guard        Judge a builder's tool call, as a pre-tool hook of its agent
      config       Show the effective config and the origin of each value
      completions  Print a completion script for a shell
      man          Print the manual page, or write all of them into a directory
      help         Print help for a command or a topic

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version

    Global options:
      -C <DIR>                  Work in DIR, as if `pdca` had been started there
      -n, --dry-run             Show what would be done, and change nothing
      -y, --yes                 Answer yes to all questions
      -q, --quiet               Print results and errors only
      -v, --verbose...          Print more; twice also writes a log below `.pdca/log/`
          --color <WHEN>        Use colours: auto, always or never [default: auto]
          --json                Print one JSON document: {"schema": 1, "kind": …, …}; the same as
                                `--format json`
          --format <FORMAT>     Output format: text, table or json [default: text]
          --compat              Read the workspace of an older instance: unknown keys are warnings
          --config <KEY=VALUE>  Set a value of `pdca.toml` for this run, e.g. `--config driver.lanes=2`

    `pdca <command> --help` has examples; `pdca help exit-codes` and `pdca help config` explain the
    rest.
    "#);
}

#[test]
fn help_needs_no_workspace() {
    let mut desk = Desk::new();
    desk.env.cwd = "/".into();
    for args in [
        &["--help"][..],
        &["--version"],
        &["help"],
        &["status", "--help"],
        &["completions", "bash"],
    ] {
        assert_eq!(desk.run(args).exit, Exit::Done, "{args:?}");
    }
}

#[test]
fn a_mistyped_command_is_a_usage_error_with_a_suggestion() {
    let run = Desk::new().run(&["stauts"]);
    insta::assert_snapshot!(run, @"
    --- stderr
    error: unrecognized subcommand 'stauts'

      tip: some similar subcommands exist: 'hosts', 'status'

    Usage: pdca [OPTIONS] [COMMAND]

    For more information, try '--help'.
    --- exit 2
    ");
}

#[test]
fn colours_are_used_when_asked_for() {
    let desk = Desk::new();
    desk.workspace.brief("36", &[]);
    assert!(desk.run(&["status", "--color", "always"]).out.contains("\u{1b}[36mPLANNED"));
    assert!(!desk.run(&["status"]).out.contains('\u{1b}'));
}

#[test]
fn the_directory_may_be_given() {
    let mut desk = Desk::new();
    desk.workspace.brief("36", &[]);
    desk.env.cwd = desk.workspace.around();
    assert!(desk.run(&["-C", "ws", "status"]).out.starts_with("PLANNED"));
    assert_eq!(desk.run(&["-C", "nowhere", "status"]).exit, Exit::Usage);
}

/// Refused with exit code 2, a hint, and not a byte changed.
fn refused(desk: &Desk, args: &[OsString]) -> Run {
    let before = desk.all_files();
    let run = desk.run_os(args);
    assert_eq!(run.exit, Exit::Usage, "{args:?}: {run}");
    assert!(run.err.contains("error:"), "{args:?}: {run}");
    assert_eq!(desk.all_files(), before, "{args:?}");
    run
}

#[test]
fn hostile_ids_are_refused_before_any_path_is_built() {
    let desk = Desk::new();
    desk.workspace.brief("36", &[]);
    let long = "9".repeat(300);
    let ids: [&[u8]; 12] = [
        b"../x",
        b"-rf",
        b"a/b",
        long.as_bytes(),
        b"a\0b",
        b"",
        b".",
        b"..",
        b"a b",
        b"caf\xff",
        b"issue_",
        b"\x1b[2J",
    ];
    for id in ids {
        for command in ["new", "status", "why", "plan", "signoff", "unblock", "widen --reason=x"] {
            let id = OsString::from_vec(id.to_vec());
            let mut args: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            args.extend(["--".into(), id]);
            match command {
                "signoff" => args.push("accept".into()),
                "widen --reason=x" => args.push("src".into()),
                _ => {}
            }
            let run = refused(&desk, &args);
            assert!(run.err.contains("hint: ids look like"), "{args:?}: {run}");
            assert!(!run.err.contains('\u{1b}'), "{args:?}: {run}");
        }
    }
}

#[test]
fn hostile_briefs_are_told_with_file_and_hint() {
    let desk = Desk::new();
    let at = |name: &str| desk.workspace.path().join(name);
    fs_err::create_dir_all(at("results/issue_1/brief.md")).unwrap();
    fs_err::create_dir_all(at("results/issue_2")).unwrap();
    fs_err::write(desk.workspace.around().join("outside.md"), "- **Slug:** out\n").unwrap();
    std::os::unix::fs::symlink("../../../outside.md", at("results/issue_2/brief.md")).unwrap();
    desk.workspace.write("results/issue_3/brief.md", vec![b'x'; 50 << 20]);
    desk.workspace.write("results/issue_4/brief.md", b"- **Slug:** ok\n\n- **Scope:** caf\xe9\n");
    fs_err::create_dir_all(desk.workspace.around().join("issue_5")).unwrap();
    std::os::unix::fs::symlink("../../issue_5", at("results/issue_5")).unwrap();
    let told = |id: &str| refused(&desk, &["status".into(), id.into()]).err;
    insta::assert_snapshot!(told("1"), @"
    error: results/issue_1/brief.md is a directory, not a file
      --> results/issue_1/brief.md
    hint: replace it by a regular file
    ");
    insta::assert_snapshot!(told("2"), @"
    error: results/issue_2/brief.md leads out of results/issue_2, to [TMP]/outside.md
      --> results/issue_2/brief.md
    hint: replace the link by a copy of the file
    ");
    insta::assert_snapshot!(told("3"), @"
    error: results/issue_3/brief.md has 2097152 bytes or more, the limit is 1048576
      --> results/issue_3/brief.md
    hint: an artifact is a text for people; check what was written there
    ");
    insta::assert_snapshot!(told("4"), @"
    error: results/issue_4/brief.md:3: byte 0xe9 is not UTF-8
      --> results/issue_4/brief.md:3
    hint: save the file as UTF-8, e.g. `iconv -f latin1 -t utf-8`
    ");
    insta::assert_snapshot!(told("5"), @"
    error: the bundle results/issue_5 leads out of the bundle root, to [TMP]/issue_5
      --> results/issue_5
    hint: replace the link by a directory
    ");
    let all = desk.run(&["status"]);
    assert_eq!(all.exit, Exit::Done, "one bad bundle is one bad row: {all}");
    assert_eq!(all.out.matches("UNREADABLE").count(), 6, "{all}");
}

#[test]
fn a_brief_with_carriage_returns_is_fine() {
    let desk = Desk::new();
    desk.workspace.write("results/issue_1/brief.md", "- **Slug:** crlf\r\n- **Depends on:** 2\r\n");
    assert!(desk.run(&["status"]).out.contains("crlf  [blocked-by: 2]"));
}
