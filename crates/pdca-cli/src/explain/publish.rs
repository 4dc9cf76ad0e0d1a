//! Adds remedies to the errors of publishing.

use pdca_forge::publish::{ForgeError, PublishError};
use pdca_state::{Artifact, Bundle, State};
use pdca_workspace::publish::{PublicationCause, PublicationError};

use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::render::publish::repeating_command;
use crate::session;

/// Explains why a bundle was not published, or not completely.
pub(crate) fn explain(
    error: PublicationError,
    bundle: &Bundle,
    cause: PublicationCause,
) -> Failure {
    let command = repeating_command(cause, bundle.id());
    let told = |exit| Failure::from_error(exit, &error).detail("nothing was published");
    match error {
        PublicationError::Red { .. } => {
            told(Exit::GateRed).hint(format!("mend what the row is about, then `{command}` again"))
        }
        PublicationError::Undecided { .. } => told(Exit::Waiting).hint(
            "a row that blocks must come to a verdict here; `pdca doctor` tells what this machine lacks",
        ),
        PublicationError::Publish(error) => refused(error, bundle, &command),
        PublicationError::Lock(error) => session::refused(&error),
        PublicationError::Beat(error) => session::explain(bundle, *error),
    }
}

/// Explains what is in the way of a change at its remote, its forge or its tracker.
fn refused(error: PublishError, bundle: &Bundle, command: &str) -> Failure {
    let id = bundle.id();
    let again = format!("`{command}` goes on from here");
    let plain = Failure::from_error(Exit::Unexpected, &error);
    let told = |exit| Failure::of(exit, plain.problems.clone());
    match error {
        PublishError::Interrupted => told(Exit::Interrupted).hint(again),
        PublishError::NotAccepted { state, .. } => told(Exit::Waiting).hint(accept(bundle, state)),
        PublishError::NoChange { .. } => {
            told(Exit::Usage).hint(format!("`pdca status {id}` shows how it was closed"))
        }
        PublishError::Unsealed { .. } => told(Exit::Waiting).hint(format!(
            "`pdca integrate {id} --seal --dry-run` looks; without `--dry-run` it seals what is still what was checked"
        )),
        PublishError::Drifted { .. } => told(Exit::RecoveryBlocked)
            .at(FilePosition::file(bundle.path(Artifact::Seal)))
            .hint("put back what was sealed; nothing else is published"),
        PublishError::PublishedBefore { branch, .. } => told(Exit::NothingToDo).hint(format!(
            "another tool opened it from `{branch}`; to publish it here too, move publish.json out of the bundle"
        )),
        PublishError::Landed { .. } => told(Exit::NothingToDo)
            .hint("there is nothing left to show; push that branch, if the remote lacks it"),
        PublishError::TargetBranch(error) => crate::explain::integrate::standing(&error),
        PublishError::Root(error) => error.into(),
        PublishError::NoTarget { .. } => {
            told(Exit::Usage).hint("[[targets]] in pdca.toml names the repositories")
        }
        PublishError::NoRepository { target } => told(Exit::Usage)
            .hint(format!("add `repo = \"owner/repo\"` to the [[targets]] of `{target}` in pdca.toml")),
        PublishError::Branch { .. } | PublishError::OwnTarget { .. } => told(Exit::Usage)
            .hint("set `branch = \"pdca/{id}\"` in [publish]; nothing was pushed"),
        PublishError::Text { file, .. } => told(Exit::Usage)
            .at(FilePosition::file(bundle.dir().join(file)))
            .hint("write it, or remove it to have it made again"),
        PublishError::Unasked { remote, commits, supports, .. } => {
            let failure =
                commits.into_iter().fold(told(Exit::Waiting), Failure::detail);
            let failure = failure.detail("nothing was pushed");
            let ids: Vec<String> = supports.iter().map(ToString::to_string).collect();
            failure.hint(if ids.is_empty() {
                format!(
                    "push the branch to {remote} first, or `pdca publish {id} --include-base` sends them along"
                )
            } else {
                format!(
                    "`pdca publish {} {id}` makes a stack of pull requests; `--include-base` sends them along",
                    ids.join(" ")
                )
            })
        }
        PublishError::Foreign { remote, branch, .. } => told(Exit::RecoveryBlocked)
            .detail("nothing was forced")
            .hint(format!(
                "look at it (`git fetch {remote} {branch}`); remove the branch there, or set another pattern in [publish]"
            )),
        PublishError::ForeignPull { .. } => told(Exit::RecoveryBlocked)
            .hint("close it, or set another pattern for `branch` in [publish]; where the builder may open drafts, `builder_pushes = true` adopts them"),
        PublishError::Closed { .. } => told(Exit::Waiting)
            .hint("open it again there, or remove its branch there and publish again"),
        PublishError::Remote { remote, .. } => told(Exit::Unexpected)
            .hint(format!("`git ls-remote {remote}` in the target shows whether it answers; {again}")),
        PublishError::Outside(outside) => self::outside(&outside, &again),
        PublishError::Tracker(error) => self::outside(&error, &again)
            .detail("this is about the comment in the tracker")
            .hint(format!(
                "{again}; `comments` in [publish] says who is told, `\"off\"` nobody"
            )),
        PublishError::Offer(pdca_integrate::OfferError::Base { .. }) => {
            told(Exit::RecoveryBlocked).hint(format!(
                "the branch below was rewritten; remove `stack` from {}, and publish again",
                Artifact::Publish.file_name()
            ))
        }
        PublishError::Offer(_) => told(Exit::Usage)
            .at(FilePosition::file(bundle.path(Artifact::CommitMessage)))
            .hint("write a message, or remove the file to have it made again"),
        PublishError::Push(_) | PublishError::Store(_) => {
            told(Exit::Unexpected).hint("`pdca doctor` looks at the repositories")
        }
        PublishError::Load(error) => error.into(),
        PublishError::Write(error) => error.into(),
    }
}

/// Returns the way to get an unaccepted bundle accepted.
fn accept(bundle: &Bundle, state: State) -> String {
    let id = bundle.id();
    match state {
        State::AwaitingSignoff => {
            format!(
                "`pdca signoff {id} accept` accepts it; `pdca signoff {id} show` is what to look at"
            )
        }
        State::Unplanned | State::Resolved | State::Discontinued => {
            format!("`pdca why {id}` says what it waits for")
        }
        State::Planned | State::Built | State::Checked | State::Iterate(_) | State::Complete => {
            format!("`pdca run {id}`, then `pdca signoff {id} accept`")
        }
    }
}

/// Explains an error of the forge or the tracker.
fn outside(error: &ForgeError, again: &str) -> Failure {
    let told = |exit| Failure::from_error(exit, error);
    match error {
        ForgeError::Missing { program } => told(Exit::Usage).hint(format!(
            "install `{program}` (https://cli.github.com), or name it as `gh` in [publish]; nothing was pushed"
        )),
        ForgeError::NotLoggedIn { .. } => {
            told(Exit::Usage).hint("`gh auth login`, or set GH_TOKEN; then publish again")
        }
        ForgeError::Passing { .. } | ForgeError::Unseen { .. } => {
            told(Exit::Unexpected).hint(format!("wait a moment; {again}"))
        }
        ForgeError::Refused { .. } | ForgeError::Run { .. } | ForgeError::Answer { .. } => {
            told(Exit::Unexpected).hint(format!("mend that; {again}"))
        }
        ForgeError::Interrupted => told(Exit::Interrupted).hint(again),
    }
}
