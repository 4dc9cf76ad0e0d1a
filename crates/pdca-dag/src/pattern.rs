//! Globs as sets of paths, and whether two sets meet.
//!
//! A glob stands for paths below the root of a tree. `?` is one character and `*` any number of
//! them, of one name; `[a-z]`, `[!a-z]` and `[^a-z]` one of a class; `{a,b}` either, also with
//! `/` inside; `\` takes the meaning of the next character. `**` as a component is any number of
//! components, at the end at least one; as part of a component it matches across `/`. `./x`,
//! `x//y` and `x/` are `x`, `x/y` and `x`.
//!
//! A plain last component may name a directory, which owns what is below it: `src/net` stands for
//! `src/net/tcp.rs` too, and so does `**/net`. A last component with a wildcard stands for what it
//! matches and nothing below: `src/*` is the entries of `src`. `src/*/` and `src/**` go below.
//!
//! With that meaning the answer is exact: both globs are read side by side, so that a pair is
//! called disjoint only after every way to put a common path together has failed, and a path
//! comes with each pair that meets. What looks like a false alarm is a plain path that is a file
//! and might have been a directory, `src/lib.rs` against `**/x`; whoever knows says so with
//! [`Pattern::file`].

mod charset;
mod flaw;
mod name;
mod route;
mod scan;
#[cfg(test)]
mod tests;

pub use flaw::{PatternError, PatternFlaw};

pub(crate) use route::Route;

/// Whether names that differ in case alone are one name.
///
/// Characters are compared one by one; spellings of one character by several, as in decomposed
/// accents, are different names in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Case {
    /// They are two.
    #[default]
    Sensitive,
    /// They are one, and paths are shown folded.
    Folded,
}

/// A glob that was understood.
///
/// ```
/// use pdca_dag::{Case, Pattern};
/// let glob = |text| Pattern::parse(text, Case::Sensitive);
/// assert_eq!(glob("a*")?.meet(&glob("*b")?).as_deref(), Some("ab"));
/// assert_eq!(glob("src/foo")?.meet(&glob("src/foobar")?), None);
/// assert!(glob("src/foo")?.covers("src/foo/bar.rs"));
/// assert_eq!(glob("../x").unwrap_err().to_string(), "column 1: it leaves the tree");
/// # Ok::<(), pdca_dag::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// None of them void. No routes at all are a glob that stands for nothing.
    routes: Vec<Route>,
    case: Case,
}

impl Pattern {
    /// Reads a glob.
    pub fn parse(text: &str, case: Case) -> Result<Self, PatternError> {
        let mut routes: Vec<Route> = Vec::new();
        let mut size = 0;
        for tokens in scan::alternatives(text)? {
            for route in Route::read(&tokens, case == Case::Folded)? {
                size += tokens.len();
                if !route.is_void() && !routes.contains(&route) {
                    routes.push(route);
                }
            }
            let flaw = match (routes.len(), size) {
                (count, _) if count > scan::MAX_ALTERNATIVES => PatternFlaw::TooManyAlternatives,
                (_, size) if size > scan::MAX_SIZE => PatternFlaw::TooLarge,
                _ => continue,
            };
            return Err(PatternError { column: 1, flaw });
        }
        Ok(Self { text: text.to_owned(), routes, case })
    }

    /// The glob that stands for one file and nothing else, whatever characters its path has.
    ///
    /// ```
    /// use pdca_dag::{Case, Pattern};
    /// let odd = Pattern::of_file("a/[x]{1}*?.rs", Case::Sensitive)?;
    /// assert!(odd.covers("a/[x]{1}*?.rs") && !odd.covers("a/x1.rs"));
    /// # Ok::<(), pdca_dag::PatternError>(())
    /// ```
    pub fn of_file(path: &str, case: Case) -> Result<Self, PatternError> {
        let mut glob = String::with_capacity(path.len());
        for c in path.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\') {
                glob.push('\\');
            }
            glob.push(c);
        }
        Ok(Self { text: path.to_owned(), ..Self::parse(&glob, case)?.file() })
    }

    /// The same for a plain path that is known to be a file: nothing is below it.
    #[must_use]
    pub fn file(mut self) -> Self {
        self.routes = self.routes.into_iter().map(Route::without_below).collect();
        self
    }

    /// The whole tree.
    pub fn everything() -> Self {
        let routes = vec![Route::everything()];
        Self { text: "**".to_owned(), routes, case: Case::Sensitive }
    }

    /// The glob as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A path that both stand for; `None` only where there is none.
    pub fn meet(&self, other: &Self) -> Option<String> {
        self.routes.iter().find_map(|a| other.routes.iter().find_map(|b| a.meet(b)))
    }

    /// Whether it stands for this path. No glob stands for one that leaves the tree.
    pub fn covers(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        let inside = !path.starts_with('/') && !names.is_empty() && !names.contains(&"..");
        inside && self.routes.iter().any(|route| route.covers(&names, self.case == Case::Folded))
    }

    pub(crate) fn routes(&self) -> &[Route] {
        &self.routes
    }
}

/// The paths of a footprint that none of the globs stands for, in its order.
///
/// With no globs at all nothing was declared, and so nothing is outside.
///
/// ```
/// use pdca_dag::{Case, Pattern, drift};
/// let touches = [Pattern::parse("src/net/**", Case::Sensitive)?];
/// assert_eq!(drift(&touches, &["src/net/tcp.rs", "src/lib.rs"]), ["src/lib.rs"]);
/// # Ok::<(), pdca_dag::PatternError>(())
/// ```
pub fn drift<'a, P: AsRef<str>>(touches: &[Pattern], footprint: &'a [P]) -> Vec<&'a str> {
    if touches.is_empty() {
        return Vec::new();
    }
    let paths = footprint.iter().map(AsRef::as_ref);
    paths.filter(|path| !touches.iter().any(|touch| touch.covers(path))).collect()
}
