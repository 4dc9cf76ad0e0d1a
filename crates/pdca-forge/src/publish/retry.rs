//! Retries of forge calls, and requests that take effect exactly once although answers get lost.

use std::iter::Take;
use std::time::Duration;

use pdca_process::{Backoff, Cancel};

use crate::publish::error::ForgeError;

/// The number of tries of a call that fails transiently.
/// With `PAUSE` the waits add up to less than two seconds. A longer outage is for the next command, which looks
/// first.
const TRIES: usize = 4;
/// The pause before the second try; it doubles before each further one.
const PAUSE: Duration = Duration::from_millis(250);

/// The remaining retries of one call, with exponential backoff.
#[derive(Debug)]
pub struct RetryPolicy<'c> {
    cancel: &'c Cancel,
    pauses: Take<Backoff>,
}

impl<'c> RetryPolicy<'c> {
    pub fn new(cancel: &'c Cancel) -> Self {
        Self { cancel, pauses: Backoff::new(PAUSE).take(TRIES - 1) }
    }

    /// Waits before the next try. Returns `false` if no try is left or the wait was cancelled.
    pub fn wait(&mut self) -> bool {
        self.pauses.next().is_some_and(|pause| self.cancel.wait(pause))
    }

    /// Repeats a call without side effects until it succeeds, fails permanently or no retry is left.
    pub fn read<T>(
        mut self,
        mut read: impl FnMut() -> Result<T, ForgeError>,
    ) -> Result<T, ForgeError> {
        loop {
            match read() {
                Err(error) if error.is_passing() && self.wait() => {}
                Err(error) if error.is_passing() && self.cancel.is_cancelled() => {
                    return Err(ForgeError::Interrupted);
                }
                answer => return answer,
            }
        }
    }
}

/// Makes sure that something exists exactly once: calls `act` only after `look` did not find it, and then trusts
/// only what `look` finds, whatever `act` returned.
///
/// `what` names it in the error for an `act` that succeeded without effect.
pub fn once<T>(
    what: &'static str,
    mut retry: RetryPolicy<'_>,
    mut look: impl FnMut() -> Result<Option<T>, ForgeError>,
    mut act: impl FnMut() -> Result<(), ForgeError>,
) -> Result<T, ForgeError> {
    loop {
        // On each round: what an earlier request made may be visible only now.
        if let Some(found) = look()? {
            return Ok(found);
        }
        let done = act();
        // A failure does not mean that nothing happened: a forge may answer 502 to a request that it carried
        // out.
        if let Some(found) = look()? {
            return Ok(found);
        }
        match done {
            // A forge may show it only after a delay. Asking again now would create a second one.
            Ok(()) => {
                while retry.wait() {
                    if let Some(found) = look()? {
                        return Ok(found);
                    }
                }
                return Err(ForgeError::Unseen { what });
            }
            Err(error) if error.is_passing() && retry.wait() => {}
            Err(error) if error.is_passing() && retry.cancel.is_cancelled() => {
                return Err(ForgeError::Interrupted);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A forge that follows a script: for each request, whether it takes effect and whether success is reported.
    struct World {
        there: Cell<u32>,
        answers: RefCell<Vec<(bool, Result<(), bool>)>>,
    }

    fn world(answers: &[(bool, Result<(), bool>)]) -> World {
        let answers = answers.iter().rev().copied().collect();
        World { there: Cell::new(0), answers: RefCell::new(answers) }
    }

    impl World {
        fn ask(&self) -> Result<u32, ForgeError> {
            let cancel = Cancel::new();
            let look = || Ok(Some(self.there.get()).filter(|there| *there > 0));
            let act = || {
                let (done, said) = self.answers.borrow_mut().pop().expect("it is not asked again");
                self.there.set(self.there.get() + u32::from(done));
                said.map_err(|passes| {
                    let said = "no".to_owned();
                    if passes {
                        ForgeError::Passing { doing: "ask", said }
                    } else {
                        ForgeError::Refused { doing: "ask", said }
                    }
                })
            };
            once("it", RetryPolicy::new(&cancel), look, act)
        }
    }

    #[test]
    fn whatever_the_answer_what_is_there_counts() {
        for said in [Ok(()), Err(true), Err(false)] {
            let world = world(&[(true, said)]);
            assert_eq!(world.ask().unwrap(), 1);
            assert_eq!(world.ask().unwrap(), 1, "asked for again it is found");
        }
    }

    #[test]
    fn what_may_pass_is_tried_again_and_what_will_not_is_not() {
        assert_eq!(world(&[(false, Err(true)), (true, Ok(()))]).ask().unwrap(), 1);
        assert!(matches!(world(&[(false, Err(false))]).ask(), Err(ForgeError::Refused { .. })));
    }

    #[test]
    fn what_is_said_to_be_there_is_never_asked_for_twice() {
        assert!(matches!(world(&[(false, Ok(()))]).ask(), Err(ForgeError::Unseen { .. })));
    }

    #[test]
    fn told_to_stop_nobody_waits() {
        let cancel = Cancel::new();
        cancel.cancel();
        assert!(!RetryPolicy::new(&cancel).wait());
    }
}
