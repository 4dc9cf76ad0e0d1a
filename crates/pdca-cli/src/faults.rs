//! Fault injection and effect traces for the end-to-end suites, switched on by environment variables.

use std::io::Write as _;
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

/// Appends the name of every effect to a file before it happens, so that a test can compare orders.
struct Trace(fs_err::File);

impl Effects for Trace {
    fn reached(&self, point: Point) {
        if point.when == When::Before {
            let mut file = self.0.file();
            // One write per line: lanes append at the same time.
            file.write_all(format!("{}\n", point.name).as_bytes())
                .expect("because a trace that lacks a line proves nothing");
        }
    }
}

/// Returns what `PDCA_EFFECTS_TO=FILE`, `PDCA_CRASH_AT` or `PDCA_STOP_AT` (each `@k` or `name[:n]`) asks for.
pub(crate) fn effects(cx: &Context<'_>) -> Result<Box<dyn Effects + Send>, Failure> {
    if let Some(path) = cx.ambient.env_text("PDCA_EFFECTS_TO") {
        let file = fs_err::OpenOptions::new().append(true).create(true).open(path)?;
        return Ok(Box::new(Trace(file)));
    }
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
