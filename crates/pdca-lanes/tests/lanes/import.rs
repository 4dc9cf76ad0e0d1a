//! What a job planted in its repository never decides what is shown, committed or checked out.

use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_lanes::{Lane, LaneError, patch_between};
use pdca_testkit::Repo;
use proptest::prelude::*;

use crate::scene::{BY, Scene, own, seen};

const FILES: [(&str, &str); 4] = [
    ("a.txt", "one\ntwo\nthree\n"),
    ("src/auth.c", "int login(char *p) { return check(p); }\n"),
    ("src/deep/pay.c", "int pay(int n) { return n > 0; }\n"),
    ("test.sh", "#!/bin/sh\ngrep -q check src/auth.c\n"),
];

/// A primary, and a clone of it that no lane ever touched.
struct Twins {
    scene: Scene,
    clean: Repo,
}

impl Twins {
    fn new() -> Self {
        let scene = Scene::new(&FILES);
        let path = scene.beside("clean");
        scene.primary.git(&["clone", "-q", ".", path.as_str()]);
        let clean = Repo::existing(&path);
        Self { scene, clean }
    }

    fn blob(&self, file: &str) -> String {
        self.scene.primary.git(&["rev-parse", &format!("HEAD:{file}")]).trim().to_owned()
    }

    /// The law: a commit that the lane gives out shows the same difference in a store that only ever took objects by
    /// their content, and the next job finds exactly the files of the base.
    fn require_shown_is_real(&self, lane: &Lane) {
        let base = self.scene.primary.head();
        match lane.commit_all("work", &BY) {
            Ok(_) => {
                let head = lane.head().unwrap().unwrap();
                let shown = lane.diff(&base, &head).unwrap();
                // git computes every id of what it fetches.
                let repository = lane.repository();
                let fetched = format!("{head}:refs/heads/taken");
                self.clean.git(&["fetch", "-q", "--force", repository.as_str(), &fetched]);
                let empty = self.scene.beside("empty");
                let git_dir = self.clean.path().join(".git");
                let real = patch_between(&git_dir, &empty, (&base, &head)).unwrap();
                assert_eq!(String::from_utf8_lossy(&shown), String::from_utf8_lossy(&real));
            }
            Err(error) => assert!(error.is_of_the_lane(), "{error:?}"),
        }
        if lane.reset(&base).is_err() {
            lane.renew().unwrap();
            lane.reset(&base).unwrap();
        }
        for (file, text) in FILES {
            assert_eq!(fs::read_to_string(lane.path().join(file)).unwrap(), text, "{file}");
        }
        let refs = seen(lane).git(&["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs, "", "nothing of the job is left for the next one");
    }
}

fn objects(lane: &Lane) -> Utf8PathBuf {
    lane.path().join(".git/objects")
}

fn loose(objects: &Utf8Path, id: &str) -> Utf8PathBuf {
    objects.join(&id[..2]).join(&id[2..])
}

/// Stores content in the lane. Returns its id, or `None` if what lies there keeps git from doing so.
fn stored(lane: &Lane, content: &str) -> Option<String> {
    let file = lane.path().join(".git/planted");
    fs::write(&file, content).unwrap();
    let made = seen(lane).try_git(&["hash-object", "-w", file.as_str()]);
    made.status.success().then(|| String::from_utf8_lossy(&made.stdout).trim().to_owned())
}

/// Stores content under the id of another object, as a loose file. Returns false if git cannot write there any more.
fn plant_loose(lane: &Lane, id: &str, content: &str) -> bool {
    let place = objects(lane);
    let Some(real) = stored(lane, content) else { return false };
    let to = loose(&place, id);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    drop(fs::remove_file(&to));
    let from = loose(&place, &real);
    if from.is_file() {
        fs::copy(from, to).unwrap();
    }
    true
}

/// Stores content under the id of another object, in a pack whose index says so. Returns false if git cannot make one.
fn plant_pack(lane: &Lane, id: &str, content: &str) -> bool {
    let Some(real) = stored(lane, content) else { return false };
    let list = lane.path().join(".git/list");
    fs::write(&list, &real).unwrap();
    let pack = objects(lane).join("pack/pack");
    let shell = format!("git pack-objects -q {pack} < {list}");
    let made = pdca_process::Tool::new("sh").args(["-c", &shell]).cwd(lane.path()).run().unwrap();
    let name = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    if name.is_empty() {
        return false;
    }
    let index = Utf8PathBuf::from(format!("{pack}-{name}.idx"));
    let mut bytes = fs::read(&index).unwrap();
    // Version 2 of the format with one object: header, fan-out, id, check sum, offset, and the hashes of pack and index.
    let id = gix::ObjectId::from_hex(id.as_bytes()).unwrap();
    for first in 0..256_usize {
        let count = u8::from(first >= usize::from(id.first_byte()));
        bytes[8 + first * 4..12 + first * 4].copy_from_slice(&[0, 0, 0, count]);
    }
    bytes[8 + 1024..8 + 1024 + 20].copy_from_slice(id.as_slice());
    let end = bytes.len() - 20;
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&bytes[..end]);
    bytes[end..].copy_from_slice(hasher.try_finalize().unwrap().as_slice());
    fs::remove_file(&index).unwrap();
    fs::write(&index, bytes).unwrap();
    true
}

#[test]
fn objects_planted_under_the_ids_of_the_base_hide_nothing() {
    let plants: [fn(&Lane, &str, &str) -> bool; 2] = [plant_loose, plant_pack];
    for plant in plants {
        let twins = Twins::new();
        let lane = twins.scene.lane();
        let base = twins.scene.primary.head();
        let id = twins.blob("src/auth.c");
        let backdoor = "int login(char *p) { return 1; }\n";
        fs::write(lane.path().join("src/auth.c"), backdoor).unwrap();
        fs::write(lane.path().join("a.txt"), "harmless\n").unwrap();
        seen(&lane).commit("a typo");
        assert!(plant(&lane, &id, backdoor));
        lane.import().unwrap();
        let head = lane.head().unwrap().unwrap();
        let patch = String::from_utf8(lane.diff(&base, &head).unwrap()).unwrap();
        assert!(patch.contains("+int login(char *p) { return 1; }"), "{patch}");
        twins.require_shown_is_real(&lane);
    }
}

#[test]
fn a_commit_whose_objects_are_missing_or_false_is_refused() {
    let twins = Twins::new();
    let spoils: [fn(&Lane, &str); 3] = [
        |lane, id| fs::remove_file(loose(&objects(lane), id)).unwrap(),
        |lane, id| assert!(plant_loose(lane, id, "false\n")),
        |lane, id| {
            let path = loose(&objects(lane), id);
            fs::remove_file(&path).unwrap();
            fs::write(path, "no object\n").unwrap();
        },
    ];
    for spoil in spoils {
        let lane = twins.scene.lane();
        fs::write(lane.path().join("new.txt"), "new\n").unwrap();
        seen(&lane).commit("new");
        let id = seen(&lane).git(&["rev-parse", "HEAD:new.txt"]).trim().to_owned();
        spoil(&lane, &id);
        let error = lane.import().unwrap_err();
        assert!(matches!(&error, LaneError::Untrue { id: named, .. } if *named == id), "{error}");
        assert!(error.is_of_the_lane());
        twins.require_shown_is_real(&lane);
    }
}

#[test]
fn packed_commits_of_an_honest_job_come_in() {
    let twins = Twins::new();
    let lane = twins.scene.lane();
    let repo = seen(&lane);
    for number in 0..3 {
        fs::write(lane.path().join("new.txt"), format!("{number}\n")).unwrap();
        repo.commit("one of three");
    }
    let head = repo.head();
    repo.git(&["repack", "-q", "-a", "-d", "-l"]);
    repo.git(&["prune-packed"]);
    assert!(repo.git(&["count-objects"]).starts_with("0 objects"));
    lane.import().unwrap();
    assert_eq!(own(&lane).git(&["rev-list", "--count", &head, "^HEAD~3"]).trim(), "3");
    twins.require_shown_is_real(&lane);
}

#[test]
fn a_merge_and_a_history_from_elsewhere_come_in_whole() {
    let twins = Twins::new();
    let lane = twins.scene.lane();
    let repo = seen(&lane);
    repo.git(&["checkout", "-q", "-b", "side"]);
    fs::write(lane.path().join("side.txt"), "side\n").unwrap();
    repo.commit("side");
    repo.git(&["checkout", "-q", "--orphan", "apart"]);
    repo.git(&["rm", "-rfq", "."]);
    fs::write(lane.path().join("apart.txt"), "apart\n").unwrap();
    repo.commit("apart");
    repo.git(&["checkout", "-q", "side"]);
    repo.git(&["merge", "-q", "--no-edit", "--allow-unrelated-histories", "apart"]);
    lane.import().unwrap();
    own(&lane).git(&["fsck", "--strict", "--no-dangling"]);
    let head = lane.head().unwrap().unwrap();
    assert_eq!(own(&lane).git(&["rev-list", "--count", &head]).trim(), "4");
    twins.require_shown_is_real(&lane);
}

#[test]
fn locks_that_a_killed_driver_left_in_its_repository_are_in_nobodys_way() {
    let twins = Twins::new();
    let lane = twins.scene.lane();
    let repository = lane.repository();
    fs::write(lane.path().join("a.txt"), "rescued\n").unwrap();
    lane.rescue("x").unwrap().unwrap();
    drop(lane);
    for lock in ["HEAD.lock", "packed-refs.lock", "refs/pdca/rescue/x.lock"] {
        fs::write(repository.join(lock), "").unwrap();
    }
    let lane = twins.scene.lane();
    fs::write(lane.path().join("a.txt"), "two\n").unwrap();
    lane.rescue("x").unwrap().unwrap();
    twins.require_shown_is_real(&lane);
}

/// A file that has no end.
const ENDLESS: &str = "/dev/zero";

/// The parts of a repository that a job writes, links or removes.
const PARTS: [&str; 23] = [
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "shallow",
    "packed-refs",
    "info/grafts",
    "info/attributes",
    "info/exclude",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/pack/multi-pack-index",
    "objects/pack/pack-1.idx",
    "objects/pack/pack-1.pack",
    "refs/heads/x",
    "refs/heads/pdca",
    "refs/stash",
    "logs/refs/stash",
    "hooks/pre-commit",
    "index",
    "MERGE_HEAD",
    "scratch",
];

/// One thing that a job may do to the repository it was lent.
#[derive(Debug, Clone)]
enum Plant {
    /// Changes a file of the base, and stores the new content under the id of the old one.
    Shadow { file: usize, packed: bool, text: String },
    /// The same under the id of the base's tree or commit.
    ShadowTree { of_commit: bool, text: String },
    /// Changes a file and leaves it uncommitted.
    Edit { file: usize, text: String },
    /// Adds a file; `hidden` has an ignore rule for it.
    Add { name: String, hidden: bool },
    /// Commits everything.
    Commit,
    /// Writes a file of the repository.
    Write { name: &'static str, text: String },
    /// Puts a symbolic link in the place of a part of the repository.
    Link { name: &'static str },
    /// Removes a part of the repository.
    Remove { name: &'static str },
    /// Runs git.
    Git { args: &'static [&'static str] },
    /// Stores a broken object.
    Garbage { id: String, text: String },
}

fn plants() -> impl Strategy<Value = Plant> {
    let file = 0..FILES.len();
    let text = "[a-z ]{0,12}\n";
    let names = prop::sample::select(&PARTS[..]);
    let content = prop::sample::select(vec![
        "ref: refs/heads/x\n",
        "ref: HEAD\n",
        "ref: refs/../../../x\n",
        "0000000000000000000000000000000000000000\n",
        "1111111111111111111111111111111111111111\n",
        "1111111111111111111111111111111111111111 refs/heads/x\n",
        "* -diff -text filter=evil\n",
        "/tmp\n",
        "[core]\n\tworktree = /tmp\n\tbare = true\n[include]\n\tpath = /dev/zero\n",
        "[extensions]\n\trefStorage = reftable\n",
        "../..\n",
        "",
    ]);
    let gits = prop::sample::select(vec![
        &["replace", "-f", "HEAD", "HEAD~1"][..],
        &["gc", "-q", "--prune=now"],
        &["commit-graph", "write", "--reachable"],
        &["multi-pack-index", "write"],
        &["update-index", "--assume-unchanged", "a.txt", "src/auth.c"],
        &["update-index", "--skip-worktree", "a.txt", "src/auth.c"],
        &["checkout", "-q", "--orphan", "fresh"],
        &["branch", "-f", "aside"],
        &["tag", "-f", "-a", "-m", "x", "v1"],
        &["stash"],
        &["rm", "-q", "--cached", "a.txt"],
        &["config", "core.attributesFile", "/tmp/x"],
        &["config", "diff.external", "false"],
        &["repack", "-q", "-a", "-d", "-f"],
        &["pack-refs", "--all"],
    ]);
    prop_oneof![
        4 => (file.clone(), any::<bool>(), text).prop_map(|(file, packed, text)| Plant::Shadow { file, packed, text }),
        1 => (any::<bool>(), text).prop_map(|(of_commit, text)| Plant::ShadowTree { of_commit, text }),
        3 => (file, text).prop_map(|(file, text)| Plant::Edit { file, text }),
        2 => ("[a-c]{1,3}", any::<bool>()).prop_map(|(name, hidden)| Plant::Add { name, hidden }),
        4 => Just(Plant::Commit),
        4 => (names.clone(), content).prop_map(|(name, text)| Plant::Write { name, text: text.to_owned() }),
        1 => names.clone().prop_map(|name| Plant::Link { name }),
        1 => names.prop_map(|name| Plant::Remove { name }),
        3 => gits.prop_map(|args| Plant::Git { args }),
        1 => ("[0-9a-f]{40}", text).prop_map(|(id, text)| Plant::Garbage { id, text }),
    ]
}

/// Returns false where a git of the job would read a file without an end, and take all memory of the machine.
fn would_git_end(git_dir: &Utf8Path) -> bool {
    let is_link = |name: &&str| {
        fs::symlink_metadata(git_dir.join(name)).is_ok_and(|found| found.is_symlink())
    };
    let includes = |name: &str| {
        fs::read_to_string(git_dir.join(name)).is_ok_and(|text| text.contains(ENDLESS))
    };
    !PARTS.iter().any(is_link) && !["config", "config.worktree"].into_iter().any(includes)
}

fn carry_out(twins: &Twins, lane: &Lane, plant: &Plant) {
    let git_dir = lane.path().join(".git");
    let repo = seen(lane);
    let git = |args: &[&str]| would_git_end(&git_dir).then(|| repo.try_git(args));
    let write = |path: &Utf8Path, text: &str| {
        if path.parent().is_some_and(|dir| fs::create_dir_all(dir).is_ok()) {
            drop(fs::remove_file(path));
            drop(fs::write(path, text));
        }
    };
    let plants_work = objects(lane).join("pack").is_dir()
        && git(&["status"]).is_some_and(|ended| ended.status.success());
    match plant {
        Plant::Shadow { file, packed, text } => {
            let (name, _) = FILES[*file];
            write(&lane.path().join(name), text);
            if plants_work {
                let plant = if *packed { plant_pack } else { plant_loose };
                plant(lane, &twins.blob(name), text);
            }
        }
        Plant::ShadowTree { of_commit, text } => {
            let what = if *of_commit { "HEAD" } else { "HEAD^{tree}" };
            let id = twins.scene.primary.git(&["rev-parse", what]).trim().to_owned();
            if plants_work {
                plant_loose(lane, &id, text);
            }
        }
        Plant::Edit { file, text } => write(&lane.path().join(FILES[*file].0), text),
        Plant::Add { name, hidden } => {
            let end = if *hidden { "ign" } else { "txt" };
            write(&lane.path().join(format!("{name}.{end}")), name);
            if *hidden {
                write(&lane.path().join(".gitignore"), "*.ign\n");
                drop(git(&["add", "-f", &format!("{name}.ign")]));
            }
        }
        Plant::Commit => {
            drop(git(&["add", "-A"]));
            let by = ["-c", "user.name=b", "-c", "user.email=b@localhost"];
            drop(git(&[&by[..], &["commit", "-qm", "by a job"]].concat()));
        }
        Plant::Write { name, text } => write(&git_dir.join(name), text),
        Plant::Link { name } => {
            let path = git_dir.join(name);
            drop(fs::remove_file(&path));
            drop(symlink(ENDLESS, path));
        }
        Plant::Remove { name } => {
            let path = git_dir.join(name);
            drop(fs::remove_file(&path));
        }
        Plant::Git { args } => drop(git(args)),
        Plant::Garbage { id, text } => write(&loose(&objects(lane), id), text),
    }
}

/// Returns the number of cases: few in the suite, where each starts some thirty processes, and as many as asked for by
/// `cargo xtask properties`.
fn cases() -> u32 {
    let default = ProptestConfig::default().cases;
    if default == 256 { 64 } else { default }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_is_what_is_taken_whatever_a_job_plants(
        planted in prop::collection::vec(prop::collection::vec(plants(), 1..8), 1..3),
    ) {
        let twins = Twins::new();
        let lane = twins.scene.lane();
        for planted in planted {
            for plant in &planted {
                carry_out(&twins, &lane, plant);
            }
            twins.require_shown_is_real(&lane);
        }
    }
}
