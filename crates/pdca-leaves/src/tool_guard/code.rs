//! Searches code for other interpreters for shell commands.
//!
//! Only string literals are found, alone or as a list, in code that calls a shell. Code that assembles a command from
//! parts is not understood, and the answer says so.

use std::collections::BTreeMap;

use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::walk::ShellWalk;

/// Function names with which interpreters start programs.
const CALLS: [&str; 14] = [
    "system",
    "popen",
    "exec",
    "spawn",
    "subprocess",
    "check_call",
    "check_output",
    "Popen",
    "getoutput",
    "shell_exec",
    "passthru",
    "qx",
    "%x",
    "Open3",
];

/// Judges the string literals of code that starts programs.
pub(crate) fn judge(code: &str, walk: &mut ShellWalk<'_>) -> Result<(), GuardRefusal> {
    // Code that starts no program may mention `git push` in any string.
    let starts = CALLS.iter().any(|call| code.contains(call)) || code.contains('`');
    if !starts {
        return Ok(());
    }
    for list in literals(code) {
        for text in &list {
            walk.clone().script(text, None)?;
        }
        // `run(["git", "push"])` is one command; each literal alone is none.
        if list.len() > 1 {
            walk.clone().command(&list, &BTreeMap::new(), None)?;
        }
    }
    for text in quoted_by_operator(code) {
        walk.clone().script(text, None)?;
    }
    walk.not_seen("code that starts programs is only searched for plain string literals");
    Ok(())
}

/// Returns the string literals; those separated only by commas and blanks are grouped.
fn literals(code: &str) -> Vec<Vec<String>> {
    let mut lists: Vec<Vec<String>> = Vec::new();
    let mut joined = false;
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' | '`' => {
                let mut text = String::new();
                let mut closed = false;
                while let Some(inner) = chars.next() {
                    match inner {
                        '\\' => text.extend(chars.next()),
                        inner if inner == c => {
                            closed = true;
                            break;
                        }
                        inner => text.push(inner),
                    }
                }
                if closed && !text.is_empty() {
                    match lists.last_mut() {
                        Some(list) if joined => list.push(text),
                        _ => lists.push(vec![text]),
                    }
                }
                joined = true;
            }
            ',' | ' ' | '\t' | '\n' | '[' => {}
            _ => joined = false,
        }
    }
    lists
}

/// Returns the content of `qx(…)` in perl and `%x(…)` in ruby, with any brackets.
fn quoted_by_operator(code: &str) -> impl Iterator<Item = &str> {
    ["qx", "%x"].into_iter().flat_map(move |operator| {
        code.match_indices(operator).filter_map(move |(at, _)| {
            let rest = &code[at + operator.len()..];
            let close = match rest.chars().next()? {
                '(' => ')',
                '{' => '}',
                '[' => ']',
                '<' => '>',
                other @ ('/' | '|' | '!') => other,
                _ => return None,
            };
            rest[1..].split_once(close).map(|(text, _)| text)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_one_list_stand_together() {
        assert_eq!(
            literals("run(['git', \"push\"]); x = 'a' + 'b'"),
            [vec!["git".to_owned(), "push".to_owned()], vec!["a".to_owned()], vec!["b".to_owned()]]
        );
    }
}
