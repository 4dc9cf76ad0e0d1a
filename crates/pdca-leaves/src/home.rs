//! What of the home directory a leaf may write: the state of coding agents, and the caches of package managers.

use camino::Utf8PathBuf;
use fs_err as fs;

use crate::{config::LeafConfig, preset::PRESETS};

/// State below the home directory of agents without a preset.
const OTHERS: [(&str, &[&str]); 2] = [
    ("qwen", &[".qwen"]),
    ("goose", &[".config/goose", ".local/share/goose", ".local/state/goose"]),
];

/// Each agent's program and its state.
fn agents() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    PRESETS.into_iter().map(|preset| (preset.name, preset.home)).chain(OTHERS)
}

/// Caches that builders fill. What is in them is checked by whoever put it there, or can be fetched again.
// Closing them would have every build fetch everything again (decision 024).
const CACHES: [&str; 12] = [
    ".cache",
    ".npm",
    ".cargo/registry",
    ".cargo/git",
    "go/pkg",
    ".m2/repository",
    ".gradle",
    ".ivy2",
    ".nuget/packages",
    ".bun/install/cache",
    ".local/share/pnpm",
    ".pub-cache",
];

/// The trees of the home directory that a leaf may write. Those of the agent that the leaf is are made where they are
/// missing, because the kernel can only open what is there.
pub(crate) fn writable(config: &LeafConfig) -> Vec<Utf8PathBuf> {
    let home = pdca_process::home().and_then(|home| Utf8PathBuf::from_path_buf(home).ok());
    let Some(home) = home.filter(|home| home.is_dir()) else { return Vec::new() };
    let program = config.argv.first().and_then(|program| program.rsplit('/').next());
    for (agent, paths) in agents() {
        if program != Some(agent) {
            continue;
        }
        for path in paths.iter().map(|path| home.join(path)) {
            // An agent that cannot keep its state says so itself.
            let _made = match path.extension() {
                // An empty file would be no JSON.
                Some("json") if !path.exists() => fs::write(&path, "{}\n"),
                Some("json") => Ok(()),
                _ => fs::create_dir_all(&path),
            };
        }
    }
    let agents = agents().flat_map(|(_, paths)| paths.iter().map(|path| home.join(path)));
    agents.filter(|path| path.exists()).chain(caches()).collect()
}

/// The caches of package managers that are there. The common one, `.cache`, is made where a home has none yet: the kernel
/// can only open what is there, and tools such as `go` build nothing without it.
pub fn caches() -> Vec<Utf8PathBuf> {
    let home = pdca_process::home().and_then(|home| Utf8PathBuf::from_path_buf(home).ok());
    if let Some(home) = home.as_ref().filter(|home| home.is_dir()) {
        // In a home that cannot be written there is no cache to open.
        let _made = fs::create_dir_all(home.join(CACHES[0]));
    }
    let all = home.iter().flat_map(|home| CACHES.map(|path| home.join(path)));
    all.filter(|path| path.exists()).collect()
}

/// All trees of the home directory that some leaf or gate may write, whether they exist or not.
pub fn openings() -> Vec<Utf8PathBuf> {
    let home = pdca_process::home().and_then(|home| Utf8PathBuf::from_path_buf(home).ok());
    let names = || agents().flat_map(|(_, paths)| paths.iter().copied()).chain(CACHES);
    home.iter().flat_map(|home| names().map(|path| home.join(path))).collect()
}

/// A configured path with `~` as the home directory.
pub fn expand(path: &str) -> Utf8PathBuf {
    let rest = if path == "~" { Some("") } else { path.strip_prefix("~/") };
    let home = pdca_process::home().and_then(|home| Utf8PathBuf::from_path_buf(home).ok());
    match (rest, home) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_), None) | (None, _) => path.into(),
    }
}
