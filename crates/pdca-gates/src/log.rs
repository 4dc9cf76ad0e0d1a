//! The log of a check in the bundle: the output of its runs, byte for byte.

use pdca_state::{Artifact, GateResult, files};

use crate::{
    check::Check,
    fix::Fixed,
    run::{GateRun, GatesError},
};

/// The output of one run.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) bytes: Vec<u8>,
}

impl Section {
    /// Makes a section of one line of ours.
    pub(crate) fn note(text: &str) -> Self {
        Self { title: "pdca".to_owned(), bytes: format!("{text}\n").into_bytes() }
    }
}

impl GateRun<'_, '_> {
    /// Writes the log of a check into the bundle and returns its path. Without a bundle only the log of a check that
    /// did not pass is kept, if the context names a directory.
    pub(crate) fn keep_log(
        &self,
        check: &Check,
        result: GateResult,
        sections: Vec<Section>,
    ) -> Result<Option<String>, GatesError> {
        if sections.is_empty() {
            return Ok(None);
        }
        let relative = Artifact::gate_log(&check.id);
        if let Some(bundle) = self.context.bundle.filter(|_| self.context.keep_logs) {
            let path = bundle.dir().join(&relative);
            // Not synced: running the check again recreates the log.
            bundle
                .publish_derived_file(&relative, &whole(self.fixes.of(check), sections))
                .map_err(|error| GatesError::Log { path, source: std::io::Error::other(error) })?;
            return Ok(Some(relative.into_string()));
        }
        let is_wanted = matches!(result, GateResult::Fail | GateResult::Unverifiable);
        let Some(dir) = self.context.logs.filter(|_| is_wanted) else { return Ok(None) };
        let path = dir.join(relative.file_name().unwrap_or("row.log"));
        fs_err::create_dir_all(dir)
            .and_then(|()| files::replace_unsynced(&path, &whole(self.fixes.of(check), sections)))
            .map_err(|source| GatesError::Log { path: path.clone(), source })?;
        Ok(Some(path.into_string()))
    }
}

/// Joins the log from before a fix with the output of the runs.
fn whole(before: Option<&Fixed>, mut sections: Vec<Section>) -> Vec<u8> {
    match (before, sections.as_mut_slice()) {
        // The output of a single run is kept unchanged.
        (None, [only]) => std::mem::take(&mut only.bytes),
        (before, _) => {
            let mut all = before.map(|fixed| fixed.log.clone()).unwrap_or_default();
            all.extend(rendered(sections));
            all
        }
    }
}

/// Joins several outputs, each below a title line.
pub(crate) fn rendered(sections: Vec<Section>) -> Vec<u8> {
    let mut all = Vec::new();
    for section in sections {
        if !all.is_empty() && !all.ends_with(b"\n") {
            all.push(b'\n');
        }
        all.extend(format!("== {} ==\n", section.title).bytes());
        all.extend(section.bytes);
    }
    all
}
