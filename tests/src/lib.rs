//! Fixtures of the end-to-end suites: a workspace with a real repository, and the real binary.
//!
//! The suites are in `tests/tests/`. Leaves are shell scripts that append a line to a file when they
//! run, so that a test can count how often.
//!
//! # Invariants
//! - Everything is in a temporary directory; nothing reads the user's git or `pdca` configuration.
//! - The only thing that is faked is a program.

#![expect(clippy::missing_panics_doc, reason = "a test's helper fails by panicking")]

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{Tool, ToolError};
use pdca_testkit::{Pty, Reply, Repo, TestWorkspace, assert_follows_schema, pdca_bin};

mod namespace;
mod oracle;
mod terminal;

pub use oracle::{Before, cast};
pub use terminal::Terminal;

/// The longest time for something that must end. It bounds a test that hangs, and says nothing
/// about speed: a busy disk takes many seconds for one sync.
const PATIENCE: Duration = Duration::from_secs(300);

/// Output and exit code of a command.
#[derive(Debug)]
pub struct Ran {
    /// The exit code, or 128 and the signal.
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The command must have ended with this code.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "often only the code matters")]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "--- stdout\n{}\n--- stderr\n{}", self.out, self.err);
        self
    }

    /// Standard output as JSON, which follows its schema.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let value =
            serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{}", self.out));
        assert_follows_schema(&value);
        value
    }
}

/// A workspace with one target, and the binary.
#[derive(Debug)]
pub struct Scene {
    pub workspace: TestWorkspace,
    /// The user's own checkout of the target.
    pub repo: Repo,
    /// Arguments that the suite adds to every call.
    env: BTreeMap<String, String>,
}

/// The part of `pdca.toml` that names the target.
pub const TARGET: &str =
    "[[targets]]\nname = \"app\"\npath = \"../app\"\nrepo = \"team/app\"\nbranch = \"main\"\n\n";

impl Scene {
    /// A workspace whose `pdca.toml` names the target and goes on with `config`.
    pub fn new(config: &str) -> Self {
        let workspace = TestWorkspace::new();
        let repo = workspace.target("app");
        repo.write("greeting.txt", "hello\n");
        repo.commit("first");
        fs_err::create_dir_all(workspace.path().join("calls")).expect("a directory can be made");
        workspace.config(&format!("{TARGET}{config}"));
        Self { workspace, repo, env: BTreeMap::new() }
    }

    /// The same with leaves that are scripts: `$1` is the id, and each call is counted.
    pub fn with_leaves(builder: &str, reviewer: &str, more: &str) -> Self {
        let scene = Self::new(&format!("{}{}{more}", leaf("builder"), leaf("reviewer")));
        scene.script("builder", builder);
        scene.script("reviewer", reviewer);
        scene
    }

    /// Writes the script of a leaf.
    pub fn script(&self, role: &str, text: &str) {
        let counted = format!(
            "log=\"$PDCA_WORKSPACE/calls\"\necho \"{role} $1\" >> \"$log/log\"\nset -eu\n{text}\n\
             echo \"{role} $1\" >> \"$log/ended\"\n"
        );
        self.workspace.write(format!("leaves/{role}.sh"), counted);
    }

    /// Adds a variable to every call.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Writes a brief for the target.
    pub fn brief(&self, id: &str, fields: &[(&str, &str)]) -> Utf8PathBuf {
        let mut all = vec![("Slug", "a-slug"), ("Repo + branch target", "team/app @ main")];
        all.extend(fields);
        self.workspace.brief(id, &all)
    }

    /// Runs `pdca` in the workspace.
    pub fn pdca<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Ran {
        self.pdca_with(&[], args)
    }

    /// Runs `pdca` in the workspace with further variables.
    pub fn pdca_with<A: AsRef<std::ffi::OsStr>>(&self, env: &[(&str, &str)], args: &[A]) -> Ran {
        let mut tool = Tool::new(pdca_bin().as_std_path()).cwd(self.workspace.path()).args(args);
        for (name, value) in self.surroundings(env) {
            tool = tool.env(name, value);
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("pdca prints UTF-8");
        match tool.timeout(PATIENCE).run() {
            Ok(said) => Ran { code: said.code, out: text(said.stdout), err: text(said.stderr) },
            Err(ToolError::Signaled { signal, .. }) => {
                Ran { code: 128 + signal, out: String::new(), err: String::new() }
            }
            Err(error) => panic!("pdca cannot be run: {error}"),
        }
    }

    /// Types a command line that `pdca` printed into a shell, in the workspace. Its editor changes nothing.
    pub fn paste(&self, line: &str) -> Ran {
        let bin = self.bin_path();
        let line = format!("PATH={bin}:$PATH; export PATH; {line}");
        let mut shell = Tool::new("sh").cwd(self.workspace.path()).args(["-c", &line]);
        for (name, value) in self.surroundings(&[("EDITOR", "true")]) {
            shell = shell.env(name, value);
        }
        let said = shell.timeout(PATIENCE).run().expect("a shell can be run");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: said.code, out: text(said.stdout), err: text(said.stderr) }
    }

    /// Runs `pdca` at a pseudo-terminal, with everything that a person types there.
    pub fn with_keys(&self, args: &[&str], keys: &str) -> Ran {
        self.with_keys_and(&[], args, keys)
    }

    /// Like [`Self::with_keys`], with further variables.
    pub fn with_keys_and(&self, env: &[(&str, &str)], args: &[&str], keys: &str) -> Ran {
        self.terminal_shell(env, &format!("pdca {}", args.join(" ")), keys)
    }

    /// Types a line into a shell at a pseudo-terminal; the keys go to its commands.
    pub fn shell_with_keys(&self, line: &str, keys: &str) -> Ran {
        self.terminal_shell(&[], line, keys)
    }

    /// `script` gives its child a terminal, and what comes on its own standard input are the keys.
    fn terminal_shell(&self, env: &[(&str, &str)], line: &str, keys: &str) -> Ran {
        let path = self.bin_path();
        let line = format!("PATH={path}:$PATH; export PATH; {line}");
        let mut tool = Tool::new("script")
            .cwd(self.workspace.path())
            .args(["-qefc", &line, "/dev/null"])
            .stdin(keys);
        for (name, value) in self.surroundings(env) {
            tool = tool.env(name, value);
        }
        let said = tool.timeout(PATIENCE).run().expect("`script` of util-linux can be run");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        Ran { code: said.code, out: text(said.stdout), err: text(said.stderr) }
    }

    /// Returns a directory that has `pdca`.
    fn bin_path(&self) -> Utf8PathBuf {
        let bin = self.workspace.around().join("bin");
        fs_err::create_dir_all(&bin).expect("a directory can be made");
        // A second line of the same scene finds the link that is there.
        drop(fs_err::os::unix::fs::symlink(pdca_bin(), bin.join("pdca")));
        bin
    }

    /// Starts `pdca` and does not wait for it.
    pub fn start(&self, args: &[&str]) -> Started {
        self.start_with(&[], args)
    }

    /// Starts `pdca` with further variables and does not wait for it.
    #[expect(clippy::disallowed_methods, reason = "the test plays the person who sends it signals")]
    pub fn start_with(&self, env: &[(&str, &str)], args: &[&str]) -> Started {
        let mut command = Command::new(pdca_bin());
        command.args(args).current_dir(self.workspace.path()).envs(self.surroundings(env));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Started(command.spawn().expect("pdca can be started"))
    }

    /// Starts `pdca` with its standard output in a file of the workspace, and does not wait for it.
    #[expect(clippy::disallowed_methods, reason = "the test plays the person who sends it signals")]
    pub fn start_to_file(&self, args: &[&str], file: &str) -> Started {
        let to =
            fs_err::File::create(self.workspace.path().join(file)).expect("a file can be made");
        let mut command = Command::new(pdca_bin());
        command.args(args).current_dir(self.workspace.path()).envs(self.surroundings(&[]));
        command.stdin(Stdio::null()).stdout(to.into_parts().0).stderr(Stdio::null());
        Started(command.spawn().expect("pdca can be started"))
    }

    /// Starts a shell script at a terminal, as the leader of its session; `$PDCA` is the binary.
    pub fn script_at_terminal(
        &self,
        env: &[(&str, &str)],
        script: &str,
        replies: Vec<Reply>,
    ) -> Pty {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let facts = self.workspace.around().join(format!("terminal-{count}"));
        let mut all = self.surroundings(env);
        all.insert("PDCA".to_owned(), pdca_bin().to_string());
        Pty::start(self.workspace.path(), &facts, all, script, replies)
    }

    fn surroundings(&self, env: &[(&str, &str)]) -> BTreeMap<String, String> {
        let home = self.workspace.around().to_string();
        let mut all = BTreeMap::from([
            ("HOME".to_owned(), home.clone()),
            ("XDG_CONFIG_HOME".to_owned(), home),
            ("USER".to_owned(), "ada".to_owned()),
            ("NO_COLOR".to_owned(), "1".to_owned()),
        ]);
        all.extend(self.env.clone());
        all.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        all
    }

    /// The state of a bundle, as `pdca status --json` tells it.
    pub fn state(&self, id: &str) -> String {
        let status = self.pdca(&["status", "--json"]).expect(0).json();
        let rows = status["bundles"].as_array().expect("status lists bundles");
        let row = rows.iter().find(|row| row["id"] == id).expect("the bundle is listed");
        row["state"].as_str().expect("a state is a word").to_owned()
    }

    /// Clears every open box and accepts, as a person does who has looked at everything.
    #[track_caller]
    pub fn accept(&self, id: &str) {
        self.pdca(&["signoff", id, "clear", "all"]).expect(0);
        self.pdca(&["signoff", id, "accept"]).expect(0);
    }

    /// Returns the leaf calls, one line each.
    pub fn calls(&self) -> Vec<String> {
        self.lines("calls/log")
    }

    /// The calls that came to their own end.
    pub fn ended(&self) -> Vec<String> {
        self.lines("calls/ended")
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs_err::read_to_string(self.workspace.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Every file below `results/` with its content, without what no two runs share: durations, the place of the scene,
    /// and the logs of calls, which have each start of a leaf with its times (`calls.rs` holds what they must say).
    pub fn results(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(&self.workspace.path().join("results"), "", &mut files);
        files.retain(|name, _| !name.contains("/logs/"));
        let here = self.workspace.around().to_string();
        for text in files.values_mut() {
            *text = text.replace(&here, "<scene>");
        }
        files
    }

    /// Processes of this scene that are alive: those that name its directory or got it in their environment.
    pub fn processes(&self) -> Vec<String> {
        let mark = self.workspace.around().to_string();
        let mut alive = Vec::new();
        for entry in fs_err::read_dir("/proc").expect("this system has a process table").flatten() {
            let path = entry.path();
            let read = |file: &str| fs_err::read(path.join(file)).unwrap_or_default();
            let (line, environ) = (read("cmdline"), read("environ"));
            let names = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&mark);
            if names(&line) || names(&environ) {
                alive.push(String::from_utf8_lossy(&line).replace('\0', " "));
            }
        }
        alive
    }

    /// Waits until `done`, for a while.
    #[track_caller]
    pub fn wait_until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < PATIENCE, "waited too long until {what}");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

/// The configuration of a leaf that is a script of the scene.
pub fn leaf(role: &str) -> String {
    format!(
        "[leaves.{role}]\nmode = \"command\"\nargv = [\"sh\", \"{{workspace}}/leaves/{role}.sh\", \"{{id}}\"]\n\
         prompt_via = \"none\"\nwritable = [\"calls\"]\n\n"
    )
}

/// A `pdca` that runs by itself.
#[derive(Debug)]
pub struct Started(Child);

impl Started {
    /// Its process id.
    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }

    /// Returns whether the process is stopped.
    pub fn is_stopped(&self) -> bool {
        let stat = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        let stat = fs_err::read_to_string(stat).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("the process is ours");
    }

    /// Waits for its end: the exit code, or 128 and the signal.
    pub fn wait(mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        let status = self.0.wait().expect("the process is ours");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
    }
}

/// Copies a directory with all that lies below it.
pub fn copy_tree(from: &Utf8Path, to: &Utf8Path) {
    fs_err::create_dir_all(to).expect("a directory can be made");
    for entry in from.read_dir_utf8().expect("it can be listed") {
        let entry = entry.expect("it can be listed");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(entry.path(), &to);
        } else {
            fs_err::copy(entry.path(), to).expect("a file can be copied");
        }
    }
}

fn collect(dir: &Utf8Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    let Ok(entries) = dir.read_dir_utf8() else { return };
    for entry in entries.flatten() {
        let name = format!("{prefix}{}", entry.file_name());
        if entry.file_name() == ".pdca" {
            // Locks stay behind on purpose: only who holds them means anything.
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(entry.path(), &format!("{name}/"), files);
        } else {
            let bytes = fs_err::read(entry.path()).expect("a file can be read");
            let text = String::from_utf8_lossy(&bytes);
            let lines = text.lines().filter(|line| !line.contains("duration_ms")).map(without_time);
            files.insert(name, lines.collect::<Vec<_>>().join("\n"));
        }
    }
}

/// A row of the gates' table without its last cell, which says how long the gate took.
fn without_time(line: &str) -> &str {
    match line.strip_suffix(" ms |").and_then(|rest| rest.rsplit_once('|')) {
        Some((row, _)) => row,
        None => line,
    }
}
