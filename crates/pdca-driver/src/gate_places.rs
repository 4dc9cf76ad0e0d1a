//! What gates see of the machine: their environment, their home directory, and the user's checkouts.
//!
//! A gate inherits nothing, so that its verdict is the same at Check, in an integration and on another machine. And it does
//! not see the target's own checkout: an editable install, a link or a variable that leads there would have it judge the
//! user's files in the place of the change (decisions 071 to 073).

use camino::{Utf8Path, Utf8PathBuf};
use pdca_gates::{GateContext, GateHome, PrimaryView};
use pdca_lanes::LaneKind;
use pdca_process::Sandbox;

use crate::config::{TargetSpec, WorkspaceConfig};

impl WorkspaceConfig {
    /// Gives a run of gates its search path, the surroundings that are part of its key, its variables and its home.
    pub fn outfit<'s>(&'s self, scene: &mut GateContext<'s>) {
        scene.search_path = self.search_path.as_deref();
        scene.trees = self.gates().trees();
        scene.facts = self.gates().facts();
        scene.env_pass.clone_from(&self.gates_env_pass);
        scene.home = Some(GateHome::new(
            scene.jobs.join("home"),
            user_home().as_deref(),
            &pdca_leaves::home_openings(),
            &self.caches(),
            &self.rows,
        ));
    }

    /// Returns the declared caches.
    pub(crate) fn caches(&self) -> Vec<Utf8PathBuf> {
        let root = &self.dirs.root;
        self.gates_caches.iter().map(|path| root.join(pdca_leaves::expand_home(path))).collect()
    }

    /// Returns the directories of `PATH`, with their virtual environments, that lie in trees of the home directory which
    /// leaves may write. Gates run programs there, so no leaf may write these. They need not exist.
    pub(crate) fn programs_in_caches(&self) -> Vec<Utf8PathBuf> {
        let untrusted = pdca_leaves::home_openings();
        let path = self.search_path.as_deref().unwrap_or_default();
        let dirs =
            std::env::split_paths(path).filter_map(|dir| Utf8PathBuf::from_path_buf(dir).ok());
        let inside = dirs.filter_map(|dir| {
            let tree = untrusted.iter().find(|tree| dir.starts_with(tree) && dir != **tree)?;
            Some(environment_of(&dir, tree))
        });
        inside.collect()
    }

    /// Returns the sandbox of rows: that of [`Self::gates_sandbox`] without the caches in the home directory. What a leaf
    /// may write there cannot be read either, unless it is a declared cache.
    pub fn rows_sandbox(&self, own: impl IntoIterator<Item = Utf8PathBuf>) -> Sandbox {
        let untrusted: Vec<Utf8PathBuf> =
            pdca_leaves::home_openings().into_iter().filter(|path| path.exists()).collect();
        let in_untrusted = |path: &Utf8PathBuf| {
            let path = real(path);
            untrusted.iter().any(|tree| path.starts_with(real(tree)))
        };
        // A workspace and its lanes may lie anywhere.
        let places = [self.dirs.root.clone(), self.lanes.root.clone()];
        let trusted = self.caches().into_iter().chain(self.programs_in_caches());
        let shown = trusted.chain(places).filter(in_untrusted);
        let shown: Vec<Utf8PathBuf> = shown.collect();
        let mut sandbox = self.gates_sandbox(own);
        sandbox.write = self.rows_may_write();
        sandbox.no_read(untrusted).read(shown)
    }

    /// Returns what rows see of the checkouts of targets. `own` is the target under check and its lane.
    pub(crate) fn primary_view(&self, own: Option<(&TargetSpec, &Utf8Path)>) -> PrimaryView {
        let lanes = &self.lanes.root;
        let home = user_home().map(|home| real(&home));
        let (mut hidden, mut shown) = (Vec::new(), Vec::new());
        for target in &self.targets {
            let places = pdca_lanes::repository_places(&target.path, lanes);
            // A checkout that is the home directory, or holds it, cannot be hidden from programs that live there.
            let is_free = |tree: &Utf8PathBuf| {
                tree.parent().is_some() && !home.as_ref().is_some_and(|home| home.starts_with(tree))
            };
            hidden.extend(places.checkouts.into_iter().filter(is_free));
            shown.extend(places.objects);
            if self.lanes.kind == LaneKind::Worktree {
                shown.extend(places.git_dirs);
            }
            let linked = &self.lanes.hydrate.symlink;
            shown.extend(linked.iter().map(|entry| real(&target.path).join(entry)));
        }
        let root = real(&self.dirs.root);
        let around = self.gates().surroundings();
        let programs = self.rows.as_slice().iter().flat_map(|row| row.programs(&around));
        let path = self.search_path.as_deref().unwrap_or_default();
        let dirs =
            std::env::split_paths(path).filter_map(|dir| Utf8PathBuf::from_path_buf(dir).ok());
        // A program of a virtual environment is a link out of it.
        let in_place = |path: Utf8PathBuf| match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => real(parent).join(name),
            _ => path,
        };
        let programs: Vec<Utf8PathBuf> =
            programs.map(in_place).chain(dirs.map(|dir| real(&dir))).collect();
        for tree in &hidden {
            if root.starts_with(tree) && root != *tree {
                shown.push(root.clone());
            }
            let is_program = |path: &&Utf8PathBuf| {
                path.starts_with(tree) && *path != tree && !path.starts_with(tree.join(".git"))
            };
            let inside = programs.iter().filter(is_program);
            shown.extend(inside.map(|path| environment_of(path, tree)));
        }
        let own_files = self.configuration.iter().filter(|path| path.is_file()).cloned();
        let record = self.dirs.own().into_iter().chain([lanes.clone()]);
        shown.extend(record.chain(own_files).map(|path| real(&path)));
        shown.retain(|path| hidden.iter().any(|tree| path.starts_with(tree) && path != tree));
        shown.sort();
        shown.dedup();
        let replaced = own.map(|(target, lane)| (real(&target.path), lane.to_owned()));
        PrimaryView { replaced: replaced.filter(|(tree, _)| hidden.contains(tree)), hidden, shown }
    }
}

/// Returns the tree that a program in a checkout needs: the virtual environment or the packages that it is of.
fn environment_of(program: &Utf8Path, checkout: &Utf8Path) -> Utf8PathBuf {
    let above = program.ancestors().take_while(|dir| dir.starts_with(checkout) && *dir != checkout);
    let is_environment = |dir: &&Utf8Path| {
        dir.file_name() == Some("node_modules") || dir.join("pyvenv.cfg").is_file()
    };
    above.into_iter().find(is_environment).unwrap_or(program).to_owned()
}

pub(crate) fn user_home() -> Option<Utf8PathBuf> {
    pdca_process::home().and_then(|home| Utf8PathBuf::from_path_buf(home).ok())
}

fn real(path: &Utf8Path) -> Utf8PathBuf {
    crate::config::real(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_checkout_is_seen_with_its_environment_and_no_sources() {
        let dir = tempfile::tempdir().unwrap();
        let checkout = Utf8Path::from_path(dir.path()).unwrap();
        for made in ["venv/bin", "web/node_modules/.bin", "tools"] {
            fs_err::create_dir_all(checkout.join(made)).unwrap();
        }
        fs_err::write(checkout.join("venv/pyvenv.cfg"), "").unwrap();
        let of = |program: &str| {
            let found = environment_of(&checkout.join(program), checkout);
            found.strip_prefix(checkout).unwrap().to_string()
        };
        assert_eq!(of("venv/bin/python"), "venv");
        assert_eq!(of("venv/bin"), "venv");
        assert_eq!(of("web/node_modules/.bin/tsc"), "web/node_modules");
        assert_eq!(of("tools/check.sh"), "tools/check.sh");
    }
}
