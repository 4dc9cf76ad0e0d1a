//! `act-log.md`: one entry per review of the process, only appended to.
//!
//! An entry starts at `# Act review — <date> — cycles considered: <ids>` and extends to the next one. Only two
//! parts are read: the considered cycles, and the lines under `## How effectiveness will be judged`, which say
//! what should no longer be seen.

use pdca_state::BundleId;
use serde::Serialize;

use crate::wording::{bullets, clauses, normalise, weight};

pub(crate) const HEADING: &str = "# Act review";
const CYCLES: &str = "cycles considered:";
pub(crate) const JUDGED: &str = "## How effectiveness will be judged";
pub(crate) const COMMENT: (&str, &str) = ("<!--", "-->");

/// The prefix of a line that states its signal exactly.
pub(crate) const SIGNAL: &str = "Signal:";
/// An optional suffix of such a line, with the cycles.
pub(crate) const SEEN_IN: &str = " (seen in ";

/// The parsed log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActLog {
    /// The entries, in file order.
    pub entries: Vec<LogEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The heading as written, without the line end.
    pub heading: String,
    /// The date as written; empty if the heading has none.
    pub date: String,
    /// The considered cycles.
    pub cycles: Vec<BundleId>,
    /// The signals by which its effect is to be judged.
    pub signals: Vec<Signal>,
}

/// A statement that should no longer be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Signal {
    /// The line.
    pub text: String,
    /// The date of the entry.
    pub since: String,
    /// The normalized texts to look for.
    #[serde(skip)]
    pub(crate) needles: Vec<String>,
    /// True if the line states exactly what to look for, so that its absence is meaningful.
    #[serde(skip)]
    pub(crate) exact: bool,
}

impl ActLog {
    /// Parses the entries. Any bytes are a valid log, possibly without entries.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = without_comments(&String::from_utf8_lossy(bytes));
        let mut log = Self::default();
        let mut judged: Option<String> = None;
        for line in text.lines() {
            if line.starts_with(HEADING) {
                log.judge(judged.take());
                log.entries.push(LogEntry::open(line));
            } else if line.starts_with("## ") || line.starts_with("# ") {
                log.judge(judged.take());
                judged = line.starts_with(JUDGED).then(String::new);
            } else if let Some(section) = &mut judged {
                section.push_str(line);
                section.push('\n');
            }
        }
        log.judge(judged);
        log
    }

    /// Returns the date of the latest entry.
    pub fn last_review(&self) -> Option<&str> {
        let dates = self.entries.iter().map(|entry| entry.date.as_str());
        dates.filter(|date| !date.is_empty()).max()
    }

    /// Returns the signals of all entries.
    pub fn signals(&self) -> impl Iterator<Item = &Signal> {
        self.entries.iter().flat_map(|entry| &entry.signals)
    }

    fn judge(&mut self, section: Option<String>) {
        if let (Some(section), Some(entry)) = (section, self.entries.last_mut()) {
            let lines = bullets(&section);
            entry
                .signals
                .extend(lines.iter().filter_map(|line| Signal::of_line(line, &entry.date)));
        }
    }
}

impl LogEntry {
    fn open(heading: &str) -> Self {
        let heading = heading.trim_end();
        let (before, ids) = heading.split_once(CYCLES).unwrap_or((heading, ""));
        let date = before[HEADING.len()..].trim_matches(|c: char| !c.is_alphanumeric());
        Self {
            heading: heading.to_owned(),
            date: date.to_owned(),
            cycles: ids_of(ids),
            signals: Vec::new(),
        }
    }
}

impl Signal {
    fn of_line(line: &str, since: &str) -> Option<Self> {
        let named = line.strip_prefix(SIGNAL).map(str::trim);
        let said = named.unwrap_or(line);
        let said = said.split(SEEN_IN).next().unwrap_or(said).trim();
        // A line that is still the placeholder of the scaffold is no signal.
        if said.is_empty() || said.starts_with('<') {
            return None;
        }
        let long_enough = |text: &String| weight(text) >= 3;
        let quoted: Vec<String> =
            quotes(said).into_iter().map(normalise).filter(long_enough).collect();
        let (needles, exact) = if named.is_some() {
            let needle = normalise(said);
            (if weight(&needle) >= 2 { vec![needle] } else { Vec::new() }, true)
        } else if quoted.is_empty() {
            (clauses(said).map(normalise).filter(|text| weight(text) >= 4).collect(), false)
        } else {
            (quoted, true)
        };
        Some(Self { text: said.to_owned(), since: since.to_owned(), needles, exact })
    }

    /// Returns a signal from the ledger of an older version.
    pub(crate) fn applied(text: &str, key: &str, since: &str) -> Self {
        Self {
            text: text.to_owned(),
            since: since.to_owned(),
            needles: vec![normalise(key)],
            exact: true,
        }
    }
}

/// Returns the texts in backticks or double quotes.
fn quotes(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (open, close) in [('`', '`'), ('"', '"'), ('“', '”')] {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inner, after)) = after.split_once(close) else { break };
            found.push(inner);
            rest = after;
        }
    }
    found
}

/// Parses the ids of a heading: the first word of each part between commas, and further words with a digit.
fn ids_of(list: &str) -> Vec<BundleId> {
    let list = list.split('(').next().unwrap_or(list);
    let mut ids: Vec<BundleId> = Vec::new();
    for part in list.split(',') {
        for (index, word) in part.split_whitespace().enumerate() {
            let word = word.trim_end_matches(['.', ';', ':']);
            if index > 0 && !word.contains(|c: char| c.is_ascii_digit()) {
                break;
            }
            ids.extend(word.parse::<BundleId>().ok());
        }
    }
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    ids
}

/// Removes comments that start a line, because they contain templates.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        if rest.trim_start_matches([' ', '\t']).starts_with(COMMENT.0) {
            // An unclosed comment hides nothing.
            let Some(end) = rest.find(COMMENT.1) else { break };
            rest = &rest[end + COMMENT.1.len()..];
            continue;
        }
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        out.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Returns the log with one more entry. Existing bytes are kept.
pub fn append(log: Option<&[u8]>, entry: &str) -> Vec<u8> {
    let mut bytes = log.unwrap_or(b"# Act log\n").to_vec();
    if !bytes.is_empty() {
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(entry.trim_end().as_bytes());
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOG: &str = "\
# Act log

<!-- Template:

# Act review — <date> — cycles considered: <issue_ids>
-->

# Act review — 2026-09-01 — cycles considered: 36, #12, issue_7, PROJ-9 (and 3 that were put away)

## What the cycles' records exposed
- Signal: this is no promise

## How effectiveness will be judged
- Signal: T3 gate evidence names another bundle (seen in 36, 12)
- The next cycles should not show \"the reviewer cannot reach the network\" again.
- Watch the next five cycles for anything that looks odd.
- Signal: <what should no longer be seen>

# Act review - 2026-10-01 - cycles considered: 41
";

    #[test]
    fn an_entry_tells_its_date_its_cycles_and_its_signals() {
        let log = ActLog::parse(LOG.as_bytes());
        let shown: Vec<String> = log
            .entries
            .iter()
            .map(|entry| {
                let ids: Vec<&str> = entry.cycles.iter().map(AsRef::as_ref).collect();
                let mut lines = vec![format!("{}: {}", entry.date, ids.join(" "))];
                for signal in &entry.signals {
                    lines.push(format!("  exact {}: {:?}", signal.exact, signal.needles));
                }
                lines.join(
                    "
",
                )
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        2026-09-01: 36 12 7 PROJ-9
          exact true: ["t3 gate evidence names another bundle"]
          exact true: ["the reviewer cannot reach the network"]
          exact false: ["watch the next five cycles for anything that looks odd"]
        2026-10-01: 41
        "#);
        assert_eq!(log.last_review(), Some("2026-10-01"));
    }

    #[test]
    fn an_entry_is_appended_and_what_was_there_stays() {
        assert_eq!(append(None, "# x\n\n"), b"# Act log\n\n# x\n");
        assert_eq!(append(Some(b"caf\xe9"), "# x"), b"caf\xe9\n\n# x\n");
        assert_eq!(append(Some(b""), "# x"), b"# x\n");
    }

    #[test]
    fn a_comment_that_is_never_closed_hides_nothing() {
        let log = ActLog::parse(
            b"<!-- oops\n# Act review \xe2\x80\x94 d \xe2\x80\x94 cycles considered: 1\n",
        );
        assert_eq!(log.entries.len(), 1);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            let log = ActLog::parse(&bytes);
            prop_assert!(log.entries.len() <= bytes.len());
        }

        #[test]
        fn arbitrary_lines_never_panic(
            text in "((# Act review|## How effectiveness will be judged|<!--|-->|- Signal:|- |cycles considered:)[ a-z0-9,\"`(—\u{85}\u{2028}]{0,20}\n){0,10}",
        ) {
            let log = ActLog::parse(text.as_bytes());
            prop_assert!(log.entries.iter().all(|entry| entry.heading.starts_with(HEADING)));
        }

        #[test]
        fn an_appended_heading_is_read_again(before in any::<Vec<u8>>(), ids in proptest::collection::vec("[a-z0-9]{1,6}", 1..5)) {
            let entry = format!("# Act review — 2026-11-16 — cycles considered: {}", ids.join(", "));
            let log = ActLog::parse(&append(Some(&before), &entry));
            let read = &log.entries.last().unwrap().cycles;
            for id in &ids {
                prop_assert!(read.contains(&id.parse().unwrap()), "{}", id);
            }
        }
    }
}
