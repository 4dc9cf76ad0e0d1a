//! Types and their methods, found by parsing.

use std::collections::BTreeMap;

use camino::Utf8Path;
use syn::{Attribute, ImplItem, Item, ItemImpl, Type};

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
    methods: BTreeMap<(String, String), usize>,
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
                self.define(path, &item.ident);
            } else if let Item::Enum(item) = item {
                self.define(path, &item.ident);
            } else if let Item::Trait(item) = item {
                self.define(path, &item.ident);
            } else if let Item::Impl(item) = item {
                self.count(owner, item);
            } else if let Item::Mod(item) = item
                && !only_for_tests(&item.attrs)
            {
                let inner = item.content.as_ref().map(|(_, items)| items.as_slice());
                self.items(owner, path, inner.unwrap_or_default());
            }
        }
    }

    fn define(&mut self, path: &Utf8Path, name: &syn::Ident) {
        self.defined.entry(name.to_string()).or_default().push(path.to_string());
    }

    fn count(&mut self, owner: &str, item: &ItemImpl) {
        let (None, Type::Path(of)) = (&item.trait_, &*item.self_ty) else { return };
        let Some(last) = of.path.segments.last() else { return };
        let methods = item.items.iter().filter(|item| matches!(item, ImplItem::Fn(_))).count();
        *self.methods.entry((owner.to_owned(), last.ident.to_string())).or_default() += methods;
    }

    /// Returns names that several types have, with the files of their definitions.
    ///
    /// `Args` is left out: every command of a command line has one, and no other file names it.
    pub(super) fn shared_names(&self) -> Vec<(&str, &[String])> {
        self.defined
            .iter()
            .filter(|(name, places)| places.len() > 1 && *name != "Args")
            .map(|(name, places)| (name.as_str(), places.as_slice()))
            .collect()
    }

    /// Returns the `count` types with the most inherent methods, the largest first.
    pub(super) fn largest_types(&self, count: usize) -> Vec<(&str, usize)> {
        let mut types: Vec<_> =
            self.methods.iter().map(|((_, name), methods)| (name.as_str(), *methods)).collect();
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
    fn a_name_is_shared_only_by_definitions_outside_of_tests() {
        let census = census(&[
            ("a.rs", "struct Place; enum Once {}"),
            ("b.rs", "mod inner { trait Place {} } #[cfg(test)] mod tests { struct Once; }"),
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
    fn a_file_that_does_not_parse_is_named() {
        let error = Census::default().read("a", "a.rs".into(), "fn").unwrap_err();
        assert_eq!(error.to_string(), "cannot parse a.rs");
    }
}
