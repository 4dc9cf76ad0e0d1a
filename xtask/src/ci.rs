//! `cargo xtask ci`: every check that a change has to pass, in one command.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use clap::ValueEnum;

use crate::{Outcome, Stopped, fault_matrix, program, schemas, tidy, walls};

/// Run every check a change has to pass
///
/// Stops at the first step that fails. Each step is shown with the time it took.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Run the remaining steps after a failure too
    #[arg(long)]
    keep_going: bool,
    /// Leave a step out (may be repeated)
    #[arg(long, value_name = "STEP")]
    skip: Vec<Step>,
    /// Show the steps and run nothing
    #[arg(long)]
    list: bool,
}

/// The steps in order, the quick ones first, except for tidy, which is
/// quickest but most readable as the last output.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Fmt,
    Clippy,
    Tests,
    Rustdoc,
    Tidy,
    FaultMatrix,
    Walls,
    Package,
    Schemas,
}

impl Step {
    const ALL: [Step; 9] = [
        Step::Fmt,
        Step::Clippy,
        Step::Tests,
        Step::Rustdoc,
        Step::Tidy,
        Step::FaultMatrix,
        Step::Walls,
        Step::Package,
        Step::Schemas,
    ];

    fn name(self) -> &'static str {
        match self {
            Step::Fmt => "fmt",
            Step::Clippy => "clippy",
            Step::Tests => "tests",
            Step::Rustdoc => "rustdoc",
            Step::Tidy => "tidy",
            Step::FaultMatrix => "fault-matrix",
            Step::Walls => "walls",
            Step::Package => "package",
            Step::Schemas => "schemas",
        }
    }

    /// Returns the command lines of this step: `cargo nextest` runs the tests if it is installed, but no doc tests.
    fn command_lines(self, has_nextest: bool) -> Vec<&'static str> {
        if self == Step::Tests && has_nextest {
            vec!["cargo nextest run --workspace", "cargo test --workspace --doc"]
        } else {
            vec![self.command_line()]
        }
    }

    /// Returns the command line a developer would type for this step alone.
    fn command_line(self) -> &'static str {
        match self {
            Step::Fmt => "cargo fmt --all --check",
            Step::Clippy => "cargo clippy --workspace --all-targets -- -D warnings",
            // Includes doc tests.
            Step::Tests => "cargo test --workspace",
            Step::Rustdoc => "cargo doc --workspace --no-deps",
            Step::Tidy => "cargo xtask tidy",
            Step::FaultMatrix => "cargo xtask fault-matrix",
            Step::Walls => "cargo xtask walls",
            // Without `--no-verify` each package would be built again from its archive; `--allow-dirty`, because a developer's working
            // tree has changes.
            Step::Package => {
                "cargo package -p pdca-state -p pdca-process -p pdca-dag -p pdca-lanes --no-verify --allow-dirty"
            }
            Step::Schemas => "cargo xtask schemas",
        }
    }

    fn env(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Step::Rustdoc => &[("RUSTDOCFLAGS", "-D warnings")],
            Step::Fmt
            | Step::Clippy
            | Step::Tests
            | Step::Tidy
            | Step::FaultMatrix
            | Step::Walls
            | Step::Package
            | Step::Schemas => &[],
        }
    }

    /// Returns the toolchain component that a step needs beyond cargo and rustc, with its probe.
    fn component(self) -> Option<(&'static str, [&'static str; 2])> {
        match self {
            Step::Fmt => Some(("rustfmt", ["fmt", "--version"])),
            Step::Clippy => Some(("clippy", ["clippy", "--version"])),
            Step::Tests
            | Step::Rustdoc
            | Step::Tidy
            | Step::FaultMatrix
            | Step::Walls
            | Step::Package
            | Step::Schemas => None,
        }
    }
}

/// The result of one step.
#[derive(Debug, Clone, Copy)]
struct Done {
    step: Step,
    passed: bool,
    took: Duration,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let steps = chosen(&args.skip);
    if args.list {
        for step in &steps {
            println!("{:<12}  {}", step.name(), shown(*step));
        }
        return Ok(Outcome::Passed);
    }
    require_components(&steps, root)?;
    let done = walk(&steps, args.keep_going, |step| carry_out(step, root))?;
    println!("\n{}", summary(&done, steps.len()));
    if done.iter().all(|done| done.passed) { Ok(Outcome::Passed) } else { Ok(Outcome::Failed) }
}

fn chosen(skip: &[Step]) -> Vec<Step> {
    Step::ALL.into_iter().filter(|step| !skip.contains(step)).collect()
}

fn shown(step: Step) -> String {
    let mut words: Vec<String> =
        step.env().iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    words.push(step.command_line().to_owned());
    words.join(" ")
}

/// Reports a missing tool at the start rather than after a long build.
fn require_components(steps: &[Step], root: &Utf8Path) -> Result<(), Stopped> {
    for step in steps {
        if let Some((component, probe)) = step.component()
            && program::output("cargo", &probe, root).is_err()
        {
            return Err(format!(
                "{component} is not installed; `rustup component add {component}` adds it"
            )
            .into());
        }
    }
    Ok(())
}

/// Runs the steps in order until one fails, or all of them with `keep_going`.
fn walk(
    steps: &[Step],
    keep_going: bool,
    mut carry_out: impl FnMut(Step) -> Result<bool, Stopped>,
) -> Result<Vec<Done>, Stopped> {
    let mut done = Vec::new();
    for &step in steps {
        let start = Instant::now();
        let passed = carry_out(step)?;
        done.push(Done { step, passed, took: start.elapsed() });
        if !passed && !keep_going {
            break;
        }
    }
    Ok(done)
}

fn carry_out(step: Step, root: &Utf8Path) -> Result<bool, Stopped> {
    println!("\n── {}: {}", step.name(), shown(step));
    let start = Instant::now();
    let passed = match step {
        Step::Tidy => tidy::run(&tidy::Args::default(), root)? == Outcome::Passed,
        Step::FaultMatrix => {
            fault_matrix::run(&fault_matrix::Args::default(), root)? == Outcome::Passed
        }
        Step::Walls => walls::run(&walls::Args::default(), root)? == Outcome::Passed,
        Step::Schemas => schemas::run(&schemas::Args::default(), root)? == Outcome::Passed,
        Step::Fmt | Step::Clippy | Step::Tests | Step::Rustdoc | Step::Package => {
            let has_nextest = program::output("cargo", &["nextest", "--version"], root).is_ok();
            let mut passed = true;
            for line in step.command_lines(has_nextest) {
                let words: Vec<&str> = line.split(' ').collect();
                passed = passed && program::succeeds(words[0], &words[1..], step.env(), root)?;
            }
            passed
        }
    };
    let word = if passed { "passed" } else { "FAILED" };
    println!("── {} {word} in {:.1} s", step.name(), start.elapsed().as_secs_f64());
    Ok(passed)
}

fn summary(done: &[Done], of: usize) -> String {
    let mut lines: Vec<String> = done
        .iter()
        .map(|one| {
            let word = if one.passed { "passed" } else { "FAILED" };
            let took = one.took.as_secs_f64();
            format!("{:<12}  {word}  {took:>7.1} s", one.step.name())
        })
        .collect();
    let passed = done.iter().filter(|done| done.passed).count();
    lines.push(format!("ci: {passed} of {of} steps passed"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(done: &[Done]) -> Vec<&'static str> {
        done.iter().map(|done| done.step.name()).collect()
    }

    #[test]
    fn the_first_failure_is_the_last_step() {
        let done = walk(&Step::ALL, false, |step| Ok(step != Step::Clippy)).unwrap();
        assert_eq!(names(&done), ["fmt", "clippy"]);
        assert!(summary(&done, 8).ends_with("ci: 1 of 8 steps passed"));
    }

    #[test]
    fn keep_going_runs_what_is_left_and_still_counts_the_failure() {
        let done = walk(&Step::ALL, true, |step| Ok(step != Step::Clippy)).unwrap();
        assert_eq!(
            names(&done),
            [
                "fmt",
                "clippy",
                "tests",
                "rustdoc",
                "tidy",
                "fault-matrix",
                "walls",
                "package",
                "schemas",
            ]
        );
        assert!(summary(&done, 9).ends_with("ci: 8 of 9 steps passed"));
    }

    #[test]
    fn a_skipped_step_is_left_out_and_the_order_stays() {
        let names: Vec<_> = chosen(&[Step::Tests]).iter().map(|s| s.name()).collect();
        assert_eq!(
            names,
            ["fmt", "clippy", "rustdoc", "tidy", "fault-matrix", "walls", "package", "schemas"]
        );
    }

    #[test]
    fn a_step_that_cannot_run_stops_the_walk() {
        let stopped = walk(&Step::ALL, true, |_| Err("no cargo".into()));
        assert_eq!(stopped.unwrap_err().to_string(), "no cargo");
    }

    #[test]
    fn nextest_runs_the_tests_where_it_is_installed_and_cargo_the_doc_tests() {
        assert_eq!(Step::Tests.command_lines(false), ["cargo test --workspace"]);
        assert_eq!(
            Step::Tests.command_lines(true),
            ["cargo nextest run --workspace", "cargo test --workspace --doc"]
        );
        assert_eq!(Step::Fmt.command_lines(true), ["cargo fmt --all --check"]);
    }

    #[test]
    fn warnings_are_errors_in_clippy_and_in_rustdoc() {
        assert!(shown(Step::Clippy).ends_with("-D warnings"));
        assert!(shown(Step::Rustdoc).starts_with("RUSTDOCFLAGS=\"-D warnings\""));
    }
}
