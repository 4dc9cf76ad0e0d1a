//! Invariants that must hold after every fault.

use std::collections::BTreeSet;

use crate::Scene;

/// The state of a scene before something happened to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Before {
    user: User,
    files: BTreeSet<String>,
}

/// The user's own state: files, index, current branch, and all branches.
#[derive(Debug, PartialEq, Eq)]
struct User {
    index: Vec<u8>,
    head: String,
    branches: String,
    status: String,
}

impl Scene {
    /// Records the present state of the scene.
    pub fn before(&self) -> Before {
        Before { user: self.user(), files: self.results().into_keys().collect() }
    }

    fn user(&self) -> User {
        // First of all, because `git status` may write it anew.
        let index = fs_err::read(self.repo.path().join(".git/index")).unwrap_or_default();
        let head = fs_err::read_to_string(self.repo.path().join(".git/HEAD")).unwrap_or_default();
        let branches = self.repo.git(&["for-each-ref", "refs/heads", "refs/tags"]);
        User { index, head, branches, status: self.repo.status() }
    }

    /// The runs that are not over, as `pdca status --json` tells them.
    pub fn runs(&self) -> Vec<serde_json::Value> {
        let status = self.pdca(&["status", "--json"]).expect(0).json();
        status["runs"].as_array().expect("status lists runs").clone()
    }

    /// Checks what has to hold after every fault.
    ///
    /// What was there before is there still: the user's checkout, index and branches as they were, and no
    /// file of a bundle gone. Nothing of the run lives. At most one run is active, and `status` and
    /// `recover` say the same about it. Recovering twice is recovering once.
    #[track_caller]
    pub fn check_oracles(&self, before: &Before) {
        assert_eq!(self.user(), before.user, "the user's own was touched");
        self.wait_until("nothing of the run is alive", |scene| scene.processes().is_empty());
        let files: BTreeSet<String> = self.results().into_keys().collect();
        let lost: Vec<_> = before.files.difference(&files).collect();
        assert!(lost.is_empty(), "files of bundles went away: {lost:?}");
        assert!(self.runs().len() <= 1, "two runs are active");
        let once = self.recover();
        let twice = self.recover();
        assert_eq!(once, twice, "recovering twice is not recovering once");
    }

    /// Recovers, and says how everything is then.
    #[track_caller]
    fn recover(&self) -> (Vec<(String, String)>, std::collections::BTreeMap<String, String>) {
        let ran = self.pdca(&["recover", "--json"]);
        assert!([0, 4, 104].contains(&ran.code), "{ran:?}");
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let phases = |runs: &[serde_json::Value]| -> Vec<(String, String)> {
            runs.iter().map(|run| (word(&run["id"]), word(&run["phase"]))).collect()
        };
        let told = ran.json();
        let told: Vec<_> = told["runs"].as_array().cloned().unwrap_or_default();
        let open: Vec<_> = told.into_iter().filter(|run| run["over"] == false).collect();
        let runs = phases(&self.runs());
        assert_eq!(phases(&open), runs, "status and recover differ");
        (runs, self.results())
    }
}

/// Leaves and bundles of the suites that check the fault matrix.
pub mod cast {
    use crate::Scene;

    /// A reviewer that finds nothing.
    pub const REVIEWER: &str =
        r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

    /// Says that it is there, leaves something half done, and goes on when the test lets it.
    pub const PATIENT: &str = r#"
echo half > "half-$1.txt"
echo up > "$PDCA_WORKSPACE/calls/at-$1"
while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
rm -f "half-$1.txt"
echo "$1" > "file-$1.txt"
"#;

    /// Bundles with a builder that waits for the file `go`.
    pub fn patient(ids: &[&str], more: &str) -> Scene {
        with(PATIENT, ids, more)
    }

    /// Bundles with this builder.
    pub fn with(builder: &str, ids: &[&str], more: &str) -> Scene {
        let scene = Scene::with_leaves(builder, REVIEWER, more);
        for id in ids {
            scene.brief(id, &[]);
        }
        scene
    }

    /// Returns whether the builder of a bundle is running.
    pub fn is_at(id: &'static str) -> impl Fn(&Scene) -> bool {
        move |scene| scene.workspace.says(format!("calls/at-{id}"))
    }

    impl Scene {
        /// The private checkout in a slot.
        pub fn lane(&self, slot: u32) -> pdca_testkit::Repo {
            let path = self.workspace.around().join(format!("ws.lanes/lane-{slot}/app"));
            pdca_testkit::Repo::existing(&path)
        }

        /// Lets every builder go on, and the batch come to its end.
        #[track_caller]
        pub fn goes_on(&self, ids: &[&str]) {
            self.workspace.write("go", "");
            let ran = self.pdca(&["batch", "--lanes", "2"]);
            assert!(ran.code == 0 || ran.code == 3, "{ran:?}");
            for id in ids {
                assert_eq!(self.state(id), "AWAITING_SIGNOFF", "{id}");
                let patch = self.workspace.read(format!("results/issue_{id}/patch.diff"));
                assert!(patch.contains(&format!("file-{id}.txt")), "{patch}");
                assert_eq!(patch.matches("diff --git").count(), 1, "{patch}");
            }
            assert_eq!(self.runs(), Vec::<serde_json::Value>::new(), "the run is over");
        }
    }
}
