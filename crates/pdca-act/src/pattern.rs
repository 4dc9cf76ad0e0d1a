//! Patterns: statements that several cycles share.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use pdca_state::{BundleId, Element, Label};
use serde::Serialize;

use crate::cycle::Cycle;
use crate::ledger::Resolution;
use crate::log::Signal;
use crate::wording::{clauses, contains_words, normalise, weight};

/// The maximum number of clauses to compare per cycle, which bounds the costs of a hostile bundle.
const MAX_CLAUSES: usize = 500;
/// The number of words from which a text is more than a phrase.
const MIN_WEIGHT: usize = 3;

/// A text that two or more cycles share when numbers, ids and paths are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecurringText {
    /// The normalized text.
    pub text: String,
    /// The wording of the first cycle.
    pub example: String,
    pub cycles: Vec<BundleId>,
    /// The sources: `§6`, `§9`, `§10`, `gates`.
    pub sources: BTreeSet<&'static str>,
}

/// The items of §6 of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Class {
    /// The element of the check matrix, or the text before the dash.
    pub class: String,
    pub items: usize,
    /// The number of items that were never ticked.
    pub open: usize,
    /// The number of items that every bundle has.
    pub standing: usize,
    pub cycles: Vec<BundleId>,
}

/// A field of the brief that was named when an attempt was sent back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlamedField {
    pub field: &'static str,
    pub cycles: Vec<BundleId>,
}

/// A signal of an earlier review and its fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgedSignal {
    /// Its number, counted from 1 over all reviews; later reviews do not change it.
    pub number: usize,
    #[serde(flatten)]
    pub signal: Signal,
    /// The number of cycles that it was looked for in.
    pub considered: usize,
    /// Present if a person closed it. Then only cycles that ended on a later day count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolution>,
    #[serde(flatten)]
    pub fate: SignalFate,
}

/// The fate of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SignalFate {
    /// It was seen again.
    Back { cycles: Vec<BundleId> },
    /// The signal is exact, and no cycle shows it.
    NotSeen,
    /// Comparing words cannot tell: the signal is written for people, or no cycle has ended since.
    Unclear,
}

/// Returns everything that two or more cycles said, most frequent first.
pub(crate) fn recurring(cycles: &[Cycle]) -> Vec<RecurringText> {
    // The title of an element alone carries no information; `classes` counts those.
    let titles: HashSet<String> = Element::ALL.iter().map(|e| normalise(e.title())).collect();
    let mut found: BTreeMap<String, RecurringText> = BTreeMap::new();
    for cycle in cycles {
        for (source, clause) in cycle_clauses(cycle) {
            let text = normalise(&clause);
            if weight(&text) < MIN_WEIGHT || titles.contains(&text) {
                continue;
            }
            let pattern = found.entry(text.clone()).or_insert_with(|| RecurringText {
                text,
                example: clause,
                cycles: Vec::new(),
                sources: BTreeSet::new(),
            });
            pattern.sources.insert(source);
            // Cycles are taken one after the other, so only the last can be the same.
            if pattern.cycles.last() != Some(&cycle.id) {
                pattern.cycles.push(cycle.id.clone());
            }
        }
    }
    let mut patterns: Vec<RecurringText> =
        found.into_values().filter(|pattern| pattern.cycles.len() > 1).collect();
    drop_parts(&mut patterns);
    patterns.sort_by(|a, b| b.cycles.len().cmp(&a.cycles.len()).then_with(|| a.text.cmp(&b.text)));
    patterns
}

/// Returns whole texts and their clauses, without duplicates.
fn cycle_clauses(cycle: &Cycle) -> Vec<(&'static str, String)> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for (source, text) in cycle.said() {
        let parts = clauses(&text).map(str::to_owned);
        for part in std::iter::once(text.clone()).chain(parts) {
            if all.len() >= MAX_CLAUSES {
                return all;
            }
            if seen.insert((source, part.clone())) {
                all.push((source, part));
            }
        }
    }
    all
}

/// Removes patterns that are a part of a longer pattern of the same cycles.
fn drop_parts(patterns: &mut Vec<RecurringText>) {
    // Of the same cycles only: a shorter text that more cycles share is a pattern of its own.
    let mut by_cycles: BTreeMap<Vec<BundleId>, Vec<String>> = BTreeMap::new();
    for pattern in patterns.iter() {
        by_cycles.entry(pattern.cycles.clone()).or_default().push(pattern.text.clone());
    }
    patterns.retain(|pattern| {
        let same = &by_cycles[&pattern.cycles];
        let is_part = |longer: &String| {
            longer.len() > pattern.text.len() && contains_words(longer, &pattern.text)
        };
        !same.iter().any(is_part)
    });
}

/// Groups the items of §6 by class, most frequent first.
pub(crate) fn classes(cycles: &[Cycle]) -> Vec<Class> {
    let mut found: BTreeMap<String, Class> = BTreeMap::new();
    for cycle in cycles {
        for item in &cycle.needs_human {
            let name = class_of(&item.text);
            let class = found.entry(name.to_lowercase()).or_insert_with(|| Class {
                class: name,
                items: 0,
                open: 0,
                standing: 0,
                cycles: Vec::new(),
            });
            class.items += 1;
            class.open += usize::from(item.open);
            class.standing += usize::from(item.standing);
            if class.cycles.last() != Some(&cycle.id) {
                class.cycles.push(cycle.id.clone());
            }
        }
    }
    let mut classes: Vec<Class> = found.into_values().collect();
    classes.sort_by(|a, b| b.items.cmp(&a.items).then_with(|| a.class.cmp(&b.class)));
    classes
}

/// Returns the class of an item: an element of the matrix, or the text before the dash or colon.
fn class_of(item: &str) -> String {
    const LONGEST: usize = 60;
    if item.starts_with(Element::V.title()) {
        return Element::V.title().to_owned();
    }
    let first = item.split_whitespace().next().unwrap_or_default();
    if let Ok(element) = first.trim_end_matches([':', '.', ',']).parse::<Element>() {
        return element.title().to_owned();
    }
    let head = item.split(" — ").next().unwrap_or(item);
    let head = head.split(": ").next().unwrap_or(head).trim();
    if head.is_empty() || head.chars().count() > LONGEST {
        return "other".to_owned();
    }
    head.to_owned()
}

/// Returns the fields of the brief that were named when attempts were sent back.
pub(crate) fn blamed_fields(cycles: &[Cycle]) -> Vec<BlamedField> {
    let mut found: Vec<BlamedField> = Vec::new();
    for &label in Label::ALL {
        let blames = |cycle: &&Cycle| cycle.reasons().any(|reason| names_field(reason, label));
        let blaming: Vec<BundleId> =
            cycles.iter().filter(blames).map(|cycle| cycle.id.clone()).collect();
        if !blaming.is_empty() {
            found.push(BlamedField { field: label.as_str(), cycles: blaming });
        }
    }
    found.sort_by(|a, b| b.cycles.len().cmp(&a.cycles.len()).then_with(|| a.field.cmp(b.field)));
    found
}

/// Returns true if a text names a field. A label of one word is also a common word, so it counts only if it is
/// marked as a field: `the brief's scope`, `scope field`, or the label in quotes.
fn names_field(text: &str, label: Label) -> bool {
    let lower = text.to_lowercase();
    let words = normalise(text);
    label.spellings().iter().any(|spelling| {
        let phrase = normalise(spelling);
        if phrase.contains(' ') {
            return contains_words(&words, &phrase);
        }
        let quoted = ["`", "\"", "**", "'"];
        quoted.iter().any(|mark| lower.contains(&format!("{mark}{spelling}{mark}")))
            || ["brief s", "brief"]
                .iter()
                .any(|before| contains_words(&words, &format!("{before} {phrase}")))
            || ["field", "section"]
                .iter()
                .any(|after| contains_words(&words, &format!("{phrase} {after}")))
    })
}

/// Judges whether the signals of earlier reviews came back.
pub(crate) fn judged(
    signals: Vec<Signal>,
    resolutions: &[Resolution],
    cycles: &[&Cycle],
) -> Vec<JudgedSignal> {
    let said: Vec<(&Cycle, Vec<String>)> = cycles
        .iter()
        .map(|cycle| {
            let texts = cycle.said().iter().map(|(_, text)| normalise(text)).collect();
            (*cycle, texts)
        })
        .collect();
    let judge = |(index, signal): (usize, Signal)| {
        // The last word counts, so that a signal can be closed again after it came back.
        let resolved = resolutions.iter().rfind(|resolution| resolution.is_about(&signal)).cloned();
        // A cycle of the same day may have ended before the person closed the signal.
        let counts = |cycle: &Cycle| {
            resolved.as_ref().is_none_or(|resolution| cycle.signoff.date > resolution.date)
        };
        let shows = |texts: &[String]| {
            signal
                .needles
                .iter()
                .any(|needle| texts.iter().any(|text| contains_words(text, needle)))
        };
        let later: Vec<_> = said.iter().filter(|(cycle, _)| counts(cycle)).collect();
        let back: Vec<BundleId> = later
            .iter()
            .filter(|(_, texts)| shows(texts))
            .map(|(cycle, _)| cycle.id.clone())
            .collect();
        let fate = if !back.is_empty() {
            SignalFate::Back { cycles: back }
        } else if signal.exact && !signal.needles.is_empty() && !later.is_empty() {
            SignalFate::NotSeen
        } else {
            SignalFate::Unclear
        };
        JudgedSignal { number: index + 1, signal, considered: later.len(), resolved, fate }
    };
    signals.into_iter().enumerate().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_classed_by_its_element_or_by_what_stands_before_the_dash() {
        for (item, class) in [
            ("T5 Judgment — decide it", "T5 Judgment"),
            ("C4 verified FAILED (gating) — 1 test", "C4 Verification (red→green)"),
            ("T2: shape", "T2 Shape"),
            ("Validation — fitness-to-purpose — does it serve?", "Validation — fitness-to-purpose"),
            ("external dependency: `copier`", "external dependency"),
            ("Adversary — a hole", "Adversary"),
            (
                "a very long sentence that goes on and on without any dash or colon in it at all",
                "other",
            ),
            ("", "other"),
        ] {
            assert_eq!(class_of(item), class, "{item}");
        }
    }

    #[test]
    fn a_common_word_blames_no_field_unless_it_is_said_to_be_one() {
        for (text, label, blamed) in [
            ("the brief's own success criterion was missed", Label::SuccessCriterion, true),
            ("out of scope, a real defect", Label::Scope, false),
            ("out of scope, a real defect", Label::Defect, false),
            ("the brief's scope was too wide", Label::Scope, true),
            ("clarify the `Touches` of it", Label::Touches, true),
            ("the Surfaces field is missing", Label::Surfaces, true),
            ("the prior-art check was skipped", Label::PriorArt, true),
        ] {
            assert_eq!(names_field(text, label), blamed, "{text} {label:?}");
        }
    }
}
