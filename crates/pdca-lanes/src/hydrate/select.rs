//! Selecting the files of the primary that a lane gets: only those that git ignores in both checkouts.
//!
//! A file that the lane does not ignore would become part of the next patch.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{
    bstr::{BStr, BString, ByteSlice as _},
    index::entry::Mode,
    worktree::stack::state::ignore::Source,
};

use crate::{
    failure::LaneError,
    git::GitLocation,
    hydrate::{
        HydrateConfig, HydrateError, Sharer, TreeSide, config::plain, shared::writable_directory,
    },
};

/// The file in the primary that names, by patterns, ignored files which every lane gets.
pub(crate) const INCLUDE: &str = ".worktreeinclude";

/// The files that a lane gets.
#[derive(Debug, Default)]
pub(crate) struct FileSelection {
    /// Files and links to copy, sorted and unique.
    pub(crate) copies: Vec<String>,
    /// Links to create, with their targets.
    pub(crate) links: Vec<(String, Utf8PathBuf)>,
    /// Trees to copy if the lane does not have them.
    pub(crate) seeds: Vec<String>,
    /// Paths that a pattern matched but that cannot be copied.
    pub(crate) passed_over: Vec<BString>,
}

/// The tracked and ignored paths of a tree.
pub(crate) struct Rules<'a> {
    place: TreeSide,
    index: &'a gix::index::State,
    ignored: gix::AttributeStack<'a>,
}

impl<'a> Rules<'a> {
    /// Reads the ignore rules of a working tree, with the given index.
    pub(crate) fn new(
        place: TreeSide,
        repo: &'a gix::Repository,
        index: &'a gix::index::State,
    ) -> Result<Self, LaneError> {
        let ignored = repo
            .excludes(index, None, Source::WorktreeThenIdMappingIfNotSkipped)
            .map_err(|source| LaneError::objects("read the ignore rules", source))?;
        Ok(Self { place, index, ignored })
    }

    fn is_tracked(&self, path: &BStr) -> bool {
        let below = [path.as_bytes(), b"/"].concat();
        self.index.entry_by_path(path).is_some()
            || self.index.prefixed_entries_range(below.as_bstr()).is_some()
    }

    fn is_ignored(&mut self, path: &BStr, mode: Mode) -> Result<bool, LaneError> {
        let at = self.ignored.at_entry(path, Some(mode));
        let at = at.map_err(|source| LaneError::objects("read the ignore rules", source))?;
        Ok(at.is_excluded())
    }

    /// Returns true if the path is ignored and nothing at or below it is tracked.
    fn leaves_alone(&mut self, path: &BStr, mode: Mode) -> Result<bool, LaneError> {
        Ok(!self.is_tracked(path) && self.is_ignored(path, mode)?)
    }

    fn require(&mut self, key: &'static str, path: &str, mode: Mode) -> Result<(), HydrateError> {
        if self.is_tracked(path.into()) {
            return Err(HydrateError::Tracked { key, path: path.into(), place: self.place });
        }
        if !self.is_ignored(path.into(), mode)? {
            return Err(HydrateError::NotIgnored { key, path: path.into(), place: self.place });
        }
        Ok(())
    }
}

/// Selects the files that a lane gets, and fails for those that it must not get.
pub(crate) fn select(
    config: &HydrateConfig,
    workdir: &Utf8Path,
    primary: &mut Rules<'_>,
    lane: &mut Rules<'_>,
    sharer: impl Fn() -> (u32, Sharer),
    include: Option<GitLocation<'_>>,
) -> Result<FileSelection, HydrateError> {
    let mut selection = FileSelection::default();
    // A pattern may match directories only, and a directory of the primary becomes a link in the lane.
    let mut require = |key, entry: &str, there, here| {
        primary.require(key, entry, there).and_then(|()| lane.require(key, entry, here))
    };
    let mode_of = |is_dir| if is_dir { Mode::DIR } else { Mode::FILE };
    for entry in config.symlink.iter().map(|entry| plain(entry)) {
        let path = workdir.join(entry);
        // The real path: what a link of the primary leads to is what two lanes would share.
        let target = path.canonicalize_utf8().map_err(|source| HydrateError::Missing {
            key: "symlink",
            path: path.clone(),
            source,
        })?;
        if let Some(directory) = writable_directory(&target).map_err(|source| HydrateError::Io {
            doing: "look at",
            path: target.clone(),
            source,
        })? {
            let (lane, with) = sharer();
            return Err(HydrateError::SharedMutable { directory, lane, with });
        }
        let is_dir = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        require("symlink", entry, mode_of(is_dir), Mode::SYMLINK)?;
        selection.links.push((entry.to_owned(), target));
    }
    for (key, entries) in [("copy", &config.copy), ("seed", &config.seed)] {
        for entry in entries.iter().map(|entry| plain(entry)) {
            let path = workdir.join(entry);
            let found = match fs::symlink_metadata(&path) {
                Ok(found) => found,
                // Seeds are optional: the primary may not have built yet.
                Err(_) if key == "seed" => continue,
                Err(source) => return Err(HydrateError::Missing { key, path, source }),
            };
            let mode = mode_of(found.is_dir());
            require(key, entry, mode, mode)?;
            if key == "seed" {
                selection.seeds.push(entry.to_owned());
            } else if found.is_dir() {
                files_below(&path, entry, &mut selection)?;
            } else {
                selection.copies.push(entry.to_owned());
            }
        }
    }
    if let Some(git) = include {
        for path in git.matching(&workdir.join(INCLUDE))? {
            let known = |entry: &String| {
                path.strip_prefix(plain(entry).as_bytes())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            };
            if path.ends_with(b"/")
                // These have a treatment of their own, which must not be replaced by a copy.
                || config.symlink.iter().chain(&config.seed).any(known)
                || !primary.leaves_alone(path.as_bstr(), Mode::FILE)?
            {
                continue;
            }
            let fits = lane.leaves_alone(path.as_bstr(), Mode::FILE)?;
            match path.to_str() {
                Ok(text) if fits => selection.copies.push(text.to_owned()),
                Ok(_) | Err(_) => selection.passed_over.push(path),
            }
        }
    }
    selection.copies.sort_unstable();
    selection.copies.dedup();
    Ok(selection)
}

/// Adds the files and links below a directory; no link is followed.
fn files_below(
    dir: &Utf8Path,
    entry: &str,
    selection: &mut FileSelection,
) -> Result<(), HydrateError> {
    let failed = |source| HydrateError::Io { doing: "list", path: dir.to_owned(), source };
    let entries = match fs::read_dir(dir) {
        // A program in the primary removed it since it was found.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            selection.passed_over.push(entry.into());
            return Ok(());
        }
        entries => entries.map_err(failed)?,
    };
    for found in entries {
        let found = found.map_err(failed)?;
        let kind = match found.file_type() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            kind => kind.map_err(failed)?,
        };
        let Ok(name) = found.file_name().into_string() else {
            let lossy = found.file_name().to_string_lossy().into_owned();
            selection.passed_over.push(format!("{entry}/{lossy}").into());
            continue;
        };
        let path = format!("{entry}/{name}");
        if kind.is_dir() {
            files_below(&dir.join(&name), &path, selection)?;
        } else {
            selection.copies.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_vanishes_while_its_parent_is_listed_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let mut selection = FileSelection::default();
        files_below(&dir.join("gone"), "cache/gone", &mut selection).unwrap();
        assert_eq!(selection.passed_over, ["cache/gone"]);
        fs::write(dir.join("file"), "x").unwrap();
        assert!(files_below(&dir.join("file"), "cache/file", &mut selection).is_err());
    }
}
