//! The flags that every command takes.

use crate::context::{Context, Globals};
use crate::report::Format;
use crate::session::fleet::HostChoice;
use crate::style::ColorWhen;
use camino::Utf8PathBuf;

/// The flags that every command takes.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct GlobalArgs {
    /// Work in DIR, as if `pdca` had been started there
    #[arg(short = 'C', value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    directory: Option<Utf8PathBuf>,

    /// Show what would be done, and change nothing
    #[arg(short = 'n', long, global = true)]
    dry_run: bool,

    /// Answer yes to all questions
    #[arg(short = 'y', long, global = true)]
    yes: bool,

    /// Print results and errors only
    #[arg(short = 'q', long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Print more; twice also writes a log below `.pdca/log/`
    #[arg(short = 'v', long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Use colours: auto, always or never
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true,
        hide_possible_values = true
    )]
    color: ColorArg,

    /// Print one JSON document: {"schema": 1, "kind": …, …}; the same as `--format json`
    #[arg(long, global = true, conflicts_with = "format")]
    json: bool,

    /// Output format: text, table or json [default: text]
    #[arg(long, value_name = "FORMAT", value_enum, global = true, hide_possible_values = true)]
    format: Option<FormatArg>,

    /// Read the workspace of an older instance: unknown keys are warnings
    #[arg(long, global = true)]
    compat: bool,

    /// Accept every key of the user's config file, also those that weaken a sandbox or name a program
    #[arg(long, global = true, hide_short_help = true)]
    trust_user_config: bool,

    /// Set a value of `pdca.toml` for this run, e.g. `--config driver.lanes=2`
    #[arg(long, value_name = "KEY=VALUE", global = true)]
    config: Vec<String>,

    /// Kill this process at an effect, `@k` or `name[:n]`
    #[arg(long, value_name = "EFFECT", global = true, hide = true)]
    crash_at: Option<String>,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum ColorArg {
    /// On a terminal, unless `NO_COLOR` is set; always if `CLICOLOR_FORCE` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The output format of a report.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FormatArg {
    /// Lines for people
    Text,
    /// Aligned columns that fit the terminal, where a report has rows; lines where it has none
    Table,
    /// One document for programs
    Json,
}

impl From<GlobalArgs> for Globals {
    fn from(args: GlobalArgs) -> Self {
        Globals {
            directory: args.directory,
            dry_run: args.dry_run,
            yes: args.yes,
            quiet: args.quiet,
            verbose: args.verbose,
            color: match args.color {
                ColorArg::Auto => ColorWhen::Auto,
                ColorArg::Always => ColorWhen::Always,
                ColorArg::Never => ColorWhen::Never,
            },
            format: match args.format {
                _ if args.json => Format::Json,
                None | Some(FormatArg::Text) => Format::Text,
                Some(FormatArg::Table) => Format::Table,
                Some(FormatArg::Json) => Format::Json,
            },
            compat: args.compat,
            trust_user_config: args.trust_user_config,
            config: args.config,
            crash_at: args.crash_at,
        }
    }
}

/// `--events FILE`, for commands that run a driver.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct EventsArg {
    /// Append what happens to FILE, one JSON object per line
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    events: Option<Utf8PathBuf>,
}

impl EventsArg {
    /// Returns the file, relative to the working directory.
    pub(crate) fn path(&self, cx: &Context<'_>) -> Option<Utf8PathBuf> {
        self.events.as_ref().map(|path| cx.env.cwd.join(path))
    }
}

/// The hosts of a run or an integration.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct HostArgs {
    /// Use these hosts beside the local lanes [default: all of [[hosts]] that are fit]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', conflicts_with = "local")]
    hosts: Vec<String>,
    /// Use no host
    #[arg(long)]
    local: bool,
}

impl HostArgs {
    pub(crate) fn choice(&self) -> HostChoice<'_> {
        match (self.local, self.hosts.as_slice()) {
            (true, _) => HostChoice::Local,
            (false, []) => HostChoice::All,
            (false, named) => HostChoice::Named(named),
        }
    }
}
