//! A glob without braces as a sequence of path components, and the overlap of two of them.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::charset::fold;
use super::flaw::{PatternError, PatternFlaw};
use super::name::{Atom, Name};
use super::scan::{GlobToken, MAX_ALTERNATIVES, TokenKind};

/// The set of paths that a sequence of steps leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    /// Never empty, never [`Step::Deep`] at the end or twice in a row.
    steps: Vec<Step>,
    /// True if everything below those paths belongs to the set too.
    owns_below: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    Into(Name),
    /// `**`: any number of components, including none.
    Deep,
}

impl Route {
    pub(super) fn everything() -> Self {
        Self { steps: vec![Step::Into(Name::any())], owns_below: true }
    }

    /// Parses one list of tokens. Gives several routes if a `**` is only part of a component.
    pub(super) fn read(tokens: &[GlobToken], folds: bool) -> Result<Vec<Self>, PatternError> {
        let mut todo = vec![with_stars_joined(tokens)];
        let mut routes = Vec::new();
        while let Some(tokens) = todo.pop() {
            let Some(at) = partial_stars(&tokens) else {
                routes.push(Self::of(&tokens, folds)?);
                continue;
            };
            // `a**b` matches `a*b`, and also `a*/**/*b`.
            let column = tokens[at].column;
            if todo.len() + routes.len() + 2 > MAX_ALTERNATIVES {
                return Err(PatternError { column, flaw: PatternFlaw::TooManyAlternatives });
            }
            let through = [
                TokenKind::Star,
                TokenKind::Slash,
                TokenKind::Stars,
                TokenKind::Slash,
                TokenKind::Star,
            ];
            for kinds in [&through[..], &[TokenKind::Star]] {
                let middle = kinds.iter().map(|kind| GlobToken { kind: kind.clone(), column });
                let (before, after) = (&tokens[..at], &tokens[at + 1..]);
                todo.push(before.iter().cloned().chain(middle).chain(after.to_vec()).collect());
            }
        }
        Ok(routes)
    }

    fn of(tokens: &[GlobToken], folds: bool) -> Result<Self, PatternError> {
        let mut steps: Vec<Step> = Vec::new();
        let mut ends_in_directory = false;
        for (n, part) in tokens.split(|token| token.kind == TokenKind::Slash).enumerate() {
            let is = |text: &str| {
                part.len() == text.len()
                    && part.iter().zip(text.chars()).all(|(t, c)| t.kind == TokenKind::Char(c))
            };
            let is_root = n == 0 && part.is_empty() && !tokens.is_empty();
            if is_root || is("..") {
                let column = part.first().or(tokens.first()).map_or(1, |token| token.column);
                return Err(PatternError { column, flaw: PatternFlaw::LeavesTree });
            }
            ends_in_directory = is("") || is(".");
            if ends_in_directory {
                continue;
            }
            match part {
                [GlobToken { kind: TokenKind::Stars, .. }] => {
                    if steps.last() != Some(&Step::Deep) {
                        steps.push(Step::Deep);
                    }
                }
                part => steps.push(Step::Into(Name::of(atoms(part, folds)))),
            }
        }
        let owns_below = match steps.last() {
            // A trailing `**` needs at least one component: any entry, and everything below it.
            Some(Step::Deep) => {
                steps.pop();
                steps.push(Step::Into(Name::any()));
                true
            }
            // A plain name may be a directory, and nothing here can look.
            Some(Step::Into(Name::Plain(_))) => true,
            Some(Step::Into(Name::Wild(_))) => ends_in_directory,
            None => return Ok(Self::everything()),
        };
        Ok(Self { steps, owns_below })
    }

    /// Drops the paths below, if the route is a single plain path.
    pub(super) fn without_below(mut self) -> Self {
        if self.steps.iter().all(|step| matches!(step, Step::Into(Name::Plain(_)))) {
            self.owns_below = false;
        }
        self
    }

    /// The literal prefix of every path of the set. Two routes can overlap only if the prefix of one
    /// starts with that of the other.
    pub(crate) fn prefix(&self) -> String {
        let mut prefix = String::new();
        for (n, step) in self.steps.iter().enumerate() {
            if n > 0 {
                prefix.push('/');
            }
            match step {
                Step::Into(Name::Plain(name)) => prefix.push_str(name),
                Step::Into(wild @ Name::Wild(_)) => {
                    prefix.push_str(&wild.prefix());
                    break;
                }
                Step::Deep => break,
            }
        }
        prefix
    }

    /// Returns true if a path is in both sets. Decides most pairs without a search.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let fit = |(a, b): (&Name, &Name)| a.meets(b);
        if !names(self.steps.iter()).zip(names(other.steps.iter())).all(fit) {
            return false;
        }
        match (self.is_deep(), other.is_deep()) {
            (false, false) => match self.steps.len().cmp(&other.steps.len()) {
                Ordering::Less => self.owns_below,
                Ordering::Equal => true,
                Ordering::Greater => other.owns_below,
            },
            // If both have a `**`, the parts between the ends always have a common path: each `**`
            // absorbs the other's middle. The ends matter only if neither covers what is below.
            (true, true) => {
                let mut ends = names(self.steps.iter().rev()).zip(names(other.steps.iter().rev()));
                self.owns_below || other.owns_below || ends.all(fit)
            }
            // The fronts fit. If the fixed route covers what is below it, the `**` takes the rest
            // of its names and the remaining steps lie below them.
            (true, false) => other.owns_below || self.leads_along(other),
            (false, true) => self.owns_below || other.leads_along(self),
        }
    }

    /// Overlap with a route that has no `**` and covers nothing below. Each [`Step::Deep`] takes as
    /// little as possible and more only on a mismatch.
    fn leads_along(&self, fixed: &Self) -> bool {
        let fixed: Vec<&Name> = names(fixed.steps.iter()).collect();
        let (mut i, mut j) = (0, 0);
        let mut retry = None;
        loop {
            match self.steps.get(i) {
                None if self.owns_below || j == fixed.len() => return true,
                Some(Step::Deep) => {
                    // Only the last `**` is extended on a mismatch: what an earlier one could take
                    // in addition, the last one can take as well.
                    retry = Some((i + 1, j));
                    i += 1;
                    continue;
                }
                Some(Step::Into(name)) if fixed.get(j).is_some_and(|other| name.meets(other)) => {
                    (i, j) = (i + 1, j + 1);
                    continue;
                }
                Some(Step::Into(_)) | None => {}
            }
            match retry {
                Some((after, from)) if from < fixed.len() => {
                    retry = Some((after, from + 1));
                    (i, j) = (after, from + 1);
                }
                Some(_) | None => return false,
            }
        }
    }

    /// Returns a path that is in both sets.
    pub(crate) fn meet(&self, other: &Self) -> Option<String> {
        RouteSearch::over(self, other).find()
    }

    /// Returns true if the set is empty, because a component such as `[.]` matches no name.
    pub(super) fn is_void(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Into(name) => name.sample().is_none(),
            Step::Deep => false,
        })
    }

    fn is_deep(&self) -> bool {
        self.steps.contains(&Step::Deep)
    }

    /// Returns true if the set contains a path, given as its components.
    pub(super) fn covers(&self, path: &[&str], folds: bool) -> bool {
        // `at[i]` is true if the first `i` steps match the components read so far.
        let mut at = vec![false; self.steps.len() + 1];
        at[0] = true;
        self.skip_deep(&mut at);
        for name in path {
            let mut next = vec![false; at.len()];
            for (i, step) in self.steps.iter().enumerate().filter(|(i, _)| at[*i]) {
                match step {
                    Step::Deep => next[i] = true,
                    Step::Into(names) if names.has(name, folds) => next[i + 1] = true,
                    Step::Into(_) => {}
                }
            }
            if self.owns_below && at[self.steps.len()] {
                next[self.steps.len()] = true;
            }
            at = next;
            self.skip_deep(&mut at);
        }
        at[self.steps.len()]
    }

    fn skip_deep(&self, at: &mut [bool]) {
        for (i, step) in self.steps.iter().enumerate() {
            if at[i] && *step == Step::Deep {
                at[i + 1] = true;
            }
        }
    }

    fn at(&self, i: usize) -> NextStep<'_> {
        match self.steps.get(i) {
            Some(Step::Into(name)) => NextStep::Name(name),
            Some(Step::Deep) => NextStep::Deep,
            None if self.owns_below => NextStep::Below,
            None => NextStep::End,
        }
    }
}

/// The names up to the first [`Step::Deep`].
fn names<'a>(steps: impl Iterator<Item = &'a Step>) -> impl Iterator<Item = &'a Name> {
    steps.map_while(|step| match step {
        Step::Into(name) => Some(name),
        Step::Deep => None,
    })
}

/// Joins adjacent stars to one `**`; expanding braces can produce them.
fn with_stars_joined(tokens: &[GlobToken]) -> Vec<GlobToken> {
    let is_star = |kind: &TokenKind| matches!(kind, TokenKind::Star | TokenKind::Stars);
    let mut joined: Vec<GlobToken> = Vec::with_capacity(tokens.len());
    for token in tokens {
        match joined.last_mut() {
            Some(last) if is_star(&last.kind) && is_star(&token.kind) => {
                last.kind = TokenKind::Stars;
            }
            _ => joined.push(token.clone()),
        }
    }
    joined
}

/// The index of the first `**` that is only a part of its component.
fn partial_stars(tokens: &[GlobToken]) -> Option<usize> {
    let is_edge =
        |token: Option<&GlobToken>| token.is_none_or(|token| token.kind == TokenKind::Slash);
    (0..tokens.len()).find(|&i| {
        let before = i.checked_sub(1).and_then(|before| tokens.get(before));
        tokens[i].kind == TokenKind::Stars && !(is_edge(before) && is_edge(tokens.get(i + 1)))
    })
}

fn atoms(part: &[GlobToken], folds: bool) -> Vec<Atom> {
    let mut atoms = Vec::with_capacity(part.len());
    for token in part {
        let atom = match &token.kind {
            TokenKind::Char(c) => Atom::One(if folds { fold(*c) } else { *c }),
            TokenKind::Class(set) if folds => Atom::Set(set.clone().folded()),
            TokenKind::Class(set) => Atom::Set(set.clone()),
            TokenKind::Star | TokenKind::Stars | TokenKind::Slash => Atom::Star,
        };
        if atom != Atom::Star || atoms.last() != Some(&Atom::Star) {
            atoms.push(atom);
        }
    }
    atoms
}

/// The options of a route at one position.
#[derive(Clone, Copy)]
enum NextStep<'a> {
    Name(&'a Name),
    /// Any component, or the next step.
    Deep,
    /// Any component, or the end.
    Below,
    End,
}

/// Breadth-first search over the product of two routes. A state is a position on each.
struct RouteSearch<'a> {
    a: &'a Route,
    b: &'a Route,
    came: Vec<Option<(usize, Option<String>)>>,
    todo: VecDeque<usize>,
}

impl<'a> RouteSearch<'a> {
    fn over(a: &'a Route, b: &'a Route) -> Self {
        let states = (a.steps.len() + 1) * (b.steps.len() + 1);
        Self { a, b, came: vec![None; states], todo: VecDeque::new() }
    }

    fn state(&self, i: usize, j: usize) -> usize {
        i * (self.b.steps.len() + 1) + j
    }

    fn reach(&mut self, to: usize, from: usize, by: Option<String>) {
        if self.came[to].is_none() {
            self.came[to] = Some((from, by));
            self.todo.push_back(to);
        }
    }

    fn find(mut self) -> Option<String> {
        let goal = self.state(self.a.steps.len(), self.b.steps.len());
        self.reach(0, 0, None);
        while let Some(here) = self.todo.pop_front() {
            if here == goal {
                return Some(self.path(goal));
            }
            let (i, j) = (here / (self.b.steps.len() + 1), here % (self.b.steps.len() + 1));
            let (a, b) = (self.a.at(i), self.b.at(j));
            if matches!(a, NextStep::Deep) {
                self.reach(self.state(i + 1, j), here, None);
            }
            if matches!(b, NextStep::Deep) {
                self.reach(self.state(i, j + 1), here, None);
            }
            // If both accept any component, consuming one makes no progress.
            let (to, name) = match (a, b) {
                (NextStep::Name(a), NextStep::Name(b)) => (self.state(i + 1, j + 1), a.meet(b)),
                (NextStep::Name(a), NextStep::Deep | NextStep::Below) => {
                    (self.state(i + 1, j), a.sample())
                }
                (NextStep::Deep | NextStep::Below, NextStep::Name(b)) => {
                    (self.state(i, j + 1), b.sample())
                }
                (NextStep::Name(_) | NextStep::Deep | NextStep::Below | NextStep::End, _) => {
                    continue;
                }
            };
            if name.is_some() {
                self.reach(to, here, name);
            }
        }
        None
    }

    fn path(&self, goal: usize) -> String {
        let mut names = Vec::new();
        let mut here = goal;
        while here != 0 {
            let (from, name) = self.came[here].as_ref().expect("the way here was recorded");
            names.extend(name.as_deref());
            here = *from;
        }
        names.reverse();
        names.join("/")
    }
}
