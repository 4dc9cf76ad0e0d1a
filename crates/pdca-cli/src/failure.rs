//! The error of a command: fact, position and remedy.
//!
//! The libraries state facts; this module adds a hint and an exit code to each. A failure may carry several problems, so
//! that one run of the command shows everything that is wrong in a file.

mod from_libraries;

pub(crate) use pdca_workspace::config::{FilePosition, Problem};

pub(crate) use from_libraries::install_git;

use std::io::{self, Write};

use camino::Utf8Path;

use crate::exit::Exit;
use crate::style::{Palette, printable};

/// The JSON form of a [`Failure`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fault {
    /// All problems in one line.
    pub message: String,
    /// The first position, as `file:line:column`.
    #[serde(rename = "where")]
    pub place: Option<String>,
    pub hints: Vec<String>,
    pub exit: u8,
    /// The same, one by one.
    pub problems: Vec<FaultItem>,
}

/// The JSON form of a [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultItem {
    message: String,
    #[serde(rename = "where")]
    place: Option<String>,
    details: Vec<String>,
    hint: Option<String>,
}

/// The error of a command, with its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// At least one.
    pub problems: Vec<Problem>,
    pub exit: Exit,
    /// Prints nothing, because the reader of the output is gone.
    silent: bool,
}

impl Failure {
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Failure::of(exit, vec![Problem::new(what)])
    }

    /// The command line, a config file or a bundle is invalid.
    pub fn usage(what: impl Into<String>) -> Self {
        Failure::new(Exit::Usage, what)
    }

    /// An error that should not happen.
    pub fn unexpected(what: impl Into<String>) -> Self {
        Failure::new(Exit::Unexpected, what)
    }

    pub fn of(exit: Exit, problems: Vec<Problem>) -> Self {
        Failure { problems, exit, silent: false }
    }

    /// Returns the first problem in one sentence.
    pub fn sentence(&self) -> String {
        self.problems.first().map(|problem| problem.what.clone()).unwrap_or_default()
    }

    /// The reader of the output is gone, which is not reported.
    pub fn nobody_reads() -> Self {
        Failure { silent: true, ..Failure::new(Exit::Done, "the output was closed") }
    }

    /// Sets the position of the last problem.
    #[must_use]
    pub fn at(self, place: FilePosition) -> Self {
        self.change(|problem| problem.at(place))
    }

    /// Sets the hint of the last problem.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.change(|problem| problem.hint(hint))
    }

    /// Adds a fact to the last problem.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        self.change(|problem| problem.detail(detail))
    }

    /// Adds an error and its sources as facts.
    #[must_use]
    pub fn cause(mut self, error: &dyn std::error::Error) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            self = self.detail(format!("because: {error}"));
            next = error.source();
        }
        self
    }

    /// Makes a failure from a library's error and its sources; the caller adds hint and position.
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

    /// Returns the JSON form.
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

    /// Returns whether nothing is printed, because the reader of the output is gone.
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// Writes the text form: `error: …`, `  --> file:line`, `hint: …`.
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

/// Makes paths below `base` in a text relative.
pub(crate) fn shorter(text: &str, base: &Utf8Path) -> String {
    // Below `/` every path would lose its slash, and read as a relative one.
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
    fn a_failure_ends_with_its_hint() {
        let failure = Failure::usage("unknown key `lanse`")
            .at(FilePosition::line("pdca.toml", 2))
            .hint("did you mean `lanes`?");
        let mut text = Vec::new();
        failure.render(Palette::PLAIN, "".into(), &mut text).expect("a vector can be written");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(String::from_utf8_lossy(&text).ends_with("hint: did you mean `lanes`?\n"));
    }

    #[test]
    fn a_failure_says_what_where_and_the_remedy() {
        let failure = Failure::usage("unknown key `colour`")
            .at(FilePosition { file: "/w/pdca.toml".into(), line: Some(3), column: Some(1) })
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
