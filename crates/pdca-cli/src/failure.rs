//! Why a command did not do what it was asked: what, where, and the remedy.
//!
//! The libraries state facts; here each fact gets a hint and an exit code. A failure may carry several problems, so
//! that one run of the command shows everything there is to mend in a file.

mod from_libraries;

pub(crate) use from_libraries::install_git;

use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};

use crate::exit::Exit;
use crate::style::{Palette, printable};

/// A place in a file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Utf8PathBuf,
    /// The line, where it is known.
    pub line: Option<usize>,
    /// The column in characters, where it is known.
    pub column: Option<usize>,
}

impl Place {
    /// The whole file.
    pub fn file(file: impl Into<Utf8PathBuf>) -> Self {
        Place { file: file.into(), line: None, column: None }
    }

    /// A line of the file.
    pub fn line(file: impl Into<Utf8PathBuf>, line: usize) -> Self {
        Place { line: Some(line), ..Place::file(file) }
    }

    /// `file:line:column`, the file as seen from `base`.
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

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, as a lowercase fragment.
    pub what: String,
    /// Where.
    pub place: Option<Place>,
    /// Facts that belong to it, one per line.
    pub details: Vec<String>,
    /// The remedy, as a command where there is one.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem that is only a sentence so far.
    pub fn new(what: impl Into<String>) -> Self {
        Problem { what: what.into(), place: None, details: Vec::new(), hint: None }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a line of facts.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }
}

/// A [`Failure`] as programs read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fault {
    /// All that is wrong, in one line.
    pub message: String,
    /// The first place that is named, as `file:line:column`.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// The remedies.
    pub hints: Vec<String>,
    /// The exit code of the process.
    pub exit: u8,
    /// The same, one by one.
    pub problems: Vec<FaultItem>,
}

/// A [`Problem`] as programs read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FaultItem {
    message: String,
    #[serde(rename = "where")]
    place: Option<String>,
    details: Vec<String>,
    hint: Option<String>,
}

/// Why a command failed, and the exit code that tells so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// At least one problem.
    pub problems: Vec<Problem>,
    /// How the process ends.
    pub exit: Exit,
    /// Nothing is printed: nobody reads any more.
    silent: bool,
}

impl Failure {
    /// A failure with one problem.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Failure::of(exit, vec![Problem::new(what)])
    }

    /// The command line, a config file or a bundle is not as it must be.
    pub fn usage(what: impl Into<String>) -> Self {
        Failure::new(Exit::Usage, what)
    }

    /// Something that should not happen did.
    pub fn unexpected(what: impl Into<String>) -> Self {
        Failure::new(Exit::Unexpected, what)
    }

    /// A failure with several problems.
    pub fn of(exit: Exit, problems: Vec<Problem>) -> Self {
        Failure { problems, exit, silent: false }
    }

    /// Whoever read the output is gone, which is not worth a word.
    pub(crate) fn nobody_reads() -> Self {
        Failure { silent: true, ..Failure::new(Exit::Done, "the output was closed") }
    }

    /// Says where.
    #[must_use]
    pub fn at(self, place: Place) -> Self {
        self.change(|problem| problem.at(place))
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.change(|problem| problem.hint(hint))
    }

    /// Adds a line of facts.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        self.change(|problem| problem.detail(detail))
    }

    /// Adds an error and everything behind it as facts.
    #[must_use]
    pub fn cause(mut self, error: &dyn std::error::Error) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            self = self.detail(format!("because: {error}"));
            next = error.source();
        }
        self
    }

    /// An error of a library with everything behind it; the hint and the place are added by whoever knows them.
    pub fn from_error(exit: Exit, error: &dyn std::error::Error) -> Self {
        let failure = Failure::new(exit, error.to_string());
        match error.source() {
            Some(source) => failure.cause(source),
            None => failure,
        }
    }

    fn change(mut self, with: impl FnOnce(Problem) -> Problem) -> Self {
        if let Some(last) = self.problems.pop() {
            self.problems.push(with(last));
        }
        self
    }

    /// The failure as programs read it.
    pub fn fault(&self) -> Fault {
        let item = |problem: &Problem| FaultItem {
            message: problem.what.clone(),
            place: problem.place.as_ref().map(|place| place.show("".into())),
            details: problem.details.clone(),
            hint: problem.hint.clone(),
        };
        let problems: Vec<FaultItem> = self.problems.iter().map(item).collect();
        let messages: Vec<&str> = problems.iter().map(|item| item.message.as_str()).collect();
        Fault {
            message: messages.join("; "),
            place: problems.iter().find_map(|item| item.place.clone()),
            hints: problems.iter().filter_map(|item| item.hint.clone()).collect(),
            exit: self.exit.code(),
            problems,
        }
    }

    /// Whether the reader of the output went away, which is told to nobody.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// Writes it for a person: `error: …`, `  --> file:line`, `hint: …`.
    pub fn render(&self, palette: Palette, base: &Utf8Path, err: &mut dyn Write) -> io::Result<()> {
        if self.silent {
            return Ok(());
        }
        for problem in &self.problems {
            let what = shorter(&problem.what, base);
            writeln!(err, "{} {}", palette.bad("error:"), printable(&what))?;
            if let Some(place) = &problem.place {
                writeln!(err, "  --> {}", place.show(base))?;
            }
            for detail in &problem.details {
                writeln!(err, "  {}", printable(detail))?;
            }
            if let Some(hint) = &problem.hint {
                writeln!(err, "{} {}", palette.accent("hint:"), printable(hint))?;
            }
        }
        Ok(())
    }
}

/// A text with the paths below `base` as seen from there.
pub fn shorter(text: &str, base: &Utf8Path) -> String {
    if base.as_str().is_empty() || base.as_str() == "/" {
        return text.to_owned();
    }
    text.replace(&format!("{base}/"), "")
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::nobody_reads();
        }
        Failure::from_error(Exit::Unexpected, &error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::from(io::Error::from(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_where_and_the_remedy() {
        let failure = Failure::usage("unknown key `colour`")
            .at(Place { file: "/w/pdca.toml".into(), line: Some(3), column: Some(1) })
            .hint("did you mean `color`?");
        let mut text = Vec::new();
        failure.render(Palette::PLAIN, Utf8Path::new("/w"), &mut text).unwrap();
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @r"
        error: unknown key `colour`
          --> pdca.toml:3:1
        hint: did you mean `color`?
        ");
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.exit, Exit::Done);
        let mut text = Vec::new();
        failure.render(Palette::PLAIN, Utf8Path::new("/"), &mut text).unwrap();
        assert!(text.is_empty());
    }
}
