//! Words, operators and redirections.

/// One token of shell text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShellToken {
    Word(Word),
    Operator(Operator),
    Redirect(Redirect),
}

/// An operator that ends a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `;`, `;;`, `&`, `&&`, `||` or a newline.
    Then,
    /// `|` or `|&`.
    Pipe,
    /// `(`.
    Open,
    /// `)`.
    Close,
}

/// A redirection with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    /// The file, or the text for [`RedirectKind::Text`].
    pub(crate) target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    /// The file is written.
    Write,
    /// The file is read.
    Read,
    /// A descriptor is duplicated or closed.
    Duplicate,
    /// The target itself is the standard input: a here-document or a here-string.
    Text,
}

/// A word as a sequence of pieces to expand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text {
        text: String,
        quoted: bool,
    },
    Variable {
        /// The name; empty for `${x:+word}`, of which only the word counts.
        name: String,
        /// The word behind `:-`, `-`, `:=`, `=`, `:+` or `+`.
        default: Option<Word>,
        /// True if the expansion modifies the value, as in `${x%y}`.
        altered: bool,
        quoted: bool,
    },
    /// `$(…)` or backticks.
    Command {
        script: String,
        quoted: bool,
    },
    /// `<(…)` or `>(…)`.
    Process {
        script: String,
    },
    /// Arithmetic and the like: the value is not computed, but the commands in it are walked.
    Opaque(Word),
}

impl Word {
    /// Returns the text of a word that consists of unquoted text only.
    pub(crate) fn bare(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}
