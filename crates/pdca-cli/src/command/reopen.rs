//! `pdca reopen`: sends an accepted change that has not landed back to Do.

use std::io::Write;

use pdca_workspace::review::{Choice, Decision, DecisionOutcome};

use super::signoff;
use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;
use crate::session;

/// Send an accepted change that has not landed back to be built again
///
/// For a change that an integration held, or that you accepted too soon. The accepted attempt is archived
/// with its seal, and the next one gets your note, the changes it conflicted or failed with, the red rows and the
/// conflicting files. The same as `pdca signoff <id> iterate-do`; `iterate-plan` and `discontinue` work as well.
///
/// Exit codes: 0 reopened, 2 it has landed, is not accepted, or is in use.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca reopen 72                              # held: the reason is known
  pdca reopen 72 --note \"obey the new rule\"
  pdca reopen 72 --dry-run                    # what the next attempt would be told")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: IdArg,

    /// The reason, for the next attempt to read; required unless an integration held the change
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Name of the person who decided
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let bundle = cx.require_bundle(&args.id)?;
    let signature = signoff::SignoffSignature::of(args.by.as_deref(), cx)?;
    let choice = Choice::IterateDo;
    let decision = Decision { id: bundle.id().clone(), choice, note: args.note.clone() };
    let decided = signoff::with_signing(cx, &signature, |signing| {
        let taken = signing.take(&bundle).map_err(|error| session::refused(&error))?;
        signoff::confirmed(cx, signing, &bundle, err, |signing| taken.take_back(signing, &decision))
    })?;
    signoff::respond(cx, &bundle, DecisionOutcome::Decided(Box::new(decided)), err)
}
