//! The keys of older instances, each with what becomes of it; the names are ours.

use toml::{Table, Value};

use crate::config::layer::load_document;
use crate::config::migrate::migrate;
use crate::config::{Config, ConfigDocument, MigratedKind};

/// A file with every key of an older instance.
const OLDER: &str = include_str!("older.toml");

fn document(text: &str) -> ConfigDocument {
    ConfigDocument::new("pdca.toml", text)
}

fn compat(text: &str) -> Config {
    let loaded = load_document(&document(text), true);
    loaded.unwrap_or_else(|error| panic!("{error:#?}\n{text}")).config
}

/// Returns what the file means, by the path of each value.
fn meaning(text: &str) -> Vec<(String, Value)> {
    compat(text).flat().unwrap()
}

#[test]
fn a_migrated_file_means_what_the_old_one_means_under_compat() {
    let migration = migrate(&document(OLDER), &[]).unwrap();
    let strict = load_document(&document(&migration.text), false).unwrap();
    assert_eq!(strict.config.flat().unwrap(), meaning(OLDER), "{}", migration.text);
    assert!(strict.warnings.is_empty(), "{:?}", strict.warnings);
}

#[test]
fn a_migrated_file_is_migrated_to_itself() {
    let once = migrate(&document(OLDER), &[]).unwrap();
    let twice = migrate(&document(&once.text), &["../other".into()]).unwrap();
    assert_eq!(twice.text, once.text);
    let told: Vec<_> =
        twice.keys.iter().filter(|change| change.fate != MigratedKind::Look).collect();
    assert!(told.is_empty(), "{told:#?}");
}

/// Every single key of the older file, by itself: whatever the rest of the file, it loads and means the same.
#[test]
fn each_key_by_itself_means_the_same_migrated() {
    let all: Table = OLDER.parse().unwrap();
    let mut tried = 0;
    for (table, inner) in &all {
        let Value::Table(inner) = inner else { continue };
        for (key, value) in inner {
            let alone = Table::from_iter([(key.clone(), value.clone())]);
            let mut file = Table::from_iter([(table.clone(), Value::Table(alone))]);
            if table == "gates" && key == "checks" {
                // A row with a `subcmd` needs the runner.
                file["gates"]
                    .as_table_mut()
                    .unwrap()
                    .insert("runner".into(), inner["runner"].clone());
            }
            let text = toml::to_string(&file).unwrap();
            let migration =
                migrate(&document(&text), &[]).unwrap_or_else(|error| panic!("{error:#?}\n{text}"));
            let strict = load_document(&document(&migration.text), false).unwrap();
            assert_eq!(strict.config.flat().unwrap(), meaning(&text), "{text}\n{}", migration.text);
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried} keys");
}

#[test]
fn every_row_that_gates_is_there_afterwards_and_gates() {
    let rows = compat(OLDER).gates.checks().unwrap();
    let told: Vec<String> = rows
        .as_slice()
        .iter()
        .map(|row| {
            let mut words = vec![row.id.clone(), row.cwd.as_str().to_owned()];
            for (is_set, word) in
                [(row.gating, "gates"), (row.confirm, "confirm"), (row.at_publish, "at_publish")]
            {
                words.extend(is_set.then(|| word.to_owned()));
            }
            words.extend(row.when.as_ref().map(ToString::to_string));
            words.join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            "C4-ci workspace gates confirm",
            "C4-verify workspace",
            "T3-core workspace",
            "T3-addon workspace `Repo + branch target` has `addons`",
            "T3-gui workspace `Surfaces` has `gui`",
            "T3-both workspace",
            "T4-review workspace gates",
            "T4-contribution workspace gates confirm at_publish",
            "host-ci-0 worktree gates confirm at_publish",
            "host-docs worktree gates confirm at_publish",
        ]
    );
}

#[test]
fn the_builder_is_told_the_model_and_the_effort_that_it_was_told() {
    let leaves = compat(OLDER).leaves;
    let told = |brief: &str, attempt: u32| {
        let brief = pdca_state::Brief::parse(brief);
        let chosen = leaves.builder_for(Some(&brief), attempt);
        let config = chosen.config;
        let mut argv = config.argv.clone();
        let fill = |args: &[String], name: &str, value: Option<&str>| -> Vec<String> {
            value.map_or_else(Vec::new, |value| {
                args.iter().map(|arg| arg.replace(name, value)).collect()
            })
        };
        argv.extend(fill(&config.model_args, "{model}", chosen.model.or(config.model.as_deref())));
        argv.extend(fill(
            &config.effort_args,
            "{effort}",
            chosen.effort.or(config.effort.as_deref()),
        ));
        argv.join(" ")
    };
    let easy = "- **Slug:** x\n- **Difficulty:** low\n";
    let hard = "- **Slug:** x\n- **Difficulty:** Very Hard\n";
    let named = |name: &str| format!("{hard}- **Do model:** {name}\n");
    for (brief, attempt, expected) in [
        (easy.to_owned(), 1, "claude -p --model sonnet --effort high"),
        (hard.to_owned(), 1, "claude -p --model opus --effort xhigh"),
        (named("Sonnet"), 1, "claude -p --model sonnet --effort high"),
        (named("opus-max"), 1, "claude -p --model opus --effort max"),
        // The name is the whole line, or it is none.
        (named("opus-max (a pin)"), 1, "claude -p --model opus --effort xhigh"),
        (named("other"), 1, "codex exec -m large -c model_reasoning_effort=high"),
        (easy.to_owned(), 2, "claude -p --model opus --effort max"),
        (named("sonnet"), 2, "claude -p --model opus --effort max"),
        (easy.to_owned(), 4, "codex exec -c model_reasoning_effort=low"),
        (named("sonnet"), 9, "codex exec -c model_reasoning_effort=low"),
    ] {
        assert_eq!(told(&brief, attempt), expected, "attempt {attempt} at\n{brief}");
    }
}

#[test]
fn limits_and_names_have_the_values_of_the_old_file() {
    let config = compat(OLDER);
    assert_eq!(config.driver.max_auto_iters, 5);
    assert_eq!(config.driver.leaf_memory_mb, Some(16 * 1024));
    assert_eq!(config.publish.branch, "fix/{id}-{slug}");
    assert_eq!(config.publish.feature_branch.as_deref(), Some("new/{id}-{slug}"));
    assert_eq!(config.publish.issue_trailer.as_deref(), Some("Fixes #{id}"));
    assert_eq!(config.publish.remote, "upstream");
    assert_eq!(config.leaves.advisory[0].role.as_deref(), Some("find what breaks"));
    assert!(config.leaves.advisory[0].when.is_some());
    assert_eq!(config.leaves.plan_advisory[0].id.as_deref(), Some("plan-reviewer"));
    // From 80 KiB on there, above 79 here; 20 files is what it asks at where nothing is said.
    let check = config.check;
    assert_eq!((check.max_kb, check.max_files, check.max_lines), (79, 19, 0));
    assert_eq!(config.targets.len(), 1);
}

#[test]
fn every_key_that_is_not_used_is_told_with_its_line_and_a_reason() {
    let migration = migrate(&document(OLDER), &[]).unwrap();
    for change in &migration.keys {
        assert!(change.line.is_some_and(|line| line > 0), "{change:?}");
        assert!(change.what.len() > 5, "{change:?}");
        let line = OLDER.lines().nth(change.line.unwrap() - 1).unwrap();
        let last = change.key.rsplit(['.', '[']).next().unwrap().trim_end_matches(']');
        let is_there = last.parse::<usize>().is_ok() || line.contains(last) || line.contains("[[");
        assert!(is_there, "{change:?} is not in {line:?}");
    }
    let unknown = migration.keys.iter().find(|change| change.key == "driver.colour").unwrap();
    assert_eq!(unknown.fate, MigratedKind::Dropped);
}

#[test]
fn comments_stay_with_their_keys() {
    let text = migrate(&document(OLDER), &[]).unwrap().text;
    for (comment, key) in [
        ("# two at once", "lanes = 2"),
        ("# measured", "leaf_memory_mb = 16384"),
        ("# the host's own check", "host-docs"),
    ] {
        let at = text.find(comment).unwrap_or_else(|| panic!("{comment} is gone:\n{text}"));
        let after = text[at..].lines().nth(1).unwrap();
        assert!(after.contains(key), "{comment} is before {after:?}");
    }
}

#[test]
fn what_has_no_meaning_here_and_decides_something_is_refused() {
    for (text, expected) in [
        ("[driver]\nleaf_memory_max = \"50%\"\n", "has no counterpart"),
        (
            "[leaves.builder]\nargv = [\"a\"]\n[[leaves.builder_escalation]]\nmin_iteration = 1\n",
            "is the builder itself",
        ),
        ("[gates]\nhost_ci = [{ id = \"x\" }]\n", "has no command"),
        ("[gates]\nhost_ci = \"typos\"\n", "is no list"),
        ("[gates]\nsecond_opinion = true\n", "unknown key `second_opinion` in [gates]"),
        (
            "[[gates.checks]]\nid = \"a\"\ntier = \"T1\"\ncmd = \"true\"\nquorum = 2\n",
            "unknown key `quorum` in [[gates.checks]]",
        ),
    ] {
        for error in [
            load_document(&document(text), true).map(drop).unwrap_err(),
            migrate(&document(text), &[]).map(drop).unwrap_err(),
        ] {
            assert!(error.to_string().contains(expected), "{error} for {text}");
            assert!(error.problems.iter().all(|problem| problem.hint.is_some()), "{error:?}");
        }
    }
}

#[test]
fn memory_has_the_units_of_systemd() {
    for (text, expected) in [
        ("16G", Some(16384)),
        ("512M", Some(512)),
        ("1T", Some(1 << 20)),
        ("1048576", Some(1)),
        ("off", None),
        ("infinity", None),
    ] {
        let config = compat(&format!("[driver]\nleaf_memory_max = {text:?}\n"));
        assert_eq!(config.driver.leaf_memory_mb, expected, "{text}");
    }
}

#[test]
fn rounds_without_a_person_need_the_switch() {
    for (text, expected) in [
        ("auto_iterate = true\nmax_auto_iters = 5\n", 5),
        ("auto_iterate = true\n", 3),
        ("auto_iterate = true\nmax_auto_iters = 0\n", 1),
        ("auto_iterate = true\nmax_auto_iters = 9\nmax_passes = 4\n", 3),
        ("auto_iterate = false\nmax_auto_iters = 5\n", 0),
        ("max_passes = 20\nmax_auto_iters = 5\n", 0),
        ("max_auto_iters = 5\n", 5),
    ] {
        let config = compat(&format!("[driver]\n{text}"));
        assert_eq!(config.driver.max_auto_iters, expected, "{text}");
    }
}

#[test]
fn a_file_whose_gates_alone_are_older_has_older_leaves() {
    let leaf = "[leaves.builder]\nmode = \"command\"\nargv = [\"claude\", \"-p\"]\nfamily = \"claude\"\nmodel = \"opus\"\n";
    let config = compat(&format!("[gates]\nhost_ci = [\"typos\"]\n{leaf}"));
    assert_eq!(config.leaves.builder.model_args, ["--model", "{model}"]);
}

#[test]
fn a_command_for_notes_may_be_several_and_quote_the_id() {
    let text = r#"cd tools && ./fetch {id} 'x/{id}?a' "y {id}s" \'{id}"#;
    let config = compat(&format!("[tracker]\nnotes_cmd = '''{text}'''\n"));
    let expected = r#"export PDCA_BUNDLE="$dir" && ( cd tools && ./fetch "$PDCA_ISSUE" 'x/'"$PDCA_ISSUE"'?a' "y ""$PDCA_ISSUE""s" \'"$PDCA_ISSUE" ) >&2 && cat "$dir/notes.json""#;
    let command = config.tracker.notes_cmd.unwrap();
    assert!(command.ends_with(expected), "{command}");
}
