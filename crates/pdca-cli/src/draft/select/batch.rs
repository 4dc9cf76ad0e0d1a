//! The index of a batch on disk.

use camino::{Utf8Path, Utf8PathBuf};
use jiff::civil::Date;
use pdca_forge::select::{BatchIndex, BatchRow, IssueRecord, Pool};
use pdca_process::{FileLock, FileLockError};
use pdca_state::files;
use pdca_workspace::config::workspace::Workspace;

use super::output::age_of;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};

/// The largest index, in bytes.
const MAX_INDEX: u64 = 16 << 20;

/// The index of a batch and its file, which need not exist.
pub(super) struct DraftBatch {
    pub(super) name: String,
    pub(super) file: Utf8PathBuf,
    pub(super) index: BatchIndex,
}

/// Returns the name of the batch: the given one, which becomes a file name, or today's date.
pub(super) fn name(given: Option<&str>, cx: &Context<'_>) -> Result<String, Failure> {
    let Some(given) = given else { return Ok(cx.env.today()) };
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    // It becomes a file name: no directory, nothing hidden, and nothing that a program takes for an option.
    let is_name = (1..=80).contains(&given.len())
        && !given.starts_with(['.', '-'])
        && given.chars().all(legal);
    if is_name {
        return Ok(given.to_owned());
    }
    Err(Failure::usage(format!("`{given}` cannot be the name of a batch"))
        .hint("use letters, digits, `.`, `_` and `-`"))
}

pub(super) fn file(workspace: &Workspace, name: &str) -> Utf8PathBuf {
    workspace.process_dir.join("batches").join(format!("{name}.md"))
}

/// Locks out a second selection while this one reads and replaces the index.
pub(super) fn lock(file: &Utf8Path) -> Result<FileLock, Failure> {
    let dir = file.parent().unwrap_or(file);
    fs_err::create_dir_all(dir).map_err(|error| unwritable(dir, &error))?;
    match FileLock::take(&dir.join(".pdca.lock"), "") {
        Ok(taken) => Ok(taken.transient()),
        Err(FileLockError::Held { .. }) => Err(Failure::usage("another `pdca select` is at work")
            .at(FilePosition::file(dir))
            .hint("repeat the command when that is done")),
        Err(error) => Err(unwritable(dir, &error.into())),
    }
}

fn unwritable(path: &Utf8Path, error: &std::io::Error) -> Failure {
    Failure::from_error(Exit::Unexpected, error)
        .at(FilePosition::file(path))
        .hint("make room and make the directory writable, then repeat the command")
}

impl DraftBatch {
    pub(super) fn load(file: Utf8PathBuf, name: &str) -> Result<Self, Failure> {
        let index = match files::read_bounded(&file, MAX_INDEX)? {
            None => BatchIndex::new(name),
            Some(bytes) => BatchIndex::parse(&String::from_utf8(bytes).map_err(|_| {
                Failure::usage("the index of the batch is not UTF-8")
                    .at(FilePosition::file(&*file))
                    .hint("save it as UTF-8, or name another batch with `--batch`")
            })?),
        };
        Ok(Self { name: name.to_owned(), file, index })
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
            let age = age_of(record, today).map_or_else(String::new, |days| format!("{days} d"));
            let cells = [
                pool.bucket_of(record).name.clone(),
                record.severity.to_string(),
                age,
                record.title.to_string(),
            ];
            self.index.put(BatchRow { id: record.id.clone(), cells });
        }
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        files::replace(&self.file, self.index.text().as_bytes())
            .map_err(|error| unwritable(&self.file, &error))
    }
}
