//! The main path with the oldest git on the machine, and with one that is too old.

use camino::Utf8PathBuf;
use pdca_e2e::Scene;
use pdca_process::OLDEST_GIT;
use pdca_testkit::gits;

const BUILDER: &str = "cp -R \"$PDCA_WORKSPACE/todo/$1/.\" .";
const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";
const GATE: &str =
    "\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"test -f list.txt\"\n";

/// A `PATH` on which this `git` comes before every other.
fn first_on_path(scene: &Scene, name: &str, program: &std::path::Path) -> String {
    let dir = scene.workspace.around().join(name);
    fs_err::create_dir_all(&dir).expect("a directory can be made");
    fs_err::os::unix::fs::symlink(program, dir.join("git")).expect("a link can be made");
    #[expect(clippy::disallowed_methods, reason = "the rest of the path stays as it is")]
    let rest = std::env::var("PATH").expect("there is a PATH");
    format!("{dir}:{rest}")
}

fn lines(changed: &[(usize, &str)]) -> String {
    let line = |number| {
        let new = changed.iter().find(|(at, _)| *at == number).map(|(_, text)| *text);
        format!("{}\n", new.unwrap_or("as it was"))
    };
    (0..20).map(line).collect()
}

#[test]
fn the_whole_way_works_with_the_oldest_git_on_the_machine() {
    let all = gits();
    let (oldest, newest) = (&all[0], all.last().unwrap());
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATE);
    let path = first_on_path(&scene, "oldest", std::path::Path::new(&oldest.program));
    let scene = scene.env("PATH", &path);
    scene.repo.write(".gitattributes", "notes/*.md merge=union\n");
    scene.repo.write("notes/log.md", "first\n");
    scene.repo.write("list.txt", lines(&[]));
    scene.repo.commit("more files");
    scene.repo.git(&["switch", "--quiet", "--create", "own-work"]);

    let fresh = scene.workspace.around().join("fresh");
    fs_err::create_dir(&fresh).unwrap();
    scene.pdca(&["-C", fresh.as_str(), "init", "--yes"]).expect(0);
    assert!(fresh.join("pdca.toml").is_file());
    let doctor = scene.pdca(&["doctor", "--json"]).json();
    assert_eq!(doctor["rows"][0]["found"], oldest.said.as_str(), "{doctor}");

    // 1 and 2 edit one file apart from each other, 3 disagrees with 1, and 4 and 5 add to a file
    // whose additions are joined.
    let todo: [(&str, &str, String); 5] = [
        ("1", "list.txt", lines(&[(2, "one")])),
        ("2", "list.txt", lines(&[(15, "two")])),
        ("3", "list.txt", lines(&[(2, "three")])),
        ("4", "notes/log.md", "first\nfour\n".to_owned()),
        ("5", "notes/log.md", "first\nfive\n".to_owned()),
    ];
    for (id, file, text) in &todo {
        scene.workspace.write(format!("todo/{id}/{file}"), text);
        scene.brief(id, &[]);
    }
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    for (id, ..) in &todo {
        scene.accept(id);
    }
    let done = scene.pdca(&["integrate", "--land", "target", "--json"]).expect(102).json();
    assert_eq!(done["held"][0]["id"], "3", "{done}");
    let show = |file: &str| scene.repo.git(&["show", &format!("main:{file}")]);
    assert_eq!(show("list.txt"), lines(&[(2, "one"), (15, "two")]));
    assert_eq!(
        show("notes/log.md"),
        "first\nfour\nfive\n",
        "both were kept, as the attributes say"
    );
    // What one git folded, every other finds again.
    scene.pdca(&["verify"]).expect(0);
    let path = first_on_path(&scene, "newest", std::path::Path::new(&newest.program));
    scene.pdca_with(&[("PATH", &path)], &["verify"]).expect(0);
    #[expect(clippy::print_stderr, reason = "which programs were tried depends on the machine")]
    {
        eprintln!("with {}, and verified with {}", oldest.said, newest.said);
    }
}

#[test]
fn a_git_that_is_too_old_is_refused_before_anything_starts() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATE);
    scene.brief("1", &[]);
    let program: Utf8PathBuf = scene.workspace.around().join("old-git");
    scene.workspace.write("../old-git", "#!/bin/sh\necho git version 2.30.2\n");
    make_executable(&program);
    let path = first_on_path(&scene, "too-old", program.as_std_path());
    let scene = scene.env("PATH", &path);
    for command in [&["run", "1"][..], &["batch"], &["integrate"], &["demo"]] {
        let refused = scene.pdca(command).expect(2);
        for part in ["git version 2.30.2", &OLDEST_GIT.to_string(), "hint:", "PATH"] {
            assert!(refused.err.contains(part), "{command:?}: {}", refused.err);
        }
    }
    assert_eq!(scene.calls(), Vec::<String>::new(), "nobody was called");
    let doctor = scene.pdca(&["doctor"]).expect(2);
    assert!(doctor.out.contains("git version 2.30.2"), "{}", doctor.out);
}

fn make_executable(path: &camino::Utf8Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .expect("a mode can be set");
}
