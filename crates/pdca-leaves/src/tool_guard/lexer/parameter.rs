//! Parses what stands between the braces of `${…}`.

use super::pieces::Pieces;
use super::{Lexer, Piece, Word};

/// Returns the piece for `${inner}`.
pub(super) fn parameter(inner: &str, quoted: bool) -> Piece {
    // `${!name}` and `${#name}` have another value than `name`; `${#}` and `${!}` are variables of
    // their own.
    let body = inner.strip_prefix(['!', '#']).filter(|rest| !rest.is_empty());
    let altered = body.is_some();
    let body = body.unwrap_or(inner);
    let is_special = body.starts_with(['@', '*', '?', '$', '!', '-', '#']);
    let length = if is_special {
        1
    } else {
        body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(body.len())
    };
    let (name, mut rest) = body.split_at(length);
    // All elements of an array expand to its whole value, and each is a separate word even in quotes.
    let mut quoted = quoted;
    for all in ["[@]", "[*]"] {
        if let Some(behind) = rest.strip_prefix(all) {
            rest = behind;
            quoted = false;
        }
    }
    // The longer operators come first.
    let found = [":-", ":=", "-", "=", ":+", "+"]
        .into_iter()
        .find_map(|operator| rest.strip_prefix(operator).map(|text| (operator, text)));
    // `${x:+word}` is never the value of `x`. Without a name the word counts in any case, because it
    // may be what runs.
    let name = if matches!(found, Some((":+" | "+", _))) { "" } else { name };
    let default = found.map(|(_, text)| whole(Lexer::new(text)));
    let altered = altered || (default.is_none() && !rest.is_empty());
    Piece::Variable { name: name.to_owned(), default, altered, quoted }
}

/// Reads the whole text as one word, blanks included.
fn whole(mut lexer: Lexer) -> Word {
    let mut pieces = Pieces::default();
    while lexer.text.at < lexer.text.chars.len() {
        let before = lexer.text.at;
        pieces.extend(lexer.read_word());
        if lexer.text.at == before {
            pieces.push(lexer.text.chars[before], false);
            lexer.text.at += 1;
        }
    }
    Word(pieces.0)
}
