//! An event that was written is read back as it was.

use jiff::Timestamp;
use pdca_journal::events::{
    Event, EventKind, FlowTask, GatePurpose, Halt, Hold, IntegrationStep, RedEvidence, SCHEMA,
    Scope, Step, WarningCode,
};
use pdca_state::{
    BundleId, CallRecord, CostBasis, InstructionsRecord, Money, Reentry, State, Usage,
};
use proptest::prelude::*;

fn id() -> impl Strategy<Value = BundleId> {
    "[1-9][0-9]{0,4}".prop_map(|id| id.parse().expect("a number is an id"))
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        Just(Scope::Workspace),
        id().prop_map(Scope::Bundle),
        (".*", ".*").prop_map(|(target, branch)| Scope::Integration { target, branch }),
        (".*", ".*").prop_map(|(target, branch)| Scope::Base { target, branch }),
    ]
}

fn recorded(
    (text, cost, usage, interrupted): (String, Option<u64>, Option<[u64; 3]>, bool),
) -> EventKind {
    let record = CallRecord {
        call: text.clone(),
        number: 1,
        role: text.clone(),
        leaf: text.clone(),
        tried: 2,
        run: cost.map(|_| text.clone()),
        began: 7,
        protocol: text.clone(),
        transcript: usage.map(|_| text.clone()),
        shared_by: usage.map(|_| 3),
        ending: text.clone(),
        interrupted,
        duration_ms: cost,
        agent: cost.map(|_| text.clone()),
        model: usage.map(|_| text.clone()),
        instructions: usage.map(|_| InstructionsRecord {
            path: text.clone(),
            commit: cost.map(|_| text.clone()),
            sha256: text.clone(),
        }),
        session: usage.map(|_| text),
        tool_calls: cost.unwrap_or_default(),
        usage: usage.map(|[input, cached, output]| Usage { input, cached, output }),
        cost: cost.map(Money::from_micros),
        cost_basis: cost.map(|_| CostBasis::Price),
    };
    EventKind::recorded(record)
}

fn halt() -> impl Strategy<Value = Halt> {
    prop_oneof![
        Just(Halt::Unplanned),
        Just(Halt::Resolved),
        Just(Halt::AwaitingSignoff),
        Just(Halt::Complete),
        Just(Halt::Discontinued),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        halt().prop_map(Step::Halt),
        Just(Step::Close),
        Just(Step::Build),
        Just(Step::Gate),
        Just(Step::Review),
        Just(Step::Assemble),
        Just(Step::SendBack),
        Just(Step::Archive(Reentry::Do)),
        Just(Step::Archive(Reentry::Plan)),
    ]
}

fn state() -> impl Strategy<Value = State> {
    proptest::sample::select(State::ALL.to_vec())
}

fn proof() -> impl Strategy<Value = RedEvidence> {
    let texts = proptest::collection::vec(".*", 0..3);
    let text = || proptest::option::of(".*");
    (texts, any::<usize>(), text(), text()).prop_map(|(failing, failing_more, log, reproduce)| {
        RedEvidence { failing, failing_more, log, reproduce }
    })
}

fn integration_step() -> impl Strategy<Value = IntegrationStep> {
    let ids = || proptest::collection::vec(id(), 0..3);
    let texts = || proptest::collection::vec(".*", 0..3);
    prop_oneof![
        any::<u64>().prop_map(|commits| IntegrationStep::BaseMoved { commits }),
        (ids(), ".*").prop_map(|(bundles, tree)| {
            IntegrationStep::Gating { bundles, tree, purpose: GatePurpose::Confirm }
        }),
        (ids(), ".*").prop_map(|(bundles, tree)| IntegrationStep::Green { bundles, tree }),
        (ids(), ".*", texts(), texts()).prop_map(|(bundles, tree, rows, failing)| {
            IntegrationStep::Red { bundles, tree, rows, failing }
        }),
        (ids(), ".*", texts()).prop_map(|(bundles, tree, rows)| IntegrationStep::NoVerdict {
            bundles,
            tree,
            rows
        }),
        (ids(), texts()).prop_map(|(bundles, rows)| IntegrationStep::Flaky { bundles, rows }),
        (ids(), ids()).prop_map(|(red, green)| IntegrationStep::Mended { red, green }),
        (id(), ".*", ids(), ids(), texts(), texts(), texts()).prop_map(
            |(bundle, reason, partners, context, rows, failing, paths)| {
                IntegrationStep::Held { bundle, reason, partners, context, rows, failing, paths }
            }
        ),
        (id(), ".*", ".*").prop_map(|(bundle, onto, commit)| IntegrationStep::Landed {
            bundle,
            onto,
            commit
        }),
    ]
}

fn flow_task() -> impl Strategy<Value = FlowTask> {
    proptest::sample::select(FlowTask::ALL.to_vec())
}

fn of_the_pool() -> impl Strategy<Value = EventKind> {
    let holds = (id(), ".*").prop_map(|(id, why)| Hold { id, why });
    prop_oneof![
        (".*", ".*").prop_map(|(was, action)| EventKind::Recovered { was, action }),
        (any::<u64>(), any::<bool>())
            .prop_map(|(chain, resumed)| EventKind::Dispatched { chain, resumed }),
        proptest::collection::vec(holds, 0..3).prop_map(|by| EventKind::Held { by }),
        id().prop_map(|by| EventKind::Freed { by }),
        Just(EventKind::Reopened),
        (flow_task(), proptest::collection::vec(id(), 0..3))
            .prop_map(|(task, bundles)| EventKind::FlowBegan { task, bundles }),
        (flow_task(), proptest::collection::vec(id(), 0..3), proptest::option::of(".*")).prop_map(
            |(task, bundles, error)| {
                EventKind::FlowEnded { task, bundles, error, duration_ms: 7 }
            }
        ),
        proptest::collection::vec(".*", 0..3).prop_map(|outside| EventKind::Drifted { outside }),
        halt().prop_map(|halt| EventKind::Halted { halt }),
        ".*".prop_map(|error| EventKind::Failed { error }),
        ".*".prop_map(|text| EventKind::warning(WarningCode::NoRoom, text)),
        (".*", proptest::option::of(integration_step()))
            .prop_map(|(text, step)| EventKind::Integration { text, step }),
        (".*", any::<bool>()).prop_map(|(text, repeated)| EventKind::Notice {
            code: WarningCode::NoGate,
            text,
            repeated,
        }),
    ]
}

fn of_a_beat() -> impl Strategy<Value = EventKind> {
    let flags = (any::<bool>(), any::<bool>());
    prop_oneof![
        (step(), state()).prop_map(|(step, from)| EventKind::Began { step, from }),
        (step(), state(), any::<u64>())
            .prop_map(|(step, to, duration_ms)| { EventKind::Finished { step, to, duration_ms } }),
        (".*", ".*").prop_map(|(path, base)| EventKind::Checkout { path: path.into(), base }),
        any::<usize>().prop_map(|files| EventKind::Hydrated { files }),
        (".*", ".*").prop_map(|(commit, checkout)| {
            EventKind::Rescued { commit, checkout: checkout.into() }
        }),
        (".*", any::<usize>(), any::<usize>()).prop_map(|(rule_id, k, n)| EventKind::GateBegan {
            rule_id,
            k,
            n
        }),
        (".*", ".*", ".*", proof(), flags, any::<u64>()).prop_map(
            |(rule_id, result, evidence, proof, (gating, reused), duration_ms)| {
                EventKind::GateEnded {
                    rule_id,
                    result,
                    evidence,
                    proof,
                    gating,
                    reused,
                    duration_ms,
                }
            }
        ),
        (".*", any::<Option<u64>>(), any::<Option<[u64; 3]>>(), any::<bool>()).prop_map(recorded),
        (".*", any::<u32>()).prop_map(|(role, attempt)| EventKind::LeafBegan { role, attempt }),
        (".*", any::<u64>()).prop_map(|(role, wait_ms)| EventKind::LeafThrottled { role, wait_ms }),
        (".*", ".*", ".*", any::<bool>()).prop_map(|(role, ending, guard, reused)| {
            EventKind::LeafEnded { role, ending, guard, reused }
        }),
        (".*", ".*").prop_map(|(what, line)| EventKind::Alive { what, line }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let at = (0..4_000_000_000_000_i64)
        .prop_map(|at| Timestamp::from_millisecond(at).expect("a time before the year 2100"));
    let run = proptest::option::of("[0-9A-Z]{26}");
    let kind = prop_oneof![of_the_pool(), of_a_beat()];
    (any::<u64>(), at, run, scope(), proptest::option::of(any::<u32>()), kind).prop_map(
        |(seq, at, run, scope, lane, kind)| Event {
            schema: SCHEMA,
            seq,
            at,
            run,
            scope,
            lane,
            kind,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(event in event()) {
        let line = serde_json::to_string(&event).unwrap();
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }

    #[test]
    fn fields_of_a_newer_version_are_ignored(event in event()) {
        let mut fields = serde_json::to_value(&event).unwrap();
        fields["not_known_yet"] = serde_json::json!({ "a": [1] });
        prop_assert_eq!(serde_json::from_value::<Event>(fields).unwrap(), event);
    }
}

#[test]
fn a_warning_without_a_code_or_with_a_newer_one_can_be_read() {
    let line = |code: &str| {
        format!(
            r#"{{"schema":1,"seq":1,"at":"2026-11-16T12:00:00Z","scope":"bundle","id":"7","event":"warning",{code}"text":"x"}}"#
        )
    };
    let read = |code: &str| serde_json::from_str::<Event>(&line(code)).map(|event| event.kind);
    let other = EventKind::warning(WarningCode::Other, "x");
    assert_eq!(read("").unwrap(), other);
    assert_eq!(read(r#""code":"of_another_day","#).unwrap(), other);
    let known = EventKind::warning(WarningCode::NoRoom, "x");
    assert_eq!(read(r#""code":"no_room","#).unwrap(), known);
}

#[test]
fn a_call_of_an_older_log_is_read_without_what_it_does_not_say() {
    let line = r#"{"schema":1,"seq":3,"at":"2026-01-01T00:00:00Z","run":"r","scope":"bundle","id":"7",
        "event":"leaf_recorded","call":"c","number":1,"role":"builder","leaf":"builder","try":1,"ending":"exit status 0"}"#;
    let event: Event = serde_json::from_str(line).unwrap();
    let EventKind::LeafRecorded { facts } = event.kind else { panic!("{event:?}") };
    assert_eq!((facts.call.as_str(), facts.began, facts.run), ("c", 0, None));
    assert_eq!(event.run.as_deref(), Some("r"));
}
