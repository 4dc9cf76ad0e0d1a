//! Lists of bundle ids, as people write them into a brief.

use crate::BundleId;
use crate::lines::lines;

/// The ids at the start of a field, and what was odd about them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdList {
    /// The ids in the order they are named, each once.
    pub ids: Vec<BundleId>,
    /// What the author should look at: an id that is still to be decided, a word that looks like
    /// an id and is none. One line each.
    pub warnings: Vec<String>,
}

impl IdList {
    /// Adds another list, keeping each id once.
    pub fn extend(&mut self, other: IdList) {
        for id in other.ids {
            self.push(id);
        }
        self.warnings.extend(other.warnings);
    }

    fn push(&mut self, id: BundleId) {
        if !self.ids.contains(&id) {
            self.ids.push(id);
        }
    }
}

/// How many ids one list may name; what is beyond is not read, with a warning.
///
/// No real list comes near it. It bounds the work a hostile one can cause.
const MAX_IDS: usize = 1_000;

/// Reads the leading run of ids: `12, #15, issue_7, PROJ-9 (because …)`.
///
/// The run ends at the first word that has lower-case letters and no digit, so prose, `none` or
/// an em dash yield nothing. `NONE` and `N/A` end it too; `-` is passed over; `TBD` is passed
/// over with a warning. Trailing punctuation is not part of an id. The list goes on to the next
/// line only after a comma.
///
/// ```
/// let list = pdca_state::parse_id_list("12, #15, issue_7,\nPROJ-9 (because of 3)\n99");
/// let ids: Vec<&str> = list.ids.iter().map(AsRef::as_ref).collect();
/// assert_eq!(ids, ["12", "15", "7", "PROJ-9"]);
/// ```
pub fn parse_id_list(text: &str) -> IdList {
    let mut list = IdList::default();
    for line in lines(text) {
        let ended = words(line.text).any(|word| list.take(word).is_break());
        if ended || !line.text.trim_end().ends_with(',') {
            break;
        }
    }
    list
}

impl IdList {
    /// Takes one word; breaks where the run of ids is over.
    fn take(&mut self, word: &str) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};
        let word = word.trim_end_matches(['.', '/', '-']);
        let bare = word.strip_prefix("issue_").unwrap_or(word);
        if bare.is_empty() {
            return Continue(());
        }
        let is_prose = bare.contains(char::is_lowercase) && !bare.contains(char::is_numeric);
        if is_prose || matches!(bare, "NONE" | "N/A" | "NA") {
            return Break(());
        }
        if bare == "TBD" {
            self.warnings.push("TBD names no bundle: nothing waits for it".to_owned());
            return Continue(());
        }
        if self.ids.len() >= MAX_IDS {
            self.warnings.push(format!("more than {MAX_IDS} ids: the rest is not read"));
            return Break(());
        }
        match bare.parse() {
            Ok(id) => self.push(id),
            Err(error) => self.warnings.push(format!("{error}")),
        }
        if self.warnings.len() >= MAX_IDS {
            return Break(());
        }
        Continue(())
    }
}

/// The words of a line that could be ids: runs of letters, digits and `_./-`. The `#` some have
/// before them is no part of them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    line.split(move |c| !is_part(c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn ids(text: &str) -> String {
        let list = parse_id_list(text);
        let ids: Vec<&str> = list.ids.iter().map(AsRef::as_ref).collect();
        let mut shown = ids.join(" ");
        for warning in list.warnings {
            shown.push_str(" ! ");
            shown.push_str(&warning);
        }
        shown
    }

    #[test]
    fn every_spelling_of_an_id_names_the_same_bundle() {
        assert_snapshot!(ids("12, #15, issue_7, #issue_8 PROJ-9; AA"), @"12 15 7 8 PROJ-9 AA");
    }

    #[test]
    fn a_reason_after_the_ids_is_not_part_of_the_list() {
        assert_snapshot!(ids("12 (because of 15)"), @"12");
        assert_snapshot!(ids("12, 15 — both edit 99"), @"12 15");
        assert_snapshot!(ids("12, PR-order matters for 13"), @"12");
    }

    #[test]
    fn words_for_nothing_yield_nothing() {
        for text in [
            "",
            " ",
            "none",
            "None",
            "none — 315 is merged",
            "(none)",
            "—",
            "–",
            "-",
            "--",
            "NONE",
            "NONE — 315 is merged",
            "N/A",
            "N/A 12",
            "n/a",
            "nothing before 12",
        ] {
            assert_eq!(parse_id_list(text), IdList::default(), "{text:?}");
        }
    }

    #[test]
    fn an_id_still_to_be_decided_is_a_warning() {
        assert_snapshot!(ids("TBD"), @" ! TBD names no bundle: nothing waits for it");
        assert_snapshot!(ids("12, TBD"), @"12 ! TBD names no bundle: nothing waits for it");
    }

    #[test]
    fn trailing_punctuation_is_not_part_of_an_id() {
        assert_snapshot!(ids("12."), @"12");
        assert_snapshot!(ids("#12, 13; 14: 15-"), @"12 13 14 15");
    }

    #[test]
    fn a_list_goes_on_to_the_next_line_only_after_a_comma() {
        assert_snapshot!(ids("12,\n13,\r\n 14\n15"), @"12 13 14");
        assert_snapshot!(ids("12\n13"), @"12");
        assert_snapshot!(ids("\n13"), @"");
    }

    #[test]
    fn an_id_named_twice_is_listed_once() {
        assert_snapshot!(ids("12, #12, issue_12"), @"12");
    }

    #[test]
    fn a_word_that_no_bundle_can_be_called_is_a_warning() {
        assert_snapshot!(ids("a/7, 12"), @"12 ! `a/7` is not an id: the character '/' is not allowed");
    }

    #[test]
    fn a_hostile_list_is_cut_with_a_warning() {
        let numbers: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
        let text = numbers.join(", ");
        let list = parse_id_list(&text);
        assert_eq!((list.ids.len(), list.warnings.len()), (MAX_IDS, 1));
    }

    proptest! {
        #[test]
        fn any_text_gives_a_list(text in any::<String>()) {
            parse_id_list(&text);
        }

        #[test]
        fn ids_joined_by_commas_come_back(ids in prop::collection::vec("[1-9][0-9]{0,4}|[A-Z]{1,4}-[1-9]", 0..8)) {
            let mut expected: Vec<String> = Vec::new();
            for id in &ids {
                if !expected.contains(id) {
                    expected.push(id.clone());
                }
            }
            let list = parse_id_list(&ids.join(", "));
            let found: Vec<String> = list.ids.iter().map(ToString::to_string).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
