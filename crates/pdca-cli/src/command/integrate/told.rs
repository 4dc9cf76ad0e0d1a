//! The report of an integration, as text and JSON.

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_driver::WorkspaceConfig;
use pdca_driver::integrate::{
    ChangeState, DryRun, Held, IntegrateError, Integrated, Quarantined, QueueSettings, RedRow,
    ReturnCulprits, TargetBranch,
};
use pdca_integrate::{Light, ObjectId, RowHistory};
use pdca_state::BundleId;
use serde::Serialize;
use serde_json::Value;

use super::super::resolve::{self, Item, Row};
use super::super::signoff::ReturnedRow;
use crate::context::Context;
use crate::failure::Failure;
use crate::meeting::{after_held, merge};
use crate::report::Report;

/// The report over all branches.
#[derive(Serialize)]
pub(super) struct IntegrateReport {
    #[serde(flatten)]
    pub(super) document: Value,
    /// The text, written as each branch ended.
    #[serde(skip)]
    pub(super) page: Vec<u8>,
}

impl Report for IntegrateReport {
    const KIND: &'static str = "integrate";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        Ok(out.write_all(&self.page)?)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    target: &'a str,
    branch: &'a str,
    base: String,
    order: Vec<&'a str>,
    landed: Vec<LandedItem<'a>>,
    held: Vec<HeldItem<'a>>,
    present: Vec<&'a str>,
    references: &'a [String],
    tip: String,
    tree: String,
    gate_runs: u32,
    cached: u32,
    flakes: u32,
    /// Rows that are known to be flaky.
    flaky: Vec<FlakyItem<'a>>,
    /// Rows that were red and did not block.
    quarantined: Vec<QuarantinedItem<'a>>,
    certificates: Vec<&'a str>,
    resolutions: Vec<Row>,
    /// The bundles that were automatically sent back to Do.
    returned: Vec<&'a ReturnedRow>,
}

#[derive(Serialize)]
struct FlakyItem<'a> {
    row: &'a str,
    runs: u64,
    flakes: u64,
    rate: f64,
    last_seen: Option<&'a str>,
    trees: &'a [String],
}

#[derive(Serialize)]
struct QuarantinedItem<'a> {
    row: &'a str,
    tree: &'a str,
}

#[derive(Serialize)]
struct LandedItem<'a> {
    id: &'a str,
    commit: String,
}

#[derive(Serialize)]
struct HeldItem<'a> {
    id: &'a str,
    reason: &'static str,
    partners: Vec<&'a str>,
    rows: &'a [String],
    evidence: &'a [String],
    logs: &'a [Utf8PathBuf],
    red: &'a [RedRow],
    files: Vec<String>,
    text: String,
    next: Option<String>,
}

/// Writes what landed and what did not.
pub(super) fn told(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    front: &TargetBranch,
    settings: &QueueSettings,
    done: &Integrated,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let p = cx.out;
    let word = settings.land.done();
    for (id, commit) in &done.landed {
        writeln!(out, "{}  {}  {}", p.good(word), p.strong(id), short(*commit))?;
    }
    for held in &done.held {
        writeln!(out, "{}    {}", p.warn("held"), held.sentence())?;
        for line in crate::meeting::evidence(cx, held) {
            writeln!(out, "        {}", p.faint(line))?;
        }
    }
    for (id, by) in &done.present {
        let by = by.as_ref().map_or_else(String::new, |by| format!(", by {by}"));
        writeln!(out, "{}  what {id} does is there already{by}", p.faint("there "))?;
    }
    if done.landed.is_empty() {
        let (target, branch) = (&front.target.name, &front.branch);
        let at = format!("{target} {branch} stays at {}", short(done.base));
        writeln!(out, "{}", p.faint(at))?;
    }
    for reference in &done.references {
        let short = settings.shown(reference);
        let (tip, tree) = (self::short(done.tip), self::short(done.tree));
        writeln!(out, "{} is at {tip}, tree {tree}", p.strong(short))?;
    }
    flaky(cx, done, out)?;
    let runs = plural(done.gate_runs, "gate run");
    let known = plural(done.cached, "verdict");
    writeln!(out, "{}", p.faint(format_args!("{runs}, {known} known before")))?;
    for path in &done.certificates {
        writeln!(out, "certificate: {}", cx.show(path))?;
    }
    if settings.land.stages()
        && let Some(reference) = done.references.first()
    {
        let short = reference.trim_start_matches("refs/heads/");
        writeln!(out, "next: {}", p.accent(merge(front, short)))?;
    }
    if settings.return_culprits == ReturnCulprits::Ask {
        for held in &done.held {
            writeln!(out, "next: {}", p.accent(cx.typed(&after_held(site, held))))?;
        }
    }
    Ok(())
}

/// Writes which rows are flaky, and which of them did not count.
fn flaky(cx: &Context<'_>, done: &Integrated, out: &mut dyn Write) -> Result<(), Failure> {
    let p = cx.out;
    for (at, one) in done.quarantined.iter().enumerate() {
        if done.quarantined[..at].iter().any(|before| before.row == one.row) {
            continue;
        }
        let trees = done.quarantined.iter().filter(|other| other.row == one.row).count();
        let text = format!("{} was red over {trees} trees and did not block", one.row);
        writeln!(out, "{}  {text}", p.warn("quarantine"))?;
    }
    for (row, history) in &done.flaky {
        let (flakes, runs) = (history.flakes, history.runs);
        let rate = rate(history) * 100.0;
        let last = history.last_seen.as_deref().unwrap_or("unknown");
        let trees = history.trees.len();
        let text = format!(
            "{row} failed by mistake in {flakes} of {runs} runs ({rate:.1} %), last {last}, on {trees} trees"
        );
        writeln!(out, "{}   {text}", p.warn("flaky"))?;
    }
    Ok(())
}

fn rate(history: &RowHistory) -> f64 {
    let float = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    float(history.flakes) / float(history.runs.max(history.flakes).max(1))
}

/// Writes which bundles were automatically sent back to Do.
pub(super) fn returned(
    cx: &Context<'_>,
    returned: &[ReturnedRow],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for ReturnedRow { id, next, .. } in returned {
        let next = cx.out.accent(next);
        writeln!(out, "{}  {id} goes back to Do  {next}", cx.out.warn("returned"))?;
    }
    Ok(())
}

/// Returns the JSON of a branch whose integration failed.
pub(super) fn failed(front: &TargetBranch, error: &IntegrateError) -> Value {
    serde_json::json!({
        "target": front.target.name,
        "branch": front.branch,
        "landed": [],
        "held": [],
        "error": pdca_state::chain(error),
    })
}

/// Combines all branches into one document. Lists are joined, each item with its target and branch, and numbers
/// summed up, so that nothing is repeated; `targets` has the values that belong to one branch, which are
/// also at the top if there is only one.
pub(super) fn one_document(told: Vec<Value>) -> Value {
    let mut whole = serde_json::Map::new();
    for key in ["landed", "held", "targets"] {
        whole.insert(key.to_owned(), Value::Array(Vec::new()));
    }
    whole.insert("gate_runs".to_owned(), 0.into());
    let is_one = told.len() == 1;
    for told in told {
        let Value::Object(told) = told else { continue };
        let mut own = serde_json::Map::new();
        let place = ["target", "branch"].map(|key| (key, told.get(key).cloned()));
        for (key, value) in told {
            match value {
                Value::Array(items) => {
                    if key == "references" {
                        own.insert("reference".to_owned(), items.last().cloned().into());
                    }
                    let all = whole.entry(key).or_insert_with(|| Value::Array(Vec::new()));
                    let items = items.into_iter().map(|item| placed(item, &place));
                    if let Value::Array(all) = all {
                        all.extend(items);
                    }
                }
                Value::Number(number) => {
                    let sum = whole.get(&key).and_then(Value::as_u64).unwrap_or_default();
                    let sum = sum + number.as_u64().unwrap_or_default();
                    whole.insert(key.clone(), sum.into());
                    own.insert(key, Value::Number(number));
                }
                Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => {
                    // At the top, `error` is that of the command.
                    if key != "error" && (is_one || value.is_boolean()) {
                        whole.insert(key.clone(), value.clone());
                    }
                    own.insert(key, value);
                }
            }
        }
        if let Some(Value::Array(targets)) = whole.get_mut("targets") {
            targets.push(Value::Object(own));
        }
    }
    Value::Object(whole)
}

/// Adds target and branch to an item of a list, if it is an object.
fn placed(mut item: Value, place: &[(&str, Option<Value>)]) -> Value {
    if let Value::Object(fields) = &mut item {
        for (key, value) in place {
            if let Some(value) = value {
                // An item in a staging branch already names that branch.
                fields.entry(*key).or_insert_with(|| value.clone());
            }
        }
    }
    item
}

/// Shortens an object id.
fn short(id: ObjectId) -> String {
    id.to_hex_with_len(12).to_string()
}

fn plural(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn held_item<'a>(cx: &Context<'_>, site: Option<&WorkspaceConfig>, held: &'a Held) -> HeldItem<'a> {
    HeldItem {
        id: held.id.as_str(),
        reason: held.reason.as_str(),
        partners: held.partners.iter().map(BundleId::as_str).collect(),
        rows: &held.rows,
        evidence: &held.evidence,
        logs: &held.logs,
        red: &held.red,
        next: site.map(|site| cx.typed(&after_held(site, held))),
        files: held.conflicts.iter().map(|conflict| conflict.path.to_string()).collect(),
        text: held.sentence(),
    }
}

fn landed_item((id, commit): &(BundleId, ObjectId)) -> LandedItem<'_> {
    LandedItem { id: id.as_str(), commit: commit.to_string() }
}

fn flaky_item((row, history): &(String, RowHistory)) -> FlakyItem<'_> {
    FlakyItem {
        row,
        runs: history.runs,
        flakes: history.flakes,
        rate: rate(history),
        last_seen: history.last_seen.as_deref(),
        trees: &history.trees,
    }
}

fn quarantined_item(one: &Quarantined) -> QuarantinedItem<'_> {
    QuarantinedItem { row: &one.row, tree: &one.tree }
}

/// Returns the JSON of one branch.
pub(super) fn document(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    front: &TargetBranch,
    done: &Integrated,
    resolved: &[Item],
    returned: &[ReturnedRow],
) -> Result<Value, Failure> {
    let is_of_it = |id: &BundleId| done.held.iter().any(|held| held.id == *id);
    let of_it = |item: &&Item| is_of_it(&item.told.id);
    let returned: Vec<&ReturnedRow> = returned.iter().filter(|row| is_of_it(&row.id)).collect();
    let goes_on = |held: &Held| returned.iter().find(|row| row.id == held.id);
    let held = done.held.iter().map(|held| {
        let item = held_item(cx, Some(site), held);
        let next = goes_on(held).map(|row| row.next.clone());
        HeldItem { next: next.or(item.next.clone()), ..item }
    });
    let document = Document {
        target: &front.target.name,
        branch: &front.branch,
        base: done.base.to_string(),
        order: done.order.iter().map(BundleId::as_str).collect(),
        landed: done.landed.iter().map(landed_item).collect(),
        held: held.collect(),
        present: done.present.iter().map(|(id, _)| id.as_str()).collect(),
        references: &done.references,
        tip: done.tip.to_string(),
        tree: done.tree.to_string(),
        gate_runs: done.gate_runs,
        cached: done.cached,
        flakes: done.flakes,
        flaky: done.flaky.iter().map(flaky_item).collect(),
        quarantined: done.quarantined.iter().map(quarantined_item).collect(),
        certificates: done.certificates.iter().map(|path| path.as_str()).collect(),
        resolutions: resolve::rows(resolved.iter().filter(of_it)),
        returned,
    };
    Ok(serde_json::to_value(&document)?)
}

#[derive(Serialize)]
struct RehearsalDocument<'a> {
    dry_run: bool,
    target: &'a str,
    branch: &'a str,
    base: String,
    order: Vec<&'a str>,
    would_land: Vec<LandedItem<'a>>,
    would_hold: Vec<HeldItem<'a>>,
    present: Vec<&'a str>,
    tip: String,
    tree: String,
    base_verdict: Option<&'static str>,
    verdict: Option<&'static str>,
}

/// Writes a dry run.
pub(super) fn rehearsed(
    cx: &Context<'_>,
    front: &TargetBranch,
    said: &DryRun,
    out: &mut dyn Write,
) -> Result<Value, Failure> {
    let document = RehearsalDocument {
        dry_run: true,
        target: &front.target.name,
        branch: &front.branch,
        base: said.base.to_string(),
        order: said.order.iter().map(BundleId::as_str).collect(),
        would_land: said.landing.iter().map(landed_item).collect(),
        would_hold: said.held.iter().map(|held| held_item(cx, None, held)).collect(),
        present: said.present.iter().map(|(id, _)| id.as_str()).collect(),
        tip: said.tip.to_string(),
        tree: said.tree.to_string(),
        base_verdict: said.base_verdict.map(light),
        verdict: said.verdict.map(light),
    };
    let p = cx.out;
    let order: Vec<&str> = said.order.iter().map(BundleId::as_str).collect();
    let (target, branch) = (&front.target.name, &front.branch);
    let base = short(said.base);
    writeln!(out, "{target} {branch} is at {base}; the order is {}", order.join(" "))?;
    for (id, commit) in &said.landing {
        writeln!(out, "{}  {id} as {}", p.good("would land"), short(*commit))?;
    }
    for held in &said.held {
        writeln!(out, "{}  {}", p.warn("would hold"), held.sentence())?;
    }
    let known = |light: Option<Light>| match light {
        Some(Light::Green) => "known to be green",
        Some(Light::Red) => "known to be red",
        None => "to be gated",
    };
    writeln!(out, "the branch by itself is {}", known(said.base_verdict))?;
    writeln!(out, "tree {} is {}", short(said.tree), known(said.verdict))?;
    Ok(serde_json::to_value(&document)?)
}

fn light(light: Light) -> &'static str {
    match light {
        Light::Green => "green",
        Light::Red => "red",
    }
}

/// Writes that the accepted changes already wait in a staging branch.
pub(super) fn waits(
    cx: &Context<'_>,
    front: &TargetBranch,
    out: &mut dyn Write,
) -> Result<Value, Failure> {
    let staged = front.changes.iter().filter_map(|change| match &change.standing {
        ChangeState::Staged { branch, .. } => Some((change.bundle.id(), branch)),
        ChangeState::Unsealed
        | ChangeState::Sealed(_)
        | ChangeState::Landed { .. }
        | ChangeState::Reverted { .. }
        | ChangeState::Drifted { .. } => None,
    });
    let staged: Vec<_> = staged.collect();
    for (id, branch) in &staged {
        writeln!(out, "{}  {id} in {branch}", cx.out.warn("waits"))?;
    }
    if let Some((_, branch)) = staged.first() {
        writeln!(out, "next: {}", cx.out.accent(merge(front, branch)))?;
    }
    let waiting = staged
        .iter()
        .map(|(id, branch)| serde_json::json!({ "id": id.as_str(), "branch": branch }));
    Ok(serde_json::json!({
        "target": front.target.name,
        "branch": front.branch,
        "landed": [],
        "held": [],
        "waiting": waiting.collect::<Vec<_>>(),
        "tip": front.tip.to_string(),
        "gate_runs": 0,
    }))
}

/// Writes that there is nothing to integrate.
pub(super) fn nothing(
    cx: &Context<'_>,
    fronts: &[TargetBranch],
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let landed = fronts.iter().flat_map(|front| &front.changes).count();
    let text = if landed == 0 {
        "nothing is accepted that could land; `pdca queue` shows what waits for you"
    } else {
        "everything that is accepted has landed"
    };
    cx.note(err, text)
}
