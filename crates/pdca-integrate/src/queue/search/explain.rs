//! Explanation of a suspect: the smallest set with which it is red.
//!
//! 1. Gate the suspect alone, with what it needs. Most culprits are found here.
//! 2. Its possible partners are all changes below it since the integration began, in the order in which they
//!    landed. The shortest prefix of them with which the suspect is red ends in a partner. That partner is
//!    kept, and the search continues before it until the kept partners are red without the rest.
//! 3. The named set must be red twice, and all reds about the suspect together as often as the failed rows demand. A
//!    green of the same tree takes a red back, and the steps start over with the remaining facts.
//!
//! Nothing is stored: each step is derived from the answers, so their order does not matter.

use super::{
    closure,
    decision::TestPurpose,
    flake::FlakeRules,
    knowledge::{Knowledge, SetFinding},
    line::between,
};

/// A set that was red once may be a flake; the next step needs it red this often.
const TWICE: u32 = 2;

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
    /// The partners, and the confirmed set.
    Named { partners: Vec<usize>, named: Vec<usize> },
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
    kept: Vec<usize>,
}

impl Suspect {
    /// Derives the progress, with tests for up to `lanes` lanes.
    pub(super) fn progress(&self, facts: Facts<'_>, lanes: usize) -> ExplainProgress {
        if facts.knowledge.finding(&self.whole) == SetFinding::Green {
            return ExplainProgress::Cleared;
        }
        let (bads, rows) = facts.knowledge.against(self.place, &self.whole);
        let agreement = facts.flakes.agreement(rows);
        let explaining = Explaining { suspect: self, facts, bads, agreement, kept: Vec::new() };
        explaining.derive(lanes)
    }
}

impl Explaining<'_> {
    fn derive(mut self, lanes: usize) -> ExplainProgress {
        let mut others = &self.suspect.below[..];
        loop {
            let named = self.set(&[]);
            // Each kept partner was needed when it was kept, so this set is the one to confirm.
            if others.is_empty() || self.finding(&named) == SetFinding::Bad {
                return self.confirm(named);
            }
            let is_first = self.kept.is_empty();
            if self.finding(&named) == SetFinding::Unknown {
                return self.ask_named(named, others);
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
            // Green with the others before this one, red with this one: it is a partner.
            self.kept.push(others[green]);
            others = &others[..green];
        }
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
            match self.superfluous() {
                Need::Unknown(places) => return ExplainProgress::ask(Want::explain(places)),
                Need::All => {
                    let mut partners = self.kept;
                    partners.sort_unstable();
                    return ExplainProgress::Named { partners, named };
                }
                Need::Without(member) => {
                    self.kept.retain(|kept| *kept != member);
                    named = self.set(&[]);
                }
            }
        }
    }

    /// Looks for a partner that the named set does not need. Unless some set was seen to mend a part of itself,
    /// the greens on the way have ruled that out.
    fn superfluous(&self) -> Need {
        if !self.facts.knowledge.shows_mending() {
            return Need::All;
        }
        for member in &self.kept {
            let is_left = |kept: &&usize| {
                let needed = closure(self.facts.needs, [**kept]);
                !needed.contains(member)
            };
            let left = self.kept.iter().filter(is_left).copied();
            let places = closure(self.facts.needs, left.chain([self.suspect.place]));
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

    /// Returns the number of reds of a larger set that are required before the search continues inside it. The
    /// more partners a red seems to need, the more likely it is a flake.
    fn demanded(&self) -> u32 {
        let partners = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
        if self.agreement == 1 { 1 } else { TWICE.max(partners) }
    }

    fn once_more(&self, places: Vec<usize>) -> Want {
        let times = self.facts.knowledge.runs(&places) + 1;
        Want::again(places, times)
    }

    fn finding(&self, places: &[usize]) -> SetFinding {
        self.facts.knowledge.finding(places)
    }

    fn set(&self, others: &[usize]) -> Vec<usize> {
        let chosen = others.iter().chain(&self.kept).chain([&self.suspect.place]);
        closure(self.facts.needs, chosen.copied())
    }
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
