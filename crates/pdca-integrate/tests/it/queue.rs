//! The queue over real git, with a gate that is a table: no gate runs a process.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{
    AcceptedChange, BootMoment, ChangeState, CombinationGate, CombinationGates, ConflictOutcome,
    ConflictState, Due, Fence, GateJob, GateRuling, GateRunError, HeldBack, HeldReason,
    IntegrateError, Integrated, IntegrationNotice, IntegrationRequest, IntegrationTally, Land,
    LandError, Light, NextAction, ObjectId, QueueContext, QueueSettings, QueueWorkspace,
    ResolveRequest, Sealed, Staging, Store, TargetBranch, TargetBranches, TargetSpec,
    WorkspaceDirs, dry_run, dry_run_resolution, find_sealed, finish_certificates, integrate,
    staged_by, staging_branch,
};
use pdca_journal::{Clock, EffectSide, Effects, Liveness, Moment, Point};
use pdca_process::Cancel;
use pdca_state::{BundleId, BundleRoot};

use crate::scene::{Scene, oracle};

/// Returns the rows that are red over the files of a tree.
type Table<'t> = dyn Fn(&BTreeMap<String, String>) -> Vec<&'static str> + Sync + 't;

/// A gate that looks up its answer and counts the trees.
struct TableGate<'t> {
    repo: Utf8PathBuf,
    table: &'t Table<'t>,
    /// Interrupts after this many trees.
    stops_after: usize,
    asked: Mutex<Vec<ObjectId>>,
}

impl CombinationGate for TableGate<'_> {
    fn gate(
        &self,
        _: &TargetBranch,
        job: &GateJob,
        _: &Cancel,
    ) -> Result<GateRuling, GateRunError> {
        let mut asked = self.asked.lock().unwrap();
        if asked.len() >= self.stops_after {
            return Err(GateRunError::Interrupted);
        }
        asked.push(job.tree);
        let repo = pdca_testkit::Repo::existing(&self.repo);
        let names = repo.git(&["ls-tree", "-r", "--name-only", &job.commit.to_string()]);
        let text = |name: &str| repo.git(&["show", &format!("{}:{name}", job.commit)]);
        let files = names.lines().map(|name| (name.to_owned(), text(name))).collect();
        let rows: Vec<String> = (self.table)(&files).into_iter().map(str::to_owned).collect();
        let light = if rows.is_empty() { Light::Green } else { Light::Red };
        Ok(GateRuling { light: Some(light), rows, ..GateRuling::default() })
    }
}

/// Records the names of completed effects.
#[derive(Default)]
struct Recorder(Mutex<Vec<&'static str>>);

impl Effects for Recorder {
    fn reached(&self, point: Point) {
        if point.when == EffectSide::After {
            self.0.lock().unwrap().push(point.name);
        }
    }
}

/// A workspace beside the target, and the results of an integration.
struct Queue<'s> {
    scene: &'s Scene,
    workspace: QueueWorkspace,
    settings: QueueSettings,
    /// The bundles that are asked for; empty means all.
    only: BTreeSet<BundleId>,
    clock: Clock,
    effects: Recorder,
    notices: Mutex<Vec<IntegrationNotice>>,
}

impl<'s> Queue<'s> {
    fn new(scene: &'s Scene, land: Land) -> Self {
        let dir = scene.room("ws");
        std::fs::create_dir_all(dir.join("results")).unwrap();
        std::fs::create_dir_all(dir.join(".pdca")).unwrap();
        let target = TargetSpec {
            name: "app".into(),
            path: scene.repo.path().to_owned(),
            repo: None,
            branch: None,
        };
        let workspace = QueueWorkspace {
            dirs: WorkspaceDirs { bundles: BundleRoot::new(dir.join("results")), root: dir },
            targets: vec![target],
            default_branch: None,
        };
        let settings = QueueSettings { land, ..QueueSettings::default() };
        let (effects, notices) = (Recorder::default(), Mutex::default());
        let only = BTreeSet::new();
        Self { scene, workspace, settings, only, clock: now, effects, notices }
    }

    /// The branch with these changes, all of them sealed and not landed.
    fn branch(&self, name: &str, changes: &[&Sealed]) -> TargetBranch {
        let store = Store::open(self.scene.repo.path(), &self.scene.room("queue")).unwrap();
        let reference = format!("refs/heads/{name}");
        let accepted = |sealed: &&Sealed| AcceptedChange {
            bundle: self.workspace.dirs.bundles.bundle(sealed.id()),
            depends_on: Vec::new(),
            standing: ChangeState::Sealed(Box::new((*sealed).clone())),
        };
        TargetBranch {
            target: self.workspace.targets[0].clone(),
            branch: name.to_owned(),
            tip: store.commit_at(&reference).unwrap().unwrap(),
            reference,
            store,
            staging: Staging {
                branch: staging_branch(name),
                at: None,
                is_current: false,
                foreign: Vec::new(),
                beneath: None,
                owner: staged_by(&self.workspace.dirs.mark(), name),
            },
            changes: changes.iter().map(accepted).collect(),
        }
    }

    fn gate<'t>(&self, table: &'t Table<'t>) -> TableGate<'t> {
        let repo = self.scene.repo.path().to_owned();
        TableGate { repo, table, stops_after: usize::MAX, asked: Mutex::default() }
    }

    fn run(
        &self,
        branch: &TargetBranch,
        gate: &TableGate<'_>,
    ) -> Result<Integrated, IntegrateError> {
        self.run_with(branch, gate, &self.effects)
    }

    fn run_with(
        &self,
        branch: &TargetBranch,
        gate: &TableGate<'_>,
        effects: &dyn Effects,
    ) -> Result<Integrated, IntegrateError> {
        let nothing = BTreeSet::new();
        let certificates = self.certificates();
        let request = self.request(&nothing, &certificates);
        let notify = |notice| self.notices.lock().unwrap().push(notice);
        let cx = QueueContext {
            workspace: &self.workspace,
            gates: &gates(),
            gate,
            effects,
            notify: &notify,
            cancel: &Cancel::new(),
            now: || 1_700_000_000,
        };
        integrate(cx, branch, &request)
    }

    fn request<'a>(
        &'a self,
        nothing: &'a BTreeSet<BundleId>,
        certificates: &'a Utf8Path,
    ) -> IntegrationRequest<'a> {
        IntegrationRequest {
            settings: &self.settings,
            only: &self.only,
            elsewhere: nothing,
            lanes: NonZeroU32::MIN,
            certificates,
            clock: self.clock,
            fresh: false,
        }
    }

    fn certificates(&self) -> Utf8PathBuf {
        self.workspace.dirs.root.join("process/certificates")
    }

    fn position(&self, effect: &str) -> usize {
        let seen = self.effects.0.lock().unwrap();
        seen.iter().position(|name| *name == effect).unwrap_or_else(|| panic!("{effect}: {seen:?}"))
    }

    fn integrations(&self) -> usize {
        self.workspace.dirs.integrations().list().unwrap().len()
    }
}

fn gates() -> CombinationGates {
    CombinationGates { id: oracle(), rows: vec!["T3".into()], policies: BTreeMap::new() }
}

fn now() -> Moment {
    let wall = "2026-01-02T03:04:05Z".parse().unwrap();
    Moment { wall, uptime: Duration::from_secs(1000) }
}

/// A minute after [`now`].
fn later() -> Moment {
    let wall = "2026-01-02T03:05:05Z".parse().unwrap();
    Moment { wall, uptime: Duration::from_secs(1060) }
}

fn landed(done: &Integrated) -> Vec<String> {
    done.landed.iter().map(|(id, _)| id.to_string()).collect()
}

fn green(_: &BTreeMap<String, String>) -> Vec<&'static str> {
    Vec::new()
}

/// Red if both `a` and `b` are on.
fn quarrel(files: &BTreeMap<String, String>) -> Vec<&'static str> {
    let is_on = |name: &str| files.get(name).is_some_and(|text| text == "on\n");
    if is_on("a") && is_on("b") { vec!["T3"] } else { Vec::new() }
}

#[test]
fn what_is_green_together_lands_as_what_the_dry_run_said_with_one_certificate() {
    let scene = Scene::new(&[("a", "off\n"), ("b", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let two = scene.change("2", 2, &[("b", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let branch = queue.branch("main", &[&one, &two]);
    let (nothing, certificates) = (BTreeSet::new(), queue.certificates());
    let request = queue.request(&nothing, &certificates);
    let foreseen = dry_run(&queue.workspace, &gates(), &branch, &request, 0).unwrap();
    let gate = queue.gate(&green);
    let done = queue.run(&branch, &gate).unwrap();
    assert_eq!(landed(&done), ["1", "2"]);
    assert_eq!((foreseen.landing, foreseen.tip), (done.landed.clone(), done.tip));
    assert_eq!(scene.main(), done.tip);
    assert_eq!(done.certificates.len(), 1);
    assert_eq!(scene.file(done.tip, "a"), "on\n");
}

#[test]
fn of_two_that_are_red_together_the_later_is_held_with_its_partner_and_row() {
    let scene = Scene::new(&[("a", "off\n"), ("b", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let two = scene.change("2", 2, &[("b", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let gate = queue.gate(&quarrel);
    let done = queue.run(&queue.branch("main", &[&one, &two]), &gate).unwrap();
    assert_eq!(landed(&done), ["1"]);
    let [held] = done.held.as_slice() else { panic!("{:?}", done.held) };
    assert_eq!(held.sentence(), "2 breaks T3 only together with 1");
    let sealed = two.record().head.to_string();
    let known = HeldBack::load(&queue.workspace);
    assert_eq!(known.of(two.id(), Some(&sealed)), Some(held));
    let [tally] = IntegrationTally::all(&queue.workspace).try_into().unwrap();
    assert_eq!((tally.landed, tally.held.len(), tally.ended.is_some()), (1, 1, true));
}

#[test]
fn a_known_culprit_is_held_again_without_a_gate_run() {
    let scene = Scene::new(&[("a", "off\n"), ("b", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let two = scene.change("2", 2, &[("b", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Branch);
    let branch = queue.branch("main", &[&one, &two]);
    let first = queue.run(&branch, &queue.gate(&quarrel)).unwrap();
    let staging = format!("refs/heads/{}", staging_branch("main"));
    scene.repo.git(&["update-ref", "-d", &staging]);
    let gate = queue.gate(&quarrel);
    let again = queue.run(&branch, &gate).unwrap();
    assert_eq!((again.gate_runs, gate.asked.lock().unwrap().len()), (0, 0));
    assert_eq!(
        (landed(&again), &again.held[0].partners),
        (landed(&first), &first.held[0].partners)
    );
}

#[test]
fn a_conflict_holds_its_change_and_the_rest_lands() {
    let scene = Scene::new(&[("a", "off\n"), ("b", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let two = scene.change("2", 2, &[("a", Some("other\n"))]);
    let three = scene.change("3", 3, &[("b", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let gate = queue.gate(&green);
    let done = queue.run(&queue.branch("main", &[&one, &two, &three]), &gate).unwrap();
    assert_eq!(landed(&done), ["1", "3"]);
    assert_eq!(done.held[0].reason, HeldReason::Conflict);
    assert_eq!(done.held[0].sentence(), "2 conflicts with 1 in a:1");
}

#[test]
fn a_red_base_stops_the_integration_and_holds_no_change() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let red = |_: &BTreeMap<String, String>| vec!["T3"];
    let gate = queue.gate(&red);
    let branch = queue.branch("main", &[&one]);
    let ended = queue.run(&branch, &gate).unwrap_err();
    let IntegrateError::BaseRed { rows, base, .. } = &ended else { panic!("{ended:?}") };
    assert_eq!((rows.as_slice(), *base), (&["T3".to_owned()][..], scene.base));
    assert_eq!(scene.main(), scene.base);
    let head = one.record().head.to_string();
    assert_eq!(HeldBack::load(&queue.workspace).of(one.id(), Some(&head)), None);
}

#[test]
fn an_integration_that_was_stopped_is_taken_up_under_its_name() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let branch = queue.branch("main", &[&one]);
    let stopped = TableGate { stops_after: 0, ..queue.gate(&green) };
    let ended = queue.run(&branch, &stopped).unwrap_err();
    assert!(matches!(ended, IntegrateError::Interrupted), "{ended:?}");
    let [run] = queue.workspace.dirs.integrations().list().unwrap().try_into().unwrap();
    let found = queue.workspace.dirs.integrations().find(&run).found.unwrap();
    let branches = TargetBranches { branches: vec![branch], ..TargetBranches::default() };
    let next = NextAction::of(Some(&found.state), Liveness::Dead, &branches);
    assert_eq!(next, NextAction::GoOn { landed: Vec::new(), left: vec![one.id().clone()] });
    let done = queue.run(&branches.branches[0], &queue.gate(&green)).unwrap();
    assert_eq!(landed(&done), ["1"]);
    assert_eq!(queue.integrations(), 1, "no second journal was begun");
}

#[test]
fn an_integration_is_taken_up_as_often_as_it_is_stopped_beside_a_newer_one_of_another_target() {
    let scene = Scene::new(&[("a", "off\n"), ("b", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let two = scene.change("2", 2, &[("b", Some("on\n"))]);
    let mut queue = Queue::new(&scene, Land::Target);
    let stopped = TableGate { stops_after: 0, ..queue.gate(&green) };
    let stop = |queue: &Queue<'_>| {
        let ended = queue.run(&queue.branch("main", &[&one]), &stopped).unwrap_err();
        assert!(matches!(ended, IntegrateError::Interrupted), "{ended:?}");
    };
    stop(&queue);
    // Its name sorts after that of the first one, by the time.
    queue.clock = later;
    let mut other = queue.branch("main", &[&two]);
    other.target.name = "lib".into();
    queue.run(&other, &queue.gate(&green)).unwrap();
    queue.clock = now;
    stop(&queue);
    stop(&queue);
    let done = queue.run(&queue.branch("main", &[&one]), &queue.gate(&green)).unwrap();
    assert_eq!((landed(&done), queue.integrations()), (vec!["1".to_owned()], 2));
}

#[test]
fn of_two_bundles_with_one_id_the_later_one_decides_what_is_left_of_an_integration() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let mut branch = queue.branch("main", &[&one]);
    let stopped = TableGate { stops_after: 0, ..queue.gate(&green) };
    queue.run(&branch, &stopped).unwrap_err();
    let [run] = queue.workspace.dirs.integrations().list().unwrap().try_into().unwrap();
    let found = queue.workspace.dirs.integrations().find(&run).found.unwrap();
    // The first was put away, so it comes before the one that has landed since.
    let bundle = queue.workspace.dirs.bundles.completed().bundle(one.id());
    let standing = ChangeState::Unsealed;
    branch.changes.insert(0, AcceptedChange { bundle, depends_on: Vec::new(), standing });
    let (sealed, places) = (Box::new(one), vec!["main".to_owned()]);
    branch.changes[1].standing = ChangeState::Landed { sealed, commit: scene.base, places };
    let branches = TargetBranches { branches: vec![branch], ..TargetBranches::default() };
    let next = NextAction::of(Some(&found.state), Liveness::Dead, &branches);
    assert_eq!(next, NextAction::End);
}

#[test]
fn an_intent_is_durable_before_the_ref_moves_and_its_outcome_after_the_certificate() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    queue.run(&queue.branch("main", &[&one]), &queue.gate(&green)).unwrap();
    let order = ["journal", "fence", "fold", "verdict", "announce", "land-intent", "land"];
    let order =
        order.into_iter().chain(["certificate", "land-outcome", "journal-end", "held.json"]);
    let places: Vec<usize> = order.map(|effect| queue.position(effect)).collect();
    assert!(places.is_sorted(), "{:?}", queue.effects.0.lock().unwrap());
    let begun = matches!(queue.notices.lock().unwrap()[0], IntegrationNotice::Begun { .. });
    assert!(begun, "the name is told before anything else");
}

#[test]
fn a_gate_that_panics_ends_the_integration_and_nothing_lands() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let gate = queue.gate(&|_| panic!("a defect of the gate"));
    let error = queue.run(&queue.branch("main", &[&one]), &gate).unwrap_err();
    assert_eq!(error.to_string(), "the thread of a gate panicked");
    assert_eq!(scene.main(), scene.base);
}

#[test]
fn a_branch_that_gained_more_commits_than_are_followed_waits_for_a_person() {
    assert_eq!(QueueSettings::default().max_base_drift_commits, 50);
    for (gained, is_followed) in [(2, true), (3, false)] {
        let scene = Scene::new(&[("a", "off\n")]);
        let one = scene.change("1", 1, &[("a", Some("on\n"))]);
        let mut queue = Queue::new(&scene, Land::Target);
        queue.settings.max_base_drift_commits = 2;
        let branch = queue.branch("main", &[&one]);
        let mut theirs = scene.base;
        for number in 0..gained {
            theirs = scene.commit(theirs, "theirs", |lane| lane.write("b", number.to_string()));
        }
        let (repo, theirs) = (scene.repo.path().to_owned(), theirs.to_string());
        let moved = std::sync::Once::new();
        // Others commit to the branch while the first gate runs.
        let table = |_: &BTreeMap<String, String>| {
            moved.call_once(|| {
                let repo = pdca_testkit::Repo::existing(&repo);
                repo.git(&["update-ref", "refs/heads/main", &theirs]);
            });
            Vec::new()
        };
        let done = queue.run(&branch, &queue.gate(&table));
        match done {
            Ok(done) => assert!(is_followed && done.landed.len() == 1, "{gained}"),
            Err(IntegrateError::Drifted { how, .. }) => {
                assert!(!is_followed, "{gained}");
                assert_eq!(how, "gained 3 commits, and 2 are followed");
            }
            Err(other) => panic!("{gained}: {other}"),
        }
    }
}

#[test]
fn staging_moves_no_branch_of_the_user() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Branch);
    let done = queue.run(&queue.branch("main", &[&one]), &queue.gate(&green)).unwrap();
    assert_eq!(scene.main(), scene.base);
    let staging = format!("refs/heads/{}", staging_branch("main"));
    assert_eq!(done.references, std::slice::from_ref(&staging));
    assert_eq!(scene.store.commit_at(&staging).unwrap(), Some(done.tip));
}

#[test]
fn a_change_that_is_asked_for_by_name_goes_onto_what_is_staged_already() {
    let scene = Scene::new(&[("a", "off\n"), ("b", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let two = scene.change("2", 2, &[("b", Some("on\n"))]);
    let mut queue = Queue::new(&scene, Land::Branch);
    let first = queue.run(&queue.branch("main", &[&one]), &queue.gate(&green)).unwrap();
    let mut branch = queue.branch("main", &[&one, &two]);
    (branch.staging.at, branch.staging.is_current) = (Some(first.tip), true);
    branch.changes[0].standing = ChangeState::Staged {
        sealed: Box::new(one),
        branch: branch.staging.branch.clone(),
        commit: first.tip,
    };
    queue.only.insert(two.id().clone());
    let done = queue.run(&branch, &queue.gate(&green)).unwrap();
    assert_eq!(landed(&done), ["2"]);
    let staging = format!("refs/heads/{}", staging_branch("main"));
    assert_eq!(scene.store.commit_at(&staging).unwrap(), Some(done.tip));
    assert_eq!(
        (scene.file(done.tip, "a"), scene.file(done.tip, "b")),
        ("on\n".into(), "on\n".into())
    );
}

#[test]
fn a_branch_that_a_checkout_has_is_refused_before_any_gate_runs() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let gate = queue.gate(&green);
    let ended = queue.run(&queue.branch("work", &[&one]), &gate).unwrap_err();
    let refused = matches!(ended, IntegrateError::Land(LandError::CheckedOut { .. }));
    assert!(refused, "{ended:?}");
    assert_eq!((gate.asked.lock().unwrap().len(), queue.integrations()), (0, 0));
}

#[test]
fn without_a_gate_that_decides_nothing_begins() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let branch = queue.branch("main", &[&one]);
    let (nothing, certificates) = (BTreeSet::new(), queue.certificates());
    let request = queue.request(&nothing, &certificates);
    let none = CombinationGates { rows: Vec::new(), ..gates() };
    let ended = dry_run(&queue.workspace, &none, &branch, &request, 0).unwrap_err();
    assert!(matches!(ended, IntegrateError::NoGate), "{ended:?}");
}

#[test]
fn a_push_moves_the_branch_of_the_remote_and_follows_it_where_it_went_on() {
    let scene = Scene::new(&[("a", "off\n"), ("b", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let remote = scene.room("remote.git");
    scene.repo.git(&["clone", "--quiet", "--bare", scene.repo.path().as_str(), remote.as_str()]);
    let more = scene.commit(scene.base, "somebody else", |lane| lane.write("b", "on\n"));
    let to = format!("{more}:refs/heads/main");
    scene.repo.git(&["push", "--quiet", remote.as_str(), &to]);
    let queue = Queue::new(&scene, Land::Push);
    let settings = QueueSettings { remote: remote.to_string(), ..queue.settings.clone() };
    let queue = Queue { settings, ..queue };
    let done = queue.run(&queue.branch("main", &[&one]), &queue.gate(&green)).unwrap();
    assert_eq!(scene.main(), scene.base, "no branch here moves");
    let there = scene.repo.git(&["ls-remote", remote.as_str(), "refs/heads/main"]);
    assert!(there.starts_with(&done.tip.to_string()), "{there}");
    assert_eq!(
        (scene.file(done.tip, "a"), scene.file(done.tip, "b")),
        ("on\n".into(), "on\n".into())
    );
    assert_eq!(queue.settings.land.done(), "pushed");
}

#[test]
fn a_dry_run_says_that_an_attempt_that_was_cut_short_too_often_is_not_repeated() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let theirs = scene.commit(scene.base, "theirs", |lane| lane.write("a", "other\n"));
    scene.repo.git(&["update-ref", "refs/heads/main", &theirs.to_string()]);
    let queue = Queue::new(&scene, Land::Target);
    let branch = queue.branch("main", &[&one]);
    let open = BTreeSet::new();
    let request = ResolveRequest { settings: &queue.settings, open: &open, clock: now };
    let came = || dry_run_resolution(&queue.workspace, &branch, one.id(), request).unwrap().came;
    assert_eq!(came(), ConflictOutcome::Due);
    let found = find_sealed(&branch, one.id()).unwrap().unwrap();
    let state = ConflictState::look(&queue.workspace, &branch, found, theirs, request).unwrap();
    let (mut record, stamp) = (state.record, BootMoment::take(now).unwrap());
    while record.due(queue.settings.resolve_pause(), &stamp) != Due::Never {
        record.begin("tip");
    }
    state.dir.store(&record).unwrap();
    assert!(matches!(came(), ConflictOutcome::Blocked { new: true, .. }), "{:?}", came());
}

/// Another driver that takes the fence just before an effect.
struct TakeoverBefore<'s> {
    effect: &'static str,
    repo: &'s Utf8Path,
    room: Utf8PathBuf,
}

impl Effects for TakeoverBefore<'_> {
    fn reached(&self, point: Point) {
        if point == (Point { name: self.effect, when: EffectSide::Before }) {
            let store = Store::open(self.repo, &self.room).unwrap();
            Fence::take(&store, &"other".parse().unwrap(), 0).unwrap();
        }
    }
}

#[test]
fn a_push_whose_driver_was_superseded_before_it_recorded_it_gets_its_certificate() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let remote = scene.room("remote.git");
    scene.repo.git(&["clone", "--quiet", "--bare", scene.repo.path().as_str(), remote.as_str()]);
    let mut queue = Queue::new(&scene, Land::Push);
    queue.settings.remote = remote.to_string();
    let branch = queue.branch("main", &[&one]);
    let takeover =
        TakeoverBefore { effect: "land", repo: scene.repo.path(), room: scene.room("other") };
    let ended = queue.run_with(&branch, &queue.gate(&green), &takeover).unwrap_err();
    assert!(matches!(ended, IntegrateError::Land(LandError::Ref(_))), "{ended:?}");
    let there = scene.repo.git(&["ls-remote", remote.as_str(), "refs/heads/main"]);
    assert!(!there.starts_with(&scene.base.to_string()), "the remote took the push: {there}");
    let done = queue.run(&branch, &queue.gate(&green)).unwrap();
    assert_eq!((landed(&done), done.certificates.len()), (vec!["1".to_owned()], 1));
}

#[test]
fn a_directory_of_certificates_that_cannot_be_read_is_reported_and_the_certificate_follows() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let certificates = queue.certificates();
    std::fs::create_dir_all(certificates.parent().unwrap()).unwrap();
    std::fs::write(&certificates, "not a directory").unwrap();
    let branch = queue.branch("main", &[&one]);
    let ended = queue.run(&branch, &queue.gate(&green)).unwrap_err();
    assert!(matches!(ended, IntegrateError::Io { .. }), "{ended:?}");
    assert_ne!(scene.main(), scene.base, "it has landed");
    std::fs::remove_file(&certificates).unwrap();
    let effects = &queue.effects;
    let finished = finish_certificates(&queue.workspace, &branch, &certificates, false, effects);
    assert_eq!(finished.unwrap().len(), 1);
}

#[test]
fn statistics_that_cannot_be_written_keep_nothing_from_landing() {
    let scene = Scene::new(&[("a", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    std::fs::write(queue.workspace.dirs.private().join("stats"), "not a directory").unwrap();
    let done = queue.run(&queue.branch("main", &[&one]), &queue.gate(&green)).unwrap();
    assert_eq!(landed(&done), ["1"]);
    let notices = queue.notices.lock().unwrap();
    let is_told = |notice: &IntegrationNotice| match notice {
        IntegrationNotice::Progress { text, .. } => text.contains("statistics"),
        IntegrationNotice::Begun { .. } | IntegrationNotice::Warning { .. } => false,
    };
    assert!(notices.iter().any(is_told), "{notices:?}");
}

#[test]
fn a_change_that_depends_on_a_held_one_is_held_and_not_blamed() {
    let scene = Scene::new(&[("a", "off\n"), ("b", "off\n"), ("c", "off\n")]);
    let one = scene.change("1", 1, &[("a", Some("on\n"))]);
    let two = scene.change("2", 2, &[("b", Some("on\n"))]);
    let three = scene.change("3", 3, &[("c", Some("on\n"))]);
    let queue = Queue::new(&scene, Land::Target);
    let mut branch = queue.branch("main", &[&one, &two, &three]);
    branch.changes[2].depends_on = vec![two.id().clone()];
    let done = queue.run(&branch, &queue.gate(&quarrel)).unwrap();
    assert_eq!(landed(&done), ["1"]);
    let said: Vec<String> = done.held.iter().map(pdca_integrate::HeldChange::sentence).collect();
    assert_eq!(said, ["2 breaks T3 only together with 1", "3 needs 2, which has not landed"]);
}

/// Ends the driver, as a crash would, before or after an effect.
struct CrashAt(Point);

impl Effects for CrashAt {
    fn reached(&self, point: Point) {
        if point == self.0 {
            // Not `panic!`: this is no failure, so its message would only be noise.
            std::panic::resume_unwind(Box::new("crash"));
        }
    }
}

#[test]
fn around_whichever_effect_a_driver_died_the_next_one_ends_the_integration_the_same() {
    let files = [("a", "off\n"), ("b", "off\n")];
    let changes = |scene: &Scene| {
        let one = scene.change("1", 1, &[("a", Some("on\n"))]);
        let two = scene.change("2", 2, &[("b", Some("on\n"))]);
        (one, two)
    };
    let certificates = |queue: &Queue<'_>| std::fs::read_dir(queue.certificates()).unwrap().count();
    let (names, expected) = {
        let scene = Scene::new(&files);
        let (one, two) = changes(&scene);
        let queue = Queue::new(&scene, Land::Target);
        queue.run(&queue.branch("main", &[&one, &two]), &queue.gate(&green)).unwrap();
        let names: BTreeSet<&'static str> =
            queue.effects.0.lock().unwrap().iter().copied().collect();
        (names, (scene.tree(scene.main()), certificates(&queue)))
    };
    assert!(names.contains("land") && names.contains("certificate"), "{names:?}");
    for name in names {
        for when in [EffectSide::Before, EffectSide::After] {
            let scene = Scene::new(&files);
            let (one, two) = changes(&scene);
            let queue = Queue::new(&scene, Land::Target);
            let crash = CrashAt(Point { name, when });
            let first = std::panic::AssertUnwindSafe(|| {
                drop(queue.run_with(
                    &queue.branch("main", &[&one, &two]),
                    &queue.gate(&green),
                    &crash,
                ));
            });
            std::panic::catch_unwind(first).expect_err("it reaches the effect");
            queue.run(&queue.branch("main", &[&one, &two]), &queue.gate(&green)).unwrap();
            let ended = (scene.tree(scene.main()), certificates(&queue));
            assert_eq!(ended, expected, "{when:?} {name}");
        }
    }
}
