//! What keeps a leaf to what its role may touch.
//!
//! Two guards, one on top of the other. The kernel, where it can, denies: an independent role
//! cannot read the bundles, the work directories of other leaves or anything else the driver
//! hides, and cannot write the workspace, the fix or the primary checkout; every other role can
//! write only its own places. And everywhere, whatever the kernel can, the bundle and the fix are
//! digested before and after ([`TryBaseline`]): a changed byte voids what an independent leaf said.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_process::Sandbox;
use pdca_state::{Bundle, BundleDigest, files};
use serde::{Deserialize, Serialize};

use crate::{
    call::{BoxError, Call},
    error::LeafError,
    home,
    role::Role,
};

/// The work directory of the driver in a workspace: jobs, runs, whatever is not for leaves.
const DRIVER_DIR: &str = ".pdca";

/// The sandbox of one call. `view` is the staged view, `prompt` the prompt's file if there is one,
/// `writable` what the configuration adds, already absolute.
pub(crate) fn sandbox(
    call: &Call<'_>,
    view: &Utf8Path,
    prompt: Option<&Utf8Path>,
    writable: Vec<Utf8PathBuf>,
) -> Result<Sandbox, LeafError> {
    let role = call.inputs.role();
    let places = &call.places;
    // Refused here, and not left to the order of rules in the sandbox: a configuration error should
    // be named, and on a host without a sandbox nothing else would notice it.
    for path in &writable {
        if let Some(tree) = undone_by(path, role, call) {
            return Err(LeafError::Writable { path: path.clone(), tree });
        }
    }
    // A directory of the workspace may be opened by name, and not by an opening above. The closed trees stay closed
    // whatever a configuration opens.
    let apart = [places.workspace.to_owned()];
    let mut no_write = vec![places.bundle_root.to_owned()];
    no_write.extend(driver_dirs(call));
    no_write.extend(places.primary.map(Utf8Path::to_owned));
    no_write.extend(places.kept.iter().cloned());
    // Reading is closed for the roles that judge alone: a builder may read what its user may read
    // (decision 002).
    let mut no_read = Vec::new();
    if role.is_independent() {
        no_write.extend(places.fix.map(Utf8Path::to_owned));
        no_read.push(places.bundle_root.to_owned());
        no_read.extend(driver_dirs(call));
        no_read.extend(places.hidden.iter().cloned());
    }
    let mut read: Vec<Utf8PathBuf> = prompt.map(Utf8Path::to_owned).into_iter().collect();
    if role.is_independent() {
        // Its copy borrows the objects of the checkout, which it cannot read otherwise.
        read.extend(places.fix.map(|fix| fix.join(".git/objects")));
    }
    let mut own = vec![view.to_owned()];
    own.extend(places.worktree.into_iter().chain(places.tmp).map(Utf8Path::to_owned));
    let mut write = home::writable(call.config);
    write.extend(writable);
    Ok(Sandbox::new(call.config.sandbox)
        .no_read(no_read)
        .no_write(no_write)
        .read(read)
        .write(write)
        .own(own)
        .apart(apart)
        .network(call.config.network))
}

/// Where the driver keeps what leaves leave: the notes of the builder among them.
fn driver_dirs(call: &Call<'_>) -> Vec<Utf8PathBuf> {
    let mut dirs = vec![call.places.workspace.join(DRIVER_DIR)];
    // `Call::job` is the caller's choice and need not lie below `.pdca`. Its neighbours are the jobs of
    // the other leaves.
    dirs.extend(call.job.parent().map(Utf8Path::to_owned));
    dirs
}

/// The protected tree that a configured `writable` path would open again, if any.
///
/// A directory of the workspace may be opened; the workspace itself, the bundles, the driver's own directory, the primary
/// checkout and, for an independent role, the fix may not. A directory above one of them, such as the home directory, may:
/// what is closed in it stays closed.
fn undone_by(path: &Utf8Path, role: Role, call: &Call<'_>) -> Option<Utf8PathBuf> {
    let places = &call.places;
    let mut inviolable = vec![places.bundle_root.to_owned()];
    inviolable.extend(driver_dirs(call));
    inviolable.extend(places.primary.map(Utf8Path::to_owned));
    inviolable.extend(places.kept.iter().cloned());
    if role.is_independent() {
        inviolable.extend(places.fix.map(Utf8Path::to_owned));
        inviolable.extend(places.hidden.iter().cloned());
    }
    let real = real(path);
    let opened = |tree: &Utf8PathBuf| {
        // What lies below a writable directory and is closed stays closed.
        real.starts_with(self::real(tree))
    };
    let workspace = places.workspace.to_owned();
    if self::real(&workspace) == real {
        return Some(workspace);
    }
    inviolable.into_iter().find(opened)
}

/// The path without links, as far as it exists.
fn real(path: &Utf8Path) -> Utf8PathBuf {
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize_utf8() {
            let rest = path.strip_prefix(above).expect("because a path starts with its ancestors");
            return if rest.as_str().is_empty() { found } else { found.join(rest) };
        }
    }
    path.to_owned()
}

/// The bundle and the fix as they were before a try was started.
///
/// Kept in the job directory until it was compared, so that a change which a driver did not live
/// to see is found by the next.
#[derive(Debug)]
pub(crate) struct TryBaseline {
    record: Record,
    /// All files, where they are known one by one.
    digest: Option<BundleDigest>,
    file: Utf8PathBuf,
}

/// What a baseline compares with.
pub(crate) struct WatchedPaths<'a> {
    pub(crate) bundle: Option<&'a Bundle>,
    pub(crate) fingerprint: Option<&'a dyn Fn() -> Result<String, BoxError>>,
}

/// What has changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BaselineDifference {
    /// Files of the bundle; `.` where it is not known which.
    pub(crate) files: Vec<Utf8PathBuf>,
    /// Whether the fix did.
    pub(crate) fix: bool,
}

impl BaselineDifference {
    pub(crate) fn is_none(&self) -> bool {
        self.files.is_empty() && !self.fix
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    bundle: Option<String>,
    fix: Option<String>,
}

impl TryBaseline {
    const FILE: &'static str = "before.json";

    /// Looks at everything as it is now.
    pub(crate) fn take(job: &Utf8Path, watched: &WatchedPaths<'_>) -> Result<Self, LeafError> {
        let (record, digest) = watched.record()?;
        Ok(Self { record, digest, file: job.join(Self::FILE) })
    }

    /// The one that is on record, if any. A torn record is none.
    pub(crate) fn load(
        job: &Utf8Path,
        watched: &WatchedPaths<'_>,
    ) -> Result<Option<Self>, LeafError> {
        let file = job.join(Self::FILE);
        // A torn record can only come from a loss of power, because it is put in place by a rename.
        // The try is then run again, as nothing vouches for it.
        let record = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Record>(&bytes).ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(LeafError::Job(error)),
        };
        let Some(record) = record else { return Ok(None) };
        let (now, digest) = watched.record()?;
        // Only the hex digest is on record. The files one by one are known again where the bundle
        // is still as it was; otherwise all that can be said is that something changed.
        let digest = digest.filter(|_| record.bundle == now.bundle);
        Ok(Some(Self { record, digest, file }))
    }

    /// Puts it on record, before anything is started.
    pub(crate) fn keep(&self) -> Result<(), LeafError> {
        let json = serde_json::to_vec(&self.record).expect("because two strings are plain JSON");
        // Without a sync: the record is for a driver that was killed. A loss of power ends the leaf
        // too, and a lost record only has the try run again.
        files::replace_unsynced(&self.file, &json).map_err(LeafError::Job)
    }

    /// Takes it off the record, once nothing is left to compare.
    pub(crate) fn forget(&self) -> Result<(), LeafError> {
        fs::remove_file(&self.file).map_err(LeafError::Job)
    }

    /// What is different now.
    pub(crate) fn difference(
        &self,
        watched: &WatchedPaths<'_>,
    ) -> Result<BaselineDifference, LeafError> {
        let (now, digest) = watched.record()?;
        let files = match (&digest, &self.digest) {
            (Some(now), Some(before)) => now.changed_since(before),
            // A record from an earlier driver: it says whether the bundle differs and not where.
            (_, None) | (None, _) if now.bundle != self.record.bundle => vec![".".into()],
            (_, None) | (None, _) => Vec::new(),
        };
        Ok(BaselineDifference { files, fix: now.fix != self.record.fix })
    }
}

impl WatchedPaths<'_> {
    fn record(&self) -> Result<(Record, Option<BundleDigest>), LeafError> {
        let digest = self.bundle.map(digest).transpose()?;
        let fix =
            self.fingerprint.map(|look| look()).transpose().map_err(LeafError::Fingerprint)?;
        Ok((Record { bundle: digest.as_ref().map(BundleDigest::to_hex), fix }, digest))
    }
}

/// The digest of a bundle without what a crashed driver left of files it was replacing: that may
/// come and go between two drivers, and is nobody's change.
fn digest(bundle: &Bundle) -> Result<BundleDigest, LeafError> {
    // A driver that crashed while it published left a temporary. If the next one removed it between
    // two digests, that would look like a change by the leaf.
    bundle.sweep_temps().map_err(LeafError::Sweep)?;
    bundle.digest().map_err(LeafError::Digest)
}
