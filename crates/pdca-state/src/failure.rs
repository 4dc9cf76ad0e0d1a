//! Formatting of errors for people.

use std::error::Error;

use crate::lines::folded;

/// Joins an error and its sources with `: `, on one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = folded(&error.to_string());
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&folded(&cause.to_string()));
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::files::FileReadError;

    #[test]
    fn an_error_and_its_causes_are_one_line() {
        let source = io::Error::other("the disk said:\n\tno");
        let error = FileReadError::Io { path: "a.md".into(), source };
        assert_eq!(chain(&error), "cannot read a.md: the disk said: no");
        assert_eq!(chain(&io::Error::other("alone")), "alone");
    }
}
