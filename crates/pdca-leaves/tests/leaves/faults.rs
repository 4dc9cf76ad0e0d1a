//! What each agent prints when its provider fails it, as recorded shapes, and the class that it ends in.
//!
//! A shape is a part of `shapes/<agent>-faults.txt`: `## FAULT: CLASS, exit CODE`, then the lines of standard output; lines after `! ` are of standard error.

use pdca_leaves::{FailureClass, LeafError, LeafEvent, Role};

use crate::scene::Scene;

/// One recorded shape.
struct Shape<'a> {
    fault: &'a str,
    class: &'a str,
    exit: &'a str,
    lines: Vec<&'a str>,
}

fn shapes(text: &str) -> Vec<Shape<'_>> {
    let parts = text.split("\n## ").skip(1);
    parts.map(|part| shape(part).expect("a head is `FAULT: CLASS, exit CODE`")).collect()
}

fn shape(part: &str) -> Option<Shape<'_>> {
    let (head, body) = part.split_once('\n')?;
    let (fault, rest) = head.split_once(": ")?;
    let (class, exit) = rest.split_once(", exit ")?;
    let lines = body.lines().filter(|line| !line.is_empty()).collect();
    Some(Shape { fault, class, exit, lines })
}

/// The scripted leaf that prints a shape.
fn script(shape: &Shape<'_>) -> String {
    let print = |line: &&str| match line.strip_prefix("! ") {
        Some(line) => format!("eprint <<END\n{line}\nEND\n"),
        None => format!("print <<END\n{line}\nEND\n"),
    };
    let printed: String = shape.lines.iter().map(print).collect();
    format!("{printed}exit {}\n", shape.exit)
}

/// The class that a call ended in.
fn ended(shape: &Shape<'_>, protocol: &str) -> String {
    let scene = Scene::new();
    let keys = format!(
        "protocol = \"{protocol}\"\nprompt_via = \"none\"\nthrottled = {{ backoff_secs = 0.001, max_wait_secs = 0 }}\n"
    );
    let config = scene.leaf(&keys, &script(shape));
    let class = match scene.call(Role::Builder, &config) {
        Ok(_) => "done".to_owned(),
        Err(LeafError::Throttled { .. }) => FailureClass::Throttled.to_string(),
        Err(LeafError::Agent { class, .. }) => class.to_string(),
        Err(LeafError::Failed { .. }) => "crashed".to_owned(),
        Err(error) => panic!("{}: {error}", shape.fault),
    };
    let is_told = |event: &LeafEvent| matches!(event, LeafEvent::Diagnosed { .. });
    let is_class = class == "done" || class == "crashed";
    assert!(is_class || scene.events.borrow().iter().any(is_told), "{}: evidence", shape.fault);
    class
}

fn check(protocol: &str, text: &str) {
    let shapes = shapes(text);
    let faults: Vec<&str> = shapes.iter().map(|shape| shape.fault).collect();
    for fault in [
        "success",
        "401",
        "429",
        "429 with retry-after",
        "overloaded",
        "usage limit",
        "context too long",
        "cut stream",
        "refused connection",
    ] {
        assert!(faults.contains(&fault), "{protocol} has no shape of {fault}");
    }
    for shape in shapes {
        assert_eq!(ended(&shape, protocol), shape.class, "{protocol}, {}", shape.fault);
    }
}

#[test]
fn claude_ends_in_the_right_class() {
    check("claude", include_str!("shapes/claude-faults.txt"));
}

#[test]
fn codex_ends_in_the_right_class() {
    check("codex", include_str!("shapes/codex-faults.txt"));
}

#[test]
fn opencode_ends_in_the_right_class() {
    check("opencode", include_str!("shapes/opencode-faults.txt"));
}

#[test]
fn gemini_ends_in_the_right_class() {
    check("gemini", include_str!("shapes/gemini-faults.txt"));
}

#[test]
fn aider_ends_in_the_right_class() {
    check("aider", include_str!("shapes/aider-faults.txt"));
}
