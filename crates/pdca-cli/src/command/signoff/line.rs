//! The words of the command line: ids, then an action, then numbers.

use std::ffi::{OsStr, OsString};

use pdca_state::SignoffAction;
use pdca_workspace::review::{Choice, Ticks};

use super::{Args, Older};
use crate::context::IdArg;
use crate::failure::Failure;

/// The actions, as they are typed.
pub(in crate::command) const ACTIONS: [&str; 7] =
    ["accept", "iterate-do", "iterate-plan", "discontinue", "ask", "clear", "show"];

/// A command line that was read.
pub(super) struct Words {
    pub(super) ids: Vec<IdArg>,
    pub(super) verb: Verb,
}

/// What is to be done with each bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verb {
    Decide(Choice),
    /// Discuss it with the program of `[leaves.signoff]`.
    Ask,
    Show,
}

impl Words {
    /// Reads the words: the first action after the first word ends the ids.
    pub(super) fn parse(args: &Args) -> Result<Self, Failure> {
        // The first word is an id even if it reads like an action: a bundle may be called `show`.
        let at = args.words.iter().skip(1).position(|word| is_action(word)).map(|at| at + 1);
        let (ids, action, rest) = match (at, older(&args.older)) {
            (None, Some(action)) => (&args.words[..], action, &[][..]),
            (Some(at), None) => (
                &args.words[..at],
                args.words[at].to_str().unwrap_or_default(),
                &args.words[at + 1..],
            ),
            (Some(_), Some(older)) => {
                return Err(Failure::usage(format!("two actions: `--{older}` is one already")));
            }
            (None, None) => return Err(no_action(&args.words)),
        };
        if ids.is_empty() {
            return Err(Failure::usage("no bundle was named").hint("`pdca queue` lists what waits"));
        }
        if action != "clear" && !rest.is_empty() {
            return Err(
                Failure::usage("only `clear` takes numbers").hint("`pdca signoff <id> clear 1 2`")
            );
        }
        let verb = match action {
            "ask" => Verb::Ask,
            "show" => Verb::Show,
            "clear" => Verb::Decide(Choice::Clear(numbers(args, rest)?)),
            action => Verb::Decide(args.choice(signoff_action(action))?),
        };
        Ok(Self { ids: ids.iter().cloned().map(IdArg::from).collect(), verb })
    }
}

fn is_action(word: &OsStr) -> bool {
    ACTIONS.iter().any(|action| word == *action)
}

pub(super) fn older(older: &Older) -> Option<&'static str> {
    match older {
        Older { accept: true, .. } => Some("accept"),
        Older { iterate_do: true, .. } => Some("iterate-do"),
        Older { iterate_plan: true, .. } => Some("iterate-plan"),
        Older { discontinue: true, .. } => Some("discontinue"),
        Older { .. } => None,
    }
}

fn signoff_action(word: &str) -> SignoffAction {
    SignoffAction::ALL
        .into_iter()
        .find(|action| action.as_str() == word)
        // Cannot happen: the caller passes a word of `ACTIONS`, and those that are no sign-off are matched before.
        .unwrap_or(SignoffAction::Accept)
}

/// Explains a line without an action: perhaps one is misspelt.
fn no_action(words: &[OsString]) -> Failure {
    let last = words.get(1..).and_then(|rest| rest.last()).and_then(|word| word.to_str());
    let near = last.and_then(|word| {
        let distance = |action: &&&str| strsim::damerau_levenshtein(word, action);
        ACTIONS.iter().min_by_key(distance).filter(|action| distance(action) <= 3)
    });
    let failure = Failure::usage("the action is missing");
    match near {
        Some(action) => failure.hint(format!("did you mean `{action}`?")),
        None => failure.hint(format!("one of: {}", ACTIONS.join(", "))),
    }
}

/// Reads the numbers after `clear`.
fn numbers(args: &Args, rest: &[OsString]) -> Result<Ticks, Failure> {
    if args.clear.is_some() || !args.overridden.is_empty() {
        return Err(Failure::usage("`--clear` and `--override` go with `accept`")
            .hint("`pdca signoff <id> clear 1 2`"));
    }
    let words: Vec<String> = rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    ticks(&words)
}

/// Reads `all`, or numbers.
pub(super) fn ticks(words: &[String]) -> Result<Ticks, Failure> {
    if words.iter().any(|word| word == "all") {
        return Ok(Ticks::All);
    }
    let number = |word: &String| {
        word.parse::<usize>().map_err(|_| {
            Failure::usage(format!("`{word}` is not the number of an item")).hint(
                "`pdca signoff <id> show` lists the items with their numbers; `all` is all of them",
            )
        })
    };
    words.iter().map(number).collect::<Result<_, _>>().map(Ticks::Numbers)
}
