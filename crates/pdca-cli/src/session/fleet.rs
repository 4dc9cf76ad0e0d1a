//! The hosts of a run: chosen by flags, asked for their facts, and refused with the remedy.

use std::io::Write;
use std::num::NonZeroU32;

use pdca_driver::place::{Place, Places};
use pdca_driver::{LaneCount, WorkspaceConfig};
use pdca_remote::{FitHost, HostRefusal, ReapRequest};
use pdca_workspace::OperationError;
use pdca_workspace::config::{HostEntry, require_sendable};
pub(crate) use pdca_workspace::hosts::HostWork;
use pdca_workspace::hosts::{AskedHost, ask_hosts, ended_runs, host_named};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Problem};

/// The lanes of this machine, and the hosts beside them.
#[derive(Debug)]
pub(crate) struct RunPlaces {
    pub(crate) lanes: NonZeroU32,
    pub(crate) places: Option<Places>,
}

/// Returns whether nothing is to run on this machine, because hosts do: `--lanes 0`.
pub(crate) fn is_hosts_only(
    cx: &Context<'_>,
    asked: LaneCount,
    choice: HostChoice<'_>,
) -> Result<bool, Failure> {
    Ok(asked == LaneCount::Number(0) && !choice.entries(cx)?.is_empty())
}

/// Returns the number of slots that a batch would have, without asking any host.
pub(crate) fn planned_slots(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    asked: Option<LaneCount>,
    choice: HostChoice<'_>,
    err: &mut dyn Write,
) -> Result<NonZeroU32, Failure> {
    let of_hosts: u32 = choice.entries(cx)?.iter().map(|host| host.slots).sum();
    if is_hosts_only(cx, asked.unwrap_or(cx.workspace()?.config.driver.lanes), choice)? {
        return Ok(NonZeroU32::new(of_hosts).unwrap_or(NonZeroU32::MIN));
    }
    Ok(super::driver_lanes(cx, site, asked, err)?.saturating_add(of_hosts))
}

/// Returns the places of a batch.
pub(crate) fn run_places(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    asked: Option<LaneCount>,
    choice: HostChoice<'_>,
    err: &mut dyn Write,
) -> Result<RunPlaces, Failure> {
    if is_hosts_only(cx, asked.unwrap_or(cx.workspace()?.config.driver.lanes), choice)? {
        // Results come to this disk all the same.
        super::fitting(cx, site, NonZeroU32::MIN, err)?;
        let places = with_hosts(cx, site, choice, 0, HostWork::Legs, err)?;
        return Ok(RunPlaces { lanes: NonZeroU32::MIN, places });
    }
    let mut lanes = super::driver_lanes(cx, site, asked, err)?;
    if !choice.entries(cx)?.is_empty() {
        lanes = super::fitting(cx, site, lanes, err)?;
    }
    let places = with_hosts(cx, site, choice, lanes.get(), HostWork::Legs, err)?;
    Ok(RunPlaces { lanes, places })
}

/// The hosts that a person asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum HostChoice<'a> {
    /// All of `[[hosts]]` that are fit.
    #[default]
    All,
    /// These, which have to be fit.
    Named(&'a [String]),
    /// This machine alone.
    Local,
}

impl HostChoice<'_> {
    /// Returns the chosen hosts of the configuration.
    pub(crate) fn entries<'c>(self, cx: &'c Context<'_>) -> Result<Vec<&'c HostEntry>, Failure> {
        match self {
            Self::All => Ok(cx.workspace()?.config.hosts.iter().collect()),
            Self::Named(names) => {
                let workspace = cx.workspace()?;
                let hosts = names.iter().map(|name| host_named(workspace, name));
                Ok(hosts.collect::<Result<_, _>>().map_err(OperationError::from)?)
            }
            Self::Local => Ok(Vec::new()),
        }
    }
}

/// Returns the problems of a host that is refused.
fn refused_host(name: &str, refusals: &[HostRefusal]) -> Vec<Problem> {
    let one = |refusal: &HostRefusal| {
        Problem::new(format!("host `{name}` is not used: {refusal}")).hint(refusal.remedy(name))
    };
    refusals.iter().map(one).collect()
}

/// Returns the places of a run: `local` lanes and the hosts beside them; `None` where this machine is used alone.
///
/// A host that was named and is refused is an error; another one is left out with a warning.
pub(crate) fn with_hosts(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    choice: HostChoice<'_>,
    local: u32,
    work: HostWork,
    err: &mut dyn Write,
) -> Result<Option<Places>, Failure> {
    let chosen = choice.entries(cx)?;
    if chosen.is_empty() {
        return Ok(None);
    }
    // Before any host is asked: a configuration that cannot travel, or that holds a credential, stays here.
    require_sendable(cx.workspace()?, site, &chosen)?;
    let (mut fit, mut problems) = (Vec::<Box<dyn Place>>::new(), Vec::new());
    for AskedHost { entry, host, answer } in ask_hosts(&cx.open()?, site, chosen, work)? {
        match answer {
            Ok(offer) => {
                let over = ended_runs(site, &offer.jobs);
                if !over.is_empty() {
                    // They would take slots of this run. What stays is found again by `pdca hosts gc`.
                    drop(host.reap(ReapRequest { over, ..ReapRequest::default() }));
                }
                fit.push(Box::new(FitHost::new(host, offer)));
            }
            Err(refusals) => problems.extend(refused_host(&entry.name, &refusals)),
        }
    }
    if !problems.is_empty()
        && (matches!(choice, HostChoice::Named(_)) || (fit.is_empty() && local == 0))
    {
        return Err(Failure::of(Exit::Usage, problems));
    }
    for problem in problems {
        let hint = problem.hint.as_deref().unwrap_or_default();
        cx.note(err, &format!("{} {}; {hint}", cx.err.warn("warning:"), problem.what))?;
    }
    Ok((!fit.is_empty()).then(|| Places::new(local, fit)))
}
