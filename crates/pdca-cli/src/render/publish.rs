//! A publication as text, and its failures with hint and exit code.

use std::io::Write;

use pdca_forge::publish::{
    CommentOutcome, MergeOutcome, PublishDryRun, PublishStep, PublishedBundle, Would,
};
use pdca_state::BundleId;
use pdca_workspace::publish::{FailedPublication, PublicationCause, Publications};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::explain::publish::explain;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::printable;

/// The file of the comment, which may be drafted in the summary.
const COMMENT: &str = "tracker-comment.md";

/// A publication, with the words for what failed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PublishReport {
    #[serde(flatten)]
    publication: Publications,
    failed: Vec<FailedItem>,
    #[serde(skip)]
    failures: Vec<(BundleId, Failure)>,
}

/// A bundle that was not published, or not completely.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FailedItem {
    id: BundleId,
    exit: u8,
    error: String,
    hint: Option<String>,
}

impl PublishReport {
    pub(crate) fn of(mut publication: Publications) -> Self {
        let cause = publication.cause;
        let failed = std::mem::take(&mut publication.failed).into_iter();
        let failures: Vec<(BundleId, Failure)> = failed
            .map(|FailedPublication { bundle, error }| {
                (bundle.id().clone(), explain(error, &bundle, cause))
            })
            .collect();
        let item = |(id, failure): &(BundleId, Failure)| FailedItem {
            id: id.clone(),
            exit: failure.exit.code(),
            error: failure.sentence(),
            hint: failure.problems.first().and_then(|problem| problem.hint.clone()),
        };
        Self { failed: failures.iter().map(item).collect(), failures, publication }
    }

    pub(crate) fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.failures.iter().map(|(_, failure)| failure)
    }

    /// Returns the most severe exit code.
    pub(crate) fn exit(&self) -> Exit {
        let would =
            self.publication.would.iter().map(|predicted| match predicted.would.as_slice() {
                [] => Exit::NothingToDo,
                [..] => Exit::Done,
            });
        let published = self.publication.published.iter().map(|done| match &done.merge {
            // Nothing is lost, but a merge was asked for and is still to come.
            MergeOutcome::Waits { .. } | MergeOutcome::Refused { .. } => Exit::Waiting,
            MergeOutcome::NotAsked | MergeOutcome::Merged if done.news.is_empty() => {
                Exit::NothingToDo
            }
            MergeOutcome::NotAsked | MergeOutcome::Merged => Exit::Done,
        });
        let failed = self.failures().map(|failure| failure.exit);
        let exits: Vec<Exit> = would.chain(published).chain(failed).collect();
        let grave = [
            Exit::Interrupted,
            Exit::RecoveryBlocked,
            Exit::GateRed,
            Exit::Unexpected,
            Exit::Usage,
            Exit::Waiting,
            Exit::Done,
        ];
        grave.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::NothingToDo)
    }

    /// Returns the exit code of decisions that this publication followed: they were made, whatever was out already.
    pub(crate) fn exit_after_decisions(&self) -> Exit {
        let exit = self.exit();
        if exit == Exit::NothingToDo { Exit::Done } else { exit }
    }

    /// Returns what became of one accepted bundle in a line; an error if something is still to be done.
    pub(crate) fn line_of(&self, id: &BundleId) -> Result<String, String> {
        if let Some((_, failure)) = self.failures.iter().find(|(failed, _)| failed == id) {
            let fault = failure.fault();
            let parts = std::iter::once(fault.message).chain(fault.hints);
            let why = parts.collect::<Vec<_>>().join("; ");
            return Err(format!("{id} is accepted, and not published: {why}"));
        }
        if self.publication.would.iter().any(|predicted| predicted.id == *id) {
            return Ok(format!("{id} would be published"));
        }
        let Some(done) = self.publication.published.iter().find(|done| done.id == *id) else {
            return Ok(format!("{id} was closed without a change: nothing is published"));
        };
        let place = match &done.pull {
            Some(pull) => format!("{} ({})", printable(&pull.url), pull.state.as_str()),
            None => format!("{} of {}", done.branch, printable(&done.remote)),
        };
        match &done.merge {
            MergeOutcome::NotAsked | MergeOutcome::Merged => {
                Ok(format!("{id} is published: {place}"))
            }
            MergeOutcome::Waits { why } | MergeOutcome::Refused { why } => {
                let (why, command) = (printable(why), merging_command(self.publication.cause, id));
                let again = format!("`{command}` tries again");
                Err(format!("{id} is published and not merged: {place}: {why}; {again}"))
            }
        }
    }
}

/// Returns the command that repeats a publication.
pub(crate) fn repeating_command(cause: PublicationCause, id: &BundleId) -> String {
    match cause {
        PublicationCause::Command => format!("pdca publish {id}"),
        PublicationCause::Acceptance => format!("pdca signoff {id} accept"),
    }
}

/// Returns the command that repeats a publication, and merges.
fn merging_command(cause: PublicationCause, id: &BundleId) -> String {
    match cause {
        PublicationCause::Command => format!("pdca publish {id} --ready"),
        PublicationCause::Acceptance => repeating_command(cause, id),
    }
}

impl Report for PublishReport {
    const KIND: &'static str = "publish";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for predicted in &self.publication.would {
            rehearsed(cx, predicted, out)?;
        }
        for done in &self.publication.published {
            published(cx, done, self.publication.cause, out)?;
        }
        Ok(())
    }
}

fn published(
    cx: &Context<'_>,
    done: &PublishedBundle,
    cause: PublicationCause,
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
    let again = format!("`{}` tries again", merging_command(cause, id));
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

fn rehearsed(
    cx: &Context<'_>,
    predicted: &PublishDryRun,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let p = cx.out;
    let id = &predicted.id;
    if predicted.would.is_empty() {
        writeln!(out, "{}  {}", p.faint("out already"), p.strong(id))?;
        return Ok(());
    }
    writeln!(out, "{}  {}", p.accent("would publish"), p.strong(id))?;
    if !predicted.texts.is_empty() {
        let by =
            if predicted.by_leaf { "by the publisher" } else { "from the brief and the summary" };
        let is_drafted = |text: &&str| predicted.drafted && *text == COMMENT;
        let (drafted, others): (Vec<&str>, Vec<&str>) =
            predicted.texts.iter().copied().partition(is_drafted);
        if !others.is_empty() {
            writeln!(out, "  write {} {by}", others.join(", "))?;
        }
        if !drafted.is_empty() {
            writeln!(out, "  write {COMMENT} from §8 of the summary")?;
        }
    }
    if !predicted.rows.is_empty() {
        writeln!(out, "  run {} over the sealed commit", predicted.rows.join(", "))?;
    }
    for would in &predicted.would {
        let text = match would {
            Would::Push => {
                let what = predicted.commit.as_deref().and_then(|commit| commit.get(..12));
                let what = what.unwrap_or("the sealed change");
                format!("push {what} to {} of {}", predicted.branch, predicted.remote)
            }
            Would::Open => {
                let (repo, base) = (&predicted.repo, &predicted.base);
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
