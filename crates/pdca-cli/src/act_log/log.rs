//! The dated entry of a review, printed or recorded.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_act::{ActRecords, Baseline, FileWrite, Index, IndexScope, LOG, ScaffoldPaths, scaffold};
use pdca_journal::events::WarningCode;
use pdca_process::{FileLock, FileLockError};
use pdca_state::{BundleId, files};
use pdca_workspace::config::workspace::{FILE, Workspace};
use serde::Serialize;

use crate::act_log::{baseline, bundles, counted, ids, prompts};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Report, Response};
use crate::style::printable;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EntryReport {
    date: String,
    cycles: Vec<BundleId>,
    entry: Option<String>,
    recorded: bool,
    /// Dates of interrupted reviews that were finished.
    finished: Vec<String>,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    log: Utf8PathBuf,
}

/// Starts an entry of the Act log, and appends it with `record`.
pub(crate) fn entry(
    record: bool,
    date: Option<&str>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let date = self::date(date, cx)?;
    let writes = (record || cx.globals.yes) && !cx.globals.dry_run;
    let dir = &workspace.process_dir;
    // Before the log is read: two recorders would each append to what both have read.
    let _alone = if writes { Some(lock(dir)?) } else { None };
    let (now, problems) = baseline(workspace);
    for problem in problems {
        cx.warn(err, WarningCode::RecordUnreadable, printable(&problem))?;
    }
    let (records, finished) = load(cx, &now, &date, writes, err)?;
    let index = pdca_act::index(&bundles(workspace)?, &records, IndexScope::SinceLastReview);
    let cycles: Vec<BundleId> = index.cycles.iter().map(|cycle| cycle.id.clone()).collect();
    let entry = (!cycles.is_empty()).then(|| started(workspace, &index, &date));
    if let Some(entry) = entry.as_deref().filter(|_| writes) {
        apply(&records.record(entry, &index.marks(), &now, &date)?)?;
    }
    let recorded = writes && entry.is_some();
    let exit = if entry.is_some() { Exit::Done } else { Exit::NothingToDo };
    if entry.is_none() {
        cx.note(err, "no cycle ended since the last review")?;
    }
    let log = dir.join(LOG);
    Ok(Response::new(EntryReport { date, cycles, entry, recorded, finished, log }, exit))
}

/// Loads the records; a caller that writes first finishes interrupted ones, whose dates are returned.
pub(crate) fn load(
    cx: &Context<'_>,
    now: &Baseline,
    date: &str,
    writes: bool,
    err: &mut dyn Write,
) -> Result<(ActRecords, Vec<String>), Failure> {
    let dir = &cx.workspace()?.process_dir;
    let records = ActRecords::load(dir)?;
    if !writes {
        return Ok((records, Vec::new()));
    }
    let records = records.require_writable()?;
    let finished: Vec<String> =
        records.unfinished().iter().map(|entry| entry.date.clone()).collect();
    // First of all, or the entry that is half recorded would be followed by another one for the same cycles.
    apply(&records.finish(now, date)?)?;
    for date in &finished {
        cx.note(err, &format!("finished the interrupted record of {}", printable(date)))?;
    }
    Ok((ActRecords::load(dir)?, finished))
}

impl Report for EntryReport {
    const KIND: &'static str = "act-log";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(entry) = &self.entry else { return Ok(()) };
        if !self.recorded {
            return Ok(out.write_all(printable(entry).as_bytes())?);
        }
        let (count, log) = (counted(self.cycles.len(), "cycle", "cycles"), cx.show(&self.log));
        writeln!(out, "{} {count} in {log}: {}", cx.out.good("recorded:"), ids(&self.cycles))?;
        writeln!(out, "next: write its process deltas, then {}", cx.out.accent("pdca act diff"))?;
        Ok(())
    }
}

pub(crate) fn date(given: Option<&str>, cx: &Context<'_>) -> Result<String, Failure> {
    let Some(given) = given else { return Ok(cx.env.today()) };
    match given.parse::<jiff::civil::Date>() {
        Ok(date) => Ok(date.to_string()),
        Err(_) => {
            Err(Failure::usage(format!("`{given}` is not a date"))
                .hint("dates look like 2026-11-16"))
        }
    }
}

/// Locks out a second recorder while this one reads, appends and replaces.
pub(crate) fn lock(dir: &Utf8Path) -> Result<FileLock, Failure> {
    let failed = |error: std::io::Error| {
        Failure::from_error(Exit::Unexpected, &error)
            .at(FilePosition::file(dir))
            .hint("make the directory writable")
    };
    fs_err::create_dir_all(dir).map_err(failed)?;
    match FileLock::take(&dir.join(".pdca.lock"), "") {
        Ok(taken) => Ok(taken.transient()),
        Err(FileLockError::Held { .. }) => {
            Err(Failure::usage("another process is recording a review right now")
                .at(FilePosition::file(dir))
                .hint("repeat the command when that is done"))
        }
        Err(error) => Err(failed(error.into())),
    }
}

pub(crate) fn apply(steps: &[FileWrite]) -> Result<(), Failure> {
    for step in steps {
        files::replace(&step.path, &step.bytes).map_err(|error| {
            Failure::from_error(Exit::Unexpected, &error)
                .at(FilePosition::file(&*step.path))
                .hint("make room and make the directory writable, then repeat the command")
        })?;
    }
    Ok(())
}

/// Renders the entry as it is started, with the configured names of the parts of the process.
pub(crate) fn started(workspace: &Workspace, index: &Index, date: &str) -> String {
    let agents = prompts(workspace);
    let template = workspace.config.paths.templates_dir.join("brief.md.tpl");
    let places = ScaffoldPaths { template: template.as_str(), config: FILE, agents: &agents };
    scaffold(index, date, &places)
}
