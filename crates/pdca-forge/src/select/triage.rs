//! The scaffold of triage, which a draft brief ends with.

use std::fmt::Write as _;

use jiff::civil::Date;
use pdca_state::TRIAGE_VERDICT;

use crate::select::bucket::BucketCount;
use crate::select::date::age;
use crate::select::pool::IssueRecord;

/// The facts that a person needs for the verdict.
#[derive(Debug, Clone, Copy)]
pub struct Triage<'a> {
    pub record: &'a IssueRecord,
    pub bucket: &'a BucketCount,
    /// The export, as it is named to people.
    pub source: &'a str,
    /// There is a `notes.json` to read.
    pub has_notes: bool,
    pub today: Date,
}

impl Triage<'_> {
    /// Renders the section. No line of it but those of its own fields has the shape of a field.
    pub fn section(&self) -> String {
        let record = self.record;
        let mut text = String::from("## Triage\n\n");
        let facts = [
            ("status", &*record.status),
            ("severity", &*record.severity),
            ("component", &*record.component),
            ("kind", &*record.kind),
        ];
        let facts = facts.iter().filter(|(_, value)| !value.is_empty());
        let mut facts: Vec<String> =
            facts.map(|(name, value)| format!("{name} {}", one_line(value))).collect();
        if let Some(days) = age(record.created, self.today) {
            facts.push(format!("{days} days old"));
        }
        if let Some(days) = age(record.updated, self.today) {
            facts.push(format!("untouched for {days} days"));
        }
        let facts = if facts.is_empty() { "nothing further".to_owned() } else { facts.join(", ") };
        // Writing to a string does not fail.
        let _ = writeln!(text, "The tracker says: {facts}.");
        let place = format!("{}, record in line {}", one_line(self.source), record.line);
        let _ = writeln!(text, "It comes from {place}, bucket {}.", one_line(&self.bucket.name));
        if let Some(hint) = &self.bucket.disposition {
            let _ = writeln!(text, "The bucket suggests: {}.", one_line(hint));
        }
        let _ = writeln!(
            text,
            "\n- **{TRIAGE_VERDICT}:** <fix, close, split or ask, and why; a draft until this is filled in>"
        );
        text.push_str("- **Still there:** <seen on the target branch, not seen, or not tried>\n");
        if self.has_notes {
            text.push_str(
                "- **Thread:** <what of the thread in `notes.json` changes the picture; or nothing>\n",
            );
        }
        text
    }
}

/// Returns a text on one line, as short as a fact.
fn one_line(text: &str) -> String {
    // A line of its own could be read as a field of the brief, and the tracker is written by anyone.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| !c.is_control()).take(200).collect()
}
