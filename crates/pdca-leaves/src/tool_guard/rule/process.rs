//! Signals: a builder must not end the processes that run it.

use super::{line, names_driver};
use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::walk::DRIVER_PID;

const INSTEAD: &str =
    "end only processes that you started, by their own number (`kill $!`, `kill %1`)";

pub(crate) fn judge(program: &str, args: &[String]) -> Result<(), GuardRefusal> {
    let targets: Vec<&str> = targets(program, args);
    let hits = match program {
        "pkill" | "killall" | "skill" => {
            // `pkill .` matches every name.
            targets.iter().any(|target| names_driver(target) || *target == ".")
        }
        "kill" => targets
            .iter()
            // `0` is the own process group, in which the agent may be; `-1` is every process of the
            // user.
            .any(|target| target.contains(DRIVER_PID) || matches!(*target, "1" | "-1" | "0")),
        _ => {
            args.iter().any(|arg| arg.starts_with("-k") || arg == "--kill")
                && targets.iter().any(|target| names_driver(target))
        }
    };
    if hits {
        return Err(GuardRefusal::new(
            line(program, args),
            "it may end the driver or what runs the builder",
            INSTEAD,
        ));
    }
    Ok(())
}

/// Returns the arguments that name the receivers of a signal.
fn targets<'a>(program: &str, args: &'a [String]) -> Vec<&'a str> {
    let mut targets = Vec::new();
    let mut at = 0;
    let mut options = true;
    while let Some(arg) = args.get(at) {
        at += 1;
        match arg.as_str() {
            "--" if options => options = false,
            "-s" | "-n" | "--signal" | "-u" | "-t" | "-g" | "-P" if options => at += 1,
            // The first argument is a signal; a later `-1`, as in `kill -9 -1`, means every process.
            "-1" if program == "kill" && at > 1 => targets.push("-1"),
            _ if options && arg.starts_with('-') => {}
            _ => targets.push(arg),
        }
    }
    targets
}
