//! Requests to the driver of a run, dropped as files and taken exactly once.
//!
//! A request is taken by *recording* it; its file is removed afterwards. So a crash between the two
//! leaves a file whose name is in the journal, and that one is only removed. A request that is recorded
//! and not answered is still there for the next driver, in [`RunState::requests`].
//!
//! [`RunState::requests`]: crate::RunState::requests

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files::{self, ReadError};

use crate::journal::{AppendError, Journal};
use crate::record::{Record, Request};
use crate::run_id::RunId;
use crate::runs::Runs;
use crate::timestamp::Moment;

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
        let made = serde_json::to_vec(request).map_err(io::Error::from).and_then(|bytes| {
            fs_err::create_dir_all(&self.dir)?;
            files::replace(&path, &bytes)
        });
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
                let Some(request) = read(&path).map_err(io)? else {
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
fn read(path: &Utf8Path) -> io::Result<Option<Request>> {
    match files::read_bounded(path, MAX_BYTES) {
        Ok(Some(bytes)) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(ReadError::Io { source, .. }) => Err(source),
        Ok(None)
        | Err(
            ReadError::NotAFile { .. } | ReadError::LeadsOut { .. } | ReadError::TooLarge { .. },
        ) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, at, run};

    fn request() -> Request {
        Request::Unblock { bundle: Some("12".parse().unwrap()), note: None }
    }

    fn name(number: u8) -> RunId {
        RunId::new(at(0).wall, [number; 10])
    }

    #[test]
    fn c21_a_request_is_taken_once_wherever_the_driver_dies() {
        let scene = Scene::new();
        let mut journal = scene.create();
        let inbox = Inbox::new(&scene.runs(), &run());
        assert_eq!(inbox.take(&mut journal, at(1)).unwrap(), Taken::default());
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
        assert_eq!(inbox.take(&mut journal, at(3)).unwrap(), Taken::default());
        assert!(!file.exists());
        assert_eq!(journal.state().requests.len(), 1, "it is still to be answered");
        let answered = Record::Answered { id: name(1).to_string(), refusal: None };
        journal.append(at(3), vec![answered]).unwrap();

        // And after it had answered it.
        fs_err::write(&file, &bytes).unwrap();
        assert_eq!(inbox.take(&mut journal, at(3)).unwrap(), Taken::default());
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
        assert_eq!(inbox.take(&mut journal, at(1)).unwrap(), Taken::default());
    }
}
