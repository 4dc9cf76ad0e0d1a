//! A decision as a value, and as the command that records it.

use pdca_state::text::shell;
use pdca_state::{BundleId, Override, SignoffAction};
use serde::Serialize;

/// A person's decision about one bundle. Who decided and when is in [`crate::review::Signing`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    pub id: BundleId,
    pub choice: Choice,
    /// The reason. Recorded beside each item that is ticked, and in §9.
    pub note: Option<String>,
}

/// The choices of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Choice {
    /// Accept the change: tick items, seal it, freeze the bundle.
    Accept {
        /// The items of §6 to tick first.
        clear: Ticks,
        /// Failed gating rows to accept all the same.
        overridden: Option<Overridden>,
    },
    /// Build again from the same brief.
    IterateDo,
    /// Plan again.
    IteratePlan,
    /// Give the bundle up. Needs a note.
    Discontinue,
    /// Tick items of §6, and decide nothing.
    Clear(Ticks),
}

/// Items of §6 by number. Numbers count open and ticked items, so they do not move when one is ticked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Ticks {
    Nothing,
    /// Every open item.
    All,
    /// These numbers, from 1.
    Numbers(Vec<usize>),
}

/// Failed gating rows that a person accepts all the same, with one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overridden {
    /// Rule ids, or check names.
    pub rows: Vec<String>,
    pub reason: String,
}

impl Choice {
    /// Accepts without ticking or overriding anything.
    pub const fn accept() -> Self {
        Self::Accept { clear: Ticks::Nothing, overridden: None }
    }

    /// Accepts, and ticks every open item.
    pub const fn accept_all() -> Self {
        Self::Accept { clear: Ticks::All, overridden: None }
    }

    /// Returns the choice of an action, which ticks and overrides nothing.
    pub const fn of(action: SignoffAction) -> Self {
        match action {
            SignoffAction::Accept => Self::accept(),
            SignoffAction::IterateDo => Self::IterateDo,
            SignoffAction::IteratePlan => Self::IteratePlan,
            SignoffAction::Discontinue => Self::Discontinue,
        }
    }

    /// Returns what §9 records; `None` for [`Choice::Clear`].
    pub fn action(&self) -> Option<SignoffAction> {
        match self {
            Self::Accept { .. } => Some(SignoffAction::Accept),
            Self::IterateDo => Some(SignoffAction::IterateDo),
            Self::IteratePlan => Some(SignoffAction::IteratePlan),
            Self::Discontinue => Some(SignoffAction::Discontinue),
            Self::Clear(_) => None,
        }
    }

    /// Returns the word on the command line.
    pub fn word(&self) -> &'static str {
        self.action().map_or("clear", SignoffAction::as_str)
    }

    pub(crate) fn overrides(&self) -> Vec<Override> {
        let Self::Accept { overridden: Some(given), .. } = self else { return Vec::new() };
        let of = |row: &String| Override { row: row.clone(), reason: given.reason.clone() };
        given.rows.iter().map(of).collect()
    }
}

impl Ticks {
    /// Returns the value of `--clear`, and what follows `clear`.
    fn words(&self) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::All => vec!["all".to_owned()],
            Self::Numbers(numbers) => numbers.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Decision {
    pub fn new(id: &BundleId, choice: Choice) -> Self {
        Self { id: id.clone(), choice, note: None }
    }

    /// Returns the words of the command that records this decision, without the program's name.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["signoff".to_owned(), self.id.to_string(), self.choice.word().into()];
        match &self.choice {
            Choice::Clear(ticks) => words.extend(ticks.words()),
            Choice::Accept { clear, overridden } => {
                match clear {
                    Ticks::Nothing => {}
                    Ticks::All => words.push("--clear".to_owned()),
                    Ticks::Numbers(_) => words.push(format!("--clear={}", clear.words().join(","))),
                }
                for row in overridden.iter().flat_map(|given| &given.rows) {
                    push_option(&mut words, "--override", row);
                }
                if let Some(given) = overridden {
                    push_option(&mut words, "--reason", &given.reason);
                }
            }
            Choice::IterateDo | Choice::IteratePlan | Choice::Discontinue => {}
        }
        if let Some(note) = &self.note {
            push_option(&mut words, "--note", note);
        }
        words
    }

    /// Returns the command that records this decision, quoted for a shell.
    pub fn command_line(&self) -> String {
        let arguments = self.arguments();
        let words = arguments.iter().map(|word| shell(word));
        std::iter::once("pdca".into()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

fn push_option(words: &mut Vec<String>, name: &str, value: &str) {
    // A value that begins with a dash would be taken for another option.
    if value.starts_with('-') {
        words.push(format!("{name}={value}"));
    } else {
        words.extend([name.to_owned(), value.to_owned()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(choice: Choice, note: &str) -> String {
        let note = Some(note.to_owned()).filter(|note| !note.is_empty());
        Decision { id: "36".parse().unwrap(), choice, note }.command_line()
    }

    #[test]
    fn a_decision_is_the_command_that_would_be_typed() {
        let overridden = Overridden { rows: vec!["T3-tests".into()], reason: "no browser".into() };
        let numbers = Ticks::Numbers(vec![2]);
        let accept = |overridden| Choice::Accept { clear: numbers.clone(), overridden };
        for (choice, note, expected) in [
            (Choice::accept(), "", "pdca signoff 36 accept"),
            (
                Choice::accept_all(),
                "it's fine",
                r"pdca signoff 36 accept --clear --note 'it'\''s fine'",
            ),
            (
                accept(Some(overridden)),
                "",
                "pdca signoff 36 accept --clear=2 --override T3-tests --reason 'no browser'",
            ),
            (Choice::IterateDo, "-v is lost", "pdca signoff 36 iterate-do '--note=-v is lost'"),
            (Choice::IteratePlan, "x", "pdca signoff 36 iterate-plan --note x"),
            (Choice::Discontinue, "x", "pdca signoff 36 discontinue --note x"),
            (Choice::Clear(Ticks::All), "", "pdca signoff 36 clear all"),
            (Choice::Clear(Ticks::Numbers(vec![1, 3])), "", "pdca signoff 36 clear 1 3"),
        ] {
            assert_eq!(line(choice, note), expected);
        }
    }
}
