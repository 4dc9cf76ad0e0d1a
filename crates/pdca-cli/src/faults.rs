//! Fault injection for the end-to-end suites, switched on by environment variables.

use std::sync::atomic::{AtomicU64, Ordering};

use pdca_driver::{Effects, Point, Unwatched, When};

use crate::context::Context;
use crate::failure::Failure;

/// Fault injection for the end-to-end suite: at which effect something befalls the process.
enum At {
    /// The k-th point of the run, from 1.
    Point(u64),
    /// The n-th time an effect of that name is about to happen, from 1.
    Effect(String, u64),
}

impl At {
    /// `@k` or `name[:n]`.
    fn parse(text: &str) -> Option<Self> {
        if let Some(k) = text.strip_prefix('@') {
            return k.parse().ok().map(Self::Point);
        }
        match text.rsplit_once(':') {
            Some((name, n)) => Some(Self::Effect(name.to_owned(), n.parse().ok()?)),
            None => Some(Self::Effect(text.to_owned(), 1)),
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
            At::Effect(name, n) if point.name == name && point.when == When::Before => *n,
            At::Effect(..) => return,
        };
        if SEEN.fetch_add(1, Ordering::SeqCst) + 1 == last {
            (self.befall)();
        }
    }
}

/// What may befall a driver in tests of recovery: it is killed, or stands still until it is continued.
const FAULTS: [(&str, fn()); 2] = [
    ("PDCA_CRASH_AT", || pdca_process::end_self_with_sigkill()),
    ("PDCA_STOP_AT", pdca_process::stop_self),
];

/// Returns what `PDCA_CRASH_AT` or `PDCA_STOP_AT` (each `@k` or `name[:n]`) asks for.
pub(crate) fn effects(cx: &Context<'_>) -> Result<Box<dyn Effects + Send>, Failure> {
    for (name, befall) in FAULTS {
        let Some(text) = cx.ambient.env_text(name) else { continue };
        let at = At::parse(text).ok_or_else(|| {
            Failure::usage(format!("{name} is `{text}`"))
                .hint("write `@k` or `name[:n]`, or unset it")
        })?;
        return Ok(Box::new(Fault { at, befall }));
    }
    Ok(Box::new(Unwatched))
}
