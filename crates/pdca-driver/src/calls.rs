//! The record of leaf calls, and the caps on what they may cost.
//!
//! 1. Before a leaf's program starts, a header with the call's name lies beside its output.
//! 2. When it has ended, and after a crash before anything else is done with the bundle, the call becomes a record in the
//!    bundle, an event is emitted, and the header goes. A driver that dies in between does the same again: the record is
//!    kept once, under the name of the call, and the event may be emitted twice, with that name in it.
//! 3. Before the next call, the sums over the records are held against `max_cost` and `max_cost_per_issue`.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8Path;
use pdca_journal::events::WarningCode;
use pdca_leaves::{
    BoxError, Call, CallHeader, LeafConfig, LeafMode, ROLES, Trace, begin_call, forget_call,
    tries_of, try_dir,
};
use pdca_state::{
    Bundle, BundleId, CallRecord, CostTotal, InstructionsRecord, Money, chain, sha256_hex,
};

use crate::config::WorkspaceConfig;
use crate::run_bundle::Driver;
use pdca_journal::events::EventKind;

/// A cap on cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostCap {
    /// `max_cost`: all calls of a run.
    Run,
    /// `max_cost_per_issue`: all calls for a bundle, in all its attempts.
    Issue,
}

impl CostCap {
    /// The key in `[driver]`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Run => "max_cost",
            Self::Issue => "max_cost_per_issue",
        }
    }
}

/// A cap that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} spent {spent}, and its limit is {limit}", match cap { CostCap::Run => "the run", CostCap::Issue => "the issue" })]
pub struct CostReached {
    pub cap: CostCap,
    pub spent: Money,
    pub limit: Money,
}

impl CostReached {
    /// Compares a sum with a cap. A cap is reached when all of it is spent.
    pub fn of(cap: CostCap, spent: Money, limit: Option<Money>) -> Option<Self> {
        limit.filter(|limit| spent >= *limit).map(|limit| Self { cap, spent, limit })
    }
}

/// What the calls of a run cost so far, shared by all lanes.
///
/// The records in the bundles are the truth; this is their sum, read once for each run and kept up to date.
#[derive(Clone, Debug, Default)]
pub struct CostMeter(Arc<Mutex<Option<RunCost>>>);

/// The sum over the calls of one run.
#[derive(Debug)]
struct RunCost {
    run: String,
    spent: Money,
}

impl CostMeter {
    /// Returns the sum of a run, computed by `read` the first time.
    fn spent(&self, run: &str, read: impl FnOnce() -> Money) -> Money {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match sum.as_ref().filter(|sum| sum.run == run) {
            Some(sum) => sum.spent,
            None => sum.insert(RunCost { run: run.to_owned(), spent: read() }).spent,
        }
    }

    /// Forgets the sum, so that it is read again: records came from elsewhere.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Keeps a record, and adds its cost if that was not kept before.
    fn keep<E>(
        &self,
        record: &CallRecord,
        keep: impl FnOnce() -> Result<bool, E>,
    ) -> Result<(), E> {
        // Held while the record is written, so that a first `spent` reads it or this adds it, and never both.
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = keep()?;
        if let (true, Some(sum), Some(cost)) = (is_new, sum.as_mut(), record.cost)
            && record.run.as_ref() == Some(&sum.run)
        {
            sum.spent = sum.spent.plus(cost);
        }
        Ok(())
    }
}

/// Returns what the calls of a run cost, over these bundles. One that cannot be read is left out.
pub fn cost_of_run<'a>(
    config: &WorkspaceConfig,
    run: &str,
    ids: impl IntoIterator<Item = &'a BundleId>,
) -> CostTotal {
    let calls = ids.into_iter().filter_map(|id| config.dirs.bundles.bundle(id).calls().all().ok());
    let of_run = |call: &pdca_state::KeptCall| call.record.run.as_deref() == Some(run);
    let sum = |calls: Vec<pdca_state::KeptCall>| {
        CostTotal::of(calls.iter().filter(|call| of_run(call)).map(|call| &call.record))
    };
    calls.map(sum).fold(CostTotal::default(), CostTotal::plus)
}

/// Returns what the calls of unattended leaves cost that began at `since`, in seconds since 1970, or later. Calls of the runs
/// in `but` are left out.
pub fn cost_since(config: &WorkspaceConfig, since: i64, but: &BTreeSet<String>) -> CostTotal {
    let bundles = config.dirs.bundles.list().unwrap_or_default();
    let counts = |call: &pdca_state::KeptCall| {
        let is_left_out = call.record.run.as_ref().is_some_and(|run| but.contains(run));
        let role = ROLES.iter().find(|spec| spec.name == call.record.role);
        // A person who sits at the terminal pays with open eyes.
        let is_unattended = role.is_some_and(|spec| spec.called.is_unattended());
        call.record.began >= since && is_unattended && !is_left_out
    };
    let sum = |calls: Vec<pdca_state::KeptCall>| {
        CostTotal::of(calls.iter().filter(|call| counts(call)).map(|call| &call.record))
    };
    let calls = bundles.iter().filter_map(|bundle| bundle.calls().all().ok());
    calls.map(sum).fold(CostTotal::default(), CostTotal::plus)
}

/// Returns the leaves that a run calls whose cost nobody will know, by their table in the configuration; none without a
/// cap. Such a cap would never be reached.
pub fn leaves_without_cost(config: &WorkspaceConfig) -> Vec<(String, &LeafConfig)> {
    let limits = &config.limits;
    if config.force_stubs || (limits.max_cost.is_none() && limits.max_cost_per_issue.is_none()) {
        return Vec::new();
    }
    let is_silent = |leaf: &LeafConfig| leaf.mode == LeafMode::Command && !leaf.tells_cost();
    let single = ROLES.iter().filter_map(|spec| Some((spec, 0, config.leaves.of(spec.role)?)));
    let all = single.chain(config.leaves.all_listed());
    let unattended = all.filter(|(spec, _, _)| spec.called.is_unattended());
    let named = unattended.map(|(spec, place, leaf)| (spec.table(place), leaf));
    let variants = config.leaves.variants();
    let variants = variants.map(|(name, leaf)| (format!("leaves.{name}"), leaf));
    named.chain(variants).filter(|(_, leaf)| is_silent(leaf)).collect()
}

impl Driver<'_> {
    /// Returns the cap of the run, if it is reached.
    pub(crate) fn run_cost_reached(&self) -> Option<CostReached> {
        let limit = self.config.limits.max_cost?;
        let run = self.run?;
        let read = || cost_of_run(self.config, &self.config.run, &run.batch()).cost;
        CostReached::of(CostCap::Run, self.config.meter.spent(&self.config.run, read), Some(limit))
    }

    /// Records the calls that a dead driver left below the bundle's jobs. Nothing of them is alive.
    pub(crate) fn keep_left_calls(&self, bundle: &Bundle) {
        let jobs = self.config.jobs().of(bundle.id());
        let Ok(entries) = jobs.read_dir_utf8() else { return };
        for job in entries.flatten() {
            self.keep_calls(bundle, job.path());
        }
    }

    /// Records the calls of a job that came to an end.
    pub(crate) fn keep_calls(&self, bundle: &Bundle, job: &Utf8Path) {
        for dir in tries_of(job) {
            if let Err(error) = keep_call(self, bundle, &dir) {
                // Work that is paid for is not thrown away because its bill cannot be filed.
                let text = format!("the record of a call cannot be kept: {}", chain(&*error));
                self.warn(bundle, WarningCode::NotStored, text);
            }
        }
    }
}

fn keep_call(cx: &Driver<'_>, bundle: &Bundle, dir: &Utf8Path) -> Result<(), BoxError> {
    let Some(mut trace) = Trace::load(dir)? else { return Ok(()) };
    if !trace.is_void() {
        // A session that goes on may tell its sum: each dollar is counted once.
        if let Some(session) = trace.transcript.session.clone() {
            trace.take_out(bundle.calls().session(&session, &trace.header.call)?);
        }
        let (record, transcript) = trace.record(cx.config.leaves.transcript_bytes());
        keep_record(cx, bundle, record, transcript.as_deref())?;
    }
    Ok(forget_call(dir)?)
}

/// Records the calls of a job about several bundles that came to an end.
pub(crate) fn keep_shared_calls(cx: &Driver<'_>, bundles: &[Bundle], job: &Utf8Path) {
    for dir in tries_of(job) {
        if let (Err(error), Some(bundle)) = (keep_shared_call(cx, bundles, &dir), bundles.first()) {
            let text = format!("the record of a call cannot be kept: {}", chain(&*error));
            cx.warn(bundle, WarningCode::NotStored, text);
        }
    }
}

/// Records a call that was about several bundles in each of them, with its part of the cost.
fn keep_shared_call(cx: &Driver<'_>, bundles: &[Bundle], dir: &Utf8Path) -> Result<(), BoxError> {
    let Some(trace) = Trace::load(dir)? else { return Ok(()) };
    let (record, transcript) = trace.record(cx.config.leaves.transcript_bytes());
    let of = u32::try_from(bundles.len()).unwrap_or(u32::MAX);
    for (place, bundle) in (0..of).zip(bundles).filter(|_| !trace.is_void()) {
        let number = next_number(bundle);
        let name = CallRecord::transcript_name(number, &record.leaf);
        let transcript_name = record.transcript.as_ref().map(|_| name);
        let part = CallRecord { number, transcript: transcript_name, ..record.part(place, of) };
        keep_record(cx, bundle, part, transcript.as_deref())?;
    }
    Ok(forget_call(dir)?)
}

fn keep_record(
    cx: &Driver<'_>,
    bundle: &Bundle,
    record: CallRecord,
    transcript: Option<&[u8]>,
) -> Result<(), BoxError> {
    let keep = || bundle.calls().keep(&record, transcript);
    let kept = || cx.effects.perform("call-kept", keep);
    // The record before the event: a driver that dies in between emits the event again, and nothing
    // is counted twice (decision 034).
    cx.config.meter.keep(&record, kept)?;
    cx.tell(bundle, EventKind::recorded(record));
    Ok(())
}

/// The calls of one leaf, as they begin and end.
pub(crate) struct CallLog<'a> {
    cx: &'a Driver<'a>,
    bundle: &'a Bundle,
    request: &'a Call<'a>,
}

impl<'a> CallLog<'a> {
    pub(crate) fn new(cx: &'a Driver<'a>, bundle: &'a Bundle, request: &'a Call<'a>) -> Self {
        Self { cx, bundle, request }
    }

    /// Returns [`CostReached`] if a cap is reached, so that the program is not started.
    pub(crate) fn require_budget(&self) -> Result<(), BoxError> {
        let Self { cx, bundle, request } = self;
        // A person who sits at the terminal pays with open eyes.
        if request.config.interactive {
            return Ok(());
        }
        cx.keep_calls(bundle, request.job);
        if let Some(reached) = cx.run_cost_reached() {
            return Err(Box::new(reached));
        }
        let Some(limit) = cx.config.limits.max_cost_per_issue else { return Ok(()) };
        let spent = bundle.calls().cost()?.cost;
        let reached = CostReached::of(CostCap::Issue, spent, Some(limit));
        reached.map_or(Ok(()), |reached| Err(reached.into()))
    }

    /// Records what an earlier driver left in the place of this try, and announces the try.
    pub(crate) fn begin(&self, tried: u32) -> io::Result<()> {
        let Self { cx, bundle, request } = self;
        cx.keep_calls(bundle, request.job);
        begin(cx, request, tried, next_number(bundle))
    }

    /// Records the tries that have ended.
    pub(crate) fn keep(&self) {
        self.cx.keep_calls(self.bundle, self.request.job);
    }
}

/// The calls of a leaf that is about several bundles, as they begin and end.
pub(crate) struct SharedCalls<'a> {
    cx: &'a Driver<'a>,
    bundles: &'a [Bundle],
    request: Call<'a>,
}

impl<'a> SharedCalls<'a> {
    pub(crate) fn new(cx: &'a Driver<'a>, bundles: &'a [Bundle], request: &Call<'a>) -> Self {
        Self { cx, bundles, request: *request }
    }

    /// Announces a try.
    pub(crate) fn begin(&self, tried: u32) -> io::Result<()> {
        // Each bundle has a number of its own, which is known when the record is made.
        begin(self.cx, &self.request, tried, 1)
    }

    /// Records the tries that have ended.
    pub(crate) fn keep(&self) {
        keep_shared_calls(self.cx, self.bundles, self.request.job);
    }
}

fn begin(cx: &Driver<'_>, request: &Call<'_>, tried: u32, number: u32) -> io::Result<()> {
    let dir = try_dir(request.job, tried);
    let config = request.config;
    let role = request.inputs.role().as_str().to_owned();
    let agent = request.agent();
    let began = (cx.config.clock)();
    // Prices are kept with the call: those of the configuration may change before it is recorded.
    let header = CallHeader {
        call: name_of_call(cx, began, &dir),
        number,
        leaf: config.id.clone().unwrap_or_else(|| role.clone()),
        role,
        tried,
        run: Some(cx.config.run.clone()),
        began,
        agent: (!agent.is_empty()).then(|| agent.to_owned()),
        protocol: config.protocol,
        model: request.model().map(str::to_owned),
        instructions: request.instructions().map(|found| InstructionsRecord {
            path: found.path.clone(),
            commit: found.commit.clone(),
            sha256: found.digest.clone(),
        }),
        price: config.price,
        cost_per_call: config.cost_per_call.map(|dollars| dollars.0),
    };
    cx.effects.perform("call-begun", || begin_call(&dir, &header))
}

/// Returns the place of the next call among those of the attempt, from 1.
fn next_number(bundle: &Bundle) -> u32 {
    let calls = bundle.calls().all().unwrap_or_default();
    let newest = bundle.attempts().newest().unwrap_or(1);
    let number = calls.iter().filter(|call| call.attempt == newest).count();
    u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1)
}

/// Makes a name that no other call of the workspace has: a process counts its calls, and no two processes of a second
/// are the same.
fn name_of_call(cx: &Driver<'_>, began: i64, dir: &Utf8Path) -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let count = CALLS.fetch_add(1, Ordering::Relaxed);
    let (run, holder) = (&cx.config.run, &cx.config.holder);
    let process = std::process::id();
    let text = format!("{run}\n{holder}\n{process}\n{began}\n{count}\n{dir}");
    sha256_hex(text.as_bytes())[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_reached_when_all_of_it_is_spent() {
        for (spent, limit, reached) in [
            (0, None, false),
            (u64::MAX, None, false),
            (0, Some(1), false),
            (999_999, Some(1_000_000), false),
            (1_000_000, Some(1_000_000), true),
            (1_000_001, Some(1_000_000), true),
            (0, Some(0), true),
        ] {
            let limit = limit.map(Money::from_micros);
            let found = CostReached::of(CostCap::Run, Money::from_micros(spent), limit);
            assert_eq!(found.is_some(), reached, "{spent} of {limit:?}");
        }
    }

    #[test]
    fn what_is_recorded_before_the_first_look_is_not_added_to_it() {
        let meter = CostMeter::default();
        let keep = |run: &str, is_new: bool| {
            let record = serde_json::json!({
                "call": "c", "number": 1, "role": "builder", "leaf": "builder", "try": 1, "run": run,
                "began": 0, "ending": "", "protocol": "text", "cost_usd_micros": 5
            });
            let record: CallRecord = serde_json::from_value(record).unwrap();
            meter.keep(&record, || Ok::<_, io::Error>(is_new)).unwrap();
        };
        keep("a", true);
        assert_eq!(meter.spent("a", || Money::from_micros(5)).micros(), 5);
        keep("a", true);
        keep("a", false);
        keep("b", true);
        assert_eq!(meter.spent("a", || Money::ZERO).micros(), 10);
        assert_eq!(meter.spent("b", || Money::from_micros(5)).micros(), 5);
    }

    #[test]
    fn a_cap_names_the_leaves_that_tell_no_cost() {
        let table = |leaves: &str, max_cost: Option<u64>| {
            let mut config = WorkspaceConfig::new("ws", "run", || 0);
            config.leaves = toml::from_str(leaves).unwrap();
            config.limits.max_cost = max_cost.map(Money::from_micros);
            let found = leaves_without_cost(&config);
            found.into_iter().map(|(table, _)| table).collect::<Vec<_>>()
        };
        let leaf =
            |name: &str, more: &str| format!("[{name}]\nmode = 'command'\nargv = ['x']\n{more}\n");
        let codex = leaf("builder", "protocol = 'codex'");
        assert_eq!(table(&codex, None), Vec::<String>::new());
        assert_eq!(table(&codex, Some(1)), ["leaves.builder"]);
        for enough in [
            "protocol = 'claude'",
            "protocol = 'opencode'",
            "protocol = 'aider'",
            "cost_per_call = 0.1",
            "protocol = 'codex'\nprice = { input = 1, output = 2 }",
            "protocol = 'gemini'\nprice = { input = 1, output = 2 }",
        ] {
            assert_eq!(table(&leaf("builder", enough), Some(1)), Vec::<String>::new(), "{enough}");
        }
        let text = format!(
            "{}{}{}",
            leaf("reviewer", "protocol = 'claude'"),
            leaf("planner", ""),
            "[[advisory]]\nid = 'a'\nmode = 'command'\nargv = ['x']\ncost_per_call = 1\n\
             [[advisory]]\nid = 'b'\nmode = 'command'\nargv = ['x']\nprotocol = 'gemini'\n"
        );
        assert_eq!(table(&text, Some(1)), ["leaves.advisory[1]"]);
    }
}
