//! The hosts of a run: chosen by flags, asked for their facts, and refused with the remedy.

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use pdca_driver::far::{Fleet, FleetHost};
use pdca_driver::{LaneCount, WorkspaceConfig};
use pdca_exec::JobName;
use pdca_remote::{Host, HostOffer, HostRefusal, ReapRequest, Requirements};
use pdca_workspace::config::{HostEntry, host_requirements, repositories, require_sendable};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Problem};

/// What hosts are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostWork {
    Bands,
    /// Their gates decide about combinations, so the environment of those is asked for as well.
    Combinations,
}

/// The lanes of this machine, and the hosts beside them.
#[derive(Debug)]
pub(crate) struct RunPlaces {
    pub(crate) lanes: NonZeroU32,
    pub(crate) fleet: Option<Fleet>,
}

/// Returns whether nothing is to run on this machine, because hosts do: `--lanes 0`.
pub(crate) fn is_far_only(
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
    let far: u32 = choice.entries(cx)?.iter().map(|host| host.slots).sum();
    if is_far_only(cx, asked.unwrap_or(cx.workspace()?.config.driver.lanes), choice)? {
        return Ok(NonZeroU32::new(far).unwrap_or(NonZeroU32::MIN));
    }
    Ok(super::driver_lanes(cx, site, asked, err)?.saturating_add(far))
}

/// Returns the places of a batch.
pub(crate) fn places(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    asked: Option<LaneCount>,
    choice: HostChoice<'_>,
    err: &mut dyn Write,
) -> Result<RunPlaces, Failure> {
    if is_far_only(cx, asked.unwrap_or(cx.workspace()?.config.driver.lanes), choice)? {
        // Results come to this disk all the same.
        super::fitting(cx, site, NonZeroU32::MIN, err)?;
        let fleet = fleet(cx, site, choice, 0, HostWork::Bands, err)?;
        return Ok(RunPlaces { lanes: NonZeroU32::MIN, fleet });
    }
    let mut lanes = super::driver_lanes(cx, site, asked, err)?;
    if !choice.entries(cx)?.is_empty() {
        lanes = super::fitting(cx, site, lanes, err)?;
    }
    let fleet = fleet(cx, site, choice, lanes.get(), HostWork::Bands, err)?;
    Ok(RunPlaces { lanes, fleet })
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
            Self::Named(names) => names.iter().map(|name| host_named(cx, name)).collect(),
            Self::Local => Ok(Vec::new()),
        }
    }
}

/// Returns a configured host by its name.
pub(crate) fn host_named<'c>(cx: &'c Context<'_>, name: &str) -> Result<&'c HostEntry, Failure> {
    let configured = &cx.workspace()?.config.hosts;
    configured.iter().find(|host| host.name == name).ok_or_else(|| {
        let known: Vec<&str> = configured.iter().map(|host| host.name.as_str()).collect();
        let hint = match known.as_slice() {
            [] => format!("`pdca hosts add {name}` adds it"),
            known => format!("hosts: {}; `pdca hosts add {name}` adds it", known.join(", ")),
        };
        Failure::usage(format!("there is no host `{name}` in [[hosts]]")).hint(hint)
    })
}

/// Makes the near side of a host.
pub(crate) fn near_side(cx: &Context<'_>, entry: &HostEntry) -> Host {
    entry.host(&sockets(cx), cx.env.program.as_deref())
}

/// Returns the directory of control sockets. Their paths must be short.
fn sockets(cx: &Context<'_>) -> Utf8PathBuf {
    // A path of a socket has at most 108 bytes on Linux, and ssh appends a hash and a suffix to it.
    let own = || format!("/tmp/pdca-ssh-{}", rustix::process::getuid().as_raw()).into();
    cx.env
        .var_text("XDG_RUNTIME_DIR")
        .map_or_else(own, |dir| Utf8PathBuf::from(dir).join("pdca-ssh"))
}

/// A host with its facts, or the reasons not to use it.
pub(crate) type Checked<'c> = (&'c HostEntry, Host, Result<HostOffer, Vec<HostRefusal>>);

/// Asks all hosts for their facts, side by side.
pub(crate) fn check_hosts<'c>(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    entries: Vec<&'c HostEntry>,
    work: HostWork,
) -> Result<Vec<Checked<'c>>, Failure> {
    let own = pdca_remote::own_digest()?;
    let repositories = repositories(site);
    let hosts: Vec<(&HostEntry, Host)> =
        entries.into_iter().map(|entry| (entry, near_side(cx, entry))).collect();
    let gates = (work == HostWork::Combinations).then(|| site.rows.clone());
    let ask = |entry: &HostEntry, host: &Host| {
        let required = host_requirements(site, own.clone(), entry);
        host.check(&Requirements { gates: gates.clone(), ..required }, repositories.clone())
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            hosts.iter().map(|(entry, host)| scope.spawn(|| ask(entry, host))).collect();
        asked.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut checked = Vec::new();
    for ((entry, host), answer) in hosts.into_iter().zip(answers) {
        let answer = answer.map_err(|_| Failure::unexpected("a thread panicked"))?;
        checked.push((entry, host, answer));
    }
    Ok(checked)
}

/// Returns the runs of this workspace that are over and have jobs on a host.
pub(crate) fn ended_runs(site: &WorkspaceConfig, jobs: &[String]) -> Vec<String> {
    let names = jobs.iter().filter_map(|name| name.parse::<JobName>().ok());
    let runs: BTreeSet<String> = names.map(|name| name.run().to_owned()).collect();
    let is_over = |run: &String| {
        let Ok(id) = run.parse() else { return false };
        let found = [site.dirs.runs(), site.dirs.integrations()].map(|runs| runs.find(&id).found);
        found.into_iter().flatten().any(|found| !found.state.is_active())
    };
    runs.into_iter().filter(is_over).collect()
}

/// Returns the problems of a host that is refused.
pub(crate) fn refused_host(name: &str, refusals: &[HostRefusal]) -> Vec<Problem> {
    let one = |refusal: &HostRefusal| {
        Problem::new(format!("host `{name}` is not used: {refusal}")).hint(refusal.remedy(name))
    };
    refusals.iter().map(one).collect()
}

/// Returns the hosts of a run with `local` lanes beside them; `None` where this machine is used alone.
///
/// A host that was named and is refused is an error; another one is left out with a warning.
pub(crate) fn fleet(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    choice: HostChoice<'_>,
    local: u32,
    work: HostWork,
    err: &mut dyn Write,
) -> Result<Option<Fleet>, Failure> {
    let chosen = choice.entries(cx)?;
    if chosen.is_empty() {
        return Ok(None);
    }
    // Before any host is asked: a configuration that cannot travel, or that holds a credential, stays here.
    require_sendable(cx.workspace()?, site, &chosen)?;
    let (mut fit, mut problems) = (Vec::new(), Vec::new());
    for (entry, host, answer) in check_hosts(cx, site, chosen, work)? {
        match answer {
            Ok(offer) => {
                let over = ended_runs(site, &offer.jobs);
                if !over.is_empty() {
                    // They would take slots of this run. What stays is found again by `pdca hosts gc`.
                    drop(host.reap(ReapRequest { over, ..ReapRequest::default() }));
                }
                fit.push(FleetHost::new(host, offer));
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
    Ok((!fit.is_empty()).then(|| Fleet::new(local, fit)))
}
