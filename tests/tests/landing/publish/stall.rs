//! A workspace with accepted bundles, a remote, and a forge that lives in a directory.

use camino::Utf8PathBuf;
use pdca_e2e::{Ran, Started};
use pdca_testkit::{Repo, fake_gh};
use serde_json::Value;

use crate::meeting::Meeting;

/// A workspace with a forge. The user's checkout must be unchanged when it goes out of scope.
pub(crate) struct Stall {
    pub(crate) meeting: Meeting,
    pub(crate) remote: Repo,
}

impl Stall {
    pub(crate) fn new() -> Self {
        Self::with("", "")
    }

    /// With more in `[publish]`, and more tables.
    pub(crate) fn with(publish: &str, more: &str) -> Self {
        let meeting = Meeting::with("true", more);
        let path = meeting.scene.workspace.around().join("remote.git");
        meeting.scene.repo.git(&["clone", "--quiet", "--bare", ".", path.as_str()]);
        // By name, so that a remote-tracking ref could move, which must not.
        meeting.scene.repo.git(&["remote", "add", "origin", path.as_str()]);
        let stall = Self { remote: Repo::existing(&path), meeting: meeting.looked_at_anew() };
        let config = stall.meeting.scene.workspace.read("pdca.toml");
        let gh = if publish.contains("gh =") {
            String::new()
        } else {
            format!("gh = \"{}\"\n", fake_gh())
        };
        let table = format!("[publish]\n{gh}{publish}");
        stall.meeting.scene.workspace.config(&format!("{config}\n{table}\n"));
        stall
    }

    /// The same with one bundle that is accepted.
    pub(crate) fn with_one() -> Self {
        let stall = Self::new();
        stall.meeting.accepted("7", "a.txt", "a\n");
        stall
    }

    pub(crate) fn publish(&self, args: &[&str]) -> Ran {
        self.publish_with(&[], args)
    }

    /// Publishes, and is killed at an effect.
    pub(crate) fn killed_at(&self, point: &str, args: &[&str]) -> Ran {
        self.publish_with(&[("PDCA_CRASH_AT", point)], args)
    }

    pub(crate) fn publish_with(&self, env: &[(&str, &str)], args: &[&str]) -> Ran {
        let words: Vec<&str> = ["publish"].into_iter().chain(args.iter().copied()).collect();
        self.pdca_with(env, &words)
    }

    /// Runs any command beside the forge.
    pub(crate) fn pdca(&self, args: &[&str]) -> Ran {
        self.pdca_with(&[], args)
    }

    pub(crate) fn pdca_with(&self, env: &[(&str, &str)], args: &[&str]) -> Ran {
        let state = self.forge();
        let mut all = vec![
            ("FAKE_GH_STATE", state.as_str()),
            ("FAKE_GH_REMOTE", self.remote.path().as_str()),
        ];
        all.extend(env);
        self.meeting.scene.pdca_with(&all, args)
    }

    /// Runs a command beside the forge at a pseudo-terminal, with everything that a person types there.
    pub(crate) fn with_keys(&self, args: &[&str], keys: &str) -> Ran {
        let state = self.forge();
        let env =
            [("FAKE_GH_STATE", state.as_str()), ("FAKE_GH_REMOTE", self.remote.path().as_str())];
        self.meeting.scene.with_keys_and(&env, args, keys)
    }

    /// Starts publishing and does not wait for it.
    pub(crate) fn start(&self, args: &[&str]) -> Started {
        let (state, remote) = (self.forge(), self.remote.path());
        let env = [("FAKE_GH_STATE", state.as_str()), ("FAKE_GH_REMOTE", remote.as_str())];
        let words: Vec<&str> = ["publish"].into_iter().chain(args.iter().copied()).collect();
        self.meeting.scene.start_with(&env, &words)
    }

    /// The directory in which the forge lives.
    pub(crate) fn forge(&self) -> Utf8PathBuf {
        self.meeting.scene.workspace.around().join("forge")
    }

    /// Sets the faults from now on, one line each.
    pub(crate) fn faults(&self, lines: &[&str]) {
        let dir = self.forge();
        fs_err::create_dir_all(&dir).expect("a directory can be made");
        fs_err::write(dir.join("faults"), lines.join("\n") + "\n").expect("a file can be written");
    }

    fn kept(&self, kind: &str) -> Vec<Value> {
        let dir = self.forge().join(kind);
        let Ok(entries) = dir.read_dir_utf8() else { return Vec::new() };
        let mut paths: Vec<_> =
            entries.map(|entry| entry.expect("it can be listed").path().to_owned()).collect();
        paths.sort();
        let read = |path: &Utf8PathBuf| fs_err::read_to_string(path).expect("it can be read");
        paths.iter().map(|path| serde_json::from_str(&read(path)).expect("it is JSON")).collect()
    }

    pub(crate) fn pulls(&self) -> Vec<Value> {
        self.kept("pulls")
    }

    pub(crate) fn comments(&self) -> Vec<Value> {
        self.kept("comments")
    }

    /// Changes a pull request as somebody does who is there.
    pub(crate) fn change_pull(&self, number: u64, change: impl FnOnce(&mut Value)) {
        let mut pull = self.pulls()[usize::try_from(number).expect("it is small") - 1].clone();
        change(&mut pull);
        self.put_pull(number, &pull);
    }

    pub(crate) fn put_pull(&self, number: u64, pull: &Value) {
        let dir = self.forge().join("pulls");
        fs_err::create_dir_all(&dir).expect("a directory can be made");
        fs_err::write(dir.join(format!("{number:04}.json")), pull.to_string())
            .expect("a file can be written");
    }

    /// Returns the number of such calls of the forge.
    pub(crate) fn asked(&self, call: &str) -> usize {
        let log = self.forge().join("log");
        let log = fs_err::read_to_string(log).unwrap_or_default();
        log.lines().filter(|line| *line == call).count()
    }

    /// Returns the tip of a branch on the remote.
    pub(crate) fn branch(&self, name: &str) -> Option<String> {
        let asked = self.remote.try_git(&["rev-parse", "--verify", &format!("refs/heads/{name}")]);
        asked.status.success().then(|| String::from_utf8_lossy(&asked.stdout).trim().to_owned())
    }

    pub(crate) fn record(&self, id: &str) -> Value {
        serde_json::from_str(&self.read(id, "publish.json")).expect("a record is JSON")
    }

    pub(crate) fn read(&self, id: &str, file: &str) -> String {
        self.meeting.scene.workspace.read(format!("results/issue_{id}/{file}"))
    }

    pub(crate) fn write(&self, id: &str, file: &str, text: &str) {
        self.meeting.scene.workspace.write(format!("results/issue_{id}/{file}"), text);
    }

    /// Takes everything back, here and there, but the acceptance.
    pub(crate) fn take_back(&self, id: &str) {
        drop(fs_err::remove_dir_all(self.forge()));
        self.remote.git(&["update-ref", "-d", &format!("refs/heads/pdca/{id}")]);
        let texts = ["commit-msg.txt", "pr-description.md", "tracker-comment.md", "publish.json"];
        for file in texts {
            drop(fs_err::remove_file(self.meeting.scene.workspace.bundle(id).join(file)));
        }
    }
}
