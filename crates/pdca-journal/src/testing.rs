//! A temporary workspace for unit tests, and the records of a complete run.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::BundleId;

use crate::admission::Admission;
use crate::claim::{Epoch, Generation};
use crate::journal::{Journal, OpenError, Opened};
use crate::object_id::ObjectId;
use crate::process::{HostScope, ProcessIdentity};
use crate::reconcile::RecoveryAction;
use crate::record::{
    Activity, Admitted, BeatEnding, Cause, Effect, EffectOutcome, GateVerdict, InboxRequest,
    JournalEntry, Landing, Phase, Reason, Record, RunTarget, Seal, Seq,
};
use crate::run_id::RunId;
use crate::runs::Runs;
use crate::timestamp::Moment;

/// A temporary workspace with one run id.
pub(crate) struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.dir.path()).unwrap()
    }

    pub(crate) fn runs(&self) -> Runs {
        Runs::new(self.path().join("runs"))
    }

    pub(crate) fn journal_path(&self) -> Utf8PathBuf {
        self.runs().dir(&run()).join("journal")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs_err::read(self.journal_path()).unwrap()
    }

    pub(crate) fn admission(&self) -> Admission {
        Admission::take([self.path().join("lock")]).unwrap()
    }

    /// Like [`Scene::open`], but takes the run from a live driver.
    pub(crate) fn take_over(&self, epoch: u64) -> Journal {
        let (runs, epoch) = (self.runs(), Epoch::new(epoch));
        let admission = Admission::take_over([self.path().join("lock")]).unwrap();
        Journal::open(&runs, &admission, &run(), epoch, at(2), process(), true).unwrap().journal
    }

    /// A journal with only the admission.
    pub(crate) fn create(&self) -> Journal {
        let admission = self.admission();
        Journal::create(&self.runs(), &admission, &run(), Epoch::FIRST, at(0), admitted()).unwrap()
    }

    /// A journal with all records of [`story`].
    pub(crate) fn told(&self) -> Journal {
        let mut journal = self.create();
        for batch in story() {
            journal.append(at(1), batch).unwrap();
        }
        journal
    }

    pub(crate) fn open(&self, epoch: u64) -> Result<Opened, OpenError> {
        let (runs, admission, epoch) = (self.runs(), self.admission(), Epoch::new(epoch));
        Journal::open(&runs, &admission, &run(), epoch, at(2), process(), false)
    }
}

pub(crate) fn run() -> RunId {
    RunId::new("2026-11-16T08:00:00Z".parse().unwrap(), [7; 10])
}

pub(crate) fn at(seconds: u64) -> Moment {
    let start: jiff::Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
    let uptime = Duration::from_secs(seconds);
    Moment { wall: start.saturating_add(uptime).unwrap(), uptime }
}

pub(crate) fn process() -> ProcessIdentity {
    let place = HostScope { host: "h".to_owned(), boot: "b1".to_owned(), namespace: 1, user: 1000 };
    ProcessIdentity { place, pid: 12, start: 34 }
}

pub(crate) fn id(text: &str) -> BundleId {
    text.parse().unwrap()
}

pub(crate) fn oid(digit: char) -> ObjectId {
    crate::object_id::parse(&digit.to_string().repeat(40)).unwrap()
}

pub(crate) fn generation(number: u32) -> Generation {
    (1..number).fold(Generation::FIRST, |it, _| it.next().unwrap())
}

pub(crate) fn admitted() -> Admitted {
    Admitted {
        driver: process(),
        targets: vec![RunTarget { name: "app".to_owned(), common_dir: "app/.git".into() }],
        batch: ["1", "2", "3"].map(id).into(),
        config_digest: "c0ffee".to_owned(),
        lanes: 2,
    }
}

pub(crate) fn claimed(bundle: &str, number: u32, slot: u32) -> Record {
    let (bundle, generation, base) = (id(bundle), generation(number), oid('0'));
    Record::Claimed { bundle, generation, slot, host: None, base }
}

pub(crate) fn ended(bundle: &str, number: u32, ending: BeatEnding) -> Record {
    Record::Ended { bundle: id(bundle), generation: generation(number), ending }
}

pub(crate) fn seal(bundle: &str, head: char) -> Seal {
    Seal {
        bundle: id(bundle),
        base: oid('0'),
        head: oid(head),
        tree: oid('e'),
        commits: vec![oid(head)],
        gate_digest: "9a7e".to_owned(),
    }
}

pub(crate) fn intent(effect: Effect) -> Record {
    Record::Intent { effect }
}

/// An effect that is legal whenever the bundle is at rest.
pub(crate) fn rescue(bundle: &str) -> Effect {
    let reference = format!("refs/pdca/x/rescue/{bundle}.g2");
    Effect::Rescue { bundle: id(bundle), reference }
}

pub(crate) fn outcome(intent: u64, outcome: EffectOutcome) -> Record {
    Record::Outcome { intent: Seq(intent), outcome }
}

pub(crate) fn entered(activity: Activity) -> Record {
    Record::Entered { activity }
}

/// The records of a run of three bundles after its admission, in batches that are synced together.
pub(crate) fn story() -> Vec<Vec<Record>> {
    let landing = Landing {
        target: "app".to_owned(),
        reference: "refs/heads/main".to_owned(),
        old: oid('0'),
        new: oid('a'),
        tree: oid('7'),
        bundles: vec![id("1")],
    };
    let apply = |bundle: &str, commit: char, onto: char| Effect::Apply {
        target: "app".to_owned(),
        bundle: id(bundle),
        commit: oid(commit),
        onto: oid(onto),
    };
    let judged = Record::Judged {
        bundle: id("1"),
        generation: generation(1),
        step: "C4".to_owned(),
        verdict: GateVerdict::Pass,
    };
    let started =
        Record::Started { bundle: id("1"), generation: generation(1), process: process() };
    let done = |intent| outcome(intent, EffectOutcome::Done);
    let recovery =
        Record::Recovery { bundle: Some(id("2")), phase: Phase::Attempt, cause: Cause::Spawn };
    let request = InboxRequest::Unblock { bundle: None, note: Some("mended".to_owned()) };
    vec![
        vec![intent(rescue("1"))],                    // 2
        vec![done(2), entered(Activity::Running)],    // 3, 4
        vec![claimed("1", 1, 0), claimed("2", 1, 1)], // 5, 6
        vec![started, judged],                        // 7, 8
        vec![Record::LeafCalled { bundle: id("1"), role: "builder".to_owned() }], // 9
        vec![
            ended("1", 1, BeatEnding::Finished), // 10
            ended("2", 1, BeatEnding::Interrupted { cause: Cause::Spawn }), // 11
            recovery,                            // 12
            claimed("2", 2, 1),                  // 13
        ],
        vec![ended("2", 2, BeatEnding::NoChange)],  // 14
        vec![intent(Effect::Seal(seal("1", '1')))], // 15
        vec![done(15), entered(Activity::Integrating)], // 16, 17
        vec![
            Record::Planned { target: "app".to_owned(), base: oid('0'), order: vec![id("1")] }, // 18
            intent(apply("1", '1', '0')), // 19
        ],
        vec![outcome(19, EffectOutcome::Applied { commit: oid('a') })], // 20
        vec![Record::Combined {
            target: "app".to_owned(),
            tree: oid('7'),
            gate_digest: "9a7e".to_owned(),
            verdict: GateVerdict::Pass,
            members: vec![id("1")],
        }], // 21
        vec![intent(Effect::Land(landing))],                            // 22
        vec![done(22)],                                                 // 23
        vec![Record::Blocked {
            bundle: None,
            reason: Reason::Recovery,
            evidence: "branch \u{9b} moved".to_owned(),
        }], // 24
        vec![Record::Requested { id: run().to_string(), request }],     // 25
        vec![
            Record::Unblocked { bundle: None },                        // 26
            Record::Answered { id: run().to_string(), refusal: None }, // 27
        ],
        vec![entered(Activity::Draining)], // 28
        vec![
            Record::Abandoned { bundle: id("2"), why: "no change".to_owned() }, // 29
            Record::Abandoned { bundle: id("3"), why: "never begun".to_owned() }, // 30
        ],
        vec![intent(rescue("1")), intent(rescue("2"))], // 31, 32
        vec![done(31), done(32)],                       // 33, 34
        vec![Record::Reconciled { bundle: Some(id("1")), action: RecoveryAction::MarkCleaned }], // 35
        ["1", "2", "3"].map(|bundle| Record::Cleaned { bundle: id(bundle) }).into(), // 36-38
        vec![Record::Completed],                                                     // 39
    ]
}

/// The admission and the records of [`story`] as entries.
pub(crate) fn entries() -> Vec<JournalEntry> {
    let records = std::iter::once(Record::Admitted(admitted())).chain(story().concat());
    (1..)
        .zip(records)
        .map(|(seq, record)| JournalEntry {
            seq: Seq(seq),
            epoch: Epoch::FIRST,
            at: at(seq),
            record,
        })
        .collect()
}
