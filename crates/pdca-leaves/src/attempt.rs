//! One attempt judged: what it left, or what is wrong with it.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_process::{ChildLog, ChildVerdict, Ending, read_log, read_printed};
use pdca_state::{Artifact, BundleId, Review, files};

use crate::{
    call::Call,
    class::{Diagnosis, FailureClass, diagnose},
    command::JobLayout,
    config::Throttled,
    error::LeafError,
    outcome::{FoundIn, Produced},
    protocol::{End, Protocol, ProtocolReader, Transcript},
    role::{Output, Role},
    stage::Inputs,
};

/// The largest thing a leaf may leave that is no artifact of the bundle.
const MAX_OTHER: u64 = 1024 * 1024;

/// How much of the end of an output is looked at for the words of a failure.
const LAST_WORDS: usize = 16 << 10;

/// What an attempt amounts to.
#[derive(Debug)]
pub(crate) enum Judgment {
    /// It left what its role must leave.
    Done(Vec<Produced>),
    /// It was told to come back later.
    Throttled(Option<Diagnosis>),
    /// The agent said what kept it from its work.
    Diagnosed(Diagnosis),
    /// It ended as no finished leaf ends.
    Failed,
    /// It ended well and left nothing of use.
    Nothing(Flaw),
}

/// What is wrong with what a leaf left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// There is no file, and nothing was printed that could stand for it.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The file has nothing in it.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// The file is as it was given.
    #[error("{0} was left as it was")]
    Untouched(&'static str),
    /// The file is not one, leads elsewhere or is too large.
    #[error("{name} cannot be taken: {why}")]
    Unfit {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// It was printed, and there was more of it than is kept.
    #[error("{0} is missing, and too much was printed to take that in its place")]
    Cut(&'static str),
}

/// Judges a finished attempt, whose process job is at `job`, by its ending, the files it left and what the agent said of
/// itself; and gives what it said, which is nothing where its protocol is not read.
pub(crate) fn judge(
    call: &Call<'_>,
    view: &Utf8Path,
    job: &Utf8Path,
    verdict: &ChildVerdict,
) -> Result<(Judgment, Transcript), LeafError> {
    let log = read_log(job).map_err(LeafError::Log)?;
    let printed = read_printed(job).map_err(LeafError::Log)?;
    let protocol = call.config.protocol;
    // Standard output alone where it was kept apart: on standard error an agent shows what it
    // reads, and a file of the change could hold a record of the protocol.
    let transcript = (!protocol.is_text())
        .then(|| ProtocolReader::read(protocol, &printed.as_ref().unwrap_or(&log).bytes));
    let heard = Heard { log: &log, printed, transcript: transcript.as_ref() };
    let judgment = decide(call, view, verdict, heard);
    Ok((judgment, transcript.unwrap_or_default()))
}

/// What an attempt printed.
struct Heard<'a> {
    log: &'a ChildLog,
    printed: Option<ChildLog>,
    /// What the agent said of itself, where its protocol is read.
    transcript: Option<&'a Transcript>,
}

impl Heard<'_> {
    /// Whether the agent itself says that it failed.
    fn is_failure(&self) -> bool {
        self.transcript.is_some_and(|transcript| transcript.end == Some(End::Failure))
    }

    /// Whether an agent that announces its end did not.
    fn is_cut(&self, protocol: Protocol) -> bool {
        protocol.tells_its_end()
            && self.transcript.is_some_and(|transcript| transcript.end.is_none())
    }

    /// What kept the agent from its work. One that ended well by its own account was kept from nothing.
    fn diagnosis(&self) -> Option<Diagnosis> {
        let transcript = self.transcript.filter(|said| said.end != Some(End::Success))?;
        let from = self.log.bytes.len().saturating_sub(LAST_WORDS);
        diagnose(transcript, &String::from_utf8_lossy(&self.log.bytes[from..]))
    }
}

fn decide(call: &Call<'_>, view: &Utf8Path, verdict: &ChildVerdict, heard: Heard<'_>) -> Judgment {
    let throttled = &call.config.throttled;
    let protocol = call.config.protocol;
    // A configured exit code is the word of the person who configured it, so it counts before
    // anything that the leaf left.
    if let Ending::Exited(code) = verdict.ending
        && throttled.exit_codes.contains(&code)
    {
        return Judgment::Throttled(heard.diagnosis());
    }
    let says_so = says_so(throttled, heard.log);
    let is_cut = heard.is_cut(protocol);
    let diagnosis = heard.diagnosis();
    let last = StreamEnd {
        is_cut: is_cut && !heard.is_failure(),
        has_begun: heard.transcript.is_some_and(|said| said.session.is_some()),
        is_empty: heard.printed.as_ref().is_some_and(|printed| is_blank(&printed.bytes)),
        line: last_line(heard.log),
    };
    let mut may_speak = true;
    let judgment = match verdict.ending {
        // An error inside is an error, whatever the exit code is.
        Ending::Exited(0) if heard.is_failure() => Judgment::Failed,
        Ending::Exited(0) => {
            let printed =
                heard.printed.and_then(|printed| said(protocol, printed, heard.transcript));
            match collect(call, view, printed) {
                // Work that is there is kept, whatever words were printed on the way.
                Ok(produced)
                    if says_nothing(&produced)
                        // Aider and Gemini CLI may exit with 0 after a 401, a context that is too
                        // long or a cut stream. Such a call looks finished; only that nothing came
                        // of it shows that it failed.
                        && (says_so || is_cut || diagnosis.is_some())
                        && !call.has_work.is_some_and(|has_work| has_work()) =>
                {
                    Judgment::Failed
                }
                // The rest of a printed review may be missing.
                Ok(produced)
                    if is_cut && produced.iter().any(|one| one.found == FoundIn::Printed) =>
                {
                    Judgment::Failed
                }
                Ok(produced) => return Judgment::Done(produced),
                Err(flaw) => Judgment::Nothing(flaw),
            }
        }
        // These endings are a class of their own, whatever was said before them. A stall is not: an
        // agent that stalls after a complaint (opencode retries a 429 for ever) stalled because of
        // it.
        Ending::TimedOut | Ending::OverMemory { .. } => {
            may_speak = false;
            Judgment::Failed
        }
        Ending::Exited(_)
        | Ending::Signaled(_)
        | Ending::Stalled
        | Ending::Cancelled
        | Ending::NotStarted { .. }
        | Ending::Infra { .. } => Judgment::Failed,
    };
    let diagnosis = diagnosis.or_else(|| {
        let is_unfinished = matches!(judgment, Judgment::Failed | Judgment::Nothing(_));
        (is_unfinished && !says_so).then(|| cut_stream(verdict, &last))?
    });
    match diagnosis {
        found if says_so => Judgment::Throttled(found),
        Some(found) if may_speak && found.class == FailureClass::Throttled => {
            Judgment::Throttled(Some(found))
        }
        Some(found) if may_speak => Judgment::Diagnosed(found),
        Some(_) | None => judgment,
    }
}

/// The end of a stream of records.
struct StreamEnd {
    /// An agent that announces its end did not.
    is_cut: bool,
    /// It said which session it works in.
    has_begun: bool,
    /// Nothing was printed on standard output.
    is_empty: bool,
    /// The last line that was printed.
    line: Option<String>,
}

/// Returns the diagnosis of a stream that was cut off: nothing in it says that the agent is at fault.
///
/// An agent that never began and failed has a reason of its own, such as a wrong option: that is no fault of the host.
fn cut_stream(verdict: &ChildVerdict, end: &StreamEnd) -> Option<Diagnosis> {
    let is_fault = match verdict.ending {
        Ending::Exited(0) => end.is_cut,
        Ending::Exited(_) => end.is_cut && end.has_begun,
        Ending::Signaled(_)
        | Ending::TimedOut
        | Ending::OverMemory { .. }
        | Ending::Stalled
        | Ending::Cancelled
        | Ending::NotStarted { .. }
        | Ending::Infra { .. } => false,
    };
    let what = if end.is_empty { "it printed nothing" } else { "its stream was cut off" };
    let line =
        end.line.as_deref().map_or_else(String::new, |line| format!("; it said last: {line}"));
    let evidence = format!("{what}{line}");
    is_fault.then_some(Diagnosis { class: FailureClass::Host, evidence, wait: None })
}

/// Returns the last line that is no record of a protocol, printable and short.
pub(crate) fn last_line(log: &ChildLog) -> Option<String> {
    const LONGEST: usize = 200;
    let from = log.bytes.len().saturating_sub(LAST_WORDS);
    let text = String::from_utf8_lossy(&log.bytes[from..]);
    let is_said = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("{\"");
    let line = text.lines().rev().find(is_said)?;
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(pdca_process::printable(words.as_bytes()).chars().take(LONGEST).collect())
}

/// What the leaf said on its standard output: all of it, or its last message where it speaks a protocol.
fn said(
    protocol: Protocol,
    printed: ChildLog,
    transcript: Option<&Transcript>,
) -> Option<ChildLog> {
    if protocol.is_text() {
        return Some(printed);
    }
    let transcript = transcript?;
    let bytes = transcript.message.clone()?.into_bytes();
    Some(ChildLog { bytes, truncated: transcript.is_message_cut })
}

/// Whether the configured words are in the output.
fn says_so(throttled: &Throttled, log: &ChildLog) -> bool {
    throttled.pattern.as_ref().is_some_and(|pattern| {
        !pattern.is_empty()
            && log.bytes.windows(pattern.len()).any(|part| part == pattern.as_bytes())
    })
}

/// Whether the leaf left no file, and what it printed holds neither a verdict nor a question. Such
/// output may be a message about a limit; a review that talks about limits has verdicts.
fn says_nothing(produced: &[Produced]) -> bool {
    produced.iter().all(|one| match one.found {
        FoundIn::File | FoundIn::Stub => false,
        FoundIn::Printed => {
            let review = Review::parse(&String::from_utf8_lossy(&one.bytes));
            review.rows.is_empty() && review.items.is_empty()
        }
    })
}

/// Takes what the leaf left out of the view.
fn collect(
    call: &Call<'_>,
    view: &Utf8Path,
    stdout: Option<ChildLog>,
) -> Result<Vec<Produced>, Flaw> {
    let role = call.inputs.role();
    if !call.inputs.session().is_empty() {
        // Each brief counts by itself, and none is an answer too; see [`left_briefs`].
        return Ok(Vec::new());
    }
    let mut produced = Vec::new();
    let mut flaws = Vec::new();
    for output in role.outputs() {
        match take(call.inputs, view, *output) {
            Ok(bytes) => produced.push(Produced { output: *output, bytes, found: FoundIn::File }),
            // Unlike a missing file, this fails the attempt also where the role need not leave it.
            Err(flaw @ Flaw::Unfit { .. }) => return Err(flaw),
            Err(flaw) => flaws.push((*output, flaw)),
        }
    }
    if role.spec().edits_checkout && call.places.worktree.is_some() {
        // What a builder did is in its checkout; whether that is a change is not seen here.
        return Ok(produced);
    }
    let is_builder = role == Role::Builder;
    let wanted = if is_builder { Output::Artifact(Artifact::Patch) } else { role.output() };
    match flaws.into_iter().find(|(output, _)| *output == wanted) {
        None => Ok(produced),
        // A person may leave the table without a decision.
        Some((_, Flaw::Missing(_))) if role == Role::Signoff => Ok(produced),
        Some((_, flaw @ (Flaw::Missing(_) | Flaw::Empty(_)))) if role.is_independent() => {
            produced.push(printed(wanted, flaw, stdout)?);
            Ok(produced)
        }
        Some((_, flaw)) => Err(flaw),
    }
}

/// What a reviewer printed on standard output, in the place of the file it did not write.
fn printed(output: Output, flaw: Flaw, stdout: Option<ChildLog>) -> Result<Produced, Flaw> {
    // Standard output only. Agents show on standard error what they read, so a table of verdicts
    // there may be one that the change under review brought along.
    let Some(stdout) = stdout else { return Err(flaw) };
    // The part that was left out may hold the rows that fail the change.
    if stdout.truncated {
        return Err(Flaw::Cut(output.file_name()));
    }
    if is_blank(&stdout.bytes) {
        return Err(flaw);
    }
    Ok(Produced { output, bytes: stdout.bytes, found: FoundIn::Printed })
}

/// Returns the briefs that are in the view of a planning session, by issue, also of a session that failed. A flaw means that
/// there is a file which cannot be taken.
pub fn left_briefs(session: &[BundleId], job: &Utf8Path) -> Vec<(BundleId, Result<Vec<u8>, Flaw>)> {
    let view = JobLayout::new(job).view();
    let name = Artifact::Brief.file_name();
    let mut left = Vec::new();
    for id in session {
        let path = Utf8PathBuf::from(id.dir_name()).join(name);
        match take_file(&view, &path, name, Artifact::Brief.max_len(), None) {
            Err(Flaw::Missing(_)) => {}
            taken => left.push((id.clone(), taken)),
        }
    }
    left
}

/// Reads one output from the view, which the leaf could do with as it liked.
fn take(inputs: &Inputs, view: &Utf8Path, output: Output) -> Result<Vec<u8>, Flaw> {
    let name = output.file_name();
    let max = match output {
        Output::Artifact(artifact) => artifact.max_len(),
        Output::Advice => Artifact::Review.max_len(),
        Output::Proposal | Output::ActEntry => MAX_OTHER,
    };
    take_file(view, Utf8Path::new(name), name, max, inputs.get(name))
}

/// Reads a file of the view that is not what was given.
fn take_file(
    view: &Utf8Path,
    path: &Utf8Path,
    name: &'static str,
    max: u64,
    given: Option<&[u8]>,
) -> Result<Vec<u8>, Flaw> {
    let unfit = |why: String| Flaw::Unfit { name, why };
    // The leaf may write its view, so it may have replaced it by a link to another directory.
    // `read_within` keeps links from leaving `view`; it does not look at `view` itself.
    let real = fs::symlink_metadata(view).is_ok_and(|found| found.is_dir());
    if !real {
        return Err(unfit("the staged view was replaced".to_owned()));
    }
    let bytes = files::read_within(view, path, max)
        .map_err(|error| unfit(error.to_string()))?
        .ok_or(Flaw::Missing(name))?;
    if is_blank(&bytes) {
        return Err(Flaw::Empty(name));
    }
    // Only the planner is given the file that it is to fill.
    if given == Some(bytes.as_slice()) {
        return Err(Flaw::Untouched(name));
    }
    Ok(bytes)
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii().is_empty()
}
