//! Where an issue is talked about.

use std::time::Duration;

use camino::Utf8Path;
use pdca_process::{Cancel, Tool};
use pdca_state::BundleId;

use crate::error::{Dialect, ForgeError, ask};
use crate::gh::Gh;
use crate::key::{LABEL, PublishKey};
use crate::retry::RetryPolicy;

/// As much as a list of comments may be, in bytes.
const LIST: usize = 32 << 20;

/// Somebody who keeps the comments on an issue.
#[derive(Debug, Clone, Copy)]
pub enum Tracker<'a> {
    /// The forge's own issues.
    Forge {
        /// The forge.
        gh: Gh<'a>,
        /// The number of the issue.
        issue: u64,
    },
    /// Commands of the project, each a text for `sh -c`.
    Commands {
        /// The bundle, as `PDCA_ISSUE`.
        id: &'a BundleId,
        /// The repository, as `PDCA_REPO`.
        repo: &'a str,
        /// Posts its standard input.
        comment: &'a str,
        /// Prints the comments there are.
        list: &'a str,
        /// Where they are started.
        cwd: &'a Utf8Path,
        /// How long a call may take.
        timeout: Duration,
        /// What stops the waiting between tries.
        cancel: &'a Cancel,
    },
}

/// A comment that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// Its address, where the tracker tells it.
    pub url: Option<String>,
}

impl Tracker<'_> {
    /// The comment that carries a key.
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
                // How a tracker prints a comment is its own; that the key is in it is enough.
                let wanted = format!("{LABEL} {key}");
                let is_there = String::from_utf8_lossy(&said).contains(&wanted);
                Ok(is_there.then_some(Posted { url: None }))
            }
        }
    }

    /// Posts a comment. Whether it is there is for [`Tracker::find`] to say.
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
