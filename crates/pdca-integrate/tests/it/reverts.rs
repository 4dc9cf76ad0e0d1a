//! Reverts of landed changes, by git and by words.

use std::fmt::Write as _;

use pdca_integrate::{ObjectId, Sealed, present_in};
use pdca_testkit::Repo;

use crate::scene::Scene;

type Edit = fn(&Repo);

/// A branch on which change 2 has landed in two commits.
struct Landed {
    scene: Scene,
    sealed: Sealed,
    first: ObjectId,
    tip: ObjectId,
}

const BEFORE: &str = "a\nb\nc\nd\ne\nf\ng\nh\n";
const AFTER: &str = "a\nB\nc\nD\ne\nF\ng\nH\n";

impl Landed {
    fn new() -> Self {
        let scene = Scene::new(&[("two", BEFORE), ("more", "1\n"), ("three", "a\n")]);
        let sealed = scene.change("2", 1, &[("two", Some(AFTER)), ("more", Some("2\n"))]);
        let message = format!("change 2\n\nPdca-Sealed: 2 {}\n", sealed.digest());
        let first = scene.commit(scene.base, &message, |lane| lane.write("two", AFTER));
        let message = message.replace("change 2", "change 2, part two");
        let tip = scene.commit(first, &message, |lane| lane.write("more", "2\n"));
        Self { scene, sealed, first, tip }
    }

    /// Adds a commit that says that it reverts the given ones, with these edits.
    fn says(&self, onto: ObjectId, named: &[ObjectId], edit: impl FnOnce(&Repo)) -> ObjectId {
        let mut message = "words\n\n".to_owned();
        for commit in named {
            writeln!(message, "This reverts commit {commit}.").unwrap();
        }
        self.scene.commit(onto, &message, edit)
    }

    /// Runs git in a checkout at `onto`, and returns where its HEAD is then.
    fn runs(&self, onto: ObjectId, commands: &[&[&str]]) -> ObjectId {
        let last = self.scene.commit(onto, "end", |lane| {
            for command in commands {
                lane.git(command);
            }
            lane.write("end", "of it\n");
        });
        crate::scene::id(&self.scene.repo.git(&["rev-parse", &format!("{last}^")]))
    }

    fn is_reverted(&self, tip: ObjectId) -> bool {
        let found = present_in(&self.scene.store, tip, &[self.sealed.record()]).unwrap();
        found.values().next().expect("it has landed").reverted_by.is_some()
    }
}

#[test]
fn the_sentence_alone_reverts_nothing() {
    let landed = Landed::new();
    assert!(!landed.is_reverted(landed.tip));
    let table: [(&str, Edit); 5] = [
        ("another file", |lane| lane.write("three", "x\n")),
        ("one of its lines", |lane| lane.write("two", AFTER.replace('B', "b"))),
        ("its lines changed to others", |lane| {
            lane.write("two", AFTER.replace(['B', 'D', 'F', 'H'], "other"));
        }),
        ("more lines beside them", |lane| lane.write("two", format!("{AFTER}more\n"))),
        ("the mode of its file", |lane| lane.write_executable("two", AFTER)),
    ];
    for (name, edit) in table {
        let tip = landed.says(landed.tip, &[landed.first, landed.tip], edit);
        assert!(!landed.is_reverted(tip), "{name}");
    }
}

#[test]
fn a_revert_that_takes_the_lines_away_counts_however_it_was_made() {
    let landed = Landed::new();
    let first = landed.first.to_string();
    let by_git = landed.runs(landed.tip, &[&["revert", "--no-edit", &first]]);
    assert!(landed.is_reverted(by_git), "git revert");
    let by_hand = landed.says(landed.tip, &[landed.first], |lane| lane.write("two", BEFORE));
    assert!(landed.is_reverted(by_hand), "by hand");
    let most = landed.says(landed.tip, &[landed.first], |lane| {
        lane.write("two", AFTER.replace('B', "b").replace('D', "d").replace('F', "f"));
    });
    assert!(landed.is_reverted(most), "with a line that stays");
    let with_more = landed.says(landed.tip, &[landed.first], |lane| {
        lane.write("two", BEFORE);
        lane.write("three", "x\n");
    });
    assert!(landed.is_reverted(with_more), "with another file");
    let both = landed.says(landed.tip, &[landed.first, landed.tip], |lane| {
        lane.write("two", BEFORE);
        lane.write("more", "1\n");
    });
    assert!(landed.is_reverted(both), "both commits at once, as a forge squashes a revert");
    let edited = landed.scene.commit(landed.tip, "edit", |lane| {
        lane.write("two", format!("above\n{AFTER}"));
    });
    let over_edit = landed.runs(edited, &[&["revert", "--no-edit", &first]]);
    assert!(landed.is_reverted(over_edit), "over an edit of the same file");
    let renamed = landed.scene.commit(landed.tip, "rename", |lane| {
        lane.git(&["mv", "two", "second"]);
    });
    let over_rename = landed.runs(renamed, &[&["revert", "--no-edit", &first]]);
    assert!(landed.is_reverted(over_rename), "under the file's new name");
}

#[test]
fn commits_that_edit_each_other_are_reverted_together() {
    let scene = Scene::new(&[("two", "a\n")]);
    let sealed = scene.change("2", 1, &[("two", Some("c\n"))]);
    let message = format!("change 2\n\nPdca-Sealed: 2 {}\n", sealed.digest());
    let first = scene.commit(scene.base, &message, |lane| lane.write("two", "b\n"));
    let tip = scene.commit(first, &message.replace("2\n", "2b\n"), |lane| lane.write("two", "c\n"));
    let landed = Landed { scene, sealed, first, tip };
    assert!(!landed.is_reverted(tip));
    let reverted = landed.says(tip, &[tip, first], |lane| lane.write("two", "a\n"));
    assert!(landed.is_reverted(reverted));
}

#[test]
fn a_revert_of_a_revert_counts_only_if_the_lines_are_back() {
    let landed = Landed::new();
    let first = landed.first.to_string();
    let reverted = landed.runs(landed.tip, &[&["revert", "--no-edit", &first]]);
    let words = landed.says(reverted, &[reverted], |lane| lane.write("three", "x\n"));
    assert!(landed.is_reverted(words), "a sentence brings nothing back");
    let back = landed.runs(reverted, &[&["revert", "--no-edit", &reverted.to_string()]]);
    assert!(!landed.is_reverted(back));
}

#[test]
fn a_revert_of_a_merge_takes_back_what_the_merge_brought() {
    let landed = Landed::new();
    let main = landed.scene.commit(landed.scene.base, "main", |lane| lane.write("y", "y\n"));
    let merge = landed
        .runs(main, &[&["merge", "--quiet", "--no-ff", "--no-edit", &landed.tip.to_string()]]);
    assert!(!landed.is_reverted(merge));
    let words = landed.says(merge, &[merge], |lane| lane.write("three", "x\n"));
    assert!(!landed.is_reverted(words));
    let reverted = landed.runs(merge, &[&["revert", "--no-edit", "-m", "1", &merge.to_string()]]);
    assert!(landed.is_reverted(reverted));
}

#[test]
fn a_revert_of_a_binary_file_counts_if_the_file_is_as_it_was() {
    let scene = Scene::new(&[("two", "a\0b")]);
    let sealed = scene.change("2", 1, &[("two", Some("a\0c"))]);
    let message = format!("change 2\n\nPdca-Sealed: 2 {}\n", sealed.digest());
    let tip = scene.commit(scene.base, &message, |lane| lane.write("two", "a\0c"));
    let landed = Landed { scene, sealed, first: tip, tip };
    let words = landed.says(tip, &[tip], |lane| lane.write("two", "a\0d"));
    assert!(!landed.is_reverted(words));
    let reverted = landed.says(tip, &[tip], |lane| lane.write("two", "a\0b"));
    assert!(landed.is_reverted(reverted));
}
