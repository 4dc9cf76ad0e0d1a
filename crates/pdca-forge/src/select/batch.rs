//! The index of a batch, `process/batches/<name>.md`: a table for people, and the record of what was chosen.
//!
//! It is written before the first draft, so that a selection that was killed is finished by the next one. What a person
//! writes outside the two marks stays.

use std::fmt::Write as _;

use pdca_state::BundleId;

const BEGIN: &str =
    "<!-- pdca select: begin. What is between the marks is written by `pdca select`. -->";
const END: &str = "<!-- pdca select: end -->";

/// A batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchIndex {
    /// The text before the first mark.
    before: String,
    /// The sentence above the table.
    pub about: String,
    pub rows: Vec<BatchRow>,
    after: String,
}

/// One bundle of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRow {
    pub id: BundleId,
    /// Bucket, severity, age and title.
    pub cells: [String; 4],
}

impl BatchIndex {
    pub fn new(name: &str) -> Self {
        Self {
            before: format!("# Batch {name}\n\n"),
            about: String::new(),
            rows: Vec::new(),
            after: "\n".to_owned(),
        }
    }

    /// Reads an index. A text without marks is kept above the table.
    pub fn parse(text: &str) -> Self {
        let marks = text.split_once(BEGIN).and_then(|(before, rest)| {
            let (inside, after) = rest.split_once(END)?;
            Some((before, inside, after))
        });
        let Some((before, inside, after)) = marks else {
            let mut before = text.to_owned();
            if !before.is_empty() && !before.ends_with('\n') {
                before.push('\n');
            }
            return Self { before, ..Self::new("") };
        };
        let about = inside.trim_start().lines().next().unwrap_or_default();
        let about = if about.starts_with('|') { "" } else { about };
        Self {
            before: before.to_owned(),
            about: about.to_owned(),
            rows: inside.lines().filter_map(BatchRow::parse).collect(),
            after: after.to_owned(),
        }
    }

    /// Adds rows, or replaces those of the same id.
    pub fn put(&mut self, row: BatchRow) {
        match self.rows.iter_mut().find(|known| known.id == row.id) {
            Some(known) => *known = row,
            None => self.rows.push(row),
        }
    }

    pub fn contains(&self, id: &BundleId) -> bool {
        self.rows.iter().any(|row| row.id == *id)
    }

    pub fn text(&self) -> String {
        let mut text = format!("{}{BEGIN}\n", self.before);
        if !self.about.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}\n", self.about);
        }
        text.push_str("| id | bucket | severity | age | title |\n|---|---|---|---|---|\n");
        for row in &self.rows {
            let cells: Vec<String> = row.cells.iter().map(|cell| escaped(cell)).collect();
            let _ = writeln!(text, "| {} | {} |", row.id, cells.join(" | "));
        }
        text + END + &self.after
    }
}

impl BatchRow {
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        let mut cells = cells(line).into_iter();
        let id = cells.next()?.parse().ok()?;
        let mut cell = || cells.next().unwrap_or_default();
        let row = Self { id, cells: [cell(), cell(), cell(), cell()] };
        // The heading and the rule below it look like rows.
        (row.id.as_str() != "id" && !row.id.as_str().starts_with("--")).then_some(row)
    }
}

/// Splits a row at bars that are not escaped.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for c in line.chars() {
        let last = cells.last_mut().expect("because there is always one cell");
        match c {
            _ if is_escaped => {
                if c != '|' && c != '\\' {
                    last.push('\\');
                }
                last.push(c);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '|' => cells.push(String::new()),
            _ => last.push(c),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn escaped(cell: &str) -> String {
    let line = cell.split_whitespace().collect::<Vec<_>>().join(" ");
    // A mark in a title would end the table.
    line.replace('\\', "\\\\").replace('|', "\\|").replace("<!--", "<! --")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(id: &str, title: &str) -> BatchRow {
        let cells = ["open", "major", "3 d", title].map(str::to_owned);
        BatchRow { id: id.parse().unwrap(), cells }
    }

    #[test]
    fn what_a_person_wrote_around_the_table_stays() {
        let mut index = BatchIndex::new("2026-11-17");
        index.put(row("7", "a | b"));
        let edited = format!("Mine.\n{}Also mine.\n", index.text());
        let mut read = BatchIndex::parse(&edited);
        assert!(read.contains(&"7".parse().unwrap()));
        read.put(row("8", "c"));
        let text = read.text();
        assert!(text.starts_with("Mine.\n# Batch 2026-11-17\n"), "{text}");
        assert!(
            text.ends_with("Also mine.\n") && text.contains("| 7 | open | major | 3 d | a \\| b |"),
            "{text}"
        );
        assert!(text.contains("| 8 |"), "{text}");
    }

    #[test]
    fn a_text_without_marks_is_kept() {
        let mut index = BatchIndex::parse("notes of mine");
        index.put(row("7", "x"));
        assert!(index.text().starts_with("notes of mine\n<!-- pdca select"), "{}", index.text());
    }

    proptest! {
        #[test]
        fn an_index_is_read_as_it_was_written(titles in prop::collection::vec("[ -~]{0,30}", 1..8)) {
            let mut index = BatchIndex::new("b");
            for (number, title) in titles.iter().enumerate() {
                index.put(row(&number.to_string(), &escaped(title).replace('\\', "")));
            }
            prop_assert_eq!(BatchIndex::parse(&index.text()), index);
        }
    }
}
