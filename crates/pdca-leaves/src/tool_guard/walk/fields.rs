//! Expansion of words into fields, and the known output of commands.

use super::{DRIVER_PID, Output};
use crate::tool_guard::rule;

/// Returns the output of a command, if it is known.
pub(super) fn output_of(cmdline: &[String], stdin: Output) -> Output {
    let args = &cmdline[1..];
    let plain = || args.iter().filter(|arg| !arg.starts_with('-'));
    let names_driver = || args.iter().any(|arg| rule::names_driver(arg));
    match rule::name_of(&cmdline[0]) {
        "echo" => {
            let from = args
                .iter()
                .take_while(|arg| matches!(arg.as_str(), "-n" | "-e" | "-ne" | "-en" | "-E"))
                .count();
            // Also without `-e`, as the `echo` of dash does it: a line too many is found, a line
            // too few is not.
            Some(args[from..].join(" ").replace("\\n", "\n"))
        }
        "printf" => {
            let (format, values) = args.split_first()?;
            let (format, values) =
                if format == "--" { values.split_first()? } else { (format, values) };
            Some(printed(format, values))
        }
        // With a file name the output is the file's, which is not read.
        "cat" if plain().next().is_none() => stdin,
        // `$(which git) push`: the name stands for the path.
        "which" | "type" | "command" => plain().next_back().cloned(),
        "pgrep" | "pidof" | "grep" | "egrep" | "rg" if names_driver() => {
            Some(DRIVER_PID.to_owned())
        }
        // These may pass on a process id, whatever else they do to the text.
        "awk" | "cut" | "head" | "tail" | "sort" | "uniq" | "sed" | "tr" | "grep" | "xargs" => {
            stdin.filter(|text| text.contains(DRIVER_PID))
        }
        "tee" => stdin,
        _ => None,
    }
}

/// Applies a `printf` format: values replace the directives, and further ones are appended.
fn printed(format: &str, values: &[String]) -> String {
    let mut text = String::new();
    let mut values = values.iter();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next() {
                Some('%') => text.push('%'),
                Some(_) => text.push_str(values.next().map_or("", String::as_str)),
                None => {}
            },
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => {}
            },
            other => text.push(other),
        }
    }
    for value in values {
        text.push(' ');
        text.push_str(value);
    }
    text
}

/// Expands the brace lists in a word.
pub(super) fn braces(text: &str, depth: usize) -> Vec<String> {
    // Nested lists multiply: `{a,b}` ten times over is a thousand words.
    const MOST_WORDS: usize = 64;
    let whole = || vec![text.to_owned()];
    let Some(open) = text.find('{').filter(|_| depth < 6) else { return whole() };
    let mut level = 0_usize;
    let mut parts = Vec::new();
    let mut start = open + 1;
    for (at, c) in text[open..].char_indices().map(|(at, c)| (at + open, c)) {
        match c {
            '{' => level += 1,
            ',' if level == 1 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            '}' => {
                level -= 1;
                if level == 0 {
                    // `{}` and `{x}` are no lists and stay as they are; `find -exec` and `xargs
                    // -I{}` rely on that.
                    if parts.is_empty() {
                        return whole();
                    }
                    parts.push(&text[start..at]);
                    let (before, after) = (&text[..open], &text[at + 1..]);
                    let all = parts
                        .iter()
                        .flat_map(|part| braces(&format!("{before}{part}{after}"), depth + 1));
                    return all.take(MOST_WORDS).collect();
                }
            }
            _ => {}
        }
    }
    whole()
}

/// The fields of a word during its expansion.
#[derive(Default)]
pub(super) struct Fields {
    done: Vec<String>,
    current: Option<String>,
}

impl Fields {
    pub(super) fn append(&mut self, text: &str) {
        self.current.get_or_insert_default().push_str(text);
    }

    pub(super) fn next(&mut self) {
        self.done.extend(self.current.take());
    }

    /// Appends text, split at blanks.
    pub(super) fn split(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.next();
        }
        for (place, part) in text.split_whitespace().enumerate() {
            if place > 0 {
                self.next();
            }
            self.append(part);
        }
        if text.ends_with(char::is_whitespace) {
            self.next();
        }
    }

    pub(super) fn finish(mut self) -> Vec<String> {
        self.next();
        self.done
    }
}
