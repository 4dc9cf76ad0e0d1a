//! Finding marked lines in an output of any size.
//!
//! A line is marked if it *starts* with a marker. The search covers the whole output, including the part that the log
//! leaves out, so it must be cheap: it only looks closer where the first byte of a marker follows a line feed.

use std::collections::{BTreeSet, VecDeque};
use std::io::BufRead as _;

use crate::log::without_line_end;

/// The longest marked line that is kept, in bytes. With [`MAX_LINES`] it bounds the verdict, which
/// has all of them.
const MAX_LINE: usize = 4096;
/// The number of lines kept per marker from the first ones, and again from the last ones.
const MAX_LINES: usize = 16;

/// Collects the marked lines of a stream that arrives in chunks.
#[derive(Debug)]
pub(crate) struct LineMarkers {
    markers: Vec<Marker>,
    first_bytes: BTreeSet<u8>,
    place: LinePosition,
    seen: u64,
}

#[derive(Debug)]
struct Marker {
    prefix: Vec<u8>,
    first: Vec<(u64, Vec<u8>)>,
    last: VecDeque<(u64, Vec<u8>)>,
}

/// The state of the search within the current line.
#[derive(Debug)]
enum LinePosition {
    /// The line so far, which may still become a marked one.
    Start(Vec<u8>),
    /// A marked line, with the index of its marker.
    Marked(usize, Vec<u8>),
    /// A line that is not marked.
    Elsewhere,
}

impl LineMarkers {
    pub(crate) fn new(markers: &[String]) -> Self {
        let markers: Vec<Marker> = markers
            .iter()
            .filter(|marker| !marker.is_empty())
            .map(|marker| Marker {
                prefix: marker.clone().into_bytes(),
                first: Vec::new(),
                last: VecDeque::new(),
            })
            .collect();
        Self {
            first_bytes: markers.iter().map(|marker| marker.prefix[0]).collect(),
            markers,
            place: LinePosition::Start(Vec::new()),
            seen: 0,
        }
    }

    pub(crate) fn feed(&mut self, mut chunk: &[u8]) {
        if self.markers.is_empty() {
            return;
        }
        while !chunk.is_empty() {
            let used = match &self.place {
                LinePosition::Start(_) => self.feed_start(chunk),
                LinePosition::Marked(..) => self.feed_marked(chunk),
                LinePosition::Elsewhere => self.feed_elsewhere(chunk),
            };
            chunk = &chunk[used..];
        }
    }

    /// Returns the marked lines in the order they were written, as text.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.end_line();
        let mut lines: Vec<(u64, Vec<u8>)> = self
            .markers
            .into_iter()
            .flat_map(|marker| marker.first.into_iter().chain(marker.last))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines
            .into_iter()
            .map(|(_, line)| String::from_utf8_lossy(without_line_end(&line)).into_owned())
            .collect()
    }

    fn feed_start(&mut self, chunk: &[u8]) -> usize {
        let LinePosition::Start(begun) = &mut self.place else {
            return 0;
        };
        begun.push(chunk[0]);
        let complete = self.markers.iter().position(|marker| begun.starts_with(&marker.prefix));
        if let Some(marker) = complete {
            self.place = LinePosition::Marked(marker, std::mem::take(begun));
        } else if chunk[0] == b'\n' {
            begun.clear();
        } else if !self.markers.iter().any(|marker| marker.prefix.starts_with(begun)) {
            self.place = LinePosition::Elsewhere;
        }
        1
    }

    fn feed_marked(&mut self, chunk: &[u8]) -> usize {
        let LinePosition::Marked(_, line) = &mut self.place else {
            return 0;
        };
        let end = find(chunk, b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        let room = MAX_LINE.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        match end {
            Some(end) => {
                self.end_line();
                end + 1
            }
            None => chunk.len(),
        }
    }

    fn feed_elsewhere(&mut self, chunk: &[u8]) -> usize {
        let mut from = 0;
        while let Some(at) = self.next_first_byte(&chunk[from..]) {
            let at = from + at;
            if at > 0 && chunk[at - 1] == b'\n' {
                self.place = LinePosition::Start(Vec::new());
                return at;
            }
            from = at + 1;
        }
        // The next line begins in the next chunk, whose first byte has no line feed before it
        // there.
        if chunk.ends_with(b"\n") {
            self.place = LinePosition::Start(Vec::new());
        }
        chunk.len()
    }

    fn next_first_byte(&self, chunk: &[u8]) -> Option<usize> {
        self.first_bytes.iter().filter_map(|byte| find(chunk, *byte)).min()
    }

    /// Keeps the current line if it is marked.
    fn end_line(&mut self) {
        let place = std::mem::replace(&mut self.place, LinePosition::Start(Vec::new()));
        if let LinePosition::Marked(index, line) = place {
            let numbered = (self.seen, line);
            self.seen += 1;
            let marker = &mut self.markers[index];
            if marker.first.len() < MAX_LINES {
                marker.first.push(numbered);
            } else {
                if marker.last.len() == MAX_LINES {
                    marker.last.pop_front();
                }
                marker.last.push_back(numbered);
            }
        }
    }
}

/// Returns the index of the first `byte`. `skip_until` is the standard library's only stable fast byte search.
fn find(mut bytes: &[u8], byte: u8) -> Option<usize> {
    let whole = bytes;
    let passed = bytes.skip_until(byte).expect("because reading from memory cannot fail");
    (passed > 0 && whole[passed - 1] == byte).then(|| passed - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marked(markers: &[&str], chunks: &[&[u8]]) -> Vec<String> {
        let markers: Vec<String> = markers.iter().map(ToString::to_string).collect();
        let mut marks = LineMarkers::new(&markers);
        for chunk in chunks {
            marks.feed(chunk);
        }
        marks.finish()
    }

    #[test]
    fn a_marker_counts_only_at_the_start_of_a_line() {
        let output = b"A: 1\nsee A: 2\n A: 3\nB: 4\r\nA: 5";
        assert_eq!(marked(&["A:", "B:"], &[output]), ["A: 1", "B: 4", "A: 5"]);
    }

    #[test]
    fn a_marker_may_be_torn_between_chunks() {
        assert_eq!(marked(&["PDCA-X:"], &[b"no\nPD", b"CA-", b"X: o", b"k\nrest"]), ["PDCA-X: ok"]);
    }

    #[test]
    fn of_many_marked_lines_the_first_and_the_last_are_kept() {
        let output: Vec<String> = (0..1000).map(|line| format!("A{line}\n")).collect();
        let lines = marked(&["A"], &[output.concat().as_bytes()]);
        assert_eq!(lines.len(), 2 * MAX_LINES);
        assert_eq!(lines[0], "A0");
        assert_eq!(lines[2 * MAX_LINES - 1], "A999");
    }

    #[test]
    fn a_marked_line_is_cut_at_its_bound() {
        let output = [b"A".repeat(3 * MAX_LINE), b"\nA2\n".to_vec()].concat();
        let lines = marked(&["A"], &[&output]);
        assert_eq!(lines[0].len(), MAX_LINE);
        assert_eq!(lines[1], "A2");
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(
            output in "[AB:x\n]{0,200}",
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(output.len())).collect();
            cuts.extend([0, output.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &output.as_bytes()[w[0]..w[1]]).collect();
            let expected: Vec<&str> = output
                .split('\n')
                .filter(|line| line.starts_with("A:") || line.starts_with("Bx"))
                .collect();
            prop_assume!(expected.len() <= MAX_LINES);
            prop_assert_eq!(marked(&["A:", "Bx"], &chunks), expected);
        }
    }
}
