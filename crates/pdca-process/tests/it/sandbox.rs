//! The trees that the kernel keeps a child from touching.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_process::{
    Cancel, Ending, RunError, Sandbox, SandboxKind, SandboxMode, run, sandbox_support,
};

use crate::support::Scene;

fn has_landlock() -> bool {
    matches!(sandbox_support(), SandboxKind::Landlock { .. })
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
        let sandbox = Sandbox::new(SandboxMode::Landlock)
            // One of them is a symbolic link: its target counts.
            .no_read([root.join("link"), root.join("never-was")])
            .no_write([root.join("fixed")])
            .own([root]);
        Self { scene, sandbox }
    }

    /// Runs each attempt in one sandboxed shell and returns those that succeeded.
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
        assert!(matches!(verdict.held, SandboxKind::Landlock { .. }), "{verdict:?}");
        let output = self.scene.output();
        let found: BTreeMap<String, bool> = output
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, done)| (name.to_owned(), done == "yes"))
            .collect();
        assert_eq!(found.len(), attempts.len(), "{output}");
        found
    }

    /// Asserts that none of the attempts succeeds, though each of them would without a sandbox.
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
    house.sandbox.own.extend([root.join("secret/inner"), root.join("fixed/own")]);
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
    let mut sandbox = house.sandbox.clone();
    sandbox.mode = SandboxMode::Require;
    spec.sandbox = Some(sandbox);
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
    let mut sandbox = house.sandbox.clone();
    sandbox.mode = SandboxMode::Off;
    spec.sandbox = Some(sandbox);
    let verdict = house.scene.run(&spec);
    assert_eq!(verdict.held, SandboxKind::Off);
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

/// Returns true if this kernel keeps signals and abstract sockets inside a domain.
fn has_scopes() -> bool {
    matches!(sandbox_support(), SandboxKind::Landlock { abi: 6.. })
}

#[test]
fn a_confined_child_signals_nothing_outside_its_sandbox() {
    if !has_scopes() {
        return;
    }
    let house = House::new();
    let outsider = std::process::id();
    // Signal 0 only asks for permission, so a hole in the sandbox would not end the test.
    house.assert_none(&[
        ("supervisor", "kill -0 $PPID && kill -0 $(cut -d' ' -f4 /proc/$PPID/stat)"),
        ("driver", &format!("kill -0 {outsider}")),
    ]);
    house.assert_all(&[("its own", "sleep 60 & kill -TERM $!")]);
}

#[test]
fn a_confined_child_has_no_way_to_the_memory_of_its_supervisor() {
    if !has_landlock() {
        return;
    }
    let house = House::new();
    house.assert_all(&[("to see it", "test -d /proc/$PPID && cat /proc/$PPID/stat")]);
    let looks = "head -c 1 /proc/$PPID/mem; (: 3<>/proc/$PPID/mem); true";
    let mut spec = house.scene.script(looks);
    spec.sandbox = Some(house.sandbox.clone());
    house.scene.run(&spec);
    let output = house.scene.output();
    assert_eq!(output.matches("ermission denied").count(), 2, "{output}");
}

#[test]
fn a_confined_child_has_three_descriptors() {
    let house = House::new();
    let mut spec = house.scene.argv(&["ls", "/proc/self/fd"]);
    spec.sandbox = Some(house.sandbox.clone());
    house.scene.run(&spec);
    assert_eq!(
        house.scene.output().lines().collect::<Vec<_>>(),
        ["0", "1", "2", "3"],
        "3 is the directory itself"
    );
}

/// A scene whose child runs in `bwrap`, if the host has it.
fn walled() -> Option<House> {
    let mut house = House::new();
    house.sandbox.mode = SandboxMode::Bwrap;
    pdca_process::bwrap_support().is_ok().then_some(house)
}

#[test]
fn behind_bwrap_a_protected_tree_keeps_its_content_modes_and_times() {
    let Some(mut house) = walled() else { return };
    let root = house.root();
    // Without a missing name and a link among the closed ones, which close the directory they are in.
    house.sandbox.no_read = vec![root.join("secret")];
    let mut spec = house.scene.script(
        "chmod 777 fixed/file; touch fixed/file; echo x > fixed/file; echo x > fixed/new; cat secret/key; ls secret; \
         echo new > beside; echo $(ls -A /proc | grep -c '^[0-9]') processes; true",
    );
    spec.sandbox = Some(house.sandbox.clone());
    let before = std::fs::metadata(root.join("fixed/file")).unwrap();
    let verdict = house.scene.run(&spec);
    let output = house.scene.output();
    assert!(matches!(verdict.held, SandboxKind::Bwrap { .. }), "{verdict:?} {output}");
    assert_eq!(verdict.ending, Ending::Exited(0), "{output}");
    let after = std::fs::metadata(root.join("fixed/file")).unwrap();
    assert_eq!(before.permissions(), after.permissions(), "{output}");
    assert_eq!(before.modified().unwrap(), after.modified().unwrap(), "{output}");
    assert_eq!(std::fs::read_to_string(root.join("fixed/file")).unwrap(), "fixed");
    assert!(!root.join("fixed/new").exists());
    assert!(!output.contains("inner"), "{output}");
    // New names can be created in a directory above a protected one.
    assert_eq!(std::fs::read_to_string(root.join("beside")).unwrap(), "new\n");
}

#[test]
fn behind_bwrap_a_tree_below_a_hidden_one_can_be_given_back() {
    let Some(mut house) = walled() else { return };
    house.sandbox.own.push(house.root().join("secret/inner"));
    let mut spec = house.scene.script(
        "cat secret/inner/file; echo more >> secret/inner/file; ls secret; echo x > secret/new",
    );
    spec.sandbox = Some(house.sandbox.clone());
    let verdict = house.scene.run(&spec);
    let output = house.scene.output();
    assert!(output.starts_with("innerinner\n"), "{verdict:?} {output}");
    assert!(!house.root().join("secret/new").exists());
    let file = std::fs::read_to_string(house.root().join("secret/inner/file")).unwrap();
    assert_eq!(file, "innermore\n");
}

#[test]
fn behind_bwrap_nothing_outlives_the_child_and_its_exit_code_is_its_own() {
    let Some(house) = walled() else { return };
    let mut spec = house.scene.script("setsid sleep 1000 & echo started; exit 7");
    spec.sandbox = Some(house.sandbox.clone());
    // The scene checks that no process is alive afterwards.
    let verdict = house.scene.run(&spec);
    assert_eq!(verdict.ending, Ending::Exited(7), "{}", house.scene.output());
}

#[test]
fn behind_bwrap_a_child_has_its_grace() {
    let Some(house) = walled() else { return };
    let mut spec = house
        .scene
        .script("trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
    spec.sandbox = Some(house.sandbox.clone());
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let verdict = house.scene.run_watched(&spec, &cancel, &mut |sign| {
        if matches!(sign, pdca_process::Sign::Output { .. }) {
            stop.cancel();
        }
    });
    assert_eq!(verdict.ending, Ending::Cancelled);
    assert!(house.scene.output().contains("asked"), "{}", house.scene.output());
}

#[test]
fn without_the_network_there_is_no_way_out() {
    let Some(mut house) = walled() else { return };
    house.sandbox.network = pdca_process::Network::Off;
    let mut spec = house.scene.script("cat /proc/net/dev | tail -n +3 | cut -d: -f1");
    spec.sandbox = Some(house.sandbox.clone());
    house.scene.run(&spec);
    assert_eq!(house.scene.output().trim(), "lo");
    house.sandbox.mode = SandboxMode::Landlock;
    spec.sandbox = Some(house.sandbox.clone());
    let refused = run(&spec, &Cancel::new(), &mut |_| {});
    assert!(matches!(refused, Err(RunError::NoSandbox { .. })), "{refused:?}");
}

#[test]
fn of_both_walls_auto_and_require_take_the_stronger_one_that_works() {
    let Some(mut house) = walled() else { return };
    for mode in [SandboxMode::Auto, SandboxMode::Require] {
        house.sandbox.mode = mode;
        let mut spec = house.scene.script("true");
        spec.sandbox = Some(house.sandbox.clone());
        let verdict = house.scene.run(&spec);
        assert!(matches!(verdict.held, SandboxKind::Bwrap { .. }), "{verdict:?}");
        assert_eq!((verdict.ending, verdict.stragglers), (Ending::Exited(0), 0));
    }
}

#[test]
fn where_everything_is_closed_only_what_is_listed_can_be_written() {
    for mode in [SandboxMode::Landlock, SandboxMode::Bwrap] {
        let mut house = House::new();
        let root = house.scene.path();
        house.sandbox = Sandbox::new(mode).write([root.join("open")]);
        let mut spec = house.scene.script(&format!(
            "echo x > {root}/open/new && echo listed; echo x > {root}/fixed/new || echo closed; echo x > /dev/null && echo null"
        ));
        spec.sandbox = Some(house.sandbox.clone());
        match run(&spec, &Cancel::new(), &mut |_| {}) {
            // This host has no `bwrap`.
            Err(RunError::NoSandbox { .. }) => {}
            ended => {
                assert!(ended.is_ok(), "{ended:?}");
                let output = house.scene.output();
                for word in ["listed", "closed", "null"] {
                    assert!(output.contains(word), "{mode:?}: {output}");
                }
            }
        }
    }
}

#[test]
fn standard_output_is_kept_apart_where_that_is_asked_for() {
    let scene = Scene::new();
    let mut spec = scene.script("echo said; echo shown >&2; echo more");
    spec.keep_printed = true;
    let verdict = scene.run(&spec);
    assert_eq!(verdict.printed.map(|printed| printed.bytes), Some(10));
    let printed = pdca_process::read_printed(&spec.job).unwrap().unwrap();
    assert_eq!(printed.to_text(), "said\nmore\n");
    let log = pdca_process::read_log(&spec.job).unwrap().to_text();
    assert!(log.contains("shown") && log.contains("said") && log.contains("more"), "{log}");
}

/// Runs a script behind each wall that this host has, with the house's root as the child's own, and returns what it
/// printed.
fn behind_each_wall(script: &str, prepare: impl Fn(&mut House)) -> Vec<(SandboxMode, String)> {
    let mut printed = Vec::new();
    for mode in [SandboxMode::Landlock, SandboxMode::Bwrap] {
        let mut house = House::new();
        let root = house.root();
        house.sandbox = Sandbox::new(mode);
        prepare(&mut house);
        let mut spec = house.scene.script(&script.replace("ROOT", root.as_str()));
        spec.sandbox = Some(house.sandbox.clone());
        match run(&spec, &Cancel::new(), &mut |_| {}) {
            // This host does not have the wall: skipped.
            Err(RunError::NoSandbox { .. }) => {}
            ended => {
                assert!(ended.is_ok(), "{mode:?}: {ended:?}");
                printed.push((mode, house.scene.output()));
            }
        }
    }
    printed
}

/// Returns a line for each of the words that was printed: `yes` or `no`.
fn attempt(name: &str, script: &str) -> String {
    format!(
        "if ( {script} ) >/dev/null 2>&1; then echo '{name}: yes'; else echo '{name}: no'; fi\n"
    )
}

#[test]
fn closed_wins_over_a_declared_opening_of_the_same_path_and_of_one_above_or_below() {
    let script = [
        attempt("same", "echo x > ROOT/fixed/new"),
        attempt("append", "echo x >> ROOT/fixed/file"),
        attempt("remove", "rm -f ROOT/fixed/file"),
        attempt("below", "echo x > ROOT/fixed/own/new"),
        attempt("own inside", "echo x > ROOT/secret/inner/new"),
        attempt("beside own", "echo x > ROOT/secret/new"),
        attempt("opened", "echo x > ROOT/open/new"),
    ]
    .concat();
    let printed = behind_each_wall(&script, |house| {
        let root = house.root();
        let sandbox = std::mem::take(&mut house.sandbox);
        house.sandbox = sandbox
            .no_write([root.join("fixed"), root.join("secret")])
            .write(["", "fixed", "fixed/own", "open"].map(|path| root.join(path)))
            .own([root.join("secret/inner")]);
    });
    for (mode, output) in printed {
        assert_eq!(
            output,
            "same: no\nappend: no\nremove: no\nbelow: no\nown inside: yes\nbeside own: no\nopened: yes\n",
            "{mode:?}"
        );
    }
}

#[test]
fn a_closed_path_is_not_made_moved_or_replaced_and_neither_is_a_directory_or_link_on_the_way_to_it()
{
    let script = [
        attempt("make the missing", "echo x > ROOT/open/pdca.toml"),
        attempt("link to the missing", "ln -s file ROOT/open/pdca.toml"),
        attempt("rename to the missing", "mv ROOT/open/file ROOT/open/pdca.toml"),
        attempt(
            "make below the missing",
            "mkdir -p ROOT/open/deep/er && touch ROOT/open/deep/er/x",
        ),
        attempt("replace the link", "rm ROOT/link && mkdir ROOT/link"),
        attempt("move the directory", "mv ROOT/secret ROOT/other"),
        attempt("move the parent", "mv ROOT/secret/shown ROOT/secret/moved"),
        attempt("write the closed", "echo x >> ROOT/secret/shown/not/file"),
        attempt("write beside", "echo x >> ROOT/secret/shown/file"),
        attempt("existing entry", "echo x >> ROOT/open/file"),
    ]
    .concat();
    let printed = behind_each_wall(&script, |house| {
        let root = house.root();
        let closed = ["open/pdca.toml", "open/deep/er/x", "link/shown/not/file"];
        let sandbox = std::mem::take(&mut house.sandbox);
        house.sandbox = sandbox.no_write(closed.map(|path| root.join(path))).write([root.clone()]);
    });
    for (mode, output) in printed {
        let open: Vec<_> = output.lines().filter(|line| line.ends_with("yes")).collect();
        assert_eq!(open, ["write beside: yes", "existing entry: yes"], "{mode:?}: {output}");
        assert_eq!(output.lines().count(), 10, "{mode:?}: {output}");
    }
}

#[test]
fn a_sandboxed_child_has_no_capability_and_cannot_change_the_kernel() {
    let script = "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | cut -f2 | sort -u\n"
        .to_owned()
        + &attempt("setting", "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness")
        + &attempt(
            "crash program",
            "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
        )
        + &attempt("owner", "touch ROOT/open/mine && chown 12345 ROOT/open/mine")
        + &attempt(
            "own file",
            "echo x > ROOT/open/mine && chmod 600 ROOT/open/mine && cat ROOT/open/mine",
        );
    let printed = behind_each_wall(&script, |house| {
        let root = house.root();
        house.sandbox.own.push(root.join("open"));
    });
    for (mode, output) in printed {
        let is_root = rustix::process::geteuid().is_root();
        let (sets, rest) = output.split_at(output.find("setting").unwrap());
        // An ordinary user has the bounding set of its system, which gives it nothing.
        assert!(!is_root || sets == "0000000000000000\n", "{mode:?}: {output}");
        assert_eq!(rest, "setting: no\ncrash program: no\nowner: no\nown file: yes\n", "{mode:?}");
    }
}

#[test]
fn root_keeps_one_capability_where_it_works_in_a_directory_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let script = "cd ROOT/open && echo x > new && cat new; grep CapEff /proc/self/status | cut -f2";
    let printed = behind_each_wall(script, |house| {
        let root = house.root();
        std::os::unix::fs::chown(root.join("open"), Some(65534), Some(65534)).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(root.join("open"), mode).unwrap();
        house.sandbox.own.push(root.join("open"));
    });
    for (mode, output) in printed {
        assert_eq!(output, "x\n0000000000000002\n", "{mode:?}");
    }
}

#[test]
fn a_sandboxed_child_reaches_no_keyring() {
    // `keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING)` and `add_key`, by their numbers on x86_64.
    let script = "grep '^Seccomp:' /proc/self/status | cut -f2
        command -v perl >/dev/null || { echo no perl; exit; }
        perl -e 'print syscall(250, 0, -4, 0) < 0 ? \"refused\" : \"reached\", \"\\n\"'
        perl -e '$t = \"user\"; $d = \"x\"; print syscall(248, $t, $d, $d, 1, -3) < 0 ? \"refused\" : \"reached\", \"\\n\"'";
    for (mode, output) in behind_each_wall(script, |_| {}) {
        if !cfg!(target_arch = "x86_64") || output.contains("no perl") {
            assert!(output.starts_with("2\n"), "{mode:?}: {output}");
        } else {
            assert_eq!(output, "2\nrefused\nrefused\n", "{mode:?}");
        }
    }
}
