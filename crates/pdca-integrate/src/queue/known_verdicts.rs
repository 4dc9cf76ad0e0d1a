//! Everything that an integration knows about trees: stored verdicts that count, and the reds behind them.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use pdca_journal::RunId;

use crate::{
    Candidate, FlakeRules, GateSetId, Known, Light, Lookup, ObjectId, Verdict, VerdictCache,
    VerdictKey, VerdictOrigin, VerdictTrust,
};

use super::IntegrateError;
use super::context::{GateRuling, QueueContext};
use super::evidence::{Evidence, RedRow};
use super::flakes::{counts, pardon};
use super::held::HeldChange;
use super::settings::QueueSettings;

/// The gate results of a tree that is not green.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Red {
    pub(super) rows: Vec<String>,
    pub(super) evidence: Vec<String>,
    pub(super) logs: Vec<Utf8PathBuf>,
    pub(super) by_row: Vec<RedRow>,
}

impl Red {
    pub(super) fn of(ruling: GateRuling) -> Self {
        let GateRuling { rows, evidence, logs, red, .. } = ruling;
        Self { rows, evidence, logs, by_row: red }
    }

    /// Restores the results that an earlier integration stored as evidence.
    fn kept(red: Vec<RedRow>) -> Self {
        Self {
            rows: red.iter().map(|row| row.row.clone()).collect(),
            evidence: red.iter().map(|row| format!("{}: {}", row.row, row.said)).collect(),
            logs: red.iter().filter_map(|row| row.log.clone()).collect(),
            by_row: red,
        }
    }

    pub(super) fn of_rows(ruling: &GateRuling) -> Self {
        Self { rows: ruling.rows.clone(), ..Self::default() }
    }

    /// Copies the results into a held change. Empty results must not erase what is known already.
    pub(super) fn put_into(self, held: &mut HeldChange) {
        if !self.rows.is_empty() {
            (held.rows, held.evidence, held.logs) = (self.rows, self.evidence, self.logs);
            held.red = self.by_row;
        }
    }
}

/// The verdicts of exactly the current gates, and the history of their flakes.
///
/// A verdict is stored before anything relies on it. One that ignored a row counts only while that row is
/// in quarantine.
pub(super) struct KnownVerdicts<'w> {
    cx: QueueContext<'w>,
    gates: GateSetId,
    cache: VerdictCache,
    /// The digest of the declared merge drivers: they take part in making a tree.
    drivers: String,
    /// The integration that asks.
    run: RunId,
    /// With `fresh`, no result from before this integration counts.
    fresh: bool,
    has_max_age: bool,
    pub(super) rules: FlakeRules,
    /// Gate results by tree, for trees that are not green.
    reds: BTreeMap<ObjectId, Red>,
    /// The number of fresh gate runs by tree; each needs job files of its own.
    fresh_runs: BTreeMap<ObjectId, u32>,
}

impl<'w> KnownVerdicts<'w> {
    pub(super) fn new(
        cx: QueueContext<'w>,
        settings: &QueueSettings,
        run: &RunId,
        drivers: String,
        fresh: bool,
    ) -> Self {
        let now = (cx.now)();
        let own = Some(run.as_str().to_owned());
        // Its own verdicts always count, or a resumed integration with `--fresh` would gate everything again.
        let trust = VerdictTrust { own, only_own: fresh, ..settings.trust(now) };
        Self {
            cx,
            gates: cx.gates.id.clone(),
            cache: settings.verdicts(cx.workspace, now).trusting(trust),
            drivers,
            run: run.clone(),
            fresh,
            has_max_age: settings.verdict_max_age.is_some(),
            rules: cx.gates.flake_rules(cx.workspace),
            reds: BTreeMap::new(),
            fresh_runs: BTreeMap::new(),
        }
    }

    pub(super) fn gates(&self) -> &GateSetId {
        &self.gates
    }

    fn key_of(&self, tree: ObjectId) -> VerdictKey {
        let drivers = self.drivers.clone();
        VerdictKey { tree, oracle: self.gates.clone(), drivers }
    }

    /// Returns the stored verdict of the current gates about a tree.
    pub(super) fn of(&self, tree: ObjectId) -> Result<Option<Light>, IntegrateError> {
        match self.cache.look_up(&self.key_of(tree))? {
            Lookup::Found(verdict) if counts(&verdict, &self.rules) => Ok(Some(verdict.light)),
            Lookup::Found(_) | Lookup::Unknown => Ok(None),
            Lookup::Dropped { path } => {
                self.cx.tell(format!("removed the damaged verdict {path}"));
                Ok(None)
            }
        }
    }

    /// Returns the verdict that a landing needs, as it is stored. The search has just decided by it, so the rows
    /// that it ignored are not looked at again.
    pub(super) fn to_land(&self, whole: &Candidate) -> Result<Option<Verdict>, IntegrateError> {
        Ok(match self.cache.look_up(&self.gates.key(whole))? {
            Lookup::Found(verdict) => Some(verdict),
            Lookup::Unknown | Lookup::Dropped { .. } => None,
        })
    }

    /// Returns true if a remembered culprit may be used. With a maximum age, the red verdict about its tree
    /// must still be in the cache.
    pub(super) fn is_current(&self, known: &Known) -> Result<bool, IntegrateError> {
        if self.fresh {
            return Ok(false);
        }
        if !self.has_max_age {
            return Ok(true);
        }
        let tree = known.tree.as_ref().and_then(|tree| ObjectId::from_hex(tree.as_bytes()).ok());
        let Some(tree) = tree else { return Ok(false) };
        Ok(match self.cache.look_up(&self.key_of(tree))? {
            // A green of the same tree since then means that its red was a flake.
            Lookup::Found(verdict) => verdict.light == Light::Red,
            Lookup::Unknown | Lookup::Dropped { .. } => false,
        })
    }

    /// Counts a run of every row, and removes the rows in quarantine from the ruling. Returns those rows.
    pub(super) fn pardon(&mut self, ruling: &mut GateRuling) -> Vec<String> {
        for row in &self.cx.gates.rows {
            (0..=ruling.asked_again).for_each(|_| self.rules.ledger.ran(row));
        }
        pardon(ruling, &self.rules)
    }

    /// Stores the verdict about a tree. A red does not list the rows that it ignored: it would stay red
    /// without them.
    pub(super) fn keep(
        &self,
        tree: ObjectId,
        light: Light,
        quarantined: Vec<String>,
    ) -> Result<(), IntegrateError> {
        let quarantined = if light == Light::Green { quarantined } else { Vec::new() };
        let verdict = Verdict { key: self.key_of(tree), light, quarantined };
        let by = Some(self.run.as_str().to_owned());
        let origin = VerdictOrigin { at: Some((self.cx.now)()), by };
        let keep = || self.cache.keep_from(&verdict, &origin);
        Ok(self.cx.effects.perform("verdict", keep)?)
    }

    pub(super) fn keep_red(&mut self, tree: ObjectId, red: Red) {
        self.reds.insert(tree, red);
    }

    /// Returns the gate results about a tree, from this integration or else from stored evidence.
    pub(super) fn red_over(&self, tree: ObjectId) -> Red {
        let kept = || Red::kept(Evidence::of(self.cx.workspace).about(&tree.to_string()));
        self.reds.get(&tree).cloned().unwrap_or_else(kept)
    }

    /// Returns the rows of some tree that is not green; empty if there is none.
    pub(super) fn any_red_rows(&self) -> Vec<String> {
        self.reds.values().last().map(|red| red.rows.clone()).unwrap_or_default()
    }

    /// Returns the number of the next fresh run of a tree, from 1.
    pub(super) fn next_fresh_run(&mut self, tree: ObjectId) -> u32 {
        let number = self.fresh_runs.entry(tree).or_default();
        *number += 1;
        *number
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use pdca_journal::Unwatched;
    use pdca_process::Cancel;
    use pdca_state::BundleRoot;

    use super::*;
    use crate::queue::context::{
        CombinationGate, CombinationGates, GateJob, GateRunError, IntegrationNotice,
    };
    use crate::queue::held::HeldReason;
    use crate::queue::target_branch::TargetBranch;
    use crate::queue::workspace::{QueueWorkspace, WorkspaceDirs};
    use crate::{CulpritEffect, FlakePolicy};

    struct NoGate;

    impl CombinationGate for NoGate {
        fn gate(
            &self,
            _: &TargetBranch,
            _: &GateJob,
            _: &Cancel,
        ) -> Result<GateRuling, GateRunError> {
            Err(GateRunError::Interrupted)
        }
    }

    /// A workspace in which one row is in quarantine once it is known to be flaky.
    struct Scene {
        dir: tempfile::TempDir,
        workspace: QueueWorkspace,
        settings: QueueSettings,
        told: Mutex<Vec<String>>,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = camino::Utf8Path::from_path(dir.path()).unwrap().to_owned();
            let bundles = BundleRoot::new(root.join("results"));
            let workspace = QueueWorkspace {
                dirs: WorkspaceDirs { root, bundles },
                targets: Vec::new(),
                default_branch: None,
            };
            let (settings, told) = (QueueSettings::default(), Mutex::default());
            Self { dir, workspace, settings, told }
        }

        /// Asks about the verdicts of these gates, in the integration `run`.
        fn with<T>(
            &self,
            run: &str,
            digest: &str,
            fresh: bool,
            ask: impl FnOnce(&mut KnownVerdicts<'_>) -> T,
        ) -> T {
            let id =
                GateSetId { gate_digest: digest.to_owned(), environment_digest: "env".to_owned() };
            let policies = [("flaky".to_owned(), FlakePolicy::Quarantine)].into();
            let gates = CombinationGates { id, rows: vec!["T3".into(), "flaky".into()], policies };
            let notify = |notice| {
                if let IntegrationNotice::Progress { text, .. } = notice {
                    self.told.lock().unwrap().push(text);
                }
            };
            let cx = QueueContext {
                workspace: &self.workspace,
                gates: &gates,
                gate: &NoGate,
                effects: &Unwatched,
                notify: &notify,
                cancel: &Cancel::new(),
                now: || 1_700_000_000,
            };
            let run = run.parse().unwrap();
            ask(&mut KnownVerdicts::new(cx, &self.settings, &run, String::new(), fresh))
        }

        fn ask<T>(&self, ask: impl FnOnce(&mut KnownVerdicts<'_>) -> T) -> T {
            self.with(FIRST, "gates", false, ask)
        }
    }

    const FIRST: &str = "01M7KBME0Z8H4CPVPCVYPTSCV1";
    const SECOND: &str = "01M7KBME0Z8H4CPVPCVYPTSCV2";

    fn tree() -> ObjectId {
        ObjectId::from_hex("a".repeat(40).as_bytes()).unwrap()
    }

    fn known(tree: Option<String>) -> Known {
        let (held, gates) = ("head".to_owned(), "gates env".to_owned());
        Known {
            held,
            partners: Vec::new(),
            context: Vec::new(),
            fault: CulpritEffect::Red,
            rows: Vec::new(),
            tree,
            gates,
        }
    }

    /// Makes the row `flaky` known to fail by mistake.
    fn make_flaky(verdicts: &mut KnownVerdicts<'_>) {
        for change in ["1", "2", "3"] {
            verdicts.rules.ledger.flaked("flaky", change, &[change.to_owned()], "now");
        }
    }

    #[test]
    fn a_verdict_counts_for_exactly_the_gates_that_gave_it() {
        let scene = Scene::new();
        scene.ask(|verdicts| verdicts.keep(tree(), Light::Green, Vec::new()).unwrap());
        let of = |digest: &str| scene.with(SECOND, digest, false, |it| it.of(tree()).unwrap());
        assert_eq!(of("gates"), Some(Light::Green));
        assert_eq!(of("other gates"), None);
    }

    #[test]
    fn with_fresh_only_verdicts_of_the_same_integration_count() {
        let scene = Scene::new();
        scene.ask(|verdicts| verdicts.keep(tree(), Light::Green, Vec::new()).unwrap());
        let of = |run: &str| scene.with(run, "gates", true, |it| it.of(tree()).unwrap());
        assert_eq!(of(SECOND), None);
        assert_eq!(of(FIRST), Some(Light::Green), "it was resumed");
    }

    #[test]
    fn a_green_that_ignored_a_row_counts_only_while_that_row_is_in_quarantine() {
        let scene = Scene::new();
        scene.ask(|verdicts| {
            verdicts.keep(tree(), Light::Green, vec!["flaky".into()]).unwrap();
            assert_eq!(verdicts.of(tree()).unwrap(), None, "no flake of it is known");
            make_flaky(verdicts);
            assert_eq!(verdicts.of(tree()).unwrap(), Some(Light::Green));
        });
    }

    #[test]
    fn a_red_counts_also_after_the_row_that_it_ignored_left_quarantine() {
        let scene = Scene::new();
        scene.ask(|verdicts| {
            verdicts.keep(tree(), Light::Red, vec!["flaky".into()]).unwrap();
            assert_eq!(verdicts.of(tree()).unwrap(), Some(Light::Red));
        });
    }

    #[test]
    fn a_damaged_verdict_is_removed_with_a_word_and_the_gates_run_again() {
        let scene = Scene::new();
        scene.ask(|verdicts| verdicts.keep(tree(), Light::Green, Vec::new()).unwrap());
        let dir = scene.dir.path().join(".pdca/verdicts");
        let file = fs_err::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
        fs_err::write(&file, "{ torn").unwrap();
        assert_eq!(scene.ask(|verdicts| verdicts.of(tree()).unwrap()), None);
        assert!(!file.exists());
        let told = scene.told.lock().unwrap();
        assert!(told[0].starts_with("removed the damaged verdict"), "{told:?}");
    }

    #[test]
    fn a_remembered_culprit_does_not_count_where_earlier_results_do_not() {
        let scene = Scene::new();
        let is_current =
            |fresh| scene.with(SECOND, "gates", fresh, |it| it.is_current(&known(None)).unwrap());
        assert!(is_current(false));
        assert!(!is_current(true));
    }

    #[test]
    fn with_a_maximum_age_a_culprit_counts_only_beside_the_red_verdict_about_its_tree() {
        let mut scene = Scene::new();
        scene.settings.verdict_max_age = Some("1d".parse().unwrap());
        let is_current =
            |tree: Option<String>| scene.ask(|it| it.is_current(&known(tree)).unwrap());
        assert!(!is_current(None), "its tree is not known");
        assert!(!is_current(Some(tree().to_string())), "nothing is stored about it");
        scene.ask(|verdicts| verdicts.keep(tree(), Light::Red, Vec::new()).unwrap());
        assert!(is_current(Some(tree().to_string())));
        scene.ask(|verdicts| verdicts.keep(tree(), Light::Green, Vec::new()).unwrap());
        assert!(!is_current(Some(tree().to_string())), "it is green meanwhile");
    }

    #[test]
    fn every_run_is_counted_and_only_rows_in_quarantine_are_pardoned() {
        let scene = Scene::new();
        scene.ask(|verdicts| {
            make_flaky(verdicts);
            let red = |rows: &[&str]| GateRuling {
                light: Some(Light::Red),
                rows: rows.iter().map(ToString::to_string).collect(),
                passed_again: vec!["flaky".to_owned()],
                ..GateRuling::default()
            };
            let mut ruling = red(&["T3", "flaky"]);
            assert_eq!(verdicts.pardon(&mut ruling), ["flaky"]);
            assert_eq!((ruling.light, ruling.rows.len()), (Some(Light::Red), 1));
            let mut ruling = red(&["flaky"]);
            verdicts.pardon(&mut ruling);
            assert_eq!(ruling.light, Some(Light::Green));
            assert_eq!(verdicts.rules.ledger.row("T3").map(|row| row.runs), Some(2));
        });
    }

    #[test]
    fn each_fresh_run_of_a_tree_has_job_files_of_its_own() {
        let other = ObjectId::from_hex("b".repeat(40).as_bytes()).unwrap();
        let numbers =
            Scene::new().ask(|it| [tree(), other, tree()].map(|tree| it.next_fresh_run(tree)));
        assert_eq!(numbers, [1, 1, 2]);
    }

    #[test]
    fn empty_results_do_not_erase_what_a_held_change_has_already() {
        let mut held = HeldChange::blank(&"7".parse().unwrap(), HeldReason::Red);
        let red = Red { rows: vec!["T3".into()], evidence: vec!["T3: 2".into()], ..Red::default() };
        red.put_into(&mut held);
        Red::default().put_into(&mut held);
        assert_eq!((held.rows.len(), held.evidence.len()), (1, 1));
    }
}
