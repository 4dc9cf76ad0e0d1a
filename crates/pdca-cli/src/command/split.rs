//! `pdca split`: makes several bundles of one.

use std::io::Write;

use pdca_driver::{SplitBy, SplitInto, UnchangedReference};
use pdca_journal::events::WarningCode;
use pdca_workspace::planning::{SplitRequest, split};

use super::signoff::signer;
use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;

/// Split a bundle into several
///
/// The parts are those of the brief (`- **Part parser:** …`, with `Paths`, `Done when`, `After` and `Waits for` below it), or with
/// `--into` drafts to fill in. Each new bundle `<id>-<part>` says what it was split from; the old one is discontinued and names them.
/// Bundles that depend on the old one and have not been started depend on the new ones then. After a crash the same
/// command goes on.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca split 36                    # one bundle for each part of the brief
  pdca split 36 --ready            # the parts that wait for nothing; 36-rest keeps the others
  pdca split 36 --into api,docs    # two drafts
  pdca split 36 --dry-run --json")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: IdArg,

    /// Split off the parts that can be started, and keep the others in one further bundle
    #[arg(long, conflicts_with = "into")]
    ready: bool,

    /// The names of the new bundles, for a brief without parts
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    into: Vec<String>,

    /// Name of the person who decided
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let open = cx.open()?;
    let id = args.id.parse()?;
    let into = match (args.ready, args.into.is_empty()) {
        (true, _) => SplitInto::Ready,
        (false, true) => SplitInto::Parts,
        (false, false) => {
            SplitInto::Names(args.into.iter().map(|name| name.trim().to_owned()).collect())
        }
    };
    let by = if cx.globals.dry_run { String::new() } else { signer(args.by.as_deref(), cx)? };
    let by = SplitBy { by: &by, date: &cx.env.today() };
    let effects = crate::faults::effects(cx)?;
    let report = split(&open, &SplitRequest { id: &id, into: &into, by }, effects.as_ref())?;
    for UnchangedReference { id: other, why } in &report.split.unchanged {
        let text = format!("{other} still depends on {id}: {why}; edit it there");
        cx.warn(err, WarningCode::DependencyGivenUp, text)?;
    }
    Ok(Response::done(report))
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    const PARTS: &str = "# Brief: issue 36 — two formats\n\n- **Slug:** two-formats\n- **Defect (Goal):** x\n\
        - **Part parser:** read it\n  - Paths: `src/parser.rs`\n  - Done when: two lines are read\n\
        - **Part writer:** write it\n  - Paths: `src/writer.rs`\n  - After: parser\n  - Waits for: the format of 41\n";

    fn desk() -> Desk {
        let desk = Desk::new();
        desk.workspace.write("results/issue_36/brief.md", PARTS);
        desk.workspace.brief("40", &[("Depends on", "36, 12")]);
        desk.workspace.brief("12", &[]);
        desk
    }

    #[test]
    fn a_bundle_becomes_its_parts_and_its_dependants_follow() {
        let desk = desk();
        let run = desk.run(&["split", "36", "--by", "Ada"]);
        insta::assert_snapshot!(run, @"
        split 36
          36-parser  planned
          36-writer  a draft to fill in
          depend on them now: 40
        next: pdca run 36-parser
        ");
        let status = desk.run(&["status"]).out;
        assert!(status.contains("DISCONTINUED"), "{status}");
        let brief = desk.workspace.read("results/issue_40/brief.md");
        assert!(brief.contains("36-parser, 36-writer, 12"), "{brief}");
        assert!(
            desk.workspace
                .read("results/issue_36/brief.md")
                .contains("**Split into:** 36-parser, 36-writer")
        );
        let summary = desk.workspace.read("results/issue_36/SUMMARY.md");
        assert!(summary.contains("split into 36-parser, 36-writer"), "{summary}");
        assert_eq!(desk.run(&["split", "36"]).exit, Exit::Usage, "a decision is final");
    }

    #[test]
    fn what_is_ready_goes_ahead_and_the_rest_stays_together() {
        let desk = desk();
        let run = desk.run(&["split", "36", "--ready", "--by", "Ada", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        let ids: Vec<&str> = json["into"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["36-parser", "36-rest"], "{run}");
        let rest = desk.workspace.read("results/issue_36-rest/brief.md");
        assert!(rest.contains("- **Depends on:** 36-parser\n"), "{rest}");
        assert!(rest.contains("- **Part writer:** write it\n"), "{rest}");
    }

    #[test]
    fn nothing_is_changed_where_something_stands_in_the_way() {
        let desk = desk();
        desk.workspace.brief("36-writer", &[]);
        let before = desk.workspace.read("results/issue_40/brief.md");
        let run = desk.run(&["split", "36", "--by", "Ada"]);
        insta::assert_snapshot!(run, @"
        --- stderr
        error: 36-writer is there already, and was not split from 36
        hint: nothing was changed; name the part otherwise in the brief of 36
        --- exit 2
        ");
        assert!(!desk.workspace.has("results/issue_36-parser"));
        assert_eq!(desk.workspace.read("results/issue_40/brief.md"), before);
        let dry = desk.run(&["split", "12", "--into", "a,b", "-n"]);
        assert_eq!(dry.exit, Exit::Done, "{dry}");
        assert!(!desk.workspace.has("results/issue_12-a"));
    }

    #[test]
    fn without_parts_the_names_are_asked_for() {
        let desk = desk();
        let run = desk.run(&["split", "12"]);
        insta::assert_snapshot!(run, @"
        --- stderr
        error: the brief of 12 has no parts
          --> results/issue_12/brief.md
        hint: add `- **Part api:** …` lines to the brief, or `pdca split 12 --into api,docs` makes drafts
        --- exit 2
        ");
        assert_eq!(desk.run(&["split", "12", "--into", "Api,docs"]).exit, Exit::Usage);
        assert_eq!(desk.run(&["split", "12", "--into", "api"]).exit, Exit::Usage, "one is none");
    }
}
