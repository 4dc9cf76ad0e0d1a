//! What the kernel keeps a child from touching.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_process::{Cancel, Ending, Held, RunError, Sandbox, SandboxMode, run, sandbox_support};

use crate::support::Scene;

fn has_landlock() -> bool {
    matches!(sandbox_support(), Held::Landlock { .. })
}

/// A scene with a denied tree `secret` that holds `key` and an `inner` tree, and an `open` tree
/// beside it that holds links into it.
struct House {
    scene: Scene,
    sandbox: Sandbox,
}

impl House {
    fn new() -> Self {
        let scene = Scene::new();
        let root = scene.path();
        for tree in ["secret/inner", "secret/shown/not", "open", "fixed/own"] {
            std::fs::create_dir_all(root.join(tree)).unwrap();
        }
        std::fs::write(root.join("secret/key"), "key").unwrap();
        std::fs::copy("/bin/true", root.join("secret/program")).unwrap();
        std::fs::write(root.join("secret/inner/file"), "inner").unwrap();
        std::fs::write(root.join("secret/shown/file"), "x").unwrap();
        std::fs::write(root.join("secret/shown/not/file"), "x").unwrap();
        std::fs::write(root.join("fixed/file"), "fixed").unwrap();
        std::fs::write(root.join("open/file"), "open").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("open/way")).unwrap();
        std::os::unix::fs::symlink("secret", root.join("link")).unwrap();
        let sandbox = Sandbox {
            mode: SandboxMode::Auto,
            // One of them through a link: what counts is where it leads.
            no_read: vec![root.join("link"), root.join("never-was")],
            no_write: vec![root.join("fixed")],
            read: Vec::new(),
            write: Vec::new(),
        };
        Self { scene, sandbox }
    }

    /// Runs each attempt in one sandboxed shell and says which of them succeeded.
    fn attempts(&self, attempts: &[(&str, &str)]) -> BTreeMap<String, bool> {
        let mut script = String::new();
        for (name, attempt) in attempts {
            let line = format!(
                "if ( {attempt} ) >/dev/null 2>&1; then echo '{name}=yes'; else echo '{name}=no'; fi\n"
            );
            script.push_str(&line);
        }
        let mut spec = self.scene.script(&script);
        spec.sandbox = Some(self.sandbox.clone());
        let verdict = self.scene.run(&spec);
        assert_eq!(verdict.ending, Ending::Exited(0), "{}", self.scene.output());
        assert!(matches!(verdict.held, Held::Landlock { .. }), "{verdict:?}");
        let output = self.scene.output();
        let found: BTreeMap<String, bool> = output
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, done)| (name.to_owned(), done == "yes"))
            .collect();
        assert_eq!(found.len(), attempts.len(), "{output}");
        found
    }

    /// None of the attempts succeeds, though each of them would without a sandbox.
    fn assert_none(&self, attempts: &[(&str, &str)]) {
        for (name, done) in self.attempts(attempts) {
            assert!(!done, "{name} was possible");
        }
        for (name, attempt) in attempts {
            let free = Self::new();
            let attempt = attempt.replace(self.root().as_str(), free.root().as_str());
            let verdict = free.scene.run(&free.scene.script(&attempt));
            let output = free.scene.output();
            assert_eq!(verdict.ending, Ending::Exited(0), "{name}: {output}");
        }
    }

    fn assert_all(&self, attempts: &[(&str, &str)]) {
        for (name, done) in self.attempts(attempts) {
            assert!(done, "{name} was not possible");
        }
    }

    fn root(&self) -> Utf8PathBuf {
        self.scene.path()
    }
}

#[test]
fn a_denied_tree_cannot_be_read_on_any_way() {
    if !has_landlock() {
        return;
    }
    let house = House::new();
    let root = house.root();
    house.assert_none(&[
        ("relative", "cat secret/key"),
        ("absolute", &format!("cat {root}/secret/key")),
        ("after cd", "cd secret && cat key"),
        ("deeper", "cat secret/inner/file"),
        ("link beside", "cat link/key"),
        ("link in an open tree", "cat open/way/key"),
        ("new link", "ln -s ../secret/key open/planted && cat open/planted"),
        ("process root", &format!("cat /proc/self/root{root}/secret/key")),
        ("process directory", "cat /proc/self/cwd/secret/key"),
        ("hard link", "ln secret/key open/hard"),
        ("move", "mv secret/key open/moved"),
        ("copy", "cp secret/key open/copied"),
        ("execute", "secret/program"),
        ("background", "setsid sh -c 'cat secret/key > open/leak'; test -s open/leak"),
        ("write", "echo x > secret/new"),
    ]);
    assert_eq!(std::fs::read_to_string(root.join("secret/key")).unwrap(), "key");
}

#[test]
fn a_write_denied_tree_can_be_read_and_not_changed() {
    if !has_landlock() {
        return;
    }
    let house = House::new();
    let root = house.root();
    house.assert_all(&[("read", "cat fixed/file"), ("list", "ls fixed")]);
    house.assert_none(&[
        ("append", "echo x >> fixed/file"),
        ("truncate", ": > fixed/file"),
        ("create", "echo x > fixed/new"),
        ("directory", "mkdir fixed/dir"),
        ("remove", "rm -f fixed/file"),
        ("rename", "mv fixed/file fixed/other"),
        ("move out", "mv fixed/file open/other"),
        ("move in", "mv open/file fixed/other"),
        ("link in", "ln open/file fixed/other"),
        ("link out", "ln fixed/file open/hard && echo x >> open/hard"),
        ("absolute", &format!("echo x >> {root}/fixed/file")),
        ("after cd", "cd fixed && echo x >> file"),
        ("through a link", "ln -s ../fixed/file open/planted && echo x >> open/planted"),
        ("process root", &format!("echo x >> /proc/self/root{root}/fixed/file")),
        ("daemon", "(setsid sh -c 'echo x >> fixed/file; touch open/done' &); until test -e open/done; do sleep 0.01; done; grep -q x$ fixed/file"),
    ]);
    assert_eq!(std::fs::read_to_string(root.join("fixed/file")).unwrap(), "fixed");
    assert_eq!(std::fs::read_dir(root.join("fixed")).unwrap().count(), 2);
}

#[test]
fn what_lies_beside_a_denied_tree_is_untouched_by_the_sandbox() {
    if !has_landlock() {
        return;
    }
    let house = House::new();
    house.assert_all(&[
        ("read", "cat open/file"),
        ("write", "echo x >> open/file && echo y > open/new"),
        ("rename", "mv open/new open/newer"),
        ("directory", "mkdir -p open/a/b && mv open/newer open/a/b/"),
        ("remove", "rm -r open/a"),
        ("list the denied", "ls secret"),
        ("programs", "sort < /dev/null"),
        ("devices", "echo x > /dev/null"),
        ("temporary files", "t=$(mktemp) && echo x > \"$t\" && rm \"$t\""),
        ("here documents", "cat << END\nx\nEND\n"),
    ]);
}

#[test]
fn a_tree_below_a_denied_one_can_be_given_back() {
    if !has_landlock() {
        return;
    }
    let mut house = House::new();
    let root = house.root();
    house.sandbox.no_read.push(root.join("secret/shown/not"));
    house.sandbox.read = vec![root.join("secret/shown")];
    house.sandbox.write = vec![root.join("secret/inner"), root.join("fixed/own")];
    house.assert_all(&[
        ("read", "cat secret/shown/file"),
        ("write", "echo x >> secret/inner/file && cat secret/inner/file"),
        ("create", "echo x > fixed/own/new && mkdir fixed/own/dir"),
    ]);
    house.assert_none(&[
        ("read beside", "cat secret/key"),
        ("read denied again", "cat secret/shown/not/file"),
        ("write what may be read", "echo x >> secret/shown/file"),
        ("write beside", "echo x >> fixed/file"),
    ]);
}

#[test]
fn the_verdict_is_not_the_childs_to_write() {
    if !has_landlock() {
        return;
    }
    let house = House::new();
    house.assert_none(&[("verdict", "echo x > job/verdict.json"), ("log", "echo x > job/log")]);
    house.assert_all(&[(
        "temporary",
        "test \"$TMPDIR\" = \"$PWD/job/tmp\" && echo x > job/tmp/file",
    )]);
}

#[test]
fn a_required_sandbox_that_is_missing_starts_nothing() {
    let house = House::new();
    let mut spec = house.scene.script("touch open/started");
    spec.sandbox = Some(Sandbox { mode: SandboxMode::Require, ..house.sandbox.clone() });
    let started = house.root().join("open/started");
    match run(&spec, &Cancel::new(), &mut |_| {}) {
        Ok(verdict) => {
            assert!(has_landlock(), "{verdict:?}");
            assert!(started.exists());
        }
        Err(RunError::NoSandbox { .. }) => {
            assert!(!has_landlock());
            assert!(!started.exists());
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_sandbox_that_is_off_holds_nothing() {
    let house = House::new();
    let mut spec = house.scene.script("cat secret/key");
    spec.sandbox = Some(Sandbox { mode: SandboxMode::Off, ..house.sandbox.clone() });
    let verdict = house.scene.run(&spec);
    assert_eq!(verdict.held, Held::Off);
    assert_eq!(house.scene.output(), "key");
}

#[test]
fn a_program_in_a_denied_tree_cannot_be_started() {
    if !has_landlock() {
        return;
    }
    let house = House::new();
    let mut spec = house.scene.argv(&["./secret/program"]);
    spec.sandbox = Some(house.sandbox.clone());
    let verdict = house.scene.run(&spec);
    assert!(matches!(verdict.ending, Ending::NotStarted { .. }), "{verdict:?}");
}
