//! The line format of the journal, readable with `cat`.
//!
//! ```text
//! journal = header *record
//! header  = "pdca-journal" SP version SP run SP sum LF
//! record  = sum SP prev SP seq SP batch SP epoch SP uptime SP wall SP json LF
//! ```
//!
//! - `sum`: the first 128 bits of the SHA-256 of the rest of the line (for the header: of the part
//!   before it), in hexadecimal. Detects a line that is not whole.
//! - `prev`: the `sum` of the previous line. Detects a missing or exchanged line.
//! - `seq`: the number of the record, from 1. `batch`: the `seq` of the first record that was written
//!   and synced together with this one.
//! - `epoch`: the driver that wrote it. `uptime`: the machine's uptime in milliseconds. `wall`: the
//!   time, for people.
//! - `json`: the record as one object without a line feed.
//!
//! # Torn or damaged
//! A write that was torn by a crash is in the *last batch*, because each batch is synced before the
//! next one is written. So a bad line is a torn tail, which may be cut, if no whole record of a
//! *later* batch follows it. If one does, anywhere and even in the middle of what looks like one line,
//! the bad line was whole once: that is damage, and nothing may be cut.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::ser::Formatter;
use sha2::{Digest as _, Sha256};

use crate::claim::Epoch;
use crate::record::{JournalEntry, Record, Seq};
use crate::run_id::RunId;
use crate::timestamp::Moment;

/// The format that is written, and the newest that can be read.
pub(crate) const VERSION: u32 = 1;
/// The longest line in bytes, including its line feed.
// `holds_later_batch` tries to read a line at many offsets of a damaged file; the limit bounds what
// each of these tries has to hash.
pub(crate) const MAX_LINE: usize = 1 << 20;
const MAGIC: &str = "pdca-journal";
const SUM_LEN: usize = 32;

/// The checksum of a line, which the next line repeats as `prev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum([u8; SUM_LEN]);

impl Sum {
    fn of(bytes: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let hash = Sha256::digest(bytes);
        let mut text = [0; SUM_LEN];
        for (pair, byte) in text.chunks_exact_mut(2).zip(hash) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(text)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("because it is made of hexadecimal digits")
    }
}

/// The header line of a journal and its checksum.
pub(crate) fn header(run: &RunId) -> (String, Sum) {
    let text = format!("{MAGIC} {VERSION} {run}");
    let sum = Sum::of(text.as_bytes());
    (format!("{text} {}\n", sum.as_str()), sum)
}

/// The version that a header claims, even if the rest of it is not valid.
pub(crate) fn claimed_version(bytes: &[u8]) -> Option<u32> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    (words.next()? == MAGIC).then(|| words.next()?.parse().ok())?
}

/// Appends the line of a record and returns its checksum.
pub(crate) fn write(entry: &JournalEntry, batch: Seq, prev: Sum, out: &mut Vec<u8>) -> Sum {
    let rest = format!(
        "{} {} {} {} {} {} {}",
        prev.as_str(),
        entry.seq,
        batch,
        entry.epoch,
        entry.at.uptime_millis(),
        entry.at.kept().wall,
        json(&entry.record),
    );
    let sum = Sum::of(rest.as_bytes());
    out.extend_from_slice(&sum.0);
    out.push(b' ');
    out.extend_from_slice(rest.as_bytes());
    out.push(b'\n');
    sum
}

/// Renders a record as JSON that is safe to print: it may contain output of a hostile child.
fn json(record: &Record) -> String {
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, Plain);
    record.serialize(&mut writer).expect("because a record has nothing but names for keys");
    String::from_utf8(bytes).expect("because JSON is text")
}

/// Compact JSON that also escapes DEL and the C1 control characters, which JSON allows.
struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: std::io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> std::io::Result<()> {
        let mut rest = fragment;
        while let Some((at, control)) = rest.char_indices().find(|(_, c)| c.is_control()) {
            writer.write_all(&rest.as_bytes()[..at])?;
            write!(writer, "\\u{:04x}", u32::from(control))?;
            rest = &rest[at + control.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

/// A line with a correct checksum.
#[derive(Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) sum: Sum,
    pub(crate) prev: &'a str,
    pub(crate) seq: Seq,
    pub(crate) batch: Seq,
    epoch: &'a str,
    uptime: &'a str,
    wall: &'a str,
    json: &'a str,
}

impl<'a> Whole<'a> {
    /// Parses a line without its line feed; `None` if it is not whole.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let (sum, rest) = line.split_at_checked(SUM_LEN)?;
        let rest = rest.strip_prefix(b" ")?;
        // Numbers before the checksum: they are cheap and reject most text that is not a line.
        let text = std::str::from_utf8(rest).ok()?;
        let mut words = text.splitn(7, ' ');
        let prev = words.next()?;
        let seq = Seq(number(words.next()?)?);
        let batch = Seq(number(words.next()?)?);
        let (epoch, uptime) = (words.next()?, words.next()?);
        let (wall, json) = (words.next()?, words.next()?);
        let computed = Sum::of(rest);
        (computed.0 == sum).then_some(Self {
            sum: computed,
            prev,
            seq,
            batch,
            epoch,
            uptime,
            wall,
            json,
        })
    }

    pub(crate) fn follows(&self, prev: Sum) -> bool {
        self.prev == prev.as_str()
    }

    /// Decodes the entry. Fails if the line was written by a newer version.
    pub(crate) fn entry(&self) -> Result<JournalEntry, String> {
        let no = |what: &str, text: &str| format!("{text:?} is no {what}");
        let wall: Timestamp = self.wall.parse().map_err(|_| no("time", self.wall))?;
        let uptime = number(self.uptime).ok_or_else(|| no("uptime", self.uptime))?;
        Ok(JournalEntry {
            seq: self.seq,
            epoch: Epoch::new(number(self.epoch).ok_or_else(|| no("epoch", self.epoch))?),
            at: Moment { wall, uptime: Duration::from_millis(uptime) },
            record: serde_json::from_str(self.json).map_err(|error| error.to_string())?,
        })
    }
}

/// Parses a number, but only in canonical spelling: no sign, no leading zeros.
fn number(text: &str) -> Option<u64> {
    let value: u64 = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

/// Returns true if `rest` contains a whole record of a batch that began after `expected`.
pub(crate) fn holds_later_batch(rest: &[u8], expected: Seq) -> bool {
    let hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let shaped = |at: usize| {
        rest.get(at + SUM_LEN) == Some(&b' ')
            && rest.get(at + 2 * SUM_LEN + 1) == Some(&b' ')
            && rest[at..at + SUM_LEN].iter().all(hex)
    };
    // Every offset, because damage may have hit a line feed, and then the next record begins in the
    // middle of a line. Not offset 0: that is the line that is already known to be bad.
    (1..rest.len()).filter(|at| shaped(*at)).any(|at| {
        let room = &rest[at..rest.len().min(at + MAX_LINE)];
        let line = room.split(|byte| *byte == b'\n').next().unwrap_or_default();
        // A whole record of the same batch proves nothing: pages of one unsynced write reach the
        // disk in any order.
        Whole::parse(line).is_some_and(|whole| whole.batch > expected)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(record: Record) -> JournalEntry {
        let wall = "2026-11-16T08:20:00.125Z".parse().unwrap();
        let at = Moment { wall, uptime: Duration::from_millis(1_500) };
        JournalEntry { seq: Seq(3), epoch: Epoch::new(2), at, record }
    }

    fn line(record: Record) -> String {
        let run = RunId::new(Timestamp::UNIX_EPOCH, [1; 10]);
        let mut out = Vec::new();
        write(&entry(record), Seq(2), header(&run).1, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_record_is_one_line_that_a_person_can_read() {
        let bundle = Some("12".parse().unwrap());
        let text = line(Record::Unblocked { bundle });
        insta::assert_snapshot!(text, @r#"bc863946fdddf0428d29395597311f9b 7ba09a3c00c2060b28dc33bd4e6f4193 3 2 2 1500 2026-11-16T08:20:00.125Z {"kind":"unblocked","bundle":"12"}"#);
    }

    #[test]
    fn nothing_a_record_says_reaches_a_terminal_as_a_command() {
        let why = "a\u{1b}[2J b\u{9b}2J c\n\r\0\u{7f} d \u{2028} ü \"q\" \\".to_owned();
        let text = line(Record::Failed { why: why.clone() });
        assert!(!text.trim_end_matches('\n').contains(char::is_control), "{text:?}");
        assert!(text.contains('ü'), "{text}");
        let whole = Whole::parse(text.trim_end().as_bytes()).unwrap();
        assert_eq!(whole.entry().unwrap().record, Record::Failed { why });
    }

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(number("10"), Some(10));
        for text in ["", "010", "+1", "-1", " 1", "1 ", "١", "18446744073709551616"] {
            assert_eq!(number(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_survives_the_journal(why in any::<String>()) {
            let text = line(Record::Aborted { why: why.clone() });
            let whole = Whole::parse(&text.as_bytes()[..text.len() - 1]).unwrap();
            prop_assert_eq!(whole.entry().unwrap(), entry(Record::Aborted { why }));
        }

        #[test]
        fn whatever_is_read_as_a_line_is_handled(bytes in any::<Vec<u8>>()) {
            prop_assert!(Whole::parse(&bytes).is_none());
            prop_assert!(!holds_later_batch(&bytes, Seq(0)));
        }
    }
}
