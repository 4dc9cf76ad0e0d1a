//! Removal of old contents and leftovers on a host.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use crate::host_root::HostRoot;

/// Removes contents that were last used, and discarded leftovers that were written, so many days ago. Repositories and
/// checkouts stay, because they make the next job fast. Fences are left alone.
pub(crate) fn sweep(root: &HostRoot, days: u32, now: i64) -> io::Result<()> {
    let age = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
    for dir in [root.contents(), root.discarded()] {
        let entries = match dir.read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let modified = entry.metadata()?.modified()?;
            let now = UNIX_EPOCH + Duration::from_secs(now.try_into().unwrap_or(0));
            // A clock that was set back makes everything young.
            if now.duration_since(modified).unwrap_or_default() >= age {
                pdca_lanes::discard(entry.path(), &root.discarded())?;
            }
        }
    }
    Ok(())
}
