//! The report of publishing, as text and JSON.

use std::io::Write;

use pdca_forge::publish::{
    CommentOutcome, MergeOutcome, PublishDryRun, PublishStep, PublishedBundle, Would,
};
use pdca_state::BundleId;
use pdca_workspace::publish::PublishOutcome;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::printable;

use super::{Ended, Repeat};

/// The file of the comment, which may be drafted in the summary.
const COMMENT: &str = "tracker-comment.md";

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document<'a> {
    dry_run: bool,
    published: Vec<Item<'a>>,
    would: Vec<WouldItem<'a>>,
    failed: Vec<FailedItem<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Item<'a> {
    id: &'a str,
    key: &'a str,
    remote: &'a str,
    branch: &'a str,
    commit: &'a str,
    /// Null without a forge.
    pull_request: Option<PullItem<'a>>,
    comment: CommentItem<'a>,
    merge: MergeItem<'a>,
    done: Vec<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PullItem<'a> {
    number: u64,
    url: &'a str,
    state: &'static str,
    /// The branch that it is to be merged into.
    base: &'a str,
    /// The bundle whose branch that is, if the change stands on another one.
    stands_on: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MergeItem<'a> {
    /// `not-asked`, `merged`, `waits` or `refused`.
    state: &'static str,
    why: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CommentItem<'a> {
    state: &'static str,
    url: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WouldItem<'a> {
    id: &'a str,
    key: &'a str,
    remote: &'a str,
    branch: &'a str,
    commit: Option<&'a str>,
    repo: &'a str,
    base: &'a str,
    stands_on: Option<&'a str>,
    texts: &'a [&'static str],
    by_leaf: bool,
    /// The comment would be taken from §8 of the summary.
    drafted: bool,
    rows: &'a [String],
    would: Vec<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FailedItem<'a> {
    id: &'a str,
    exit: u8,
    error: String,
    hint: Option<&'a str>,
}

/// What was published, and what was not and why.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "Document<'static>"))]
pub(crate) struct PublishReport {
    pub(super) dry_run: bool,
    pub(super) ended: Vec<Ended>,
    pub(super) repeat: Repeat,
}

impl Report for PublishReport {
    const KIND: &'static str = "publish";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for one in &self.ended {
            match &one.outcome {
                Err(_) => {}
                Ok(PublishOutcome::Published(done)) => published(cx, done, self.repeat, out)?,
                Ok(PublishOutcome::Would(said)) => rehearsed(cx, said, out)?,
            }
        }
        Ok(())
    }
}

impl PublishReport {
    /// Returns what became of one accepted bundle in a line; an error if something is still to be done.
    pub(crate) fn line_of(&self, id: &BundleId) -> Result<String, String> {
        let ended = self.ended.iter().find(|one| one.id == *id);
        let again = format!("`{}` tries again", self.repeat.merging_command(id));
        match ended.map(|one| &one.outcome) {
            None => Ok(format!("{id} was closed without a change: nothing is published")),
            Some(Ok(PublishOutcome::Would(_))) => Ok(format!("{id} would be published")),
            Some(Err(failure)) => {
                let fault = failure.fault();
                let parts = std::iter::once(fault.message).chain(fault.hints);
                let why = parts.collect::<Vec<_>>().join("; ");
                Err(format!("{id} is accepted, and not published: {why}"))
            }
            Some(Ok(PublishOutcome::Published(done))) => {
                let place = match &done.pull {
                    Some(pull) => format!("{} ({})", printable(&pull.url), pull.state.as_str()),
                    None => format!("{} of {}", done.branch, printable(&done.remote)),
                };
                match &done.merge {
                    MergeOutcome::NotAsked | MergeOutcome::Merged => {
                        Ok(format!("{id} is published: {place}"))
                    }
                    MergeOutcome::Waits { why } | MergeOutcome::Refused { why } => {
                        let why = printable(why);
                        Err(format!("{id} is published and not merged: {place}: {why}; {again}"))
                    }
                }
            }
        }
    }
}

impl Serialize for PublishReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = Document {
            dry_run: self.dry_run,
            published: Vec::new(),
            would: Vec::new(),
            failed: Vec::new(),
        };
        for one in &self.ended {
            match &one.outcome {
                Ok(PublishOutcome::Published(done)) => document.published.push(item(done)),
                Ok(PublishOutcome::Would(said)) => document.would.push(would_item(said)),
                Err(failure) => {
                    let problem = failure.problems.first();
                    document.failed.push(FailedItem {
                        id: one.id.as_str(),
                        exit: failure.exit.code(),
                        error: problem.map(|problem| problem.what.clone()).unwrap_or_default(),
                        hint: problem.and_then(|problem| problem.hint.as_deref()),
                    });
                }
            }
        }
        document.serialize(serializer)
    }
}

fn item(done: &PublishedBundle) -> Item<'_> {
    let (state, url) = match &done.comment {
        CommentOutcome::Posted { url } => ("posted", url.as_deref()),
        CommentOutcome::Off => ("off", None),
        CommentOutcome::NoIssue => ("no-issue", None),
        CommentOutcome::Declined => ("declined", None),
    };
    let (merge, why) = match &done.merge {
        MergeOutcome::NotAsked => ("not-asked", None),
        MergeOutcome::Merged => ("merged", None),
        MergeOutcome::Waits { why } => ("waits", Some(why.as_str())),
        MergeOutcome::Refused { why } => ("refused", Some(why.as_str())),
    };
    Item {
        id: done.id.as_str(),
        key: &done.key,
        remote: &done.remote,
        branch: &done.branch,
        commit: &done.commit,
        pull_request: done.pull.as_ref().map(|pull| PullItem {
            number: pull.number,
            url: &pull.url,
            state: pull.state.as_str(),
            base: &pull.base,
            stands_on: pull.stands_on.as_ref().map(AsRef::as_ref),
        }),
        merge: MergeItem { state: merge, why },
        comment: CommentItem { state, url },
        done: done.news.iter().map(|news| news.as_str()).collect(),
    }
}

fn would_item(said: &PublishDryRun) -> WouldItem<'_> {
    WouldItem {
        id: said.id.as_str(),
        key: &said.key,
        remote: &said.remote,
        branch: &said.branch,
        commit: said.commit.as_deref(),
        repo: &said.repo,
        base: &said.base,
        texts: &said.texts,
        by_leaf: said.by_leaf,
        drafted: said.drafted,
        stands_on: said.stands_on.as_ref().map(AsRef::as_ref),
        rows: &said.rows,
        would: said.would.iter().map(Would::as_str).collect(),
    }
}

fn published(
    cx: &Context<'_>,
    done: &PublishedBundle,
    repeat: Repeat,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let p = cx.out;
    let id = &done.id;
    let word = if done.news.is_empty() { p.faint("out already") } else { p.good("published") };
    match &done.pull {
        Some(pull) => {
            let state = pull.state.as_str();
            writeln!(out, "{word}  {}  {} ({state})", p.strong(id), printable(&pull.url))?;
            if let Some(below) = &pull.stands_on {
                writeln!(out, "  base     {}, the branch of {below}", printable(&pull.base))?;
            }
        }
        None => writeln!(out, "{word}  {}  without a forge", p.strong(id))?,
    }
    let short = done.commit.get(..12).unwrap_or(&done.commit);
    writeln!(out, "  branch   {} of {} at {short}", done.branch, printable(&done.remote))?;
    match &done.comment {
        CommentOutcome::Posted { url: Some(url) } => {
            writeln!(out, "  comment  {}", printable(url))?;
        }
        CommentOutcome::Posted { url: None } => writeln!(out, "  comment  posted")?,
        CommentOutcome::Off => {}
        CommentOutcome::Declined => {
            writeln!(out, "  comment  {}", p.faint("none: it was removed from §8"))?;
        }
        CommentOutcome::NoIssue => {
            let why = format!("none: {id} is no number of an issue; see `comments` in [publish]");
            writeln!(out, "  comment  {}", p.warn(why))?;
        }
    }
    let again = format!("`{}` tries again", repeat.merging_command(id));
    match &done.merge {
        MergeOutcome::NotAsked | MergeOutcome::Merged => {}
        MergeOutcome::Waits { why } => {
            writeln!(out, "  merge    {}; {again}", p.warn(format!("waits: {}", printable(why))))?;
        }
        MergeOutcome::Refused { why } => {
            let why = format!("refused: {}", printable(why));
            writeln!(out, "  merge    {}; mend that, then {again}", p.bad(why))?;
        }
    }
    let news: Vec<&str> = done.news.iter().copied().map(PublishStep::as_str).collect();
    if !news.is_empty() {
        writeln!(out, "  {}", p.faint(news.join(", ")))?;
    }
    Ok(())
}

fn rehearsed(cx: &Context<'_>, said: &PublishDryRun, out: &mut dyn Write) -> Result<(), Failure> {
    let p = cx.out;
    let id = &said.id;
    if said.would.is_empty() {
        writeln!(out, "{}  {}", p.faint("out already"), p.strong(id))?;
        return Ok(());
    }
    writeln!(out, "{}  {}", p.accent("would publish"), p.strong(id))?;
    if !said.texts.is_empty() {
        let by = if said.by_leaf { "by the publisher" } else { "from the brief and the summary" };
        let is_drafted = |text: &&str| said.drafted && *text == COMMENT;
        let (drafted, others): (Vec<&str>, Vec<&str>) =
            said.texts.iter().copied().partition(is_drafted);
        if !others.is_empty() {
            writeln!(out, "  write {} {by}", others.join(", "))?;
        }
        if !drafted.is_empty() {
            writeln!(out, "  write {COMMENT} from §8 of the summary")?;
        }
    }
    if !said.rows.is_empty() {
        writeln!(out, "  run {} over the sealed commit", said.rows.join(", "))?;
    }
    for would in &said.would {
        let text = match would {
            Would::Push => {
                let what = said.commit.as_deref().and_then(|commit| commit.get(..12));
                let what = what.unwrap_or("the sealed change");
                format!("push {what} to {} of {}", said.branch, said.remote)
            }
            Would::Open => {
                let (repo, base) = (&said.repo, &said.base);
                format!("open a draft pull request in {repo} onto {base}")
            }
            Would::Reopen { url } => format!("open {url} again"),
            Would::Comment => format!("comment on {id}"),
            Would::Adopt { url } => format!("take over {url}, which the builder opened"),
            Would::Retarget { base } => format!("have it merged into {base}"),
            Would::Merge => "merge it, if its checks passed".to_owned(),
            Would::Ready => "mark the pull request as ready".to_owned(),
        };
        writeln!(out, "  {}", printable(&text))?;
    }
    Ok(())
}
