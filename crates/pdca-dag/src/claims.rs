//! Claims: the paths and conflicts because of which two bundles may not run at the same time.
//!
//! A claim is a set of paths or one declared conflict. Bundles that hold the same claim, or claims
//! that overlap, are rivals. Overlaps are stored between distinct claims and not between bundles: a
//! thousand bundles that touch one lock file are one claim with a thousand holders.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::groups::JoinRule;
use crate::item::SourceLocation;
use crate::pattern::{Pattern, Route};

/// The reason two bundles are rivals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Rivalry {
    /// One declares a conflict with the other.
    Conflict {
        /// The location of the declaration.
        #[serde(skip)]
        place: SourceLocation,
    },
    /// Both can write the same path.
    Overlap {
        /// One glob of each bundle, in the order of the pair.
        #[serde(skip)]
        globs: (String, String),
        /// A path that both globs match.
        witness: String,
    },
}

impl Rivalry {
    /// Returns the rule that makes the bundles rivals.
    pub fn rule(&self) -> JoinRule {
        match self {
            Self::Conflict { .. } => JoinRule::Conflict,
            Self::Overlap { .. } => JoinRule::Overlap,
        }
    }

    /// Returns a path that both bundles can write.
    pub fn witness(&self) -> Option<&str> {
        match self {
            Self::Conflict { .. } => None,
            Self::Overlap { witness, .. } => Some(witness),
        }
    }
}

/// The claims of all bundles. A bundle is identified by its index in name order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims {
    patterns: Vec<Vec<Pattern>>,
    conflicts: BTreeMap<(usize, usize), SourceLocation>,
    /// The claims of each bundle, sorted.
    of: Vec<Vec<usize>>,
    /// The bundles that hold each claim, in name order.
    holders: Vec<Vec<usize>>,
    /// The other claims that each one overlaps. There may be many, so they are stored as `u32`.
    meets: Vec<Vec<u32>>,
    ids: HashMap<Route, usize>,
}

impl Claims {
    /// Collects the claims of bundles `0..n`; the keys of `conflicts` are `(lower, higher)`.
    pub(crate) fn new(
        patterns: Vec<Vec<Pattern>>,
        conflicts: BTreeMap<(usize, usize), SourceLocation>,
    ) -> Self {
        let mut claims = Self { of: vec![Vec::new(); patterns.len()], ..Self::default() };
        for &(a, b) in conflicts.keys() {
            let claim = claims.add();
            claims.hold(a, claim);
            claims.hold(b, claim);
        }
        for (bundle, patterns) in patterns.iter().enumerate() {
            for route in patterns.iter().flat_map(Pattern::routes) {
                let known = claims.ids.get(route).copied();
                let claim = known.unwrap_or_else(|| claims.add_route(route));
                claims.hold(bundle, claim);
            }
        }
        claims.patterns = patterns;
        claims.conflicts = conflicts;
        claims.find_meetings();
        claims
    }

    pub(crate) fn len(&self) -> usize {
        self.meets.len()
    }

    pub(crate) fn of(&self, bundle: usize) -> &[usize] {
        &self.of[bundle]
    }

    /// The claims that no other bundle may hold while this one is in flight: its own and those that
    /// overlap them. May repeat a claim.
    pub(crate) fn near(&self, bundle: usize) -> impl Iterator<Item = usize> {
        let with_meetings = |claim: &usize| std::iter::once(*claim).chain(self.met(*claim));
        self.of[bundle].iter().flat_map(with_meetings)
    }

    /// Returns the reason two different bundles are rivals; a declared conflict takes precedence.
    pub(crate) fn rivalry(&self, a: usize, b: usize) -> Option<Rivalry> {
        if let Some(place) = self.conflicts.get(&(a.min(b), a.max(b))) {
            return Some(Rivalry::Conflict { place: place.clone() });
        }
        let meet = |x: &Pattern, y: &Pattern| {
            let globs = (x.as_str().to_owned(), y.as_str().to_owned());
            x.meet(y).map(|witness| Rivalry::Overlap { globs, witness })
        };
        let (of_a, of_b) = (&self.patterns[a], &self.patterns[b]);
        of_a.iter().find_map(|x| of_b.iter().find_map(|y| meet(x, y)))
    }

    pub(crate) fn is_conflict(&self, pair: (usize, usize)) -> bool {
        self.conflicts.contains_key(&pair)
    }

    /// The rivals of a bundle, in name order.
    pub(crate) fn rivals(&self, bundle: usize) -> Vec<usize> {
        let holders = self.near(bundle).flat_map(|claim| self.holders[claim].iter().copied());
        let mut rivals: Vec<usize> = holders.filter(|other| *other != bundle).collect();
        rivals.sort_unstable();
        rivals.dedup();
        rivals
    }

    /// Returns pairs of rivals with the same connected components as all pairs, but linear in the
    /// number of holders; declared conflicts come first. Only bundles that `counts` accepts are used.
    pub(crate) fn links(&self, counts: &dyn Fn(usize) -> bool) -> Vec<(usize, usize)> {
        let holders = |claim: usize| self.holders[claim].iter().copied().filter(|b| counts(*b));
        let mut links = Vec::new();
        for claim in 0..self.len() {
            let Some(first) = holders(claim).next() else { continue };
            // A star around the first holder connects the same bundles as all pairs would; with a
            // thousand holders of one lock file those are half a million.
            links.extend(holders(claim).skip(1).map(|other| (first, other)));
            let later = self.met(claim).filter(|other| *other > claim);
            let meeting = later.filter_map(|other| holders(other).next());
            links.extend(meeting.map(|other| (first.min(other), first.max(other))));
        }
        links.retain(|(a, b)| a != b);
        let is_overlap = |pair: &(usize, usize)| !self.conflicts.contains_key(pair);
        links.sort_by_key(|pair| (is_overlap(pair), *pair));
        links.dedup();
        links
    }

    /// Adds claims to a bundle while the plan is being carried out.
    pub(crate) fn widen(&mut self, bundle: usize, patterns: Vec<Pattern>) {
        for route in patterns.iter().flat_map(Pattern::routes) {
            let claim = self.ids.get(route).copied().unwrap_or_else(|| self.add_later(route));
            self.hold(bundle, claim);
        }
        self.patterns[bundle].extend(patterns);
    }

    /// Adds a claim after [`Self::find_meetings`] has run.
    fn add_later(&mut self, route: &Route) -> usize {
        // Compared with every claim, without the order of prefixes: a widening is rare.
        let met = self.ids.iter().filter(|(other, _)| other.meets(route));
        let met: Vec<usize> = met.map(|(_, claim)| *claim).collect();
        let claim = self.add_route(route);
        for other in met {
            self.join(claim, other);
        }
        claim
    }

    fn add(&mut self) -> usize {
        self.holders.push(Vec::new());
        self.meets.push(Vec::new());
        self.meets.len() - 1
    }

    fn add_route(&mut self, route: &Route) -> usize {
        let claim = self.add();
        self.ids.insert(route.clone(), claim);
        claim
    }

    fn met(&self, claim: usize) -> impl Iterator<Item = usize> {
        self.meets[claim].iter().map(|other| *other as usize)
    }

    fn join(&mut self, a: usize, b: usize) {
        let small = |claim| u32::try_from(claim).expect("fewer claims than fit into memory");
        self.meets[a].push(small(b));
        self.meets[b].push(small(a));
    }

    fn hold(&mut self, bundle: usize, claim: usize) {
        if let Err(at) = self.of[bundle].binary_search(&claim) {
            self.of[bundle].insert(at, claim);
        }
        if let Err(at) = self.holders[claim].binary_search(&bundle) {
            self.holders[claim].insert(at, bundle);
        }
    }

    /// Finds all pairs of claims whose paths overlap.
    ///
    /// Two claims can overlap only if the literal prefix of one starts with that of the other. In
    /// order of prefixes, those candidates are exactly the claims on the stack, as on a path down a
    /// trie, so claims with unrelated prefixes are never compared.
    fn find_meetings(&mut self) {
        let mut sets: Vec<(String, &Route, usize)> =
            self.ids.iter().map(|(route, claim)| (route.prefix(), route, *claim)).collect();
        sets.sort_unstable_by(|a, b| (&a.0, a.2).cmp(&(&b.0, b.2)));
        let mut above: Vec<&(String, &Route, usize)> = Vec::new();
        let mut pairs = Vec::new();
        for set in &sets {
            while above.pop_if(|top| !set.0.starts_with(top.0.as_str())).is_some() {}
            let met = above.iter().filter(|other| other.1.meets(set.1));
            pairs.extend(met.map(|other| (other.2, set.2)));
            above.push(set);
        }
        for (a, b) in pairs {
            self.join(a, b);
        }
        for met in &mut self.meets {
            met.sort_unstable();
        }
    }
}
