//! The leaf calls that a leg may make where the run cannot count them.

use std::sync::{Mutex, PoisonError};

use camino::Utf8PathBuf;
use pdca_state::files;

use crate::run_bundle::BeatError;

/// The leaf calls that a leg may make, counted by the machine that runs it.
///
/// The count is on disk before a call starts, so that a process that takes the leg over goes on with it.
#[derive(Debug)]
pub struct CallGrant {
    /// The number of calls that the run made before.
    before: u64,
    limit: Option<u64>,
    called: Mutex<u64>,
    file: Utf8PathBuf,
}

impl CallGrant {
    /// Goes on from the count in `file`, which may not exist.
    pub fn open(before: u64, limit: Option<u64>, file: Utf8PathBuf) -> std::io::Result<Self> {
        let called = match files::read_bounded(&file, 64).map_err(std::io::Error::other)? {
            None => 0,
            Some(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let bad = |error| std::io::Error::other(format!("{file} is no count: {error}"));
                text.trim().parse().map_err(bad)?
            }
        };
        Ok(Self { before, limit, called: Mutex::new(called), file })
    }

    /// Takes one call.
    pub(crate) fn take(&self) -> Result<(), BeatError> {
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        if self.limit.is_some_and(|limit| *called >= limit) {
            return Err(BeatError::Capped { called: self.before + *called });
        }
        let next = *called + 1;
        // On disk before the call starts: a process that takes over must not get the calls a second
        // time.
        files::replace(&self.file, format!("{next}\n").as_bytes()).map_err(BeatError::Own)?;
        *called = next;
        Ok(())
    }

    /// Returns the number of calls that were made.
    pub fn called(&self) -> u64 {
        *self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_used_up_call_by_call_also_over_restarts_and_a_refused_call_is_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let file = Utf8PathBuf::from_path_buf(dir.path().join("calls")).unwrap();
        let open = |limit| CallGrant::open(5, limit, file.clone()).unwrap();
        assert!(open(Some(2)).take().is_ok());
        let grant = open(Some(2));
        assert!(grant.take().is_ok());
        for grant in [grant, open(Some(2))] {
            assert!(matches!(grant.take(), Err(BeatError::Capped { called: 7 })));
            assert_eq!(grant.called(), 2);
        }
        assert!(open(None).take().is_ok());
        fs_err::write(&file, "torn").unwrap();
        assert!(CallGrant::open(5, None, file).is_err());
    }
}
