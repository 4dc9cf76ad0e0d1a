//! The trait that executors implement.

use camino::Utf8Path;
use pdca_process::Cancel;

use crate::{Job, JobResult};

/// Runs jobs on some machine. Called from several threads at once.
pub trait Executor: Sync {
    /// Runs a job to its end or until it is cancelled.
    ///
    /// A second call under the same name resumes the first: a leaf or a gate that finished is neither run nor paid
    /// for twice.
    fn execute(&self, job: &Job, cx: &JobContext<'_>) -> Result<JobResult, JobError>;
}

/// The arguments of one call that are no part of the job.
#[derive(Debug, Clone, Copy)]
pub struct JobContext<'a> {
    pub cancel: &'a Cancel,
    /// The lane that the caller reserved for the job.
    pub slot: Option<u32>,
    /// The directory for the job's logs and verdicts until the caller has stored its result; `None` lets the
    /// executor choose.
    pub dir: Option<&'a Utf8Path>,
}

impl<'a> JobContext<'a> {
    /// Returns the context of a call without a lane or a directory.
    pub fn new(cancel: &'a Cancel) -> Self {
        Self { cancel, slot: None, dir: None }
    }
}

/// The reasons for a job to end without a result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("interrupted")]
    Interrupted,
    /// The machine was lost. The job is not at fault, so no attempt is charged.
    #[error("{place} was lost: {said}")]
    Lost {
        place: String,
        /// The last message from it.
        said: String,
    },
    /// The machine cannot do such jobs, and the job is not at fault.
    #[error("{place} is not fit for it: {said}")]
    Unfit { place: String, said: String },
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}
