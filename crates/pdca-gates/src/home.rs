//! The home directory of checks: made anew for a run, with the user's tools in it and none of the user's caches.
//!
//! A tool keeps results and downloads below the home directory, and takes them for granted later. Leaves may write the
//! user's caches, so what lies there must not decide a verdict. Installed programs and toolchains are another matter: no leaf
//! and no check can write them. They are brought in by links, so that `~/.cargo/bin` and the like are where tools look.

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::{check::Checks, fingerprint::shell_words};

/// Tools below the home directory, each with the variable that says where it is if it is elsewhere, and the path there.
/// None of them is written by a leaf or a check.
pub const TOOLS: &[(&str, Option<(&str, &str)>)] = &[
    ("bin", None),
    (".local/bin", None),
    (".local/lib", None),
    // Rust.
    (".cargo/bin", Some(("CARGO_HOME", "bin"))),
    (".cargo/env", Some(("CARGO_HOME", "env"))),
    (".cargo/config", Some(("CARGO_HOME", "config"))),
    (".cargo/config.toml", Some(("CARGO_HOME", "config.toml"))),
    (".rustup", Some(("RUSTUP_HOME", ""))),
    // JavaScript.
    (".nvm", Some(("NVM_DIR", ""))),
    (".fnm", Some(("FNM_DIR", ""))),
    (".volta", Some(("VOLTA_HOME", ""))),
    (".bun/bin", Some(("BUN_INSTALL", "bin"))),
    (".deno/bin", Some(("DENO_INSTALL", "bin"))),
    (".npmrc", None),
    (".npm-global", None),
    (".yarnrc", None),
    (".yarnrc.yml", None),
    // Python.
    (".pyenv", Some(("PYENV_ROOT", ""))),
    (".local/pipx", Some(("PIPX_HOME", ""))),
    (".local/share/pipx", None),
    (".local/share/uv/python", None),
    (".local/share/uv/tools", None),
    (".config/pip", None),
    (".virtualenvs", Some(("WORKON_HOME", ""))),
    ("miniconda3", None),
    ("anaconda3", None),
    ("miniforge3", None),
    ("mambaforge", None),
    (".conda", None),
    (".condarc", None),
    // Java and its relatives.
    (".sdkman", Some(("SDKMAN_DIR", ""))),
    (".jenv", None),
    (".m2/settings.xml", None),
    (".m2/toolchains.xml", None),
    // Others.
    ("go/bin", Some(("GOPATH", "bin"))),
    (".goenv", None),
    (".rbenv", Some(("RBENV_ROOT", ""))),
    (".rvm", None),
    (".gem", None),
    (".asdf", Some(("ASDF_DATA_DIR", ""))),
    (".tool-versions", None),
    (".local/share/mise", Some(("MISE_DATA_DIR", ""))),
    (".config/mise", None),
    (".dotnet", Some(("DOTNET_ROOT", ""))),
    (".ghcup", None),
    (".cabal/bin", None),
    (".opam", Some(("OPAMROOT", ""))),
    (".juliaup", None),
    (".elan", None),
    (".nix-profile", None),
    (".config/nix", None),
    (".docker/cli-plugins", None),
];

/// The configuration of git that every check has: a test that commits needs a name.
const GITCONFIG: &str =
    "[user]\n\tname = pdca gate\n\temail = gate@pdca.invalid\n[init]\n\tdefaultBranch = main\n";

/// The home directory of the checks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateHome {
    dir: Utf8PathBuf,
    /// Links in it, by their path, with the path that each leads to.
    brought: Vec<(Utf8PathBuf, Utf8PathBuf)>,
}

impl GateHome {
    /// Plans the home directory `dir` for checks. `user` is the user's own, `untrusted` are the trees in it that leaves may
    /// write, and `caches` the declared ones, which they may not. Nothing is made yet.
    pub fn new(
        dir: Utf8PathBuf,
        user: Option<&Utf8Path>,
        untrusted: &[Utf8PathBuf],
        caches: &[Utf8PathBuf],
        rows: &Checks,
    ) -> Self {
        let Some(user) = user else { return Self { dir, brought: Vec::new() } };
        let tools = TOOLS.iter().map(|(path, elsewhere)| {
            let moved = elsewhere.and_then(|(name, inner)| {
                let to = pdca_process::inherited(name)?.into_string().ok()?;
                Some(Utf8PathBuf::from(to)).filter(|to| to.is_absolute()).map(|to| to.join(inner))
            });
            (Utf8PathBuf::from(*path), moved.unwrap_or_else(|| user.join(path)))
        });
        let named = rows.as_slice().iter().flat_map(|row| shell_words(&row.command, user, user));
        let named = named.filter_map(|word| {
            let inner = Utf8Path::new(&word).strip_prefix(user).ok()?.to_owned();
            let is_plain = |part| matches!(part, Utf8Component::Normal(_));
            inner.components().all(is_plain).then(|| (outermost(&inner), inner))
        });
        let named = named.map(|(path, _)| (path.clone(), user.join(path)));
        let is_trusted = |source: &Utf8Path| !untrusted.iter().any(|tree| source.starts_with(tree));
        let is_whole = |source: &Utf8Path| !untrusted.iter().any(|tree| tree.starts_with(source));
        let declared = caches.iter().filter_map(|cache| {
            let inner = cache.strip_prefix(user).ok()?.to_owned();
            (!inner.as_str().is_empty()).then(|| (inner, cache.clone()))
        });
        let free = tools.chain(named).filter(|(path, source)| {
            !path.as_str().is_empty() && is_trusted(source) && is_whole(source)
        });
        let mut brought: Vec<_> =
            free.chain(declared).filter(|(_, source)| source.symlink_metadata().is_ok()).collect();
        brought.sort();
        brought.dedup_by(|one, other| one.0 == other.0);
        Self { dir, brought }
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Returns the same home in a directory of its own, for a check that runs beside others.
    pub(crate) fn beside(&self, k: usize) -> Self {
        Self { dir: format!("{}-{}", self.dir, k + 1).into(), brought: self.brought.clone() }
    }

    /// Makes the directory anew.
    pub(crate) fn make(&self) -> io::Result<()> {
        self.remove()?;
        fs_err::create_dir_all(self.dir.join(".cache"))?;
        fs_err::write(self.dir.join(".gitconfig"), GITCONFIG)?;
        for (path, source) in &self.brought {
            let link = self.dir.join(path);
            // A link above it brought it already.
            if link.symlink_metadata().is_ok() {
                continue;
            }
            if let Some(parent) = link.parent() {
                fs_err::create_dir_all(parent)?;
            }
            fs_err::os::unix::fs::symlink(source, link)?;
        }
        Ok(())
    }

    /// Removes the directory with all that checks left in it.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match self.dir.symlink_metadata() {
            Ok(_) => pdca_state::files::remove_tree(&self.dir),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Returns the directory of the home that a row's program is brought in with: a directory that belongs to the program's
/// project, not one that many tools share.
fn outermost(inner: &Utf8Path) -> Utf8PathBuf {
    const SHARED: [&str; 5] = [".cargo", ".local", ".config", "go", ".m2"];
    let parts: Vec<&str> = inner.components().map(|part| part.as_str()).collect();
    let depth = match parts.as_slice() {
        [".local", "share", ..] => 3,
        [first, ..] if SHARED.contains(first) => 2,
        _ => 1,
    };
    parts.into_iter().take(depth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::check;

    #[test]
    fn tools_and_named_programs_are_there_and_what_a_leaf_can_write_is_not() {
        let around = tempfile::tempdir().unwrap();
        let around = Utf8Path::from_path(around.path()).unwrap();
        let user = around.join("user");
        for file in [
            ".local/bin/tool",
            "mine/gate.sh",
            ".cache/poison",
            ".cache/declared/file",
            "go/pkg/mod/x",
            ".ssh/key",
        ] {
            fs_err::create_dir_all(user.join(file).parent().unwrap()).unwrap();
            fs_err::write(user.join(file), "").unwrap();
        }
        let rows = Checks::new(vec![check("cmd = '\"$HOME\"/mine/gate.sh ~/go/pkg/mod/x'")]);
        let untrusted = [user.join(".cache"), user.join("go/pkg")];
        let caches = [user.join(".cache/declared")];
        let home = GateHome::new(around.join("home"), Some(&user), &untrusted, &caches, &rows);
        for _ in 0..2 {
            home.make().unwrap();
            let has = |file: &str| home.dir().join(file).exists();
            assert!(has(".local/bin/tool") && has("mine/gate.sh") && has(".cache/declared/file"));
            assert!(!has(".cache/poison") && !has("go/pkg/mod/x") && !has(".ssh") && !has("left"));
            fs_err::write(home.dir().join("left"), "").unwrap();
        }
        home.remove().unwrap();
        assert!(!home.dir().exists() && user.join("mine/gate.sh").exists());
    }
}
