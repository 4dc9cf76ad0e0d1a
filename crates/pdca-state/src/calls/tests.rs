use proptest::prelude::*;

use super::*;
use crate::testing::{BRIEF, Scene};
use crate::{Reentry, State, archive_auto, archive_plan};

fn record(call: &str, micros: Option<u64>) -> CallRecord {
    CallRecord {
        call: call.to_owned(),
        number: 1,
        role: "builder".to_owned(),
        leaf: "builder".to_owned(),
        tried: 1,
        run: None,
        began: 0,
        duration_ms: Some(10),
        ending: "exit status 0".to_owned(),
        interrupted: false,
        agent: Some("claude".to_owned()),
        protocol: "claude".to_owned(),
        model: None,
        instructions: None,
        session: None,
        tool_calls: 0,
        usage: Some(Usage { input: 5, cached: 2, output: 1 }),
        cost: micros.map(Money::from_micros),
        cost_basis: micros.map(|_| CostBasis::Told),
        transcript: Some("01-builder.log".to_owned()),
        shared_by: None,
    }
}

fn planned(scene: &Scene) -> Bundle {
    scene.bundle("72", &[("brief.md", BRIEF)])
}

fn names(bundle: &Bundle) -> Vec<(u32, String)> {
    bundle.calls().all().unwrap().into_iter().map(|call| (call.attempt, call.record.call)).collect()
}

#[test]
fn a_call_is_kept_once_however_often_it_is_told() {
    let scene = Scene::new();
    let bundle = planned(&scene);
    let one = record("a", Some(5));
    assert!(bundle.calls().keep(&one, Some(b"said")).unwrap());
    assert!(!bundle.calls().keep(&one, Some(b"said")).unwrap());
    assert_eq!(names(&bundle), [(1, "a".to_owned())]);
    let calls = bundle.calls().all().unwrap();
    assert_eq!(
        bundle.calls().read_transcript(&calls[0]).unwrap().as_deref(),
        Some(b"said".as_slice())
    );
}

#[test]
fn calls_are_archived_with_their_attempt_and_stay_in_the_sum() {
    let scene = Scene::new();
    let bundle = planned(&scene);
    bundle.publish(Artifact::Patch, b"patch").unwrap();
    bundle.calls().keep(&record("a", Some(5)), Some(b"first")).unwrap();
    archive_auto(&bundle, &["T3 failed".to_owned()]).unwrap().apply().unwrap();
    assert!(!bundle.path(Artifact::Logs).exists());
    // A driver that died after the archive tells it again.
    assert!(!bundle.calls().keep(&record("a", Some(5)), Some(b"first")).unwrap());
    bundle.calls().keep(&record("b", Some(7)), Some(b"second")).unwrap();
    assert_eq!(names(&bundle), [(1, "a".to_owned()), (2, "b".to_owned())]);
    assert_eq!(bundle.calls().cost().unwrap().cost, Money::from_micros(12));
    let calls = bundle.calls().all().unwrap();
    assert_eq!(
        bundle.calls().read_transcript(&calls[0]).unwrap().as_deref(),
        Some(b"first".as_slice())
    );
}

#[test]
fn logs_change_no_state_and_no_digest() {
    for files in [&[][..], &[("brief.md", BRIEF)], &[("brief.md", BRIEF), ("patch.diff", "p")]] {
        let scene = Scene::new();
        let bundle = scene.bundle("72", files);
        let before = (bundle.load().unwrap().state, bundle.digest().unwrap());
        bundle.calls().keep(&record("a", None), Some(b"said")).unwrap();
        assert_eq!((bundle.load().unwrap().state, bundle.digest().unwrap()), before, "{files:?}");
    }
}

#[test]
fn a_line_that_a_crash_tore_is_not_counted_and_tears_no_other() {
    let scene = Scene::new();
    let bundle = planned(&scene);
    bundle.calls().keep(&record("a", Some(1)), None).unwrap();
    let ledger = bundle.path(Artifact::Logs).join(LEDGER);
    let mut text = fs_err::read_to_string(&ledger).unwrap();
    text.push_str(&text.clone()[..20]);
    fs_err::write(&ledger, text).unwrap();
    assert_eq!(names(&bundle), [(1, "a".to_owned())]);
    bundle.calls().keep(&record("b", Some(2)), None).unwrap();
    assert_eq!(names(&bundle), [(1, "a".to_owned()), (1, "b".to_owned())]);
}

#[test]
fn a_record_that_names_a_file_elsewhere_shows_none() {
    let scene = Scene::new();
    let bundle = planned(&scene);
    let away = CallRecord { transcript: Some("../brief.md".to_owned()), ..record("a", None) };
    bundle.calls().keep(&away, None).unwrap();
    assert_eq!(bundle.calls().read_transcript(&bundle.calls().all().unwrap()[0]).unwrap(), None);
}

#[test]
fn the_last_session_of_a_role_is_found_over_the_archive() {
    let scene = Scene::new();
    let bundle = planned(&scene);
    assert_eq!(last_session(&bundle, "builder").unwrap(), None);
    let session = |name: &str| Some(name.to_owned());
    bundle.publish(Artifact::Patch, b"patch").unwrap();
    for (call, role, name) in
        [("a", "builder", session("s1")), ("b", "reviewer", session("r1")), ("c", "builder", None)]
    {
        let one = CallRecord { role: role.to_owned(), session: name, ..record(call, None) };
        bundle.calls().keep(&one, None).unwrap();
    }
    archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap();
    assert_eq!(bundle.load().unwrap().state, State::Planned);
    let found = last_session(&bundle, "builder").unwrap().unwrap();
    assert_eq!((found.session.as_str(), found.attempt), ("s1", 1));
}

#[test]
fn a_total_says_what_it_does_not_know() {
    let total = |costs: &[Option<u64>]| {
        let records: Vec<CallRecord> = costs.iter().map(|cost| record("x", *cost)).collect();
        CostTotal::of(&records).words()
    };
    assert_eq!(total(&[]), None);
    assert_eq!(total(&[None]), None);
    assert_eq!(total(&[Some(1_500_000)]).as_deref(), Some("$1.50"));
    let some = total(&[Some(1_500_000), None]);
    assert_eq!(some.as_deref(), Some("$1.50 (1 of 2 calls told no cost)"));
}

proptest! {
    /// Drivers that die and tell their calls again, in any order, and archives in between.
    #[test]
    fn the_sum_over_the_ledger_is_that_over_the_calls(told in prop::collection::vec((0_u8..6, any::<bool>()), 0..20)) {
        let scene = Scene::new();
        let bundle = planned(&scene);
        let mut calls = std::collections::BTreeMap::new();
        for (call, archives) in told {
            let micros = u64::from(call) * 1_000 + 1;
            calls.insert(call, micros);
            bundle.calls().keep(&record(&call.to_string(), Some(micros)), None).unwrap();
            if archives {
                bundle.publish(Artifact::Patch, b"patch").unwrap();
                archive_auto(&bundle, &[]).unwrap().apply().unwrap();
            }
        }
        let total = bundle.calls().cost().unwrap();
        prop_assert_eq!(total.cost.micros(), calls.values().sum::<u64>());
        prop_assert_eq!(total.calls, calls.len() as u64);
    }
}

#[test]
fn the_parts_of_a_shared_call_are_the_whole_of_it() {
    for (cost, of) in [(0, 1), (1, 3), (10, 3), (1_000_001, 7), (5, 9)] {
        let usage = Some(Usage { input: cost, cached: cost / 2, output: 1 });
        let whole = CallRecord { usage, duration_ms: Some(cost), ..record("a", Some(cost)) };
        let parts: Vec<CallRecord> = (0..of).map(|place| whole.part(place, of)).collect();
        let (sum, all) = (CostTotal::of(&parts), CostTotal::of([&whole]));
        assert_eq!((sum.cost, sum.usage, sum.duration_ms), (all.cost, all.usage, all.duration_ms));
        let names: std::collections::BTreeSet<&str> =
            parts.iter().map(|part| part.call.as_str()).collect();
        assert_eq!(names.len(), parts.len());
        assert_eq!(parts[0].shared_by, (of > 1).then_some(of));
    }
}
