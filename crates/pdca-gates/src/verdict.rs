//! The verdict about a check, derived from its ending.
//!
//! | the check | verdict |
//! |---|---|
//! | exits 0 | `pass`; `unverifiable` if it declares so; `deferred` if it declares so and runs again at publication |
//! | exits 77 | `unverifiable` |
//! | exits with another status | `fail` |
//! | exceeds its time | `fail`, with `timeout` as evidence |
//! | exceeds its memory cap | `fail`, with the cap as evidence |
//! | crashes (segmentation fault, abort, …) | `fail`: the program's own doing |
//! | is killed, cannot be started, meets a full disk, has no program | `unverifiable`: the host, not the patch |
//!
//! Three endings look like an ordinary exit status but are the host's doing:
//! - 127 and 126 from the shell, if the command's program is in fact missing or not executable. The same status from
//!   deeper down (a script that calls a missing program) stays a `fail`: the exit status is the verdict, and the two
//!   causes cannot be told apart.
//! - 137 from the shell, which means that its child was killed with SIGKILL. A program does not do that to itself by
//!   mistake, but a machine out of memory does.
//! - Any failure while a filesystem that the check writes to is full.
//!
//! Output never decides; only statuses, files and the three markers do. `unverifiable` never grants anything: it stops
//! for a person.

use pdca_process::Ending;
use pdca_state::GateResult;

use crate::{
    check::{Check, Command},
    failing::Failing,
    host_fault::HostFault,
    marker::{MarkedOutput, harmless},
};

/// The verdict about one run of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFinding {
    pub result: GateResult,
    /// One printable line of at most 120 characters.
    pub evidence: String,
    pub timed_out: bool,
    /// The failing tests, if the check failed and names them.
    pub failing: Box<Failing>,
}

impl CheckFinding {
    pub(crate) fn new(result: GateResult, evidence: &str) -> Self {
        let (evidence, failing) = (harmless(evidence.as_bytes()), Box::default());
        Self { result, evidence, timed_out: false, failing }
    }

    /// Creates the verdict of a check that was not run, or whose result does not count, for a reason other than the
    /// patch.
    pub(crate) fn unverifiable(why: &str) -> Self {
        Self::new(GateResult::Unverifiable, why)
    }
}

/// Returns the verdict about an ending. Pure and total; `trouble` is a fault of the host found after the check has
/// ended.
pub(crate) fn classify(
    ending: &Ending,
    said: &MarkedOutput,
    check: &Check,
    trouble: Option<&HostFault>,
) -> CheckFinding {
    match ending {
        Ending::Exited(0) => green(said, check),
        Ending::Exited(77) => {
            let declared = said.unverifiable.as_deref().filter(|why| !why.is_empty());
            let why = declared.unwrap_or_else(|| said.gist());
            CheckFinding::unverifiable(or(why, "exited 77 without saying why"))
        }
        Ending::Exited(code) => red_exit(*code, said, check, trouble),
        Ending::Signaled(signal) => red_signal(*signal, said, trouble),
        Ending::TimedOut => CheckFinding {
            timed_out: true,
            ..red(&format!("timeout after {}s", check.timeout.as_secs()), said)
        },
        Ending::OverMemory { .. } => red(&ending.to_string(), said),
        Ending::Stalled => {
            CheckFinding { timed_out: true, ..red("timeout: no sign of life", said) }
        }
        Ending::Cancelled => CheckFinding::unverifiable("stopped before it ended"),
        Ending::NotStarted { why, kind: _ } | Ending::Infra { why } => {
            CheckFinding::unverifiable(&match trouble {
                Some(trouble) => format!("could not run: {trouble}"),
                None => format!("could not run: {why}"),
            })
        }
    }
}

fn green(said: &MarkedOutput, check: &Check) -> CheckFinding {
    if let Some(why) = &said.unverifiable {
        CheckFinding::unverifiable(or(why, "the gate says that it could not check"))
    } else if let Some(why) = said.deferred.as_ref().filter(|_| check.may_defer()) {
        CheckFinding::new(GateResult::Deferred, or(why, "publish runs it again"))
    } else {
        CheckFinding::new(GateResult::Pass, said.gist())
    }
}

fn red_exit(
    code: i32,
    said: &MarkedOutput,
    check: &Check,
    trouble: Option<&HostFault>,
) -> CheckFinding {
    let shell = matches!(check.command, Command::Shell(_));
    match trouble {
        // Only from the shell: a program of an `argv` that is missing is not started at all, and
        // one that exits with 127 does so itself.
        Some(trouble @ HostFault::Program(_)) if shell && matches!(code, 126 | 127) => {
            CheckFinding::unverifiable(&format!("could not run: {trouble}"))
        }
        Some(trouble @ (HostFault::DiskFull { .. } | HostFault::LogLost { .. })) => {
            CheckFinding::unverifiable(&format!("{trouble} (exited {code})"))
        }
        Some(HostFault::Program(_)) | None if shell && code == 137 => {
            CheckFinding::unverifiable("killed: the shell reports SIGKILL (exited 137)")
        }
        Some(HostFault::Program(_)) | None => {
            let text = said.named().unwrap_or_else(|| match said.last_words() {
                Some(words) => format!("exited {code}: {words}"),
                None => format!("exited {code} without output"),
            });
            CheckFinding {
                failing: Box::new(said.failing()),
                ..CheckFinding::new(GateResult::Fail, &text)
            }
        }
    }
}

fn red_signal(signal: i32, said: &MarkedOutput, trouble: Option<&HostFault>) -> CheckFinding {
    if is_from_outside(signal) {
        return CheckFinding::unverifiable(&format!("killed from outside by {}", name(signal)));
    }
    match trouble {
        Some(trouble @ (HostFault::DiskFull { .. } | HostFault::LogLost { .. })) => {
            CheckFinding::unverifiable(&format!("{trouble} ({})", name(signal)))
        }
        Some(HostFault::Program(_)) | None => red(&format!("crashed with {}", name(signal)), said),
    }
}

/// Creates a failure whose cause comes before the output of the check.
fn red(cause: &str, said: &MarkedOutput) -> CheckFinding {
    let text = match said.named().as_deref().unwrap_or(said.gist()) {
        "" => cause.to_owned(),
        gist => format!("{cause}: {gist}"),
    };
    CheckFinding { failing: Box::new(said.failing()), ..CheckFinding::new(GateResult::Fail, &text) }
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// Returns true for signals that others send: hang-up, interrupt, quit, kill, terminate, and the two with which the
/// system enforces limits. A program causes the others itself.
fn is_from_outside(signal: i32) -> bool {
    matches!(signal, 1 | 2 | 3 | 9 | 15 | 24 | 25)
}

fn name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check::tests::check, marker::tests::said_by, preflight::ProgramFault};
    use GateResult::{Deferred, Fail, Pass, Unverifiable};
    use pdca_process::Obstacle;

    const SHELL: &str = "cmd = './gate'";
    const ARGV: &str = "argv = ['./gate']";
    const AT_PUBLISH: &str = "at_publish = true";

    fn disk() -> HostFault {
        HostFault::DiskFull { at: "here".into() }
    }

    fn absent() -> HostFault {
        HostFault::Program(ProgramFault::Missing { program: "./gate".to_owned() })
    }

    fn result(ending: &Ending, said: &str, of: &str, trouble: Option<&HostFault>) -> GateResult {
        classify(ending, &said_by(said), &check(of), trouble).result
    }

    #[test]
    fn every_exit_status_with_every_marker_on_every_kind_of_row() {
        let neither = "";
        let unverifiable = "PDCA-UNVERIFIABLE: w\n";
        let deferred = "PDCA-DEFERRED: w\n";
        let both = "PDCA-DEFERRED: w\nPDCA-UNVERIFIABLE: w\n";
        let evidence = "PDCA-EVIDENCE: PDCA-UNVERIFIABLE: w\n";
        for of in [SHELL, ARGV, AT_PUBLISH] {
            for said in [neither, unverifiable, deferred, both, evidence] {
                for code in 0..=255 {
                    let expected = match (code, said) {
                        (0, said) if said == unverifiable || said == both => Unverifiable,
                        (0, said) if said == deferred && of == AT_PUBLISH => Deferred,
                        (0, _) => Pass,
                        (77, _) => Unverifiable,
                        (137, _) if of != ARGV => Unverifiable,
                        _ => Fail,
                    };
                    let found = result(&Ending::Exited(code), said, of, None);
                    assert_eq!(found, expected, "exit {code}, {said:?}, {of}");
                }
            }
        }
    }

    #[test]
    fn a_status_outside_a_byte_is_a_failure() {
        for code in [-1, 256, i32::MIN, i32::MAX] {
            assert_eq!(result(&Ending::Exited(code), "", SHELL, None), Fail);
        }
    }

    #[test]
    fn every_signal_is_the_hosts_doing_or_the_programs() {
        for signal in 1..=64 {
            let expected = match signal {
                1 | 2 | 3 | 9 | 15 | 24 | 25 => Unverifiable,
                _ => Fail,
            };
            // No marker changes the verdict about a program that did not exit by itself.
            for said in ["", "PDCA-UNVERIFIABLE: w\n", "PDCA-DEFERRED: w\n"] {
                for of in [SHELL, ARGV, AT_PUBLISH] {
                    let found = result(&Ending::Signaled(signal), said, of, None);
                    assert_eq!(found, expected, "signal {signal}, {said:?}, {of}");
                }
            }
        }
    }

    #[test]
    fn a_timeout_fails_the_row_and_says_so_whatever_the_gate_declared() {
        let check = check("timeout_secs = 30");
        let found = |said: &str| classify(&Ending::TimedOut, &said_by(said), &check, None);
        assert_eq!(found("").evidence, "timeout after 30s");
        assert_eq!(found("at 5\n").evidence, "timeout after 30s: at 5");
        assert_eq!(found("PDCA-UNVERIFIABLE: x\n").result, Fail);
        assert!(found("").timed_out);
        let stalled = classify(&Ending::Stalled, &said_by(""), &check, None);
        assert!(stalled.timed_out && stalled.result == Fail);
        assert!(stalled.evidence.starts_with("timeout"), "{stalled:?}");
    }

    #[test]
    fn lesson_11_a_full_disk_is_never_charged_to_the_patch() {
        let disk = Some(disk());
        for ending in [Ending::Exited(1), Ending::Exited(101), Ending::Signaled(7)] {
            assert_eq!(result(&ending, "", SHELL, disk.as_ref()), Unverifiable);
        }
        let full = classify(&Ending::Exited(1), &said_by("x"), &check(SHELL), disk.as_ref());
        assert_eq!(full.evidence, "disk full at here (exited 1)");
        // A check that passed nevertheless has passed, and one that timed out has timed out.
        assert_eq!(result(&Ending::Exited(0), "", SHELL, disk.as_ref()), Pass);
        assert_eq!(result(&Ending::TimedOut, "", SHELL, disk.as_ref()), Fail);
    }

    #[test]
    fn lesson_11_a_killed_gate_is_never_charged_to_the_patch() {
        let found = classify(&Ending::Signaled(9), &said_by("half"), &check(SHELL), None);
        assert_eq!(found, CheckFinding::unverifiable("killed from outside by SIGKILL"));
    }

    #[test]
    fn lesson_12_a_shell_that_finds_no_program_is_the_environments_fault() {
        let absent = Some(absent());
        let found = |code, of: &str, trouble: Option<&HostFault>| {
            result(&Ending::Exited(code), "sh: not found\n", of, trouble)
        };
        assert_eq!(found(127, SHELL, absent.as_ref()), Unverifiable);
        assert_eq!(found(126, SHELL, absent.as_ref()), Unverifiable);
        assert_eq!(found(127, SHELL, None), Fail, "something else was missing");
        assert_eq!(found(127, ARGV, absent.as_ref()), Fail, "it did run");
        assert_eq!(found(1, SHELL, absent.as_ref()), Fail);
    }

    #[test]
    fn what_could_not_be_started_says_why() {
        let infra = Ending::Infra { why: "no memory".to_owned() };
        let found = classify(&infra, &said_by(""), &check(ARGV), None);
        assert_eq!(found, CheckFinding::unverifiable("could not run: no memory"));
        let not_started =
            Ending::NotStarted { kind: Obstacle::NotFound, why: "no such file".to_owned() };
        let found = classify(&not_started, &said_by(""), &check(ARGV), None);
        assert_eq!(found, CheckFinding::unverifiable("could not run: no such file"));
        let found = classify(&not_started, &said_by(""), &check(ARGV), Some(&absent()));
        assert_eq!(found.result, Unverifiable);
        assert!(found.evidence.contains("./gate"), "{found:?}");
        assert_eq!(result(&Ending::Cancelled, "", ARGV, None), Unverifiable);
    }

    #[test]
    fn evidence_never_changes_the_verdict_and_always_fits() {
        let long = format!("PDCA-EVIDENCE: {}\n", "x".repeat(500));
        for code in 0..=255 {
            let check = check(SHELL);
            let ending = Ending::Exited(code);
            let plain = classify(&ending, &said_by(""), &check, None);
            let found = classify(&ending, &said_by(&long), &check, None);
            assert_eq!(found.result, plain.result);
            assert!(found.evidence.chars().count() <= 120);
        }
        let found = classify(&Ending::TimedOut, &said_by(&long), &check(SHELL), None);
        assert_eq!(found.evidence.chars().count(), 120);
    }

    #[test]
    fn silence_is_described() {
        let evidence =
            |code| classify(&Ending::Exited(code), &said_by(""), &check(SHELL), None).evidence;
        assert_eq!(evidence(0), "");
        assert_eq!(evidence(3), "exited 3 without output");
        assert_eq!(evidence(77), "exited 77 without saying why");
    }

    #[test]
    fn a_gate_over_its_memory_is_red_and_says_the_cap() {
        let over = Ending::OverMemory { cap: 64 << 20 };
        let found = classify(&over, &said_by("building\n"), &check(SHELL), None);
        assert_eq!(found.result, Fail);
        assert_eq!(found.evidence, "more memory than its cap of 64 MiB: building");
        assert!(!found.timed_out);
    }
}
