//! What is wrong with a glob.

/// A text that is no glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {flaw}")]
pub struct PatternError {
    /// Where in the glob, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub flaw: PatternFlaw,
}

/// What is wrong at some place of a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternFlaw {
    /// Nothing is written.
    #[error("it is empty")]
    Empty,
    /// Longer than any path.
    #[error("it has {0} bytes, the limit is {max}", max = super::scan::MAX_BYTES)]
    TooLong(usize),
    /// It starts at the root of the file system or goes up.
    #[error("it leaves the tree")]
    LeavesTree,
    /// `[` without `]`.
    #[error("the `[` is not closed")]
    OpenClass,
    /// `[]`, or a class of nothing but what no file name has.
    #[error("no character matches the class")]
    EmptyClass,
    /// `[z-a]`.
    #[error("the range goes backwards")]
    BackwardRange,
    /// `[a/b]`: a class stands for one character of one name.
    #[error("a class cannot match `/`")]
    SlashInClass,
    /// `[[:alpha:]]` and its like.
    #[error("named classes are not known")]
    NamedClass,
    /// `{` without `}`.
    #[error("the `{{` is not closed")]
    OpenBrace,
    /// `}` without `{`.
    #[error("the `}}` closes nothing")]
    UnopenedBrace,
    /// `{1..3}`: read as a list of one it would claim the wrong files.
    #[error("a range in braces is not known, list the words")]
    BraceRange,
    /// Braces in braces in braces.
    #[error("braces nest more than {max} deep", max = super::scan::MAX_NESTING)]
    TooNested,
    /// The braces stand for more than anybody means.
    #[error("it stands for more than {max} globs", max = super::scan::MAX_ALTERNATIVES)]
    TooManyAlternatives,
    /// As above, in total length.
    #[error("written out it is longer than {max}", max = super::scan::MAX_SIZE)]
    TooLarge,
    /// A `\` at the very end.
    #[error("the `\\` escapes nothing")]
    LoneEscape,
    /// `!x`: read as a name it would claim the wrong files.
    #[error("nothing can be taken out with `!`")]
    Negation,
    /// No path can have it.
    #[error("a path cannot hold the character {0:?}")]
    Character(char),
}
