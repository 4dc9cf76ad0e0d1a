//! One component of a glob, and the overlap of two components.

use std::collections::VecDeque;

use super::charset::{CharSet, fold};

/// A set of file names. No file name is empty, `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// Exactly one name.
    Plain(Box<str>),
    /// The names that this sequence of atoms matches.
    Wild(Box<[Atom]>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    One(char),
    Set(CharSet),
    /// Any number of any characters.
    Star,
}

/// The part of a name that was read so far, as far as it matters: `.` and `..` are not names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SoFar {
    Empty,
    Dot,
    DotDot,
    Name,
}

impl SoFar {
    fn then(self, c: char) -> Self {
        match (self, c) {
            (Self::Empty, '.') => Self::Dot,
            (Self::Dot, '.') => Self::DotDot,
            (Self::Empty | Self::Dot | Self::DotDot | Self::Name, _) => Self::Name,
        }
    }
}

impl Atom {
    /// Returns true if both match a common character; a star matches all.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(a), Self::One(b)) => a == b,
            (Self::One(c), Self::Set(set)) | (Self::Set(set), Self::One(c)) => set.contains(*c),
            (Self::Set(a), Self::Set(b)) => a.meets(b),
            (Self::Star, _) | (_, Self::Star) => true,
        }
    }
}

impl Name {
    pub(super) fn any() -> Self {
        Self::Wild([Atom::Star].into())
    }

    pub(super) fn of(atoms: Vec<Atom>) -> Self {
        let chars = atoms.iter().map(|atom| match atom {
            Atom::One(c) => Some(*c),
            Atom::Set(_) | Atom::Star => None,
        });
        match chars.collect::<Option<String>>() {
            Some(plain) => Self::Plain(plain.into()),
            None => Self::Wild(atoms.into()),
        }
    }

    /// The literal characters with which every name of the set starts.
    pub(super) fn prefix(&self) -> String {
        match self {
            Self::Plain(name) => name.to_string(),
            Self::Wild(atoms) => atoms
                .iter()
                .map_while(|atom| match atom {
                    Atom::One(c) => Some(*c),
                    Atom::Set(_) | Atom::Star => None,
                })
                .collect(),
        }
    }

    /// Returns true if a name is in both sets. Decides most pairs without a search.
    pub(super) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(a), Self::Plain(b)) => a == b,
            (Self::Plain(name), wild) | (wild, Self::Plain(name)) => wild.has(name, false),
            (Self::Wild(a), Self::Wild(b)) => {
                let fit = |(a, b): (&Atom, &Atom)| a.meets(b);
                let fronts = fixed(a.iter()).zip(fixed(b.iter())).all(fit);
                let backs = fixed(a.iter().rev()).zip(fixed(b.iter().rev())).all(fit);
                // If both have a star, the parts between the fixed ends always have a common name:
                // each star absorbs the other's middle.
                let both_stretch = a.contains(&Atom::Star) && b.contains(&Atom::Star);
                fronts && backs && (both_stretch || self.meet(other).is_some())
            }
        }
    }

    /// Returns a name that is in both sets.
    pub(super) fn meet(&self, other: &Self) -> Option<String> {
        match (self, other) {
            (Self::Plain(a), Self::Plain(b)) => (a == b).then(|| a.to_string()),
            (Self::Plain(name), wild) | (wild, Self::Plain(name)) => {
                wild.has(name, false).then(|| name.to_string())
            }
            (Self::Wild(a), Self::Wild(b)) => NameSearch::over(a, b).find(),
        }
    }

    /// Returns a name of the set, if there is one; `[.]` matches none.
    pub(super) fn sample(&self) -> Option<String> {
        match self {
            Self::Plain(name) => Some(name.to_string()),
            Self::Wild(_) => self.meet(&Self::any()),
        }
    }

    /// Returns true if the set contains a legal file name.
    pub(super) fn has(&self, name: &str, folds: bool) -> bool {
        let same = |c: char| if folds { fold(c) } else { c };
        match self {
            Self::Plain(plain) => plain.chars().eq(name.chars().map(same)),
            Self::Wild(atoms) => {
                let name: Vec<char> = name.chars().map(same).collect();
                matches(atoms, &name)
            }
        }
    }
}

/// The atoms up to the first star.
fn fixed<'a>(atoms: impl Iterator<Item = &'a Atom>) -> impl Iterator<Item = &'a Atom> {
    atoms.take_while(|atom| **atom != Atom::Star)
}

/// Returns true if the atoms match the whole text. Each star takes as little as possible; on a
/// mismatch only the last star takes one more, because extending an earlier one cannot help.
fn matches(atoms: &[Atom], text: &[char]) -> bool {
    let (mut i, mut j) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while j < text.len() {
        let fits = match atoms.get(i) {
            Some(Atom::Star) => {
                retry = Some((i + 1, j));
                i += 1;
                continue;
            }
            Some(Atom::One(c)) => *c == text[j],
            Some(Atom::Set(set)) => set.contains(text[j]),
            None => false,
        };
        if fits {
            (i, j) = (i + 1, j + 1);
        } else if let Some((after, from)) = retry {
            retry = Some((after, from + 1));
            (i, j) = (after, from + 1);
        } else {
            return false;
        }
    }
    atoms[i..].iter().all(|atom| *atom == Atom::Star)
}

/// Breadth-first search over the product of two atom lists. A state is a position in each list and
/// [`SoFar`].
struct NameSearch<'a> {
    a: &'a [Atom],
    b: &'a [Atom],
    /// For each state that was reached, the previous state and the character between them.
    came: Vec<Option<(usize, Option<char>)>>,
    todo: VecDeque<usize>,
    any: CharSet,
}

impl<'a> NameSearch<'a> {
    fn over(a: &'a [Atom], b: &'a [Atom]) -> Self {
        let states = (a.len() + 1) * (b.len() + 1) * 4;
        Self { a, b, came: vec![None; states], todo: VecDeque::new(), any: CharSet::any() }
    }

    fn state(&self, i: usize, j: usize, so_far: SoFar) -> usize {
        (i * (self.b.len() + 1) + j) * 4 + so_far as usize
    }

    fn reach(&mut self, to: usize, from: usize, by: Option<char>) {
        if self.came[to].is_none() {
            self.came[to] = Some((from, by));
            self.todo.push_back(to);
        }
    }

    fn find(mut self) -> Option<String> {
        const ALL: [SoFar; 4] = [SoFar::Empty, SoFar::Dot, SoFar::DotDot, SoFar::Name];
        let start = self.state(0, 0, SoFar::Empty);
        let goal = self.state(self.a.len(), self.b.len(), SoFar::Name);
        self.reach(start, start, None);
        while let Some(here) = self.todo.pop_front() {
            if here == goal {
                return Some(self.word(start, goal));
            }
            let (place, so_far) = (here / 4, ALL[here % 4]);
            let (i, j) = (place / (self.b.len() + 1), place % (self.b.len() + 1));
            let (a, b) = (self.a.get(i), self.b.get(j));
            if a == Some(&Atom::Star) {
                self.reach(self.state(i + 1, j, so_far), here, None);
            }
            if b == Some(&Atom::Star) {
                self.reach(self.state(i, j + 1, so_far), here, None);
            }
            let (Some(a), Some(b)) = (a, b) else { continue };
            let i = if *a == Atom::Star { i } else { i + 1 };
            let j = if *b == Atom::Star { j } else { j + 1 };
            let (letter, dot) = self.both(a, b);
            for c in letter.into_iter().chain(dot.then_some('.')) {
                self.reach(self.state(i, j, so_far.then(c)), here, Some(c));
            }
        }
        None
    }

    /// Returns a common character other than `.`, and true if `.` is common too. One of each is enough:
    /// only dots change [`SoFar`] differently.
    fn both(&self, a: &Atom, b: &Atom) -> (Option<char>, bool) {
        let (a, b) = match (a, b) {
            (Atom::One(a), Atom::One(b)) => {
                return if a == b { of_one(*a) } else { (None, false) };
            }
            (Atom::One(c), Atom::Star) | (Atom::Star, Atom::One(c)) => return of_one(*c),
            (Atom::One(c), Atom::Set(set)) | (Atom::Set(set), Atom::One(c)) => {
                return if set.contains(*c) { of_one(*c) } else { (None, false) };
            }
            (Atom::Set(a), Atom::Set(b)) => (a, b),
            (Atom::Set(a), Atom::Star) | (Atom::Star, Atom::Set(a)) => (a, &self.any),
            (Atom::Star, Atom::Star) => return (Some('a'), true),
        };
        let both = a.meet(b);
        (both.pick(), both.contains('.'))
    }

    /// The characters on the path from the start to the goal.
    fn word(&self, start: usize, goal: usize) -> String {
        let mut letters = Vec::new();
        let mut here = goal;
        while here != start {
            let (from, by) = self.came[here].expect("the way here was recorded");
            letters.extend(by);
            here = from;
        }
        letters.iter().rev().collect()
    }
}

fn of_one(c: char) -> (Option<char>, bool) {
    if c == '.' { (None, true) } else { (Some(c), false) }
}
