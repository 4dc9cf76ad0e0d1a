//! What was gated goes to a remote.
//!
//! Success is read from the remote and from nothing else: before the push, because an earlier
//! answer may have been lost, and after it, because "everything up to date" is no proof.

use std::time::Duration;

use gix::{ObjectId, bstr::ByteSlice as _};
use pdca_process::Tool;
use thiserror::Error;

use super::proof;
use crate::{
    failure::{RefError, StoreError},
    fence::Fence,
    git::{Said, run},
    store::Store,
    verdict::Gated,
};

/// How long a push may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What is decided whatever the configuration of the user says.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Where to push.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The name of the remote.
    pub remote: &'a str,
    /// The branch there, without `refs/heads/`.
    pub branch: &'a str,
}

/// What came of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    /// The remote has it now.
    Pushed,
    /// The remote had it already: an earlier answer was lost.
    AlreadyThere,
    /// The remote is somewhere else: take a new base and gate again.
    Race {
        /// Where it is.
        at: ObjectId,
    },
    /// The remote has no such branch.
    NoBranch,
    /// It may work later.
    Transient {
        /// What git said.
        said: String,
    },
    /// It will not work as it is.
    Permanent {
        /// What the remote said.
        said: String,
    },
}

/// Why nothing was pushed.
#[derive(Debug, Error)]
pub enum PushError {
    /// A name that git would take for something else.
    #[error("{given:?} cannot be used as a {what}")]
    Name {
        /// `remote` or `branch`.
        what: &'static str,
        /// What was given.
        given: String,
    },
    /// What was to be pushed is not what was gated and sealed.
    #[error("what is to be pushed is not what was gated")]
    Refused(#[source] proof::Disproof),
    /// Another driver took over.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// git could not be run.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Pushes what was gated, if the remote is at exactly the gated base.
///
/// The remote is that of the user's configuration, with the user's credentials; hooks are not
/// run, nothing is asked at a terminal, and no tags, signatures or submodules go along.
pub fn push(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    to: Destination<'_>,
) -> Result<PushOutcome, PushError> {
    require_names(to)?;
    fence.verify(store)?;
    let candidate = &gated.candidate;
    proof::examine(store, gated, candidate.commit).map_err(|error| match error {
        proof::ProofError::Disproved(disproof) => PushError::Refused(disproof),
        proof::ProofError::Store(error) => PushError::Store(error),
    })?;
    let (old, new) = (candidate.base, candidate.commit);
    match remote_at(store, to)? {
        Remote::At(at) if at == new => return Ok(PushOutcome::AlreadyThere),
        Remote::At(at) if at == old => {}
        Remote::At(at) => return Ok(PushOutcome::Race { at }),
        Remote::Nothing => return Ok(PushOutcome::NoBranch),
        Remote::Silent(said) => return Ok(PushOutcome::Transient { said }),
    }
    let reference = format!("refs/heads/{}", to.branch);
    let lease = format!("--force-with-lease={reference}:{old}");
    let what = format!("{new}:{reference}");
    let args =
        ["push", "--porcelain", "--no-verify", "--no-follow-tags", &lease, "--", to.remote, &what];
    let said = run(&tool(store, &args))?;
    Ok(match remote_at(store, to)? {
        Remote::At(at) if at == new => PushOutcome::Pushed,
        Remote::At(at) if at == old => refusal(&said, &reference),
        Remote::At(at) => PushOutcome::Race { at },
        Remote::Nothing => PushOutcome::NoBranch,
        Remote::Silent(said) => PushOutcome::Transient { said },
    })
}

pub(super) enum Remote {
    At(ObjectId),
    Nothing,
    Silent(String),
}

pub(super) fn require_names(to: Destination<'_>) -> Result<(), PushError> {
    let bad = |what, given: &str| Err(PushError::Name { what, given: given.to_owned() });
    if to.remote.is_empty() || to.remote.starts_with('-') || to.remote.contains(char::is_control) {
        return bad("remote", to.remote);
    }
    let full = format!("refs/heads/{}", to.branch);
    // As a ref it would be legal; as the name of a branch git takes it for an option.
    if to.branch.starts_with('-') || gix::refs::FullName::try_from(full.as_str()).is_err() {
        return bad("branch", to.branch);
    }
    Ok(())
}

pub(super) fn remote_at(store: &Store, to: Destination<'_>) -> Result<Remote, StoreError> {
    let reference = format!("refs/heads/{}", to.branch);
    let said = run(&tool(store, &["ls-remote", "--refs", "--", to.remote, &reference]))?;
    if said.code != 0 {
        return Ok(Remote::Silent(said.stderr.trim().to_owned()));
    }
    // The remote matches by the end of the name, so another ref may be in the list as well.
    for line in said.stdout.lines() {
        if let Some((id, name)) = line.split_once_str("\t")
            && name == reference.as_bytes()
        {
            let form = |_| StoreError::Form { what: "the remote's list of refs".to_owned() };
            return Ok(Remote::At(ObjectId::from_hex(id).map_err(form)?));
        }
    }
    Ok(Remote::Nothing)
}

/// What a push that left the remote where it was has to say.
///
/// A line with `!` is the answer of a remote that was reached; without one it was not.
pub(super) fn refusal(said: &Said, reference: &str) -> PushOutcome {
    let ours = format!(":{reference}\t");
    let answer = said
        .stdout
        .lines()
        .map(|line| line.to_str_lossy())
        .find(|line| line.starts_with("!\t") && line.contains(&ours));
    let Some(answer) = answer else {
        return PushOutcome::Transient { said: said.stderr.trim().to_owned() };
    };
    let answer = answer.rsplit('\t').next().unwrap_or_default().to_owned();
    // Somebody else was at the ref in the same moment and has not moved it: it may work again.
    let passing = ["cannot lock ref", "failed to update ref", "stale info", "fetch first"];
    if passing.iter().any(|reason| answer.contains(reason)) {
        PushOutcome::Transient { said: answer }
    } else {
        PushOutcome::Permanent { said: answer }
    }
}

/// git in the target's own repository, because the remote is what the user says it is.
pub(super) fn tool(store: &Store, args: &[&str]) -> Tool {
    Tool::new("git")
        .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
        .args(args)
        .cwd(store.common_dir())
        .env("GIT_DIR", store.common_dir().as_str())
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C")
        .timeout(PATIENCE)
}
