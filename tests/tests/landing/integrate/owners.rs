//! Two workspaces over one clone: what one has staged stays until it is merged.

use camino::Utf8PathBuf;
use pdca_e2e::{Ran, Scene, copy_tree};

const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// A clone with two workspaces, each with an accepted change.
struct TwoWorkspaces {
    scene: Scene,
    second: Utf8PathBuf,
}

impl TwoWorkspaces {
    fn new() -> Self {
        let more = "[integrate]\nland = \"branch\"\n\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"true\"\n";
        let scene = Scene::with_leaves("echo \"by $1\" > \"f$1.txt\"", REVIEWER, more);
        scene.repo.git(&["checkout", "--quiet", "--detach"]);
        let second = scene.workspace.around().join("second");
        copy_tree(scene.workspace.path(), &second);
        let both = Self { scene, second };
        for (at, id) in ["1", "2"].into_iter().enumerate() {
            let bundle = both.scene.brief(id, &[]);
            if at == 1 {
                let to = both.second.join(format!("results/issue_{id}"));
                fs_err::create_dir_all(to.parent().expect("it has one")).expect("it can be made");
                fs_err::rename(bundle, to).expect("it can be moved");
            }
            both.pdca(at, &["run", id]).expect(0);
            both.pdca(at, &["signoff", id, "clear", "all"]).expect(0);
            both.pdca(at, &["signoff", id, "accept"]).expect(0);
        }
        both
    }

    fn pdca(&self, at: usize, args: &[&str]) -> Ran {
        let root = [self.scene.workspace.path(), &self.second][at].as_str();
        self.scene.pdca(&[&["-C", root][..], args].concat())
    }

    fn integration(&self, at: usize, id: &str) -> String {
        let told = self.pdca(at, &["--json", "status"]).json();
        let rows = told["bundles"].as_array().expect("status lists bundles");
        let row = rows.iter().find(|row| row["id"] == id).expect("the bundle is listed");
        row["integration"].as_str().unwrap_or_default().to_owned()
    }

    fn has(&self, commit: &str, file: &str) -> bool {
        self.scene.repo.try_git(&["cat-file", "-e", &format!("{commit}:{file}")]).status.success()
    }

    fn refs(&self) -> Vec<String> {
        let all = self.scene.repo.git(&["for-each-ref", "--format=%(refname)"]);
        all.lines().map(ToOwned::to_owned).collect()
    }
}

fn reference(ran: &Ran) -> String {
    let told = ran.json();
    let reference = told["references"][0].as_str().expect("a ref moved");
    reference.trim_start_matches("refs/heads/").to_owned()
}

#[test]
fn a_second_workspace_stages_on_top_of_the_first_and_either_can_be_merged() {
    let both = TwoWorkspaces::new();
    let first = both.pdca(0, &["--json", "integrate"]).expect(0);
    let second = both.pdca(1, &["--json", "integrate"]).expect(0);
    let (one, two) = (reference(&first), reference(&second));
    assert_ne!(one, two);
    assert!(both.has(&one, "f1.txt") && !both.has(&one, "f2.txt"), "the first stays as it was");
    assert!(both.has(&two, "f1.txt") && both.has(&two, "f2.txt"), "the second has both");
    assert_eq!(second.json()["staged_on"], one.as_str());
    assert!(second.err.contains("by another workspace"), "{}", second.err);
    assert_eq!(
        (both.integration(0, "1"), both.integration(1, "2")),
        ("staged".into(), "staged".into())
    );
    both.scene.repo.git(&["branch", "--force", "main", &one]);
    assert_eq!(
        (both.integration(0, "1"), both.integration(1, "2")),
        ("landed".into(), "staged".into())
    );
    both.scene.repo.git(&["merge-base", "--is-ancestor", "main", &two]);
    both.scene.repo.git(&["branch", "--force", "main", &two]);
    assert_eq!(both.integration(1, "2"), "landed");
    both.pdca(0, &["verify"]).expect(0);
    both.pdca(1, &["verify"]).expect(0);
}

#[test]
fn cleanup_of_one_workspace_removes_nothing_of_the_other() {
    let both = TwoWorkspaces::new();
    let before = both.refs();
    let one = reference(&both.pdca(0, &["--json", "integrate"]).expect(0));
    let of_first: Vec<String> =
        both.refs().into_iter().filter(|name| !before.contains(name)).collect();
    both.pdca(1, &["--json", "integrate"]).expect(0);
    let left = || both.refs().into_iter().filter(|name| of_first.contains(name)).count();
    both.pdca(1, &["cleanup", "--keep-days", "0"]);
    assert_eq!(left(), of_first.len(), "while it is staged");
    both.scene.repo.git(&["branch", "--force", "main", &one]);
    // It may have nothing to remove.
    both.pdca(1, &["cleanup", "--keep-days", "0"]);
    assert_eq!(left(), of_first.len(), "after it was merged");
    both.pdca(0, &["cleanup", "--keep-days", "0"]).expect(0);
    assert!(!both.refs().contains(&format!("refs/heads/{one}")), "its owner removes it");
}

#[test]
fn what_stands_on_a_staged_change_that_was_taken_back_is_folded_anew() {
    let both = TwoWorkspaces::new();
    both.pdca(0, &["--json", "integrate"]).expect(0);
    let two = reference(&both.pdca(1, &["--json", "integrate"]).expect(0));
    both.pdca(0, &["reopen", "1", "--note", "not this way"]).expect(0);
    both.scene.repo.git(&["branch", "-D", "pdca/staging/main"]);
    assert_eq!(both.integration(1, "2"), "sealed");
    both.pdca(1, &["--json", "integrate"]).expect(0);
    assert!(both.has(&two, "f2.txt") && !both.has(&two, "f1.txt"));
}
