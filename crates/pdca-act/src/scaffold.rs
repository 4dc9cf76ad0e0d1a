//! The part of a log entry that can be written without judgment.

use std::fmt::Write as _;

use pdca_state::{BundleId, State};

use crate::index::Index;
use crate::log::{SEEN_IN, SIGNAL};
use crate::pattern::SignalFate;
use crate::wording::one_line;

/// The maximum number of patterns that become signals, and of items in one line.
const MAX_SIGNALS: usize = 10;
const MAX_LISTED: usize = 20;
/// The maximum length of a quoted text, in characters.
const MAX_QUOTE: usize = 240;

/// The paths of the parts of the process, shown where a delta is to be filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaffoldPaths<'a> {
    pub template: &'a str,
    /// The configuration, with gates and leaves.
    pub config: &'a str,
    /// The prompts of the leaves.
    pub agents: &'a [String],
}

/// Returns a dated entry with the findings of the index. Deltas are left to people.
///
/// Every line that quotes something is a bullet, so quoted text cannot open an entry or a section.
pub fn scaffold(index: &Index, date: &str, places: &ScaffoldPaths<'_>) -> String {
    let ids: Vec<&str> = index.cycles.iter().map(|cycle| cycle.id.as_ref()).collect();
    let mut entry =
        format!("# Act review — {} — cycles considered: {}\n", one_line(date), ids.join(", "));
    entry.push_str("\n## What the cycles' records exposed\n\n");
    for line in exposed(index) {
        bullet(&mut entry, &line);
    }
    entry.push_str("\n## Process deltas\n\n");
    let agents = if places.agents.is_empty() {
        places.config.to_owned()
    } else {
        places.agents.join("`, `")
    };
    for (part, place) in [
        ("Spec template", places.template),
        ("Ruleset", "<path>"),
        ("Gates", places.config),
        ("Agent files", &agents),
        ("Orchestration", places.config),
    ] {
        bullet(&mut entry, &format!("{part}: <what changes, or none> (`{place}`)"));
    }
    entry.push_str("\n## How effectiveness will be judged\n\n");
    if index.patterns.is_empty() {
        bullet(&mut entry, &format!("{SIGNAL} <what should no longer be seen>"));
    }
    for pattern in index.patterns.iter().take(MAX_SIGNALS) {
        bullet(
            &mut entry,
            &format!("{SIGNAL} {}{SEEN_IN}{})", pattern.text, listed(&pattern.cycles)),
        );
    }
    entry
}

fn exposed(index: &Index) -> Vec<String> {
    let mut lines = vec![totals(index)];
    lines.extend(index.signals.iter().filter_map(|judged| match &judged.fate {
        SignalFate::Back { cycles } => {
            let signal = &judged.signal;
            Some(format!(
                "Came back in {}, though the review of {} was to end it: {}",
                listed(cycles),
                signal.since,
                quoted(&signal.text)
            ))
        }
        SignalFate::NotSeen | SignalFate::Unclear => None,
    }));
    lines.extend(index.patterns.iter().take(MAX_LISTED).map(|pattern| {
        let sources: Vec<&str> = pattern.sources.iter().copied().collect();
        format!(
            "Recurs in {} ({}): {}",
            listed(&pattern.cycles),
            sources.join(", "),
            quoted(&pattern.example)
        )
    }));
    lines.extend(index.needs_human.iter().filter(|class| class.items > class.standing).map(
        |class| {
            format!(
                "NEEDS-HUMAN {}: {} in {}",
                quoted(&class.class),
                class.items - class.standing,
                listed(&class.cycles)
            )
        },
    ));
    lines.extend(
        index.blamed_fields.iter().map(|field| {
            format!("Brief field blamed: {} in {}", field.field, listed(&field.cycles))
        }),
    );
    for cycle in &index.cycles {
        let undeclared = &cycle.touches.undeclared;
        if !undeclared.is_empty() {
            lines.push(format!(
                "Touches of {}: changed without being declared: {}",
                cycle.id,
                some(undeclared)
            ));
        }
        lines.extend(
            cycle
                .candidates
                .iter()
                .map(|text| format!("Candidate of {}: {}", cycle.id, quoted(text))),
        );
    }
    lines.extend(
        index.unreadable.iter().map(|row| format!("Not considered, unreadable: {}", row.id)),
    );
    lines
}

fn totals(index: &Index) -> String {
    let discontinued =
        index.cycles.iter().filter(|cycle| cycle.state == State::Discontinued).count();
    let iterations: u64 = index.cycles.iter().map(|cycle| u64::from(cycle.iterations)).sum();
    let mut text = format!(
        "{} cycles: {} complete, {discontinued} discontinued; {iterations} attempts sent back",
        index.cycles.len(),
        index.cycles.len() - discontinued,
    );
    if index.gates.timed > 0 {
        let tenths = index.gates.ms / 100;
        write!(text, "; gates took {}.{} s", tenths / 10, tenths % 10)
            .expect("a String takes everything");
    }
    text
}

fn bullet(entry: &mut String, text: &str) {
    writeln!(entry, "- {}", one_line(text)).expect("a String takes everything");
}

fn listed(ids: &[BundleId]) -> String {
    some(&ids.iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn some(items: &[String]) -> String {
    let shown = items.iter().take(MAX_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(MAX_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn quoted(text: &str) -> String {
    let mut cut: String = text.chars().take(MAX_QUOTE).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::{IndexScope, index};
    use crate::log::ActLog;
    use crate::testing::Scene;

    const PLACES: ScaffoldPaths<'static> =
        ScaffoldPaths { template: "templates/brief.md.tpl", config: "pdca.toml", agents: &[] };

    // holds: S002-67
    #[test]
    fn the_entry_has_its_four_parts_filled_with_what_was_found() {
        let scene = Scene::new();
        scene.frozen(
            "36",
            &["T5 Judgment — the network was out of reach"],
            &["a preflight is missing"],
        );
        scene.frozen("41", &["T5 Judgment — the network was out of reach"], &[]);
        let index = index(&scene.bundles(), &scene.records(), IndexScope::SinceLastReview);
        insta::assert_snapshot!(scaffold(&index, "2026-11-16", &PLACES), @r"
        # Act review — 2026-11-16 — cycles considered: 36, 41

        ## What the cycles' records exposed

        - 2 cycles: 2 complete, 0 discontinued; 0 attempts sent back
        - Recurs in 36, 41 (§6): T5 Judgment — the network was out of reach
        - NEEDS-HUMAN T5 Judgment: 2 in 36, 41
        - Candidate of 36: a preflight is missing

        ## Process deltas

        - Spec template: <what changes, or none> (`templates/brief.md.tpl`)
        - Ruleset: <what changes, or none> (`<path>`)
        - Gates: <what changes, or none> (`pdca.toml`)
        - Agent files: <what changes, or none> (`pdca.toml`)
        - Orchestration: <what changes, or none> (`pdca.toml`)

        ## How effectiveness will be judged

        - Signal: t5 judgment the network was out of reach (seen in 36, 41)
        ");
    }

    #[test]
    fn the_next_index_knows_whether_the_signal_of_an_entry_came_back() {
        let scene = Scene::new();
        scene.frozen("36", &["T5 — the network was out of reach"], &[]);
        scene.frozen("41", &["T5 — the network was out of reach"], &[]);
        let first = index(&scene.bundles(), &scene.records(), IndexScope::SinceLastReview);
        scene.write("process/act-log.md", scaffold(&first, "2026-11-16", &PLACES));
        scene.frozen("50", &["T5 — the network was out of reach"], &[]);
        let second = index(&scene.bundles(), &scene.records(), IndexScope::SinceLastReview);
        assert_eq!(second.cycles.len(), 1);
        assert_eq!(
            second.signals[0].fate,
            SignalFate::Back { cycles: vec!["50".parse().unwrap()] }
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn nothing_that_is_quoted_opens_an_entry_or_a_section(
            text in "(# Act review — x — cycles considered: 99|## How effectiveness will be judged|\n|\r|\u{2028}|\u{85}|<!--|[a-z ]{1,9}){0,8}",
        ) {
            let scene = Scene::new();
            scene.frozen("36", &[&text], &[&text]);
            let index = index(&scene.bundles(), &scene.records(), IndexScope::All);
            let entry = scaffold(&index, "2026-11-16", &PLACES);
            let log = ActLog::parse(entry.as_bytes());
            prop_assert_eq!(log.entries.len(), 1);
            let headings = entry.lines().filter(|line| line.starts_with('#')).count();
            prop_assert_eq!(headings, 4);
        }
    }
}
