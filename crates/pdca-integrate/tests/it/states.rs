//! The states of accepted changes in random histories, against the answers of git itself.

use std::fmt::Write as _;

use pdca_integrate::{
    ChangeState, ObjectId, QueueWorkspace, Sealed, TargetBranches, TargetSpec, WorkspaceDirs,
    contains, descends_from, staging_branch,
};
use pdca_state::BundleRoot;
use proptest::prelude::*;

use crate::scene::{Scene, id};

/// The history of one accepted change after its seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing happened to it.
    Left,
    Landed,
    /// Landed and reverted.
    Reverted,
    /// Landed, reverted, and the revert reverted.
    Restored,
    Staged,
    /// On a branch that is not its own.
    OtherBranch,
    /// A commit on the branch names its id with the seal of another change.
    OtherSeal,
    /// On the branch at the remote only.
    Pushed,
}

const FATES: [Fate; 8] = [
    Fate::Left,
    Fate::Landed,
    Fate::Reverted,
    Fate::Restored,
    Fate::Staged,
    Fate::OtherBranch,
    Fate::OtherSeal,
    Fate::Pushed,
];

/// A target with sealed changes of one file each, and a workspace with their bundles.
struct Changes {
    scene: Scene,
    sealed: Vec<Sealed>,
    workspace: QueueWorkspace,
}

impl Changes {
    fn new(count: usize) -> Self {
        let names: Vec<String> = (0..count).map(|number| format!("{number}.txt")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "old\n")).collect();
        let scene = Scene::new(&files);
        let root = scene.room("workspace");
        let bundles = BundleRoot::new(root.join("results"));
        let mut sealed = Vec::new();
        for (order, name) in (0..).zip(&names) {
            let id = format!("{}", 10 + order);
            let change = scene.change(&id, order, &[(name, Some("new\n"))]);
            let dir = bundles.bundle(change.id()).dir().to_owned();
            fs_err::create_dir_all(&dir).unwrap();
            let patch = scene.patch(change.record().base, change.record().head);
            let gates = r#"{"issue_dir": "x", "overall": "pass", "rows": [{"check": "C4", "result": "pass",
                "oracle": "true", "rule_id": "C4", "path_line": "", "gating": true, "element": "C4"}]}"#;
            let summary =
                "## 9. Check sign-off\n\n- Outcome: merged-wider\n- By / date: Ada / 2026-11-15\n";
            for (file, bytes) in [
                ("brief.md", b"- **Slug:** x\n".as_slice()),
                ("patch.diff", &patch),
                ("seal.json", &change.to_json()),
                ("check-gates.json", gates.as_bytes()),
                ("SUMMARY.md", summary.as_bytes()),
            ] {
                fs_err::write(dir.join(file), bytes).unwrap();
            }
            sealed.push(change);
        }
        let target = TargetSpec {
            name: "app".to_owned(),
            path: scene.repo.path().to_owned(),
            repo: None,
            branch: Some("main".to_owned()),
        };
        let dirs = WorkspaceDirs { root, bundles };
        let workspace = QueueWorkspace { dirs, targets: vec![target], default_branch: None };
        Self { scene, sealed, workspace }
    }

    /// Adds a commit that brings a change under this seal.
    fn bring(&self, onto: ObjectId, number: usize, digest: &str) -> ObjectId {
        let change = &self.sealed[number];
        let message = format!("change {number}\n\nPdca-Sealed: {} {digest}\n", change.id());
        self.scene.commit(onto, &message, |lane| lane.write(format!("{number}.txt"), "new\n"))
    }

    /// Adds a commit that says that it reverts another, and leaves this text.
    fn revert(&self, onto: ObjectId, number: usize, commit: ObjectId, text: &str) -> ObjectId {
        let message = format!("Revert \"change\"\n\nThis reverts commit {commit}.\n");
        self.scene.commit(onto, &message, |lane| lane.write(format!("{number}.txt"), text))
    }

    /// Lets each change meet its fate, and moves the branches.
    fn happen(&self, fates: &[Fate]) {
        let base = self.scene.base;
        let (mut main, mut other, mut remote) = (base, base, base);
        for (number, fate) in fates.iter().enumerate() {
            let digest = self.sealed[number].digest();
            match fate {
                Fate::Left | Fate::Staged => {}
                Fate::Landed => main = self.bring(main, number, &digest),
                Fate::Reverted => {
                    let brought = self.bring(main, number, &digest);
                    main = self.revert(brought, number, brought, "old\n");
                }
                Fate::Restored => {
                    let brought = self.bring(main, number, &digest);
                    let reverted = self.revert(brought, number, brought, "old\n");
                    main = self.revert(reverted, number, reverted, "new\n");
                }
                Fate::OtherBranch => other = self.bring(other, number, &digest),
                Fate::OtherSeal => main = self.bring(main, number, &"0".repeat(64)),
                Fate::Pushed => remote = self.bring(remote, number, &digest),
            }
        }
        let mut staging = main;
        for (number, _) in fates.iter().enumerate().filter(|(_, fate)| **fate == Fate::Staged) {
            staging = self.bring(staging, number, &self.sealed[number].digest());
        }
        for (name, at) in [
            ("refs/heads/main".to_owned(), main),
            ("refs/heads/release".to_owned(), other),
            ("refs/remotes/origin/main".to_owned(), remote),
            (format!("refs/heads/{}", staging_branch("main")), staging),
        ] {
            self.scene.repo.git(&["update-ref", &name, &at.to_string()]);
        }
    }

    /// Asks git for the commits of a branch that name a seal in a trailer.
    fn carriers(&self, branch: &str, digest: &str) -> Vec<String> {
        let format = "--format=%H %(trailers:key=Pdca-Sealed,valueonly,separator=%x20)";
        let log = self.scene.repo.git(&["log", format, branch]);
        let named = log.lines().filter(|line| line.split(' ').skip(2).any(|word| word == digest));
        named.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    /// Asks git whether a commit is reverted on a branch by a commit that is not reverted itself.
    fn is_reverted(&self, branch: &str, commit: &str) -> bool {
        let text = format!("This reverts commit {commit}");
        let found = self.scene.repo.git(&[
            "log",
            "--format=%H",
            "--fixed-strings",
            "--grep",
            &text,
            branch,
        ]);
        found.lines().any(|by| !self.is_reverted(branch, by))
    }

    /// Returns the state of a change by git's own words.
    fn asked(&self, number: usize) -> &'static str {
        let digest = self.sealed[number].digest();
        for branch in ["main", "origin/main"] {
            let carriers = self.carriers(branch, &digest);
            if !carriers.is_empty() {
                let is_gone = carriers.iter().all(|commit| self.is_reverted(branch, commit));
                return if is_gone { "reverted" } else { "landed" };
            }
        }
        let staging = staging_branch("main");
        let is_staged = !self.carriers(&staging, &digest).is_empty();
        if is_staged { "staged" } else { "sealed" }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn the_state_of_every_change_is_what_git_says(
        fates in prop::collection::vec(prop::sample::select(FATES.to_vec()), 6)
    ) {
        let changes = Changes::new(fates.len());
        changes.happen(&fates);
        let found = TargetBranches::load(&changes.workspace).unwrap();
        prop_assert!(found.unplaceable.is_empty(), "{:?}", found.unplaceable);
        let states = found.branches.iter().flat_map(|branch| &branch.changes);
        let states: Vec<&str> = states.map(|change| change.standing.as_str()).collect();
        let asked: Vec<&str> = (0..fates.len()).map(|number| changes.asked(number)).collect();
        prop_assert_eq!(states, asked, "{:?}", fates);
    }

    #[test]
    fn ancestry_is_what_git_says(edges in prop::collection::vec((0..8_usize, 0..8_usize, -5_i64..5), 7)) {
        // Commits whose dates go back and forth, each with one or two parents among the earlier ones.
        let scene = Scene::new(&[("x", "x\n")]);
        let mut commits = vec![scene.base];
        for (first, second, ahead) in &edges {
            let parents = [first, second].map(|place| commits[place % commits.len()]);
            let mut text = format!("tree {}\nparent {}\n", scene.tree(scene.base), parents[0]);
            if parents[0] != parents[1] {
                writeln!(text, "parent {}", parents[1]).unwrap();
            }
            let who = format!("Ada <ada@example.com> {} +0000", 1_000_000_000 + ahead * 100_000);
            writeln!(text, "author {who}\ncommitter {who}\n\n{}", commits.len()).unwrap();
            let file = scene.room("commit");
            fs_err::write(&file, text).unwrap();
            let made = scene.repo.git(&["hash-object", "-t", "commit", "-w", file.as_str()]);
            commits.push(id(made.trim()));
        }
        for tip in &commits {
            for commit in &commits {
                let read = descends_from(&scene.store, *tip, *commit).unwrap();
                prop_assert_eq!(read, contains(&scene.store, *tip, *commit).unwrap());
            }
        }
    }
}

#[test]
fn a_revert_that_names_its_commit_by_a_short_id_is_one() {
    let changes = Changes::new(1);
    let brought = changes.bring(changes.scene.base, 0, &changes.sealed[0].digest());
    // As `git revert --reference` writes it.
    let short = brought.to_hex_with_len(8);
    let message = format!("Revert it\n\nThis reverts commit {short} (change 0, 2026-01-02).\n");
    let reverted = changes.scene.commit(brought, &message, |lane| lane.write("0.txt", "old\n"));
    changes.scene.repo.git(&["update-ref", "refs/heads/main", &reverted.to_string()]);
    let found = TargetBranches::load(&changes.workspace).unwrap();
    assert_eq!(found.branches[0].changes[0].standing.as_str(), "reverted");
}

#[test]
fn changes_of_one_branch_are_staged_whether_their_briefs_name_it_or_not() {
    let mut changes = Changes::new(2);
    // Without a configured branch a brief that names none means the one that is checked out.
    changes.workspace.targets[0].branch = None;
    let named = changes.workspace.dirs.bundles.bundle(changes.sealed[0].id());
    let brief = "- **Slug:** x\n- **Repo + branch target:** app @ work\n";
    fs_err::write(named.dir().join("brief.md"), brief).unwrap();
    let mut staging = changes.scene.store.commit_at("refs/heads/work").unwrap().unwrap();
    for (number, sealed) in changes.sealed.iter().enumerate() {
        staging = changes.bring(staging, number, &sealed.digest());
    }
    let reference = format!("refs/heads/{}", staging_branch("work"));
    changes.scene.repo.git(&["update-ref", &reference, &staging.to_string()]);
    let found = TargetBranches::load(&changes.workspace).unwrap();
    let [branch] = &found.branches[..] else { panic!("{found:?}") };
    let states: Vec<&str> = branch.changes.iter().map(|change| change.standing.as_str()).collect();
    assert_eq!((branch.branch.as_str(), states), ("work", vec!["staged", "staged"]));
}

#[test]
fn a_store_that_is_only_read_makes_no_room_for_git() {
    let changes = Changes::new(2);
    changes.happen(&[Fate::Landed, Fate::Left]);
    let found = TargetBranches::load(&changes.workspace).unwrap();
    let [branch] = &found.branches[..] else { panic!("{found:?}") };
    assert!(matches!(branch.changes[0].standing, ChangeState::Landed { .. }));
    assert!(!changes.workspace.dirs.private().exists());
}
