//! `cargo xtask bench remote`: bands on one, two and three hosts beside the same run here.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::events::{Event, EventKind};
use pdca_testkit::SshHosts;

use super::measure::{MemorySample, cost};
use super::ms;
use super::report::{self, Against, BenchLine, BenchUnit};
use crate::{Stopped, program};

/// Counts the bytes of each message, and passes it on: `$REACH` is how a host is reached.
const SSH: &str = r#"#!/bin/sh
request=$(mktemp "$BENCH/request-XXXXXX")
cat > "$request"
(eval "$REACH") < "$request" > "$request.answer"
code=$?
cat "$request" "$request.answer" | wc -c >> "$BENCH/bytes"
cat "$request.answer"
rm -f "$request" "$request.answer"
exit $code
"#;

/// The real program, with a configuration that knows the hosts.
const REAL: &str = r#"exec /usr/bin/ssh -F "$BENCH/ssh-config" "$@""#;
/// A host is a home directory, where this machine has no `sshd` for it.
const STAND_IN: &str = r#"while [ $# -gt 2 ]; do shift; done; HOME="$BENCH/hosts/$1" sh -c "$2""#;

/// A link of a journey: bytes in a second, and milliseconds there and back.
const SLOW: (u32, u64) = (50_000, 200);

/// Measure overhead and bytes per band, and the speed-up of more hosts
///
/// Gates wait, so that processors are no limit. Each host is a real `sshd` in a network namespace of its own; without root or
/// `sshd` a script stands in for them, which is said. The last rows are over a link of 50 kB/s and 200 ms. Asserts nothing: the exit
/// code is 0 whatever the numbers are.
#[derive(clap::Args, Debug, Clone)]
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
    let here = run(args, &binary, 0, Link::Plain)?;
    let mut lines = Vec::new();
    let mut one = None;
    let mut is_real = true;
    for hosts in 1..=3 {
        let far = run(args, &binary, hosts, Link::Plain)?;
        let first = *one.get_or_insert(far.wall);
        let line = |what: &str, unit, measured, against: Option<(&str, f64)>, aim| BenchLine {
            what: format!("{hosts} hosts of 2 slots: {what}"),
            unit,
            measured,
            against: against.map(|(what, measured)| Against { what: what.to_owned(), measured }),
            aim,
        };
        let (wall, lag) = (("2 lanes here", ms(here.wall)), ("2 lanes here", here.lag));
        let (wall, lag) = (Some(wall), Some(lag));
        lines.push(line("wall time", BenchUnit::Milliseconds, ms(far.wall), wall, None));
        let speed = first.as_secs_f64() / far.wall.as_secs_f64();
        lines.push(line("times as fast as one host", BenchUnit::Count, speed, None, None));
        if hosts == 1 {
            // Two slots share the bands, so each band costs twice its share of the difference.
            let beyond = (ms(far.wall) - ms(here.wall)) * 2.0 / f64::from(args.bands.max(1));
            lines.push(line(
                "overhead per band",
                BenchUnit::Milliseconds,
                beyond,
                None,
                Some(300.0),
            ));
            let quick = Args { wait: 0.0, ..args.clone() };
            let counted = run(&quick, &binary, 1, Link::Counted)?;
            let bytes = counted.bytes / f64::from(args.bands.max(1));
            lines.push(line("bytes per band", BenchUnit::Count, bytes, None, None));
            lines.push(line(
                "95 % of lines are here after",
                BenchUnit::Milliseconds,
                far.lag,
                lag,
                None,
            ));
        }
        is_real &= far.is_real;
    }
    if is_real {
        let slow = run(&Args { bands: 4, ..args.clone() }, &binary, 1, Link::Slow)?;
        lines.push(BenchLine {
            what: "1 host at 50 kB/s and 200 ms: 95 % of lines are here after".to_owned(),
            unit: BenchUnit::Milliseconds,
            measured: slow.lag,
            against: Some(Against { what: "2 lanes here".to_owned(), measured: here.lag }),
            aim: Some(2000.0),
        });
    } else {
        eprintln!(
            "note: no sshd for each host here; a script stands in, and no slow link is measured"
        );
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
    /// Milliseconds from a line of a builder to the event that has it, of which 95 % are not longer.
    lag: f64,
    is_real: bool,
}

/// How hosts are reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Plain,
    /// Bytes are counted, by a script that costs more than what it counts.
    Counted,
    Slow,
}

/// Runs one batch on so many hosts, or on two lanes here.
fn run(args: &Args, binary: &Utf8Path, hosts: u32, link: Link) -> Result<Measured, Stopped> {
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
         [leaves.builder]\nmode = \"command\"\nargv = [\"sh\", \"-c\", \"for n in 1 2 3; do date +%s%N; sleep 0.4; done; date > file-$PDCA_ISSUE\"]\nprompt_via = \"none\"\nsandbox = \"off\"\n\n\
         [[gates.checks]]\nid = \"T1-wait\"\ntier = \"T1\"\ncmd = \"sleep {}\"\n\n",
        args.wait
    );
    for name in &names {
        let root = bench.join("hosts").join(name).join(".pdca-host");
        config = format!("{config}[[hosts]]\nname = \"{name}\"\nslots = 2\nroot = \"{root}\"\n\n");
        let bin = root.join("bin");
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
    let script = if link == Link::Counted { SSH } else { "#!/bin/sh\neval \"$REACH\"\n" };
    fs_err::write(&ssh, script)?;
    program::output("chmod", &["755", ssh.as_str()], bench)?;
    let plain: Vec<&str> = names.iter().map(String::as_str).collect();
    let machines = SshHosts::start(bench, &plain).ok();
    if let Some(machines) = machines.as_ref().filter(|_| link == Link::Slow) {
        machines.slow_down(SLOW.0, Duration::from_millis(SLOW.1));
    }
    let lanes = if hosts == 0 { "2" } else { "0" };
    let words = ["batch", "--lanes", lanes, "--events", "events"];
    let mut command = program::command(binary.as_str(), &words, &workspace);
    #[expect(
        clippy::disallowed_methods,
        reason = "the stand-in comes before the programs of the path"
    )]
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{bench}/bin:{path}"))
        .env("BENCH", bench)
        .env("REACH", if machines.is_some() { REAL } else { STAND_IN })
        .env("XDG_RUNTIME_DIR", bench);
    let cost = cost(&mut command, MemorySample::NotSampled)?;
    if cost.code != Some(0) {
        return Err(format!("the batch on {hosts} hosts ended with {:?}", cost.code).into());
    }
    let text = fs_err::read_to_string(bench.join("bytes")).unwrap_or_default();
    let bytes: u32 = text.lines().filter_map(|line| line.trim().parse::<u32>().ok()).sum();
    let lag = lag(&fs_err::read_to_string(workspace.join("events"))?);
    let is_real = machines.is_some();
    Ok(Measured { wall: cost.wall, bytes: f64::from(bytes), lag, is_real })
}

/// Returns the time from a line of a builder, which says when it was printed, to its event.
fn lag(events: &str) -> f64 {
    let lag = |line: &str| {
        let event: Event = serde_json::from_str(line).ok()?;
        let EventKind::Alive { line: printed, .. } = event.kind else { return None };
        let printed: i128 = printed.trim().parse().ok()?;
        let micros = (event.at.as_nanosecond() - printed) / 1000;
        Some(f64::from(i32::try_from(micros).ok()?) / 1000.0)
    };
    let mut lags: Vec<f64> = events.lines().filter_map(lag).collect();
    lags.sort_by(f64::total_cmp);
    let at = (lags.len() * 95).div_ceil(100).saturating_sub(1);
    lags.get(at).copied().unwrap_or(f64::NAN)
}
