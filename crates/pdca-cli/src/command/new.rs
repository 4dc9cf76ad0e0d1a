//! `pdca new`: creates a bundle with a brief to fill in.

pub(super) mod template;

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_leaves::Role;
use pdca_state::{Artifact, Bundle, BundleId};
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::report::{Report, Response};
use crate::session;

/// Create a bundle with a brief to fill in
///
/// The brief comes from `templates/brief.md.tpl`, or from a built-in one; `{id}`, `{title}` and `{slug}` in it are
/// filled in. The notes of an earlier attempt (`carry-forward.md`) are added to it. The bundle counts as planned once
/// its slug is a name and no longer `<…>`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca new 36 --title \"the list crashes when it is empty\"
  pdca new PROJ-12
  pdca new 36 --from-brief drafts/36.md     # take this file as the brief
  pdca new 36 --plan                        # have [leaves.planner] fill it in")]
pub(crate) struct Args {
    /// The id
    #[arg(value_name = "ID")]
    id: IdArg,

    /// A short title
    #[arg(long, value_name = "T")]
    title: Option<String>,

    /// Use this file as the brief
    #[arg(long, value_name = "FILE", conflicts_with = "title", value_hint = clap::ValueHint::FilePath)]
    from_brief: Option<Utf8PathBuf>,

    /// Have the planner of `[leaves.planner]` fill in the brief
    #[arg(long)]
    plan: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let id = args.id.parse()?;
    let workspace = cx.workspace()?;
    if args.plan {
        session::require_leaf(cx, Role::Planner)?;
    }
    workspace.require_distinct(&id)?;
    let bundle = workspace.bundle_root.bundle(&id);
    let put_away = workspace.bundle_root.completed().bundle(&id);
    if put_away.exists() {
        return Err(Failure::usage(format!("{} is archived", id.dir_name()))
            .at(Place::file(put_away.dir()))
            .hint("move it back to the bundle root, or use another id"));
    }
    let exists = bundle.dir().symlink_metadata().is_ok();
    if let Ok(glance) = bundle.glance()
        && glance.state.is_terminal()
    {
        return Err(Failure::usage(format!("{} is {}", id.dir_name(), glance.state))
            .at(Place::file(bundle.dir()))
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
            return Ok(Response::done(NewReport::of(cx, &bundle, Brief::Draft)));
        }
        let what = if filled {
            "has a brief already"
        } else {
            "has a brief already, which is not filled in yet"
        };
        return Err(Failure::usage(format!("{} {what}", id.dir_name()))
            .at(Place::file(bundle.path(Artifact::Brief)))
            .hint(if filled {
                "`pdca status` shows its state; edit the file to change it"
            } else {
                "edit that file"
            }));
    }
    let mut brief = if let Some(path) = &args.from_brief {
        let path = cx.env.cwd.join(path);
        template::text_of(&path)?.ok_or_else(|| {
            Failure::usage("there is no such file").at(Place::file(path)).hint("name a brief")
        })?
    } else {
        template::fill(&template::load(workspace)?, id.as_ref(), args.title.as_deref())
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
        let report = NewReport::of(cx, &bundle, Brief::Template);
        return Ok(Response::done(NewReport { carried, ..report }));
    }
    if exists {
        bundle.publish(Artifact::Brief, brief.as_bytes())?;
    } else {
        Bundle::create(&workspace.bundle_root, &id, &brief)?;
    }
    if args.plan {
        return plan(&bundle, cx, true, carried, err);
    }
    let report = NewReport::of(cx, &bundle, Brief::Template);
    Ok(Response::done(NewReport { written: true, carried, ..report }))
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct NewReport {
    dry_run: bool,
    id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    file: Utf8PathBuf,
    /// It was written by this call.
    written: bool,
    /// It contains the carry-forward of an earlier attempt.
    carried: bool,
    brief: Brief,
}

/// The state of a brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum Brief {
    /// Has to be filled in.
    Template,
    /// From an attempt that was sent back to Plan; has to be edited.
    Draft,
    Planned,
    /// The planner left it unchanged.
    Unplanned,
}

impl NewReport {
    fn of(cx: &Context<'_>, bundle: &Bundle, brief: Brief) -> Self {
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
            Brief::Template if self.dry_run => writeln!(out, "would write {path}")?,
            Brief::Template => writeln!(out, "next: fill it in, then {run}")?,
            Brief::Draft => {
                let what = "the brief of the attempt before it, and what that handed on";
                writeln!(out, "{path} is there: {what}")?;
                writeln!(out, "next: edit it, take its slug out of `<…>`, then {run}")?;
            }
            Brief::Planned => writeln!(out, "next: read it, then {run}")?,
            Brief::Unplanned => writeln!(out, "the planner left the brief as it was")?,
        }
        Ok(())
    }
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
    let (brief, exit) =
        if is_planned { (Brief::Planned, Exit::Done) } else { (Brief::Unplanned, Exit::Waiting) };
    let report = NewReport { written, carried, ..NewReport::of(cx, bundle, brief) };
    Ok(Response::new(report, exit))
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    #[test]
    fn a_new_bundle_has_a_brief_that_is_not_planned_yet() {
        let desk = Desk::new();
        let run = desk.run(&["new", "#36", "--title", "The list {id} crashes"]);
        insta::assert_snapshot!(run, @"
        wrote results/issue_36/brief.md
        next: fill it in, then pdca run 36
        ");
        let brief = desk.workspace.read("results/issue_36/brief.md");
        assert!(brief.starts_with("# Brief: issue 36 — The list {id} crashes\n"), "{brief}");
        assert!(brief.contains("- **Slug:** <the-list-id-crashes>\n"), "{brief}");
        assert!(desk.run(&["status"]).out.contains("UNPLANNED"));
    }

    #[test]
    fn a_brief_that_is_there_is_never_overwritten() {
        let desk = Desk::new();
        desk.workspace.brief("36", &[]);
        let before = desk.workspace.read("results/issue_36/brief.md");
        let run = desk.run(&["new", "36"]);
        insta::assert_snapshot!(run, @"
        --- stderr
        error: issue_36 has a brief already
          --> results/issue_36/brief.md
        hint: `pdca status` shows its state; edit the file to change it
        --- exit 2
        ");
        assert_eq!(desk.workspace.read("results/issue_36/brief.md"), before);
    }

    #[test]
    fn what_the_attempt_before_handed_on_is_in_the_new_brief() {
        let desk = Desk::new();
        desk.workspace
            .write("results/issue_36/carry-forward.md", "## Iteration 1 — carry-forward\n");
        assert_eq!(desk.run(&["new", "36"]).exit, Exit::Done);
        let brief = desk.workspace.read("results/issue_36/brief.md");
        assert!(brief.ends_with("\n\n## Iteration 1 — carry-forward\n"), "{brief}");
    }

    #[test]
    fn the_workspace_s_own_template_is_used() {
        let desk = Desk::new();
        desk.workspace.write("templates/brief.md.tpl", "- **Slug:** <{slug}>\n{id}{title}\n");
        desk.run(&["new", "PROJ-12", "--title", "Über alles"]);
        assert_eq!(
            desk.workspace.read("results/issue_PROJ-12/brief.md"),
            "- **Slug:** <ber-alles>\nPROJ-12 — Über alles\n"
        );
    }

    #[test]
    fn a_dry_run_writes_nothing() {
        let desk = Desk::new();
        let run = desk.run(&["new", "36", "--dry-run"]);
        assert_eq!(
            (run.exit, run.out.as_str()),
            (Exit::Done, "would write results/issue_36/brief.md\n")
        );
        assert!(!desk.workspace.has("results/issue_36"));
    }

    #[test]
    fn an_archived_id_is_not_used_again() {
        let desk = Desk::new();
        desk.workspace.write("results/completed/issue_36/brief.md", "- **Slug:** done\n");
        assert_eq!(desk.run(&["new", "36"]).exit, Exit::Usage);
        assert!(!desk.workspace.has("results/issue_36"));
    }
}
