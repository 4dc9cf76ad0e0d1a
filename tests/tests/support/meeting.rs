//! A workspace whose bundles are accepted one by one, and the user's own checkout beside it.

use std::collections::BTreeMap;

use camino::Utf8Path;
use pdca_e2e::{Ran, Scene};

const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// The builder does what lies ready for it.
const BUILDER: &str = r#"
cp -R "$PDCA_WORKSPACE/todo/$1/." .
"#;

/// A workspace with accepted bundles.
pub(crate) struct Meeting(pub(crate) Scene);

impl Meeting {
    /// One gate over the repository, which is this shell command.
    pub(crate) fn new(gate: &str) -> Self {
        Self::with(gate, "")
    }

    /// The same with more configuration.
    pub(crate) fn with(gate: &str, more: &str) -> Self {
        let gate = format!(
            "{more}\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = '''{gate}'''\n"
        );
        let scene = Scene::with_leaves(BUILDER, REVIEWER, &gate);
        // The user is at something else, so the branch may move.
        scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
        Self(scene)
    }

    /// A bundle that writes one file, built, checked and accepted.
    pub(crate) fn accepted(&self, id: &str, file: &str, text: &str) {
        self.waiting(id, &[], &[(file, text)]);
        self.0.accept(id);
    }

    /// A bundle that writes these files, built and checked, with further fields of its brief.
    pub(crate) fn waiting(&self, id: &str, fields: &[(&str, &str)], files: &[(&str, &str)]) {
        for (file, text) in files {
            self.0.workspace.write(format!("todo/{id}/{file}"), *text);
        }
        self.0.brief(id, fields);
        self.pdca(&["run", id]).expect(0);
    }

    pub(crate) fn pdca(&self, args: &[&str]) -> Ran {
        self.0.pdca(args)
    }

    pub(crate) fn integrate(&self, args: &[&str]) -> Ran {
        let mut all = vec!["integrate"];
        all.extend(args);
        self.0.pdca(&all)
    }

    /// The commits of the branch, newest first: subject and bundle.
    pub(crate) fn subjects(&self) -> Vec<String> {
        self.log("main")
    }

    pub(crate) fn log(&self, branch: &str) -> Vec<String> {
        let format = "--format=%s|%(trailers:key=Pdca-Sealed,valueonly,separator=%x2C)";
        let text = self.0.repo.git(&["log", format, branch]);
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.0.repo.git(&["rev-parse", name]).trim().to_owned()
    }

    /// Everything of the user's checkout that a person could notice: files, index, HEAD, and every
    /// ref but the branch that may move and ours.
    pub(crate) fn checkout(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let root = self.0.repo.path();
        collect(root, root, &mut found);
        for name in ["HEAD", "MERGE_HEAD", "MERGE_MSG", "config", "index"] {
            if let Ok(bytes) = fs_err::read(root.join(".git").join(name)) {
                found.insert(format!(".git/{name}"), bytes);
            }
        }
        let refs = self.0.repo.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
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
