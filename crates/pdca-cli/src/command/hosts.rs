//! `pdca hosts`: other machines that bands run on.

use std::io::Write;

use pdca_config::{HostEngine, HostEntry};
use pdca_remote::{HostRefusal, Offer, ReapRequest};
use pdca_state::chain;
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response, Table};
use crate::session::{self, fleet};

/// Add, check, list and clean up the hosts that bands run on
///
/// A host is another machine that `ssh` reaches by the name in `[[hosts]]`; addresses and keys are those of
/// `~/.ssh/config`. Nothing is installed there but this program, below one directory. `pdca batch` uses all hosts
/// that are fit, `--hosts a,b` these, `--local` none.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca hosts add build1 --slots 4   # put this pdca there, check the host, write [[hosts]]
  pdca hosts check                  # facts of every host, and why one is not used
  pdca hosts list
  pdca hosts gc build1              # remove what ended runs left there")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Ask hosts for their facts, and explain each refusal
    Check(Named),
    /// List the configured hosts; nothing is asked
    List,
    /// Put this pdca on a host, check it, and add it to pdca.toml
    Add(AddArgs),
    /// Remove what ended runs left on hosts
    Gc(GcArgs),
}

#[derive(Debug, Clone, clap::Args)]
struct Named {
    /// The hosts; all of [[hosts]] if none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
struct AddArgs {
    /// The name of the host in ~/.ssh/config
    name: String,

    /// The number of bands that run there at once [default: 1]
    #[arg(long, value_name = "N")]
    slots: Option<u32>,

    /// The one directory that is used there [default: ~/.pdca-host]
    #[arg(long, value_name = "DIR")]
    root: Option<String>,

    /// Submit bands to Slurm there
    #[arg(long)]
    slurm: bool,
}

#[derive(Debug, Clone, clap::Args)]
struct GcArgs {
    #[command(flatten)]
    named: Named,

    /// Remove contents that no job used for this many days as well
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,
}

/// The hosts of the workspace, as far as asked for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct HostsReport {
    /// `check`, `list`, `add` or `gc`.
    action: &'static str,
    hosts: Vec<HostRow>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HostRow {
    name: String,
    /// `ssh`, `slurm` or `process`.
    engine: &'static str,
    slots: u32,
    root: String,
    /// Whether a run would use it; null where it was not asked.
    fit: Option<bool>,
    /// Its facts, where it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Offer>,
    refusals: Vec<RefusalRow>,
    /// The jobs that were removed, with `gc`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RefusalRow {
    #[serde(flatten)]
    refusal: HostRefusal,
    what: String,
    remedy: String,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    match &args.action {
        Action::Check(named) => check(named, cx),
        Action::List => {
            let hosts = cx.workspace()?.config.hosts.iter().map(HostRow::of).collect();
            Ok(Response::done(HostsReport { action: "list", hosts }))
        }
        Action::Add(args) => add(args, cx, err),
        Action::Gc(args) => gc(args, cx),
    }
}

impl Named {
    fn entries<'c>(&self, cx: &'c Context<'_>) -> Result<Vec<&'c HostEntry>, Failure> {
        if self.names.is_empty() {
            return Ok(cx.workspace()?.config.hosts.iter().collect());
        }
        self.names.iter().map(|name| fleet::host_named(cx, name)).collect()
    }
}

fn check(named: &Named, cx: &Context<'_>) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let mut hosts = Vec::new();
    for (entry, _, answer) in
        fleet::check_hosts(cx, &site, named.entries(cx)?, fleet::HostWork::Bands)?
    {
        hosts.push(HostRow::of(entry).answered(answer));
    }
    let is_fit = hosts.iter().all(|host| host.fit == Some(true));
    let exit = match (hosts.is_empty(), is_fit) {
        (true, _) => Exit::NothingToDo,
        (false, true) => Exit::Done,
        (false, false) => Exit::Usage,
    };
    Ok(Response::new(HostsReport { action: "check", hosts }, exit))
}

fn add(args: &AddArgs, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let known = workspace.config.hosts.iter().find(|host| host.name == args.name);
    let mut entry = known.cloned().unwrap_or_else(|| HostEntry::named(&args.name));
    entry.slots = args.slots.unwrap_or(entry.slots);
    entry.root = args.root.clone().unwrap_or(entry.root);
    if args.slurm {
        entry.engine = HostEngine::Slurm;
    }
    if !pdca_remote::is_plain_host(&entry.name) || !pdca_remote::is_plain_root(&entry.root) {
        return Err(Failure::usage(format!(
            "`{}` and `{}` cannot be a host and its root",
            entry.name, entry.root
        ))
        .hint("a host is a name of ~/.ssh/config, a root begins with `~/` or `/`"));
    }
    let stanza = stanza(&entry);
    if cx.globals.dry_run {
        cx.note(
            err,
            &format!("would put this pdca on {}, and add to pdca.toml:\n{stanza}", entry.name),
        )?;
        return Ok(Response::done(HostsReport { action: "add", hosts: vec![HostRow::of(&entry)] }));
    }
    let host = fleet::near_side(cx, &entry);
    // The running binary, even if its file was replaced since: both sides must be the same program.
    let own = fs_err::read("/proc/self/exe")?;
    host.install(own).map_err(|error| {
        Failure::unexpected(format!("pdca cannot be put on {}: {}", entry.name, chain(&error)))
            .hint(format!(
                "`ssh {} true` shows what keeps it; addresses and keys are those of ~/.ssh/config",
                entry.name
            ))
    })?;
    let site = session::driver_config(cx)?;
    let mut rows = Vec::new();
    for (entry, _, answer) in fleet::check_hosts(cx, &site, vec![&entry], fleet::HostWork::Bands)? {
        rows.push(HostRow::of(entry).answered(answer));
    }
    // After the installation: a host that cannot be reached is not added.
    if known.is_none()
        && let Some(file) = &workspace.file
    {
        let text = fs_err::read_to_string(file)?;
        let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
        pdca_state::files::replace(file, format!("{text}{gap}{stanza}").as_bytes())?;
        cx.note(err, &format!("{} is in {file}", entry.name))?;
    }
    let exit = if rows.iter().all(|row| row.fit == Some(true)) { Exit::Done } else { Exit::Usage };
    Ok(Response::new(HostsReport { action: "add", hosts: rows }, exit))
}

fn stanza(entry: &HostEntry) -> String {
    let mut text = format!("[[hosts]]\nname = \"{}\"\nslots = {}\n", entry.name, entry.slots);
    if entry.root != HostEntry::named("").root {
        text = format!("{text}root = \"{}\"\n", entry.root);
    }
    if entry.engine == HostEngine::Slurm {
        text = format!("{text}engine = \"slurm\"\n");
    }
    text
}

fn gc(args: &GcArgs, cx: &Context<'_>) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let mut hosts = Vec::new();
    let mut is_done = true;
    for (entry, host, answer) in
        fleet::check_hosts(cx, &site, args.named.entries(cx)?, fleet::HostWork::Bands)?
    {
        // Asked again, because a host that is refused for a run may still have leftovers to remove.
        let offer = host.offer(pdca_remote::OfferRequest::default());
        let mut row = HostRow::of(entry).answered(answer);
        if let Ok(offer) = offer {
            let over = fleet::ended_runs(&site, &offer.jobs);
            let older_than_days = args.older_than;
            let request = ReapRequest { over, older_than_days, ..ReapRequest::default() };
            match host.reap(request) {
                Ok(jobs) => row.removed = jobs.iter().map(ToString::to_string).collect(),
                Err(error) => {
                    row = row.answered(Err(vec![HostRefusal::Unreachable { said: chain(&error) }]));
                }
            }
        } else {
            is_done = false;
        }
        hosts.push(row);
    }
    let exit = if is_done { Exit::Done } else { Exit::Usage };
    Ok(Response::new(HostsReport { action: "gc", hosts }, exit))
}

impl HostRow {
    fn of(entry: &HostEntry) -> Self {
        let engine = match entry.engine {
            HostEngine::Ssh => "ssh",
            HostEngine::Slurm => "slurm",
            HostEngine::Process => "process",
        };
        Self {
            name: entry.name.clone(),
            engine,
            slots: entry.slots,
            root: entry.root.clone(),
            fit: None,
            facts: None,
            refusals: Vec::new(),
            removed: Vec::new(),
        }
    }

    fn answered(self, answer: Result<Offer, Vec<HostRefusal>>) -> Self {
        match answer {
            Ok(offer) => Self { fit: Some(true), facts: Some(offer), ..self },
            Err(refusals) => {
                let name = &self.name;
                let row = |refusal: HostRefusal| RefusalRow {
                    what: refusal.to_string(),
                    remedy: refusal.remedy(name),
                    refusal,
                };
                let refusals = refusals.into_iter().map(row).collect();
                Self { fit: Some(false), refusals, ..self }
            }
        }
    }
}

impl Report for HostsReport {
    const KIND: &'static str = "hosts";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        if self.hosts.is_empty() {
            writeln!(out, "no host is configured; `pdca hosts add NAME` adds one")?;
        }
        for host in &self.hosts {
            let slots = if host.slots == 1 { "slot" } else { "slots" };
            let about = format!("{} {slots}, {}, {}", host.slots, host.engine, host.root);
            let said = match host.fit {
                None => String::new(),
                Some(true) => format!("  {}", p.good("fit")),
                Some(false) => format!("  {}", p.bad("not used")),
            };
            writeln!(out, "{}  {about}{said}", host.name)?;
            if let Some(facts) = &host.facts {
                let git = facts.git.as_deref().unwrap_or("no git");
                let wall = facts.sandbox.as_deref().unwrap_or("no sandbox");
                let disk = facts.free_disk.map_or_else(|| "?".to_owned(), crate::words::size);
                let text = format!(
                    "{}, {git}, {wall}, {disk} free, {} running",
                    facts.platform, facts.running
                );
                writeln!(out, "  {}", p.faint(text))?;
            }
            for refusal in &host.refusals {
                writeln!(out, "  {}", crate::style::printable(&refusal.what))?;
                writeln!(out, "  hint: {}", crate::style::printable(&refusal.remedy))?;
            }
            for job in &host.removed {
                writeln!(out, "  removed {job}")?;
            }
        }
        Ok(())
    }

    fn table(&self, _: &Context<'_>) -> Option<Table> {
        let mut table = Table::new(&["HOST", "SLOTS", "ENGINE", "ROOT", "FIT"]);
        for host in &self.hosts {
            let fit = match host.fit {
                None => "",
                Some(true) => "yes",
                Some(false) => "no",
            };
            let cells = [
                host.name.clone(),
                host.slots.to_string(),
                host.engine.to_owned(),
                host.root.clone(),
                fit.to_owned(),
            ];
            table.row(cells);
        }
        Some(table)
    }
}
