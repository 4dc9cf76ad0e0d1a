//! Splitting an output into lines, without colours and with bounded length.

/// The longest part of a line that is read: longer than names of tests, and than the events of `go test -json`.
const LONGEST: usize = 4096;

/// Splits a stream of pieces into lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    line: Vec<u8>,
}

impl LineSplitter {
    /// Reads the next piece. A carriage return also ends a line: a line that is redrawn was a line.
    pub(super) fn feed(&mut self, piece: &[u8], each: &mut dyn FnMut(&str)) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.take(&rest[..end]);
            // The line feed after a carriage return would only end an empty line.
            let is_pair = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
            self.end(each);
            rest = &rest[end + 1 + usize::from(is_pair)..];
        }
        self.take(rest);
    }

    /// Reads a last line without a line end.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.line.is_empty() {
            self.end(each);
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.line.capacity()
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = LONGEST.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self, each: &mut dyn FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.line);
        each(&without_colours(&text));
        self.line.clear();
    }
}

/// Removes escape sequences and control characters. Tabs stay, because some runners use them.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            crate::marker::skip_escape(&mut letters);
        } else if letter == '\t' || !letter.is_control() {
            plain.push(letter);
        }
    }
    plain
}
