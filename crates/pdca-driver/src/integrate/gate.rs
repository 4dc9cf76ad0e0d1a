//! Gates a combination, in a checkout that no bundle uses.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_gates::{
    Change, Checks, Flaky, GateContext, GateHost, GatesError, GatesOutcome, Purpose, RowCheckout,
    Tree, TreeFault, run_checks,
};
use pdca_integrate::{
    CombinationGate, CombinationGates, Evidence, FlakePolicy, FlakeRules, GateJob, GateRuling,
    GateRunError, GateSetId, TargetBranch, excuse, reproduction,
};
use pdca_journal::events::WarningCode;
use pdca_lanes::OwnerNote;
use pdca_process::Cancel;
use pdca_state::{Bundle, GateReport, GateRow, sha256_hex};

use crate::allowed_refs::breaches;
use crate::check::{follow_gate, primary_view, row_sandbox, tell_of_checkout};
use crate::checkout::{Checkout, CheckoutError};
use crate::config::{TargetSpec, WorkspaceConfig};
use crate::further_checkouts::FurtherCheckouts;
use crate::lane_env::LaneEnv;
use crate::lane_owner::COMBINED;
use crate::leg::{FailureClass, GatesLeg, Leg, LegEnd, leg_name};
use crate::place::{PlaceError, PlaceSlot};
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::EventKind;

use super::{FIRST_SLOT, SCOPE, stand_in};

/// A commit to gate, and the checkout and directory for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CombinationCheckout<'c> {
    pub(crate) target: &'c TargetSpec,
    pub(crate) branch: &'c str,
    pub(crate) commit: &'c str,
    pub(crate) tree: &'c str,
    pub(crate) slot: u32,
    /// The directory for the verdicts of the rows. A repeated run has another one.
    pub(crate) dir: &'c Utf8Path,
}

/// Gates combinations of an integration in its checkouts.
pub(super) struct QueueGate<'g> {
    pub(super) driver: Driver<'g>,
    /// The bundle that stands for all of them in events.
    pub(super) all: &'g Bundle,
    /// Several checkouts are in use.
    pub(super) several: bool,
}

impl CombinationGate for QueueGate<'_> {
    fn gate(
        &self,
        branch: &TargetBranch,
        job: &GateJob,
        cancel: &Cancel,
    ) -> Result<GateRuling, GateRunError> {
        let lane_env = LaneEnv::new(job.slot);
        let driver = Driver { lane_env: self.several.then_some(&lane_env), cancel, ..self.driver };
        let place = self.place_of(job.slot);
        match gate_combination(&Driver { place, ..driver }, self.all, branch, job) {
            // A verdict follows from tree and gates alone, so a lost place costs a second run
            // and no claim.
            Err(error) if is_of_place(&error) => {
                let text = format!("{}; the combination is gated here", pdca_state::chain(&error));
                driver.tell(self.all, EventKind::warning(WarningCode::HostLost, text));
                let here = Driver { place: PlaceSlot::HERE, ..driver };
                Ok(gate_combination(&here, self.all, branch, job)?)
            }
            ruling => Ok(ruling?),
        }
    }
}

impl QueueGate<'_> {
    /// Returns the place of a slot, or this machine if the place was lost.
    fn place_of(&self, slot: u32) -> PlaceSlot<'_> {
        let Some(places) = self.driver.places else { return self.driver.place };
        let place = slot.checked_sub(FIRST_SLOT).map(|slot| places.at(slot));
        place.filter(|at| !at.place.is_lost()).unwrap_or(PlaceSlot::HERE)
    }
}

/// Returns whether another machine failed, and not the gates: the same tree can be gated here.
fn is_of_place(error: &BeatError) -> bool {
    matches!(error, BeatError::Place(_))
        || matches!(error, BeatError::Elsewhere(failure) if failure.class == FailureClass::Machine)
}

/// The gates of a workspace with what can decide their verdicts.
///
/// Job key, verdict cache, seal and certificate name the gates by this alone, so a verdict counts exactly where the gates
/// that gave it would run again.
#[derive(Debug, Clone, Copy)]
pub struct GateIdentity<'a> {
    config: &'a WorkspaceConfig,
}

impl WorkspaceConfig {
    pub fn gates(&self) -> GateIdentity<'_> {
        GateIdentity { config: self }
    }
}

impl GateIdentity<'_> {
    /// Returns the identity of the gates and their environment.
    pub fn id(self) -> GateSetId {
        let gate_digest = self.config.rows.digest();
        GateSetId { gate_digest, environment_digest: self.fingerprint() }
    }

    /// Returns the gates that decide about combinations.
    pub fn of_combinations(self) -> CombinationGates {
        let rows = &self.config.rows;
        let ids = rows.combined().map(|row| row.id.clone()).collect();
        CombinationGates { id: self.id(), rows: ids, policies: flake_policies(rows) }
    }

    /// Returns the flake policies of the rows with their history.
    pub(super) fn flake_rules(self) -> FlakeRules {
        FlakeRules::load(&self.config.queue(), flake_policies(&self.config.rows))
    }

    /// Returns a digest of rows, programs and surroundings.
    pub(crate) fn fingerprint(self) -> String {
        self.config.rows.fingerprint(&self.surroundings())
    }

    /// Returns the part of the surroundings that can decide a verdict.
    pub fn surroundings(self) -> GateHost {
        GateHost {
            workspace: self.config.dirs.root.clone(),
            search_path: self.config.search_path.clone(),
            trees: self.trees(),
            facts: self.facts(),
        }
    }

    /// Returns sandbox, hydration, reset and caches in canonical form.
    pub(crate) fn facts(self) -> BTreeMap<&'static str, Vec<u8>> {
        let WorkspaceConfig { lanes, gate_sandbox, gates_may_write, gates_caches, .. } =
            self.config;
        // The values are part of the key, and no file says them.
        let passed = self.config.gates_env_pass.iter().map(|name| {
            let value = pdca_process::inherited(name);
            let digest =
                value.map(|value| sha256_hex(value.as_encoded_bytes())).unwrap_or_default();
            format!("{name} {digest}")
        });
        let passed: Vec<String> = passed.collect();
        let hydrate = serde_json::to_vec(&lanes.hydrate);
        // Canonical bytes and no `Debug` output, which may change with a compiler or a crate
        // (decision 021).
        let cache: Vec<&str> = lanes.cache.iter().map(pdca_dag::Pattern::as_str).collect();
        let reset = serde_json::to_vec(&(lanes.reset, cache));
        BTreeMap::from([
            ("sandbox", gate_sandbox.as_str().as_bytes().to_vec()),
            ("may_write", gates_may_write.join("\n").into_bytes()),
            ("env_pass", passed.join("\n").into_bytes()),
            ("caches", gates_caches.join("\n").into_bytes()),
            ("limits", pdca_process::FixedLimits::not_granted().join("\n").into_bytes()),
            ("hydrate", hydrate.unwrap_or_default()),
            ("reset", reset.unwrap_or_default()),
        ])
    }

    /// Returns the primary checkouts and the lanes. Their files count as part of a tree, not of the surroundings.
    pub(crate) fn trees(self) -> Vec<Utf8PathBuf> {
        let primaries = self.config.targets.iter().map(|target| target.path.clone());
        let trees = primaries.chain([self.config.lanes.root.clone()]);
        // Under both paths: a command may name either.
        trees.flat_map(|tree| [crate::config::real(&tree), tree]).collect()
    }
}

/// Returns the configured flake policy of each row; rows without one are left out.
fn flake_policies(rows: &Checks) -> BTreeMap<String, FlakePolicy> {
    let policy = |flaky| match flaky {
        Flaky::Confirm => None,
        Flaky::Quarantine => Some(FlakePolicy::Quarantine),
        Flaky::Fail => Some(FlakePolicy::Fail),
    };
    let rows = rows.as_slice().iter();
    rows.filter_map(|row| Some((row.id.clone(), policy(row.flaky)?))).collect()
}

/// Has the place of the driver run the rows of scope `repo` over a combination. `told` stands for it in events.
pub(super) fn gate_combination(
    cx: &Driver<'_>,
    told: &Bundle,
    branch: &TargetBranch,
    asked: &GateJob,
) -> Result<GateRuling, BeatError> {
    let (commit, tree) = (asked.commit.to_string(), asked.tree.to_string());
    // The number of the question is part of the name: a confirming run must not collect the
    // result of the first.
    let name = leg_name(&asked.run, &format!("tree+{tree:.12}"), asked.asked.saturating_add(1))?;
    let leg = Leg::Gates(GatesLeg {
        name: &name,
        target: &branch.target,
        branch: &branch.branch,
        commit: &commit,
        tree: &tree,
        slot: asked.slot,
        dir: &asked.jobs,
    });
    let report = match cx.place.place.run(cx, &leg)? {
        LegEnd::Gated { report } => report,
        LegEnd::Step | LegEnd::Published { .. } => {
            return Err(PlaceError::OtherKind { leg: name.to_string() }.into());
        }
    };
    let queue = cx.config.queue();
    let command = |row: &GateRow| {
        let row = cx.config.rows.as_slice().iter().find(|one| one.id == row.rule_id)?;
        Some(reproduction(&queue, branch, &commit, row))
    };
    let ruling = GateRuling::of(&report, &command);
    // Evidence decides nothing, so failing to keep it must not fail the gate.
    if let Err(error) = Evidence::of(&queue).keep(&tree, &ruling.red) {
        cx.warn(
            told,
            WarningCode::NotStored,
            format!("the evidence of red rows cannot be stored: {error}"),
        );
    }
    Ok(ruling)
}

/// Runs the rows of scope `repo` over a combination, in a checkout of this workspace.
pub(crate) fn gate_rows(
    cx: &Driver<'_>,
    at: &CombinationCheckout<'_>,
) -> Result<GateReport, BeatError> {
    let told = &stand_in(&cx.config.dirs.bundles, SCOPE);
    let checkout = cx.claim_for_combination(at.target, at.branch, at.commit, at.slot)?;
    let mut standing = CombinationTree::stand(cx, told, &checkout, at)?;
    let children = cx.config.locks().children();
    let mut scene = common_scene(cx, Purpose::Combined, &checkout, at, &children);
    scene.base = Some(at.commit);
    let logs = Evidence::of(&cx.config.queue()).of_tree(at.tree);
    scene.logs = Some(&logs);
    let wire = cx.watch(&checkout)?;
    let mut tell = |event| follow_gate(cx, told, event);
    let outcome = run_checks(&cx.config.rows, &scene, Some(&mut standing), cx.cancel, &mut tell);
    let outcome = outcome.map_err(|error| match error {
        GatesError::Cancelled => BeatError::Interrupted,
        other @ (GatesError::Fix { .. } | GatesError::Log { .. }) => BeatError::Gates(other),
    })?;
    tell_of_combination(cx, told, at.branch, &breaches(cx.config, &wire));
    Ok(outcome.report)
}

/// Returns the gate context for a checkout that no bundle uses.
pub(crate) fn common_scene<'s>(
    cx: &'s Driver<'_>,
    purpose: Purpose,
    checkout: &'s Checkout,
    at: &CombinationCheckout<'s>,
    children: &'s Utf8Path,
) -> GateContext<'s> {
    let mut scene = GateContext::new(purpose, &cx.config.dirs.root, at.dir);
    scene.worktree = Some(checkout.lane.path());
    scene.git_common_dir = Some(checkout.target.common_dir());
    scene.brief_base = Some(at.branch);
    scene.target = Some(&at.target.name);
    scene.run = Some(&cx.config.run);
    scene.lane = checkout.lane_env.as_ref().map(|lane_env| &lane_env.names);
    scene.sandbox = Some(row_sandbox(cx, checkout));
    scene.opened = cx.config.row_openings();
    scene.caches.clone_from(&cx.config.lanes.cache);
    scene.hold = Some(children);
    scene.max_memory = cx.config.limits.leaf_memory;
    cx.config.outfit(&mut scene);
    scene.primary = primary_view(cx, checkout);
    scene.supervisor = cx.config.supervisor.clone();
    scene
}

/// Warns about changes in the primary checkout, except for the target branch and branches of ours, which
/// another integration may move.
fn tell_of_combination(cx: &Driver<'_>, told: &Bundle, branch: &str, breaches: &[String]) {
    let own = [
        format!("ref refs/heads/{branch} "),
        format!("ref refs/remotes/{branch} "),
        "ref refs/heads/pdca/".to_owned(),
    ];
    let is_own = |line: &&String| own.iter().any(|own| line.starts_with(own));
    let others: Vec<String> = breaches.iter().filter(|line| !is_own(line)).cloned().collect();
    tell_of_checkout(cx, told, &others);
}

/// Makes rows in quarantine not block, with a note in each and a warning.
pub(crate) fn with_quarantine(
    cx: &Driver<'_>,
    bundle: &Bundle,
    outcome: GatesOutcome,
) -> GatesOutcome {
    if outcome.report.failed_gating().next().is_none() {
        return outcome;
    }
    let rules = cx.config.gates().flake_rules();
    let red = outcome.report.failed_gating().map(|row| row.rule_id.clone());
    let red: Vec<String> = red.filter(|row| rules.is_quarantined(row)).collect();
    let mut report = outcome.report;
    for row in red {
        let why = excuse(&row, &rules);
        cx.tell(
            bundle,
            EventKind::warning(WarningCode::FlakyRow, format!("{row} is red and {why}")),
        );
        report = report.with_pardon(&row, &why);
    }
    GatesOutcome { report, ..outcome }
}

/// The checkout of a combination, or of another commit that must not be changed.
pub(crate) struct CombinationTree<'g> {
    driver: &'g Driver<'g>,
    told: &'g Bundle,
    checkout: &'g Checkout,
    name: String,
    commit: String,
    tree: String,
    as_left: bool,
    further: FurtherCheckouts<'g>,
}

impl<'g> CombinationTree<'g> {
    /// Resets the checkout to the commit, unless a driver that was killed left it there.
    pub(crate) fn stand(
        driver: &'g Driver<'g>,
        told: &'g Bundle,
        checkout: &'g Checkout,
        at: &CombinationCheckout<'_>,
    ) -> Result<Self, BeatError> {
        driver.keep_idle_changes(told, checkout, false)?;
        // The directory differs for each question, so a confirming run does not find the checkout
        // "as left" by the first and starts from a reset (decision 021).
        let digest = sha256_hex(at.dir.as_str().as_bytes());
        let name = format!("{COMBINED}{}-{digest}", driver.config.dirs.mark());
        let left = checkout.owner().map_err(CheckoutError::from)?.filter(|left| left.job == name);
        let as_left = left.is_some_and(|left| left.head.as_deref() == Some(at.commit))
            && checkout.head()? == at.commit;
        if !as_left {
            driver.clear(told, checkout, &name)?;
            let head = Some(at.commit.to_owned());
            driver.set_owner(checkout, &OwnerNote { job: name.clone(), head })?;
        }
        let (commit, tree) = (at.commit.to_owned(), at.tree.to_owned());
        let further = FurtherCheckouts::of(driver, told, checkout);
        Ok(Self { driver, told, checkout, name, commit, tree, as_left, further })
    }
}

impl Tree for CombinationTree<'_> {
    fn expected(&self) -> Change {
        Change { tree: self.tree.clone(), patch_digest: None }
    }

    fn is_as_left(&self) -> bool {
        self.as_left
    }

    fn prepare(&mut self) -> Result<String, TreeFault> {
        self.as_left = false;
        let stood = self.checkout.lane.reset(&self.commit).and_then(|()| self.checkout.lane.tree());
        match stood {
            // The previous row broke the checkout, and that was already reported for that row.
            Err(error) if error.is_of_the_lane() => self.prepare_anew(),
            stood => Ok(stood?),
        }
    }

    fn prepare_anew(&mut self) -> Result<String, TreeFault> {
        self.as_left = false;
        self.driver.clear(self.told, self.checkout, &self.name)?;
        let head = Some(self.commit.clone());
        self.driver.set_owner(self.checkout, &OwnerNote { job: self.name.clone(), head })?;
        Ok(self.checkout.lane.tree()?)
    }

    fn changed(&mut self) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        Ok(self.checkout.lane.changed_tracked()?)
    }

    fn further(&mut self, number: usize) -> Vec<RowCheckout> {
        self.further.stand(&self.commit, number)
    }

    fn changed_in(&mut self, further: usize) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        self.further.changed(further)
    }

    fn propose(&mut self) -> Result<Change, TreeFault> {
        Err("a combination is not fixed".into())
    }

    fn accept(&mut self) -> Result<(), TreeFault> {
        Err("a combination is not fixed".into())
    }

    fn withdraw(&mut self) -> Result<(), TreeFault> {
        Ok(self.checkout.lane.reset(&self.commit)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_policy_about_flakes_only_where_it_names_one() {
        let rows = r#"{"checks": [
            {"id": "a", "tier": "T1", "cmd": "x"},
            {"id": "b", "tier": "T1", "cmd": "x", "flaky": "quarantine"},
            {"id": "c", "tier": "T1", "cmd": "x", "flaky": "fail"}]}"#;
        let rows: Checks = serde_json::from_str(rows).unwrap();
        let policies = flake_policies(&rows);
        assert_eq!(policies.get("a"), None);
        assert_eq!(policies.get("b"), Some(&FlakePolicy::Quarantine));
        assert_eq!(policies.get("c"), Some(&FlakePolicy::Fail));
    }
}
