//! `pdca new`: a bundle with a brief to fill in.

use std::io::Write;

use pdca_leaves::Role;
use pdca_state::{Artifact, Bundle, files};

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::session;

/// The largest template that is read.
const MAX_TEMPLATE: u64 = 1 << 20;

/// Make a bundle with a brief to fill in
///
/// The brief comes from `templates/brief.md.tpl`, or from a built-in one; `{id}`, `{title}` and `{slug}` in it are
/// filled. What an earlier attempt handed on (`carry-forward.md`) is added to it. The bundle counts as planned once
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

    /// What it is about, in a few words
    #[arg(long, value_name = "T")]
    title: Option<String>,

    /// Take this file as the brief
    #[arg(long, value_name = "FILE", conflicts_with = "title", value_hint = clap::ValueHint::FilePath)]
    from_brief: Option<camino::Utf8PathBuf>,

    /// Have the planner of `[leaves.planner]` fill in the brief
    #[arg(long)]
    plan: bool,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
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
        // The draft that an attempt sent back to Plan left, or a template, is the planner's to fill.
        if !filled && args.plan && args.from_brief.is_none() && !cx.globals.dry_run {
            return plan(&bundle, cx, out, err);
        }
        let is_draft = !filled && bundle.path(Artifact::CarryForward).exists();
        if is_draft && args.from_brief.is_none() {
            let path = bundle.path(Artifact::Brief);
            let path = cx.show(&path);
            writeln!(
                out,
                "{path} is there: the brief of the attempt before it, and what that handed on"
            )?;
            writeln!(
                out,
                "next: edit it, take its slug out of `<…>`, then {}",
                cx.out.accent(format!("pdca run {id}"))
            )?;
            return Ok(Exit::Done);
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
        let path = cx.ambient.cwd.join(path);
        text_of(&path)?.ok_or_else(|| {
            Failure::usage("there is no such file").at(Place::file(path)).hint("name a brief")
        })?
    } else {
        let template = text_of(&workspace.templates_dir.join("brief.md.tpl"))?;
        let template = template.as_deref().unwrap_or(super::init::BRIEF_TEMPLATE);
        fill(template, id.as_ref(), args.title.as_deref())
    };
    let carried = if exists { bundle.read(Artifact::CarryForward)? } else { None };
    if let Some(carried) = &carried {
        if !brief.ends_with('\n') {
            brief.push('\n');
        }
        brief.push('\n');
        brief.push_str(&String::from_utf8_lossy(carried));
    }
    let path = bundle.path(Artifact::Brief);
    if cx.globals.dry_run {
        writeln!(out, "would write {}", cx.show(&path))?;
        return Ok(Exit::Done);
    }
    if exists {
        bundle.publish(Artifact::Brief, brief.as_bytes())?;
    } else {
        Bundle::create(&workspace.bundle_root, &id, &brief)?;
    }
    writeln!(out, "{} {}", cx.out.good("wrote"), cx.show(&path))?;
    if carried.is_some() {
        writeln!(out, "with what the attempt before it handed on")?;
    }
    if args.plan {
        return plan(&bundle, cx, out, err);
    }
    writeln!(out, "next: fill it in, then {}", cx.out.accent(format!("pdca run {id}")))?;
    Ok(Exit::Done)
}

/// Has the planner fill in the brief that was just written.
fn plan(
    bundle: &Bundle,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let site = session::site(cx)?;
    let _taken = site.take(bundle.id()).map_err(|error| session::refused(&error))?;
    let planned = session::work(cx, &site, None, err, |driver| driver.plan(bundle))?;
    let id = bundle.id();
    if planned.map_err(|error| session::explain(bundle, error))? {
        writeln!(out, "next: read it, then {}", cx.out.accent(format!("pdca run {id}")))?;
        return Ok(Exit::Done);
    }
    writeln!(out, "the planner left the brief as it was")?;
    Ok(Exit::Waiting)
}

fn text_of(path: &camino::Utf8Path) -> Result<Option<String>, Failure> {
    let Some(bytes) = files::read_bounded(path, MAX_TEMPLATE)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        Failure::usage("the file is not UTF-8").at(Place::line(path, line)).hint("save it as UTF-8")
    })
}

/// Fills a template. A title is a person's text: it is put in as it is, on one line.
fn fill(template: &str, id: &str, title: Option<&str>) -> String {
    let title = title
        .map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|title| !title.is_empty());
    let slug = title.as_deref().map(slug_of).filter(|slug| !slug.is_empty());
    let heading = title.as_deref().map_or_else(String::new, |title| format!(" — {title}"));
    let values =
        [("{id}", id), ("{title}", &heading), ("{slug}", slug.as_deref().unwrap_or("short-name"))];
    let mut filled = String::with_capacity(template.len() + heading.len());
    let mut rest = template;
    // One pass, so that braces in the title are never taken for a place to fill.
    while let Some((at, (key, value))) = values
        .iter()
        .filter_map(|pair| rest.find(pair.0).map(|at| (at, *pair)))
        .min_by_key(|(at, _)| *at)
    {
        filled.push_str(&rest[..at]);
        filled.push_str(value);
        rest = &rest[at + key.len()..];
    }
    filled + rest
}

fn slug_of(title: &str) -> String {
    let words = title.to_lowercase();
    let words =
        words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).take(6);
    words.collect::<Vec<_>>().join("-")
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
