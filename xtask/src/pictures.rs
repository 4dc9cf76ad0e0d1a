//! `cargo xtask pictures`: the pictures of the README, made from the real demo.
//!
//! The terminal is an SVG drawn from the output of `pdca demo`, the board is a screen that tmux captured, and the report is a
//! picture by Chromium. No part is made by hand, so the README shows the screen that a newcomer gets. A recording would need a
//! player from elsewhere or a megabyte. No test compares pictures, because fonts differ between machines; the screens have
//! snapshot tests, which compare text.

mod svg;

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use crate::program::{command, output};
use crate::{Outcome, Stopped};

/// Make the pictures of the README from the real demo
///
/// Runs `pdca demo --keep`, and needs tmux and Chromium. Writes docs/pictures/.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Use this binary and build none
    #[arg(long, value_name = "FILE")]
    binary: Option<Utf8PathBuf>,
    /// Write there instead of docs/pictures
    #[arg(long, value_name = "DIR")]
    to: Option<Utf8PathBuf>,
}

/// The largest picture, in bytes: a README should open at once.
const LARGEST: u64 = 150 << 10;

/// The longest time that a screen takes to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The board's terminal.
const BOARD: (&str, &str) = ("100", "30");

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize_utf8()?,
        None => build(root)?,
    };
    let to = args.to.clone().unwrap_or_else(|| root.join("docs/pictures"));
    fs_err::create_dir_all(&to)?;
    let scratch = tempfile::tempdir()?;
    let scratch =
        Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
    let studio = Studio { binary: &binary, scratch };
    let demo = scratch.join("demo");
    fs_err::write(to.join("demo.svg"), svg::recording(&studio.demo(&demo)?))?;
    studio.report(&demo.join("workspace"), &to.join("report.png"))?;
    studio.forget_decisions(&demo.join("workspace"))?;
    fs_err::write(to.join("board.svg"), svg::screen(&studio.board(&demo.join("workspace"))?))?;
    let mut outcome = Outcome::Passed;
    for name in ["demo.svg", "board.svg", "report.png"] {
        let size = fs_err::metadata(to.join(name))?.len();
        println!("{} ({} KiB)", to.join(name), size.div_ceil(1024));
        if size > LARGEST {
            eprintln!("error: {name} is larger than {} KiB", LARGEST >> 10);
            outcome = Outcome::Failed;
        }
    }
    Ok(outcome)
}

fn build(root: &Utf8Path) -> Result<Utf8PathBuf, Stopped> {
    output("cargo", &["build", "--release", "--bin", "pdca"], root)?;
    Ok(root.join("target/release/pdca"))
}

struct Studio<'a> {
    binary: &'a Utf8Path,
    scratch: &'a Utf8Path,
}

impl Studio<'_> {
    /// Plays the demo, and returns what it printed, with colours.
    fn demo(&self, keep: &Utf8Path) -> Result<String, Stopped> {
        let line = format!("exec '{}' demo --keep '{keep}' 2>&1", self.binary);
        let played = command("sh", &["-c", &line], self.scratch)
            .env("CLICOLOR_FORCE", "1")
            .env("HOME", self.scratch)
            .output()?;
        if !played.status.success() {
            return Err(
                format!("the demo failed: {}", String::from_utf8_lossy(&played.stdout)).into()
            );
        }
        Ok(String::from_utf8_lossy(&played.stdout).replace(self.scratch.as_str(), "/tmp"))
    }

    /// Takes a picture of the report.
    fn report(&self, workspace: &Utf8Path, to: &Utf8Path) -> Result<(), Stopped> {
        let page = self.scratch.join("report.html");
        output(self.binary.as_str(), &["report", "--html", page.as_str()], workspace)?;
        let profile = format!("--user-data-dir={}", self.scratch.join("profile"));
        let (shot, url) = (format!("--screenshot={to}"), format!("file://{page}"));
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--window-size=1200,1000",
            &profile,
            &shot,
            &url,
        ];
        output("chromium", &flags, self.scratch)?;
        Ok(())
    }

    /// Puts the six issues back to where a person is asked about them: built, gated and reviewed again.
    fn forget_decisions(&self, workspace: &Utf8Path) -> Result<(), Stopped> {
        for bundle in workspace.join("results").read_dir_utf8()? {
            let bundle = bundle?;
            if !bundle.file_type()?.is_dir() || !bundle.file_name().starts_with("issue_") {
                continue;
            }
            let first = bundle.path().join("iteration-v1/brief.md");
            let brief = if first.exists() { first } else { bundle.path().join("brief.md") };
            let text = fs_err::read(brief)?;
            fs_err::remove_dir_all(bundle.path())?;
            fs_err::create_dir_all(bundle.path())?;
            fs_err::write(bundle.path().join("brief.md"), text)?;
        }
        fs_err::remove_dir_all(workspace.join(".pdca"))?;
        let repo = workspace.join("greeter");
        let first = output("git", &["rev-list", "--max-parents=0", "HEAD"], &repo)?;
        let first = String::from_utf8_lossy(&first).trim().to_owned();
        output("git", &["reset", "--quiet", "--hard", &first], &repo)?;
        let refs = output(
            "git",
            &["for-each-ref", "--format=%(refname)", "refs/pdca", "refs/heads/pdca"],
            &repo,
        )?;
        for reference in String::from_utf8_lossy(&refs).lines() {
            output("git", &["update-ref", "-d", reference], &repo)?;
        }
        // Red gates are part of the story, so its exit code is not looked at.
        command(self.binary.as_str(), &["batch", "--lanes", "3"], workspace)
            .env("HOME", self.scratch)
            .output()?;
        Ok(())
    }

    /// Opens the board in a terminal, and returns its screen, with colours.
    fn board(&self, workspace: &Utf8Path) -> Result<String, Stopped> {
        let socket = self.scratch.join("tmux");
        let tmux = |args: &[&str]| {
            let all: Vec<&str> = ["-S", socket.as_str(), "-f", "/dev/null"]
                .into_iter()
                .chain(args.iter().copied())
                .collect();
            output("tmux", &all, workspace)
        };
        let line = format!("'{}' board", self.binary);
        tmux(&[
            "new-session",
            "-d",
            "-x",
            BOARD.0,
            "-y",
            BOARD.1,
            "-e",
            "TERM=xterm-256color",
            &line,
        ])?;
        let wait_for = |text: &str| -> Result<String, Stopped> {
            let begun = Instant::now();
            loop {
                let screen = tmux(&["capture-pane", "-e", "-p"])?;
                let screen = String::from_utf8_lossy(&screen).into_owned();
                if screen.contains(text) {
                    return Ok(screen);
                }
                if begun.elapsed() > PATIENCE {
                    return Err(format!("the board did not show `{text}`:\n{screen}").into());
                }
                std::thread::park_timeout(Duration::from_millis(50));
            }
        };
        wait_for("Claim")?;
        // The first one closes without a change; the second one has more to look at.
        tmux(&["send-keys", "Down"])?;
        let screen = wait_for("Proof")?;
        tmux(&["kill-server"])?;
        Ok(screen)
    }
}
