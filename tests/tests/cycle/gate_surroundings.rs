//! What a gate gets of the machine that it runs on: its variables, its home directory, and nothing of the user's checkout.

#![expect(clippy::print_stderr, reason = "a test that cannot run here says so")]

use camino::Utf8Path;
use pdca_e2e::Scene;
use pdca_process::{SandboxKind, SandboxMode, Tool, wall_support};

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

fn row(keys: &str, cmd: &str) -> String {
    format!("[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\n{keys}\ncmd = '''{cmd}'''\n")
}

/// A workspace that lands what is green, with a builder that does another thing for each bundle.
fn scene(builder: &str, gates: &str, rows: &str) -> Scene {
    let more = format!(
        "[driver]\ngate_base = \"off\"\n[integrate]\nland = \"target\"\n[gates]\n{gates}\n{rows}"
    );
    let scene = Scene::with_leaves(builder, REVIEWER, &more);
    scene.repo.git(&["checkout", "--quiet", "--detach"]);
    scene
}

fn has(program: &str) -> bool {
    let found = Tool::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .run()
        .is_ok_and(|said| said.code == 0);
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// The walls that this host has; the first is the one that `auto` takes.
fn walls() -> Vec<SandboxMode> {
    let landlock = matches!(pdca_process::sandbox_support(), SandboxKind::Landlock { .. });
    let strong = matches!(wall_support(), SandboxKind::Bwrap { .. });
    let walls = [(strong, SandboxMode::Bwrap), (landlock, SandboxMode::Landlock)];
    let walls: Vec<_> =
        walls.into_iter().filter(|(is_here, _)| *is_here).map(|(_, it)| it).collect();
    if walls.is_empty() {
        eprintln!("skipped: this host has neither bwrap nor Landlock");
    }
    walls
}

/// A project that reaches its own package through the user's checkout.
struct Setup<'a> {
    /// The files of the target, with `{app}` for the path of its checkout.
    files: &'a [(&'a str, &'a str)],
    /// Keys of `[gates]` and of the row, with `{app}` and `{around}`.
    gates: &'a str,
    cmd: &'a str,
    /// What the builder of the change does that breaks the package.
    breaks: &'a str,
    /// What the builder of the right change does; its test needs its code.
    right: &'a str,
}

/// The change that breaks the package is red at Check and never lands. The right one lands behind `bwrap` as it is; behind
/// Landlock, which cannot give a path another meaning, its row is told what to write.
fn judges_the_change(setup: &Setup<'_>, prepare: impl Fn(&Scene)) {
    for wall in walls() {
        let builder =
            format!("case \"$1\" in\n1) {} ;;\n2) {} ;;\nesac", setup.breaks, setup.right);
        let scene = scene(&builder, "", "");
        let (app, around) = (scene.repo.path().to_owned(), scene.workspace.around().clone());
        let fill =
            |text: &str| text.replace("{app}", app.as_str()).replace("{around}", around.as_str());
        for (file, text) in setup.files {
            scene.repo.write(file, fill(text));
        }
        scene.repo.commit("a project");
        scene.repo.git(&["branch", "--force", "main", "HEAD"]);
        prepare(&scene);
        let config = scene.workspace.read("pdca.toml");
        let gates = format!("[gates]\nsandbox = \"{}\"\n{}", wall.as_str(), fill(setup.gates));
        let config = config.replace("[gates]\n", &gates) + &row("", &fill(setup.cmd));
        scene.workspace.config(&config);
        for id in ["1", "2"] {
            scene.brief(id, &[]);
        }
        let broken = scene.pdca(&["run", "1"]).expect(100);
        let ran = scene.pdca(&["run", "2"]);
        let log = scene.workspace.read("results/issue_2/gate-logs/T3-tests.log");
        if wall == SandboxMode::Bwrap {
            assert_eq!(ran.code, 0, "{wall:?}: {}\n{log}", ran.err);
            scene.accept("2");
            scene.pdca(&["integrate"]).expect(0);
            let landed = scene.repo.git(&["log", "--format=%s %b", "main"]);
            assert!(landed.contains("Pdca-Issue: 2") || landed.lines().count() > 2, "{landed}");
        } else {
            assert_eq!(ran.code, 100, "{wall:?}: {}\n{log}", ran.err);
            assert!(
                broken.err.contains("reads_primary = true")
                    || ran.err.contains("reads_primary = true"),
                "{}\n{log}",
                ran.err
            );
        }
        let refused = scene.pdca(&["signoff", "1", "accept"]);
        assert_ne!(refused.code, 0, "{wall:?}: the broken change is accepted");
    }
}

const PACKAGE: &[(&str, &str)] = &[
    ("src/calc/__init__.py", "def add(a, b):\n    return a + b\n"),
    ("tests/check_add.py", "import calc\nassert calc.add(2, 3) == 5\n"),
    (
        "tests/all.py",
        "import glob, os, runpy\nhere = os.path.dirname(os.path.abspath(__file__))\n\
         for name in sorted(glob.glob(os.path.join(here, 'check_*.py'))):\n    runpy.run_path(name)\n",
    ),
];
const BREAKS_PACKAGE: &str = "echo 'raise RuntimeError(1)' >> src/calc/__init__.py";
const EXTENDS_PACKAGE: &str = "echo 'def sub(a, b): return a - b' > src/calc/less.py; \
     printf 'from calc import less\\nassert less.sub(5, 3) == 2\\n' > tests/check_less.py";

#[test]
fn an_editable_install_of_the_checkout_does_not_stand_in_for_the_change() {
    if !has("python3") {
        return;
    }
    let setup = Setup {
        files: PACKAGE,
        gates: "",
        cmd: "python3 -B -c \"import site, runpy; site.addsitedir('{around}/site'); runpy.run_path('tests/all.py')\"",
        breaks: BREAKS_PACKAGE,
        right: EXTENDS_PACKAGE,
    };
    judges_the_change(&setup, |scene| {
        let site = scene.workspace.around().join("site");
        fs_err::create_dir_all(&site).unwrap();
        let line = format!("{}/src\n", scene.repo.path());
        fs_err::write(site.join("__editable__.calc.pth"), line).unwrap();
    });
}

#[test]
fn a_variable_that_leads_into_the_checkout_does_not_stand_in_for_the_change() {
    if !has("python3") {
        return;
    }
    let setup = Setup {
        files: PACKAGE,
        gates: "env = { PYTHONPATH = \"{app}/src\" }",
        cmd: "python3 -B tests/all.py",
        breaks: BREAKS_PACKAGE,
        right: EXTENDS_PACKAGE,
    };
    judges_the_change(&setup, |_| {});
}

#[test]
fn a_package_that_npm_linked_to_the_checkout_does_not_stand_in_for_the_change() {
    if !has("node") {
        return;
    }
    let setup = Setup {
        files: &[
            (
                "packages/calc/package.json",
                "{\"name\":\"calc\",\"version\":\"1.0.0\",\"main\":\"index.js\"}\n",
            ),
            ("packages/calc/index.js", "exports.add = (a, b) => a + b;\n"),
            ("test.js", "if (require('calc').add(2, 3) !== 5) process.exit(1);\n"),
        ],
        gates: "env = { NODE_PATH = \"{around}/linked\" }",
        cmd: "for t in test*.js; do node $t || exit 1; done",
        breaks: "echo 'throw new Error(1);' >> packages/calc/index.js",
        right: "echo 'exports.sub = (a, b) => a - b;' >> packages/calc/index.js; \
                echo \"if (require('calc').sub(5, 3) !== 2) process.exit(1);\" > test_sub.js",
    };
    judges_the_change(&setup, |scene| {
        let linked = scene.workspace.around().join("linked");
        fs_err::create_dir_all(&linked).unwrap();
        let package = scene.repo.path().join("packages/calc");
        fs_err::os::unix::fs::symlink(package, linked.join("calc")).unwrap();
    });
}

#[test]
fn a_cargo_dependency_by_full_path_does_not_stand_in_for_the_change() {
    if !has("cargo") {
        return;
    }
    let setup = Setup {
        files: &[
            (".gitignore", "target/\nCargo.lock\n"),
            (
                "calc/Cargo.toml",
                "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
            ),
            ("calc/src/lib.rs", "pub fn add(a: i32, b: i32) -> i32 { a + b }\n"),
            (
                "check/Cargo.toml",
                "[package]\nname = \"check\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n\
                 calc = { path = \"{app}/calc\" }\n[workspace]\n",
            ),
            ("check/src/main.rs", "fn main() { assert_eq!(calc::add(2, 3), 5); }\n"),
        ],
        gates: "",
        cmd: "cd check && cargo run --offline --quiet",
        breaks: "echo 'compile_error!(\"broken\");' >> calc/src/lib.rs",
        right: "echo 'pub fn sub(a: i32, b: i32) -> i32 { a - b }' >> calc/src/lib.rs; \
                echo 'fn main() { assert_eq!(calc::sub(5, 3), 2); }' > check/src/main.rs",
    };
    judges_the_change(&setup, |_| {});
}

#[test]
fn a_makefile_that_is_included_by_full_path_does_not_stand_in_for_the_change() {
    if !has("make") {
        return;
    }
    let setup = Setup {
        files: &[
            ("rules.mk", "SUM := 5\n"),
            (
                "Makefile",
                "include {app}/rules.mk\ncheck:\n\ttest \"$(SUM)\" = 5\n-include more.mk\n",
            ),
        ],
        gates: "",
        cmd: "make check",
        breaks: "echo 'SUM := 6' > rules.mk",
        right: "echo 'LESS := 2' >> rules.mk; printf 'check: less\\nless:\\n\\ttest \"$(LESS)\" = 2\\n' > more.mk",
    };
    judges_the_change(&setup, |_| {});
}

#[test]
fn a_row_that_reads_the_checkout_says_so_and_its_verdict_too() {
    for wall in walls() {
        for (keys, code) in [("reads_primary = true", 0), ("", 100)] {
            let cmd = "test \"$(cat ../../../app/only-here.txt)\" = mine && ! echo x > ../../../app/planted";
            let gates = format!("sandbox = \"{}\"", wall.as_str());
            let scene = scene("echo x > new.txt", &gates, &row(keys, cmd));
            fs_err::write(scene.repo.path().join("only-here.txt"), "mine\n").unwrap();
            scene.brief("7", &[]);
            let ran = scene.pdca(&["run", "7"]);
            assert_eq!(ran.code, code, "{wall:?} {keys}: {}", ran.err);
            let report = scene.workspace.read("results/issue_7/check-gates.json");
            assert_eq!(report.contains("\"reads_primary\": true"), code == 0, "{report}");
            if code != 0 {
                assert!(ran.err.contains("reads_primary = true"), "{}", ran.err);
            }
            assert!(!scene.repo.path().join("planted").exists());
        }
    }
}

/// The names that a shell adds by itself.
const OF_THE_SHELL: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

#[test]
fn a_row_gets_the_same_few_variables_mask_and_limits_whatever_shell_started_pdca() {
    let cmd = "cp /proc/$$/environ \"$PDCA_WORKSPACE/calls/$(basename \"$PWD\")-env\"; \
               echo \"$(umask) $(ulimit -Sn) $(ulimit -Sc) $HOME $TMPDIR\" > \"$PDCA_WORKSPACE/calls/said\"; \
               test ! -e ~/.bashrc && echo x > ~/.bashrc && test -d \"$TMPDIR\" && echo x > \"$TMPDIR/x\"";
    let scene = scene(
        "echo x > new.txt",
        "env_pass = [\"NAMED\", \"ABSENT\"]\nenv = { SET = \"1\" }",
        &row("may_write = [\"calls\"]", cmd),
    );
    scene.brief("7", &[]);
    let names = |file: &str| -> Vec<String> {
        let bytes = fs_err::read(scene.workspace.path().join(file)).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let names = text.split('\0').filter_map(|one| Some(one.split_once('=')?.0.to_owned()));
        let mut names: Vec<String> =
            names.filter(|it| !OF_THE_SHELL.contains(&it.as_str())).collect();
        names.sort();
        names.retain(|name| !name.starts_with("PDCA_"));
        names
    };
    let shell = "umask 077; ulimit -Sn 512; export MAKEFLAGS=-n SKIP_SLOW=1 CI=true NAMED=x LC_ALL=POSIX CDPATH=/ http_proxy=x";
    scene.paste(&format!("{shell}; pdca run 7")).expect(0);
    let expected = ["HOME", "LANG", "NAMED", "PATH", "SET", "TMPDIR", "TZ"];
    assert_eq!(names("calls/app-env"), expected);
    let said = scene.workspace.read("calls/said");
    assert!(
        said.starts_with("0022 4096 0 ")
            && !said.contains(&format!("{} ", scene.workspace.around())),
        "{said}"
    );
    scene.paste(&format!("{shell}; pdca gates --working-tree")).expect(0);
    assert_eq!(names("calls/app-env"), expected);
    assert!(scene.workspace.read("calls/said").starts_with("0022 4096 0 "));
    assert!(!scene.workspace.around().join(".bashrc").exists(), "the user's home is another");
}

#[test]
fn what_a_builder_left_in_a_cache_of_the_home_is_not_seen_and_a_declared_cache_is_closed_to_it() {
    for wall in walls() {
        let builder = "echo x > \"new-$1.txt\"; for d in \"$HOME/.cache/results\" \"$HOME/.npm/results\" \"$HOME/.cache/declared\"; \
                       do mkdir -p $d && echo poison > $d/key || true; done";
        let cmd = "test -f ~/.cache/declared/mine && test ! -e ~/.cache/declared/key && test ! -e ~/.cache/results/key && \
                   test ! -e ~/.npm/results/key && ! cat {around}/.cache/results/key && mkdir -p ~/.cache/results && \
                   echo own > ~/.cache/results/key";
        let scene = scene(builder, "", "");
        let around = scene.workspace.around().clone();
        for dir in [".cache/declared", ".npm"] {
            fs_err::create_dir_all(around.join(dir)).unwrap();
        }
        fs_err::write(around.join(".cache/declared/mine"), "").unwrap();
        let gates =
            format!("[gates]\nsandbox = \"{}\"\ncaches = [\"~/.cache/declared\"]\n", wall.as_str());
        let config = scene.workspace.read("pdca.toml").replace("[gates]\n", &gates);
        scene.workspace.config(&(config + &row("", &cmd.replace("{around}", around.as_str()))));
        for id in ["1", "2"] {
            scene.brief(id, &[]);
            let ran = scene.pdca(&["run", id]);
            let log = scene.workspace.read(format!("results/issue_{id}/gate-logs/T3-tests.log"));
            assert_eq!(ran.code, 0, "{wall:?}: {}\n{log}", ran.err);
        }
        let poisoned = |file: &str| around.join(file).exists();
        assert!(poisoned(".cache/results/key") && !poisoned(".cache/declared/key"), "{wall:?}");
    }
}

#[test]
fn a_program_of_the_home_is_part_of_the_key_however_it_is_written() {
    let put = |file: &Utf8Path, code: u32| {
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(file, format!("#!/bin/sh\n# {code}\nexit {code}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(file, mode).unwrap();
    };
    for (cmd, file) in [
        ("~/mine/check --all", "mine/check"),
        ("env X=1 \"${HOME}\"/mine/check", "mine/check"),
        ("PATH=$HOME/tools:$PATH check", "tools/check"),
        ("sh -c '. ~/mine/first.sh'", "mine/lib/second"),
    ] {
        let scene = scene("echo x > new.txt", "", &row("needs = []", cmd));
        let home = scene.workspace.around().clone();
        put(&home.join("mine/first.sh"), 0);
        fs_err::write(home.join("mine/first.sh"), "~/mine/lib/second\n").unwrap();
        put(&home.join(file), 0);
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(0);
        scene.accept("7");
        let tip = scene.repo.git(&["rev-parse", "main"]);
        put(&home.join(file), 1);
        scene.pdca(&["integrate"]);
        assert_eq!(scene.repo.git(&["rev-parse", "main"]), tip, "{cmd}: it is red now");
        put(&home.join(file), 0);
        scene.pdca(&["integrate"]).expect(0);
        assert_ne!(scene.repo.git(&["rev-parse", "main"]), tip, "{cmd}: it is green again");
    }
}

#[test]
fn a_verdict_of_check_counts_at_landing_only_for_rows_that_need_no_variable_of_the_bundle() {
    for (keys, is_known) in [("", false), ("needs = [\"PDCA_BASE\"]", false), ("needs = []", true)]
    {
        let scene = scene("echo x > new.txt", "", &row(keys, "sh greet.sh"));
        scene.repo.write("greet.sh", "sh deeper.sh\n");
        scene.repo.write("deeper.sh", "test -z \"${PDCA_ISSUE:-}\" || echo \"$PDCA_ISSUE\"\n");
        scene.repo.commit("scripts");
        scene.repo.git(&["branch", "--force", "main", "HEAD"]);
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(0);
        let log = scene.workspace.read("results/issue_7/gate-logs/T3-tests.log");
        assert_eq!(log.lines().any(|line| line == "7"), keys.is_empty(), "{keys}: {log}");
        scene.accept("7");
        let report = scene.pdca(&["integrate", "--json"]).expect(0).json();
        assert_eq!(report["gate_runs"] == 0, is_known, "{keys}: {report}");
    }
}

#[test]
fn doctor_finds_what_leads_into_a_checkout_and_proxies_that_rows_do_not_get() {
    let scene = scene("true", "", "");
    let (app, around) = (scene.repo.path().to_owned(), scene.workspace.around().clone());
    scene.repo.write("Makefile", format!("include {app}/rules.mk\n"));
    let site = app.join(".venv/lib/python3.11/site-packages");
    fs_err::create_dir_all(site.join("calc-1.dist-info")).unwrap();
    fs_err::write(site.join("__editable__.calc.pth"), format!("{app}/src\n")).unwrap();
    fs_err::write(site.join("other.pth"), format!("{app}-other/src\n")).unwrap();
    let url = format!("{{\"url\": \"file://{app}\", \"dir_info\": {{\"editable\": true}}}}");
    fs_err::write(site.join("calc-1.dist-info/direct_url.json"), url).unwrap();
    fs_err::create_dir_all(around.join("node_modules")).unwrap();
    fs_err::os::unix::fs::symlink(&app, around.join("node_modules/calc")).unwrap();
    let rows = row(&format!("env = {{ RUBYLIB = \"{app}/lib\" }}"), "true");
    let config = scene.workspace.read("pdca.toml");
    scene.workspace.config(&(config + &rows));
    let path = format!("{app}/src");
    let env = [("PYTHONPATH", path.as_str()), ("https_proxy", "http://proxy.example:3128")];
    let said = scene.pdca_with(&env, &["doctor", "--json"]).out;
    for lead in [
        "__editable__.calc.pth",
        "direct_url.json",
        "node_modules/calc",
        "RUBYLIB",
        "PYTHONPATH",
        "app/Makefile",
    ] {
        assert!(said.contains(lead), "{lead}: {said}");
    }
    assert!(said.contains("https_proxy is set") && !said.contains("other.pth"), "{said}");
    let plain = Scene::new(&row("", "true"));
    let said = plain.pdca(&["doctor", "--json"]).out;
    assert!(!said.contains("checkout of app"), "{said}");
}

/// Git where nothing is seen but the system, the lane and what is bound besides, as in a container.
const CONTAINER: &str = r#"
inside() {
    bwrap --unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib \
        --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --setenv HOME /tmp --setenv PATH /usr/bin:/bin \
        --bind "$PDCA_WORKTREE" "$PDCA_WORKTREE" "$@"
}
bind="--ro-bind $PDCA_GIT_COMMON_DIR/objects $PDCA_GIT_COMMON_DIR/objects"
git="git -c safe.directory=* -C $PDCA_WORKTREE"
! inside $git log -1 --format=%s >/dev/null 2>&1 || { echo 'the objects are seen without being bound'; exit 1; }
inside $bind sh -c "test ! -e '$PDCA_WORKSPACE/pdca.toml' && test ! -e '$PDCA_GIT_COMMON_DIR/config'" || exit 2
inside $bind $git log --format=%H >/dev/null || exit 3
inside $bind $git status --porcelain >/dev/null || exit 4
test "$(inside $bind $git rev-list --count HEAD)" = "$($git rev-list --count HEAD)" || exit 5
printf %s "$PDCA_GIT_COMMON_DIR" > "$PDCA_WORKSPACE/calls/gate-dir"
"#;

#[test]
fn git_works_where_only_the_lane_and_the_named_objects_are_seen() {
    if !has("bwrap") || !has("/usr/bin/git") {
        return;
    }
    let alone = Tool::new("bwrap").args(["--unshare-all", "--ro-bind", "/", "/", "true"]).run();
    if !alone.is_ok_and(|said| said.code == 0) {
        eprintln!("skipped: bwrap is refused here");
        return;
    }
    let builder = "printf %s \"$PDCA_GIT_COMMON_DIR\" > \"$PDCA_WORKSPACE/calls/builder-dir\"\necho x > new.txt";
    let scene = scene(builder, "", &row("needs = []\nsandbox = \"off\"", CONTAINER));
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let own = scene.repo.path().join(".git");
    for who in ["builder", "gate"] {
        assert_eq!(scene.workspace.read(format!("calls/{who}-dir")), own.as_str(), "{who}");
    }
}
