//! Shares verdicts about a tree between the Check of a bundle and integrations.
//!
//! 1. *Check, then integration.* The verdict of the rows of scope `repo` at Check is stored in the cache of
//!    integrations. A change that is folded onto exactly the base it was checked on gives the same tree, and is not gated
//!    again.
//! 2. *Integration, then Check.* Rows that were green over the tree under Check are not run again.
//!
//! A verdict is not shared if it would answer another question or answer it less well: if a lane keeps ignored files
//! (`reset = "tracked"`), if the checkout was left by an earlier driver, if a gating row may read which bundle it is
//! about, which it may unless it says `needs = []`, or if a program of it cannot be followed. A row that was not run at Check, or came to no verdict, has none to share.

use pdca_integrate::{
    Light, Lookup, ObjectId, Verdict, VerdictCache, VerdictKey, VerdictOrigin, VerdictTrust,
};
use pdca_lanes::Reset;
use pdca_state::{GateReport, GateResult};

use crate::config::WorkspaceConfig;
use crate::run_bundle::{BeatError, Driver};

impl WorkspaceConfig {
    /// Returns the time in seconds since 1970.
    pub(super) fn now(&self) -> i64 {
        (self.clock)()
    }
}

/// The cache key of the tree under Check.
#[derive(Debug)]
pub(crate) struct Shared {
    key: VerdictKey,
    is_known_green: bool,
}

impl Shared {
    /// Returns the tree, if its gates are known to be green.
    pub(crate) fn green_tree(&self) -> Option<String> {
        self.is_known_green.then(|| self.key.tree.to_string())
    }
}

/// Returns the key for sharing a verdict about this tree; `None` if it would not mean
/// the same in an integration.
///
/// Called before the rows run, so that the key is about the gates as they were then.
pub(crate) fn shared(cx: &Driver<'_>, tree: &str) -> Option<Shared> {
    let (config, settings) = (cx.config, &cx.config.integrate);
    let around = config.gates().surroundings();
    let is_shared = |row: &pdca_gates::Check| row.is_same_anywhere() && row.is_followed(&around);
    if config.rows.combined().next().is_none()
        || config.lanes.reset == Reset::Tracked
        || !config.rows.combined().all(is_shared)
    {
        return None;
    }
    let key = VerdictKey {
        tree: ObjectId::from_hex(tree.as_bytes()).ok()?,
        oracle: config.gates().id(),
        drivers: settings.drivers().ok()?.digest(),
    };
    // Outside a run a person asked for the gates, and wants them run.
    let is_asked = cx.run.is_none();
    // A verdict of an earlier Check is not reused, so that each attempt has logs of its own.
    let trust = VerdictTrust { of_integrations: true, ..settings.trust(config.now()) };
    let kept = settings.verdicts(&config.queue(), config.now()).trusting(trust);
    let found = kept.look_up(&key).ok().filter(|_| !is_asked);
    let is_known_green = match found {
        // A verdict with a row in quarantine says less than Check has to establish.
        Some(Lookup::Found(verdict)) => {
            verdict.light == Light::Green && verdict.quarantined.is_empty()
        }
        Some(Lookup::Unknown | Lookup::Dropped { .. }) | None => false,
    };
    Some(Shared { key, is_known_green })
}

/// Stores the verdict of Check for integrations.
pub(crate) fn share(
    cx: &Driver<'_>,
    shared: Shared,
    tree: &str,
    report: &GateReport,
) -> Result<(), BeatError> {
    // A reused verdict keeps its age.
    let Some(light) = light_of(cx.config, report).filter(|_| !shared.is_known_green) else {
        return Ok(());
    };
    // An accepted fix changed the tree, and all rows ran over the new one.
    let Ok(tree) = ObjectId::from_hex(tree.as_bytes()) else { return Ok(()) };
    let key = VerdictKey { tree, ..shared.key };
    let origin = VerdictOrigin { at: Some(cx.config.now()), by: None };
    let cache = VerdictCache::new(cx.config.dirs.private().join("verdicts"));
    let keep = || cache.keep_from(&Verdict::new(key, light), &origin);
    let kept = cx.effects.perform("check-verdict", keep);
    kept.map_err(|error| BeatError::Own(std::io::Error::other(error)))
}

/// Returns the verdict of Check over its tree; `None` if a row that gates combinations was not run
/// or is in quarantine.
fn light_of(config: &WorkspaceConfig, report: &GateReport) -> Option<Light> {
    let rules = config.gates().flake_rules();
    let mut light = Light::Green;
    for id in config.rows.combined().map(|row| row.id.as_str()) {
        let row = report.rows.iter().find(|row| row.rule_id == id)?;
        match row.result {
            GateResult::Pass => {}
            GateResult::Fail if !rules.is_quarantined(id) => light = Light::Red,
            GateResult::Fail
            | GateResult::Unverifiable
            | GateResult::Deferred
            | GateResult::None => return None,
        }
    }
    Some(light)
}
