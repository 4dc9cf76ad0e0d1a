//! What an attempt leaves for later besides its artifacts: the sessions of agents, and what became of build products.
//!
//! The notes of a bundle are one small file of the driver's own, `.pdca/attempt-notes/<bundle>.json`. They outlive the
//! record of an attempt, which goes when a builder fails. Lost notes cost a new session and a line of the summary.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_leaves::{LeafConfig, Role};
use pdca_state::{BundleId, files};
use serde::{Deserialize, Serialize};

use crate::config::WorkspaceConfig;

/// The most sessions that are kept for one bundle.
const MOST: usize = 50;

/// The notes about all attempts at one bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AttemptNotes {
    /// The sessions of calls that ended well, the latest last.
    sessions: Vec<SessionNote>,
    products: Vec<ProductNote>,
}

/// The session of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionNote {
    /// The attempt, from 1.
    pub(crate) attempt: u32,
    pub(crate) role: String,
    /// The agent, or the program where it has no name.
    pub(crate) agent: String,
    pub(crate) session: String,
    /// The directory that the agent worked in. Agents find their sessions by it.
    pub(crate) directory: Utf8PathBuf,
}

/// Build products of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProductNote {
    attempt: u32,
    path: String,
    fate: ProductFate,
}

/// What became of a build product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProductFate {
    /// It was moved to this directory, relative to the root of the lanes.
    LeftOut(Utf8PathBuf),
    /// It is part of the change.
    StaysIn(StaysBecause),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StaysBecause {
    /// `Touches` of the brief names it.
    Named,
    /// It, or its directory, is in git: in the base, or by the builder's hand.
    InGit,
}

/// The conditions for going on in an earlier session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resumption<'a> {
    pub(crate) role: Role,
    /// The attempt that is about to be made, from 1.
    pub(crate) attempt: u32,
    pub(crate) config: &'a LeafConfig,
    pub(crate) directory: &'a Utf8Path,
    /// The agent finds its work as it left it.
    pub(crate) is_as_left: bool,
}

impl AttemptNotes {
    /// Returns the session of the last attempt before this one that the leaf may go on in.
    ///
    /// Unless `resume` says otherwise, that is one of the same agent, in the same directory, with its work as it left it:
    /// what it remembers is then true.
    pub(crate) fn session_for(&self, wanted: &Resumption<'_>) -> Option<&SessionNote> {
        let Resumption { role, attempt, config, directory, is_as_left } = *wanted;
        if config.resume == Some(false) || config.resume_args.is_empty() || !role.may_resume() {
            return None;
        }
        // Strictly earlier: a driver that takes this attempt over must choose the same session,
        // although a try of this attempt may have noted one (decision 036).
        let is_earlier = |note: &&SessionNote| note.role == role.as_str() && note.attempt < attempt;
        let last = self.sessions.iter().rev().find(is_earlier)?;
        // In another lane the remembered paths name another bundle's files; at the bare base the
        // remembered edits are not there (decision 036).
        let is_safe = is_as_left && role == Role::Builder && last.directory == directory;
        let may = config.resume == Some(true) || is_safe;
        (may && last.agent == agent_of(config)).then_some(last)
    }

    fn note_session(&mut self, note: SessionNote) {
        let is_same =
            |other: &SessionNote| (other.attempt, &other.role) == (note.attempt, &note.role);
        self.sessions.retain(|other| !is_same(other));
        self.sessions.push(note);
        let excess = self.sessions.len().saturating_sub(MOST);
        // The oldest go first: only the latest session of an earlier attempt is ever used.
        self.sessions.drain(..excess);
    }

    fn note_product(&mut self, attempt: u32, path: &str, fate: ProductFate) {
        self.products.retain(|other| (other.attempt, other.path.as_str()) != (attempt, path));
        self.products.push(ProductNote { attempt, path: path.to_owned(), fate });
    }

    /// Returns what became of the build products of an attempt, in sentences.
    pub(crate) fn product_sentences(&self, attempt: u32) -> Vec<String> {
        let mut places: Vec<&Utf8Path> = Vec::new();
        let of_attempt = || self.products.iter().filter(move |note| note.attempt == attempt);
        for note in of_attempt() {
            if let ProductFate::LeftOut(place) = &note.fate
                && !places.contains(&place.as_path())
            {
                places.push(place);
            }
        }
        let named = |is_meant: &dyn Fn(&ProductFate) -> bool| {
            let paths: Vec<&str> = of_attempt()
                .filter(|note| is_meant(&note.fate))
                .map(|note| note.path.as_str())
                .collect();
            (!paths.is_empty()).then(|| listed(&paths))
        };
        let left = places.iter().filter_map(|place| {
            let paths =
                named(&|fate| matches!(fate, ProductFate::LeftOut(other) if other == place))?;
            Some(format!("{paths}: left out of the change, kept in `{place}` of the lanes"))
        });
        let stays = [
            (StaysBecause::Named, "in the change, because `Touches` names it"),
            (
                StaysBecause::InGit,
                "in the change, because it is in git: in the base, or added by the builder",
            ),
        ];
        let stays = stays.into_iter().filter_map(|(why, words)| {
            Some(format!("{}: {words}", named(&|fate| *fate == ProductFate::StaysIn(why))?))
        });
        left.chain(stays).collect()
    }
}

/// Lists paths, only the first ones of many.
pub(crate) fn listed<T: AsRef<str>>(paths: &[T]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = paths
        .iter()
        .take(SHOWN)
        .map(|path| format!("`{}`", path.as_ref().escape_debug()))
        .collect();
    match paths.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the agent of a leaf, or its program.
pub(crate) fn agent_of(config: &LeafConfig) -> String {
    config.agent.clone().or_else(|| config.argv.first().cloned()).unwrap_or_default()
}

/// The file of the notes about one bundle.
#[derive(Clone, Debug)]
pub(crate) struct NotesFile(Utf8PathBuf);

impl WorkspaceConfig {
    pub(crate) fn attempt_notes(&self, id: &BundleId) -> NotesFile {
        NotesFile(self.dirs.private().join("attempt-notes").join(format!("{}.json", id.dir_name())))
    }
}

impl NotesFile {
    /// Reads the notes. A missing or garbled file counts as empty.
    pub(crate) fn load(&self) -> io::Result<AttemptNotes> {
        match fs_err::read(&self.0) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(AttemptNotes::default()),
            Err(error) => Err(error),
        }
    }

    fn change(&self, change: impl FnOnce(&mut AttemptNotes)) -> io::Result<()> {
        let before = self.load()?;
        let mut notes = before.clone();
        change(&mut notes);
        if notes == before {
            return Ok(());
        }
        fs_err::create_dir_all(self.0.parent().unwrap_or(&self.0))?;
        files::replace(&self.0, &serde_json::to_vec_pretty(&notes).map_err(io::Error::other)?)
    }

    pub(crate) fn note_session(&self, note: SessionNote) -> io::Result<()> {
        self.change(|notes| notes.note_session(note))
    }

    pub(crate) fn note_products(
        &self,
        attempt: u32,
        paths: &[String],
        fate: impl Fn(&str) -> ProductFate,
    ) -> io::Result<()> {
        self.change(|notes| {
            for path in paths {
                notes.note_product(attempt, path, fate(path));
            }
        })
    }

    /// Removes what was noted about the products of an attempt that is made again.
    pub(crate) fn forget_products(&self, attempt: u32) -> io::Result<()> {
        self.change(|notes| notes.products.retain(|note| note.attempt != attempt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(agent: &str, resume: Option<bool>) -> LeafConfig {
        LeafConfig {
            agent: Some(agent.to_owned()),
            resume,
            resume_args: vec!["--resume".to_owned()],
            ..LeafConfig::default()
        }
    }

    fn note(attempt: u32, role: &str) -> SessionNote {
        SessionNote {
            attempt,
            role: role.to_owned(),
            agent: "claude".to_owned(),
            session: format!("{role}-{attempt}"),
            directory: "/lanes/lane-0/app".into(),
        }
    }

    #[test]
    fn a_session_is_gone_on_in_where_the_agent_finds_what_it_left_or_where_that_is_asked_for() {
        let mut notes = AttemptNotes::default();
        for attempt in [1, 2] {
            notes.note_session(note(attempt, "builder"));
            notes.note_session(note(attempt, "reviewer"));
        }
        let here = "/lanes/lane-0/app";
        let there = "/lanes/lane-1/app";
        // The agent, `resume`, the directory, whether the work is as it was left, and the attempt.
        let table = [
            ("claude", None, here, true, 3, Some("builder-2")),
            ("claude", None, here, true, 2, Some("builder-1")),
            ("claude", None, here, true, 1, None),
            ("claude", None, there, true, 3, None),
            ("claude", None, here, false, 3, None),
            ("codex", None, here, true, 3, None),
            ("claude", Some(false), here, true, 3, None),
            ("claude", Some(true), there, false, 3, Some("builder-2")),
            ("codex", Some(true), here, true, 3, None),
        ];
        for (agent, resume, directory, is_as_left, attempt, expected) in table {
            let config = leaf(agent, resume);
            let directory = Utf8Path::new(directory);
            let wanted =
                Resumption { role: Role::Builder, attempt, config: &config, directory, is_as_left };
            let found = notes.session_for(&wanted).map(|note| note.session.as_str());
            assert_eq!(found, expected, "{agent} {resume:?} {directory} {is_as_left} {attempt}");
        }
        let config = leaf("claude", Some(true));
        let role = Role::Reviewer;
        let directory = Utf8Path::new(here);
        let wanted = Resumption { role, attempt: 3, config: &config, directory, is_as_left: true };
        assert_eq!(notes.session_for(&wanted), None, "what a reviewer remembers is not its own");
    }

    #[test]
    fn a_session_that_is_noted_twice_is_kept_once_and_old_ones_go() {
        let mut notes = AttemptNotes::default();
        for attempt in 1..=60 {
            notes.note_session(note(attempt, "builder"));
            notes.note_session(note(attempt, "builder"));
        }
        assert_eq!(notes.sessions.len(), MOST);
        assert_eq!(notes.sessions.first().map(|note| note.attempt), Some(11));
    }

    #[test]
    fn products_are_told_by_what_became_of_them_and_many_are_counted() {
        let mut notes = AttemptNotes::default();
        for count in 0..10 {
            let fate = ProductFate::LeftOut("lane-0/rescued/p".into());
            notes.note_product(2, &format!("{count}.pyc"), fate);
        }
        notes.note_product(2, "a.o", ProductFate::StaysIn(StaysBecause::Named));
        notes.note_product(1, "old.o", ProductFate::StaysIn(StaysBecause::InGit));
        let expected = [
            "`0.pyc`, `1.pyc`, `2.pyc`, `3.pyc`, `4.pyc`, `5.pyc`, `6.pyc`, `7.pyc` and 2 more: left out of the \
             change, kept in `lane-0/rescued/p` of the lanes",
            "`a.o`: in the change, because `Touches` names it",
        ];
        assert_eq!(notes.product_sentences(2), expected);
        assert_eq!(notes.product_sentences(3), Vec::<String>::new());
    }

    #[test]
    fn garbled_notes_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = NotesFile(Utf8PathBuf::from_path_buf(dir.path().join("n/7.json")).unwrap());
        assert_eq!(file.load().unwrap(), AttemptNotes::default());
        file.note_session(note(1, "builder")).unwrap();
        assert_eq!(file.load().unwrap().sessions.len(), 1);
        fs_err::write(&file.0, "{").unwrap();
        assert_eq!(file.load().unwrap(), AttemptNotes::default());
    }
}
