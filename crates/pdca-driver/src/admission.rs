//! One driver at a time: kernel locks on files below `.pdca`.
//!
//! A lock says who is alive without a clock: the kernel gives it up when its holder dies, however
//! it dies. The file stays; only the lock on it means anything. Who holds it is written into the
//! file for people, and is never relied on.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};

use camino::{Utf8Path, Utf8PathBuf};

/// A lock that is held; dropping it gives it back.
#[derive(Debug)]
pub struct Held {
    _file: File,
}

/// Why a lock was not to be had.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// Somebody else holds it.
    #[error("{what} is held by {holder}")]
    Taken {
        /// What was to be locked.
        what: String,
        /// Who says they hold it.
        holder: String,
        /// The lock's file.
        path: Utf8PathBuf,
    },
    /// The lock's file cannot be used; also a filesystem that cannot lock.
    #[error("cannot lock `{path}`")]
    Unusable {
        /// The lock's file.
        path: Utf8PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Takes the lock at `path`, which stands for `what`, in the name of `holder`.
pub(crate) fn admit(path: &Utf8Path, what: &str, holder: &str) -> Result<Held, AdmissionError> {
    let unusable = |source| AdmissionError::Unusable { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent).map_err(unusable)?;
    }
    let mut file = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(unusable)?
        .into_parts()
        .0;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut name = String::new();
            // Who holds it is for people; that it is held is already certain.
            let known = io::Read::by_ref(&mut file).take(200).read_to_string(&mut name).is_ok();
            let holder = match name.trim() {
                name if known && !name.is_empty() => name.to_owned(),
                _ => "another process".to_owned(),
            };
            return Err(AdmissionError::Taken {
                what: what.to_owned(),
                holder,
                path: path.to_owned(),
            });
        }
        Err(TryLockError::Error(source)) => return Err(unusable(source)),
    }
    file.set_len(0).map_err(unusable)?;
    file.rewind().map_err(unusable)?;
    file.write_all(holder.as_bytes()).map_err(unusable)?;
    Ok(Held { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("deep/driver.lock")).unwrap();
        (dir, path)
    }

    #[test]
    fn lesson_09_a_second_driver_is_refused_and_told_who_holds_it() {
        let (_dir, path) = place();
        let first = admit(&path, "the workspace", "pid 12 on host").unwrap();
        let second = admit(&path, "the workspace", "pid 13 on host").unwrap_err();
        assert_eq!(second.to_string(), "the workspace is held by pid 12 on host");
        drop(first);
        admit(&path, "the workspace", "pid 13 on host").unwrap();
    }

    #[test]
    fn a_refused_driver_leaves_the_holder_s_name_alone() {
        let (_dir, path) = place();
        let _first = admit(&path, "the workspace", "first").unwrap();
        admit(&path, "the workspace", "second").unwrap_err();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "first");
    }
}
