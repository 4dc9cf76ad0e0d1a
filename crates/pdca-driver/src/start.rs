//! Where a builder starts: at the base, or at the base with the patch of the attempt before it applied.

use pdca_integrate::Ingredients;
use pdca_journal::events::WarningCode;
use pdca_state::{Bundle, Reentry};

use crate::checkout::{Checkout, CheckoutError};
use crate::commits::commit_id;
use crate::run_bundle::{BeatError, Driver};
use crate::terms::IterateFrom;
use pdca_journal::events::EventKind;

/// The base with the last patch applied.
///
/// The commit is in no history: the builder gets the patch as changes of its working tree, so that its result is one
/// change on the base. It only tells what the builder did from what was there before.
pub(crate) struct Start {
    commit: String,
    patch: Vec<u8>,
}

impl Start {
    /// Puts the last patch into a checkout that was reset to the base.
    pub(crate) fn apply(&self, cx: &Driver<'_>, checkout: &Checkout) -> Result<(), CheckoutError> {
        let apply = || checkout.lane.apply(&self.patch);
        cx.effects.perform("apply-last", apply).map_err(CheckoutError::Last)
    }

    /// Returns whether the checkout differs from where the builder started.
    pub(crate) fn has_work(start: Option<&Self>, checkout: &Checkout) -> bool {
        start.map_or_else(|| checkout.has_work(), |start| checkout.differs_from(&start.commit))
    }
}

/// Finds where a builder starts; none is the bare base.
pub(crate) fn start_of(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
) -> Result<Option<Start>, BeatError> {
    if cx.config.iterate_from == IterateFrom::Base {
        return Ok(None);
    }
    // A plan that was made anew is built anew. A change that was accepted was right by itself and is not mended but
    // built again, with what it did not go together with in view.
    let last = bundle.attempts().last()?;
    let last = last.filter(|last| last.reentry == Reentry::Do && !last.was_accepted);
    let Some(last) = last else { return Ok(None) };
    let Some(patch) = last.patch() else { return Ok(None) };
    let store = cx.config.store_of(&checkout.attempt.target)?;
    let made = store.rebuild(&Ingredients {
        base: commit_id(&checkout.attempt.base)?,
        patch,
        message: "pdca: the attempt before\n",
        name: "pdca",
        email: "iterate@pdca.invalid",
        seconds: 0,
    });
    match made {
        Ok(commit) => Ok(Some(Start { commit: commit.to_string(), patch: patch.to_vec() })),
        // The base moved on. The builder has the old patch in its view all the same.
        Err(error) => {
            let text = format!(
                "the patch of attempt {} does not apply to the new base; the builder starts from the base: {}",
                last.number,
                pdca_state::chain(&error)
            );
            cx.tell(bundle, EventKind::notice(WarningCode::AttemptNotUsed, text));
            Ok(None)
        }
    }
}
