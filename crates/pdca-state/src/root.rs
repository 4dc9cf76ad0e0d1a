//! The bundle root: a directory with one subdirectory per bundle.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::ffi::OsStrExt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::bundle::Bundle;
use crate::id::{BundleId, IdError};

const COMPLETED: &str = "completed";

/// A handle to the directory that holds the bundles, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleRoot {
    path: Utf8PathBuf,
}

/// The error of listing a bundle root.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// The directory does not exist.
    #[error("there is no bundle root {path}")]
    Missing {
        /// The directory that was expected.
        path: Utf8PathBuf,
    },
    /// The directory cannot be listed.
    #[error("cannot list the bundle root {path}")]
    List {
        /// The path of the bundle root.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The entries of a bundle root.
#[derive(Debug, Default)]
pub struct Listing {
    /// The bundles, sorted by directory name.
    pub bundles: Vec<Bundle>,
    /// Entries with the prefix `issue_` that are not bundles, sorted by name.
    pub strangers: Vec<Stranger>,
}

/// An entry of a bundle root that starts with `issue_` and is not a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// The file name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The reason it is not a bundle.
    pub why: Strangeness,
}

/// The reason an entry named `issue_…` is not a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Strangeness {
    /// The text after `issue_` is not a legal id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The file name is not UTF-8.
    #[error("its name is not UTF-8")]
    NotUtf8,
    /// The entry is not a directory.
    #[error("it is not a directory")]
    NotADirectory,
    /// Another entry has the same name in another case. On a case-insensitive file system the two
    /// would be one directory, and one git ref.
    #[error("`{other}` differs from it only in case")]
    OnlyCase {
        /// The name of the other entry.
        other: String,
    },
}

impl BundleRoot {
    /// Makes a handle; does no I/O.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The root of the bundles that were moved to `completed/`.
    #[must_use]
    pub fn completed(&self) -> BundleRoot {
        Self::new(self.path.join(COMPLETED))
    }

    /// A handle to the bundle with this id, which need not exist.
    pub fn bundle(&self, id: &BundleId) -> Bundle {
        Bundle::new(&self.path, id.clone())
    }

    /// Lists the active bundles, sorted by id.
    pub fn list(&self) -> Result<Vec<Bundle>, RootError> {
        Ok(self.scan()?.bundles)
    }

    /// Lists the bundles in `completed/`, sorted by id; none if there is no such directory.
    pub fn list_completed(&self) -> Result<Vec<Bundle>, RootError> {
        match self.completed().list() {
            Err(RootError::Missing { .. }) => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Finds an entry whose name differs from that of the bundle `id` only in case. Lists the directory: ask
    /// [`Self::names`] about several bundles.
    pub fn twin_of(&self, id: &BundleId) -> Option<String> {
        self.names().twin_of(id).map(str::to_owned)
    }

    /// Lists the names in the directory once, to ask about many bundles; empty if it cannot be listed.
    pub fn names(&self) -> RootNames {
        let mut names = RootNames::default();
        let Ok(entries) = self.path.as_std_path().read_dir() else { return names };
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            if BundleId::claims_dir_name(name.to_ascii_lowercase().as_bytes()) {
                names.by_lower_case.entry(name.to_ascii_lowercase()).or_default().push(name);
            }
        }
        names
    }

    /// Lists the active bundles and the entries that only look like one.
    ///
    /// A symbolic link is listed as a bundle; reading it fails if it leads out of the root.
    pub fn scan(&self) -> Result<Listing, RootError> {
        let failed = |source: io::Error| {
            let path = self.path.clone();
            if source.kind() == io::ErrorKind::NotFound {
                RootError::Missing { path }
            } else {
                RootError::List { path, source }
            }
        };
        let mut listing = Listing::default();
        for entry in self.path.as_std_path().read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if !BundleId::claims_dir_name(name.as_bytes()) {
                continue;
            }
            let kind = entry.file_type().map_err(failed)?;
            match identify(name.to_str(), kind.is_dir() || kind.is_symlink()) {
                Ok(id) => listing.bundles.push(Bundle::listed(&self.path, id, kind.is_symlink())),
                Err(why) => {
                    listing.strangers.push(Stranger { name: name.to_string_lossy().into(), why });
                }
            }
        }
        listing.bundles.sort_unstable_by(|a, b| a.id().cmp(b.id()));
        // Neither of two twins is taken: which of them a case-insensitive file system or a loose
        // ref would name is chance.
        listing.set_apart_twins();
        listing.strangers.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }
}

/// The names of bundles in a root, from one listing.
#[derive(Debug, Default)]
pub struct RootNames {
    by_lower_case: HashMap<String, Vec<String>>,
}

impl RootNames {
    /// Finds a name that differs from that of the bundle `id` only in case.
    pub fn twin_of(&self, id: &BundleId) -> Option<&str> {
        let own = id.dir_name();
        let alike = self.by_lower_case.get(&own.to_ascii_lowercase())?;
        alike.iter().find(|name| **name != own).map(String::as_str)
    }
}

impl Listing {
    /// Moves bundles whose ids differ only in case to the strangers, each of them.
    fn set_apart_twins(&mut self) {
        let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for bundle in &self.bundles {
            let name = bundle.id().dir_name();
            by_name.entry(name.to_ascii_lowercase()).or_default().push(name);
        }
        by_name.retain(|_, names| names.len() > 1);
        if by_name.is_empty() {
            return;
        }
        self.bundles
            .retain(|bundle| !by_name.contains_key(&bundle.id().dir_name().to_ascii_lowercase()));
        for names in by_name.into_values() {
            for name in &names {
                let other = names.iter().find(|other| *other != name).cloned().unwrap_or_default();
                let why = Strangeness::OnlyCase { other };
                self.strangers.push(Stranger { name: name.clone(), why });
            }
        }
    }
}

fn identify(name: Option<&str>, may_be_bundle: bool) -> Result<BundleId, Strangeness> {
    let id = BundleId::parse_dir_name(name.ok_or(Strangeness::NotUtf8)?)?;
    if may_be_bundle { Ok(id) } else { Err(Strangeness::NotADirectory) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use crate::testing::{BRIEF, Scene};
    use crate::{LoadError, survey};

    fn ids(bundles: &[Bundle]) -> Vec<&str> {
        bundles.iter().map(|bundle| bundle.id().as_str()).collect()
    }

    #[test]
    fn bundles_are_sorted_as_people_count_and_the_rest_is_left_alone() {
        let scene = Scene::new();
        for id in ["9", "10", "PROJ-12", "a"] {
            scene.bundle(id, &[]);
        }
        scene.write("completed/issue_1/brief.md", BRIEF);
        scene.write("README.md", "");
        scene.write("other/x", "");
        let listing = scene.root().scan().unwrap();
        assert_eq!(ids(&listing.bundles), ["9", "10", "PROJ-12", "a"]);
        assert_eq!(listing.strangers, []);
        assert_eq!(ids(&scene.root().list_completed().unwrap()), ["1"]);
    }

    #[test]
    fn ids_that_differ_only_in_case_are_no_bundles_and_each_names_the_other() {
        let scene = Scene::new();
        for id in ["abc", "ABC", "PROJ-1", "7"] {
            scene.bundle(id, &[]);
        }
        let listing = scene.root().scan().unwrap();
        assert_eq!(ids(&listing.bundles), ["7", "PROJ-1"]);
        let told: Vec<String> = listing
            .strangers
            .iter()
            .map(|stranger| format!("{}: {}", stranger.name, stranger.why))
            .collect();
        assert_eq!(
            told,
            [
                "issue_ABC: `issue_abc` differs from it only in case",
                "issue_abc: `issue_ABC` differs from it only in case"
            ]
        );
        let twin = |id: &str| scene.root().twin_of(&id.parse().unwrap());
        assert_eq!(twin("Proj-1").as_deref(), Some("issue_PROJ-1"));
        assert_eq!((twin("7"), twin("PROJ-1")), (None, None));
    }

    #[test]
    fn what_is_named_like_a_bundle_and_is_none_is_told() {
        let scene = Scene::new();
        for name in ["issue_", "issue_-rf", "issue_a b", "issue_issue_1"] {
            fs_err::create_dir(scene.root().path().join(name)).unwrap();
        }
        scene.write("issue_7", "a file");
        let bytes = std::ffi::OsString::from_vec(b"issue_\xff".to_vec());
        fs_err::create_dir(scene.root().path().as_std_path().join(bytes)).unwrap();
        let listing = scene.root().scan().unwrap();
        assert!(listing.bundles.is_empty());
        let told: Vec<_> = listing
            .strangers
            .iter()
            .map(|stranger| match &stranger.why {
                Strangeness::Id(error) => format!("{} {:?}", stranger.name, error.flaw),
                why @ (Strangeness::NotUtf8
                | Strangeness::NotADirectory
                | Strangeness::OnlyCase { .. }) => {
                    format!("{} {why:?}", stranger.name)
                }
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        issue_ Empty
        issue_-rf Start("-")
        issue_7 NotADirectory
        issue_a b Character(' ')
        issue_issue_1 Start("issue_")
        issue_� NotUtf8
        "#);
    }

    #[test]
    fn a_bundle_that_is_a_link_out_of_the_root_is_one_bad_row() {
        let scene = Scene::new();
        scene.bundle("1", &[("brief.md", BRIEF)]);
        let outside = scene.path().join("outside");
        fs_err::create_dir(&outside).unwrap();
        fs_err::write(outside.join("brief.md"), BRIEF).unwrap();
        let root = scene.root();
        std::os::unix::fs::symlink(&outside, root.path().join("issue_2")).unwrap();
        std::os::unix::fs::symlink("issue_1", root.path().join("issue_3")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("issue_4")).unwrap();
        let rows = survey(&root).unwrap();
        assert!(rows[0].result.is_ok());
        let error = rows[1].result.as_ref().unwrap_err();
        assert!(
            matches!(error, LoadError::LeadsOut { target, .. } if target.ends_with("/outside")),
            "{error}"
        );
        assert!(rows[2].result.is_ok(), "a link to a bundle of the same root is one");
        assert!(rows[3].result.is_err(), "a link to nothing is none");
        let out = root.bundle(&"2".parse().unwrap());
        assert!(
            out.load().is_err()
                && out.read(crate::Artifact::Brief).is_err()
                && out.digest().is_err()
        );
    }

    #[test]
    fn a_root_that_is_missing_or_a_file_says_so() {
        let scene = Scene::new();
        let file = scene.write("file", "");
        assert!(matches!(
            BundleRoot::new(scene.path().join("none")).list(),
            Err(RootError::Missing { .. })
        ));
        assert!(matches!(BundleRoot::new(file).list(), Err(RootError::List { .. })));
        assert!(scene.root().list_completed().unwrap().is_empty());
    }
}
