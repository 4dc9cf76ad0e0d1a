//! What leads a gate into a target's own checkout: editable installs, links, variables and full paths in the tree.
//!
//! Gates do not see the checkout (decision 073). Behind `bwrap` such a lead ends in the lane, elsewhere the row fails; in both
//! cases a person wants to know of it before a row does something else than it seems to.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::WorkspaceConfig;
use pdca_gates::GateHost;
use pdca_process::{SandboxKind, SandboxMode, wall_support};
use pdca_state::files::read_bounded;

use super::{Fact, Finding};
use crate::config::Environment;

/// Variables with which programs find code.
const SEARCH_PATHS: [&str; 12] = [
    "PYTHONPATH",
    "MYPYPATH",
    "NODE_PATH",
    "PERL5LIB",
    "RUBYLIB",
    "GOPATH",
    "GOWORK",
    "CLASSPATH",
    "LUA_PATH",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
];
/// Variables with which programs reach the network.
const PROXIES: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];
/// Files of a tree that name other places.
const NAMING: [&str; 13] = [
    "Cargo.toml",
    "Makefile",
    "GNUmakefile",
    "makefile",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    "CMakeLists.txt",
    "go.mod",
    "go.work",
    "tsconfig.json",
];
/// Directories of a tree with files that nobody wrote.
const MADE: [&str; 6] = [".git", "node_modules", "target", "__pycache__", "build", "dist"];
/// The largest file that is searched.
const LARGEST: u64 = 1 << 20;
/// The most entries of a tree that are looked at.
const MOST: usize = 20_000;

/// What leads a gate into the checkout of a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lead {
    /// A variable in `env` of a row.
    RowVariable {
        name: String,
        row: String,
    },
    /// A variable of the environment; rows get it only if `env_pass` names it.
    Variable {
        name: String,
        is_passed: bool,
    },
    EditableInstall(Utf8PathBuf),
    Link(Utf8PathBuf),
    /// A file of the tree with the full path of the checkout.
    FullPath(Utf8PathBuf),
}

/// Returns a finding for each target with what leads into its checkout, and one about proxies.
pub(super) fn findings(config: &WorkspaceConfig, environment: Environment<'_>) -> Vec<Finding> {
    let targets = config.targets.iter();
    let mut findings: Vec<Finding> =
        targets.filter_map(|it| of_target(config, environment, &it.name, &it.path)).collect();
    let is_unnamed = |name: &&str| !config.gates_env_pass.iter().any(|passed| passed == *name);
    let is_set = |name: &&str| environment.get(name).is_some();
    let proxies: Vec<&'static str> =
        PROXIES.into_iter().filter(is_set).filter(is_unnamed).collect();
    if !proxies.is_empty() && !config.rows.is_empty() {
        findings.push(Finding::warning(Fact::Proxies(proxies)));
    }
    findings
}

fn of_target(
    config: &WorkspaceConfig,
    environment: Environment<'_>,
    name: &str,
    path: &Utf8Path,
) -> Option<Finding> {
    let real = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let into = Into { paths: BTreeSet::from([path.to_owned(), real.clone()]) };
    let mut leads = of_variables(config, environment, &into);
    for dir in site_packages(config, environment, &real) {
        leads.extend(of_python(&dir, &into));
    }
    for dir in node_modules(config, environment) {
        leads.extend(of_links(&dir, &real));
    }
    leads.extend(of_tree(&real, &into));
    if leads.is_empty() {
        return None;
    }
    let is_walled = matches!(wall_support(), SandboxKind::Bwrap { .. })
        && config.rows.as_slice().iter().all(|row| {
            let wall = row.sandbox.unwrap_or(config.gate_sandbox);
            !matches!(wall, SandboxMode::Off | SandboxMode::Landlock) && !row.reads_primary
        });
    let fact = Fact::Leads { target: name.to_owned(), leads, is_walled };
    Some(if is_walled { Finding::ok(fact) } else { Finding::warning(fact) })
}

/// The paths of a checkout, as texts may name it.
struct Into {
    paths: BTreeSet<Utf8PathBuf>,
}

impl Into {
    /// Returns whether a text names the checkout or something in it.
    fn is_named_in(&self, text: &str) -> bool {
        self.paths.iter().any(|path| {
            let ends = |rest: &str| {
                !rest.starts_with(|it: char| it.is_alphanumeric() || "-_.".contains(it))
            };
            text.match_indices(path.as_str()).any(|(at, found)| ends(&text[at + found.len()..]))
        })
    }

    fn is_named_in_file(&self, file: &Utf8Path) -> bool {
        let text = read_bounded(file, LARGEST).ok().flatten().unwrap_or_default();
        self.is_named_in(&String::from_utf8_lossy(&text))
    }
}

fn of_variables(config: &WorkspaceConfig, environment: Environment<'_>, into: &Into) -> Vec<Lead> {
    let mut leads = Vec::new();
    for row in config.rows.as_slice() {
        let named = row.env.iter().filter(|(_, value)| into.is_named_in(value));
        leads.extend(
            named.map(|(name, _)| Lead::RowVariable { name: name.clone(), row: row.id.clone() }),
        );
    }
    let passed = config.gates_env_pass.iter().map(String::as_str);
    for name in passed.chain(SEARCH_PATHS).collect::<BTreeSet<_>>() {
        let value = environment.get(name).unwrap_or_default();
        if into.is_named_in(&value.to_string_lossy()) {
            let is_passed = config.gates_env_pass.iter().any(|it| it == name);
            leads.push(Lead::Variable { name: name.to_owned(), is_passed });
        }
    }
    leads
}

/// Returns the directories of installed Python packages that rows may use.
fn site_packages(
    config: &WorkspaceConfig,
    environment: Environment<'_>,
    target: &Utf8Path,
) -> Vec<Utf8PathBuf> {
    let mut roots: BTreeSet<Utf8PathBuf> =
        bins(config).filter_map(|bin| Some(bin.parent()?.to_owned())).collect();
    roots.extend([".venv", "venv", "env"].map(|name| target.join(name)));
    roots.extend(home(environment).map(|home| home.join(".local")));
    let lib = roots.iter().flat_map(|root| ["lib", "lib64"].map(|lib| root.join(lib)));
    let pythons = lib
        .flat_map(|lib| entries(&lib))
        .filter(|dir| dir.file_name().is_some_and(|name| name.starts_with("python")));
    let dirs =
        pythons.flat_map(|dir| ["site-packages", "dist-packages"].map(|name| dir.join(name)));
    dirs.filter(|dir| dir.is_dir()).collect()
}

fn of_python(dir: &Utf8Path, into: &Into) -> Vec<Lead> {
    let files = entries(dir).into_iter().filter_map(|path| {
        let name = path.file_name().unwrap_or_default();
        if name.ends_with(".dist-info") {
            Some(path.join("direct_url.json"))
        } else if path.extension() == Some("pth")
            || path.extension() == Some("egg-link")
            || name.starts_with("__editable__")
        {
            Some(path)
        } else {
            None
        }
    });
    files.filter(|file| into.is_named_in_file(file)).map(Lead::EditableInstall).collect()
}

fn node_modules(config: &WorkspaceConfig, environment: Environment<'_>) -> Vec<Utf8PathBuf> {
    let mut dirs: BTreeSet<Utf8PathBuf> =
        bins(config).filter_map(|bin| Some(bin.parent()?.join("lib/node_modules"))).collect();
    dirs.extend(home(environment).into_iter().flat_map(|home| {
        [".npm-global/lib/node_modules", ".config/yarn/link", "node_modules"]
            .map(|dir| home.join(dir))
    }));
    let variables =
        config.rows.as_slice().iter().filter_map(|row| row.env.get("NODE_PATH").cloned());
    dirs.extend(
        variables.flat_map(|value| value.split(':').map(Utf8PathBuf::from).collect::<Vec<_>>()),
    );
    dirs.into_iter().filter(|dir| dir.is_dir()).collect()
}

fn of_links(dir: &Utf8Path, target: &Utf8Path) -> Vec<Lead> {
    let scoped = entries(dir)
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|it| it.starts_with('@')));
    let scoped: Vec<Utf8PathBuf> = scoped.flat_map(|scope| entries(&scope)).collect();
    let links = entries(dir).into_iter().chain(scoped).filter(|path| path.is_symlink());
    let leads =
        links.filter(|link| link.canonicalize_utf8().is_ok_and(|to| to.starts_with(target)));
    leads.filter(|link| !link.starts_with(target)).map(Lead::Link).collect()
}

/// Searches the files of a checkout that name other places for its own full path.
fn of_tree(target: &Utf8Path, into: &Into) -> Vec<Lead> {
    let (mut leads, mut open, mut seen) = (Vec::new(), vec![target.to_owned()], 0);
    while let Some(dir) = open.pop() {
        for path in entries(&dir) {
            seen += 1;
            if seen > MOST {
                return leads;
            }
            let name = path.file_name().unwrap_or_default();
            let Ok(kind) = path.symlink_metadata() else { continue };
            if kind.is_dir() && !MADE.contains(&name) && !path.join("pyvenv.cfg").exists() {
                open.push(path);
            } else if kind.is_file()
                && (NAMING.contains(&name)
                    || path.extension() == Some("mk")
                    || name.starts_with("requirements"))
                && into.is_named_in_file(&path)
            {
                leads.push(Lead::FullPath(path));
            }
        }
    }
    leads
}

/// Returns the directories with programs that rows use.
fn bins(config: &WorkspaceConfig) -> impl Iterator<Item = Utf8PathBuf> {
    let path = config.search_path.clone().unwrap_or_default();
    let dirs: Vec<Utf8PathBuf> = std::env::split_paths(&path)
        .filter_map(|dir| Utf8PathBuf::from_path_buf(dir).ok())
        .collect();
    let around = GateHost {
        workspace: config.dirs.root.clone(),
        search_path: config.search_path.clone(),
        ..GateHost::default()
    };
    let programs =
        config.rows.as_slice().iter().flat_map(|row| row.programs(&around)).collect::<Vec<_>>();
    let of_programs = programs.into_iter().filter_map(|file| Some(file.parent()?.to_owned()));
    dirs.into_iter().chain(of_programs)
}

fn home(environment: Environment<'_>) -> Option<Utf8PathBuf> {
    environment.text("HOME").map(Utf8PathBuf::from).filter(|home| home.is_absolute())
}

fn entries(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
    let mut paths: Vec<Utf8PathBuf> = entries.map(|entry| entry.path().to_owned()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_a_checkout_by_its_whole_path_only() {
        let into = Into { paths: BTreeSet::from(["/srv/app".into()]) };
        for text in [
            "/srv/app",
            "/srv/app/src\n",
            "x:/srv/app:y",
            "file:///srv/app\"",
            "path = \"/srv/app/lib\"",
        ] {
            assert!(into.is_named_in(text), "{text}");
        }
        for text in ["/srv/app2", "/srv/app-old/src", "/srv", ""] {
            assert!(!into.is_named_in(text), "{text}");
        }
    }
}
