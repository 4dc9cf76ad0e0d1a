//! Checks that a crate opens with a description; a library also with its invariants.

use camino::Utf8PathBuf;

use super::edges::{CratePlace, Package, place};
use super::{Finding, SourceFile};

/// The root file of a target.
#[derive(Debug, Clone)]
pub(super) struct Root {
    path: Utf8PathBuf,
    needs_invariants: bool,
}

/// Returns the roots of all libraries and programs.
pub(super) fn roots(packages: &[Package]) -> Vec<Root> {
    let mut roots = Vec::new();
    for package in packages {
        // Tasks and end-to-end suites have no users, so they need no invariants.
        let is_library_crate = place(&package.name) != Some(CratePlace::Apart);
        for target in &package.targets {
            let is = |kind: &str| target.kind.iter().any(|one| one == kind);
            if is("lib") || is("bin") {
                roots.push(Root {
                    path: target.src_path.clone(),
                    needs_invariants: is("lib") && is_library_crate,
                });
            }
        }
    }
    roots
}

/// Returns every root without a header, or a library without invariants.
pub(super) fn check(roots: &[Root], files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for root in roots {
        let text =
            files.iter().find(|file| file.path == root.path).map_or("", |file| file.text.as_str());
        let header = header(text);
        if header.is_empty() {
            let what = "no doc header: say in `//!` lines what this is";
            findings.push(Finding::error(&root.path, 1, what));
        } else if root.needs_invariants && !header.contains(&"# Invariants") {
            let what = "the doc header has no `# Invariants` section";
            findings.push(Finding::error(&root.path, 1, what));
        }
    }
    findings
}

/// Returns the `//!` lines at the start of a file, without the marks.
fn header(text: &str) -> Vec<&str> {
    text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::super::edges::CrateTarget;
    use super::*;

    fn found(text: &str, needs_invariants: bool) -> Vec<String> {
        let path = Utf8PathBuf::from("crates/a/src/lib.rs");
        let root = Root { path: path.clone(), needs_invariants };
        let file = SourceFile { path, text: text.to_owned() };
        check(&[root], &[file]).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_library_states_what_it_is_and_its_invariants() {
        let whole = "//! What it is.\n//!\n//! # Invariants\n//! - One.\n\nuse a;\n";
        assert_eq!(found(whole, true), Vec::<String>::new());
        assert_eq!(
            found("//! What it is.\n\n//! # Invariants\n", true),
            ["the doc header has no `# Invariants` section"],
            "a section apart from the header is not part of it"
        );
        assert_eq!(found("use a;\n", true), ["no doc header: say in `//!` lines what this is"]);
    }

    #[test]
    fn a_program_needs_a_header_only() {
        assert_eq!(found("//! What it does.\n", false), Vec::<String>::new());
        assert_eq!(found("fn main() {}\n", false).len(), 1);
    }

    #[test]
    fn only_a_library_of_the_product_owes_invariants() {
        let package = |name: &str, kind: &str| Package {
            name: name.to_owned(),
            manifest_path: Utf8PathBuf::new(),
            dependencies: Vec::new(),
            targets: vec![CrateTarget {
                kind: vec![kind.to_owned()],
                src_path: Utf8PathBuf::from(format!("{name}.rs")),
            }],
        };
        let packages = [
            package("pdca-state", "lib"),
            package("pdca-cli", "bin"),
            package("pdca-e2e", "lib"),
            package("pdca-state", "test"),
        ];
        let roots: Vec<_> = roots(&packages)
            .into_iter()
            .map(|root| (root.path.into_string(), root.needs_invariants))
            .collect();
        assert_eq!(
            roots,
            [
                ("pdca-state.rs".to_owned(), true),
                ("pdca-cli.rs".to_owned(), false),
                ("pdca-e2e.rs".to_owned(), false),
            ]
        );
    }
}
