//! Remembers for a run when an agent may be called again, or that it may not.
//!
//! A batch over many lanes starts many calls of one agent at once. With a key that is not accepted, each of them would ask
//! the provider before the first answer is known; and two first starts of opencode in one home directory collide, because
//! both make its database. So one call, the *scout*, starts before all others of its agent:
//!
//! 1. The others wait until the model has answered the scout once in this run, by a message, a tool call or tokens in its
//!    protocol. Then they start, while the scout continues. If it ends without an answer, the next call is the scout.
//! 2. A login that is not accepted is recorded before the scout steps aside, so no call follows on a bad key. The waiting
//!    calls are not started and cost no attempt.
//! 3. The others wait two minutes at most: a silent provider must not hold all lanes back. Leaves without a parsed protocol
//!    do not wait, because nothing shows that they were let in.
//!
//! A separate call before a batch would cost money, and would say nothing about the key a minute later.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Agents that are not called for now. Clones are the same.
///
/// ```
/// use std::time::Duration;
/// use pdca_leaves::Breaker;
///
/// let breaker = Breaker::default();
/// breaker.clone().pause("claude", Duration::from_secs(60));
/// assert!(breaker.pause_of("claude").is_some() && breaker.pause_of("codex").is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Breaker(Arc<Mutex<BTreeMap<String, Halt>>>);

#[derive(Clone, Debug, Default)]
struct Halt {
    until: Option<Instant>,
    /// What it said when its login was not accepted.
    signed_out: Option<String>,
    /// A person was asked about a pause that ends then.
    asked: Option<Instant>,
    /// What it said of its limit when a person decided to go on without it.
    left_out: Option<String>,
    /// Its model has answered a call of this run.
    has_answered: bool,
    /// Since when the first call is under way.
    scouting: Option<Instant>,
}

/// The longest that others wait for the answer to the first call.
// A provider that is silent for longer is no reason to hold the other lanes back.
const PATIENCE: Duration = Duration::from_secs(120);

/// Two ends of a limit that are no further apart are one: providers tell spans, and calls take their time.
const SAME_LIMIT: Duration = Duration::from_secs(60);

/// Says whether a call may be made.
#[derive(Debug)]
pub(crate) enum CallAdmission {
    /// It may.
    Free,
    /// It may, and is the first: until it has an answer others wait, so that a key that is not accepted is tried once.
    First(Scout),
    /// The first call is under way and has no answer yet.
    Later,
}

/// The first call of an agent in a run. Where it ends without an answer, another one is the first.
#[derive(Debug)]
pub(crate) struct Scout {
    breaker: Breaker,
    agent: String,
}

impl Scout {
    /// Lets all others go: the model has answered.
    pub(crate) fn has_answer(&self) {
        self.breaker.change(&self.agent, |halt| halt.has_answered = true);
    }
}

impl Drop for Scout {
    fn drop(&mut self) {
        // `has_answered` is left as it is: where there was an answer the agent stays free, where
        // there was none the next call becomes the scout.
        self.breaker.change(&self.agent, |halt| halt.scouting = None);
    }
}

impl Breaker {
    /// Has all calls of an agent wait for this long from now, unless they already wait longer.
    pub fn pause(&self, agent: &str, span: Duration) {
        // A span beyond what the clock can hold gives `None`, which is less than any moment and so
        // changes nothing.
        let until = Instant::now().checked_add(span);
        self.change(agent, |halt| halt.until = halt.until.max(until));
    }

    /// How long calls of an agent still wait.
    pub fn pause_of(&self, agent: &str) -> Option<Duration> {
        let until = self.lock().get(agent)?.until?;
        Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    /// Has no further call of an agent made: its login is not accepted.
    pub fn sign_out(&self, agent: &str, said: &str) {
        self.change(agent, |halt| {
            // The first words stay: calls that were under way end with the same failure, and it is
            // told once.
            halt.signed_out.get_or_insert_with(|| said.to_owned());
        });
    }

    /// What an agent said when its login was not accepted.
    pub fn signed_out(&self, agent: &str) -> Option<String> {
        self.lock().get(agent)?.signed_out.clone()
    }

    /// An agent whose login is not accepted, and what it said.
    pub fn any_signed_out(&self) -> Option<(String, String)> {
        let agents = self.lock();
        let mut said =
            agents.iter().filter_map(|(agent, halt)| Some((agent, halt.signed_out.as_ref()?)));
        said.next().map(|(agent, said)| (agent.clone(), said.clone()))
    }

    /// Returns true if nobody was asked yet about a pause that ends this long from now. Lanes meet the same limit one by one, and
    /// a person is asked once.
    pub(crate) fn is_first_to_ask(&self, agent: &str, wait: Duration) -> bool {
        let until = Instant::now().checked_add(wait);
        let mut is_first = false;
        self.change(agent, |halt| {
            let known = halt.asked.and_then(|asked| asked.checked_add(SAME_LIMIT));
            is_first = known.is_none_or(|known| until.is_none_or(|until| until > known));
            if is_first {
                halt.asked = until;
            }
        });
        is_first
    }

    /// Has no further call of an agent made: a person goes on without it.
    pub(crate) fn leave_out(&self, agent: &str, said: &str) {
        self.change(agent, |halt| halt.left_out = Some(said.to_owned()));
    }

    /// What an agent said of its limit before a person decided to go on without it.
    pub(crate) fn left_out(&self, agent: &str) -> Option<String> {
        self.lock().get(agent)?.left_out.clone()
    }

    /// Lets one call of an agent go ahead of all others until the agent has answered once. One that has no answer for long
    /// is not waited for any more.
    pub(crate) fn admit(&self, agent: &str) -> CallAdmission {
        let mut admission = CallAdmission::Free;
        self.change(agent, |halt| match halt.scouting {
            // Free for the rest of the run: a key that was accepted once is not tried out again.
            _ if halt.has_answered => {}
            None => {
                halt.scouting = Some(Instant::now());
                let scout = Scout { breaker: self.clone(), agent: agent.to_owned() };
                admission = CallAdmission::First(scout);
            }
            Some(since) if since.elapsed() < PATIENCE => admission = CallAdmission::Later,
            Some(_) => {}
        });
        admission
    }

    fn change(&self, agent: &str, change: impl FnOnce(&mut Halt)) {
        change(self.lock().entry(agent.to_owned()).or_default());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Halt>> {
        // Each change is one assignment, so a thread that panicked left nothing half-done, and one
        // bundle's panic must not take the others' calls with it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_pause_does_not_end_a_longer_one() {
        let breaker = Breaker::default();
        breaker.pause("a", Duration::from_secs(100));
        breaker.pause("a", Duration::ZERO);
        assert!(breaker.pause_of("a").is_some_and(|left| left > Duration::from_secs(50)));
        breaker.pause("b", Duration::ZERO);
        assert_eq!(breaker.pause_of("b"), None);
    }

    #[test]
    fn others_wait_for_the_first_call_until_it_has_an_answer_or_ends() {
        let breaker = Breaker::default();
        let CallAdmission::First(scout) = breaker.admit("a") else { panic!("the first is let go") };
        assert!(matches!(breaker.admit("a"), CallAdmission::Later));
        assert!(
            matches!(breaker.admit("b"), CallAdmission::First(_)),
            "another agent is none of its"
        );
        drop(scout);
        let CallAdmission::First(scout) = breaker.admit("a") else {
            panic!("another one is first")
        };
        scout.has_answer();
        assert!(matches!(breaker.admit("a"), CallAdmission::Free), "while the first goes on");
        drop(scout);
        assert!(matches!(breaker.admit("a"), CallAdmission::Free));
    }

    #[test]
    fn one_limit_is_asked_about_once_and_a_later_one_again() {
        let breaker = Breaker::default();
        let hour = Duration::from_secs(3600);
        assert!(breaker.is_first_to_ask("a", hour));
        assert!(!breaker.is_first_to_ask("a", hour + Duration::from_secs(5)));
        assert!(breaker.is_first_to_ask("b", hour), "another agent has a limit of its own");
        assert!(breaker.is_first_to_ask("a", 2 * hour));
    }

    #[test]
    fn the_first_word_about_a_login_stays() {
        let breaker = Breaker::default();
        assert_eq!(breaker.any_signed_out(), None);
        breaker.sign_out("a", "bad key");
        breaker.sign_out("a", "again");
        assert_eq!(breaker.any_signed_out(), Some(("a".to_owned(), "bad key".to_owned())));
        assert_eq!(breaker.signed_out("b"), None);
    }
}
