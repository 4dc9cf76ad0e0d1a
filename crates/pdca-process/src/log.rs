//! The stored output of a child, and making it printable.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::verdict::load_verdict;

const FILE: &str = "log";
/// The number of bytes at the end of an output that are searched for its last line.
pub(crate) const LAST_LINE_REACH: usize = 4096;
/// The longest last line that is returned, in characters.
const LAST_LINE_CHARS: usize = 400;

/// The kept output of a child: its head, then, if something was left out, one line with the number of bytes left
/// out, then its tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildLog {
    /// The bytes as the child wrote them, standard output and standard error interleaved.
    pub bytes: Vec<u8>,
    /// True if something was left out, or may have been because there is no verdict yet: the tail is only
    /// written after the child has ended.
    pub truncated: bool,
}

/// Failure to read a log.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct LogError {
    path: Utf8PathBuf,
    source: io::Error,
}

const PRINTED: &str = "stdout";

/// Returns the path of the standard output of a job that keeps it apart.
pub fn printed_path(job: &Utf8Path) -> Utf8PathBuf {
    job.join(PRINTED)
}

/// Reads the standard output of a job's child; `None` unless [`Spec::keep_printed`](crate::Spec::keep_printed) was set.
pub fn read_printed(job: &Utf8Path) -> Result<Option<ChildLog>, LogError> {
    let Some(summary) = load_verdict(job).ok().flatten().and_then(|verdict| verdict.printed) else {
        return Ok(None);
    };
    let path = printed_path(job);
    let bytes = fs::read(&path).map_err(|source| LogError { path, source })?;
    Ok(Some(ChildLog { bytes, truncated: summary.truncated || summary.log_error.is_some() }))
}

/// Returns the path of the log in a job directory.
pub fn log_path(job: &Utf8Path) -> Utf8PathBuf {
    job.join(FILE)
}

/// Reads the log in a job directory; a missing file is an empty log.
pub fn read_log(job: &Utf8Path) -> Result<ChildLog, LogError> {
    let path = log_path(job);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(LogError { path, source }),
    };
    let truncated = match load_verdict(job) {
        Ok(Some(verdict)) => verdict.output.truncated,
        Ok(None) | Err(_) => !bytes.is_empty(),
    };
    Ok(ChildLog { bytes, truncated })
}

impl ChildLog {
    /// Returns the log as text; invalid UTF-8 becomes U+FFFD.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Returns the last line that is not blank, made printable; empty if there is none.
    pub fn last_line(&self) -> String {
        let reach = self.bytes.len().saturating_sub(LAST_LINE_REACH);
        last_line(&self.bytes[reach..])
    }

    /// Returns the lines as printable text, each cut at `max` bytes of the original.
    pub fn lines(&self, max: usize) -> impl Iterator<Item = String> {
        self.bytes.split_inclusive(|byte| *byte == b'\n').map(move |line| {
            let line = without_line_end(line);
            printable(&line[..line.len().min(max)])
        })
    }
}

/// Makes bytes safe to show on one line: invalid UTF-8 becomes U+FFFD, a tab becomes a space, and control
/// characters, including those that change the direction of text, are escaped.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '\t' => text.push(' '),
            _ if character.is_control() || steers_direction(character) => {
                text.extend(character.escape_default());
            }
            _ => text.push(character),
        }
    }
    text
}

/// Returns the last line of `end` that is not blank, made printable.
pub(crate) fn last_line(end: &[u8]) -> String {
    let line = end
        .split(|byte| *byte == b'\n')
        .rev()
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty());
    // A progress display rewrites its line after carriage returns; the last version counts.
    let shown = line.and_then(|line| line.rsplit(|byte| *byte == b'\r').next());
    printable(shown.unwrap_or_default()).chars().take(LAST_LINE_CHARS).collect()
}

/// Strips the line feed and a carriage return before it.
pub(crate) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn steers_direction(character: char) -> bool {
    matches!(
        character,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b7_what_is_not_text_is_shown_escaped_on_one_line() {
        assert_eq!(printable(b"a\x1b[31m\xff\tb\r"), "a\\u{1b}[31m\u{fffd} b\\r");
        assert_eq!(printable("x\u{202e}y".as_bytes()), "x\\u{202e}y");
    }

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        assert_eq!(last_line(b"one\ntwo\n\n  \n"), "two");
        assert_eq!(last_line(b"10%\r20%\r30%"), "30%");
        assert_eq!(last_line(b"\n\n"), "");
    }

    #[test]
    fn lines_are_bounded_and_lose_their_ends() {
        let log = ChildLog { bytes: b"abcdef\r\nx\n\nlast".to_vec(), truncated: false };
        assert_eq!(log.lines(4).collect::<Vec<_>>(), ["abcd", "x", "", "last"]);
    }
}
