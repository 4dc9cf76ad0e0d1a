//! `pdca new`: creates a bundle with a brief to fill in.

#[cfg(test)]
mod tests;

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_driver::Driver;
use pdca_workspace::drafts::{NewBundleRequest, advise_on_brief, new_bundle, plan_brief};

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::{Format, Response};
use crate::{editor, render, session};

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
    let open = cx.open()?;
    let request = NewBundleRequest {
        id: &id,
        title: args.title.as_deref(),
        from_brief: args.from_brief.as_deref(),
        plan: args.plan,
    };
    let mut new = new_bundle(&open, request)?;
    if !new.dry_run {
        if args.plan {
            let site = session::driver_config(cx)?;
            let plan = |driver: &Driver<'_>| plan_brief(&open, &mut new, driver);
            session::work(cx, &site, None, err, plan)??;
        } else if new.written {
            // In the editor of the person, at a terminal.
            let may_edit = args.from_brief.is_none() && cx.globals.format() == Format::Text;
            if may_edit && editor::edit(cx, &new.file) {
                new.after_edit(&open)?;
            }
            if new.wants_advice(&open)? {
                let site = session::driver_config(cx)?;
                let advise = |driver: &Driver<'_>| advise_on_brief(&open, &new, driver);
                session::work(cx, &site, None, err, advise)??;
            }
        }
    }
    Ok(render::new_bundle::created(new))
}
