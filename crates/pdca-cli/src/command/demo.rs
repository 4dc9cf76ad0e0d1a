//! `pdca demo`: the whole cycle in a temporary workspace, with scripted leaves.

use std::io::Write;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{Cancel, Ending, Held, Spec, Tool, sandbox_support};

use crate::Ambient;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Place};

/// Watch issues go from brief to sign-off, with no model, no key and no network
///
/// Makes a small repository and six issues in a temporary directory, and runs the commands you would run. Shell scripts
/// stand in for the models. Nothing outside that directory is written.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca demo
  pdca demo --keep DIR              # leave it there for exploring
  pdca demo --crash                 # kill the driver with -9 on the way, and go on")]
pub(crate) struct Args {
    /// Make the demo in DIR, which must not exist, and leave it there
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    keep: Option<Utf8PathBuf>,
    /// Kill the driver with -9 half-way, and resume
    #[arg(long)]
    crash: bool,
}

/// The issue whose builder reaches for the user's checkout. Where no kernel keeps it out its attempt is
/// rejected, which is another story.
const REACHES_OUT: &str = "42";

/// Whether the kernel keeps leaves to their places here.
fn is_confined() -> bool {
    matches!(sandbox_support(), Held::Landlock { .. })
}

/// The issues: id, slug, what they are about, and further fields of the brief.
const ISSUES: [(&str, &str, &str, &str); 6] = [
    ("12", "greet-nobody", "`greet.sh` without a name prints `Hello, !`", ""),
    ("15", "say-goodbye", "there is a greeting and no farewell", "- **Depends on:** 12\n"),
    ("20", "count-lines", "nothing counts lines that say something", ""),
    ("23", "shout", "nothing greets the hard of hearing", ""),
    (
        "31",
        "rename-everything",
        "somebody dislikes the name of the project",
        "- **Disposition hint:** wontfix\n",
    ),
    ("42", "print-year", "nobody knows what year it is", ""),
];

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let temporary = match &args.keep {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("pdca-demo-").tempdir()?),
    };
    let dir = match (&args.keep, &temporary) {
        (Some(keep), _) => fresh(&cx.ambient.cwd.join(keep))?,
        (None, Some(dir)) => Utf8PathBuf::try_from(dir.path().to_owned()).map_err(|_| {
            Failure::usage("the temporary directory is not UTF-8").hint("set TMPDIR to one that is")
        })?,
        (None, None) => return Err(Failure::unexpected("there is no directory for the demo")),
    };
    let dir = dir.canonicalize_utf8()?;
    let workspace = dir.join("workspace");
    lay_out(&workspace)?;
    let ambient = Ambient { cwd: workspace.clone(), ..cx.ambient.clone() };
    let mut stage = Stage { ambient, cx, out, err };
    play(&mut stage, args.crash)?;
    let kept = args.keep.as_ref().map(|_| &workspace);
    farewell(kept, &mut stage)?;
    Ok(Exit::Done)
}

/// A directory that did not exist.
fn fresh(dir: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    if dir.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!("{dir} exists already"))
            .at(Place::file(dir))
            .hint("name a directory that does not exist yet"));
    }
    fs_err::create_dir_all(dir)?;
    Ok(dir.to_owned())
}

/// The workspace: a repository, a config, scripted leaves, six briefs.
fn lay_out(workspace: &Utf8Path) -> Result<(), Failure> {
    let write = |path: &str, text: &str| {
        let path = workspace.join(path);
        fs_err::create_dir_all(path.parent().unwrap_or(workspace))?;
        fs_err::write(path, text)
    };
    write("pdca.toml", include_str!("demo/pdca.toml"))?;
    write("leaves/builder.sh", include_str!("demo/builder.sh"))?;
    write("leaves/reviewer.sh", include_str!("demo/reviewer.sh"))?;
    write("greeter/README.md", "# greeter\n\nSmall scripts that greet.\n")?;
    write("greeter/greet.sh", "#!/bin/sh\necho \"Hello, $1!\"\n")?;
    for (id, slug, defect, more) in
        ISSUES.into_iter().filter(|issue| is_confined() || issue.0 != REACHES_OUT)
    {
        write(
            &format!("results/issue_{id}/brief.md"),
            &format!(
                "# Brief — issue {id}\n\n- **Slug:** {slug}\n- **Defect:** {defect}\n- **Success criterion:** \
                 `tests/issue-{id}.sh` is green\n- **Repo + branch target:** demo/greeter @ main\n{more}"
            ),
        )?;
    }
    let repository = workspace.join("greeter");
    for words in [
        vec!["init", "-q", "-b", "main"],
        vec!["add", "-A"],
        vec![
            "-c",
            "user.name=demo",
            "-c",
            "user.email=demo@localhost",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "-q",
            "-m",
            "greet",
        ],
    ] {
        let said = Tool::new("git").args(words).cwd(&repository).run();
        let said = said.map_err(|error| {
            Failure::from_error(Exit::Usage, &error).hint("install git, then `pdca doctor`")
        })?;
        if said.code != 0 {
            return Err(Failure::unexpected(format!(
                "git: {}",
                String::from_utf8_lossy(&said.stderr).trim()
            )));
        }
    }
    Ok(())
}

/// The six issues, told with the commands a person would type.
fn play(stage: &mut Stage<'_>, crash: bool) -> Result<(), Failure> {
    stage.say(
        "Six issues, each a directory with a brief. `pdca` reads where they stand from the files.",
    )?;
    stage.pdca(&["status"], Exit::Done)?;
    stage.say(
        "Now Do and Check, unattended: a builder in a private checkout, the gates, an independent reviewer. Watch \
         23 come back red, 31 close without a model, and 42 reach for your own checkout.",
    )?;
    if crash {
        stage.crash()?;
        stage.say("Killed with -9 in the middle. The same command goes on; nothing that ended runs again.")?;
    }
    stage.pdca(&["batch"], Exit::GateRed)?;
    stage.say("What came of the builder that reached out, and of a reviewer that wanted the builder's notes:")?;
    if is_confined() {
        stage.look("results/issue_42/build-notes.md", "checkout")?;
    }
    stage.look("results/issue_20/check-review.md", "notes")?;
    stage.say("People decide. The queue has the cheap decisions first.")?;
    stage.pdca(&["queue"], Exit::Done)?;
    stage.say("12 is right. Its one open box is the question no gate can answer: is this what people want?")?;
    stage.pdca(&["signoff", "12", "clear", "all", "--note", "yes"], Exit::Done)?;
    stage.pdca(&["signoff", "12", "accept"], Exit::Done)?;
    stage.pdca(&["signoff", "31", "accept"], Exit::Done)?;
    stage.say("23 is red, so accepting it is refused. It goes back to Do with a note that the next attempt reads.")?;
    stage.pdca(&["signoff", "23", "accept"], Exit::Usage)?;
    stage.pdca(&["signoff", "23", "iterate-do", "--note", "upper case, please"], Exit::Done)?;
    stage.say("12 is complete, so 15 may start; 23 gets its second attempt.")?;
    stage.pdca(&["batch"], Exit::Done)?;
    for id in
        ["15", "20", "23", REACHES_OUT].into_iter().filter(|id| is_confined() || *id != REACHES_OUT)
    {
        stage.pdca(&["signoff", id, "clear", "all"], Exit::Done)?;
        stage.pdca(&["signoff", id, "accept"], Exit::Done)?;
    }
    stage.say("The record: every bundle is frozen, the rejected attempt is kept, and your checkout never changed.")?;
    stage.pdca(&["status"], Exit::Done)?;
    stage.untouched()
}

fn farewell(kept: Option<&Utf8PathBuf>, stage: &mut Stage<'_>) -> Result<(), Failure> {
    if let Some(workspace) = kept {
        stage.say(&format!("It is all in {workspace}. Look around:"))?;
        stage.line(&format!("  cd {workspace}"))?;
        stage
            .line("  pdca status 23              # two attempts; the first is in iteration-v1/")?;
        stage.line("  cat results/issue_12/SUMMARY.md")?;
    } else {
        stage.say("Next:")?;
        stage.line("  pdca demo --keep DIR        # the same, left for exploring")?;
    }
    stage.line("  pdca init                   # a workspace for your own project")?;
    stage.line("  pdca doctor                 # what is enforced on this machine")
}

/// Where the demo plays: commands run in-process, as if typed in the workspace.
struct Stage<'a> {
    ambient: Ambient,
    cx: &'a Context<'a>,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Stage<'_> {
    fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.line("")?;
        self.line(&format!("{}", self.cx.out.strong(format_args!("# {text}"))))
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.out, "{text}")?;
        // Progress goes to the other stream; keep the two in step.
        Ok(self.out.flush()?)
    }

    /// Types a command and checks that it ends as the story says.
    fn pdca(&mut self, words: &[&str], expected: Exit) -> Result<(), Failure> {
        let typed = words
            .iter()
            .map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() });
        let typed: Vec<String> = typed.collect();
        self.line(&format!("{} pdca {}", self.cx.out.accent("$"), typed.join(" ")))?;
        let args = std::iter::once("pdca").chain(words.iter().copied()).map(Into::into);
        let exit = crate::run(args, &self.ambient, self.out, self.err);
        if exit == expected {
            return Ok(());
        }
        Err(Failure::unexpected(format!("`pdca {}` ended with {}, not {}", typed.join(" "), exit.code(), expected.code()))
            .hint("`pdca doctor` tells what this machine lacks; `pdca demo --keep DIR` leaves the evidence"))
    }

    /// Shows the lines of a file that hold a word.
    fn look(&mut self, file: &str, word: &str) -> Result<(), Failure> {
        self.line(&format!("{} grep {word} {file}", self.cx.out.accent("$")))?;
        let text = fs_err::read_to_string(self.ambient.cwd.join(file))?;
        text.lines().filter(|line| line.contains(word)).try_for_each(|line| self.line(line))
    }

    /// Runs `pdca batch` as a process of its own that kills itself on the way.
    fn crash(&mut self) -> Result<(), Failure> {
        let Some(program) = self.ambient.program.clone() else {
            return Err(Failure::unexpected(
                "it is not known where this program is, so it cannot be started again",
            ));
        };
        self.line(&format!(
            "{} pdca batch    {}",
            self.cx.out.accent("$"),
            self.cx.out.faint("# kill -9 on the way")
        ))?;
        let job = self.ambient.cwd.join("crash");
        let mut spec = Spec::new([program.as_str(), "batch"], &self.ambient.cwd, &job);
        spec.env = spec.env.with("PDCA_CRASH_AT", "gate:5");
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

    /// Shows that the user's own checkout is as it was.
    fn untouched(&mut self) -> Result<(), Failure> {
        self.line(&format!("{} git -C greeter status --short", self.cx.out.accent("$")))?;
        let repository = self.ambient.cwd.join("greeter");
        let said = Tool::new("git").args(["status", "--short"]).cwd(&repository).run();
        let said = said.map_err(|error| Failure::from_error(Exit::Unexpected, &error))?;
        if !said.stdout.is_empty() {
            self.out.write_all(&said.stdout)?;
            return Err(Failure::unexpected("the demo's own checkout was changed")
                .hint("see `pdca doctor`: is there a sandbox?"));
        }
        self.line(&format!("{}", self.cx.out.faint("(nothing: clean)")))
    }
}
