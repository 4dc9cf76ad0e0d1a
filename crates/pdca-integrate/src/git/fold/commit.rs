//! Reproducible commits: the same on every machine and at every time.
//!
//! Everything in a folded commit comes from the sealed commit, the seal and the parent. Author and author date
//! are kept. The committer is the person who accepted the change, at the time of the acceptance, but never
//! earlier than the parent's committer date: git's range walks (`main..feature`, `--since`) rely on dates that
//! do not go back.

use std::collections::BTreeSet;

use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
};

use pdca_state::{CHECKED_TRAILER, SEALED_TRAILER as TRAILER, has_claims, quote_claims};

use crate::{
    git::durable::LooseObjects, git::failure::StoreError, git::seal::Sealed, git::store::Store,
    queue::plan::Form,
};

/// Headers that are valid for the sealed commit only.
pub(crate) const SIGNED: [&str; 3] = ["gpgsig", "gpgsig-sha256", "mergetag"];

/// Recreates a sealed commit on another parent.
pub(super) fn again(
    store: &Store,
    form: Form,
    sealed: &Sealed,
    source: ObjectId,
    tree: ObjectId,
    onto: ObjectId,
) -> Result<ObjectId, StoreError> {
    let mut commit = store.read_commit(source)?;
    commit.tree = tree;
    commit.parents = [onto].into_iter().collect();
    commit.extra_headers.retain(|(name, _)| !SIGNED.iter().any(|signed| name == signed));
    finish(store, form, sealed, commit, onto)
}

/// Merges the head of a sealed change into the tip.
pub(super) fn merge(
    store: &Store,
    form: Form,
    sealed: &Sealed,
    head: ObjectId,
    tree: ObjectId,
    onto: ObjectId,
) -> Result<ObjectId, StoreError> {
    // The merge commit gets the author and the date of the head, so it too depends on the seal alone.
    let mut commit = store.read_commit(head)?;
    let record = sealed.record();
    let head = match form {
        // Messages stay as they are: old certificates must verify, and unfinished work keeps its own.
        Form::First | Form::Plain => head,
        Form::Dated => quoted_line(store, record.base, &record.commits)?.unwrap_or(head),
    };
    commit.tree = tree;
    commit.parents = [onto, head].into_iter().collect();
    commit.extra_headers.clear();
    let subject = commit.message.lines().next().unwrap_or_default().to_vec();
    let mut message = BString::from(format!("Merge {}: ", sealed.id()));
    message.extend_from_slice(&subject);
    commit.message = message;
    finish(store, form, sealed, commit, onto)
}

fn finish(
    store: &Store,
    form: Form,
    sealed: &Sealed,
    mut commit: gix::objs::Commit,
    onto: ObjectId,
) -> Result<ObjectId, StoreError> {
    // From the parent and not from a clock, so that a fold on another machine writes the same commit (decision
    // 019).
    let before = store.read_commit(onto)?.committer.time.seconds;
    match form {
        Form::Plain => {
            let committed = &mut commit.committer.time;
            committed.seconds = committed.seconds.max(before);
        }
        Form::First => {
            let trailer = format!("{TRAILER}: {}", sealed.id());
            commit.message = with_trailers(&commit.message, [trailer.as_str()]);
        }
        Form::Dated => {
            let message = quote_claims(&commit.message);
            let own = marker(sealed);
            let lines = sealed.record().trailers.iter().map(String::as_str);
            commit.message = with_trailers(&message, lines.chain([own.as_str()]));
            if let Some(by) = &sealed.record().accepted {
                commit.committer.name = by.name.as_str().into();
                commit.committer.email = by.email.as_str().into();
                commit.committer.time = gix::date::Time { seconds: by.seconds, offset: 0 };
            }
            let committed = &mut commit.committer.time;
            committed.seconds = committed.seconds.max(before);
            // The first version sealed commits with an author date of 1970, which is meaningless.
            if commit.author.time.seconds == 0 {
                commit.author.time = commit.committer.time;
            }
        }
    }
    write(store, &commit)
}

/// Returns the trailer line that names the change of a commit.
pub(crate) fn marker(sealed: &Sealed) -> String {
    if sealed.is_signed() {
        format!("{TRAILER}: {} {}", sealed.id(), sealed.digest())
    } else {
        format!("{CHECKED_TRAILER}: {} {}", sealed.id(), sealed.record().head)
    }
}

/// Returns true if a commit names its change in the given form.
pub(super) fn is_marked(
    store: &Store,
    form: Form,
    commit: ObjectId,
    sealed: &Sealed,
) -> Result<bool, StoreError> {
    let wanted = match form {
        Form::Plain => return Ok(true),
        Form::First => format!("{TRAILER}: {}", sealed.id()),
        Form::Dated => marker(sealed),
    };
    Ok(store.read_commit(commit)?.message.lines().any(|line| line == wanted.as_bytes()))
}

pub(crate) fn write(store: &Store, commit: &gix::objs::Commit) -> Result<ObjectId, StoreError> {
    require_dates(commit)?;
    let repo = store.repo();
    let written = repo.write_object(commit);
    Ok(written.map_err(|source| StoreError::objects("write a commit", source))?.detach())
}

/// Fails for a commit with a date before 1970, which git cannot check and strict remotes refuse.
fn require_dates(commit: &gix::objs::Commit) -> Result<(), StoreError> {
    [&commit.author, &commit.committer]
        .into_iter()
        .try_for_each(|who| require_date(who.time.seconds))
}

/// Fails for a time before 1970, in seconds since then.
pub(crate) fn require_date(seconds: i64) -> Result<(), StoreError> {
    if seconds < 0 { Err(StoreError::BeforeEpoch { seconds }) } else { Ok(()) }
}

/// Recreates a line of commits on `onto` with claims of identity in their messages quoted, and returns the last one.
/// Returns `None` if no message claims anything, so that the commits can stay as they are.
///
/// A builder writes its own messages, and must not be able to claim that another change has landed.
pub(crate) fn quoted_line(
    store: &Store,
    onto: ObjectId,
    commits: &[ObjectId],
) -> Result<Option<ObjectId>, StoreError> {
    let mut any = false;
    for id in commits {
        any |= has_claims(&store.read_commit(*id)?.message);
    }
    if any { line_on(store, onto, commits) } else { Ok(None) }
}

/// Recreates a line of commits on `onto`, with their trees and with claims of identity quoted. Returns the last one.
pub(crate) fn line_on(
    store: &Store,
    onto: ObjectId,
    commits: &[ObjectId],
) -> Result<Option<ObjectId>, StoreError> {
    let (mut top, mut made) = (None, BTreeSet::new());
    for id in commits {
        let mut commit = store.read_commit(*id)?;
        commit.parents = [top.unwrap_or(onto)].into_iter().collect();
        // A signature is about other bytes than these.
        commit.extra_headers.retain(|(name, _)| !SIGNED.iter().any(|signed| name == signed));
        commit.message = quote_claims(&commit.message).into();
        top = Some(write(store, &commit)?);
        made.extend(top);
    }
    // Before a ref names them. The other objects of a sealed change were synced when it was sealed.
    LooseObjects::of(store).sync_objects(&made)?;
    Ok(top)
}

/// Appends trailers to a message, in the last paragraph if that contains only trailers. Existing ones are not
/// repeated.
pub(crate) fn with_trailers<'a>(
    message: &[u8],
    lines: impl IntoIterator<Item = &'a str>,
) -> BString {
    let mut text: Vec<u8> = message.trim_end().to_vec();
    for wanted in lines {
        let mut paragraphs = text.rsplitn_str(2, "\n\n");
        let last = paragraphs.next().unwrap_or_default();
        // A message of one paragraph has no trailers: its only line is the subject, even if that looks like
        // one.
        let has_trailers = paragraphs.next().is_some() && last.lines().all(is_trailer);
        if has_trailers && last.lines().any(|line| line == wanted.as_bytes()) {
            continue;
        }
        text.extend_from_slice(if has_trailers { b"\n" } else { b"\n\n" });
        text.extend_from_slice(wanted.as_bytes());
    }
    text.push(b'\n');
    text.into()
}

/// Returns true if a line has the form of a trailer.
pub(crate) fn is_trailer(line: &[u8]) -> bool {
    let Some((token, _)) = line.split_once_str(": ") else {
        return false;
    };
    !token.is_empty() && token.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::with_trailers;

    #[test]
    fn a_trailer_joins_its_kind_and_is_never_there_twice() {
        for (message, expected) in [
            ("subject\n", "subject\n\nPdca-Sealed: 12\n"),
            ("subject: words\n", "subject: words\n\nPdca-Sealed: 12\n"),
            ("s\n\nbody text\n\n\n", "s\n\nbody text\n\nPdca-Sealed: 12\n"),
            ("s\n\nA-B: c\n", "s\n\nA-B: c\nPdca-Sealed: 12\n"),
            ("s\n\nPdca-Sealed: 12\n", "s\n\nPdca-Sealed: 12\n"),
            ("", "\n\nPdca-Sealed: 12\n"),
        ] {
            let made = with_trailers(message.as_bytes(), ["Pdca-Sealed: 12"]);
            assert_eq!(made, expected, "{message:?}");
        }
    }

    #[test]
    fn several_trailers_make_one_paragraph() {
        let made = with_trailers(b"s\n", ["Fixes: #1", "Pdca-Sealed: 1 ab"]);
        assert_eq!(made, "s\n\nFixes: #1\nPdca-Sealed: 1 ab\n");
    }
}
