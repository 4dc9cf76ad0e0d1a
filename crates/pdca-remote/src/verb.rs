//! The seven verbs of a host: what is asked, and what is answered.

use pdca_driver::leg::{FileEntry, LegName, SentLeg};
use pdca_journal::Generation;
use serde::{Deserialize, Serialize};

use crate::offer::{HostOffer, OfferRequest};

/// One request to a host. Each may be sent again: the second has the effect of the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case")]
pub enum VerbRequest {
    /// Asks for the facts of a host. Changes nothing.
    Offer(OfferRequest),
    /// Brings git objects and files, and the assignment of a job. Starts nothing.
    Stage(Box<StageRequest>),
    /// Starts a staged job, detached. A job that runs or ended is left as it is.
    Start(StartRequest),
    /// Asks for the log from an offset, and the state.
    Watch(WatchRequest),
    /// Ends a job's whole tree for good.
    Cancel { name: LegName },
    /// Asks for the result of a job that ended. Changes nothing.
    Collect(CollectRequest),
    /// Removes jobs that are below the fence or whose result was taken.
    Reap(ReapRequest),
}

impl VerbRequest {
    /// Returns the name of the verb.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Offer(_) => "offer",
            Self::Stage(_) => "stage",
            Self::Start(_) => "start",
            Self::Watch(_) => "watch",
            Self::Cancel { .. } => "cancel",
            Self::Collect(_) => "collect",
            Self::Reap(_) => "reap",
        }
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum VerbResponse {
    Offer(Box<HostOffer>),
    Staged,
    /// Something that the assignment needs is neither here nor in the request.
    Needs(Needs),
    Started {
        /// True if the job ran or had ended before this request.
        already: bool,
    },
    Watched(WatchResponse),
    /// Nothing of the job is alive.
    Cancelled,
    Collected(Box<Collected>),
    Reaped {
        jobs: Vec<LegName>,
    },
    Refused(VerbRefusal),
}

/// A reason for a host to refuse a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refusal", rename_all = "kebab-case")]
pub enum VerbRefusal {
    /// A later attempt was announced to this host.
    #[error("generation {given} is older than {fence}, which the host was told of")]
    Fenced { given: Generation, fence: Generation },
    /// Every slot of the host is taken, by this driver or another.
    #[error("all {slots} slots are taken")]
    Busy { slots: u32 },
    #[error("the host has no job {name}")]
    Unknown { name: LegName },
    #[error("the job was cancelled")]
    Cancelled,
    #[error("the job has no result")]
    NoResult,
    /// The supervisor of the job did not come up.
    #[error("the job could not be started: {said}")]
    NotStarted { said: String },
    /// Something of the job is still alive.
    #[error("the job could not be ended")]
    Alive,
    #[error("the host cannot use the request: {said}")]
    Unusable { said: String },
    #[error("the host failed: {said}")]
    Host { said: String },
}

/// Everything that a host needs to run a job, without the bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    pub job: SentLeg,
    /// The repository on the host, and the commits that the job needs of it.
    pub objects: Option<Objects>,
    /// The files of the job's workspace.
    pub files: Vec<FileEntry>,
    /// The slot of the host to work in.
    pub slot: u32,
    /// The settings of whoever runs the job, which this crate does not read.
    pub settings: serde_json::Value,
}

/// Commits in a repository of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objects {
    /// Names the repository among those of the host.
    pub repository: String,
    /// `sha1` or `sha256`.
    pub format: String,
    /// The commits that must be there with their history.
    pub commits: Vec<String>,
    /// The commits whose parents are missing in the repository that they come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shallow: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRequest {
    pub assignment: Assignment,
    /// True if the first part is a pack; the other parts are contents of files.
    pub has_pack: bool,
}

/// What a host lacks for an assignment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Needs {
    /// The commits that the host has, if it lacks one that the assignment needs.
    pub have: Option<Vec<String>>,
    /// The digests of missing contents.
    pub contents: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRequest {
    pub name: LegName,
    /// The number of jobs that the host may run at once.
    pub slots: u32,
    pub engine: JobEngine,
}

/// The means to run a job on a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "engine", rename_all = "kebab-case")]
pub enum JobEngine {
    /// A process of the host itself.
    #[default]
    Process,
    /// A job of Slurm.
    Slurm(SlurmOptions),
}

/// The options of a Slurm job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlurmOptions {
    /// Licenses that each job takes, such as `model_api:1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licenses: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The limit on the time of a job, in minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_minutes: Option<u32>,
    /// The limit on the memory of a job, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchRequest {
    pub name: LegName,
    pub offset: u64,
    /// The time to wait for something new, in milliseconds.
    pub wait_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchResponse {
    pub state: JobState,
    /// The offset after the bytes of the log that are the part of this answer.
    pub next: u64,
    /// Grows while the job's supervisor lives.
    pub beat: u64,
}

/// The state of a job on its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum JobState {
    /// Staged and not started.
    Staged,
    /// In the queue of the engine.
    Queued,
    Running,
    /// It has a result.
    Ended,
    Cancelled,
    /// Its supervisor ended without a result: it was killed, or the host was restarted.
    Died {
        /// The last lines of its output.
        said: String,
    },
    /// The engine ended it for a limit on time or memory.
    Capped {
        limit: String,
    },
    /// It refused to publish its result, because a later attempt was announced.
    Fenced {
        fence: Generation,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectRequest {
    pub name: LegName,
    /// The digests of contents that need not be sent.
    pub known: Vec<String>,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collected {
    pub published: PublishedResult,
    /// The digests of the parts, in order; the pack comes after them.
    pub contents: Vec<String>,
    pub has_pack: bool,
}

/// The result of a job as its runner stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedResult {
    pub name: LegName,
    /// The files of the job's workspace that are part of the result.
    pub files: Vec<FileEntry>,
    /// The head of new commits, which are in the pack.
    pub head: Option<String>,
    /// The outcome in the words of whoever ran the job.
    pub outcome: serde_json::Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReapRequest {
    /// The current attempt of each unit: older ones are ended and removed, and can no longer publish.
    pub current: Vec<LegName>,
    /// Jobs whose result was taken.
    pub taken: Vec<LegName>,
    /// Runs that are over: everything of them goes.
    pub over: Vec<String>,
    /// Contents that no job was staged with for so many days go as well.
    pub older_than_days: Option<u32>,
}
