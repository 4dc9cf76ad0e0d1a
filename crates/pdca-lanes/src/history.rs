//! Commits and refs of a lane.

use gix::{
    ObjectId,
    refs::{
        FullName,
        transaction::{PreviousValue, RefEdit},
    },
};

use crate::{failure::LaneError, lane::CommitSignature};

pub(crate) fn head(repo: &gix::Repository) -> Result<Option<ObjectId>, LaneError> {
    let head = repo.head().map_err(|source| LaneError::objects("read HEAD", source))?;
    Ok(head.id().map(gix::Id::detach))
}

pub(crate) fn find_commit(repo: &gix::Repository, commit: &str) -> Result<ObjectId, LaneError> {
    let absent = || LaneError::NoSuchCommit { commit: commit.to_owned() };
    let unreadable = |source| LaneError::objects("read a commit", source);
    // Only a full id: a name such as `HEAD` could be moved by a process in the lane.
    let id = ObjectId::from_hex(commit.as_bytes()).map_err(|_| absent())?;
    let found = repo.try_find_object(id).map_err(unreadable)?.ok_or_else(absent)?;
    if found.kind != gix::object::Kind::Commit {
        return Err(absent());
    }
    Ok(id)
}

pub(crate) fn tree_of(repo: &gix::Repository, commit: ObjectId) -> Result<ObjectId, LaneError> {
    let tree = repo.find_commit(commit).and_then(|commit| commit.tree_id().map(gix::Id::detach));
    tree.map_err(|source| LaneError::objects("read a commit", source))
}

pub(crate) fn seconds_of(repo: &gix::Repository, commit: ObjectId) -> i64 {
    repo.find_commit(commit)
        .ok()
        .and_then(|commit| commit.time().ok())
        .map_or(0, |time| time.seconds)
}

pub(crate) fn write_commit(
    repo: &gix::Repository,
    message: &str,
    tree: ObjectId,
    parent: ObjectId,
    by: &CommitSignature<'_>,
) -> Result<ObjectId, LaneError> {
    let who = gix::actor::Signature {
        name: by.name.into(),
        email: by.email.into(),
        // UTC: the time zone of the host would be part of the commit id.
        time: gix::date::Time { seconds: by.seconds, offset: 0 },
    };
    let commit = gix::objs::Commit {
        tree,
        parents: [parent].into_iter().collect(),
        author: who.clone(),
        committer: who,
        encoding: None,
        message: message.into(),
        extra_headers: Vec::new(),
    };
    let id = repo
        .write_object(&commit)
        .map_err(|source| LaneError::objects("write a commit", source))?;
    Ok(id.detach())
}

pub(crate) fn keep_rescue(
    repo: &gix::Repository,
    name: &str,
    commit: ObjectId,
) -> Result<(), LaneError> {
    let first = rescue_ref(name);
    for count in 1.. {
        let name = if count == 1 { first.clone() } else { format!("{first}.{count}") };
        let taken = repo
            .try_find_reference(name.as_str())
            .map_err(|source| LaneError::objects("read a ref", source))?;
        match taken.and_then(|taken| taken.try_id().map(gix::Id::detach)) {
            Some(id) if id == commit => return Ok(()),
            Some(_) => {}
            None => return move_ref(repo, &name, commit, PreviousValue::MustNotExist, false),
        }
    }
    Ok(())
}

/// Returns the ref under which rescued work is kept.
pub(crate) fn rescue_ref(name: &str) -> String {
    format!("refs/pdca/rescue/{name}")
}

/// Turns a name into a legal ref component and path component, unchanged where possible.
pub(crate) fn ref_component(name: &str) -> String {
    /// Leaves room in a file name for a number and for `.lock`.
    const LONGEST: usize = 150;
    if name.is_empty() {
        return "unknown".to_owned();
    }
    let mut legal = String::with_capacity(name.len().min(LONGEST));
    for letter in name.chars() {
        if legal.len() + letter.len_utf8() > LONGEST {
            break;
        }
        let odd = letter.is_control() || " ~^:?*[\\/{".contains(letter);
        // A ref component has no leading dot and no two dots in a row.
        let stray = letter == '.' && (legal.is_empty() || legal.ends_with('.'));
        legal.push(if odd || stray { '_' } else { letter });
    }
    for end in [".lock", "."] {
        if let Some(stem) = legal.strip_suffix(end) {
            legal = format!("{stem}_{}", end.trim_start_matches('.'));
        }
    }
    legal
}

/// Sets a ref; with `through`, follows HEAD to its branch.
pub(crate) fn move_ref(
    repo: &gix::Repository,
    name: &str,
    commit: ObjectId,
    expected: PreviousValue,
    through: bool,
) -> Result<(), LaneError> {
    let full = FullName::try_from(name).map_err(|_| LaneError::Name { name: name.to_owned() })?;
    edit(repo, RefEdit::update(full, commit, expected, "pdca").with_deref(through))
}

/// Edits a ref with a fixed author and time, so that the same change writes the same bytes.
pub(crate) fn edit(repo: &gix::Repository, edit: RefEdit) -> Result<(), LaneError> {
    let nobody = gix::actor::SignatureRef {
        name: "pdca".into(),
        email: "lane@pdca.invalid".into(),
        time: "0 +0000",
    };
    let moved = repo.edit_references_as([edit], Some(nobody));
    moved.map(drop).map_err(|source| LaneError::objects("set a ref", source))
}
