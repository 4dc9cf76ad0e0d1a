//! The words of a card: short sections, one fact a line. `show`, `review` and the board print the same.

use pdca_state::GateResult;
use pdca_state::text::one_line;

use crate::review::card::{Card, GateLine, NoteAnswer, ProofStep, ReviewLine};

/// The tone of a line. It only adds to the words: nothing is said by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// As it should be.
    Good,
    /// Prevents an acceptance.
    Bad,
    /// Needs a look.
    Warn,
    /// May be skipped.
    Faint,
}

/// One line of a card, without line ends or control characters. It may be longer than a terminal is wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardLine {
    pub tone: Tone,
    pub text: String,
}

/// A heading with its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSection {
    pub title: &'static str,
    pub lines: Vec<CardLine>,
}

/// The longest line; longer text of a bundle is cut.
const LONGEST: usize = 400;
/// The most paths that a line names.
const NAMED: usize = 8;

impl Card {
    /// Returns the text of the card, most important first. Empty sections are left out.
    pub fn sections(&self) -> Vec<CardSection> {
        let sections = [
            ("Claim", self.claim_lines()),
            ("Advice on the brief", self.advice_lines()),
            ("Proof", self.proof_lines()),
            ("To decide", self.item_lines()),
            ("Proposed by the sign-off leaf", self.proposal_lines()),
            ("Gates", self.gate_lines()),
            ("Review", self.review_lines()),
            ("Change", self.change_lines()),
            ("Since the last attempt", self.attempt_lines()),
            ("Together", self.together_lines()),
        ];
        let section = |(title, lines): (_, Vec<CardLine>)| CardSection { title, lines };
        sections.map(section).into_iter().filter(|section| !section.lines.is_empty()).collect()
    }

    fn claim_lines(&self) -> Vec<CardLine> {
        let mut lines = Vec::new();
        lines.extend(self.claim.as_deref().map(|text| line(Tone::Plain, text)));
        let success = self.success.as_deref();
        lines.extend(success.map(|text| line(Tone::Plain, &format!("done when: {text}"))));
        match (&self.disposition, self.closes) {
            (Some(text), true) => {
                lines.push(line(Tone::Warn, &format!("closes without a change: {text}")));
            }
            (Some(text), false) => lines.push(line(Tone::Faint, &format!("expected: {text}"))),
            (None, _) => {}
        }
        lines
    }

    fn advice_lines(&self) -> Vec<CardLine> {
        self.plan_advice.iter().map(|text| line(Tone::Warn, text)).collect()
    }

    fn proposal_lines(&self) -> Vec<CardLine> {
        let Some(proposal) = &self.proposal else { return Vec::new() };
        let note = proposal.note.as_deref().map_or_else(String::new, |note| format!(": {note}"));
        let action = proposal.action;
        vec![
            line(Tone::Warn, &format!("{action}{note} ({}; nobody has decided)", proposal.date)),
            line(Tone::Plain, &proposal.command),
        ]
    }

    fn proof_lines(&self) -> Vec<CardLine> {
        if self.closes || self.overall.is_none() {
            return Vec::new();
        }
        let steps =
            [("red before", &self.proof.red_before), ("green after", &self.proof.green_after)];
        steps.map(|(what, step)| proof_line(what, step)).into()
    }

    fn item_lines(&self) -> Vec<CardLine> {
        let item = |item: &pdca_state::SummaryItem| {
            let mark = if item.open { "[ ]" } else { "[x]" };
            let asked = if item.standing { " (asked every time)" } else { "" };
            let tone = match (item.open, item.standing) {
                (true, false) => Tone::Warn,
                (true, true) => Tone::Plain,
                (false, _) => Tone::Faint,
            };
            line(tone, &format!("{} {mark} {}{asked}", item.number, item.text))
        };
        self.items.iter().map(item).collect()
    }

    fn gate_lines(&self) -> Vec<CardLine> {
        let mut lines: Vec<CardLine> = Vec::new();
        for gate in &self.gates {
            lines.push(gate_line(gate));
            let more = match gate.failing_more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            if !gate.failing.is_empty() {
                lines.push(line(
                    Tone::Bad,
                    &format!("  failing: {}{more}", gate.failing.join(", ")),
                ));
            }
            if let (GateResult::Fail, Some(again)) = (gate.result, &gate.reproduce) {
                lines.push(line(Tone::Faint, &format!("  again: {again}")));
            }
        }
        lines
    }

    fn review_lines(&self) -> Vec<CardLine> {
        if self.review_missing && self.overall.is_some() {
            return vec![line(Tone::Warn, "there is no review")];
        }
        self.review.iter().map(review_line).collect()
    }

    fn change_lines(&self) -> Vec<CardLine> {
        let change = &self.change;
        let mut lines = Vec::new();
        if !change.files.is_empty() {
            let files = if change.files.len() == 1 { "file" } else { "files" };
            let size =
                format!("{} {files}, +{} -{}", change.files.len(), change.added, change.removed);
            let paths = named(change.files.iter().map(|file| file.path.as_str()));
            lines.push(line(Tone::Plain, &format!("{size}: {paths}")));
        }
        if change.edited_after_check {
            lines.push(line(Tone::Bad, "the patch was edited after Check"));
        }
        if !change.outside_touches.is_empty() {
            let paths = named(change.outside_touches.iter().map(String::as_str));
            lines.push(line(Tone::Warn, &format!("outside `Touches`: {paths}")));
        }
        if !change.protected.is_empty() {
            let paths = named(change.protected.iter().map(String::as_str));
            lines.push(line(Tone::Warn, &format!("protected paths: {paths}")));
        }
        lines.extend(self.problems.iter().map(|problem| line(Tone::Warn, problem)));
        if let Some(cost) = self.cost.as_ref().and_then(pdca_state::CostTotal::words) {
            lines.push(line(Tone::Faint, &format!("cost: {cost}")));
        }
        lines
    }

    fn attempt_lines(&self) -> Vec<CardLine> {
        let Some(delta) = &self.since_last else { return Vec::new() };
        let note = delta.note.as_deref().unwrap_or("(no note)");
        let mut lines = vec![line(Tone::Plain, &format!("attempt {}, note: {note}", delta.before))];
        let tone = match delta.answer {
            NoteAnswer::Unchanged => Tone::Bad,
            NoteAnswer::StillRed => Tone::Warn,
            NoteAnswer::Changed => Tone::Plain,
        };
        let files = named(delta.files.iter().map(String::as_str));
        let words = delta.answer.words();
        let said = if files.is_empty() { words.to_owned() } else { format!("{words}: {files}") };
        lines.push(line(tone, &said));
        let rows = [
            (Tone::Good, "green again", &delta.mended),
            (Tone::Bad, "still red", &delta.still_red),
            (Tone::Bad, "newly red", &delta.newly_red),
        ];
        for (tone, what, rows) in rows.into_iter().filter(|(_, _, rows)| !rows.is_empty()) {
            lines.push(line(tone, &format!("{what}: {}", rows.join(", "))));
        }
        let said = delta.builder_says.as_deref();
        lines.extend(said.map(|said| line(Tone::Plain, &format!("the builder says: {said}"))));
        lines
    }

    fn together_lines(&self) -> Vec<CardLine> {
        let mut lines = Vec::new();
        let stands_on = self.stands_on.as_deref();
        lines.extend(stands_on.map(|text| line(Tone::Plain, &format!("stands on {text}"))));
        lines.extend(self.stale.as_deref().map(|why| line(Tone::Bad, &format!("stale: {why}"))));
        if !self.conflicts.is_empty() {
            let ids: Vec<&str> = self.conflicts.iter().map(AsRef::as_ref).collect();
            lines.push(line(Tone::Warn, &format!("will conflict with {}", ids.join(", "))));
        }
        lines
    }
}

fn line(tone: Tone, text: &str) -> CardLine {
    // Line ends inside a field are folded: a card has one fact a line. The indent of a detail stays.
    let indent = &text[..text.len() - text.trim_start().len()];
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    CardLine { tone, text: format!("{indent}{}", one_line(&folded, LONGEST)) }
}

fn proof_line(what: &str, step: &ProofStep) -> CardLine {
    match step {
        ProofStep::Shown { by, evidence } => {
            line(Tone::Good, &format!("{what}: shown by {by} ({evidence})"))
        }
        ProofStep::Disproved { by, evidence } => {
            line(Tone::Bad, &format!("{what}: NOT so, says {by} ({evidence})"))
        }
        ProofStep::Undecided { by, evidence } => {
            line(Tone::Warn, &format!("{what}: undecided by {by} ({evidence})"))
        }
        ProofStep::NoGate => line(Tone::Faint, &format!("{what}: no gate shows it")),
    }
}

fn gate_line(gate: &GateLine) -> CardLine {
    let tone = match (gate.result, gate.gating) {
        (GateResult::Pass, _) => Tone::Good,
        (GateResult::Fail, true) => Tone::Bad,
        (GateResult::Fail | GateResult::Unverifiable, _) => Tone::Warn,
        (GateResult::Deferred | GateResult::None, _) => Tone::Faint,
    };
    let advisory = if gate.gating { "" } else { " (advisory)" };
    let flaky = if gate.flaky { " (flaky)" } else { "" };
    let name = if gate.plain.is_empty() {
        gate.rule.clone()
    } else {
        format!("{} \"{}\"", gate.rule, gate.plain)
    };
    line(tone, &format!("{} {name}{advisory}{flaky}: {}", gate.result, gate.evidence))
}

fn review_line(row: &ReviewLine) -> CardLine {
    let tone = if row.notable { Tone::Warn } else { Tone::Faint };
    let basis = if row.basis.is_empty() { String::new() } else { format!(": {}", row.basis) };
    line(tone, &format!("{} {}{basis}", row.verdict, row.item))
}

/// Joins paths, the first few of many.
fn named<'p>(paths: impl ExactSizeIterator<Item = &'p str>) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let shown = paths.take(NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
