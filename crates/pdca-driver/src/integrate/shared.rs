//! One verdict about a tree, whoever asked for it: the Check of a bundle, or an integration.
//!
//! 1. *Check, then integration.* What the rows about the repository said at Check is kept where integrations keep
//!    theirs. A change that is folded onto exactly the base it was checked on gives the same tree, and is not gated
//!    again.
//! 2. *Integration, then Check.* Rows that were green over the tree that Check is about are not run again.
//!
//! Not shared is what would be another question or a weaker answer: where a lane keeps ignored files
//! (`reset = "tracked"`), where a checkout was found as an earlier driver left it, and where a row that gates reads
//! which bundle it is about. Where a row was not run at Check, or came to no verdict, there is none to share.

use pdca_gates::Scope;
use pdca_integrate::{Light, Lookup, ObjectId, Origin, Trust, Verdict, VerdictCache, VerdictKey};
use pdca_lanes::Reset;
use pdca_state::{GateReport, GateResult};

use crate::checkout::Checkout;
use crate::config::WorkspaceConfig;
use crate::run_bundle::{BeatError, Driver};

impl WorkspaceConfig {
    /// Now, in seconds since 1970.
    pub(super) fn now(&self) -> i64 {
        (self.clock)()
    }
}

/// What a verdict about the tree under Check is kept or found under.
#[derive(Debug)]
pub(crate) struct Shared {
    key: VerdictKey,
    is_known_green: bool,
}

impl Shared {
    /// The tree, where its gates are known to be green.
    pub(crate) fn green_tree(&self) -> Option<String> {
        self.is_known_green.then(|| self.key.tree.to_string())
    }
}

/// Says how a verdict about this tree is shared with integrations; not at all where it would not mean
/// the same.
///
/// Asked for before the rows run: what is kept afterwards is about the gates as they were then.
pub(crate) fn shared(cx: &Driver<'_>, checkout: &Checkout, tree: &str) -> Option<Shared> {
    let (config, settings) = (cx.config, &cx.config.integrate);
    let mut gates = config.rows.as_slice().iter();
    let gates_combinations = |row: &&pdca_gates::Check| row.gating && row.scope == Scope::Repo;
    let asks = |row: &pdca_gates::Check| {
        gates_combinations(&row) && row.asks_for_bundle(&config.dirs.root, checkout.lane.path())
    };
    if config.rows.combined().next().is_none()
        || config.lanes.reset == Reset::Tracked
        || gates.any(asks)
    {
        return None;
    }
    let key = VerdictKey {
        tree: ObjectId::from_hex(tree.as_bytes()).ok()?,
        oracle: config.gate_set(),
        drivers: settings.drivers().ok()?.digest(),
    };
    // A person who asks for the gates of a bundle wants them run.
    let is_asked = cx.run.is_none();
    // A second attempt that comes to the same tree is checked and has logs of its own.
    let trust = Trust { of_integrations: true, ..settings.trust(config.now()) };
    let kept = settings.verdicts(&config.queue(), config.now()).trusting(trust);
    let found = kept.look_up(&key).ok().filter(|_| !is_asked);
    let is_known_green = match found {
        // One to which a row did not count says less than Check is asked for.
        Some(Lookup::Found(verdict)) => {
            verdict.light == Light::Green && verdict.quarantined.is_empty()
        }
        Some(Lookup::Unknown | Lookup::Dropped { .. }) | None => false,
    };
    Some(Shared { key, is_known_green })
}

/// Keeps what Check said for integrations.
pub(crate) fn share(
    cx: &Driver<'_>,
    shared: Shared,
    tree: &str,
    report: &GateReport,
) -> Result<(), BeatError> {
    // A verdict that was only found again does not become younger by that.
    let Some(light) = light_of(cx.config, report).filter(|_| !shared.is_known_green) else {
        return Ok(());
    };
    // A fix that became part of the patch made another tree, and all rows ran over that.
    let Ok(tree) = ObjectId::from_hex(tree.as_bytes()) else { return Ok(()) };
    let key = VerdictKey { tree, ..shared.key };
    let origin = Origin { at: Some(cx.config.now()), by: None };
    let cache = VerdictCache::new(cx.config.dirs.private().join("verdicts"));
    let keep = || cache.keep_from(&Verdict::new(key, light), &origin);
    let kept = cx.effects.perform("check-verdict", keep);
    kept.map_err(|error| BeatError::Own(std::io::Error::other(error)))
}

/// What a report of Check says about its tree: nothing, where a row that gates combinations was not run
/// or is in quarantine.
fn light_of(config: &WorkspaceConfig, report: &GateReport) -> Option<Light> {
    let rules = config.flake_rules();
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
