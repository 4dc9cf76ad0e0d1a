//! Lines of an output of any shape, without colours and never long.

/// The longest part of a line that is read. Names of tests are shorter, and so is what `go test
/// -json` says about one.
const LONGEST: usize = 4096;

/// Cuts a stream of pieces into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
}

impl Lines {
    /// Reads the next piece. A carriage return ends a line too: what is drawn over was a line.
    pub(super) fn feed(&mut self, piece: &[u8], each: &mut dyn FnMut(&str)) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.take(&rest[..end]);
            // Of a line end of two characters the second ends an empty line, which nobody reads.
            let is_pair = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
            self.end(each);
            rest = &rest[end + 1 + usize::from(is_pair)..];
        }
        self.take(rest);
    }

    /// Reads what is left without an end.
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

/// A line without escape sequences and control characters. Tabs stay: some runners mean them.
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
