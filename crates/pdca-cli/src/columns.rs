//! Text in columns of a terminal: cut, filled, wrapped. A letter may take two columns or none.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns the number of columns.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts a text to so many columns, with an ellipsis.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    // One column is for the ellipsis.
    let mut used = 1;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > room {
            break;
        }
        kept.push(letter);
    }
    if room > 0 {
        kept.push('…');
    }
    kept
}

/// Cuts or fills a text to exactly so many columns.
pub(crate) fn fit(text: &str, room: usize) -> String {
    let mut text = cut(text, room);
    text.push_str(&" ".repeat(room.saturating_sub(width(&text))));
    text
}

/// Breaks a text into lines of at most so many columns, at blanks where there are any. The blanks that the text begins
/// with stay; further lines get `indent`.
pub(crate) fn wrap(text: &str, room: usize, indent: &str) -> Vec<String> {
    let words = text.trim_start_matches(' ');
    let lead = &text[..text.len() - words.len()];
    let mut lines = wrap_words(words, room.saturating_sub(lead.len()), indent);
    if let Some(first) = lines.first_mut().filter(|_| lead.len() + 8 <= room) {
        first.insert_str(0, lead);
    }
    lines
}

fn wrap_words(text: &str, room: usize, indent: &str) -> Vec<String> {
    // Fewer columns would make a line of each letter, and a letter of two columns may not fit at all.
    let room = room.max(8);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let mut word = word;
        let needed = width(word) + usize::from(used > 0);
        if used + needed > room && used > width(indent) {
            lines.push(indent.to_owned());
            used = width(indent);
        } else if used > 0 && lines.len() == 1 || used > width(indent) {
            if let Some(line) = lines.last_mut() {
                line.push(' ');
            }
            used += 1;
        }
        // A word that is wider than a line is broken anywhere.
        while used + width(word) > room {
            let fitting = word
                .char_indices()
                .scan(used, |columns, (at, letter)| {
                    *columns += letter.width().unwrap_or(0);
                    Some((at, *columns))
                })
                .find(|(_, columns)| *columns > room)
                .map_or(word.len(), |(at, _)| at);
            let (head, tail) = word.split_at(fitting);
            // Nothing fits even on a fresh line. Breaking again would never end.
            if head.is_empty() && used <= width(indent) {
                break;
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(head);
            }
            lines.push(indent.to_owned());
            used = width(indent);
            word = tail;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
        used += width(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_at_blanks_and_long_words_anywhere() {
        assert_eq!(wrap("one two three", 8, "  "), ["one two", "  three"]);
        assert_eq!(wrap("short", 20, ""), ["short"]);
        assert_eq!(wrap("abcdefghijkl", 8, ""), ["abcdefgh", "ijkl"]);
        assert_eq!(wrap("", 20, ""), [""]);
        assert_eq!(wrap("  one two three", 11, "    "), ["  one two", "    three"]);
    }

    #[test]
    fn a_text_is_cut_by_columns_and_not_by_letters() {
        assert_eq!(cut("測試測試", 5), "測試…");
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(cut("abc", 0), "");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_its_room_and_no_letter_is_lost(text in "[a-z測 ]{0,60}", room in 8usize..30) {
            let lines = wrap(&text, room, "  ");
            prop_assert!(lines.iter().all(|line| width(line) <= room), "{lines:?}");
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }

        #[test]
        fn a_cut_text_fits(text in any::<String>(), room in 0usize..20) {
            prop_assert!(width(&cut(&text, room)) <= room.max(width(&text).min(room)));
        }
    }
}
