//! What a hostile builder or test gets of the user's programs, environment, sockets and checkout: nothing.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use pdca_e2e::Scene;
use pdca_process::{SandboxKind, wall_support};

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

fn is_walled() -> bool {
    matches!(wall_support(), SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. })
}

fn gate(cmd: &str) -> String {
    format!("[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = '''{cmd}'''\n")
}

fn log(scene: &Scene) -> String {
    scene.workspace.read("results/issue_7/gate-logs/T3-tests.log")
}

#[test]
fn a_program_that_a_builder_put_into_a_cache_on_the_path_is_not_run_outside_the_wall() {
    let builder = r#"
for dir in "$HOME/.cache/venv/bin" "$HOME/.pub-cache/bin"; do
    mkdir -p "$dir" || continue
    for name in git bwrap ssh gh sh; do
        printf '#!/bin/sh\necho "$0" >> "%s"\nfor dir in /usr/local/bin /usr/bin /bin; do test -x $dir/%s && exec $dir/%s "$@"; done\n' "$PDCA_WORKSPACE/../app/ran" "$name" "$name" > "$dir/$name" || continue
        chmod 755 "$dir/$name"
    done
done
echo x > greeting.txt"#;
    let scene = Scene::with_leaves(builder, REVIEWER, &gate("lint"));
    let home = scene.workspace.around().join("home");
    let venv = home.join(".cache/venv/bin");
    fs_err::create_dir_all(&venv).unwrap();
    fs_err::create_dir_all(home.join(".pub-cache")).unwrap();
    // The user's own tool in such a directory goes on working for gates.
    fs_err::write(venv.join("lint"), "#!/bin/sh\nexit 0\n").unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(venv.join("lint"), mode).unwrap();
    let path = format!("{venv}:{home}/.pub-cache/bin:/usr/local/bin:/usr/bin:/bin");
    let scene = scene.env("HOME", home.as_str()).env("PATH", &path);
    scene.brief("7", &[]);
    scene.brief("8", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(venv.join("git").exists(), !is_walled(), "gates run programs there");
    scene.pdca(&["status"]).expect(0);
    scene.pdca(&["run", "8"]).expect(0);
    scene.accept("7");
    scene.pdca(&["integrate"]).expect(0);
    let ran = scene.repo.path().join("ran");
    // A leaf and a gate find them on their `PATH` too, but cannot write here from behind a wall.
    if is_walled() {
        assert!(!ran.exists(), "{}", fs_err::read_to_string(&ran).unwrap());
    }
}

#[test]
fn a_git_that_is_only_in_a_cache_is_refused_by_its_path() {
    let scene = Scene::with_leaves("echo x > greeting.txt", REVIEWER, "");
    let home = scene.workspace.around().join("home");
    let cache = home.join(".cache/bin");
    fs_err::create_dir_all(&cache).unwrap();
    for name in ["git", "sh", "printf", "cat", "env"] {
        fs_err::copy("/bin/true", cache.join(name)).unwrap();
    }
    scene.brief("7", &[]);
    let env = [("HOME", home.as_str()), ("PATH", cache.as_str())];
    let refused = scene.pdca_with(&env, &["run", "7"]);
    assert_ne!(refused.code, 0);
    let said = format!("git found only at {}", cache.join("git"));
    assert!(refused.err.contains(&said), "{}", refused.err);
}

#[test]
fn no_password_of_the_environment_reaches_a_gate_unless_it_is_named() {
    let secret = "s3cr3t";
    let url = format!("postgres://me:{secret}@db/x");
    let header = format!("Authorization: Bearer {secret}");
    let given = [
        ("PGPASSWORD", secret),
        ("MYSQL_PWD", secret),
        ("SSHPASS", secret),
        ("BORG_PASSPHRASE", secret),
        ("ARTIFACTORY_PASS", secret),
        ("BW_SESSION", secret),
        ("STRIPE_API_KEY", secret),
        ("ANTHROPIC_API_KEY", secret),
        ("CLIENT_SECRET", secret),
        ("NPM_CONFIG__AUTH", secret),
        ("DATABASE_URL", &url),
        ("PIP_INDEX_URL", &url),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.extraheader"),
        ("GIT_CONFIG_VALUE_0", &header),
    ];
    for (named, expected) in
        [("", "got:"), ("\"SSHPASS\", \"DATABASE_URL\"", "got: DATABASE_URL SSHPASS")]
    {
        let row = gate(&format!("echo got: $(env | grep {secret} | cut -d= -f1 | sort)"));
        let scene = Scene::with_leaves(
            "echo x > greeting.txt",
            REVIEWER,
            &format!("[gates]\nenv_pass = [{named}]\n{row}"),
        );
        scene.brief("7", &[]);
        scene.pdca_with(&given, &["run", "7"]).expect(0);
        assert_eq!(log(&scene).trim(), expected);
    }
}

#[test]
fn a_socket_of_the_user_is_closed_to_a_builder_however_many_others_there_are() {
    if !matches!(wall_support(), SandboxKind::Bwrap { .. }) {
        // Landlock does not close named sockets: skipped.
        return;
    }
    let builder = r#"ls -l "$PDCA_WORKSPACE/../socks/user.sock" >&2 || true
if test -S "$PDCA_WORKSPACE/../socks/user.sock"; then echo open > greeting.txt; else echo closed > greeting.txt; fi"#;
    for others in [0, 70] {
        let scene = Scene::with_leaves(builder, REVIEWER, "");
        let around = scene.workspace.around();
        for dir in ["socks", "hoard"] {
            fs_err::create_dir(around.join(dir)).unwrap();
        }
        let user = around.join("socks/user.sock");
        let name = |n: usize| around.join(format!("hoard/{n}"));
        let listeners: Vec<_> = std::iter::once(user)
            .chain((0..others).map(name))
            .map(|path| UnixListener::bind(path).unwrap())
            .collect();
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(0);
        let patch = scene.workspace.read("results/issue_7/patch.diff");
        assert!(patch.contains("+closed"), "beside {others} others: {patch}");
        drop(listeners);
    }
}

#[test]
fn in_the_layout_that_init_makes_a_gate_writes_nothing_of_the_checkout() {
    if !is_walled() {
        return;
    }
    let hostile = r#"cd "$PDCA_WORKSPACE" && {
    echo hostile >> greeting.txt; rm -f kept.txt; echo x > NEW.txt; mkdir newdir
    echo x > .git/hooks/post-commit; echo x > results/x; echo x > .pdca/x; echo '# x' >> pdca.toml
    mv docs moved; echo x >> leaves/reviewer.sh; } 2>/dev/null
exit 0"#;
    for sandbox in ["auto", "landlock"] {
        if sandbox == "landlock"
            && !matches!(pdca_process::sandbox_support(), SandboxKind::Landlock { .. })
        {
            continue;
        }
        let scene = Scene::with_leaves(
            "echo x > f.txt",
            REVIEWER,
            &format!("[gates]\nsandbox = \"{sandbox}\"\n{}", gate(hostile)),
        );
        let root = scene.repo.path().to_owned();
        for (name, text) in [("kept.txt", "kept\n"), ("docs/page.txt", "page\n")] {
            scene.repo.write(name, text);
        }
        scene.repo.commit("more");
        // The workspace moves into the checkout of the target.
        for part in ["pdca.toml", "leaves", "calls"] {
            fs_err::rename(scene.workspace.path().join(part), root.join(part)).unwrap();
        }
        let config = fs_err::read_to_string(root.join("pdca.toml")).unwrap();
        let config = config.replace("path = \"../app\"", "path = \".\"");
        let config = config.replace("writable = [\"calls\"]", "sandbox = \"off\"");
        fs_err::write(root.join("pdca.toml"), &config).unwrap();
        fs_err::write(
            root.join(".git/info/exclude"),
            "leaves/\ncalls/\nresults/\n.pdca/\npdca.toml\nprocess/\n",
        )
        .unwrap();
        let brief = scene.brief("7", &[]);
        fs_err::create_dir_all(root.join("results/issue_7")).unwrap();
        fs_err::copy(brief.join("brief.md"), root.join("results/issue_7/brief.md")).unwrap();
        let ran = scene.pdca(&["-C", root.as_str(), "run", "7"]);
        assert_eq!(ran.code, 0, "{sandbox}: {}{}", ran.out, ran.err);
        let status = scene.repo.git(&["status", "--porcelain"]);
        assert_eq!(status, "", "{sandbox}");
        for path in [".git/hooks/post-commit", "results/x", ".pdca/x", "moved", "newdir"] {
            assert!(!root.join(path).exists(), "{sandbox}: {path}");
        }
        assert_eq!(fs_err::read_to_string(root.join("pdca.toml")).unwrap(), config);
        let script = fs_err::read_to_string(root.join("leaves/reviewer.sh")).unwrap();
        assert!(!script.ends_with("x\n"), "{script}");
    }
}
