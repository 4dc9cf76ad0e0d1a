//! Lists of bundle ids, as people write them into a brief.
//!
//! Any legal id may be named, and any sentence may follow. Which is which cannot be told from the text
//! alone: `setup-db` is a bundle or a word. So reading has two steps. [`parse_id_list`] finds the words
//! that stand where an id would stand; [`IdList::among`] is asked with the bundles that there are.

use std::ops::ControlFlow::{self, Break, Continue};

use crate::BundleId;
use crate::id::IdError;
use crate::lines::lines;

/// The words at the start of a field that stand where an id would, and what was odd about them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdList {
    /// The places of the list in order: what stands between two commas.
    slots: Vec<Slot>,
    /// What the author should look at: an id that is still to be decided, a word that looks like
    /// an id and is none. One line each.
    pub warnings: Vec<String>,
}

/// The ids of a list, told from prose by the bundles that there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The ids in the order they are named, each once. A word that stands alone in its place is one
    /// whether or not there is such a bundle, so that a slip is found and not dropped.
    pub ids: Vec<BundleId>,
    /// Words with the shape of an id that begin a phrase and are no bundle: a slip, or prose.
    pub doubtful: Vec<BundleId>,
    /// What the author should look at, one line each.
    pub warnings: Vec<String>,
}

/// What stands between two commas, as far as it can be a part of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of them yes or no")]
struct Slot {
    words: Vec<Word>,
    /// A dash or a comment came: what follows is an explanation, unless it has the shape of an id.
    explained: bool,
    /// Such an explanation followed, so what comes after this place is not part of the list.
    prose: bool,
    /// It stands in parentheses of its own: prose, unless it is a bundle.
    aside: bool,
    /// It is the first of a list of its own: what ended the list before it does not end this one.
    first: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    id: Result<BundleId, IdError>,
    shape: Shape,
}

/// How sure the text alone is that a word is an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// It has a digit, or no lower-case letter, or is written `#x`, `issue_x` or in backticks.
    Id,
    /// It could be the name of a bundle, or prose.
    Name,
}

/// How many words one list may have; what is beyond is not read, with a warning.
///
/// No real list comes near it. It bounds the work a hostile one can cause.
const MAX_IDS: usize = 1_000;

/// Words that mean that there is none, unless a bundle of the name is there.
const NOTHING: [&str; 8] = ["nothing", "nil", "null", "no", "nobody", "empty", "unknown", "todo"];

/// Reads the words in list position: `12, #15, issue_7, setup-db (because …)`.
///
/// Commas, semicolons, `&`, a `/` by itself and the word `and` separate. `none`, `N/A` and `NA` end the list, in any
/// case; `-` is passed over; `TBD` is passed over with a warning. A word in backticks, or after `#` or
/// `issue_`, is an id whatever it is. Parentheses after an id hold a comment. Trailing punctuation is
/// not part of an id. The list goes on to the next line only after a comma.
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
    /// Adds another list.
    pub fn extend(&mut self, other: IdList) {
        self.slots.extend(other.slots);
        self.warnings.extend(other.warnings);
    }

    /// The ids that the text alone tells from prose: those with a digit or without lower-case letters,
    /// and those that are marked. This is how other readers of the format see the list.
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

    /// The ids of the list, where `is_bundle` says which bundles there are.
    ///
    /// A word that stands alone between commas is an id. Where more words follow, the first counts if
    /// it is a bundle, and all of them if all are; otherwise it is prose, and prose ends the list.
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

    /// Takes the words of one line; breaks where the list is over.
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
                // Behind an id it is a comment; at the start of a place the list itself is in it.
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

    /// Takes one word; breaks where the list is over.
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

    /// Breaks, with a warning, where there is more than anybody can mean.
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

    /// A dash came: what follows in this place explains what is before it.
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

/// The characters of a word that could be an id. The `#` some have before them is no part of them.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '+')
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_part)
}

/// What follows the parenthesis that a text starts with; `None` where it is not closed.
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
