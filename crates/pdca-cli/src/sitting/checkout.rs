//! A throwaway checkout with the change of a bundle, to try it.

use camino::Utf8Path;
use pdca_driver::WorkspaceConfig;
use pdca_lanes::{Lane, Lanes, Target};
use pdca_state::{Artifact, Bundle};

use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};

/// A private checkout below a temporary directory; both go with it.
pub(crate) struct Throwaway {
    lane: Lane,
    // Below `lane`, because fields are dropped in order and the lane has its lock in this directory.
    _root: tempfile::TempDir,
}

impl Throwaway {
    /// Makes a checkout of exactly what the gates saw: the base of the report with the patch on it.
    pub(crate) fn make(config: &WorkspaceConfig, bundle: &Bundle) -> Result<Self, Failure> {
        let id = bundle.id();
        let snapshot = bundle.load()?;
        let nothing = |what: &str| {
            Failure::usage(format!("{id} has no checkout: {what}"))
                .at(FilePosition::file(bundle.dir()))
                .hint("`d` shows the diff")
        };
        let brief = snapshot.authored_brief().ok_or_else(|| nothing("it has no brief"))?;
        let target = config
            .target_of(brief)
            .map_err(|error| Failure::from_error(Exit::Usage, &error))?
            .ok_or_else(|| nothing("the workspace has no target"))?;
        let base = snapshot.gates.as_ref().and_then(|gates| gates.base.as_deref());
        let base = base.ok_or_else(|| nothing("its gate report names no base"))?;
        let patch = bundle.read(Artifact::Patch)?.ok_or_else(|| nothing("it has no patch"))?;
        let unexpected = |error: &dyn std::error::Error| {
            Failure::from_error(Exit::Unexpected, error)
                .hint("`pdca lanes doctor` and `pdca doctor` say more")
        };
        let root = tempfile::Builder::new().prefix("pdca-review-").tempdir()?;
        let lanes = Utf8Path::from_path(root.path())
            .ok_or_else(|| nothing("the temporary directory is not UTF-8"))?;
        let target =
            Target::open(&target.name, &target.path).map_err(|error| unexpected(&error))?;
        let lane = Lanes::new(lanes).claim(0, &target).map_err(|error| unexpected(&error))?;
        lane.reset(base).map_err(|error| unexpected(&error))?;
        lane.apply(&patch).map_err(|error| unexpected(&error))?;
        Ok(Self { lane, _root: root })
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        self.lane.path()
    }
}
