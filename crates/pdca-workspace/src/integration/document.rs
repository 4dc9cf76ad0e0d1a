//! The JSON of an integration: the lists of all branches, each item with its target and branch.

use camino::Utf8PathBuf;
use pdca_driver::integrate::{HeldChange, HeldReason, RedRow};
use pdca_integrate::{Light, ObjectId, Quarantined, RemoteDrift, RowHistory};
use pdca_state::BundleId;
use serde::{Serialize, Serializer};

use super::report::{
    BranchIntegration, BranchOutcome, Integration, ResolvedConflict, ReturnedChange,
};

/// Returns the share of runs in which a row failed by mistake.
pub fn flake_rate(history: &RowHistory) -> f64 {
    let float = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    float(history.flakes) / float(history.runs.max(history.flakes).max(1))
}

/// All branches in one document. The lists are those of all of them, each item with its target and branch,
/// and the numbers their sums, so that nothing is said twice.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document<'a> {
    dry_run: bool,
    /// The facts of each branch.
    targets: Vec<Target<'a>>,
    /// The same at the top, where there is one branch alone.
    #[serde(flatten)]
    alone: Option<BranchFacts<'a>>,
    order: Vec<&'a BundleId>,
    /// The changes that this integration brought into the branch, into its staging branch, or to its remote.
    landed: Vec<Placed<'a, LandedItem<'a>>>,
    /// Those of them that are in the staging branch alone, and wait to be merged.
    staged: Vec<Placed<'a, LandedItem<'a>>>,
    held: Vec<Placed<'a, HeldItem<'a>>>,
    would_land: Vec<Placed<'a, LandedItem<'a>>>,
    would_hold: Vec<Placed<'a, HeldItem<'a>>>,
    /// Changes whose effect was there already.
    present: Vec<&'a BundleId>,
    /// The refs that moved.
    references: Vec<&'a str>,
    gate_runs: u32,
    /// The number of verdicts that were known before.
    cached: u32,
    /// The number of reds that were not red again.
    flakes: u32,
    /// Rows that are known to have failed by mistake.
    flaky: Vec<Placed<'a, FlakyItem<'a>>>,
    /// Rows that were red and did not block.
    quarantined: Vec<Placed<'a, &'a Quarantined>>,
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    certificates: Vec<&'a Utf8PathBuf>,
    /// The conflicts that a resolver was asked about.
    resolutions: Vec<Placed<'a, &'a ResolvedConflict>>,
    /// The held changes that were sent back to Do automatically.
    returned: Vec<Placed<'a, &'a ReturnedChange>>,
    /// The changes that wait in a staging branch already.
    waiting: Vec<WaitingItem<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Target<'a> {
    #[serde(flatten)]
    facts: BranchFacts<'a>,
    gate_runs: u32,
    cached: u32,
    flakes: u32,
    /// The reason why its integration did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BranchFacts<'a> {
    target: &'a str,
    branch: &'a str,
    /// The commit that the branch was at.
    base: Option<String>,
    tip: Option<String>,
    tree: Option<String>,
    /// The ref that moved.
    reference: Option<&'a str>,
    /// The staging branch of another workspace that the changes stand on, not merged yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    staged_on: Option<&'a str>,
    /// The branch compared with that of its remote, if it follows one.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<RemoteItem<'a>>,
    /// With `--dry-run`: the known verdict about the branch by itself.
    base_verdict: Option<Light>,
    /// With `--dry-run`: the known verdict about the tree.
    verdict: Option<Light>,
}

#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RemoteItem<'a> {
    /// The remote's branch, such as `origin/main`.
    name: &'a str,
    /// Its tip, as far as it is known.
    tip: Option<String>,
    drift: RemoteDrift,
    /// The message of a remote that did not answer.
    silent: Option<&'a str>,
    /// What a person should know, in a sentence.
    text: Option<String>,
}

/// An item of a list that is about all branches.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Placed<'a, T> {
    target: &'a str,
    branch: &'a str,
    #[serde(flatten)]
    item: T,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WaitingItem<'a> {
    target: &'a str,
    /// The staging branch.
    branch: &'a str,
    id: &'a BundleId,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FlakyItem<'a> {
    row: &'a str,
    runs: u64,
    flakes: u64,
    rate: f64,
    last_seen: Option<&'a str>,
    trees: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LandedItem<'a> {
    id: &'a BundleId,
    commit: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HeldItem<'a> {
    id: &'a BundleId,
    reason: HeldReason,
    partners: &'a [BundleId],
    /// The changes that could not be left out of the red combination and are not to blame.
    context: &'a [BundleId],
    rows: &'a [String],
    evidence: &'a [String],
    #[cfg_attr(feature = "schema", schemars(with = "&'a [String]"))]
    logs: &'a [Utf8PathBuf],
    red: &'a [RedRow],
    files: Vec<String>,
    text: String,
    next: Option<&'a str>,
}

impl Serialize for Integration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document().serialize(serializer)
    }
}

impl Integration {
    fn document(&self) -> Document<'_> {
        let mut document = Document { dry_run: self.dry_run, ..Document::default() };
        for branch in &self.branches {
            branch.add_to(&mut document, &self.resolved, &self.returned);
            if let Some(done) = branch.integrated().filter(|_| self.settings.land.stages()) {
                document.staged.extend(branch.placed(done.landed.iter().map(landed_item)));
            }
        }
        if let [one] = document.targets.as_slice() {
            document.alone = Some(one.facts.clone());
        }
        document
    }
}

impl BranchIntegration {
    fn add_to<'a>(
        &'a self,
        document: &mut Document<'a>,
        resolved: &'a [ResolvedConflict],
        returned: &'a [ReturnedChange],
    ) {
        let facts = BranchFacts {
            target: &self.target,
            branch: &self.branch,
            base: None,
            tip: None,
            tree: None,
            reference: None,
            staged_on: None,
            remote: None,
            base_verdict: None,
            verdict: None,
        };
        let mut own = Target { facts, gate_runs: 0, cached: 0, flakes: 0, error: None };
        match &self.outcome {
            BranchOutcome::Done { done, next, .. } => {
                own.facts.base = Some(done.base.to_string());
                own.facts.tip = Some(done.tip.to_string());
                own.facts.tree = Some(done.tree.to_string());
                own.facts.reference = done.references.last().map(String::as_str);
                own.facts.staged_on = done.staged_on.as_deref();
                own.facts.remote = done.remote.as_ref().map(|remote| RemoteItem {
                    name: &remote.name,
                    tip: remote.at.map(|at| at.to_string()),
                    drift: remote.drift,
                    silent: remote.silent.as_deref(),
                    text: remote.remark(&self.branch),
                });
                (own.gate_runs, own.cached, own.flakes) =
                    (done.gate_runs, done.cached, done.flakes);
                let is_of_it = |id: &BundleId| done.held.iter().any(|held| held.id == *id);
                let returned = returned.iter().filter(|row| is_of_it(&row.id));
                let goes_on = |held: &HeldChange| returned.clone().find(|row| row.id == held.id);
                let held = done.held.iter().zip(next).map(|(held, next)| {
                    let next = goes_on(held).map_or(next, |row| &row.next);
                    held_item(held, Some(next))
                });
                document.order.extend(&done.order);
                document.landed.extend(self.placed(done.landed.iter().map(landed_item)));
                document.held.extend(self.placed(held));
                document.present.extend(done.present.iter().map(|(id, _)| id));
                document.references.extend(done.references.iter().map(String::as_str));
                document.gate_runs += done.gate_runs;
                document.cached += done.cached;
                document.flakes += done.flakes;
                document.flaky.extend(self.placed(done.flaky.iter().map(flaky_item)));
                document.quarantined.extend(self.placed(&done.quarantined));
                document.certificates.extend(&done.certificates);
                let resolved = resolved.iter().filter(|item| is_of_it(&item.report.id));
                document.resolutions.extend(self.placed(resolved));
                document.returned.extend(self.placed(returned));
            }
            BranchOutcome::DryRun(predicted) => {
                own.facts.base = Some(predicted.base.to_string());
                own.facts.tip = Some(predicted.tip.to_string());
                own.facts.tree = Some(predicted.tree.to_string());
                (own.facts.base_verdict, own.facts.verdict) =
                    (predicted.base_verdict, predicted.verdict);
                document.order.extend(&predicted.order);
                document.would_land.extend(self.placed(predicted.landing.iter().map(landed_item)));
                let held = predicted.held.iter().map(|held| held_item(held, None));
                document.would_hold.extend(self.placed(held));
                document.present.extend(predicted.present.iter().map(|(id, _)| id));
            }
            BranchOutcome::Waits { tip, staged, .. } => {
                own.facts.tip = Some(tip.to_string());
                let target = &self.target;
                let waiting = staged.iter().map(|(id, branch)| WaitingItem { target, branch, id });
                document.waiting.extend(waiting);
            }
            BranchOutcome::Failed(error) => own.error = Some(error),
        }
        document.targets.push(own);
    }

    fn placed<T>(&self, items: impl IntoIterator<Item = T>) -> impl Iterator<Item = Placed<'_, T>> {
        let (target, branch) = (self.target.as_str(), self.branch.as_str());
        items.into_iter().map(move |item| Placed { target, branch, item })
    }
}

fn held_item<'a>(held: &'a HeldChange, next: Option<&'a String>) -> HeldItem<'a> {
    HeldItem {
        id: &held.id,
        reason: held.reason,
        partners: &held.partners,
        context: &held.context,
        rows: &held.rows,
        evidence: &held.evidence,
        logs: &held.logs,
        red: &held.red,
        files: held.conflicts.iter().map(|conflict| conflict.path.to_string()).collect(),
        text: held.sentence(),
        next: next.map(String::as_str),
    }
}

fn landed_item((id, commit): &(BundleId, ObjectId)) -> LandedItem<'_> {
    LandedItem { id, commit: commit.to_string() }
}

fn flaky_item((row, history): &(String, RowHistory)) -> FlakyItem<'_> {
    FlakyItem {
        row,
        runs: history.runs,
        flakes: history.flakes,
        rate: flake_rate(history),
        last_seen: history.last_seen.as_deref(),
        trees: &history.trees,
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Integration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Integration".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Document::<'static>::json_schema(generator)
    }
}
