//! Globs as sets of paths, with an exact test for overlap.

mod charset;
mod flaw;
mod name;
mod route;
mod scan;
#[cfg(test)]
mod tests;

pub use flaw::{PatternError, PatternFlaw};

pub(crate) use route::Route;

/// The treatment of names that differ only in case.
///
/// Characters are compared one by one. Composed and decomposed forms of an accented character are
/// always different names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Case {
    /// `README` and `readme` are different names.
    #[default]
    Sensitive,
    /// `README` and `readme` are the same name; paths are shown in folded case.
    Folded,
}

/// A glob as a set of paths, with an exact test for overlap.
///
/// # Syntax
/// A glob matches paths below the root of a tree:
///
/// - `?` is one character and `*` any number of them, within one name;
/// - `[a-z]`, `[!a-z]` and `[^a-z]` are one character of a class;
/// - `{a,b}` is either, also with `/` inside;
/// - `\` escapes the next character;
/// - `**` as a component is any number of components, at the end at least one; as part of a component
///   it matches across `/`;
/// - `./x`, `x//y` and `x/` are `x`, `x/y` and `x`.
///
/// A plain last component may be a directory and then covers everything below it: `src/net` and
/// `**/net` also match `src/net/tcp.rs`. A last component with a wildcard covers nothing below: `src/*`
/// matches only the entries of `src`. `src/*/` and `src/**` match below too.
///
/// # Overlap
/// [`Pattern::meet`] is exact. Both globs are walked as automata side by side: a pair
/// is disjoint only if no common path exists, and an overlap comes with a path that matches both. What
/// looks like a false alarm is a plain path that is a file and could be a directory, as `src/lib.rs`
/// against `**/x`; use [`Pattern::file`] if it is known to be a file.
///
/// # Example
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
    /// The alternatives, without those that match nothing. May be empty: a glob that matches nothing.
    routes: Vec<Route>,
    case: Case,
}

impl Pattern {
    /// Parses a glob.
    pub fn parse(text: &str, case: Case) -> Result<Self, PatternError> {
        let mut routes: Vec<Route> = Vec::new();
        let mut size = 0;
        for tokens in scan::alternatives(text)? {
            for route in Route::read(&tokens, case == Case::Folded)? {
                size += tokens.len();
                // A route that matches nothing would otherwise be reported as an overlap by the
                // shortcuts of `meets`, which assume that every component has a name.
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

    /// Makes a glob that matches exactly one file; special characters in the path are literal.
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

    /// Declares a plain path to be a file, so that it matches nothing below it. Has no effect on a
    /// glob with wildcards.
    #[must_use]
    pub fn file(mut self) -> Self {
        self.routes = self.routes.into_iter().map(Route::without_below).collect();
        self
    }

    /// A glob that matches the whole tree.
    pub fn everything() -> Self {
        let routes = vec![Route::everything()];
        Self { text: "**".to_owned(), routes, case: Case::Sensitive }
    }

    /// The glob as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns a path that both match; `None` only if there is none.
    pub fn meet(&self, other: &Self) -> Option<String> {
        self.routes.iter().find_map(|a| other.routes.iter().find_map(|b| a.meet(b)))
    }

    /// Returns true if the glob matches the path. No glob matches a path that leaves the tree.
    pub fn covers(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        let inside = !path.starts_with('/') && !names.is_empty() && !names.contains(&"..");
        inside && self.routes.iter().any(|route| route.covers(&names, self.case == Case::Folded))
    }

    pub(crate) fn routes(&self) -> &[Route] {
        &self.routes
    }
}

/// Returns the changed paths that none of the globs matches, in order.
///
/// Without any globs nothing was declared, so no path counts as drift.
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
