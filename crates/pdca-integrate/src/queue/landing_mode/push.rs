//! `land = "push"`: the branch of a remote moves.
//!
//! The position of the remote branch is asked from the remote each time. A local ref only remembers it, to notice
//! when the remote was rewound.

use std::time::Duration;

use pdca_process::Backoff;

use crate::queue::IntegrateError;
use crate::queue::integration::Integration;
use crate::queue::landing_base::LandingBase;
use crate::queue::settings::QueueSettings;
use crate::queue::target_branch::TargetBranch;
use crate::{
    BaseDrift, Destination, Gated, ObjectId, Onto, PushOutcome, RemoteTip, base_drift, bring,
    contains, push, push_seals, sight,
};

use super::{BaseSearch, Delivery, LandingMode, require_local};

/// The number of tries with a remote that does not answer.
const TRIES: usize = 4;
/// The pause before the second try; it doubles before each further one.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct LandByPush;

impl LandingMode for LandByPush {
    fn name(&self) -> &'static str {
        "push"
    }

    fn done(&self) -> &'static str {
        "pushed"
    }

    fn require_landable(&self, branch: &TargetBranch) -> Result<(), IntegrateError> {
        // A checked-out branch is no obstacle: only the remote's branch and a ref of ours move.
        require_local(branch)
    }

    fn reference(&self, settings: &QueueSettings, branch: &TargetBranch) -> String {
        destination(settings, branch).sighting()
    }

    fn shown(&self, settings: &QueueSettings, reference: &str) -> String {
        if let Some(branch) = reference.strip_prefix("refs/heads/") {
            return branch.to_owned();
        }
        // `refs/pdca/remote/<remote>/<branch>`, where the branch may contain slashes.
        let branch = reference.splitn(5, '/').nth(4).unwrap_or(reference);
        format!("{branch} of {}", settings.remote)
    }

    fn find(&self, search: &BaseSearch<'_>) -> Result<LandingBase, IntegrateError> {
        let (settings, branch) = (search.settings, search.branch);
        let of = destination(settings, branch);
        let at = retry(search, || {
            Ok(match bring(&branch.store, of)? {
                RemoteTip::At(at) => Ok(at),
                RemoteTip::NoBranch => return Err(lacks(settings, branch)),
                RemoteTip::Silent { said } => Err(said),
            })
        })?;
        Ok(LandingBase::of(of.sighting(), at))
    }

    /// Remembers the tip of the remote branch. Fails if the branch was rewound since the last time.
    fn begin(&self, integration: &Integration<'_>) -> Result<(), IntegrateError> {
        let base = &integration.base;
        let Some(before) = remember(integration, base.at)? else { return Ok(()) };
        let drift = base_drift(&integration.branch.store, before, Some(base.at), u64::MAX)?;
        if drift == BaseDrift::Rewritten {
            let reference = integration.request.settings.shown(&base.reference);
            let how =
                format!("was rewound or rewritten since it was at {before}; it is not forced");
            return Err(IntegrateError::Drifted { reference, how });
        }
        Ok(())
    }

    fn look(&self, integration: &Integration<'_>) -> Result<Option<ObjectId>, IntegrateError> {
        let tell = |text| integration.cx.tell(text);
        let base = self.find(&integration.base_search(&tell))?;
        remember(integration, base.at)?;
        Ok(Some(base.at))
    }

    /// Pushes the gated commit, provided that the remote branch is still at the gated base.
    fn deliver(
        &self,
        integration: &Integration<'_>,
        gated: &Gated,
    ) -> Result<Delivery, IntegrateError> {
        let (settings, branch) = (integration.request.settings, integration.branch);
        let (to, store) = (destination(settings, branch), &branch.store);
        let tell = |text| integration.cx.tell(text);
        retry(&integration.base_search(&tell), || {
            let effects = integration.cx.effects;
            let outcome = effects.perform("push", || push(store, &integration.fence, gated, to))?;
            Ok(match outcome {
                PushOutcome::Pushed | PushOutcome::AlreadyThere => Ok(Delivery::There),
                // Brought and not only asked for, because ancestry is read from the objects.
                PushOutcome::Race { .. } => match bring(store, to)? {
                    // The push arrived, and another one built on it before the remote was asked.
                    RemoteTip::At(at) if contains(store, at, gated.candidate().commit())? => {
                        Ok(Delivery::There)
                    }
                    RemoteTip::At(_) => Ok(Delivery::Moved),
                    RemoteTip::NoBranch => return Err(lacks(settings, branch)),
                    RemoteTip::Silent { said } => Err(said),
                },
                PushOutcome::NoBranch => return Err(lacks(settings, branch)),
                PushOutcome::Transient { said } => Err(said),
                PushOutcome::Permanent { said } => {
                    let (remote, branch) = (settings.remote.clone(), branch.branch.clone());
                    return Err(IntegrateError::Refused { remote, branch, said });
                }
            })
        })
    }

    fn onto<'i>(&self, _integration: &'i Integration<'_>, reference: &'i str) -> Onto<'i> {
        Onto::Sighting(reference)
    }

    /// Pushes the seals, which are needed to verify the certificate elsewhere.
    fn after(&self, integration: &Integration<'_>, gated: &Gated) {
        let settings = integration.request.settings;
        if !settings.push_seals {
            return;
        }
        let to = destination(settings, integration.branch);
        let share = || push_seals(&integration.branch.store, gated, to);
        let why = match integration.cx.effects.perform("push-seals", share) {
            Ok(None) => return,
            Ok(Some(said)) => said,
            Err(error) => pdca_state::chain(&error),
        };
        let remote = &settings.remote;
        integration.cx.tell(format!(
            "{remote} did not take the seals, so the certificate can be verified only here: {why}"
        ));
    }
}

fn destination<'s>(settings: &'s QueueSettings, branch: &'s TargetBranch) -> Destination<'s> {
    Destination { remote: &settings.remote, branch: &branch.branch }
}

/// Stores the tip of the remote branch in a local ref, and returns the tip that was stored before.
fn remember(
    integration: &Integration<'_>,
    at: ObjectId,
) -> Result<Option<ObjectId>, IntegrateError> {
    let of = destination(integration.request.settings, integration.branch);
    let log = integration.log("pdca: where the remote's branch is");
    let keep = || sight(&integration.branch.store, &integration.fence, of, at, log);
    Ok(integration.cx.effects.perform("sight", keep)?)
}

fn lacks(settings: &QueueSettings, branch: &TargetBranch) -> IntegrateError {
    IntegrateError::RemoteLacks { remote: settings.remote.clone(), branch: branch.branch.clone() }
}

/// Repeats a call, with growing pauses, while it returns the message of a remote that may answer later.
fn retry<T>(
    search: &BaseSearch<'_>,
    mut ask: impl FnMut() -> Result<Result<T, String>, IntegrateError>,
) -> Result<T, IntegrateError> {
    let remote = &search.settings.remote;
    let mut pauses = Backoff::new(PAUSE).take(TRIES - 1);
    loop {
        let said = match ask()? {
            Ok(answer) => return Ok(answer),
            Err(said) => said,
        };
        if search.cancel.is_cancelled() {
            return Err(IntegrateError::Interrupted);
        }
        let Some(pause) = pauses.next() else {
            return Err(IntegrateError::Unreachable { remote: remote.clone(), said });
        };
        (search.tell)(format!("{remote} did not answer ({said}); retrying"));
        if !search.cancel.wait(pause) {
            return Err(IntegrateError::Interrupted);
        }
    }
}
