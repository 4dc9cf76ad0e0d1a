//! Splits shell text into words, operators and redirections.
//!
//! The lexer accepts more than any one shell does: it finds commands and does not run them, so text that a shell would
//! reject may still be split into commands. Only an unclosed quote or bracket is a [`flaw`](Lexed::flaw). Substitutions
//! are kept as text and lexed when they are expanded.

mod parameter;
mod pieces;
mod token;

use self::parameter::parameter;
use self::pieces::Pieces;
pub(crate) use self::token::{Operator, Piece, Redirect, RedirectKind, ShellToken, Word};

/// The tokens of shell text.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<ShellToken>,
    /// The construct that was left open, if any. The tokens before it are complete.
    pub(crate) flaw: Option<&'static str>,
}

/// Splits `text` into tokens.
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer::new(text);
    lexer.run();
    Lexed { tokens: lexer.tokens, flaw: lexer.flaw }
}

/// A here-document whose body is still to come.
struct Pending {
    token: usize,
    delimiter: String,
    strip_tabs: bool,
    quoted: bool,
}

/// A position in a text, at most its end.
struct Cursor {
    chars: Vec<char>,
    at: usize,
}

impl Cursor {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn skip_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => self.at += 2,
                _ => return,
            }
        }
    }

    fn take_line(&mut self) -> String {
        let rest = &self.chars[self.at..];
        let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
        let line = rest[..length].iter().collect();
        self.at = (self.at + length + 1).min(self.chars.len());
        line
    }

    /// Skips the body of a here-document in a substitution.
    fn skip_document(&mut self, delimiter: &str, strip_tabs: bool) {
        while self.at < self.chars.len() {
            let start = self.at;
            let line = self.take_line();
            let compared = if strip_tabs { line.trim_start_matches('\t') } else { &line };
            let Some(rest) = compared.strip_prefix(delimiter) else { continue };
            if rest.trim_end_matches('\r').is_empty() {
                return;
            }
            // bash lets `EOF)` end both. If the body went on, the commands behind it would count as
            // text.
            if rest.contains(')') {
                self.at = start + line.chars().count() - rest.chars().count();
                return;
            }
        }
    }

    /// Reads the rest of an escape of `$'…'`, of which the backslash was read.
    fn escape(&mut self, text: &mut String) {
        let Some(c) = self.peek(0) else { return };
        self.at += 1;
        let (radix, longest) = match c {
            'n' => return text.push('\n'),
            't' => return text.push('\t'),
            'r' => return text.push('\r'),
            // Control characters: which one does not matter, only that the word does not become
            // another.
            'a' | 'b' | 'e' | 'E' | 'f' | 'v' => return text.push(' '),
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => {
                self.at -= 1;
                (8, 3)
            }
            other => return text.push(other),
        };
        let mut value = 0;
        for _ in 0..longest {
            let Some(digit) = self.peek(0).and_then(|c| c.to_digit(radix)) else { break };
            value = value * radix + digit;
            self.at += 1;
        }
        text.extend(char::from_u32(value));
    }
}

struct Lexer {
    text: Cursor,
    tokens: Vec<ShellToken>,
    pending: Vec<Pending>,
    flaw: Option<&'static str>,
    depth: usize,
}

/// The most brackets that may be open at a time: far more than people write, and few enough for the stack.
const DEEPEST: usize = 64;

/// Returns true for characters that end an unquoted word.
fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

impl Lexer {
    fn new(text: &str) -> Self {
        Self {
            text: Cursor { chars: text.chars().collect(), at: 0 },
            tokens: Vec::new(),
            pending: Vec::new(),
            flaw: None,
            depth: 0,
        }
    }

    fn flawed(&mut self, what: &'static str) {
        self.flaw.get_or_insert(what);
        self.text.at = self.text.chars.len();
    }

    fn run(&mut self) {
        while let Some(c) = self.text.peek(0) {
            match c {
                ' ' | '\t' | '\r' => self.text.at += 1,
                '\\' if self.text.peek(1) == Some('\n') => self.text.at += 2,
                '\n' => {
                    self.text.at += 1;
                    self.tokens.push(ShellToken::Operator(Operator::Then));
                    // The bodies begin after the line that announces them, however many commands
                    // stand on it.
                    self.read_here_documents();
                }
                '#' => self.text.skip_comment(),
                ';' => self.operator(&[';', '&'], Operator::Then),
                // bash's `&>file`; any other `&` ends the command.
                '&' if matches!(self.text.peek(1), Some('>')) => self.redirect(),
                '&' => self.operator(&['&'], Operator::Then),
                '|' if self.text.peek(1) == Some('|') => {
                    self.text.at += 2;
                    self.tokens.push(ShellToken::Operator(Operator::Then));
                }
                '|' => self.operator(&['&'], Operator::Pipe),
                '(' => self.operator(&[], Operator::Open),
                ')' => self.operator(&[], Operator::Close),
                // A process substitution is a part of a word and not a redirection.
                '<' | '>' if self.text.peek(1) == Some('(') => self.word(),
                '<' | '>' => self.redirect(),
                _ => self.word(),
            }
        }
        // A here-document at the end of the text has no body.
        self.read_here_documents();
    }

    /// Reads one operator character and any of `more` that follow it.
    fn operator(&mut self, more: &[char], operator: Operator) {
        self.text.at += 1;
        while self.text.peek(0).is_some_and(|c| more.contains(&c)) {
            self.text.at += 1;
        }
        self.tokens.push(ShellToken::Operator(operator));
    }

    /// Reads a redirection. A descriptor number before it was already read as a word, and is removed.
    fn redirect(&mut self) {
        if let Some(ShellToken::Word(word)) = self.tokens.last()
            && word.bare().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()))
            // Only if it touches the redirection: in `echo 2 >x` the digit is an argument.
            && self.text.at > 0
            && self.text.chars[self.text.at - 1].is_ascii_digit()
        {
            self.tokens.pop();
        }
        let start = self.text.at;
        while self.text.peek(0).is_some_and(|c| matches!(c, '<' | '>' | '&' | '|' | '-')) {
            let so_far: String = self.text.chars[start..self.text.at].iter().collect();
            let next = self.text.peek(0);
            let grows = match so_far.as_str() {
                "" | "&" => true,
                "<" => matches!(next, Some('<' | '>' | '&')),
                ">" => matches!(next, Some('>' | '&' | '|')),
                "<<" => matches!(next, Some('<' | '-')),
                "&>" => next == Some('>'),
                _ => false,
            };
            if !grows {
                break;
            }
            self.text.at += 1;
        }
        let operator: String = self.text.chars[start..self.text.at].iter().collect();
        self.text.skip_blanks();
        if matches!(operator.as_str(), "<<" | "<<-") {
            self.here_document(operator == "<<-");
            return;
        }
        let target = self.read_word();
        let kind = match operator.as_str() {
            "<<<" => RedirectKind::Text,
            "<" => RedirectKind::Read,
            "<&" => RedirectKind::Duplicate,
            // `>&2` duplicates a descriptor, `>&file` writes one.
            ">&" if is_descriptor(&target) => RedirectKind::Duplicate,
            _ => RedirectKind::Write,
        };
        self.tokens.push(ShellToken::Redirect(Redirect { kind, target }));
    }

    /// Reads the delimiter of a here-document, and whether a part of it is quoted.
    fn delimiter(&mut self) -> (String, bool) {
        let mut delimiter = String::new();
        let mut is_quoted = false;
        for piece in self.read_word().0 {
            if let Piece::Text { text, quoted } = piece {
                delimiter.push_str(&text);
                is_quoted |= quoted;
            }
        }
        (delimiter, is_quoted)
    }

    fn here_document(&mut self, strip_tabs: bool) {
        let (delimiter, is_quoted) = self.delimiter();
        self.pending.push(Pending {
            token: self.tokens.len(),
            delimiter,
            strip_tabs,
            quoted: is_quoted,
        });
        let target = Word::default();
        self.tokens.push(ShellToken::Redirect(Redirect { kind: RedirectKind::Text, target }));
    }

    /// Reads the bodies of here-documents that begin at this line.
    fn read_here_documents(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            while self.text.at < self.text.chars.len() {
                let line = self.text.take_line();
                let compared =
                    if pending.strip_tabs { line.trim_start_matches('\t') } else { &line };
                // Also with a CR before the line end: if the body went on, the commands after the
                // delimiter would count as text.
                if compared.trim_end_matches('\r') == pending.delimiter {
                    break;
                }
                body.push_str(compared);
                body.push('\n');
            }
            // With a quoted delimiter the body is literal. Otherwise a shell expands it as in
            // double quotes, so `$(git push)` in it would run.
            let target = if pending.quoted {
                Word(vec![Piece::Text { text: body, quoted: true }])
            } else {
                let mut inner = Lexer::new(&body);
                let word = inner.double_quoted(None);
                if let Some(flaw) = inner.flaw {
                    self.flaw.get_or_insert(flaw);
                }
                word
            };
            if let Some(ShellToken::Redirect(redirect)) = self.tokens.get_mut(pending.token) {
                redirect.target = target;
            }
        }
    }

    fn word(&mut self) {
        let before = self.text.at;
        let word = self.read_word();
        if self.text.at == before {
            // The character is not part of any word; skipping it guarantees progress.
            self.text.at += 1;
        } else {
            self.tokens.push(ShellToken::Word(word));
        }
    }

    /// Reads one word up to a character that ends it.
    fn read_word(&mut self) -> Word {
        let mut pieces = Pieces::default();
        while let Some(c) = self.text.peek(0) {
            match c {
                '\\' => {
                    match self.text.peek(1) {
                        Some('\n') => {}
                        Some(next) => pieces.push(next, true),
                        None => pieces.push('\\', false),
                    }
                    self.text.at = (self.text.at + 2).min(self.text.chars.len());
                }
                '\'' => {
                    self.text.at += 1;
                    pieces.text(self.single_quoted(), true);
                }
                '"' => {
                    self.text.at += 1;
                    pieces.text(String::new(), true);
                    pieces.extend(self.double_quoted(Some('"')));
                }
                '`' => {
                    let script = self.backticks();
                    pieces.add(Piece::Command { script, quoted: false });
                }
                '$' => self.dollar(&mut pieces, false),
                '<' | '>' if self.text.peek(1) == Some('(') => {
                    self.text.at += 2;
                    let script = self.substitution();
                    pieces.add(Piece::Process { script });
                }
                // An extended glob, such as `@(a|b)`: the parenthesis opens no subshell.
                '(' if pieces.ends_with(&['@', '!', '*', '+', '?']) => {
                    self.text.at += 1;
                    let pattern = self.group();
                    pieces.text(format!("({pattern})"), false);
                }
                // An array, `c=(git push)`. Its elements are kept as one value, which `"${c[@]}"`
                // splits again.
                '(' if pieces.ends_with(&['=']) => {
                    self.text.at += 1;
                    let list = self.group();
                    pieces.extend(list_of(&list));
                }
                c if ends_word(c) => break,
                c => {
                    pieces.push(c, false);
                    self.text.at += 1;
                }
            }
        }
        Word(pieces.0)
    }

    fn single_quoted(&mut self) -> String {
        let rest = &self.text.chars[self.text.at..];
        if let Some(length) = rest.iter().position(|c| *c == '\'') {
            let text = rest[..length].iter().collect();
            self.text.at += length + 1;
            text
        } else {
            let text = rest.iter().collect();
            self.flawed("a single quote is left open");
            text
        }
    }

    /// Reads up to `end`, or to the end of the text where it is `None`, as in double quotes.
    fn double_quoted(&mut self, end: Option<char>) -> Word {
        let mut pieces = Pieces::default();
        loop {
            match self.text.peek(0) {
                None => {
                    if end.is_some() {
                        self.flawed("a double quote is left open");
                    }
                    return Word(pieces.0);
                }
                Some(c) if Some(c) == end => {
                    self.text.at += 1;
                    return Word(pieces.0);
                }
                Some('\\') => {
                    match self.text.peek(1) {
                        Some('\n') => {}
                        Some(next @ ('$' | '`' | '"' | '\\')) => pieces.push(next, true),
                        Some(next) => {
                            pieces.push('\\', true);
                            pieces.push(next, true);
                        }
                        None => pieces.push('\\', true),
                    }
                    self.text.at = (self.text.at + 2).min(self.text.chars.len());
                }
                Some('`') => {
                    let script = self.backticks();
                    pieces.add(Piece::Command { script, quoted: true });
                }
                Some('$') => self.dollar(&mut pieces, true),
                Some(c) => {
                    pieces.push(c, true);
                    self.text.at += 1;
                }
            }
        }
    }

    /// Reads an expansion that begins with `$`.
    fn dollar(&mut self, pieces: &mut Pieces, quoted: bool) {
        self.text.at += 1;
        match self.text.peek(0) {
            Some('(') => {
                self.text.at += 1;
                let script = self.substitution();
                // An unclosed substitution is not examined, because its end is unknown.
                if self.flaw.is_some() {
                    return;
                }
                // `$((…))` is not computed, but substitutions in it run.
                let arithmetic = script.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
                match arithmetic {
                    Some(inner) => {
                        let word = Lexer::new(inner).double_quoted(None);
                        pieces.add(Piece::Opaque(word));
                    }
                    None => pieces.add(Piece::Command { script, quoted }),
                }
            }
            Some('{') => {
                self.text.at += 1;
                let inner = self.braced();
                if self.flaw.is_some() {
                    return;
                }
                pieces.add(parameter(&inner, quoted));
            }
            Some('\'') if !quoted => {
                self.text.at += 1;
                let text = self.escaped_quoted();
                pieces.text(text, true);
            }
            Some('"') if !quoted => {
                self.text.at += 1;
                pieces.text(String::new(), true);
                pieces.extend(self.double_quoted(Some('"')));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let start = self.text.at;
                while self.text.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.text.at += 1;
                }
                let name = self.text.chars[start..self.text.at].iter().collect();
                pieces.add(Piece::Variable { name, default: None, altered: false, quoted });
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.text.at += 1;
                let name = c.to_string();
                pieces.add(Piece::Variable { name, default: None, altered: false, quoted });
            }
            _ => pieces.push('$', quoted),
        }
    }

    /// Reads `$'…'` with its escapes.
    fn escaped_quoted(&mut self) -> String {
        let mut text = String::new();
        loop {
            match self.text.peek(0) {
                None => {
                    self.flawed("a single quote is left open");
                    return text;
                }
                Some('\'') => {
                    self.text.at += 1;
                    return text;
                }
                Some('\\') => {
                    self.text.at += 1;
                    self.text.escape(&mut text);
                }
                Some(c) => {
                    text.push(c);
                    self.text.at += 1;
                }
            }
        }
    }

    /// Reads up to the closing backtick and removes one level of escapes.
    fn backticks(&mut self) -> String {
        self.text.at += 1;
        let mut script = String::new();
        loop {
            match self.text.peek(0) {
                None => {
                    self.flawed("a backtick is left open");
                    return script;
                }
                Some('`') => {
                    self.text.at += 1;
                    return script;
                }
                Some('\\') => {
                    match self.text.peek(1) {
                        Some(next @ ('`' | '\\' | '$')) => script.push(next),
                        Some(next) => {
                            script.push('\\');
                            script.push(next);
                        }
                        None => {}
                    }
                    self.text.at = (self.text.at + 2).min(self.text.chars.len());
                }
                Some(c) => {
                    script.push(c);
                    self.text.at += 1;
                }
            }
        }
    }

    /// Skips an expansion that begins with `$`. It is lexed only when it is expanded: lexing it at every enclosing
    /// level would take time exponential in the nesting.
    fn skip_dollar(&mut self) {
        self.text.at += 1;
        match self.text.peek(0) {
            Some('(') => {
                self.text.at += 1;
                self.substitution();
            }
            Some('{') => {
                self.text.at += 1;
                self.braced();
            }
            Some('\'') => {
                self.text.at += 1;
                self.escaped_quoted();
            }
            _ => {}
        }
    }

    fn skip_double_quoted(&mut self) {
        loop {
            match self.text.peek(0) {
                None => return self.flawed("a double quote is left open"),
                Some('"') => {
                    self.text.at += 1;
                    return;
                }
                Some('\\') => self.text.at = (self.text.at + 2).min(self.text.chars.len()),
                Some('`') => {
                    self.backticks();
                }
                // In double quotes `$'` is a dollar and an apostrophe, not the start of a quoted
                // text.
                Some('$') if self.text.peek(1) != Some('\'') => self.skip_dollar(),
                Some(_) => self.text.at += 1,
            }
        }
    }

    /// Counts a level of nesting; beyond [`DEEPEST`] the text is flawed.
    fn descend(&mut self) {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.flawed("it is nested too deeply");
        }
    }

    /// Reads the commands up to the parenthesis that closes the one just read.
    fn substitution(&mut self) -> String {
        // In `$((1 << x))` it shifts.
        let has_documents = self.text.peek(0) != Some('(');
        self.up_to_parenthesis(has_documents)
    }

    /// Reads the pattern or the list up to the parenthesis that closes the one just read.
    fn group(&mut self) -> String {
        self.up_to_parenthesis(false)
    }

    fn up_to_parenthesis(&mut self, has_documents: bool) -> String {
        self.descend();
        let script = self.parenthesized(has_documents);
        self.depth -= 1;
        script
    }

    fn parenthesized(&mut self, has_documents: bool) -> String {
        let start = self.text.at;
        let mut depth = 1;
        // Quotes and parentheses in the body of a here-document are text.
        let mut documents: Vec<(String, bool)> = Vec::new();
        // A `case` is followed as far as its keywords, because its patterns close a parenthesis
        // that nothing opened. `at_command` tells the keyword from an argument of the same name.
        let mut cases = 0;
        let mut at_command = true;
        while let Some(c) = self.text.peek(0) {
            match c {
                '\\' => {
                    self.text.at = (self.text.at + 2).min(self.text.chars.len());
                    at_command = false;
                }
                '\'' => {
                    self.text.at += 1;
                    self.single_quoted();
                    at_command = false;
                }
                '"' => {
                    self.text.at += 1;
                    self.skip_double_quoted();
                    at_command = false;
                }
                '`' => {
                    self.backticks();
                    at_command = false;
                }
                '$' => {
                    self.skip_dollar();
                    at_command = false;
                }
                '#' if self.text.at == start
                    || self.text.chars[self.text.at - 1].is_whitespace() =>
                {
                    self.text.skip_comment();
                }
                '(' => {
                    depth += 1;
                    self.text.at += 1;
                    at_command = true;
                }
                ')' => {
                    // The pattern of a `case` has a closing parenthesis without an opening one.
                    if !(cases > 0 && depth == 1) {
                        depth -= 1;
                    }
                    self.text.at += 1;
                    at_command = true;
                    if depth == 0 {
                        return self.text.chars[start..self.text.at - 1].iter().collect();
                    }
                }
                ';' | '&' | '|' | '\n' => {
                    self.text.at += 1;
                    at_command = true;
                    if c == '\n' {
                        for (delimiter, strip_tabs) in documents.drain(..) {
                            self.text.skip_document(&delimiter, strip_tabs);
                        }
                    }
                }
                '<' if has_documents && self.text.peek(1) == Some('<') => {
                    documents.extend(self.announced_document());
                    at_command = false;
                }
                c if c.is_whitespace() => self.text.at += 1,
                _ => {
                    let from = self.text.at;
                    while self.text.peek(0).is_some_and(|c| !ends_word(c) && !"'\"`$\\".contains(c))
                    {
                        self.text.at += 1;
                    }
                    if self.text.at == from {
                        self.text.at += 1;
                        continue;
                    }
                    let word: String = self.text.chars[from..self.text.at].iter().collect();
                    match word.as_str() {
                        "case" if at_command => cases += 1,
                        "esac" if at_command => cases -= 1,
                        _ => {}
                    }
                    at_command = matches!(word.as_str(), "then" | "do" | "else" | "{" | "!");
                }
            }
        }
        let script = self.text.chars[start..].iter().collect();
        self.flawed("a parenthesis is left open");
        script
    }

    /// Reads `<<` with the delimiter behind it, and whether tabs before it are stripped; `None` for a here-string.
    fn announced_document(&mut self) -> Option<(String, bool)> {
        self.text.at += 2;
        let next = self.text.peek(0);
        if matches!(next, Some('<' | '-')) {
            self.text.at += 1;
        }
        if next == Some('<') {
            return None;
        }
        self.text.skip_blanks();
        Some((self.delimiter().0, next == Some('-')))
    }

    /// Reads up to the brace that closes the one just read.
    fn braced(&mut self) -> String {
        self.descend();
        let inner = self.up_to_brace();
        self.depth -= 1;
        inner
    }

    fn up_to_brace(&mut self) -> String {
        let start = self.text.at;
        let mut depth = 1;
        while let Some(c) = self.text.peek(0) {
            match c {
                '\\' => self.text.at = (self.text.at + 2).min(self.text.chars.len()),
                '\'' => {
                    self.text.at += 1;
                    self.single_quoted();
                }
                '"' => {
                    self.text.at += 1;
                    self.skip_double_quoted();
                }
                '`' => {
                    self.backticks();
                }
                '$' => self.skip_dollar(),
                '}' => {
                    depth -= 1;
                    self.text.at += 1;
                    if depth == 0 {
                        return self.text.chars[start..self.text.at - 1].iter().collect();
                    }
                }
                _ => self.text.at += 1,
            }
        }
        let inner = self.text.chars[start..].iter().collect();
        self.flawed("a brace is left open");
        inner
    }
}

fn is_descriptor(word: &Word) -> bool {
    word.bare().is_some_and(|text| {
        text == "-" || text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns the elements of an array, separated by blanks.
fn list_of(list: &str) -> Word {
    let mut pieces = Pieces::default();
    for token in lex(list).tokens {
        if let ShellToken::Word(word) = token {
            if !pieces.0.is_empty() {
                pieces.push(' ', false);
            }
            pieces.extend(word);
        }
    }
    Word(pieces.0)
}

#[cfg(test)]
mod tests;
