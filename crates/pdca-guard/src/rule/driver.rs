//! `pdca` itself: a builder may query it but not run it.

use super::line;
use crate::answer::GuardRefusal;
use crate::nested::behind_options;

const INSTEAD: &str = "finish the change in the checkout and end; the driver goes on by itself";

/// Commands that only read.
const READING: [&str; 14] = [
    "status",
    "why",
    "plan",
    "waves",
    "queue",
    "forecast",
    "verify",
    "doctor",
    "config",
    "completions",
    "man",
    "help",
    "guard",
    "log",
];

pub(crate) fn judge(args: &[String]) -> Result<(), GuardRefusal> {
    let rest = behind_options(args, &["-C", "--directory", "--color", "--config"]);
    let Some((command, rest)) = rest.split_first() else { return Ok(()) };
    let reads = READING.contains(&command.as_str())
        && !rest.iter().any(|arg| arg == "--write" || arg == "--save");
    let reads = reads
        || (command == "act"
            && rest.first().is_some_and(|arg| matches!(arg.as_str(), "index" | "diff")));
    let asks = rest.iter().any(|arg| matches!(arg.as_str(), "--help" | "-h"));
    if reads || asks {
        return Ok(());
    }
    Err(GuardRefusal::new(
        line("pdca", args),
        "a builder does not drive, sign off, integrate or publish",
        INSTEAD,
    ))
}
