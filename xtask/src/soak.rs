//! `cargo xtask soak`: kills the real binary at random moments until a batch is done.
//!
//! A batch of bundles with small scripted leaves is run once undisturbed. Then it is
//! run again in a fresh workspace, and killed with -9 after a random time, again and again; when
//! it is done, its bundles, and the target's refs and tree, have to equal the undisturbed ones. That is
//! repeated until there were enough kills.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::Tool;

use crate::dice::Dice;
use crate::{Outcome, Stopped};

/// Kill a batch at random moments until it is done, and compare with one that was left alone
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The number of kills
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// The number of bundles in the batch
    #[arg(long, default_value_t = 20)]
    bundles: u32,
    /// The number of lanes
    #[arg(long, default_value_t = 4)]
    lanes: u32,
    /// The longest time before a kill, in milliseconds
    #[arg(long, default_value_t = 1500)]
    longest: u64,
    /// The seed of the random moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The binary; `target/release/pdca` if not given
    #[arg(long, value_name = "FILE")]
    pdca: Option<Utf8PathBuf>,
}

const CONFIG: &str = r#"[[targets]]
name = "app"
path = "../app"
branch = "main"

[leaves.builder]
mode = "command"
argv = ["sh", "-c", 'sleep 0.05; echo "$0" > "file-$0.txt"', "{id}"]
prompt_via = "none"

[leaves.reviewer]
mode = "command"
argv = ["sh", "-c", 'printf "| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n"']
prompt_via = "none"

[[gates.checks]]
id = "T1-there"
tier = "T1"
cmd = 'test -f "file-$PDCA_ISSUE.txt"'
"#;

/// The state that must not depend on the kills.
#[derive(Debug, PartialEq, Eq)]
struct End {
    files: BTreeMap<String, String>,
    refs: String,
    status: String,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let pdca = args.pdca.clone().unwrap_or_else(|| root.join("target/release/pdca"));
    if !pdca.is_file() {
        return Err(format!("there is no {pdca}; `cargo build --release` makes it").into());
    }
    let begun = Instant::now();
    let undisturbed = Scene::new(args, &pdca)?;
    undisturbed.finish()?;
    let alone = begun.elapsed();
    let expected = undisturbed.end()?;
    println!("undisturbed: {} files in {:.1} s", expected.files.len(), alone.as_secs_f64());
    let mut dice = Dice::new(args.seed);
    let (mut kills, mut rounds, mut wrong) = (0, 0, 0);
    while kills < args.kills {
        rounds += 1;
        let scene = Scene::new(args, &pdca)?;
        let longest = args.longest.max(1);
        while kills < args.kills && scene.killed_after(Duration::from_millis(dice.roll(longest)))? {
            kills += 1;
        }
        scene.finish()?;
        let end = scene.end()?;
        let left = scene.processes();
        if end != expected || !left.is_empty() {
            wrong += 1;
            println!("round {rounds}: {}", difference(&end, &expected));
            for line in &left {
                println!("  still alive: {line}");
            }
        }
    }
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{kills} kills in {rounds} rounds of {} bundles on {} lanes: {wrong} ended differently ({took:.0} s, seed {})",
        args.bundles, args.lanes, args.seed
    );
    Ok(if wrong == 0 { Outcome::Passed } else { Outcome::Failed })
}

/// A fresh workspace, with a target beside it.
struct Scene<'a> {
    dir: tempfile::TempDir,
    lanes: String,
    pdca: &'a Utf8Path,
}

impl<'a> Scene<'a> {
    fn new(args: &Args, pdca: &'a Utf8Path) -> Result<Self, Stopped> {
        let scene = Self { dir: tempfile::tempdir()?, lanes: args.lanes.to_string(), pdca };
        let (app, workspace) = (scene.path("app")?, scene.path("ws")?);
        fs_err::create_dir_all(&app)?;
        fs_err::create_dir_all(&workspace)?;
        fs_err::write(app.join("greeting.txt"), "hello\n")?;
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["add", "."],
            &["-c", "user.name=pdca", "-c", "user.email=pdca@localhost", "commit", "-qm", "first"],
        ] {
            scene.git(words)?;
        }
        fs_err::write(workspace.join("pdca.toml"), CONFIG)?;
        for id in 1..=args.bundles {
            let bundle = workspace.join(format!("results/issue_{id}"));
            fs_err::create_dir_all(&bundle)?;
            let brief = format!(
                "# Brief\n\n- **Slug:** number-{id}\n- **Repo + branch target:** app @ main\n- **Disposition hint:** fix\n"
            );
            fs_err::write(bundle.join("brief.md"), brief)?;
        }
        Ok(scene)
    }

    fn path(&self, name: &str) -> Result<Utf8PathBuf, Stopped> {
        let dir = Utf8Path::from_path(self.dir.path()).ok_or("the directory is not UTF-8")?;
        Ok(dir.join(name))
    }

    fn git(&self, words: &[&str]) -> Result<String, Stopped> {
        // Fixed dates give the same commit in every scene.
        let (time, dir) = ("2026-01-01T00:00:00Z", self.path("app")?);
        let git = Tool::new("git").args(words).cwd(&dir);
        let said = git.env("GIT_AUTHOR_DATE", time).env("GIT_COMMITTER_DATE", time).run()?;
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "it is started to be killed, without a supervisor"
    )]
    fn start(&self) -> Result<Child, Stopped> {
        let home = self.path("")?;
        let mut command = Command::new(self.pdca);
        command.args(["batch", "--lanes", &self.lanes]).current_dir(self.path("ws")?);
        command.env("HOME", &home).env("XDG_CONFIG_HOME", &home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.spawn()?)
    }

    /// Starts the batch and kills it after a while; returns false if it ended before.
    fn killed_after(&self, wait: Duration) -> Result<bool, Stopped> {
        let mut child = self.start()?;
        let begun = Instant::now();
        while begun.elapsed() < wait {
            if child.try_wait()?.is_some() {
                return Ok(false);
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        child.kill()?;
        child.wait()?;
        Ok(true)
    }

    /// Runs the batch to its end, with the same command.
    fn finish(&self) -> Result<(), Stopped> {
        let code = self.start()?.wait()?.code();
        match code {
            Some(0 | 3) => Ok(()),
            other => Err(format!("the batch ended with {other:?}").into()),
        }
    }

    fn end(&self) -> Result<End, Stopped> {
        let mut files = BTreeMap::new();
        collect(&self.path("ws")?.join("results"), "", &mut files)?;
        let here = self.path("")?.to_string();
        for text in files.values_mut() {
            *text = text.replace(here.trim_end_matches('/'), "<scene>");
        }
        // Refs that keep work contain a digest of the workspace's path, which differs in every scene.
        let refs = self
            .git(&["for-each-ref", "--format=%(refname:rstrip=-2) %(refname:lstrip=-1) %(tree)"])?;
        Ok(End { files, refs, status: self.git(&["status", "--porcelain"])? })
    }

    /// Returns live processes that mention the scene.
    fn processes(&self) -> Vec<String> {
        let Ok(mark) = self.path("").map(Utf8PathBuf::into_string) else { return Vec::new() };
        let Ok(all) = fs_err::read_dir("/proc") else { return Vec::new() };
        let lines = all.flatten().filter_map(|entry| {
            let bytes = fs_err::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&bytes).replace('\0', " "))
        });
        lines.filter(|line| line.contains(&mark)).collect()
    }
}

/// Collects every file with its text, without durations, which differ in every run.
fn collect(
    dir: &Utf8Path,
    prefix: &str,
    files: &mut BTreeMap<String, String>,
) -> Result<(), Stopped> {
    for entry in dir.read_dir_utf8()? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(entry.path(), &format!("{name}/"), files)?;
            continue;
        }
        let bytes = fs_err::read(entry.path())?;
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter(|line| !line.contains("duration_ms"));
        let lines = lines.map(|line| match line.strip_suffix(" ms |") {
            Some(rest) => rest.rsplit_once('|').map_or(line, |(row, _)| row),
            None => line,
        });
        files.insert(name, lines.collect::<Vec<_>>().join("\n"));
    }
    Ok(())
}

fn difference(found: &End, expected: &End) -> String {
    for name in found.files.keys().chain(expected.files.keys()) {
        if found.files.get(name) != expected.files.get(name) {
            return format!("{name} is different");
        }
    }
    format!("refs or checkout differ:\n{}{}", found.refs, found.status)
}
