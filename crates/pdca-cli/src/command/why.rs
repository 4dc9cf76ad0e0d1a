//! `pdca why`: explains what a bundle waits for.

mod schedule;

use std::io::Write;

use pdca_driver::BeatFailure;
use pdca_integrate::blocked_conflicts;
use pdca_state::{Artifact, Awaits, Bundle, BundleId, Coverage, Reentry, Snapshot, State};
use pdca_workspace::snapshot::{
    DependencyStatus, SnapshotEntry, WorkspaceSnapshot, blocked_bundles,
};
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::printable;

use schedule::ScheduleView;

/// The most lines of a builder's notes that are shown.
const NOTES: usize = 8;

/// Explain why a bundle is not running, and what would change that
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca why 36
  pdca why 36 --json")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: IdArg,
}

/// The reasons in sentences, and the next command.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WhyReport {
    id: String,
    state: &'static str,
    blocked_by: Vec<String>,
    reasons: Vec<String>,
    next: Option<String>,
    /// The scheduler's view; null if there is nothing to schedule.
    schedule: Option<ScheduleView>,
    #[serde(skip)]
    painted_as: State,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let bundle = cx.require_bundle(&args.id)?;
    let snapshot = bundle.load()?;
    let overview = match snapshot.state {
        // These have facts outside the bundles: where a change landed, and whether what a result stands on has changed.
        State::Complete | State::AwaitingSignoff => crate::session::snapshot_at_work(cx)?,
        State::Unplanned
        | State::Resolved
        | State::Planned
        | State::Built
        | State::Checked
        | State::Iterate(_)
        | State::Discontinued => crate::session::snapshot(cx)?,
    };
    let entry = overview.get(bundle.id());
    let mut reasons = WhyReport {
        id: snapshot.id.to_string(),
        state: snapshot.state.as_str(),
        blocked_by: entry.map_or_else(Vec::new, |entry| {
            entry.blocked_by.iter().map(|by| by.id.to_string()).collect()
        }),
        reasons: Vec::new(),
        next: None,
        schedule: None,
        painted_as: snapshot.state,
    };
    explain(cx, &bundle, &snapshot, &overview, entry, &mut reasons)?;
    for problem in &snapshot.problems {
        reasons.reasons.push(format!("{}: {}", cx.show(&problem.file), problem.what));
    }
    Ok(Response::done(reasons))
}

impl Report for WhyReport {
    const KIND: &'static str = "why";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let state = crate::render::paint(cx.out, Some(self.painted_as), self.state);
        writeln!(out, "{} is {state}", cx.out.strong(&self.id))?;
        for reason in &self.reasons {
            cx.write_wrapped(&printable(reason), "  ", out)?;
        }
        if let Some(next) = &self.next {
            writeln!(out, "next: {}", cx.out.accent(next))?;
        }
        Ok(())
    }
}

fn explain(
    cx: &Context<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    overview: &WorkspaceSnapshot,
    entry: Option<&SnapshotEntry>,
    to: &mut WhyReport,
) -> Result<(), Failure> {
    let id = &snapshot.id;
    let mut say = |text: String| to.reasons.push(text);
    let next = match snapshot.state {
        State::Unplanned => {
            if snapshot.artifacts.contains(Artifact::Brief) {
                say("its brief is a template still: the slug is missing or `<…>`".to_owned());
                Some(format!("$EDITOR {}", cx.show(&bundle.path(Artifact::Brief))))
            } else {
                say("it has no brief yet".to_owned());
                Some(format!("pdca new {id}"))
            }
        }
        State::Resolved => {
            say("the tracker says it is settled, and no cycle ran here".to_owned());
            None
        }
        State::Planned | State::Built | State::Checked | State::Iterate(_) => {
            say(work_left(snapshot));
            let failed = entry.and_then(|entry| entry.failed.as_ref());
            if let Some(failure) = failed {
                for sentence in failed_before(cx, failure)? {
                    say(sentence);
                }
            }
            let scheduled = ScheduleView::load(cx, id, overview)?;
            if let Some(entry) = entry {
                blockers(overview, entry, &scheduled, &mut say);
            }
            for sentence in scheduled.sentences() {
                say(sentence.clone());
            }
            if snapshot.state == State::Planned
                && let Ok(site) = crate::session::driver_config(cx)
            {
                next_attempt(&site, bundle, snapshot, &mut say);
            }
            let blocked = entry.filter(|entry| !entry.blocked_by.is_empty());
            let stopped = crate::session::driver_config(cx)
                .ok()
                .and_then(|site| blocked_bundles(&site).remove(id));
            // The first that applies decides. A block bars the bundle whatever else is met (decision 054), and while a
            // driver is at work there is nothing to type.
            let next = if let Some((name, evidence)) = stopped {
                say(format!("{name}: {evidence}"));
                say("it is not started until a person unblocks it".to_owned());
                Some(format!("pdca unblock {id}"))
            } else if scheduled.has_driver() {
                None
            } else if let Some(entry) = blocked {
                Some(pdca_workspace::snapshot::unblocking(overview, entry, &cx.env.cwd))
            } else if scheduled.may_start() {
                Some(format!("pdca run {id}"))
            } else if scheduled.is_left_alone() {
                entry.map(|entry| pdca_workspace::snapshot::edit_brief(entry, &cx.env.cwd))
            } else {
                None
            };
            to.schedule = Some(scheduled);
            next
        }
        State::AwaitingSignoff => {
            awaiting(cx, bundle, snapshot, &mut say)?;
            match overview.landing.stale(id) {
                Some(stale) => {
                    say(format!("stale: {}", stale.why));
                    Some(pdca_workspace::snapshot::after_stale(id, stale))
                }
                None => Some(format!("pdca show {id}")),
            }
        }
        State::Complete | State::Discontinued => {
            if let Some(signoff) = snapshot.summary.as_ref().and_then(pdca_state::Summary::signoff)
            {
                let by =
                    if signoff.by.is_empty() { "an unnamed person" } else { signoff.by.as_str() };
                say(format!("{} by {by}, {}", signoff.outcome, signoff.date));
                if let Some(note) = signoff.note {
                    say(format!("note: {note}"));
                }
            }
            accepted(cx, overview, id, &mut say)
        }
    };
    history(cx, bundle, snapshot, to)?;
    to.next = next.map(|next| cx.typed(&next));
    Ok(())
}

/// Describes the attempt that comes next: its builder and its base.
fn next_attempt(
    site: &pdca_driver::WorkspaceConfig,
    bundle: &Bundle,
    snapshot: &Snapshot,
    say: &mut dyn FnMut(String),
) {
    if !site.leaves.builder_variant.is_empty() {
        let attempt = snapshot.iterations + 1;
        let chosen = site.leaves.builder_for(snapshot.authored_brief(), attempt);
        say(format!("attempt {attempt} will be built by {chosen}"));
    }
    match pdca_driver::would_stand_on(site, bundle) {
        Ok(on) if on.is_empty() => {}
        Ok(on) => say(format!("its base will have {} beyond the branch", listed(&on))),
        // Reported with the dependencies of the bundle.
        Err(pdca_driver::BaseError::Lacks { .. }) => {}
        Err(error) => say(format!("its base cannot be made now: {error}")),
    }
}

/// Adds what was there before: the base, the notes of the builder, the last call, leftovers.
fn history(
    cx: &Context<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    to: &mut WhyReport,
) -> Result<(), Failure> {
    if let Ok(site) = crate::session::driver_config(cx)
        && let Some(on) = pdca_driver::stands_on(&site, bundle, snapshot.iterations)
    {
        to.reasons.push(format!("it stands on {on}"));
    }
    // Without a patch they are all that the builder had to say.
    if snapshot.state == State::Planned
        && let Some(notes) = bundle.read(Artifact::BuildNotes)?
    {
        let notes = String::from_utf8_lossy(&notes).into_owned();
        to.reasons.push(format!("the builder wrote in {}:", Artifact::BuildNotes.file_name()));
        let lines = notes.lines().filter(|line| !line.trim().is_empty()).take(NOTES);
        to.reasons.extend(lines.map(|line| format!("  {line}")));
    }
    let calls = bundle.calls().all()?;
    if let Some(last) = calls.last() {
        let total = pdca_state::CostTotal::of(calls.iter().map(|call| &call.record));
        let cost =
            crate::cost::total(&total).map_or_else(String::new, |cost| format!(", {cost} so far"));
        let show = cx.typed(&format!("pdca log {}", snapshot.id));
        to.reasons.push(format!(
            "last call: {} ({}){cost}; `{show}` shows it",
            last.record.leaf, last.record.ending
        ));
    }
    for name in &snapshot.leftovers {
        to.reasons.push(format!("an earlier step left {}", cx.show(&bundle.dir().join(name))));
    }
    Ok(())
}

/// Describes the state of an accepted change, and returns the next command.
fn accepted(
    cx: &Context<'_>,
    overview: &WorkspaceSnapshot,
    id: &BundleId,
    say: &mut dyn FnMut(String),
) -> Option<String> {
    let Some(mark) = overview.landing.mark(id) else {
        // With nothing sealed, the branches were not read.
        let site =
            crate::session::driver_config(cx).ok().filter(|site| !site.targets.is_empty())?;
        let bundle = site.dirs.bundles.bundle(id);
        let has_change = bundle.path(Artifact::Patch).exists();
        let is_open = overview.get(id).and_then(SnapshotEntry::state) == Some(State::Complete);
        return (has_change && is_open).then(|| pdca_workspace::snapshot::after_unsealed(&bundle));
    };
    let text = mark.text.as_deref().map_or_else(String::new, |text| format!(": {text}"));
    say(format!("{}{text}", mark.word));
    for line in mark.held.iter().flat_map(|held| crate::render::integrate::evidence(cx, held)) {
        say(line);
    }
    if mark.word != "blocked_conflict" {
        return mark.next.clone();
    }
    if let Ok(site) = crate::session::driver_config(cx) {
        for failure in blocked_conflicts(&site.queue(), id).iter().flat_map(|case| &case.failures) {
            let (attempt, what) = (failure.attempt, &failure.what);
            say(format!("attempt {attempt}: {what}; see {}", cx.show(&failure.log)));
        }
    }
    Some(format!("pdca unblock {id}"))
}

fn listed(ids: &[BundleId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Describes a failure, and its consequence for a batch.
fn failed_before(cx: &Context<'_>, failure: &BeatFailure) -> Result<Vec<String>, Failure> {
    let BeatFailure { beat, times, why, log } = failure;
    let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
    let log = log.as_ref().map_or_else(String::new, |log| format!("; see {}", cx.show(log)));
    let mut said = vec![format!("the {beat} failed {times}, last: {why}{log}")];
    let most = cx.workspace()?.config.driver.max_attempts;
    if most > 0 && failure.times >= most {
        said.push(format!(
            "a batch leaves it alone after {most} failures (`max_attempts` in [driver]); naming it tries again"
        ));
    }
    Ok(said)
}

fn work_left(snapshot: &Snapshot) -> String {
    match snapshot.state {
        State::Planned => "it is planned; the builder has not delivered a patch yet".to_owned(),
        State::Built => "it is built; the gates have not run to their end yet".to_owned(),
        State::Checked => "the gates ran; the review or the summary is still to be made".to_owned(),
        State::Iterate(Reentry::Do) => {
            "it was sent back to Do; the attempt is not archived to its end yet".to_owned()
        }
        State::Iterate(Reentry::Plan) => {
            "it was sent back to Plan; the attempt is not archived to its end yet".to_owned()
        }
        State::Unplanned
        | State::Resolved
        | State::AwaitingSignoff
        | State::Complete
        | State::Discontinued => String::new(),
    }
}

fn blockers(
    overview: &WorkspaceSnapshot,
    entry: &SnapshotEntry,
    scheduled: &ScheduleView,
    say: &mut dyn FnMut(String),
) {
    for blocker in &entry.blocked_by {
        let id = &blocker.id;
        let at = scheduled.place(id);
        say(match blocker.standing {
            DependencyStatus::In(State::Discontinued) => {
                format!("it depends on {id}{at}, which was discontinued: change `Depends on`")
            }
            DependencyStatus::In(State::Complete) => {
                format!(
                    "it depends on {id}{at}, which is accepted and has not landed: `pdca integrate`"
                )
            }
            DependencyStatus::In(state) => {
                let now = scheduled.working(id);
                let must = match blocker.awaits {
                    Awaits::Landed => ", and must have landed",
                    Awaits::Built | Awaits::Accepted => "",
                };
                format!("it depends on {id}{at}, which is {state}{now}{must}: `pdca why {id}`")
            }
            DependencyStatus::Unreadable => {
                format!("it depends on {id}{at}, which cannot be read: `pdca status {id}`")
            }
            DependencyStatus::Missing => {
                format!("it depends on {id}{at}, and there is no such bundle: `pdca new {id}`")
            }
        });
    }
    if let Some(way) = overview.cycle(&entry.id) {
        let way: Vec<&str> = way.iter().map(AsRef::as_ref).collect();
        say(format!("dependency cycle: {}; remove one `Depends on`", way.join(" → ")));
    }
    for id in &entry.conflicts_with {
        if let Some(state) =
            overview.get(id).and_then(SnapshotEntry::state).filter(|state| !state.is_terminal())
        {
            say(format!("it is never in work beside {id}, which is {state}"));
        }
    }
    for warning in &entry.warnings {
        say(format!("brief: {warning}"));
    }
}

fn awaiting(
    cx: &Context<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    say: &mut dyn FnMut(String),
) -> Result<(), Failure> {
    let Some(summary) = &snapshot.summary else { return Ok(()) };
    if let Some(flaw) = summary.unrecordable() {
        say(format!("its summary cannot be signed: {flaw}"));
    }
    match summary.open_items().len() {
        0 => say("it waits for your sign-off; nothing is open in §6".to_owned()),
        count => say(format!("it waits for your sign-off; {count} open in §6")),
    }
    for row in snapshot.gates.iter().flat_map(pdca_state::GateReport::failed_gating) {
        say(format!("gate {} failed: {}", row.check, row.path_line));
        if let Some(failing) = row.failing_tests().filter(|tests| !row.path_line.ends_with(tests)) {
            say(format!("failing: {failing}"));
        }
        if let Some(log) = &row.log {
            say(format!("log: {}", cx.show(&bundle.dir().join(log))));
        }
        if let Some(command) = &row.reproduce {
            say(format!("reproduce: {}", cx.typed(command)));
        }
    }
    if snapshot.coverage()? == Coverage::Changed {
        say("patch.diff was edited after Check: accept is refused".to_owned());
    }
    if let Some(proposal) = bundle.proposal()?.filter(|_| snapshot.state == State::AwaitingSignoff)
    {
        let proposed = pdca_workspace::review::ProposedDecision::of(&snapshot.id, proposal);
        say(format!("the sign-off leaf proposes {}; nobody has decided", proposed.action));
        say(format!("`{}` makes it your decision", cx.typed(&proposed.command)));
    }
    if snapshot.state == State::AwaitingSignoff && snapshot.is_brief_edited()? {
        say(format!(
            "brief.md was edited after Check: accept needs `--note`, or `{}` has it checked again",
            cx.typed(&format!("pdca run {}", snapshot.id))
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Desk;

    #[test]
    fn a_blocked_bundle_names_what_it_waits_for() {
        let desk = Desk::new();
        desk.awaiting("2", &["x"], "pass");
        desk.workspace.brief("4", &[]);
        desk.workspace.brief("3", &[("Depends on", "2, 99"), ("Conflicts with", "4")]);
        insta::assert_snapshot!(desk.run(&["why", "3"]), @"
        3 is PLANNED
          it is planned; the builder has not delivered a patch yet
          it depends on 2 (results/issue_3/brief.md:10), which is AWAITING_SIGNOFF: `pdca why 2`
          it depends on 99 (results/issue_3/brief.md:10), and there is no such bundle: `pdca new 99`
          it is never in work beside 4, which is PLANNED
          the batch cannot be planned until that is mended: `pdca plan`
        next: pdca show 2
        ");
        insta::assert_snapshot!(desk.run(&["why", "3", "--json"]), @r#"
        {
          "schema": 1,
          "kind": "why",
          "id": "3",
          "state": "PLANNED",
          "blocked_by": [
            "2",
            "99"
          ],
          "reasons": [
            "it is planned; the builder has not delivered a patch yet",
            "it depends on 2 (results/issue_3/brief.md:10), which is AWAITING_SIGNOFF: `pdca why 2`",
            "it depends on 99 (results/issue_3/brief.md:10), and there is no such bundle: `pdca new 99`",
            "it is never in work beside 4, which is PLANNED",
            "the batch cannot be planned until that is mended: `pdca plan`"
          ],
          "next": "pdca show 2",
          "schedule": {
            "status": "rejected",
            "waits_on": [],
            "held_by": [],
            "problems": [
              "3 depends on 99, which does not exist (results/issue_3/brief.md:10)"
            ]
          }
        }
        "#);
    }

    #[test]
    fn a_circle_of_dependencies_is_shown() {
        let desk = Desk::new();
        desk.workspace.brief("1", &[("Depends on", "2")]);
        desk.workspace.brief("2", &[("Depends on", "3")]);
        desk.workspace.brief("3", &[("Depends on", "1")]);
        assert!(desk.run(&["why", "1"]).out.contains("1 → 2 → 3 → 1"));
        desk.workspace.brief("4", &[("Depends on", "4")]);
        assert!(desk.run(&["why", "4"]).out.contains(": 4 → 4;"));
        desk.workspace.brief("5", &[("Depends on", "1")]);
        assert!(!desk.run(&["why", "5"]).out.contains("leads back"));
    }

    #[test]
    fn each_state_has_its_reason() {
        let desk = Desk::new();
        desk.workspace.brief("1", &[]);
        insta::assert_snapshot!(desk.run(&["why", "1"]), @"
        1 is PLANNED
          it is planned; the builder has not delivered a patch yet
        next: pdca run 1
        ");
        desk.workspace.write("results/issue_2/brief.md", "- **Slug:** <x>\n");
        insta::assert_snapshot!(desk.run(&["why", "2"]), @"
        2 is UNPLANNED
          its brief is a template still: the slug is missing or `<…>`
        next: $EDITOR results/issue_2/brief.md
        ");
        desk.awaiting("3", &["a", "b"], "fail");
        insta::assert_snapshot!(desk.run(&["why", "3"]), @"
        3 is AWAITING_SIGNOFF
          it waits for your sign-off; 2 open in §6
          gate C4 verified failed: 1 test
        next: pdca show 3
        ");
        desk.complete("4");
        insta::assert_snapshot!(desk.run(&["why", "4"]), @"
        4 is COMPLETE
          merged-wider by Ada, 2026-11-15
        ");
        desk.workspace.write("results/issue_5/notes.json", r#"{"resolved": {"by": "x"}}"#);
        insta::assert_snapshot!(desk.run(&["why", "5"]), @"
        5 is RESOLVED
          the tracker says it is settled, and no cycle ran here
        ");
    }

    #[test]
    fn a_bundle_held_by_a_rival_in_work_names_it_and_since_when() {
        let desk = Desk::new();
        desk.workspace.brief("1", &[("Touches", "src/*.py")]);
        desk.workspace.brief("2", &[("Touches", "src/{ab,c}.py")]);
        desk.workspace.brief("3", &[("Conflicts with", "1"), ("Touches", "web")]);
        desk.workspace.brief("4", &[("Depends on", "1"), ("Touches", "docs")]);
        desk.workspace.brief("5", &[("Touches", "src/c.py")]);
        let _work = desk.at_work(&[("1", 2, 3)]);
        insta::assert_snapshot!(desk.run(&["why", "2"]), @"
        2 is PLANNED
          it is planned; the builder has not delivered a patch yet
          it waits for 1, in work in lane 2 for 3 min (process 7): both can write `src/ab.py`
          it is never in work beside 5, which is PLANNED: both can write `src/c.py`
        ");
        insta::assert_snapshot!(desk.run(&["why", "3"]), @"
        3 is PLANNED
          it is planned; the builder has not delivered a patch yet
          it is never in work beside 1, which is PLANNED
          it waits for 1, in work in lane 2 for 3 min (process 7): they conflict (results/issue_3/brief.md:10)
        ");
        insta::assert_snapshot!(desk.run(&["why", "4"]), @"
        4 is PLANNED
          it is planned; the builder has not delivered a patch yet
          it depends on 1 (results/issue_4/brief.md:10), which is PLANNED and in work in lane 2 for 3 min (process 7): `pdca why 1`
        ");
        insta::assert_snapshot!(desk.run(&["why", "1"]), @"
        1 is PLANNED
          it is planned; the builder has not delivered a patch yet
          it is in work in lane 2 for 3 min (process 7)
        ");
        insta::assert_snapshot!(desk.run(&["why", "2", "--json"]), @r#"
        {
          "schema": 1,
          "kind": "why",
          "id": "2",
          "state": "PLANNED",
          "blocked_by": [],
          "reasons": [
            "it is planned; the builder has not delivered a patch yet",
            "it waits for 1, in work in lane 2 for 3 min (process 7): both can write `src/ab.py`",
            "it is never in work beside 5, which is PLANNED: both can write `src/c.py`"
          ],
          "next": null,
          "schedule": {
            "status": "held",
            "waits_on": [],
            "held_by": [
              {
                "id": "1",
                "rule": "overlap",
                "witness": "src/ab.py",
                "until": null,
                "holder": "process 7, lane 2",
                "lane": 2,
                "since": "2026-11-16T11:57:00Z"
              }
            ],
            "problems": []
          }
        }
        "#);
    }

    #[test]
    fn a_bundle_that_may_start_says_who_is_before_it() {
        let desk = Desk::new();
        for id in ["1", "2", "3"] {
            desk.workspace.brief(id, &[("Touches", id)]);
        }
        insta::assert_snapshot!(desk.run(&["why", "3"]), @"
        3 is PLANNED
          it is planned; the builder has not delivered a patch yet
          nothing keeps it; 2 bundles are before it in order
        next: pdca run 3
        ");
        let _work = desk.at_work(&[("1", 0, 2)]);
        insta::assert_snapshot!(desk.run(&["why", "3"]), @"
        3 is PLANNED
          it is planned; the builder has not delivered a patch yet
          it waits for a free lane; 1 bundle is before it in order
        ");
    }

    #[test]
    fn a_batch_without_a_plan_is_told_with_what_concerns_the_bundle() {
        let desk = Desk::new();
        desk.workspace.brief("1", &[("Touches", "../x"), ("Depends on", "100")]);
        desk.workspace.brief("2", &[]);
        desk.workspace.brief("101", &[]);
        insta::assert_snapshot!(desk.run(&["why", "1"]), @"
        1 is PLANNED
          it is planned; the builder has not delivered a patch yet
          it depends on 100 (results/issue_1/brief.md:11), and there is no such bundle: `pdca new 100`
          1 touches `../x`: column 1: it leaves the tree (results/issue_1/brief.md:10)
          the batch cannot be planned until that is mended: `pdca plan`
        next: pdca new 100
        ");
        insta::assert_snapshot!(desk.run(&["why", "2"]), @"
        2 is PLANNED
          it is planned; the builder has not delivered a patch yet
          other bundles keep the batch from being planned, in 2 places: `pdca plan`
        next: pdca run 2
        ");
    }

    #[test]
    fn a_bundle_that_a_person_has_is_told() {
        let desk = Desk::new();
        desk.workspace.brief("1", &[]);
        let _held = desk.held("locks/issue_1.lock", "process 9", 1);
        insta::assert_snapshot!(desk.run(&["why", "1"]), @"
        1 is PLANNED
          it is planned; the builder has not delivered a patch yet
          it is in work for 1 min (process 9)
        ");
    }
}
