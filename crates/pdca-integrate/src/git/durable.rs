//! Syncs objects to disk before a ref names them.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use fs_err as fs;
use gix::ObjectId;

use crate::{git::failure::StoreError, git::footprint::TreeDifference, git::store::Store};

/// The loose objects of a repository. Objects in packs were synced when the pack was written.
pub(crate) struct LooseObjects<'s> {
    store: &'s Store,
}

impl<'s> LooseObjects<'s> {
    pub(crate) fn of(store: &'s Store) -> Self {
        Self { store }
    }

    /// Syncs the commits after `base` up to `head` along first parents, with all their new objects.
    pub(crate) fn sync_commits(&self, base: ObjectId, head: ObjectId) -> Result<(), StoreError> {
        let mut objects = BTreeSet::new();
        let mut at = head;
        while at != base {
            // The other side of a merge commit is a sealed change, whose commits were synced when it was sealed
            // or kept.
            let Some(parent) = self.store.parents_of(at)?.first().copied() else {
                break;
            };
            let (old, new) = (self.store.tree_of(parent)?, self.store.tree_of(at)?);
            objects.extend(TreeDifference::between(self.store, Some(old), new)?.new_objects);
            objects.insert(at);
            at = parent;
        }
        self.sync_objects(&objects)
    }

    /// Syncs the objects that are loose files.
    pub(crate) fn sync_objects(&self, objects: &BTreeSet<ObjectId>) -> Result<(), StoreError> {
        // The directory of an object may be new itself, and its entry is in `objects`.
        let mut dirs = BTreeSet::from([self.store.common_dir().join("objects")]);
        for object in objects {
            let path = self.loose_path(*object);
            let failed = |source| StoreError::io("sync", &path, source);
            match fs::File::open(&path) {
                Ok(file) => file.sync_all().map_err(failed)?,
                // Not a loose file, so it is in a pack or in an alternate object directory.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            }
            dirs.extend(path.parent().map(Utf8PathBuf::from));
        }
        for dir in dirs {
            let failed = |source| StoreError::io("sync", &dir, source);
            pdca_state::files::sync_dir(&dir).map_err(failed)?;
        }
        Ok(())
    }

    fn loose_path(&self, object: ObjectId) -> Utf8PathBuf {
        let hex = object.to_string();
        let (dir, name) = hex.split_at(2);
        self.store.common_dir().join("objects").join(dir).join(name)
    }
}
