//! A workspace, a target, a home directory and a model, all fresh.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    time::Duration,
};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{SandboxKind, Tool, ToolError, bwrap_support, sandbox_support};
use serde_json::Value;

use super::{Agent, install::Installed};
use crate::{Stopped, program};

/// The user that agents run as where this program is root: the one that owns nothing.
const NOBODY: u32 = 65_534;
/// The longest that one command of `pdca` may take.
const PATIENCE: Duration = Duration::from_secs(400);

/// The walls of this host, as `sandbox` names them.
pub(super) fn walls() -> Vec<&'static str> {
    let mut walls = Vec::new();
    if matches!(sandbox_support(), SandboxKind::Landlock { .. }) {
        walls.push("landlock");
    }
    if bwrap_support().is_ok() {
        walls.push("bwrap");
    }
    if walls.is_empty() {
        walls.push("off");
    }
    walls
}

/// What all scenes share.
#[derive(Debug)]
pub(super) struct AgentSurroundings {
    bin_dir: Utf8PathBuf,
    /// The words before a command that make it that of another user.
    other_user: Vec<String>,
    path: String,
}

impl AgentSurroundings {
    /// Looks who agents can run as here.
    pub(super) fn find(bin_dir: Utf8PathBuf, installed: &[Installed]) -> Self {
        let bins: Vec<&str> = installed.iter().map(|program| program.bin.as_str()).collect();
        let path = format!("{}:{bin_dir}:/usr/local/bin:/usr/bin:/bin", bins.join(":"));
        let mut found = Self { bin_dir, other_user: Vec::new(), path };
        if rustix::process::geteuid().is_root() {
            let user = [
                "setpriv".to_owned(),
                format!("--reuid={NOBODY}"),
                format!("--regid={NOBODY}"),
                "--clear-groups".to_owned(),
            ];
            // The programs may lie where no other user can read them.
            let pdca = found.bin_dir.join("pdca");
            let mut words = user.to_vec();
            words.extend([pdca.to_string(), "--version".to_owned()]);
            let can = Tool::new(&words[0]).args(&words[1..]).run();
            if can.is_ok_and(|said| said.success()) {
                found.other_user = user.to_vec();
            }
        }
        found
    }

    /// Who that is, in words.
    pub(super) fn user(&self) -> &'static str {
        match (self.other_user.is_empty(), rustix::process::geteuid().is_root()) {
            (false, _) => "an ordinary user",
            (true, false) => "the user that runs this",
            (true, true) => "root, because there is no `setpriv` or the programs are root's alone",
        }
    }
}

/// A directory with everything that a batch needs. It ends the model when it is dropped.
pub(super) struct Scene<'a> {
    surroundings: &'a AgentSurroundings,
    dir: tempfile::TempDir,
    path: Utf8PathBuf,
    model: Option<Child>,
    /// The port of the model; one that nothing listens on where there is none.
    pub(super) port: u16,
    env: BTreeMap<&'static str, String>,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(super) struct AgentRun {
    pub(super) code: i32,
    pub(super) text: String,
}

impl<'a> Scene<'a> {
    /// Makes a scene for an agent. Without a script nothing listens on the port that the agent is given.
    pub(super) fn new(
        surroundings: &'a AgentSurroundings,
        agent: Agent,
        script: Option<&str>,
    ) -> Result<Self, Stopped> {
        let dir = tempfile::Builder::new().prefix("pdca-agents-").tempdir()?;
        let path = Utf8Path::from_path(dir.path()).ok_or("the directory is not UTF-8")?;
        let path = path.canonicalize_utf8()?;
        let env = BTreeMap::new();
        let mut scene = Self { surroundings, dir, path, model: None, port: 0, env };
        for name in ["home", "bin", "ws/results", "app", "tmp"] {
            fs_err::create_dir_all(scene.path.join(name))?;
        }
        scene.target()?;
        let port = match script {
            Some(script) => scene.start_model(script)?,
            None => closed_port()?,
        };
        scene.port = port;
        scene.sign_in(agent, port)?;
        Ok(scene)
    }

    /// A repository with one file and one commit.
    fn target(&self) -> Result<(), Stopped> {
        fs_err::write(self.path.join("app/greeting.txt"), "hello\n")?;
        self.git(&["init", "-q", "-b", "main"])?;
        self.commit("first")
    }

    pub(super) fn git(&self, words: &[&str]) -> Result<String, Stopped> {
        let app = self.path.join("app");
        // After `hand_over` the files belong to another user, and git refuses such a repository to root.
        let words = [&["-c", "safe.directory=*"], words].concat();
        let said = Tool::new("git").args(&words).cwd(&app).run()?;
        if !said.success() {
            let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
            return Err(format!("git {}: {complaint}", words.join(" ")).into());
        }
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }

    /// Commits what is in the target's own checkout.
    pub(super) fn commit(&self, message: &str) -> Result<(), Stopped> {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        self.git(&["add", "."])?;
        self.git(&[&who[..], &["commit", "-qm", message]].concat())?;
        Ok(())
    }

    /// Changes the greeting on the branch, as another person may.
    pub(super) fn move_branch(&self, greeting: &str) -> Result<(), Stopped> {
        fs_err::write(self.path.join("app/greeting.txt"), greeting)?;
        self.commit("another greeting")?;
        self.hand_over()
    }

    fn start_model(&mut self, script: &str) -> Result<u16, Stopped> {
        let (file, log) = (self.path.join("script.toml"), self.path.join("requests.jsonl"));
        fs_err::write(&file, script)?;
        let model = self.surroundings.bin_dir.join("fake-model");
        let mut model =
            program::command(model.as_str(), &[file.as_str(), log.as_str()], &self.path)
                .stdout(Stdio::piped())
                .stderr(fs_err::File::create(self.path.join("fake-model.log"))?.into_file())
                .spawn()?;
        let stdout = model.stdout.take().ok_or("the model has no output")?;
        self.model = Some(model);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }

    /// Leaves in the home directory and the environment what a user of the agent has there.
    fn sign_in(&mut self, agent: Agent, port: u16) -> Result<(), Stopped> {
        let url = format!("http://127.0.0.1:{port}");
        match agent {
            Agent::Claude => {
                self.env.insert("ANTHROPIC_BASE_URL", url);
                self.env.insert("ANTHROPIC_API_KEY", "sk-ant-fake".to_owned());
                self.env.insert("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned());
            }
            Agent::Codex => {
                self.env.insert("OPENAI_API_KEY", "sk-fake".to_owned());
                let config = format!(
                    "model = \"fake\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\n\
                     base_url = \"{url}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n"
                );
                self.home(".codex/config.toml", &config)?;
            }
            Agent::Opencode => {
                let config = serde_json::json!({
                    "model": "fake/fake", "small_model": "fake/fake", "autoupdate": false, "share": "disabled",
                    "provider": {"fake": {
                        "npm": "@ai-sdk/openai-compatible", "name": "fake",
                        "options": {"baseURL": format!("{url}/v1"), "apiKey": "sk-fake"},
                        "models": {"fake": {"name": "fake", "limit": {"context": 128_000, "output": 8000}}},
                    }},
                });
                self.home(".config/opencode/opencode.json", &config.to_string())?;
            }
            Agent::Gemini => {
                self.env.insert("GEMINI_API_KEY", "fake".to_owned());
                self.env.insert("GOOGLE_GEMINI_BASE_URL", url);
                let settings =
                    serde_json::json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
                self.home(".gemini/settings.json", &settings.to_string())?;
            }
            Agent::Aider => {
                self.env.insert("OPENAI_API_KEY", "sk-fake".to_owned());
                self.env.insert("OPENAI_API_BASE", format!("{url}/v1"));
                self.home(".aider.conf.yml", "model: openai/gpt-4o\n")?;
            }
        }
        Ok(())
    }

    pub(super) fn home(&self, name: &str, text: &str) -> Result<(), Stopped> {
        let path = self.path.join("home").join(name);
        fs_err::create_dir_all(path.parent().unwrap_or(&self.path))?;
        Ok(fs_err::write(path, text)?)
    }

    /// Writes `pdca.toml`, which goes on with `leaves`, and the briefs.
    pub(super) fn workspace(&self, leaves: &str, ids: &[&str]) -> Result<(), Stopped> {
        let config = format!(
            "[project]\nauthor = \"Ada <ada@example.com>\"\n\n[[targets]]\nname = \"app\"\npath = \"../app\"\n\
             repo = \"team/app\"\nbranch = \"main\"\n\n[[gates.checks]]\nid = \"T3-there\"\ntier = \"T3\"\n\
             cmd = \"test -s greeting.txt\"\n\n[integrate]\nresolve_pause_secs = 0\n\n{leaves}"
        );
        fs_err::write(self.path.join("ws/pdca.toml"), config)?;
        for id in ids {
            let bundle = self.path.join(format!("ws/results/issue_{id}"));
            fs_err::create_dir_all(&bundle)?;
            let brief = format!(
                "# Brief: issue {id}\n\n- **Slug:** greet-the-world\n- **Repo + branch target:** team/app @ main\n\
                 - **Defect (Goal):** `greeting.txt` greets no one\n- **Success criterion:** it greets the world\n\
                 - **Falsifiability:** the word is not there without the change\n\
                 - **Invariant to restore:** a greeting greets\n- **Scope:** `greeting.txt`\n\
                 - **Disposition hint:** fix\n"
            );
            fs_err::write(bundle.join("brief.md"), brief)?;
        }
        self.hand_over()
    }

    /// Gives everything to the user that agents run as.
    pub(super) fn hand_over(&self) -> Result<(), Stopped> {
        if !self.surroundings.other_user.is_empty() {
            let owner = format!("{NOBODY}:{NOBODY}");
            program::output("chown", &["-R", &owner, self.path.as_str()], &self.path)?;
        }
        Ok(())
    }

    /// Runs `pdca` in the workspace.
    pub(super) fn pdca(&self, args: &[&str]) -> Result<AgentRun, Stopped> {
        self.run(self.surroundings.bin_dir.join("pdca").as_str(), args)
    }

    /// Runs a program in the workspace as the user of the agents, with an environment of its own.
    fn run(&self, program: &str, args: &[&str]) -> Result<AgentRun, Stopped> {
        let mut words = self.surroundings.other_user.clone();
        words.extend(["env", "-i"].map(str::to_owned));
        words.push(format!("PATH={}:{}", self.path.join("bin"), self.surroundings.path));
        words.push(format!("HOME={}", self.path.join("home")));
        words.push(format!("TMPDIR={}", self.path.join("tmp")));
        words.extend(["USER=ada", "NO_COLOR=1", "LANG=C.UTF-8"].map(str::to_owned));
        words.extend(self.env.iter().map(|(name, value)| format!("{name}={value}")));
        words.push(program.to_owned());
        words.extend(args.iter().map(|&word| word.to_owned()));
        let workspace = self.path.join("ws");
        let tool = Tool::new(&words[0]).args(&words[1..]).cwd(&workspace).timeout(PATIENCE);
        match tool.run() {
            Ok(said) => {
                let text = [said.stdout, said.stderr].concat();
                let text = String::from_utf8_lossy(&text).into_owned();
                Ok(AgentRun { code: said.code, text })
            }
            Err(error @ ToolError::TimedOut { .. }) => {
                Ok(AgentRun { code: -1, text: error.to_string() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The directory of everything.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Writes a program that is on PATH before all others.
    pub(super) fn program(&self, name: &str, text: &str) -> Result<(), Stopped> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path.join("bin").join(name);
        fs_err::write(&path, text)?;
        Ok(fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
    }

    /// Returns how many attempts of a bundle were spent on failures.
    pub(super) fn spent_attempts(&self, id: &str) -> u64 {
        let path = self.path.join(format!("ws/.pdca/failures/issue_{id}.json"));
        let text = fs_err::read_to_string(path).unwrap_or_default();
        let record: Value = serde_json::from_str(&text).unwrap_or_default();
        record["times"].as_u64().unwrap_or(0)
    }

    /// Reads a file of a bundle; empty where there is none.
    pub(super) fn artifact(&self, id: &str, name: &str) -> String {
        let path = self.path.join(format!("ws/results/issue_{id}")).join(name);
        fs_err::read_to_string(path).unwrap_or_default()
    }

    /// The events of all runs, oldest first.
    pub(super) fn events(&self) -> Result<Vec<Value>, Stopped> {
        let runs = self.path.join("ws/.pdca/runs");
        let mut events = Vec::new();
        for run in runs.read_dir_utf8().into_iter().flatten() {
            let log = run?.path().join("events.jsonl");
            let text = fs_err::read_to_string(log).unwrap_or_default();
            for line in text.lines() {
                events.push(serde_json::from_str(line)?);
            }
        }
        Ok(events)
    }

    /// Which of the model's requests were of this role; all of them where there is none.
    pub(super) fn requests(&self, role: Option<&str>) -> usize {
        let records = self.request_log();
        records.iter().filter(|record| role.is_none_or(|role| record["role"] == role)).count()
    }

    /// What the model was asked.
    pub(super) fn request_log(&self) -> Vec<Value> {
        let log = fs_err::read_to_string(self.path.join("requests.jsonl")).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
    }

    /// Returns whether watched words arrived: `told` by the agent, or `shown` as what a tool gave back.
    pub(super) fn has_arrived(&self, how: &str, words: &str) -> bool {
        let has = |record: &Value| {
            record[how].as_array().is_some_and(|found| found.iter().any(|found| found == words))
        };
        self.request_log().iter().any(has)
    }

    /// Returns whether anybody asked the model's port for a path.
    pub(super) fn was_asked_for(&self, path: &str) -> bool {
        self.request_log().iter().any(|record| record["path"] == path)
    }

    /// Leaves the directory behind, for a person to look at.
    pub(super) fn keep(mut self) -> Utf8PathBuf {
        self.dir.disable_cleanup(true);
        self.path.clone()
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        if let Some(model) = &mut self.model {
            // One that ended by itself is gone all the same.
            let _gone = model.kill();
            let _reaped = model.wait();
        }
    }
}

/// A port that nothing listens on.
fn closed_port() -> Result<u16, Stopped> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}
