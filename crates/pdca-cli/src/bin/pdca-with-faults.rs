//! The `pdca` command that the end-to-end suites start: the feature it needs makes it read which fault befalls it.

use std::process::ExitCode;

fn main() -> ExitCode {
    pdca_process::maybe_supervise();
    pdca_cli::main_with_faults(std::env::args_os())
}
