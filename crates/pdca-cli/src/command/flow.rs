//! `pdca flow`: the whole cycle as one command, with the person only where a person is due.
//!
//! What comes next is decided by [`pdca_workspace::flow::next`] from the files; this module says how each step is done. Each
//! is a command that could have been typed: `select`, `signoff`, `integrate`, `publish`, `act review`.

mod host;
pub(super) mod output;
mod person;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;

use crate::flow_record::FlowRecord;
use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::events::FlowTask;
use pdca_leaves::Role;
use pdca_state::{Artifact, BundleId};
use pdca_workspace::flow::{FlowEnd, FlowReport, FlowStatus, NoticeKind, next};

use self::host::Tracks;
use self::output::{FlowDocument, FlowDryRun};
use self::person::AtTerminal;
use super::run::DriveArgs;
use super::select;
use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Format, Response, render};
use crate::session::Interrupts;

/// Carry issues through the whole cycle, with you only where a person is due
///
/// An id without a bundle begins with Plan: it gets a draft, from the export if one is named. With ids only those are
/// drafted, built and delivered. Drafts go to a planning session with [leaves.planner], planned bundles to the lanes, finished ones to your sign-off as
/// soon as they wait, accepted ones are integrated or published as `after_accept` in [flow] says, and the lanes go on
/// building meanwhile. No new bundle is started while more wait for you than `max_unsigned` in [flow], or than you decide in
/// an hour. With `--act` a look back follows at the end.
///
/// After a stop or a kill the same command goes on. Without a terminal it stops where you are due, with exit code 3 and the
/// next command.
///
/// Exit codes: 0 everything is done, 3 a person has to decide, 4 nothing to do, 103 a budget is spent, 130 interrupted;
/// others as `pdca batch` and `pdca integrate` have them.
#[derive(clap::Args, Debug)]
#[group(skip)]
#[command(after_long_help = "\
Examples:
  pdca flow                                       # everything that is not finished
  pdca flow 12 15 20 --lanes 3
  pdca flow 7                                     # from nothing: a draft, the planning session, and on
  pdca flow 7 --from-csv export.csv               # drafts 7 alone
  pdca flow 7 --doc design.md --doc mail.txt      # the planner reads these
  pdca flow --from-csv export.csv --limit 12 --act
  pdca flow --dry-run                             # what would come next

The keys of [flow] and [notify] are in `pdca help config`; docs/guide/flow.md describes a day with it.")]
pub(crate) struct Args {
    /// The bundles; all unfinished ones if none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,

    /// At the end, review the finished cycles and record what the process learns
    #[arg(long)]
    act: bool,

    /// Hand this document to the planner, beside the drafts; can be repeated
    #[arg(long = "doc", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    docs: Vec<Utf8PathBuf>,

    #[command(flatten)]
    drive: DriveArgs,

    #[command(flatten)]
    select: select::Args,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let scope = scope(args, cx)?;
    let documents = documents(&args.docs, cx)?;
    let events = args.drive.events(cx);
    let is_real = !cx.globals.dry_run;
    let record = is_real.then(|| FlowRecord::begin(cx, events.as_deref())).transpose()?;
    let tracks = Tracks::new(cx, scope.clone(), args, record);
    let unknown = without_bundle(args, cx)?;
    if (args.select.has_source() && (args.ids.is_empty() || !unknown.is_empty())
        || !unknown.is_empty() && is_real)
        && let Err(failure) =
            tracks.step(FlowTask::Draft, &unknown, || make_drafts(args, &unknown, cx, err))
    {
        // The next flow has a budget of its own: this one has not begun any work.
        tracks.end()?;
        return Err(failure);
    }
    let config = &cx.workspace()?.config;
    let standing = FlowStatus {
        has_terminal: cx.may_ask(),
        can_plan: can_plan(cx)?,
        act: args.act,
        ..FlowStatus::default()
    };
    if cx.globals.dry_run {
        use pdca_workspace::flow::FlowHost as _;
        let facts = tracks.facts(false)?;
        let moves = next(&facts, &standing);
        return Ok(Response::done(FlowDryRun::of(facts, moves, config.flow)));
    }
    let signals = Interrupts::listen(&tracks.cancel)?;
    let planned = Vec::new();
    let mut person = AtTerminal { cx, err, tracks: &tracks, documents, planned, is_warned: false };
    // Its error is reported at the end, and keeps nothing that is planned from being built.
    let finished = person.finish_planning();
    let mut report = pdca_workspace::flow::run(&tracks, &mut person, standing);
    person.flush();
    let planned = std::mem::take(&mut person.planned);
    signals.close();
    report.failures.splice(0..0, finished.err());
    // The record of an interrupted flow stays, so that the next call goes on within the same budget.
    if !matches!(report.end, FlowEnd::Interrupted) {
        tracks.end()?;
    }
    let document = FlowDocument::of(cx, &report, planned, scope.as_ref())?;
    tracks.tell(&document.notice(NoticeKind::RunEnded, cx));
    tracks.notifier.finish();
    person.flush();
    let (exit, failure) = conclude(report);
    Ok(Response::new(document, exit).failed(failure))
}

/// Returns the exit code, and the gravest failure with those after it.
fn conclude(report: FlowReport<Failure>) -> (Exit, Option<Failure>) {
    let exit = match report.end {
        FlowEnd::NeedsYou { .. } => Exit::Waiting,
        FlowEnd::Done if report.steps == 0 => Exit::NothingToDo,
        FlowEnd::Done => Exit::Done,
        FlowEnd::Interrupted => Exit::Interrupted,
    };
    let mut failures = report.failures;
    if matches!(report.end, FlowEnd::Interrupted) && failures.is_empty() {
        let failure = Failure::new(Exit::Interrupted, "interrupted")
            .hint("what is on disk is whole; the same command goes on");
        return (exit, Some(failure));
    }
    failures.sort_by_key(|failure| failure.exit != Exit::Interrupted);
    let mut failures = failures.into_iter();
    let first = failures.next().map(|mut first| {
        first.problems.extend(failures.flat_map(|failure| failure.problems));
        first
    });
    (exit, first)
}

/// Returns the bundles that were named, whether they exist or not.
fn scope(args: &Args, cx: &Context<'_>) -> Result<Option<BTreeSet<BundleId>>, Failure> {
    if args.ids.is_empty() {
        return Ok(None);
    }
    if let Some(option) = args.select.choice().filter(|_| args.select.has_source()) {
        return Err(Failure::usage(format!("ids and `{option}` both choose records"))
            .hint(format!("leave out `{option}`: only the ids are drafted")));
    }
    // A twin of a bundle, and an archived bundle, are refused before anything is written.
    cx.workspace()?.require_all_distinct()?;
    args.ids.iter().map(IdArg::parse).collect::<Result<_, _>>().map(Some)
}

/// Reads the documents for the planner, before anything is written or paid for. Their names in the session are those of the
/// files, so no two may be the same.
fn documents(
    paths: &[Utf8PathBuf],
    cx: &Context<'_>,
) -> Result<Vec<(Utf8PathBuf, Vec<u8>)>, Failure> {
    const LARGEST: u64 = 16 << 20;
    let mut documents: Vec<(Utf8PathBuf, Vec<u8>)> = Vec::new();
    for path in paths {
        let path = cx.env.cwd.join(path);
        let refuse = |what: &str, hint: &str| {
            Err(Failure::usage(what).at(FilePosition::file(&*path)).hint(hint))
        };
        let Some(name) = path.file_name() else {
            return refuse("it is not a file", "name a file");
        };
        let name = Utf8Path::new("documents").join(name);
        let Some(bytes) = pdca_state::files::read_bounded(&path, LARGEST)? else {
            return refuse("there is no such file", "`--doc` takes the path of a document");
        };
        if documents.iter().any(|(other, _)| *other == name) {
            return refuse("another document has the same name", "rename one of the two");
        }
        documents.push((name, bytes));
    }
    Ok(documents)
}

/// Returns the ids that were named and have no bundle, each once, in that order.
fn without_bundle(args: &Args, cx: &Context<'_>) -> Result<Vec<BundleId>, Failure> {
    let root = &cx.workspace()?.bundle_root;
    let mut unknown: Vec<BundleId> = Vec::new();
    for id in &args.ids {
        let id = id.parse()?;
        if !root.bundle(&id).exists() && !unknown.contains(&id) {
            unknown.push(id);
        }
    }
    Ok(unknown)
}

/// Returns whether a planner is configured that can be called here.
fn can_plan(cx: &Context<'_>) -> Result<bool, Failure> {
    let workspace = cx.workspace()?;
    let environment = cx.env.environment();
    let is_there = pdca_workspace::config::has_leaf(workspace, Role::Planner, environment)?;
    let leaf = workspace.config.leaves.of(Role::Planner);
    Ok(is_there && (cx.may_ask() || leaf.is_some_and(|leaf| !leaf.interactive)))
}

/// Makes the drafts of a flow: of the named ids without a bundle, or of a whole export.
fn make_drafts(
    args: &Args,
    unknown: &[BundleId],
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    if args.select.has_source() {
        let ids = unknown.iter().map(|id| IdArg::from(OsString::from(id.as_ref()))).collect();
        return select_drafts(&args.select.of_only(ids), cx, err);
    }
    for bundle in pdca_workspace::drafts::new_drafts(&cx.open()?, unknown)? {
        let brief = bundle.path(Artifact::Brief);
        cx.note(err, &format!("{} had no bundle: wrote {}", bundle.id(), cx.show(&brief)))?;
    }
    Ok(())
}

/// Turns an export into drafts; one whose drafts exist is no error.
fn select_drafts(
    args: &select::Args,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let response = select::run(args, cx, err)?;
    if cx.globals.format() == Format::Text && !cx.globals.quiet {
        render(&response, cx, err)?;
    }
    match response.failure {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}
