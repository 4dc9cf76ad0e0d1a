//! Developer tasks: `ci`, `tidy`, `corpus`, `compare-merge`, `bench`, `lanes-provision`, `fault-matrix`,
//! `soak`, `replay`, `walls`, `schemas`, `properties`, `coverage`, `agents` and `pictures`, run as `cargo xtask <task>`.
//!
//! `cargo xtask ci` has to be green before a change is merged. The other tasks are its
//! parts, or measurements without assertions.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to a developer at a terminal is all this program does"
)]

mod agents;
mod bench;
mod ci;
mod compare_merge;
mod corpus;
mod coverage;
mod dice;
mod fault_matrix;
mod lanes_provision;
mod page;
mod pictures;
mod program;
mod properties;
mod replay;
mod schemas;
mod soak;
mod test_functions;
mod tidy;
mod walls;

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Parser, Subcommand};

/// Check, compare and measure this workspace
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    Ci(ci::Args),
    Tidy(tidy::Args),
    Corpus(corpus::Args),
    CompareMerge(compare_merge::Args),
    Bench(bench::Args),
    LanesProvision(lanes_provision::Args),
    FaultMatrix(fault_matrix::Args),
    Soak(soak::Args),
    Replay(replay::Args),
    Walls(walls::Args),
    Schemas(schemas::Args),
    Properties(properties::Args),
    Coverage(coverage::Args),
    Agents(agents::Args),
    Pictures(pictures::Args),
}

/// The result of a task; an error that stopped it is separate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
}

/// The error of a task that could not be carried out.
type Stopped = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    // Benchmarks start children under this very program.
    pdca_process::maybe_supervise();
    let root = workspace_root();
    let outcome = match Cli::parse().task {
        Task::Ci(args) => ci::run(&args, &root),
        Task::Tidy(args) => tidy::run(&args, &root),
        Task::Corpus(args) => corpus::run(&args),
        Task::CompareMerge(args) => compare_merge::run(&args),
        Task::Bench(args) => bench::run(&args, &root),
        Task::LanesProvision(args) => lanes_provision::run(&args),
        Task::FaultMatrix(args) => fault_matrix::run(&args, &root),
        Task::Soak(args) => soak::run(&args, &root),
        Task::Replay(args) => replay::run(&args, &root),
        Task::Walls(args) => walls::run(&args, &root),
        Task::Schemas(args) => schemas::run(&args, &root),
        Task::Properties(args) => properties::run(&args, &root),
        Task::Coverage(args) => coverage::run(&args, &root),
        Task::Agents(args) => agents::run(&args, &root),
        Task::Pictures(args) => pictures::run(&args, &root),
    };
    match outcome {
        Ok(Outcome::Passed) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Err(stopped) => {
            eprintln!("error: {stopped}");
            let mut cause = stopped.source();
            while let Some(source) = cause {
                eprintln!("  because: {source}");
                cause = source.source();
            }
            ExitCode::from(2)
        }
    }
}

/// Returns the directory of the workspace manifest, fixed at compile time.
fn workspace_root() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("because xtask is a directory of the workspace")
        .to_owned()
}
