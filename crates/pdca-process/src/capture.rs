//! Bounded capture of an output of any size: its head, its tail and its marked lines.

use std::io;
use std::io::Write;

use crate::line_markers::LineMarkers;
use crate::log::{LAST_LINE_REACH, last_line};
use crate::spec::OutputCap;
use crate::verdict::OutputSummary;

/// Consumes the whole output and keeps its head, its tail and its marked lines.
///
/// The head is written to the log at once, the tail waits in a ring buffer. An error of the log (a full disk) never
/// stops the draining, because a child blocked on a full pipe would hang: output is still counted and searched.
#[derive(Debug)]
pub(crate) struct Capture<W> {
    log: W,
    head_room: u64,
    tail: Ring,
    end: Ring,
    marks: LineMarkers,
    bytes: u64,
    error: Option<String>,
}

impl<W: Write> Capture<W> {
    pub(crate) fn new(log: W, cap: OutputCap, markers: &[String]) -> Self {
        Self {
            log,
            head_room: cap.head,
            tail: Ring::new(usize::try_from(cap.tail).unwrap_or(usize::MAX)),
            // Kept apart from `tail`, whose cap may be zero and which has nothing before the head
            // is full.
            end: Ring::new(LAST_LINE_REACH),
            marks: LineMarkers::new(markers),
            bytes: 0,
            error: None,
        }
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.marks.feed(chunk);
        self.end.push(chunk);
        let room = usize::try_from(self.head_room).unwrap_or(usize::MAX);
        let (head, rest) = chunk.split_at(chunk.len().min(room));
        if !head.is_empty() {
            self.head_room -= head.len() as u64;
            self.write(head);
        }
        self.tail.push(rest);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the last line so far, made printable.
    pub(crate) fn last_line(&self) -> String {
        last_line(&self.end.to_vec())
    }

    /// Appends the tail to the log and returns the summary, the marked lines and the log.
    pub(crate) fn finish(mut self) -> (OutputSummary, Vec<String>, W) {
        let left_out = self.tail.dropped();
        if left_out > 0 {
            self.write(format!("\n… {left_out} bytes left out …\n").as_bytes());
        }
        let (older, newer) = self.tail.parts();
        let (older, newer) = (older.to_vec(), newer.to_vec());
        self.write(&older);
        self.write(&newer);
        if let Err(error) = self.log.flush() {
            self.note(&error);
        }
        let summary = OutputSummary {
            bytes: self.bytes,
            truncated: left_out > 0,
            last_line: self.last_line(),
            log_error: self.error,
        };
        (summary, self.marks.finish(), self.log)
    }

    fn write(&mut self, bytes: &[u8]) {
        // After the first error nothing more is written: a log with a gap would look whole.
        if self.error.is_none()
            && let Err(error) = self.log.write_all(bytes)
        {
            self.note(&error);
        }
    }

    fn note(&mut self, error: &io::Error) {
        self.error.get_or_insert_with(|| error.to_string());
    }
}

/// The last `cap` bytes of a stream. Memory grows only as needed.
#[derive(Debug)]
struct Ring {
    bytes: Vec<u8>,
    cap: usize,
    /// The index of the oldest byte once the ring is full.
    oldest: usize,
    pushed: u64,
}

impl Ring {
    fn new(cap: usize) -> Self {
        Self { bytes: Vec::new(), cap, oldest: 0, pushed: 0 }
    }

    fn push(&mut self, chunk: &[u8]) {
        self.pushed += chunk.len() as u64;
        let chunk = &chunk[chunk.len().saturating_sub(self.cap)..];
        let (growing, mut rest) =
            chunk.split_at(chunk.len().min(self.cap.saturating_sub(self.bytes.len())));
        self.bytes.extend_from_slice(growing);
        while !rest.is_empty() {
            let run = rest.len().min(self.cap - self.oldest);
            self.bytes[self.oldest..self.oldest + run].copy_from_slice(&rest[..run]);
            self.oldest = (self.oldest + run) % self.cap;
            rest = &rest[run..];
        }
    }

    fn dropped(&self) -> u64 {
        self.pushed - self.bytes.len() as u64
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        let (newer, older) = self.bytes.split_at(self.oldest);
        (older, newer)
    }

    fn to_vec(&self) -> Vec<u8> {
        let (older, newer) = self.parts();
        [older, newer].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture(head: u64, tail: u64, chunks: &[Vec<u8>]) -> (OutputSummary, Vec<u8>) {
        let mut capture = Capture::new(Vec::new(), OutputCap { head, tail }, &[]);
        for chunk in chunks {
            capture.feed(chunk);
        }
        let (summary, _, log) = capture.finish();
        (summary, log)
    }

    #[test]
    fn b6_what_is_left_out_is_counted_in_a_line_of_its_own() {
        let (summary, log) = capture(3, 2, &[b"abcdefgh".to_vec()]);
        assert_eq!(String::from_utf8(log).unwrap(), "abc\n… 3 bytes left out …\ngh");
        assert!(summary.truncated);
        assert_eq!(summary.bytes, 8);
    }

    #[test]
    fn a_log_that_cannot_be_written_stops_nothing() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let cap = OutputCap { head: 10, tail: 10 };
        let mut capture = Capture::new(Full, cap, &["M".to_owned()]);
        capture.feed(b"one\nM two\n");
        let (summary, marked, _) = capture.finish();
        assert_eq!(summary.bytes, 10);
        assert_eq!(summary.last_line, "M two");
        assert!(summary.log_error.is_some());
        assert_eq!(marked, ["M two"]);
    }

    proptest! {
        #[test]
        fn b6_exactly_the_head_and_the_tail_are_kept(
            head in 0u64..20,
            tail in 0u64..20,
            chunks in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..15), 0..10),
        ) {
            let whole = chunks.concat();
            let (summary, log) = capture(head, tail, &chunks);
            let head = usize::try_from(head).unwrap().min(whole.len());
            let rest = &whole[head..];
            let tail = usize::try_from(tail).unwrap().min(rest.len());
            let left_out = rest.len() - tail;
            let mut expected = whole[..head].to_vec();
            if left_out > 0 {
                expected.extend(format!("\n… {left_out} bytes left out …\n").bytes());
            }
            expected.extend(&rest[rest.len() - tail..]);
            prop_assert_eq!(log, expected);
            prop_assert_eq!(summary.truncated, left_out > 0);
            prop_assert_eq!(summary.bytes, whole.len() as u64);
        }
    }
}
