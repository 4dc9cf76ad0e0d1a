//! Sentences about rivals, dependencies and durations, and wrapped lists of ids.

use pdca_dag::{Edge, Rivalry};
use pdca_driver::Exhausted;
use pdca_state::BundleId;

use crate::context::Context;

use crate::explain::rejection::place;

/// Renders `the builder failed 3 times, last: exit status 1`.
pub(crate) fn failed(one: &Exhausted) -> String {
    let failure = &one.failure;
    let times = if failure.times == 1 { "once" } else { &format!("{} times", failure.times) };
    format!("the {} failed {times}, last: {}", failure.beat, failure.why)
}

/// Describes why two bundles are never in flight together.
pub(crate) fn apart(a: &BundleId, b: &BundleId, rivalry: &Rivalry) -> String {
    match rivalry {
        Rivalry::Conflict { .. } => format!("{a} and {b} conflict"),
        Rivalry::Overlap { witness, .. } => format!("{a} and {b} both can write `{witness}`"),
    }
}

/// Describes the declarations behind a rivalry.
pub(crate) fn evidence(rivalry: &Rivalry, cx: &Context<'_>) -> String {
    match rivalry {
        Rivalry::Conflict { place: at } => {
            format!("declared in {}", place(at, cx).show(&cx.env.cwd))
        }
        Rivalry::Overlap { globs: (a, b), .. } if a == b => format!("`{a}` in both"),
        Rivalry::Overlap { globs: (a, b), .. } => format!("`{a}` meets `{b}`"),
    }
}

/// Describes a dependency, with its position.
pub(crate) fn dependency(edge: &Edge, cx: &Context<'_>) -> String {
    let at = place(&edge.place, cx).show(&cx.env.cwd);
    format!("{} depends on {} ({at})", edge.dependant, edge.prerequisite)
}

/// Formats a duration: `45 s`, `3 min`, `2 h 5 min`, `3 days`.
pub(crate) fn duration(span: std::time::Duration) -> String {
    let seconds = span.as_secs();
    match (seconds, seconds / 60, seconds / 3600) {
        (0, ..) => format!("{} ms", span.as_millis()),
        (seconds, 0, _) => format!("{seconds} s"),
        (_, minutes, 0) => format!("{minutes} min"),
        (_, minutes, hours @ ..48) => match minutes % 60 {
            0 => format!("{hours} h"),
            minutes => format!("{hours} h {minutes} min"),
        },
        (.., hours) => format!("{} days", hours / 24),
    }
}

/// Formats a size.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut tenths = u128::from(bytes) * 10;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    match (unit, tenths) {
        (0, _) => format!("{bytes} B"),
        (_, 0..100) => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        (_, _) => format!("{} {}", tenths / 10, UNITS[unit]),
    }
}

/// Formats a duration in one unit.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Wraps words into lines of at most `width` columns.
pub(crate) fn wrapped<'a>(
    words: impl IntoIterator<Item = &'a str>,
    separator: &str,
    width: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line)
                if (line.chars().count() + separator.chars().count() + word.chars().count())
                    <= width =>
            {
                line.push_str(separator);
                line.push_str(word);
            }
            Some(line) => {
                line.push_str(separator.trim_end());
                lines.push(word.to_owned());
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Describes a bundle that is split before anything starts: `36: 36-parser starts now, 36-writer after 41`.
pub(crate) fn due_split(split: &pdca_driver::DueSplit) -> String {
    let joined = |ids: &[BundleId]| ids.iter().map(BundleId::as_str).collect::<Vec<_>>().join(", ");
    let mut all = Vec::new();
    match split.ready.as_slice() {
        [] => {}
        [one] => all.push(format!("{one} starts now")),
        many => all.push(format!("{} start now", joined(many))),
    }
    for part in &split.waiting {
        let id = &part.id;
        all.push(match part.waits_for.as_slice() {
            [] => format!("{id} follows"),
            on => format!("{id} after {}", joined(on)),
        });
    }
    format!("{}: {}", split.id, all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn ids_are_wrapped_between_words() {
        assert_eq!(wrapped(["12", "345", "6"], ", ", 8), ["12, 345,", "6"]);
        assert_eq!(wrapped(["1", "2"], " → ", 3), ["1 →", "2"]);
        assert!(wrapped([], ", ", 8).is_empty());
    }
}
