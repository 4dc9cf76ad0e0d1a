//! Checks the dependency policy of `deny.toml` without another tool: licences, sources, versions.
//!
//! `cargo deny` reads the same file if it is installed, and checks advisories too.

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde::Deserialize;

use super::Finding;

/// The part of `deny.toml` that is checked here.
#[derive(Debug, Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    allow: Vec<String>,
    #[serde(rename = "crate")]
    name: String,
}

#[derive(Debug, Deserialize)]
struct Bans {
    skip: Vec<Named>,
    deny: Vec<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    /// `name`, or `name@version` with as much of the version as matters.
    #[serde(rename = "crate")]
    spec: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// A package of the dependency tree.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Resolved {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for a package of this workspace.
    source: Option<String>,
}

/// Reads the packages out of `cargo metadata`.
pub(super) fn resolved(metadata: &[u8]) -> Result<Vec<Resolved>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Resolved>,
    }
    Ok(serde_json::from_slice::<Metadata>(metadata)?.packages)
}

/// Returns every package that the policy refuses.
pub(super) fn check(policy: &str, packages: &[Resolved]) -> Result<Vec<Finding>, toml::de::Error> {
    let policy: Policy = toml::from_str(policy)?;
    let mut said: Vec<String> = packages.iter().flat_map(|one| objections(&policy, one)).collect();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let is_skipped = policy.bans.skip.iter().any(|skip| matches(&skip.spec, package));
        if !is_skipped {
            versions.entry(&package.name).or_default().push(&package.version);
        }
    }
    for (name, versions) in versions.into_iter().filter(|(_, versions)| versions.len() > 1) {
        said.push(format!("{name} is there as {}", versions.join(" and ")));
    }
    Ok(said
        .into_iter()
        .map(|what| Finding::error(Utf8Path::new("deny.toml"), None, what))
        .collect())
}

fn objections(policy: &Policy, package: &Resolved) -> Vec<String> {
    let Resolved { name, version, .. } = package;
    let mut said = Vec::new();
    let exception = policy.licenses.exceptions.iter().find(|one| one.name == *name);
    let is_allowed = |term: &str| {
        let own = exception.map_or(&[][..], |one| &one.allow);
        policy.licenses.allow.iter().chain(own).any(|allowed| allowed == term)
    };
    match package.license.as_deref() {
        None => said.push(format!("{name} {version} names no licence")),
        Some(license) if !is_acceptable(license, &is_allowed) => {
            said.push(format!("the licence of {name} {version} is not allowed: {license}"));
        }
        Some(_) => {}
    }
    if let Some(source) = &package.source
        && !source
            .strip_prefix("registry+")
            .is_some_and(|registry| policy.sources.allow_registry.iter().any(|one| one == registry))
    {
        said.push(format!("{name} {version} is not from an allowed registry: {source}"));
    }
    if policy.bans.deny.iter().any(|denied| matches(&denied.spec, package)) {
        said.push(format!("{name} {version} is banned"));
    }
    said
}

fn matches(spec: &str, package: &Resolved) -> bool {
    match spec.split_once('@') {
        None => spec == package.name,
        Some((name, version)) => {
            name == package.name
                && package
                    .version
                    .strip_prefix(version)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }
    }
}

/// Returns whether an SPDX expression can be met by allowed licences. `AND` binds before `OR`; the old `/` is an `OR`.
fn is_acceptable(license: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = license.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let met = any_of(&mut words, is_allowed);
    // A rest was not understood, which is no permission.
    met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = all_of(words, is_allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all_of(words, is_allowed);
    }
    met
}

fn all_of(words: &mut Words<'_>, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = one(words, is_allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, is_allowed);
    }
    met
}

fn one(words: &mut Words<'_>, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let met = any_of(words, is_allowed);
        return words.next_if_eq(&")").is_some() && met;
    }
    let Some(name) = words.next() else { return false };
    if words.next_if_eq(&"WITH").is_some() {
        return words.next().is_some_and(|with| is_allowed(&format!("{name} WITH {with}")));
    }
    is_allowed(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Unicode-3.0"]
        exceptions = [{ allow = ["MPL-2.0"], crate = "one" }]
        [bans]
        skip = [{ crate = "old@0.1" }]
        deny = [{ crate = "tokio" }]
        [sources]
        allow-registry = ["https://index"]
    "#;

    fn package(name: &str, version: &str, license: &str) -> Resolved {
        Resolved {
            name: name.to_owned(),
            version: version.to_owned(),
            license: (!license.is_empty()).then(|| license.to_owned()),
            source: Some("registry+https://index".to_owned()),
        }
    }

    fn said(packages: &[Resolved]) -> Vec<String> {
        let findings = check(POLICY, packages).unwrap();
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_licence_is_accepted_where_one_way_to_meet_it_is_allowed() {
        let is_allowed = |term: &str| ["MIT", "Unicode-3.0"].contains(&term);
        for (license, expected) in [
            ("MIT", true),
            ("Apache-2.0 OR MIT", true),
            ("Unlicense/MIT", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0 OR MIT AND Apache-2.0", false),
            ("MIT WITH an-exception", false),
            ("(MIT", false),
            ("MIT Unicode-3.0", false),
            ("", false),
        ] {
            assert_eq!(is_acceptable(license, &is_allowed), expected, "{license}");
        }
    }

    #[test]
    fn an_exception_is_for_its_package_alone() {
        assert_eq!(said(&[package("one", "1.0.0", "MPL-2.0")]), [""; 0]);
        assert_eq!(
            said(&[package("two", "1.0.0", "MPL-2.0"), package("bare", "1.0.0", "")]),
            ["the licence of two 1.0.0 is not allowed: MPL-2.0", "bare 1.0.0 names no licence"]
        );
    }

    #[test]
    fn a_second_version_is_refused_unless_it_is_stated() {
        let (old, new) = (package("old", "0.1.9", "MIT"), package("old", "0.2.0", "MIT"));
        assert_eq!(said(&[old, new.clone()]), [""; 0]);
        assert_eq!(
            said(&[package("old", "0.11.0", "MIT"), new]),
            ["old is there as 0.11.0 and 0.2.0"]
        );
    }

    #[test]
    fn a_banned_package_and_one_from_elsewhere_are_refused() {
        let mut forked = package("forked", "1.0.0", "MIT");
        forked.source = Some("git+https://elsewhere".to_owned());
        let mut ours = package("ours", "0.1.0", "MIT");
        ours.source = None;
        assert_eq!(
            said(&[package("tokio", "1.0.0", "MIT"), forked, ours]),
            [
                "tokio 1.0.0 is banned",
                "forked 1.0.0 is not from an allowed registry: git+https://elsewhere"
            ]
        );
    }
}
