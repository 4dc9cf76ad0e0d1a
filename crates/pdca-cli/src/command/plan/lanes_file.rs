//! `lanes.json` on disk: read whole or refused, replaced and never torn, and whether it is current.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use pdca_dag::{ItemState, LanesFile, LanesFileError};
use pdca_driver::{Batch, WorkspaceConfig};
use pdca_state::{BundleId, files};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Place};

/// The file, beside `pdca.toml`.
pub(crate) const FILE: &str = "lanes.json";

/// More than any number of bundles needs.
const MAX_LEN: u64 = 64 << 20;

/// Whether what is written is what would be written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Currency {
    /// There is no file.
    Absent,
    /// It was made from what the briefs declare now.
    Current,
    /// The briefs declare something else by now.
    Stale,
}

impl Currency {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Currency::Absent => "absent",
            Currency::Current => "current",
            Currency::Stale => "stale",
        }
    }
}

/// A `lanes.json` that is there and makes sense.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) file: LanesFile,
}

impl Kept {
    /// Reads the file; `None` where there is none. One that is damaged is an error: planning as if
    /// it were not there would move started work.
    pub(crate) fn load(cx: &Context<'_>) -> Result<Option<Self>, Failure> {
        let path = path(cx)?;
        let Some(bytes) = files::read_bounded(&path, MAX_LEN)? else { return Ok(None) };
        match LanesFile::parse(&bytes) {
            Ok(file) => Ok(Some(Self { file })),
            Err(error) => {
                let line = line_of(&error, &String::from_utf8_lossy(&bytes));
                let place = Place { line, ..Place::file(path) };
                let mut failure = Failure::from_error(Exit::Usage, &error).at(place);
                for problem in &mut failure.problems {
                    problem.what = format!("{FILE} cannot be used: {}", problem.what);
                }
                Err(failure.hint(remedy(&error)))
            }
        }
    }

    /// Whether the file is current: bundles of it that are finished by now count as before, so that
    /// it does not go stale by being carried out.
    pub(crate) fn currency(&self, site: &WorkspaceConfig) -> Result<Currency, Failure> {
        let mut ids: BTreeSet<BundleId> =
            Batch::of_all(site)?.items.into_iter().map(|item| item.id).collect();
        ids.extend(self.bundles().cloned());
        let batch = Batch::of(site, &ids)?;
        let current = batch.digests().contains(&self.file.digest);
        Ok(if current { Currency::Current } else { Currency::Stale })
    }

    /// The groups that a driver has to follow, none where there is no file. One that is damaged or out
    /// of date is refused: somebody plans by it, so it is never passed over in silence.
    pub(crate) fn require_groups(
        cx: &Context<'_>,
        site: &WorkspaceConfig,
    ) -> Result<Vec<Vec<BundleId>>, Failure> {
        let Some(kept) = Self::load(cx)? else { return Ok(Vec::new()) };
        match kept.currency(site)? {
            Currency::Absent | Currency::Current => {
                Ok(kept.file.groups.into_iter().map(|group| group.bundles).collect())
            }
            Currency::Stale => Err(outdated(cx)?),
        }
    }

    /// Refuses to leave a bundle out that has a group and is not finished: it would lose its letter.
    pub(super) fn require_all_named(&self, batch: &Batch, cx: &Context<'_>) -> Result<(), Failure> {
        let is_open = |id: &&BundleId| match batch.outside.standing(id) {
            Some(ItemState::Active | ItemState::Waiting | ItemState::Built | ItemState::Red) => {
                true
            }
            Some(ItemState::Complete | ItemState::Landed | ItemState::Ended) | None => false,
        };
        let missing: BTreeSet<&BundleId> = self.bundles().filter(is_open).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<&str> = missing.into_iter().map(AsRef::as_ref).collect();
        let missing = missing.join(", ");
        Err(Failure::usage(format!("{FILE} has a group for {missing}, which would lose it"))
            .at(Place::file(path(cx)?))
            .hint("name all bundles that are not finished, or none: `pdca plan --write`"))
    }

    fn bundles(&self) -> impl Iterator<Item = &BundleId> {
        self.file.groups.iter().flat_map(|group| &group.bundles)
    }
}

/// The refusal of a file that was made from other declarations.
pub(super) fn outdated(cx: &Context<'_>) -> Result<Failure, Failure> {
    Ok(Failure::usage(format!("{FILE} is out of date: the briefs declare something else by now"))
        .at(Place::file(path(cx)?))
        .hint(format!("`pdca plan --write` plans again, no group gets another letter; without {FILE} there are no groups")))
}

/// Puts the groups in place.
pub(super) fn store(cx: &Context<'_>, file: &LanesFile) -> Result<(), Failure> {
    let path = path(cx)?;
    files::replace(&path, file.to_json().as_bytes()).map_err(|error| {
        Failure::new(Exit::Unexpected, format!("{FILE} cannot be written"))
            .cause(&error)
            .at(Place::file(path))
            .hint("make room and make the directory writable, then repeat the command")
    })
}

pub(crate) fn path(cx: &Context<'_>) -> Result<Utf8PathBuf, Failure> {
    Ok(cx.workspace()?.root.join(FILE))
}

/// The line of the file that an error is about, as near as the text tells.
fn line_of(error: &LanesFileError, text: &str) -> Option<usize> {
    let find = |needle: &str, skip: usize| {
        let hits = text.lines().enumerate().filter(|(_, line)| line.contains(needle));
        hits.map(|(index, _)| index + 1).nth(skip)
    };
    match error {
        LanesFileError::Damaged { source } => Some(source.line().max(1)),
        LanesFileError::Schema { .. } => find("\"schema\"", 0),
        LanesFileError::DuplicateGroup { id } => find(&format!("\"id\": \"{id}\""), 1),
        LanesFileError::EmptyGroup { id } | LanesFileError::BadDependency { id, .. } => {
            find(&format!("\"id\": \"{id}\""), 0)
        }
        LanesFileError::BundleTwice { id, .. } => find(&format!("\"{id}\""), 1),
        LanesFileError::NextInUse { .. } => find("\"next\"", 0),
    }
    .or(Some(1))
}

fn remedy(error: &LanesFileError) -> &'static str {
    match error {
        LanesFileError::Schema { .. } => {
            "another version of pdca wrote it: use that one, or remove the file to have groups made anew"
        }
        LanesFileError::Damaged { .. }
        | LanesFileError::DuplicateGroup { .. }
        | LanesFileError::EmptyGroup { .. }
        | LanesFileError::BundleTwice { .. }
        | LanesFileError::BadDependency { .. }
        | LanesFileError::NextInUse { .. } => {
            "restore it from version control, or remove the file to have groups made anew"
        }
    }
}
