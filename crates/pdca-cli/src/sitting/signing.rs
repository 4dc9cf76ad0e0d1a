//! Who decides, and when.

use pdca_driver::Effects;
use pdca_workspace::review::Signing;

use crate::context::Context;
use crate::failure::Failure;
use crate::{faults, session};

/// The name and date to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignoffSignature {
    pub(crate) by: String,
    pub(crate) date: String,
}

impl SignoffSignature {
    /// Returns the signature of the person at the terminal, today.
    pub(crate) fn of(by: Option<&str>, cx: &Context<'_>) -> Result<Self, Failure> {
        Ok(Self { by: signer(by, cx)?, date: cx.env.today() })
    }
}

/// Calls `with` with what a decision needs: configuration, effects, name and date.
pub(crate) fn with_signing<T>(
    cx: &Context<'_>,
    signature: &SignoffSignature,
    with: impl FnOnce(&Signing<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let config = session::driver_config(cx)?;
    let effects = faults::effects(cx)?;
    let effects: &dyn Effects = effects.as_ref();
    let (by, date, dry_run) = (&*signature.by, &*signature.date, cx.globals.dry_run);
    // `-y` is a person's yes to every question.
    let is_confirmed = cx.globals.yes;
    with(&Signing { config: &config, effects, by, date, dry_run, is_confirmed })
}

/// Returns the name of the person who decides, or an error if there is none.
pub(crate) fn signer(by: Option<&str>, cx: &Context<'_>) -> Result<String, Failure> {
    cx.open()?.signer(by).ok_or_else(|| {
        Failure::usage("no sign-off author").hint("pass `--by NAME` or set `author` in [project]")
    })
}
