//! What a run records of attempts, and when it ends.

use super::*;
use crate::testing::{Scene, clock};

#[test]
fn an_end_counts_against_the_bundle_only_if_the_bundle_caused_it() {
    let io = || std::io::Error::other("x");
    let by = |cause| BeatEnding::Interrupted { cause };
    let failed = |what: &str| BeatEnding::Failed { what: what.to_owned() };
    let table = [
        (BeatError::Interrupted, by(Cause::Crash), Phase::Attempt),
        (BeatError::Panicked { said: "x".into() }, by(Cause::Crash), Phase::Attempt),
        (BeatError::Own(io()), by(Cause::Host), Phase::Attempt),
        (BeatError::Checkout(CheckoutError::Record(io())), by(Cause::Host), Phase::Prepare),
        (BeatError::NoChange { log: "l".into() }, BeatEnding::NoChange, Phase::Attempt),
        (BeatError::EmptyPatch, failed("patch.diff changes nothing"), Phase::Attempt),
        (
            BeatError::Blocked { evidence: "no disk".into() },
            failed("it was blocked: no disk"),
            Phase::Attempt,
        ),
    ];
    for (error, expected, in_phase) in table {
        let result = Err(error);
        assert_eq!((ending(&result), phase(&result)), (expected, in_phase), "{result:?}");
    }
    let halt = pdca_journal::events::Halt::AwaitingSignoff;
    let done = Ok(BundleEnd { halt, steps: 4, red: true });
    assert_eq!(ending(&done), BeatEnding::Finished);
}

#[test]
fn a_bundle_that_is_gone_or_waits_for_a_person_leaves_nothing_for_a_driver() {
    let scene = crate::testing::Scene::planned();
    let bundles = &scene.config.dirs.bundles;
    assert!(can_go_on(bundles, scene.bundle().id()));
    assert!(!can_go_on(bundles, &"8".parse().unwrap()), "there is no such bundle");
    scene.driver().run_bundle(&scene.bundle()).unwrap();
    assert!(!can_go_on(bundles, scene.bundle().id()), "it is at its sign-off");
    fs_err::write(scene.bundle().path(pdca_state::Artifact::Summary), b"\xff").unwrap();
    assert!(can_go_on(bundles, scene.bundle().id()), "it cannot be read");
}

const BASE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn host_fault() -> Result<BundleEnd, BeatError> {
    Err(BeatError::Own(std::io::Error::other("disk full")))
}

fn checkout_fault() -> Result<BundleEnd, BeatError> {
    Err(BeatError::Checkout(CheckoutError::Record(std::io::Error::other("disk full"))))
}

fn finished() -> BundleEnd {
    BundleEnd { halt: pdca_journal::events::Halt::AwaitingSignoff, steps: 4, red: false }
}

/// Claims the bundle once and records this end.
fn attempt(run: &Run, id: &BundleId, result: &Result<BundleEnd, BeatError>) {
    run.claim(id, 0, BASE).unwrap();
    run.ended(id, result).unwrap();
}

#[test]
fn a_bundle_that_this_driver_holds_is_not_claimed_again() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    run.claim(&id, 0, BASE).unwrap();
    run.claim(&id, 1, BASE).unwrap();
    let claim = run.state().bundles[&id].claim.clone().unwrap();
    assert_eq!((claim.generation, claim.slot), (Generation::FIRST, 0));
}

#[test]
fn each_attempt_has_a_generation_and_a_branch_of_its_own() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    assert_eq!(run.branch(&id), None, "nothing is claimed");
    run.claim(&id, 0, BASE).unwrap();
    let first = (run.generation_of(&id), run.branch(&id));
    run.ended(&id, &Err(BeatError::Interrupted)).unwrap();
    assert_eq!(run.branch(&id), None, "the attempt is over");
    run.claim(&id, 0, BASE).unwrap();
    assert_eq!(run.generation_of(&id).map(Generation::get), Some(2));
    assert_ne!(run.branch(&id), first.1);
}

#[test]
fn a_bundle_outside_the_run_leaves_no_trace_in_it() {
    let scene = Scene::planned();
    let (run, other) = (scene.begin(&["7"]).run, "8".parse().unwrap());
    let before = run.state();
    run.claim(&other, 0, BASE).unwrap();
    run.leaf_called(&other, "builder", None).unwrap();
    run.judged(&other, [("T3".to_owned(), GateVerdict::Pass)]).unwrap();
    run.ended(&other, &host_fault()).unwrap();
    assert_eq!(run.state(), before);
}

#[test]
fn lanes_that_ask_at_the_same_time_do_not_exceed_the_limit_on_calls() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    let start = std::sync::Barrier::new(8);
    let call = || {
        start.wait();
        run.leaf_called(&id, "builder", Some(3)).is_ok()
    };
    let allowed = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).filter(|is_allowed| *is_allowed).count()
    });
    assert_eq!((allowed, run.leaf_calls()), (3, 3));
}

#[test]
fn a_stop_by_a_signal_never_spends_an_attempt() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    for _ in 0..3 * RetryLimits::default().attempts {
        attempt(&run, &id, &Err(BeatError::Interrupted));
    }
    assert_eq!(run.block_of(&id), None);
}

#[test]
fn faults_of_the_machine_in_a_row_block_the_bundle_with_the_last_reason() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    let most = RetryLimits::default().attempts;
    for tried in 1..=most {
        assert_eq!(run.block_of(&id), None, "before attempt {tried}");
        attempt(&run, &id, &host_fault());
    }
    let block = run.block_of(&id).unwrap();
    assert!(block.starts_with(&format!("tried {most} times")), "{block}");
    assert!(block.ends_with("disk full"), "{block}");
}

#[test]
fn a_finished_attempt_forgets_the_faults_before_it() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    let but_one = RetryLimits::default().attempts - 1;
    (0..but_one).for_each(|_| attempt(&run, &id, &host_fault()));
    attempt(&run, &id, &Ok(finished()));
    (0..but_one).for_each(|_| attempt(&run, &id, &host_fault()));
    assert_eq!(run.block_of(&id), None);
}

#[test]
fn a_checkout_that_was_removed_in_use_blocks_at_once() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    let lost = CheckoutError::Lost { path: "/lanes/lane-0/app".into() };
    attempt(&run, &id, &Err(BeatError::Checkout(lost)));
    let block = run.block_of(&id).unwrap();
    assert!(block.contains("/lanes/lane-0/app"), "{block}");
}

#[test]
fn a_block_is_lifted_once_and_the_bundle_may_be_claimed_again() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    let lost = CheckoutError::Lost { path: "/x".into() };
    attempt(&run, &id, &Err(BeatError::Checkout(lost)));
    let name = RunId::generate(clock().wall).unwrap();
    assert!(run.unblock(&name, Some(&id), None).unwrap());
    assert!(!run.unblock(&name, Some(&id), None).unwrap(), "it is not blocked any more");
    assert_eq!(run.block_of(&id), None);
    run.claim(&id, 0, BASE).unwrap();
    assert_eq!(run.generation_of(&id).map(Generation::get), Some(2));
}

#[test]
fn a_run_ends_only_when_no_bundle_of_it_can_go_on() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    run.claim(&id, 0, BASE).unwrap();
    assert!(!run.finish().unwrap(), "it runs");
    run.ended(&id, &Err(BeatError::Interrupted)).unwrap();
    assert!(!run.finish().unwrap(), "its files say that there is work");
    scene.driver().run_bundle(&scene.bundle()).unwrap();
    assert!(run.finish().unwrap(), "its files say that it waits for its sign-off");
    assert!(!run.state().is_active());
}

#[test]
fn a_driver_that_died_in_an_attempt_was_cut_short_and_one_that_was_stopped_was_not() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    assert!(!was_cut_short(&run.state()));
    run.claim(&id, 0, BASE).unwrap();
    assert!(was_cut_short(&run.state()));
    run.ended(&id, &Err(BeatError::Interrupted)).unwrap();
    assert!(!was_cut_short(&run.state()));
}

/// A run whose driver died in an attempt, taken up by the next one.
fn resumed(scene: &Scene) -> Begun {
    let first = scene.begin(&["7"]);
    let name = first.run.id();
    first.run.claim(scene.bundle().id(), 0, BASE).unwrap();
    drop(first);
    let again = scene.begin(&["7"]);
    assert_eq!((again.resumed, again.run.id()), (true, name));
    again
}

#[test]
fn the_same_batch_resumes_a_run_that_was_left_and_its_claim_is_over() {
    let scene = Scene::planned();
    fs_err::create_dir_all(scene.config.lanes.root.join("lane-0")).unwrap();
    let again = resumed(&scene);
    let status = &again.run.state().bundles[scene.bundle().id()].status;
    assert_eq!(*status, WorkstreamStatus::Interrupted);
    let actions: Vec<_> = again.recovered.iter().map(|one| one.action).collect();
    assert!(actions.contains(&pdca_journal::RecoveryAction::MarkInterrupted), "{actions:?}");
}

#[test]
fn a_claimed_lane_that_is_gone_when_the_run_is_resumed_is_left_to_a_person() {
    let scene = Scene::planned();
    let again = resumed(&scene);
    let block = again.run.block_of(scene.bundle().id()).unwrap();
    assert!(block.starts_with("its checkout is absent"), "{block}");
}

#[test]
fn another_batch_ends_a_run_that_was_left_and_takes_its_blocks_over() {
    let scene = Scene::planned();
    scene.workspace.brief("8", &[]);
    let first = scene.begin(&["7"]);
    let (name, id) = (first.run.id(), scene.bundle().id().clone());
    let lost = CheckoutError::Lost { path: "/x".into() };
    attempt(&first.run, &id, &Err(BeatError::Checkout(lost)));
    let block = first.run.block_of(&id);
    drop(first);
    let other = scene.begin(&["8"]);
    assert!(!other.resumed);
    assert_ne!(other.run.id(), name);
    assert_eq!(other.run.block_of(&id), block);
    let old = scene.config.dirs.runs().find(&name).found.unwrap().state;
    assert!(!old.is_active());
}

#[test]
fn a_resumed_run_may_have_more_lanes_than_it_began_with() {
    let scene = Scene::planned();
    let id = scene.bundle().id().clone();
    let with = |lanes| Run::begin(&scene.config, std::slice::from_ref(&id), lanes, clock);
    drop(with(1).unwrap());
    let again = with(4).unwrap();
    assert!(again.resumed);
    again.run.claim(&id, 3, BASE).unwrap();
}

#[test]
fn an_abort_whose_driver_died_is_carried_out_by_the_next_one() {
    let scene = Scene::planned();
    let first = scene.begin(&["7"]).run;
    let request = InboxRequest::Abort { why: "enough".to_owned() };
    let name = RunId::generate(clock().wall).unwrap();
    let inbox = Inbox::new(&scene.config.dirs.runs(), &first.id());
    inbox.drop_request(&name, &request).unwrap();
    assert_eq!(first.requests().unwrap(), std::slice::from_ref(&request));
    drop(first);
    let next = scene.begin(&["7"]).run;
    assert_eq!(next.requests().unwrap(), [request]);
    next.abort(&scene.config, "enough").unwrap();
    let state = next.state();
    assert!(state.requests.is_empty() && state.answered.contains(name.as_str()));
}

#[test]
fn a_finished_attempt_forgets_the_checkouts_that_could_not_be_had() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    let but_one = RetryLimits::default().attempts - 1;
    (0..but_one).for_each(|_| attempt(&run, &id, &checkout_fault()));
    attempt(&run, &id, &Ok(finished()));
    (0..but_one).for_each(|_| attempt(&run, &id, &checkout_fault()));
    assert_eq!(run.block_of(&id), None);
}

#[test]
fn an_unblocked_bundle_has_all_its_attempts_again() {
    for fault in [host_fault, checkout_fault] {
        let scene = Scene::planned();
        let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
        let most = RetryLimits::default().attempts;
        (0..most).for_each(|_| attempt(&run, &id, &fault()));
        let name = RunId::generate(clock().wall).unwrap();
        assert!(run.unblock(&name, Some(&id), None).unwrap());
        (1..most).for_each(|_| attempt(&run, &id, &fault()));
        assert_eq!(run.block_of(&id), None);
    }
}

#[test]
fn a_run_with_too_many_faults_in_total_blocks_although_each_was_followed_by_a_success() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    let most = RetryLimits::default().absolute;
    for faults in 1..=most {
        assert_eq!(run.block_of(&id), None, "before fault {faults}");
        run.ended(&id, &host_fault()).unwrap();
        if faults < most {
            attempt(&run, &id, &Ok(finished()));
        }
    }
    let block = run.block_of(&id).unwrap();
    assert!(block.starts_with(&format!("the run had {most} faults")), "{block}");
    run.claim(&id, 0, BASE).unwrap();
    run.ended(&id, &Err(BeatError::Interrupted)).unwrap();
    assert_eq!(run.block_of(&id), None, "a stop by a signal is no fault");
}

#[test]
fn only_a_second_fault_of_the_machine_makes_a_bundle_wait_and_longer_each_time() {
    let scene = Scene::planned();
    let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
    let boot = pdca_journal::HostScope::here().unwrap().boot;
    let left = || {
        let now = Now { at: clock(), boot: &boot };
        pauses(&run.state(), now).get(&id).map(|pause| (pause.attempts, pause.left))
    };
    attempt(&run, &id, &host_fault());
    assert_eq!(left(), None);
    attempt(&run, &id, &host_fault());
    let (two, short) = left().unwrap();
    attempt(&run, &id, &host_fault());
    let (three, long) = left().unwrap();
    assert_eq!((two, three), (2, 3));
    assert!(long > short, "{long:?} after {short:?}");
}
