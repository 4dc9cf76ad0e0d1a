//! `pdca new`: creates a bundle with a brief to fill in.

#[cfg(test)]
mod tests;

use std::io::Write;

use crate::draft::NewBundleRequest;
use camino::Utf8PathBuf;

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;

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
    let asked = NewBundleRequest {
        id: &args.id,
        title: args.title.as_deref(),
        from_brief: args.from_brief.as_deref(),
        plan: args.plan,
    };
    crate::draft::new(asked, cx, err)
}
