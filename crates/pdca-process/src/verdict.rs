//! The verdict about a child, stored in a file that outlives the driver.

use std::io;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::ending::{Ending, SandboxKind};

const FILE: &str = "verdict.json";
const TEMPORARY: &str = ".verdict.json.tmp";
const FORMAT: u32 = 1;
/// The longest accepted file; a longer one was not written by a supervisor.
const MAX_BYTES: u64 = 4 << 20;
/// Room for a verdict without many marked lines, so that it is read at once.
const USUAL_BYTES: usize = 4 << 10;

/// The whole result of one supervised child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChildVerdict {
    /// The way in which the child ended.
    pub ending: Ending,
    /// The time from its start to its ending, without the clean-up of its tree.
    #[serde(rename = "duration_ms", with = "milliseconds")]
    pub duration: Duration,
    /// A summary of everything the child wrote.
    pub output: OutputSummary,
    /// A summary of standard output alone, if that was [kept](crate::Spec::keep_printed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<Box<OutputSummary>>,
    /// The lines that start with one of [`Spec::markers`](crate::Spec::markers), in order, each cut at 4 KiB. Of each
    /// marker the first 16 and the last 16 lines are kept.
    pub marked: Vec<String>,
    /// The sandbox that held the child.
    pub held: SandboxKind,
    /// The number of processes of the tree that outlived the child and had to be ended. Under `bwrap` the kernel ends
    /// them with the child, and none is counted.
    pub stragglers: u32,
}

/// A summary of the output of a child.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OutputSummary {
    /// The number of bytes written.
    pub bytes: u64,
    /// True if the log left something out.
    pub truncated: bool,
    /// The last line that is not blank, made printable; empty if there is none.
    pub last_line: String,
    /// The error that made the log incomplete, if writing it failed. The child is not to blame for it.
    pub log_error: Option<String>,
}

/// Failure to read a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerdictError {
    /// The file exists but cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The verdict file.
        path: Utf8PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is too long for a verdict.
    #[error("{path} is longer than {MAX_BYTES} bytes")]
    TooLong {
        /// The verdict file.
        path: Utf8PathBuf,
    },
    /// The file is not a verdict.
    #[error("{path} is not a verdict")]
    Malformed {
        /// The verdict file.
        path: Utf8PathBuf,
        /// The position and kind of the syntax error.
        source: serde_json::Error,
    },
    /// The file was written by another version of this program.
    #[error("{path} has verdict format {found}, this program knows format {FORMAT}")]
    Format {
        /// The verdict file.
        path: Utf8PathBuf,
        /// The format number in the file.
        found: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<V> {
    format: u32,
    verdict: V,
}

/// Reads the verdict in a job directory; `None` if the child has not ended yet.
pub fn load_verdict(job: &Utf8Path) -> Result<Option<ChildVerdict>, VerdictError> {
    let path = job.join(FILE);
    let read = |source| VerdictError::Read { path: path.clone(), source };
    let file = match fs::File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(read(error)),
    };
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(read)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(VerdictError::TooLong { path });
    }
    parse(&bytes).map(Some).map_err(|error| match error {
        ParseError::Malformed(source) => VerdictError::Malformed { path, source },
        ParseError::Format(found) => VerdictError::Format { path, found },
    })
}

#[derive(Debug)]
enum ParseError {
    Malformed(serde_json::Error),
    Format(u32),
}

fn parse(bytes: &[u8]) -> Result<ChildVerdict, ParseError> {
    #[derive(Deserialize)]
    struct Stamp {
        format: u32,
    }
    // Read by itself first: a later format may have fields that `deny_unknown_fields` refuses, and
    // the error should name the format.
    let stamp: Stamp = serde_json::from_slice(bytes).map_err(ParseError::Malformed)?;
    if stamp.format != FORMAT {
        return Err(ParseError::Format(stamp.format));
    }
    let document: Document<ChildVerdict> =
        serde_json::from_slice(bytes).map_err(ParseError::Malformed)?;
    Ok(document.verdict)
}

impl ChildVerdict {
    /// Creates a verdict that says nothing but the ending.
    pub(crate) fn bare(ending: Ending) -> Self {
        Self {
            ending,
            duration: Duration::ZERO,
            output: OutputSummary::default(),
            printed: None,
            marked: Vec::new(),
            held: SandboxKind::Off,
            stragglers: 0,
        }
    }

    /// Writes the verdict into the job directory atomically.
    pub(crate) fn store(&self, job: &Utf8Path) -> io::Result<()> {
        let temporary = job.join(TEMPORARY);
        let mut file = fs::File::create(&temporary)?;
        file.write_all(&self.to_json())?;
        // Before the rename: after a power failure the name could otherwise lead to an empty file.
        file.sync_data()?;
        // The directory is not synced: a verdict lost in a power failure only means that the job runs again.
        fs::rename(&temporary, job.join(FILE))
    }

    fn to_json(&self) -> Vec<u8> {
        let document = Document { format: FORMAT, verdict: self };
        let mut json = serde_json::to_vec_pretty(&document)
            .expect("because a verdict has only text keys and finite numbers");
        json.push(b'\n');
        json
    }
}

/// Removes the verdict of an earlier run from the job directory.
pub(crate) fn forget(job: &Utf8Path) -> io::Result<()> {
    for name in [FILE, TEMPORARY] {
        match fs::remove_file(job.join(name)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ending::Obstacle;

    fn endings() -> impl Strategy<Value = Ending> {
        prop_oneof![
            any::<i32>().prop_map(Ending::Exited),
            any::<i32>().prop_map(Ending::Signaled),
            Just(Ending::TimedOut),
            Just(Ending::Stalled),
            any::<u64>().prop_map(|cap| Ending::OverMemory { cap }),
            Just(Ending::Cancelled),
            any::<String>().prop_map(|why| Ending::NotStarted { kind: Obstacle::NotFound, why }),
            any::<String>().prop_map(|why| Ending::Infra { why }),
        ]
    }

    fn held() -> impl Strategy<Value = SandboxKind> {
        prop_oneof![
            any::<u32>().prop_map(|abi| SandboxKind::Landlock { abi }),
            any::<String>().prop_map(|why| SandboxKind::NotAvailable { why }),
            Just(SandboxKind::Off),
        ]
    }

    proptest! {
        #[test]
        fn a_stored_verdict_is_loaded_as_it_was(
            ending in endings(),
            held in held(),
            ms in any::<u64>(),
            (bytes, truncated, last_line) in any::<(u64, bool, String)>(),
            marked in any::<Vec<String>>(),
        ) {
            let output = OutputSummary { bytes, truncated, last_line, log_error: None };
            let duration = Duration::from_millis(ms);
            let printed = None;
            let verdict =
                ChildVerdict { ending, duration, output, printed, marked, held, stragglers: 1 };
            prop_assert_eq!(parse(&verdict.to_json()).unwrap(), verdict);
        }

        #[test]
        fn bytes_that_are_no_verdict_are_an_error(bytes in any::<Vec<u8>>()) {
            prop_assert!(parse(&bytes).is_err());
        }

        #[test]
        fn a_verdict_that_was_cut_is_an_error(cut in 0usize..1000) {
            let json = ChildVerdict::bare(Ending::Exited(0)).to_json();
            // Without its last line feed it is still whole.
            let cut = cut % (json.len() - 1);
            prop_assert!(parse(&json[..cut]).is_err());
        }
    }

    #[test]
    fn a_verdict_of_another_format_is_refused() {
        let json = br#"{"format": 2, "verdict": {"surprise": true}}"#;
        assert!(matches!(parse(json), Err(ParseError::Format(2))));
    }

    #[test]
    fn e15_a_damaged_verdict_file_is_an_error_and_a_missing_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let job = Utf8Path::from_path(dir.path()).unwrap();
        assert_eq!(load_verdict(job).unwrap(), None);
        std::fs::write(job.join(FILE), "{").unwrap();
        assert!(matches!(load_verdict(job), Err(VerdictError::Malformed { .. })));
        forget(job).unwrap();
        assert_eq!(load_verdict(job).unwrap(), None);
    }
}
