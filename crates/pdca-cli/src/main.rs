//! The `pdca` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Must come first: `pdca` starts this binary again as the supervisor of each child.
    pdca_process::maybe_supervise();
    pdca_cli::main_with(std::env::args_os())
}
