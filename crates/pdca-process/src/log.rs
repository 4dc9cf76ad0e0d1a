//! Reading what a child wrote.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::verdict::load_verdict;

const FILE: &str = "log";
/// How much of the end of an output is looked at for its last line.
pub(crate) const LAST_LINE_REACH: usize = 4096;
/// The longest last line that is shown, in characters.
const LAST_LINE_CHARS: usize = 400;

/// The kept output of a child, as bytes: the head and, if something was left out, one line that says
/// how much, and the tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The bytes as the child wrote them, standard output and standard error together.
    pub bytes: Vec<u8>,
    /// Whether something was left out, or may have been because the child has no verdict: the tail is
    /// only written when it ended.
    pub truncated: bool,
}

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct LogError {
    path: Utf8PathBuf,
    source: io::Error,
}

const PRINTED: &str = "stdout";

/// Where the standard output of a job lies, if it is kept apart.
pub(crate) fn printed_path(job: &Utf8Path) -> Utf8PathBuf {
    job.join(PRINTED)
}

/// Reads what the child of a job wrote to its standard output; none where that was not kept apart.
pub fn read_printed(job: &Utf8Path) -> Result<Option<Log>, LogError> {
    let Some(summary) = load_verdict(job).ok().flatten().and_then(|verdict| verdict.printed) else {
        return Ok(None);
    };
    let path = printed_path(job);
    let bytes = fs::read(&path).map_err(|source| LogError { path, source })?;
    Ok(Some(Log { bytes, truncated: summary.truncated || summary.log_error.is_some() }))
}

/// Where the log of a job lies.
pub fn log_path(job: &Utf8Path) -> Utf8PathBuf {
    job.join(FILE)
}

/// Reads the log in a job directory; one that was never begun is empty.
pub fn read_log(job: &Utf8Path) -> Result<Log, LogError> {
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
    Ok(Log { bytes, truncated })
}

impl Log {
    /// The log as text; what is not UTF-8 becomes U+FFFD.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The last line that is not blank, printable and on one line; empty if there is none.
    pub fn last_line(&self) -> String {
        let reach = self.bytes.len().saturating_sub(LAST_LINE_REACH);
        last_line(&self.bytes[reach..])
    }

    /// The lines as printable text, each cut at `max` bytes of the original.
    pub fn lines(&self, max: usize) -> impl Iterator<Item = String> {
        self.bytes.split_inclusive(|byte| *byte == b'\n').map(move |line| {
            let line = without_line_end(line);
            printable(&line[..line.len().min(max)])
        })
    }
}

/// Bytes as text that is safe to show on one line: what is not UTF-8 becomes U+FFFD, and control
/// characters, those that steer the direction of text included, are escaped. A tab becomes a space.
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

/// The last line of `end` that is not blank, printable.
pub(crate) fn last_line(end: &[u8]) -> String {
    let line = end
        .split(|byte| *byte == b'\n')
        .rev()
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty());
    // A progress display rewrites its line after carriage returns; what it said last counts.
    let shown = line.and_then(|line| line.rsplit(|byte| *byte == b'\r').next());
    printable(shown.unwrap_or_default()).chars().take(LAST_LINE_CHARS).collect()
}

/// A line without its line feed and a carriage return before that.
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
        let log = Log { bytes: b"abcdef\r\nx\n\nlast".to_vec(), truncated: false };
        assert_eq!(log.lines(4).collect::<Vec<_>>(), ["abcd", "x", "", "last"]);
    }
}
