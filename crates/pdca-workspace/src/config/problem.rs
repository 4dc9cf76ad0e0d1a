//! Problems of a configuration: fact, position and remedy.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::text::printable;

/// A position in a file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    pub file: Utf8PathBuf,
    pub line: Option<usize>,
    /// In characters.
    pub column: Option<usize>,
}

impl FilePosition {
    /// Refers to the whole file.
    pub fn file(file: impl Into<Utf8PathBuf>) -> Self {
        FilePosition { file: file.into(), line: None, column: None }
    }

    /// Refers to a line.
    pub fn line(file: impl Into<Utf8PathBuf>, line: usize) -> Self {
        FilePosition { line: Some(line), ..FilePosition::file(file) }
    }

    /// Renders `file:line:column`, the file relative to `base`.
    pub fn show(&self, base: &Utf8Path) -> String {
        let file = self.file.strip_prefix(base).unwrap_or(&self.file);
        let mut text = printable(file.as_str()).into_owned();
        for number in [self.line, self.column].into_iter().flatten() {
            text.push(':');
            text.push_str(&number.to_string());
        }
        text
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A lowercase fragment.
    pub what: String,
    pub place: Option<FilePosition>,
    /// Further facts, one per line.
    pub details: Vec<String>,
    /// The remedy, as a command if there is one.
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(what: impl Into<String>) -> Self {
        Problem { what: what.into(), place: None, details: Vec::new(), hint: None }
    }

    #[must_use]
    pub fn at(mut self, place: FilePosition) -> Self {
        self.place = Some(place);
        self
    }

    /// Sets the position, if it is known.
    #[must_use]
    pub fn at_known(self, place: Option<FilePosition>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// Makes a problem from an error, with its sources as facts.
    pub fn from_error(error: &dyn std::error::Error) -> Self {
        let mut problem = Problem::new(error.to_string());
        let mut next = error.source();
        while let Some(source) = next {
            problem = problem.detail(format!("because: {source}"));
            next = source.source();
        }
        problem
    }
}

/// A configuration that cannot be used, with every problem of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.iter().map(|problem| problem.what.as_str()).collect::<Vec<_>>().join("; "))]
pub struct ConfigError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}
