//! Further checkouts of a change, for gate rows that run at the same time.

use camino::Utf8PathBuf;
use pdca_gates::{RowCheckout, TreeFault};
use pdca_journal::events::WarningCode;
use pdca_lanes::{OwnerNote, Target, Workbench};
use pdca_state::{Bundle, chain};

use crate::check::row_sandbox;
use crate::checkout::{Checkout, CheckoutError, clear_on, take_names};
use crate::integrate::FIRST_SLOT;
use crate::lane_owner::COMBINED;
use crate::run_bundle::Driver;

/// The distance between the slots of a checkout and of its further ones.
// Beyond the slots of combinations and their spares, which end below it.
const STEP: u32 = 2 * FIRST_SLOT;

/// The further checkouts of one checkout, claimed when they are first needed and until this is dropped.
pub(crate) struct FurtherCheckouts<'d> {
    driver: &'d Driver<'d>,
    bundle: &'d Bundle,
    own: &'d Checkout,
    claimed: Vec<Checkout>,
}

impl<'d> FurtherCheckouts<'d> {
    pub(crate) fn of(driver: &'d Driver<'d>, bundle: &'d Bundle, own: &'d Checkout) -> Self {
        Self { driver, bundle, own, claimed: Vec::new() }
    }

    /// Resets up to `number` of them to a commit that the target has. Where one cannot be had, that is a warning, and
    /// fewer are returned.
    pub(crate) fn stand(&mut self, commit: &str, number: usize) -> Vec<RowCheckout> {
        let mut ready = Vec::with_capacity(number);
        for k in 0..number {
            match self.stand_one(k, commit) {
                Ok(one) => ready.push(one),
                Err(error) => {
                    let text = format!(
                        "there is no checkout for a row that could run beside others, so it runs after them: {}",
                        chain(&error)
                    );
                    self.driver.warn(self.bundle, WarningCode::FewerLanes, text);
                    break;
                }
            }
        }
        ready
    }

    fn stand_one(&mut self, k: usize, commit: &str) -> Result<RowCheckout, CheckoutError> {
        if self.claimed.len() == k {
            let claimed = self.claim(k)?;
            self.claimed.push(claimed);
        }
        let one = &self.claimed[k];
        let job = format!("{COMBINED}{}-rows", self.driver.config.dirs.mark());
        // No branch: lanes that are worktrees of one repository cannot have the same one.
        clear_on(self.driver, self.bundle, one, &job, commit, None)?;
        self.driver.set_owner(one, &OwnerNote { job, head: Some(commit.to_owned()) })?;
        Ok(RowCheckout {
            path: one.lane.path().to_owned(),
            tree: one.lane.tree()?,
            lane: one.lane_env.as_ref().map(|lane_env| lane_env.names.clone()),
            sandbox: Some(row_sandbox(self.driver, one)),
        })
    }

    fn claim(&self, k: usize) -> Result<Checkout, CheckoutError> {
        let target = &self.own.target;
        let target = Target::open(target.name(), target.path()).map_err(|source| {
            CheckoutError::Target { name: self.own.target.name().to_owned(), source }
        })?;
        let lanes = self.driver.config.lanes.lent().ended_by(self.driver.cancel);
        let number = u32::try_from(k + 1).unwrap_or(u32::MAX);
        let own = self.own.lane.slot().map_err(CheckoutError::Record)?;
        let slot = own.saturating_add(STEP.saturating_mul(number));
        let mut bench = Workbench::claim(&lanes, [slot], target)?;
        // A checkout without names has none beside it either. The number stays that of the worker.
        let lane_env = match &self.own.lane_env {
            Some(own) => Some(take_names(self.driver, &mut bench)?.numbered(own.slot)),
            None => None,
        };
        Ok(Checkout {
            bench,
            attempt: self.own.attempt.clone(),
            is_common: self.own.is_common,
            lane_env,
            workspace: self.own.workspace.clone(),
        })
    }

    /// Returns the tracked files that differ from the commit in one of them.
    pub(crate) fn changed(&self, k: usize) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        let one = self.claimed.get(k).ok_or("there is no such checkout")?;
        Ok(one.lane.changed_tracked()?)
    }
}
