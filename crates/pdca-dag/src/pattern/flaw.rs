//! Errors of parsing a glob.

/// The error of parsing a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {flaw}")]
pub struct PatternError {
    /// The position in the glob, in characters from 1.
    pub column: usize,
    /// The rule that is broken at this position.
    pub flaw: PatternFlaw,
}

/// A syntax rule or limit that a glob breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternFlaw {
    /// The glob is empty.
    #[error("it is empty")]
    Empty,
    /// The glob is too long; holds its length in bytes.
    #[error("it has {0} bytes, the limit is {max}", max = super::scan::MAX_BYTES)]
    TooLong(usize),
    /// The glob starts with `/` or contains `..`.
    #[error("it leaves the tree")]
    LeavesTree,
    /// A `[` without `]`.
    #[error("the `[` is not closed")]
    OpenClass,
    /// A class that contains no character that a file name can have.
    #[error("no character matches the class")]
    EmptyClass,
    /// A range with its ends swapped, `[z-a]`.
    #[error("the range goes backwards")]
    BackwardRange,
    /// A `/` in a class, `[a/b]`; a class is one character of one name.
    #[error("a class cannot match `/`")]
    SlashInClass,
    /// A named class such as `[[:alpha:]]`.
    #[error("named classes are not known")]
    NamedClass,
    /// A `{` without `}`.
    #[error("the `{{` is not closed")]
    OpenBrace,
    /// A `}` without `{`.
    #[error("the `}}` closes nothing")]
    UnopenedBrace,
    /// A range in braces, `{1..3}`. Refused, because as a list of one it would match the wrong files.
    #[error("a range in braces is not known, list the words")]
    BraceRange,
    /// Braces are nested too deeply.
    #[error("braces nest more than {max} deep", max = super::scan::MAX_NESTING)]
    TooNested,
    /// Expanding the braces gives too many globs.
    #[error("it stands for more than {max} globs", max = super::scan::MAX_ALTERNATIVES)]
    TooManyAlternatives,
    /// Expanding the braces gives globs that are too long in total.
    #[error("written out it is longer than {max}", max = super::scan::MAX_SIZE)]
    TooLarge,
    /// A `\` at the end of the glob.
    #[error("the `\\` escapes nothing")]
    LoneEscape,
    /// A leading `!`. Refused, because as part of a name it would match the wrong files.
    #[error("nothing can be taken out with `!`")]
    Negation,
    /// A control character.
    #[error("a path cannot hold the character {0:?}")]
    Character(char),
}
