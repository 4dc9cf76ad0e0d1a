//! Explanation of a suspect: the smallest set with which it is red.
//!
//! 1. Gate the suspect alone, with what it needs. Most culprits are found here.
//! 2. Gate it with each change that the evidence points to: one that added or touched the failing test, or a file in
//!    its message. Most pairs are found here.
//! 3. Its possible partners are all changes below it since the integration began, in the order in which they
//!    landed. The shortest prefix of them with which the suspect is red ends in a partner. That partner is
//!    kept, and the search continues before it until the kept partners are red without the rest.
//! 4. The named set must be red twice, and all reds about the suspect together as often as the failed rows demand. A
//!    green of the same tree takes a red back, and the steps start over with the remaining facts.
//!
//! # Guilty and context
//! A set may not fold without changes that are not in it, because they share files. Its tree then has their version of
//! those files and nothing else of them. They are *context*: named apart, and never called partners. Such a tree may be
//! red because a half of a change is missing in it, so what it says is checked:
//!
//! - A suspect that is red alone must also be red with its context as a whole. If that is green, it is *tied* to the
//!   context: from then on it is gated with all of it.
//! - The partners without the suspect must be green. If they are not, they are tied to their context.
//! - A set that does not fold at all is bounded by the change that makes it fold. That one is context as well.
//!
//! Nothing is stored: each step is derived from the answers, so their order does not matter.

use std::borrow::Cow;

use super::{
    closure,
    decision::TestPurpose,
    flake::FlakeRules,
    knowledge::{Knowledge, SetFinding},
    line::between,
};

/// A set that was red once may be a flake; the next step needs it red this often.
const TWICE: u32 = 2;
/// The number of changes that the evidence points to and that are tried before halving.
/// A wrong one costs a run; of the right ones nearly all are the first or the second.
pub(super) const WITNESSES: usize = 2;

/// A change that is red on top of what landed.
#[derive(Debug, Clone)]
pub(super) struct Suspect {
    pub(super) place: usize,
    /// The possible partners, in the order in which they landed.
    pub(super) below: Vec<usize>,
    /// The red set: everything below the suspect, and the suspect.
    pub(super) whole: Vec<usize>,
}

/// A set to be gated, and the total number of runs that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) places: Vec<usize>,
    pub(super) times: u32,
    pub(super) purpose: TestPurpose,
}

/// The progress of an explanation.
#[derive(Debug)]
pub(super) enum ExplainProgress {
    /// The red set was green in another run; there is nothing to explain.
    Cleared,
    /// More answers are needed. `alive` are sets whose answers may still be useful.
    Open { wants: Vec<Want>, alive: Vec<Vec<usize>> },
    /// The partners, the changes that could not be left out, and the confirmed set.
    Named { partners: Vec<usize>, context: Vec<usize>, named: Vec<usize> },
}

/// The input that explanations are derived from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) needs: &'a [Vec<usize>],
    pub(super) knowledge: &'a Knowledge,
    pub(super) flakes: &'a FlakeRules,
}

struct Explaining<'a> {
    suspect: &'a Suspect,
    facts: Facts<'a>,
    /// The number of bad runs of any set that contains the suspect.
    bads: u32,
    /// The number of bad runs that are required.
    agreement: u32,
    /// The needs of each place, and what it is tied to.
    needs: Cow<'a, [Vec<usize>]>,
    kept: Vec<usize>,
    /// The changes without which nothing folds.
    bound: Vec<usize>,
}

impl Suspect {
    /// Derives the progress, with tests for up to `lanes` lanes.
    pub(super) fn progress(&self, facts: Facts<'_>, lanes: usize) -> ExplainProgress {
        if facts.knowledge.finding(&self.whole) == SetFinding::Green {
            return ExplainProgress::Cleared;
        }
        let (bads, rows) = facts.knowledge.against(self.place, &self.whole);
        let agreement = facts.flakes.agreement(rows);
        let explaining = Explaining {
            suspect: self,
            facts,
            bads,
            agreement,
            needs: self.tied(facts),
            kept: Vec::new(),
            bound: Vec::new(),
        };
        explaining.derive(lanes)
    }

    /// Returns the needs, with the context added to every change that is red only because a half of it is missing.
    fn tied<'f>(&self, facts: Facts<'f>) -> Cow<'f, [Vec<usize>]> {
        let mut needs = Cow::Borrowed(facts.needs);
        let mut tie = |place: usize, context: &mut dyn Iterator<Item = usize>| {
            needs.to_mut()[place].extend(context);
        };
        // Changes that landed after the suspect was set aside cannot be what makes it red.
        let is_below = |place: &usize| self.whole.contains(place);
        for (places, context) in facts.knowledge.torn(self.place, &self.whole) {
            for place in places {
                tie(*place, &mut context.iter().copied().filter(is_below));
            }
        }
        let alone = closure(facts.needs, [self.place]);
        let mut context = facts.knowledge.context(&alone);
        context.retain(is_below);
        let with_all = closure(facts.needs, context.iter().copied().chain([self.place]));
        let is_torn = !context.is_empty()
            && facts.knowledge.finding(&alone) == SetFinding::Bad
            && facts.knowledge.finding(&with_all) == SetFinding::Green;
        if is_torn {
            tie(self.place, &mut context.iter().copied());
        }
        needs
    }

    /// Returns the most runs that a pair takes from here on.
    pub(super) fn most_runs(&self, knowledge: &Knowledge) -> u32 {
        let below = u32::try_from(self.below.len()).unwrap_or(u32::MAX);
        let halvings = u32::BITS - below.leading_zeros();
        let witnesses = knowledge.witnesses(self.place, &self.whole).len().min(WITNESSES);
        let witnesses = u32::try_from(witnesses).unwrap_or(u32::MAX);
        // Alone, the pair once more, the partner without the suspect, and the red set that led to the pair once more.
        let all = 4 + witnesses + halvings;
        all.saturating_sub(knowledge.runs_within(self.place, &self.whole)).max(1)
    }
}

impl Explaining<'_> {
    fn derive(mut self, lanes: usize) -> ExplainProgress {
        let below = &self.suspect.below;
        // What the suspect is tied to is in every set.
        let always = self.set(&[]);
        let others: Vec<usize> =
            below.iter().copied().filter(|place| !always.contains(place)).collect();
        let mut others = &others[..];
        loop {
            let named = self.set(&[]);
            // Each kept partner was needed when it was kept, so this set is the one to confirm.
            if others.is_empty() || self.finding(&named) == SetFinding::Bad {
                return self.confirm(named);
            }
            let is_first = self.kept.is_empty() && self.bound.is_empty();
            if self.finding(&named) == SetFinding::Unknown {
                return self.ask_named(named, others);
            }
            if is_first {
                match self.by_evidence(others) {
                    Evidence::Unknown(places) => {
                        return ExplainProgress::Open {
                            alive: vec![places.clone()],
                            wants: vec![Want::explain(places)],
                        };
                    }
                    Evidence::Partner(partner) => {
                        self.kept.push(partner);
                        others = &[];
                        continue;
                    }
                    Evidence::None => {}
                }
            }
            let all = self.set(others);
            // With flaky rows the first red is confirmed before anything is built on it. Otherwise it is
            // confirmed only if the search was led to a set that is green.
            let is_doubtful = !is_first || self.agreement > TWICE;
            if is_doubtful && self.facts.knowledge.bads(&all) < self.demanded() {
                return ExplainProgress::ask(self.once_more(all));
            }
            let (green, red) = self.narrowed(others);
            if red - green > 1 {
                let lengths = between(green, red, lanes.max(1));
                let wants =
                    lengths.iter().map(|length| Want::explain(self.set(&others[..*length])));
                let mut wants: Vec<Want> = wants.collect();
                wants.dedup();
                // Any length between the bounds narrows them, also one that was asked for with other bounds.
                let alive = (green + 1..red).map(|length| self.set(&others[..length])).collect();
                return ExplainProgress::Open { wants, alive };
            }
            let shorter = self.finding(&self.set(&others[..green]));
            if matches!(shorter, SetFinding::Unfit(_)) {
                // It does not fold without this one, which says nothing about its guilt.
                self.bound.push(others[green]);
            } else {
                // Green with the others before this one, red with this one: it is a partner.
                self.kept.push(others[green]);
            }
            others = &others[..green];
        }
    }

    /// Looks for a partner among the changes that the evidence points to.
    fn by_evidence(&self, others: &[usize]) -> Evidence {
        let witnesses = self.facts.knowledge.witnesses(self.suspect.place, &self.suspect.whole);
        let witnesses = witnesses.into_iter().filter(|place| others.contains(place));
        for witness in witnesses.take(WITNESSES) {
            let places = self.set(&[witness]);
            match self.finding(&places) {
                SetFinding::Unknown => return Evidence::Unknown(places),
                SetFinding::Bad => return Evidence::Partner(witness),
                SetFinding::Green | SetFinding::Unfit(_) => {}
            }
        }
        Evidence::None
    }

    /// Asks whether the kept partners are enough. Nothing else is gated meanwhile: most culprits are red alone,
    /// and then any further run would be wasted.
    fn ask_named(&self, named: Vec<usize>, others: &[usize]) -> ExplainProgress {
        // Prefixes that run already are needed if this answer is green.
        let mut alive: Vec<Vec<usize>> =
            (1..others.len()).map(|length| self.set(&others[..length])).collect();
        alive.push(named.clone());
        ExplainProgress::Open { wants: vec![Want::explain(named)], alive }
    }

    /// Requires the named set to be red often enough.
    fn confirm(mut self, mut named: Vec<usize>) -> ExplainProgress {
        loop {
            let seen = self.facts.knowledge.bads(&named);
            let missing = self.agreement.saturating_sub(self.bads);
            // One of the reds may be that of a larger set. With several partners it may not: a false red on the
            // way may have led to the wrong ones.
            let least = if self.kept.is_empty() { 1 } else { self.demanded() };
            let wanted = self.agreement.saturating_sub(1).max(least).max(seen + missing);
            if seen < wanted {
                let times = self.facts.knowledge.runs(&named) + wanted - seen;
                return ExplainProgress::ask(Want::again(named, times));
            }
            if let Some(unsure) = self.unsure_of_context(&named) {
                return ExplainProgress::ask(Want::explain(unsure));
            }
            match self.superfluous(&named) {
                Need::Unknown(places) => return ExplainProgress::ask(Want::explain(places)),
                Need::All => {
                    let context = self.context(&named);
                    let mut partners = self.kept;
                    partners.sort_unstable();
                    return ExplainProgress::Named { partners, context, named };
                }
                Need::Without(member) => {
                    self.kept.retain(|kept| *kept != member);
                    named = self.set(&[]);
                }
            }
        }
    }

    /// Returns the set that shows whether a tree with parts of other changes is red for those parts, if that is open.
    fn unsure_of_context(&self, named: &[usize]) -> Option<Vec<usize>> {
        let context = self.facts.knowledge.context(named);
        if context.is_empty() {
            return None;
        }
        let places = if self.kept.is_empty() {
            let context = context.into_iter().filter(|place| self.suspect.whole.contains(place));
            closure(&self.needs, context.chain(named.iter().copied()))
        } else {
            closure(&self.needs, self.kept.iter().chain(&self.bound).copied())
        };
        (self.finding(&places) == SetFinding::Unknown).then_some(places)
    }

    /// Returns the places that could not be left out of the named set: those whose version of a file its tree has, those
    /// without which it does not fold, and those that a member is tied to.
    fn context(&self, named: &[usize]) -> Vec<usize> {
        let guilty = self.kept.iter().copied().chain([self.suspect.place]);
        let guilty = closure(self.facts.needs, guilty);
        let mut context = self.facts.knowledge.context(named);
        context.extend(named.iter().copied().filter(|place| !guilty.contains(place)));
        context.retain(|place| !guilty.contains(place));
        context.sort_unstable();
        context.dedup();
        context
    }

    /// Looks for a partner that the named set does not need. Unless some set was seen to mend a part of itself, or the
    /// trees had different parts of other changes, the greens on the way have ruled that out.
    fn superfluous(&self, named: &[usize]) -> Need {
        let is_torn = !self.facts.knowledge.context(named).is_empty();
        if !self.facts.knowledge.shows_mending() && !is_torn {
            return Need::All;
        }
        for member in &self.kept {
            let is_left = |kept: &&usize| {
                let needed = closure(&self.needs, [**kept]);
                !needed.contains(member)
            };
            let left = self.kept.iter().filter(is_left).chain(&self.bound).copied();
            let places = closure(&self.needs, left.chain([self.suspect.place]));
            match self.finding(&places) {
                SetFinding::Unknown => return Need::Unknown(places),
                SetFinding::Bad => return Need::Without(*member),
                SetFinding::Green | SetFinding::Unfit(_) => {}
            }
        }
        Need::All
    }

    /// Returns the length of the longest green prefix of the others, and of the shortest longer one that is red.
    fn narrowed(&self, others: &[usize]) -> (usize, usize) {
        let finding = |length: usize| self.finding(&self.set(&others[..length]));
        let is_green =
            |length: &usize| matches!(finding(*length), SetFinding::Green | SetFinding::Unfit(_));
        // A set that does not fold cannot be red, so it bounds the search like a green one.
        let green = (1..others.len()).rev().find(is_green).unwrap_or(0);
        let red = (green + 1..others.len()).find(|length| finding(*length) == SetFinding::Bad);
        (green, red.unwrap_or(others.len()))
    }

    /// Returns the number of reds of a set that are required before the search builds on it. No tree is gated a third
    /// time for it: a row that is known to be flaky demands more reds of all sets together.
    fn demanded(&self) -> u32 {
        if self.agreement == 1 { 1 } else { TWICE }
    }

    fn once_more(&self, places: Vec<usize>) -> Want {
        let times = self.facts.knowledge.runs(&places) + 1;
        Want::again(places, times)
    }

    fn finding(&self, places: &[usize]) -> SetFinding {
        self.facts.knowledge.explaining(places)
    }

    fn set(&self, others: &[usize]) -> Vec<usize> {
        let chosen = others.iter().chain(&self.kept).chain(&self.bound);
        closure(&self.needs, chosen.chain([&self.suspect.place]).copied())
    }
}

/// The result of following the evidence.
enum Evidence {
    Partner(usize),
    /// Whether this set is red is to be found out.
    Unknown(Vec<usize>),
    None,
}

/// The result of looking for an unneeded partner.
enum Need {
    All,
    Without(usize),
    Unknown(Vec<usize>),
}

impl ExplainProgress {
    fn ask(want: Want) -> Self {
        Self::Open { wants: vec![want], alive: Vec::new() }
    }
}

impl Want {
    pub(super) fn explain(places: Vec<usize>) -> Self {
        Self { places, times: 1, purpose: TestPurpose::Explain }
    }

    pub(super) fn decide(places: Vec<usize>) -> Self {
        Self { places, times: 1, purpose: TestPurpose::Decide }
    }

    pub(super) fn again(places: Vec<usize>, times: u32) -> Self {
        Self { places, times, purpose: TestPurpose::Confirm }
    }
}
