//! Citations in reviews and notes: `path:line`, and the text that is quoted right behind one.
//!
//! A citation is `src/a.rs:12`, `src/a.rs:12-20` or `src/a.rs:12:5`, in backticks or bare. A code span directly behind it is
//! its quotation: `` `src/a.rs:12` `let x = 1;` ``. Reading never fails; a [`CitedTree`] decides whether a citation holds.
//!
//! A citation that does not hold becomes an item of §6 of the summary, and no red gate: gates run before the review, and a
//! wrong line number is no fault of the change. It is not sent back to the reviewer either, which would cost a call for a
//! typing error. Whether an existing line supports the sentence beside it remains a question for people.

use crate::lines::{folded, lines};

/// A place in a file that a text names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Citation {
    /// The path as written, without `./`.
    pub path: String,
    /// The first line, from 1.
    pub first: usize,
    /// The last line.
    pub last: usize,
    /// The text that is said to stand there.
    pub quote: Option<String>,
    /// The line of the text that has the citation, from 1.
    pub line: usize,
}

/// The files that citations are about.
pub trait CitedTree {
    /// Returns the contents of every file that a path may mean, the likeliest first; none if there is no such file.
    fn files(&self, path: &str) -> Vec<String>;
}

/// Why a citation does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CitationFlaw {
    /// There is no such file.
    NoFile,
    /// The file ends before the line.
    NoLine {
        /// The number of its lines.
        lines: usize,
    },
    /// Something else stands there.
    OtherText {
        /// The text of the first line.
        says: String,
        /// The line that has the quoted text, if any.
        elsewhere: Option<usize>,
    },
}

/// Endings of host names, which are followed by a port.
const HOSTS: [&str; 8] = ["com", "org", "net", "io", "dev", "local", "test", "invalid"];

/// Finds the citations of a text, each once.
///
/// ```
/// use pdca_state::citations;
///
/// let found = citations("C3: `src/a.rs:7` `let x = 1;`, see also docs/b.md:2-4; at 12:30 on localhost:80\n");
/// assert_eq!(found.len(), 2);
/// assert_eq!(found[0].quote.as_deref(), Some("let x = 1;"));
/// assert_eq!((found[1].first, found[1].last), (2, 4));
/// ```
pub fn citations(text: &str) -> Vec<Citation> {
    let mut found: Vec<Citation> = Vec::new();
    for line in lines(text) {
        let mut from = 0;
        while let Some((mut citation, end)) = next(line.text, from) {
            citation.line = line.number;
            citation.quote = quoted(&line.text[end..]);
            from = end;
            let is_same = |other: &Citation| {
                Citation { line: 0, ..other.clone() } == Citation { line: 0, ..citation.clone() }
            };
            if !found.iter().any(is_same) {
                found.push(citation);
            }
        }
    }
    found
}

/// Finds the next citation from a byte on, and the byte behind it.
fn next(text: &str, from: usize) -> Option<(Citation, usize)> {
    let mut at = from;
    loop {
        let colon = at + text[at..].find(':')?;
        at = colon + 1;
        let is_path = |c: char| c.is_alphanumeric() || "_-./+@".contains(c);
        let begin = text[from..colon].rfind(|c: char| !is_path(c)).map_or(from, |before| {
            from + before + text[from + before..].chars().next().map_or(1, char::len_utf8)
        });
        let path = text[begin..colon].trim_start_matches("./");
        let (first, behind) = number(&text[at..]);
        let Some(first) = first.filter(|first| *first > 0) else { continue };
        if !is_file_name(path) || text[..begin].ends_with("//") {
            continue;
        }
        let mut end = at + behind;
        let mut last = first;
        if let Some(rest) = text[end..].strip_prefix('-').or_else(|| text[end..].strip_prefix('–'))
        {
            let dash = text[end..].len() - rest.len();
            let rest = rest.strip_prefix('L').unwrap_or(rest);
            if let (Some(to), behind) = number(rest)
                && to >= first
            {
                last = to;
                end = end + dash + (text[end + dash..].len() - rest.len()) + behind;
            }
        } else if let Some(rest) = text[end..].strip_prefix(':')
            && let (Some(_), behind) = number(rest)
        {
            end += 1 + behind;
        }
        // `a.rs:12abc` is no line.
        if text[end..].starts_with(|c: char| c.is_alphanumeric()) {
            continue;
        }
        return Some((Citation { path: path.to_owned(), first, last, quote: None, line: 0 }, end));
    }
}

/// Reads a number and the bytes that it takes.
fn number(text: &str) -> (Option<usize>, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (text[..digits].parse().ok().filter(|_| digits < 9), digits)
}

/// Whether a word is a file rather than a host, a time or an image: its last part has an ending.
fn is_file_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let is_ending = (1..=10).contains(&ending.len())
        && ending.starts_with(|c: char| c.is_ascii_alphabetic())
        && ending.chars().all(|c| c.is_ascii_alphanumeric());
    let is_host = !path.contains('/') && HOSTS.contains(&ending);
    is_ending && !is_host && !path.starts_with('/') && (!stem.is_empty() || path.contains('/'))
}

/// Reads the code span right behind a citation: after its own closing backtick, spaces, and `:`, `,`, `(` or a word such as "says".
fn quoted(behind: &str) -> Option<String> {
    let rest = behind.strip_prefix('`').unwrap_or(behind);
    let rest = rest.trim_start_matches([' ', ':', '(', '—', '–']);
    let rest = rest.strip_prefix("says ").or_else(|| rest.strip_prefix("reads ")).unwrap_or(rest);
    let rest = rest.strip_prefix('`')?;
    if rest.starts_with('`') {
        return None;
    }
    let quote = rest[..rest.find('`')?].replace("\\|", "|");
    // Another citation is no quotation, and a word of one letter proves nothing.
    let is_citation = next(&quote, 0).is_some();
    Some(folded(&quote)).filter(|quote| quote.chars().count() > 1 && !is_citation)
}

impl Citation {
    /// Returns why the citation does not hold; `None` if it does.
    pub fn flaw(&self, tree: &dyn CitedTree) -> Option<CitationFlaw> {
        let mut first = None;
        for text in tree.files(&self.path) {
            // One file that it holds for is enough: a bare name may mean several.
            let flaw = self.flaw_in(&text)?;
            first.get_or_insert(flaw);
        }
        Some(first.unwrap_or(CitationFlaw::NoFile))
    }

    fn flaw_in(&self, text: &str) -> Option<CitationFlaw> {
        let all: Vec<String> = text.lines().map(folded).collect();
        if self.last > all.len() {
            return Some(CitationFlaw::NoLine { lines: all.len() });
        }
        let quote = self.quote.as_deref()?;
        // A quotation may run over lines, and `…` stands for what was left out.
        let parts: Vec<&str> =
            quote.split(['…']).flat_map(|part| part.split("...")).map(str::trim).collect();
        let says = |text: &str| parts.iter().all(|part| text.contains(part));
        if says(&all[self.first - 1..self.last].join(" ")) {
            return None;
        }
        let elsewhere = all.iter().position(|line| says(line)).map(|place| place + 1);
        Some(CitationFlaw::OtherText { says: all[self.first - 1].clone(), elsewhere })
    }
}

impl std::fmt::Display for Citation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.path, self.first)?;
        if self.last > self.first { write!(f, "-{}", self.last) } else { Ok(()) }
    }
}

impl std::fmt::Display for CitationFlaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoFile => f.write_str("there is no such file"),
            Self::NoLine { lines } => write!(f, "the file has {lines} lines"),
            Self::OtherText { says, elsewhere } => {
                let says: String = says.chars().filter(|c| *c != '`').take(60).collect();
                write!(f, "the line says `{says}`")?;
                elsewhere.map_or(Ok(()), |line| write!(f, ", the quotation stands in line {line}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct One(&'static str, &'static str);

    impl CitedTree for One {
        fn files(&self, path: &str) -> Vec<String> {
            (path == self.0).then(|| self.1.to_owned()).into_iter().collect()
        }
    }

    fn found(text: &str) -> Vec<String> {
        let show = |citation: &Citation| match &citation.quote {
            Some(quote) => format!("{citation} = {quote}"),
            None => citation.to_string(),
        };
        citations(text).iter().map(show).collect()
    }

    #[test]
    fn places_are_found_in_every_usual_spelling() {
        assert_eq!(found("see `src/a.rs:12`."), ["src/a.rs:12"]);
        assert_eq!(found("(./src/a.rs:12:5) b.py:3-9"), ["src/a.rs:12", "b.py:3-9"]);
        assert_eq!(found("| C3 | PASS | x.c:1, x.c:1 |"), ["x.c:1"]);
        assert_eq!(
            found("`a.rs:1` `x \\| y` and `b.rs:2`: `z = 1`"),
            ["a.rs:1 = x | y", "b.rs:2 = z = 1"]
        );
        assert_eq!(found("`a.rs:1` `b.rs:2`"), ["a.rs:1", "b.rs:2"]);
    }

    #[test]
    fn hosts_times_images_and_paths_of_the_machine_are_no_places() {
        for text in [
            "at 12:30",
            "https://example.com:443/x",
            "example.com:80",
            "127.0.0.1:8080",
            "`team/app:1`",
            "std::fmt::Display",
            "/usr/lib/x.so:1",
            "a.rs:0",
            "note: 12",
            "C4:1",
        ] {
            assert!(found(text).is_empty(), "{text}: {:?}", found(text));
        }
    }

    #[test]
    fn a_citation_holds_where_the_line_is_there_and_says_what_is_quoted() {
        let tree = One("src/a.rs", "one\nlet  x = 1;\nthree\n");
        let flaw = |text: &str| citations(text)[0].flaw(&tree).map(|flaw| flaw.to_string());
        assert_eq!(flaw("src/a.rs:3"), None);
        assert_eq!(flaw("`src/a.rs:2` `let x = 1;`"), None);
        assert_eq!(flaw("`src/a.rs:1-3` `one … three`"), None);
        assert_eq!(flaw("src/a.rs:4").as_deref(), Some("the file has 3 lines"));
        assert_eq!(flaw("src/b.rs:1").as_deref(), Some("there is no such file"));
        assert_eq!(
            flaw("`src/a.rs:1` `let x = 1;`").as_deref(),
            Some("the line says `one`, the quotation stands in line 2")
        );
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "(a\\.rs|:|[0-9]|`|-|/|\\PC|\n)*") {
            for citation in citations(&text) {
                prop_assert!(citation.first > 0 && citation.last >= citation.first);
            }
        }
    }
}
