//! `cargo xtask bench remote`: bands on one, two and three hosts beside the same run here.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::measure::{Memory, cost};
use super::ms;
use super::report::{self, Against, Line, Unit};
use crate::{Stopped, program};

/// Stands in for `ssh`: a host is a home directory, and the bytes of each message are counted.
const SSH: &str = r#"#!/bin/sh
while [ $# -gt 2 ]; do shift; done
request=$(mktemp "$BENCH/request-XXXXXX")
cat > "$request"
HOME="$BENCH/hosts/$1" sh -c "$2" < "$request" > "$request.answer"
code=$?
cat "$request" "$request.answer" | wc -c >> "$BENCH/bytes"
cat "$request.answer"
rm -f "$request" "$request.answer"
exit $code
"#;

/// Measure overhead and bytes per band, and the speed-up of more hosts
///
/// Gates wait, so that processors are no limit. A script stands in for `ssh`: its start is part of the overhead, a network is not. Asserts nothing: the
/// exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The number of bands
    #[arg(long, default_value_t = 24)]
    bands: u32,
    /// The seconds that each band's gate waits
    #[arg(long, default_value_t = 2.0)]
    wait: f64,
    /// Measure this binary and build none
    #[arg(long, value_name = "FILE")]
    binary: Option<Utf8PathBuf>,
    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

pub(super) fn measure(args: &Args, root: &Utf8Path) -> Result<(), Stopped> {
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize_utf8()?,
        None => super::build(root)?,
    };
    super::note_load();
    let here = run(args, &binary, 0)?;
    let mut lines = Vec::new();
    let mut one = None;
    for hosts in 1..=3 {
        let far = run(args, &binary, hosts)?;
        let first = *one.get_or_insert(far.wall);
        let line = |what: &str, unit, measured, against: Option<(&str, f64)>, aim| Line {
            what: format!("{hosts} hosts of 2 slots: {what}"),
            unit,
            measured,
            against: against.map(|(what, measured)| Against { what: what.to_owned(), measured }),
            aim,
        };
        let wall = Some(("2 lanes here", ms(here.wall)));
        lines.push(line("wall time", Unit::Milliseconds, ms(far.wall), wall, None));
        let speed = first.as_secs_f64() / far.wall.as_secs_f64();
        lines.push(line("times as fast as one host", Unit::Count, speed, None, None));
        if hosts == 1 {
            // Two slots share the bands, so each band costs twice its share of the difference.
            let beyond = (ms(far.wall) - ms(here.wall)) * 2.0 / f64::from(args.bands.max(1));
            lines.push(line("overhead per band", Unit::Milliseconds, beyond, None, Some(300.0)));
            let bytes = far.bytes / f64::from(args.bands.max(1));
            lines.push(line("bytes per band", Unit::Count, bytes, None, None));
        }
    }
    if args.json {
        println!("{:#}", report::json(&lines));
    } else {
        print!("{}", report::table(&lines));
    }
    Ok(())
}

struct Measured {
    wall: Duration,
    bytes: f64,
}

/// Runs one batch on so many hosts, or on two lanes here.
fn run(args: &Args, binary: &Utf8Path, hosts: u32) -> Result<Measured, Stopped> {
    let scratch = tempfile::tempdir()?;
    let bench =
        Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
    let (app, workspace) = (bench.join("app"), bench.join("ws"));
    fs_err::create_dir_all(&app)?;
    fs_err::create_dir_all(bench.join("bin"))?;
    for step in [
        &["init", "-q", "-b", "main"][..],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        ],
    ] {
        program::output("git", step, &app)?;
    }
    let names: Vec<String> = (1..=hosts).map(|number| format!("host{number}")).collect();
    let mut config = format!(
        "[[targets]]\nname = \"app\"\npath = \"../app\"\nrepo = \"team/app\"\nbranch = \"main\"\n\n[driver]\ngate_base = \"off\"\nmin_free_gb = 0\n\n\
         [leaves.builder]\nmode = \"command\"\nargv = [\"sh\", \"-c\", \"date > file-$PDCA_ISSUE\"]\nprompt_via = \"none\"\nsandbox = \"off\"\n\n\
         [[gates.checks]]\nid = \"T1-wait\"\ntier = \"T1\"\ncmd = \"sleep {}\"\n\n",
        args.wait
    );
    for name in &names {
        config = format!("{config}[[hosts]]\nname = \"{name}\"\nslots = 2\n\n");
        let bin = bench.join("hosts").join(name).join(".pdca-host/bin");
        fs_err::create_dir_all(&bin)?;
        fs_err::os::unix::fs::symlink(binary, bin.join("pdca"))?;
    }
    for number in 0..args.bands {
        let dir = workspace.join(format!("results/issue_{}", 100 + number));
        fs_err::create_dir_all(&dir)?;
        let brief = format!(
            "# {} — a band\n\n- **Slug:** band\n- **Repo + branch target:** team/app @ main\n",
            100 + number
        );
        fs_err::write(dir.join("brief.md"), brief)?;
    }
    fs_err::write(workspace.join("pdca.toml"), config)?;
    let ssh = bench.join("bin/ssh");
    fs_err::write(&ssh, SSH)?;
    program::output("chmod", &["755", ssh.as_str()], bench)?;
    let lanes = if hosts == 0 { "2" } else { "0" };
    let mut command = program::command(binary.as_str(), &["batch", "--lanes", lanes], &workspace);
    #[expect(
        clippy::disallowed_methods,
        reason = "the stand-in comes before the programs of the path"
    )]
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{bench}/bin:{path}"))
        .env("BENCH", bench)
        .env("XDG_RUNTIME_DIR", bench);
    let cost = cost(&mut command, Memory::NotSampled)?;
    if cost.code != Some(0) {
        return Err(format!("the batch on {hosts} hosts ended with {:?}", cost.code).into());
    }
    let text = fs_err::read_to_string(bench.join("bytes")).unwrap_or_default();
    let bytes: u32 = text.lines().filter_map(|line| line.trim().parse::<u32>().ok()).sum();
    Ok(Measured { wall: cost.wall, bytes: f64::from(bytes) })
}
