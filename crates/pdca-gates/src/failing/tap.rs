//! Failing tests in the Test Anything Protocol.

use super::{MOST_PENDING, Names};

/// The state of the parser. In TAP subtests precede the test that they belong to.
#[derive(Debug, Default)]
pub(super) struct Tap {
    /// Names with their indentation.
    pending: Vec<(usize, String)>,
}

impl Tap {
    /// Reads a line; `false` if it is not TAP.
    pub(super) fn line(&mut self, line: &str, names: &mut Names) -> bool {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(why) = text.strip_prefix("Bail out!") {
            names.add(&format!("Bail out! {}", why.trim()));
            return true;
        }
        let (is_ok, rest) = match (text.strip_prefix("not ok"), text.strip_prefix("ok")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return false,
        };
        let is_test = rest
            .strip_prefix(' ')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
        if !is_test {
            return false;
        }
        // Everything deeper than this line was announced as a part of it.
        let parts = self.pending.iter().rposition(|(at, _)| *at <= indent).map_or(0, |at| at + 1);
        let (what, directive) = rest.rsplit_once(" # ").unwrap_or((rest, ""));
        let is_excused = ["TODO", "SKIP"].iter().any(|word| {
            directive.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        });
        // A parent that passed, or is excused, excuses its parts.
        if is_ok || is_excused {
            self.pending.truncate(parts);
            return true;
        }
        let what = if is_known_directive(directive) { what } else { rest };
        let number: String = what.trim().chars().take_while(char::is_ascii_digit).collect();
        let name = what.trim().trim_start_matches(&number).trim_start();
        let name = name.strip_prefix("- ").unwrap_or(name).trim();
        let name = if name.is_empty() { format!("test {number}") } else { name.to_owned() };
        if parts == self.pending.len() {
            if self.pending.len() < MOST_PENDING {
                self.pending.push((indent, name));
            }
        } else {
            for (at, part) in &mut self.pending[parts..] {
                *at = indent;
                // Bounded, because deep nesting would let names grow without limit.
                let whole: String = format!("{name} > {part}").chars().take(400).collect();
                *part = whole;
            }
        }
        if indent == 0 {
            self.flush(names);
        }
        true
    }

    /// Reports the names that still wait for a parent.
    pub(super) fn flush(&mut self, names: &mut Names) {
        for (_, name) in self.pending.drain(..) {
            names.add(&name);
        }
    }
}

fn is_known_directive(text: &str) -> bool {
    // `# time=12ms`, as tape and tap print it.
    text.starts_with("time=")
}
