//! What came of an integration, for a person and for a script.

use std::io::Write;

use pdca_driver::integrate::{Front, Held, Integrated, Land, Rehearsal, Settings, Standing};
use pdca_integrate::{Light, ObjectId};
use pdca_state::BundleId;
use serde::Serialize;

use super::super::resolve::{self, Item, Row};
use crate::context::Context;
use crate::failure::Failure;

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
    certificates: Vec<&'a str>,
    resolutions: Vec<Row>,
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
    files: Vec<String>,
    text: String,
}

/// Tells what landed and what did not.
pub(super) fn told(
    cx: &Context<'_>,
    front: &Front,
    settings: &Settings,
    done: &Integrated,
    resolved: &[Item],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if cx.globals.json {
        return cx.emit_json(out, "integrate", &document(front, done, resolved));
    }
    let p = cx.out;
    let word = match settings.land {
        Land::Target => "landed",
        Land::Branch => "staged",
        Land::Push => "pushed",
    };
    for (id, commit) in &done.landed {
        writeln!(out, "{}  {}  {}", p.good(word), p.strong(id), short(*commit))?;
    }
    for held in &done.held {
        writeln!(out, "{}    {}", p.warn("held"), held.sentence())?;
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
    let runs = plural(done.gate_runs, "gate run");
    let known = plural(done.cached, "verdict");
    writeln!(out, "{}", p.faint(format_args!("{runs}, {known} known before")))?;
    for path in &done.certificates {
        writeln!(out, "certificate: {}", cx.show(path))?;
    }
    if settings.land == Land::Branch
        && let Some(reference) = done.references.first()
    {
        let short = reference.trim_start_matches("refs/heads/");
        let path = cx.show(&front.target.path);
        writeln!(out, "next: git -C {path} merge --ff-only {short}")?;
    }
    Ok(())
}

/// An id as people read it.
fn short(id: ObjectId) -> String {
    id.to_hex_with_len(12).to_string()
}

fn plural(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn held_item(held: &Held) -> HeldItem<'_> {
    HeldItem {
        id: held.id.as_str(),
        reason: held.reason.as_str(),
        partners: held.partners.iter().map(BundleId::as_str).collect(),
        rows: &held.rows,
        files: held.conflicts.iter().map(|conflict| conflict.path.to_string()).collect(),
        text: held.sentence(),
    }
}

fn landed_item((id, commit): &(BundleId, ObjectId)) -> LandedItem<'_> {
    LandedItem { id: id.as_str(), commit: commit.to_string() }
}

fn document<'a>(front: &'a Front, done: &'a Integrated, resolved: &[Item]) -> Document<'a> {
    let of_it = |item: &&Item| done.held.iter().any(|held| held.id == item.told.id);
    Document {
        target: &front.target.name,
        branch: &front.branch,
        base: done.base.to_string(),
        order: done.order.iter().map(BundleId::as_str).collect(),
        landed: done.landed.iter().map(landed_item).collect(),
        held: done.held.iter().map(held_item).collect(),
        present: done.present.iter().map(|(id, _)| id.as_str()).collect(),
        references: &done.references,
        tip: done.tip.to_string(),
        tree: done.tree.to_string(),
        gate_runs: done.gate_runs,
        cached: done.cached,
        flakes: done.flakes,
        certificates: done.certificates.iter().map(|path| path.as_str()).collect(),
        resolutions: resolve::rows(resolved.iter().filter(of_it)),
    }
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

/// Tells what an integration would do.
pub(super) fn rehearsed(
    cx: &Context<'_>,
    front: &Front,
    said: &Rehearsal,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if cx.globals.json {
        let document = RehearsalDocument {
            dry_run: true,
            target: &front.target.name,
            branch: &front.branch,
            base: said.base.to_string(),
            order: said.order.iter().map(BundleId::as_str).collect(),
            would_land: said.landing.iter().map(landed_item).collect(),
            would_hold: said.held.iter().map(held_item).collect(),
            present: said.present.iter().map(|(id, _)| id.as_str()).collect(),
            tip: said.tip.to_string(),
            tree: said.tree.to_string(),
            base_verdict: said.base_verdict.map(light),
            verdict: said.verdict.map(light),
        };
        return cx.emit_json(out, "integrate", &document);
    }
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
    Ok(())
}

fn light(light: Light) -> &'static str {
    match light {
        Light::Green => "green",
        Light::Red => "red",
    }
}

/// Tells that what is accepted waits in a branch already.
pub(super) fn waits(cx: &Context<'_>, front: &Front, out: &mut dyn Write) -> Result<(), Failure> {
    let staged = front.changes.iter().filter_map(|change| match &change.standing {
        Standing::Staged { branch, .. } => Some((change.bundle.id(), branch)),
        Standing::Unsealed
        | Standing::Sealed(_)
        | Standing::Landed { .. }
        | Standing::Drifted { .. } => None,
    });
    let staged: Vec<_> = staged.collect();
    if cx.globals.json {
        let waiting: Vec<_> = staged
            .iter()
            .map(|(id, branch)| serde_json::json!({ "id": id.as_str(), "branch": branch }))
            .collect();
        let body = serde_json::json!({
            "target": front.target.name,
            "branch": front.branch,
            "landed": [],
            "held": [],
            "waiting": waiting,
            "tip": front.tip.to_string(),
            "gate_runs": 0,
        });
        return cx.emit_json(out, "integrate", &body);
    }
    for (id, branch) in &staged {
        writeln!(out, "{}  {id} in {branch}", cx.out.warn("waits"))?;
    }
    if let Some((_, branch)) = staged.first() {
        let path = cx.show(&front.target.path);
        writeln!(out, "next: git -C {path} merge --ff-only {branch}")?;
    }
    Ok(())
}

/// Tells that there is nothing to integrate.
pub(super) fn nothing(
    cx: &Context<'_>,
    fronts: &[Front],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    if cx.globals.json {
        let body = serde_json::json!({ "landed": [], "held": [], "gate_runs": 0 });
        return cx.emit_json(out, "integrate", &body);
    }
    let landed = fronts.iter().flat_map(|front| &front.changes).count();
    let text = if landed == 0 {
        "nothing is accepted that could land; `pdca queue` shows what waits for you"
    } else {
        "everything that is accepted has landed"
    };
    cx.note(err, text)
}
