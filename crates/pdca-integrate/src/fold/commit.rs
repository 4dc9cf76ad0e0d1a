//! Commits that come out the same whoever makes them, and whenever.

use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
};
use pdca_state::BundleId;

use crate::{failure::StoreError, store::Store};

/// What the trailer is called that names the bundle.
pub(crate) const TRAILER: &str = "Pdca-Sealed";
/// Headers that are true of the sealed commit alone.
pub(crate) const SIGNED: [&str; 3] = ["gpgsig", "gpgsig-sha256", "mergetag"];

/// Makes a sealed commit again on another parent.
pub(super) fn again(
    store: &Store,
    sealed: ObjectId,
    tree: ObjectId,
    onto: ObjectId,
    id: &BundleId,
) -> Result<ObjectId, StoreError> {
    let mut commit = store.read_commit(sealed)?;
    commit.tree = tree;
    commit.parents = [onto].into_iter().collect();
    commit.extra_headers.retain(|(name, _)| !SIGNED.iter().any(|signed| name == signed));
    commit.message = with_trailer(&commit.message, id);
    write(store, &commit)
}

/// Merges the head of a sealed change into the tip.
pub(super) fn merge(
    store: &Store,
    head: ObjectId,
    tree: ObjectId,
    onto: ObjectId,
    id: &BundleId,
) -> Result<ObjectId, StoreError> {
    let mut commit = store.read_commit(head)?;
    commit.tree = tree;
    commit.parents = [onto, head].into_iter().collect();
    commit.extra_headers.clear();
    let subject = commit.message.lines().next().unwrap_or_default().to_vec();
    let mut message = BString::from(format!("Merge {id}: "));
    message.extend_from_slice(&subject);
    commit.message = with_trailer(&message, id);
    write(store, &commit)
}

/// Whether a commit names the bundle it came from.
pub(super) fn has_trailer(
    store: &Store,
    commit: ObjectId,
    id: &BundleId,
) -> Result<bool, StoreError> {
    let wanted = trailer(id);
    Ok(store.read_commit(commit)?.message.lines().any(|line| line == wanted.as_bytes()))
}

fn trailer(id: &BundleId) -> String {
    format!("{TRAILER}: {id}")
}

pub(crate) fn write(store: &Store, commit: &gix::objs::Commit) -> Result<ObjectId, StoreError> {
    let repo = store.repo();
    let written = repo.write_object(commit);
    Ok(written.map_err(|source| StoreError::objects("write a commit", source))?.detach())
}

/// The message with the trailer at its end: in the last paragraph where that has trailers only.
pub(crate) fn with_trailer(message: &[u8], id: &BundleId) -> BString {
    let body = message.trim_end();
    let wanted = trailer(id);
    let mut paragraphs = body.rsplitn_str(2, "\n\n");
    let last = paragraphs.next().unwrap_or_default();
    let has_trailers = paragraphs.next().is_some() && last.lines().all(is_trailer);
    if has_trailers && last.lines().any(|line| line == wanted.as_bytes()) {
        return [body, b"\n"].concat().into();
    }
    let gap: &[u8] = if has_trailers { b"\n" } else { b"\n\n" };
    [body, gap, wanted.as_bytes(), b"\n"].concat().into()
}

fn is_trailer(line: &[u8]) -> bool {
    let Some((token, _)) = line.split_once_str(": ") else {
        return false;
    };
    !token.is_empty() && token.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::with_trailer;

    #[test]
    fn a_trailer_joins_its_kind_and_is_never_there_twice() {
        let id = "12".parse().unwrap();
        for (message, expected) in [
            ("subject\n", "subject\n\nPdca-Sealed: 12\n"),
            ("subject: words\n", "subject: words\n\nPdca-Sealed: 12\n"),
            ("s\n\nbody text\n\n\n", "s\n\nbody text\n\nPdca-Sealed: 12\n"),
            ("s\n\nA-B: c\n", "s\n\nA-B: c\nPdca-Sealed: 12\n"),
            ("s\n\nPdca-Sealed: 12\n", "s\n\nPdca-Sealed: 12\n"),
            ("", "\n\nPdca-Sealed: 12\n"),
        ] {
            assert_eq!(with_trailer(message.as_bytes(), &id), expected, "{message:?}");
        }
    }
}
