//! The forge, as the program `gh` knows it.
//!
//! Every value is given as `--flag=value` and every text through standard input, so that nothing a
//! bundle says becomes an option. What is printed is asked for as JSON and read strictly.

use std::time::Duration;

use camino::Utf8Path;
use pdca_process::{Cancel, Tool};
use serde::{Deserialize, Serialize};

use crate::branch::Branch;
use crate::error::{Dialect, ForgeError, ask};
use crate::retry::RetryPolicy;

/// As much as a list of pull requests or comments may be, in bytes.
const LIST: usize = 32 << 20;
/// As many pull requests of one branch as are looked at.
const MOST: u32 = 100;

/// `gh`, for one repository.
#[derive(Debug, Clone, Copy)]
pub struct Gh<'a> {
    /// The program.
    pub program: &'a str,
    /// The repository, as `owner/repo` or `host/owner/repo`.
    pub repo: &'a str,
    /// Where it is started. Nothing there matters.
    pub cwd: &'a Utf8Path,
    /// How long a call may take.
    pub timeout: Duration,
    /// What stops the waiting between tries.
    pub cancel: &'a Cancel,
}

/// A pull request to open.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// The branch with the change.
    pub head: &'a Branch,
    /// The branch that it is meant for.
    pub base: &'a str,
    /// The title.
    pub title: &'a str,
    /// The text.
    pub body: &'a str,
}

/// A pull request that is there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pull {
    /// Its number.
    pub number: u64,
    /// Its address.
    #[serde(deserialize_with = "address")]
    pub url: String,
    state: Word,
    is_draft: bool,
    /// Its text.
    pub body: String,
    head_ref_name: String,
    is_cross_repository: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Word {
    Open,
    Closed,
    Merged,
}

/// Where a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PullState {
    /// Open, and not meant to be merged yet.
    Draft,
    /// Open.
    Ready,
    /// Closed without being merged.
    Closed,
    /// Merged.
    Merged,
}

/// A comment on an issue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Comment {
    #[serde(deserialize_with = "address")]
    pub(crate) url: String,
    pub(crate) body: String,
}

#[derive(Deserialize)]
struct Issue {
    comments: Vec<Comment>,
}

impl Pull {
    /// Where it stands.
    pub fn state(&self) -> PullState {
        match self.state {
            Word::Open if self.is_draft => PullState::Draft,
            Word::Open => PullState::Ready,
            Word::Closed => PullState::Closed,
            Word::Merged => PullState::Merged,
        }
    }
}

impl PullState {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Ready => "ready",
            Self::Closed => "closed",
            Self::Merged => "merged",
        }
    }
}

impl Gh<'_> {
    /// Every pull request of a branch of the repository, in whatever state. Those of a branch of the
    /// same name in a fork are somebody else's.
    pub fn pulls(&self, head: &Branch) -> Result<Vec<Pull>, ForgeError> {
        let doing = "look for pull requests";
        let args = [
            "pr".to_owned(),
            "list".to_owned(),
            format!("--repo={}", self.repo),
            format!("--head={head}"),
            "--state=all".to_owned(),
            format!("--limit={MOST}"),
            "--json=number,url,state,isDraft,body,headRefName,isCrossRepository".to_owned(),
        ];
        let said = RetryPolicy::new(self.cancel).read(|| self.ask(&args, "", doing))?;
        let all: Vec<Pull> =
            serde_json::from_slice(&said).map_err(|source| ForgeError::Answer { doing, source })?;
        let is_of_it =
            |pull: &Pull| pull.head_ref_name == head.as_str() && !pull.is_cross_repository;
        Ok(all.into_iter().filter(is_of_it).collect())
    }

    /// Opens a draft. Whether it is there is for [`Gh::pulls`] to say.
    pub fn open(&self, opening: &Opening<'_>) -> Result<(), ForgeError> {
        let args = [
            "pr".to_owned(),
            "create".to_owned(),
            "--draft".to_owned(),
            format!("--repo={}", self.repo),
            format!("--head={}", opening.head),
            format!("--base={}", opening.base),
            format!("--title={}", opening.title),
            "--body-file=-".to_owned(),
        ];
        self.ask(&args, opening.body, "open a pull request").map(drop)
    }

    /// Marks a draft as ready. Whether it is, is for [`Gh::pulls`] to say.
    pub fn mark_ready(&self, number: u64) -> Result<(), ForgeError> {
        let args = [
            "pr".to_owned(),
            "ready".to_owned(),
            number.to_string(),
            format!("--repo={}", self.repo),
        ];
        self.ask(&args, "", "mark the pull request as ready").map(drop)
    }

    /// Opens a closed pull request again. Whether it is open is for [`Gh::pulls`] to say.
    pub fn reopen(&self, number: u64) -> Result<(), ForgeError> {
        let args = [
            "pr".to_owned(),
            "reopen".to_owned(),
            number.to_string(),
            format!("--repo={}", self.repo),
        ];
        self.ask(&args, "", "open the pull request again").map(drop)
    }

    /// Every comment on an issue.
    pub(crate) fn comments(&self, issue: u64) -> Result<Vec<Comment>, ForgeError> {
        let doing = "look for comments";
        let args = [
            "issue".to_owned(),
            "view".to_owned(),
            issue.to_string(),
            format!("--repo={}", self.repo),
            "--json=comments".to_owned(),
        ];
        let said = RetryPolicy::new(self.cancel).read(|| self.ask(&args, "", doing))?;
        let issue: Issue =
            serde_json::from_slice(&said).map_err(|source| ForgeError::Answer { doing, source })?;
        Ok(issue.comments)
    }

    /// Comments on an issue. Whether the comment is there is for [`Gh::comments`] to say.
    pub(crate) fn comment(&self, issue: u64, body: &str) -> Result<(), ForgeError> {
        let args = [
            "issue".to_owned(),
            "comment".to_owned(),
            issue.to_string(),
            format!("--repo={}", self.repo),
            "--body-file=-".to_owned(),
        ];
        self.ask(&args, body, "comment on the issue").map(drop)
    }

    fn ask(&self, args: &[String], text: &str, doing: &'static str) -> Result<Vec<u8>, ForgeError> {
        if self.cancel.is_cancelled() {
            return Err(ForgeError::Interrupted);
        }
        let fixed = [
            ("GH_PROMPT_DISABLED", "1"),
            ("GH_NO_UPDATE_NOTIFIER", "1"),
            ("GH_PAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
            // It asks git how the directory is that it is started in, which is not to write an index.
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("NO_COLOR", "1"),
            ("LC_ALL", "C"),
        ];
        let tool = Tool::new(self.program)
            .args(args)
            .cwd(self.cwd)
            .stdin(text)
            .timeout(self.timeout)
            .killed_by(self.cancel)
            .max_stdout(LIST);
        let tool = fixed.iter().fold(tool, |tool, (name, value)| tool.env(*name, *value));
        ask(&tool, self.program, Dialect::Gh, doing)
    }
}

/// An address that can be shown and kept.
fn address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let is_one = text.starts_with("https://") || text.starts_with("http://");
    if is_one && text.len() <= 2000 && text.chars().all(|c| c.is_ascii_graphic()) {
        Ok(text)
    } else {
        Err(serde::de::Error::custom("an address is not one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pull(url: &str, state: &str) -> Result<Pull, serde_json::Error> {
        serde_json::from_value(serde_json::json!({
            "number": 3, "url": url, "state": state, "isDraft": true, "body": "",
            "headRefName": "pdca/7", "isCrossRepository": false, "more": 1,
        }))
    }

    #[test]
    fn an_answer_that_gh_does_not_give_is_refused() {
        let url = "https://forge.example/team/app/pull/3";
        assert_eq!(pull(url, "OPEN").unwrap().state(), PullState::Draft);
        assert_eq!(pull(url, "MERGED").unwrap().state(), PullState::Merged);
        assert!(pull(url, "UNHEARD-OF").is_err());
        for url in ["javascript:alert(1)", "https://x/\u{1b}[31m", "https://x y", ""] {
            assert!(pull(url, "OPEN").is_err(), "{url}");
        }
    }
}
