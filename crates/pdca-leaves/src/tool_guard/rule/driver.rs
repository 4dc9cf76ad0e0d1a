//! `pdca` itself: a builder may query it but not run it.

use super::line;
use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::nested::behind_options;

const INSTEAD: &str = "finish the change in the checkout and end; the driver goes on by itself";

/// Options that take a value as an argument of its own.
const WITH_VALUE: [&str; 6] =
    ["-C", "--directory", "--color", "--config", "--format", "--crash-at"];

/// Commands that only read.
const READING: [&str; 13] = [
    "status",
    "why",
    "plan",
    "waves",
    "queue",
    "forecast",
    "verify",
    "doctor",
    "completions",
    "man",
    "help",
    "guard",
    "log",
];

pub(crate) fn judge(args: &[String]) -> Result<(), GuardRefusal> {
    let rest = behind_options(args, &WITH_VALUE);
    let Some((command, rest)) = rest.split_first() else { return Ok(()) };
    let action = behind_options(rest, &WITH_VALUE).first().map(String::as_str);
    let reads = match command.as_str() {
        "act" => matches!(action, Some("index" | "diff")),
        // `trust` decides what runs for the user, and `migrate` writes `pdca.toml`.
        "config" => matches!(action, None | Some("show")),
        command => {
            READING.contains(&command)
                && !rest.iter().any(|arg| arg == "--write" || arg == "--save")
        }
    };
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
