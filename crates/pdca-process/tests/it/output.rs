//! The output of a child.

use std::time::Duration;

use pdca_process::{Cancel, Ending, OutputCap, Sign, log_path};

use crate::support::{Scene, parent};

#[test]
fn b6_a_flood_is_drained_in_bounded_memory_and_disk() {
    const HALF: u64 = 1 << 29;
    let scene = Scene::new();
    let script = "echo begin; head -c 536870912 /dev/zero; echo; echo 'PDCA-EVIDENCE: seen'; \
                  echo 'no PDCA-EVIDENCE: relayed'; head -c 536870912 /dev/zero; echo; echo end; exit 3";
    let mut spec = scene.script(script);
    spec.markers = vec!["PDCA-EVIDENCE:".to_owned()];
    spec.output = OutputCap::new(4096, 4096);
    let mut peak = 0;
    let mut supervisor = None;
    let verdict = scene.run_watched(&spec, &Cancel::new(), &mut |sign| {
        if let Sign::Started { pid } = sign {
            supervisor = Some(parent(pid));
        }
        peak = peak.max(supervisor.and_then(peak_kib).unwrap_or(0));
    });
    assert_eq!(verdict.ending, Ending::Exited(3));
    assert!(verdict.output.bytes > 2 * HALF);
    assert!(verdict.output.truncated);
    assert_eq!(verdict.output.last_line, "end");
    assert_eq!(verdict.marked, ["PDCA-EVIDENCE: seen"]);
    let size = std::fs::metadata(log_path(&scene.job())).unwrap().len();
    assert!(size < 2 * 4096 + 100, "the log has {size} bytes");
    assert!(peak > 0 && peak < 64 << 10, "the supervisor took {peak} KiB");
    let log = scene.output();
    assert!(log.starts_with("begin\n"));
    assert!(log.contains("bytes left out"));
    assert!(log.ends_with("end\n"));
}

/// Returns the peak memory of a process; `None` if it is gone.
fn peak_kib(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn b7_bytes_that_are_no_text_are_kept_and_shown_escaped() {
    let scene = Scene::new();
    let verdict = scene.run(&scene.script(r"printf 'a\377\000\033[1mb\n'"));
    assert_eq!(verdict.ending, Ending::Exited(0));
    assert_eq!(scene.log().bytes, b"a\xff\0\x1b[1mb\n");
    assert_eq!(verdict.output.last_line, "a\u{fffd}\\u{0}\\u{1b}[1mb");
}

#[test]
fn marked_lines_are_collected_in_order() {
    let scene = Scene::new();
    let mut spec = scene.script("echo 'A: 1'; echo 'x A: 2'; echo 'B: 3' >&2; printf 'A: 4'");
    spec.markers = vec!["A:".to_owned(), "B:".to_owned()];
    assert_eq!(scene.run(&spec).marked, ["A: 1", "B: 3", "A: 4"]);
}

#[test]
fn output_is_reported_while_the_child_runs() {
    let scene = Scene::new();
    let spec = scene.script("echo hello; until test -e seen; do sleep 0.01; done");
    let seen = scene.path().join("seen");
    let mut signs = Vec::new();
    let verdict = scene.run_watched(&spec, &Cancel::new(), &mut |sign| {
        if let Sign::Output { last_line, .. } = &sign {
            assert_eq!(last_line, "hello");
            std::fs::write(&seen, "").unwrap();
        }
        signs.push(sign);
    });
    assert_eq!(verdict.ending, Ending::Exited(0));
    assert!(matches!(signs[0], Sign::Started { .. }), "{signs:?}");
}

#[test]
fn a_quiet_child_ticks() {
    let scene = Scene::new();
    let mut spec = scene.script("until test -e ticked; do sleep 0.01; done");
    spec.timeout = Some(Duration::from_secs(60));
    let ticked = scene.path().join("ticked");
    let verdict = scene.run_watched(&spec, &Cancel::new(), &mut |sign| {
        if sign == Sign::Tick {
            std::fs::write(&ticked, "").unwrap();
        }
    });
    assert_eq!(verdict.ending, Ending::Exited(0));
}
