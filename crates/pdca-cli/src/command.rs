//! The command line: one variant per command, one file each.

mod abort;
mod act;
mod batch;
mod board;
mod cleanup;
mod completions;
mod config_migrate;
mod config_show;
mod demo;
mod diff;
mod doctor;
mod flow;
mod forecast;
mod gates;
mod guard;
mod help;
mod host_agent;
mod hosts;
mod init;
mod integrate;
mod lanes;
mod log;
mod man;
mod new;
mod next;
mod plan;
mod publish;
mod queue;
mod recover;
mod reopen;
mod replay;
mod report;
mod resolve;
mod review;
mod run;
#[cfg(feature = "schema")]
mod schemas;
mod select;
mod show;
mod signoff;
mod split;
mod status;
mod sweep;
mod unblock;
mod verify;
mod why;
mod widen;

#[cfg(test)]
mod tests;

#[cfg(feature = "schema")]
pub(crate) use schemas::schemas;

use std::ffi::OsString;
use std::io::Write;

use crate::notify;
use clap::{CommandFactory as _, FromArgMatches as _};
use pdca_journal::events::WarningCode;

use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::GlobalArgs;
use crate::process_env::{ProcessEnv, StandardStream};
use crate::report::{Format, Response};
use crate::style::{ColorWhen, Palette};

/// Carry issues through Plan, Do, Check and Act
///
/// A deterministic driver: models and people fill one artifact each, everything else is code. A bundle is a directory
/// of files, `results/issue_<id>/`, and its state is read from the files that are there. Without a command, `pdca`
/// prints the status and the one next command.
#[derive(Debug, clap::Parser)]
#[command(
    name = "pdca",
    version,
    disable_help_subcommand = true,
    subcommand_required = false,
    after_help = "`pdca <command> --help` has examples; `pdca help exit-codes` and `pdca help config` explain the rest.",
    after_long_help = "\
First steps:
  pdca demo                    # six issues from brief to sign-off, no model, no network
  pdca init                    # make a workspace here
  pdca new 36 --title \"…\"      # a bundle with a brief to fill in
  pdca run 36                  # build, gate, review, stop at sign-off
  pdca review                  # what waits for a person, cheapest first

Ids are written 36, #36, issue_36 or PROJ-12.
`pdca help exit-codes` lists the exit codes, `pdca help config` the config layers and variables."
)]
struct Cli {
    #[command(flatten)]
    globals: GlobalArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The commands, in the order of the help.
#[derive(Debug, clap::Subcommand)]
enum Command {
    Init(init::Args),
    #[command(alias = "init-issue")]
    New(new::Args),
    Select(select::Args),
    Status(status::Args),
    Why(why::Args),
    Log(log::Args),
    #[command(visible_alias = "waves")]
    Plan(plan::Args),
    Widen(widen::Args),
    Split(split::Args),
    Run(run::Args),
    Batch(batch::Args),
    Flow(flow::Args),
    #[command(alias = "gate")]
    Gates(gates::Args),
    Queue(queue::Args),
    Review(review::Args),
    Show(show::Args),
    Diff(diff::Args),
    #[command(alias = "sign-off")]
    Signoff(signoff::Args),
    Reopen(reopen::Args),
    Forecast(forecast::Args),
    Integrate(integrate::Args),
    Resolve(resolve::Args),
    Publish(publish::Args),
    Verify(verify::Args),
    Act(act::Args),
    #[command(hide = true)]
    ActIndex(act::index::Args),
    #[command(hide = true)]
    ActLog(act::log::Args),
    #[command(hide = true)]
    ActDiff(act::diff::Args),
    Lanes(lanes::Args),
    Sweep(sweep::Args),
    Hosts(hosts::Args),
    #[command(hide = true)]
    HostAgent(host_agent::Args),
    Replay(replay::Args),
    Report(report::Args),
    Board(board::Args),
    Recover(recover::Args),
    Unblock(unblock::Args),
    Abort(abort::Args),
    Cleanup(cleanup::Args),
    Demo(demo::Args),
    Doctor(doctor::Args),
    Guard(guard::Args),
    Config(config_show::Args),
    Completions(completions::Args),
    Man(man::Args),
    Help(help::Args),
}

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub(crate) globals: Globals,
    command: Option<Command>,
}

/// The result of parsing.
pub(crate) enum Parsed {
    /// A command to run.
    Line(Box<CommandLine>),
    /// Already answered: help, the version, a completion, or a usage error.
    Answered(Result<Exit, Failure>),
}

pub(crate) fn parse(
    args: &[OsString],
    env: &ProcessEnv,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Parsed {
    // Before anything else: a line that is still being typed is no valid command line.
    if let Some(answer) = completions::answer(args, env, out) {
        return Parsed::Answered(answer);
    }
    let mut cli = tree(env);
    let parsed =
        cli.try_get_matches_from_mut(args).and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(Cli { globals, command }) => {
            Parsed::Line(Box::new(CommandLine { globals: globals.into(), command }))
        }
        Err(error) => Parsed::Answered(explain(&error, args, env, out, err)),
    }
}

/// Returns clap's commands, as wide as the terminal.
fn tree(env: &ProcessEnv) -> clap::Command {
    Cli::command()
        .term_width(env.terminal.width.map_or(100, |width| usize::from(width).clamp(40, 120)))
}

/// Prints clap's answer: help on `out` with exit code 0, a usage error on `err` with 2.
fn explain(
    error: &clap::Error,
    args: &[OsString],
    env: &ProcessEnv,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let (stream, exit) = if error.use_stderr() {
        (StandardStream::Err, Exit::Usage)
    } else {
        (StandardStream::Out, Exit::Done)
    };
    let palette = Palette::decide(ColorWhen::Auto, env, stream);
    let text = error.render();
    let plain = text.to_string();
    let text = if palette.has_colours() { text.ansi().to_string() } else { plain.clone() };
    match stream {
        StandardStream::Err => {
            // clap has not parsed the flags, and a program that asked for JSON must get a document for this error too.
            if format_of(args) == Format::Json {
                crate::json::write_error(out, &mistake(&plain).fault())?;
            }
            err.write_all(text.as_bytes())?;
        }
        StandardStream::In | StandardStream::Out => out.write_all(text.as_bytes())?,
    }
    Ok(exit)
}

/// Parses clap's page about a usage error: the error first, then tips and the usage.
fn mistake(page: &str) -> Failure {
    let mut parts = page.split("\n\n").map(|part| {
        part.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    });
    let first = parts.next().unwrap_or_default();
    let failure = Failure::usage(first.strip_prefix("error: ").unwrap_or(&first));
    let is_hint = |part: &String| !part.is_empty() && !part.starts_with("For more information");
    let hints: Vec<String> = parts.filter(is_hint).collect();
    if hints.is_empty() { failure } else { failure.hint(hints.join("; ")) }
}

/// Returns the format that a possibly invalid command line asks for.
pub(crate) fn format_of(args: &[OsString]) -> Format {
    let words: Vec<&str> =
        args.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--").collect();
    let is_json = words.iter().any(|word| matches!(*word, "--json" | "--format=json"))
        || words.windows(2).any(|pair| pair == ["--format", "json"]);
    if is_json { Format::Json } else { Format::Text }
}

/// Runs a command. Only endless output and the demo are written to `out` directly.
pub(crate) fn dispatch(
    line: &CommandLine,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    if line.command.as_ref().is_none_or(Command::needs_workspace) {
        tell_warnings(cx, err)?;
    }
    let ended = perform(line, cx, out, err);
    if let Some(what) = line.command.as_ref().and_then(Command::notifies)
        && let Err(failure) = notify::tell_end(cx, what, &ended, err)
    {
        // The work is done: neither this nor a warning that cannot be written may replace its report and exit code.
        drop(cx.warn(err, WarningCode::NotNotified, failure.sentence()));
    }
    ended
}

/// Runs another command line of this program as a part of this one, with the same global options.
pub(crate) fn subcommand(
    words: &[&str],
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let words = std::iter::once("pdca").chain(words.iter().copied());
    let parsed = Cli::command()
        .try_get_matches_from(words)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| mistake(&error.render().to_string()))?;
    // `words` have no global options: those of the outer command count.
    let line = CommandLine { globals: cx.globals.clone(), command: parsed.command };
    perform(&line, cx, out, err)
}

fn perform(
    line: &CommandLine,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    match &line.command {
        None => next::run(cx),
        Some(Command::Init(args)) => init::run(args, cx, err),
        Some(Command::New(args)) => new::run(args, cx, err),
        Some(Command::Select(args)) => select::run(args, cx, err),
        Some(Command::Status(args)) => status::run(args, cx, out, err),
        Some(Command::Why(args)) => why::run(args, cx),
        Some(Command::Log(args)) => log::run(args, cx, out, err),
        Some(Command::Plan(args)) => plan::run(args, cx),
        Some(Command::Widen(args)) => widen::run(args, cx),
        Some(Command::Split(args)) => split::run(args, cx, err),
        Some(Command::Run(args)) => run::run(args, cx, err),
        Some(Command::Batch(args)) => batch::run(args, cx, err),
        Some(Command::Flow(args)) => flow::run(args, cx, err),
        Some(Command::Gates(args)) => gates::run(args, cx, err),
        Some(Command::Queue(args)) => queue::run(args, cx),
        Some(Command::Review(args)) => review::run(args, cx, out, err),
        Some(Command::Show(args)) => show::run(args, cx),
        Some(Command::Diff(args)) => diff::run(args, cx),
        Some(Command::Signoff(args)) => signoff::run(args, cx, out, err),
        Some(Command::Reopen(args)) => reopen::run(args, cx, err),
        Some(Command::Forecast(args)) => forecast::run(args, cx),
        Some(Command::Integrate(args)) => integrate::run(args, cx, err),
        Some(Command::Resolve(args)) => resolve::run(args, cx, err),
        Some(Command::Publish(args)) => publish::run(args, cx, err),
        Some(Command::Verify(args)) => verify::run(args, cx),
        Some(Command::Act(args)) => act::run(args, cx, err),
        Some(Command::ActIndex(args)) => act::index::run(args, cx),
        Some(Command::ActLog(args)) => act::log::run(args, cx, err),
        Some(Command::ActDiff(args)) => act::diff::run(args, cx),
        Some(Command::Lanes(args)) => lanes::run(args, cx, err),
        Some(Command::Sweep(args)) => sweep::run(args, cx),
        Some(Command::Hosts(args)) => hosts::run(args, cx, err),
        Some(Command::HostAgent(args)) => host_agent::run(args, cx, out),
        Some(Command::Replay(args)) => replay::run(args, cx, out, err),
        Some(Command::Report(args)) => report::run(args, cx),
        Some(Command::Board(args)) => board::run(args, cx, out, err),
        Some(Command::Recover(args)) => recover::run(args, cx, err),
        Some(Command::Unblock(args)) => unblock::run(args, cx, err),
        Some(Command::Abort(args)) => abort::run(args, cx, err),
        Some(Command::Cleanup(args)) => cleanup::run(args, cx),
        Some(Command::Demo(args)) => demo::run(args, cx, out, err),
        Some(Command::Doctor(args)) => Ok(doctor::run(args, cx)),
        Some(Command::Guard(args)) => guard::run(args, cx, err),
        Some(Command::Config(args)) => config_show::run(args, cx, err),
        Some(Command::Completions(args)) => completions::run(args),
        Some(Command::Man(args)) => man::run(args, cx),
        Some(Command::Help(args)) => help::run(args, cx),
    }
}

impl CommandLine {
    /// Returns whether the command changes or judges something, so that its exit code matters more than its output.
    pub(crate) fn works(&self) -> bool {
        match &self.command {
            Some(
                Command::Init(_)
                | Command::New(_)
                | Command::Select(_)
                | Command::Plan(_)
                | Command::Widen(_)
                | Command::Split(_)
                | Command::Run(_)
                | Command::Batch(_)
                | Command::Flow(_)
                | Command::Gates(_)
                | Command::Review(_)
                | Command::Signoff(_)
                | Command::Reopen(_)
                | Command::Integrate(_)
                | Command::Resolve(_)
                | Command::Publish(_)
                | Command::Verify(_)
                | Command::Lanes(_)
                | Command::Sweep(_)
                | Command::Hosts(_)
                | Command::HostAgent(_)
                | Command::Recover(_)
                | Command::Unblock(_)
                | Command::Abort(_)
                | Command::Cleanup(_)
                | Command::Report(_)
                | Command::Board(_)
                | Command::Demo(_)
                | Command::Act(_)
                | Command::ActLog(_)
                // An agent takes 0 for allowed.
                | Command::Guard(_),
            ) => true,
            None
            | Some(
                Command::Status(_)
                | Command::Why(_)
                | Command::Log(_)
                | Command::Queue(_)
                | Command::Show(_)
                | Command::Diff(_)
                | Command::Replay(_)
                | Command::Forecast(_)
                | Command::ActIndex(_)
                | Command::ActDiff(_)
                | Command::Doctor(_)
                | Command::Config(_)
                | Command::Completions(_)
                | Command::Man(_)
                | Command::Help(_),
            ) => false,
        }
    }
}

impl Command {
    /// Returns what to call the work of a command that `[notify]` tells the end of; a flow tells of itself.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "two of many work without a person for long"
    )]
    fn notifies(&self) -> Option<&'static str> {
        match self {
            Self::Batch(_) => Some("the batch"),
            Self::Integrate(args) => args.works().then_some("the integration"),
            _ => None,
        }
    }

    /// Returns whether the command needs a workspace with a valid configuration.
    fn needs_workspace(&self) -> bool {
        match self {
            Command::New(_)
            | Command::Select(_)
            | Command::Status(_)
            | Command::Why(_)
            | Command::Log(_)
            | Command::Plan(_)
            | Command::Widen(_)
            | Command::Split(_)
            | Command::Run(_)
            | Command::Batch(_)
            | Command::Flow(_)
            | Command::Gates(_)
            | Command::Queue(_)
            | Command::Review(_)
            | Command::Show(_)
            | Command::Diff(_)
            | Command::Signoff(_)
            | Command::Reopen(_)
            | Command::Forecast(_)
            | Command::Integrate(_)
            | Command::Resolve(_)
            | Command::Publish(_)
            | Command::Act(_)
            | Command::ActIndex(_)
            | Command::ActLog(_)
            | Command::ActDiff(_)
            | Command::Lanes(_)
            | Command::Sweep(_)
            | Command::Hosts(_)
            | Command::Replay(_)
            | Command::Report(_)
            | Command::Board(_)
            | Command::Recover(_)
            | Command::Unblock(_)
            | Command::Abort(_)
            | Command::Cleanup(_) => true,
            Command::Config(args) => args.needs_workspace(),
            Command::Init(_)
            | Command::Verify(_)
            | Command::Demo(_)
            | Command::Doctor(_)
            | Command::Guard(_)
            | Command::HostAgent(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Help(_) => false,
        }
    }
}

/// Prints the warnings of `--compat`, one line each, so that they can be grepped.
fn tell_warnings(cx: &Context<'_>, err: &mut dyn Write) -> Result<(), Failure> {
    for warning in &cx.workspace()?.warnings {
        let place = warning.place.as_ref().map_or_else(String::new, |place| {
            let line = crate::failure::FilePosition { column: None, ..place.clone() };
            format!("{}: ", line.show(&cx.env.cwd))
        });
        let text = crate::style::printable(&warning.what);
        cx.warn(err, WarningCode::ConfigIgnored, format_args!("{place}{text}"))?;
    }
    Ok(())
}
