//! What has to hold after every fault, whatever it was.

use std::collections::BTreeSet;

use crate::Scene;

/// How a scene was before something happened to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Before {
    user: User,
    files: BTreeSet<String>,
}

/// What is the user's own: files, index, branch, and where every branch is.
#[derive(Debug, PartialEq, Eq)]
struct User {
    index: Vec<u8>,
    head: String,
    branches: String,
    status: String,
}

impl Scene {
    /// How the scene is now.
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
