//! Interactive leaves at a real pseudo-terminal: handed over, and given back however the leaf, its supervisor or the driver
//! ends.

use pdca_e2e::{Scene, leaf};
use rustix::process::Signal;

/// A workspace whose planner talks with the person at the terminal and does what `script` says.
fn scene(script: &str) -> Scene {
    let scene =
        Scene::new(&leaf("planner").replace("prompt_via", "interactive = true\nprompt_via"));
    scene.script("planner", script);
    scene
}

/// Shows whose the terminal is: the group in the foreground, and the group of the shell.
const WHOSE: &str =
    "front() { cut -d ' ' -f 8 /proc/$$/stat; }; mine() { cut -d ' ' -f 5 /proc/$$/stat; }; ";
/// A planner spoils the settings, and says whether it has the terminal.
const SPOIL: &str = "stty -echo -icanon; \
    test \"$(cut -d ' ' -f 5,8 /proc/$$/stat | tr ' ' '\\n' | uniq | wc -l)\" = 1 && echo in front; ";

/// Keeps the settings at the end of a script.
const AFTER: &str = "; stty -g > after";

fn settings_after(scene: &Scene) -> String {
    scene.workspace.read("after").trim().to_owned()
}

#[test]
fn the_planner_has_the_terminal_and_the_driver_has_it_back_however_that_ends() {
    // Its parent is its supervisor.
    let endings = [
        ("printf -- '- **Slug:** planned\\n' > \"$PDCA_OUTPUT\"", 0),
        ("exit 3", 1),
        ("kill -9 $$", 1),
        ("kill -9 $PPID; sleep 1000", 1),
    ];
    for (ending, code) in endings {
        let scene = scene(&format!("{SPOIL}\n{ending}"));
        let line =
            "$PDCA new 36 --plan; echo \"code $?\"; test $(front) = $(mine) && echo 'back again'";
        let mut pty = scene.script_at_terminal(&[], &format!("{WHOSE}{line}{AFTER}"), Vec::new());
        pty.wait_for("in front");
        pty.wait_for(&format!("code {code}"));
        pty.wait_for("back again");
        assert_eq!(pty.wait(), 0, "{ending}");
        assert_eq!(settings_after(&scene), pty.settings_before(), "{ending}");
        assert_eq!(scene.processes(), [""; 0], "{ending}");
        assert_eq!(scene.calls().len(), 1, "{ending}: a person is not asked twice");
    }
}

#[test]
fn ctrl_c_ends_the_leaf_and_not_the_driver() {
    let scene = scene("trap 'stty -echo; kill -9 $$' INT; echo ready; sleep 1000 & wait");
    let line = format!("trap : INT; $PDCA new 36 --plan; echo \"code $?\"{AFTER}");
    let mut pty = scene.script_at_terminal(&[], &line, Vec::new());
    pty.wait_for("ready");
    pty.type_text("\u{3}");
    pty.wait_for("code 1");
    pty.wait();
    assert!(pty.shown().contains("the planner failed; see results/issue_36"), "{}", pty.shown());
    assert_eq!(settings_after(&scene), pty.settings_before());
}

#[test]
fn ctrl_z_stops_both_and_both_go_on_with_their_settings() {
    let scene = scene(
        "stty -echo\nstty -g > \"$log/own\"\nprintf 'slug? '; read slug; stty -g > \"$log/own-again\"\n\
         printf -- \"- **Slug:** $slug\\n\" > \"$PDCA_OUTPUT\"",
    );
    let line =
        "set -m; $PDCA new 36 --plan; stty -g > stopped; echo 'in the shell'; fg; echo \"code $?\"";
    let mut pty = scene.script_at_terminal(&[], &format!("{line}{AFTER}"), Vec::new());
    let before = pty.settings_before();
    pty.wait_for("slug? ");
    pty.type_text("\u{1a}");
    pty.wait_for("in the shell");
    pty.type_text("steady\n");
    pty.wait_for("code 0");
    pty.wait();
    let read = |file: &str| scene.workspace.read(file).trim().to_owned();
    assert_eq!(read("stopped"), before, "the shell has the settings from before");
    assert_eq!(read("calls/own-again"), read("calls/own"), "the leaf has its own again");
    assert_eq!(scene.workspace.read("results/issue_36/brief.md"), "- **Slug:** steady\n");
    assert_eq!(settings_after(&scene), before);
}

#[test]
fn a_panic_of_the_driver_gives_the_terminal_back_and_leaves_nobody_behind() {
    let scene = scene(&format!("{SPOIL}\nsleep 1000"));
    let line =
        "$PDCA new 36 --plan; echo \"code $?\"; test $(front) = $(mine) && echo 'back again'";
    let faults = [("PDCA_PANIC_AT", ">leaf-started")];
    let mut pty = scene.script_at_terminal(&faults, &format!("{WHOSE}{line}{AFTER}"), Vec::new());
    pty.wait_for("code 1");
    pty.wait_for("back again");
    assert_eq!(pty.wait(), 0);
    assert!(pty.shown().contains("asked for by PDCA_PANIC_AT"), "{}", pty.shown());
    assert_eq!(settings_after(&scene), pty.settings_before());
    scene.wait_until("nobody is left", |scene| scene.processes().is_empty());
}

#[test]
fn a_killed_driver_leaves_the_terminal_as_it_was() {
    let scene = scene(&format!("{SPOIL}\nsleep 1000"));
    // A shell without job control does not take the terminal back by itself.
    let line = "$PDCA new 36 --plan & wait $!; echo \"code $?\"; \
                until test $(front) = $(mine); do sleep 0.02; done; echo 'back again'; read line; echo \"read $line\"";
    // With `&` such a shell gives its child no input, so it is given the terminal.
    let line = line.replace("--plan &", "--plan < /dev/tty &");
    let mut pty = scene.script_at_terminal(&[], &format!("{WHOSE}{line}{AFTER}"), Vec::new());
    pty.wait_for("in front");
    let driver = scene.processes().iter().any(|line| line.contains("new 36 --plan"));
    assert!(driver, "{:?}", scene.processes());
    kill_driver(&scene, "new 36");
    pty.wait_for("code 137");
    pty.wait_for("back again");
    pty.type_text("typed\n");
    pty.wait_for("read typed");
    pty.wait();
    assert_eq!(settings_after(&scene), pty.settings_before());
    scene.wait_until("nobody is left", |scene| scene.processes().is_empty());
}

#[test]
fn a_flow_that_panics_or_is_killed_in_a_session_gives_the_terminal_back() {
    let draft = |scene: &Scene| {
        // A session has no id to give.
        let config = scene.workspace.read("pdca.toml").replace("{id}", "session");
        scene.workspace.write("pdca.toml", config);
        scene.workspace.write("results/issue_36/brief.md", "- **Slug:** <later>\n");
    };
    let back = "until test $(front) = $(mine); do sleep 0.02; done; echo 'back again'";
    let panicked = scene(&format!("{SPOIL}\nsleep 1000"));
    draft(&panicked);
    let line = format!("{WHOSE}$PDCA flow; echo \"code $?\"; {back}{AFTER}");
    let faults = [("PDCA_PANIC_AT", ">leaf-started")];
    let mut pty = panicked.script_at_terminal(&faults, &line, Vec::new());
    pty.wait_for("back again");
    assert_eq!(pty.wait(), 0, "{}", pty.shown());
    assert!(pty.shown().contains("asked for by PDCA_PANIC_AT"), "{}", pty.shown());
    assert!(!pty.shown().contains("code 0"), "{}", pty.shown());
    assert_eq!(settings_after(&panicked), pty.settings_before());
    panicked.wait_until("nobody is left", |scene| scene.processes().is_empty());

    let killed = scene(&format!("{SPOIL}\nsleep 1000"));
    draft(&killed);
    let line = format!("{WHOSE}$PDCA flow < /dev/tty & wait $!; echo \"code $?\"; {back}{AFTER}");
    let mut pty = killed.script_at_terminal(&[], &line, Vec::new());
    pty.wait_for("in front");
    kill_driver(&killed, "flow");
    pty.wait_for("code 137");
    pty.wait_for("back again");
    pty.wait();
    assert_eq!(settings_after(&killed), pty.settings_before());
    killed.wait_until("nobody is left", |scene| scene.processes().is_empty());
}

/// Kills the process of the scene that has this command line.
fn kill_driver(scene: &Scene, line: &str) {
    let here = scene.workspace.around().to_string();
    for entry in fs_err::read_dir("/proc").expect("there is a process table").flatten() {
        let read = |file: &str| fs_err::read(entry.path().join(file)).unwrap_or_default();
        let is_ours = String::from_utf8_lossy(&read("environ")).contains(&here);
        let said = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if let Some(pid) =
            pid.filter(|_| is_ours && said.contains(&format!("pdca-with-faults {line}")))
        {
            let pid = rustix::process::Pid::from_raw(pid).expect("a process has an id");
            rustix::process::kill_process(pid, Signal::KILL).expect("it is ours");
        }
    }
}

#[test]
fn without_a_terminal_an_interactive_leaf_is_refused_before_anything_is_written() {
    let scene = scene("exit 3");
    let ran = scene.pdca(&["new", "36", "--plan"]).expect(2);
    assert!(
        ran.err.contains("error: the planner talks with a person, and there is no terminal"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("--> pdca.toml:"), "{}", ran.err);
    assert!(ran.err.contains("set `interactive = false` in [leaves.planner]"), "{}", ran.err);
    assert!(!scene.workspace.has("results/issue_36"));
    assert_eq!(scene.calls(), [""; 0]);
}
