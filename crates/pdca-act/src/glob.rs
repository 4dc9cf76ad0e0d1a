//! Globs as briefs write them: `src/**/*.rs`, `docs`, `a/{b,c}.md`, `x[0-9]?`.

/// How many alternatives of `{…}` are tried, and how long a glob may be; beyond, it is taken literally.
const MAX_ALTERNATIVES: usize = 64;
const MAX_LEN: usize = 512;

/// One step of a pattern.
#[derive(Debug, PartialEq)]
enum Token {
    /// This character.
    Char(char),
    /// Any character but `/`.
    Any,
    /// Any run without `/`.
    Star,
    /// Any run.
    DoubleStar,
    /// `**/`: nothing, or directories with their `/`.
    Directories,
    /// One of these characters, or none of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// Whether a glob covers a path: it matches the path itself, or a directory the path lies in.
///
/// The time taken is the product of the two lengths, whatever they are.
pub(crate) fn covers(glob: &str, path: &str) -> bool {
    let glob = glob.trim_start_matches("./").trim_end_matches('/');
    if glob.is_empty() {
        return false;
    }
    let path: Vec<char> = path.trim_start_matches("./").chars().collect();
    if glob.len() > MAX_LEN {
        return glob.chars().eq(path);
    }
    alternatives(glob).iter().any(|glob| matches(&tokens(glob), &path))
}

/// The glob with every `{a,b}` written out.
fn alternatives(glob: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![glob.to_owned()];
    while let Some(glob) = open.pop() {
        match first_braces(&glob) {
            Some((start, end)) if done.len() + open.len() < MAX_ALTERNATIVES => {
                for part in top_level(&glob[start + 1..end]) {
                    open.push(format!("{}{part}{}", &glob[..start], &glob[end + 1..]));
                }
            }
            Some(_) | None => done.push(glob),
        }
    }
    done
}

/// The first `{` that is closed, and where.
fn first_braces(glob: &str) -> Option<(usize, usize)> {
    let start = glob.find('{')?;
    let mut depth = 0_usize;
    for (at, c) in glob[start..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some((start, start + at)),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// What stands between the commas that are in no further braces.
fn top_level(inner: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_usize, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&inner[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[from..]);
    parts
}

fn tokens(glob: &str) -> Vec<Token> {
    let chars: Vec<char> = glob.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = &chars[at..];
        let (token, length) = match (c, rest) {
            ('*', ['*', '*', '/', ..]) => (Token::Directories, 3),
            ('*', ['*', '*', ..]) => (Token::DoubleStar, 2),
            ('*', _) => (Token::Star, 1),
            ('?', _) => (Token::Any, 1),
            ('[', _) => class(rest).unwrap_or((Token::Char('['), 1)),
            (c, _) => (Token::Char(c), 1),
        };
        tokens.push(token);
        at += length;
    }
    tokens
}

/// A class `[a-z_]` or `[!a]` at the start of `rest`, and how long it is.
fn class(rest: &[char]) -> Option<(Token, usize)> {
    let end = rest.iter().skip(2).position(|c| *c == ']')? + 2;
    let inner = &rest[1..end];
    let (negated, inner) = match inner {
        ['!' | '^', inner @ ..] if !inner.is_empty() => (true, inner),
        inner => (false, inner),
    };
    let mut ranges = Vec::new();
    let mut inner = inner;
    loop {
        inner = match inner {
            [] => break,
            [from, '-', to, rest @ ..] => {
                ranges.push((*from, *to));
                rest
            }
            [one, rest @ ..] => {
                ranges.push((*one, *one));
                rest
            }
        };
    }
    Some((Token::Class { negated, ranges }, end + 1))
}

/// Row by row: `reached[j]` says whether the tokens so far can match the first `j` characters.
fn matches(tokens: &[Token], path: &[char]) -> bool {
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for token in tokens {
        let mut next = vec![false; reached.len()];
        let mut before = false;
        for j in 0..reached.len() {
            let last = j.checked_sub(1).map(|at| path[at]);
            let single = |fits: bool| fits && j > 0 && reached[j - 1];
            next[j] = match token {
                Token::Char(c) => single(last == Some(*c)),
                Token::Any => single(last != Some('/')),
                Token::Class { negated, ranges } => {
                    let within =
                        |c: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&c));
                    single(last.is_some_and(|c| c != '/' && within(c) != *negated))
                }
                Token::Star => reached[j] || (j > 0 && next[j - 1] && last != Some('/')),
                Token::DoubleStar => reached[j] || (j > 0 && next[j - 1]),
                Token::Directories => reached[j] || (before && last == Some('/')),
            };
            before |= reached[j];
        }
        reached = next;
    }
    let ends_a_part = |j: usize| j == path.len() || (j > 0 && path[j] == '/');
    (0..=path.len()).any(|j| reached[j] && ends_a_part(j))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_glob_covers_what_people_mean_by_it() {
        for (glob, path, covered) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**", "src/deep/a.rs", true),
            ("src/**/*.rs", "src/a.rs", true),
            ("**/*.md", "docs/deep/a.md", true),
            ("**/*.md", "a.md", true),
            ("docs", "docs/guide/a.md", true),
            ("docs/", "docs/a.md", true),
            ("docs", "docs-old/a.md", false),
            ("src/{a,b}.rs", "src/b.rs", true),
            ("src/{a,b{1,2}}.rs", "src/b2.rs", true),
            ("x[0-9].rs", "x7.rs", true),
            ("x[!0-9].rs", "x7.rs", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("{open", "{open", true),
            ("[", "[", true),
            ("./src/a.rs", "src/a.rs", true),
            ("", "src/a.rs", false),
            ("/", "src/a.rs", false),
        ] {
            assert_eq!(covers(glob, path), covered, "{glob} {path}");
        }
    }

    proptest! {
        #[test]
        fn what_covers_a_path_covers_what_lies_below_it(glob in "[a*?/{},\\[\\]!-]{0,60}", path in "[a/b]{1,40}") {
            if covers(&glob, &path) {
                let below = format!("{path}/x");
                prop_assert!(covers(&glob, &below));
            }
        }

        #[test]
        fn a_plain_path_covers_itself(path in "[a-z]{1,5}(/[a-z]{1,5}){0,3}") {
            prop_assert!(covers(&path, &path));
        }
    }
}
