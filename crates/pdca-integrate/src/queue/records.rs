//! Small JSON records of the queue. They can all be found out again, so an unreadable one counts as empty.

use pdca_state::files;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::IntegrateError;
use super::workspace::QueueWorkspace;

/// The maximum size of a record, in bytes.
/// Larger than any of them grows; a damaged file must not fill the memory.
const LARGEST: u64 = 16 << 20;

pub(crate) fn load<T: DeserializeOwned + Default>(workspace: &QueueWorkspace, name: &str) -> T {
    let text = files::read_bounded(workspace.dirs.private().join(name), LARGEST).ok().flatten();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

pub(crate) fn store(
    workspace: &QueueWorkspace,
    name: &str,
    record: &impl Serialize,
) -> Result<(), IntegrateError> {
    let path = workspace.dirs.private().join(name);
    let text = serde_json::to_vec_pretty(record).map_err(std::io::Error::other);
    let kept = text.and_then(|text| files::replace(&path, &text));
    kept.map_err(|source| IntegrateError::Io { path, source })
}
