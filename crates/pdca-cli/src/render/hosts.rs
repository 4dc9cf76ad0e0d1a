//! Hosts as text, as a table, and as the rows of their document.

use std::io::Write;

use pdca_remote::HostRefusal;
use pdca_workspace::hosts::{HostProgress, HostState, HostsCleanup};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response, Table};
use crate::style::printable;
use crate::words::size;

/// The hosts of the workspace, as far as asked for.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostsReport {
    action: Action,
    hosts: Vec<HostRow>,
}

#[derive(Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Check,
    Add,
    Gc,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HostRow {
    #[serde(flatten)]
    host: HostState,
    refusals: Vec<RefusalRow>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RefusalRow {
    #[serde(flatten)]
    refusal: HostRefusal,
    what: String,
    remedy: String,
}

impl HostRow {
    fn of(mut host: HostState) -> Self {
        let refusals = std::mem::take(&mut host.refusals);
        let row = |refusal: HostRefusal| RefusalRow {
            what: refusal.to_string(),
            remedy: refusal.remedy(&host.name),
            refusal,
        };
        let refusals = refusals.into_iter().map(row).collect();
        Self { host, refusals }
    }
}

fn response(action: Action, hosts: Vec<HostState>, exit: Exit) -> Response {
    let hosts = hosts.into_iter().map(HostRow::of).collect();
    Response::new(HostsReport { action, hosts }, exit)
}

/// Returns the response to the configured hosts.
pub(crate) fn listed(hosts: Vec<HostState>) -> Response {
    response(Action::List, hosts, Exit::Done)
}

/// Returns the response to a check of hosts.
pub(crate) fn checked(hosts: Vec<HostState>) -> Response {
    let is_fit = hosts.iter().all(|host| host.fit == Some(true));
    let exit = match (hosts.is_empty(), is_fit) {
        (true, _) => Exit::NothingToDo,
        (false, true) => Exit::Done,
        (false, false) => Exit::Usage,
    };
    response(Action::Check, hosts, exit)
}

/// Returns the response to an added host.
pub(crate) fn added(host: HostState) -> Response {
    let exit = if host.fit == Some(false) { Exit::Usage } else { Exit::Done };
    response(Action::Add, vec![host], exit)
}

/// Returns the response to a cleanup of hosts.
pub(crate) fn cleaned_up(cleanup: HostsCleanup) -> Response {
    let exit = if cleanup.is_complete { Exit::Done } else { Exit::Usage };
    response(Action::Gc, cleanup.hosts, exit)
}

/// Shows what happens while a host is added.
pub(crate) fn show(
    progress: HostProgress,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let text = match progress {
        HostProgress::EntryKept { name } => {
            let what = format!("{name} keeps its [[hosts]] of pdca.toml; edit it there");
            format!("{} {what}", cx.err.warn("warning:"))
        }
        HostProgress::WouldAdd { name, stanza: None } => format!("would put this pdca on {name}"),
        HostProgress::WouldAdd { name, stanza: Some(stanza) } => {
            format!("would put this pdca on {name}, and add to pdca.toml:\n{stanza}")
        }
        HostProgress::Added { name, file } => format!("{name} is in {file}"),
    };
    cx.note(err, &text)
}

impl Report for HostsReport {
    const KIND: &'static str = "hosts";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        if self.hosts.is_empty() {
            writeln!(out, "no host is configured; `pdca hosts add NAME` adds one")?;
        }
        for HostRow { host, refusals } in &self.hosts {
            let slots = if host.slots == 1 { "slot" } else { "slots" };
            let about = format!("{} {slots}, {}, {}", host.slots, host.engine.name(), host.root);
            let fit = match host.fit {
                None => String::new(),
                Some(true) => format!("  {}", p.good("fit")),
                Some(false) => format!("  {}", p.bad("not used")),
            };
            writeln!(out, "{}  {about}{fit}", host.name)?;
            if let Some(facts) = &host.facts {
                let git = facts.git.as_deref().unwrap_or("no git");
                let wall = facts.sandbox.as_deref().unwrap_or("no sandbox");
                let disk = facts.free_disk.map_or_else(|| "?".to_owned(), size);
                let text = format!(
                    "{}, {git}, {wall}, {disk} free, {} running",
                    facts.platform, facts.running
                );
                writeln!(out, "  {}", p.faint(text))?;
            }
            for refusal in refusals {
                writeln!(out, "  {}", printable(&refusal.what))?;
                writeln!(out, "  hint: {}", printable(&refusal.remedy))?;
            }
            for job in &host.removed {
                writeln!(out, "  removed {job}")?;
            }
        }
        Ok(())
    }

    fn table(&self, _: &Context<'_>) -> Option<Table> {
        let mut table = Table::new(&["HOST", "SLOTS", "ENGINE", "ROOT", "FIT"]);
        for HostRow { host, .. } in &self.hosts {
            let fit = match host.fit {
                None => "",
                Some(true) => "yes",
                Some(false) => "no",
            };
            let cells = [
                host.name.clone(),
                host.slots.to_string(),
                host.engine.name().to_owned(),
                host.root.clone(),
                fit.to_owned(),
            ];
            table.row(cells);
        }
        Some(table)
    }
}
