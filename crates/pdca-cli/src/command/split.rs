//! `pdca split`: makes several bundles of one.

use std::io::Write;

use pdca_driver::{Split, SplitBy, SplitError, SplitInto, split_bundle, would_split};
use pdca_journal::events::WarningCode;
use pdca_state::{Artifact, Bundle, BundleId};
use serde::Serialize;

use super::signoff;
use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Report, Response};
use crate::session;

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
    let bundle = cx.require_bundle(&args.id)?;
    let into = match (args.ready, args.into.is_empty()) {
        (true, _) => SplitInto::Ready,
        (false, true) => SplitInto::Parts,
        (false, false) => SplitInto::Names(names(&args.into)?),
    };
    let config = session::driver_config(cx)?;
    let refused = |error: SplitError| refused(error, &bundle);
    let dry_run = cx.globals.dry_run;
    let split = if dry_run {
        would_split(&config, &bundle, &into).map_err(refused)?
    } else {
        let taken = config.locks().take(bundle.id());
        let _taken = taken.map_err(|error| session::refused(&error))?;
        let (by, date) = (signoff::signer(args.by.as_deref(), cx)?, cx.env.today());
        let effects = crate::faults::effects(cx)?;
        let signer = SplitBy { by: &by, date: &date };
        split_bundle(&config, &bundle, &into, signer, effects.as_ref()).map_err(refused)?
    };
    for (id, why) in &split.unchanged {
        let text = format!("{id} still depends on {}: {why}; edit it there", bundle.id());
        cx.warn(err, WarningCode::DependencyGivenUp, text)?;
    }
    Ok(Response::done(SplitReport::of(dry_run, &bundle, split)))
}

/// Checks the names of `--into` like those of parts.
fn names(given: &[String]) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::new();
    for name in given.iter().map(|name| name.trim()) {
        let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = !name.is_empty() && name.len() <= 40 && name.chars().all(is_legal);
        if !is_name || name.starts_with('-') || names.iter().any(|known| known == name) {
            return Err(Failure::usage(format!("`{name}` cannot name a part"))
                .hint("lower-case letters, digits and hyphens, each once: `--into api,docs`"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct SplitReport {
    dry_run: bool,
    id: BundleId,
    into: Vec<NewItem>,
    /// The bundles whose briefs name the new ones now.
    repointed: Vec<BundleId>,
    /// The bundles that still name the old one.
    unchanged: Vec<UnchangedItem>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NewItem {
    id: BundleId,
    parts: Vec<String>,
    /// A person has to fill something in before it can be built.
    draft: bool,
    /// An earlier call made it.
    was_there: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UnchangedItem {
    id: BundleId,
    why: String,
}

impl SplitReport {
    fn of(dry_run: bool, bundle: &Bundle, split: Split) -> Self {
        let new = |one: pdca_driver::SplitBundle| NewItem {
            id: one.id,
            parts: one.parts,
            draft: one.is_draft,
            was_there: one.was_there,
        };
        Self {
            dry_run,
            id: bundle.id().clone(),
            into: split.into.into_iter().map(new).collect(),
            repointed: split.repointed,
            unchanged: split
                .unchanged
                .into_iter()
                .map(|(id, why)| UnchangedItem { id, why })
                .collect(),
        }
    }
}

impl Report for SplitReport {
    const KIND: &'static str = "split";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let word = if self.dry_run { "would split" } else { "split" };
        writeln!(out, "{} {}", cx.out.good(word), cx.out.strong(&self.id))?;
        for one in &self.into {
            let state = if one.draft { "a draft to fill in" } else { "planned" };
            writeln!(out, "  {}  {state}", one.id)?;
        }
        if !self.repointed.is_empty() {
            let ids: Vec<String> = self.repointed.iter().map(ToString::to_string).collect();
            writeln!(out, "  depend on them now: {}", ids.join(", "))?;
        }
        let ready: Vec<&str> =
            self.into.iter().filter(|one| !one.draft).map(|one| one.id.as_ref()).collect();
        if !self.dry_run && !ready.is_empty() {
            let next = cx.typed(&format!("pdca run {}", ready.join(" ")));
            writeln!(out, "next: {}", cx.out.accent(next))?;
        }
        Ok(())
    }
}

fn refused(error: SplitError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let brief = bundle.path(Artifact::Brief);
    let plain = Failure::from_error(Exit::Usage, &error);
    let told = |exit| Failure::of(exit, plain.problems.clone());
    match error {
        SplitError::State { .. } => {
            told(Exit::Usage).at(FilePosition::file(bundle.dir())).hint(format!("`pdca why {id}` shows where it stands"))
        }
        SplitError::NoBrief { .. } => told(Exit::Usage).hint(format!("`pdca new {id}`")),
        SplitError::NoParts { .. } => told(Exit::Usage).at(FilePosition::file(brief)).hint(format!(
            "add `- **Part api:** …` lines to the brief, or `pdca split {id} --into api,docs` makes drafts"
        )),
        SplitError::One { .. } => {
            told(Exit::Usage).at(FilePosition::file(brief)).hint("name two parts at least")
        }
        SplitError::NothingReady { waits, .. } => waits
            .into_iter()
            .fold(told(Exit::Waiting), Failure::detail)
            .at(FilePosition::file(brief))
            .hint("take `Waits for` out of a part once it can be started"),
        SplitError::Parts(error) => told(Exit::Usage)
            .at(FilePosition::line(brief, error.line()))
            .hint("a part is `- **Part api:** what`, with `After:` the ids of other parts"),
        SplitError::Id { .. } => told(Exit::Usage).hint("use shorter names"),
        SplitError::Exists { .. } => told(Exit::Usage)
            .hint(format!("nothing was changed; name the part otherwise in the brief of {id}")),
        SplitError::Signoff(_) => {
            told(Exit::Usage).at(FilePosition::file(bundle.path(Artifact::Summary))).hint("mend its headings")
        }
        SplitError::Root(error) => error.into(),
        SplitError::Load(error) => error.into(),
        SplitError::Create(error) => error.into(),
        SplitError::Write(error) => error.into(),
        SplitError::Admission(error) => session::refused(&error),
    }
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
