//! The `pdca` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: this very binary, started again by itself, is the supervisor of a child.
    pdca_process::maybe_supervise();
    pdca_cli::main_with(std::env::args_os())
}
