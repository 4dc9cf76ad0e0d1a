//! Throwaway copies of a checkout.

use std::{collections::BTreeMap, io};

use camino::Utf8Path;
use fs_err as fs;
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
    index::entry::Mode,
    refs::transaction::PreviousValue,
};

use crate::{
    checkout::{self, CheckoutPlace},
    dir,
    failure::LaneError,
    history,
    work_tree::WorkTree,
};

impl WorkTree {
    /// Creates a throwaway checkout of HEAD at `dest`, as a repository of its own that only borrows objects.
    ///
    /// Nothing that is written there reaches the lane or the primary.
    pub fn copy_to(&self, dest: &Utf8Path) -> Result<(), LaneError> {
        let repo = self.room.enter()?;
        let head = self.require_head(&repo)?;
        let room = self.room.borrowed_by(dest)?;
        let empty = || -> io::Result<bool> {
            fs::create_dir_all(dest)?;
            Ok(fs::read_dir(dest)?.next().is_none())
        };
        if !empty().map_err(|source| LaneError::Io { doing: "make the destination", source })? {
            return Err(LaneError::NotEmpty { path: dest.to_owned() });
        }
        room.create()?;
        let copy = room.enter()?;
        history::move_ref(&copy, "HEAD", head, PreviousValue::Any, false)?;
        let place = CheckoutPlace { room: &room, stage: None };
        checkout::fill(&copy, history::tree_of(&copy, head)?, &[place], &|_, _| {})
    }

    /// Restores the files of a [copy](Self::copy_to) that `is_of` selects to their state in `base`; those that `base`
    /// does not have are removed. Returns the changed paths, with invalid UTF-8 replaced.
    pub fn put_back(
        &self,
        copy: &Utf8Path,
        base: &str,
        is_of: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, LaneError> {
        let repo = self.room.enter()?;
        let of_tree = |tree: ObjectId| -> Result<BTreeMap<BString, (Mode, ObjectId)>, LaneError> {
            let index = repo
                .index_from_tree(&tree)
                .map_err(|source| LaneError::objects("read the tree", source))?;
            let all = index.entries().iter().map(|one| (one.path(&index), (one.mode, one.id)));
            let named = all.filter(|(path, _)| is_of(&path.to_str_lossy()));
            Ok(named.map(|(path, what)| (path.to_owned(), what)).collect())
        };
        let now = of_tree(history::tree_of(&repo, self.require_head(&repo)?)?)?;
        let before = of_tree(history::tree_of(&repo, history::find_commit(&repo, base)?)?)?;
        let failed = |source| LaneError::Io { doing: "put a file of the copy back", source };
        let mut changed = Vec::new();
        for path in now.keys().filter(|path| now.get(*path) != before.get(*path)) {
            dir::remove_tracked(copy, path).map_err(failed)?;
            changed.push(path.to_str_lossy().into_owned());
        }
        let is_other = |(path, what): &(&BString, &(Mode, ObjectId))| now.get(*path) != Some(*what);
        // A submodule has no files of its own here.
        for (path, (mode, id)) in
            before.iter().filter(is_other).filter(|(_, (mode, _))| *mode != Mode::COMMIT)
        {
            let blob = repo
                .find_blob(*id)
                .map_err(|source| LaneError::objects("read a file of the base", source))?;
            let Ok(relative) = path.to_path() else { continue };
            let place = copy.as_std_path().join(relative);
            let put = || -> io::Result<()> {
                dir::make_room(copy.as_std_path(), relative)?;
                if *mode == Mode::SYMLINK {
                    let to = blob.data.to_path().map_err(io::Error::other)?;
                    return std::os::unix::fs::symlink(to, &place);
                }
                fs::write(&place, &blob.data)?;
                if *mode == Mode::FILE_EXECUTABLE {
                    fs::set_permissions(
                        &place,
                        std::os::unix::fs::PermissionsExt::from_mode(0o755),
                    )?;
                }
                Ok(())
            };
            put().map_err(failed)?;
            changed.push(path.to_str_lossy().into_owned());
        }
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }
}
