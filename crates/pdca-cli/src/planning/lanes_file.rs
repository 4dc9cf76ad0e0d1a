//! Reads, checks and replaces `lanes.json`.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use pdca_dag::{ItemState, LanesFile, LanesFileError};
use pdca_driver::{Batch, LanesJson, WorkspaceConfig};
use pdca_state::{BundleId, files};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};

/// Beside `pdca.toml`.
pub(crate) const FILE: &str = "lanes.json";

/// The largest file that is read, in bytes.
const MAX_LEN: u64 = 64 << 20;

/// Compares the file with what would be written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Currency {
    Absent,
    /// It was made from the present declarations.
    Current,
    /// The declarations have changed.
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

/// A valid `lanes.json`.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) file: LanesFile,
}

impl Kept {
    /// Reads the file; `None` if there is none. A damaged one is an error, because planning
    /// without it would move started work.
    pub(crate) fn load(cx: &Context<'_>) -> Result<Option<Self>, Failure> {
        let path = path(cx)?;
        let Some(bytes) = files::read_bounded(&path, MAX_LEN)? else { return Ok(None) };
        match LanesFile::parse(&bytes) {
            Ok(file) => Ok(Some(Self { file })),
            Err(error) => {
                let line = line_of(&error, &String::from_utf8_lossy(&bytes));
                let place = FilePosition { line, ..FilePosition::file(path) };
                let mut failure = Failure::from_error(Exit::Usage, &error).at(place);
                for problem in &mut failure.problems {
                    problem.what = format!("{FILE} cannot be used: {}", problem.what);
                }
                Err(failure.hint(remedy(&error)))
            }
        }
    }

    /// Compares the file with the present declarations. Bundles of it that are finished by now still count, so that
    /// it does not become stale by being carried out.
    pub(crate) fn currency(&self, site: &WorkspaceConfig) -> Result<Currency, Failure> {
        let mut ids: BTreeSet<BundleId> =
            Batch::of_all(site)?.items.into_iter().map(|item| item.id).collect();
        ids.extend(self.bundles().cloned());
        let batch = Batch::of(site, &ids)?;
        let current = batch.digests().contains(&self.file.digest);
        Ok(if current { Currency::Current } else { Currency::Stale })
    }

    /// Returns the groups that a driver has to follow; none without a file. A damaged or stale
    /// one is an error, because ignoring it silently would break the plan that it records.
    pub(crate) fn require_groups(
        cx: &Context<'_>,
        site: &WorkspaceConfig,
    ) -> Result<Vec<Vec<BundleId>>, Failure> {
        let Some(kept) = Self::load(cx)? else {
            return match site.schedule.lanes_json {
                LanesJson::Optional => Ok(Vec::new()),
                LanesJson::Required => Err(absent(cx)?),
            };
        };
        match kept.currency(site)? {
            Currency::Absent | Currency::Current => {
                Ok(kept.file.groups.into_iter().map(|group| group.bundles).collect())
            }
            Currency::Stale => Err(outdated(cx)?),
        }
    }

    /// Returns an error if an unfinished bundle with a group is left out: it would lose its letter.
    pub(crate) fn require_all_named(&self, batch: &Batch, cx: &Context<'_>) -> Result<(), Failure> {
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
            .at(FilePosition::file(path(cx)?))
            .hint("name all bundles that are not finished, or none: `pdca plan --write`"))
    }

    fn bundles(&self) -> impl Iterator<Item = &BundleId> {
        self.file.groups.iter().flat_map(|group| &group.bundles)
    }
}

/// Returns the error about a missing file, where `[schedule] lanes_json` asks for one.
fn absent(cx: &Context<'_>) -> Result<Failure, Failure> {
    Ok(Failure::usage(format!("there is no {FILE}, and `[schedule] lanes_json` requires one"))
        .at(FilePosition::file(path(cx)?))
        .hint("`pdca plan --write` writes it"))
}

/// Returns the error about a stale file.
pub(crate) fn outdated(cx: &Context<'_>) -> Result<Failure, Failure> {
    Ok(Failure::usage(format!("{FILE} is out of date: the briefs declare something else by now"))
        .at(FilePosition::file(path(cx)?))
        .hint(format!("`pdca plan --write` plans again, no group gets another letter; without {FILE} there are no groups")))
}

/// Replaces the file.
pub(crate) fn store(cx: &Context<'_>, file: &LanesFile) -> Result<(), Failure> {
    let path = path(cx)?;
    files::replace(&path, file.to_json().as_bytes()).map_err(|error| {
        Failure::new(Exit::Unexpected, format!("{FILE} cannot be written"))
            .cause(&error)
            .at(FilePosition::file(path))
            .hint("make room and make the directory writable, then repeat the command")
    })
}

pub(crate) fn path(cx: &Context<'_>) -> Result<Utf8PathBuf, Failure> {
    Ok(cx.workspace()?.root.join(FILE))
}

/// Returns the line that an error is about, as far as the text tells.
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
