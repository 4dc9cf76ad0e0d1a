//! The cap on the memory of a tree.

use pdca_process::Ending;

use crate::support::Scene;

const CAP: u64 = 96 << 20;

/// A shell that holds this many bytes in a variable, prints a line, and stays.
fn eats(bytes: u64) -> String {
    format!("x=$(head -c {bytes} /dev/zero | tr '\\0' x); echo \"has ${{#x}}\"; sleep 60")
}

#[test]
fn a_child_with_more_memory_than_its_cap_is_ended_and_the_cap_is_said() {
    let scene = Scene::new();
    let mut spec = scene.script(&eats(200_000_000));
    spec.max_memory = Some(CAP);
    let verdict = scene.run(&spec);
    assert_eq!(verdict.ending, Ending::OverMemory { cap: CAP });
    assert_eq!(verdict.ending.to_string(), "more memory than its cap of 96 MiB");
    assert!(verdict.ending.is_final(), "the same again would say the same");
}

#[test]
fn the_cap_is_on_the_tree_and_not_on_each_process_of_it() {
    let scene = Scene::new();
    let one = eats(30_000_000);
    // Far more than the cap together: what is not used for a while may be paged out.
    let mut spec = scene.script(&format!("{} wait", format!("({one}) & ").repeat(8)));
    spec.max_memory = Some(CAP);
    assert_eq!(scene.run(&spec).ending, Ending::OverMemory { cap: CAP });
}

#[test]
fn a_child_that_ignores_the_request_to_end_gets_no_grace_to_take_more() {
    let scene = Scene::new();
    let mut spec = scene.script(&format!("trap '' TERM; {}", eats(200_000_000)));
    spec.max_memory = Some(CAP);
    spec.grace = std::time::Duration::from_secs(3600);
    assert_eq!(scene.run(&spec).ending, Ending::OverMemory { cap: CAP });
}

#[test]
fn files_that_a_child_reads_and_writes_do_not_count() {
    let scene = Scene::new();
    // A file much larger than the cap goes through the page cache; then memory is sampled once more.
    let script = "head -c 200000000 /dev/zero > big && cat big > /dev/null && sleep 0.6; exit 7";
    let mut spec = scene.script(script);
    spec.max_memory = Some(CAP);
    assert_eq!(scene.run(&spec).ending, Ending::Exited(7));
}
