//! `land = "push"`: the branch of a remote moves.
//!
//! The remote says where its branch is, each time; a ref here only remembers it.

use std::time::Duration;

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

/// How often a remote that may answer later is asked.
const TRIES: u32 = 4;
/// How long to wait before the second time; twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Push;

impl LandingMode for Push {
    fn name(&self) -> &'static str {
        "push"
    }

    fn done(&self) -> &'static str {
        "pushed"
    }

    fn require_landable(&self, branch: &TargetBranch) -> Result<(), IntegrateError> {
        require_local(branch)
    }

    fn reference(&self, settings: &QueueSettings, branch: &TargetBranch) -> String {
        destination(settings, branch).sighting()
    }

    fn shown(&self, settings: &QueueSettings, reference: &str) -> String {
        if let Some(branch) = reference.strip_prefix("refs/heads/") {
            return branch.to_owned();
        }
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
        Ok(LandingBase { reference: of.sighting(), at })
    }

    /// Remembers where the branch of the remote is, which must not have been rewound since the last time.
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
        let tell = |text| integration.tell(text);
        let base = self.find(&integration.base_search(&tell))?;
        remember(integration, base.at)?;
        Ok(Some(base.at))
    }

    /// Has the remote take what was gated, if its branch is where that was gated.
    fn deliver(
        &self,
        integration: &Integration<'_>,
        gated: &Gated,
    ) -> Result<Delivery, IntegrateError> {
        let (settings, branch) = (integration.request.settings, integration.branch);
        let (to, store) = (destination(settings, branch), &branch.store);
        let tell = |text| integration.tell(text);
        retry(&integration.base_search(&tell), || {
            let effects = integration.cx.effects;
            let outcome = effects.perform("push", || push(store, &integration.fence, gated, to))?;
            Ok(match outcome {
                PushOutcome::Pushed | PushOutcome::AlreadyThere => Ok(Delivery::There),
                PushOutcome::Race { .. } => match bring(store, to)? {
                    // Another push built upon it at once.
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

    /// Brings the seals to the remote.
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
        integration.tell(format!(
            "{remote} did not take the seals, so the certificate can be verified only here: {why}"
        ));
    }
}

fn destination<'s>(settings: &'s QueueSettings, branch: &'s TargetBranch) -> Destination<'s> {
    Destination { remote: &settings.remote, branch: &branch.branch }
}

/// Remembers where the branch of the remote is, and says where it was when we last looked.
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

/// Asks again, a few times and each time later, as long as the answer is what the remote said.
fn retry<T>(
    search: &BaseSearch<'_>,
    mut ask: impl FnMut() -> Result<Result<T, String>, IntegrateError>,
) -> Result<T, IntegrateError> {
    let remote = &search.settings.remote;
    let mut pause = PAUSE;
    let mut tries = 1;
    loop {
        let said = match ask()? {
            Ok(answer) => return Ok(answer),
            Err(said) => said,
        };
        if search.cancel.is_cancelled() {
            return Err(IntegrateError::Interrupted);
        }
        if tries == TRIES {
            return Err(IntegrateError::Unreachable { remote: remote.clone(), said });
        }
        (search.tell)(format!("{remote} did not answer ({said}); it is asked again"));
        std::thread::park_timeout(pause);
        pause *= 2;
        tries += 1;
    }
}
