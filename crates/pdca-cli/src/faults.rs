//! Fault injection: at a chosen effect the process is killed, stands still or panics, for the demo and for tests of recovery.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pdca_driver::{EffectSide, Effects, Point, Unwatched};

use crate::context::Context;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// At which effect something befalls the process.
enum At {
    /// The k-th point of the run, from 1.
    Point(u64),
    /// The n-th time an effect of that name is about to happen, or has happened, from 1.
    Effect(String, EffectSide, u64),
}

impl At {
    /// `@k`, `name[:n]`, or `>name[:n]` for after it.
    fn parse(text: &str) -> Option<Self> {
        if let Some(k) = text.strip_prefix('@') {
            return k.parse().ok().map(Self::Point);
        }
        let (when, text) = match text.strip_prefix('>') {
            Some(text) => (EffectSide::After, text),
            None => (EffectSide::Before, text),
        };
        match text.rsplit_once(':') {
            Some((name, n)) => Some(Self::Effect(name.to_owned(), when, n.parse().ok()?)),
            None => Some(Self::Effect(text.to_owned(), when, 1)),
        }
    }
}

struct Fault {
    at: At,
    befall: fn(),
}

/// How many points the process has come to. A command may have several drivers, one after the other.
static SEEN: AtomicU64 = AtomicU64::new(0);

impl Effects for Fault {
    fn reached(&self, point: Point) {
        let last = match &self.at {
            At::Point(k) => *k,
            At::Effect(name, when, n) if point.name == name && point.when == *when => *n,
            At::Effect(..) => return,
        };
        if SEEN.fetch_add(1, Ordering::SeqCst) + 1 == last {
            (self.befall)();
        }
    }
}

/// What may befall a driver in tests of recovery: it is killed, stands still until it is continued, or panics.
const FAULTS: [(&str, fn()); 3] =
    [("PDCA_CRASH_AT", kill), ("PDCA_STOP_AT", pdca_process::stop_self), ("PDCA_PANIC_AT", panic)];

#[expect(clippy::panic, reason = "this is the fault")]
fn panic() {
    panic!("asked for by PDCA_PANIC_AT");
}

/// Lets a test see whether the terminal is usable after a panic.
///
/// # Panics
/// At the key that `PDCA_PANIC_KEY` names, in the tests' binary alone.
pub(crate) fn panic_at_key(env: &ProcessEnv, key: char) {
    let fatal = env.var_text("PDCA_PANIC_KEY").filter(|_| env.may_inject_faults);
    let is_fatal = fatal.is_some_and(|fatal| fatal.starts_with(key));
    assert!(!is_fatal, "asked for by PDCA_PANIC_KEY");
}

/// Returns the time in which a decision can be undone. A test that acts within it gives itself all the time it needs, with
/// `PDCA_UNDO_SECS` in the tests' binary.
pub(crate) fn undo_window(env: &ProcessEnv, usual: Duration) -> Duration {
    let longer = env.var_text("PDCA_UNDO_SECS").filter(|_| env.may_inject_faults);
    longer.and_then(|text| text.parse().ok()).map_or(usual, Duration::from_secs)
}

fn kill() {
    pdca_process::end_self_with_sigkill();
}

/// Returns what `--crash-at`, `PDCA_CRASH_AT`, `PDCA_STOP_AT` or `PDCA_PANIC_AT` (each `@k` or `[>]name[:n]`) asks for.
///
/// The flag is how `pdca demo --crash` starts its child. The environment is read in the tests' binary alone: what a
/// shell happens to export never stops the driver of a user.
pub(crate) fn effects(cx: &Context<'_>) -> Result<Box<dyn Effects + Send>, Failure> {
    let from_environment = |(name, befall): (&'static str, fn())| {
        cx.env.var_text(name).map(|text| (name, text, befall))
    };
    let asked: Option<(&str, &str, fn())> = match &cx.globals.crash_at {
        Some(text) => Some(("--crash-at", text, kill)),
        None if cx.env.may_inject_faults => FAULTS.into_iter().find_map(from_environment),
        None => None,
    };
    let Some((name, text, befall)) = asked else { return Ok(Box::new(Unwatched)) };
    let at = At::parse(text).ok_or_else(|| {
        Failure::usage(format!("{name} is `{text}`"))
            .hint("write `@k` or `name[:n]`, or leave it out")
    })?;
    Ok(Box::new(Fault { at, befall }))
}
