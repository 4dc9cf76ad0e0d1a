//! One run of the driver in which every role makes all its attempts, and what the test sees of it from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::Tool;

use crate::layout::Place;
use crate::table::{Attempt, Verdict, Wall};

/// Bounds a run that hangs.
const PATIENCE: Duration = Duration::from_secs(300);
/// The ordinary account that root drops to: `nobody`.
const ORDINARY: u32 = 65534;
/// The value of every secret.
const SECRET: &str = "s3cr3t";
/// How many sockets the user's services listen on.
const SOCKETS: usize = 70;

/// The files that the attempts need.
const FILES: [(&str, &str); 6] = [
    ("run.sh", include_str!("run.sh")),
    ("drive.sh", include_str!("drive.sh")),
    ("evil.sh", include_str!("evil.sh")),
    ("keyring.pl", include_str!("keyring.pl")),
    ("handle.pl", include_str!("handle.pl")),
    ("false-object.pl", include_str!("false-object.pl")),
];

/// The account that the driver runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account {
    Root,
    Ordinary,
}

impl Account {
    /// Returns the accounts that can be had here.
    pub(crate) fn available() -> Vec<Self> {
        if !rustix::process::geteuid().is_root() {
            say("root: skipped, the suite runs as an ordinary user");
            return vec![Self::Ordinary];
        }
        let id = ORDINARY.to_string();
        let tried = Tool::new("setpriv")
            .args(["--reuid", &id, "--regid", &id, "--clear-groups", "true"])
            .run();
        if tried.is_ok_and(|ended| ended.success()) {
            return vec![Self::Root, Self::Ordinary];
        }
        say("ordinary user: skipped, `setpriv` is refused");
        vec![Self::Root]
    }

    /// Returns whether root has to become this account.
    fn is_dropped_to(self) -> bool {
        self == Self::Ordinary && rustix::process::geteuid().is_root()
    }

    /// Returns a command under this account.
    fn tool(self, program: &str) -> Tool {
        if !self.is_dropped_to() {
            return Tool::new(program);
        }
        let id = ORDINARY.to_string();
        Tool::new("setpriv").args(["--reuid", &id, "--regid", &id, "--clear-groups", program])
    }
}

/// The exit code of each attempt by role and name, with what it printed.
type Outcomes = BTreeMap<(String, String), (i32, String)>;

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Assault {
    pub(crate) place: Place,
    account: Account,
    wall: Wall,
    code: i32,
    outcomes: Outcomes,
    /// What the driver said of 7 and 8.
    said: String,
    /// What differs outside of the places that the driver itself writes.
    changed: Vec<String>,
    /// Services of the user.
    _listening: Vec<UnixListener>,
    _shared: Shared,
}

impl Assault {
    /// Makes all attempts in a layout.
    pub(crate) fn new(layout: &str, wall: Wall, account: Account, all: &[Attempt]) -> Self {
        let place = Place::new(layout, wall);
        let shared = Shared::new(&place);
        lay_out(&place, all, &shared);
        let listening = services(&place, &shared);
        if account.is_dropped_to() {
            give(&place.around);
            for file in shared.files() {
                give(&file);
            }
        }
        let before = Snapshot::of(&place);
        // A terminal, because a child must not reach the user's.
        let drive = format!("sh {}/drive.sh", place.attempts());
        let mut tool =
            account.tool("script").args(["-qefc", &drive, "/dev/null"]).timeout(PATIENCE);
        for (name, value) in environment(&place) {
            tool = tool.env(name, value);
        }
        let ended = tool.run().expect("`script` of util-linux can be run");
        let changed = Snapshot::of(&place).since(&before, wall);
        let read =
            |file: &str| fs_err::read_to_string(place.attempts().join(file)).unwrap_or_default();
        let said = format!("{}{}", read("run.out"), read("run.err"));
        let outcomes = outcomes(&place);
        Self {
            place,
            account,
            wall,
            code: ended.code,
            outcomes,
            said,
            changed,
            _listening: listening,
            _shared: shared,
        }
    }

    /// Returns everything that is not as the table says.
    pub(crate) fn differences(&self, all: &[Attempt]) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.code != 0 {
            wrong.push(format!("the run ended with {}: {}", self.code, self.said));
        }
        let silent: BTreeSet<&str> = all
            .iter()
            .flat_map(|attempt| attempt.roles.iter().map(|tried| tried.by))
            .filter(|who| !self.outcomes.contains_key(&((*who).to_owned(), "end".to_owned())))
            .collect();
        if !silent.is_empty() && self.code == 0 {
            wrong.push(format!("the run ended with 0: {}", self.said));
        }
        wrong.extend(silent.iter().map(|who| format!("{who} did not come to its end")));
        for attempt in all {
            let mut through = Vec::new();
            for tried in attempt.roles.iter().filter(|tried| !silent.contains(tried.by)) {
                let name = tried.name(attempt);
                let known = self.outcomes.get(&(tried.by.to_owned(), name.clone()));
                let code = known.map(|(code, _)| *code);
                let detail = known.map_or("", |(_, detail)| detail);
                if code == Some(127) {
                    say(&format!("{} {name}: skipped, a program is missing", tried.by));
                } else if code.is_none()
                    || self.verdict(attempt, tried.by, code) < attempt.expected(self.wall)
                {
                    let by = tried.begun_by.map_or_else(String::new, |by| format!("{by}>"));
                    through.push(format!("{by}{}{detail}", tried.by));
                }
            }
            if !through.is_empty() {
                wrong.push(format!("{}: {}", attempt.name, through.join(" ")));
            }
        }
        wrong.extend(self.changed.iter().map(|path| format!("changed: {path}")));
        wrong
    }

    fn verdict(&self, attempt: &Attempt, who: &str, code: Option<i32>) -> Verdict {
        let is_told =
            attempt.name == "chmod-tracked" && self.said.contains(&format!("mode-{who}.txt"));
        match (code, is_told) {
            (Some(0), true) => Verdict::Noticed,
            (Some(0), false) => Verdict::NotKept,
            (Some(_) | None, _) => Verdict::Enforced,
        }
    }

    /// Makes the attempts of leaves, gates and reviewers without a wall, and returns those that fail all the same.
    pub(crate) fn without_wall(&self, all: &[Attempt], left_out: &[&str]) -> Vec<String> {
        let attempts = self.place.attempts();
        let lane = self.place.lanes.join("lane-0/app");
        let mut script = format!(
            // It stands in the scene, because one attempt writes where it stands.
            ". {attempts}/env.sh\ncd {attempts} || exit 99\nsleep 600 </dev/null >/dev/null 2>&1 &\nother=$!\necho $other > {attempts}/other.pid\n\
             echo $other > {attempts}/driver.pid\ncd {lane} || exit 99\nunset TMPDIR\ntty > {attempts}/terminal\n"
        );
        for who in ["leaf", "gate", "reviewer"] {
            let _ = writeln!(script, "sh {attempts}/run.sh {who}");
        }
        script.push_str("kill $other\n");
        fs_err::write(attempts.join("control.sh"), script).expect("a file can be written");
        // What others complete would stay: a process among it.
        fs_err::remove_dir_all(attempts.join("begun")).expect("a directory can be removed");
        for name in left_out {
            for who in ["leaf", "gate", "reviewer"] {
                for file in attempts.join("tries").join(who).read_dir_utf8().into_iter().flatten() {
                    let path = file.expect("it can be listed").into_path();
                    if path.as_str().ends_with(&format!("-{name}.sh")) {
                        fs_err::remove_file(path).expect("a file can be removed");
                    }
                }
            }
        }
        let command = format!(
            "perl {attempts}/keyring.pl put sh {attempts}/control.sh > {attempts}/control.out 2>&1"
        );
        let mut tool = self.account.tool("script").args(["-qefc", &command, "/dev/null"]);
        for (name, value) in environment(&self.place) {
            tool = tool.env(name, value);
        }
        tool.timeout(PATIENCE).run().expect("`script` of util-linux can be run");
        let mut found = Outcomes::new();
        let text = fs_err::read_to_string(attempts.join("control.out")).unwrap_or_default();
        read_outcomes(&text, &mut found);
        let mut failed = Vec::new();
        for attempt in all.iter().filter(|attempt| attempt.begun.is_empty()) {
            let codes: BTreeSet<i32> = attempt
                .roles
                .iter()
                .filter_map(|tried| found.get(&(tried.by.to_owned(), tried.name(attempt))))
                .map(|(code, _)| *code)
                .collect();
            if !left_out.contains(&attempt.name) && !codes.contains(&0) && !codes.contains(&127) {
                failed.push(format!("{} {codes:?}", attempt.name));
            }
        }
        failed
    }
}

/// Files of the user outside of the home, removed at the end.
#[derive(Debug)]
struct Shared {
    token: String,
}

impl Shared {
    fn new(place: &Place) -> Self {
        let token = place.around.file_name().expect("it has a name").trim_matches('.').to_owned();
        let shared = Self { token };
        for file in shared.files() {
            fs_err::write(file, "the user's\n").expect("a file can be written");
        }
        shared
    }

    fn files(&self) -> [Utf8PathBuf; 2] {
        ["/tmp", "/dev/shm"]
            .map(|dir| Utf8PathBuf::from(format!("{dir}/pdca-walls-{}", self.token)))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let left = Utf8PathBuf::from(format!("/tmp/left-{}", self.token));
        for file in self.files().into_iter().chain([left]) {
            // The second of them is there only if an attempt got through.
            drop(fs_err::remove_file(file));
        }
    }
}

/// Writes the attempts and what they need to know.
fn lay_out(place: &Place, all: &[Attempt], shared: &Shared) {
    let attempts = place.attempts();
    let make = |path: &Utf8Path, text: &str| {
        fs_err::create_dir_all(path.parent().expect("it lies in a directory"))
            .expect("a directory can be made");
        fs_err::write(path, text).expect("a file can be written");
    };
    fs_err::create_dir_all(attempts.join("tmp")).expect("a directory can be made");
    for (name, text) in FILES {
        make(&attempts.join(name), text);
    }
    for (number, attempt) in all.iter().enumerate() {
        for tried in &attempt.roles {
            let file = format!("{number:03}-{}.sh", tried.name(attempt));
            make(&attempts.join("tries").join(tried.by).join(file), attempt.commands);
            if let Some(begun_by) = tried.begun_by {
                let file = format!("{number:03}-{}.sh", attempt.name);
                make(&attempts.join("begun").join(begun_by).join(file), attempt.begun);
            }
        }
    }
    let git = Tool::new("sh").args(["-c", "command -v git"]).run().expect("a shell can be run");
    let git = String::from_utf8(git.stdout).expect("paths are UTF-8");
    let program = place.program();
    let other = place.home.join("other");
    let [in_tmp, _] = shared.files();
    let bin = place.cached_bin();
    let empty = Utf8PathBuf::new();
    let values = [
        ("H", &place.home),
        ("WS", &place.workspace),
        ("START", &place.start),
        ("NAMED", &place.named),
        ("CONFIG", &place.config),
        ("BUNDLES", &place.bundles),
        ("LANES", &place.lanes),
        ("PRIMARY", &place.primary),
        ("MAIN", &place.main),
        ("SECOND", &place.second),
        ("WSGIT", place.workspace_git.as_ref().unwrap_or(&empty)),
        ("OTHER", &other),
        ("BIN", &bin),
        ("PDCA", &program),
        ("SHARED", &in_tmp),
    ];
    let mut text = format!("GIT='{}' TOKEN='{}'\nexport GIT TOKEN\n", git.trim(), shared.token);
    for (name, path) in values {
        let _ = writeln!(text, "{name}='{path}'; export {name}");
    }
    make(&attempts.join("env.sh"), &text);
}

/// Listens on more sockets than one would list, in the order of their names the user's agent last, and on an abstract one.
fn services(place: &Place, shared: &Shared) -> Vec<UnixListener> {
    let dir = place.home.join("services");
    fs_err::create_dir_all(dir.join("zz")).expect("a directory can be made");
    let mut listening: Vec<UnixListener> = (0..SOCKETS)
        .map(|n| UnixListener::bind(dir.join(format!("{n:03}"))).expect("a socket can be made"))
        .collect();
    listening.push(UnixListener::bind(dir.join("zz/agent.sock")).expect("a socket can be made"));
    let address = SocketAddr::from_abstract_name(format!("pdca-walls-{}", shared.token));
    let address = address.expect("the name is short");
    listening.push(UnixListener::bind_addr(&address).expect("a socket can be made"));
    listening
}

/// Returns the environment of the user, with every kind of secret.
fn environment(place: &Place) -> BTreeMap<String, String> {
    let home = place.home.to_string();
    let path = std::env::vars_os().find_map(|(name, value)| (name == "PATH").then_some(value));
    let path = path.and_then(|path| path.into_string().ok()).unwrap_or_default();
    let mut all = BTreeMap::from([
        ("HOME".to_owned(), home.clone()),
        ("XDG_CONFIG_HOME".to_owned(), format!("{home}/.config")),
        ("PATH".to_owned(), format!("{}:{path}", place.cached_bin())),
        ("USER".to_owned(), "ada".to_owned()),
        ("NO_COLOR".to_owned(), "1".to_owned()),
        ("PWD".to_owned(), place.start.to_string()),
    ]);
    let secrets = [
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "PGPASSWORD",
        "SSHPASS",
        "MYSQL_PWD",
        "ARTIFACTORY_PASS",
        "BORG_PASSPHRASE",
        "GPG_PASSPHRASE",
        "BW_SESSION",
        "OP_SESSION_my",
        "STRIPE_API_KEY",
        "SIGNING_KEY",
        "AZURE_STORAGE_KEY",
        "CLIENT_SECRET",
        "SECRET_THING",
        "NPM_CONFIG__AUTH",
    ];
    all.extend(secrets.map(|name| (name.to_owned(), SECRET.to_owned())));
    let addresses = [
        ("DATABASE_URL", "postgres://me:s3cr3t@db/x"),
        ("PIP_INDEX_URL", "https://me:s3cr3t@pypi.example.org/simple"),
        ("GOPROXY", "https://me:s3cr3t@go.example.org"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.extraheader"),
        ("GIT_CONFIG_VALUE_0", "Authorization: Bearer s3cr3t"),
    ];
    all.extend(addresses.map(|(name, value)| (name.to_owned(), value.to_owned())));
    all
}

/// Reads the exit codes that the roles printed, wherever the driver keeps them.
fn outcomes(place: &Place) -> Outcomes {
    let mut found = BTreeMap::new();
    let roots = [&place.bundles, &place.lanes, &place.workspace.join(".pdca")];
    for root in roots {
        walk(root, &mut |path, is_file| {
            // Job and gate logs, transcripts, and what hydration printed.
            if is_file && let Ok(text) = fs_err::read_to_string(path) {
                read_outcomes(&text, &mut found);
            }
        });
    }
    let user = fs_err::read_to_string(place.attempts().join("user.out")).unwrap_or_default();
    read_outcomes(&user, &mut found);
    found
}

fn read_outcomes(text: &str, found: &mut Outcomes) {
    let mut last = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["WALL", who, name, code] = words[..]
            && let Ok(code) = code.parse::<i32>()
        {
            let key = (who.to_owned(), name.to_owned());
            // The same attempt may be made twice; getting through once is enough.
            let known = found.entry(key.clone()).or_insert_with(|| (code, String::new()));
            known.0 = if code == 0 { 0 } else { known.0 };
            last = (code == 0).then_some(key);
        } else if let Some(key) = last.take()
            && let Some((_, detail)) = found.get_mut(&key)
            && detail.is_empty()
        {
            *detail = format!(" ({line})");
        }
    }
}

/// The user's files as they are, without the places that the driver writes.
struct Snapshot(BTreeMap<Utf8PathBuf, State>);

#[derive(Debug, PartialEq, Eq)]
struct State {
    mode: u32,
    owner: u32,
    modified: (i64, i64),
    content: Vec<u8>,
}

impl Snapshot {
    fn of(place: &Place) -> Self {
        let mut files = BTreeMap::new();
        let git = place.main.join(".git");
        let own = [
            place.lanes.clone(),
            place.workspace.join(".pdca"),
            place.bundles.join(".pdca"),
            git.join("objects"),
            git.join("refs/pdca"),
            // Lanes of the kind `worktree` are registered there.
            git.join("worktrees"),
            place.home.join(".cache"),
        ];
        let bundles = [7, 8, 9, 10, 11].map(|id| place.bundles.join(format!("issue_{id}")));
        let is_own = |path: &Utf8Path| {
            own.iter().chain(&bundles).any(|own| path.starts_with(own))
                || path.as_str().contains("/.git/pdca")
        };
        walk(&place.home, &mut |path, _| {
            let Ok(meta) = path.symlink_metadata() else { return };
            if is_own(path) {
                return;
            }
            let content = match (meta.is_file(), meta.is_symlink()) {
                (true, _) => fs_err::read(path).unwrap_or_default(),
                (_, true) => fs_err::read_link(path)
                    .map(|to| to.into_os_string().into_encoded_bytes())
                    .unwrap_or_default(),
                (false, false) => Vec::new(),
            };
            // Directories change their times with what the driver makes in them.
            let modified = if meta.is_dir() { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
            let state = State { mode: meta.mode(), owner: meta.uid(), modified, content };
            files.insert(path.to_owned(), state);
        });
        Self(files)
    }

    /// Returns the paths that differ from an earlier look. Landlock holds neither modes nor times.
    fn since(&self, before: &Self, wall: Wall) -> Vec<String> {
        let paths: BTreeSet<&Utf8PathBuf> = self.0.keys().chain(before.0.keys()).collect();
        let differs = |path: &Utf8Path| match (self.0.get(path), before.0.get(path)) {
            (Some(now), Some(then)) if wall == Wall::Landlock => {
                now.content != then.content || now.owner != then.owner
            }
            (now, then) => now != then,
        };
        paths.into_iter().filter(|path| differs(path)).map(ToString::to_string).collect()
    }
}

/// Visits everything below a directory, links not followed.
fn walk(path: &Utf8Path, visit: &mut dyn FnMut(&Utf8Path, bool)) {
    let Ok(meta) = path.symlink_metadata() else { return };
    visit(path, meta.is_file());
    if meta.is_dir() {
        for entry in path.read_dir_utf8().into_iter().flatten().flatten() {
            walk(entry.path(), visit);
        }
    }
}

/// Gives a tree to the ordinary account.
fn give(path: &Utf8Path) {
    walk(path, &mut |path, _| {
        std::os::unix::fs::lchown(path, Some(ORDINARY), Some(ORDINARY)).expect("root may do that");
    });
}

#[expect(clippy::print_stdout, reason = "what a host does not allow is a result as well")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}
