//! The number of lanes, by flag, variable and file.

use serde_json::Value;

use crate::exit::Exit;
use crate::testing::{Desk, Run};

pdca_process::supervisor_entry!();

/// Runs a dry run of a batch with these arguments.
fn batch(config: &str, env: Option<&str>, words: &[&str]) -> Run {
    let mut desk = Desk::new();
    if let Some(lanes) = env {
        desk = desk.with_env("PDCA_LANES", lanes);
    }
    desk.workspace.config(config);
    desk.run(&[&["batch", "--dry-run", "--json"], words].concat())
}

fn lanes(run: &Run) -> u64 {
    let document: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run}"));
    document["lanes"].as_u64().unwrap_or_else(|| panic!("{run}"))
}

/// File, variable and arguments; the number of lanes, and the first message.
type Row<'a> = (&'a str, Option<&'a str>, &'a [&'a str], u64, &'a str);

#[test]
fn a_number_is_taken_as_it_is_and_zero_is_one_and_said() {
    let table: &[Row<'_>] = &[
        ("", None, &[], 1, ""),
        ("[driver]\nlanes = 3\n", None, &[], 3, ""),
        ("[driver]\nlanes = 257\n", None, &[], 257, ""),
        ("", Some("1000"), &[], 1000, ""),
        ("", None, &["--lanes", "5000"], 5000, ""),
        ("", None, &["--lanes", "99999999999"], u64::from(u32::MAX), ""),
        ("[driver]\nlanes = 0\n", None, &[], 1, "note: pdca.toml:2:1: `driver.lanes` is 0: "),
        ("[driver]\nlanes = 3\n", Some("0"), &[], 1, "note: PDCA_LANES: `driver.lanes` is 0: "),
        ("[driver]\nlanes = 3\n", None, &["--config", "driver.lanes=0"], 1, "note: --config: "),
        ("[driver]\nlanes = 3\n", Some("2"), &["--lanes", "0"], 1, "note: --lanes 0: "),
        ("[driver]\nlanes = 3\n", Some("2"), &["-l0"], 1, "note: --lanes 0: "),
        // Only the winning layer is reported.
        ("[driver]\nlanes = 0\n", Some("0"), &["--lanes", "2"], 2, ""),
    ];
    for (config, env, words, number, said) in table {
        let run = batch(config, *env, words);
        assert_eq!(lanes(&run), *number, "{config:?} {env:?} {words:?}: {run}");
        assert!(run.err.starts_with(said), "{config:?} {env:?} {words:?}: {run}");
        assert_eq!(run.err.contains("1 is taken"), !said.is_empty(), "{run}");
    }
}

#[test]
fn auto_takes_what_the_machine_carries_and_says_what_that_is() {
    let table: &[(&str, Option<&str>, &[&str])] = &[
        ("[driver]\nlanes = \"auto\"\n", None, &[]),
        ("", Some("auto"), &[]),
        ("", None, &["--lanes", "auto"]),
        ("", None, &["--config", "driver.lanes=auto"]),
    ];
    for (config, env, words) in table {
        let run = batch(config, *env, words);
        let said = format!("auto: {} lane", lanes(&run));
        assert!(run.err.starts_with(&said) && lanes(&run) >= 1, "{run}");
        let little = ["--config", "driver.lane_memory_mb=999999999"];
        let run = batch(config, *env, &[*words, &little].concat());
        assert!(run.err.starts_with("auto: 1 lane (memory allows 0; "), "{run}");
        let quiet = batch(config, *env, &[*words, &["-q"]].concat());
        assert_eq!((lanes(&quiet) >= 1, quiet.err.as_str()), (true, ""));
    }
}

#[test]
fn what_is_no_number_of_lanes_is_refused_with_its_place_and_a_remedy() {
    let table: &[(&str, Option<&str>, &[&str], &str)] = &[
        ("[driver]\nlanes = -1\n", None, &[], "pdca.toml:2:9"),
        ("[driver]\nlanes = 1.5\n", None, &[], "pdca.toml:2:9"),
        ("[driver]\nlanes = \"many\"\n", None, &[], "pdca.toml:2:9"),
        ("[integrate]\nlanes = -1\n", None, &[], "pdca.toml:2:9"),
        ("[integrate]\nlanes = \"2\"\n", None, &[], "pdca.toml:2:9"),
        ("", Some("-1"), &[], "PDCA_LANES"),
        ("", Some("2x"), &[], "PDCA_LANES"),
        ("", None, &["--config", "driver.lanes=-4"], "--config"),
        ("", None, &["--lanes", "-1"], "--lanes"),
        ("", None, &["--lanes=-1"], "--lanes"),
        ("", None, &["--lanes", "many"], "--lanes"),
        ("", None, &["--lanes", "1.5"], "--lanes"),
    ];
    for (config, env, words, place) in table {
        let run = batch(config, *env, words);
        assert_eq!(run.exit, Exit::Usage, "{config:?} {env:?} {words:?}: {run}");
        let is_told = run.err.contains(place) && run.err.contains("not negative");
        assert!(is_told && run.err.contains("auto"), "{config:?} {env:?} {words:?}: {run}");
    }
}

#[test]
fn the_commands_that_take_lanes_take_the_same_words() {
    for command in [&["run", "1"][..], &["flow"], &["integrate"], &["lanes", "provision"]] {
        let desk = Desk::new();
        for words in ["0", "auto", "300"] {
            let run = desk.run(&[command, &["--lanes", words, "--dry-run"]].concat());
            assert!(!run.err.contains("invalid value"), "{command:?} {words}: {run}");
        }
        let run = desk.run(&[command, &["--lanes", "-1", "--dry-run"]].concat());
        assert_eq!(run.exit, Exit::Usage, "{run}");
        assert!(run.err.contains("invalid value '-1' for '--lanes"), "{command:?}: {run}");
    }
}

#[test]
fn the_config_and_the_doctor_show_what_was_asked_for() {
    let desk = Desk::new();
    desk.workspace.config("[driver]\nlanes = \"auto\"\n\n[integrate]\nlanes = \"auto\"\n");
    insta::assert_snapshot!(desk.run(&["config", "show", "driver.lanes"]), @r#"driver.lanes = "auto"  # pdca.toml:2"#);
    insta::assert_snapshot!(desk.run(&["config", "show", "integrate.lanes"]), @r#"integrate.lanes = "auto"  # pdca.toml:5"#);
    let doctor = desk.run(&["doctor"]).to_string();
    assert!(doctor.contains("auto: "), "{doctor}");
    desk.workspace.config("[driver]\nlanes = 0\n");
    let doctor = desk.run(&["doctor"]).to_string();
    assert!(doctor.contains("`lanes` in [driver] is 0, and 1 is taken"), "{doctor}");
}
