//! A forge in a directory, behind the command line of `gh`.
//!
//! Only the calls that `pdca` makes are understood, and each must be made exactly so: a flag that is
//! not known or not there ends the program with 99, as does an environment in which `gh` would ask.
//!
//! ```text
//! gh pr list --repo=R --head=H --state=all --limit=N --json=…
//! gh pr create --draft --repo=R --head=H --base=B --title=T --body-file=-
//! gh pr ready N --repo=R          gh pr reopen N --repo=R
//! gh pr edit N --base=B --repo=R  gh pr edit N --title=T --body-file=- --repo=R
//! gh pr view N --json=… --repo=R  gh pr merge N --merge|--squash|--rebase --match-head-commit=C --repo=R
//! gh issue list --repo=R --state=open --limit=N --json=…
//! gh issue view N --repo=R --json=comments|…
//! gh issue comment N --repo=R --body-file=-
//! ```
//!
//! `FAKE_GH_STATE` is its directory: `issues/<n>.json`, `pulls/<n>.json` and `comments/<issue>-<n>.json` are what is there, `log`
//! has one line for each call, and `faults` says what goes wrong. `FAKE_GH_REMOTE` is the repository
//! that branches are looked for in, and that merges are made in.
//!
//! A pull request may have `checks`, which is what `pr view` says about it; without them it is clean.
//!
//! # Faults
//! Each line of `faults` is a call and what becomes of it, and is used once: `pr create: lose`.
//!
//! | word | the call |
//! |---|---|
//! | `lose` | is carried out, and fails without a word |
//! | `die` | is carried out, and the program is killed |
//! | `hang` | is carried out, and ends when there is a file `go`, or after a minute |
//! | `busy` | is not carried out, and may be later (HTTP 502) |
//! | `refuse` | is not carried out, and never will be (HTTP 422) |
//! | `logout` | is not carried out, because nobody is logged in |
//! | `say TEXT` | is not carried out, and TEXT is all that is printed |

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a program that stands for another"
)]

use std::io::Read as _;
use std::process::{Command, exit};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

/// The call is none that `pdca` makes.
const BAD_CALL: i32 = 99;
/// How `gh` ends where nobody is logged in.
const NO_LOGIN: i32 = 4;
/// What a list of pull requests is asked for.
const FIELDS: &str =
    "number,url,state,isDraft,body,headRefName,baseRefName,headRefOid,isCrossRepository";
/// What is asked for before a merge.
const MERGE_FIELDS: &str = "mergeStateStatus,reviewDecision,statusCheckRollup";
/// What a list of issues is asked for.
const ISSUE_FIELDS: &str = "number,title,state,labels,createdAt,updatedAt,url";
/// What an issue is asked for to be read whole.
const THREAD_FIELDS: &str =
    "number,title,body,state,labels,author,createdAt,updatedAt,url,comments";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    require_environment();
    let forge = Forge::open();
    let (Some(noun), Some(verb)) = (args.first(), args.get(1)) else { bad("no command") };
    let call = format!("{noun} {verb}");
    forge.log(&call);
    let fault = forge.fault(&call);
    match fault.as_deref() {
        None | Some("lose" | "die" | "hang") => {}
        Some("busy") => fail(1, "HTTP 502: Bad Gateway (https://api.forge.example/graphql)"),
        Some("refuse") => fail(1, "HTTP 422: Validation Failed"),
        Some("logout") => fail(NO_LOGIN, "To get started, please run: gh auth login"),
        Some(other) if other.starts_with("say ") => {
            println!("{}", &other["say ".len()..]);
            return;
        }
        Some(other) => bad(&format!("no such fault: {other}")),
    }
    let rest = Flags::new(&args[2..]);
    let said = match call.as_str() {
        "pr list" => forge.list(rest),
        "pr create" => forge.create(rest),
        "pr ready" => forge.change(rest, |pull| pull["isDraft"] = json!(false)),
        "pr reopen" => forge.reopen(rest),
        "pr edit" => forge.edit(rest),
        "pr view" => forge.checks(rest),
        "pr merge" => forge.merge(rest),
        "issue list" => forge.issues(rest),
        "issue view" => forge.view(rest),
        "issue comment" => forge.comment(rest),
        _ => bad(&format!("no such command: {call}")),
    };
    match fault.as_deref() {
        Some("lose") => exit(1),
        Some("die") => {
            let own = rustix::process::getpid();
            let killed = rustix::process::kill_process(own, rustix::process::Signal::KILL);
            bad(&format!("still alive: {killed:?}"));
        }
        Some("hang") => {
            write(&forge.state.join("hangs"), "yes\n");
            let begun = std::time::Instant::now();
            let go = forge.state.join("go");
            while !go.exists() && begun.elapsed().as_secs() < 60 {
                std::thread::park_timeout(std::time::Duration::from_millis(10));
            }
            println!("{said}");
        }
        _ => println!("{said}"),
    }
}

/// What keeps the real program from asking.
fn require_environment() {
    for (name, value) in [("GH_PROMPT_DISABLED", "1"), ("GIT_TERMINAL_PROMPT", "0")] {
        if std::env::var(name).as_deref() != Ok(value) {
            bad(&format!("{name} is not {value}: gh would ask"));
        }
    }
}

fn fail(code: i32, said: &str) -> ! {
    eprintln!("{said}");
    exit(code)
}

fn bad(why: &str) -> ! {
    fail(BAD_CALL, &format!("fake-gh: {why}"))
}

/// The arguments of a call, each of which must be taken.
struct Flags(Vec<String>);

impl Flags {
    fn new(args: &[String]) -> Self {
        Self(args.to_vec())
    }

    /// `--name=value`, which must be there once.
    fn value(&mut self, name: &str) -> String {
        let start = format!("--{name}=");
        let is_it = |arg: &String| arg.starts_with(&start);
        let Some(at) = self.0.iter().position(is_it) else { bad(&format!("no --{name}")) };
        self.0.remove(at)[start.len()..].to_owned()
    }

    /// `--name=value`, which need not be there.
    fn optional(&mut self, name: &str) -> Option<String> {
        let start = format!("--{name}=");
        let at = self.0.iter().position(|arg| arg.starts_with(&start))?;
        Some(self.0.remove(at)[start.len()..].to_owned())
    }

    fn is(&mut self, name: &str, value: &str) {
        let found = self.value(name);
        if found != value {
            bad(&format!("--{name} is {found}, not {value}"));
        }
    }

    fn switch(&mut self, name: &str) {
        let Some(at) = self.0.iter().position(|arg| arg == name) else {
            bad(&format!("no {name}"))
        };
        self.0.remove(at);
    }

    /// The first argument, which must be a number.
    fn number(&mut self) -> u64 {
        let first = if self.0.is_empty() { String::new() } else { self.0.remove(0) };
        first.parse().unwrap_or_else(|_| bad(&format!("`{first}` is no number")))
    }

    fn done(&self) {
        if let Some(more) = self.0.first() {
            bad(&format!("what is {more:?}?"));
        }
    }
}

/// The forge.
struct Forge {
    state: Utf8PathBuf,
    remote: Utf8PathBuf,
}

impl Forge {
    fn open() -> Self {
        let path = |name: &str| match std::env::var(name) {
            Ok(path) => Utf8PathBuf::from(path),
            Err(_) => bad(&format!("{name} is not set")),
        };
        let forge = Self { state: path("FAKE_GH_STATE"), remote: path("FAKE_GH_REMOTE") };
        for dir in ["issues", "pulls", "comments"] {
            fs_err::create_dir_all(forge.state.join(dir)).expect("the state can be made");
        }
        forge
    }

    fn log(&self, call: &str) {
        let known = fs_err::read_to_string(self.state.join("log")).unwrap_or_default();
        write(&self.state.join("log"), &format!("{known}{call}\n"));
    }

    /// The first fault of a call, which is taken out.
    fn fault(&self, call: &str) -> Option<String> {
        let path = self.state.join("faults");
        let text = fs_err::read_to_string(&path).unwrap_or_default();
        let mut lines: Vec<&str> = text.lines().collect();
        let start = format!("{call}: ");
        let at = lines.iter().position(|line| line.starts_with(&start))?;
        let fault = lines.remove(at)[start.len()..].to_owned();
        write(&path, &(lines.join("\n") + "\n"));
        Some(fault)
    }

    /// Everything of a kind, by its number.
    fn all(&self, kind: &str) -> Vec<(Utf8PathBuf, Value)> {
        let dir = self.state.join(kind);
        let entries = dir.read_dir_utf8().expect("the state can be listed");
        let mut paths: Vec<Utf8PathBuf> =
            entries.map(|entry| entry.expect("it can be listed").path().to_owned()).collect();
        paths.sort();
        let read = |path: &Utf8Path| {
            let text = fs_err::read_to_string(path).expect("the state can be read");
            serde_json::from_str(&text).expect("the state is JSON")
        };
        paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
    }

    fn list(&self, mut flags: Flags) -> String {
        let (_, head) = (flags.value("repo"), flags.value("head"));
        flags.is("state", "all");
        flags.is("limit", "100");
        flags.is("json", FIELDS);
        flags.done();
        let pulls = self.all("pulls").into_iter().map(|(_, pull)| pull);
        let of_it = pulls.filter(|pull| pull["headRefName"] == head.as_str());
        let shown = of_it.map(|mut pull| {
            let at = self.at(&head).or_else(|| pull["headRefOid"].as_str().map(str::to_owned));
            pull["headRefOid"] = json!(at.unwrap_or_default());
            pull
        });
        Value::from(shown.collect::<Vec<_>>()).to_string()
    }

    /// The commit of a branch.
    fn at(&self, branch: &str) -> Option<String> {
        let asked =
            self.git(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]);
        asked.status.success().then(|| String::from_utf8_lossy(&asked.stdout).trim().to_owned())
    }

    fn git(&self, args: &[&str]) -> std::process::Output {
        let who = [
            "-c",
            "user.name=forge",
            "-c",
            "user.email=forge@forge.example",
            "--git-dir",
            self.remote.as_str(),
        ];
        Command::new("git").args(who).args(args).output().expect("git can be started")
    }

    fn edit(&self, mut flags: Flags) -> String {
        let (number, _) = (flags.number(), flags.value("repo"));
        let mut pulls = self.all("pulls");
        let Some((path, pull)) = pulls.iter_mut().find(|(_, pull)| pull["number"] == number) else {
            fail(1, &format!("no pull request {number}"))
        };
        if let Some(base) = flags.optional("base") {
            if self.at(&base).is_none() {
                fail(1, &format!("GraphQL: no branch {base}"));
            }
            pull["baseRefName"] = json!(base);
        }
        if let Some(title) = flags.optional("title") {
            flags.is("body-file", "-");
            pull["title"] = json!(title);
            pull["body"] = json!(body());
        }
        flags.done();
        write(path, &pull.to_string());
        String::new()
    }

    fn checks(&self, mut flags: Flags) -> String {
        let (number, _) = (flags.number(), flags.value("repo"));
        flags.is("json", MERGE_FIELDS);
        flags.done();
        let pulls = self.all("pulls");
        let Some((_, pull)) = pulls.iter().find(|(_, pull)| pull["number"] == number) else {
            fail(1, &format!("no pull request {number}"))
        };
        let clean = json!({
            "mergeStateStatus": "CLEAN", "reviewDecision": "", "statusCheckRollup": [],
        });
        pull.get("checks").unwrap_or(&clean).to_string()
    }

    /// Merges in the repository, as a forge does.
    fn merge(&self, mut flags: Flags) -> String {
        let (number, _) = (flags.number(), flags.value("repo"));
        let wanted = flags.value("match-head-commit");
        let how = ["--merge", "--squash", "--rebase"];
        let Some(how) = how.into_iter().find(|how| flags.0.iter().any(|arg| arg == how)) else {
            bad("gh would ask how to merge")
        };
        flags.switch(how);
        flags.done();
        let mut pulls = self.all("pulls");
        let Some((path, pull)) = pulls.iter_mut().find(|(_, pull)| pull["number"] == number) else {
            fail(1, &format!("no pull request {number}"))
        };
        let (head, base) = (text(pull, "headRefName"), text(pull, "baseRefName"));
        let (Some(ours), Some(theirs)) = (self.at(&base), self.at(&head)) else {
            fail(1, "GraphQL: a branch is gone")
        };
        if pull["state"] != "OPEN" || pull["isDraft"] == true {
            fail(1, "GraphQL: Pull Request is still a draft or not open");
        }
        if theirs != wanted {
            fail(1, "GraphQL: Head branch was modified. Review and try the merge again.");
        }
        let merged = self.git(&["merge-tree", "--write-tree", &ours, &theirs]);
        if !merged.status.success() {
            fail(1, "GraphQL: Pull Request is not mergeable");
        }
        let tree =
            String::from_utf8_lossy(&merged.stdout).lines().next().unwrap_or_default().to_owned();
        let message = format!("Merge pull request #{number}");
        let mut args = vec!["commit-tree", &tree, "-m", &message, "-p", &ours];
        if how == "--merge" {
            args.extend(["-p", &theirs]);
        }
        let made = self.git(&args);
        let new = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        self.git(&["update-ref", &format!("refs/heads/{base}"), &new, &ours]);
        pull["state"] = json!("MERGED");
        pull["mergedWith"] = json!(how);
        write(path, &pull.to_string());
        String::new()
    }

    fn issues(&self, mut flags: Flags) -> String {
        flags.value("repo");
        flags.is("state", "open");
        let limit: usize =
            flags.value("limit").parse().unwrap_or_else(|_| bad("--limit is no number"));
        flags.is("json", ISSUE_FIELDS);
        flags.done();
        let issues = self.all("issues").into_iter().map(|(_, issue)| issue);
        let open = issues.filter(|issue| issue["state"] == "OPEN").take(limit);
        let shown = open.map(|issue| {
            let fields = ISSUE_FIELDS.split(',').map(|name| (name.to_owned(), issue[name].clone()));
            Value::Object(fields.collect())
        });
        Value::Array(shown.collect()).to_string()
    }

    fn create(&self, mut flags: Flags) -> String {
        flags.switch("--draft");
        let (repo, head) = (flags.value("repo"), flags.value("head"));
        let (base, title) = (flags.value("base"), flags.value("title"));
        flags.is("body-file", "-");
        flags.done();
        for branch in [&head, &base] {
            if !self.has_branch(branch) {
                fail(1, &format!("pull request create failed: no branch {branch}"));
            }
        }
        let pulls = self.all("pulls");
        let rival = |(_, pull): &&(Utf8PathBuf, Value)| {
            let is_here = pull["isCrossRepository"] == false;
            is_here && pull["headRefName"] == head.as_str() && pull["state"] == "OPEN"
        };
        if let Some((_, pull)) = pulls.iter().find(rival) {
            fail(1, &format!("a pull request for branch {head:?} already exists: {}", pull["url"]));
        }
        let number = pulls.len() + 1;
        let url = format!("https://forge.example/{repo}/pull/{number}");
        let pull = json!({
            "number": number, "url": url, "state": "OPEN", "isDraft": true, "title": title,
            "body": body(), "headRefName": head, "baseRefName": base, "headRefOid": self.at(&head),
            "isCrossRepository": false,
        });
        write(&self.state.join(format!("pulls/{number:04}.json")), &pull.to_string());
        url
    }

    fn has_branch(&self, branch: &str) -> bool {
        let reference = format!("refs/heads/{branch}");
        let asked = Command::new("git")
            .args([
                "--git-dir",
                self.remote.as_str(),
                "show-ref",
                "--verify",
                "--quiet",
                &reference,
            ])
            .status();
        asked.is_ok_and(|status| status.success())
    }

    fn change(&self, mut flags: Flags, change: impl FnOnce(&mut Value)) -> String {
        let number = flags.number();
        flags.value("repo");
        flags.done();
        let mut pulls = self.all("pulls");
        let Some((path, pull)) = pulls.iter_mut().find(|(_, pull)| pull["number"] == number) else {
            fail(1, &format!("no pull request {number}"))
        };
        change(pull);
        write(path, &pull.to_string());
        String::new()
    }

    fn reopen(&self, flags: Flags) -> String {
        self.change(flags, |pull| {
            let head = pull["headRefName"].as_str().unwrap_or_default();
            if !self.has_branch(head) {
                fail(1, "cannot reopen: the branch is gone");
            }
            pull["state"] = json!("OPEN");
        })
    }

    fn comments_on(&self, issue: u64) -> Vec<Value> {
        let comments = self.all("comments").into_iter().map(|(_, comment)| comment);
        comments.filter(|comment| comment["issue"] == issue).collect()
    }

    fn view(&self, mut flags: Flags) -> String {
        let issue = flags.number();
        flags.value("repo");
        let fields = flags.value("json");
        flags.done();
        let comments = json!(self.comments_on(issue));
        match fields.as_str() {
            "comments" => json!({ "comments": comments }).to_string(),
            THREAD_FIELDS => {
                let issues = self.all("issues");
                let Some((_, found)) = issues.into_iter().find(|(_, one)| one["number"] == issue)
                else {
                    fail(
                        1,
                        &format!(
                            "GraphQL: Could not resolve to an issue with the number of {issue}."
                        ),
                    )
                };
                let mut found = found;
                found["comments"] = comments;
                found.to_string()
            }
            other => bad(&format!("--json is {other}")),
        }
    }

    fn comment(&self, mut flags: Flags) -> String {
        let issue = flags.number();
        let repo = flags.value("repo");
        flags.is("body-file", "-");
        flags.done();
        let number = self.comments_on(issue).len() + 1;
        let url = format!("https://forge.example/{repo}/issues/{issue}#issuecomment-{number}");
        let comment = json!({ "issue": issue, "url": url, "body": body() });
        write(&self.state.join(format!("comments/{issue}-{number:04}.json")), &comment.to_string());
        url
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// What is on standard input, with the line ends that a forge gives it.
fn body() -> String {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("a text is UTF-8");
    text.replace('\n', "\r\n")
}

fn write(path: &Utf8Path, text: &str) {
    fs_err::write(path, text).expect("the state can be written");
}
