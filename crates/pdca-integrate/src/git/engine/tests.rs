//! All versions of git, and our merges without git, must agree on every merge.

use std::collections::BTreeMap;

use camino::Utf8Path;
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
    objs::tree::EntryKind,
};
use pdca_process::InstalledGit;
use pdca_testkit::{Repo, gits};

use super::{Drivers, EngineError, MergeEngine, Merged, Question};
use crate::git::store::Store;

/// A stream of numbers that is the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Files(BTreeMap<String, File>);

#[derive(Debug, Clone, PartialEq)]
struct File {
    kind: EntryKind,
    text: Vec<u8>,
}

const DIRS: [&str; 5] = ["", "a/", "b/", "a/deep/", "c d/"];
const NAMES: [&str; 6] = ["one", "two", "three.txt", "four.bin", "fünf", "a"];

impl Files {
    fn random(dice: &mut Dice) -> Self {
        let mut files = Self::default();
        for _ in 0..3 + dice.roll(8) {
            files.add(dice);
        }
        files
    }

    fn some(&self, dice: &mut Dice) -> Option<String> {
        let all: Vec<&String> = self.0.keys().collect();
        (!all.is_empty()).then(|| (*dice.pick(&all)).clone())
    }

    /// Writes a file, and removes what cannot exist beside it.
    fn put(&mut self, path: String, file: File) {
        let below = format!("{path}/");
        self.0.retain(|other, _| {
            !other.starts_with(&below) && !path.starts_with(&format!("{other}/"))
        });
        self.0.insert(path, file);
    }

    fn add(&mut self, dice: &mut Dice) {
        let path = format!("{}{}", dice.pick(&DIRS), dice.pick(&NAMES));
        let file = File::random(dice, &path);
        self.put(path, file);
    }

    /// Makes a random edit as a person would.
    fn change(&mut self, dice: &mut Dice) {
        let Some(path) = self.some(dice) else { return self.add(dice) };
        match dice.roll(14) {
            0 | 1 => self.add(dice),
            2 => drop(self.0.remove(&path)),
            3 | 4 => {
                // A rename, with or without an edit.
                let mut file = self.0.remove(&path).unwrap();
                let to = format!("{}{}", dice.pick(&DIRS), dice.pick(&NAMES));
                if dice.roll(2) == 0 {
                    file.edit(dice);
                }
                self.put(to, file);
            }
            5 => {
                // A whole directory is renamed.
                let (from, to) = (*dice.pick(&DIRS[1..]), *dice.pick(&["moved/", "b/", "a/new/"]));
                let inside: Vec<String> =
                    self.0.keys().filter(|path| path.starts_with(from)).cloned().collect();
                for path in inside {
                    let file = self.0.remove(&path).unwrap();
                    self.put(format!("{to}{}", &path[from.len()..]), file);
                }
            }
            6 => {
                let file = self.0.get_mut(&path).unwrap();
                file.kind = match file.kind {
                    EntryKind::Blob => EntryKind::BlobExecutable,
                    EntryKind::BlobExecutable => EntryKind::Blob,
                    other @ (EntryKind::Tree | EntryKind::Link | EntryKind::Commit) => other,
                };
            }
            7 => {
                let kind = *dice.pick(&[EntryKind::Link, EntryKind::Commit, EntryKind::Blob]);
                self.0.get_mut(&path).unwrap().kind = kind;
            }
            8 => {
                // A directory replaces a file.
                let file = self.0.remove(&path).unwrap();
                self.put(format!("{path}/inside"), file);
            }
            _ => self.0.get_mut(&path).unwrap().edit(dice),
        }
    }

    fn changed(&self, dice: &mut Dice) -> Self {
        let mut files = self.clone();
        for _ in 0..dice.roll(5) {
            files.change(dice);
        }
        files
    }

    fn write(&self, repo: &gix::Repository) -> ObjectId {
        let mut editor = repo.edit_tree(ObjectId::empty_tree(repo.object_hash())).unwrap();
        for (path, file) in &self.0 {
            let id = match file.kind {
                // A submodule: a commit that is not in this repository.
                EntryKind::Commit => {
                    gix::objs::compute_hash(repo.object_hash(), gix::objs::Kind::Blob, &file.text)
                        .unwrap()
                }
                EntryKind::Tree | EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                    repo.write_blob(&file.text).unwrap().detach()
                }
            };
            editor.upsert(path.as_bytes().as_bstr(), file.kind, id).unwrap();
        }
        editor.write().unwrap().detach()
    }
}

impl File {
    fn random(dice: &mut Dice, path: &str) -> Self {
        let kind = match dice.roll(12) {
            0 => EntryKind::Link,
            1 => EntryKind::Commit,
            2 => EntryKind::BlobExecutable,
            _ => EntryKind::Blob,
        };
        let mut text = Vec::new();
        for line in 0..4 + dice.roll(8) {
            // Long enough for rename detection by content.
            text.extend_from_slice(format!("{path} has a line with number {line}\n").as_bytes());
        }
        if path.contains(".bin") {
            text.extend_from_slice(b"\0\x01\x02");
        }
        Self { kind, text }
    }

    fn edit(&mut self, dice: &mut Dice) {
        let mut lines: Vec<Vec<u8>> =
            self.text.lines_with_terminator().map(<[u8]>::to_vec).collect();
        let new = format!("edited {}\n", dice.roll(4)).into_bytes();
        let at = dice.roll(lines.len() + 1);
        match dice.roll(3) {
            0 => lines.insert(at, new),
            1 if at < lines.len() => drop(lines.remove(at)),
            _ if at < lines.len() => lines[at] = new,
            _ => lines.push(new),
        }
        self.text = lines.concat();
    }
}

/// A repository to merge in.
struct Scene {
    repo: Repo,
    home: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let repo = Repo::new();
        repo.write("first", "1\n");
        repo.commit("first");
        Self { repo, home: tempfile::tempdir().unwrap() }
    }

    fn store(&self, git: InstalledGit, name: &str) -> Store {
        let room = Utf8Path::from_path(self.home.path()).unwrap().join(name);
        Store::open_with(self.repo.path(), &room, git).unwrap()
    }

    fn commit(store: &Store, tree: ObjectId, parents: &[ObjectId]) -> ObjectId {
        let by = gix::actor::Signature {
            name: "A".into(),
            email: "a@example.com".into(),
            time: gix::date::Time { seconds: 1_000_000_000, offset: 0 },
        };
        let commit = gix::objs::Commit {
            tree,
            parents: parents.iter().copied().collect(),
            author: by.clone(),
            committer: by,
            encoding: None,
            message: BString::from(format!("{parents:?}")),
            extra_headers: Vec::new(),
        };
        store.repo().write_object(&commit).unwrap().detach()
    }
}

/// Trees to merge, and commits with criss-crossing histories.
fn questions(store: &Store, dice: &mut Dice, count: usize) -> Vec<Question> {
    let repo = store.repo();
    let mut all = Vec::new();
    for number in 0..count {
        let base = Files::random(dice);
        let (mut ours, mut theirs) = (base.changed(dice), base.changed(dice));
        if let Some(path) = base.some(dice).filter(|_| number % 2 == 0) {
            // Both sides edit the same file, so that its content must be merged.
            for side in [&mut ours, &mut theirs] {
                if let Some(file) = side.0.get_mut(&path) {
                    file.edit(dice);
                }
            }
        }
        if number % 5 > 0 {
            let [base, ours, theirs] = [&base, &ours, &theirs].map(|files| files.write(&repo));
            all.push(Question::Trees { base, ours, theirs });
            continue;
        }
        let root = Scene::commit(store, base.write(&repo), &[]);
        let sides = [&ours, &theirs];
        let [one, two] = sides.map(|files| Scene::commit(store, files.write(&repo), &[root]));
        // Each side merged the other and resolved the result in its own way.
        let crossed = dice.roll(2) == 0;
        let mut on = |files: &Files, first: ObjectId, second: ObjectId| {
            let parents = if crossed { vec![first, second] } else { vec![first] };
            Scene::commit(store, files.changed(dice).write(&repo), &parents)
        };
        let (ours, theirs) = (on(&ours, one, two), on(&theirs, two, one));
        all.push(Question::Commits { ours, theirs });
    }
    all
}

/// Attribute files of every kind that can affect a merge, in several directories.
fn attributes(store: &Store, dice: &mut Dice) -> ObjectId {
    const LINES: [&str; 16] = [
        "*.txt merge=union",
        "one -merge",
        "two binary",
        "/a/** merge=union",
        "deep/* conflict-marker-size=12",
        "* merge=text",
        "[attr]joined merge=union",
        "three.txt joined",
        "a/one !merge",
        "\"f\\303\\274nf\" merge=union",
        "!two merge=union",
        "c?d/* merge=binary",
        "[ao]* conflict-marker-size=3",
        "# two merge=union",
        "  four.bin   merge=union diff",
        "**/two merge=union\r",
    ];
    let mut files = Files::default();
    for dir in DIRS {
        if dice.roll(4) == 0 {
            continue;
        }
        let mut text: Vec<u8> = Vec::new();
        match dice.roll(8) {
            0 => text.extend_from_slice(b"\xef\xbb\xbfone merge=union\n"),
            1 => text.extend_from_slice(b"two merge=union\n\0two -merge\n"),
            _ => {}
        }
        for _ in 0..2 + dice.roll(5) {
            text.extend_from_slice(dice.pick(&LINES).as_bytes());
            text.push(b'\n');
        }
        let kind =
            *dice.pick(&[EntryKind::Blob, EntryKind::Blob, EntryKind::Blob, EntryKind::Link]);
        files.put(format!("{dir}.gitattributes"), File { kind, text });
    }
    files.write(&store.repo())
}

/// Returns the answers; `None` where git gave none, because some merges are too much for every version of git.
type Told = Vec<Option<Merged>>;

fn ask(store: &Store, attributes: Option<ObjectId>, questions: &[Question]) -> Told {
    let mut engine = MergeEngine::new(store, Drivers::default());
    engine.attributes = attributes;
    let told = engine.ask_all(questions).into_iter();
    told.map(|answer| match answer {
        Ok(merged) => Some(merged),
        Err(EngineError::NoAnswer { .. }) => None,
        Err(other) => panic!("{other:?}"),
    })
    .collect()
}

/// The number of answers of each kind.
fn count(told: &Told) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for answer in told {
        let names = match answer {
            Some(Merged::Clean { .. }) => vec!["clean".to_owned()],
            Some(Merged::Conflicted { conflicts, .. }) => {
                conflicts.iter().map(|conflict| conflict.kind.clone()).collect()
            }
            None => vec!["no answer".to_owned()],
        };
        for name in names {
            *kinds.entry(name).or_default() += 1;
        }
    }
    kinds
}

#[test]
fn every_git_gives_the_same_trees_and_conflicts() {
    let gits = gits();
    let scene = Scene::new();
    let stores: Vec<(String, Store)> = gits
        .iter()
        .map(|git| (git.said.clone(), scene.store(git.clone(), &git.said.replace(' ', "-"))))
        .collect();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut swayed = 0;
    for round in 0..16 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (round << 32));
        let attributes = (round % 4 > 0).then(|| attributes(&stores[0].1, &mut dice));
        let questions = questions(&stores[0].1, &mut dice, 60);
        let (first, rest) = stores.split_first().unwrap();
        let expected = ask(&first.1, attributes, &questions);
        for (kind, times) in count(&expected) {
            *kinds.entry(kind).or_default() += times;
        }
        if attributes.is_some() {
            let without = ask(&first.1, None, &questions);
            swayed +=
                expected.iter().zip(&without).filter(|(with, without)| with != without).count();
        }
        for (name, store) in rest {
            let told = ask(store, attributes, &questions);
            for (at, question) in questions.iter().enumerate() {
                assert_eq!(
                    told[at], expected[at],
                    "{name} beside {} about {question:?}, attributes {attributes:?}, round {round}",
                    first.0
                );
            }
        }
    }
    assert!(kinds["clean"] > 100, "{kinds:?}");
    assert!(kinds.len() > 6, "conflicts of many kinds were among them: {kinds:?}");
    assert!(swayed > 5, "attributes decided {swayed} of the merges");
    let names: Vec<&str> = stores.iter().map(|(name, _)| name.as_str()).collect();
    #[expect(clippy::print_stderr, reason = "which programs were compared depends on the machine")]
    {
        eprintln!("compared {names:?}: {swayed} merges decided by attributes, {kinds:#?}");
    }
}

/// Few files with few changes each, so that the sides often do not overlap.
fn small_questions(store: &Store, dice: &mut Dice, count: usize) -> Vec<Question> {
    let repo = store.repo();
    let mut all = Vec::new();
    for number in 0..count {
        let base = Files::random(dice);
        let mut side = |most: usize| {
            let mut files = base.clone();
            for _ in 0..dice.roll(most) {
                files.change(dice);
            }
            files
        };
        let (ours, theirs) = (side(4), side(3));
        let [old, here, there] = [&base, &ours, &theirs].map(|files| files.write(&repo));
        if number % 8 > 0 {
            all.push(Question::Trees { base: old, ours: here, theirs: there });
            continue;
        }
        let older = Scene::commit(store, old, &[]);
        let between = Scene::commit(store, here, &[older]);
        let newer = Scene::commit(store, there, &[between]);
        let (ours, theirs) = if number % 16 > 0 { (older, newer) } else { (newer, older) };
        all.push(Question::Commits { ours, theirs });
    }
    all
}

#[test]
fn where_the_outcome_is_certain_every_git_gives_the_same_tree() {
    let scene = Scene::new();
    for git in gits() {
        let store = scene.store(git.clone(), &git.said.replace(' ', "-"));
        let mut engine = MergeEngine::new(&store, Drivers::default());
        let questions = small_questions(&store, &mut Dice(0x2545_f491_4f6c_dd1d), 1600);
        let certain: Vec<_> = questions.iter().map(|question| engine.certain(*question)).collect();
        assert_eq!(engine.asked_git(), 0);
        let told = engine.ask_git(&questions);
        let mut counts = [0; 4];
        for ((question, certain), told) in questions.iter().zip(certain).zip(told) {
            let is_clean = matches!(told, Ok(Merged::Clean { .. }));
            let Some(tree) = certain else {
                counts[usize::from(is_clean)] += 1;
                continue;
            };
            assert_eq!(told.unwrap(), Merged::Clean { tree }, "{} {question:?}", git.said);
            let is_trivial = match *question {
                Question::Trees { base, ours, theirs } => base == ours || base == theirs,
                Question::Commits { .. } => true,
            };
            counts[if is_trivial { 2 } else { 3 }] += 1;
        }
        let [conflicts, clean, trivial, put_together] = counts;
        // Otherwise some kind of merge is never tried.
        assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
        assert_eq!(conflicts + clean + trivial + put_together, questions.len());
    }
}
