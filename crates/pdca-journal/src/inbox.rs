//! Requests to the driver of a run, dropped as files and taken exactly once.
//!
//! A request is taken by *recording* it; its file is removed afterwards. So a crash between the two
//! leaves a file whose name is in the journal, and that one is only removed. A request that is recorded
//! and not answered is still there for the next driver, in [`RunState::requests`].
//!
//! [`RunState::requests`]: crate::RunState::requests

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files;

use crate::journal::{AppendError, Journal};
use crate::moment::Moment;
use crate::record::{Record, Request};
use crate::run_id::RunId;
use crate::runs::Runs;

const DIR: &str = "inbox";
const SUFFIX: &str = ".json";
/// What follows the name of a file that is no request.
const REFUSED: &str = ".refused";
const MAX_BYTES: u64 = 64 << 10;

/// The inbox of a run.
#[derive(Debug, Clone)]
pub struct Inbox {
    dir: Utf8PathBuf,
}

/// Why the inbox could not be used.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The request could not be recorded. It is still in the inbox.
    #[error("the request {id} could not be recorded")]
    Append {
        /// Its name.
        id: String,
        /// Why.
        source: AppendError,
    },
    /// The system would not.
    #[error("cannot use {path}")]
    Io {
        /// What was to be used.
        path: Utf8PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// What was in the inbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The names of the requests that were taken. Their text is in the journal now.
    pub requests: Vec<String>,
    /// Where those are now that are no requests.
    pub refused: Vec<Utf8PathBuf>,
}

impl Inbox {
    /// The inbox of a run, which need not exist yet.
    pub fn new(runs: &Runs, run: &RunId) -> Self {
        Self { dir: runs.dir(run).join(DIR) }
    }

    /// Drops a request, under a name that is used once: a fresh id, such as a run's.
    pub fn drop_request(&self, id: &RunId, request: &Request) -> Result<(), InboxError> {
        let path = self.dir.join(format!("{id}{SUFFIX}"));
        let bytes = serde_json::to_vec(request).expect("because a request is names and text");
        let made = fs_err::create_dir_all(&self.dir).and_then(|()| files::replace(&path, &bytes));
        made.map_err(|source| InboxError::Io { path, source })
    }

    /// Takes what is in the inbox into the journal, in the order of names.
    pub fn take(&self, journal: &mut Journal, at: Moment) -> Result<Taken, InboxError> {
        let mut taken = Taken::default();
        for id in self.ids()? {
            let path = self.dir.join(format!("{id}{SUFFIX}"));
            let io = |source| InboxError::Io { path: path.clone(), source };
            let state = journal.state();
            let is_known = state.requests.contains_key(&id) || state.answered.contains(&id);
            if !is_known {
                let Some(request) = read(&path) else {
                    let refused = Utf8PathBuf::from(format!("{path}{REFUSED}"));
                    fs_err::rename(&path, &refused).map_err(io)?;
                    taken.refused.push(refused);
                    continue;
                };
                journal
                    .append(at, vec![Record::Requested { id: id.clone(), request }])
                    .map_err(|source| InboxError::Append { id: id.clone(), source })?;
                taken.requests.push(id);
            }
            fs_err::remove_file(&path).map_err(io)?;
        }
        Ok(taken)
    }

    fn ids(&self) -> Result<Vec<String>, InboxError> {
        let io = |source| InboxError::Io { path: self.dir.clone(), source };
        let entries = match fs_err::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io(error)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(io)?.file_name();
            // A temporary of somebody who is dropping one, and what was refused, are no requests.
            let id = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            ids.extend(id.filter(|id| id.parse::<RunId>().is_ok()).map(str::to_owned));
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

/// What a file asks for; `None` where it is no request.
fn read(path: &Utf8Path) -> Option<Request> {
    let bytes = files::read_bounded(path, MAX_BYTES).ok()??;
    serde_json::from_slice(&bytes).ok()
}
