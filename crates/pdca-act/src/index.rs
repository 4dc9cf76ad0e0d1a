//! The index: cycles that ended since the last review, and what they have in common.

use camino::Utf8PathBuf;
use pdca_state::{Artifact, Bundle, BundleId, CostTotal, Money, State, Summary, survey_bundles};
use serde::Serialize;

use crate::cycle::{Cycle, GateCost};
use crate::mark::CycleMark;
use crate::pattern::{self, BlamedField, Class, JudgedSignal, RecurringText};
use crate::records::ActRecords;
use crate::wording::one_line;

/// The cycles to look at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IndexScope {
    /// Those that no review has considered.
    #[default]
    SinceLastReview,
    All,
}

/// The evidence from the cycles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Index {
    #[serde(skip)]
    pub scope: IndexScope,
    pub last_review: Option<String>,
    /// The number of bundles that earlier reviews considered.
    pub reviewed: usize,
    /// The cycles, ordered by id.
    pub cycles: Vec<Cycle>,
    /// Bundles that cannot be read, so that it is unknown whether they have ended.
    pub unreadable: Vec<Unreadable>,
    /// The total costs of the gates.
    pub gates: GateCost,
    /// The total costs of the leaves.
    pub cost: CostTotal,
    /// The cost of the leaves for each accepted issue, discontinued ones included, in millionths of a US dollar; null if
    /// nothing was accepted or no cost is known.
    pub cost_per_accepted_usd_micros: Option<Money>,
    /// Statements that several cycles share.
    pub patterns: Vec<RecurringText>,
    /// The items of §6 by class.
    pub needs_human: Vec<Class>,
    /// The fields of briefs that were blamed.
    pub blamed_fields: Vec<BlamedField>,
    /// The signals of earlier reviews, and whether they came back.
    pub signals: Vec<JudgedSignal>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unreadable {
    pub id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: Utf8PathBuf,
    pub why: String,
}

/// Builds the index from bundles in any order.
///
/// A cycle has ended when its bundle is frozen or discontinued; other bundles are left out.
pub fn index(bundles: &[Bundle], records: &ActRecords, scope: IndexScope) -> Index {
    let covered = records.covered();
    let mut wanted: Vec<Bundle> = bundles.to_vec();
    wanted.sort_unstable_by(|a, b| a.id().cmp(b.id()).then_with(|| a.dir().cmp(b.dir())));
    wanted.dedup();
    let mut index = Index {
        scope,
        last_review: records.log.last_review().map(str::to_owned),
        reviewed: covered.len(),
        ..Index::default()
    };
    let may_skip =
        |bundle: &Bundle| scope == IndexScope::SinceLastReview && covered.contains(bundle.id());
    for (bundle, row) in wanted.iter().zip(survey_bundles(&wanted)) {
        let loaded = match row.result {
            Ok(glance) if !glance.state.is_terminal() => continue,
            Ok(glance) if may_skip(bundle) && is_considered(records, bundle, glance.iterations) => {
                continue;
            }
            Ok(_) => Cycle::load(bundle),
            // What a review considered may have become unreadable since; it tells no more.
            Err(_) if may_skip(bundle) => continue,
            Err(error) => Err(error),
        };
        match loaded {
            Ok(cycle) => index.cycles.extend(cycle),
            Err(error) => index.unreadable.push(Unreadable {
                id: row.id,
                dir: row.dir,
                why: error.to_string(),
            }),
        }
    }
    index.compare(records);
    index
}

/// Returns whether a review considered the present end of a bundle. Two files tell, so that what was reviewed long ago is
/// not read whole each time.
fn is_considered(records: &ActRecords, bundle: &Bundle, iterations: u32) -> bool {
    let text = bundle.read(Artifact::Summary).ok().flatten().unwrap_or_default();
    let summary = Summary::parse(&String::from_utf8_lossy(&text));
    let date = summary.signoff().map(|signed| one_line(&signed.date)).unwrap_or_default();
    CycleMark::of(bundle, &summary, iterations)
        .is_ok_and(|mark| records.has_considered(bundle.id(), &mark, &date, iterations))
}

impl Index {
    /// Returns the marks of the cycles, in their order.
    pub fn marks(&self) -> Vec<CycleMark> {
        self.cycles.iter().map(|cycle| cycle.mark.clone()).collect()
    }

    fn compare(&mut self, records: &ActRecords) {
        // The log only grows, so signals keep their numbers if those of older ledgers come first.
        let mut signals = records.ledger.applied();
        signals.extend(records.log.signals().cloned());
        self.gates =
            self.cycles.iter().map(|cycle| cycle.gates).fold(GateCost::default(), GateCost::plus);
        self.cost =
            self.cycles.iter().map(|cycle| cycle.cost).fold(CostTotal::default(), CostTotal::plus);
        let accepted = self.cycles.iter().filter(|cycle| cycle.state == State::Complete).count();
        let is_known = self.cost.unknown < self.cost.calls;
        self.cost_per_accepted_usd_micros = (accepted > 0 && is_known)
            .then(|| Money::from_micros(self.cost.cost.micros().div_ceil(accepted as u64)));
        self.patterns = pattern::recurring(&self.cycles);
        self.needs_human = pattern::classes(&self.cycles);
        self.blamed_fields = pattern::blamed_fields(&self.cycles);
        // The cycles that a review considered contain its signals by definition, so only later ones count.
        let is_fresh = |cycle: &&Cycle| !records.has_considered_cycle(cycle);
        let fresh: Vec<&Cycle> = self.cycles.iter().filter(is_fresh).collect();
        self.signals = pattern::judged(signals, &records.ledger.resolutions(), &fresh);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::SignalFate;
    use crate::testing::Scene;

    /// Three cycles that ended, and one that did not.
    fn scene() -> Scene {
        let scene = Scene::new();
        scene.frozen(
            "36",
            &["T5 Judgment — decide whether src/a.rs:12 fits"],
            &["the T3 gate leaked /tmp/x1/a.md of issue_500"],
        );
        scene.frozen(
            "12",
            &["T5 Judgment — decide whether src/b.rs:7 fits"],
            &["The T3 gate leaked /tmp/y2/b.md of issue_7!"],
        );
        scene.frozen("9", &["external dependency: `copier`"], &[]);
        scene.write("results/issue_50/brief.md", "- **Slug:** still-planned\n");
        scene
    }

    fn shown(index: &Index) -> String {
        let mut lines = Vec::new();
        for cycle in &index.cycles {
            let items = cycle.needs_human.len();
            lines.push(format!("{} {} {items}", cycle.id, cycle.state));
        }
        for pattern in &index.patterns {
            let ids: Vec<&str> = pattern.cycles.iter().map(AsRef::as_ref).collect();
            lines.push(format!("{}: {}", ids.join(" "), pattern.text));
        }
        for class in &index.needs_human {
            lines.push(format!("{} × {}", class.items, class.class));
        }
        lines.join("\n")
    }

    #[test]
    fn what_two_cycles_share_is_a_pattern() {
        let scene = scene();
        let index = index(&scene.bundles(), &ActRecords::default(), IndexScope::SinceLastReview);
        insta::assert_snapshot!(shown(&index), @r"
        9 COMPLETE 2
        12 COMPLETE 2
        36 COMPLETE 2
        12 36: t5 judgment decide whether path fits
        12 36: the t3 gate leaked path of n
        3 × Validation — fitness-to-purpose
        2 × T5 Judgment
        1 × external dependency
        ");
    }

    #[test]
    fn the_name_of_an_element_alone_is_no_pattern() {
        let scene = Scene::new();
        scene.frozen("1", &["C4 Verification (red→green) — one thing or other"], &[]);
        scene.frozen("2", &["C4 Verification (red→green) — something else entirely"], &[]);
        let index = index(&scene.bundles(), &ActRecords::default(), IndexScope::All);
        assert_eq!(index.patterns, []);
    }

    #[test]
    fn what_a_review_considered_is_left_out_until_all_is_asked_for() {
        let scene = scene();
        scene.write("process/act-log.md", "# Act review — 2026-10-01 — cycles considered: 36\n");
        scene.write("process/.act-reviewed", "issue_12\n");
        let records = scene.records();
        let ids = |scope| {
            let index = index(&scene.bundles(), &records, scope);
            index.cycles.iter().map(|cycle| cycle.id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids(IndexScope::SinceLastReview), ["9"]);
        assert_eq!(ids(IndexScope::All), ["9", "12", "36"]);
    }

    #[test]
    fn each_end_of_a_bundle_is_considered_once() {
        let scene = Scene::new();
        scene.frozen("36", &[], &[]);
        scene.frozen("41", &[], &[]);
        let due = || {
            let index = index(&scene.bundles(), &scene.records(), IndexScope::SinceLastReview);
            index.cycles.iter().map(|cycle| cycle.id.to_string()).collect::<Vec<_>>()
        };
        let record = || {
            let index = index(&scene.bundles(), &scene.records(), IndexScope::SinceLastReview);
            let ids: Vec<&str> = index.cycles.iter().map(|cycle| cycle.id.as_ref()).collect();
            let entry =
                format!("# Act review — 2026-11-16 — cycles considered: {}\n", ids.join(", "));
            let steps =
                scene.records().record(&entry, &index.marks(), &[].into_iter().collect(), "d");
            for step in steps.unwrap() {
                scene.write(&step.path, &step.bytes);
            }
        };
        assert_eq!(due(), ["36", "41"]);
        record();
        assert_eq!(due(), [""; 0]);
        // Sent back and accepted again, on the same day.
        scene.write("results/issue_36/iteration-v1/SUMMARY.md", "## 9. Check sign-off\n");
        scene.write("results/issue_36/seal.json", "{}");
        assert_eq!(due(), ["36"]);
        record();
        assert_eq!(due(), [""; 0]);
    }

    #[test]
    fn a_bundle_that_cannot_be_read_is_one_bad_row() {
        let scene = scene();
        scene.write("results/issue_12/brief.md", b"caf\xe9");
        scene.write("results/issue_13/SUMMARY.md/x", "");
        let index = index(&scene.bundles(), &ActRecords::default(), IndexScope::SinceLastReview);
        let bad: Vec<&str> = index.unreadable.iter().map(|row| row.id.as_ref()).collect();
        assert_eq!(bad, ["12", "13"]);
        assert_eq!(index.cycles.len(), 2);
    }

    #[test]
    fn iterations_gate_cost_touches_and_blame_are_gathered_over_all_attempts() {
        let scene = Scene::new();
        scene.frozen("36", &[], &[]);
        scene.write(
            "results/issue_36/brief.md",
            "- **Slug:** a\n- **Touches:** src/**, docs\n\n## Iteration 1 — carry-forward\n\n> the brief's scope\n",
        );
        scene.write("results/issue_36/patch.diff", "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-x\n+y\n--- a/Cargo.toml\n+++ b/Cargo.toml\n");
        let gates = |result: &str, ms: u32| {
            format!(
                r#"{{"issue_dir": "issue_36", "overall": "{result}", "rows": [{{"check": "C4 verified", "result": "{result}",
                "oracle": "x", "rule_id": "C4", "path_line": "", "gating": true, "element": "C4", "duration_ms": {ms}}}]}}"#
            )
        };
        scene.write("results/issue_36/check-gates.json", gates("pass", 200));
        scene.write("results/issue_36/iteration-v1/check-gates.json", gates("fail", 100));
        scene.write(
            "results/issue_36/iteration-v1/SUMMARY.md",
            "## 9. Check sign-off\n- Outcome: iterated-to-Do\n- Iteration delta (if iterating): the success criterion was unclear\n",
        );
        let index = index(&scene.bundles(), &ActRecords::default(), IndexScope::SinceLastReview);
        let cycle = &index.cycles[0];
        assert_eq!((cycle.iterations, cycle.gates.ms, cycle.gates.timed), (1, 300, 2));
        assert_eq!(cycle.failed_checks, ["C4 verified"]);
        assert_eq!(
            (&cycle.touches.undeclared[..], &cycle.touches.untouched[..]),
            (&["Cargo.toml".to_owned()][..], &["docs".to_owned()][..])
        );
        let blamed: Vec<&str> = index.blamed_fields.iter().map(|field| field.field).collect();
        assert_eq!(blamed, ["Success criterion"]);
    }

    #[test]
    fn a_signal_that_came_back_is_told() {
        let scene = scene();
        scene.write(
            "process/act-log.md",
            "# Act review — 2026-10-01 — cycles considered: 1\n\n## How effectiveness will be judged\n\
             - Signal: T3 gate leaked /tmp/z/c.md (seen in 1, 2)\n- Signal: the moon is made of cheese\n\
             - Watch the next five cycles.\n",
        );
        let index = index(&scene.bundles(), &scene.records(), IndexScope::SinceLastReview);
        let fates: Vec<&SignalFate> = index.signals.iter().map(|judged| &judged.fate).collect();
        let back = SignalFate::Back { cycles: vec!["12".parse().unwrap(), "36".parse().unwrap()] };
        assert_eq!(fates, [&back, &SignalFate::NotSeen, &SignalFate::Unclear]);
        scene.write("process/.act-reviewed", "issue_9\nissue_12\nissue_36\n");
        let all = super::index(&scene.bundles(), &scene.records(), IndexScope::All);
        assert_eq!(all.cycles.len(), 3);
        let is_unclear = |judged: &JudgedSignal| judged.fate == SignalFate::Unclear;
        assert!(all.signals.iter().all(is_unclear), "no cycle ended since: {:?}", all.signals);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_order_of_the_bundles_changes_nothing(order in Just((0..4_usize).collect::<Vec<_>>()).prop_shuffle()) {
            let scene = scene();
            let bundles = scene.bundles();
            let shuffled: Vec<Bundle> = order.iter().map(|at| bundles[*at].clone()).collect();
            let records = ActRecords::default();
            prop_assert_eq!(index(&shuffled, &records, IndexScope::All), index(&bundles, &records, IndexScope::All));
        }
    }
}
