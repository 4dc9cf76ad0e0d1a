//! Comparison of texts without their numbers and paths.

/// The placeholder for a number, an id, a date or a digest.
const NUMBER: &str = "n";
/// The placeholder for a path or a file name.
const PATH: &str = "path";

/// Reduces a text to the words that are the same from cycle to cycle.
///
/// The result is in lower case and without punctuation. Words with a digit (numbers, ids, dates, digests) become one
/// placeholder, and so do paths. The names of the check matrix (`C4`, `T3`) stay. Idempotent.
///
/// ```
/// use pdca_act::normalise;
///
/// let one = normalise("T3 gate leaked `/tmp/x7/out.md` of issue_500!");
/// assert_eq!(one, "t3 gate leaked path of n");
/// assert_eq!(one, normalise("t3 gate leaked /var/tmp/other.md of issue_12"));
/// ```
pub fn normalise(text: &str) -> String {
    let text = text.to_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut last = "";
    for raw in text.split_whitespace() {
        let word = raw.trim_matches(|c: char| !c.is_alphanumeric());
        if word.is_empty() {
            continue;
        }
        if let Some(folded) = folded_word(word) {
            if folded != last {
                push(&mut out, folded);
            }
            last = folded;
            continue;
        }
        for part in word.split(|c: char| !c.is_alphabetic()) {
            if part.is_empty() {
                continue;
            }
            // A part that spells a placeholder is treated as one, so that the function stays idempotent.
            let folded = [NUMBER, PATH].into_iter().find(|mark| *mark == part);
            if folded.is_none() || folded != Some(last) {
                push(&mut out, part);
            }
            last = folded.unwrap_or("");
        }
    }
    out
}

fn push(out: &mut String, word: &str) {
    if !out.is_empty() {
        out.push(' ');
    }
    out.push_str(word);
}

/// Returns the replacement of a whole word: itself for an element, `None` for prose.
fn folded_word(word: &str) -> Option<&'static str> {
    const ELEMENTS: [&str; 10] = ["c1", "c2", "c3", "c4", "c5", "t1", "t2", "t3", "t4", "t5"];
    if let Some(element) = ELEMENTS.into_iter().find(|name| *name == word) {
        return Some(element);
    }
    if is_path(word) {
        return Some(PATH);
    }
    word.contains(char::is_numeric).then_some(NUMBER)
}

/// Recognizes `src/a.rs:12`, `a_b/c`, `docs/guide/x` and `flow.rs`, but not `and/or` or `e.g`.
fn is_path(word: &str) -> bool {
    // Without a line number.
    let word = word.split(':').next().unwrap_or(word);
    if word.contains('/') {
        let is_prose = |c: char| c.is_alphabetic() || c == '/' || c == '-';
        return !word.chars().all(is_prose) || word.matches('/').count() > 1;
    }
    word.rsplit_once('.').is_some_and(|(stem, extension)| {
        stem.len() > 1 && !stem.ends_with('.') && is_extension(extension)
    })
}

fn is_extension(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the parts of a text that may recur alone: between dashes, semicolons and sentences.
pub(crate) fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.split(" — ")
        .flat_map(|part| part.split("; "))
        .flat_map(|part| part.split(". "))
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// Returns the number of words of a normalized text that are no placeholders.
pub(crate) fn weight(normalised: &str) -> usize {
    let says = |word: &&str| *word != NUMBER && *word != PATH;
    normalised.split(' ').filter(|word| !word.is_empty()).filter(says).count()
}

/// Returns true if the words of `part` occur together in `whole`; both are normalized.
pub(crate) fn contains_words(whole: &str, part: &str) -> bool {
    if part.is_empty() {
        return false;
    }
    whole.match_indices(part).any(|(at, _)| {
        let end = at + part.len();
        (at == 0 || whole[..at].ends_with(' '))
            && (end == whole.len() || whole[end..].starts_with(' '))
    })
}

/// Joins a text into one line, with single spaces and without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns the bullets of a section, each on one line, without those that only say that there is none.
pub(crate) fn bullets(section: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for line in section.lines() {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("- ") {
            let text = ["[ ]", "[x]", "[X]"]
                .into_iter()
                .find_map(|mark| rest.trim_start().strip_prefix(mark))
                .unwrap_or(rest);
            found.push(one_line(text));
            open = true;
        } else if trimmed.is_empty() || !line.starts_with([' ', '\t']) {
            open = false;
        } else if let Some(last) = found.last_mut().filter(|_| open) {
            last.push(' ');
            last.push_str(&one_line(trimmed));
        }
    }
    let says_nothing = |text: &String| {
        text.is_empty() || (text.starts_with('(') && text.ends_with(')')) || text == "—"
    };
    found.retain(|text| !says_nothing(text));
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_ids_and_paths_are_folded_and_the_matrix_stays() {
        for (text, expected) in [
            ("C4 failed on 2026-11-16", "c4 failed on n"),
            ("see `src/a.rs:12`, docs/guide/x.", "see path"),
            ("issue_36, PROJ-12 and #7", "n and n"),
            ("accept and/or reject (e.g. this)", "accept and or reject e g this"),
            ("red→green", "red green"),
            ("flow.rs and main.py", "path and path"),
            ("Path path PATH", "path"),
            ("  —  ", ""),
        ] {
            assert_eq!(normalise(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_contained_whole() {
        assert!(contains_words("the t3 gate is red", "gate is"));
        assert!(contains_words("gate", "gate"));
        assert!(!contains_words("the gates are red", "gate"));
        assert!(!contains_words("anything", ""));
        assert!(contains_words("aggregate gate", "gate"), "the second one is whole");
    }

    #[test]
    fn bullets_go_on_over_indented_lines_and_empty_ones_are_left_out() {
        let section = "\n- (empty is the common case)\n- one\n  goes on\n\n  not here\n- [x] two\nprose\n- \n";
        assert_eq!(bullets(section), ["one goes on", "two"]);
    }

    proptest! {
        #[test]
        fn to_normalise_twice_changes_nothing(text in any::<String>()) {
            let once = normalise(&text);
            prop_assert_eq!(normalise(&once), once);
        }

        #[test]
        fn to_normalise_words_twice_changes_nothing(text in "([a-zA-Z0-9./:_#n-]{0,8}[ \u{130}\u{3a3}]){0,12}") {
            let once = normalise(&text);
            prop_assert_eq!(normalise(&once), once);
        }

        #[test]
        fn one_line_is_one_line(text in any::<String>()) {
            let line = one_line(&text);
            prop_assert!(!line.contains(|c: char| c.is_control()));
            prop_assert_eq!(line.trim(), &line);
        }
    }
}
