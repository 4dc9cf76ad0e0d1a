//! Types and their methods, found by parsing.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use syn::{Attribute, ImplItem, Item, ItemImpl, Type, Visibility};

use super::lines::is_test_file;

/// A file that does not parse.
#[derive(Debug, thiserror::Error)]
#[error("cannot parse {path}")]
pub(super) struct Unparsable {
    path: String,
    source: syn::Error,
}

/// The types of the workspace: the definitions of each name, and the inherent methods of each type.
#[derive(Debug, Default)]
pub(super) struct Census {
    defined: BTreeMap<String, Vec<String>>,
    /// Those that another file can name.
    visible: BTreeMap<String, Vec<String>>,
    impls: Vec<Methods>,
}

/// The methods of one inherent `impl`.
#[derive(Debug)]
struct Methods {
    owner: String,
    name: String,
    path: Utf8PathBuf,
    count: usize,
}

impl Census {
    /// Adds the definitions outside of tests in `text`, the file at `path` of the crate `owner`.
    pub(super) fn read(
        &mut self,
        owner: &str,
        path: &Utf8Path,
        text: &str,
    ) -> Result<(), Unparsable> {
        if is_test_file(path) {
            return Ok(());
        }
        let file = syn::parse_file(text)
            .map_err(|source| Unparsable { path: path.to_string(), source })?;
        self.items(owner, path, &file.items);
        Ok(())
    }

    fn items(&mut self, owner: &str, path: &Utf8Path, items: &[Item]) {
        for item in items {
            if let Item::Struct(item) = item {
                self.define(path, &item.ident, &item.vis);
            } else if let Item::Enum(item) = item {
                self.define(path, &item.ident, &item.vis);
            } else if let Item::Trait(item) = item {
                self.define(path, &item.ident, &item.vis);
            } else if let Item::Impl(item) = item {
                self.count(owner, path, item);
            } else if let Item::Mod(item) = item
                && !only_for_tests(&item.attrs)
            {
                let inner = item.content.as_ref().map(|(_, items)| items.as_slice());
                self.items(owner, path, inner.unwrap_or_default());
            }
        }
    }

    fn define(&mut self, path: &Utf8Path, name: &syn::Ident, visibility: &Visibility) {
        if !matches!(visibility, Visibility::Inherited) {
            self.visible.entry(name.to_string()).or_default().push(path.to_string());
        }
        self.defined.entry(name.to_string()).or_default().push(path.to_string());
    }

    fn count(&mut self, owner: &str, path: &Utf8Path, item: &ItemImpl) {
        let (None, Type::Path(of)) = (&item.trait_, &*item.self_ty) else { return };
        let Some(last) = of.path.segments.last() else { return };
        let count = item.items.iter().filter(|item| matches!(item, ImplItem::Fn(_))).count();
        let (owner, name) = (owner.to_owned(), last.ident.to_string());
        self.impls.push(Methods { owner, name, path: path.to_owned(), count });
    }

    /// Returns the file that defines the type of an `impl`: of those of its crate, the one that shares most of
    /// its path. Two types of one name in one crate are thereby counted apart.
    fn home(&self, of: &Methods) -> &str {
        let shared = |place: &&String| {
            let place = Utf8Path::new(place.trim_end_matches(".rs"));
            let own = Utf8Path::new(of.path.as_str().trim_end_matches(".rs"));
            place.components().zip(own.components()).take_while(|(a, b)| a == b).count()
        };
        let places = self.defined.get(&of.name).map_or(&[][..], Vec::as_slice);
        // The first two components of a path name the crate.
        places
            .iter()
            .filter(|place| shared(place) > 1)
            .max_by_key(shared)
            .map_or("", String::as_str)
    }

    /// Returns names that several types have, with the files of their definitions.
    ///
    /// A private type is left out, because no other file can name it. So is `Args`: every command of a command line has
    /// one, and only the list of commands names it.
    pub(super) fn shared_names(&self) -> Vec<(&str, &[String])> {
        self.visible
            .iter()
            .filter(|(name, places)| places.len() > 1 && *name != "Args")
            .map(|(name, places)| (name.as_str(), places.as_slice()))
            .collect()
    }

    /// Returns the `count` types with the most inherent methods, the largest first.
    pub(super) fn largest_types(&self, count: usize) -> Vec<(&str, usize)> {
        let mut methods: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        for of in &self.impls {
            *methods.entry((&of.owner, &of.name, self.home(of))).or_default() += of.count;
        }
        let mut types: Vec<_> =
            methods.into_iter().map(|((_, name, _), count)| (name, count)).collect();
        types.sort_by_key(|(_, methods)| std::cmp::Reverse(*methods));
        types.truncate(count);
        types
    }
}

fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(files: &[(&str, &str)]) -> Census {
        let mut census = Census::default();
        for (path, text) in files {
            census.read("a", (*path).into(), text).unwrap();
        }
        census
    }

    #[test]
    fn a_name_is_shared_by_definitions_that_other_files_can_name_outside_of_tests() {
        let census = census(&[
            ("a.rs", "pub struct Place; pub(crate) enum Once {} pub struct Row; pub struct Args;"),
            (
                "b.rs",
                "mod inner { pub trait Place {} } struct Row; pub struct Args; \
                 #[cfg(test)] mod tests { pub struct Once; }",
            ),
        ]);
        let places = ["a.rs".to_owned(), "b.rs".to_owned()];
        assert_eq!(census.shared_names(), [("Place", places.as_slice())]);
    }

    #[test]
    fn methods_of_all_inherent_impls_of_a_type_add_up() {
        let census = census(&[
            ("a.rs", "impl Big { fn a() {} fn b() {} const C: u8 = 1; } impl Small { fn s() {} }"),
            ("b.rs", "impl<'a> Big<'a> { fn c() {} } impl Clone for Big { fn clone() {} }"),
        ]);
        assert_eq!(census.largest_types(1), [("Big", 3)]);
    }

    #[test]
    fn two_types_of_one_name_are_counted_apart_each_with_the_modules_below_it() {
        let census = census(&[
            ("crates/a/src/soak.rs", "struct Scene; impl Scene { fn a() {} }"),
            ("crates/a/src/agents/scene.rs", "struct Scene; impl Scene { fn a() {} fn b() {} }"),
            ("crates/a/src/agents/scene/keep.rs", "impl Scene { fn c() {} }"),
        ]);
        assert_eq!(census.largest_types(3), [("Scene", 3), ("Scene", 1)]);
    }

    #[test]
    fn methods_in_a_file_beside_the_definition_are_of_the_type() {
        let census = census(&[
            ("crates/a/src/bundle.rs", "struct Bundle; impl Bundle { fn a() {} }"),
            ("crates/a/src/snapshot.rs", "impl Bundle { fn b() {} }"),
        ]);
        assert_eq!(census.largest_types(3), [("Bundle", 2)]);
    }

    #[test]
    fn a_file_that_does_not_parse_is_named() {
        let error = Census::default().read("a", "a.rs".into(), "fn").unwrap_err();
        assert_eq!(error.to_string(), "cannot parse a.rs");
    }
}
