//! Creates a bundle with a brief to fill in.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_leaves::Role;
use pdca_state::{Artifact, Bundle, BundleId};
use pdca_workspace::config::workspace::Workspace;
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::draft::template;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Format, Report, Response};
use crate::session;

/// A request for a new bundle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewBundleRequest<'a> {
    pub(crate) id: &'a IdArg,
    pub(crate) title: Option<&'a str>,
    /// The file to take as the brief.
    pub(crate) from_brief: Option<&'a Utf8Path>,
    /// Has the planner fill in the brief.
    pub(crate) plan: bool,
}

/// Creates a bundle with a brief from the template, or from a file; an existing brief is never overwritten.
pub(crate) fn new(
    args: NewBundleRequest<'_>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let id = args.id.parse()?;
    let workspace = cx.workspace()?;
    // First of all: a planner that cannot be called here is refused before anything is written (decision 043).
    if args.plan {
        session::require_leaf(cx, Role::Planner)?;
    }
    workspace.require_distinct(&id)?;
    let bundle = workspace.bundle_root.bundle(&id);
    refuse_archived(workspace, &id)?;
    // A link that leads nowhere has the name as well.
    let exists = bundle.dir().symlink_metadata().is_ok();
    if let Ok(glance) = bundle.glance()
        && glance.state.is_terminal()
    {
        return Err(Failure::usage(format!("{} is {}", id.dir_name(), glance.state))
            .at(FilePosition::file(bundle.dir()))
            .hint("a decision is final: use another id for what is to follow"));
    }
    if exists && bundle.read(Artifact::Brief)?.is_some() {
        let filled = bundle.load()?.authored_brief().is_some();
        // The planner fills in a template, or the draft of an attempt that was sent back to Plan.
        if !filled && args.plan && args.from_brief.is_none() && !cx.globals.dry_run {
            return plan(&bundle, cx, false, false, err);
        }
        let is_draft = !filled && bundle.path(Artifact::CarryForward).exists();
        if is_draft && args.from_brief.is_none() {
            return Ok(Response::done(NewReport::of(cx, &bundle, BriefState::Draft)));
        }
        let what = if filled {
            "has a brief already"
        } else {
            "has a brief already, which is not filled in yet"
        };
        return Err(Failure::usage(format!("{} {what}", id.dir_name()))
            .at(FilePosition::file(bundle.path(Artifact::Brief)))
            .hint(if filled {
                "`pdca status` shows its state; edit the file to change it"
            } else {
                "edit that file"
            }));
    }
    let mut brief = if let Some(path) = args.from_brief {
        let path = cx.env.cwd.join(path);
        template::text_of(&path)?.ok_or_else(|| {
            Failure::usage("there is no such file")
                .at(FilePosition::file(path))
                .hint("name a brief")
        })?
    } else {
        template::fill(&template::load(workspace)?, id.as_ref(), args.title)
    };
    let carried = if exists { bundle.read(Artifact::CarryForward)? } else { None };
    if let Some(carried) = &carried {
        if !brief.ends_with('\n') {
            brief.push('\n');
        }
        brief.push('\n');
        brief.push_str(&String::from_utf8_lossy(carried));
    }
    let carried = carried.is_some();
    if cx.globals.dry_run {
        let report = NewReport::of(cx, &bundle, BriefState::Template);
        return Ok(Response::done(NewReport { carried, ..report }));
    }
    // `create` makes directory and brief by one rename. A directory that is there, with a carry-forward
    // or notes, can only be given the file.
    if exists {
        bundle.publish(Artifact::Brief, brief.as_bytes())?;
    } else {
        workspace.bundle_root.create(&id, &brief)?;
    }
    if args.plan {
        return plan(&bundle, cx, true, carried, err);
    }
    let state = if args.from_brief.is_none() { edited(cx, &bundle)? } else { BriefState::Template };
    advise(&bundle, cx, err)?;
    let report = NewReport::of(cx, &bundle, state);
    Ok(Response::done(NewReport { written: true, carried, ..report }))
}

/// Creates bundles with the template as their brief, for a planner or a person to fill in. All ids are checked before the
/// first bundle is written.
pub(crate) fn new_drafts(ids: &[BundleId], cx: &Context<'_>) -> Result<Vec<Bundle>, Failure> {
    let workspace = cx.workspace()?;
    workspace.require_each_distinct(ids)?;
    for id in ids {
        refuse_archived(workspace, id)?;
    }
    let template = template::load(workspace)?;
    let root = &workspace.bundle_root;
    let create = |id: &BundleId| -> Result<Bundle, Failure> {
        root.create(id, &template::fill(&template, id.as_ref(), None))?;
        Ok(root.bundle(id))
    };
    ids.iter().map(create).collect()
}

fn refuse_archived(workspace: &Workspace, id: &BundleId) -> Result<(), Failure> {
    let put_away = workspace.bundle_root.completed().bundle(id);
    if put_away.exists() {
        return Err(Failure::usage(format!("{} is archived", id.dir_name()))
            .at(FilePosition::file(put_away.dir()))
            .hint("move it back to the bundle root, or use another id"));
    }
    Ok(())
}

/// Opens the brief in the editor of the person, at a terminal, and returns its state after that.
fn edited(cx: &Context<'_>, bundle: &Bundle) -> Result<BriefState, Failure> {
    let may_edit = cx.globals.format() == Format::Text;
    if may_edit && crate::editor::edit(cx, &bundle.path(Artifact::Brief)) {
        let is_filled = bundle.load()?.authored_brief().is_some();
        return Ok(if is_filled { BriefState::Edited } else { BriefState::Template });
    }
    Ok(BriefState::Template)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NewReport {
    dry_run: bool,
    id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    file: Utf8PathBuf,
    /// It was written by this call.
    written: bool,
    /// It contains the carry-forward of an earlier attempt.
    carried: bool,
    brief: BriefState,
}

/// The state of a brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum BriefState {
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

impl NewReport {
    fn of(cx: &Context<'_>, bundle: &Bundle, brief: BriefState) -> Self {
        let (dry_run, id) = (cx.globals.dry_run, bundle.id().clone());
        let file = bundle.path(Artifact::Brief);
        Self { dry_run, id, file, written: false, carried: false, brief }
    }
}

impl Report for NewReport {
    const KIND: &'static str = "new";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let path = cx.show(&self.file);
        let run = cx.out.accent(format!("pdca run {}", self.id));
        if self.written {
            writeln!(out, "{} {path}", cx.out.good("wrote"))?;
            if self.carried {
                writeln!(out, "with what the attempt before it handed on")?;
            }
        }
        match self.brief {
            BriefState::Template if self.dry_run => writeln!(out, "would write {path}")?,
            BriefState::Template => writeln!(out, "next: fill it in, then {run}")?,
            BriefState::Draft => {
                let what = "the brief of the attempt before it, and what that handed on";
                writeln!(out, "{path} is there: {what}")?;
                writeln!(out, "next: edit it, take its slug out of `<…>`, then {run}")?;
            }
            BriefState::Edited => writeln!(out, "next: {run}")?,
            BriefState::Planned => writeln!(out, "next: read it, then {run}")?,
            BriefState::Unplanned => writeln!(out, "the planner left the brief as it was")?,
        }
        Ok(())
    }
}

/// Asks the advisers on briefs, if the brief is complete. What they say blocks nothing.
fn advise(bundle: &Bundle, cx: &Context<'_>, err: &mut dyn Write) -> Result<(), Failure> {
    let workspace = cx.workspace()?;
    if workspace.config.leaves.plan_advisory.is_empty() || bundle.load()?.authored_brief().is_none()
    {
        return Ok(());
    }
    let site = session::driver_config(cx)?;
    let _taken = site.locks().take(bundle.id()).map_err(|error| session::refused(&error))?;
    let ask = |driver: &pdca_driver::Driver<'_>| pdca_driver::advise_on_brief(driver, bundle);
    let advised = session::work(cx, &site, None, err, ask)?;
    advised.map_err(|error| session::explain(bundle, error))
}

/// Runs the planner on the brief.
fn plan(
    bundle: &Bundle,
    cx: &Context<'_>,
    written: bool,
    carried: bool,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let _taken = site.locks().take(bundle.id()).map_err(|error| session::refused(&error))?;
    let planned = session::work(cx, &site, None, err, |driver| pdca_driver::plan(driver, bundle))?;
    let is_planned = planned.map_err(|error| session::explain(bundle, error))?;
    let (brief, exit) = if is_planned {
        (BriefState::Planned, Exit::Done)
    } else {
        (BriefState::Unplanned, Exit::Waiting)
    };
    let report = NewReport { written, carried, ..NewReport::of(cx, bundle, brief) };
    Ok(Response::new(report, exit))
}
