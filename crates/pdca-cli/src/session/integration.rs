//! An integration at the terminal: drivers with progress on standard error, and messages about its steps.

use std::io::Write;
use std::num::NonZeroU32;

use camino::Utf8Path;
use pdca_dag::Plan;
use pdca_driver::place::Places;
use pdca_driver::{Batch, Driver, LaneCount, WorkspaceConfig};
use pdca_journal::events::WarningCode;
use pdca_state::BundleId;
use pdca_workspace::integration::{IntegrationHost, IntegrationProgress};

use super::fleet::{HostChoice, HostWork, is_hosts_only, with_hosts};
use crate::context::Context;
use crate::explain::integrate::unsealable;
use crate::explain::run;
use crate::failure::Failure;

/// The terminal of an integration.
pub(crate) struct IntegrationTerminal<'a> {
    pub(crate) cx: &'a Context<'a>,
    pub(crate) err: &'a mut dyn Write,
    /// The file that gets the events.
    pub(crate) events: Option<&'a Utf8Path>,
    /// The number of lanes, if not that of `[integrate]`.
    pub(crate) lanes: Option<LaneCount>,
    /// The hosts that gate combinations beside this machine.
    pub(crate) hosts: HostChoice<'a>,
}

impl IntegrationHost for IntegrationTerminal<'_> {
    type Error = Failure;

    fn drive<T: Send>(
        &mut self,
        config: &WorkspaceConfig,
        job: impl FnOnce(&Driver<'_>) -> T + Send,
    ) -> Result<T, Failure> {
        super::work(self.cx, config, self.events, self.err, job)
    }

    fn places(
        &mut self,
        config: &WorkspaceConfig,
    ) -> Result<(NonZeroU32, Option<Places>), Failure> {
        let Self { cx, hosts, .. } = *self;
        let configured = cx.workspace()?.config.integrate.lanes;
        let (lanes, local) = if is_hosts_only(cx, self.lanes.unwrap_or(configured), hosts)? {
            // Every combination goes to a host. One local lane stays the lower bound if the hosts offer no
            // slot.
            (NonZeroU32::MIN, 0)
        } else {
            let key = ("integrate.lanes", configured);
            let lanes = super::lanes(cx, config, self.lanes, key, self.err)?;
            let fit = pdca_driver::fit_lanes(config, lanes);
            let lanes = super::told_fit(cx, &fit, self.err)?;
            (lanes, lanes.get())
        };
        if cx.globals.dry_run {
            return Ok((lanes, None));
        }
        let places = with_hosts(cx, config, hosts, local, HostWork::Combinations, self.err)?;
        let slots = places.as_ref().and_then(|places| NonZeroU32::new(places.slots()));
        Ok((slots.unwrap_or(lanes), places))
    }

    fn run_batch(
        &mut self,
        config: &WorkspaceConfig,
        batch: &Batch,
        plan: &Plan,
    ) -> Result<Option<Failure>, Failure> {
        let lanes = super::driver_lanes(self.cx, config, None, self.err)?;
        let todo = super::Todo { batch, plan, groups: &[], lanes, places: None };
        let batched = super::run_bundles(self.cx, config, &todo, self.events, self.err)?;
        let stopped = batched.stopped.as_ref().map(run::stopped);
        Ok(stopped.or_else(|| run::first_failure(batched)))
    }

    fn tell(&mut self, step: IntegrationProgress<'_>) -> Result<(), Failure> {
        let Self { cx, err, .. } = self;
        let text = match step {
            IntegrationProgress::CertificateWritten { path } => {
                let path = cx.show(&path);
                format!(
                    "{path} was missing for a landing of an interrupted integration; written now"
                )
            }
            IntegrationProgress::LeftOut { ids, error } => {
                let names: Vec<&str> = ids.iter().map(BundleId::as_str).collect();
                format!("{}: left out: {}", names.join(" "), pdca_state::chain(error))
            }
            IntegrationProgress::Sealed { id } => format!("{id} is sealed"),
            IntegrationProgress::NotSealable { id, what } => {
                format!("{id} cannot be sealed: its report does not say {what}")
            }
            IntegrationProgress::SealRefused { bundle, error } => {
                for problem in &unsealable(error, bundle).problems {
                    let parts = [&problem.what].into_iter().chain(&problem.details);
                    let parts: Vec<&str> = parts.chain(&problem.hint).map(String::as_str).collect();
                    cx.warn(err, WarningCode::Unsealed, parts.join("; "))?;
                }
                return Ok(());
            }
            IntegrationProgress::Ended { integration } => {
                format!("integration {integration} was cut short with nothing left to do: ended")
            }
            IntegrationProgress::NoResolver => {
                let text = "resolver program not found; conflicts stay open, see `pdca doctor`";
                return cx.warn(err, WarningCode::NoResolver, text);
            }
            IntegrationProgress::NotChecked { holder } => format!(
                "resolved, and not checked yet: {holder} is at work; `pdca resolve` goes on when it is done"
            ),
            IntegrationProgress::InUse { id } => {
                format!("{id} stays held: it is in use by another command")
            }
            IntegrationProgress::ReturnedTooOften { id, times } => {
                format!("{id} stays held: it was sent back {times} times without a person")
            }
        };
        cx.note(err, &text)
    }
}
