//! Comments on the issue that a bundle is about.

use std::time::Duration;

use camino::Utf8Path;
use pdca_process::{Cancel, Tool};
use pdca_state::BundleId;

use crate::publish::error::{Dialect, ForgeError, ask};
use crate::publish::gh::Gh;
use crate::publish::key::{LABEL, PublishKey};
use crate::publish::retry::RetryPolicy;

/// The maximum size, in bytes, of a list of comments.
const LIST: usize = 32 << 20;

/// The place where comments on an issue are kept.
#[derive(Debug, Clone, Copy)]
pub enum Tracker<'a> {
    /// Issues of the forge.
    Forge { gh: Gh<'a>, issue: u64 },
    /// Commands from the project's configuration, each run by `sh -c`.
    Commands {
        /// Passed as `PDCA_ISSUE`.
        id: &'a BundleId,
        /// Passed as `PDCA_REPO`.
        repo: &'a str,
        comment: &'a str,
        /// Prints the existing comments.
        list: &'a str,
        /// The working directory.
        cwd: &'a Utf8Path,
        /// The time limit of one call.
        timeout: Duration,
        /// Stops a call, and the wait between retries.
        cancel: &'a Cancel,
    },
}

/// A comment that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// The address, if the tracker reports one.
    pub url: Option<String>,
}

impl Tracker<'_> {
    /// Looks for the comment that carries a key.
    pub fn find(&self, key: &PublishKey) -> Result<Option<Posted>, ForgeError> {
        match self {
            Self::Forge { gh, issue } => {
                let comments = gh.comments(*issue)?;
                let ours = comments.into_iter().find(|comment| key.is_in(&comment.body));
                Ok(ours.map(|comment| Posted { url: Some(comment.url) }))
            }
            Self::Commands { list, cancel, .. } => {
                let look = || self.run(list, key, "", "look for comments");
                let said = RetryPolicy::new(cancel).read(look)?;
                // The output format is the tracker's own, so the label and the key anywhere in it are enough.
                let wanted = format!("{LABEL} {key}");
                let is_there = String::from_utf8_lossy(&said).contains(&wanted);
                Ok(is_there.then_some(Posted { url: None }))
            }
        }
    }

    /// Posts a comment. Call [`Tracker::find`] to see whether it exists.
    pub fn post(&self, key: &PublishKey, body: &str) -> Result<(), ForgeError> {
        match self {
            Self::Forge { gh, issue } => gh.comment(*issue, body),
            Self::Commands { comment, .. } => {
                self.run(comment, key, body, "comment on the issue").map(drop)
            }
        }
    }

    fn run(
        &self,
        command: &str,
        key: &PublishKey,
        text: &str,
        doing: &'static str,
    ) -> Result<Vec<u8>, ForgeError> {
        let Self::Commands { id, repo, cwd, timeout, cancel, .. } = self else {
            return Ok(Vec::new());
        };
        if cancel.is_cancelled() {
            return Err(ForgeError::Interrupted);
        }
        let tool = Tool::new("sh")
            .args(["-c", command])
            .cwd(cwd)
            .env("PDCA_ISSUE", id.as_str())
            .env("PDCA_REPO", *repo)
            .env("PDCA_KEY", key.as_str())
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(text)
            .timeout(*timeout)
            .killed_by(cancel)
            .max_stdout(LIST);
        ask(&tool, "sh", Dialect::Command, doing)
    }
}
