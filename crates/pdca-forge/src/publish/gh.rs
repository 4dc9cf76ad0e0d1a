//! Client of the forge through the `gh` program, or through a command of the project that speaks for another forge.
//!
//! Values are passed as `--flag=value` and texts through standard input, so that text from a bundle cannot become
//! an option. Answers are requested as JSON and parsed strictly.

use std::time::Duration;

use camino::Utf8Path;
use pdca_process::{Cancel, Tool};
use serde::{Deserialize, Serialize};

use crate::publish::branch::Branch;
use crate::publish::error::{Dialect, ForgeError, ask};
use crate::publish::merge::MergeView;
use crate::publish::retry::RetryPolicy;
use crate::publish::settings::MergeMethod;

/// The maximum size, in bytes, of a list of pull requests or comments.
/// A hostile or broken answer must not fill the memory.
const LIST: usize = 32 << 20;
/// The maximum number of pull requests to list for one branch.
const MOST: u32 = 100;

/// The fields of a thread, as `notes.json` keeps them.
const THREAD: &str = "number,title,body,state,labels,author,createdAt,updatedAt,url,comments";

/// A client for one repository.
#[derive(Debug, Clone, Copy)]
pub struct Gh<'a> {
    /// The path or name of `gh`.
    pub program: &'a str,
    /// An `sh -c` command that speaks with the forge in place of `gh`.
    pub command: Option<&'a str>,
    /// The repository, as `owner/repo` or `host/owner/repo`.
    pub repo: &'a str,
    /// The working directory. It need not be a repository: every call names the repository.
    pub cwd: &'a Utf8Path,
    /// The time limit of one call.
    pub timeout: Duration,
    /// Stops a call, and the wait between retries.
    pub cancel: &'a Cancel,
}

/// A pull request to create.
#[derive(Debug, Clone, Copy)]
pub struct NewPullRequest<'a> {
    pub head: &'a Branch,
    /// The branch to merge into.
    pub base: &'a str,
    pub title: &'a str,
    pub body: &'a str,
}

/// A pull request as the forge reports it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pull {
    pub number: u64,
    #[serde(deserialize_with = "address")]
    pub url: String,
    state: Word,
    is_draft: bool,
    pub body: String,
    head_ref_name: String,
    /// The branch to merge into.
    pub base_ref_name: String,
    /// The commit at the head of the pull request.
    pub head_ref_oid: String,
    is_cross_repository: bool,
}

/// A change to an open pull request.
#[derive(Debug, Clone, Copy)]
pub enum Amendment<'a> {
    /// Another branch to merge into.
    Base(&'a str),
    /// Another title and text.
    Text { title: &'a str, body: &'a str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Word {
    Open,
    Closed,
    Merged,
}

/// The state of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PullState {
    Draft,
    /// Open, and marked ready for review.
    Ready,
    /// Closed without a merge.
    Closed,
    Merged,
}

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
    pub fn state(&self) -> PullState {
        match self.state {
            Word::Open if self.is_draft => PullState::Draft,
            Word::Open => PullState::Ready,
            Word::Closed => PullState::Closed,
            Word::Merged => PullState::Merged,
        }
    }
}

impl Pull {
    pub fn is_open(&self) -> bool {
        matches!(self.state, Word::Open)
    }
}

impl PullState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Ready => "ready",
            Self::Closed => "closed",
            Self::Merged => "merged",
        }
    }
}

/// The fields of a list of pull requests.
const PULL: &str =
    "number,url,state,isDraft,body,headRefName,baseRefName,headRefOid,isCrossRepository";

/// A request about pull requests, for `gh` and for a command of the project.
struct Request<'r> {
    /// The word for a command, in `PDCA_FORGE`.
    action: &'static str,
    doing: &'static str,
    /// The arguments of `gh`, without the repository.
    args: Vec<String>,
    /// Further variables of a command.
    env: Vec<(&'static str, String)>,
    text: &'r str,
}

impl Gh<'_> {
    /// Lists the pull requests of a branch in any state. Pull requests from a fork's branch of the same name are
    /// left out: they are not ours.
    pub fn pulls(&self, head: &Branch) -> Result<Vec<Pull>, ForgeError> {
        let doing = "look for pull requests";
        let request = Request {
            action: "list",
            doing,
            args: vec![
                "pr".to_owned(),
                "list".to_owned(),
                format!("--head={head}"),
                "--state=all".to_owned(),
                format!("--limit={MOST}"),
                format!("--json={PULL}"),
            ],
            env: vec![("PDCA_HEAD", head.to_string())],
            text: "",
        };
        // Looking may be repeated freely. Requests that change something are repeated by `once` alone, which
        // looks in between.
        let said = RetryPolicy::new(self.cancel).read(|| self.request(&request))?;
        let all: Vec<Pull> =
            serde_json::from_slice(&said).map_err(|source| ForgeError::Answer { doing, source })?;
        // `gh pr list --head` matches the name of the branch alone, without its owner.
        let is_of_it =
            |pull: &Pull| pull.head_ref_name == head.as_str() && !pull.is_cross_repository;
        Ok(all.into_iter().filter(is_of_it).collect())
    }

    /// Creates a draft pull request. Call [`Gh::pulls`] to see whether it exists.
    pub fn open(&self, opening: &NewPullRequest<'_>) -> Result<(), ForgeError> {
        let request = Request {
            action: "open",
            doing: "open a pull request",
            args: vec![
                "pr".to_owned(),
                "create".to_owned(),
                // A draft asks for no review. `mark_ready` does, once the person who accepted the change wants
                // it.
                "--draft".to_owned(),
                format!("--head={}", opening.head),
                format!("--base={}", opening.base),
                format!("--title={}", opening.title),
                "--body-file=-".to_owned(),
            ],
            env: vec![
                ("PDCA_HEAD", opening.head.to_string()),
                ("PDCA_BASE", opening.base.to_owned()),
                ("PDCA_TITLE", opening.title.to_owned()),
            ],
            text: opening.body,
        };
        self.request(&request).map(drop)
    }

    /// Marks a draft as ready for review. Call [`Gh::pulls`] to see whether it is.
    pub fn mark_ready(&self, number: u64) -> Result<(), ForgeError> {
        self.simple("ready", "mark the pull request as ready", number)
    }

    /// Reopens a closed pull request. Call [`Gh::pulls`] to see whether it is open.
    pub fn reopen(&self, number: u64) -> Result<(), ForgeError> {
        self.simple("reopen", "open the pull request again", number)
    }

    /// Changes an open pull request. Call [`Gh::pulls`] to see whether it is so.
    pub fn amend(&self, number: u64, change: Amendment<'_>) -> Result<(), ForgeError> {
        let mut args = vec!["pr".to_owned(), "edit".to_owned(), number.to_string()];
        let mut env = vec![("PDCA_NUMBER", number.to_string())];
        let (doing, text) = match change {
            Amendment::Base(base) => {
                args.push(format!("--base={base}"));
                env.push(("PDCA_BASE", base.to_owned()));
                ("change the base of the pull request", "")
            }
            Amendment::Text { title, body } => {
                args.push(format!("--title={title}"));
                args.push("--body-file=-".to_owned());
                env.push(("PDCA_TITLE", title.to_owned()));
                ("change the text of the pull request", body)
            }
        };
        self.request(&Request { action: "edit", doing, args, env, text }).map(drop)
    }

    /// Asks whether the forge would merge a pull request now.
    pub fn merge_view(&self, number: u64) -> Result<MergeView, ForgeError> {
        let doing = "look at the checks of the pull request";
        let request = Request {
            action: "checks",
            doing,
            args: vec![
                "pr".to_owned(),
                "view".to_owned(),
                number.to_string(),
                format!("--json={}", MergeView::FIELDS),
            ],
            env: vec![("PDCA_NUMBER", number.to_string())],
            text: "",
        };
        let said = RetryPolicy::new(self.cancel).read(|| self.request(&request))?;
        serde_json::from_slice(&said).map_err(|source| ForgeError::Answer { doing, source })
    }

    /// Merges a pull request if its head is this commit. Call [`Gh::pulls`] to see whether it is merged.
    pub fn merge(&self, number: u64, how: MergeMethod, head: &str) -> Result<(), ForgeError> {
        let request = Request {
            action: "merge",
            doing: "merge the pull request",
            args: vec![
                "pr".to_owned(),
                "merge".to_owned(),
                number.to_string(),
                format!("--{}", how.as_str()),
                // A commit that was pushed to the branch after the acceptance must not be merged with it
                // (decision 046).
                format!("--match-head-commit={head}"),
            ],
            env: vec![
                ("PDCA_NUMBER", number.to_string()),
                ("PDCA_METHOD", how.as_str().to_owned()),
                ("PDCA_COMMIT", head.to_owned()),
            ],
            text: "",
        };
        self.request(&request).map(drop)
    }

    /// Asks for something that needs the number alone.
    fn simple(
        &self,
        action: &'static str,
        doing: &'static str,
        number: u64,
    ) -> Result<(), ForgeError> {
        let args = vec!["pr".to_owned(), action.to_owned(), number.to_string()];
        let env = vec![("PDCA_NUMBER", number.to_string())];
        self.request(&Request { action, doing, args, env, text: "" }).map(drop)
    }

    /// Sends a request to `gh`, or to the command of the project.
    fn request(&self, request: &Request<'_>) -> Result<Vec<u8>, ForgeError> {
        // Only pull requests come here. Comments are off where the forge is not `gh`, see
        // `PublishSettings::comments`.
        let Some(command) = self.command else {
            let mut args = request.args.clone();
            args.push(format!("--repo={}", self.repo));
            return self.ask(&args, request.text, request.doing);
        };
        if self.cancel.is_cancelled() {
            return Err(ForgeError::Interrupted);
        }
        let tool = Tool::new("sh")
            .args(["-c", command])
            .cwd(self.cwd)
            .env("PDCA_FORGE", request.action)
            .env("PDCA_REPO", self.repo)
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(request.text)
            .timeout(self.timeout)
            .killed_by(self.cancel)
            .max_stdout(LIST);
        let tool = request.env.iter().fold(tool, |tool, (name, value)| tool.env(*name, value));
        ask(&tool, "sh", Dialect::Command, request.doing)
    }

    /// Lists the open issues, at most `limit`, as a JSON array of objects.
    pub fn issues(&self, limit: u32) -> Result<Vec<u8>, ForgeError> {
        let args = [
            "issue".to_owned(),
            "list".to_owned(),
            format!("--repo={}", self.repo),
            "--state=open".to_owned(),
            format!("--limit={limit}"),
            "--json=number,title,state,labels,createdAt,updatedAt,url".to_owned(),
        ];
        RetryPolicy::new(self.cancel).read(|| self.ask(&args, "", "list the issues"))
    }

    /// Reads an issue with its comments.
    pub fn thread(
        &self,
        issue: u64,
    ) -> Result<serde_json::Map<String, serde_json::Value>, ForgeError> {
        let doing = "read the issue";
        let args = [
            "issue".to_owned(),
            "view".to_owned(),
            issue.to_string(),
            format!("--repo={}", self.repo),
            format!("--json={THREAD}"),
        ];
        let said = RetryPolicy::new(self.cancel).read(|| self.ask(&args, "", doing))?;
        serde_json::from_slice(&said).map_err(|source| ForgeError::Answer { doing, source })
    }

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

    /// Posts a comment on an issue. Call [`Gh::comments`] to see whether it exists.
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
            // A question would wait for an answer until the time limit, and words around the JSON would make it
            // invalid.
            ("GH_PROMPT_DISABLED", "1"),
            ("GH_NO_UPDATE_NOTIFIER", "1"),
            ("GH_PAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
            // `gh` asks git about its working directory; git must not refresh the index there.
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("NO_COLOR", "1"),
            // The classification of failures reads words in English.
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

/// Deserializes an `http(s)` URL of printable ASCII, which is safe to show on a terminal and to store.
fn address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let is_one = text.starts_with("https://") || text.starts_with("http://");
    // It is stored in `publish.json` and printed: a control character could change the terminal.
    if is_one && text.len() <= 2000 && text.chars().all(|c| c.is_ascii_graphic()) {
        Ok(text)
    } else {
        Err(serde::de::Error::custom("not an http or https URL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pull(url: &str, state: &str) -> Result<Pull, serde_json::Error> {
        serde_json::from_value(serde_json::json!({
            "number": 3, "url": url, "state": state, "isDraft": true, "body": "",
            "headRefName": "pdca/7", "baseRefName": "main", "headRefOid": "c1",
            "isCrossRepository": false, "more": 1,
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
