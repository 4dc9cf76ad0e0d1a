//! Whether an agent that speaks a protocol still works.
//!
//! A stall is counted from the last record that shows progress. Complaints, retries and lines that are no records show none,
//! so a reconnect loop stalls. A tool call that was announced and has not ended is no stall however long it is silent:
//! builds are, and the time limit of the attempt bounds it. Nor is one counted once more was printed than is kept while
//! the agent runs.
//!
//! The supervisor does not know of stalls that are found here, and its verdict says `Cancelled`. A mark beside it says
//! that it was one, for whoever reads the verdict later.

use std::{
    io,
    time::{Duration, Instant},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_process::{Cancel, ChildVerdict, Ending};

use crate::{config::LeafConfig, tail::OutputTail};

/// Reads the verdict about the attempt whose process job is at `job`, with a stall called one. A verdict that cannot be
/// read is as good as none.
pub(crate) fn load_verdict(job: &Utf8Path) -> Option<ChildVerdict> {
    let mut verdict = pdca_process::load_verdict(job).ok().flatten()?;
    if verdict.ending == Ending::Cancelled && stall_mark(job).exists() {
        verdict.ending = Ending::Stalled;
    }
    Some(verdict)
}

/// The mark beside a verdict that says `Cancelled` because the attempt had stalled.
pub(crate) fn stall_mark(job: &Utf8Path) -> Utf8PathBuf {
    job.join("stalled")
}

/// Watches one attempt, and calls it off when it stalls.
pub(crate) struct Pulse {
    tail: OutputTail,
    steps: u64,
    after: Duration,
    since: Instant,
    cancel: Cancel,
    is_stalled: bool,
}

impl Pulse {
    /// A watch over the attempt whose process job is at `job`, where its protocol tells progress and a stall is
    /// configured.
    pub(crate) fn of(config: &LeafConfig, job: &Utf8Path, whole: &Cancel) -> Option<Self> {
        let after = config.stall_secs.filter(|_| config.protocol.tells_progress())?.get();
        Some(Self {
            tail: OutputTail::of(config.protocol, job),
            steps: 0,
            after,
            since: Instant::now(),
            cancel: whole.part(),
            is_stalled: false,
        })
    }

    /// What ends this attempt alone.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Looks for progress.
    pub(crate) fn feel(&mut self) {
        // What cannot be read shows no progress.
        self.tail.read_on();
        let reader = &self.tail.reader;
        // An open tool call counts as progress at every look, so the time starts anew when it ends:
        // builds are silent for as long as they take.
        // Once the head is full the file stops growing while the agent works on, so silence shows
        // nothing; the time limit of the attempt bounds it.
        let is_at_work = reader.is_in_tool() || self.tail.is_full();
        if reader.steps() > self.steps || is_at_work {
            self.steps = reader.steps();
            self.since = Instant::now();
        } else if self.since.elapsed() >= self.after {
            self.is_stalled = true;
            self.cancel.cancel();
        }
    }

    /// Returns the verdict, with a stall called one here and on disk. `job` is the attempt's process job.
    pub(crate) fn judge(
        self,
        job: &Utf8Path,
        mut verdict: ChildVerdict,
    ) -> io::Result<ChildVerdict> {
        // A leaf that came to its own end while it was being cancelled keeps that ending.
        if self.is_stalled && verdict.ending == Ending::Cancelled {
            // A driver that is killed before this finds a cancelled attempt, and runs it again.
            fs::write(stall_mark(job), "")?;
            verdict.ending = Ending::Stalled;
        }
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::OUTPUT, protocol::Protocol};

    /// Whether an attempt is called off at once that printed this, where no time without progress is allowed.
    fn is_stalled_after(printed: &str) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let job = Utf8Path::from_path(dir.path()).unwrap();
        let config = LeafConfig {
            protocol: Protocol::Codex,
            stall_secs: Some(Duration::ZERO.into()),
            ..LeafConfig::default()
        };
        let whole = Cancel::new();
        let mut pulse = Pulse::of(&config, job, &whole).unwrap();
        fs::write(pdca_process::printed_path(job), printed).unwrap();
        pulse.feel();
        pulse.feel();
        assert!(!whole.is_cancelled(), "the rest of the work goes on");
        pulse.cancel().is_cancelled()
    }

    #[test]
    fn a_complaint_is_no_progress_and_an_open_tool_call_needs_none() {
        let started = r#"{"type":"item.started","item":{"id":"1","type":"command_execution"}}"#;
        let ended = r#"{"type":"item.completed","item":{"id":"1","type":"command_execution"}}"#;
        assert!(is_stalled_after(""));
        let complaint = r#"{"type":"error","message":"Reconnecting..."}"#;
        assert!(is_stalled_after(&format!("{complaint}\n").repeat(9)));
        assert!(!is_stalled_after(&format!("{started}\n")));
        assert!(is_stalled_after(&format!("{started}\n{ended}\n")), "nothing since");
    }

    #[test]
    fn silence_is_no_stall_once_more_was_printed_than_is_kept_while_it_runs() {
        let head = usize::try_from(OUTPUT.head).unwrap();
        let step = r#"{"type":"item.completed","item":{"id":"1","type":"reasoning"}}"#;
        let printed = format!("{step}\n").repeat(head / step.len());
        assert!(is_stalled_after(&printed[..head - 1]), "there is room for another record");
        assert!(!is_stalled_after(&printed[..head]));
    }

    #[test]
    fn a_leaf_that_is_words_or_has_no_limit_is_not_watched() {
        let words = LeafConfig { stall_secs: Some(Duration::ZERO.into()), ..LeafConfig::default() };
        let free = LeafConfig { protocol: Protocol::Claude, ..LeafConfig::default() };
        for config in [words, free] {
            assert!(Pulse::of(&config, Utf8Path::new("x"), &Cancel::new()).is_none());
        }
    }
}
