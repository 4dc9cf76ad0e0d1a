//! Finds and loads the workspace, the directory that holds `pdca.toml`.

use std::collections::{BTreeSet, HashSet};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{Bundle, BundleId, BundleRoot, RootError, RootNames, Strangeness};

use crate::config::environment::Environment;
use crate::config::problem::{ConfigError, FilePosition, Problem};
use crate::config::{Config, FileTrust, LoadRequest, Loaded, Sources, TargetEntry};

/// The file that makes a directory a workspace.
pub const FILE: &str = "pdca.toml";

/// A workspace: paths made absolute, config loaded and checked.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub root: Utf8PathBuf,
    /// Its config file; `None` if only `PDCA_BUNDLE_ROOT` is set.
    pub file: Option<Utf8PathBuf>,
    pub bundle_root: BundleRoot,
    /// The directory of the Act log.
    pub process_dir: Utf8PathBuf,
    /// The directory of `brief.md.tpl`.
    pub templates_dir: Utf8PathBuf,
    /// The directory of the private checkouts.
    pub lanes_root: Utf8PathBuf,
    /// The targets, paths made absolute.
    pub targets: Vec<ConfiguredTarget>,
    pub config: Config,
    /// The origin of each value.
    pub sources: Sources,
    /// Problems that were tolerated under `--compat`.
    pub warnings: Vec<Problem>,
    /// The user's file, if one was read.
    pub user_file: Option<Utf8PathBuf>,
}

/// A repository under change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredTarget {
    /// Its short name, safe as a directory name.
    pub name: String,
    /// The user's checkout, absolute. Never written.
    pub path: Utf8PathBuf,
    /// `owner/repo`, if configured.
    pub repo: Option<String>,
    /// The branch to base changes on if the brief names none.
    pub branch: Option<String>,
}

/// The options of a command line that decide which workspace is loaded, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions<'a> {
    /// The directory to look from instead of the current one, as given with `-C`.
    pub directory: Option<&'a Utf8Path>,
    /// Reads the workspace of an older instance: unknown keys are warnings.
    pub compat: bool,
    /// Trusts every key of the user's file.
    pub trust_user_config: bool,
    /// `--config KEY=VALUE`, in order.
    pub flags: &'a [String],
}

impl Workspace {
    /// Finds the workspace around the directory the command works in, and loads its config.
    pub fn load(
        options: LoadOptions<'_>,
        environment: Environment<'_>,
    ) -> Result<Self, ConfigError> {
        let start = start_dir(options.directory, environment.cwd)?;
        let found = find(&start);
        if found.is_none()
            && let Some(lanes) = lanes_around(&start)
        {
            return Err(in_a_lane(&start, &lanes));
        }
        if found.is_none() && environment.text("PDCA_BUNDLE_ROOT").is_none() {
            return Err(Problem::new(format!("no {FILE} in {start} or in a directory above it"))
                .hint("`pdca init` makes a workspace here, `-C DIR` names another, `pdca demo` shows one at work")
                .into());
        }
        if let Some(found) = &found {
            require_one_file(found)?;
        }
        let root = found.as_ref().map_or_else(|| start.clone(), |found| found.root.clone());
        let trust =
            if options.trust_user_config { FileTrust::Everything } else { FileTrust::load(&root) };
        let request = LoadRequest {
            trust: &trust,
            file: found.as_ref().map(|found| found.file.as_path()),
            flags: options.flags,
            compat: options.compat,
        };
        let Loaded { config, sources, warnings, user_file } =
            crate::config::load(request, environment)?;
        let lanes_root = if let Some(path) = &config.lanes.root {
            root.join(path)
        } else {
            let name = format!("{}.lanes", root.file_name().unwrap_or("pdca"));
            // Inside a repository every tool that walks upwards would find the user's configuration, and
            // `git clean -x` would remove the lanes with the work in them (decision 051).
            sibling(enclosing(&root), &name)
        };
        let target = |entry: &TargetEntry| ConfiguredTarget {
            name: entry.name(),
            path: tidy(&root.join(&entry.path)),
            repo: entry.repo.clone(),
            branch: entry.branch.clone(),
        };
        let mut targets: Vec<ConfiguredTarget> = config.targets.iter().map(target).collect();
        if options.compat && targets.is_empty() {
            targets = siblings(&root);
        }
        Ok(Workspace {
            bundle_root: BundleRoot::new(tidy(&root.join(&config.paths.bundle_root))),
            process_dir: tidy(&root.join(&config.paths.process_dir)),
            templates_dir: tidy(&root.join(&config.paths.templates_dir)),
            lanes_root: tidy(&lanes_root),
            targets,
            file: found.map(|found| found.file),
            root,
            config,
            sources,
            warnings,
            user_file,
        })
    }

    /// Returns the trees that leaves or gates may write, together with the workspace and the lanes. A program that this
    /// process starts must not be in one of them.
    pub fn openings(&self) -> Vec<std::path::PathBuf> {
        let leaves = self.config.leaves.all().map(|(_, _, leaf)| leaf);
        let leaves = leaves.chain(self.config.leaves.variants().map(|(_, leaf)| leaf));
        let declared = leaves.flat_map(|leaf| &leaf.writable).chain(&self.config.gates.may_write);
        let declared = declared.filter(|path| !path.starts_with("refs/")).map(|path| {
            let path = self.root.join(pdca_leaves::expand_home(path));
            // A value of the call decides about the rest.
            path.components().take_while(|part| !part.as_str().contains('{')).collect()
        });
        let own = [self.root.clone(), self.lanes_root.clone()];
        own.into_iter().chain(declared).map(Utf8PathBuf::into_std_path_buf).collect()
    }

    /// The project's name: the configured one, or the directory's.
    pub fn name(&self) -> &str {
        self.config.project.name.as_deref().or_else(|| self.root.file_name()).unwrap_or("workspace")
    }

    /// Returns every bundle, completed ones included; none if there is no bundle root yet.
    pub fn every_bundle(&self) -> Result<Vec<Bundle>, RootError> {
        let mut bundles = match self.bundle_root.list() {
            Err(RootError::Missing { .. }) => return Ok(Vec::new()),
            listed => listed?,
        };
        bundles.extend(self.bundle_root.list_completed()?);
        Ok(bundles)
    }

    /// Returns the bundle with this id, which must exist.
    pub fn require_bundle(&self, id: &BundleId) -> Result<Bundle, ConfigError> {
        self.require_among(id, &self.bundle_root.names())
    }

    /// Returns the bundles with these ids, in that order, each once; all of them must exist. Lists the bundle root
    /// once.
    pub fn require_bundles(&self, ids: &[BundleId]) -> Result<Vec<Bundle>, ConfigError> {
        let names = self.bundle_root.names();
        let mut seen = HashSet::new();
        let distinct = ids.iter().filter(|id| seen.insert(*id));
        distinct.map(|id| self.require_among(id, &names)).collect()
    }

    fn require_among(&self, id: &BundleId, names: &RootNames) -> Result<Bundle, ConfigError> {
        let bundle = self.bundle_root.bundle(id);
        if bundle.exists() {
            return match names.twin_of(id) {
                Some(twin) => Err(only_case(&id.dir_name(), twin, self.bundle_root.path())),
                None => Ok(bundle),
            };
        }
        let problem = Problem::new(format!("there is no bundle {}", id.dir_name()))
            .at(FilePosition::file(self.bundle_root.path()));
        let problem = match self.nearest_id(id) {
            Some(near) => problem.hint(format!("did you mean `{near}`? `pdca status` lists all")),
            None => problem.hint(format!("`pdca new {id}` makes one, `pdca status` lists all")),
        };
        Err(problem.into())
    }

    /// Returns an error if a new id differs from that of another bundle, completed or not, only in case.
    pub fn require_distinct(&self, id: &BundleId) -> Result<(), ConfigError> {
        self.require_each_distinct([id])
    }

    /// Like [`Self::require_distinct`] for several ids; lists the bundle root once.
    pub fn require_each_distinct<'i>(
        &self,
        ids: impl IntoIterator<Item = &'i BundleId>,
    ) -> Result<(), ConfigError> {
        let roots = [self.bundle_root.clone(), self.bundle_root.completed()];
        let listed = roots.map(|root| (root.names(), root));
        for id in ids {
            for (names, root) in &listed {
                if let Some(twin) = names.twin_of(id) {
                    return Err(only_case(&id.dir_name(), twin, root.path()));
                }
            }
        }
        Ok(())
    }

    /// Returns an error if two ids in the bundle root differ only in case.
    pub fn require_all_distinct(&self) -> Result<(), ConfigError> {
        let Ok(listing) = self.bundle_root.scan() else { return Ok(()) };
        let twins = listing.strangers.iter().find_map(|stranger| match &stranger.why {
            Strangeness::OnlyCase { other } => Some((&stranger.name, other)),
            Strangeness::Id(_) | Strangeness::NotUtf8 | Strangeness::NotADirectory => None,
        });
        match twins {
            Some((name, other)) => Err(only_case(name, other, self.bundle_root.path())),
            None => Ok(()),
        }
    }

    fn nearest_id(&self, id: &BundleId) -> Option<BundleId> {
        let bundles = self.bundle_root.list().ok()?;
        bundles
            .iter()
            .map(|bundle| (strsim::osa_distance(id.as_ref(), bundle.id().as_ref()), bundle.id()))
            // Ids of one or two digits are all near to each other.
            .filter(|(distance, near)| *distance == 1 && near.as_ref().len() > 2)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, near)| near.clone())
    }
}

fn only_case(name: &str, other: &str, root: &Utf8Path) -> ConfigError {
    let rename = format!("mv {root}/{name} {root}/{name}-2");
    Problem::new(format!("`{name}` and `{other}` differ only in case"))
        .at(FilePosition::file(root.join(other)))
        .hint(format!("use another id, or rename one of the two: `{rename}`"))
        .into()
}

/// Returns the directory to work in: the current one, or `-C DIR`.
pub fn start_dir(given: Option<&Utf8Path>, cwd: &Utf8Path) -> Result<Utf8PathBuf, ConfigError> {
    let Some(given) = given else { return Ok(cwd.to_owned()) };
    let dir = tidy(&cwd.join(given));
    if dir.is_dir() {
        return Ok(dir);
    }
    Err(Problem::new(format!("`-C {given}` is not a directory"))
        .at(FilePosition::file(dir))
        .hint("name a directory that exists")
        .into())
}

/// A config file and the workspace it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    pub root: Utf8PathBuf,
    /// The file: `pdca.toml`, or `.config/pdca.toml`.
    pub file: Utf8PathBuf,
}

/// Looks for the config file in `start` and the directories above it. Inside of a lane only the directories above all
/// lanes count: a builder or a gate writes its checkout, and what it wrote there never becomes the configuration.
pub fn find(start: &Utf8Path) -> Option<FoundFile> {
    let lanes = lanes_around(start);
    lanes.as_deref().unwrap_or(start).ancestors().find_map(|root| {
        [root.join(FILE), root.join(".config").join(FILE)]
            .into_iter()
            // A broken link counts as found, so that a workspace further up is not taken instead.
            .find(|file| file.symlink_metadata().is_ok())
            .map(|file| FoundFile { root: root.to_owned(), file })
    })
}

/// Returns the directory of all lanes if a path lies in a lane.
fn lanes_around(path: &Utf8Path) -> Option<Utf8PathBuf> {
    // A link into a lane leads to the same files.
    let real = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    pdca_lanes::slot_around(&real)?.parent().map(ToOwned::to_owned)
}

/// Refuses two config files of one workspace. The one that wins may have been made by a child that ran without a sandbox.
fn require_one_file(found: &FoundFile) -> Result<(), ConfigError> {
    let other = found.root.join(".config").join(FILE);
    if other == found.file || other.symlink_metadata().is_err() {
        return Ok(());
    }
    let what = format!("{} has two config files, {FILE} and .config/{FILE}", found.root);
    Err(Problem::new(what)
        .at(FilePosition::file(&found.file))
        .hint("read both, and remove the one that is not yours")
        .into())
}

fn in_a_lane(start: &Utf8Path, lanes: &Utf8Path) -> ConfigError {
    // The lanes of a workspace lie beside it unless `root` of [lanes] says otherwise.
    let name = lanes.file_name().and_then(|name| name.strip_suffix(".lanes"));
    let beside = name.map(|name| sibling(lanes, name)).filter(|root| find(root).is_some());
    let hint = match beside {
        Some(root) => format!("the workspace is {root}: `pdca -C {root} …`"),
        None => "name the workspace: `pdca -C DIR …`".to_owned(),
    };
    let what =
        format!("{start} is in a lane, whose files are not the configuration of a workspace");
    Problem::new(what).hint(hint).into()
}

/// Returns the outermost repository around the workspace, which must not contain the lanes; else the workspace.
fn enclosing(root: &Utf8Path) -> &Utf8Path {
    root.ancestors().filter(|dir| dir.join(".git").exists()).last().unwrap_or(root)
}

fn sibling(root: &Utf8Path, name: &str) -> Utf8PathBuf {
    root.parent().unwrap_or(root).join(name)
}

/// Returns the checkouts beside a workspace that its briefs name, as `pdca.toml` would; all of them if the briefs name none.
pub fn sibling_targets(root: &Utf8Path, bundles: &BundleRoot) -> Vec<Utf8PathBuf> {
    let named: BTreeSet<String> = bundles
        .list()
        .unwrap_or_default()
        .iter()
        .filter_map(|bundle| bundle.read(pdca_state::Artifact::Brief).ok().flatten())
        .filter_map(|text| {
            let brief = pdca_state::Brief::parse(&String::from_utf8_lossy(&text));
            let repo = brief.repo_target()?.repo;
            repo.rsplit('/').next().map(str::to_lowercase)
        })
        .collect();
    let siblings = siblings(root);
    let is_named = |target: &&ConfiguredTarget| named.contains(&target.name.to_lowercase());
    let path = |target: &ConfiguredTarget| Utf8PathBuf::from(format!("../{}", target.name));
    let found: Vec<Utf8PathBuf> = siblings.iter().filter(is_named).map(path).collect();
    if found.is_empty() { siblings.iter().map(path).collect() } else { found }
}

/// Returns the checkouts beside a workspace. Older instances need not configure them: a brief's `owner/repo` means the sibling
/// directory `repo`.
fn siblings(root: &Utf8Path) -> Vec<ConfiguredTarget> {
    let listed = root.parent().and_then(|parent| parent.read_dir_utf8().ok());
    let mut targets: Vec<ConfiguredTarget> = listed
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| entry.path() != root && entry.path().join(".git").exists())
        .map(|entry| ConfiguredTarget {
            name: entry.file_name().to_owned(),
            path: entry.path().to_owned(),
            repo: None,
            branch: None,
        })
        .collect();
    // The order of a directory is that of the file system and differs from one machine to the next.
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    targets
}

/// Removes `.` from a path, and `..` where no symbolic link could change its meaning.
fn tidy(path: &Utf8Path) -> Utf8PathBuf {
    use camino::Utf8Component;
    let mut tidy = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Utf8Component::CurDir => {}
            // `link/..` is the parent of what the link points to, so it is left for the kernel to
            // resolve.
            Utf8Component::ParentDir if !tidy.is_symlink() && tidy.file_name().is_some() => {
                tidy.pop();
            }
            Utf8Component::ParentDir
            | Utf8Component::Normal(_)
            | Utf8Component::RootDir
            | Utf8Component::Prefix(_) => {
                tidy.push(component);
            }
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with a lane that has these files in its slot.
    fn scene(slot_files: &[&str]) -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        let slot = root.join("ws.lanes/lane-0");
        fs_err::create_dir_all(slot.join("repo/sub/lane-7")).unwrap();
        fs_err::create_dir_all(root.join("ws")).unwrap();
        fs_err::write(root.join("ws/pdca.toml"), "").unwrap();
        for file in slot_files {
            fs_err::write(slot.join(file), "{}").unwrap();
        }
        (dir, root)
    }

    #[test]
    fn what_a_child_wrote_into_its_lane_is_never_found_as_configuration() {
        let planted = [
            "repo/pdca.toml",
            "repo/sub/pdca.toml",
            "repo/sub/lane-7/pdca.toml",
            "repo/sub/lane-7/x.lane.json",
            "pdca.toml",
        ];
        let (_dir, root) = scene(&[&planted[..], &["repo.lane.json"]].concat());
        let slot = root.join("ws.lanes/lane-0");
        std::os::unix::fs::symlink(slot.join("repo"), root.join("link")).unwrap();
        let starts = [
            slot.clone(),
            slot.join("repo"),
            slot.join("repo/sub"),
            slot.join("repo/sub/lane-7"),
            root.join("link"),
            root.join("link/sub"),
        ];
        for start in starts {
            assert_eq!(find(&start), None, "{start}");
            let refused = in_a_lane(&start, &lanes_around(&start).unwrap());
            let text = format!("{refused:?}");
            assert!(text.contains(&format!("pdca -C {root}/ws")), "{text}");
        }
    }

    #[test]
    fn a_workspace_above_its_lanes_is_found_from_inside_of_one() {
        let (_dir, root) = scene(&["repo/pdca.toml", "repo.lane.json"]);
        fs_err::write(root.join("pdca.toml"), "").unwrap();
        let found = find(&root.join("ws.lanes/lane-0/repo/sub")).unwrap();
        assert_eq!(found.root, root);
    }

    #[test]
    fn a_second_config_file_is_refused_and_never_wins() {
        let (_dir, root) = scene(&[]);
        let found = find(&root.join("ws")).unwrap();
        assert!(require_one_file(&found).is_ok());
        fs_err::create_dir_all(root.join("ws/.config")).unwrap();
        fs_err::write(root.join("ws/.config/pdca.toml"), "").unwrap();
        assert!(require_one_file(&found).is_err());
        fs_err::remove_file(root.join("ws/pdca.toml")).unwrap();
        assert!(require_one_file(&find(&root.join("ws")).unwrap()).is_ok());
    }

    #[test]
    fn a_directory_that_is_only_named_as_a_lane_is_none() {
        let (_dir, root) = scene(&["repo/pdca.toml"]);
        let repo = root.join("ws.lanes/lane-0/repo");
        assert_eq!(find(&repo.join("sub")).unwrap().root, repo);
    }
}
