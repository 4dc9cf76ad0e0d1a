//! Each ingredient of what judges, changed: the gates run again, whoever relied on what they said.

use pdca_e2e::Scene;

use crate::meeting::Meeting;

/// Something that decides what the gates say, in one of several forms.
struct Ingredient {
    name: &'static str,
    put: fn(&Scene, u32),
}

const INGREDIENTS: [Ingredient; 8] = [
    Ingredient {
        name: "the command",
        put: |scene, form| line(scene, "#command", &format!(": {form}")),
    },
    Ingredient {
        name: "a script outside the tree",
        put: |scene, form| {
            scene.workspace.write("tools/gate.sh", format!("{COUNT}\n: {form}\n"));
        },
    },
    Ingredient {
        name: "what an identity command says",
        put: |scene, form| {
            scene.workspace.write("version", form.to_string());
        },
    },
    Ingredient {
        name: "the time limit",
        put: |scene, form| {
            line(scene, "#row", &format!("timeout_secs = {}", 600 + form));
        },
    },
    Ingredient {
        name: "hydration",
        put: |scene, form| {
            line(scene, "#hydrate", &format!("install = \": {form}\""));
        },
    },
    Ingredient {
        name: "caches",
        put: |scene, form| {
            line(scene, "#lanes", &format!("cache = [\"cache-{form}/\"]"));
        },
    },
    Ingredient {
        name: "the reset",
        put: |scene, form| {
            line(scene, "#lanes", ["reset = \"clean\"", "reset = \"pristine\""][form as usize % 2]);
        },
    },
    Ingredient {
        name: "the sandbox",
        put: |scene, form| {
            line(scene, "#gates", ["sandbox = \"auto\"", "sandbox = \"off\""][form as usize % 2]);
        },
    },
];

/// Counts its runs, outside of whatever is judged.
const COUNT: &str = r#"echo run >> "$PDCA_WORKSPACE/calls/runs""#;

/// Puts a line in the place of the one behind a mark in the configuration.
fn line(scene: &Scene, mark: &str, text: &str) {
    let config = scene.workspace.read("pdca.toml");
    let mut lines: Vec<String> = config.lines().map(str::to_owned).collect();
    let at = lines.iter().position(|line| line == mark).expect("the mark is there");
    text.clone_into(&mut lines[at + 1]);
    scene.workspace.config(&lines.join("\n"));
}

fn scene(more: &str) -> Meeting {
    // Every mark is followed by a line that a test may replace.
    let config = format!(
        "[lanes]\n#lanes\n\n[lanes.hydrate]\n#hydrate\n\n[integrate]\nland = \"target\"\n\
         [gates]\n#gates\n\n[[gates.checks]]\nid = \"T2-counted\"\ntier = \"T2\"\nneeds = []\n\
         identity = [\"cat version\"]\n#row\n\n{more}cmd = '''\nsh tools/gate.sh || sh \"$PDCA_WORKSPACE/tools/gate.sh\"\n#command\n\n'''\n"
    );
    let scene = Meeting::sharing("true", &config);
    scene.scene.workspace.write("tools/gate.sh", format!("{COUNT}\n"));
    scene.scene.workspace.write("version", "0");
    scene
}

fn runs(scene: &Scene) -> usize {
    let text = fs_err::read_to_string(scene.workspace.path().join("calls/runs"));
    text.unwrap_or_default().lines().count()
}

#[test]
fn each_ingredient_changed_makes_check_and_integration_run_the_gates_again() {
    for Ingredient { name, put } in INGREDIENTS {
        let meeting = scene("");
        let scene = &meeting.scene;
        put(scene, 0);
        meeting.accepted("1", "a.txt", "a\n");
        meeting.integrate(&["--fresh", "--land", "branch"]).expect(0);
        let once = runs(scene);
        assert!(once > 0, "{name}");
        meeting.waiting("2", &[], &[("a.txt", "a\n")]);
        assert_eq!(runs(scene), once, "{name}: the same tree by the same gates is known");
        put(scene, 1);
        meeting.waiting("3", &[], &[("a.txt", "a\n")]);
        assert!(runs(scene) > once, "{name}: Check relied on another gate's word");
        scene.accept("3");
        let known = meeting.integrate(&["3", "--dry-run", "--json"]).expect(0).json();
        assert_eq!(known["verdict"], "green", "{name}: {known:#}");
        let before = runs(scene);
        put(scene, 2);
        let done = meeting.integrate(&["3", "--json"]).expect(0).json();
        assert_eq!(done["landed"][0]["id"], "3", "{name}: {done:#}");
        // With two forms only, what the first one said is known again.
        let is_new = runs(scene) > before;
        let has_two = ["the reset", "the sandbox"].contains(&name);
        assert_eq!(is_new, !has_two, "{name}: the integration relied on another gate's word");
        let same = |scene: &Meeting| scene.pdca(&["verify", "--json"]).expect(0).json();
        assert_eq!(same(&meeting)["same_gates"], true, "{name}");
        put(scene, 3);
        assert_eq!(same(&meeting)["same_gates"], false, "{name}: verify does not see it");
    }
}
