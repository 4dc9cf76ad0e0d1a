//! What conflicts with its branch goes to a resolver, and what it leaves goes through Check.

use pdca_e2e::{Ran, leaf};
use serde_json::Value;

use crate::meeting::Meeting;

/// Puts both sides into the file, in the order of the markers.
const UNION: &str = r#"
sed -i -e '/^<<<<<<< /d' -e '/^=======$/d' -e '/^>>>>>>> /d' greeting.txt
echo "both sides are kept" > "$PDCA_OUTPUT"
"#;

/// A meeting with this resolver, which lands on the branch itself.
fn meeting(resolver: &str) -> Meeting {
    meeting_with(resolver, "true", "land = \"target\"\nresolve_pause_secs = 0\n")
}

fn meeting_with(resolver: &str, gate: &str, integrate: &str) -> Meeting {
    let more = format!("{}[integrate]\n{integrate}", leaf("resolver"));
    let scene = Meeting::with(gate, &more);
    let counted = format!(
        "set -eu\necho \"resolver $1\" >> \"$PDCA_WORKSPACE/calls/log\"\n{resolver}\n\
         echo \"resolver $1\" >> \"$PDCA_WORKSPACE/calls/ended\"\n"
    );
    scene.scene.workspace.write("leaves/resolver.sh", counted);
    scene
}

/// Two accepted changes of the same line, and one that has nothing to do with them.
fn rivals(scene: &Meeting) {
    scene.accepted("1", "greeting.txt", "one\n");
    scene.accepted("2", "greeting.txt", "two\n");
    scene.accepted("3", "c.txt", "c\n");
}

fn resolver_calls(scene: &Meeting) -> usize {
    scene.scene.calls().iter().filter(|call| call.starts_with("resolver ")).count()
}

fn resolve(scene: &Meeting, id: &str) -> Ran {
    scene.pdca(&["resolve", id, "--json"])
}

/// What is said about the first conflict.
fn first(ran: &Ran) -> Value {
    let told = ran.json();
    let key = if told["kind"] == "integrate" { "resolutions" } else { "conflicts" };
    told[key][0].clone()
}

fn show(scene: &Meeting, file: &str) -> String {
    scene.scene.repo.git(&["show", &format!("main:{file}")])
}

#[test]
fn a_conflict_is_resolved_checked_signed_off_again_and_lands() {
    let scene = meeting(UNION);
    rivals(&scene);
    let old = scene.seal("2");
    let ran = scene.integrate(&["--json"]).expect(3);
    let told = first(&ran);
    assert_eq!(told["outcome"], "resolved", "{}", ran.out);
    assert_eq!(told["state"], "AWAITING_SIGNOFF", "{}", ran.out);
    assert_eq!(scene.subjects(), ["pdca: issue_3|3", "pdca: issue_1|1", "first|"]);
    let workspace = &scene.scene.workspace;
    let summary = workspace.read("results/issue_2/SUMMARY.md");
    let said = "resolved conflict: 2 conflicts with 1 in greeting.txt:1; resolved on main at ";
    assert!(summary.contains(said), "{summary}");
    assert!(summary.contains("by the resolver, attempt 1"), "{summary}");
    let brief = workspace.read("results/issue_2/brief.md");
    assert!(brief.contains("> 2 conflicts with 1 in greeting.txt:1"), "{brief}");
    let notes = workspace.read("results/issue_2/build-notes.md");
    assert_eq!(notes, "both sides are kept\n");
    let archived = workspace.read("results/issue_2/iteration-v1/seal.json");
    assert_eq!(
        serde_json::from_str::<Value>(&archived).unwrap(),
        old,
        "the accepted attempt is kept"
    );
    scene.integrate(&[]).expect(4);
    scene.scene.accept("2");
    assert_ne!(scene.seal("2")["head"], old["head"]);
    let refs = scene.scene.repo.git(&["for-each-ref", "refs/pdca/*/seal/2"]);
    assert_eq!(refs.lines().count(), 2, "both seals are kept: {refs}");
    scene.integrate(&[]).expect(0);
    assert_eq!(show(&scene, "greeting.txt"), "one\ntwo\n");
    assert_eq!(scene.subjects()[0], "pdca: issue_2|2");
    scene.pdca(&["verify"]).expect(0);
    assert_eq!(resolver_calls(&scene), 1);
}
