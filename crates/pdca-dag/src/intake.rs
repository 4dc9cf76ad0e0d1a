//! Validation of declarations: makes a [`Plan`], or reports all problems at once.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use pdca_state::{Awaits, BundleId};
use sha2::{Digest, Sha256};

use crate::claims::Claims;
use crate::graph::{Graph, Link, Tie};
use crate::item::{Declared, Item, ItemState, Options, Outside, SourceLocation, Untouched};
use crate::pattern::{Case, Pattern};
use crate::plan::Plan;
use crate::problem::{Edge, PlanNotice, PlanProblem, Rejection};

/// The most unknown ids that get suggestions. Bounds the work that a hostile batch can cause.
const MAX_SUGGESTED: usize = 100;

impl Plan {
    /// Makes a plan of a batch.
    ///
    /// The order of the items does not matter. A [`Rejection`] has all problems; of dependency cycles
    /// it shows one per set of bundles that wait for each other.
    pub fn new(items: Vec<Item>, outside: &Outside, options: Options) -> Result<Plan, Rejection> {
        let mut intake = Intake { outside, options, ..Intake::of(items, outside) };
        let links = intake.dependencies();
        let conflicts = intake.conflicts();
        let patterns = intake.patterns();
        let graph = Graph::new(intake.items.len(), links);
        intake.cycles(&graph);
        intake.problems.sort_by(|a, b| a.place().cmp(b.place()));
        // Over the whole batch, before any bundle is left out: a bundle that is left alone for now
        // must not make `lanes.json` outdated.
        let digest = digest(&intake.items, options);
        if !intake.problems.is_empty() {
            if !options.leave_alone || !intake.problems.iter().all(PlanProblem::is_of_one) {
                return Err(Rejection { problems: intake.problems });
            }
            let (rest, outside, left) = intake.leave_alone(&graph);
            return Ok(Plan { digest, left, ..Plan::new(rest, &outside, options)? });
        }
        let claims = Claims::new(patterns, conflicts);
        Ok(Plan::assemble(intake.items, graph, claims, intake.notices, options, digest))
    }
}

struct Intake<'a> {
    /// Sorted by id, each id once.
    items: Vec<Item>,
    outside: &'a Outside,
    options: Options,
    problems: Vec<PlanProblem>,
    notices: Vec<PlanNotice>,
    suggested: usize,
}

impl<'a> Intake<'a> {
    fn of(mut items: Vec<Item>, outside: &'a Outside) -> Self {
        items.sort_by(|a, b| (&a.id, &a.place).cmp(&(&b.id, &b.place)));
        let mut problems = Vec::new();
        let mut distinct: Vec<Item> = Vec::with_capacity(items.len());
        for item in items {
            match distinct.last() {
                Some(first) if first.id == item.id => problems.push(PlanProblem::DuplicateId {
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

    /// Removes the bundles with problems and all their dependants. Returns the remaining items, the
    /// bundles outside of them, and the problems.
    fn leave_alone(self, graph: &Graph) -> (Vec<Item>, Outside, Vec<PlanProblem>) {
        let mut left = self.problems;
        let mut is_left = vec![false; self.items.len()];
        let index = |id: &BundleId| self.items.binary_search_by(|item| item.id.cmp(id)).ok();
        let mut todo: Vec<usize> = left.iter().filter_map(|problem| index(problem.id())).collect();
        for &bundle in &todo {
            is_left[bundle] = true;
        }
        while let Some(bundle) = todo.pop() {
            for (dependant, tie) in graph.after(bundle) {
                // A dependant that already has what it waits for is not affected by the problem of
                // its prerequisite.
                if is_left[dependant] || self.items[bundle].standing.reached() >= Some(tie.awaits) {
                    continue;
                }
                is_left[dependant] = true;
                todo.push(dependant);
                left.push(PlanProblem::Behind {
                    id: self.items[dependant].id.clone(),
                    on: self.items[bundle].id.clone(),
                    place: tie.place.clone(),
                });
            }
        }
        left.sort_by(|a, b| (a.id(), a.place()).cmp(&(b.id(), b.place())));
        let known =
            self.outside.ids().filter_map(|id| Some((id.clone(), self.outside.standing(id)?)));
        let mut outside: BTreeMap<BundleId, ItemState> = known.collect();
        let mut rest = Vec::new();
        for (item, is_left) in self.items.into_iter().zip(is_left) {
            if is_left {
                // Known outside, so that the second pass does not report it as an id that does not
                // exist.
                outside.insert(item.id, item.standing);
            } else {
                rest.push(item);
            }
        }
        (rest, outside.into_iter().collect(), left)
    }

    fn find(&self, id: &BundleId) -> Option<usize> {
        self.items.binary_search_by(|item| item.id.cmp(id)).ok()
    }

    /// The edges between bundles of the batch. The dependencies of a bundle that is complete or given
    /// up no longer matter.
    fn dependencies(&mut self) -> Vec<(usize, usize, Tie)> {
        let mut links = Vec::new();
        for dependant in 0..self.items.len() {
            let item = &self.items[dependant];
            if !item.standing.is_live() || item.guest {
                continue;
            }
            if let Some(why) = &item.unreadable {
                let (id, place, why) = (item.id.clone(), item.place.clone(), why.clone());
                self.problems.push(PlanProblem::Unreadable { id, place, why });
                continue;
            }
            for (place, what) in &item.misspelled {
                let (id, place, what) = (item.id.clone(), place.clone(), what.clone());
                self.problems.push(PlanProblem::Misspelled { id, place, what });
            }
            let (id, declared) = (item.id.clone(), distinct(&item.depends_on));
            for Declared { id: on, place, awaits } in declared {
                let awaits = match awaits {
                    Awaits::Landed => Awaits::Landed,
                    // `Depends on (merged)` is the brief's own word; for every other dependency the
                    // configuration decides.
                    Awaits::Built | Awaits::Accepted => self.options.dependants,
                };
                if on == id {
                    self.problems.push(PlanProblem::DependsOnItself { id: id.clone(), place });
                    continue;
                }
                // A guest is not started by this batch, so only its present state counts, as for
                // any bundle outside.
                let inside = self.find(&on).filter(|index| !self.items[*index].guest);
                let standing = match inside {
                    Some(index) => Some(self.items[index].standing),
                    None => self.outside.standing(&on),
                };
                match (standing, inside) {
                    (None, _) => {
                        let near = self.near(&on);
                        let id = id.clone();
                        self.problems.push(PlanProblem::NoSuchPrerequisite { id, on, place, near });
                    }
                    (Some(standing), None) if standing.reached() >= Some(awaits) => {}
                    (Some(standing), Some(index)) if standing != ItemState::Ended => {
                        links.push((index, dependant, Tie { place, awaits }));
                    }
                    (Some(standing), inside) => {
                        let (id, in_batch) = (id.clone(), inside.is_some());
                        self.problems.push(PlanProblem::PrerequisiteNotComplete {
                            id,
                            on,
                            standing,
                            in_batch,
                            awaits,
                            place,
                        });
                    }
                }
            }
        }
        links
    }

    /// The declared conflicts between bundles of the batch, each pair once.
    fn conflicts(&mut self) -> BTreeMap<(usize, usize), SourceLocation> {
        let mut conflicts = BTreeMap::new();
        for index in 0..self.items.len() {
            let item = &self.items[index];
            if !self.claims_anything(item) {
                continue;
            }
            let (id, guest) = (item.id.clone(), item.guest);
            for Declared { id: with, place, .. } in distinct(&item.conflicts_with) {
                if with == id {
                    self.notices.push(PlanNotice::ConflictsWithItself { id: id.clone(), place });
                } else if let Some(other) = self.find(&with) {
                    conflicts.entry((index.min(other), index.max(other))).or_insert(place);
                } else if self.outside.standing(&with).is_none() && !guest {
                    let (near, id) = (self.near(&with), id.clone());
                    // A number may be a bundle that was removed long ago; a word is probably a typo.
                    if is_word(&with) {
                        self.problems.push(PlanProblem::NoSuchRival { id, with, place, near });
                    } else {
                        self.notices.push(PlanNotice::NoSuchRival { id, with, place, near });
                    }
                }
            }
        }
        conflicts
    }

    /// Parses the globs of each bundle that can block others; see [`Self::claims_anything`].
    fn patterns(&mut self) -> Vec<Vec<Pattern>> {
        let case = if self.options.fold_case { Case::Folded } else { Case::Sensitive };
        let mut all = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let Item { id, place, touches, guest, .. } = item;
            let mut patterns = Vec::with_capacity(touches.len());
            if !self.claims_anything(item) {
                all.push(patterns);
                continue;
            }
            if touches.is_empty() {
                let (id, place) = (id.clone(), place.clone());
                if !guest {
                    self.notices.push(PlanNotice::NothingDeclared { id, place });
                }
                if self.options.untouched == Untouched::Exclusive {
                    patterns.push(Pattern::everything());
                }
            }
            for touch in touches {
                match Pattern::parse(&touch.glob, case) {
                    Ok(pattern) if touch.is_file => patterns.push(pattern.file()),
                    Ok(pattern) => patterns.push(pattern),
                    // A bad glob of a bundle outside the batch must not reject the batch.
                    Err(_) if *guest => {}
                    Err(source) => self.problems.push(PlanProblem::BadGlob {
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
        for tangle in graph.cyclic_components() {
            let edge = |(prerequisite, dependant, tie): Link<'_>| Edge {
                dependant: self.items[dependant].id.clone(),
                prerequisite: self.items[prerequisite].id.clone(),
                place: tie.place.clone(),
                awaits: tie.awaits,
            };
            let edges = graph.shortest_cycle(&tangle).into_iter().map(edge).collect();
            self.problems.push(PlanProblem::Cycle { edges, tangled: tangle.len() });
        }
    }

    /// Returns true if a bundle can block others: it can still be started, or its result blocks.
    fn claims_anything(&self, item: &Item) -> bool {
        item.standing.holds(self.options.rivals) || (item.standing.is_live() && !item.guest)
    }

    /// Suggests bundles with similar names, nearest first.
    fn near(&mut self, id: &BundleId) -> Vec<BundleId> {
        const SHOWN: usize = 3;
        self.suggested += 1;
        if self.suggested > MAX_SUGGESTED {
            return Vec::new();
        }
        let known = self.items.iter().map(|item| &item.id).chain(self.outside.ids());
        let mut near: Vec<(usize, &BundleId)> =
            known.filter_map(|other| Some((slips(id, other)?, other))).collect();
        near.sort_unstable();
        near.dedup();
        near.into_iter().take(SHOWN).map(|(_, other)| other.clone()).collect()
    }
}

/// Returns the edit distance between two ids, or `None` if they are too different for one to be a
/// typing error for the other.
pub fn slips(id: &BundleId, other: &BundleId) -> Option<usize> {
    let (id, other) = (id.as_str(), other.as_str());
    if other.len().abs_diff(id.len()) > 2 {
        return None;
    }
    let folded = strsim::osa_distance(&id.to_lowercase(), &other.to_lowercase());
    let slips =
        strsim::osa_distance(id, other).min(folded + usize::from(id != other && folded == 0));
    // A name of one or two characters is within distance 2 of every other short name.
    (slips <= 2 && slips < id.len()).then_some(slips)
}

/// Removes repeated ids. The first location is kept, with the strictest `awaits` of all.
fn distinct(declared: &[Declared]) -> Vec<Declared> {
    let mut awaits: HashMap<&BundleId, Awaits> = HashMap::new();
    for Declared { id, awaits: one, .. } in declared {
        let strictest = awaits.entry(id).or_insert(*one);
        *strictest = (*strictest).max(*one);
    }
    let first = declared.iter().filter_map(|declared| {
        let awaits = awaits.remove(&declared.id)?;
        Some(Declared { awaits, ..declared.clone() })
    });
    first.collect()
}

/// Returns true for an id with lower-case letters and no digit, which looks like a word.
fn is_word(id: &BundleId) -> bool {
    id.as_str().contains(char::is_lowercase) && !id.as_str().contains(char::is_numeric)
}

/// A digest over all inputs of [`Plan::groups`]. The progress of bundles is not part of it, so a plan
/// does not become outdated by being carried out.
fn digest(items: &[Item], options: Options) -> String {
    let mut hasher = Sha256::new();
    let mut add = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    // Spelled out instead of `Debug`, so that new options do not make existing `lanes.json` outdated.
    let Options {
        untouched,
        fold_case,
        join_dependencies,
        join_surfaces,
        dependants: _,
        rivals: _,
        leave_alone: _,
    } = options;
    let untouched = match untouched {
        Untouched::Free => "Free",
        Untouched::Exclusive => "Exclusive",
    };
    add(&format!(
        "Options {{ untouched: {untouched}, fold_case: {fold_case}, join_dependencies: {join_dependencies} }}"
    ));
    for item in items.iter().filter(|item| !item.guest) {
        add(item.id.as_str());
        for (kind, declared) in [("depends", &item.depends_on), ("conflicts", &item.conflicts_with)]
        {
            let mut ids: Vec<&str> = declared.iter().map(|other| other.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            add(kind);
            add(&ids.len().to_string());
            ids.into_iter().for_each(&mut add);
            for landed in declared.iter().filter(|other| other.awaits == Awaits::Landed) {
                add("landed");
                add(landed.id.as_str());
            }
        }
        // Only where they count, so that other `lanes.json` stay current.
        for surface in item.surfaces.iter().filter(|_| join_surfaces) {
            add("surface");
            add(surface);
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
