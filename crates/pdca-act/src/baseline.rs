//! The baseline: digests of all files that define the process, so that two points in time can be compared.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{files, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::records;

/// Limits of a directory. A baseline consists of texts for people, so these are generous.
const MAX_FILES: usize = 2_000;
const MAX_DEPTH: usize = 8;
pub(crate) const MAX_LEN: u64 = 16 << 20;

/// The digest of a file that cannot be read.
const UNREADABLE: &str = "unreadable";

/// The digest of every part of the process, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    files: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessPart {
    /// Every file below a directory, named `name/…`, except for the records of this crate.
    Directory {
        name: String,
        path: Utf8PathBuf,
    },
    File {
        name: String,
        path: Utf8PathBuf,
    },
    /// A table of a TOML file. Comments and the order of keys do not count.
    Table {
        name: String,
        path: Utf8PathBuf,
        key: String,
    },
}

/// The differences between two baselines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// Parts in both, with another digest.
    pub changed: Vec<BaselineChange>,
    /// Parts only in the later one.
    pub added: Vec<BaselineChange>,
    /// Parts only in the earlier one.
    pub removed: Vec<BaselineChange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineChange {
    pub file: String,
    /// The digest in the earlier baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The digest in the later one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl Baseline {
    /// Digests every existing part. The second value lists what could not be read.
    pub fn collect(sources: &[ProcessPart]) -> (Self, Vec<String>) {
        let mut taken = Self::default();
        let mut problems = Vec::new();
        for source in sources {
            match source {
                ProcessPart::Directory { name, path } => {
                    taken.add_directory(name, path, &mut problems);
                }
                ProcessPart::File { name, path } => taken.add_file(name, path, &mut problems),
                ProcessPart::Table { name, path, key } => {
                    taken.add_table(name, path, key, &mut problems);
                }
            }
        }
        (taken, problems)
    }

    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Compares with an earlier baseline.
    pub fn changes_since(&self, earlier: &Baseline) -> Changes {
        let mut changes = Changes::default();
        for (file, after) in &self.files {
            let before = earlier.files.get(file);
            let change = BaselineChange {
                file: file.clone(),
                before: before.cloned(),
                after: Some(after.clone()),
            };
            match before {
                None => changes.added.push(change),
                Some(before) if before != after => changes.changed.push(change),
                Some(_) => {}
            }
        }
        let gone = earlier.files.iter().filter(|(file, _)| !self.files.contains_key(*file));
        changes.removed = gone
            .map(|(file, before)| BaselineChange {
                file: file.clone(),
                before: Some(before.clone()),
                after: None,
            })
            .collect();
        changes
    }

    fn add_file(&mut self, name: &str, path: &Utf8Path, problems: &mut Vec<String>) {
        match files::read_bounded(path, MAX_LEN) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                self.files.insert(name.to_owned(), sha256_hex(&bytes));
            }
            Err(error) => {
                problems.push(error.to_string());
                // Under a digest of its own: a part that is left out would be reported as removed.
                self.files.insert(name.to_owned(), UNREADABLE.to_owned());
            }
        }
    }

    fn add_table(&mut self, name: &str, path: &Utf8Path, key: &str, problems: &mut Vec<String>) {
        let digest = match files::read_bounded(path, MAX_LEN) {
            Ok(None) => return,
            Ok(Some(bytes)) => match table(&bytes, key) {
                Ok(None) => return,
                Ok(Some(value)) => sha256_hex(value.to_string().as_bytes()),
                Err(error) => {
                    problems.push(format!("{path} is not TOML: {}", error.message()));
                    UNREADABLE.to_owned()
                }
            },
            Err(error) => {
                problems.push(error.to_string());
                UNREADABLE.to_owned()
            }
        };
        self.files.insert(name.to_owned(), digest);
    }

    fn add_directory(&mut self, name: &str, path: &Utf8Path, problems: &mut Vec<String>) {
        let mut open = vec![(name.to_owned(), path.to_owned(), 0)];
        let mut count = 0;
        while let Some((name, path, depth)) = open.pop() {
            let mut entries = match path.read_dir_utf8() {
                Ok(entries) => entries.filter_map(Result::ok).collect::<Vec<_>>(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    problems.push(format!("cannot list {path}: {error}"));
                    continue;
                }
            };
            entries.sort_unstable_by(|a, b| a.file_name().cmp(b.file_name()));
            for entry in entries {
                let file = entry.file_name();
                // Hidden files are temporary files, locks or our own records.
                if file.starts_with('.') || (depth == 0 && records::is_ours(file)) {
                    continue;
                }
                let named = format!("{name}/{file}");
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_directory && depth < MAX_DEPTH {
                    open.push((named, entry.path().to_owned(), depth + 1));
                } else if count >= MAX_FILES || is_directory {
                    problems.push(format!("{named} is not looked at: {path} holds too much"));
                } else {
                    count += 1;
                    self.add_file(&named, entry.path(), problems);
                }
            }
        }
    }
}

/// Returns a table of a TOML file, if the file has it.
pub(crate) fn table(bytes: &[u8], key: &str) -> Result<Option<toml::Value>, toml::de::Error> {
    let mut tables: toml::Table = String::from_utf8_lossy(bytes).parse()?;
    Ok(tables.remove(key))
}

impl FromIterator<(String, String)> for Baseline {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(iter: I) -> Self {
        Self { files: iter.into_iter().collect() }
    }
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    fn sources(scene: &Scene) -> [ProcessPart; 2] {
        let file = scene.write("pdca.toml", "[gates]\nparallel = true\n");
        [
            ProcessPart::Directory {
                name: "process".to_owned(),
                path: scene.path().join("process"),
            },
            ProcessPart::Table {
                name: "pdca.toml [gates]".to_owned(),
                path: file,
                key: "gates".to_owned(),
            },
        ]
    }

    fn names(changes: &[BaselineChange]) -> Vec<&str> {
        changes.iter().map(|change| change.file.as_str()).collect()
    }

    #[test]
    fn changed_added_and_removed_files_are_told_apart() {
        let scene = Scene::new();
        scene.write("process/rules.md", "1");
        scene.write("process/deep/gone.md", "1");
        scene.write("process/act-log.md", "ours");
        scene.write("process/.act-reviewed", "ours");
        let (before, problems) = Baseline::collect(&sources(&scene));
        assert_eq!(problems, [""; 0]);
        scene.write("process/rules.md", "2");
        scene.write("process/new.md", "1");
        scene.write("process/act-log.md", "ours, longer");
        scene.remove("process/deep/gone.md");
        let (after, _) = Baseline::collect(&sources(&scene));
        let changes = after.changes_since(&before);
        assert_eq!(names(&changes.changed), ["process/rules.md"]);
        assert_eq!(names(&changes.added), ["process/new.md"]);
        assert_eq!(names(&changes.removed), ["process/deep/gone.md"]);
        assert!(after.changes_since(&after).is_empty());
        assert!(after.files().contains_key("pdca.toml [gates]"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_and_does_not_count_as_removed() {
        let scene = Scene::new();
        scene.write("process/rules.md", "1");
        let (before, _) = Baseline::collect(&sources(&scene));
        scene.remove("process/rules.md");
        scene.write("outside.md", "1");
        std::os::unix::fs::symlink("../outside.md", scene.path().join("process/rules.md")).unwrap();
        let (after, problems) = Baseline::collect(&sources(&scene));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(names(&after.changes_since(&before).changed), ["process/rules.md"]);
    }
}
