//! Any records in any order: what is legal is sound, and whatever is decided can be recorded.

use proptest::prelude::*;

use super::*;

/// Records of a small world, most of which do not fit where they are put.
fn any_record() -> impl Strategy<Value = Record> {
    let bundle = || prop_oneof![Just("1"), Just("2"), Just("3")];
    let activity = prop_oneof![
        Just(Activity::Running),
        Just(Activity::Running),
        Just(Activity::Integrating),
        Just(Activity::Draining)
    ];
    let ending = prop_oneof![
        Just(BeatEnding::Finished),
        Just(BeatEnding::NoChange),
        Just(BeatEnding::Interrupted { cause: Cause::Crash })
    ];
    let result = prop_oneof![
        Just(EffectOutcome::Done),
        Just(EffectOutcome::Applied { commit: oid('a') }),
        Just(EffectOutcome::Skipped { why: String::new() }),
        Just(EffectOutcome::Conflict { paths: Vec::new() }),
        Just(EffectOutcome::Failed { cause: Cause::Git, what: String::new() })
    ];
    let verdict = prop_oneof![Just(GateVerdict::Pass), Just(GateVerdict::Fail)];
    let reason = prop_oneof![Just(Reason::Conflict), Just(Reason::Recovery)];
    let app = || "app".to_owned();
    prop_oneof![
        activity.prop_map(entered),
        (bundle(), 1u32..4, 0u32..2).prop_map(|(it, number, slot)| claimed(it, number, slot)),
        (bundle(), 1u32..4, ending).prop_map(|(it, number, how)| ended(it, number, how)),
        bundle().prop_map(|it| intent(Effect::Seal(seal(it, '1')))),
        bundle().prop_map(|it| intent(rescue(it))),
        (bundle(), prop_oneof![Just('0'), Just('a')]).prop_map(move |(it, onto)| {
            let (bundle, commit, onto) = (id(it), oid('1'), oid(onto));
            intent(Effect::Apply { target: "app".to_owned(), bundle, commit, onto })
        }),
        bundle()
            .prop_map(|it| intent(Effect::Land(Landing { bundles: vec![id(it)], ..landing() }))),
        (2u64..40, result).prop_map(|(intent, result)| outcome(intent, result)),
        bundle().prop_map(move |it| Record::Planned {
            target: app(),
            base: oid('0'),
            order: vec![id(it)]
        }),
        (bundle(), verdict).prop_map(|(it, verdict)| Record::Combined {
            target: "app".to_owned(),
            tree: oid('7'),
            gate_digest: String::new(),
            verdict,
            members: vec![id(it)]
        }),
        (proptest::option::of(bundle()), reason).prop_map(|(it, reason)| Record::Blocked {
            bundle: it.map(id),
            reason,
            evidence: String::new()
        }),
        proptest::option::of(bundle()).prop_map(|it| Record::Unblocked { bundle: it.map(id) }),
        bundle().prop_map(|it| Record::Abandoned { bundle: id(it), why: String::new() }),
        bundle().prop_map(|it| Record::Cleaned { bundle: id(it) }),
        Just(Record::Completed),
        Just(Record::Aborted { why: String::new() }),
        Just(Record::Recovery { bundle: None, phase: Phase::Land, cause: Cause::Race }),
    ]
}

/// The records that carrying out a decision writes, in order.
fn recorded(action: RecoveryAction, bundle: &BundleId, state: &RunState) -> Vec<Record> {
    let (bundle, text) = (bundle.clone(), String::new);
    let claim = state.bundles[&bundle].claim.as_ref();
    let interrupted = || Record::Ended {
        bundle: bundle.clone(),
        generation: claim.unwrap().generation,
        ending: BeatEnding::Interrupted { cause: Cause::Crash },
    };
    match action {
        RecoveryAction::Noop
        | RecoveryAction::AwaitHuman
        | RecoveryAction::AlertNoop
        | RecoveryAction::AwaitRunner => Vec::new(),
        RecoveryAction::Launch | RecoveryAction::Reclaim => vec![Record::Claimed {
            generation: state.next_generation(&bundle).unwrap(),
            bundle,
            slot: 0,
            host: None,
            base: oid('0'),
        }],
        RecoveryAction::MarkInterrupted => vec![interrupted()],
        RecoveryAction::BlockRecovery => {
            let reason = Reason::Recovery;
            let ends = state.bundles[&bundle].status == WorkstreamStatus::Running;
            let mut records: Vec<Record> = ends.then(interrupted).into_iter().collect();
            records.push(Record::Blocked { bundle: None, reason, evidence: text() });
            records
        }
        RecoveryAction::MarkAbandoned => vec![Record::Abandoned { bundle, why: text() }],
        RecoveryAction::MarkCleaned => vec![Record::Cleaned { bundle }],
    }
}

/// A state in which the run and its first bundle stand there.
fn standing(run: RunPhase, bundle: BundlePhase) -> RunState {
    let mut state = told(with(running(), [claimed("1", 1, 0)]));
    let (reason, evidence, from) = (Reason::Recovery, String::new(), Resting::Ready);
    state.phase = run;
    state.block = run.is_blocked().then(|| Block {
        reason,
        evidence: String::new(),
        from: RunPhase::Running,
    });
    let work = state.bundles.get_mut(&id("1")).unwrap();
    work.status = match bundle {
        BundlePhase::Ready => WorkstreamStatus::Ready,
        BundlePhase::Running => WorkstreamStatus::Running,
        BundlePhase::Interrupted => WorkstreamStatus::Interrupted,
        BundlePhase::Sealed => WorkstreamStatus::Sealed,
        BundlePhase::Landed => WorkstreamStatus::Landed,
        BundlePhase::Blocked => WorkstreamStatus::Blocked { reason, evidence, from },
        BundlePhase::Abandoned => WorkstreamStatus::Abandoned { why: evidence },
        BundlePhase::Cleaned => WorkstreamStatus::Cleaned,
    };
    state
}

#[test]
fn whatever_is_decided_about_any_tuple_can_be_recorded() {
    let bundle = id("1");
    let mut recordings = 0;
    for facts in crate::reconcile::all_facts() {
        let mut state = standing(facts.run, facts.bundle);
        let action = crate::reconcile::decide(facts);
        let mut records = recorded(action, &bundle, &state);
        records.push(Record::Reconciled { bundle: Some(bundle.clone()), action });
        recordings += records.len();
        for record in records {
            let (seq, epoch) = (Seq(state.last.seq.0 + 1), state.epoch);
            let entry = JournalEntry { seq, epoch, at: at(9), record };
            let taken = state.apply(&entry);
            assert_eq!(taken, Ok(()), "{facts:?} {action:?} {:?}", entry.record);
        }
    }
    assert!(recordings > 1440);
}

proptest! {
    #[test]
    fn every_legal_sequence_is_sound_at_each_step_and_a_prefix_and_the_rest_are_the_whole(
        records in proptest::collection::vec(any_record(), 1..400), cut in any::<prop::sample::Index>(),
    ) {
        let mut entries = entries()[..1].to_vec();
        let mut state = RunState::fold(&entries).unwrap().unwrap();
        for record in records {
            let seq = Seq(entries.len() as u64 + 1);
            let entry = JournalEntry { seq, epoch: Epoch::FIRST, at: at(1), record };
            let before = state.clone();
            if state.apply(&entry).is_ok() {
                require_sound(&state);
                entries.push(entry);
            } else {
                prop_assert_eq!(&state, &before, "a refused record changes nothing");
            }
        }
        let cut = 1 + cut.index(entries.len());
        let mut resumed = RunState::fold(&entries[..cut]).unwrap().unwrap();
        for entry in &entries[cut..] {
            resumed.apply(entry).unwrap();
        }
        prop_assert_eq!(resumed, state);
    }
}
