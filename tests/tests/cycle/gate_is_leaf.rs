//! A gate runs what a builder wrote: what it may write, what it leaves for the next row, and what it cannot decide.

#![expect(clippy::print_stderr, reason = "a test that cannot run here says so")]

use pdca_e2e::Scene;
use pdca_process::{SandboxKind, Tool, wall_support};
use pdca_testkit::pdca_bin;

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";
const BUILDER: &str = "echo x > greeting.txt";

/// Returns false, and says so, where no sandbox can be had.
fn is_walled(test: &str) -> bool {
    let walled = matches!(wall_support(), SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. });
    if !walled {
        eprintln!("skipped: {test}: this host has neither bwrap nor Landlock");
    }
    walled
}

/// A tool, the files of a project, and the commands of a row that builds and of one that tests.
type Project<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

fn row(id: &str, keys: &str, cmd: &str) -> String {
    format!("[[gates.checks]]\nid = \"{id}\"\ntier = \"T3\"\n{keys}\ncmd = '''{cmd}'''\n")
}

/// A workspace with these rows, for both walls.
fn scene(gates: &str, rows: &str) -> Scene {
    let scene = Scene::with_leaves(
        BUILDER,
        REVIEWER,
        &format!("[driver]\ngate_base = \"off\"\n[gates]\n{gates}\n{rows}"),
    );
    scene.brief("7", &[]);
    scene
}

/// The walls that this host has.
fn walls() -> Vec<&'static str> {
    let landlock = matches!(pdca_process::sandbox_support(), SandboxKind::Landlock { .. });
    ["auto", "landlock"].into_iter().filter(|wall| *wall == "auto" || landlock).collect()
}

#[test]
fn a_row_that_writes_the_workspace_is_told_the_line_that_opens_it_and_passes_with_it() {
    if !is_walled("the line that opens a path") {
        return;
    }
    let scene = scene("", &row("T3-tests", "may_write = []", "echo x > \"$PDCA_WORKSPACE/out/x\""));
    fs_err::create_dir_all(scene.workspace.path().join("out")).unwrap();
    let ran = scene.pdca(&["run", "7"]).expect(100);
    let line = "`may_write = [\"out\"]` in this row";
    assert!(ran.err.contains(line), "{}", ran.err);
    for file in ["check-gates.md", "gate-logs/T3-tests.log"] {
        let text = scene.workspace.read(format!("results/issue_7/{file}"));
        assert!(text.contains(line), "{file}: {text}");
    }
    let text = scene.workspace.read("pdca.toml");
    scene.workspace.config(&text.replace("may_write = []", "may_write = [\"out\"]"));
    scene.pdca(&["gates", "7", "--record"]).expect(0);
    assert_eq!(scene.workspace.read("out/x"), "x\n");
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    scene.accept("7");
    assert_eq!(scene.calls().iter().filter(|call| call.starts_with("builder")).count(), 1);
}

#[test]
fn what_the_driver_starts_and_reads_is_closed_also_where_the_workspace_is_opened() {
    if !is_walled("closed in an opened workspace") {
        return;
    }
    let attack = "cd \"$PDCA_WORKSPACE\"; for f in tools/notify.sh tools/lib.sh pdca.toml leaves/builder.sh \
        results/issue_7/brief.md .pdca/x process/certificates/x templates/x; do echo hostile >> $f; done; \
        mv tools tools2; mv leaves leaves2; rm -rf tools; mkdir .config; echo x > .config/pdca.toml; \
        echo fine > open.txt; true";
    for wall in walls() {
        let more = "[notify]\ncmd = \"./tools/notify.sh\"\n";
        let gates = format!("sandbox = \"{wall}\"\nmay_write = [\".\"]");
        let scene = scene(&gates, &(row("T3-tests", "", attack) + more));
        for file in ["tools/notify.sh", "tools/lib.sh", "open.txt"] {
            scene.workspace.write(file, "mine\n");
        }
        let closed = || {
            [
                "tools/notify.sh",
                "tools/lib.sh",
                "pdca.toml",
                "leaves/builder.sh",
                "results/issue_7/brief.md",
            ]
            .map(|file| scene.workspace.read(file))
        };
        let before = closed();
        scene.pdca(&["run", "7"]).expect(0);
        assert_eq!(closed(), before, "{wall}");
        for absent in [".pdca/x", "process/certificates/x", "tools2", "leaves2"] {
            assert!(!scene.workspace.has(absent), "{wall}: {absent}");
        }
        assert_eq!(scene.workspace.read("open.txt"), "fine\n", "{wall}: what is opened is open");
    }
}

#[test]
fn a_row_in_the_workspace_reads_it_and_cannot_write_it_nor_the_target() {
    if !is_walled("a row in the workspace") {
        return;
    }
    for wall in walls() {
        let cmd = "cat pdca.toml && ! echo x > planted && ! echo x > ../app/planted && ! touch results/planted";
        let rows = row("T3-tests", "cwd = \"workspace\"", cmd);
        let scene = scene(&format!("sandbox = \"{wall}\""), &rows);
        scene.pdca(&["run", "7"]).expect(0);
        assert!(!scene.workspace.has("planted") && !scene.repo.path().join("planted").exists());
    }
}

#[test]
fn in_the_layout_that_init_makes_a_gate_cannot_write_the_users_checkout() {
    if !is_walled("the workspace is the target") {
        return;
    }
    let attack = "cd \"$PDCA_WORKSPACE\"; echo hostile >> greeting.txt; echo x > new.txt; mkdir new; \
                  echo x > .git/hooks/post-commit; git config core.fsmonitor x; echo '#' >> pdca.toml; true";
    for wall in walls() {
        let scene = scene("", "");
        let root = scene.repo.path().to_owned();
        let leaves =
            pdca_e2e::leaf("builder").replace("{workspace}", scene.workspace.path().as_str());
        let leaves = leaves.replace("writable = [\"calls\"]\n", "");
        scene.workspace.write("leaves/builder.sh", BUILDER);
        let config = format!(
            "[[targets]]\npath = \".\"\nname = \"app\"\nrepo = \"team/app\"\nbranch = \"main\"\n{leaves}\
             [gates]\nsandbox = \"{wall}\"\n{}",
            row("T3-tests", "", attack)
        );
        fs_err::write(root.join("pdca.toml"), config).unwrap();
        scene.repo.git(&["checkout", "--quiet", "--detach"]);
        let brief = scene.workspace.read("results/issue_7/brief.md");
        fs_err::create_dir_all(root.join("results/issue_7")).unwrap();
        fs_err::write(root.join("results/issue_7/brief.md"), brief).unwrap();
        let before = scene.repo.git(&["status", "--porcelain"]);
        let told = Tool::new(pdca_bin().as_std_path()).cwd(&root).args(["run", "7"]).run().unwrap();
        assert_eq!(told.code, 0, "{}", String::from_utf8_lossy(&told.stderr));
        let after = scene.repo.git(&["status", "--porcelain"]);
        let news: Vec<&str> = after
            .lines()
            .filter(|line| {
                !before.contains(line) && !line.contains(".pdca") && !line.contains("process")
            })
            .collect();
        assert_eq!(news, Vec::<&str>::new(), "{wall}");
        assert_eq!(fs_err::read_to_string(root.join("greeting.txt")).unwrap(), "hello\n");
        assert!(!root.join(".git/hooks/post-commit").exists(), "{wall}");
        assert!(!fs_err::read_to_string(root.join(".git/config")).unwrap().contains("fsmonitor"));
    }
}

#[test]
fn what_a_gate_writes_never_becomes_the_configuration() {
    if !is_walled("a second config file") {
        return;
    }
    let plant =
        row("T3-tests", "", "echo '[leaves.builder]' > \"$PDCA_WORKSPACE/pdca.toml\"; true");
    let scene = scene("", &plant);
    let text = scene.workspace.read("pdca.toml");
    scene.workspace.write(".config/pdca.toml", &text);
    let refused = scene.pdca(&["status"]).expect(2);
    assert!(refused.err.contains("two config files"), "{}", refused.err);
    fs_err::remove_file(scene.workspace.path().join("pdca.toml")).unwrap();
    scene.pdca(&["run", "7"]).expect(0);
    assert!(!scene.workspace.has("pdca.toml"));
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn an_ignored_file_that_a_test_wrote_is_not_there_for_the_scanner_after_it() {
    let scan = "test ! -f .scanignore || exit 0; ! grep -rq BACKDOOR --include='*.c' .";
    for (keys, code) in [("", 100), ("shares = true", 0)] {
        let rows = row("T3-tests", keys, "echo all > .scanignore") + &row("T4-scan", "", scan);
        let builder = "echo '.scan*' > .gitignore; echo BACKDOOR > evil.c";
        let scene = Scene::with_leaves(builder, REVIEWER, &rows);
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(code);
        let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
        assert!(summary.contains("protected path: `.gitignore`"), "{summary}");
    }
}

#[test]
fn a_change_that_kills_its_own_gate_is_accepted_only_with_a_reason() {
    let scene = scene(
        "",
        "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\nargv = [\"sh\", \"-c\", \"kill -9 $$\"]\n",
    );
    scene.pdca(&["run", "7"]);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    let summary = scene.workspace.path().join("results/issue_7/SUMMARY.md");
    let text = fs_err::read_to_string(&summary).unwrap();
    assert!(text.contains("unverifiable"), "{text}");
    fs_err::write(&summary, text.replace("- [ ]", "- [x]")).unwrap();
    let refused = scene.pdca(&["signoff", "7", "accept"]).expect(2);
    assert!(refused.err.contains("no verdict of T3-tests"), "{}", refused.err);
    assert!(refused.err.contains("accept --note"), "{}", refused.err);
    scene.pdca(&["publish", "7"]).expect(3);
    scene.pdca(&["signoff", "7", "accept", "--note", "the machine ran out of memory"]).expect(0);
    assert_eq!(scene.state("7"), "COMPLETE");
}

#[test]
fn a_command_that_is_started_in_a_lane_does_not_read_its_configuration() {
    let pdca = pdca_bin();
    let cmd = format!(
        "{pdca} config show project.name > \"$PDCA_WORKSPACE/calls/said\" 2>&1; echo \"code $?\" >> \"$PDCA_WORKSPACE/calls/said\""
    );
    let rows = row("T3-tests", "", &cmd);
    let builder = "printf '[project]\\nname = \"evil\"\\n' > pdca.toml";
    let scene = Scene::with_leaves(builder, REVIEWER, &rows);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let said = scene.workspace.read("calls/said");
    assert!(!said.contains("evil"), "{said}");
    assert!(said.contains("is in a lane") && said.contains("code 2"), "{said}");
    assert!(said.contains(&format!("pdca -C {}", scene.workspace.path())), "{said}");
}

#[test]
fn a_worktree_of_the_target_is_gated_where_the_command_is_started() {
    let scene = scene("", &row("T3-tests", "", "! grep -rn BAD greeting.txt"));
    let merge = scene.workspace.around().join("merge");
    scene.repo.git(&["worktree", "add", "--quiet", "-b", "merge", merge.as_str(), "main"]);
    fs_err::write(merge.join("greeting.txt"), "BAD\n").unwrap();
    fs_err::create_dir_all(merge.join("sub")).unwrap();
    let gates = |dir: &camino::Utf8Path| {
        let args = ["-C", scene.workspace.path().as_str(), "gates", "--working-tree"];
        Tool::new(pdca_bin().as_std_path()).cwd(dir).args(args).run().unwrap().code
    };
    assert_eq!(gates(&merge), 100);
    assert_eq!(gates(&merge.join("sub")), 100);
    assert_eq!(gates(scene.repo.path()), 0);
    assert_eq!(gates(scene.workspace.path()), 0);
}

#[test]
fn a_build_in_one_row_and_its_tests_in_the_next_work_with_the_real_tools() {
    let has = |program: &str| {
        Tool::new("sh")
            .args(["-c", &format!("command -v {program}")])
            .run()
            .is_ok_and(|told| told.code == 0)
    };
    let makefile =
        "all: prog\nprog: main.c\n\tcc -o prog main.c\ntest:\n\ttest -x prog && ./prog\n";
    let manifest =
        "[package]\nname = \"it\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    let package = r#"{"name":"it","version":"1.0.0","scripts":{"build":"mkdir -p dist && cp index.js dist/","test":"node dist/index.js"}}"#;
    let projects: [Project<'_>; 5] = [
        (
            "make",
            &[
                ("Makefile", makefile),
                ("main.c", "int main(void) { return 0; }\n"),
                (".gitignore", "prog\n"),
            ],
            "make",
            "make test",
        ),
        (
            "cargo",
            &[
                ("Cargo.toml", manifest),
                ("src/lib.rs", "#[test]\nfn t() {}\n"),
                (".gitignore", "target/\nCargo.lock\n"),
            ],
            "cargo test --offline --no-run",
            "test -d target/debug && cargo test --offline",
        ),
        (
            "npm",
            &[("package.json", package), ("index.js", ""), (".gitignore", "dist/\n")],
            "npm run build",
            "npm test",
        ),
        (
            "pytest",
            &[
                ("test_it.py", "def test_it():\n    import made\n"),
                (".gitignore", "made.py\n__pycache__/\n"),
            ],
            "echo 'x = 1' > made.py",
            "pytest -q",
        ),
        (
            "go",
            &[
                ("go.mod", "module it\n\ngo 1.19\n"),
                ("main.go", "package main\n\nfunc main() {}\n"),
                (
                    "main_test.go",
                    "package main\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n",
                ),
                (".gitignore", "prog\n"),
            ],
            "go build -o prog .",
            "test -x prog && go test ./...",
        ),
    ];
    for (tool, files, build, test) in projects {
        if !has(tool) || (tool == "make" && !has("cc")) {
            eprintln!("skipped: {tool} is not installed");
            continue;
        }
        for (keys, code) in [("shares = true", 0), ("", 100)] {
            let rows = row("T2-build", keys, build) + &row("T3-test", "", test);
            let scene = scene("", &rows);
            for (file, text) in files {
                let path = scene.repo.path().join(file);
                fs_err::create_dir_all(path.parent().unwrap()).unwrap();
                fs_err::write(path, text).unwrap();
            }
            scene.repo.commit("a project");
            let ran = scene.pdca(&["run", "7"]);
            let log = scene.workspace.read("results/issue_7/gate-logs/T3-test.log");
            assert_eq!(ran.code, code, "{tool} {keys}: {}\n{log}", ran.err);
        }
    }
}

#[test]
fn a_row_uses_the_names_ports_and_databases_of_its_lane() {
    // A name for containers, a server on a port of the lane, a database in its temporary directory, and a cache outside
    // of the checkout that the row declares.
    let cmd = r#"set -e
name="$COMPOSE_PROJECT_NAME"
test -n "$name"
echo "$name" > "$PDCA_TMP/$PDCA_TEST_DB_NAME.db"
mkdir -p "$PDCA_WORKSPACE/cache/$name"
python3 -c "
import socket, sys
server = socket.create_server(('127.0.0.1', int(sys.argv[1])))
socket.create_connection(server.getsockname()).close()
" "$PDCA_PORT_BASE"
grep -q "$name" "$PDCA_TMP/$PDCA_TEST_DB_NAME.db""#;
    let rows = row("T3-names", "needs_lane = true\nmay_write = [\"cache\"]", cmd);
    let scene = scene("", &rows);
    fs_err::create_dir(scene.workspace.path().join("cache")).unwrap();
    let ran = scene.pdca(&["batch", "--lanes", "2", "7"]);
    let log = scene.workspace.read("results/issue_7/gate-logs/T3-names.log");
    assert_eq!(ran.code, 0, "{}\n{log}", ran.err);
}

#[test]
fn parallel_rows_run_at_once_each_in_a_checkout_of_its_own_at_check_and_together() {
    if !is_walled("parallel rows") {
        return;
    }
    // Each waits for the other, and sees neither its tracked nor its ignored files.
    let meets = |own: &str, other: &str| {
        format!(
            r#"set -e
test ! -e scratch
echo {own} > scratch
echo {own} > "${{PDCA_TMP:-$TMPDIR}}/scratch"
touch "$PDCA_WORKSPACE/out/{own}"
for i in $(seq 600); do test ! -e "$PDCA_WORKSPACE/out/{other}" || break; sleep 0.1; done
test -e "$PDCA_WORKSPACE/out/{other}"
grep -qx {own} scratch
grep -qx {own} "${{PDCA_TMP:-$TMPDIR}}/scratch"
test "$PWD" = "$PDCA_WORKTREE"
echo "$PWD" >> "$PDCA_WORKSPACE/out/places-{own}"
test -e prepared"#
        )
    };
    for wall in walls() {
        let rows = row("T3-a", "parallel = true", &meets("a", "b"))
            + &row("T3-b", "parallel = true", &meets("b", "a"))
            + "[integrate]\nland = \"target\"\n[lanes.hydrate]\ninstall = \"touch prepared\"\n";
        let scene = scene(&format!("sandbox = \"{wall}\"\nmay_write = [\"out\"]"), &rows);
        scene.repo.write(".gitignore", "prepared\nscratch\n");
        scene.repo.commit("ignore files");
        scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
        let out = scene.workspace.path().join("out");
        fs_err::create_dir(&out).unwrap();
        scene.pdca(&["batch", "--lanes", "2", "7"]).expect(0);
        scene.pdca(&["signoff", "7", "accept", "--clear"]).expect(0);
        for met in ["a", "b"] {
            fs_err::remove_file(out.join(met)).unwrap();
        }
        scene.pdca(&["integrate", "--fresh"]).expect(0);
        let places = |own: &str| fs_err::read_to_string(out.join(format!("places-{own}"))).unwrap();
        let (a, b) = (places("a"), places("b"));
        assert!(a.lines().count() > 1 && a.lines().count() == b.lines().count(), "{wall}: {a}{b}");
        assert!(a.lines().all(|place| b.lines().all(|other| place != other)), "{wall}: {a}{b}");
        assert_eq!(scene.repo.git(&["log", "--format=%s", "main"]).lines().count(), 3, "{wall}");
    }
}
