//! Changes that are green alone are combined: real trees, a gate that reads them, and what lands.

use std::collections::BTreeMap;

use pdca_integrate::{
    Built, Candidate, Certificate, Combination, CulpritEffect, Drivers, FoldPlan, GateSetId, Gated,
    HoldReason, Light, Lookup, MergeEngine, Onto, PlanEntry, Sealed, Search, SearchDecision,
    SearchSetup, Strategy, TestAnswer, Verdict, VerdictCache, land, verify,
};

use crate::scene::{LOG, Scene, oracle};

const BOTH: [Strategy; 2] = [Strategy::RebaseFf, Strategy::MergeCommit];

/// The result of running a whole queue.
#[derive(Debug, Default)]
struct Report {
    landed: Vec<String>,
    held: BTreeMap<String, HoldReason>,
    explained: BTreeMap<String, Vec<String>>,
    flakes: usize,
    base_red: bool,
    gate_runs: usize,
}

/// Does what a driver does: asks the search, folds, gates, and lands what is green.
fn integrate(
    scene: &Scene,
    plan: &FoldPlan,
    gate: &mut dyn FnMut(&BTreeMap<String, String>) -> bool,
) -> Report {
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let mut combination = Combination::new(plan);
    let cache = VerdictCache::new(scene.room("verdicts"));
    let oracle = oracle();
    let mut search = Search::new(SearchSetup::new(plan.needs()));
    let mut report = Report::default();
    let name = |place: usize| plan.entries()[place].sealed().id().to_string();
    let mut tip = plan.base();
    loop {
        let tests = search.next_tests(2);
        if tests.is_empty() {
            break;
        }
        for test in tests {
            let answer = match combination.build(&mut engine, &test.places).unwrap() {
                Built::Unfit { place } => TestAnswer::Unfit(place),
                Built::Failed { .. } => TestAnswer::Void,
                Built::Candidate(candidate) => {
                    let light = match known(&cache, &oracle, &candidate) {
                        Some(light) if !test.fresh => light,
                        _ => {
                            report.gate_runs += 1;
                            gated(scene, &cache, &oracle, &candidate, gate)
                        }
                    };
                    match light {
                        Light::Green => TestAnswer::Green,
                        Light::Red => TestAnswer::red(),
                    }
                }
            };
            search.report(test.id, &answer).unwrap();
        }
        for decision in search.decisions() {
            match decision {
                SearchDecision::Land { places, gated } => {
                    let built = combination.build(&mut engine, &gated).unwrap();
                    let Built::Candidate(whole) = built else { panic!("{built:?}") };
                    let rest = whole.after(tip).unwrap();
                    let Lookup::Found(verdict) = cache.look_up(&oracle.key(&rest)).unwrap() else {
                        panic!("it was not gated")
                    };
                    let gated = Gated::new(rest, &oracle, verdict).unwrap();
                    let onto = Onto::Target("main");
                    let landed = land(&scene.store, &scene.fence, &gated, onto, LOG).unwrap();
                    tip = landed.commit();
                    let certificate = Certificate::new(&landed, &gated).to_json();
                    verify(&mut engine, &certificate).unwrap();
                    report.landed.extend(places.into_iter().map(name));
                }
                SearchDecision::Hold { place, why } => drop(report.held.insert(name(place), why)),
                SearchDecision::Explained { place, partners, .. } => {
                    let partners = partners.into_iter().map(name).collect();
                    report.explained.insert(name(place), partners);
                }
                SearchDecision::Flake { .. } => report.flakes += 1,
                SearchDecision::BaseRed => report.base_red = true,
                SearchDecision::Mended { .. } | SearchDecision::Stuck { .. } => {}
            }
        }
    }
    assert_eq!(scene.main(), tip, "the target is where the last landing put it");
    report
}

fn known(cache: &VerdictCache, oracle: &GateSetId, candidate: &Candidate) -> Option<Light> {
    match cache.look_up(&oracle.key(candidate)).unwrap() {
        Lookup::Found(verdict) => Some(verdict.light),
        Lookup::Unknown | Lookup::Dropped { .. } => None,
    }
}

/// Passes every file of the candidate's tree to the gate.
fn gated(
    scene: &Scene,
    cache: &VerdictCache,
    oracle: &GateSetId,
    candidate: &Candidate,
    gate: &mut dyn FnMut(&BTreeMap<String, String>) -> bool,
) -> Light {
    let commit = candidate.commit().to_string();
    let names = scene.repo.git(&["ls-tree", "-r", "--name-only", &commit]);
    let files = names.lines().map(|name| (name.to_owned(), scene.file(candidate.commit(), name)));
    let light = if gate(&files.collect()) { Light::Green } else { Light::Red };
    cache.keep(&Verdict::new(oracle.key(candidate), light)).unwrap();
    light
}

/// Changes named `1`, `2`, … that each write `on` to a file of their own.
fn switches(count: usize) -> (Scene, Vec<Sealed>) {
    let names: Vec<String> = (1..=count).map(|number| format!("s{number}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "off\n")).collect();
    let scene = Scene::new(&files);
    let changes = (1_u64..).zip(&names).map(|(order, name)| {
        scene.change(&order.to_string(), order, &[(name.as_str(), Some("on\n"))])
    });
    let changes = changes.collect();
    (scene, changes)
}

/// A gate that is red if all switches of one of these sets are on.
fn red_with(bad: &[&[usize]]) -> impl FnMut(&BTreeMap<String, String>) -> bool {
    let bad: Vec<Vec<String>> =
        bad.iter().map(|set| set.iter().map(|number| format!("s{number}")).collect()).collect();
    move |files| {
        !bad.iter().any(|set| set.iter().all(|name| files.get(name).is_some_and(|f| f == "on\n")))
    }
}

fn plan(scene: &Scene, changes: &[Sealed], strategy: Strategy) -> FoldPlan {
    scene.plan(&changes.iter().collect::<Vec<_>>(), strategy)
}

#[test]
fn g10_groups_of_every_size_land_by_every_method() {
    for strategy in BOTH {
        for count in [1, 2, 3, 8] {
            let (scene, changes) = switches(count);
            let all = plan(&scene, &changes, strategy);
            let report = integrate(&scene, &all, &mut red_with(&[]));
            assert_eq!(report.landed.len(), count, "{strategy:?} {count}");
            assert_eq!(report.gate_runs, 2, "the base and the whole");
            let (scene, changes) = switches(count);
            let all = plan(&scene, &changes, strategy);
            // The last change is red alone.
            let report = integrate(&scene, &all, &mut red_with(&[&[count]]));
            assert_eq!(report.landed.len(), count - 1, "{strategy:?} {count}");
            assert!(report.explained[&count.to_string()].is_empty());
        }
    }
}

#[test]
fn g10_a_pair_in_a_group_of_eight_is_named_by_every_method() {
    for strategy in BOTH {
        let (scene, changes) = switches(8);
        let all = plan(&scene, &changes, strategy);
        let report = integrate(&scene, &all, &mut red_with(&[&[2, 6]]));
        assert_eq!(report.explained["6"], ["2"]);
        assert_eq!(report.landed, ["1", "2", "3", "4", "5", "7", "8"]);
        assert_eq!(scene.file(scene.main(), "s6"), "off\n");
    }
}

#[test]
fn g10_what_needs_a_culprit_is_held_by_every_method() {
    for strategy in BOTH {
        let (scene, changes) = switches(3);
        let [one, two, three] = &changes[..] else { panic!("there are three") };
        let entries = [
            PlanEntry::new(one.clone(), []),
            PlanEntry::new(two.clone(), [one.id().clone()]),
            PlanEntry::new(three.clone(), []),
        ];
        let all = FoldPlan::new(scene.base, strategy, entries).unwrap();
        let report = integrate(&scene, &all, &mut red_with(&[&[1]]));
        assert_eq!(report.landed, ["3"]);
        assert_eq!(report.held["2"], HoldReason::Needs(0));
    }
}

#[test]
fn g10_with_a_red_base_or_a_flake_nobody_is_held_by_any_method() {
    for strategy in BOTH {
        let (scene, changes) = switches(2);
        let all = plan(&scene, &changes, strategy);
        let report = integrate(&scene, &all, &mut |_| false);
        assert!(report.base_red && report.held.is_empty() && report.landed.is_empty());
        assert_eq!(scene.main(), scene.base);
        let (scene, changes) = switches(2);
        let all = plan(&scene, &changes, strategy);
        let mut runs = 0;
        let report = integrate(&scene, &all, &mut |_| {
            runs += 1;
            runs != 2
        });
        assert_eq!((report.flakes, report.landed.len()), (1, 2));
    }
}

#[test]
fn one_that_was_written_upon_a_culprit_is_held_as_unfit_and_the_rest_lands() {
    let scene = Scene::new(&[("f", "1\n2\n3\n"), ("g", "g\n")]);
    let one = scene.change("1", 1, &[("f", Some("1\nbad\n3\n"))]);
    let head = scene.commit(one.record().head, "upon it", |lane| lane.write("f", "1\nworse\n3\n"));
    // Its seal starts from the first change, so it cannot be folded onto anything else.
    let two = scene.accept("2", 2, one.record().head, head);
    let three = scene.change("3", 3, &[("g", Some("G\n"))]);
    let all = scene.plan(&[&one, &two, &three], Strategy::RebaseFf);
    let report = integrate(&scene, &all, &mut |files| !files["f"].contains("bad"));
    // Together they are green: the second change replaces what the first one breaks.
    assert_eq!(report.landed, ["1", "2", "3"]);
    let scene = Scene::new(&[("f", "1\n2\n3\n"), ("g", "g\n")]);
    let one = scene.change("1", 1, &[("f", Some("1\nbad\n3\n"))]);
    let head = scene.commit(one.record().head, "upon it", |lane| lane.write("f", "1\nbad 2\n3\n"));
    let two = scene.accept("2", 2, one.record().head, head);
    let three = scene.change("3", 3, &[("g", Some("G\n"))]);
    let all = scene.plan(&[&one, &two, &three], Strategy::RebaseFf);
    let report = integrate(&scene, &all, &mut |files| !files["f"].contains("bad"));
    assert_eq!(report.landed, ["3"]);
    assert_eq!(
        (report.held["1"], report.held["2"]),
        (HoldReason::Culprit(CulpritEffect::Red), HoldReason::Unfit)
    );
}
