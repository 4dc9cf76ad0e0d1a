//! Parser of `check-review.md`: verdicts over the check matrix, and items for a person to decide.
//!
//! A review is advice; no verdict here blocks. Each NEEDS-HUMAN and each FAIL becomes a box in §6 of
//! the summary, even if the cells of its row are malformed. The reviewer is told to answer NEEDS-HUMAN
//! for the validation row every time, so that row is not a finding: it becomes a box too, but is
//! marked as the *standing* item and counted separately.

use std::collections::HashSet;

use crate::gates::Element;
use crate::lines::{folded, indent, lines, without_bom};

const NEEDS_HUMAN: &str = "needs-human";

/// A parsed review of the reviewer or of an adviser.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Review {
    /// The rows of all tables in order, without headers and rulers.
    pub rows: Vec<ReviewRow>,
    /// The items for a person to decide, `Item — Basis`, in order and without duplicates.
    pub items: Vec<String>,
    /// The index in [`Self::items`] of the standing validation row.
    standing: Option<usize>,
    /// Which of [`Self::items`] are FAIL rows of the correctness chain or the conformance stack, sorted.
    failed: Vec<usize>,
}

/// One row of a review's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRow {
    /// The subject of the verdict.
    pub item: String,
    /// The verdict as written.
    pub verdict: String,
    /// The reason for the verdict.
    pub basis: String,
    /// The line number of the row, from 1.
    pub line: usize,
}

/// The reason there is no review to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingReview {
    /// The reviewer was not run, or was interrupted.
    NotRun,
    /// The reviewer ran and failed.
    Failed,
    /// The reviewer wrote an empty file.
    Empty,
}

impl MissingReview {
    /// The text of the box in §6 that stands for a missing review.
    pub fn item(self) -> &'static str {
        match self {
            MissingReview::NotRun => "no review exists: the reviewer was not run to its end",
            MissingReview::Failed => "no review exists: the reviewer ran and failed",
            MissingReview::Empty => "no review exists: the reviewer left an empty file",
        }
    }
}

impl Review {
    /// Parses tables and bullets. Never fails: a text without verdicts is a review without items.
    /// Takes time linear in the length of the text.
    pub fn parse(text: &str) -> Self {
        let text = without_bom(text);
        let mut parser = ReviewParser::default();
        let mut all = lines(text).peekable();
        while let Some(line) = all.next() {
            let trimmed = line.text.trim();
            if trimmed.starts_with('|') || is_bare_row(trimmed) {
                parser.table_line(trimmed, line.number);
                continue;
            }
            parser.end_table();
            if let Some(first) = bullet(trimmed) {
                let depth = line.indent();
                let mut item = first.to_owned();
                while let Some(next) = all.next_if(|next| goes_on(next.text, depth)) {
                    item.push(' ');
                    item.push_str(next.text.trim());
                }
                parser.add(&item, None);
            }
        }
        parser.end_table();
        parser.review()
    }

    /// Returns true if the text is empty or only white space.
    pub fn is_blank(text: &str) -> bool {
        text.trim().is_empty()
    }

    /// The item of the standing validation row.
    ///
    /// A row counts as standing only if it is certain: it has the name of the validation element, in
    /// the table of the matrix, and there is only one. In any doubt it is a finding. The text always
    /// starts with the title of the element, however the review spells it.
    pub fn standing(&self) -> Option<&str> {
        self.standing.map(|index| self.items[index].as_str())
    }

    /// Returns true if any verdict could be read, in a row or as an item.
    pub fn has_verdict(&self) -> bool {
        !self.items.is_empty() || self.rows.iter().any(|row| is_verdict(&row.verdict))
    }

    /// Returns true if the review asks a person about validation, as the standing item or as a finding.
    pub fn raises_validation(&self) -> bool {
        let asks = |row: &ReviewRow| is_validation(&row.item) && needs_human(&row.verdict);
        self.rows.iter().any(asks) || self.items.iter().any(|item| is_standing_text(item))
    }

    /// Returns the items that fail an element which the builder answers for: FAIL rows of C1 to T5.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.failed.iter().map(|index| self.items[*index].as_str())
    }

    /// Returns whether any finding is for a person: one that is not among [`Self::failures`].
    pub fn asks_a_person(&self) -> bool {
        self.findings().count() > self.failed.len()
    }

    /// Iterates over the items without the standing one.
    pub fn findings(&self) -> impl Iterator<Item = &str> {
        self.items
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != self.standing)
            .map(|(_, item)| item.as_str())
    }
}

/// Finds the dependencies that a builder declared in its notes, on lines
/// `NEEDS-HUMAN external dependency: …`, with or without a list marker.
///
/// Returns each once, as `external dependency: …`.
pub fn declared_dependencies(build_notes: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for line in lines(build_notes) {
        let text = line.text.trim().trim_start_matches(['-', '*', '+']);
        let Some(rest) = without_marker(text.trim_start()) else {
            continue;
        };
        let is_dependency =
            rest.get(..EXTERNAL.len()).is_some_and(|start| start.eq_ignore_ascii_case(EXTERNAL));
        let item = folded(rest);
        if is_dependency && seen.insert(item.to_lowercase()) {
            found.push(item);
        }
    }
    found
}

const EXTERNAL: &str = "external dependency";

/// Returns true if a text is the standing validation question in the form that §6 shows.
pub(crate) fn is_standing_text(item: &str) -> bool {
    let item = item.strip_prefix("V ").unwrap_or(item);
    item.strip_prefix(Element::V.title())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(" — "))
}

/// The item of a bullet `- NEEDS-HUMAN — …` or `- FAIL — …`, plain or bold.
fn bullet(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("- ")?.trim_start();
    let rest = rest.strip_prefix("**").unwrap_or(rest);
    if rest.starts_with("NEEDS-HUMAN") {
        return without_marker(rest);
    }
    // Require a dash or colon after FAIL, so that a sentence that starts with the word is not a verdict.
    let after = rest.strip_prefix("FAIL")?.trim_start_matches('*').trim_start();
    after.starts_with(['—', '–', ':']).then_some(rest.trim_end())
}

/// The text after `NEEDS-HUMAN` and its dash or colon.
fn without_marker(text: &str) -> Option<&str> {
    let start = text.get(..NEEDS_HUMAN.len())?;
    let rest = &text[NEEDS_HUMAN.len()..];
    start.eq_ignore_ascii_case(NEEDS_HUMAN).then(|| {
        let rest = rest.strip_prefix(":**").unwrap_or(rest);
        let rest = rest.strip_prefix("**").unwrap_or(rest);
        rest.trim_start_matches([' ', '\t', '—', '–', ':', '-']).trim_end()
    })
}

/// Returns true if a line continues the bullet before it, which is indented by `depth`.
fn goes_on(line: &str, depth: usize) -> bool {
    let text = line.trim();
    let is_item = ["- ", "* ", "+ "].iter().any(|marker| text.starts_with(marker))
        || text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ")
            && text.starts_with(|c: char| c.is_ascii_digit());
    !text.is_empty()
        && indent(line) > depth
        && !is_item
        && !text.starts_with(['#', '|'])
        && !text.starts_with("```")
        && !text.starts_with("~~~")
}

#[derive(Debug, Default)]
struct ReviewParser {
    review: Review,
    seen: HashSet<String>,
    columns: Option<Columns>,
    in_table: bool,
    matrix_rows: usize,
    /// Items of the current table that may be the standing row, if the table turns out to be the
    /// matrix.
    candidates: Vec<StandingCandidate>,
    standing: Vec<StandingCandidate>,
}

/// An item that may be the standing row: its index in `items`, and its basis.
#[derive(Debug)]
struct StandingCandidate {
    index: usize,
    basis: String,
}

/// The layout of a table.
#[derive(Debug, Clone, Copy)]
struct Columns {
    item: usize,
    verdict: usize,
    /// The number of columns; unknown without a header.
    count: Option<usize>,
}

impl ReviewParser {
    fn table_line(&mut self, line: &str, number: usize) {
        let cells = cells(line);
        let is_first = !self.in_table;
        self.in_table = true;
        if is_first && let Some(columns) = header(&cells) {
            self.columns = Some(columns);
            return;
        }
        if is_ruler(&cells) {
            return;
        }
        let Some(columns) = self.columns.or_else(|| headless(&cells)) else {
            return;
        };
        let row = row_of(&cells, columns, number);
        self.matrix_rows += usize::from(is_matrix_item(&row.item));
        if needs_human(&row.verdict) {
            let text = match (row.item.is_empty(), row.basis.is_empty()) {
                (_, true) => row.item.clone(),
                (true, false) => row.basis.clone(),
                (false, false) => format!("{} — {}", row.item, row.basis),
            };
            self.add(&text, is_validation(&row.item).then_some(row.basis.as_str()));
        } else if fails(&row.verdict) {
            let text = match (row.item.as_str(), row.basis.as_str()) {
                (item, "") => format!("{item} FAIL, says the review"),
                (item, basis) => format!("{item} FAIL — {basis}"),
            };
            let index = self.review.items.len();
            self.add(&text, None);
            let is_new = self.review.items.len() > index;
            // A FAIL about an element is the builder's to mend, and may go back to it without a
            // person. Everything else is a question to a person.
            if is_new && is_matrix_item(&row.item) && !is_validation(&row.item) {
                self.review.failed.push(index);
            }
        }
        self.review.rows.push(row);
    }

    fn end_table(&mut self) {
        // Only in the check matrix, which is told by at least two of its elements. In any other
        // table such a row is a finding, and a standing item would hide it.
        if self.matrix_rows >= 2 {
            self.standing.append(&mut self.candidates);
        }
        self.in_table = false;
        self.columns = None;
        self.matrix_rows = 0;
        self.candidates.clear();
    }

    /// Adds an item; `question` is its basis if it may be the standing row.
    fn add(&mut self, text: &str, question: Option<&str>) {
        let text = folded(text);
        if text.is_empty() || !self.seen.insert(text.to_lowercase()) {
            return;
        }
        if let Some(basis) = question {
            let index = self.review.items.len();
            self.candidates.push(StandingCandidate { index, basis: folded(basis) });
        }
        self.review.items.push(text);
    }

    fn review(mut self) -> Review {
        // If two rows look standing, at least one of them is a finding, so both count as findings.
        if let [only] = self.standing.as_slice() {
            self.review.standing = Some(only.index);
            let item = &mut self.review.items[only.index];
            if !is_standing_text(item) {
                let title = Element::V.title();
                *item = match only.basis.as_str() {
                    "" => title.to_owned(),
                    basis => format!("{title} — {basis}"),
                };
            }
        }
        self.review
    }
}

/// Makes a row of cells.
///
/// An unescaped pipe cuts a cell in two, and some reviewers write the verdict first. So if the verdict
/// column has no verdict, or a pass in a row that was cut, a NEEDS-HUMAN or FAIL in any cell counts.
fn row_of(cells: &[String], columns: Columns, line: usize) -> ReviewRow {
    let cell = |index: usize| cells.get(index).map_or("", String::as_str);
    let in_place = cell(columns.verdict);
    let is_cut = columns.count.is_none_or(|count| cells.len() > count)
        || in_place.matches('`').count() % 2 == 1;
    let is_alone = |cell: &String| asks(cell) && plain(cell).len() <= NEEDS_HUMAN.len();
    let at = if needs_human(in_place) || fails(in_place) {
        (columns.verdict == 0).then_some(0)
    } else if !is_verdict(in_place) {
        cells.iter().position(|cell| asks(cell))
    } else if is_cut {
        cells.iter().position(is_alone)
    } else {
        None
    };
    let Some(at) = at else {
        return ReviewRow {
            item: cell(columns.item).to_owned(),
            verdict: in_place.to_owned(),
            basis: cell(columns.verdict + 1).to_owned(),
            line,
        };
    };
    let joined = |cells: &[String]| cells.join("|");
    let (item, basis) = match at {
        0 => (cell(1).to_owned(), joined(cells.get(2..).unwrap_or_default())),
        at => (joined(&cells[..at]), joined(&cells[at + 1..])),
    };
    ReviewRow { item, verdict: cells[at].clone(), basis, line }
}

/// Returns true if a cell starts with NEEDS-HUMAN or is a FAIL.
fn asks(cell: &str) -> bool {
    let text = plain(cell).trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    text.starts_with(NEEDS_HUMAN) || matches!(text.as_str(), "fail" | "failed")
}

/// Returns true for a table row without a leading pipe, which Markdown allows.
fn is_bare_row(line: &str) -> bool {
    line.contains('|') && {
        let cells = cells(line);
        cells.len() > 1
            && cells.iter().any(|cell| asks(cell) || plain(cell).eq_ignore_ascii_case("verdict"))
    }
}

/// Splits a row into trimmed cells; `\|` is a pipe inside a cell.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim_start_matches('|');
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in inner.chars() {
        let last = cells.last_mut().expect("it starts with one cell");
        if c == '|' && !escaped {
            cells.push(String::new());
        } else {
            if c == '|' {
                last.pop();
            }
            last.push(c);
        }
        escaped = c == '\\';
    }
    while cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    for cell in &mut cells {
        *cell = cell.trim().to_owned();
    }
    cells
}

/// The layout that a header `| Item | Verdict | Basis |` declares.
fn header(cells: &[String]) -> Option<Columns> {
    let find = |name: &str| cells.iter().position(|cell| plain(cell).eq_ignore_ascii_case(name));
    let (verdict, item) = (find("verdict")?, find("item").unwrap_or(0));
    Some(Columns { item, verdict, count: Some(cells.len()) })
}

/// The layout of a row in a table without a header: the verdict column is the first with a verdict.
fn headless(cells: &[String]) -> Option<Columns> {
    let is_verdict = |cell: &String| asks(cell) || plain(cell).eq_ignore_ascii_case("pass");
    let verdict = cells.iter().skip(1).position(is_verdict).map(|at| at + 1);
    let verdict = verdict.or_else(|| cells.first().filter(|cell| asks(cell)).map(|_| 0))?;
    Some(Columns { item: 0, verdict, count: None })
}

fn is_ruler(cells: &[String]) -> bool {
    cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' ')))
}

/// Strips the marks of bold and code from a cell.
fn plain(cell: &str) -> &str {
    cell.trim_matches(['*', '_', '`', ' '])
}

fn needs_human(verdict: &str) -> bool {
    verdict.to_ascii_lowercase().contains(NEEDS_HUMAN)
}

/// Returns true if the first word of the cell that is a verdict means failure.
fn fails(verdict: &str) -> bool {
    let words = verdict.split(|c: char| !c.is_alphanumeric());
    let mut known = words.filter_map(|word| match word.to_ascii_lowercase().as_str() {
        "pass" | "passed" | "passes" => Some(false),
        "fail" | "failed" | "fails" | "failing" => Some(true),
        _ => None,
    });
    // The first verdict counts: `PASS (was failing before)` is a pass.
    known.next().unwrap_or(false)
}

/// Returns true if a cell contains one of the three verdicts, decorated or not.
fn is_verdict(cell: &str) -> bool {
    let mut words = cell.split(|c: char| !c.is_alphanumeric());
    let is_known = |word: &str| {
        ["pass", "passed", "fail", "failed"].iter().any(|known| word.eq_ignore_ascii_case(known))
    };
    needs_human(cell) || words.any(is_known)
}

/// Returns true if an item is an element of the matrix, by its title or by a leading short name.
fn is_matrix_item(item: &str) -> bool {
    let item = plain(item);
    let first = item.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    is_validation(item)
        || Element::ALL.iter().any(|element| {
            element.title().eq_ignore_ascii_case(item)
                || *element != Element::V && element.as_str().eq_ignore_ascii_case(first)
        })
}

/// Returns true for `V`, `Validation` or both, with or without `fitness for purpose`.
fn is_validation(item: &str) -> bool {
    let lower = item.to_lowercase();
    let mut words =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    let is_named = words.next_if_eq(&"v").is_some();
    let is_named = words.next_if_eq(&"validation").is_some() || is_named;
    let rest: Vec<&str> = words.take(4).collect();
    is_named && matches!(rest[..], [] | ["fitness", "to" | "for", "purpose"])
}

#[cfg(test)]
mod tests;
