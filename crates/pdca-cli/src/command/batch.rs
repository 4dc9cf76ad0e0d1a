//! `pdca batch`, also known as `pdca flow`: the same as `run`, over all bundles that are not finished.

use std::io::Write;

use pdca_state::RootError;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::{self, EventsArg};

/// Drive all bundles that are not finished, one after the other
///
/// Without ids: every bundle of the workspace that is neither complete nor discontinued nor resolved, in name order. One
/// bundle's failure does not stop the others. A bundle whose `Depends on` is not complete is named and left alone.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca batch                 # everything that can go on
  pdca batch 12 15 --json
  pdca flow 12 15            # the same; older instances know it by this name")]
pub(crate) struct Args {
    /// The bundles; all that are not finished where none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,
    #[command(flatten)]
    events: EventsArg,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let site = session::site(cx)?;
    let workspace = cx.workspace()?;
    let bundles = if args.ids.is_empty() {
        let mut active = match workspace.bundle_root.list() {
            // No bundle was ever made: that is nothing to do, not an error.
            Err(RootError::Missing { .. }) => Vec::new(),
            listed => listed?,
        };
        // One that cannot be read is tried, so that it is told.
        active.retain(|bundle| bundle.glance().map_or(true, |glance| glance.state.is_open()));
        active
    } else {
        cx.require_bundles(&args.ids)?
    };
    if workspace.config.driver.lanes > 1 {
        cx.note(err, "one bundle at a time: this version drives a single lane")?;
    }
    super::run::drive_all(&site, bundles, &args.events, cx, out, err)
}
