//! Tokenizer of globs; expands braces.

use super::charset::CharSet;
use super::flaw::{PatternError, PatternFlaw};

/// The longest glob, in bytes.
pub(super) const MAX_BYTES: usize = 1024;
/// The deepest nesting of braces.
pub(super) const MAX_NESTING: usize = 16;
/// The most alternatives that the braces of one glob may expand to.
pub(super) const MAX_ALTERNATIVES: usize = 256;
/// The most tokens of all alternatives together. The overlap test takes at most the product of the
/// sizes of two globs.
pub(super) const MAX_SIZE: usize = 4096;

/// A token and its column in the glob.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GlobToken {
    pub(super) kind: TokenKind,
    pub(super) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    Char(char),
    Class(CharSet),
    /// `*`
    Star,
    /// `**` or more.
    Stars,
    Slash,
}

/// A part of a glob: one token, or braces with their alternatives and column.
#[derive(Debug)]
enum Part {
    One(GlobToken),
    OneOf(Vec<Vec<Part>>, usize),
}

/// Tokenizes a glob and expands its braces.
pub(super) fn alternatives(text: &str) -> Result<Vec<Vec<GlobToken>>, PatternError> {
    let at = |column, flaw| Err(PatternError { column, flaw });
    if text.is_empty() {
        return at(1, PatternFlaw::Empty);
    }
    if text.len() > MAX_BYTES {
        return at(1, PatternFlaw::TooLong(text.len()));
    }
    // In `.gitignore` this negates. Taken literally it would be a file with that name.
    if text.starts_with('!') {
        return at(1, PatternFlaw::Negation);
    }
    if let Some((i, c)) = text.chars().enumerate().find(|(_, c)| c.is_control()) {
        return at(i + 1, PatternFlaw::Character(c));
    }
    written_out(&Scanner { text: text.chars().collect(), next: 0 }.parts()?)
}

/// An opening brace that is not closed yet.
struct Open {
    column: usize,
    /// The alternatives before the last comma.
    done: Vec<Vec<Part>>,
    /// The parts before the brace.
    before: Vec<Part>,
}

struct Scanner {
    text: Vec<char>,
    next: usize,
}

impl Scanner {
    fn parts(mut self) -> Result<Vec<Part>, PatternError> {
        let mut open: Vec<Open> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        while let Some(&c) = self.text.get(self.next) {
            self.next += 1;
            let column = self.next;
            let error = |flaw| PatternError { column, flaw };
            let kind = match c {
                '{' if open.len() == MAX_NESTING => return Err(error(PatternFlaw::TooNested)),
                '{' => {
                    // Bash expands `{1..3}`; taken literally it would match a file of that name and
                    // nothing else.
                    if self.is_range() {
                        return Err(error(PatternFlaw::BraceRange));
                    }
                    let before = std::mem::take(&mut parts);
                    open.push(Open { column, done: Vec::new(), before });
                    continue;
                }
                ',' if !open.is_empty() => {
                    let list = std::mem::take(&mut parts);
                    open.last_mut().expect("a brace is open").done.push(list);
                    continue;
                }
                '}' => {
                    let Some(Open { column, mut done, before }) = open.pop() else {
                        return Err(error(PatternFlaw::UnopenedBrace));
                    };
                    done.push(std::mem::replace(&mut parts, before));
                    parts.push(Part::OneOf(done, column));
                    continue;
                }
                '*' => {
                    let stars = self.text[self.next..].iter().take_while(|c| **c == '*').count();
                    self.next += stars;
                    if stars == 0 { TokenKind::Star } else { TokenKind::Stars }
                }
                '?' => TokenKind::Class(CharSet::any()),
                '[' => TokenKind::Class(self.class(column)?),
                '/' => TokenKind::Slash,
                '\\' => match self.escaped().ok_or_else(|| error(PatternFlaw::LoneEscape))? {
                    '/' => TokenKind::Slash,
                    escaped => TokenKind::Char(escaped),
                },
                c => TokenKind::Char(c),
            };
            parts.push(Part::One(GlobToken { kind, column }));
        }
        match open.first() {
            Some(open) => Err(PatternError { column: open.column, flaw: PatternFlaw::OpenBrace }),
            None => Ok(parts),
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let escaped = self.text.get(self.next).copied();
        self.next += 1;
        escaped
    }

    /// Returns true if the text after an opening brace is `1..3}` or `a..c}`.
    fn is_range(&self) -> bool {
        let inner: String =
            self.text[self.next..].iter().take_while(|c| !"{},/".contains(**c)).collect();
        let closes = self.text.get(self.next + inner.chars().count()) == Some(&'}');
        closes
            && inner.split_once("..").is_some_and(|(from, to)| !from.is_empty() && !to.is_empty())
    }

    /// Reads a class after its `[`.
    fn class(&mut self, column: usize) -> Result<CharSet, PatternError> {
        let open = || PatternError { column, flaw: PatternFlaw::OpenClass };
        let negated = matches!(self.text.get(self.next), Some('!' | '^'));
        self.next += usize::from(negated);
        let mut ranges = Vec::new();
        loop {
            let c = *self.text.get(self.next).ok_or_else(open)?;
            // As in a shell, a `]` in first position is a member.
            if c == ']' && !ranges.is_empty() {
                self.next += 1;
                break;
            }
            if c == '[' && matches!(self.text.get(self.next + 1), Some(':' | '.' | '=')) {
                return Err(self.flaw(PatternFlaw::NamedClass));
            }
            let low = self.member().ok_or_else(open)??;
            let is_range = self.text.get(self.next) == Some(&'-')
                && self.text.get(self.next + 1).is_some_and(|c| *c != ']');
            if !is_range {
                ranges.push((low as u32, low as u32));
                continue;
            }
            self.next += 1;
            let high = self.member().ok_or_else(open)??;
            if high < low {
                return Err(PatternError { column: self.next, flaw: PatternFlaw::BackwardRange });
            }
            ranges.push((low as u32, high as u32));
        }
        let set = CharSet::of(ranges, negated);
        // `pick` never returns a dot, which is a member all the same.
        if set.pick().is_none() && !set.contains('.') {
            return Err(PatternError { column, flaw: PatternFlaw::EmptyClass });
        }
        Ok(set)
    }

    /// Reads one member of a class, escaped or not; `None` at the end of the text.
    fn member(&mut self) -> Option<Result<char, PatternError>> {
        let mut c = *self.text.get(self.next)?;
        if c == '\\' {
            self.next += 1;
            c = *self.text.get(self.next)?;
        }
        if c == '/' {
            return Some(Err(self.flaw(PatternFlaw::SlashInClass)));
        }
        self.next += 1;
        Some(Ok(c))
    }

    /// An error at the next character.
    fn flaw(&self, flaw: PatternFlaw) -> PatternError {
        PatternError { column: self.next + 1, flaw }
    }
}

/// Expands the alternatives. The recursion is bounded by [`MAX_NESTING`].
fn written_out(parts: &[Part]) -> Result<Vec<Vec<GlobToken>>, PatternError> {
    let mut lists: Vec<Vec<GlobToken>> = vec![Vec::new()];
    for part in parts {
        match part {
            Part::One(token) => lists.iter_mut().for_each(|list| list.push(token.clone())),
            Part::OneOf(choices, column) => {
                let error = |flaw| PatternError { column: *column, flaw };
                let mut tails: Vec<Vec<GlobToken>> = Vec::new();
                for choice in choices {
                    for tail in written_out(choice)? {
                        if !tails.contains(&tail) {
                            tails.push(tail);
                        }
                    }
                }
                if lists.len() * tails.len() > MAX_ALTERNATIVES {
                    return Err(error(PatternFlaw::TooManyAlternatives));
                }
                let joined =
                    |head: &Vec<GlobToken>, tail: &Vec<GlobToken>| [&head[..], tail].concat();
                lists =
                    lists.iter().flat_map(|h| tails.iter().map(move |t| joined(h, t))).collect();
                if lists.iter().map(Vec::len).sum::<usize>() > MAX_SIZE {
                    return Err(error(PatternFlaw::TooLarge));
                }
            }
        }
    }
    Ok(lists)
}
