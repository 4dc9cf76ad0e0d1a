//! `cargo xtask replay`: carries real commits of a real repository through the whole cycle.
//!
//! A window of consecutive commits is chosen in which each touches a file of the one before. The branch is put
//! back to before the first of them. Each commit becomes a bundle that depends on the one before, and a
//! scripted builder replays it in its lane. After one `batch` for each sign-off and one `integrate`, the
//! branch must be the original history again: tree by tree, with the authors, dates and messages.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::Tool;

use crate::{Outcome, Stopped};

/// Replay commits of a repository through batch, sign-off and integrate, and compare with the original
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The repository; it is cloned and not written
    repository: Utf8PathBuf,
    /// The number of commits
    #[arg(long, default_value_t = 4)]
    commits: usize,
    /// The revision to search from
    #[arg(long, default_value = "HEAD")]
    from: String,
    /// The number of lanes
    #[arg(long, default_value_t = 2)]
    lanes: u32,
    /// The binary; `target/release/pdca` if not given
    #[arg(long, value_name = "FILE")]
    pdca: Option<Utf8PathBuf>,
}

struct Scene {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
    pdca: Utf8PathBuf,
    lanes: String,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let pdca = args.pdca.clone().unwrap_or_else(|| root.join("target/release/pdca"));
    let dir = tempfile::tempdir()?;
    let place = Utf8Path::from_path(dir.path()).ok_or("the directory is not UTF-8")?.to_owned();
    let scene = Scene { _dir: dir, root: place, pdca, lanes: args.lanes.to_string() };
    let source = args.repository.canonicalize_utf8()?;
    Scene::git_in(&scene.root, &["clone", "-q", "--no-checkout", source.as_str(), "app"])?;
    let chosen = scene.choose(&args.from, args.commits)?;
    for (place, commit) in chosen.iter().enumerate() {
        let subject = scene.git(&["log", "-1", "--format=%h %s", commit])?;
        println!("{}: {}", place + 1, subject.trim());
    }
    scene.git(&["checkout", "-q", "--detach", &format!("{}^", chosen[0])])?;
    scene.git(&["branch", "-f", "replayed", &format!("{}^", chosen[0])])?;
    scene.lay_out(&chosen)?;
    for place in 1..=chosen.len() {
        let id = place.to_string();
        scene.pdca(&["batch", "--lanes", &scene.lanes], &[0, 3])?;
        scene.pdca(&["signoff", &id, "clear", "all", "--note", "replayed"], &[0])?;
        scene.pdca(&["signoff", &id, "accept", "--by", "Replay"], &[0])?;
    }
    scene.pdca(&["integrate"], &[0])?;
    scene.pdca(&["verify"], &[0])?;
    scene.compare(&chosen)
}

impl Scene {
    fn git(&self, words: &[&str]) -> Result<String, Stopped> {
        Self::git_in(&self.root.join("app"), words)
    }

    fn git_in(dir: &Utf8Path, words: &[&str]) -> Result<String, Stopped> {
        let said = Tool::new("git").args(words).cwd(dir).run()?;
        if said.code != 0 {
            let why = String::from_utf8_lossy(&said.stderr).into_owned();
            return Err(format!("git {} ended with {}: {why}", words.join(" "), said.code).into());
        }
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }

    fn pdca(&self, words: &[&str], expected: &[i32]) -> Result<(), Stopped> {
        let home = self.root.join("home");
        fs_err::create_dir_all(&home)?;
        let tool = Tool::new(self.pdca.as_std_path()).args(words).cwd(self.root.join("ws"));
        let said = tool.env("HOME", home.as_str()).env("USER", "replay").run()?;
        if expected.contains(&said.code) {
            return Ok(());
        }
        let (out, err) =
            (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        Err(format!("pdca {} ended with {}\n{out}{err}", words.join(" "), said.code).into())
    }

    /// Chooses the newest window of commits in which each touches a file of the one before.
    fn choose(&self, from: &str, wanted: usize) -> Result<Vec<String>, Stopped> {
        let log = self.git(&["log", "--no-merges", "--format=%H %P", "-n", "2000", from])?;
        let mut window: Vec<(String, Vec<String>)> = Vec::new();
        for line in log.lines() {
            let mut ids = line.split(' ').map(str::to_owned);
            // The first commit of a history has no parent to replay it onto.
            let (Some(commit), Some(_)) = (ids.next(), ids.next()) else { continue };
            let files = self.git(&["diff-tree", "-r", "--no-commit-id", "--name-only", &commit])?;
            let files: Vec<String> = files.lines().map(str::to_owned).collect();
            let follows = window.last().is_none_or(|(newer, of_newer)| {
                self.git(&["rev-parse", &format!("{newer}^")]).is_ok_and(|at| at.trim() == commit)
                    && files.iter().any(|file| of_newer.contains(file))
            });
            if !follows {
                window.clear();
            }
            window.push((commit, files));
            if window.len() == wanted {
                return Ok(window.into_iter().rev().map(|(commit, _)| commit).collect());
            }
        }
        Err(format!("no {wanted} consecutive commits touch a file of the one before").into())
    }

    fn lay_out(&self, chosen: &[String]) -> Result<(), Stopped> {
        let workspace = self.root.join("ws");
        fs_err::create_dir_all(&workspace)?;
        let config = r#"[project]
author = "Replay <replay@example.org>"
[driver]
min_free_gb = 0
[[targets]]
name = "app"
path = "../app"
branch = "replayed"
[integrate]
land = "target"
[leaves.builder]
mode = "command"
argv = ["sh", "{workspace}/replay.sh", "{id}"]
prompt_via = "none"
[leaves.reviewer]
mode = "command"
argv = ["sh", "-c", 'printf "| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n"']
prompt_via = "none"
[[gates.checks]]
id = "T1-clean"
tier = "T1"
cmd = 'git diff --quiet'
"#;
        fs_err::write(workspace.join("pdca.toml"), config)?;
        let picks = chosen
            .iter()
            .enumerate()
            .map(|(place, commit)| format!("{}) commit={commit} ;;\n", place + 1))
            .collect::<Vec<_>>()
            .concat();
        let script = format!(
            "case $1 in\n{picks}esac\nexec git -c user.name=Replay -c user.email=replay@example.org cherry-pick --allow-empty \"$commit\"\n"
        );
        fs_err::write(workspace.join("replay.sh"), script)?;
        for place in 1..=chosen.len() {
            let bundle = workspace.join(format!("results/issue_{place}"));
            fs_err::create_dir_all(&bundle)?;
            let needs = match place {
                1 => String::new(),
                _ => format!("- **Depends on:** {}\n", place - 1),
            };
            let brief = format!(
                "# Replay {place}\n\n- **Slug:** replay-{place}\n- **Disposition hint:** fix\n{needs}"
            );
            fs_err::write(bundle.join("brief.md"), brief)?;
        }
        Ok(())
    }

    fn compare(&self, chosen: &[String]) -> Result<Outcome, Stopped> {
        let landed = self.git(&["rev-list", "--reverse", &format!("{}^..replayed", chosen[0])])?;
        let landed: Vec<&str> = landed.lines().collect();
        let mut outcome = Outcome::Passed;
        if landed.len() != chosen.len() {
            println!("{} commits landed for {} originals", landed.len(), chosen.len());
            outcome = Outcome::Failed;
        }
        let facts = ["%T", "%an <%ae>", "%ad", "%s"];
        for (original, now) in chosen.iter().zip(landed) {
            for fact in facts {
                let of = |commit: &str| {
                    self.git(&["log", "-1", "--date=raw", &format!("--format={fact}"), commit])
                };
                let (before, after) = (of(original)?, of(now)?);
                if before != after {
                    println!("{fact} of {original:.12}: {} became {}", before.trim(), after.trim());
                    outcome = Outcome::Failed;
                }
            }
            let body = |commit: &str| self.git(&["log", "-1", "--format=%B", commit]);
            if !body(now)?.starts_with(body(original)?.trim_end()) {
                println!("the message of {original:.12} is another");
                outcome = Outcome::Failed;
            }
        }
        if outcome == Outcome::Passed {
            println!(
                "{} commits landed as they were made: trees, authors, dates, messages",
                chosen.len()
            );
        }
        Ok(outcome)
    }
}
