//! Adds globs to `Touches` of a brief, with a reason.

use std::collections::BTreeSet;
use std::io::Write;

use pdca_dag::{Case, Pattern, Plan, Rivalry, Touch};
use pdca_driver::{Batch, WorkspaceConfig};
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, GateReport, LoadError, Snapshot, State, Widening,
    WideningError, sha256_hex,
};
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition, Problem};
use crate::report::{Report, Response};
use crate::session;
use crate::style::printable;

use crate::explain::rejection;
use crate::planning::lanes_file::{Currency, Kept};
use crate::words;

/// Adds globs to `Touches` of a brief, in the name of `by`, with a reason.
pub(crate) fn widen(
    id: &IdArg,
    globs: &[String],
    reason: &str,
    by: impl FnOnce() -> Result<String, Failure>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let bundle = cx.require_bundle(id)?;
    require_globs(globs)?;
    if reason.trim().is_empty() {
        return Err(Failure::usage("the reason is empty")
            .hint("say in a few words why the work reaches further than planned"));
    }
    let by = by()?;
    let site = session::driver_config(cx)?;
    let _taken = site.locks().take(bundle.id()).map_err(|error| session::refused(&error))?;
    let mut snapshot = bundle.load()?;
    require_open(&bundle, &snapshot)?;
    let text = brief_text(&bundle)?;
    let date = cx.env.today();
    let widening = Widening { globs, date: &date, by: &by, reason: reason.trim() };
    let wider = widened(&widening, &text, &bundle)?;
    let kept = Kept::load(cx)?;
    let added = added(&text, &wider);
    // Before the brief is published: the plan is made from the disk, and must lack the new globs at first.
    let new_rivals = new_rivals(&site, &snapshot, &added)?;
    snapshot.brief = Some(Brief::parse(&wider));
    let judged_again = is_judged_again(&site, &snapshot)?;
    if !cx.globals.dry_run {
        // The brief first. After a crash in between, the same command finds the globs declared and still sets
        // the summary aside.
        if wider != text {
            bundle.publish(Artifact::Brief, wider.as_bytes())?;
            keep_brief_digest(&bundle, &snapshot, (&text, &wider))?;
        }
        if judged_again && snapshot.state == State::AwaitingSignoff {
            // Without the summary the bundle is back in Check, where the driver sees that
            // the drift row is outdated.
            bundle.set_aside(Artifact::Summary)?;
        }
    }
    let lanes_file = match kept {
        None => Currency::Absent,
        // A dry run does not write the declarations that would make the file stale.
        Some(_) if cx.globals.dry_run && !added.is_empty() => Currency::Stale,
        Some(kept) => kept.currency(&site)?,
    };
    Ok(Response::done(Widened {
        id: bundle.id().clone(),
        file: bundle.path(Artifact::Brief).to_string(),
        added,
        by,
        date,
        reason: reason.trim().to_owned(),
        rivals: new_rivals,
        judged_again,
        lanes_file: lanes_file.as_str(),
        dry_run: cx.globals.dry_run,
    }))
}

/// Names the widened brief in the gate report, if it named the one before: what was checked is asked for as before, and the
/// brief says who widened it and why.
fn keep_brief_digest(
    bundle: &Bundle,
    snapshot: &Snapshot,
    (text, wider): (&str, &str),
) -> Result<(), Failure> {
    let Some(report) = &snapshot.gates else { return Ok(()) };
    if report.brief_digest.as_deref() != Some(sha256_hex(text.as_bytes()).as_str()) {
        return Ok(());
    }
    let brief_digest = Some(sha256_hex(wider.as_bytes()));
    let report = GateReport { brief_digest, ..report.clone() };
    Ok(bundle.publish(Artifact::GatesJson, report.to_json().as_bytes())?)
}

/// Returns an error for invalid globs, all at once.
fn require_globs(globs: &[String]) -> Result<(), Failure> {
    let problem = |glob: &String| {
        let error = Pattern::parse(glob, Case::Sensitive).err()?;
        let what = format!("`{}`: {error}", glob.escape_debug());
        Some(Problem::new(what).hint(rejection::bad_glob(error.flaw)))
    };
    let problems: Vec<Problem> = globs.iter().filter_map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure::of(Exit::Usage, problems)) }
}

fn require_open(bundle: &Bundle, snapshot: &Snapshot) -> Result<(), Failure> {
    let id = bundle.id();
    match snapshot.state {
        State::Complete | State::Discontinued => Err(Failure::usage(format!(
            "{} is {}: what it touched is settled",
            id.dir_name(),
            snapshot.state
        ))
        .at(FilePosition::file(bundle.path(Artifact::Brief)))
        .hint("a frozen record is not changed; plan what is left as a bundle of its own")),
        State::Resolved => Err(Failure::usage(format!("{} is RESOLVED", id.dir_name()))
            .hint(format!("`pdca why {id}` says more"))),
        State::Unplanned
        | State::Planned
        | State::Built
        | State::Checked
        | State::AwaitingSignoff
        | State::Iterate(_) => Ok(()),
    }
}

fn brief_text(bundle: &Bundle) -> Result<String, Failure> {
    let path = bundle.path(Artifact::Brief);
    let bytes = bundle.read(Artifact::Brief)?.ok_or_else(|| {
        Failure::usage(format!("{} has no brief", bundle.id().dir_name()))
            .at(FilePosition::file(bundle.dir()))
            .hint(format!("`pdca new {}` makes one", bundle.id()))
    })?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::usage("the brief is not UTF-8")
            .at(FilePosition::file(path))
            .hint("save the file as UTF-8, e.g. `iconv -f latin1 -t utf-8`")
    })
}

/// Returns the new brief, which must still be readable.
fn widened(widening: &Widening<'_>, text: &str, bundle: &Bundle) -> Result<String, Failure> {
    let wider = widening.apply(text).map_err(|error| unwritable(&error, bundle))?;
    if wider.len() as u64 > Artifact::Brief.max_len() {
        return Err(Failure::usage("the brief would be too long to be read")
            .at(FilePosition::file(bundle.path(Artifact::Brief)))
            .hint("name the directory instead of each file"));
    }
    Ok(wider)
}

fn unwritable(error: &WideningError, bundle: &Bundle) -> Failure {
    let failure = Failure::from_error(Exit::Usage, error);
    let path = bundle.path(Artifact::Brief);
    match error {
        WideningError::Unwritable { .. } => {
            failure.hint("write `?` for the character that stands in the way")
        }
        WideningError::NoPlace { line } => failure
            .at(FilePosition::line(path, *line))
            .hint("write `- **Touches:** a, b` on one line, then repeat the command"),
    }
}

/// Returns the globs that were added.
fn added(before: &str, after: &str) -> Vec<String> {
    let known: BTreeSet<String> = Brief::parse(before).touches().into_iter().collect();
    Brief::parse(after).touches().into_iter().filter(|glob| !known.contains(glob)).collect()
}

/// Returns whether the gates have to run again, because their verdict about the declaration
/// is outdated.
fn is_judged_again(site: &WorkspaceConfig, snapshot: &Snapshot) -> Result<bool, LoadError> {
    match snapshot.state {
        State::Checked | State::AwaitingSignoff => pdca_driver::is_drift_outdated(site, snapshot),
        State::Unplanned
        | State::Resolved
        | State::Planned
        | State::Built
        | State::Complete
        | State::Iterate(_)
        | State::Discontinued => Ok(false),
    }
}

/// A bundle that may no longer run beside this one.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rival {
    id: BundleId,
    /// `overlap` or `conflict`.
    rule: &'static str,
    witness: Option<String>,
    /// It is in flight now.
    at_work: bool,
    #[serde(skip)]
    why: String,
}

/// Returns the rivals that the globs add; `None` if the batch has no plan.
fn new_rivals(
    site: &WorkspaceConfig,
    snapshot: &Snapshot,
    added: &[String],
) -> Result<Option<Vec<Rival>>, Failure> {
    let id = &snapshot.id;
    let mut batch = Batch::of_all(site)?;
    let Ok(before) = batch.plan() else { return Ok(None) };
    let known: BTreeSet<BundleId> =
        before.rivals_of(id).iter().map(|(id, _)| (*id).clone()).collect();
    let Some(item) = batch.items.iter_mut().find(|item| item.id == *id) else {
        return Ok(Some(Vec::new()));
    };
    // The declarations of a template do not count.
    let target = snapshot.authored_brief().and_then(|brief| site.target_of(brief).ok()).flatten();
    let apart = target.as_ref().filter(|_| site.targets.len() > 1);
    for glob in added {
        let is_file = target.as_ref().is_some_and(|target| target.path.join(glob).is_file());
        let glob = apart.map_or(glob.clone(), |target| format!("@{}/{glob}", target.name));
        item.touches.push(Touch { glob, place: item.place.clone(), is_file });
    }
    let Ok(after) = batch.plan() else { return Ok(None) };
    Ok(Some(rivals(&after, id, &known, site)))
}

fn rivals(
    plan: &Plan,
    id: &BundleId,
    known: &BTreeSet<BundleId>,
    site: &WorkspaceConfig,
) -> Vec<Rival> {
    // A dependant never runs beside its prerequisite anyway.
    let edges = plan.edges();
    let is_ordered = |other: &BundleId| {
        edges.iter().any(|edge| {
            let pair = (&edge.dependant, &edge.prerequisite);
            pair == (id, other) || pair == (other, id)
        })
    };
    let rivals = plan.rivals_of(id).into_iter();
    let rivals = rivals.filter(|(other, _)| !known.contains(*other) && !is_ordered(other));
    let told = |(other, rivalry): (&BundleId, Rivalry)| {
        let (rule, witness) = match &rivalry {
            Rivalry::Conflict { .. } => ("conflict", None),
            Rivalry::Overlap { witness, .. } => ("overlap", Some(witness.clone())),
        };
        Rival {
            id: other.clone(),
            rule,
            witness,
            at_work: site.locks().at_work_on(other).ok().flatten().is_some(),
            why: words::apart(id, other, &rivalry),
        }
    };
    rivals.map(told).collect()
}

/// The result, actual or predicted.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Widened {
    id: BundleId,
    file: String,
    added: Vec<String>,
    by: String,
    date: String,
    reason: String,
    /// The added rivals; null if the batch has no plan.
    #[serde(rename = "new_rivals")]
    rivals: Option<Vec<Rival>>,
    judged_again: bool,
    lanes_file: &'static str,
    dry_run: bool,
}

impl Report for Widened {
    const KIND: &'static str = "widen";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        let id = &self.id;
        let name = p.strong(id.dir_name());
        let added: Vec<String> = self.added.iter().map(|glob| format!("`{glob}`")).collect();
        let added = printable(&added.join(", ")).into_owned();
        match (self.added.as_slice(), self.dry_run) {
            ([], _) => writeln!(out, "{name} declares that already; nothing changed")?,
            ([..], true) => writeln!(out, "{name} would also touch {added}")?,
            ([..], false) => writeln!(out, "{name} also touches {added}")?,
        }
        match &self.rivals {
            None => writeln!(
                out,
                "  {} whom that meets is not known: the batch has no plan, `pdca plan` says why",
                p.warn("note:")
            )?,
            Some(rivals) if rivals.is_empty() && !self.added.is_empty() => {
                writeln!(out, "  no other bundle is in the way of that")?;
            }
            Some(rivals) => {
                for rival in rivals {
                    let now = if rival.at_work { ", which is in work right now" } else { "" };
                    let line = format!("{}{now}", rival.why);
                    writeln!(out, "  {} {}", p.warn("no longer side by side:"), printable(&line))?;
                }
            }
        }
        if self.judged_again {
            let will = if self.dry_run { "would judge" } else { "judge" };
            writeln!(
                out,
                "  the gates {will} it again, and the review follows: {}",
                p.accent(format!("pdca run {id}"))
            )?;
        }
        if self.lanes_file == Currency::Stale.as_str() {
            writeln!(
                out,
                "  lanes.json is {}: {}",
                p.warn("out of date"),
                p.accent("pdca plan --write")
            )?;
        }
        Ok(())
    }
}
