//! Parser of the lists of bundle ids that people write into a brief.
//!
//! A list may name any legal id, and any sentence may follow. The text alone cannot tell them apart:
//! `setup-db` is a bundle or a word. So reading has two steps: [`parse_id_list`] collects the words in
//! the position of an id, and [`IdList::among`] decides with the set of existing bundles.

use std::ops::ControlFlow::{self, Break, Continue};

use crate::BundleId;
use crate::id::IdError;
use crate::lines::lines;

/// The words of a field that are in the position of an id, with warnings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdList {
    /// The parts of the list between commas, in order.
    slots: Vec<Slot>,
    /// Hints for the author, one line each: `TBD` in place of an id, too many ids.
    pub warnings: Vec<String>,
}

/// The ids of a list, separated from prose with the help of the existing bundles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The ids in order, without duplicates. A word alone between commas is an id even if no such
    /// bundle exists, so that a typing error is reported and not dropped.
    pub ids: Vec<BundleId>,
    /// Words like `setup-db` that begin a phrase and are no bundle: a typing error, or prose.
    pub doubtful: Vec<BundleId>,
    /// Hints for the author, one line each.
    pub warnings: Vec<String>,
}

/// The words between two commas, as far as they can be part of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of them yes or no")]
struct Slot {
    words: Vec<Word>,
    /// A dash, a colon or a comment was seen: following words are an explanation, unless they have
    /// the shape of an id.
    explained: bool,
    /// An explanation was seen, so the list ends after this slot.
    prose: bool,
    /// The slot starts in parentheses: prose, unless it names a bundle.
    aside: bool,
    /// The first slot of a list. Lists can be joined by [`IdList::extend`]; the end of one does not
    /// end the next.
    first: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    id: Result<BundleId, IdError>,
    shape: Shape,
}

/// The confidence, from the text alone, that a word is an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// It has a digit, or no lower-case letter, or is written `#x`, `issue_x` or in backticks.
    Id,
    /// Lower-case letters and no digit: the name of a bundle, or prose.
    Name,
}

/// The most words read of one list; the rest is skipped with a warning.
///
/// Far more than any real list has; bounds the work that a hostile one can cause.
const MAX_IDS: usize = 1_000;

/// Words for "none", unless a bundle has that name.
const NOTHING: [&str; 8] = ["nothing", "nil", "null", "no", "nobody", "empty", "unknown", "todo"];

/// Parses a list such as `12, #15, issue_7, setup-db (because …)`.
///
/// - Commas, semicolons, `&`, a `/` by itself and the word `and` separate.
/// - `none`, `N/A` and `NA`, in any case, end the list. `-` is skipped; `TBD` is skipped with a warning.
/// - A word in backticks, or after `#` or `issue_`, is always an id.
/// - Parentheses after an id hold a comment. Trailing punctuation is not part of an id.
/// - The list continues on the next line only after a comma.
///
/// ```
/// let list = pdca_state::parse_id_list("12, #15, setup-db,\nPROJ-9 (because of 3)\n99");
/// let there = ["12", "setup-db"];
/// let named = list.among(&|id| there.contains(&id.as_str()));
/// let ids: Vec<&str> = named.ids.iter().map(AsRef::as_ref).collect();
/// assert_eq!(ids, ["12", "15", "setup-db", "PROJ-9"]);
/// assert!(pdca_state::parse_id_list("none yet, this comes first").among(&|_| true).ids.is_empty());
/// ```
pub fn parse_id_list(text: &str) -> IdList {
    let mut list = IdList::default();
    for line in lines(text) {
        list.next_slot();
        if list.read_line(line.text).is_break() || !line.text.trim_end().ends_with(',') {
            break;
        }
    }
    list.slots.retain(|slot| !slot.words.is_empty());
    if let Some(slot) = list.slots.first_mut() {
        slot.first = true;
    }
    list
}

impl IdList {
    /// Appends another list.
    pub fn extend(&mut self, other: IdList) {
        self.slots.extend(other.slots);
        self.warnings.extend(other.warnings);
    }

    /// The ids that the text alone tells from prose: those with a digit, without lower-case letters, or
    /// marked by backticks, `#` or `issue_`. Other tools that read the format see the same ids.
    pub fn ids(&self) -> Vec<BundleId> {
        let mut named = Named::default();
        let mut over = false;
        for slot in &self.slots {
            over = over && !slot.first;
            if over {
                continue;
            }
            let is_id = |word: &&Word| word.shape == Shape::Id;
            for word in slot.words.iter().take_while(is_id) {
                named.take(word);
            }
            over = slot.prose || !slot.words.iter().all(|word| is_id(&word));
        }
        named.ids
    }

    /// Returns the ids of the list, given which ids are existing bundles.
    ///
    /// A word alone between commas is an id. Of several words, the first counts if it is a bundle, and
    /// all of them if all are; otherwise they are prose, and prose ends the list.
    pub fn among(&self, is_bundle: &dyn Fn(&BundleId) -> bool) -> Named {
        let mut named = Named { warnings: self.warnings.clone(), ..Named::default() };
        let is_there = |word: &Word| word.id.as_ref().is_ok_and(is_bundle);
        let mut prose = false;
        for Slot { words, first: is_first, prose: ends, aside, .. } in &self.slots {
            let alone = words.len() == 1;
            prose = prose && !is_first;
            if prose {
                if let [word] = words.as_slice()
                    && is_there(word)
                {
                    named.warnings.push(format!(
                        "`{}` stands behind a sentence and is not read: name all ids first",
                        word.text
                    ));
                }
                continue;
            }
            prose = *ends;
            let leading = words.iter().take_while(|word| word.shape == Shape::Id).count();
            for word in &words[..leading] {
                named.take(word);
            }
            let Some(first) = words.get(leading) else { continue };
            if words.iter().all(is_there) {
                for word in words {
                    named.take(word);
                }
            } else if alone && (*aside || NOTHING.contains(&first.text.to_lowercase().as_str())) {
                prose = true;
            } else if alone {
                named.take(first);
            } else {
                prose = true;
                if leading == 0 && is_there(first) {
                    named.take(first);
                } else if leading == 0
                    && first.text.contains(['-', '_', '.', '+'])
                    && let Ok(id) = &first.id
                {
                    named.doubtful.push(id.clone());
                }
            }
        }
        named
    }

    /// Adds the words of one line; breaks if the list ends on it.
    fn read_line(&mut self, line: &str) -> ControlFlow<()> {
        let mut rest = line;
        let (mut marked, mut aside) = (false, false);
        while let Some(first) = rest.chars().next() {
            let after = &rest[first.len_utf8()..];
            if first == '`'
                && let Some((quoted, behind)) = after.split_once('`')
                && is_word(quoted.trim_start_matches('#'))
            {
                self.slot().aside |= aside;
                self.take(quoted.trim_start_matches('#'), true, true)?;
                rest = behind;
                continue;
            }
            if is_part(first) {
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                self.slot().aside |= aside;
                self.take(&rest[..end], marked, false)?;
                (rest, marked) = (&rest[end..], false);
                continue;
            }
            marked = first == '#';
            match first {
                ',' | ';' | '&' => self.next_slot(),
                // After an id it opens a comment; at the start of a slot, the ids themselves are in it.
                '(' | '[' if !self.slot().words.is_empty() => match closed(rest) {
                    Some(behind) => {
                        self.slot().explained = true;
                        rest = behind;
                        continue;
                    }
                    None => return Break(()),
                },
                '(' | '[' => aside = true,
                ')' | ']' => aside = false,
                '—' | '–' | ':' => self.explain(),
                _ => {}
            }
            rest = after;
        }
        Continue(())
    }

    /// Adds one word; breaks if it ends the list.
    fn take(&mut self, word: &str, marked: bool, quoted: bool) -> ControlFlow<()> {
        let bare = word.strip_prefix("issue_");
        let marked = marked || bare.is_some();
        let bare = bare.unwrap_or(word);
        let bare = if quoted { bare } else { bare.trim_end_matches(['.', '/', '-']) };
        if word == "/" {
            self.next_slot();
            return Continue(());
        }
        if bare.is_empty() {
            self.explain();
            return Continue(());
        }
        if !marked {
            match bare.to_lowercase().as_str() {
                "none" | "n/a" | "na" => return Break(()),
                "and" => {
                    self.next_slot();
                    return Continue(());
                }
                "tbd" => {
                    self.warnings.push("TBD names no bundle: nothing waits for it".to_owned());
                    return self.bounded();
                }
                _ => {}
            }
        }
        let is_name =
            !marked && bare.contains(char::is_lowercase) && !bare.contains(char::is_numeric);
        let shape = if is_name { Shape::Name } else { Shape::Id };
        let slot = self.slot();
        if slot.prose || (shape == Shape::Name && slot.explained) {
            slot.prose = true;
            return Continue(());
        }
        let word = Word { text: bare.to_owned(), id: bare.parse(), shape };
        self.slot().words.push(word);
        self.bounded()
    }

    /// Breaks with a warning if the list has more than [`MAX_IDS`] words.
    fn bounded(&mut self) -> ControlFlow<()> {
        let words: usize = self.slots.iter().map(|slot| slot.words.len()).sum();
        if words < MAX_IDS && self.warnings.len() < MAX_IDS {
            return Continue(());
        }
        self.warnings.push(format!("more than {MAX_IDS} ids: the rest is not read"));
        Break(())
    }

    fn next_slot(&mut self) {
        if self.slots.last().is_none_or(|slot| !slot.words.is_empty()) {
            self.slots.push(Slot::default());
        }
    }

    fn slot(&mut self) -> &mut Slot {
        if self.slots.is_empty() {
            self.slots.push(Slot::default());
        }
        self.slots.last_mut().expect("one was just made")
    }

    /// Marks the rest of the slot as an explanation of the ids before it.
    fn explain(&mut self) {
        let slot = self.slot();
        slot.explained = slot.explained || !slot.words.is_empty();
    }
}

impl Named {
    fn take(&mut self, word: &Word) {
        match &word.id {
            Ok(id) if self.ids.contains(id) => {}
            Ok(id) => self.ids.push(id.clone()),
            Err(error) => self.warnings.push(error.to_string()),
        }
    }
}

/// Returns true for characters of a word that could be an id. A leading `#` is not part of the word.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '+')
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_part)
}

/// The rest after the parenthesis that the text starts with; `None` if it is not closed.
fn closed(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(&text[at + c.len_utf8()..]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
