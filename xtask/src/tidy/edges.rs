//! Checks the dependencies between crates, which point down only.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

use super::Finding;

/// The part of `cargo metadata` that the rules read.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) manifest_path: Utf8PathBuf,
    pub(super) dependencies: Vec<Dependency>,
    pub(super) targets: Vec<CrateTarget>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) kind: Option<DependencyKind>,
}

/// The kind of a dependency; cargo writes `null` for a plain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DependencyKind {
    Dev,
    Build,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct CrateTarget {
    pub(super) kind: Vec<String>,
    pub(super) src_path: Utf8PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Reads the packages out of `cargo metadata --no-deps`, with paths relative to the workspace.
pub(super) fn packages(
    metadata: &[u8],
    workspace: &Utf8Path,
) -> Result<Vec<Package>, serde_json::Error> {
    let mut packages = serde_json::from_slice::<Metadata>(metadata)?.packages;
    let relative = |path: &Utf8Path| path.strip_prefix(workspace).unwrap_or(path).to_owned();
    for package in &mut packages {
        package.manifest_path = relative(&package.manifest_path);
        for target in &mut package.targets {
            target.src_path = relative(&target.src_path);
        }
    }
    Ok(packages)
}

/// The place of a crate. A product crate may use crates of lower rings, and those of its own ring in [`WITHIN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CratePlace {
    Ring(u8),
    /// Fixtures for tests and benches: used by dev-dependencies of the product only, itself on top of ring 0.
    Testkit,
    /// Outside the rings: may use every library, used by none.
    Apart,
}

pub(super) fn place(name: &str) -> Option<CratePlace> {
    Some(match name {
        "pdca-state" | "pdca-process" | "pdca-dag" => CratePlace::Ring(0),
        "pdca-lanes" | "pdca-gates" | "pdca-leaves" | "pdca-journal" => CratePlace::Ring(1),
        "pdca-driver" | "pdca-integrate" | "pdca-remote" | "pdca-forge" | "pdca-act" => {
            CratePlace::Ring(2)
        }
        "pdca-workspace" => CratePlace::Ring(3),
        "pdca-cli" => CratePlace::Ring(4),
        "pdca-testkit" => CratePlace::Testkit,
        "pdca-e2e" | "xtask" => CratePlace::Apart,
        _ => return None,
    })
}

/// The edges between crates of one ring. Each is part of the design, so a new one is added here on purpose.
const WITHIN: &[(&str, &[&str])] = &[
    ("pdca-dag", &["pdca-state"]),
    ("pdca-driver", &["pdca-integrate"]),
    ("pdca-forge", &["pdca-integrate"]),
    ("pdca-remote", &["pdca-driver"]),
];

/// Third-party crates that carry an invariant: their users are part of the design.
const RESERVED: &[(&str, &[&str])] = &[
    ("gix", &["pdca-act", "pdca-lanes", "pdca-integrate", "xtask"]),
    ("gix-hash", &["pdca-journal"]),
    ("landlock", &["pdca-process"]),
    ("clap", &["pdca-cli", "xtask"]),
    ("anstream", &["pdca-cli"]),
    ("ratatui", &["pdca-cli", "xtask"]),
    ("tracing-subscriber", &["pdca-cli"]),
];

/// Returns every edge that points the wrong way.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let manifest = &package.manifest_path;
        if place(&package.name).is_none() {
            let what = format!("{} has no ring; give it one in tidy", package.name);
            findings.push(Finding::error(manifest, None, what));
            continue;
        }
        for dependency in &package.dependencies {
            if let Some(why) = objection(&package.name, dependency) {
                findings.push(Finding::error(manifest, None, why));
            }
        }
    }
    findings
}

fn objection(from: &str, dependency: &Dependency) -> Option<String> {
    let to = dependency.name.as_str();
    let plain = dependency.kind != Some(DependencyKind::Dev);
    if let Some((_, users)) = RESERVED.iter().find(|(name, _)| *name == to)
        && plain
        && !users.contains(&from)
    {
        return Some(format!("{from} uses {to}, which only {} may", users.join(", ")));
    }
    let (here, there) = (place(from)?, place(to)?);
    // The schemas of the documents are written from the types, which belong to the command line.
    if to == "pdca-cli" && from != "xtask" {
        return Some(format!("{from} depends on pdca-cli, which nothing may"));
    }
    match (here, there) {
        (_, CratePlace::Apart) => Some(format!("{from} depends on {to}, which nothing may")),
        // The end-to-end suites consist of tests, so both kinds of dependency are the same there. The benches of the tasks
        // measure against the hosts that the tests use.
        (CratePlace::Apart, CratePlace::Ring(_) | CratePlace::Testkit) => None,
        (_, CratePlace::Testkit) if !plain => None,
        (_, CratePlace::Testkit) => Some(format!("{from} uses {to} outside its dev-dependencies")),
        (CratePlace::Ring(here), CratePlace::Ring(there)) if here == there => (!is_within(from, to))
            .then(|| format!("{from} depends on {to} of its own ring, which `WITHIN` does not list")),
        (CratePlace::Ring(here), CratePlace::Ring(there)) => (there > here).then(|| {
            format!(
                "{from} (ring {here}) depends on {to} (ring {there}): edges between rings point down"
            )
        }),
        (CratePlace::Testkit, CratePlace::Ring(ring)) => (ring > 0).then(|| {
            format!("{from} depends on {to} (ring {ring}): it stands on ring 0 only")
        }),
    }
}

fn is_within(from: &str, to: &str) -> bool {
    WITHIN.iter().any(|(name, uses)| *name == from && uses.contains(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(edges: &[(&str, &str, Option<DependencyKind>)]) -> Vec<String> {
        let packages: Vec<Package> = edges
            .iter()
            .map(|(from, to, kind)| Package {
                name: (*from).to_owned(),
                manifest_path: Utf8PathBuf::from("Cargo.toml"),
                dependencies: vec![Dependency { name: (*to).to_owned(), kind: *kind }],
                targets: Vec::new(),
            })
            .collect();
        check(&packages).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn an_edge_that_points_down_is_fine() {
        let down = [
            ("pdca-gates", "pdca-state", None),
            ("pdca-driver", "pdca-lanes", None),
            ("pdca-remote", "pdca-driver", None),
            ("pdca-cli", "pdca-driver", None),
            ("pdca-gates", "pdca-testkit", Some(DependencyKind::Dev)),
            ("pdca-testkit", "pdca-process", None),
            ("xtask", "pdca-state", None),
            ("pdca-e2e", "pdca-testkit", None),
            ("xtask", "pdca-testkit", None),
            ("pdca-lanes", "gix", None),
            ("pdca-state", "serde", None),
        ];
        assert_eq!(findings(&down), Vec::<String>::new());
    }

    #[test]
    fn an_edge_up_or_an_unlisted_one_within_a_ring_is_found() {
        let wrong = [
            ("pdca-state", "pdca-gates", None),
            ("pdca-gates", "pdca-leaves", None),
            ("pdca-state", "pdca-process", Some(DependencyKind::Build)),
            ("pdca-state", "pdca-driver", Some(DependencyKind::Dev)),
            ("pdca-driver", "pdca-remote", None),
        ];
        assert_eq!(
            findings(&wrong),
            [
                "pdca-state (ring 0) depends on pdca-gates (ring 1): edges between rings point down",
                "pdca-gates depends on pdca-leaves of its own ring, which `WITHIN` does not list",
                "pdca-state depends on pdca-process of its own ring, which `WITHIN` does not list",
                "pdca-state (ring 0) depends on pdca-driver (ring 2): edges between rings point down",
                "pdca-driver depends on pdca-remote of its own ring, which `WITHIN` does not list",
            ]
        );
    }

    #[test]
    fn the_edges_within_a_ring_are_of_one_ring_and_lead_in_no_circle() {
        for (from, uses) in WITHIN {
            assert!(uses.iter().all(|to| place(from) == place(to)), "{from}");
            let mut reached: Vec<&str> = uses.to_vec();
            let mut next = 0;
            while let Some(at) = reached.get(next).copied() {
                assert_ne!(at, *from, "a circle");
                let further = WITHIN.iter().filter(|(name, _)| *name == at);
                reached.extend(further.flat_map(|(_, uses)| uses.iter().copied()));
                next += 1;
                assert!(next < 100, "a circle");
            }
        }
    }

    #[test]
    fn nothing_depends_on_the_command_line_or_on_the_tasks() {
        assert_eq!(findings(&[("xtask", "pdca-cli", None)]), Vec::<String>::new());
        let wrong = [
            ("pdca-e2e", "pdca-cli", Some(DependencyKind::Dev)),
            ("pdca-driver", "pdca-cli", None),
            ("pdca-cli", "xtask", None),
        ];
        assert_eq!(
            findings(&wrong),
            [
                "pdca-e2e depends on pdca-cli, which nothing may",
                "pdca-driver depends on pdca-cli, which nothing may",
                "pdca-cli depends on xtask, which nothing may",
            ]
        );
    }

    #[test]
    fn the_testkit_stays_out_of_the_product_and_at_the_bottom() {
        let wrong = [("pdca-cli", "pdca-testkit", None), ("pdca-testkit", "pdca-gates", None)];
        assert_eq!(
            findings(&wrong),
            [
                "pdca-cli uses pdca-testkit outside its dev-dependencies",
                "pdca-testkit depends on pdca-gates (ring 1): it stands on ring 0 only",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_ring_is_found() {
        assert_eq!(
            findings(&[("pdca-new", "serde", None)]),
            ["pdca-new has no ring; give it one in tidy"]
        );
    }

    #[test]
    fn a_crate_that_carries_an_invariant_has_named_users() {
        assert_eq!(
            findings(&[
                ("pdca-driver", "gix", None),
                ("pdca-driver", "gix", Some(DependencyKind::Dev))
            ]),
            ["pdca-driver uses gix, which only pdca-act, pdca-lanes, pdca-integrate, xtask may"]
        );
    }

    #[test]
    fn the_kinds_and_paths_of_cargo_metadata_are_understood() {
        let metadata = br#"{"packages": [{
            "name": "a", "manifest_path": "/w/a/Cargo.toml",
            "dependencies": [
                {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"}],
            "targets": [{"kind": ["lib"], "src_path": "/w/a/src/lib.rs", "name": "a"}]
        }]}"#;
        let packages = packages(metadata, Utf8Path::new("/w")).unwrap();
        let kinds: Vec<_> =
            packages[0].dependencies.iter().map(|dependency| dependency.kind).collect();
        assert_eq!(kinds, [None, Some(DependencyKind::Dev), Some(DependencyKind::Build)]);
        assert_eq!(packages[0].manifest_path, "a/Cargo.toml");
        assert_eq!(packages[0].targets[0].src_path, "a/src/lib.rs");
    }
}
