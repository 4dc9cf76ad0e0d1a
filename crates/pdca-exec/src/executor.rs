//! The trait that executors implement.

use camino::Utf8Path;
use pdca_process::Cancel;

use crate::{Job, JobResult};

/// Does jobs somewhere. Called from several threads at once.
pub trait Executor: Sync {
    /// Does a job to its end, or to the point where it was told to stop.
    ///
    /// Asked again under the same name it goes on with what is there: nothing that came to its end is done, or
    /// paid for, twice.
    fn execute(&self, job: &Job, cx: &JobContext<'_>) -> Result<JobResult, JobError>;
}

/// What is true of one call and not of the job.
#[derive(Debug, Clone, Copy)]
pub struct JobContext<'a> {
    /// Stops the job.
    pub cancel: &'a Cancel,
    /// The lane that the caller set aside for it, where there are several.
    pub slot: Option<u32>,
    /// The directory for what the job leaves until the caller has kept its result; without one, the
    /// executor chooses.
    pub dir: Option<&'a Utf8Path>,
}

impl<'a> JobContext<'a> {
    /// Returns the context of a call without a lane or a directory.
    pub fn new(cancel: &'a Cancel) -> Self {
        Self { cancel, slot: None, dir: None }
    }
}

/// Why a job came to no result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The place where it ran is gone. That is no fault of the work, and no attempt is charged.
    #[error("{place} was lost: {said}")]
    Lost {
        /// The place.
        place: String,
        /// The evidence.
        said: String,
    },
    /// It failed.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}
