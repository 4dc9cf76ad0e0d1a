//! Attempts of a hostile leaf, gate and reviewer, in each sandbox.
//!
//! `attempts.txt` is the table: every attempt with its expected verdict. All attempts of one role run in one child, so that
//! the suite is fast. `cargo xtask walls` makes `docs/reference/walls.md` from the same table, so that the page cannot say
//! what no test shows.

use std::collections::BTreeMap;

use pdca_e2e::{Ran, Scene, leaf};
use pdca_process::{SandboxKind, bwrap_support, sandbox_support};

const TABLE: &str = include_str!("attempts.txt");

/// The start of every script: variables, and a function that tries all of its role.
const PRELUDE: &str = r#"
WHO=@who@ WS="$PDCA_WORKSPACE" PRIMARY="$PDCA_WORKSPACE/../app" LANES="$PDCA_WORKSPACE.lanes" OTHER="$PDCA_WORKSPACE/../other"
PRIMARY=$(cd "$PRIMARY" && pwd) OTHER=$(cd "$OTHER" && pwd)
DRIVER=$(cat "$WS/calls/driver" 2>/dev/null) || DRIVER=$(sed -n 's/.*process \([0-9]*\).*/\1/p' "$WS/.pdca/driver.lock")
[ -e "$WS/calls/driver" ] || echo "$DRIVER" > "$WS/calls/driver"
ABOVE= p=$$
for _ in 1 2 3; do
  p=$(sed 's/.*) //' "/proc/$p/stat" 2>/dev/null | cut -d' ' -f2)
  [ "${p:-0}" -gt 0 ] && ABOVE="$ABOVE $p" || break
done
export WHO WS PRIMARY LANES OTHER DRIVER ABOVE
: > "$WS/calls/$WHO"
for one in "$WS/walls/$WHO"/*.sh; do
  timeout 20 sh "$one" </dev/null >/dev/null 2>&1
  echo "$(basename "$one" .sh) $?" >> "$WS/calls/$WHO"
done
"#;

const REVIEW: &str = r#"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n' > "$PDCA_OUTPUT""#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Enforced,
    Noticed,
    NotKept,
}

#[derive(Debug)]
struct Attempt<'a> {
    name: &'a str,
    roles: Vec<&'a str>,
    landlock: Verdict,
    bwrap: Verdict,
    commands: &'a str,
}

fn verdict(word: &str) -> Verdict {
    match word {
        "enforced" => Verdict::Enforced,
        "noticed" => Verdict::Noticed,
        "not kept" => Verdict::NotKept,
        other => panic!("{other:?} is no verdict"),
    }
}

fn attempts() -> Vec<Attempt<'static>> {
    let blocks = TABLE.split("\n\n").filter(|block| !block.starts_with('#'));
    let attempt = |block: &'static str| {
        let (head, commands) = block.split_once('\n').expect("an attempt has commands");
        let fields: Vec<&str> = head.split(" | ").collect();
        let [name, roles, landlock, bwrap, _title] = fields[..] else {
            panic!("five fields: {head}")
        };
        let roles = roles.split(' ').collect();
        let (landlock, bwrap) = (verdict(landlock), verdict(bwrap));
        Attempt { name, roles, landlock, bwrap, commands }
    };
    blocks.map(attempt).collect()
}

/// A workspace in which every role tries everything, behind the wall of this name.
fn hostile(wall: &str, all: &[Attempt<'_>]) -> (Scene, Ran) {
    let script = |who: &str| PRELUDE.replace("@who@", who);
    let sandbox = format!("sandbox = \"{wall}\"\nprompt_via");
    let leaves = [leaf("builder"), leaf("reviewer")].concat().replace("prompt_via", &sandbox);
    let gate = "[[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = 'exec sh \"$PDCA_WORKSPACE/walls/gate.sh\"'\n";
    let scene = Scene::new(&format!("{leaves}[gates]\nsandbox = \"{wall}\"\n{gate}"));
    let builder = format!(
        "{}\necho left > .git/left-for-the-reviewer\necho changed > greeting.txt\necho notes > \"$PDCA_BUNDLE/build-notes.md\"\nexit 0\n",
        script("leaf")
    );
    scene.workspace.write("leaves/builder.sh", builder);
    scene.workspace.write("leaves/reviewer.sh", format!("{}\n{REVIEW}\n", script("reviewer")));
    scene.workspace.write("walls/gate.sh", format!("{}\nexit 0\n", script("gate")));
    for attempt in all {
        for who in &attempt.roles {
            scene.workspace.write(format!("walls/{who}/{}.sh", attempt.name), attempt.commands);
        }
    }
    for file in ["kept.txt", "times.txt", "mode-leaf.txt", "mode-gate.txt", "mode-reviewer.txt"] {
        scene.repo.write(file, "kept\n");
    }
    scene.repo.commit("second");
    let home = scene.workspace.around().clone();
    let secrets = [
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".netrc",
        ".git-credentials",
        ".config/gh/hosts.yml",
        ".gnupg/key",
        ".bashrc",
        "other/mine.txt",
    ];
    for file in secrets {
        let path = home.join(file);
        fs_err::create_dir_all(path.parent().expect("it lies in a directory"))
            .expect("it can be made");
        fs_err::write(path, "the user's\n").expect("it can be written");
    }
    scene.brief("7", &[]);
    scene.brief("8", &[]);
    let env = [
        ("GH_TOKEN", "secret"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("SSH_AUTH_SOCK", "/nowhere"),
    ];
    let ran = scene.pdca_with(&env, &["run", "7"]);
    (scene, ran)
}

/// Returns the verdict of each attempt of a role.
fn outcomes(scene: &Scene, who: &str) -> BTreeMap<String, i32> {
    let text = scene.workspace.read(format!("calls/{who}"));
    let outcome = |line: &str| {
        let (name, code) = line.split_once(' ').expect("a name and a code");
        (name.to_owned(), code.parse().expect("a code is a number"))
    };
    text.lines().map(outcome).collect()
}

fn assert_wall(wall: &str, of: impl Fn(&Attempt<'_>) -> Verdict) {
    let all = attempts();
    let (scene, ran) = hostile(wall, &all);
    let ran = ran.expect(0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF", "the run itself is not disturbed");
    let mut wrong = Vec::new();
    for who in ["leaf", "gate", "reviewer"] {
        let ended = outcomes(&scene, who);
        for attempt in all.iter().filter(|attempt| attempt.roles.contains(&who)) {
            let code = ended.get(attempt.name).copied();
            let got_through = code == Some(0);
            let is_told = ran.err.contains(&format!("mode-{who}.txt"));
            let is = match (got_through, is_told && attempt.name == "chmod-tracked") {
                (false, _) => Verdict::Enforced,
                (true, true) => Verdict::Noticed,
                (true, false) => Verdict::NotKept,
            };
            if code.is_none() || is != of(attempt) {
                wrong.push(format!("{who} {}: {is:?} (exit {code:?})", attempt.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "behind {wall}");
    let home = scene.workspace.around();
    assert_eq!(fs_err::read_to_string(home.join(".bashrc")).expect("it is there"), "the user's\n");
    assert!(!home.join("other/x").exists() && !home.join(".zshenv").exists());
    assert_eq!(scene.repo.read("kept.txt"), b"kept\n");
    assert!(!scene.repo.path().join("planted.txt").exists());
}

#[test]
fn the_table_has_at_least_120_attempts_each_with_a_verdict() {
    let all = attempts();
    let names: std::collections::BTreeSet<&str> = all.iter().map(|one| one.name).collect();
    assert_eq!(names.len(), all.len(), "each name once");
    let tried: usize = all.iter().map(|attempt| attempt.roles.len()).sum();
    assert!(tried >= 120, "{tried}");
}

#[test]
fn behind_landlock_every_attempt_ends_as_the_table_says() {
    // The scopes for signals came with the sixth version of the interface.
    if matches!(sandbox_support(), SandboxKind::Landlock { abi: 6.. }) {
        assert_wall("landlock", |attempt| attempt.landlock);
    }
}

#[test]
fn behind_bwrap_every_attempt_ends_as_the_table_says() {
    if bwrap_support().is_ok() {
        assert_wall("bwrap", |attempt| attempt.bwrap);
    }
}
