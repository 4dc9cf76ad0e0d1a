use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::flow::pace::UnsignedWork;

/// The state of a bundle in a workspace that is only thought of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Draft,
    Planned,
    Unsigned,
    Accepted,
    Delivered,
}

#[derive(Default)]
struct World {
    bundles: Mutex<BTreeMap<BundleId, Stage>>,
    log: Mutex<Vec<String>>,
    max_unsigned: Option<u32>,
    fails_to_build: bool,
    /// Somebody delivers what waits, in another terminal, once a batch has looked for the last time.
    delivers_elsewhere: bool,
    batch_ended: AtomicBool,
    panics_in_delivery: bool,
    interrupted: AtomicBool,
}

impl World {
    fn new(count: u32, stage: Stage) -> Self {
        let bundles = (1..=count).map(|n| (n.to_string().parse().unwrap(), stage)).collect();
        Self { bundles: Mutex::new(bundles), ..Self::default() }
    }

    fn of(&self, stage: Stage) -> Vec<BundleId> {
        let bundles = self.bundles.lock().unwrap();
        bundles.iter().filter(|(_, at)| **at == stage).map(|(id, _)| id.clone()).collect()
    }

    fn advance(&self, ids: &[BundleId], to: Stage) {
        let mut bundles = self.bundles.lock().unwrap();
        for id in ids {
            bundles.insert(id.clone(), to);
        }
    }

    fn say(&self, text: impl Into<String>) {
        self.log.lock().unwrap().push(text.into());
    }

    fn count(&self, start: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| line.starts_with(start)).count()
    }
}

impl FlowHost for World {
    type Failure = String;

    fn facts(&self, is_building: bool) -> Result<FlowFacts, String> {
        if self.delivers_elsewhere && self.batch_ended.load(Ordering::Relaxed) {
            self.advance(&self.of(Stage::Unsigned), Stage::Delivered);
        }
        let unsigned = self.of(Stage::Unsigned);
        Ok(FlowFacts {
            drafts: self.of(Stage::Draft),
            buildable: if is_building { Vec::new() } else { self.of(Stage::Planned) },
            undelivered: self.of(Stage::Accepted),
            pace: UnsignedWork {
                unsigned: u32::try_from(unsigned.len()).unwrap(),
                max_unsigned: self.max_unsigned,
                per_hour: None,
            },
            fingerprint: format!("{:?}", self.bundles.lock().unwrap()),
            act_due: !self.of(Stage::Delivered).is_empty(),
            stuck: Vec::new(),
            unsigned,
        })
    }

    fn build(&self) -> Result<(), String> {
        self.say("build");
        if self.fails_to_build {
            return Err("red base".to_owned());
        }
        while let Some(id) = self.of(Stage::Planned).first() {
            let unsigned = u32::try_from(self.of(Stage::Unsigned).len()).unwrap();
            if self.max_unsigned.is_some_and(|max| unsigned >= max) {
                break;
            }
            self.say(format!("built {id}"));
            self.advance(std::slice::from_ref(id), Stage::Unsigned);
        }
        self.batch_ended.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn deliver(&self, ids: &[BundleId]) -> Result<(), String> {
        self.say("deliver");
        if self.panics_in_delivery {
            std::panic::panic_any("out of ink");
        }
        self.advance(ids, Stage::Delivered);
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn needs_you(&self, _: &FlowStep) {
        self.say("needs you");
    }

    fn stop(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    fn panicked(&self, said: String) -> String {
        format!("panicked: {said}")
    }
}

/// A person who does what is asked for, or nothing.
struct Diligent<'w>(&'w World);
struct Idle;

impl Person<String> for Diligent<'_> {
    fn plan(&mut self, ids: &[BundleId]) -> Result<Visit, String> {
        self.0.say("plan");
        self.0.advance(ids, Stage::Planned);
        Ok(Visit::default())
    }

    fn sign_off(&mut self, ids: &[BundleId]) -> Result<Visit, String> {
        self.0.say("sign");
        self.0.advance(&ids[..1], Stage::Accepted);
        Ok(Visit::default())
    }

    fn act(&mut self) -> Result<(), String> {
        self.0.say("act");
        Ok(())
    }
}

impl Person<String> for Idle {
    fn plan(&mut self, ids: &[BundleId]) -> Result<Visit, String> {
        Ok(Visit { left: ids.to_vec() })
    }

    fn sign_off(&mut self, _: &[BundleId]) -> Result<Visit, String> {
        Err("the leaf failed".to_owned())
    }

    fn act(&mut self) -> Result<(), String> {
        Ok(())
    }
}

fn at_terminal() -> FlowStatus {
    FlowStatus { has_terminal: true, can_plan: true, act: true, ..FlowStatus::default() }
}

#[test]
fn twelve_drafts_are_planned_built_once_signed_delivered_and_looked_back_on() {
    let world = World { max_unsigned: Some(2), ..World::new(12, Stage::Draft) };
    let report = run(&world, &mut Diligent(&world), at_terminal());
    assert_eq!((report.end, report.failures), (FlowEnd::Done, Vec::new()));
    assert_eq!(world.of(Stage::Delivered).len(), 12);
    assert_eq!((world.count("built "), world.count("sign"), world.count("act")), (12, 12, 1));
}

#[test]
fn without_a_terminal_it_goes_as_far_as_it_can_and_says_who_waits() {
    let world = World::new(3, Stage::Planned);
    let report = run(&world, &mut Idle, FlowStatus::default());
    let unsigned = world.of(Stage::Unsigned);
    assert_eq!(unsigned.len(), 3);
    let (drafts, stuck) = (Vec::new(), Vec::new());
    assert_eq!(report.end, FlowEnd::NeedsYou { drafts, unsigned, stuck, act: false });
    assert_eq!(world.count("needs you"), 1);
}

#[test]
fn a_person_who_decides_nothing_is_asked_once() {
    let world = World::new(2, Stage::Unsigned);
    let report = run(&world, &mut Idle, at_terminal());
    assert_eq!(report.failures, ["the leaf failed"]);
    assert!(matches!(report.end, FlowEnd::NeedsYou { ref unsigned, .. } if unsigned.len() == 2));
}

#[test]
fn a_batch_that_cannot_go_on_is_not_begun_again_and_the_rest_goes_on() {
    let world = World { fails_to_build: true, ..World::new(2, Stage::Planned) };
    world.advance(&["9".parse().unwrap()], Stage::Unsigned);
    let report = run(&world, &mut Diligent(&world), at_terminal());
    assert_eq!(report.failures, ["red base"]);
    assert_eq!((world.count("build"), world.count("deliver")), (1, 1));
}

#[test]
fn a_decision_between_the_end_of_a_batch_and_the_next_look_is_no_reason_to_stop() {
    let held = World { max_unsigned: Some(2), ..World::new(3, Stage::Planned) };
    let world = World { delivers_elsewhere: true, ..held };
    let report = run(&world, &mut Idle, FlowStatus::default());
    assert_eq!((report.end, report.failures), (FlowEnd::Done, Vec::new()));
    assert_eq!((world.of(Stage::Delivered).len(), world.count("built ")), (3, 3));
}

#[test]
fn a_panic_of_a_track_is_a_failure_and_no_hang() {
    let world = World { panics_in_delivery: true, ..World::new(1, Stage::Accepted) };
    let report = run(&world, &mut Idle, at_terminal());
    assert_eq!(report.failures, ["panicked: out of ink"]);
    assert_eq!(world.count("deliver"), 1);
}

#[test]
fn an_interrupt_begins_nothing() {
    let world = World::new(3, Stage::Planned);
    world.stop();
    let report = run(&world, &mut Diligent(&world), at_terminal());
    assert_eq!((report.end, report.steps), (FlowEnd::Interrupted, 0));
    assert_eq!(world.of(Stage::Planned).len(), 3);
}
