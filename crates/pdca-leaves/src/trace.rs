//! What a start of a leaf's program leaves behind: who it was, what it printed, what it cost.
//!
//! The driver writes `call.json` into the directory of a try before the program starts, and turns the try into a record
//! of the bundle after it ended:
//!
//! 1. [`begin_call`] removes the output of an earlier start in the same place and then writes the header. A driver that
//!    died in between finds a header without output: nothing was started, nothing is to be recorded.
//! 2. The program runs. [`Trace::load`] reads what it printed so far, also while it runs.
//! 3. [`Trace::record`] makes the record. Once that is kept, [`forget_call`] removes the header, so that a try is recorded
//!    once; a driver that died before that makes the same record again, under the same name.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_process::{ChildVerdict, Ending, log_path, printed_path};
use pdca_state::{CallRecord, CostBasis, InstructionsRecord, Money, SessionSoFar, Usage, files};
use serde::{Deserialize, Serialize};

use crate::{
    config::Price,
    protocol::{Protocol, ProtocolReader, Transcript},
    pulse::load_verdict,
};

const HEADER: &str = "call.json";
const HEADER_MAX: u64 = 1 << 20;

/// A call that is about to start, as its driver describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallHeader {
    /// The name of the call, unique in a workspace.
    pub call: String,
    /// Its place among the calls of its attempt, from 1.
    pub number: u32,
    /// The role.
    pub role: String,
    /// The role, or an adviser's id.
    pub leaf: String,
    /// Which try it is, from 1.
    pub tried: u32,
    /// The run.
    pub run: Option<String>,
    /// The time, in seconds since 1970.
    pub began: i64,
    /// The configured name of the agent, or of its program.
    pub agent: Option<String>,
    /// The form of its output.
    pub protocol: Protocol,
    /// The model that is asked for.
    pub model: Option<String>,
    /// The project's instructions that were part of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<InstructionsRecord>,
    /// The configured prices.
    pub price: Option<Price>,
    /// The configured estimate, in millionths of a dollar.
    pub cost_per_call: Option<Money>,
}

/// Puts a header where a try is about to start.
pub fn begin_call(dir: &Utf8Path, header: &CallHeader) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    // The old header goes first and the new one comes last. With a header beside the output of an
    // earlier start, a driver that dies here would have that output recorded as another call.
    forget_call(dir)?;
    for stale in [log_path(dir), printed_path(dir)] {
        remove(&stale)?;
    }
    let json = serde_json::to_vec(header).map_err(io::Error::other)?;
    files::replace_unsynced(dir.join(HEADER), &json)
}

/// Removes the header of a try whose record is kept.
pub fn forget_call(dir: &Utf8Path) -> io::Result<()> {
    remove(&dir.join(HEADER))
}

/// Lists the directories of the tries below a job, in their order.
pub fn tries_of(job: &Utf8Path) -> Vec<Utf8PathBuf> {
    let Ok(entries) = job.read_dir_utf8() else { return Vec::new() };
    let names = entries.flatten().map(camino::Utf8DirEntry::into_path);
    let is_try = |path: &Utf8PathBuf| {
        path.file_name().is_some_and(|name| name.starts_with("try-")) && path.is_dir()
    };
    let mut tries: Vec<Utf8PathBuf> = names.filter(is_try).collect();
    tries.sort_unstable();
    tries
}

/// Returns the directory of a try of a job, counted from 1.
pub fn try_dir(job: &Utf8Path, number: u32) -> Utf8PathBuf {
    job.join(format!("try-{number:03}"))
}

/// A try, with what is known of it so far.
#[derive(Debug)]
pub struct Trace {
    /// Who it was.
    pub header: CallHeader,
    /// How it ended; none while it runs, and if its supervisor was killed.
    pub verdict: Option<ChildVerdict>,
    /// What it printed, standard output and standard error as they came.
    pub log: Vec<u8>,
    /// What the agent said of itself.
    pub transcript: Transcript,
}

impl Trace {
    /// Reads the try in a directory; `None` if it was not started or is recorded already.
    pub fn load(dir: &Utf8Path) -> io::Result<Option<Self>> {
        let bytes = files::read_bounded(dir.join(HEADER), HEADER_MAX).map_err(io::Error::other)?;
        let Some(bytes) = bytes else { return Ok(None) };
        // One that cannot be read is of another version, or torn by a power failure.
        let Ok(header) = serde_json::from_slice::<CallHeader>(&bytes) else { return Ok(None) };
        // The supervisor makes the log before it starts the program: without a log nothing was
        // started, and nothing was paid.
        let Some(log) = read(&log_path(dir))? else { return Ok(None) };
        let verdict = load_verdict(dir);
        let printed = read(&printed_path(dir))?;
        let transcript = ProtocolReader::read(header.protocol, printed.as_ref().unwrap_or(&log));
        Ok(Some(Self { header, verdict, log, transcript }))
    }

    /// Returns whether no program was started.
    pub fn is_void(&self) -> bool {
        let ending = self.verdict.as_ref().map(|verdict| &verdict.ending);
        matches!(ending, Some(Ending::NotStarted { .. }))
    }

    /// Takes what earlier calls in the same session used out of what this one told, where that is of the whole session.
    ///
    /// An agent does not say which of the two it tells, and newer versions tell another one than older ones:
    /// - Claude Code tells the tokens of the call beside those behind its cost. The cost is of the session if its tokens
    ///   are at least those of all calls together.
    /// - Codex tells the tokens of the session. A version that tells those of the call is known by a count that is not
    ///   more than before.
    pub fn take_out(&mut self, so_far: SessionSoFar) {
        let transcript = &mut self.transcript;
        if so_far.calls == 0 {
            return;
        }
        match self.header.protocol {
            Protocol::Claude => {
                let (Some(cost), Some(tokens)) = (transcript.cost, transcript.cost_tokens) else {
                    return;
                };
                let own = transcript.usage.unwrap_or_default();
                let is_of_session = tokens >= so_far.usage.plus(own).total();
                if is_of_session && so_far.usage.total() > 0 && cost >= so_far.cost {
                    let own = cost.micros() - so_far.cost.micros();
                    transcript.cost = Some(Money::from_micros(own));
                }
            }
            Protocol::Codex => {
                let is_of_session = |usage: &Usage| {
                    usage.covers(so_far.usage) && usage.total() > so_far.usage.total()
                };
                if let Some(usage) = transcript.usage.filter(is_of_session) {
                    transcript.usage = Some(usage.minus(so_far.usage));
                }
            }
            Protocol::Text | Protocol::Aider | Protocol::Gemini | Protocol::Opencode => {}
        }
    }

    /// Makes the record, for a transcript of at most `max` bytes; 0 keeps none.
    pub fn record(&self, max: usize) -> (CallRecord, Option<Vec<u8>>) {
        let Self { header, verdict, log, transcript } = self;
        let (cost, cost_basis) =
            self.cost().map_or((None, None), |(cost, basis)| (Some(cost), Some(basis)));
        let ending = verdict.as_ref().map(|verdict| &verdict.ending);
        let name = CallRecord::transcript_name(header.number, &header.leaf);
        let record = CallRecord {
            call: header.call.clone(),
            number: header.number,
            role: header.role.clone(),
            leaf: header.leaf.clone(),
            tried: header.tried,
            run: header.run.clone(),
            began: header.began,
            duration_ms: verdict
                .as_ref()
                .map(|verdict| u64::try_from(verdict.duration.as_millis()).unwrap_or(u64::MAX)),
            ending: ending.map_or_else(|| "its driver ended".to_owned(), ToString::to_string),
            interrupted: ending.is_none_or(|ending| !ending.is_final()),
            agent: header.agent.clone(),
            protocol: header.protocol.as_str().to_owned(),
            model: transcript.model.clone().or_else(|| header.model.clone()),
            instructions: header.instructions.clone(),
            session: transcript.session.clone(),
            tool_calls: transcript.tool_calls,
            usage: transcript.usage,
            cost,
            cost_basis,
            transcript: (max > 0).then_some(name),
            shared_by: None,
        };
        (record, (max > 0).then(|| cap(log, max)))
    }

    /// The cost: as told, else from the tokens and their price, else the estimate for a call.
    fn cost(&self) -> Option<(Money, CostBasis)> {
        let told = self.transcript.cost.map(|cost| (cost, CostBasis::Told));
        let priced = || {
            let cost = self.header.price?.of(self.transcript.usage?);
            Some((cost, CostBasis::Price))
        };
        let estimated = || Some((self.header.cost_per_call?, CostBasis::PerCall));
        told.or_else(priced).or_else(estimated)
    }
}

/// Keeps the head and the tail of a text, at lines where that is possible, with a line that says how much was left out.
fn cap(text: &[u8], max: usize) -> Vec<u8> {
    if text.len() <= max {
        return text.to_vec();
    }
    // An agent's last message and its accounts are at the end.
    let (head, tail) = (max / 4, max - max / 4);
    let head = match text[..head].iter().rposition(|byte| *byte == b'\n') {
        Some(end) => &text[..=end],
        None => &text[..boundary(text, head)],
    };
    let from = text.len() - tail;
    let tail = match text[from..].iter().position(|byte| *byte == b'\n') {
        Some(end) if from + end + 1 < text.len() => &text[from + end + 1..],
        Some(_) | None => &text[boundary(text, from)..],
    };
    let left_out = text.len() - head.len() - tail.len();
    let mut kept = head.to_vec();
    if !head.is_empty() && !head.ends_with(b"\n") {
        kept.push(b'\n');
    }
    kept.extend_from_slice(format!("[… {left_out} bytes left out …]\n").as_bytes());
    kept.extend_from_slice(tail);
    kept
}

/// The nearest place at or before `at` that splits no character.
fn boundary(text: &[u8], at: usize) -> usize {
    let is_start = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000);
    (at.saturating_sub(3)..=at).rev().find(is_start).unwrap_or(at)
}

fn read(path: &Utf8Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(file: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> CallHeader {
        CallHeader {
            call: "c1".to_owned(),
            number: 3,
            role: "builder".to_owned(),
            leaf: "builder".to_owned(),
            tried: 2,
            run: None,
            began: 7,
            agent: Some("codex".to_owned()),
            protocol: Protocol::Codex,
            model: Some("asked".to_owned()),
            instructions: None,
            price: None,
            cost_per_call: None,
        }
    }

    const USED: &str = "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1000000,\"cached_input_tokens\":400000,\"output_tokens\":10}}\n";

    fn dir() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("try-001")).unwrap();
        (dir, path)
    }

    #[test]
    fn a_try_that_was_not_started_is_no_call_and_one_that_was_is_one_until_it_is_forgotten() {
        let (_dir, path) = dir();
        begin_call(&path, &header()).unwrap();
        assert!(Trace::load(&path).unwrap().is_none());
        fs::write(log_path(&path), USED).unwrap();
        let (record, transcript) = Trace::load(&path).unwrap().unwrap().record(100);
        assert!(record.interrupted);
        assert_eq!(record.usage, Some(Usage { input: 1_000_000, cached: 400_000, output: 10 }));
        assert_eq!((record.model.as_deref(), record.cost), (Some("asked"), None));
        assert_eq!(record.transcript.as_deref(), Some("03-builder.log"));
        assert!(String::from_utf8(transcript.unwrap()).unwrap().contains("bytes left out"));
        forget_call(&path).unwrap();
        assert!(Trace::load(&path).unwrap().is_none());
    }

    #[test]
    fn what_an_earlier_start_printed_is_not_taken_for_this_ones() {
        let (_dir, path) = dir();
        begin_call(&path, &header()).unwrap();
        fs::write(log_path(&path), USED).unwrap();
        begin_call(&path, &CallHeader { call: "c2".to_owned(), ..header() }).unwrap();
        assert!(Trace::load(&path).unwrap().is_none());
    }

    #[test]
    fn the_cost_is_what_was_told_else_the_price_of_the_tokens_else_the_estimate() {
        let price: Price = toml::from_str("input = 1.25\ncached = 0.125\noutput = \"10\"").unwrap();
        let estimate = Some(Money::from_micros(5));
        let cost = |protocol, text: &str, price, cost_per_call| {
            let (_dir, path) = dir();
            begin_call(&path, &CallHeader { protocol, price, cost_per_call, ..header() }).unwrap();
            fs::write(log_path(&path), text).unwrap();
            let (record, _) = Trace::load(&path).unwrap().unwrap().record(0);
            record.cost.map(|cost| (cost.micros(), record.cost_basis.unwrap()))
        };
        let told = "{\"type\":\"result\",\"total_cost_usd\":0.25,\"usage\":{\"input_tokens\":1}}\n";
        let all = (Some(price), estimate);
        assert_eq!(cost(Protocol::Claude, told, all.0, all.1), Some((250_000, CostBasis::Told)));
        // 600,000 × 1.25 + 400,000 × 0.125 + 10 × 10, in millionths.
        assert_eq!(cost(Protocol::Codex, USED, all.0, all.1), Some((800_100, CostBasis::Price)));
        assert_eq!(cost(Protocol::Codex, "", all.0, all.1), Some((5, CostBasis::PerCall)));
        assert_eq!(cost(Protocol::Codex, USED, None, None), None);
    }

    /// Returns what the calls of one session are recorded with, by what each of them told.
    fn session(protocol: Protocol, told: &[&str]) -> Vec<(u64, u64)> {
        let mut so_far = SessionSoFar::default();
        let one = |text: &&str| {
            let (_dir, path) = dir();
            begin_call(&path, &CallHeader { protocol, ..header() }).unwrap();
            fs::write(log_path(&path), text).unwrap();
            let mut trace = Trace::load(&path).unwrap().unwrap();
            trace.take_out(so_far);
            let (record, _) = trace.record(0);
            let (cost, usage) = (record.cost.unwrap_or_default(), record.usage.unwrap());
            so_far.calls += 1;
            so_far.cost = so_far.cost.plus(cost);
            so_far.usage = so_far.usage.plus(usage);
            (cost.micros(), usage.total())
        };
        told.iter().map(one).collect()
    }

    fn claude(cost: &str, of_call: u64, of_models: u64) -> String {
        format!(
            "{{\"type\":\"result\",\"session_id\":\"s\",\"total_cost_usd\":{cost},\"usage\":{{\"input_tokens\":{of_call}}},\
             \"modelUsage\":{{\"m\":{{\"inputTokens\":{of_models}}}}}}}\n"
        )
    }

    #[test]
    fn each_dollar_of_a_session_counts_once_whether_the_sum_or_the_call_is_told() {
        let first = claude("0.04", 4000, 4000);
        for (second, third) in [
            (claude("0.05", 1000, 5000), claude("0.08", 3000, 8000)),
            (claude("0.01", 1000, 1000), claude("0.03", 3000, 3000)),
            // A call that costs more than all before it.
            (claude("0.01", 1000, 1000), claude("0.11", 6000, 11_000)),
        ] {
            let all = session(Protocol::Claude, &[&first, &second, &third]);
            assert_eq!(all[..2], [(40_000, 4000), (10_000, 1000)], "{second}");
            assert_eq!(all[2].0, if third.contains("0.11") { 60_000 } else { 30_000 }, "{third}");
        }
        let more = claude("0.09", 9000, 9000);
        assert_eq!(session(Protocol::Claude, &[&first, &more])[1], (90_000, 9000));
    }

    #[test]
    fn tokens_of_a_session_are_counted_once() {
        let codex = |tokens: u64| {
            format!("{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":{tokens}}}}}\n")
        };
        let sums = [codex(4000), codex(5000), codex(9000)];
        let calls = [codex(4000), codex(1000), codex(3000)];
        let counts = |told: &[String; 3]| -> Vec<u64> {
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            session(Protocol::Codex, &told).into_iter().map(|(_, tokens)| tokens).collect()
        };
        assert_eq!(counts(&sums), [4000, 1000, 4000]);
        assert_eq!(counts(&calls), [4000, 1000, 3000]);
    }

    proptest! {
        #[test]
        fn a_capped_text_has_its_ends_and_says_what_is_missing(text: Vec<u8>, max in 1_usize..60) {
            let kept = cap(&text, max);
            if text.len() <= max {
                prop_assert_eq!(kept, text);
            } else {
                let words = String::from_utf8_lossy(&kept).into_owned();
                prop_assert!(words.contains("bytes left out"), "{}", words);
                prop_assert!(kept.len() <= max + 60);
            }
        }
    }

    #[test]
    fn a_cut_falls_between_lines() {
        let text: Vec<String> = (0..100).map(|number| format!("line {number}\n")).collect();
        let text = text.concat();
        let kept = String::from_utf8(cap(text.as_bytes(), 100)).unwrap();
        assert!(kept.starts_with("line 0\n") && kept.ends_with("line 99\n"), "{kept}");
        for line in kept.lines() {
            assert!(line.starts_with("line ") || line.starts_with("[… "), "{line}");
        }
    }
}
