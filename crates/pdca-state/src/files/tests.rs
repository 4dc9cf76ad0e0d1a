use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

use super::*;

fn dir() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
    (dir, path)
}

#[test]
fn a_replaced_file_has_the_new_bytes_and_leaves_nothing_beside_it() {
    let (_guard, dir) = dir();
    let path = dir.join("a.md");
    replace(&path, b"one").unwrap();
    replace(&path, b"two").unwrap();
    replace_unsynced(&path, b"three").unwrap();
    assert_eq!(fs_err::read(&path).unwrap(), b"three");
    assert_eq!(dir.read_dir_utf8().unwrap().count(), 1);
}

#[test]
fn a_replacement_that_fails_leaves_the_old_and_nothing_beside_it() {
    let (_guard, dir) = dir();
    let path = dir.join("a.md");
    fs_err::create_dir(&path).unwrap();
    let error = replace(&path, b"x").unwrap_err();
    assert!(error.to_string().contains("a.md"), "{error}");
    assert_eq!(dir.read_dir_utf8().unwrap().count(), 1);
    assert!(path.is_dir());
    assert!(replace(dir.join("none/a.md"), b"x").is_err());
}

#[test]
fn a_reader_sees_the_old_bytes_or_the_new_ones_and_nothing_else() {
    let (_guard, dir) = dir();
    let path = dir.join("a.md");
    let versions = [vec![b'a'; 100_000], vec![b'b'; 50_000]];
    replace_unsynced(&path, &versions[0]).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..200 {
                replace_unsynced(&path, &versions[round % 2]).unwrap();
            }
        });
        while !writer.is_finished() {
            let read = read_bounded(&path, 1 << 20).unwrap().expect("it is never absent");
            assert!(versions.contains(&read), "{} bytes", read.len());
        }
    });
}

#[test]
fn a_file_that_is_missing_is_none_and_not_an_error() {
    let (_guard, dir) = dir();
    assert!(read_bounded(dir.join("none"), 10).unwrap().is_none());
    assert!(read_within(&dir, Utf8Path::new("no/such/dir"), 10).unwrap().is_none());
}

#[test]
fn the_bound_is_exact() {
    let (_guard, dir) = dir();
    let path = dir.join("a");
    fs_err::write(&path, "12345").unwrap();
    assert_eq!(read_bounded(&path, 5).unwrap().as_deref(), Some(&b"12345"[..]));
    let error = read_bounded(&path, 4).unwrap_err();
    assert!(matches!(error, FileReadError::TooLarge { size: 5, max: 4, .. }), "{error}");
    fs_err::write(&path, "").unwrap();
    assert_eq!(read_bounded(&path, 0).unwrap().as_deref(), Some(&b""[..]));
}

#[test]
fn what_is_no_file_is_refused_at_once_with_what_it_is() {
    let (_guard, dir) = dir();
    fs_err::create_dir(dir.join("dir")).unwrap();
    let pipe = dir.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, pipe.as_std_path(), FileType::Fifo, Mode::RWXU, 0)
        .unwrap();
    let socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
    symlink("pipe", dir.join("to-pipe")).unwrap();
    for (name, expected) in [
        ("dir", "a directory"),
        ("pipe", "a named pipe"),
        ("socket", "a socket"),
        ("to-pipe", "a named pipe"),
    ] {
        let error = read_bounded(dir.join(name), 10).unwrap_err();
        assert!(
            matches!(error, FileReadError::NotAFile { kind, .. } if kind == expected),
            "{name}: {error}"
        );
        assert_eq!(error.path(), dir.join(name));
    }
    drop(socket);
}

#[test]
fn a_link_is_followed_inside_and_refused_outside() {
    let (_guard, dir) = dir();
    let root = dir.join("root");
    fs_err::create_dir_all(root.join("sub")).unwrap();
    fs_err::write(dir.join("secret"), "s").unwrap();
    fs_err::write(root.join("sub/file"), "f").unwrap();
    symlink("sub/file", root.join("in")).unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let read = |name: &str| read_within(&root, Utf8Path::new(name), 10);
    assert_eq!(read("in").unwrap().as_deref(), Some(&b"f"[..]));
    assert_eq!(read("sub/file").unwrap().as_deref(), Some(&b"f"[..]));
    for name in ["out", "up/secret", "../secret", "sub/../../secret"] {
        let error = read(name).unwrap_err();
        assert!(
            matches!(&error, FileReadError::LeadsOut { target, .. } if target.ends_with("/secret")),
            "{name}: {error}"
        );
    }
    assert!(matches!(read(dir.join("secret").as_str()), Err(FileReadError::LeadsOut { .. })));
    assert!(matches!(read("dangling"), Err(FileReadError::Io { .. })));
    assert!(matches!(read("loop"), Err(FileReadError::Io { .. })));
}

#[test]
fn a_temporary_whose_writer_lives_is_not_swept() {
    let (_guard, dir) = dir();
    let (temp, file) = create_temp(dir.join("a.md").as_std_path()).unwrap();
    sweep_temp(&temp).unwrap();
    assert!(temp.exists());
    drop(file);
    sweep_temp(&temp).unwrap();
    assert!(!temp.exists());
}

#[test]
fn a_temporary_directory_whose_writer_lives_is_not_swept() {
    let (_guard, dir) = dir();
    let (temp, claim) = create_temp_dir(dir.join("issue_1").as_std_path()).unwrap();
    fs_err::write(temp.join("brief.md"), "x").unwrap();
    sweep_temp(&temp).unwrap();
    assert!(temp.join("brief.md").exists());
    drop(claim);
    sweep_temp(&temp).unwrap();
    assert!(!temp.exists());
    sweep_temp(&temp).unwrap();
}

#[test]
fn a_temporary_that_a_sweeper_has_or_had_is_not_claimed() {
    let (_guard, dir) = dir();
    let path = dir.join("temp");
    fs_err::create_dir(&path).unwrap();
    let writer = std::fs::File::open(&path).unwrap();
    let sweeper = std::fs::File::open(&path).unwrap();
    sweeper.try_lock().unwrap();
    assert!(!claim(path.as_std_path(), &writer).unwrap());
    drop(sweeper);
    assert!(claim(path.as_std_path(), &writer).unwrap());
    fs_err::remove_dir(&path).unwrap();
    assert!(!claim(path.as_std_path(), &writer).unwrap());
}

#[test]
fn only_what_a_replacement_left_is_called_a_temporary() {
    for (name, of_brief, any) in [
        (".brief.md.pdca-tmp-1-0", true, true),
        (".brief.md.orig.pdca-tmp-1-0", false, true),
        (".SUMMARY.md.pdca-tmp-9-9", false, true),
        ("brief.md.pdca-tmp-1-0", false, false),
        (".brief.md.tmp", false, false),
    ] {
        assert_eq!(is_temp_name_of(name.as_bytes(), "brief.md"), of_brief, "{name}");
        assert_eq!(is_temp_name(name.as_bytes()), any, "{name}");
    }
}

#[test]
fn what_a_crash_left_of_replacements_is_cleared_and_nothing_else() {
    let (_guard, dir) = dir();
    for name in [".app.json.pdca-tmp-1-0", "app.json", ".app.json", "app.pdca-tmp-1-0"] {
        fs_err::write(dir.join(name), "half").unwrap();
    }
    clear_abandoned(&dir).unwrap();
    let mut left: Vec<String> =
        dir.read_dir_utf8().unwrap().map(|entry| entry.unwrap().file_name().to_owned()).collect();
    left.sort();
    assert_eq!(left, [".app.json", "app.json", "app.pdca-tmp-1-0"]);
}

#[test]
fn what_is_created_never_takes_the_place_of_what_is_there() {
    let (_guard, dir) = dir();
    let path = dir.join("a.md");
    assert!(create(&path, b"ours").unwrap());
    assert!(!create(&path, b"again").unwrap());
    assert_eq!(fs_err::read(&path).unwrap(), b"ours");
    symlink("nowhere", dir.join("link")).unwrap();
    assert!(!create(dir.join("link"), b"ours").unwrap(), "a link that leads nowhere is there too");
    assert_eq!(dir.read_dir_utf8().unwrap().count(), 2, "nothing is left beside them");
}

#[test]
fn a_tree_with_closed_directories_is_removed_and_no_link_in_it_is_followed() {
    let (_guard, dir) = dir();
    let (tree, outside) = (dir.join("tree"), dir.join("outside"));
    let set = |path: &Utf8Path, mode| {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    fs_err::create_dir_all(tree.join("read-only/closed")).unwrap();
    fs_err::create_dir(&outside).unwrap();
    symlink(&outside, tree.join("read-only/link")).unwrap();
    set(&tree.join("read-only/closed"), 0o000);
    set(&tree.join("read-only"), 0o555);
    set(&outside, 0o750);
    for _ in 0..2 {
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }
    assert_eq!(fs_err::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn a_tree_of_any_depth_is_removed_although_its_names_are_taken_and_its_directories_closed() {
    use rustix::fs::{Mode, OFlags, fchmod, mkdirat, open, openat};
    let (_guard, dir) = dir();
    let tree = dir.join("tree");
    for beside in ["tree/.raised-0/inner", "tree/.raised-2", "tree/d"] {
        fs_err::create_dir_all(dir.join(beside)).unwrap();
    }
    fs_err::write(tree.join(".raised-1"), "x").unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at = open(tree.as_std_path(), flags, Mode::empty()).unwrap();
    for level in 0..3_000 {
        if level > 0 {
            mkdirat(&at, "d", Mode::RWXU).unwrap();
        }
        openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
        let below = openat(&at, "d", flags, Mode::empty()).unwrap();
        if level % 7 == 3 {
            fchmod(&at, Mode::RUSR | Mode::XUSR).unwrap();
        }
        at = below;
    }
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn a_person_s_file_is_rewritten_behind_its_link_and_keeps_its_mode() {
    let (_guard, dir) = dir();
    let (real, link) = (dir.join("dot/pdca.toml"), dir.join("pdca.toml"));
    fs_err::create_dir(dir.join("dot")).unwrap();
    fs_err::write(&real, "old").unwrap();
    fs_err::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink("dot/pdca.toml", &link).unwrap();
    replace_like(dir.join("backup"), b"old", &link).unwrap();
    rewrite(&link, b"new").unwrap();
    assert_eq!(link.read_link_utf8().unwrap(), "dot/pdca.toml");
    for (path, text) in [(real, "new"), (dir.join("backup"), "old")] {
        assert_eq!(fs_err::read_to_string(&path).unwrap(), text);
        let mode = fs_err::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
    rewrite(dir.join("first"), b"made").unwrap();
    assert_eq!(fs_err::read(dir.join("first")).unwrap(), b"made");
    assert_eq!(dir.read_dir_utf8().unwrap().count(), 4);
}
