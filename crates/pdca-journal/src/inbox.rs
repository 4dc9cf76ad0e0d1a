//! Requests from other processes to the driver of a run, handled exactly once.
//!
//! 1. A client writes a file with a unique name into `inbox/`.
//! 2. The driver records the request in the journal.
//! 3. The driver removes the file. After a crash between 2 and 3 the name is in the journal, so the
//!    file is only removed and the request is not recorded twice.
//! 4. The driver carries it out and records the answer. After a crash before that, the next driver
//!    finds the request in [`RunState::requests`].
//!
//! [`RunState::requests`]: crate::RunState::requests

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files::{self, FileReadError};

use crate::journal::{AppendError, Journal};
use crate::record::{InboxRequest, Record};
use crate::run_id::RunId;
use crate::runs::Runs;
use crate::timestamp::Moment;

const DIR: &str = "inbox";
const SUFFIX: &str = ".json";
/// Suffix added to the name of a file that is not a valid request.
const REFUSED: &str = ".refused";
const MAX_BYTES: u64 = 64 << 10;

/// The inbox of a run.
#[derive(Debug, Clone)]
pub struct Inbox {
    dir: Utf8PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The request could not be recorded. It is still in the inbox.
    #[error("the request {id} could not be recorded")]
    Append { id: String, source: AppendError },
    #[error("cannot use {path}")]
    Io { path: Utf8PathBuf, source: io::Error },
}

/// The result of [`Inbox::take`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenRequests {
    /// The ids of the requests that are in the journal now.
    pub requests: Vec<String>,
    /// The new paths of files that are not valid requests.
    pub refused: Vec<Utf8PathBuf>,
}

impl Inbox {
    /// Makes a handle to the inbox of a run, which need not exist.
    pub fn new(runs: &Runs, run: &RunId) -> Self {
        Self { dir: runs.dir(run).join(DIR) }
    }

    /// Submits a request under a fresh, unique id.
    pub fn drop_request(&self, id: &RunId, request: &InboxRequest) -> Result<(), InboxError> {
        let path = self.dir.join(format!("{id}{SUFFIX}"));
        let made = serde_json::to_vec(request).map_err(io::Error::from).and_then(|bytes| {
            fs_err::create_dir_all(&self.dir)?;
            files::replace(&path, &bytes)
        });
        made.map_err(|source| InboxError::Io { path, source })
    }

    /// Records the requests in the inbox, in the order of their ids.
    pub fn take(&self, journal: &mut Journal, at: Moment) -> Result<TakenRequests, InboxError> {
        let mut taken = TakenRequests::default();
        for id in self.ids()? {
            let path = self.dir.join(format!("{id}{SUFFIX}"));
            let io = |source| InboxError::Io { path: path.clone(), source };
            let state = journal.state();
            // The file can be there after its record is: the removal below is not synced, and the
            // driver can die before it.
            let is_known = state.requests.contains_key(&id) || state.answered.contains(&id);
            if !is_known {
                let Some(request) = read(&path).map_err(io)? else {
                    // Renamed and not deleted: a person may want to see what was refused, and `ids`
                    // reports it only once.
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
            // Skips temporaries of a client that is writing, and refused files.
            let id = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            // An id is written into the journal and becomes part of a path, so it must have the
            // safe form.
            ids.extend(id.filter(|id| id.parse::<RunId>().is_ok()).map(str::to_owned));
        }
        // Ids begin with their time, so this is the order in which the requests were made.
        ids.sort_unstable();
        Ok(ids)
    }
}

/// Reads a request; `None` if the file is not a valid one.
fn read(path: &Utf8Path) -> io::Result<Option<InboxRequest>> {
    match files::read_bounded(path, MAX_BYTES) {
        Ok(Some(bytes)) => Ok(serde_json::from_slice(&bytes).ok()),
        // A failing disk says nothing about the request. It stays in the inbox for the next
        // attempt.
        Err(FileReadError::Io { source, .. }) => Err(source),
        Ok(None)
        | Err(
            FileReadError::NotAFile { .. }
            | FileReadError::LeadsOut { .. }
            | FileReadError::TooLarge { .. },
        ) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, at, run};

    fn request() -> InboxRequest {
        InboxRequest::Unblock { bundle: Some("12".parse().unwrap()), note: None }
    }

    fn name(number: u8) -> RunId {
        RunId::new(at(0).wall, [number; 10])
    }

    #[test]
    fn c21_a_request_is_taken_once_wherever_the_driver_dies() {
        let scene = Scene::new();
        let mut journal = scene.create();
        let inbox = Inbox::new(&scene.runs(), &run());
        assert_eq!(inbox.take(&mut journal, at(1)).unwrap(), TakenRequests::default());
        inbox.drop_request(&name(1), &request()).unwrap();
        let file = scene.runs().dir(&run()).join(format!("inbox/{}.json", name(1)));
        let bytes = fs_err::read(&file).unwrap();
        let taken = inbox.take(&mut journal, at(1)).unwrap();
        assert_eq!(taken.requests, [name(1).to_string()]);
        assert!(!file.exists());
        let open = &journal.state().requests;
        assert_eq!(open[name(1).as_str()], request());

        // The driver died after it had recorded the request, and before the file was gone.
        fs_err::write(&file, &bytes).unwrap();
        drop(journal);
        let mut journal = scene.open(2).unwrap().journal;
        assert_eq!(inbox.take(&mut journal, at(3)).unwrap(), TakenRequests::default());
        assert!(!file.exists());
        assert_eq!(journal.state().requests.len(), 1, "it is still to be answered");
        let answered = Record::Answered { id: name(1).to_string(), refusal: None };
        journal.append(at(3), vec![answered]).unwrap();

        // And after it had answered it.
        fs_err::write(&file, &bytes).unwrap();
        assert_eq!(inbox.take(&mut journal, at(3)).unwrap(), TakenRequests::default());
        assert!(!file.exists() && journal.state().requests.is_empty());
    }

    #[test]
    fn requests_are_taken_in_the_order_of_their_names() {
        let scene = Scene::new();
        let mut journal = scene.create();
        let inbox = Inbox::new(&scene.runs(), &run());
        for number in [3, 1, 2] {
            inbox.drop_request(&name(number), &request()).unwrap();
        }
        let taken = inbox.take(&mut journal, at(1)).unwrap();
        assert_eq!(taken.requests, [1, 2, 3].map(|number| name(number).to_string()));
    }

    #[test]
    fn what_is_no_request_is_set_aside_and_told_once() {
        let scene = Scene::new();
        let mut journal = scene.create();
        let dir = scene.runs().dir(&run()).join("inbox");
        fs_err::create_dir(&dir).unwrap();
        let hostile = dir.join(format!("{}.json", name(1)));
        fs_err::write(&hostile, "{\"request\": \"sudo\"}").unwrap();
        fs_err::os::unix::fs::symlink("/etc/passwd", dir.join(format!("{}.json", name(2))))
            .unwrap();
        fs_err::write(dir.join(".half.json.pdca-tmp-1"), "{").unwrap();
        fs_err::write(dir.join("..json"), "{").unwrap();
        let inbox = Inbox::new(&scene.runs(), &run());
        let before = scene.bytes();
        let taken = inbox.take(&mut journal, at(1)).unwrap();
        assert_eq!(taken.requests, [""; 0]);
        assert_eq!(taken.refused.len(), 2);
        assert!(taken.refused.iter().all(|path| path.is_symlink() || path.exists()));
        assert_eq!(scene.bytes(), before);
        assert_eq!(inbox.take(&mut journal, at(1)).unwrap(), TakenRequests::default());
    }
}
