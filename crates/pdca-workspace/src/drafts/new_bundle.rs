//! Creates bundles with a brief to fill in.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::Driver;
use pdca_leaves::Role;
use pdca_state::{Artifact, Bundle, BundleId, State};
use serde::Serialize;

use super::template;
use crate::config::require_leaf;
use crate::config::workspace::Workspace;
use crate::{OpenWorkspace, OperationError};

/// A request for a new bundle.
#[derive(Debug, Clone, Copy)]
pub struct NewBundleRequest<'a> {
    pub id: &'a BundleId,
    pub title: Option<&'a str>,
    /// The file to take as the brief.
    pub from_brief: Option<&'a Utf8Path>,
    /// The brief is to be filled in by [`plan_brief`].
    pub plan: bool,
}

/// A bundle and its brief.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewBundle {
    pub dry_run: bool,
    pub id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
    /// It was written by this call.
    pub written: bool,
    /// It contains the carry-forward of an earlier attempt.
    pub carried: bool,
    pub brief: BriefState,
}

/// The state of a brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BriefState {
    /// Has to be filled in.
    Template,
    /// From an attempt that was sent back to Plan; has to be edited.
    Draft,
    Planned,
    /// Filled in by the person, in an editor.
    Edited,
    /// The planner left it unchanged.
    Unplanned,
}

/// The reasons why a bundle is not created.
#[derive(Debug, thiserror::Error)]
pub enum NewBundleError {
    /// The bundle has ended.
    #[error("{} is {state}", id.dir_name())]
    Ended { id: BundleId, state: State, dir: Utf8PathBuf },
    #[error("{} is archived", id.dir_name())]
    Archived { id: BundleId, dir: Utf8PathBuf },
    #[error("{} has a brief already{}", id.dir_name(), if *filled { "" } else { ", which is not filled in yet" })]
    HasBrief { id: BundleId, file: Utf8PathBuf, filled: bool },
    /// The file to take as the brief does not exist.
    #[error("there is no such file")]
    NoFile { path: Utf8PathBuf },
}

/// Creates a bundle with a brief from the template, or from a file; an existing brief is never overwritten.
pub fn new_bundle(
    open: &OpenWorkspace<'_>,
    request: NewBundleRequest<'_>,
) -> Result<NewBundle, OperationError> {
    let id = request.id;
    let workspace = open.workspace;
    // First of all: a planner that cannot be called here is refused before anything is written (decision 043).
    if request.plan {
        require_leaf(workspace, Role::Planner, open.environment, open.machine.has_terminal)?;
    }
    workspace.require_distinct(id)?;
    let bundle = workspace.bundle_root.bundle(id);
    refuse_archived(workspace, id)?;
    // A link that leads nowhere has the name as well.
    let exists = bundle.dir().symlink_metadata().is_ok();
    if let Ok(glance) = bundle.glance()
        && glance.state.is_terminal()
    {
        let dir = bundle.dir().to_owned();
        return Err(NewBundleError::Ended { id: id.clone(), state: glance.state, dir }.into());
    }
    let mut new = NewBundle {
        dry_run: open.dry_run,
        id: id.clone(),
        file: bundle.path(Artifact::Brief),
        written: false,
        carried: false,
        brief: BriefState::Template,
    };
    if exists && bundle.read(Artifact::Brief)?.is_some() {
        let filled = bundle.load()?.authored_brief().is_some();
        // The planner fills in a template, or the draft of an attempt that was sent back to Plan.
        if !filled && request.plan && request.from_brief.is_none() && !open.dry_run {
            return Ok(new);
        }
        let is_draft = !filled && bundle.path(Artifact::CarryForward).exists();
        if is_draft && request.from_brief.is_none() {
            return Ok(NewBundle { brief: BriefState::Draft, ..new });
        }
        let file = new.file;
        return Err(NewBundleError::HasBrief { id: id.clone(), file, filled }.into());
    }
    let mut brief = if let Some(path) = request.from_brief {
        let path = open.environment.cwd.join(path);
        template::text_of(&path)?.ok_or(NewBundleError::NoFile { path })?
    } else {
        template::fill(&template::load(workspace)?, id.as_ref(), request.title)
    };
    let carried = if exists { bundle.read(Artifact::CarryForward)? } else { None };
    if let Some(carried) = &carried {
        if !brief.ends_with('\n') {
            brief.push('\n');
        }
        brief.push('\n');
        brief.push_str(&String::from_utf8_lossy(carried));
    }
    new.carried = carried.is_some();
    if open.dry_run {
        return Ok(new);
    }
    // `create` makes directory and brief by one rename. A directory that is there, with a carry-forward
    // or notes, can only be given the file.
    if exists {
        bundle.publish(Artifact::Brief, brief.as_bytes())?;
    } else {
        workspace.bundle_root.create(id, &brief)?;
    }
    Ok(NewBundle { written: true, ..new })
}

/// Creates bundles with the template as their brief, for a planner or a person to fill in. All ids are checked before the
/// first bundle is written.
pub fn new_drafts(
    open: &OpenWorkspace<'_>,
    ids: &[BundleId],
) -> Result<Vec<Bundle>, OperationError> {
    let workspace = open.workspace;
    workspace.require_each_distinct(ids)?;
    for id in ids {
        refuse_archived(workspace, id)?;
    }
    let template = template::load(workspace)?;
    let root = &workspace.bundle_root;
    let create = |id: &BundleId| -> Result<Bundle, OperationError> {
        root.create(id, &template::fill(&template, id.as_ref(), None))?;
        Ok(root.bundle(id))
    };
    ids.iter().map(create).collect()
}

fn refuse_archived(workspace: &Workspace, id: &BundleId) -> Result<(), OperationError> {
    let archived = workspace.bundle_root.completed().bundle(id);
    if archived.exists() {
        let dir = archived.dir().to_owned();
        return Err(NewBundleError::Archived { id: id.clone(), dir }.into());
    }
    Ok(())
}

impl NewBundle {
    /// Looks at the brief again after a person had it in an editor.
    pub fn after_edit(&mut self, open: &OpenWorkspace<'_>) -> Result<(), OperationError> {
        let bundle = open.workspace.bundle_root.bundle(&self.id);
        if bundle.load()?.authored_brief().is_some() {
            self.brief = BriefState::Edited;
        }
        Ok(())
    }

    /// Returns whether advisers on briefs are to be asked: there are some, and the brief is complete.
    pub fn wants_advice(&self, open: &OpenWorkspace<'_>) -> Result<bool, OperationError> {
        let bundle = open.workspace.bundle_root.bundle(&self.id);
        let has_advisers = !open.workspace.config.leaves.plan_advisory.is_empty();
        Ok(has_advisers && bundle.load()?.authored_brief().is_some())
    }
}

/// Asks the advisers on briefs. Their answers block nothing.
pub fn advise_on_brief(
    open: &OpenWorkspace<'_>,
    new: &NewBundle,
    driver: &Driver<'_>,
) -> Result<(), OperationError> {
    let bundle = open.workspace.bundle_root.bundle(&new.id);
    let _lock = driver.config.locks().take(bundle.id())?;
    pdca_driver::advise_on_brief(driver, &bundle)
        .map_err(|error| OperationError::Beat { bundle, source: Box::new(error) })
}

/// Has the planner fill in the brief.
pub fn plan_brief(
    open: &OpenWorkspace<'_>,
    new: &mut NewBundle,
    driver: &Driver<'_>,
) -> Result<(), OperationError> {
    let bundle = open.workspace.bundle_root.bundle(&new.id);
    let _lock = driver.config.locks().take(bundle.id())?;
    new.brief = match pdca_driver::plan(driver, &bundle) {
        Ok(true) => BriefState::Planned,
        Ok(false) => BriefState::Unplanned,
        Err(error) => {
            return Err(OperationError::Beat { bundle, source: Box::new(error) });
        }
    };
    Ok(())
}
