//! The records of an attempt, read while it prints them.

use std::io::{Read as _, Seek as _, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::{
    command::OUTPUT,
    protocol::{Protocol, ProtocolReader},
};

/// The end of what an attempt prints.
pub(crate) struct OutputTail {
    file: Utf8PathBuf,
    read: u64,
    pub(crate) reader: ProtocolReader,
}

impl OutputTail {
    /// The output of the attempt whose process job is at `job`.
    pub(crate) fn of(protocol: Protocol, job: &Utf8Path) -> Self {
        let file = pdca_process::printed_path(job);
        Self { file, read: 0, reader: ProtocolReader::new(protocol) }
    }

    /// Returns whether more may have been printed than can be read before the end: the supervisor writes the head of an output
    /// while the program runs, and the tail after it has ended.
    pub(crate) fn is_full(&self) -> bool {
        self.read >= OUTPUT.head
    }

    /// Reads what was printed since. What cannot be read yet is read later.
    pub(crate) fn read_on(&mut self) {
        // The file is made by the supervisor, perhaps after the first look; the position is kept,
        // so nothing is lost.
        let _read = self.try_read_on();
    }

    fn try_read_on(&mut self) -> std::io::Result<()> {
        let mut file = fs::File::open(&self.file)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut piece = vec![0; 64 << 10];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(()),
                read => {
                    self.read += read as u64;
                    self.reader.feed(&piece[..read]);
                }
            }
        }
    }
}
