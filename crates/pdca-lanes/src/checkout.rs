//! Making a working tree equal to a tree, touching only files that differ.

use std::{io, os::fd::AsFd as _, sync::atomic::AtomicBool};

use fs_err as fs;
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
};

use crate::{
    dir,
    failure::LaneError,
    fanout::{self, Image, WritePlan},
    room::CheckoutRepository,
    stage::{self, IndexPaths, missing_from},
    walk::{Spare, TreeWalk},
};

/// Makes the working tree equal to `tree`; `left` is the tree that was checked out before.
///
/// Of the untracked files only those of `spares` stay. Files that any earlier tree tracked are removed even then.
pub(crate) fn reset(
    repo: &gix::Repository,
    room: &CheckoutRepository,
    stage: &IndexPaths,
    tree: ObjectId,
    left: Option<ObjectId>,
    spares: Spare<'_>,
) -> Result<(), LaneError> {
    let mut memory = stage.recall(repo);
    let known = memory.take_if(|memory| stage::is_of(memory, tree));
    // The index of this very tree can be reused whole; of any other only the stat data is useful.
    let (mut index, plan) = if let Some(mut known) = known {
        stage::distrust_racy(&mut known);
        (known, None)
    } else {
        let plan = WritePlan::of(repo, tree)?;
        let mut index = plan.index();
        stage::carry(memory.as_ref(), &mut index);
        (index, Some(plan))
    };
    // Before any file is touched: a tree with unsupported attributes leaves the lane as it was.
    let rewrites = stage::check_attributes(repo, stage::attribute_files(&index))?;
    // Files that an earlier tree tracked are removed by name. The walk would keep those that the
    // new commit's rules ignore.
    let mut before: Vec<BString> =
        memory.iter().flat_map(|memory| missing_from(&index, memory)).collect();
    if let Some(left) = left {
        before.extend(missing_from(&index, &WritePlan::of(repo, left)?.index()));
    }
    let in_place = stage.is_lent(room);
    // Also those that a job committed or added by itself, which only the checkout's own index
    // knows.
    if !in_place && let Some(theirs) = room.parsed_index(repo.object_hash()) {
        before.extend(missing_from(&index, &theirs));
    }
    for path in before {
        dir::remove_tracked(room.checkout(), &path).map_err(LaneError::walking)?;
    }
    let walk = TreeWalk::clearing(repo, &index, !room.converts() && !rewrites, spares)
        .map_err(|source| LaneError::objects("read the ignore rules", source))?;
    let found = walk.run(room.checkout())?;
    // Nothing was written, so the memory is still true and is not written again.
    if plan.is_none() && found.different.is_empty() && found.refreshed.is_empty() {
        return if in_place || room.is_lent() { Ok(()) } else { stage.lend_memory(room) };
    }
    for (at, stat) in found.refreshed {
        index.entries_mut()[at].stat = stat;
    }
    if !found.different.is_empty() {
        write_files(repo, room, &mut index, &found.different)?;
    }
    let place = CheckoutPlace { room, stage: Some(stage) };
    place.put_index(&match plan {
        Some(plan) => Image::of(&plan)?.with(&stage::stats(&index))?,
        None => bytes_of(&index)?,
    })
}

/// Serializes an index with its checksum.
fn bytes_of(index: &gix::index::State) -> Result<Vec<u8>, LaneError> {
    let mut bytes = Vec::new();
    index
        .write_to(&mut bytes, gix::index::write::Options::default())
        .map_err(|source| LaneError::objects("write the index", source))?;
    fanout::seal(index.object_hash(), &mut bytes)?;
    Ok(bytes)
}

/// A checkout to fill, and the store of the stat data of its files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckoutPlace<'a> {
    pub(crate) room: &'a CheckoutRepository,
    pub(crate) stage: Option<&'a IndexPaths>,
}

impl CheckoutPlace<'_> {
    /// Returns true if the checkout contains nothing but the repository.
    pub(crate) fn is_fresh(&self) -> Result<bool, LaneError> {
        let root = dir::open_root(self.room.checkout()).map_err(LaneError::walking)?;
        let there = dir::list(root.as_fd()).map_err(LaneError::walking)?;
        Ok(there.iter().all(|(name, _)| name.to_bytes() == b".git"))
    }

    fn put_index(&self, bytes: &[u8]) -> Result<(), LaneError> {
        let put = || -> io::Result<()> {
            if let Some(stage) = self.stage {
                // The trusted copy first: if they differ after a crash, the checkout's index is
                // replaced.
                stage.remember(bytes)?;
            }
            // A lent repository is written anew with the memory when HEAD is in place.
            if self.stage.is_some() && self.room.is_lent() {
                Ok(())
            } else {
                self.room.put_index(bytes)
            }
        };
        put().map_err(|source| LaneError::Io { doing: "put the index in place", source })
    }
}

/// Fills empty checkouts of one repository with a tree, and writes their indexes.
///
/// `tell` is called with the number of files written so far and the total.
pub(crate) fn fill(
    repo: &gix::Repository,
    tree: ObjectId,
    places: &[CheckoutPlace<'_>],
    tell: &(dyn Fn(usize, usize) + Sync),
) -> Result<(), LaneError> {
    let Some(first) = places.first() else { return Ok(()) };
    let plan = WritePlan::of(repo, tree)?;
    let rewrites = stage::check_attributes(repo, plan.attributes())?;
    let able = repo
        .filesystem_options()
        .map_err(|source| LaneError::objects("read the configuration", source))?;
    let total = plan.files.len();
    tell(0, total);
    // The fast writer writes the bytes of the blobs, and relies on symbolic links and on names that
    // differ in case.
    if rewrites || first.room.converts() || !able.symlink || able.ignore_case {
        for place in places {
            fill_converted(repo, &plan, place)?;
        }
    } else {
        let open = |place: &CheckoutPlace<'_>| dir::open_root(place.room.checkout());
        let roots = places.iter().map(open).collect::<io::Result<Vec<_>>>();
        let roots = roots.map_err(LaneError::walking)?;
        let stats = fanout::write(&plan, repo, &roots, &|done| tell(done, total))?;
        let image = Image::of(&plan)?;
        put_indices(&image, places, &stats)?;
    }
    tell(total, total);
    Ok(())
}

/// Writes all indexes, each in a thread of its own, because they are large.
fn put_indices(
    image: &Image,
    places: &[CheckoutPlace<'_>],
    stats: &[Vec<gix::index::entry::Stat>],
) -> Result<(), LaneError> {
    std::thread::scope(|scope| {
        let mut writers = Vec::new();
        for (place, stats) in places.iter().zip(stats) {
            writers.push(scope.spawn(move || place.put_index(&image.with(stats)?)));
        }
        writers.into_iter().try_for_each(|writer| {
            writer.join().expect("a writer reports its failure and never panics")
        })
    })
}

/// Fills one checkout through gix, which converts content as the attributes say.
fn fill_converted(
    repo: &gix::Repository,
    plan: &WritePlan,
    place: &CheckoutPlace<'_>,
) -> Result<(), LaneError> {
    let mut index = plan.index();
    let all: Vec<usize> = (0..index.entries().len()).collect();
    write_files(repo, place.room, &mut index, &all)?;
    place.put_index(&Image::of(plan)?.with(&stage::stats(&index))?)
}

/// Writes the files of these entries, none of which exists, and records their stat data.
fn write_files(
    repo: &gix::Repository,
    room: &CheckoutRepository,
    index: &mut gix::index::File,
    which: &[usize],
) -> Result<(), LaneError> {
    use gix::worktree::stack::state::attributes::Source;
    let failed = |source| LaneError::objects("check the files out", source);
    let all = which.len() == index.entries().len();
    let mut options = repo.checkout_options(Source::IdMapping).map_err(failed)?;
    options.destination_is_initially_empty = all;
    // The walk removed what is in the way. A file that still exists is a collision and is reported,
    // not overwritten.
    options.overwrite_existing = false;
    // gix reads the attributes from the whole index, so the other entries stay in it and are skipped by a flag.
    let wanted = |at: usize| all || which.binary_search(&at).is_ok();
    for (at, entry) in index.entries_mut().iter_mut().enumerate() {
        entry.flags.set(gix::index::entry::Flags::SKIP_WORKTREE, !wanted(at));
    }
    let objects = repo
        .objects
        .clone()
        .into_arc()
        .map_err(|source| LaneError::Io { doing: "share the objects", source })?;
    let outcome = gix::worktree::state::checkout(
        index,
        room.checkout().as_std_path(),
        objects,
        &gix::progress::Discard,
        &gix::progress::Discard,
        &AtomicBool::new(false),
        options,
    );
    for entry in index.entries_mut() {
        entry.flags.remove(gix::index::entry::Flags::SKIP_WORKTREE);
    }
    let outcome = outcome.map_err(failed)?;
    let lost = outcome
        .collisions
        .iter()
        .map(|lost| &lost.path)
        .chain(outcome.errors.iter().map(|lost| &lost.path))
        .next();
    match lost {
        Some(path) => Err(LaneError::NotWritten { path: path.to_str_lossy().into_owned() }),
        None => Ok(()),
    }
}

/// Moves repositories inside the working tree to `aside`, keeping their relative paths.
pub(crate) fn move_aside(
    room: &CheckoutRepository,
    aside: &camino::Utf8Path,
    nested: &[BString],
) -> Result<(), LaneError> {
    for path in nested {
        let relative = path
            .to_path()
            .map_err(|_| LaneError::NotWritten { path: path.to_str_lossy().into_owned() })?;
        // A taken name gets a number, as the rescue ref does.
        let mut to = aside.as_std_path().join(relative);
        let mut count = 1_u32;
        while fs::symlink_metadata(&to).is_ok() {
            count += 1;
            to = std::path::Path::new(&format!("{aside}.{count}")).join(relative);
        }
        let moved = fs::create_dir_all(to.parent().unwrap_or(&to))
            .and_then(|()| fs::rename(room.checkout().as_std_path().join(relative), &to));
        moved
            .map_err(|source| LaneError::Io { doing: "move a nested repository aside", source })?;
    }
    Ok(())
}
