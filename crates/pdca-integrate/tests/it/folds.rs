//! Folds of sealed changes onto a base.

use pdca_integrate::{
    Conflict, Drivers, FoldFate, FoldPlan, MergeDriver, MergeEngine, Merged, PlanEntry, Recorded,
    SealDrift, Sealed, Skip, StepEffect, StepState, Strategy, fold,
};
use pdca_testkit::Repo;

use crate::scene::{LOG, Scene};

const BOTH: [Strategy; 2] = [Strategy::RebaseFf, Strategy::MergeCommit];

fn three_changes() -> (Scene, Vec<Sealed>) {
    let scene = Scene::new(&[("a", "a\n"), ("b", "b\n"), ("c", "c\n")]);
    let names = ["a", "b", "c"];
    let changes = (1..)
        .zip(names)
        .map(|(order, name)| scene.change(&order.to_string(), order, &[(name, Some("new\n"))]));
    let changes = changes.collect();
    (scene, changes)
}

fn plan_of(scene: &Scene, changes: &[Sealed], strategy: Strategy) -> FoldPlan {
    scene.plan(&changes.iter().collect::<Vec<_>>(), strategy)
}

#[test]
fn a17_without_a_ref_the_same_fold_gives_the_same_ids() {
    for strategy in BOTH {
        let (scene, changes) = three_changes();
        let plan = plan_of(&scene, &changes, strategy);
        let first = scene.fold(&plan);
        let second = scene.fold(&plan);
        assert_eq!(first, second);
        let tip = second.candidate();
        assert_eq!(tip.anchor(&scene.store, &scene.fence, 1, LOG).unwrap(), StepEffect::Made);
        let at = scene.store.commit_at("refs/pdca/run1/int/1").unwrap();
        assert_eq!(at, Some(first.candidate().commit()));
        scene.repo.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

#[test]
fn a18_a_ref_that_is_there_is_recognised() {
    let (scene, changes) = three_changes();
    let folded = scene.fold(&plan_of(&scene, &changes, Strategy::RebaseFf));
    folded.candidate().anchor(&scene.store, &scene.fence, 1, LOG).unwrap();
    let again = folded.candidate().anchor(&scene.store, &scene.fence, 1, LOG).unwrap();
    assert_eq!(again, StepEffect::Recognised);
}

#[test]
fn a19_continues_after_the_commit_that_was_applied() {
    for strategy in BOTH {
        let (scene, changes) = three_changes();
        let plan = plan_of(&scene, &changes, strategy);
        let (whole, told) = scene.fold_known(&plan, &Recorded::default());
        for crash in 0..=told.len() {
            let steps = told[..crash].to_vec();
            let is_applied = |state: &StepState| matches!(state, StepState::Applied { .. });
            let done = steps.iter().filter(|step| is_applied(&step.state)).count();
            let git_version = scene.store.git_version().to_owned();
            let mut engine = MergeEngine::new(&scene.store, Drivers::default());
            let known = Recorded { git_version, steps };
            let resumed = fold(&mut engine, &plan, &known, &mut |_| Ok(())).unwrap();
            assert_eq!(resumed, whole, "crash after {crash} steps");
            assert_eq!(engine.asked(), 3 - done as u64, "crash after {crash} steps");
        }
    }
}

#[test]
fn every_commit_is_told_from_planned_to_applied() {
    let (scene, changes) = three_changes();
    let plan = plan_of(&scene, &changes[..1], Strategy::RebaseFf);
    let (folded, told) = scene.fold_known(&plan, &Recorded::default());
    let applied_commit = folded.candidate().commit();
    let states: Vec<_> = told.into_iter().map(|step| step.state).collect();
    assert_eq!(
        states,
        [StepState::Planned, StepState::Applying, StepState::Applied { applied_commit }]
    );
}

#[test]
fn a_step_that_cannot_be_recorded_stops_the_fold() {
    let (scene, changes) = three_changes();
    let plan = plan_of(&scene, &changes, Strategy::RebaseFf);
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let failed = fold(&mut engine, &plan, &Recorded::default(), &mut |_| Err("disk full".into()));
    assert!(matches!(failed, Err(pdca_integrate::FoldError::Recording(_))), "{failed:?}");
    assert_eq!(engine.asked(), 0);
}

#[test]
fn authors_and_dates_are_those_of_the_sealed_commit() {
    let (scene, changes) = three_changes();
    for strategy in BOTH {
        let folded = scene.fold(&plan_of(&scene, &changes, strategy));
        let format = "--format=%an %ae %ad %cn %ce %cd";
        let show = |commit: &str| scene.repo.git(&["log", "-1", "--date=raw", format, commit]);
        let sealed = show(&changes[2].record().head.to_string());
        assert_eq!(show(&folded.candidate().commit().to_string()), sealed);
    }
}

#[test]
fn the_order_is_dependencies_first_and_then_completion() {
    let (scene, changes) = three_changes();
    let [first, second, third] = &changes[..] else { panic!("there are three") };
    let entries = [
        PlanEntry::new(first.clone(), [third.id().clone()]),
        PlanEntry::new(second.clone(), []),
        PlanEntry::new(third.clone(), ["absent".parse().unwrap()]),
    ];
    let plan = FoldPlan::new(scene.base, Strategy::RebaseFf, entries).unwrap();
    let ids: Vec<_> = plan.entries().iter().map(|entry| entry.sealed().id().as_str()).collect();
    assert_eq!(ids, ["2", "3", "1"]);
    assert_eq!(plan.needs(), [vec![], vec![], vec![1]]);
    let circle = [
        PlanEntry::new(first.clone(), [second.id().clone()]),
        PlanEntry::new(second.clone(), [first.id().clone()]),
    ];
    assert!(FoldPlan::new(scene.base, Strategy::RebaseFf, circle).is_err());
    let twice = [PlanEntry::new(first.clone(), []), PlanEntry::new(first.clone(), [])];
    assert!(FoldPlan::new(scene.base, Strategy::RebaseFf, twice).is_err());
}

#[test]
fn d10_a_conflict_names_file_lines_and_both_sides_and_the_rest_goes_on() {
    for strategy in BOTH {
        let scene = Scene::new(&[("f", "1\n2\n3\n"), ("g", "g\n")]);
        let one = scene.change("1", 1, &[("f", Some("1\nours\n3\n"))]);
        let two = scene.change("2", 2, &[("f", Some("1\ntheirs\n3\n"))]);
        let three = scene.change("3", 3, &[("new", Some("needs 2\n"))]);
        let four = scene.change("4", 4, &[("g", Some("G\n"))]);
        let entries = [
            PlanEntry::new(one, []),
            PlanEntry::new(two.clone(), []),
            PlanEntry::new(three, [two.id().clone()]),
            PlanEntry::new(four, []),
        ];
        let plan = FoldPlan::new(scene.base, strategy, entries).unwrap();
        let (folded, told) = scene.fold_known(&plan, &Recorded::default());
        let fates: Vec<&FoldFate> = folded.bundles.iter().map(|bundle| &bundle.fate).collect();
        assert!(matches!(fates[0], FoldFate::Applied { .. }));
        let FoldFate::Conflict { conflicts, with, .. } = fates[1] else { panic!("{fates:?}") };
        assert_eq!(with.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["1"]);
        let [Conflict { path, kind, stages, hunks }] = &conflicts[..] else { panic!("{fates:?}") };
        assert_eq!((path.to_string().as_str(), kind.as_str()), ("f", "CONFLICT (contents)"));
        assert_eq!(stages.len(), 3);
        assert_eq!((hunks[0].line, hunks[0].ours.as_str()), (2, "ours\n"));
        assert_eq!(hunks[0].theirs, "theirs\n");
        assert_eq!(fates[2], &FoldFate::Held { behind: two.id().clone() });
        assert!(matches!(fates[3], FoldFate::Applied { .. }));
        let tip = folded.candidate().commit();
        assert_eq!(scene.file(tip, "f"), "1\nours\n3\n");
        assert_eq!(scene.file(tip, "g"), "G\n");
        assert!(told.iter().any(|step| matches!(step.state, StepState::Conflict { .. })));
    }
}

#[test]
fn a_conflict_in_the_second_commit_takes_the_first_off_again() {
    let scene = Scene::new(&[("f", "1\n"), ("g", "g\n")]);
    let one = scene.change("1", 1, &[("f", Some("one\n"))]);
    let first = scene.commit(scene.base, "first", |lane| lane.write("g", "G\n"));
    let second = scene.commit(first, "second", |lane| lane.write("f", "two\n"));
    let two = scene.accept("2", 2, scene.base, second);
    let folded = scene.fold(&scene.plan(&[&one, &two], Strategy::RebaseFf));
    assert!(matches!(folded.bundles[1].fate, FoldFate::Conflict { .. }));
    assert_eq!(scene.file(folded.candidate().commit(), "g"), "g\n");
}

#[test]
fn d11_a_commit_that_becomes_empty_is_skipped_with_its_reason() {
    let scene = Scene::new(&[("f", "1\n"), ("g", "g\n")]);
    let one = scene.change("1", 1, &[("f", Some("one\n"))]);
    let first = scene.commit(scene.base, "the same as 1 does", |lane| lane.write("f", "one\n"));
    let empty = scene.commit(first, "empty from the start", |_| {});
    let second = scene.commit(empty, "and more", |lane| lane.write("g", "G\n"));
    let two = scene.accept("2", 2, scene.base, second);
    let plan = scene.plan(&[&one, &two], Strategy::RebaseFf);
    let (folded, told) = scene.fold_known(&plan, &Recorded::default());
    let has = |commit, reason: Skip| {
        let state = StepState::Skipped { reason };
        told.iter().any(|step| step.commit == commit && step.state == state)
    };
    assert!(has(first, Skip::AlreadyPresent { by: None }), "{told:?}");
    assert!(has(empty, Skip::EmptyFromTheStart), "{told:?}");
    let FoldFate::Applied { commits } = &folded.bundles[1].fate else { panic!("{folded:?}") };
    assert_eq!(commits.len(), 1);
    // Nothing is lost: the seal keeps the skipped commits.
    scene.repo.git(&["merge-base", "--is-ancestor", &first.to_string(), "refs/pdca/run1/seal/2"]);
}

#[test]
fn d12_the_same_patch_a_second_time_is_already_present() {
    for strategy in BOTH {
        let scene = Scene::new(&[("f", "1\n")]);
        let one = scene.change("1", 1, &[("f", Some("one\n"))]);
        let two = scene.change("2", 2, &[("f", Some("one\n"))]);
        let folded = scene.fold(&scene.plan(&[&one, &two], strategy));
        let by = Some(one.id().clone());
        assert_eq!(folded.bundles[1].fate, FoldFate::AlreadyPresent { by });
        assert_eq!(folded.candidate().bundles().count(), 1);
    }
}

#[test]
fn c15_a_sealed_change_whose_branch_is_gone_is_folded_from_its_seal() {
    let scene = Scene::new(&[("f", "1\n")]);
    let head = scene.commit(scene.base, "change", |lane| lane.write("f", "one\n"));
    scene.repo.git(&["update-ref", "refs/heads/lane", &head.to_string()]);
    scene.accept("1", 1, scene.base, head);
    scene.repo.git(&["update-ref", "-d", "refs/heads/lane"]);
    scene.repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    scene.repo.git(&["gc", "--quiet", "--prune=now"]);
    let sealed = Sealed::load(&scene.store, &scene.run, &"1".parse().unwrap()).unwrap();
    let branch = scene.store.commit_at("refs/heads/lane").unwrap();
    assert_eq!(sealed.drift(branch), SealDrift::Gone);
    let folded = scene.fold(&scene.plan(&[&sealed], Strategy::RebaseFf));
    assert_eq!(scene.file(folded.candidate().commit(), "f"), "one\n");
}

#[test]
fn d15_what_another_git_merged_is_merged_again_and_a_difference_is_told() {
    let (scene, changes) = three_changes();
    let plan = plan_of(&scene, &changes, Strategy::RebaseFf);
    let (whole, told) = scene.fold_known(&plan, &Recorded::default());
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let old = || "git version 2.38.0".to_owned();
    let known = Recorded { git_version: old(), steps: told.clone() };
    let again = fold(&mut engine, &plan, &known, &mut |_| Ok(())).unwrap();
    assert_eq!((again, engine.asked()), (whole, 3));
    let mut other = told;
    for step in &mut other {
        if let StepState::Applied { applied_commit } = &mut step.state {
            *applied_commit = scene.base;
        }
    }
    let known = Recorded { git_version: old(), steps: other };
    let told = scene.fold_known(&plan, &known).0.changed;
    assert_eq!(told.len(), 3);
    assert_eq!(told[0].before, scene.base);
}

#[test]
fn d17_a_merge_driver_runs_only_where_it_is_declared() {
    let marker = tempfile::tempdir().unwrap();
    let marker = camino::Utf8Path::from_path(marker.path()).unwrap().join("ran");
    let scene = Scene::new(&[(".gitattributes", "f merge=loud\n"), ("f", "1\n2\n3\n")]);
    // `cat %B` takes theirs.
    let command = format!("touch {marker}; cat %B > %A.new; mv %A.new %A");
    // The repository's own configuration has no effect.
    let config = scene.repo.path().join(".git/config");
    let as_it_was = std::fs::read(&config).unwrap();
    scene.repo.git(&["config", "merge.loud.driver", &command]);
    let one = scene.change("1", 1, &[("f", Some("1\none\n3\n"))]);
    let two = scene.change("2", 2, &[("f", Some("1\ntwo\n3\n"))]);
    let plan = scene.plan(&[&one, &two], Strategy::RebaseFf);
    let undeclared = scene.fold(&plan);
    assert!(matches!(undeclared.bundles[1].fate, FoldFate::Conflict { .. }));
    assert!(!marker.exists(), "it ran");

    let mut drivers = Drivers::default();
    drivers.declare("loud", MergeDriver { command, recursive: None }).unwrap();
    assert_ne!(drivers.digest(), Drivers::default().digest());
    let mut engine = MergeEngine::new(&scene.store, drivers);
    let declared = fold(&mut engine, &plan, &Recorded::default(), &mut |_| Ok(())).unwrap();
    assert!(marker.exists(), "it did not run");
    assert_eq!(scene.file(declared.candidate().commit(), "f"), "1\ntwo\n3\n");
    let oracle = crate::scene::oracle();
    assert_ne!(
        oracle.key(declared.candidate()).drivers,
        oracle.key(undeclared.candidate()).drivers
    );
    std::fs::write(config, as_it_was).unwrap();
}

#[test]
fn attributes_are_those_of_the_tip_and_not_of_files_that_lie_around() {
    let scene = Scene::new(&[("list", "a\n"), ("other", "x\n")]);
    // The user's own attributes would merge both sides.
    let info = scene.repo.path().join(".git/info/attributes");
    std::fs::create_dir_all(info.parent().unwrap()).unwrap();
    std::fs::write(&info, "* merge=union\n").unwrap();
    let one = scene.change("1", 1, &[("list", Some("a\none\n"))]);
    let two = scene.change("2", 2, &[("list", Some("a\ntwo\n"))]);
    let folded = scene.fold(&scene.plan(&[&one, &two], Strategy::RebaseFf));
    assert!(matches!(folded.bundles[1].fate, FoldFate::Conflict { .. }));
    // A change that lands before them defines how lists are merged.
    let rule = scene.change("0", 0, &[(".gitattributes", Some("list merge=union\n"))]);
    let folded = scene.fold(&scene.plan(&[&rule, &one, &two], Strategy::RebaseFf));
    assert_eq!(scene.file(folded.candidate().commit(), "list"), "a\none\ntwo\n");
}

/// The edits of each side to the same base.
type Edit = fn(&Repo);

/// Pairs of changes of every kind.
fn kinds() -> Vec<(&'static str, Edit, Edit)> {
    vec![
        (
            "rename against edit",
            |lane| drop(lane.git(&["mv", "long", "dir/moved"])),
            |lane| lane.write("long", text("3", "three")),
        ),
        (
            "edit against rename",
            |lane| lane.write("long", text("3", "three")),
            |lane| drop(lane.git(&["mv", "long", "moved"])),
        ),
        (
            "rename against another rename",
            |lane| drop(lane.git(&["mv", "long", "left"])),
            |lane| drop(lane.git(&["mv", "long", "right"])),
        ),
        (
            "a name that differs in case only",
            |lane| drop(lane.git(&["mv", "long", "LONG"])),
            |lane| lane.write("long", text("9", "nine")),
        ),
        (
            "mode against edit",
            |lane| lane.write_executable("long", text("", "")),
            |lane| lane.write("long", text("5", "five")),
        ),
        (
            "binary against another file",
            |lane| lane.write("bin", [0, 1, 2, 255]),
            |lane| lane.write("long", text("5", "five")),
        ),
        (
            "binary on both sides",
            |lane| lane.write("bin", [0, 1]),
            |lane| lane.write("bin", [0, 2]),
        ),
        (
            "delete against edit",
            |lane| std::fs::remove_file(lane.path().join("long")).unwrap(),
            |lane| lane.write("long", text("5", "five")),
        ),
        (
            "delete on both sides",
            |lane| std::fs::remove_file(lane.path().join("long")).unwrap(),
            |lane| {
                std::fs::remove_file(lane.path().join("long")).unwrap();
                lane.write("x", "x");
            },
        ),
        (
            "line ends",
            |lane| lane.write("crlf", "1\r\n2\r\nthree\r\n"),
            |lane| lane.write("crlf", "one\r\n2\r\n3\r\n"),
        ),
        (
            "a file becomes a directory",
            |lane| {
                std::fs::remove_file(lane.path().join("bin")).unwrap();
                lane.write("bin/inner", "x\n");
            },
            |lane| lane.write("long", text("5", "five")),
        ),
        (
            "a submodule goes on",
            |lane| {
                let to = "160000,1111111111111111111111111111111111111111,sub";
                lane.git(&["update-index", "--add", "--cacheinfo", to]);
                lane.git(&["commit", "--quiet", "--message", "pointer"]);
                std::fs::create_dir_all(lane.path().join("sub")).unwrap();
            },
            |lane| lane.write("long", text("5", "five")),
        ),
        (
            "a symbolic link",
            |lane| std::os::unix::fs::symlink("long", lane.path().join("link")).unwrap(),
            |lane| lane.write("link2", "x"),
        ),
        (
            "names that are odd",
            |lane| lane.write("sp ace\n\"new\"", "x\n"),
            |lane| lane.write("größe", "x\n"),
        ),
    ]
}

fn text(line: &str, with: &str) -> String {
    (1..=12)
        .map(|n| if n.to_string() == line { format!("{with}\n") } else { format!("{n}\n") })
        .collect()
}

#[test]
fn d13_every_kind_of_change_comes_out_as_git_would_have_it_and_again_so() {
    for (kind, left, right) in kinds() {
        let repo = Repo::new();
        repo.write("long", text("", ""));
        repo.write("dir/keep", "keep\n");
        repo.write("bin", [0, 7]);
        repo.write("crlf", "1\r\n2\r\n3\r\n");
        repo.commit("base");
        let scene = Scene::of(repo);
        let one = scene.commit(scene.base, "left", left);
        let two = scene.commit(scene.base, "right", right);
        let heads = [one, two];
        let one = scene.accept("1", 1, scene.base, one);
        let two = scene.accept("2", 2, scene.base, two);
        for strategy in BOTH {
            let plan = scene.plan(&[&one, &two], strategy);
            let folded = scene.fold(&plan);
            assert_eq!(scene.fold(&plan), folded, "{kind}");
            let stopped = matches!(folded.bundles[1].fate, FoldFate::Conflict { .. });
            let ours = (!stopped).then(|| scene.tree(folded.candidate().commit()));
            assert_eq!(ours, gits(&scene, heads, strategy), "{kind}, {strategy:?}");
        }
    }
}

/// Returns the tree that git itself makes of both in a checkout, or `None` if it stops.
fn gits(scene: &Scene, heads: [pdca_integrate::ObjectId; 2], strategy: Strategy) -> Option<String> {
    let place = scene.room("gits");
    let text = place.as_str();
    scene.repo.git(&["worktree", "add", "--quiet", "--detach", text, &scene.base.to_string()]);
    let repo = Repo::existing(&place);
    let mut went_well = true;
    for head in heads {
        // The first change may have several commits.
        let range = format!("{}..{head}", scene.base);
        let head = head.to_string();
        let done = match strategy {
            Strategy::RebaseFf => repo.try_git(&["cherry-pick", "--allow-empty", &range]),
            Strategy::MergeCommit => {
                repo.try_git(&["merge", "--quiet", "--no-ff", "--no-edit", &head])
            }
        };
        went_well = went_well && done.status.success();
    }
    let tree = went_well.then(|| repo.git(&["rev-parse", "HEAD^{tree}"]).trim().to_owned());
    scene.repo.git(&["worktree", "remove", "--force", text]);
    tree
}

#[test]
fn a_fold_of_many_at_once_is_the_fold_of_each_onto_the_one_before() {
    for strategy in BOTH {
        let lines = text("", "");
        let scene = Scene::new(&[("f", &lines), ("g", &lines), ("h", "h\n"), ("i", "i\n")]);
        // Edits whose result can be guessed, and between them some that cannot: lines of a file that another
        // change edited too, a new file, a removed one, a conflict, attributes.
        let edits: [(&str, Option<String>); 9] = [
            ("f", Some(text("1", "one"))),
            ("g", Some(text("2", "two"))),
            ("f", Some(text("12", "twelve"))),
            ("h", Some("H\n".to_owned())),
            ("new", Some("new\n".to_owned())),
            ("f", Some(text("1", "uno"))),
            ("i", None),
            (".gitattributes", Some("*.x binary\n".to_owned())),
            ("g", Some(text("9", "nine"))),
        ];
        let changes: Vec<Sealed> = (1_u64..)
            .zip(&edits)
            .map(|(order, (path, edit))| {
                scene.change(&order.to_string(), order, &[(path, edit.as_deref())])
            })
            .collect();
        let whole = scene.fold(&plan_of(&scene, &changes, strategy));
        assert!(matches!(whole.bundles[5].fate, FoldFate::Conflict { .. }));
        assert_eq!(whole.candidate().bundles().count(), 8);
        let mut tip = scene.base;
        for change in &changes {
            let alone = FoldPlan::new(tip, strategy, [PlanEntry::new(change.clone(), [])]).unwrap();
            tip = scene.fold(&alone).candidate().commit();
        }
        assert_eq!(whole.candidate().commit(), tip, "{strategy:?}");
    }
}

#[test]
fn a_change_that_does_not_fit_is_brought_with_markers_that_carry_both_commits() {
    let scene = Scene::new(&[("f", "1\n2\n3\n"), ("g", "g\n")]);
    let ours = scene.commit(scene.base, "ours", |lane| lane.write("f", "1\nours\n3\n"));
    let theirs = scene.commit(scene.base, "theirs", |lane| {
        lane.write("f", "1\ntheirs\n3\n");
        lane.write("g", "G\n");
    });
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let brought = engine.bring((scene.base, theirs), ours).unwrap();
    let Merged::Conflicted { tree, conflicts } = brought else { panic!("{brought:?}") };
    assert_eq!(conflicts.len(), 1);
    let marked = scene.repo.git(&["show", &format!("{tree}:f")]);
    let expected = format!("1\n<<<<<<< {ours}\nours\n=======\ntheirs\n>>>>>>> {theirs}\n3\n");
    assert_eq!(marked, expected);
    assert_eq!(scene.repo.git(&["show", &format!("{tree}:g")]), "G\n");
}
