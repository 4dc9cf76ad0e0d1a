//! The report of a workspace: written by the real binary, operated in a real browser, read by other parsers.

#![expect(clippy::print_stderr, reason = "a test that cannot run here says so")]

use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;
use pdca_testkit::{Browser, TestWorkspace};
use serde_json::Value;

/// What a hostile model may write into whatever is shown.
const HOSTILE: &str = "</script><script>window.owned=1</script><img src=x onerror=window.owned=2> \u{1b}[31mred\u{1b}[0m \u{202e}evil\u{0} & \"quoted\" `tick` | pipe";

const ROW: &str = r#"{"check": "T3 all tests", "result": "RESULT", "oracle": "make test", "rule_id": "T3-tests", "path_line": EVIDENCE,
  "gating": true, "element": "T3", "failing": [FAILING], "log": "gate-logs/T3-tests.log", "duration_ms": 1234}"#;

/// Makes a bundle that waits for sign-off, with texts of a hostile model everywhere and a large change.
fn bundle(workspace: &TestWorkspace, number: usize) {
    let id = number.to_string();
    let before = (number > 1 && number.is_multiple_of(5)).then(|| (number - 1).to_string());
    let slug = format!("change-{number} {HOSTILE}");
    let mut fields = vec![("Slug", slug.as_str())];
    fields.extend(before.as_deref().map(|before| ("Depends on", before)));
    workspace.brief(&id, &fields);
    let file = |name: &str| format!("results/issue_{id}/{name}");
    let body: Vec<String> = (0..4000).map(|line| format!("+line {line} {HOSTILE}\n")).collect();
    let body = body.concat();
    let patch = format!(
        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -0,0 +1,4000 @@\n{}",
        body.replace('\0', "")
    );
    workspace.write(file("patch.diff"), &patch);
    let quoted = |text: &str| serde_json::to_string(text).expect("a text is JSON");
    let result = if number.is_multiple_of(7) { "fail" } else { "pass" };
    let tests: Vec<String> =
        (0..60).map(|test| quoted(&format!("test {test} {HOSTILE}"))).collect();
    let row = ROW
        .replace("RESULT", result)
        .replace("EVIDENCE", &quoted(HOSTILE))
        .replace("FAILING", &if result == "fail" { tests.join(",") } else { String::new() });
    let digest = pdca_state::sha256_hex(patch.as_bytes());
    let gates = format!(
        r#"{{"issue_dir": "issue_{id}", "overall": "{result}", "patch_digest": "{digest}", "rows": [{row}]}}"#
    );
    workspace.write(file("check-gates.json"), gates);
    workspace.write(file("gate-logs/T3-tests.log"), format!("{HOSTILE}\n").repeat(2000));
    let rows: Vec<String> = (0..11)
        .map(|row| format!("| T{row} Item | PASS | {} |\n", HOSTILE.replace('|', " ").repeat(20)))
        .collect();
    workspace.write(
        file("check-review.md"),
        format!("| Item | Verdict | Basis |\n|---|---|---|\n{}", rows.concat()),
    );
    let summary = format!(
        "# Result — issue / a-small-thing\n\n## 6. NEEDS-HUMAN — items the human must clear before sign-off\n\n- [ ] V Is it right? {HOSTILE}\n\n## 9. Check sign-off\n\n- Disposition confirmed / overridden:\n- Outcome:\n- Iteration delta (if iterating):\n- By / date:\n\n## 10. Act candidates\n"
    );
    workspace.write(file("SUMMARY.md"), summary.replace('\0', ""));
}

#[test]
fn a_page_about_fifty_bundles_is_small_and_works_in_a_browser() {
    let scene = Scene::new("");
    for number in 1..=50 {
        bundle(&scene.workspace, number);
    }
    let written = scene.pdca(&["report", "--html", "page.html", "--json"]).expect(0).json();
    let size = written["files"][0]["bytes"].as_u64().expect("a file has a size");
    assert!(size <= 500 << 10, "{size} bytes");
    assert_eq!(written["bundles"].as_array().map(Vec::len), Some(50));
    let page = scene.workspace.path().join("page.html");
    let Some(mut browser) = Browser::open(&page) else {
        eprintln!(
            "skipped: the browser's part of a_page_about_fifty_bundles_is_small_and_works_in_a_browser; Chromium is not installed"
        );
        return;
    };
    operate(&mut browser);
    // The page asked for nothing but itself, and nothing was complained about.
    let foreign: Vec<&String> = browser
        .requests
        .iter()
        .filter(|url| !url.starts_with("file://") && *url != "data:,")
        .collect();
    assert_eq!(foreign, Vec::<&String>::new());
    assert_eq!(browser.console, Vec::<String>::new());
    // This assertion can fail: a script that is not the page's own is refused, and the refusal is seen.
    browser.eval("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.owned=3'})); 0");
    browser.eval("new Promise(done => setTimeout(done, 0))");
    assert_eq!(browser.eval("window.owned"), Value::Null);
    assert!(!browser.console.is_empty());
}

/// Lists, filters, expands, goes dark and light, all by keyboard.
fn operate(browser: &mut Browser) {
    const SHOWN: &str =
        "[...document.querySelectorAll('details.bundle')].filter(one => !one.hidden).length";
    assert_eq!(browser.eval(SHOWN), 50);
    assert_eq!(browser.eval("document.querySelectorAll('script').length"), 1);
    assert_eq!(browser.eval("document.images.length"), 0);
    assert_eq!(browser.eval("window.owned"), Value::Null);
    // A filter by what is inside a bundle.
    browser.press("/");
    browser.type_text("change-17");
    assert_eq!(browser.eval(SHOWN), 1);
    assert_eq!(browser.eval("document.getElementById('shown').textContent"), "1 of 50 shown");
    browser.press("Escape");
    assert_eq!(browser.eval(SHOWN), 50);
    // The first bundle by keyboard, opened and closed.
    browser.press("j");
    assert_eq!(browser.eval("document.activeElement.tagName"), "SUMMARY");
    browser.press("Enter");
    assert_eq!(browser.eval("document.querySelector('details.bundle').open"), true);
    browser.press("j");
    browser.press("k");
    browser.press("Enter");
    assert_eq!(browser.eval("document.querySelector('details.bundle').open"), false);
    browser.press("e");
    assert_eq!(browser.eval("document.querySelectorAll('details.bundle[open]').length"), 50);
    // A group, and back.
    browser.eval("document.querySelector('[data-group=needs][aria-pressed]').click()");
    assert_eq!(browser.eval(SHOWN), 50);
    // Dark by the system, light by a key.
    let background = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.eval(background), "rgb(255, 255, 255)");
    let dark = serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.call("Emulation.setEmulatedMedia", &dark);
    assert_eq!(browser.eval(background), "rgb(13, 17, 23)");
    browser.press("d");
    assert_eq!(browser.eval(background), "rgb(255, 255, 255)");
    // The plan is drawn, and nothing sticks out of the page.
    assert_eq!(browser.eval("document.querySelectorAll('svg.graph rect').length"), 50);
    assert_eq!(browser.eval("document.querySelectorAll('svg.graph path').length"), 10);
    // Each box is drawn: an element that is not closed would hold the next ones, and hide them.
    let drawn = "[...document.querySelectorAll('svg.graph rect, svg.graph text')].every(one => one.getBoundingClientRect().width > 5)";
    assert_eq!(browser.eval(drawn), true);
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    let print = browser.call("Page.printToPDF", &serde_json::json!({}));
    assert!(print["data"].as_str().is_some_and(|data| data.len() > 10_000));
}

const GATES: &str = r#"
[integrate]
land = "branch"

[[gates.checks]]
id = "T1-there"
tier = "T1"
cmd = "test -f greeting.txt"

[[gates.checks]]
id = "T3-few"
tier = "T3"
cmd = "test $(ls file-*.txt 2>/dev/null | wc -l) -lt 2"
"#;

#[test]
fn a_batch_and_its_integration_are_in_every_format() {
    let scene = Scene::with_leaves("echo \"$1\" > \"file-$1.txt\"", REVIEWER, GATES);
    for id in ["7", "8"] {
        scene.brief(id, &[]);
    }
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    scene.accept("7");
    scene.accept("8");
    scene.pdca(&["integrate"]);
    scene
        .pdca(&["report", "--html", "page.html", "--trace", "trace.json", "--junit", "junit.xml"])
        .expect(0);

    let page = scene.workspace.read("page.html");
    assert!(page.contains("breaks T3-few only together with"), "{page}");
    assert!(page.contains("pdca verify process/certificates/"), "{page}");
    trace_follows_its_schema(&scene.workspace.read("trace.json"));

    // Another parser reads the same cases.
    let junit = scene.workspace.read("junit.xml");
    let read = roxmltree::Document::parse(&junit).expect("it is XML");
    let suites = read.descendants().filter(|node| node.has_tag_name("testsuite"));
    let attribute = |node: roxmltree::Node<'_, '_>, name: &str| {
        node.attribute(name).unwrap_or_default().to_owned()
    };
    let mut counts: Vec<String> = suites
        .map(|node| ["name", "tests", "failures"].map(|name| attribute(node, name)).join(" "))
        .collect();
    counts.sort();
    assert_eq!(counts, ["issue_7 2 0", "issue_8 2 0", "together 2 1"], "{junit}");
    let cases = read.descendants().filter(|node| node.has_tag_name("testcase")).count();
    assert_eq!(cases, 6, "{junit}");

    let summary = scene.pdca(&["report", "--summary"]).expect(0).out;
    assert!(summary.contains("### Needs you"), "{summary}");
    assert!(summary.contains("### Landed, with proof"), "{summary}");
    let annotations = scene.pdca(&["report", "--annotations"]).expect(0).out;
    assert!(annotations.starts_with("::error title="), "{annotations}");

    let one = scene.pdca(&["report", "--run", "latest", "--json"]).expect(0).json();
    assert_eq!(one["bundles"].as_array().map(Vec::len), Some(2));
}

/// The fields of the trace event format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.
fn trace_follows_its_schema(text: &str) {
    let trace: Value = serde_json::from_str(text).expect("a trace is JSON");
    assert_eq!(trace["displayTimeUnit"], "ms");
    let events = trace["traceEvents"].as_array().expect("a trace has events");
    let mut gates = 0;
    for event in events {
        for number in ["pid", "tid", "ts"] {
            assert!(event[number].as_i64().is_some_and(|number| number >= 0), "{event}");
        }
        assert!(event["name"].is_string() && event["args"].is_object(), "{event}");
        match event["ph"].as_str() {
            Some("X") => {
                assert!(event["dur"].as_i64().is_some_and(|dur| dur >= 0), "{event}");
                gates += usize::from(event["cat"] == "gate");
            }
            Some("M") => assert!(event["args"]["name"].is_string(), "{event}"),
            other => panic!("{other:?}: {event}"),
        }
    }
    assert!(gates >= 4, "two rows over two bundles: {text}");
    let rows = events.iter().filter(|event| event["name"] == "thread_name");
    let rows: Vec<&str> = rows.filter_map(|event| event["args"]["name"].as_str()).collect();
    assert!(rows.contains(&"lane 0") && rows.contains(&"together"), "{rows:?}");
}
