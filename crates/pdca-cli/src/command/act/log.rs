//! `pdca act log`: the dated entry of a review, printed or recorded.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_act::{Baseline, Index, IndexScope, LOG, Records, ScaffoldPaths, Step, scaffold};
use pdca_events::WarningCode;
use pdca_state::{BundleId, files};
use serde::Serialize;

use super::{baseline, bundles, counted, ids, prompts};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::report::{Report, Response};
use crate::style::printable;
use crate::workspace::{FILE, Workspace};

/// Start a dated entry of the Act log, filled with the findings of the index
///
/// Prints the entry. With `--record` it is appended to `process/act-log.md`, its cycles count as reviewed, and the
/// process as it is now becomes the baseline of `pdca act diff`; the deltas are then yours to write into it. A record
/// that was interrupted is finished first, so no entry is lost or written twice.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act log                         # read it
  pdca act log --record                # append it to process/act-log.md
  pdca act log --record --dry-run      # say what would be written

With nothing to review the exit code is 4.")]
pub(crate) struct Args {
    /// Append the entry to the log (so does the global `--yes`)
    #[arg(long, visible_alias = "append")]
    record: bool,

    /// The date of the entry, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct LogEntry {
    date: String,
    cycles: Vec<BundleId>,
    entry: Option<String>,
    recorded: bool,
    /// Dates of interrupted reviews that were finished.
    finished: Vec<String>,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    log: Utf8PathBuf,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let date = date(args.date.as_deref(), cx)?;
    let writes = (args.record || cx.globals.yes) && !cx.globals.dry_run;
    let dir = &workspace.process_dir;
    let _alone = if writes { Some(lock(dir)?) } else { None };
    let (now, problems) = baseline(workspace);
    for problem in problems {
        cx.warn(err, WarningCode::RecordUnreadable, printable(&problem))?;
    }
    let (records, finished) = load(cx, &now, &date, writes, err)?;
    let index = pdca_act::index(&bundles(workspace)?, &records, IndexScope::SinceLastReview);
    let cycles: Vec<BundleId> = index.cycles.iter().map(|cycle| cycle.id.clone()).collect();
    let entry = (!cycles.is_empty()).then(|| entry(workspace, &index, &date));
    if let Some(entry) = entry.as_deref().filter(|_| writes) {
        apply(&records.record(entry, &now, &date)?)?;
    }
    let recorded = writes && entry.is_some();
    let exit = if entry.is_some() { Exit::Done } else { Exit::NothingToDo };
    if entry.is_none() {
        cx.note(err, "no cycle ended since the last review")?;
    }
    let log = dir.join(LOG);
    Ok(Response::new(LogEntry { date, cycles, entry, recorded, finished, log }, exit))
}

/// Loads the records; a caller that writes first finishes interrupted ones, whose dates are returned.
pub(super) fn load(
    cx: &Context<'_>,
    now: &Baseline,
    date: &str,
    writes: bool,
    err: &mut dyn Write,
) -> Result<(Records, Vec<String>), Failure> {
    let dir = &cx.workspace()?.process_dir;
    let records = Records::load(dir)?;
    if !writes {
        return Ok((records, Vec::new()));
    }
    let records = records.require_writable()?;
    let finished: Vec<String> =
        records.unfinished().iter().map(|entry| entry.date.clone()).collect();
    apply(&records.finish(now, date)?)?;
    for date in &finished {
        cx.note(err, &format!("finished the interrupted record of {}", printable(date)))?;
    }
    Ok((Records::load(dir)?, finished))
}

impl Report for LogEntry {
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

pub(super) fn date(given: Option<&str>, cx: &Context<'_>) -> Result<String, Failure> {
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
pub(super) fn lock(dir: &Utf8Path) -> Result<fs_err::File, Failure> {
    let failed = |error: std::io::Error| {
        Failure::from_error(Exit::Unexpected, &error)
            .at(Place::file(dir))
            .hint("make the directory writable")
    };
    fs_err::create_dir_all(dir).map_err(failed)?;
    let handle = fs_err::File::open(dir).map_err(failed)?;
    match handle.file().try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(Failure::usage("another process is recording a review right now")
                .at(Place::file(dir))
                .hint("repeat the command when that is done"))
        }
        // On a filesystem without locks it continues unlocked.
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => Ok(handle),
    }
}

pub(super) fn apply(steps: &[Step]) -> Result<(), Failure> {
    for step in steps {
        files::replace(&step.path, &step.bytes).map_err(|error| {
            Failure::from_error(Exit::Unexpected, &error)
                .at(Place::file(&*step.path))
                .hint("make room and make the directory writable, then repeat the command")
        })?;
    }
    Ok(())
}

/// Renders the entry, with the configured names of the parts of the process.
pub(super) fn entry(workspace: &Workspace, index: &Index, date: &str) -> String {
    let agents = prompts(workspace);
    let template = workspace.config.paths.templates_dir.join("brief.md.tpl");
    let places = ScaffoldPaths { template: template.as_str(), config: FILE, agents: &agents };
    scaffold(index, date, &places)
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    fn desk() -> Desk {
        let desk = Desk::new();
        desk.complete("36");
        desk.complete("41");
        desk
    }

    #[test]
    fn the_entry_is_printed_and_nothing_is_written() {
        let desk = desk();
        let before = desk.all_files();
        insta::assert_snapshot!(desk.run(&["act", "log"]), @"
        # Act review — 2026-11-16 — cycles considered: 36, 41

        ## What the cycles' records exposed

        - 2 cycles: 2 complete, 0 discontinued; 0 attempts sent back

        ## Process deltas

        - Spec template: <what changes, or none> (`templates/brief.md.tpl`)
        - Ruleset: <what changes, or none> (`<path>`)
        - Gates: <what changes, or none> (`pdca.toml`)
        - Agent files: <what changes, or none> (`pdca.toml`)
        - Orchestration: <what changes, or none> (`pdca.toml`)

        ## How effectiveness will be judged

        - Signal: <what should no longer be seen>
        ");
        assert_eq!(desk.run(&["act", "log", "--record", "--dry-run"]).exit, Exit::Done);
        assert_eq!(desk.all_files(), before);
    }

    #[test]
    fn recorded_it_is_appended_and_its_cycles_are_not_considered_again() {
        let desk = desk();
        desk.workspace.write("process/act-log.md", "# Act log\n");
        insta::assert_snapshot!(desk.run(&["act-log", "--record"]), @"
        recorded: 2 cycles in process/act-log.md: 36, 41
        next: write its process deltas, then pdca act diff
        ");
        let log = desk.workspace.read("process/act-log.md");
        assert!(
            log.starts_with("# Act log\n\n# Act review — 2026-11-16 — cycles considered: 36, 41\n"),
            "{log}"
        );
        assert_eq!(desk.workspace.read("process/.act-reviewed"), "issue_36\nissue_41\n");
        insta::assert_snapshot!(desk.run(&["act", "log", "--record"]), @"
        --- stderr
        no cycle ended since the last review
        --- exit 4
        ");
        assert_eq!(desk.workspace.read("process/act-log.md"), log);
    }

    #[test]
    fn a_record_cut_short_after_any_file_is_finished_by_the_next_one() {
        for lost in [&["act-ledger.json", ".act-reviewed"][..], &[".act-reviewed"]] {
            let desk = desk();
            assert_eq!(desk.run(&["act", "log", "--record"]).exit, Exit::Done);
            let log = desk.workspace.read("process/act-log.md");
            for file in lost {
                fs_err::remove_file(desk.workspace.path().join("process").join(file)).unwrap();
            }
            let run = desk.run(&["act", "log", "--record"]);
            assert_eq!(run.exit, Exit::NothingToDo);
            assert!(run.err.contains("finished the interrupted record of 2026-11-16"), "{run}");
            assert_eq!(desk.workspace.read("process/act-log.md"), log);
            assert_eq!(desk.workspace.read("process/.act-reviewed"), "issue_36\nissue_41\n");
            assert_eq!(
                desk.workspace.read("process/act-ledger.json").matches("\"review\":").count(),
                1
            );
        }
    }

    #[test]
    fn what_cannot_be_recorded_without_loss_is_refused_and_nothing_changes() {
        let desk = desk();
        desk.workspace.write("process/act-ledger.json", "{\"mine\": 1}\n");
        let before = desk.all_files();
        insta::assert_snapshot!(desk.run(&["act", "log", "--record"]), @"
        --- stderr
        error: process/act-ledger.json is not a ledger
          --> process/act-ledger.json
          because: not a list
        hint: mend the file, or move it away: then a new one is begun
        --- exit 2
        ");
        assert_eq!(desk.run(&["act", "log", "--record", "--date", "yesterday"]).exit, Exit::Usage);
        assert_eq!(desk.all_files(), before);
    }

    #[test]
    fn two_cannot_record_at_once() {
        let desk = desk();
        desk.workspace.write("process/act-log.md", "");
        let held = std::fs::File::open(desk.workspace.path().join("process")).unwrap();
        held.lock().unwrap();
        let run = desk.run(&["act", "log", "--record"]);
        assert_eq!(run.exit, Exit::Usage);
        assert!(run.err.contains("another process is recording"), "{run}");
    }

    #[test]
    fn scripts_get_the_entry() {
        let run = desk().run(&["act", "log", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(json["cycles"], serde_json::json!(["36", "41"]));
        assert_eq!(
            (json["kind"].as_str(), json["recorded"].as_bool()),
            (Some("act-log"), Some(false))
        );
        assert!(json["entry"].as_str().unwrap().starts_with("# Act review — 2026-11-16"));
    }
}
