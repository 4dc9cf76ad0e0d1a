//! Runs the command line in-process, for the tests of every command.

use pdca_process::FileLock;
use std::ffi::OsString;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use pdca_testkit::{TestWorkspace, assert_follows_schema};

use crate::exit::Exit;
use crate::process_env::ProcessEnv;

/// A workspace, with a person who types in it.
pub(crate) struct Desk {
    pub(crate) workspace: TestWorkspace,
    pub(crate) env: ProcessEnv,
}

/// Output and exit code of a command line.
pub(crate) struct Run {
    pub(crate) exit: Exit,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    /// An empty workspace with a user named Ada and no terminal.
    pub(crate) fn new() -> Self {
        let workspace = TestWorkspace::new();
        let env = ProcessEnv::of_values(workspace.path().as_str(), &[("USER", "ada")]);
        Desk { workspace, env }
    }

    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.vars.insert(name.into(), value.into());
        self
    }

    /// Runs one command line.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_os(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    /// Runs one command line that need not be UTF-8.
    pub(crate) fn run_os(&self, args: &[OsString]) -> Run {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let is_json = args.iter().any(|word| word == "--json");
        let args = std::iter::once(OsString::from("pdca")).chain(args.iter().cloned());
        let exit = crate::run(args, &self.env, &mut out, &mut err);
        if is_json {
            let document = serde_json::from_slice(&out).expect("`--json` prints one document");
            assert_follows_schema(&document);
        }
        // Temporary directories differ from run to run.
        let plain = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("what is printed is UTF-8");
            text.replace(self.workspace.around().as_str(), "[TMP]")
        };
        Run { exit, out: plain(out), err: plain(err) }
    }

    /// Makes a bundle that waits for sign-off, with these open items in §6 and this verdict of its only gate.
    pub(crate) fn awaiting(&self, id: &str, open: &[&str], gate: &str) {
        self.workspace.brief(id, &[]);
        let file = |name: &str| format!("results/issue_{id}/{name}");
        let patch = "--- a/x\n+++ b/x\n";
        self.workspace.write(file("patch.diff"), patch);
        let digest = pdca_state::sha256_hex(patch.as_bytes());
        let gates = format!(
            r#"{{"issue_dir": "issue_{id}", "overall": "{gate}", "patch_digest": "{digest}", "rows": [
                {{"check": "C4 verified", "result": "{gate}", "oracle": "./verify.sh", "rule_id": "C4-verify",
                  "path_line": "1 test", "gating": true, "element": "C4"}}]}}"#
        );
        self.workspace.write(file("check-gates.json"), gates);
        self.workspace
            .write(file("check-review.md"), "| Item | Verdict | Basis |\n|---|---|---|\n");
        let boxes: Vec<String> = open.iter().map(|item| format!("- [ ] {item}\n")).collect();
        let boxes = boxes.concat();
        let summary = format!(
            "# Result — issue {id} / a-small-thing\n\n## 6. NEEDS-HUMAN — items the human must clear before sign-off\n\n\
             {boxes}\n## 9. Check sign-off\n\n- Disposition confirmed / overridden:\n- Outcome:\n\
             - Iteration delta (if iterating):\n- By / date:\n\n## 10. Act candidates\n"
        );
        self.workspace.write(file("SUMMARY.md"), summary);
    }

    /// Makes an accepted bundle.
    pub(crate) fn complete(&self, id: &str) {
        self.awaiting(id, &[], "pass");
        let file = format!("results/issue_{id}/SUMMARY.md");
        let signed = self.workspace.read(&file).replace("- Outcome:", "- Outcome: merged-wider");
        self.workspace
            .write(&file, signed.replace("- By / date:", "- By / date: Ada / 2026-11-15"));
    }

    /// Holds a lock of the driver in another name, as if since so many minutes, for as long as the file lives.
    pub(crate) fn held(&self, lock: &str, holder: &str, minutes: u64) -> FileLock {
        let path = self.workspace.path().join(".pdca").join(lock);
        fs_err::create_dir_all(path.parent().expect("a lock lies in a directory"))
            .expect("a directory can be made");
        let lock = FileLock::take(&path, holder).expect("nobody else holds it");
        let now = u64::try_from(self.env.now()).expect("the clock is set");
        let since = UNIX_EPOCH + Duration::from_secs(now - 60 * minutes);
        let file = lock.try_clone().expect("a file can be opened again");
        file.set_modified(since).expect("a file's time can be set");
        lock
    }

    /// Simulates a driver that holds these bundles, each in a lane since so many minutes.
    pub(crate) fn at_work(&self, bundles: &[(&str, u32, u64)]) -> Vec<FileLock> {
        let lock = |(id, lane, minutes): &(&str, u32, u64)| {
            let holder = format!("process 7, lane {lane}");
            self.held(&format!("locks/issue_{id}.lock"), &holder, *minutes)
        };
        let driver = self.held("driver.lock", "process 7", 9);
        bundles.iter().map(lock).chain([driver]).collect()
    }

    /// Returns every file of the workspace with its bytes, to show that nothing changed. The driver's locks
    /// below `.pdca` are left out, because their files stay on purpose.
    pub(crate) fn all_files(&self) -> Vec<(String, Vec<u8>)> {
        fn walk(dir: &camino::Utf8Path, found: &mut Vec<(String, Vec<u8>)>) {
            for entry in dir.read_dir_utf8().expect("a directory can be listed") {
                let path = entry.expect("an entry can be read").path().to_owned();
                if path.file_name() == Some(".pdca") {
                    continue;
                }
                let meta = path.symlink_metadata().expect("an entry has metadata");
                if meta.is_dir() {
                    found.push((path.to_string(), Vec::new()));
                    walk(&path, found);
                } else if meta.is_file() {
                    // A large file is compared by its size.
                    let bytes = if meta.len() > 1 << 20 {
                        meta.len().to_string().into_bytes()
                    } else {
                        fs_err::read(&path).expect("a file can be read")
                    };
                    found.push((path.to_string(), bytes));
                } else {
                    found.push((path.to_string(), b"link".to_vec()));
                }
            }
        }
        let mut found = Vec::new();
        walk(self.workspace.path(), &mut found);
        found.sort();
        found
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.out)?;
        if !self.err.is_empty() {
            write!(f, "--- stderr\n{}", self.err)?;
        }
        if self.exit != Exit::Done {
            writeln!(f, "--- exit {}", self.exit.code())?;
        }
        Ok(())
    }
}
