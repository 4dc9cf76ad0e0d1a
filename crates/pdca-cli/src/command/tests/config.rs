use crate::exit::Exit;
use crate::testing::{Desk, Run};

fn with(config: &str, args: &[&str]) -> Run {
    let desk = Desk::new();
    desk.workspace.config(config);
    desk.run(args)
}

fn refused(config: &str) -> String {
    let run = with(config, &["status"]);
    assert_eq!(run.exit, Exit::Usage, "{run}");
    run.err
}

#[test]
fn an_empty_file_is_a_whole_config() {
    assert_eq!(with("", &["status"]).exit, Exit::Done);
}

#[test]
fn an_unknown_key_is_told_with_its_place_and_the_key_that_was_meant() {
    insta::assert_snapshot!(refused("[driver]\nlanse = 2\n"), @"
    error: unknown key `lanse` in [driver]
      --> pdca.toml:2:1
    hint: did you mean `lanes`?
    ");
}

#[test]
fn what_could_not_be_published_is_refused_with_its_line() {
    insta::assert_snapshot!(refused("[publish]\nbranch = \"pdca\"\nremote = \"-x\"\ncomments = \"command\"\nlist_cmd = \"x\"\n"), @r#"
    error: `remote` in [publish] begins with `-`
      --> pdca.toml:3:1
    hint: write a name, or remove the line to get the default
    error: `branch` in [publish] cannot name branches: without `{id}` two bundles would share a branch
      --> pdca.toml:2:1
    hint: write a pattern such as `pdca/{id}`
    error: `comment_cmd` in [publish] is needed with `comments = "command"`
      --> pdca.toml:1:2
    hint: add it: `comment_cmd` posts a comment and `list_cmd` prints those there are, so that none is there twice
    "#);
}

#[test]
fn every_mistake_of_a_file_is_told_at_once() {
    insta::assert_snapshot!(refused(
        "colour = true\n\
         [driver]\nlanes = \"two\"\nworktree = true\n\
         [[gates.checks]]\nid = \"a\"\ntier = \"T1\"\ncmd = \"true\"\ngatting = false\n\
         [leaves.builder]\nmode = \"comand\"\n\
         [[targets]]\nrepo = \"a/b\"\n"
    ), @r#"
    error: unknown key `colour` at the top level
      --> pdca.toml:1:1
    hint: known here: project, paths, driver, schedule, lanes, tracker, select, targets, hosts, gates, check, doctor, integrate, publish, signoff, flow, act, notify, leaves; `--compat` makes unknown keys warnings
    error: `lanes` in [driver] must be a whole number that is not negative or "auto", not string "two"
      --> pdca.toml:3:9
    hint: write a whole number that is not negative or "auto" there, or remove the line to get the default
    error: unknown key `worktree` in [driver]
      --> pdca.toml:4:1
    hint: known here: lanes, max_duration_secs, max_leaf_calls, max_cost, max_cost_per_issue, max_attempts, max_auto_iters, iterate_from, products, min_free_gb, lane_memory_mb, leaf_memory_mb, gate_base, close_dispositions; `--compat` makes unknown keys warnings
    error: unknown key `gatting` in [[gates.checks]]
      --> pdca.toml:9:1
    hint: did you mean `gating`?
    error: `mode` in [leaves.builder] cannot be `comand`
      --> pdca.toml:11:8
    hint: did you mean `command`? One of: stub, command
    error: `path` is missing in [[targets]]
      --> pdca.toml:12:1
    hint: add `path = …`
    "#);
}

#[test]
fn a_duplicate_gate_id_is_told_with_both_lines() {
    insta::assert_snapshot!(refused(
        "[[gates.checks]]\nid = \"a\"\ntier = \"T1\"\ncmd = \"true\"\n\n[[gates.checks]]\nid = \"A\"\ntier = \"T2\"\ncmd = \"true\"\n"
    ), @"
    error: gate id `A` is used twice, first used in line 2
      --> pdca.toml:7:1
    hint: give each [[gates.checks]] its own id; it names the row's log
    ");
}

#[test]
fn what_the_gates_and_leaves_refuse_has_its_line() {
    insta::assert_snapshot!(refused(
        "[[gates.checks]]\nid = \"a\"\ntier = \"T9\"\n[leaves.builder]\nmode = \"command\"\nretries = 1000\n"
    ), @r#"
    error: gates.checks[0] `a`: `tier`: `T9` is not an element of the check matrix
      --> pdca.toml:3:1
    hint: write one of C1 … C5, T1 … T5, V
    error: gates.checks[0] `a`: `cmd`: none of `cmd`, `argv` and `subcmd` is given
      --> pdca.toml:1:1
    hint: add `cmd = "…"`
    error: `leaves.builder.argv`: mode = "command" needs a program here
      --> pdca.toml:4:9
    hint: add `argv = ["program", …]`, or use `mode = "stub"`
    error: `leaves.builder.retries`: 1000 retries are too many; at most 100
      --> pdca.toml:6:1
    hint: a leaf that fails that often needs a person; use `throttled` for limits
    "#);
}

#[test]
fn values_that_are_legal_alone_but_not_here_are_refused() {
    insta::assert_snapshot!(refused(
        "[driver]\nclose_dispositions = [\"x\", \" \"]\n[[targets]]\npath = \"../a\"\n[[targets]]\npath = \"../b\"\nname = \"A\"\n[[targets]]\npath = \"..\"\n"
    ), @"
    error: an empty word in `close_dispositions` would close every bundle
      --> pdca.toml:2:28
    hint: remove the empty word
    error: target name `A` is used twice, first used in line 3
      --> pdca.toml:7:1
    hint: give each its own `name`
    ");
}

#[test]
fn a_syntax_error_has_line_and_column() {
    insta::assert_snapshot!(refused("[driver\nlanes = 1\n"), @"
    error: not valid TOML: unclosed table, expected `]`
      --> pdca.toml:1:8
    hint: mend the line; https://toml.io/en/v1.1.0 has the rules
    ");
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let desk = Desk::new();
    desk.workspace.write("pdca.toml", b"# ok\n# caf\xe9\n");
    insta::assert_snapshot!(desk.run(&["status"]), @"
    --- stderr
    error: pdca.toml is not UTF-8
      --> pdca.toml:2
    hint: save the file as UTF-8
    --- exit 2
    ");
    desk.workspace.write("pdca.toml", vec![b'#'; 50 << 20]);
    insta::assert_snapshot!(desk.run(&["status"]), @"
    --- stderr
    error: pdca.toml has 52428800 bytes; at most 1048576 are read
      --> pdca.toml
    hint: a config file is small; check what was written there
    --- exit 2
    ");
    fs_err::remove_file(desk.workspace.path().join("pdca.toml")).unwrap();
    fs_err::create_dir(desk.workspace.path().join("pdca.toml")).unwrap();
    insta::assert_snapshot!(desk.run(&["status"]), @"
    --- stderr
    error: pdca.toml is a directory
      --> pdca.toml
    hint: a config file is a TOML text; `pdca init` writes one
    --- exit 2
    ");
}

/// The shape of an older instance's file; the names are ours.
const OLDER: &str = r#"
[project]
name = "older"
rubric_file = "RULES.md"

[driver]
lanes = 2
max_passes = 20
auto_iterate = true

[driver.size_signal]
patch_kb = 100

[publisher]
base_remote = "origin"

[publisher.checkouts]
"owner/repo" = "../elsewhere"

[leaves.builder]
mode = "command"
memory_max = "8G"
argv = ["agent", "-p"]

[[leaves.builder_escalation]]
min_iteration = 2

[gates]
default_timeout_secs = 3600
checks = [
  { id = "C4-verify", tier = "C4", label = "verified", cmd = "./verify.sh", gating = true, scope = "bundle", target = "core" },
  { id = "T3-suite", tier = "T3", label = "suite", cmd = "./suite.sh", timeout_secs = 0 },
]
host_ci = ["typos"]

[[doctor.checks]]
id = "git"
cmd = "git --version"
"#;

#[test]
fn an_older_instance_loads_with_warnings_under_compat() {
    let run = with(OLDER, &["--compat", "status"]);
    insta::assert_snapshot!(run, @"
    no bundles in results
    --- stderr
    warning: pdca.toml: keys of an older instance: 7 read as other keys, 4 not used; `pdca config migrate --dry-run` lists them [config_ignored]
    ");
}

#[test]
fn an_older_instance_is_refused_without_compat() {
    assert_eq!(with(OLDER, &["status"]).exit, Exit::Usage);
}

#[test]
fn compat_does_not_excuse_a_wrong_type() {
    assert_eq!(with("[driver]\nlanes = \"two\"\n", &["--compat", "status"]).exit, Exit::Usage);
}

#[test]
fn older_checkouts_are_targets() {
    let run = with(OLDER, &["--compat", "-q", "config", "show", "targets"]);
    insta::assert_snapshot!(run, @r#"
    targets[0].path = "../elsewhere"  # pdca.toml:18
    targets[0].repo = "owner/repo"  # pdca.toml:18
    "#);
}

#[test]
fn later_layers_win_and_each_value_knows_its_source() {
    let desk = Desk::new().with_env("PDCA_AUTHOR", "Env").with_env("HOME", "/nowhere");
    let home = desk.workspace.around().join("xdg");
    fs_err::create_dir_all(home.join("pdca")).unwrap();
    fs_err::write(
        home.join("pdca/config.toml"),
        "[project]\nauthor = \"User\"\ndefault_branch = \"trunk\"\n[driver]\nlanes = 7\n",
    )
    .unwrap();
    let desk = desk.with_env("XDG_CONFIG_HOME", home.as_str());
    desk.workspace.config("[project]\nauthor = \"Workspace\"\n\n[driver]\nlanes = 3\n");
    let run = desk.run(&["--config", "paths.process_dir=acts", "config", "show", "project"]);
    insta::assert_snapshot!(run, @r#"
    project.author = "Env"  # PDCA_AUTHOR
    project.default_branch = "trunk"  # [TMP]/xdg/pdca/config.toml:3
    "#);
    insta::assert_snapshot!(desk.run(&["config", "show", "driver.lanes"]), @"driver.lanes = 3  # pdca.toml:5");
    insta::assert_snapshot!(desk.run(&["--config", "paths.process_dir=acts", "config", "show", "paths"]), @r#"
    paths.bundle_root = "results"  # default
    paths.process_dir = "acts"  # --config
    paths.templates_dir = "templates"  # default
    "#);
    let desk = desk.with_env("PDCA_LANES", "5");
    insta::assert_snapshot!(desk.run(&["config", "show", "driver.lanes", "--json"]), @r#"
    {
      "schema": 1,
      "kind": "config",
      "workspace": "[TMP]/ws",
      "values": [
        {
          "key": "driver.lanes",
          "value": 5,
          "source": "env",
          "where": "PDCA_LANES"
        }
      ]
    }
    "#);
    let run = desk.run(&["--config", "driver.lanes=9", "config", "show", "driver.lanes"]);
    insta::assert_snapshot!(run, @"driver.lanes = 9  # --config");
}

#[test]
fn a_list_in_a_later_layer_replaces_the_earlier_one() {
    let run = with(
        "[driver]\nclose_dispositions = [\"a\", \"b\"]\n",
        &[
            "--config",
            "driver.close_dispositions=[\"c\"]",
            "config",
            "show",
            "driver.close_dispositions",
        ],
    );
    insta::assert_snapshot!(run, @r#"driver.close_dispositions = ["c"]  # --config"#);
}

#[test]
fn a_mistake_in_a_variable_or_a_flag_is_told_by_its_name() {
    let desk = Desk::new().with_env("PDCA_LANES", "many");
    insta::assert_snapshot!(desk.run(&["--config", "driver.lane=1", "--config", "nonsense", "status"]), @"
    --- stderr
    error: PDCA_LANES must be a whole number that is not negative or `auto`, not `many`
      --> PDCA_LANES
    hint: unset it, or `PDCA_LANES=1`, or `PDCA_LANES=auto`
    error: unknown key `lane` in [driver]
      --> --config
    hint: did you mean `lanes`?
    error: `--config nonsense` is not KEY=VALUE
    hint: write for example `--config driver.lanes=2`
    --- exit 2
    ");
}

#[test]
fn the_bundle_root_may_come_from_the_environment_alone() {
    let desk = Desk::new();
    desk.workspace.brief("36", &[]);
    fs_err::remove_file(desk.workspace.path().join("pdca.toml")).unwrap();
    assert_eq!(desk.run(&["status"]).exit, Exit::Usage);
    let desk = desk.with_env("PDCA_BUNDLE_ROOT", "results");
    assert!(desk.run(&["status"]).out.starts_with("PLANNED"));
}

#[test]
fn the_file_may_be_in_a_dot_config_directory_and_above() {
    let mut desk = Desk::new();
    fs_err::remove_file(desk.workspace.path().join("pdca.toml")).unwrap();
    desk.workspace.write(".config/pdca.toml", "[project]\nname = \"dotted\"\n");
    desk.workspace.write("deep/er/x", "");
    desk.env.cwd = desk.workspace.path().join("deep/er");
    let run = desk.run(&["config", "show", "project.name"]);
    assert!(run.out.starts_with("project.name = \"dotted\""), "{run}");
}

#[test]
fn under_compat_a_checkout_beside_the_workspace_is_a_target() {
    let desk = Desk::new();
    let repo = desk.workspace.target("repo");
    let globals = crate::context::Globals { compat: true, ..Default::default() };
    let names = |globals: &crate::context::Globals| {
        let workspace = globals.load_workspace(&desk.env).unwrap();
        workspace
            .targets
            .iter()
            .map(|target| (target.name.clone(), target.path.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&globals), [("repo".to_owned(), repo.path().to_owned())]);
    assert_eq!(names(&crate::context::Globals::default()), []);
}

#[test]
fn the_defaults_that_the_process_relies_on() {
    let desk = Desk::new();
    for (key, value) in [
        ("driver.lanes", "1"),
        ("driver.max_duration_secs", "14400"),
        ("integrate.strategy", "\"rebase-ff\""),
        ("integrate.max_base_drift_commits", "50"),
        ("schedule.dependants", "\"accepted\""),
        ("schedule.rivals", "\"built\""),
    ] {
        let shown = desk.run(&["config", "show", key]).out;
        assert_eq!(shown.trim(), format!("{key} = {value}  # default"));
    }
}
