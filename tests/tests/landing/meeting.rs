//! A workspace whose bundles are accepted one by one, and the user's own checkout beside it.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use pdca_e2e::{Ran, Scene};

const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// The builder does what lies ready for it.
const BUILDER: &str = r#"
cp -R "$PDCA_WORKSPACE/todo/$1/." .
rm -rf "$PDCA_WORKSPACE/calls/view-$1"
cp -R "$PDCA_BUNDLE" "$PDCA_WORKSPACE/calls/view-$1"
"#;

/// A workspace with accepted bundles, and a user in the middle of a merge of their own. When it goes
/// out of scope the user's checkout must be what it was, byte for byte.
pub(crate) struct Meeting {
    pub(crate) scene: Scene,
    checkout: BTreeMap<String, Vec<u8>>,
}

impl Drop for Meeting {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let now = self.checkout();
            let names = now.keys().chain(self.checkout.keys());
            let differs = |name: &&String| now.get(*name) != self.checkout.get(*name);
            let changed: BTreeSet<&String> = names.filter(differs).collect();
            assert!(changed.is_empty(), "the user's checkout was changed: {changed:?}");
        }
    }
}

impl Meeting {
    /// One gate over the repository, which is this shell command.
    pub(crate) fn new(gate: &str) -> Self {
        Self::with(gate, "")
    }

    /// The same with more configuration.
    ///
    /// The branch is not gated before bundles are built: these suites count what integrations gate.
    pub(crate) fn with(gate: &str, more: &str) -> Self {
        Self::with_row("", gate, more)
    }

    /// One whose gate reads nothing of a bundle or a lane, so that what Check says of a tree counts at landing too.
    pub(crate) fn sharing(gate: &str, more: &str) -> Self {
        Self::with_row("needs = []\n", gate, more)
    }

    fn with_row(keys: &str, gate: &str, more: &str) -> Self {
        let more = format!("[driver]\ngate_base = \"off\"\n{more}");
        let gate = format!(
            "{more}\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\n{keys}cmd = '''{gate}'''\n"
        );
        let scene = Scene::with_leaves(BUILDER, REVIEWER, &gate);
        let mut meeting = Self { scene, checkout: BTreeMap::new() };
        meeting.leave_a_merge_unfinished();
        meeting.checkout = meeting.checkout();
        meeting
    }

    /// The user is on a branch of their own, so that `main` may move: with a merge that stopped at a
    /// conflict, an edit that is not committed, and a file that git does not know.
    fn leave_a_merge_unfinished(&self) {
        let repo = &self.scene.repo;
        repo.git(&["switch", "--quiet", "-c", "side"]);
        repo.write("own.txt", "side\n");
        repo.commit("side");
        repo.git(&["switch", "--quiet", "-c", "own-work", "main"]);
        repo.write("own.txt", "mine\n");
        repo.commit("mine");
        assert!(!repo.try_git(&["merge", "--quiet", "side"]).status.success());
        repo.write("greeting.txt", "not committed\n");
        repo.write("unknown.txt", "not even added\n");
        assert!(repo.path().join(".git/MERGE_HEAD").exists(), "the merge is unfinished");
    }

    /// Records the user's present state, which must stay.
    pub(crate) fn looked_at_anew(mut self) -> Self {
        self.checkout = self.checkout();
        self
    }

    /// Moves `main` on as somebody else would, by one commit that writes a file.
    pub(crate) fn commit_to_main(&self, file: &str, text: &str) {
        let repo = &self.scene.repo;
        let elsewhere = self.scene.workspace.around().join("elsewhere");
        repo.git(&["worktree", "add", "--quiet", "--detach", elsewhere.as_str(), "main"]);
        let other = pdca_testkit::Repo::existing(&elsewhere);
        other.write(file, text);
        other.commit("somebody else");
        let new = other.git(&["rev-parse", "HEAD"]).trim().to_owned();
        repo.git(&["worktree", "remove", "--force", elsewhere.as_str()]);
        repo.git(&["update-ref", "refs/heads/main", &new]);
    }

    /// A bundle that writes one file, built, checked and accepted.
    pub(crate) fn accepted(&self, id: &str, file: &str, text: &str) {
        self.waiting(id, &[], &[(file, text)]);
        self.scene.accept(id);
    }

    /// A bundle that writes these files, built and checked, with further fields of its brief.
    pub(crate) fn waiting(&self, id: &str, fields: &[(&str, &str)], files: &[(&str, &str)]) {
        for (file, text) in files {
            self.scene.workspace.write(format!("todo/{id}/{file}"), *text);
        }
        self.scene.brief(id, fields);
        self.pdca(&["run", id]).expect(0);
    }

    pub(crate) fn pdca(&self, args: &[&str]) -> Ran {
        self.scene.pdca(args)
    }

    pub(crate) fn integrate(&self, args: &[&str]) -> Ran {
        let mut all = vec!["integrate"];
        all.extend(args);
        self.scene.pdca(&all)
    }

    /// Reads the seal of a bundle.
    pub(crate) fn seal(&self, id: &str) -> serde_json::Value {
        let text = self.scene.workspace.read(format!("results/issue_{id}/seal.json"));
        serde_json::from_str(&text).expect("a seal is JSON")
    }

    /// The commits of the branch, newest first: subject and bundle.
    pub(crate) fn subjects(&self) -> Vec<String> {
        self.log("main")
    }

    pub(crate) fn log(&self, branch: &str) -> Vec<String> {
        let format = "--format=%s|%(trailers:key=Pdca-Sealed,valueonly,separator=%x2C)";
        let text = self.scene.repo.git(&["log", format, branch]);
        // The digest of a seal has the name of a run in it, which is another one each time.
        let bundle = |line: &str| {
            let (subject, sealed) = line.split_once('|').unwrap_or((line, ""));
            format!("{subject}|{}", sealed.split(' ').next().unwrap_or_default())
        };
        text.lines().map(bundle).collect()
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.scene.repo.git(&["rev-parse", name]).trim().to_owned()
    }

    /// Everything of the user's checkout that a person could notice: files, index, HEAD, and every
    /// ref but the branch that may move and ours.
    pub(crate) fn checkout(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let root = self.scene.repo.path();
        collect(root, root, &mut found);
        for name in ["HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MSG", "config", "index"] {
            if let Ok(bytes) = fs_err::read(root.join(".git").join(name)) {
                found.insert(format!(".git/{name}"), bytes);
            }
        }
        let refs = self.scene.repo.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
        let theirs = refs.lines().filter(|line| {
            !line.ends_with(" refs/heads/main")
                && !line.contains(" refs/pdca/")
                && !line.contains(" refs/heads/pdca/")
        });
        found.insert("refs".to_owned(), theirs.collect::<Vec<_>>().join("\n").into_bytes());
        found
    }
}

fn collect(root: &Utf8Path, dir: &Utf8Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in dir.read_dir_utf8().expect("a directory can be listed").flatten() {
        let path = entry.path();
        if path.ends_with(".git") {
            continue;
        }
        if path.is_dir() {
            collect(root, path, found);
        } else {
            let name = path.strip_prefix(root).expect("it is below").to_string();
            found.insert(name, fs_err::read(path).expect("a file can be read"));
        }
    }
}
