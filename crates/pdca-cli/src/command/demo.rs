//! `pdca demo`: the whole cycle in a temporary workspace, with scripted leaves.

mod fixture;

use std::io::Write;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{Cancel, Ending, InstalledGit, SandboxKind, Spec, wall_support};
use serde::Serialize;

use crate::ProcessEnv;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Format, Report, Response};

/// Watch issues go from brief to landed, without a model, a key or a network
///
/// Creates a small repository and six issues in a temporary directory, and runs the commands you would run, on three lanes.
/// Shell scripts stand in for the models. Two of the changes are green alone and red together. Nothing outside that
/// directory is written.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca demo
  pdca demo --keep DIR              # leave it there for exploring
  pdca demo --crash                 # kill the driver with -9 on the way, and go on")]
pub(crate) struct Args {
    /// Create the demo in DIR, which must not exist, and keep it
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    keep: Option<Utf8PathBuf>,
    /// Kill the driver with -9 half-way, and resume
    #[arg(long)]
    crash: bool,
}

/// The issue whose builder writes to the user's checkout. Without a sandbox its attempt is
/// rejected, so the demo leaves it out.
const REACHES_OUT: &str = "42";

/// Returns whether the kernel confines leaves here.
fn is_confined() -> bool {
    match wall_support() {
        SandboxKind::Bwrap { .. } => true,
        // Signals are confined from ABI version 6 on.
        SandboxKind::Landlock { abi } => abi >= 6,
        SandboxKind::NotAvailable { .. } | SandboxKind::Off => false,
    }
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    InstalledGit::require()?;
    let temporary = match &args.keep {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("pdca-demo-").tempdir()?),
    };
    let dir = match (&args.keep, &temporary) {
        (Some(keep), _) => fresh(&cx.env.cwd.join(keep))?,
        (None, Some(dir)) => Utf8PathBuf::try_from(dir.path().to_owned()).map_err(|_| {
            Failure::usage("the temporary directory is not UTF-8").hint("set TMPDIR to one that is")
        })?,
        (None, None) => return Err(Failure::unexpected("there is no directory for the demo")),
    };
    let dir = dir.canonicalize_utf8()?;
    let workspace = dir.join("workspace");
    fixture::lay_out(&workspace)?;
    let env = ProcessEnv { cwd: workspace.clone(), ..cx.env.clone() };
    // The story is printed as it happens; with JSON only the document is.
    let untold = &mut std::io::sink();
    let out = if cx.globals.format() == Format::Json { untold } else { out };
    let mut stage = Stage { env, cx, out, err, commands: Vec::new() };
    play(&mut stage, args.crash)?;
    let kept = args.keep.as_ref().map(|_| &workspace);
    farewell(kept, &mut stage)?;
    Ok(Response::done(DemoReport { kept: kept.cloned(), commands: stage.commands }))
}

/// The commands of the demo, each with its exit code.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct DemoReport {
    /// The workspace, with `--keep`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    kept: Option<Utf8PathBuf>,
    commands: Vec<Typed>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Typed {
    command: String,
    exit: u8,
}

impl Report for DemoReport {
    const KIND: &'static str = "demo";

    fn text(&self, _: &Context<'_>, _: &mut dyn Write) -> Result<(), Failure> {
        Ok(())
    }
}

/// Creates a directory that must not exist.
fn fresh(dir: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    if dir.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!("{dir} exists already"))
            .at(FilePosition::file(dir))
            .hint("name a directory that does not exist yet"));
    }
    fs_err::create_dir_all(dir)?;
    Ok(dir.to_owned())
}

/// Plays the six issues, with the commands a person would type.
fn play(stage: &mut Stage<'_>, crash: bool) -> Result<(), Failure> {
    build(stage, crash)?;
    decide(stage)?;
    combine(stage, crash)
}

/// Plays Plan, Do and Check.
fn build(stage: &mut Stage<'_>, crash: bool) -> Result<(), Failure> {
    stage.say(
        "Six issues, each a directory with a brief. `pdca` reads where they stand from the files.",
    )?;
    stage.pdca(&["status"], Exit::Done)?;
    stage.say(
        "Now Do and Check, unattended, on three lanes. First the branch by itself is gated, once: nothing is \
         built on a red one. Then a builder in a private checkout, the gates, an independent \
         reviewer. 15 waits for 12. 20 and 23 both touch README.md, so one is held. Watch 23 come back red, 31 close \
         without a model, and 42 reach for your own checkout.",
    )?;
    if crash {
        stage.crash(&["batch", "--lanes", "3"], "gate:5")?;
        stage.say("Killed with -9 in the middle. The same command goes on; nothing that ended runs again.")?;
    }
    stage.pdca(&["batch", "--lanes", "3"], Exit::GateRed)?;
    stage.say("What came of the builder that reached out, and of a reviewer that wanted the builder's notes:")?;
    if is_confined() {
        stage.look("results/issue_42/build-notes.md", "checkout")?;
        stage.look("results/issue_42/build-notes.md", "signal")?;
    }
    stage.look("results/issue_20/check-review.md", "notes")?;
    stage.say("And what an agent that builds is told before it tries to merge its own work:")?;
    stage.pdca(&["guard", "--explain", "make && gh pr merge 12"], Exit::Done)
}

/// Plays the sign-off.
fn decide(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.say("People decide. The queue has the cheap decisions first.")?;
    stage.pdca(&["queue"], Exit::Done)?;
    stage.say("12 is right. Its one open box is the question no gate can answer: is this what people want?")?;
    stage.pdca(&["signoff", "12", "clear", "all", "--note", "yes"], Exit::Done)?;
    stage.pdca(&["signoff", "12", "accept"], Exit::Done)?;
    stage.pdca(&["signoff", "31", "accept"], Exit::Done)?;
    stage.say("23 is red, so accepting it is refused. It goes back to Do with a note that the next attempt reads.")?;
    stage.pdca(&["signoff", "23", "accept"], Exit::Usage)?;
    stage.pdca(&["signoff", "23", "iterate-do", "--note", "upper case, please"], Exit::Done)?;
    stage.say(
        "12 is complete, so 15 may start, on a base that has 12 in it; 23 gets its second attempt, on top of 20, which \
         touches the same file.",
    )?;
    stage.pdca(&["batch", "--lanes", "3"], Exit::Done)?;
    for id in
        ["20", "15", "23", REACHES_OUT].into_iter().filter(|id| is_confined() || *id != REACHES_OUT)
    {
        stage.pdca(&["signoff", id, "clear", "all"], Exit::Done)?;
        stage.pdca(&["signoff", id, "accept"], Exit::Done)?;
    }
    Ok(())
}

/// Plays the integration.
fn combine(stage: &mut Stage<'_>, crash: bool) -> Result<(), Failure> {
    stage.say(
        "Each is right by itself, and git merges any two of them. But 20 made it a rule that no script asks the \
         clock, and 15 asks it. No gate has seen the two together.",
    )?;
    stage.pdca(&["forecast"], Exit::Done)?;
    stage.say(
        "So before anything lands, all of them are put onto the branch in the object store and gated as one tree.",
    )?;
    if crash {
        stage.crash(&["integrate"], "verdict:3")?;
        stage.say("Killed again, between two verdicts. What was paid for is known; the commits have the same ids.")?;
    }
    stage.pdca(&["integrate"], Exit::CombinationRed)?;
    stage.say("The guilty pair is named, and everything innocent is in a branch. Your own checkout never moved:")?;
    stage.untouched()?;
    stage.say("It moves when you say so, as with any branch.")?;
    stage.merge()?;
    stage.say("The certificate of the landing can be verified again, on any clone.")?;
    stage.pdca(&["verify"], Exit::Done)?;
    mend(stage)
}

/// Plays the second attempt at the held issue.
fn mend(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.say("15 is held, not lost. It goes back with the evidence in its brief, and the next attempt reads it.")?;
    stage.pdca(&["why", "15"], Exit::Done)?;
    stage.pdca(&["signoff", "15", "iterate-do", "--note", "no clock, please"], Exit::Done)?;
    stage.look("results/issue_15/brief.md", "20")?;
    stage.pdca(&["batch", "--lanes", "3"], Exit::Done)?;
    stage.pdca(&["signoff", "15", "clear", "all"], Exit::Done)?;
    stage.pdca(&["signoff", "15", "accept"], Exit::Done)?;
    stage.pdca(&["integrate"], Exit::Done)?;
    stage.merge()?;
    stage.say("The history reads as if people had written it: authors, dates, subjects, one line from the first commit.")?;
    let log = stage.git(&["log", "--reverse", "--format=%an: %s"])?;
    for line in log.lines() {
        stage.line(line)?;
    }
    stage.say("The record, told from git: what landed, and where.")?;
    stage.pdca(&["status"], Exit::Done)
}

fn farewell(kept: Option<&Utf8PathBuf>, stage: &mut Stage<'_>) -> Result<(), Failure> {
    if let Some(workspace) = kept {
        stage.say(&format!("It is all in {workspace}. Look around:"))?;
        stage.line(&format!("  cd {workspace}"))?;
        stage
            .line("  pdca status 23              # two attempts; the first is in iteration-v1/")?;
        stage.line("  cat results/issue_12/SUMMARY.md")?;
        stage.line("  git -C greeter log          # each commit names its bundle")?;
    } else {
        stage.say("Next:")?;
        stage.line("  pdca demo --keep DIR        # the same, left for exploring")?;
    }
    stage.line("  pdca init                   # a workspace for your own project")?;
    stage.line("  pdca doctor                 # what is enforced on this machine")
}

/// Runs commands in-process, as if typed in the workspace.
struct Stage<'a> {
    env: ProcessEnv,
    cx: &'a Context<'a>,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    commands: Vec<Typed>,
}

impl Stage<'_> {
    fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.line("")?;
        self.line(&format!("{}", self.cx.out.strong(format_args!("# {text}"))))
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.out, "{text}")?;
        // Progress goes to the other stream; flushing keeps the two in order.
        Ok(self.out.flush()?)
    }

    /// Types a command and checks its exit code.
    fn pdca(&mut self, words: &[&str], expected: Exit) -> Result<(), Failure> {
        let typed = words
            .iter()
            .map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() });
        let typed: Vec<String> = typed.collect();
        self.line(&format!("{} pdca {}", self.cx.out.accent("$"), typed.join(" ")))?;
        let args = std::iter::once("pdca").chain(words.iter().copied()).map(Into::into);
        let exit = crate::run(args, &self.env, self.out, self.err);
        if exit == expected {
            let command = format!("pdca {}", typed.join(" "));
            self.commands.push(Typed { command, exit: exit.code() });
            return Ok(());
        }
        Err(Failure::unexpected(format!("`pdca {}` ended with {}, not {}", typed.join(" "), exit.code(), expected.code()))
            .hint("`pdca doctor` tells what this machine lacks; `pdca demo --keep DIR` leaves the evidence"))
    }

    /// Shows the lines of a file that contain a word.
    fn look(&mut self, file: &str, word: &str) -> Result<(), Failure> {
        self.line(&format!("{} grep {word} {file}", self.cx.out.accent("$")))?;
        let text = fs_err::read_to_string(self.env.cwd.join(file))?;
        text.lines().filter(|line| line.contains(word)).try_for_each(|line| self.line(line))
    }

    /// Runs a command as a separate process that kills itself on the way.
    fn crash(&mut self, words: &[&str], at: &str) -> Result<(), Failure> {
        let Some(program) = self.env.program.clone() else {
            return Err(Failure::unexpected(
                "it is not known where this program is, so it cannot be started again",
            ));
        };
        self.line(&format!(
            "{} pdca {}    {}",
            self.cx.out.accent("$"),
            words.join(" "),
            self.cx.out.faint("# kill -9 on the way")
        ))?;
        let job = self.env.cwd.join("crash");
        let typed = [program.as_str(), "--crash-at", at].into_iter().chain(words.iter().copied());
        let mut spec = Spec::new(typed, &self.env.cwd, &job);
        spec.timeout = Some(Duration::from_secs(120));
        let verdict = pdca_process::run(&spec, &Cancel::new(), &mut |_| {});
        let verdict = verdict.map_err(|error| Failure::from_error(Exit::Unexpected, &error))?;
        let log = pdca_process::read_log(&job)
            .map_err(|error| Failure::from_error(Exit::Unexpected, &error))?;
        for line in log.lines(400) {
            self.line(&line)?;
        }
        fs_err::remove_dir_all(&job)?;
        if verdict.ending == Ending::Signaled(9) {
            self.line(&format!("{}", self.cx.out.bad("killed")))
        } else {
            let other = verdict.ending;
            Err(Failure::unexpected(format!(
                "the driver was to be killed, and ended otherwise: {other}"
            )))
        }
    }

    /// Shows that the user's own checkout is unchanged.
    fn untouched(&mut self) -> Result<(), Failure> {
        let changed = self.git(&["status", "--short"])?;
        if !changed.is_empty() {
            return Err(Failure::unexpected("the demo's own checkout was changed")
                .detail(changed)
                .hint("see `pdca doctor`: is there a sandbox?"));
        }
        self.line(&format!("{}", self.cx.out.faint("(nothing: clean)")))
    }

    /// Merges the result of the integration, as a user would.
    fn merge(&mut self) -> Result<(), Failure> {
        let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/pdca/"];
        let branch = fixture::git(&self.env.cwd.join("greeter"), &list)?.trim().to_owned();
        let said = self.git(&["merge", "--ff-only", &branch])?;
        let end = said.lines().last().unwrap_or_default().to_owned();
        self.line(&end)
    }

    /// Types a git command in the user's checkout.
    fn git(&mut self, words: &[&str]) -> Result<String, Failure> {
        self.line(&format!("{} git -C greeter {}", self.cx.out.accent("$"), words.join(" ")))?;
        fixture::git(&self.env.cwd.join("greeter"), words)
    }
}
