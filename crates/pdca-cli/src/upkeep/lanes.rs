//! Provisions, hydrates and checks private checkouts.

pub(crate) mod doctor;
pub(crate) mod env;
mod hydration;
pub(crate) mod provision;

use pdca_driver::LockGuard;

use crate::context::Context;
use crate::explain::lanes as explain;
use crate::failure::Failure;
use crate::session;

/// Locks drivers out while lanes are changed, or reports the running one.
pub(crate) fn without_driver(cx: &Context<'_>) -> Result<(LockGuard, LockGuard), Failure> {
    session::driver_config(cx)?.locks().admit_alone().map_err(|error| session::refused(&error))
}

/// Returns an error while a driver is running, which creates and claims lanes itself.
fn refuse_driver(cx: &Context<'_>) -> Result<(), Failure> {
    let site = session::driver_config(cx)?;
    let at_work = site
        .locks()
        .driver_at_work()
        .and_then(|driver| Ok(driver.or(site.locks().integration_at_work()?)));
    match at_work {
        Ok(None) => Ok(()),
        Ok(Some(holder)) => Err(Failure::usage(format!("{holder} is at work here"))
            .hint("it makes the lanes it needs; wait until it is done, or stop it")),
        Err(error) => Err(session::refused(&error)),
    }
}
