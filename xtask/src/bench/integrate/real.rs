//! Compares the wall time of the real binary with the counted rounds.
//!
//! A batch of changes is built and accepted with an instant gate. Then the gate is replaced by one that sleeps
//! and is red if the files of culprits exist, and the batch is integrated. The rounds of the simulation are
//! compared with the wall time. Nothing is asserted, because another process on the machine can make it slower.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::strategy;
use crate::{Stopped, program};

/// The allowed ratio of wall time to rounds.
const MOST: f64 = 1.15;

const CONFIG: &str = r#"[project]
author = "bench"

[[targets]]
name = "app"
path = "../app"
branch = "main"

[driver]
gate_base = "off"

[leaves.builder]
mode = "command"
argv = ["sh", "-c", 'echo "$0" > "file-$0.txt"', "{id}"]
prompt_via = "none"

[leaves.reviewer]
mode = "command"
argv = ["sh", "-c", 'printf "| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n"']
prompt_via = "none"

[[gates.checks]]
id = "T1-slow"
tier = "T1"
cmd = '''GATE'''
"#;

/// A batch, with the duration of its integration.
struct Measured {
    lanes: usize,
    culprits: Vec<usize>,
    rounds: usize,
    wall: Duration,
    runs: u64,
}

/// Integrates batches with the real binary, and compares the wall time with the rounds.
pub(super) fn run(pdca: &Utf8Path, count: usize, seconds: u64) -> Result<String, Stopped> {
    let mut lines = vec![format!(
        "real processes: {count} changes, a gate of {seconds} s; wall time / rounds, at most {MOST:.2}\n"
    )];
    for (lanes, culprits) in
        [(1, vec![]), (1, vec![count / 3]), (4, vec![count / 3]), (4, vec![1, count - 2])]
    {
        let measured = measure(pdca, count, seconds, lanes, culprits)?;
        let rounds = f64::from(u32::try_from(measured.rounds * usize::try_from(seconds)?)?);
        let ratio = measured.wall.as_secs_f64() / rounds.max(1.0);
        let kept = if ratio <= MOST { "kept" } else { "MISSED" };
        lines.push(format!(
            "lanes: {}, culprits: {:<8} {:>3} rounds {:>3} runs {:>6.2} s  {ratio:.2}  {kept}\n",
            measured.lanes,
            format!("{:?}", measured.culprits),
            measured.rounds,
            measured.runs,
            measured.wall.as_secs_f64(),
        ));
    }
    Ok(lines.concat())
}

fn measure(
    pdca: &Utf8Path,
    count: usize,
    seconds: u64,
    lanes: usize,
    culprits: Vec<usize>,
) -> Result<Measured, Stopped> {
    let dir = tempfile::tempdir()?;
    let dir = Utf8PathBuf::try_from(dir.path().to_path_buf()).map(|path| (dir, path))?;
    let (workspace, app) = (dir.1.join("ws"), dir.1.join("app"));
    fs_err::create_dir_all(&app)?;
    fs_err::write(app.join("greeting.txt"), "hello\n")?;
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["-c", "user.name=pdca", "-c", "user.email=pdca@localhost", "commit", "-qm", "first"],
    ] {
        program::output("git", words, &app)?;
    }
    let ids: Vec<String> = (0..count).map(|place| format!("{}", 100 + place)).collect();
    for id in &ids {
        let bundle = workspace.join(format!("results/issue_{id}"));
        fs_err::create_dir_all(&bundle)?;
        let brief = format!(
            "# Brief\n\n- **Slug:** number-{id}\n- **Repo + branch target:** app @ main\n- **Disposition hint:** fix\n"
        );
        fs_err::write(bundle.join("brief.md"), brief)?;
    }
    let run = |words: &[&str]| -> Result<(std::process::Output, Duration), Stopped> {
        let begun = Instant::now();
        let mut command = program::command(pdca.as_str(), words, &workspace);
        command.env("HOME", &dir.1).env("XDG_CONFIG_HOME", &dir.1);
        Ok((command.output()?, begun.elapsed()))
    };
    fs_err::write(workspace.join("pdca.toml"), CONFIG.replace("GATE", "true"))?;
    run(&["batch", "--lanes", "2"])?;
    for id in &ids {
        run(&["signoff", id, "clear", "all"])?;
        run(&["signoff", id, "accept"])?;
    }
    let red: Vec<String> =
        culprits.iter().map(|place| format!("test ! -e file-{}.txt", ids[*place])).collect();
    let gate = [vec![format!("sleep {seconds}")], red].concat().join(" && ");
    fs_err::write(workspace.join("pdca.toml"), CONFIG.replace("GATE", &gate))?;
    let (said, wall) = run(&["integrate", "--json", "--lanes", &lanes.to_string()])?;
    let document: serde_json::Value = serde_json::from_slice(&said.stdout)
        .map_err(|_| format!("integrate said: {}", String::from_utf8_lossy(&said.stderr).trim()))?;
    let landed = document["landed"].as_array().map_or(0, Vec::len);
    if landed != count - culprits.len() {
        return Err(format!("{landed} of {count} landed: {document}").into());
    }
    let guilty: Vec<bool> = (0..count).map(|place| culprits.contains(&place)).collect();
    let rounds = strategy::search_with_base(&guilty, lanes).rounds;
    let runs = document["gate_runs"].as_u64().unwrap_or_default();
    Ok(Measured { lanes, culprits, rounds, wall, runs })
}
