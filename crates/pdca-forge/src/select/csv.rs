//! Records of a CSV export, with the line of each.
//!
//! The grammar is that of `csv-core`. This reader adds what an export needs: the separator is found, marks at the
//! start are read, lines are counted whatever ends them, and a quote that is never closed is told from a long field.

use std::io::{self, Read};

use csv_core::ReadRecordResult;

/// The most bytes of one record. A longer one is a quote that is never closed.
const MAX_RECORD: usize = 8 << 20;
/// The most fields of one record.
const MAX_FIELDS: usize = 1 << 14;
const CHUNK: usize = 64 << 10;
/// The separators that are looked for, the most usual first.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// A reader of records. The fields of the current one are borrowed.
pub(crate) struct CsvRecords<R> {
    input: R,
    buffer: Vec<u8>,
    next: usize,
    end: usize,
    // Not the reader of the `csv` crate, which takes a quote that is never closed for one long field.
    core: csv_core::Reader,
    output: Vec<u8>,
    /// The end of each field in `output`.
    ends: Vec<usize>,
    fields: usize,
    lines: Lines,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CsvError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("UTF-16")]
    Utf16,
    /// The quote opens in this field, counted from 0, and on this line.
    #[error("unclosed quote")]
    Unclosed { line: u64, field: usize },
    #[error("too long")]
    TooLong { line: u64 },
}

/// Counts lines that end in LF, CR LF or CR.
#[derive(Debug, Clone, Copy)]
struct Lines {
    now: u64,
    after_cr: bool,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\r' => self.now += 1,
                b'\n' if !self.after_cr => self.now += 1,
                _ => {}
            }
            self.after_cr = *byte == b'\r';
        }
    }
}

impl<R: Read> CsvRecords<R> {
    /// Reads the start of an export and finds its separator, unless one is given.
    pub(crate) fn open(input: R, separator: Option<u8>) -> Result<Self, CsvError> {
        let mut records = Self {
            input,
            buffer: vec![0; CHUNK],
            next: 0,
            end: 0,
            core: csv_core::Reader::new(),
            output: vec![0; CHUNK],
            ends: vec![0; 64],
            fields: 0,
            lines: Lines { now: 1, after_cr: false },
        };
        // A pipe hands over little at a time, and the header is needed whole.
        while records.end < CHUNK {
            let read = records.read_more()?;
            if read == 0 {
                break;
            }
        }
        let start = &records.buffer[..records.end];
        // Without a mark, an ASCII header in UTF-16 has a zero among its first two bytes.
        if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] = start {
            return Err(CsvError::Utf16);
        }
        if start.starts_with(b"\xef\xbb\xbf") {
            records.next = 3;
        }
        let declared = records.declared_separator();
        let rest = &records.buffer[records.next..records.end];
        let separator = separator.or(declared).unwrap_or_else(|| sniff(rest));
        records.core = csv_core::ReaderBuilder::new().delimiter(separator).build();
        Ok(records)
    }

    /// Takes the line `sep=;` with which some spreadsheets start a file.
    fn declared_separator(&mut self) -> Option<u8> {
        let rest = &self.buffer[self.next..self.end];
        let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', separator, b'\r' | b'\n', ..] = *rest
        else {
            return None;
        };
        self.lines.feed(&rest[..6]);
        self.next += 6;
        Some(separator)
    }

    /// Reads the next record and returns the line it starts on; `None` at the end.
    pub(crate) fn advance(&mut self) -> Result<Option<u64>, CsvError> {
        // `csv-core` skips empty lines as well, but then the record would be reported at the first of them.
        loop {
            if self.next == self.end && !self.refill()? {
                return Ok(None);
            }
            let byte = self.buffer[self.next];
            if !matches!(byte, b'\r' | b'\n') {
                break;
            }
            self.lines.feed(&[byte]);
            self.next += 1;
        }
        let line = self.lines.now;
        let (mut written, mut fields) = (0, 0);
        loop {
            let at_end = self.next == self.end && !self.refill()?;
            // At the end of the input a line end is put after the last record: outside quotes it ends it.
            let input = if at_end { &b"\n"[..] } else { &self.buffer[self.next..self.end] };
            let (result, read, wrote, ended) =
                self.core.read_record(input, &mut self.output[written..], &mut self.ends[fields..]);
            if !at_end {
                self.lines.feed(&self.buffer[self.next..self.next + read]);
                self.next += read;
            }
            written += wrote;
            fields += ended;
            match result {
                ReadRecordResult::Record => {
                    self.fields = fields;
                    return Ok(Some(line));
                }
                ReadRecordResult::InputEmpty if at_end => {
                    let before =
                        &self.output[..if fields == 0 { 0 } else { self.ends[fields - 1] }];
                    // The line ends inside of finished fields lead from the beginning of the record to the open quote.
                    let mut opened = Lines { now: line, after_cr: false };
                    opened.feed(before);
                    return Err(CsvError::Unclosed { line: opened.now, field: fields });
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.output.len() >= MAX_RECORD => {
                    return Err(CsvError::TooLong { line });
                }
                ReadRecordResult::OutputFull => self.output.resize(self.output.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() >= MAX_FIELDS => {
                    return Err(CsvError::TooLong { line });
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// Returns the number of fields of the current record.
    pub(crate) fn len(&self) -> usize {
        self.fields
    }

    /// Returns the text of the current record, if it is UTF-8. Fields are parts of it.
    pub(crate) fn text(&self) -> Option<CsvText<'_>> {
        let ends = &self.ends[..self.fields];
        let whole = &self.output[..ends.last().copied().unwrap_or(0)];
        // A field that starts inside a character would make two invalid ones of a valid whole.
        let text = std::str::from_utf8(whole).ok()?;
        ends.iter().all(|end| text.is_char_boundary(*end)).then_some(CsvText { text, ends })
    }

    fn refill(&mut self) -> Result<bool, CsvError> {
        (self.next, self.end) = (0, 0);
        Ok(self.read_more()? > 0)
    }

    fn read_more(&mut self) -> io::Result<usize> {
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let read = read?;
                    self.end += read;
                    return Ok(read);
                }
            }
        }
    }
}

/// The text of one record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CsvText<'r> {
    text: &'r str,
    ends: &'r [usize],
}

impl<'r> CsvText<'r> {
    /// Returns a field; an empty text beyond the last.
    pub(crate) fn field(&self, at: usize) -> &'r str {
        let Some(end) = self.ends.get(at) else { return "" };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..*end]
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &'r str> {
        let this = *self;
        (0..this.ends.len()).map(move |at| this.field(at))
    }
}

/// Returns the separator that is most often in the header, outside quotes.
fn sniff(start: &[u8]) -> u8 {
    let mut counts = [0_usize; SEPARATORS.len()];
    let mut quoted = false;
    let header = start.iter().skip_while(|byte| matches!(byte, b'\r' | b'\n'));
    for byte in header {
        match byte {
            b'"' => quoted = !quoted,
            b'\r' | b'\n' if !quoted => break,
            _ if quoted => {}
            _ => {
                if let Some(at) = SEPARATORS.iter().position(|separator| separator == byte) {
                    counts[at] += 1;
                }
            }
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    // Of equal counts the first in `SEPARATORS` wins.
    let at = counts.iter().position(|count| *count == most).unwrap_or(0);
    SEPARATORS[at]
}
