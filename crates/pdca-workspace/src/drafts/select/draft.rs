//! Drafts: a filled template, the scaffold of triage, and the thread.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use camino::Utf8Path;
use pdca_driver::WorkspaceConfig;
use pdca_forge::select::{IssueRecord, Pool, Triage};
use pdca_process::{Cancel, Tool};
use pdca_state::{Artifact, Brief, BundleId, Label};
use serde_json::{Map, Value, json};

use super::source::{self, IssueSource};
use super::{OpenedExport, SelectError};
use crate::OperationError;
use crate::config::FilePosition;
use crate::drafts::template;

/// Writes the drafts of one batch.
pub(super) struct Drafter<'w> {
    export: &'w OpenedExport<'w>,
    pool: &'w Pool,
    cancel: &'w Cancel,
    template: String,
    site: WorkspaceConfig,
    notes: bool,
    /// Texts from the export, where no program prints threads.
    descriptions: HashMap<BundleId, String>,
    /// The branches that were looked for, by repository and name.
    branches: BTreeMap<(String, String), bool>,
}

/// A draft that was written, or would be.
pub(super) struct Drafted {
    /// It has a `notes.json`.
    pub(super) notes: bool,
    /// The default of the template that was taken out, because it is stale.
    pub(super) swept: Option<String>,
}

impl<'w> Drafter<'w> {
    pub(super) fn new(
        export: &'w OpenedExport<'w>,
        pool: &'w Pool,
        notes: bool,
        cancel: &'w Cancel,
        new: &[&IssueRecord],
    ) -> Result<Self, OperationError> {
        let descriptions = if notes && !reads_threads(export) && !new.is_empty() {
            let ids = new.iter().map(|record| record.id.clone()).collect();
            export.source.descriptions(&export.selector, &ids)?
        } else {
            HashMap::new()
        };
        Ok(Self {
            template: template::load(export.open.workspace)?,
            site: export.open.driver_config()?,
            export,
            pool,
            cancel,
            notes,
            descriptions,
            branches: BTreeMap::new(),
        })
    }

    /// Writes one draft, with all its files at once. Without `writes` no program is started for its thread.
    pub(super) fn draft(
        &mut self,
        record: &IssueRecord,
        writes: bool,
    ) -> Result<Drafted, OperationError> {
        if self.cancel.is_cancelled() {
            return Err(SelectError::Interrupted.into());
        }
        let (notes, has_notes) = if writes {
            let notes = self.thread(record)?;
            let has_notes = notes.is_some();
            (notes, has_notes)
        } else {
            (None, self.would_have_notes(record))
        };
        let (brief, swept) = self.brief(record, has_notes);
        if writes {
            let mut artifacts = vec![(Artifact::Brief, brief.as_bytes())];
            if let Some(notes) = &notes {
                artifacts.push((Artifact::Notes, notes));
            }
            self.export.open.workspace.bundle_root.create_with(&record.id, &artifacts)?;
        }
        Ok(Drafted { notes: has_notes, swept })
    }

    fn would_have_notes(&self, record: &IssueRecord) -> bool {
        self.notes && (reads_threads(self.export) || self.descriptions.contains_key(&record.id))
    }

    fn brief(&mut self, record: &IssueRecord, has_notes: bool) -> (String, Option<String>) {
        let filled = template::fill(&self.template, record.id.as_ref(), Some(&record.title));
        let (mut text, swept) = self.without_stale_target(filled);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let triage = Triage {
            record,
            bucket: self.pool.bucket_of(record),
            source: &self.export.source.name(),
            has_notes,
            today: self.export.today,
        };
        text.push('\n');
        text.push_str(&triage.section());
        (text, swept)
    }

    /// Takes a target out of a filled template if the repository or its branch does not exist (any more).
    fn without_stale_target(&mut self, text: String) -> (String, Option<String>) {
        let brief = Brief::parse(&text);
        let (Some(target), Some(field)) = (brief.repo_target(), brief.known(Label::RepoTarget))
        else {
            return (text, None);
        };
        let why = match (self.site.target_of(&brief), &target.branch) {
            (Err(_), _) => format!("no target is named {}", target.repo),
            (Ok(Some(spec)), Some(branch)) if !self.has_branch(&spec.path, branch) => {
                format!("{} has no branch {branch}", target.repo)
            }
            (Ok(_), _) => return (text, None),
        };
        let stale = field.own_line.to_owned();
        let fresh =
            format!("<owner/repo @ branch; the template says {}, but {why}>", plain(&stale));
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        if let Some(line) = lines.get_mut(field.line.saturating_sub(1)) {
            *line = line.replacen(&stale, &fresh, 1);
        }
        (lines.join("\n"), Some(format!("{}: {why}", plain(&stale))))
    }

    fn has_branch(&mut self, repository: &Utf8Path, branch: &str) -> bool {
        let key = (repository.to_string(), branch.to_owned());
        // Every draft of a batch has the target of the template: one question instead of one for each.
        if let Some(known) = self.branches.get(&key) {
            return *known;
        }
        let has = |name: &str| {
            let reference = format!("{name}{branch}");
            let tool = Tool::new("git")
                .args(["show-ref", "--verify", "--quiet", &reference])
                .cwd(repository)
                .env("GIT_OPTIONAL_LOCKS", "0");
            tool.run().is_ok_and(|said| said.success())
        };
        // Where nothing can be asked, nothing is called stale.
        let known =
            !repository.join(".git").exists() || has("refs/heads/") || has("refs/remotes/origin/");
        self.branches.insert(key, known);
        known
    }

    /// Returns the bytes of `notes.json`; `None` if there is no thread.
    fn thread(&self, record: &IssueRecord) -> Result<Option<Vec<u8>>, OperationError> {
        if !self.notes {
            return Ok(None);
        }
        let (workspace, source) = (self.export.open.workspace, &self.export.source);
        let notes = if let Some(command) = &workspace.config.tracker.notes_cmd {
            Some(self.by_command(command, record)?)
        } else if let IssueSource::Gh { repo } = source {
            let number = record.id.as_str().parse();
            let number = number.map_err(|_| SelectError::NotANumber { id: record.id.clone() })?;
            let client = source::gh(workspace, repo, self.cancel);
            let mut thread = client.thread(number).map_err(SelectError::from)?;
            // The bundle would count as resolved, which is for a person or the project's own command to say.
            thread.remove("resolved");
            Some(thread)
        } else {
            self.descriptions.get(&record.id).map(|body| {
                let from = format!("{}, line {}", source.name(), record.line);
                let mut notes = Map::new();
                notes.insert("title".to_owned(), json!(record.title));
                notes.insert("body".to_owned(), json!(body));
                notes.insert("state".to_owned(), json!(&*record.status));
                notes.insert("from".to_owned(), json!(from));
                notes
            })
        };
        let Some(notes) = notes else { return Ok(None) };
        let mut bytes =
            serde_json::to_vec_pretty(&Value::Object(notes)).map_err(std::io::Error::from)?;
        bytes.push(b'\n');
        if u64::try_from(bytes.len()).is_ok_and(|length| length <= Artifact::Notes.max_len()) {
            return Ok(Some(bytes));
        }
        Err(SelectError::ThreadTooLarge { id: record.id.clone() }.into())
    }

    fn by_command(
        &self,
        command: &str,
        record: &IssueRecord,
    ) -> Result<Map<String, Value>, SelectError> {
        let workspace = self.export.open.workspace;
        let tool = Tool::new("sh")
            .args(["-c", command])
            .cwd(&workspace.root)
            .env("PDCA_ISSUE", record.id.as_str())
            .timeout(Duration::from_secs(workspace.config.select.timeout_secs))
            .ended_by(self.cancel);
        let name = format!("[tracker] notes_cmd for {}", record.id);
        let printed = source::output(&tool, &name)?;
        serde_json::from_slice(&printed).map_err(|source| {
            let place = workspace.sources.place("tracker.notes_cmd");
            let place = place.map(|place| FilePosition { column: None, ..place });
            SelectError::NotAnObject { name, place, source }
        })
    }
}

/// Returns whether a program reads the thread of each issue, so that the export need not have its description.
fn reads_threads(export: &OpenedExport<'_>) -> bool {
    export.open.workspace.config.tracker.notes_cmd.is_some()
        || matches!(export.source, IssueSource::Gh { .. })
}

/// Returns a value without the characters that would end a placeholder.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '<' | '>' | '`')).collect()
}
