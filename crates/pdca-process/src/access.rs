//! The access of a sandboxed child to a path: one law, which both walls follow.
//!
//! [`Rules::access`] is the meaning of a [`Sandbox`]. A path is readable and not writable, unless a rule covers it, that
//! is names it or a directory above it:
//!
//! 1. Among the child's *own* places and the closed and hidden trees, the deepest rule that covers the path decides. On
//!    the same path, the closed or hidden one does.
//! 2. Where no own place decides, a closed or hidden tree beats every *declared* opening, whatever the depth.
//! 3. A declared opening ends at a tree that is set *apart* below it. It starts again with an opening at that tree or
//!    deeper.
//!
//! Rules are about real paths. [`Rules::of`] resolves links, and closes every link on the way to a closed tree: a child
//! that can replace the link decides where the path leads. A closed path that does not exist is closed from its first
//! missing name on.
//!
//! The walls cannot express every set of rules. Landlock opens whole trees, and `bwrap` cannot mount on a name that does
//! not exist. Both then close more than the law does, never less: [`Rules::mounts`] and [`Rules::trees`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use camino::Utf8PathBuf;

use crate::spec::Sandbox;

/// The most entries of a directory that are mounted one by one to keep another name in it closed; in a larger directory
/// they are closed with it.
const MAX_ENTRIES: usize = 256;
/// The most links that the resolution of a path follows, as in the kernel.
const MAX_LINKS: usize = 40;

/// The access of a child to a path, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Hidden,
    ReadOnly,
    Writable,
}

/// The kind of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// Neither readable nor writable.
    Hidden,
    /// Not writable.
    Closed,
    /// A place of the child, readable and writable.
    Own,
    /// Readable in a hidden tree.
    Shown,
    /// An opening that a person or a preset declares.
    Declared,
    /// A tree that the openings above it do not include.
    Apart,
}

/// The rules of one child, by real path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    rules: BTreeMap<PathBuf, BTreeSet<Rule>>,
    /// Paths among them on which nothing can be mounted: missing names and symbolic links.
    names: BTreeSet<PathBuf>,
}

/// A path without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RealPath {
    /// The path, up to and including the first name that is missing.
    pub(crate) path: PathBuf,
    pub(crate) is_missing: bool,
    /// The links on the way, each under its own real path.
    pub(crate) links: Vec<PathBuf>,
}

impl Rules {
    /// Resolves the rules of a sandbox.
    pub(crate) fn of(sandbox: &Sandbox) -> Self {
        let mut rules = Self::default();
        for (trees, rule) in [(&sandbox.no_read, Rule::Hidden), (&sandbox.no_write, Rule::Closed)] {
            for tree in trees {
                rules.close(tree.as_std_path(), rule);
            }
        }
        for tree in &sandbox.apart {
            if let Ok(found) = resolve(tree.as_std_path())
                && !found.is_missing
            {
                rules.add(found.path, Rule::Apart);
            }
        }
        let openings: [(&[Utf8PathBuf], Rule); 3] = [
            (&sandbox.own, Rule::Own),
            (&sandbox.read, Rule::Shown),
            (&sandbox.write, Rule::Declared),
        ];
        let mut linked = Vec::new();
        for (trees, rule) in openings {
            for tree in trees {
                match resolve(tree.as_std_path()) {
                    // A wall opens what exists.
                    Ok(found) if found.is_missing => {}
                    Ok(found) if found.links.is_empty() => rules.add(found.path, rule),
                    Ok(found) => linked.push((found, rule)),
                    // Out of reach for us means out of reach for the child.
                    Err(_) => {}
                }
            }
        }
        // An earlier child could have put a link there, and had its target opened for the next one.
        let planted = |rules: &Self, found: &RealPath| {
            found.links.iter().any(|link| rules.access(link) == Access::Writable)
        };
        for (found, rule) in linked {
            if !planted(&rules, &found) {
                rules.add(found.path, rule);
            }
        }
        rules
    }

    /// Adds a rule for a real path that exists.
    pub(crate) fn add(&mut self, path: impl Into<PathBuf>, rule: Rule) {
        self.rules.entry(path.into()).or_default().insert(rule);
    }

    /// Closes or hides a path under its real path, and closes every link that leads to it.
    pub(crate) fn close(&mut self, path: &Path, rule: Rule) {
        // Out of reach for us means out of reach for the child.
        let Ok(found) = resolve(path) else { return };
        for link in found.links {
            self.add_name(link, Rule::Closed);
        }
        if found.is_missing {
            self.add_name(found.path, rule);
        } else {
            self.add(found.path, rule);
        }
    }

    /// Adds a rule for a name on which nothing can be mounted.
    fn add_name(&mut self, path: PathBuf, rule: Rule) {
        self.names.insert(path.clone());
        self.add(path, rule);
    }

    /// Returns the access to a real path: the law of this module.
    pub(crate) fn access(&self, path: &Path) -> Access {
        let mut deepest: BTreeMap<Rule, usize> = BTreeMap::new();
        for (height, above) in path.ancestors().enumerate() {
            for rule in self.rules.get(above).into_iter().flatten() {
                deepest.entry(*rule).or_insert(height);
            }
        }
        // The height of the path above a rule: the smallest is the deepest rule.
        let height = |rule| deepest.get(&rule).copied();
        let least = |one: Option<usize>, other: Option<usize>| one.into_iter().chain(other).min();
        let is_deeper = |open: Option<usize>, shut: Option<usize>| {
            open.is_some_and(|open| shut.is_none_or(|shut| open < shut))
        };
        let hidden = height(Rule::Hidden);
        let shut = least(hidden, height(Rule::Closed));
        let declared = height(Rule::Declared);
        let is_declared =
            declared.is_some_and(|open| height(Rule::Apart).is_none_or(|apart| open <= apart));
        if is_deeper(height(Rule::Own), shut) || (shut.is_none() && is_declared) {
            Access::Writable
        } else if hidden.is_none()
            || is_deeper(least(height(Rule::Own), height(Rule::Shown)), hidden)
        {
            Access::ReadOnly
        } else {
            Access::Hidden
        }
    }

    /// Returns true if `path` itself has this rule.
    pub(crate) fn has(&self, path: &Path, rule: Rule) -> bool {
        self.rules.get(path).is_some_and(|rules| rules.contains(&rule))
    }

    /// Returns true if the path is in a place of the child's own.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        self.access(path) == Access::Writable
            && path.ancestors().any(|above| self.has(above, Rule::Own))
    }

    /// Returns the paths of all rules that something can be mounted on.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let paths = self.rules.keys().filter(|path| !self.names.contains(*path));
        paths.map(PathBuf::as_path)
    }

    /// Returns true if a rule is about a path below `tree`.
    pub(crate) fn has_below(&self, tree: &Path) -> bool {
        self.below(tree).next().is_some()
    }

    fn below(&self, tree: &Path) -> impl Iterator<Item = &PathBuf> {
        // Paths are ordered by their components, so those below a tree follow it without a gap.
        let after = (std::ops::Bound::Excluded(tree), std::ops::Bound::Unbounded);
        let paths = self.rules.range::<Path, _>(after).map(|(path, _)| path);
        paths.take_while(move |path| path.starts_with(tree))
    }

    /// Returns the mounts that give every existing path its [`access`](Self::access), outer ones first; each covers what
    /// lies below it.
    ///
    /// A mount point can be neither renamed nor removed. So every directory between an opening and a closed path in it
    /// is a mount point as well: otherwise the child could put another directory in its place. A directory with a closed
    /// name on which nothing can be mounted is read-only, and its other entries are mounted one by one.
    pub(crate) fn mounts(
        &self,
        entries: &dyn Fn(&Path) -> Vec<PathBuf>,
    ) -> BTreeMap<PathBuf, Access> {
        let root = Path::new("/");
        let mut mounts = BTreeMap::from([(root.to_owned(), self.access(root))]);
        mounts.extend(self.paths().map(|path| (path.to_owned(), self.access(path))));
        let is_writable = |path: &&Path| self.access(path) == Access::Writable;
        let names = self.names.iter().filter(|name| !is_writable(&name.as_path()));
        let frozen: BTreeSet<&Path> =
            names.filter_map(|name| name.parent()).filter(is_writable).collect();
        for dir in &frozen {
            mounts.insert((*dir).to_owned(), Access::ReadOnly);
        }
        for dir in &frozen {
            let found = entries(dir);
            if found.len() > MAX_ENTRIES {
                continue;
            }
            for entry in found.into_iter().filter(|entry| !self.names.contains(entry)) {
                let access = self.access(&entry);
                mounts.entry(entry).or_insert(access);
            }
        }
        let shut = mounts.iter().filter(|(_, access)| **access != Access::Writable);
        let pinned: Vec<PathBuf> = shut
            .flat_map(|(path, _)| path.ancestors().skip(1).take_while(is_writable))
            .map(Path::to_owned)
            .collect();
        for path in pinned {
            mounts.entry(path).or_insert(Access::Writable);
        }
        without_repeated(&mounts)
    }

    /// Returns trees that together hold exactly the existing paths whose access is at least `least`, apart from the
    /// directories above a path whose access is less.
    pub(crate) fn trees(
        &self,
        least: Access,
        entries: &dyn Fn(&Path) -> Vec<PathBuf>,
    ) -> BTreeSet<PathBuf> {
        let mut trees = BTreeSet::new();
        self.cover(Path::new("/"), least, entries, &mut trees);
        trees
    }

    fn cover(
        &self,
        tree: &Path,
        least: Access,
        entries: &dyn Fn(&Path) -> Vec<PathBuf>,
        trees: &mut BTreeSet<PathBuf>,
    ) {
        if self.names.contains(tree) {
            return;
        }
        let is_open = self.access(tree) >= least;
        if is_open && self.below(tree).all(|path| self.access(path) >= least) {
            trees.insert(tree.to_owned());
        } else if is_open {
            // A directory that we cannot list yields no entry, so all of it stays closed.
            for entry in entries(tree) {
                self.cover(&entry, least, entries, trees);
            }
        } else {
            let depth = tree.components().count();
            let next: BTreeSet<PathBuf> =
                self.below(tree).map(|path| path.components().take(depth + 1).collect()).collect();
            for path in next {
                self.cover(&path, least, entries, trees);
            }
        }
    }
}

/// Removes mounts that leave the access as the mount above them has it. Writable ones stay: they may be there to pin a
/// directory.
fn without_repeated(mounts: &BTreeMap<PathBuf, Access>) -> BTreeMap<PathBuf, Access> {
    let is_repeated = |path: &Path, access: Access| {
        let nearest = path.ancestors().skip(1).find_map(|above| mounts.get(above));
        access != Access::Writable && nearest == Some(&access)
    };
    mounts
        .iter()
        .filter(|(path, access)| !is_repeated(path, **access))
        .map(|(path, access)| (path.clone(), *access))
        .collect()
}

/// Returns the entries of a directory, symbolic links left out; none if it cannot be listed.
pub(crate) fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// Follows the links of a path, up to the first name that is missing.
pub(crate) fn resolve(path: &Path) -> io::Result<RealPath> {
    let mut rest = names(&std::path::absolute(path)?);
    let mut real = PathBuf::from("/");
    let mut links = Vec::new();
    while let Some(name) = rest.pop() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(name);
        match std::fs::symlink_metadata(&next) {
            Ok(found) if found.is_symlink() => {
                let target = std::fs::read_link(&next)?;
                if links.len() == MAX_LINKS {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                links.push(next);
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                rest.append(&mut names(&target));
            }
            Ok(_) => real = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(RealPath { path: next, is_missing: true, links });
            }
            // A file in place of a directory: the path exists once another one replaces it.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Ok(RealPath { path: real, is_missing: true, links });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(RealPath { path: real, is_missing: false, links })
}

/// Returns the names of a path, last one first; `..` is one of them.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<_> = names.collect();
    names.reverse();
    names
}

#[cfg(test)]
mod tests;
