//! Hosts for tests: homes of their own, reached through a program that stands in for `ssh`.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_e2e::{Ran, Scene, Started};
use pdca_process::Tool;
use pdca_testkit::pdca_bin;

/// A review that passes.
pub(crate) const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// Writes one file, and says on which host.
pub(crate) const BUILDER: &str = r#"echo "$1" > "file-$1.txt""#;

/// Says that it is there, and goes on when the test lets it.
pub(crate) const PATIENT: &str = r#"
touch "$COUNT/at-$1"
while [ ! -e "$COUNT/go-$1" ] && [ ! -e "$COUNT/go" ]; do sleep 0.02; done
echo "$1" > "file-$1.txt"
"#;

/// Stands in for `ssh`: a host is a home directory. `$CUT/<verb>-before` loses a request, `$CUT/<verb>-after` its
/// answer, each once; `$CUT/down-<host>` loses everything.
const SSH: &str = r#"#!/bin/sh
while [ $# -gt 2 ]; do shift; done
host=$1; command=$2
request=$(mktemp "$CUT/request-XXXXXX")
cat > "$request"
verb=$(grep -a -o '"verb":"[a-z]*"' "$request" | head -n 1 | cut -d'"' -f4)
[ -n "$verb" ] || verb=install
echo "$host $verb" >> "$CUT/verbs"
lost() { rm -f "$request"; echo "client_loop: send disconnect: Broken pipe" >&2; exit 255; }
[ -e "$CUT/down-$host" ] && lost
rm "$CUT/$verb-before" 2>/dev/null && lost
HOME="$HOSTS/$host" sh -c "$command" < "$request" > "$request.answer"
code=$?
[ -e "$CUT/down-$host" ] && lost
rm "$CUT/$verb-after" 2>/dev/null && lost
cat "$request.answer"
rm -f "$request" "$request.answer"
exit $code
"#;

/// A scene with hosts.
pub(crate) struct Hosts {
    pub(crate) scene: Scene,
    pub(crate) names: Vec<String>,
}

/// The configuration of the leaves, without walls so that they can count.
fn leaves() -> String {
    let leaf = |role: &str| {
        format!(
            "[leaves.{role}]\nmode = \"command\"\nargv = [\"sh\", \"{{workspace}}/leaves/{role}.sh\", \"{{id}}\"]\n\
             prompt_via = \"none\"\nsandbox = \"off\"\n\n"
        )
    };
    format!("{}{}", leaf("builder"), leaf("reviewer"))
}

/// The part of `pdca.toml` that names a host.
fn host_entry(name: &str, more: &str) -> String {
    format!(
        "[[hosts]]\nname = \"{name}\"\nslots = 2\nsend = [\"leaves\"]\nlost_after_secs = 20\n{more}\n"
    )
}

impl Hosts {
    /// Hosts of these names, with two slots each.
    pub(crate) fn new(names: &[&str], builder: &str, more: &str) -> Self {
        Self::with_host_keys(names, builder, more, "")
    }

    /// The same with further keys of each host.
    pub(crate) fn with_host_keys(names: &[&str], builder: &str, more: &str, keys: &str) -> Self {
        let hosts: String = names.iter().map(|name| host_entry(name, keys)).collect();
        let scene = Scene::new(&format!("{hosts}{}{more}", leaves()));
        let around = scene.workspace.around();
        for dir in ["cut", "count", "hosts", "stand-in"] {
            fs_err::create_dir_all(around.join(dir)).unwrap();
        }
        let path = search_path();
        let scene = scene
            .env("PATH", &format!("{around}/stand-in:{path}"))
            .env("CUT", around.join("cut").as_str())
            .env("COUNT", around.join("count").as_str())
            .env("HOSTS", around.join("hosts").as_str())
            .env("XDG_RUNTIME_DIR", around.as_str())
            .env("SOURCE_DATE_EPOCH", "1700000000");
        let hosts = Self { scene, names: names.iter().map(|name| (*name).to_owned()).collect() };
        put_program(&around.join("stand-in/ssh"), SSH);
        for name in names {
            put_pdca(&around.join("hosts").join(name).join(".pdca-host"));
        }
        hosts.leaf("builder", builder);
        hosts.leaf("reviewer", REVIEWER);
        hosts
    }

    /// Writes the script of a leaf, which counts its calls outside of every workspace.
    pub(crate) fn leaf(&self, role: &str, text: &str) {
        let count = self.around().join("count");
        let script = format!(
            "COUNT='{count}'\necho \"{role} $1 $(basename \"$HOME\")\" >> \"$COUNT/log\"\nset -eu\n{text}\n"
        );
        self.scene.workspace.write(format!("leaves/{role}.sh"), script);
    }

    pub(crate) fn around(&self) -> Utf8PathBuf {
        self.scene.workspace.around()
    }

    /// The root of a host.
    pub(crate) fn root(&self, name: &str) -> Utf8PathBuf {
        self.around().join("hosts").join(name).join(".pdca-host")
    }

    /// Makes a file of the stand-in for `ssh`.
    pub(crate) fn cut(&self, what: &str) {
        fs_err::write(self.around().join("cut").join(what), "").unwrap();
    }

    pub(crate) fn mend(&self, what: &str) {
        fs_err::remove_file(self.around().join("cut").join(what)).unwrap();
    }

    pub(crate) fn is_cut(&self, what: &str) -> bool {
        self.around().join("cut").join(what).exists()
    }

    /// Changes the configuration.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let toml = self.scene.workspace.read("pdca.toml");
        assert!(toml.contains(from), "{toml}");
        self.scene.workspace.write("pdca.toml", toml.replace(from, to));
    }

    /// The requests so far, one `host verb` each.
    pub(crate) fn verbs(&self) -> Vec<String> {
        lines(&self.around().join("cut/verbs"))
    }

    /// The calls of leaves so far: role, bundle and the home they ran in.
    pub(crate) fn calls(&self) -> Vec<String> {
        let mut calls = lines(&self.around().join("count/log"));
        calls.sort();
        calls
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.around().join("count").join(file).exists()
    }

    pub(crate) fn let_go(&self, what: &str) {
        fs_err::write(self.around().join("count").join(what), "").unwrap();
    }

    pub(crate) fn batch(&self, more: &[&str]) -> Ran {
        self.scene.pdca(&[&["batch", "--lanes", "0"], more].concat())
    }

    pub(crate) fn start(&self, more: &[&str]) -> Started {
        self.scene.start(&[&["batch", "--lanes", "0"], more].concat())
    }

    pub(crate) fn briefs(&self, ids: &[&str]) {
        for id in ids {
            self.scene.brief(id, &[]);
        }
    }

    /// Accepts as a person does.
    pub(crate) fn accept(&self, ids: &[&str]) {
        for id in ids {
            self.scene.accept(id);
        }
    }

    /// The directories of jobs on a host.
    pub(crate) fn jobs(&self, name: &str) -> Vec<String> {
        let Ok(entries) = self.root(name).join("jobs").read_dir_utf8() else { return Vec::new() };
        let mut jobs: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_owned()).collect();
        jobs.sort();
        jobs
    }

    /// The processes that run jobs on a host, and everything below them.
    pub(crate) fn runners(&self, name: &str) -> Vec<i32> {
        let root = self.root(name).to_string();
        let mut pids = Vec::new();
        for entry in fs_err::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            let line = fs_err::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(&root) && line.contains("--run") {
                pids.push(pid);
            }
        }
        pids
    }
}

impl Drop for Hosts {
    /// Ends what a failed test left running, by its root.
    fn drop(&mut self) {
        for name in &self.names {
            for pid in self.runners(name) {
                signal(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Says that a test shows nothing on this machine, and why. Written past the capture of the test runner.
pub(crate) fn not_shown(why: &str) {
    let test = std::thread::current();
    let line = format!("skipped: {}: {why}\n", test.name().unwrap_or_default());
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _sent = rustix::process::kill_process(pid, signal);
    }
}

fn lines(path: &Utf8Path) -> Vec<String> {
    let text = fs_err::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn put_program(path: &Utf8Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the scene adds a program to the path of the test")]
fn search_path() -> String {
    std::env::var("PATH").unwrap()
}

/// Puts this pdca below a root, without a copy of its hundred megabytes.
pub(crate) fn put_pdca(root: &Utf8Path) {
    fs_err::create_dir_all(root.join("bin")).unwrap();
    fs_err::os::unix::fs::symlink(pdca_bin(), root.join("bin/pdca")).unwrap();
}

/// The seals of accepted bundles, every byte.
pub(crate) fn seals(scene: &Scene, ids: &[&str]) -> BTreeMap<String, String> {
    let seal = |id: &&str| {
        let text = scene.workspace.read(format!("results/issue_{id}/seal.json"));
        ((*id).to_owned(), text)
    };
    ids.iter().map(seal).collect()
}

/// A scene as it was at some time, to go back to.
pub(crate) struct Before {
    _kept: tempfile::TempDir,
    copy: Utf8PathBuf,
}

impl Hosts {
    /// Keeps everything that belongs to the scene: workspace, target, hosts.
    pub(crate) fn keep(&self) -> Before {
        let kept = tempfile::tempdir().unwrap();
        let copy = Utf8PathBuf::from_path_buf(kept.path().join("copy")).unwrap();
        copy_all(&self.around(), &copy);
        Before { _kept: kept, copy }
    }

    /// Goes back. A seal has a digest over the search path, so two runs that have to give the same bytes need the same
    /// place.
    pub(crate) fn go_back(&self, before: &Before) {
        for entry in self.around().read_dir_utf8().unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                fs_err::remove_dir_all(entry.path()).unwrap();
            } else {
                fs_err::remove_file(entry.path()).unwrap();
            }
        }
        for entry in before.copy.read_dir_utf8().unwrap().flatten() {
            copy_all(entry.path(), &self.around().join(entry.file_name()));
        }
    }
}

fn copy_all(from: &Utf8Path, to: &Utf8Path) {
    let copied = Tool::new("cp").args(["-a", from.as_str(), to.as_str()]).run();
    assert!(copied.is_ok_and(|said| said.success()), "{from} is copied to {to}");
}
