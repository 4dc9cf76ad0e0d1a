//! From declarations to a plan, or to everything that is wrong with them.

use std::collections::BTreeMap;
use std::fmt::Write;

use pdca_state::BundleId;
use sha2::{Digest, Sha256};

use crate::claims::Claims;
use crate::graph::Graph;
use crate::item::{Declared, Item, Options, Outside, Place, Standing, Untouched};
use crate::pattern::{Case, Pattern};
use crate::plan::Plan;
use crate::problem::{Edge, Notice, Problem, Rejection};

/// How many unknown ids get suggestions. It bounds the work that a hostile batch can cause.
const MAX_SUGGESTED: usize = 100;

impl Plan {
    /// Reads what a batch declares.
    ///
    /// The order of the items does not matter. A rejection names all problems; of bundles that
    /// wait for each other it shows one way round for each set of them.
    pub fn new(items: Vec<Item>, outside: &Outside, options: Options) -> Result<Plan, Rejection> {
        let mut intake = Intake { outside, options, ..Intake::of(items, outside) };
        let links = intake.dependencies();
        let conflicts = intake.conflicts();
        let patterns = intake.patterns();
        let graph = Graph::new(intake.items.len(), links);
        intake.cycles(&graph);
        if !intake.problems.is_empty() {
            let mut problems = intake.problems;
            problems.sort_by(|a, b| a.place().cmp(b.place()));
            return Err(Rejection { problems });
        }
        let digest = digest(&intake.items, options);
        let claims = Claims::new(patterns, conflicts);
        Ok(Plan::assemble(intake.items, graph, claims, intake.notices, options, digest))
    }
}

struct Intake<'a> {
    /// Sorted by id, each id once.
    items: Vec<Item>,
    outside: &'a Outside,
    options: Options,
    problems: Vec<Problem>,
    notices: Vec<Notice>,
    suggested: usize,
}

impl<'a> Intake<'a> {
    fn of(mut items: Vec<Item>, outside: &'a Outside) -> Self {
        items.sort_by(|a, b| (&a.id, &a.place).cmp(&(&b.id, &b.place)));
        let mut problems = Vec::new();
        let mut distinct: Vec<Item> = Vec::with_capacity(items.len());
        for item in items {
            match distinct.last() {
                Some(first) if first.id == item.id => problems.push(Problem::DuplicateId {
                    id: item.id,
                    first: first.place.clone(),
                    again: item.place,
                }),
                _ => distinct.push(item),
            }
        }
        let options = Options::default();
        Self { items: distinct, outside, options, problems, notices: Vec::new(), suggested: 0 }
    }

    fn find(&self, id: &BundleId) -> Option<usize> {
        self.items.binary_search_by(|item| item.id.cmp(id)).ok()
    }

    /// The edges between bundles of the batch: prerequisite, dependant, place. What a bundle that
    /// is complete or given up once waited for no longer matters.
    fn dependencies(&mut self) -> Vec<(usize, usize, Place)> {
        let mut links = Vec::new();
        for dependant in 0..self.items.len() {
            let item = &self.items[dependant];
            if !item.standing.is_live() {
                continue;
            }
            let (id, declared) = (item.id.clone(), distinct(&item.depends_on));
            for Declared { id: on, place } in declared {
                if on == id {
                    self.problems.push(Problem::DependsOnItself { id: id.clone(), place });
                    continue;
                }
                let inside = self.find(&on);
                let standing = match inside {
                    Some(index) => Some(self.items[index].standing),
                    None => self.outside.standing(&on),
                };
                match (standing, inside) {
                    (None, _) => {
                        let near = self.near(&on);
                        let id = id.clone();
                        self.problems.push(Problem::NoSuchPrerequisite { id, on, place, near });
                    }
                    (Some(Standing::Complete), None) => {}
                    (
                        Some(Standing::Complete | Standing::Active | Standing::Waiting),
                        Some(index),
                    ) => {
                        links.push((index, dependant, place));
                    }
                    (Some(standing), inside) => {
                        let (id, in_batch) = (id.clone(), inside.is_some());
                        let problem =
                            Problem::PrerequisiteNotComplete { id, on, standing, in_batch, place };
                        self.problems.push(problem);
                    }
                }
            }
        }
        links
    }

    /// The declared conflicts between bundles of the batch, each pair once.
    fn conflicts(&mut self) -> BTreeMap<(usize, usize), Place> {
        let mut conflicts = BTreeMap::new();
        for index in 0..self.items.len() {
            let item = &self.items[index];
            if !item.standing.is_live() {
                continue;
            }
            let (id, declared) = (item.id.clone(), distinct(&item.conflicts_with));
            for Declared { id: with, place } in declared {
                if with == id {
                    self.notices.push(Notice::ConflictsWithItself { id: id.clone(), place });
                } else if let Some(other) = self.find(&with) {
                    conflicts.entry((index.min(other), index.max(other))).or_insert(place);
                } else if self.outside.standing(&with).is_none() {
                    let near = self.near(&with);
                    self.notices.push(Notice::NoSuchRival { id: id.clone(), with, place, near });
                }
            }
        }
        conflicts
    }

    /// What each bundle touches. Only what can still be started claims anything.
    fn patterns(&mut self) -> Vec<Vec<Pattern>> {
        let case = if self.options.fold_case { Case::Folded } else { Case::Sensitive };
        let mut all = Vec::with_capacity(self.items.len());
        for Item { id, place, standing, touches, .. } in &self.items {
            let mut patterns = Vec::with_capacity(touches.len());
            if !standing.is_live() {
                all.push(patterns);
                continue;
            }
            if touches.is_empty() {
                let (id, place) = (id.clone(), place.clone());
                self.notices.push(Notice::NothingDeclared { id, place });
                if self.options.untouched == Untouched::Exclusive {
                    patterns.push(Pattern::everything());
                }
            }
            for touch in touches {
                match Pattern::parse(&touch.glob, case) {
                    Ok(pattern) if touch.is_file => patterns.push(pattern.file()),
                    Ok(pattern) => patterns.push(pattern),
                    Err(source) => self.problems.push(Problem::BadGlob {
                        id: id.clone(),
                        glob: touch.glob.clone(),
                        place: touch.place.clone(),
                        source,
                    }),
                }
            }
            all.push(patterns);
        }
        all
    }

    fn cycles(&mut self, graph: &Graph) {
        for tangle in graph.tangles() {
            let edge = |(prerequisite, dependant, place): (usize, usize, &Place)| Edge {
                dependant: self.items[dependant].id.clone(),
                prerequisite: self.items[prerequisite].id.clone(),
                place: place.clone(),
            };
            let edges = graph.way_round(&tangle).into_iter().map(edge).collect();
            self.problems.push(Problem::Cycle { edges, tangled: tangle.len() });
        }
    }

    /// Bundles whose names are at most two slips away, nearest first.
    fn near(&mut self, id: &BundleId) -> Vec<BundleId> {
        const SHOWN: usize = 3;
        self.suggested += 1;
        if self.suggested > MAX_SUGGESTED {
            return Vec::new();
        }
        let slips = |other: &BundleId| strsim::osa_distance(id.as_str(), other.as_str());
        let known = self.items.iter().map(|item| &item.id).chain(self.outside.ids());
        let close = known.filter(|other| other.as_str().len().abs_diff(id.as_str().len()) <= 2);
        let mut near: Vec<(usize, &BundleId)> = close.map(|other| (slips(other), other)).collect();
        // A name of one or two characters is two slips away from every other.
        near.retain(|(slips, _)| *slips <= 2 && *slips < id.as_str().len());
        near.sort_unstable();
        near.dedup();
        near.into_iter().take(SHOWN).map(|(_, other)| other.clone()).collect()
    }
}

/// The declarations with each id once, the first of it.
fn distinct(declared: &[Declared]) -> Vec<Declared> {
    let mut seen = std::collections::HashSet::new();
    declared.iter().filter(|declared| seen.insert(&declared.id)).cloned().collect()
}

/// A sum over everything the groups of a plan are made from. Where a bundle stands is no part of
/// it: a plan does not go stale by being carried out.
fn digest(items: &[Item], options: Options) -> String {
    let mut hasher = Sha256::new();
    let mut add = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    add(&format!("{options:?}"));
    for item in items {
        add(item.id.as_str());
        for (kind, declared) in [("depends", &item.depends_on), ("conflicts", &item.conflicts_with)]
        {
            let mut ids: Vec<&str> = declared.iter().map(|other| other.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            add(kind);
            add(&ids.len().to_string());
            ids.into_iter().for_each(&mut add);
        }
        let mut globs: Vec<(&str, bool)> =
            item.touches.iter().map(|touch| (touch.glob.as_str(), touch.is_file)).collect();
        globs.sort_unstable();
        globs.dedup();
        add(&globs.len().to_string());
        for (glob, is_file) in globs {
            add(glob);
            add(if is_file { "file" } else { "" });
        }
    }
    hasher.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all that is written");
        hex
    })
}
