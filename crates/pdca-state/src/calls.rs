//! The calls of leaves for a bundle: one record and one transcript each.
//!
//! `logs/calls.jsonl` has one line for each start of a leaf's program, appended when that ended; `logs/<NN>-<leaf>.log`
//! is what it printed, capped. Both belong to the attempt and are archived with it, so what an issue cost is the sum
//! over its attempts.
//!
//! 1. The transcript is written, under a name that was chosen before the program started.
//! 2. The line is appended in one write and synced. A crash before that leaves a transcript without a line, which the next
//!    driver writes again under the same name; a crash in the middle of it leaves a torn line, which no reader counts
//!    and the next writer leaves behind.
//! 3. A line names its call. One that is there already, in this attempt or an archived one, is not written again, so a
//!    driver that resumes counts nothing twice.
//!
//! Nothing of it decides a state, and no leaf reads it.

use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::archive;
use crate::artifact::Artifact;
use crate::bundle::{Bundle, WriteError};
use crate::contents::LoadError;
use crate::files::{self, FileReadError};
use crate::money::Money;

const LEDGER: &str = "calls.jsonl";
const LEDGER_MAX: u64 = 16 << 20;
/// A longer transcript is refused by readers; the largest cap is smaller.
const TRANSCRIPT_MAX: u64 = 64 << 20;

/// Tokens, as an agent counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub input: u64,
    /// Those of them that came from a cache.
    pub cached: u64,
    /// Tokens written.
    pub output: u64,
}

impl Usage {
    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
        }
    }

    /// The difference; nothing is less than zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cached: self.cached.saturating_sub(other.cached),
            output: self.output.saturating_sub(other.output),
        }
    }

    /// Returns whether no count is less than that of another one.
    pub const fn covers(self, other: Self) -> bool {
        self.input >= other.input && self.cached >= other.cached && self.output >= other.output
    }

    /// All tokens, read and written.
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// What earlier calls in one session of an agent used, by their records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionSoFar {
    /// The number of these calls.
    pub calls: usize,
    /// Their tokens, as far as they are known.
    pub usage: Usage,
    /// Their cost, as far as it is known.
    pub cost: Money,
}

/// The source of a call's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CostBasis {
    /// The agent told it.
    Told,
    /// The tokens that it told, times the configured prices.
    Price,
    /// The configured estimate for a call.
    PerCall,
}

/// The record of one start of a leaf's program: one line of `logs/calls.jsonl`, and the facts of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallRecord {
    /// The name of the call, unique in a workspace.
    pub call: String,
    /// Its place among the calls of its attempt, from 1.
    pub number: u32,
    /// The role, such as `builder`.
    pub role: String,
    /// The name of the leaf: the role, or an adviser's id.
    pub leaf: String,
    /// Which try of the leaf it is, from 1. Throttled ones count here.
    #[serde(rename = "try")]
    pub tried: u32,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The time at which it began, in seconds since 1970; 0 where an older event does not say it.
    #[serde(default)]
    pub began: i64,
    /// The time it took, in milliseconds; absent if its driver did not see the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The way in which it ended, in words.
    pub ending: String,
    /// Set if it was cut off by the end of its driver, and has to be made again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The configured name of the agent, or of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The form of its output, as in `protocol` of its configuration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// The model that answered, or else that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's name of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The number of tool calls, as far as they were told.
    #[serde(default)]
    pub tool_calls: u64,
    /// The tokens, where they were told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost in millionths of a US dollar, where it is known.
    #[serde(default, rename = "cost_usd_micros", skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The source of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_basis: Option<CostBasis>,
    /// The name of the transcript beside the record; absent if none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// The number of bundles that share the call, if there are several; cost, tokens, time and tool calls are this one's part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_by: Option<u32>,
}

/// A record, and the attempt it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCall {
    /// The attempt, from 1. The newest is the one that is not archived.
    pub attempt: u32,
    /// The directory of the attempt's logs, relative to the bundle.
    dir: Utf8PathBuf,
    /// The record.
    pub record: CallRecord,
}

/// Sums over calls. Each field is a plain sum, so totals can be added in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostTotal {
    /// The number of calls.
    pub calls: u64,
    /// The calls whose cost is not known, and not part of the sum.
    pub unknown: u64,
    /// The calls whose cost was computed from configured prices or estimates.
    pub estimated: u64,
    /// The cost in millionths of a US dollar.
    #[serde(rename = "cost_usd_micros")]
    pub cost: Money,
    /// The tokens.
    pub usage: Usage,
    /// The time of the calls, in milliseconds.
    pub duration_ms: u64,
}

impl CostTotal {
    /// The sum over records.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a CallRecord>) -> Self {
        let one = |record: &CallRecord| Self {
            calls: 1,
            unknown: u64::from(record.cost.is_none()),
            estimated: u64::from(match record.cost_basis {
                Some(CostBasis::Price | CostBasis::PerCall) => true,
                Some(CostBasis::Told) | None => false,
            }),
            cost: record.cost.unwrap_or_default(),
            usage: record.usage.unwrap_or_default(),
            duration_ms: record.duration_ms.unwrap_or_default(),
        };
        records.into_iter().map(one).fold(Self::default(), Self::plus)
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            unknown: self.unknown.saturating_add(other.unknown),
            estimated: self.estimated.saturating_add(other.estimated),
            cost: self.cost.plus(other.cost),
            usage: self.usage.plus(other.usage),
            duration_ms: self.duration_ms.saturating_add(other.duration_ms),
        }
    }

    /// Returns true if anything is known beyond the number of calls.
    pub fn is_known(&self) -> bool {
        self.unknown < self.calls || self.usage != Usage::default()
    }

    /// The cost in words, such as `$0.42 (1 of 3 calls told no cost)`; `None` if nothing is known of it.
    pub fn words(&self) -> Option<String> {
        if self.unknown == self.calls {
            return None;
        }
        let mut notes = Vec::new();
        if self.estimated > 0 {
            notes.push(format!("{} of {} estimated", self.estimated, count(self.calls)));
        }
        if self.unknown > 0 {
            notes.push(format!("{} of {} told no cost", self.unknown, count(self.calls)));
        }
        let notes =
            if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        Some(format!("{}{notes}", self.cost))
    }
}

fn count(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

/// A session of an agent that a later call may resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastSession {
    /// The agent's name of the session.
    pub session: String,
    /// The agent that has it.
    pub agent: Option<String>,
    /// The model that answered in it.
    pub model: Option<String>,
    /// The attempt it belongs to, from 1.
    pub attempt: u32,
}

/// Returns the newest session of a role, from the newest call that named one, in any attempt.
pub fn last_session(bundle: &Bundle, role: &str) -> Result<Option<LastSession>, LoadError> {
    let calls = bundle.calls().all()?;
    let newest = calls.into_iter().rev().filter(|call| call.record.role == role);
    let mut found = newest.filter_map(|call| {
        let CallRecord { session, agent, model, .. } = call.record;
        Some(LastSession { session: session?, agent, model, attempt: call.attempt })
    });
    Ok(found.next())
}

impl KeptCall {
    /// Returns the path of the transcript, relative to the bundle.
    pub fn transcript_path(&self) -> Option<Utf8PathBuf> {
        let name = self.record.transcript.as_deref()?;
        // The record could name anything.
        let is_plain = !name.contains('/') && !name.starts_with('.');
        is_plain.then(|| self.dir.join(name))
    }
}

impl CallRecord {
    /// Returns the part of one of several bundles in a call that was about all of them. All parts together are the whole.
    #[must_use]
    pub fn part(&self, place: u32, of: u32) -> Self {
        let part = |whole: u64| {
            let of = u64::from(of.max(1));
            // The first `whole % of` parts get one more, so that the parts add up to the whole.
            whole / of + u64::from(u64::from(place) < whole % of)
        };
        Self {
            call: format!("{}-{place}", self.call),
            duration_ms: self.duration_ms.map(part),
            tool_calls: part(self.tool_calls),
            usage: self.usage.map(|Usage { input, cached, output }| Usage {
                input: part(input),
                cached: part(cached),
                output: part(output),
            }),
            cost: self.cost.map(|cost| Money::from_micros(part(cost.micros()))),
            shared_by: (of > 1).then_some(of),
            ..self.clone()
        }
    }

    /// Returns the name of a transcript: `03-builder.log`.
    pub fn transcript_name(number: u32, leaf: &str) -> String {
        format!("{number:02}-{}.log", crate::artifact::tame(leaf))
    }
}

/// The calls of a bundle's leaves, over all its attempts. A record is only ever added.
#[derive(Debug)]
pub struct BundleCalls<'b> {
    bundle: &'b Bundle,
}

impl<'b> BundleCalls<'b> {
    pub(crate) fn of(bundle: &'b Bundle) -> Self {
        Self { bundle }
    }

    /// Returns the records, oldest attempt first, each attempt in the order of its calls. A call that is recorded
    /// twice counts once.
    pub fn all(&self) -> Result<Vec<KeptCall>, LoadError> {
        let contents = self.bundle.contents()?;
        let newest = contents.iterations.last().map_or(1, |last| last.saturating_add(1));
        let archived = contents
            .iterations
            .iter()
            .map(|number| (*number, archive::dir_of(*number).join(Artifact::Logs.file_name())));
        let present = contents.artifacts.contains(Artifact::Logs);
        let present = present.then(|| (newest, Artifact::Logs.file_name().into()));
        let mut kept: Vec<KeptCall> = Vec::new();
        for (attempt, dir) in archived.chain(present) {
            for record in self.ledger(&dir)? {
                if !kept.iter().any(|known| known.record.call == record.call) {
                    kept.push(KeptCall { attempt, dir: dir.clone(), record });
                }
            }
        }
        Ok(kept)
    }

    /// Returns what all calls cost, as far as it is known.
    pub fn cost(&self) -> Result<CostTotal, LoadError> {
        let calls = self.all()?;
        Ok(CostTotal::of(calls.iter().map(|call| &call.record)))
    }

    /// Returns what the calls in a session used, but for the call of this name.
    pub fn session(&self, session: &str, but: &str) -> Result<SessionSoFar, LoadError> {
        let mut so_far = SessionSoFar::default();
        for KeptCall { record, .. } in self.all()? {
            if record.session.as_deref() == Some(session) && record.call != but {
                so_far.calls += 1;
                so_far.usage = so_far.usage.plus(record.usage.unwrap_or_default());
                so_far.cost = so_far.cost.plus(record.cost.unwrap_or_default());
            }
        }
        Ok(so_far)
    }

    /// Reads the transcript of a call; `None` if there is none.
    pub fn read_transcript(&self, call: &KeptCall) -> Result<Option<Vec<u8>>, LoadError> {
        let Some(path) = call.transcript_path() else { return Ok(None) };
        Ok(files::read_within(self.bundle.dir(), &path, TRANSCRIPT_MAX)?)
    }

    /// Keeps a transcript under the name in its record, and then the record, durably. Does nothing and returns
    /// false if the call is on record already.
    pub fn keep(&self, record: &CallRecord, transcript: Option<&[u8]>) -> Result<bool, WriteError> {
        let logs = Utf8Path::new(Artifact::Logs.file_name());
        let ledger = logs.join(LEDGER);
        let known = self.all().map_err(|error| {
            WriteError::io(&self.bundle.dir().join(&ledger), io::Error::other(error))
        })?;
        // Over all attempts: a driver that died between the line and the archive sees it in the
        // archive.
        if known.iter().any(|known| known.record.call == record.call) {
            return Ok(false);
        }
        // Before the line: a driver that dies between the two finds no line, and writes both again.
        if let (Some(name), Some(bytes)) = (&record.transcript, transcript) {
            self.bundle.publish_derived_file(&logs.join(name), bytes)?;
        }
        let path = self.bundle.place().make_way(&ledger)?;
        append(&path, record).map_err(|source| WriteError::io(&path, source))?;
        Ok(true)
    }

    /// Reads the records in a directory of logs. A line that is no record was torn by a crash.
    fn ledger(&self, dir: &Utf8Path) -> Result<Vec<CallRecord>, LoadError> {
        let bytes = match files::read_within(self.bundle.dir(), &dir.join(LEDGER), LEDGER_MAX) {
            Ok(bytes) => bytes.unwrap_or_default(),
            // An archived attempt may have had something else of that name.
            Err(FileReadError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotADirectory =>
            {
                Vec::new()
            }
            Err(error) => return Err(error.into()),
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        // A torn line, or one of a newer version with other fields, must not hide the others.
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

/// Appends one line in one write, and syncs it.
fn append(path: &Utf8Path, record: &CallRecord) -> io::Result<()> {
    let is_new = !path.exists();
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(CWD, path.as_std_path(), flags, Mode::from_raw_mode(0o666))?;
    let mut file = std::fs::File::from(fd);
    let mut line = serde_json::to_vec(record).map_err(io::Error::other)?;
    line.push(b'\n');
    if !ends_a_line(&file)? {
        // A crash tore the last line; what follows on it would be torn as well.
        line.insert(0, b'\n');
    }
    file.write_all(&line)?;
    // A lost line is money that no cap counts. It is synced before the next call may start.
    file.sync_data()?;
    if is_new && let Some(dir) = path.parent() {
        // The file is new, and maybe its directory too.
        files::sync_dir(dir.as_std_path())?;
        files::sync_dir(dir.parent().unwrap_or(dir).as_std_path())?;
    }
    Ok(())
}

fn ends_a_line(file: &std::fs::File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests;
