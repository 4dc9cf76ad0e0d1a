//! Build products: files that a tool leaves behind, which are in no change unless they were asked for.
//!
//! A product is new and was not added to git, its name or that of a directory above it is on the list, and the brief
//! does not name it. A directory in which git tracks a file is part of the project, whatever its name is.
//!
//! Products are renamed into `rescued/` of the lane, which is on the same disk, before the change is taken. They are neither
//! read nor hashed, so a `target/` of gigabytes costs nothing. The names are not added to `info/exclude` of the lane: then
//! `git status`, gates and the builder's own `git add` would behave differently there than in the user's checkout. An attempt
//! is not refused for them, because that would cost a call for a fault that can be repaired.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use gix::bstr::{BString, ByteSlice as _};
use pdca_dag::{Case, Pattern, PatternError};
use serde::{Deserialize, Serialize};

use crate::{
    checkout,
    failure::LaneError,
    history,
    lane::Lane,
    work_tree::{WorkTree, look},
};

/// The names that are products where nothing else is configured.
const USUAL: &[&str] = &[
    "__pycache__/",
    "*.py[co]",
    "*.egg-info/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
    ".coverage",
    "node_modules/",
    ".nyc_output/",
    ".gradle/",
    "target/",
    "*.class",
    "*.o",
    // Not `.aider*`: `.aider.conf.yml` and `.aiderignore` are configuration, which a change may be about.
    ".aider.*.history*",
    ".aider.tags.cache*/",
    "*.orig",
    "*.rej",
    "*.sw[op]",
    "*~",
    ".#*",
    ".DS_Store",
    "core.[0-9]*",
];

/// Directories whose name is a usual word: they are products beside a build file of these names, or with a cache tag.
const AMBIGUOUS: &[(&str, &[&str])] = &[("target", &["Cargo.toml", "pom.xml", "build.sbt"])];
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// The names of build products.
///
/// A name is that of a file or directory at any depth, with `*`, `?` and `[…]`; with a `/` at its end that of a
/// directory.
///
/// ```
/// use pdca_lanes::Products;
///
/// let products = Products::default();
/// assert_eq!(products.matching("src/__pycache__/a.pyc"), Some("src/__pycache__"));
/// assert_eq!(products.matching("src/a.py"), None);
/// assert!(Products::try_from(vec!["a/b".to_owned()]).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Products(Vec<ProductName>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProductName {
    written: String,
    pattern: Pattern,
    is_dir: bool,
}

/// A text that cannot be the name of build products.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProductsError {
    /// The name is a path.
    #[error("`{name}` is a path; a product has a name that counts at any depth")]
    Path {
        /// The text.
        name: String,
    },
    /// The name is that of every file.
    #[error("`{name}` would leave out every new file")]
    Everything {
        /// The text.
        name: String,
    },
    /// The name is no pattern.
    #[error("`{name}` is no pattern of a name")]
    Pattern {
        /// The text.
        name: String,
        /// The error of the parser.
        source: PatternError,
    },
}

impl Default for Products {
    fn default() -> Self {
        let names = USUAL.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Self::try_from(names).expect("because a test reads the list")
    }
}

impl TryFrom<Vec<String>> for Products {
    type Error = ProductsError;

    fn try_from(names: Vec<String>) -> Result<Self, ProductsError> {
        names.into_iter().map(ProductName::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl From<Products> for Vec<String> {
    fn from(products: Products) -> Self {
        products.0.into_iter().map(|name| name.written).collect()
    }
}

impl ProductName {
    fn parse(written: String) -> Result<Self, ProductsError> {
        let (name, is_dir) = match written.strip_suffix('/') {
            Some(name) => (name, true),
            None => (written.as_str(), false),
        };
        if name.contains('/') || matches!(name, "." | "..") {
            return Err(ProductsError::Path { name: written });
        }
        if name.trim_matches(['*', '?']).is_empty() {
            return Err(ProductsError::Everything { name: written });
        }
        let pattern = Pattern::parse(name, Case::Sensitive)
            .map_err(|source| ProductsError::Pattern { name: written.clone(), source })?;
        Ok(Self { written, pattern, is_dir })
    }
}

impl Products {
    /// Returns the part of a file's path that is on the list: the outermost directory, or the path itself.
    pub fn matching<'p>(&self, path: &'p str) -> Option<&'p str> {
        self.parts(path).next()
    }

    /// Returns the directories above a file and the file itself, as far as they are on the list, outermost first.
    fn parts<'p>(&self, path: &'p str) -> impl Iterator<Item = &'p str> {
        let ends = path.match_indices('/').map(|(at, _)| (at, true));
        ends.chain([(path.len(), false)]).filter_map(move |(end, is_dir)| {
            let part = &path[..end];
            let name = part.rsplit('/').next().unwrap_or(part);
            let is_named = |one: &ProductName| (is_dir || !one.is_dir) && one.pattern.covers(name);
            self.0.iter().any(is_named).then_some(part)
        })
    }
}

/// Build products in a checkout, each as a file or as a whole directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundProducts(Vec<BString>);

impl FoundProducts {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns their paths. Invalid UTF-8 is replaced.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|path| path.to_str_lossy().into_owned()).collect()
    }
}

impl WorkTree {
    /// Returns the build products in the checkout that would become part of a change unasked, sorted: files that are
    /// neither in HEAD, nor added to git, nor ignored, nor wanted.
    pub fn products(
        &self,
        products: &Products,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<FoundProducts, LaneError> {
        let repo = self.room.enter()?;
        let head = history::tree_of(&repo, self.require_head(&repo)?)?;
        // With the paths that the builder added: `git add` is a sign that a file is wanted.
        let (mut index, _) = self.stage.index_with_wishes(&repo, &self.room, head)?;
        let found = look(&repo, &self.room, &mut index)?;
        // A repository inside a product is one of its files.
        let below = |path: &[u8], name: &[u8]| BString::from([path, b"/", name].concat());
        let nested = found.nested.iter().map(|path| below(path, b".git"));
        let is_tracked = |dir: &[u8]| index.prefixed_entries(below(dir, b"").as_bstr()).is_some();
        let mut of_prefix: BTreeMap<BString, Vec<BString>> = BTreeMap::new();
        for path in found.untracked.iter().cloned().chain(nested) {
            let shown = path.to_str_lossy();
            // The same part in bytes: invalid UTF-8 is replaced by something of another length.
            let cut = |part: &str| {
                let depth = part.matches('/').count();
                path.find_iter("/").nth(depth).unwrap_or(path.len())
            };
            let is_product =
                |part: &&str| !is_tracked(&path[..cut(part)]) && is_unmistakable(self.path(), part);
            if let Some(part) = products.parts(&shown).find(is_product) {
                of_prefix.entry(path[..cut(part)].into()).or_default().push(path.clone());
            }
        }
        let mut left = BTreeSet::new();
        for (prefix, files) in of_prefix {
            // A directory is moved whole unless the brief names a file in it; then only the other
            // files are moved.
            let (wanted, unasked): (Vec<BString>, Vec<BString>) =
                files.into_iter().partition(|path| is_wanted(&path.to_str_lossy()));
            if wanted.is_empty() {
                left.insert(prefix);
            } else {
                left.extend(unasked);
            }
        }
        Ok(FoundProducts(left.into_iter().collect()))
    }
}

impl WorkTree {
    /// Returns true if a file of the checkout has the name of a build product, or lies in a directory that has.
    pub fn has_product_name(&self, products: &Products, path: &str) -> bool {
        products.parts(path).any(|part| is_unmistakable(self.path(), part))
    }
}

impl Lane {
    /// Returns the directory beside the checkout that [`set_aside`](Self::set_aside) moves files to.
    pub fn aside(&self, name: &str) -> Utf8PathBuf {
        self.aside.join(history::ref_component(name))
    }

    /// Moves build products out of the checkout to [`aside`](Self::aside), with their paths. Nothing is read, whatever
    /// their size is. A number is appended to the directory for a file that is there already.
    pub fn set_aside(&self, found: &FoundProducts, name: &str) -> Result<(), LaneError> {
        checkout::move_aside(&self.room, &self.aside(name), &found.0)
    }
}

/// Returns false for a directory that only happens to have the name of a product.
fn is_unmistakable(root: &Utf8Path, prefix: &str) -> bool {
    let dir = root.join(prefix);
    let name = dir.file_name().unwrap_or_default();
    let Some((_, beside)) = AMBIGUOUS.iter().find(|(known, _)| *known == name) else { return true };
    let parent = dir.parent().unwrap_or(root);
    dir.join(CACHE_TAG).is_file() || beside.iter().any(|file| parent.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_names_can_be_read_and_written() {
        let names: Vec<String> = Products::default().into();
        assert_eq!(names, USUAL);
        assert_eq!(Products::try_from(names), Ok(Products::default()));
    }

    #[test]
    fn a_name_counts_at_any_depth_and_a_directory_with_all_that_is_in_it() {
        let products = Products::default();
        for (path, expected) in [
            ("a.pyc", Some("a.pyc")),
            ("x/y/a.pyo", Some("x/y/a.pyo")),
            ("__pycache__/a.cpython-312.pyc", Some("__pycache__")),
            ("x/node_modules/y/index.js", Some("x/node_modules")),
            (".aider.tags.cache.v4/x", Some(".aider.tags.cache.v4")),
            (".aider.chat.history.md", Some(".aider.chat.history.md")),
            ("src/.main.rs.swp", Some("src/.main.rs.swp")),
            // A file is no directory.
            ("target", None),
            ("node_modules", None),
            ("src/pycache.py", None),
            ("a.py", None),
        ] {
            assert_eq!(products.matching(path), expected, "{path}");
        }
    }

    #[test]
    fn what_is_no_name_of_products_is_refused() {
        for (name, expected) in [
            ("a/b", "is a path"),
            ("/x", "is a path"),
            ("..", "is a path"),
            ("*", "every new file"),
            ("", "every new file"),
            ("[a", "no pattern"),
        ] {
            let error = Products::try_from(vec![name.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
