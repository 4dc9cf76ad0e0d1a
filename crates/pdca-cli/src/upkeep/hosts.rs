//! The hosts that bands run on: checked, added and cleaned up.

use std::io::Write;

use pdca_remote::{HostOffer, HostRefusal, ReapRequest};
use pdca_state::chain;
use pdca_workspace::config::{HostEngine, HostEntry};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response, Table};
use crate::session::{self, fleet};

/// The hosts of the workspace, as far as asked for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostsReport {
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
    facts: Option<HostOffer>,
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

/// A host to add. Values that are absent are the defaults; a host that has an entry keeps those of its entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewHost {
    /// The name of the host in `~/.ssh/config`.
    pub(crate) name: String,
    pub(crate) slots: Option<u32>,
    pub(crate) root: Option<String>,
    pub(crate) engine: Option<HostEngine>,
}

/// Lists the configured hosts. Nothing is asked of them.
pub(crate) fn list(cx: &Context<'_>) -> Result<Response, Failure> {
    let hosts = cx.workspace()?.config.hosts.iter().map(HostRow::of).collect();
    Ok(Response::done(HostsReport { action: "list", hosts }))
}

/// Returns the hosts of the names; all of them if there is no name.
fn entries<'c>(names: &[String], cx: &'c Context<'_>) -> Result<Vec<&'c HostEntry>, Failure> {
    if names.is_empty() {
        return Ok(cx.workspace()?.config.hosts.iter().collect());
    }
    names.iter().map(|name| fleet::host_named(cx, name)).collect()
}

/// Asks hosts for their facts, and returns with each refusal its remedy.
pub(crate) fn check(names: &[String], cx: &Context<'_>) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let mut hosts = Vec::new();
    for (entry, _, answer) in
        fleet::check_hosts(cx, &site, entries(names, cx)?, fleet::HostWork::Bands)?
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

/// Puts this program on a host, checks the host, and adds it to `pdca.toml`.
pub(crate) fn add(
    asked: &NewHost,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let known = workspace.config.hosts.iter().find(|host| host.name == asked.name);
    let mut entry = known.cloned().unwrap_or_else(|| HostEntry::named(&asked.name));
    entry.slots = asked.slots.unwrap_or(entry.slots);
    entry.root = asked.root.clone().unwrap_or(entry.root);
    entry.engine = asked.engine.unwrap_or(entry.engine);
    if let Some(known) = known
        && entry != *known
    {
        // The next run reads the file, so a host that is checked with other values says nothing.
        let what = format!("{} keeps its [[hosts]] of pdca.toml; edit it there", entry.name);
        cx.note(err, &format!("{} {what}", cx.err.warn("warning:")))?;
        entry = known.clone();
    }
    if !pdca_remote::is_plain_host(&entry.name) || !pdca_remote::is_plain_root(&entry.root) {
        return Err(Failure::usage(format!(
            "`{}` and `{}` cannot be a host and its root",
            entry.name, entry.root
        ))
        .hint("a host is a name of ~/.ssh/config, a root begins with `~/` or `/`"));
    }
    let stanza = entry.stanza();
    if cx.globals.dry_run {
        let name = &entry.name;
        let text = match known {
            Some(_) => format!("would put this pdca on {name}"),
            None => format!("would put this pdca on {name}, and add to pdca.toml:\n{stanza}"),
        };
        cx.note(err, &text)?;
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

/// Removes what ended runs left on hosts, and contents that no job used for `older_than` days.
pub(crate) fn gc(
    names: &[String],
    older_than: Option<u32>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let mut hosts = Vec::new();
    let mut is_done = true;
    for (entry, host, answer) in
        fleet::check_hosts(cx, &site, entries(names, cx)?, fleet::HostWork::Bands)?
    {
        // Asked again, because a host that is refused for a run may still have leftovers to remove.
        let offer = host.offer(pdca_remote::OfferRequest::default());
        let mut row = HostRow::of(entry).answered(answer);
        if let Ok(offer) = offer {
            let over = fleet::ended_runs(&site, &offer.jobs);
            let request =
                ReapRequest { over, older_than_days: older_than, ..ReapRequest::default() };
            match host.reap(request) {
                Ok(jobs) => row.removed = jobs.iter().map(ToString::to_string).collect(),
                Err(error) => {
                    is_done = false;
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
        Self {
            name: entry.name.clone(),
            engine: entry.engine.name(),
            slots: entry.slots,
            root: entry.root.clone(),
            fit: None,
            facts: None,
            refusals: Vec::new(),
            removed: Vec::new(),
        }
    }

    fn answered(self, answer: Result<HostOffer, Vec<HostRefusal>>) -> Self {
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
