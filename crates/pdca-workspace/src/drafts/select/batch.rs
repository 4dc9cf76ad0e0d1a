//! The index of a batch on disk.

use camino::{Utf8Path, Utf8PathBuf};
use jiff::civil::Date;
use pdca_forge::select::{BatchIndex, BatchRow, IssueRecord, Pool};
use pdca_process::{FileLock, FileLockError};
use pdca_state::files;

use super::{DraftBatchRef, SelectError};
use crate::OperationError;
use crate::config::workspace::Workspace;

/// The largest index, in bytes.
const MAX_INDEX: u64 = 16 << 20;

/// The index of a batch and its file, which need not exist.
pub(super) struct DraftBatch {
    pub(super) file: Utf8PathBuf,
    pub(super) index: BatchIndex,
}

/// Returns the name of the batch: the given one, which becomes a file name, or today's date.
pub(super) fn name(given: Option<&str>, today: Date) -> Result<String, SelectError> {
    let Some(given) = given else { return Ok(today.to_string()) };
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    // It becomes a file name: no directory, nothing hidden, and nothing that a program takes for an option.
    let is_name = (1..=80).contains(&given.len())
        && !given.starts_with(['.', '-'])
        && given.chars().all(legal);
    if is_name {
        return Ok(given.to_owned());
    }
    Err(SelectError::NotABatchName { given: given.to_owned() })
}

pub(super) fn file(workspace: &Workspace, name: &str) -> Utf8PathBuf {
    workspace.process_dir.join("batches").join(format!("{name}.md"))
}

/// Locks out a second selection while this one reads and replaces the index.
pub(super) fn lock(file: &Utf8Path) -> Result<FileLock, SelectError> {
    let dir = file.parent().unwrap_or(file);
    let failed = |source| SelectError::Write { path: dir.to_owned(), source };
    fs_err::create_dir_all(dir).map_err(failed)?;
    match FileLock::take(&dir.join(".pdca.lock"), "") {
        Ok(taken) => Ok(taken.transient()),
        Err(FileLockError::Held { .. }) => Err(SelectError::Busy { dir: dir.to_owned() }),
        Err(error) => Err(failed(error.into())),
    }
}

impl DraftBatch {
    pub(super) fn load(batch: &DraftBatchRef) -> Result<Self, OperationError> {
        let file = batch.file.clone();
        let index = match files::read_bounded(&file, MAX_INDEX)? {
            None => BatchIndex::new(&batch.name),
            Some(bytes) => match String::from_utf8(bytes) {
                Ok(text) => BatchIndex::parse(&text),
                Err(_) => return Err(SelectError::IndexNotUtf8 { file }.into()),
            },
        };
        Ok(Self { file, index })
    }

    /// Lists the records in the index that it does not have.
    pub(super) fn put(&mut self, chosen: &[&IssueRecord], pool: &Pool, source: &str, today: Date) {
        let sums: Vec<String> =
            pool.tallies().iter().map(|tally| format!("{} {}", tally.count, tally.name)).collect();
        let source = source.split_whitespace().collect::<Vec<_>>().join(" ").replace("-->", "");
        self.index.about =
            format!("From {source}: {} records = {}.", pool.records.len(), sums.join(" + "));
        let new: Vec<&&IssueRecord> =
            chosen.iter().filter(|record| !self.index.contains(&record.id)).collect();
        for record in new {
            let age = record.age(today).map_or_else(String::new, |days| format!("{days} d"));
            let cells = [
                pool.bucket_of(record).name.clone(),
                record.severity.to_string(),
                age,
                record.title.to_string(),
            ];
            self.index.put(BatchRow { id: record.id.clone(), cells });
        }
    }

    pub(super) fn write(&self) -> Result<(), SelectError> {
        files::replace(&self.file, self.index.text().as_bytes())
            .map_err(|source| SelectError::Write { path: self.file.clone(), source })
    }
}
