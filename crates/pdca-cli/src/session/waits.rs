//! Asks the person at the terminal about an agent's limit that ends later than configured.
//!
//! The leaf waits on its own thread and asks; the thread that shows the progress owns the terminal, so it shows the question and
//! looks for an answer between two events. Nobody has to answer: the leaf goes on when its limit ends.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use jiff::Timestamp;
use pdca_leaves::{LongWait, WaitDecision};
use pdca_process::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::progress::span;
use crate::style::{Palette, one_line};

/// The interval at which a leaf that waits for an answer looks whether the run was cancelled.
const LOOK: Duration = Duration::from_millis(200);

/// The longest quotation of an agent in a question, in characters.
const LONGEST_WORDS: usize = 200;

/// The side of the leaves: asks, and waits for the answer.
#[derive(Debug)]
pub(crate) struct WaitDesk {
    to: Sender<WaitQuestion>,
    cancel: Cancel,
}

/// A question on its way to the terminal.
#[derive(Debug)]
struct WaitQuestion {
    wait: LongWait,
    asked: Timestamp,
    reply: Sender<WaitDecision>,
    /// Disconnected once nobody waits for the answer.
    open: Receiver<()>,
}

/// The side of the terminal: questions that wait for an answer, the first of which is shown.
#[derive(Debug)]
pub(crate) struct WaitQuestions {
    from: Receiver<WaitQuestion>,
    waiting: VecDeque<WaitQuestion>,
    is_shown: bool,
    /// The input has ended: there is nobody to answer.
    is_over: bool,
}

impl WaitDesk {
    /// Opens both sides.
    pub(crate) fn open(cancel: &Cancel) -> (Self, WaitQuestions) {
        let (to, from) = crossbeam_channel::unbounded();
        let questions =
            WaitQuestions { from, waiting: VecDeque::new(), is_shown: false, is_over: false };
        (Self { to, cancel: cancel.clone() }, questions)
    }

    /// Asks a person, and returns what was decided: to wait, if nobody answers before the limit ends.
    pub(crate) fn ask(&self, wait: &LongWait) -> WaitDecision {
        let (reply, answer) = crossbeam_channel::bounded(1);
        let (_held, open) = crossbeam_channel::bounded(0);
        let question = WaitQuestion { wait: wait.clone(), asked: Timestamp::now(), reply, open };
        let since = Instant::now();
        if self.to.send(question).is_err() {
            return WaitDecision::Wait;
        }
        while since.elapsed() < wait.wait && !self.cancel.is_cancelled() {
            match answer.recv_timeout(LOOK) {
                Ok(WaitDecision::Stop) => {
                    self.cancel.cancel();
                    return WaitDecision::Stop;
                }
                Ok(decision) => return decision,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return WaitDecision::Wait,
            }
        }
        WaitDecision::Wait
    }
}

impl WaitQuestions {
    /// Returns whether a question is on the terminal.
    pub(crate) fn is_open(&self) -> bool {
        self.is_shown
    }

    /// Takes the answer to the question that is shown, and returns the text that the terminal is to show now, if any.
    pub(crate) fn look(&mut self, palette: Palette) -> Option<String> {
        self.waiting.extend(self.from.try_iter());
        let is_gone = |question: &WaitQuestion| {
            matches!(question.open.try_recv(), Err(TryRecvError::Disconnected))
        };
        let mut said = String::new();
        while self.waiting.front().is_some_and(is_gone) {
            self.waiting.pop_front();
            if std::mem::take(&mut self.is_shown) {
                said.push('\n');
            }
        }
        if self.is_shown
            && let Some(line) = self.line()
        {
            let question = self.waiting.front().expect("a question that is shown is waiting");
            match decision(&line) {
                Some(decided) => {
                    // The leaf may have stopped waiting just now; its limit has ended then.
                    question.reply.send(decided).ok();
                    said.push_str(&answered(question, decided));
                    self.waiting.pop_front();
                    self.is_shown = false;
                }
                None => said.push_str(&prompt(palette)),
            }
        }
        if !self.is_shown
            && !self.is_over
            && is_in_foreground()
            && let Some(question) = self.waiting.front()
        {
            said.push_str(&asked(question, palette));
            self.is_shown = true;
        }
        (!said.is_empty()).then_some(said)
    }

    /// Returns the line that was typed, without waiting for one; at the end of the input an empty one.
    fn line(&mut self) -> Option<String> {
        let input = rustix::stdio::stdin();
        // A job in the background that reads from its terminal is stopped, and the line is the shell's.
        if !is_in_foreground() {
            return None;
        }
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&at_once));
        if !matches!(ready, Ok(ready) if ready > 0) {
            return None;
        }
        let mut bytes = [0; 256];
        // A terminal hands out whole lines, and one at a time.
        match rustix::io::read(input, &mut bytes) {
            Ok(0) => {
                self.is_over = true;
                Some(String::new())
            }
            Ok(read) => Some(String::from_utf8_lossy(&bytes[..read]).into_owned()),
            Err(error) if io::Error::from(error).kind() == io::ErrorKind::Interrupted => None,
            Err(_) => {
                self.is_over = true;
                Some(String::new())
            }
        }
    }
}

/// Returns whether what a person types reaches this process.
fn is_in_foreground() -> bool {
    tcgetpgrp(rustix::stdio::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Returns what a line decides; a bare Enter is to wait.
fn decision(line: &str) -> Option<WaitDecision> {
    match line.trim().to_lowercase().as_str() {
        "" | "w" | "wait" => Some(WaitDecision::Wait),
        "s" | "stop" => Some(WaitDecision::Stop),
        "g" | "go on" => Some(WaitDecision::LeaveOut),
        _ => None,
    }
}

fn asked(question: &WaitQuestion, palette: Palette) -> String {
    let LongWait { role, agent, wait, said } = &question.wait;
    let moment = moment_after(question.asked, *wait);
    let agent = one_line(agent, LONGEST_WORDS);
    let what = format!("the limit of the {role} `{agent}` ends at {moment}, in {}", span(*wait));
    let said = said.as_deref().map(|said| format!("; it said: {}", one_line(said, LONGEST_WORDS)));
    let (what, said) = (palette.strong(what), said.unwrap_or_default());
    format!(
        "{what}{said}\n  w  wait until then; without an answer it waits\n  \
         s  stop this run; the same command goes on later\n  \
         g  go on without the bundles that need it\n{}",
        prompt(palette)
    )
}

fn prompt(palette: Palette) -> String {
    format!("{} [W/s/g] ", palette.strong("wait, stop or go on?"))
}

fn answered(question: &WaitQuestion, decided: WaitDecision) -> String {
    let LongWait { role, agent, wait, .. } = &question.wait;
    let agent = one_line(agent, LONGEST_WORDS);
    match decided {
        WaitDecision::Wait => {
            format!("the {role} waits until {}\n", moment_after(question.asked, *wait))
        }
        WaitDecision::Stop => "the run stops\n".to_owned(),
        WaitDecision::LeaveOut => format!("bundles that need `{agent}` are left for a later run\n"),
    }
}

/// Returns a moment in the person's own time: the time of day, and the date if it is another day.
pub(crate) fn moment_after(from: Timestamp, wait: Duration) -> String {
    let zone = jiff::tz::TimeZone::system();
    let Some(moment) =
        jiff::SignedDuration::try_from(wait).ok().and_then(|wait| from.checked_add(wait).ok())
    else {
        return "an unknown moment".to_owned();
    };
    let (from, moment) = (from.to_zoned(zone.clone()), moment.to_zoned(zone));
    let format = if from.date() == moment.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    moment.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdca_leaves::Role;

    #[test]
    fn a_bare_enter_waits_and_other_words_decide_nothing() {
        for (line, decided) in [
            ("\n", Some(WaitDecision::Wait)),
            ("W\n", Some(WaitDecision::Wait)),
            (" stop \n", Some(WaitDecision::Stop)),
            ("g\n", Some(WaitDecision::LeaveOut)),
            ("yes\n", None),
        ] {
            assert_eq!(decision(line), decided, "{line:?}");
        }
    }

    #[test]
    fn a_question_is_withdrawn_when_the_limit_ends_or_the_run_is_cancelled() {
        let cancel = Cancel::new();
        let (desk, mut questions) = WaitDesk::open(&cancel);
        let wait = |wait| LongWait { role: Role::Builder, agent: "a".into(), wait, said: None };
        assert_eq!(desk.ask(&wait(Duration::from_millis(1))), WaitDecision::Wait);
        cancel.cancel();
        assert_eq!(desk.ask(&wait(Duration::from_secs(3600))), WaitDecision::Wait);
        assert_eq!(questions.look(Palette::PLAIN), None, "nobody waits for an answer any more");
    }

    #[test]
    fn a_moment_of_another_day_has_its_date() {
        let from: Timestamp = "2026-11-18T10:00:00Z".parse().unwrap();
        assert_eq!(moment_after(from, Duration::from_secs(60)).len(), "10:01".len());
        let later = moment_after(from, Duration::from_secs(48 * 3600));
        assert!(later.starts_with("2026-11-"), "{later}");
    }
}
