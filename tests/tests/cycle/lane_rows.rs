//! Rows of the process about lanes, the ends of runs, and what an integration keeps on record.

#![expect(clippy::print_stderr, reason = "a test that cannot show a part on this host says so")]

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_e2e::cast::{REVIEWER, is_at, patient, with};
use pdca_e2e::{Scene, Started, leaf};
use pdca_journal::{
    Admission, Effect, EffectOutcome, HostScope, Inbox, InboxRequest, Journal, Moment,
    ProcessIdentity, Record, RunId, Runs, Seq, next_epoch,
};
use pdca_process::{SandboxKind, wall_support};
use rustix::process::Signal;
use serde_json::Value;

const NO_BASE_GATE: &str = "[driver]\ngate_base = \"off\"\n";

/// The directory of a slot.
fn slot(scene: &Scene, slot: u32) -> Utf8PathBuf {
    scene.workspace.around().join(format!("ws.lanes/lane-{slot}"))
}

/// Adds tables to `pdca.toml`.
fn configure(scene: &Scene, more: &str) {
    let text = scene.workspace.read("pdca.toml");
    scene.workspace.config(&format!("{text}\n{more}"));
}

/// Sets the permissions of a path.
fn permit(path: &Utf8Path, mode: u32) {
    fs_err::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is ours");
}

/// Every file below a directory, with its content. The lock names the last process that looked at the slot.
fn files(dir: &Utf8Path) -> BTreeMap<Utf8PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in dir.read_dir_utf8().expect("it can be listed") {
            let path = entry.expect("it can be listed").into_path();
            if fs_err::symlink_metadata(&path).expect("it is there").is_dir() {
                dirs.push(path);
            } else if path.file_name() != Some("lock") {
                let bytes = fs_err::read(&path).expect("it can be read");
                found.insert(path, bytes);
            }
        }
    }
    found
}

#[test]
fn worktrees_and_checkouts_of_rows_belong_to_a_repository_of_a_lane_and_not_to_the_primary() {
    let common = "rev-parse --path-format=absolute --git-common-dir";
    // The builder adds a worktree, and two rows that run at once need two checkouts.
    let builder = format!(
        "git worktree add --quiet --detach \"$PDCA_TMP/beside\"\n\
         git -C \"$PDCA_TMP/beside\" {common} > \"$PDCA_WORKSPACE/calls/beside\"\necho x > greeting.txt"
    );
    let row = |id: &str| {
        format!(
            "[[gates.checks]]\nid = \"{id}\"\ntier = \"T1\"\nparallel = true\ncmd = 'git {common}'\n"
        )
    };
    let scene = with(&builder, &["7"], &format!("{NO_BASE_GATE}{}{}", row("T1-a"), row("T1-b")));
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    let lanes = scene.workspace.around().join("ws.lanes");
    let own = slot(&scene, 0).join("app/.git");
    assert_eq!(scene.workspace.read("calls/beside").trim(), own);
    let repository_of = |row: &str| {
        let log = scene.workspace.read(format!("results/issue_7/gate-logs/{row}.log"));
        let path = log.lines().find(|line| line.ends_with("/.git")).map(Utf8PathBuf::from);
        path.unwrap_or_else(|| panic!("{row} names no repository: {log}"))
    };
    let (a, b) = (repository_of("T1-a"), repository_of("T1-b"));
    assert_eq!(a, own);
    assert!(b != a && b.starts_with(&lanes) && b.is_dir(), "{b}");
    let listed = scene.repo.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(listed.matches("worktree ").count(), 1, "{listed}");
    assert!(!scene.repo.path().join(".git/worktrees").exists());
}

#[test]
fn a_lane_that_was_copied_with_cp_is_refused_by_name_and_nothing_runs_in_it() {
    let builder = "pwd >> \"$PDCA_WORKSPACE/calls/where\"\necho $1 > file-$1.txt";
    let kinds = [
        ("reference", "it has no marker"),
        ("worktree", "it has no marker, and its `.git` leads to another checkout's"),
    ];
    for (kind, unmarked) in kinds {
        let scene = with(builder, &["7"], &format!("[lanes]\nkind = \"{kind}\"\n"));
        scene.pdca(&["run", "7"]).expect(0);
        scene.pdca(&["lanes", "doctor"]).expect(0);
        let (original, copy) = (slot(&scene, 0), slot(&scene, 1));
        scene.paste(&format!("cp -a {original} {copy}")).expect(0);
        let found = scene.pdca(&["lanes", "doctor"]).expect(2).out;
        assert!(found.contains("lane-1/app: is a copy of lane 0"), "{kind}: {found}");
        // First with the marker of the original, then without it.
        for (why, ids) in [("is a copy of lane 0", ["8", "9"]), (unmarked, ["10", "11"])] {
            let before = files(&copy);
            for id in ids {
                scene.brief(id, &[]);
            }
            let ran = scene.pdca(&["batch", "--lanes", "2"]).expect(2);
            let refusal = ran.err.lines().find(|line| line.contains(&format!("{copy}/app")));
            assert!(refusal.is_some_and(|line| line.contains(why)), "{kind}: {}", ran.err);
            assert!(ran.err.contains("hint: move it away"), "{kind}: {}", ran.err);
            let after = files(&copy);
            let names = before.keys().chain(after.keys());
            let changed: Vec<_> =
                names.filter(|name| before.get(*name) != after.get(*name)).collect();
            assert!(changed.is_empty(), "{kind}: {changed:?}");
            let marker = copy.join("app.lane.json");
            if marker.exists() {
                fs_err::remove_file(marker).expect("it can be removed");
            }
        }
        let places = scene.workspace.read("calls/where");
        assert!(places.lines().all(|place| place == original.join("app")), "{kind}: {places}");
        fs_err::rename(&copy, scene.workspace.around().join("moved")).expect("it can be moved");
        scene.pdca(&["batch", "--lanes", "2"]).expect(0);
        scene.pdca(&["lanes", "provision", "--lanes", "2"]).expect(0);
        scene.pdca(&["lanes", "doctor"]).expect(0);
    }
}

#[test]
fn a_directory_that_two_lanes_could_write_is_linked_into_neither_and_the_refusal_names_both() {
    let scene = with("echo $1 > file-$1.txt", &["7"], "");
    scene.repo.write(".gitignore", "node_modules\n");
    scene.repo.commit("ignore dependencies");
    scene.repo.write("node_modules/x/index.js", "x\n");
    scene.pdca(&["lanes", "provision", "--lanes", "2"]).expect(0);
    configure(&scene, "[lanes.hydrate]\nsymlink = [\"node_modules\"]\n");
    let shared = scene.repo.path().join("node_modules");
    let linked = |number| fs_err::symlink_metadata(slot(&scene, number).join("app/node_modules"));
    // A directory that cannot be written is not enough while one below it can.
    for writable in [shared.clone(), shared.join("x")] {
        let refused = scene.pdca(&["run", "7"]).expect(2);
        let both = format!("lane 0 and lane 1 would share {writable}, which both can write");
        assert!(refused.err.contains(&both), "{}", refused.err);
        assert!(refused.err.contains("use `seed` for a private copy"), "{}", refused.err);
        scene.pdca(&["lanes", "provision", "--lanes", "2"]).expect(2);
        assert!(linked(0).is_err() && linked(1).is_err());
        assert_eq!((scene.calls(), scene.state("7")), (Vec::new(), "PLANNED".to_owned()));
        permit(&shared, 0o555);
    }
    permit(&shared, 0o755);
    // As a private copy in each lane the same directory is no problem.
    let text = scene.workspace.read("pdca.toml");
    scene.workspace.config(&text.replace("symlink = ", "seed = "));
    scene.pdca(&["run", "7"]).expect(0);
    scene.pdca(&["lanes", "provision", "--lanes", "2"]).expect(0);
    for number in [0, 1] {
        assert!(linked(number).expect("it is there").is_dir(), "lane {number}");
    }
}

#[test]
fn what_is_only_read_is_shared_by_all_lanes_and_what_is_written_is_private_in_each() {
    // Two builders are in work at once; each writes its cache before either reads its own again.
    let builder = r#"
echo "$(stat -L -c %i sdk/lib/a.h) $(stat -L -c %i model.bin) $(stat -L -c %i cache/warm)" > "$PDCA_WORKSPACE/calls/inodes-$1"
echo "of $1" > cache/warm
for file in sdk/new sdk/lib/a.h model.bin; do
  if echo x >> "$file"; then echo "$1 wrote $file" >> "$PDCA_WORKSPACE/calls/written"; fi
done
echo up > "$PDCA_WORKSPACE/calls/at-$1"
while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
cp cache/warm "file-$1.txt"
"#;
    let more = "[lanes.hydrate]\nsymlink = [\"sdk\", \"model.bin\"]\nseed = [\"cache\"]\n";
    let scene = with(builder, &["7", "8"], more);
    scene.repo.write(".gitignore", "sdk\nmodel.bin\ncache\n");
    scene.repo.commit("ignore what lanes get");
    for (file, text) in [("sdk/lib/a.h", "a\n"), ("model.bin", "m\n"), ("cache/warm", "user\n")] {
        scene.repo.write(file, text);
    }
    let sdk = scene.repo.path().join("sdk");
    for dir in [sdk.join("lib"), sdk.clone()] {
        permit(&dir, 0o555);
    }
    let driver = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("both are in work", |scene| is_at("7")(scene) && is_at("8")(scene));
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
    let inode = |file: &str| {
        let found = fs_err::metadata(scene.repo.path().join(file)).expect("it is there");
        found.ino().to_string()
    };
    let [seven, eight] = ["7", "8"].map(|id| {
        let text = scene.workspace.read(format!("calls/inodes-{id}"));
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    for one in [&seven, &eight] {
        assert_eq!(one[..2], [inode("sdk/lib/a.h"), inode("model.bin")], "these are shared");
        assert_ne!(one[2], inode("cache/warm"), "the cache of the user is not");
    }
    assert_ne!(seven[2], eight[2], "each lane has a cache of its own");
    assert_eq!(scene.repo.read("cache/warm"), b"user\n");
    for id in ["7", "8"] {
        let patch = scene.workspace.read(format!("results/issue_{id}/patch.diff"));
        assert!(patch.contains(&format!("+of {id}\n")), "{patch}");
        assert_eq!(patch.matches("diff --git").count(), 1, "{patch}");
    }
    if matches!(wall_support(), SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. }) {
        assert!(!scene.workspace.has("calls/written"), "{}", scene.workspace.read("calls/written"));
        assert_eq!(scene.repo.read("sdk/lib/a.h"), b"a\n");
        assert_eq!(scene.repo.read("model.bin"), b"m\n");
    } else {
        eprintln!(
            "not shown here: this host has no sandbox that keeps shared files from being written"
        );
    }
    for dir in [sdk.clone(), sdk.join("lib")] {
        permit(&dir, 0o755);
    }
}

fn runs(scene: &Scene) -> Runs {
    Runs::new(scene.workspace.path().join(".pdca/runs"))
}

fn newest_run(scene: &Scene) -> RunId {
    runs(scene).list().expect("runs can be listed").pop().expect("there is a run")
}

fn journal(scene: &Scene, run: &RunId) -> String {
    scene.workspace.read(format!(".pdca/runs/{run}/journal"))
}

/// Now, by the uptime of the machine.
fn moment() -> Moment {
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(uptime.tv_sec).expect("the machine is up");
    let wall = "2026-11-16T08:00:00Z".parse().expect("a time");
    Moment { wall, uptime: Duration::from_secs(seconds) }
}

/// Brings a run with a driver at work to its end.
type End = fn(&Scene, Started);

fn complete(scene: &Scene, driver: Started) {
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
}

fn abort(scene: &Scene, driver: Started) {
    driver.signal(Signal::KILL);
    driver.wait();
    scene.pdca(&["abort", "--why", "enough"]).expect(0);
}

/// Ends a run as failed. The record is part of the format, and no command writes it.
fn fail(scene: &Scene, driver: Started) {
    driver.signal(Signal::KILL);
    driver.wait();
    let run = newest_run(scene);
    let open = journal(scene, &run);
    scene.pdca(&["recover"]).expect(0);
    assert_ne!(journal(scene, &run), open, "a run that is not over is taken up");
    assert_eq!(scene.runs().len(), 1, "and stays active");
    let admission =
        Admission::take([scene.repo.path().join(".git/pdca.lock")]).expect("it is free");
    let runs = runs(scene);
    let state = runs.find(&run).found.expect("it can be read").state;
    let here = HostScope::here().expect("this is somewhere");
    let me = ProcessIdentity::of(&here, std::process::id()).expect("this process is alive");
    let epoch = next_epoch([state.epoch]).expect("an epoch is left");
    let opened = Journal::open(&runs, &admission, &run, epoch, moment(), me, false);
    let failed = Record::Failed { why: "it cannot go on".to_owned() };
    opened.expect("taken up").journal.append(moment(), vec![failed]).expect("it is legal");
}

#[test]
fn a_run_that_is_completed_aborted_or_failed_is_never_taken_up_or_changed_again() {
    let ends: [(&str, End); 3] = [("completed", complete), ("aborted", abort), ("failed", fail)];
    for (phase, end) in ends {
        let scene = patient(&["7"], "");
        let driver = scene.start(&["run", "7"]);
        scene.wait_until("it is in work", is_at("7"));
        end(&scene, driver);
        let run = newest_run(&scene);
        let phase_of = |run: &RunId| {
            runs(&scene).find(run).phase().expect("it can be read").as_str().to_owned()
        };
        assert_eq!(phase_of(&run), phase);
        assert_eq!(scene.runs(), Vec::<Value>::new(), "{phase}: no run is active");
        let before = journal(&scene, &run);
        for args in [&["recover"][..], &["recover", "--take-over"], &["abort"], &["unblock"]] {
            scene.pdca(args).expect(4);
        }
        // A request that comes too late for the run.
        let late = RunId::generate(moment().wall).expect("there is randomness");
        let request = InboxRequest::Abort { why: "too late".to_owned() };
        Inbox::new(&runs(&scene), &run).drop_request(&late, &request).expect("it can be written");
        scene.workspace.write("go", "");
        scene.brief("8", &[]);
        scene.pdca(&["batch"]).expect(0);
        assert_eq!(scene.state("7"), "AWAITING_SIGNOFF", "{phase}");
        assert_eq!(scene.state("8"), "AWAITING_SIGNOFF", "{phase}");
        let next = newest_run(&scene);
        assert_ne!(next, run, "{phase}: the work goes on in a run of its own");
        assert_eq!(phase_of(&next), "completed");
        assert_eq!(journal(&scene, &run), before, "{phase}: its record stays as it was");
    }
}

/// Builds, checks and accepts bundles one after the other, with the user on another branch than `main`.
fn accepted(builder: &str, ids: &[&str], more: &str) -> Scene {
    let gate = "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"true\"\n";
    let scene = Scene::with_leaves(builder, REVIEWER, &format!("{NO_BASE_GATE}{more}{gate}"));
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    for id in ids {
        scene.brief(id, &[]);
        scene.pdca(&["run", id]).expect(0);
        scene.accept(id);
    }
    scene
}

/// The sealed commits of bundles in order, named `<bundle>.<number>`.
fn sealed_commits(scene: &Scene, ids: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for id in ids {
        let text = scene.workspace.read(format!("results/issue_{id}/seal.json"));
        let seal: Value = serde_json::from_str(&text).expect("a seal is JSON");
        let commits = seal["commits"].as_array().expect("a seal lists its commits");
        for (at, commit) in commits.iter().enumerate() {
            let commit = commit.as_str().expect("a commit is an id").to_owned();
            found.push((format!("{id}.{}", at + 1), commit));
        }
    }
    found
}

/// The states of each sealed commit, in the order in which the one integration recorded them.
fn states(scene: &Scene, sealed: &[(String, String)]) -> BTreeMap<String, String> {
    let runs = Runs::new(scene.workspace.path().join(".pdca/integrations"));
    let list = runs.list().expect("integrations can be listed");
    let [run] = &list[..] else { panic!("there is one integration: {list:?}") };
    let entries = pdca_journal::read(&runs.dir(run), run).expect("it can be read").entries;
    let mut states: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut applying: BTreeMap<Seq, String> = BTreeMap::new();
    for entry in &entries {
        if let Record::Planned { order, .. } = &entry.record {
            for (name, _) in sealed {
                let bundle = name.split('.').next().unwrap_or_default();
                if order.iter().any(|id| id.as_str() == bundle) {
                    states.entry(name.clone()).or_default().push("planned");
                }
            }
        } else if let Record::Intent { effect: Effect::Apply { commit, .. } } = &entry.record {
            let commit = commit.to_string();
            let of = |(_, id): &&(String, String)| *id == commit;
            let (name, _) = sealed.iter().find(of).expect("only sealed commits are applied");
            states.entry(name.clone()).or_default().push("applying");
            applying.insert(entry.seq, name.clone());
        } else if let Record::Outcome { intent, outcome } = &entry.record
            && let Some(name) = applying.remove(intent)
        {
            states.entry(name).or_default().push(match outcome {
                EffectOutcome::Applied { .. } => "applied",
                EffectOutcome::Skipped { .. } => "skipped",
                EffectOutcome::Conflict { .. } => "conflict",
                EffectOutcome::Failed { .. } => "failed",
                EffectOutcome::Done => "done",
            });
        }
    }
    states.into_iter().map(|(name, states)| (name, states.join(" "))).collect()
}

#[test]
fn each_sealed_commit_is_on_record_as_planned_applying_applied_skipped_or_in_conflict() {
    let builder = r#"
commit() { git add -A && git -c user.name=b -c user.email=b@b commit --quiet -m "$1"; }
case $1 in
1) echo one > one.txt ;;
2) echo one > one.txt; commit "the same as 1"; echo two > two.txt; commit "and more" ;;
3) echo three > greeting.txt ;;
4) echo four > greeting.txt ;;
esac
"#;
    let ids = ["1", "2", "3", "4"];
    let scene = accepted(builder, &ids, "[integrate]\nland = \"target\"\n");
    let sealed = sealed_commits(&scene, &ids);
    let names: Vec<&str> = sealed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["1.1", "2.1", "2.2", "3.1", "4.1"]);
    let is = |expected: [&str; 5]| -> BTreeMap<String, String> {
        names
            .iter()
            .zip(expected)
            .map(|(name, states)| ((*name).to_owned(), states.to_owned()))
            .collect()
    };
    // Five steps plan the commits. The driver is killed after the sixth, which begins to apply the first.
    let killed = [("PDCA_CRASH_AT", ">fold:6")];
    scene.pdca_with(&killed, &["integrate"]).expect(128 + 9);
    let cut = is(["planned applying", "planned", "planned", "planned", "planned"]);
    assert_eq!(states(&scene, &sealed), cut);
    // The next driver resumes the integration, plans what is left and comes to an outcome for each commit.
    let done = scene.pdca(&["integrate", "--json"]).expect(102).json();
    let whole = is([
        "planned applying failed planned applying applied",
        "planned planned applying skipped",
        "planned planned applying applied",
        "planned planned applying applied",
        "planned planned applying conflict",
    ]);
    assert_eq!(states(&scene, &sealed), whole);
    // The record says what became of the branch.
    assert_eq!(done["held"][0]["text"], "4 conflicts with 3 in greeting.txt:1");
    let subjects = scene.repo.git(&["log", "--format=%s", "main"]);
    assert_eq!(subjects, "a slug\nand more\na slug\nfirst\n");
}

/// The time of a record in milliseconds.
fn millis(time: &Value) -> i64 {
    let text = time.as_str().unwrap_or_else(|| panic!("not a time: {time}"));
    let moment = Moment { wall: text.parse().expect("a time"), uptime: Duration::ZERO };
    moment.wall.as_millisecond()
}

/// The end of the last attempt at the conflict of 2.
fn last_attempt(scene: &Scene) -> Value {
    let dir = scene.workspace.path().join(".pdca/conflicts/issue_2");
    let mut heads = dir.read_dir_utf8().expect("there is a conflict");
    let head = heads.next().expect("of one head").expect("it can be read");
    let text = fs_err::read_to_string(head.path().join("case.json")).expect("it is on record");
    let case: Value = serde_json::from_str(&text).expect("a record is JSON");
    case["last"]["wall"].clone()
}

#[test]
fn the_pause_after_each_failed_attempt_at_a_conflict_is_twice_the_one_before() {
    let more =
        format!("{}[integrate]\nland = \"target\"\nresolve_pause_secs = 60\n", leaf("resolver"));
    let scene = accepted("echo $1 > greeting.txt", &["1", "2"], &more);
    scene.script("resolver", "exit 3");
    scene.pdca(&["integrate", "--no-resolve"]).expect(102);
    let asked = |args: &[&str]| {
        let told = scene.pdca(&[&["resolve", "2", "--json"], args].concat()).expect(102).json();
        told["conflicts"][0].clone()
    };
    let mut pauses = Vec::new();
    for attempt in 1..=4 {
        // Without a pause the attempt is made at once.
        let told = asked(&["--config", "integrate.resolve_pause_secs=0"]);
        assert_eq!((&told["outcome"], &told["attempts"]), (&"failed".into(), &attempt.into()));
        // With the pause the next one is not due, neither for this command nor for an integration.
        let told = asked(&[]);
        assert_eq!((&told["outcome"], &told["attempts"]), (&"later".into(), &attempt.into()));
        let integrated = scene.pdca(&["integrate", "--json"]).expect(102).json();
        assert_eq!(integrated["resolutions"][0]["outcome"], "later");
        let pause = millis(&told["due"]) - millis(&last_attempt(&scene));
        // The pause is measured by the uptime and shown by the wall clock, which may be set by a few milliseconds.
        pauses.push((pause + 500) / 1000);
        let calls = scene.calls().iter().filter(|call| *call == "resolver 2").count();
        assert_eq!(calls, attempt, "nobody is asked before it is due");
    }
    assert_eq!(pauses, [60, 120, 240, 480]);
}
